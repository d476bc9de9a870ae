/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cores.c - arithmetic of NeuronCores; see cores.h.
 */
#include "runtime/device/cores.h"

#include <string.h>

#include "runtime/device/device.h"

#define WORDS (CORES_MAX / 64)

/* ---- maps --------------------------------------------------------------------------------- */

struct core_map core_map_from_words(const uint64_t *words, uint32_t count)
{
	struct core_map map = {{0}};

	memcpy(map.words, words, (count < WORDS ? count : WORDS) * sizeof(words[0]));
	return map;
}

struct core_map core_map_range(uint32_t first, uint32_t count)
{
	struct core_map map = {{0}};

	for (uint32_t i = first; i < CORES_MAX && i - first < count; i++)
		map.words[i / 64] |= 1ull << (i % 64);
	return map;
}

uint32_t core_map_first(const struct core_map *map)
{
	for (uint32_t w = 0; w < WORDS; w++)
		if (map->words[w])
			return w * 64 + (uint32_t)__builtin_ctzll(map->words[w]);
	return CORES_MAX;
}

bool core_map_equal(const struct core_map *a, const struct core_map *b)
{
	return !memcmp(a, b, sizeof(*a));
}

/* ---- logical cores ------------------------------------------------------------------------ */

uint32_t cores_default_size(uint32_t arch, uint32_t per_device)
{
	return arch <= DEVICE_ARCH_V2 || per_device == 1 ? 1 : 2;
}

enum cores_fault cores_check_size(uint32_t size, uint32_t per_device)
{
	if (size == 0 || size & (size - 1))
		return CORES_SIZE_NOT_POWER;
	if (size > CORES_MAX_SIZE)
		return CORES_SIZE_TOO_LARGE;
	return per_device % size ? CORES_SIZE_NOT_DIVISOR : CORES_OK;
}

/* ---- selection ---------------------------------------------------------------------------- */

uint32_t cores_total(const struct cores_machine *machine)
{
	return machine->devices * machine->per_device;
}

uint32_t cores_total_logical(const struct cores_machine *machine)
{
	return cores_total(machine) / machine->size;
}

static enum cores_fault choose_range(const struct cores_machine *m, const struct cores_request *r,
	uint64_t count, struct cores_windows *ret)
{
	ret->first = ret->last = (int64_t)r->first * m->size;
	if ((uint64_t)ret->first + count > cores_total(m))
		return CORES_NO_DEVICE;
	return (uint64_t)ret->first + count > ret->reach ? CORES_TOO_MANY_DEVICES : CORES_OK;
}

static enum cores_fault choose_any(
	const struct cores_machine *m, uint64_t count, struct cores_windows *ret)
{
	if (m->arch > DEVICE_ARCH_V2 && count != m->size && count % m->per_device)
		return CORES_NOT_WHOLE;
	/* More than there are is for the driver to refuse: it knows how many are free. */
	if (count > ret->reach && count <= cores_total(m))
		return CORES_TOO_MANY_DEVICES;
	ret->first = 0;
	ret->last = (int64_t)ret->reach - (int64_t)count;
	return CORES_OK;
}

enum cores_fault cores_choose(
	const struct cores_machine *m, const struct cores_request *r, struct cores_windows *ret)
{
	uint32_t devices = m->devices < CORES_MAX_DEVICES ? m->devices : CORES_MAX_DEVICES;
	uint64_t count = r->count ? (uint64_t)r->count * m->size : cores_total(m);
	enum cores_fault fault;

	*ret = (struct cores_windows){
		.count = count < UINT32_MAX ? (uint32_t)count : UINT32_MAX,
		.last = -1,
		.step = m->size,
		.reach = devices * m->per_device,
	};
	if (r->is_range)
		fault = choose_range(m, r, count, ret);
	else
		fault = choose_any(m, count, ret);
	if (count > CORES_MAX && (fault == CORES_OK || fault == CORES_TOO_MANY_DEVICES))
		fault = CORES_TOO_MANY;
	return fault;
}
