/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cores_test.c - arithmetic of NeuronCores, and the two forms of the mark requests.
 *
 * Every choice is compared with a model that counts cores one by one.
 */
#include <errno.h>
#include <string.h>

#include "runtime/device/cores.h"
#include "runtime/device/device.h"
#include "runtime/device/marks.h"
#include "tests/shim/shim.h"
#include "vmlinux/ioctl_table.h"
#include "vmlinux/neuron_args.h"

/* ---- maps --------------------------------------------------------------------------------- */

TEST("cores: a map has four words and takes nothing from behind them", "[cores]")
{
	uint64_t words[8] = {0, 0, 0, 1ull << 63, ~0ull, ~0ull, ~0ull, ~0ull};
	struct core_map last = core_map_range(255, 9), got = core_map_from_words(words, 8);
	struct core_map none = core_map_from_words(words, 3), all = core_map_range(0, 512);

	CHECK_EQ(sizeof(got), 32);
	CHECK_EQ(core_map_first(&got), 255);
	CHECK(core_map_equal(&got, &last));
	CHECK_EQ(core_map_first(&none), CORES_MAX);
	none = core_map_from_words(words + 4, 0);
	CHECK_EQ(core_map_first(&none), CORES_MAX);
	CHECK_EQ(all.words[3], ~0ull);
	for (uint32_t i = 0; i < CORES_MAX; i++) {
		struct core_map one = core_map_range(i, 1);

		CHECK_EQ(core_map_first(&one), i);
		CHECK_EQ(one.words[i / 64], 1ull << (i % 64));
	}
}

/* ---- sizes -------------------------------------------------------------------------------- */

TEST("cores: the LNC size is 2, and 1 on V2 and where a device has one core", "[cores]")
{
	CHECK_EQ(cores_default_size(DEVICE_ARCH_V2, 2), 1);
	CHECK_EQ(cores_default_size(DEVICE_ARCH_V3, 8), 2);
	CHECK_EQ(cores_default_size(DEVICE_ARCH_V4, 8), 2);
	CHECK_EQ(cores_default_size(DEVICE_ARCH_V3, 1), 1);
}

TEST("cores: LNC sizes that cannot be are told apart", "[cores]")
{
	static const struct {
		uint32_t size, per_device;
		enum cores_fault fault;
	} rows[] = {
		{1, 1, CORES_OK},
		{1, 8, CORES_OK},
		{2, 8, CORES_OK},
		{2, 2, CORES_OK},
		{0, 8, CORES_SIZE_NOT_POWER},
		{3, 8, CORES_SIZE_NOT_POWER},
		{6, 8, CORES_SIZE_NOT_POWER},
		{4, 8, CORES_SIZE_TOO_LARGE},
		{0x80000000u, 8, CORES_SIZE_TOO_LARGE},
		{UINT32_MAX, 8, CORES_SIZE_NOT_POWER},
		{2, 1, CORES_SIZE_NOT_DIVISOR},
		{2, 3, CORES_SIZE_NOT_DIVISOR},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		test_info("%u of %u", rows[i].size, rows[i].per_device);
		CHECK_EQ(cores_check_size(rows[i].size, rows[i].per_device), rows[i].fault);
	}
}

/* ---- the property test -------------------------------------------------------------------- */

/* Which windows satisfy a request, found by looking at every core of the machine. */
struct model {
	enum cores_fault fault;
	bool starts[CORES_MAX_DEVICES * CORES_MAX_PER_DEVICE]; /* windows begin here */
	uint32_t count;
};

static bool window_fits(const struct cores_machine *m, uint32_t first, uint32_t count)
{
	uint32_t logical = 0;

	for (uint32_t i = first; i < first + count; i++) {
		if (i >= m->devices * m->per_device)
			return false;
		/* A logical core begins and ends with the window. */
		if (i % m->size == 0)
			logical++;
		else if (i == first)
			return false;
	}
	return logical * m->size == count;
}

static void model_choose(
	const struct cores_machine *m, const struct cores_request *r, struct model *ret)
{
	uint32_t total = m->devices * m->per_device, wanted = 0;

	memset(ret, 0, sizeof(*ret));
	if (r->count == 0)
		wanted = total;
	for (uint32_t i = 0; i < r->count; i++)
		wanted += m->size;
	ret->count = wanted;
	if (r->is_range) {
		for (uint32_t i = 0; i < wanted; i++)
			if (r->first * m->size + i >= total)
				ret->fault = CORES_NO_DEVICE;
		if (!ret->fault)
			ret->starts[r->first * m->size] = true;
		return;
	}
	if (m->arch == DEVICE_ARCH_V3 && wanted != m->size) {
		uint32_t rest = wanted;

		while (rest >= m->per_device)
			rest -= m->per_device;
		if (rest)
			ret->fault = CORES_NOT_WHOLE;
	}
	if (!ret->fault && wanted > CORES_MAX)
		ret->fault = CORES_TOO_MANY;
	for (uint32_t i = 0; i < total && !ret->fault; i++)
		ret->starts[i] = window_fits(m, i, wanted);
}

/* How many differences; the first is described for the report. */
static unsigned compare(const struct cores_machine *m, const struct cores_request *r)
{
	bool starts[CORES_MAX_DEVICES * CORES_MAX_PER_DEVICE] = {false};
	struct cores_windows w;
	struct model model;
	enum cores_fault fault = cores_choose(m, r, &w);

	model_choose(m, r, &model);
	for (int64_t at = w.first; !fault && at <= w.last; at += w.step)
		starts[at] = true;
	if (fault == model.fault &&
		(fault ||
			(w.count == model.count && !memcmp(starts, model.starts, sizeof(starts)))))
		return 0;
	test_info("arch %u, %u devices of %u cores, size %u, %s first %u count %u: fault %d "
		  "and %d, count %u and %u, windows %lld to %lld",
		m->arch, m->devices, m->per_device, m->size, r->is_range ? "range" : "number",
		r->first, r->count, (int)fault, (int)model.fault, w.count, model.count,
		(long long)w.first, (long long)w.last);
	return 1;
}

/* Every translation of the machine's cores, there and back. */
static unsigned compare_numbers(const struct cores_machine *m)
{
	uint32_t total = m->devices * m->per_device, logical = 0, wrong = 0;

	for (uint32_t i = 0; i < total; i++) {
		if (i && i % m->size == 0)
			logical++;
		wrong += cores_logical(i, m->size) != logical;
		wrong += cores_physical(logical, m->size) > i ||
			 cores_physical(logical, m->size) + m->size <= i;
		/* It does not cross a device. */
		wrong += cores_physical(logical, m->size) / m->per_device != i / m->per_device;
	}
	return wrong + (cores_total(m) != total) + (cores_total_logical(m) != logical + 1);
}

/* All numbers and all ranges, those behind the last core too. */
static unsigned compare_machine(const struct cores_machine *m, uint64_t *ret_cases)
{
	uint32_t logical = m->devices * m->per_device / m->size;
	unsigned wrong = compare_numbers(m);

	for (uint32_t count = 0; count <= logical + 2 && !wrong; count++, ++*ret_cases)
		wrong += compare(m, &(struct cores_request){.count = count});
	for (uint32_t first = 0; first <= logical && !wrong; first++)
		for (uint32_t count = 1; first + count <= logical + 1 && !wrong;
			count++, ++*ret_cases)
			wrong += compare(
				m, &(struct cores_request){
					   .is_range = true, .first = first, .count = count});
	return wrong;
}

TEST("cores: all machines, sizes and requests agree with counting one by one", "[cores]")
{
	static const uint32_t per_device[] = {1, 2, 4, 8};
	uint64_t cases = 0;

	for (uint32_t arch = DEVICE_ARCH_V2; arch <= DEVICE_ARCH_V3; arch++)
		for (uint32_t p = 0; p < 4; p++)
			for (uint32_t devices = 1; devices <= CORES_MAX_DEVICES; devices++)
				for (uint32_t size = 1; size <= 2; size++) {
					const struct cores_machine m = {
						arch, devices, per_device[p], size};

					if (per_device[p] % size == 0)
						REQUIRE_EQ(compare_machine(&m, &cases), 0);
				}
	CHECK(cases > 500000);
}

TEST("cores: 32 devices and 256 cores are the most, and only the first devices", "[cores]")
{
	static const struct {
		uint32_t devices, per_device, size;
		struct cores_request request;
		enum cores_fault fault;
	} rows[] = {
		{64, 8, 2, {false, 0, 0}, CORES_TOO_MANY},
		{33, 8, 1, {false, 0, 0}, CORES_TOO_MANY},
		{32, 8, 1, {false, 0, 0}, CORES_OK},
		{64, 8, 2, {false, 0, 128}, CORES_OK},
		{64, 8, 2, {false, 0, 132}, CORES_TOO_MANY},
		{64, 8, 2, {true, 0, 128}, CORES_OK},
		{64, 8, 2, {true, 0, 129}, CORES_TOO_MANY},
		{64, 8, 2, {true, 127, 1}, CORES_OK},
		{64, 8, 2, {true, 127, 2}, CORES_TOO_MANY_DEVICES},
		{64, 8, 2, {true, 255, 1}, CORES_TOO_MANY_DEVICES},
		{64, 8, 2, {true, 256, 1}, CORES_NO_DEVICE},
		{64, 1, 1, {false, 0, 0}, CORES_TOO_MANY_DEVICES},
		{64, 1, 1, {false, 0, 32}, CORES_OK},
		{64, 1, 1, {false, 0, 33}, CORES_TOO_MANY_DEVICES},
		{1, 8, 2, {true, UINT32_MAX, UINT32_MAX}, CORES_NO_DEVICE},
		{1, 8, 1, {false, 0, UINT32_MAX - 7}, CORES_TOO_MANY},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct cores_machine m = {
			DEVICE_ARCH_V3, rows[i].devices, rows[i].per_device, rows[i].size};
		struct cores_windows w;

		test_info("row %zu", i);
		CHECK_EQ(cores_choose(&m, &rows[i].request, &w), rows[i].fault);
		CHECK(w.reach <= CORES_MAX);
		if (!rows[i].fault)
			CHECK(w.last + w.count <= w.reach);
	}
}

/* ---- marks -------------------------------------------------------------------------------- */

/* A driver: which requests it knows, and what came last. */
struct driver {
	bool knows_new;
	int unknown; /* what it says of others */
	int rc;
	uint64_t answer[8]; /* bitmap */
	uint32_t free;
	/* what came */
	unsigned calls;
	uint32_t cmd;
	uint32_t first, last, count;
	uint64_t given[8];
};

static int driver_new(struct driver *d, struct neuron_crwl_nc_map_ext *arg)
{
	d->first = arg->start_nc_index;
	d->last = arg->end_nc_index;
	d->count = arg->nc_count;
	memcpy(d->given, arg->bitmap, sizeof(d->given));
	memcpy(arg->bitmap, d->answer, sizeof(d->answer));
	arg->max_nc_available = d->free;
	return d->rc;
}

static int driver_old(struct driver *d, struct neuron_crwl_nc_map *arg)
{
	d->first = arg->start_nc_index;
	d->last = arg->end_nc_index;
	d->count = arg->nc_count;
	memset(d->given, 0, sizeof(d->given));
	d->given[0] = arg->bitmap;
	arg->bitmap = d->answer[0];
	arg->max_nc_available = d->free;
	return d->rc;
}

static int driver_send(void *context, uint32_t cmd, void *arg)
{
	struct driver *d = context;
	bool is_new = cmd == NEURON_IOCTL_CRWL_NC_RANGE_MARK_EXT0 ||
		      cmd == NEURON_IOCTL_CRWL_NC_RANGE_UNMARK_EXT0;

	d->calls++;
	d->cmd = cmd;
	if (is_new && !d->knows_new)
		return d->unknown;
	return is_new ? driver_new(d, arg) : driver_old(d, arg);
}

TEST("marks: a driver without the newer requests gets the older ones", "[cores]")
{
	static const int unknown[] = {-EINVAL, -ENOTTY};

	for (size_t i = 0; i < 2; i++) {
		struct driver d = {.unknown = unknown[i], .answer = {0x3c}, .free = 7};
		struct marks m = {.send = driver_send, .context = &d};
		struct core_map got, want = core_map_range(2, 4);
		uint32_t free = 0;

		CHECK_EQ(marks_take(&m, 4, 2, 5, &got, &free), 0);
		CHECK_EQ(d.calls, 2);
		CHECK_EQ(d.cmd, NEURON_IOCTL_CRWL_NC_RANGE_MARK);
		CHECK_EQ(d.first, 2);
		CHECK_EQ(d.last, 5);
		CHECK_EQ(d.count, 4);
		CHECK_EQ(free, 7);
		CHECK(core_map_equal(&got, &want));
		CHECK_EQ(marks_take(&m, 4, 2, 5, &got, &free), 0);
		CHECK_EQ(d.calls, 3); /* it is remembered */
		CHECK_EQ(marks_give(&m, &got), 0);
		CHECK_EQ(d.cmd, NEURON_IOCTL_CRWL_NC_RANGE_UNMARK);
		CHECK_EQ(d.given[0], 0x3c);
		/* 64 cores are all that it has. */
		CHECK_EQ(marks_take(&m, 2, 63, 64, &got, &free), -EDOM);
		CHECK_EQ(marks_take(&m, 65, 0, 64, &got, &free), -EDOM);
		CHECK_EQ(d.calls, 4);
		d.answer[0] = 3ull << 62;
		CHECK_EQ(marks_take(&m, 2, 62, 200, &got, &free), 0);
		CHECK_EQ(d.last, 63);
		d.rc = -EBUSY;
		CHECK_EQ(marks_take(&m, 2, 0, 1, &got, &free), -EBUSY);
	}
}

TEST("marks: what the newer request says holds, and it is not mistaken for unknown", "[cores]")
{
	struct driver d = {.knows_new = true, .answer = {0, 0, 0, 3ull << 62}, .free = 5};
	struct marks m = {.send = driver_send, .context = &d};
	struct core_map got, want = core_map_range(254, 2);
	uint32_t free = 0;

	CHECK_EQ(marks_take(&m, 2, 254, 255, &got, &free), 0);
	CHECK_EQ(d.calls, 1);
	CHECK(core_map_equal(&got, &want));
	CHECK_EQ(marks_give(&m, &got), 0);
	CHECK_EQ(d.cmd, NEURON_IOCTL_CRWL_NC_RANGE_UNMARK_EXT0);
	CHECK_EQ(d.given[3], 3ull << 62);
	CHECK_EQ(d.given[4], 0);
	d.rc = -EBUSY;
	CHECK_EQ(marks_take(&m, 2, 254, 255, &got, &free), -EBUSY);
	CHECK_EQ(d.calls, 3);
	CHECK_EQ(free, 5);
	/* A range that neither form has. */
	d.rc = -EINVAL;
	CHECK_EQ(marks_take(&m, 2, 0, 1, &got, &free), -EINVAL);
	CHECK(!m.old_form);
}

TEST("marks: a map that is not the window asked for is an error", "[cores]")
{
	static const uint64_t answers[][8] = {
		{0}, {5}, {7}, {1}, {0, 0, 0, 0, 3}, {1ull << 63, 0, 1}};
	struct driver d = {.knows_new = true};
	struct marks m = {.send = driver_send, .context = &d};
	struct core_map got;
	uint32_t free;

	for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
		test_info("answer %zu", i);
		memcpy(d.answer, answers[i], sizeof(d.answer));
		CHECK_EQ(marks_take(&m, 2, 0, 7, &got, &free), -EPROTO);
	}
	memset(d.answer, 0, sizeof(d.answer));
	d.answer[0] = 1ull << 63; /* over the edge of a word */
	d.answer[1] = 1;
	CHECK_EQ(marks_take(&m, 2, 63, 64, &got, &free), 0);
}
