/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nrt_tensor_test.c - tensors on a virtual device: slices, the program's memory, copies, fillings, batches;
 * and what the calls say to bad arguments.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tests/shim/shim.h"
#include "tests/unit/nrt_lib.h"

#define DEVICE NRT_TENSOR_PLACEMENT_DEVICE
#define HOST NRT_TENSOR_PLACEMENT_HOST
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

#define DEVICE_TEST(name, fn, options)        \
	TEST(name, "[nrt][tensor][vdev]")     \
	{                                     \
		if (device_lacks())           \
			SKIP(device_lacks()); \
		with_device(fn, options);     \
	}

static int begin(const struct place *p)
{
	WANT(enter(p) == 0);
	WANT_STATUS(init(), 0);
	return 0;
}

static void pattern(uint8_t *bytes, size_t size, unsigned seed)
{
	for (size_t i = 0; i < size; i++)
		bytes[i] = (uint8_t)((i * 167 + (i >> 8) * 13 + seed) & 0xff);
}

static long long stat_of(const struct place *p, const char *name)
{
	return virtual_device_stat(&p->device, name);
}

/* ---- bad arguments ------------------------------------------------------------------------ */

/* Every call with this in the place of a tensor. */
static int refused(nrt_tensor_t *bad, nrt_tensor_t *good, NRT_STATUS status)
{
	char buffer[8] = "";
	const nrt_tensor_batch_op_t op = {0, 1, buffer};
	const nrt_tensor_batch_t batches[] = {{good, &op, 1}, {bad, &op, 1}};
	nrt_tensor_device_allocation_info_t info;
	nrt_tensor_t *made = good;

	WANT_STATUS(lib.nrt_tensor_allocate_slice(bad, 0, 1, "s", &made), status);
	WANT_STATUS(lib.nrt_tensor_attach_buffer(bad, buffer, 8), status);
	WANT_STATUS(lib.nrt_tensor_read(bad, buffer, 0, 1), status);
	WANT_STATUS(lib.nrt_tensor_write(bad, buffer, 0, 1), status);
	WANT_STATUS(lib.nrt_tensor_read_batch(batches, 2, false), status);
	WANT_STATUS(lib.nrt_tensor_write_batch(batches, 2, true), status);
	WANT_STATUS(lib.nrt_tensor_copy(bad, 0, good, 0, 1), status);
	WANT_STATUS(lib.nrt_tensor_copy(good, 0, bad, 0, 1), status);
	WANT_STATUS(lib.nrt_tensor_memset(bad, 0, 1, 1), status);
	WANT_STATUS(lib.nrt_tensor_check_output_completion(bad, 0, 0), status);
	WANT_STATUS(lib.nrt_tensor_reset_output_completion(bad), status);
	WANT_STATUS(lib.nrt_tensor_get_device_allocation_info(bad, &info), status);
	WANT(lib.nrt_tensor_get_size(bad) == 0 && lib.nrt_tensor_get_va(bad) == NULL);
	WANT(made == good);
	lib.nrt_tensor_free(&bad);
	WANT(bad == NULL);
	return 0;
}

static int bad_handles(void *arg)
{
	nrt_tensor_t *good, *gone, *copy;
	nrt_tensor_set_t *set;
	char on_stack[64] = "";

	WANT(begin(arg) == 0);
	WANT_STATUS(lib.nrt_tensor_allocate(DEVICE, 0, 8, "good", &good), 0);
	WANT_STATUS(lib.nrt_tensor_allocate(DEVICE, 0, 8, "gone", &gone), 0);
	WANT_STATUS(lib.nrt_allocate_tensor_set(&set), 0);
	copy = gone;
	lib.nrt_tensor_free(&gone);
	WANT(refused(NULL, good, NRT_INVALID) == 0);
	WANT(refused(copy, good, NRT_INVALID_HANDLE) == 0);
	WANT(refused((nrt_tensor_t *)set, good, NRT_INVALID_HANDLE) == 0);
	WANT(refused((nrt_tensor_t *)on_stack, good, NRT_INVALID_HANDLE) == 0);
	WANT(refused((nrt_tensor_t *)(uintptr_t)1, good, NRT_INVALID_HANDLE) == 0);
	WANT(refused((nrt_tensor_t *)UINTPTR_MAX, good, NRT_INVALID_HANDLE) == 0);
	WANT_STATUS(lib.nrt_tensor_allocate_empty("e", NULL), NRT_INVALID);
	WANT_STATUS(lib.nrt_tensor_allocate_slice(good, 0, 1, "s", NULL), NRT_INVALID);
	WANT_STATUS(lib.nrt_tensor_attach_buffer(good, NULL, 8), NRT_INVALID);
	WANT_STATUS(lib.nrt_tensor_attach_buffer(good, on_stack, 0), NRT_INVALID);
	WANT(lib.nrt_tensor_get_size(good) == 8 && stat_of(arg, "allocations") == 1);
	return 0;
}

DEVICE_TEST("tensor: what is no tensor any more, or never was, is refused by every call",
	bad_handles, two_cores)

/* Handles of all kinds are freed, and twice as many of that kind made afterwards. */
static int freed_handles(void *arg)
{
	enum { FREED = 64, MADE = 128 };
	nrt_tensor_t *tensors[FREED], *made = NULL, *copy;
	nrt_tensor_set_t *sets[FREED], *made_set = NULL, *set;
	nrt_model_t *models[FREED], *made_model = NULL;
	uint32_t count;

	WANT(begin(arg) == 0);
	for (int i = 0; i < FREED; i++) {
		WANT_STATUS(lib.nrt_tensor_allocate(DEVICE, 0, 8, "old", &tensors[i]), 0);
		WANT_STATUS(lib.nrt_allocate_tensor_set(&sets[i]), 0);
		WANT_STATUS(lib.nrt_load(COPY_MODEL, strlen(COPY_MODEL), 0, -1, &models[i]), 0);
	}
	for (int i = 0; i < FREED; i++) {
		copy = tensors[i];
		set = sets[i];
		lib.nrt_tensor_free(&copy);
		lib.nrt_destroy_tensor_set(&set);
		WANT_STATUS(lib.nrt_unload(models[i]), 0);
	}
	for (int i = 0; i < MADE; i++) {
		WANT_STATUS(lib.nrt_tensor_allocate(DEVICE, 0, 8, "new", &made), 0);
		WANT_STATUS(lib.nrt_allocate_tensor_set(&made_set), 0);
		WANT_STATUS(lib.nrt_load(COPY_MODEL, strlen(COPY_MODEL), 0, -1, &made_model), 0);
	}
	WANT_STATUS(lib.nrt_add_tensor_to_tensor_set(made_set, "new", made), 0);
	WANT_STATUS(lib.nrt_get_tensor_from_tensor_set(made_set, "new", &copy), 0);
	WANT(copy == made);
	for (int i = 0; i < FREED; i++) {
		WANT_STATUS(lib.nrt_tensor_write(tensors[i], "abc", 0, 3), NRT_INVALID_HANDLE);
		WANT_STATUS(
			lib.nrt_add_tensor_to_tensor_set(sets[i], "new", made), NRT_INVALID_HANDLE);
		WANT_STATUS(lib.nrt_get_model_nc_count(models[i], &count), NRT_INVALID_HANDLE);
	}
	return 0;
}

DEVICE_TEST("tensor: a handle that was freed is refused also when new ones have been made",
	freed_handles, two_cores)

/* Every call with a range of a tensor of 100 bytes. */
static int out_of_range(nrt_tensor_t *t, nrt_tensor_t *other, uint64_t offset, uint64_t size)
{
	static char buffer[200];
	const nrt_tensor_batch_op_t ops[] = {{0, 1, buffer}, {offset, size, buffer}};
	const nrt_tensor_batch_t batch = {t, ops, 2};
	nrt_tensor_t *slice;

	WANT_STATUS(lib.nrt_tensor_allocate_slice(t, offset, size, "s", &slice), NRT_INVALID);
	WANT_STATUS(lib.nrt_tensor_read(t, buffer, offset, size), NRT_INVALID);
	WANT_STATUS(lib.nrt_tensor_write(t, buffer, offset, size), NRT_INVALID);
	WANT_STATUS(lib.nrt_tensor_read_batch(&batch, 1, false), NRT_INVALID);
	WANT_STATUS(lib.nrt_tensor_write_batch(&batch, 1, false), NRT_INVALID);
	WANT_STATUS(lib.nrt_tensor_copy(t, offset, other, 0, size), NRT_INVALID);
	WANT_STATUS(lib.nrt_tensor_copy(other, 0, t, offset, size), NRT_INVALID);
	WANT_STATUS(lib.nrt_tensor_memset(t, offset, 7, size), NRT_INVALID);
	return 0;
}

static int ranges(void *arg)
{
	static const uint64_t bad[][2] = {{0, 101}, {100, 1}, {101, 0}, {1, 100}, {UINT64_MAX, 1},
		{1, UINT64_MAX}, {UINT64_MAX, UINT64_MAX}, {50, UINT64_MAX - 49}, {1ull << 63, 2}};
	static const nrt_tensor_placement_t places[] = {DEVICE, HOST};

	WANT(begin(arg) == 0);
	for (size_t k = 0; k < COUNT(places); k++) {
		nrt_tensor_t *whole, *t, *other;
		uint8_t bytes[300], seen[300];

		/* A slice: what is outside of it is inside of somebody else's bytes. */
		WANT_STATUS(lib.nrt_tensor_allocate(places[k], 0, 300, "whole", &whole), 0);
		WANT_STATUS(lib.nrt_tensor_allocate(places[k], 0, 300, "other", &other), 0);
		WANT_STATUS(lib.nrt_tensor_allocate_slice(whole, 100, 100, "t", &t), 0);
		pattern(bytes, sizeof(bytes), 1);
		WANT_STATUS(lib.nrt_tensor_write(whole, bytes, 0, 300), 0);
		for (size_t i = 0; i < COUNT(bad); i++)
			WANT(out_of_range(t, other, bad[i][0], bad[i][1]) == 0);
		WANT_STATUS(lib.nrt_tensor_read(whole, seen, 0, 300), 0);
		WANT(memcmp(bytes, seen, 300) == 0); /* nothing moved, of no batch either */
		WANT_STATUS(lib.nrt_tensor_write(t, bytes, 100, 0), 0);
		WANT_STATUS(lib.nrt_tensor_memset(t, 100, 1, 0), 0);
		WANT_STATUS(lib.nrt_tensor_copy(t, 100, other, 300, 0), 0);
		WANT_STATUS(lib.nrt_tensor_read(t, NULL, 0, 1), NRT_INVALID);
		WANT_STATUS(lib.nrt_tensor_write(t, NULL, 0, 1), NRT_INVALID);
	}
	return 0;
}

DEVICE_TEST("tensor: ranges outside are refused, also where their end overflows, and nothing moves",
	ranges, two_cores)

/* ---- slices ------------------------------------------------------------------------------- */

static int slices(void *arg)
{
	static const nrt_tensor_placement_t places[] = {DEVICE, HOST};
	struct place *p = arg;

	WANT(begin(p) == 0);
	for (size_t k = 0; k < COUNT(places); k++) {
		nrt_tensor_t *whole, *half, *part;
		uint8_t bytes[1000], seen[1000];

		pattern(bytes, sizeof(bytes), 5);
		WANT_STATUS(lib.nrt_tensor_allocate(places[k], 1, 1000, "whole", &whole), 0);
		WANT_STATUS(lib.nrt_tensor_allocate_slice(whole, 500, 500, "half", &half), 0);
		WANT_STATUS(lib.nrt_tensor_allocate_slice(half, 499, 1, NULL, &part), 0);
		WANT(stat_of(p, "allocations") == (k == 0));
		WANT(lib.nrt_tensor_get_size(half) == 500 && lib.nrt_tensor_get_size(part) == 1);
		WANT_STATUS(lib.nrt_tensor_write(whole, bytes, 0, 1000), 0);
		WANT_STATUS(lib.nrt_tensor_read(part, seen, 0, 1), 0);
		WANT(seen[0] == bytes[999]);
		WANT_STATUS(lib.nrt_tensor_write(part, "\x42", 0, 1), 0);
		if (places[k] == HOST)
			WANT((char *)lib.nrt_tensor_get_va(part) ==
				(char *)lib.nrt_tensor_get_va(whole) + 999);
		lib.nrt_tensor_free(&whole);
		WANT_STATUS(lib.nrt_tensor_read(half, seen, 0, 500), 0);
		WANT(memcmp(seen, bytes + 500, 499) == 0 && seen[499] == 0x42);
		lib.nrt_tensor_free(&half);
		WANT(stat_of(p, "allocations") == (k == 0)); /* the last slice has it */
		WANT_STATUS(lib.nrt_tensor_read(part, seen, 0, 1), 0);
		WANT(seen[0] == 0x42);
		lib.nrt_tensor_free(&part);
		WANT(stat_of(p, "allocations") == 0);
	}
	return 0;
}

DEVICE_TEST("tensor: slices of slices share bytes and keep the memory alive", slices, two_cores)

static int slice_address(void *arg)
{
	nrt_tensor_device_allocation_info_t whole_info, info;
	nrt_tensor_t *whole, *slice;

	WANT(begin(arg) == 0);
	WANT_STATUS(lib.nrt_tensor_allocate(DEVICE, 1, 1000, "whole", &whole), 0);
	WANT_STATUS(lib.nrt_tensor_allocate_slice(whole, 300, 200, "slice", &slice), 0);
	WANT_STATUS(lib.nrt_tensor_get_device_allocation_info(whole, &whole_info), 0);
	WANT_STATUS(lib.nrt_tensor_get_device_allocation_info(slice, &info), 0);
	WANT(info.physical_address == whole_info.physical_address + 300 && info.size == 200);
	WANT(info.hbm_index == whole_info.hbm_index);
	WANT(lib.nrt_tensor_get_va(slice) == NULL);
	return 0;
}

DEVICE_TEST("tensor: a slice says where in device memory it begins", slice_address, two_cores)

/* Inputs and the output of a model lie in one allocation, neither at its beginning. */
static int executed_slices(void *arg)
{
	nrt_tensor_t *arena, *a, *b, *c;
	float in[8], out[8];
	struct job j;

	WANT(begin(arg) == 0);
	WANT(job_open(&j, ADD_MODEL, 0) == 0);
	WANT_STATUS(lib.nrt_tensor_allocate(DEVICE, 0, 4096, "arena", &arena), 0);
	WANT_STATUS(lib.nrt_tensor_allocate_slice(arena, 64, 32, "a", &a), 0);
	WANT_STATUS(lib.nrt_tensor_allocate_slice(arena, 96, 32, "b", &b), 0);
	WANT_STATUS(lib.nrt_tensor_allocate_slice(arena, 1024, 32, "c", &c), 0);
	WANT_STATUS(lib.nrt_add_tensor_to_tensor_set(j.in, "a", a), 0);
	WANT_STATUS(lib.nrt_add_tensor_to_tensor_set(j.in, "b", b), 0);
	WANT_STATUS(lib.nrt_add_tensor_to_tensor_set(j.out, "c", c), 0);
	lib.nrt_tensor_free(&arena);
	for (int i = 0; i < 8; i++)
		in[i] = (float)i;
	WANT_STATUS(lib.nrt_tensor_write(a, in, 0, 32), 0);
	WANT_STATUS(lib.nrt_tensor_write(b, in, 0, 32), 0);
	lib.nrt_tensor_free(&a); /* the set has them */
	lib.nrt_tensor_free(&b);
	WANT_STATUS(lib.nrt_execute(j.model, j.in, j.out), 0);
	WANT_STATUS(lib.nrt_tensor_read(c, out, 0, 32), 0);
	for (int i = 0; i < 8; i++)
		WANT(out[i] == 3.0f * (float)i);
	return 0;
}

DEVICE_TEST("tensor: slices are inputs and outputs of executions", executed_slices, two_cores)

/* ---- the program's memory ----------------------------------------------------------------- */

static int attached(void *arg)
{
	char buffer[100] = "", other[50] = "the other", seen[50];
	nrt_tensor_device_allocation_info_t info;
	nrt_tensor_t *t, *slice, *d;
	struct place *p = arg;

	WANT(begin(p) == 0);
	WANT_STATUS(lib.nrt_tensor_allocate_empty("mine", &t), 0);
	WANT(lib.nrt_tensor_get_size(t) == 0 && !lib.nrt_tensor_get_va(t));
	WANT_STATUS(lib.nrt_tensor_read(t, seen, 0, 1), NRT_INVALID);
	WANT_STATUS(lib.nrt_tensor_get_device_allocation_info(t, &info), NRT_INVALID);
	WANT_STATUS(lib.nrt_tensor_attach_buffer(t, buffer, 100), 0);
	WANT(lib.nrt_tensor_get_size(t) == 100 && lib.nrt_tensor_get_va(t) == buffer);
	WANT_STATUS(lib.nrt_tensor_write(t, "hello", 10, 6), 0);
	WANT(!strcmp(buffer + 10, "hello"));
	WANT_STATUS(lib.nrt_tensor_allocate_slice(t, 10, 20, "s", &slice), 0);
	WANT_STATUS(lib.nrt_tensor_attach_buffer(t, other, 50), 0);
	WANT_STATUS(lib.nrt_tensor_read(t, seen, 0, 10), 0);
	WANT(!strcmp(seen, "the other"));
	WANT_STATUS(lib.nrt_tensor_read(slice, seen, 0, 6), 0);
	WANT(!strcmp(seen, "hello")); /* what it was made of */

	WANT_STATUS(lib.nrt_tensor_allocate(DEVICE, 0, 4096, "d", &d), 0);
	WANT(stat_of(p, "allocations") == 1);
	WANT_STATUS(lib.nrt_tensor_attach_buffer(d, buffer, 100), 0);
	WANT(stat_of(p, "allocations") == 0 && lib.nrt_tensor_get_va(d) == buffer);
	lib.nrt_tensor_free(&d);
	lib.nrt_tensor_free(&slice);
	lib.nrt_tensor_free(&t);
	WANT(!strcmp(buffer + 10, "hello") && !strcmp(other, "the other"));
	return 0;
}

DEVICE_TEST("tensor: the program's memory takes the place of the tensor's own", attached, two_cores)

/* ---- copies ------------------------------------------------------------------------------- */

static int copy_one(nrt_tensor_placement_t from, nrt_tensor_placement_t to, size_t size)
{
	uint8_t *bytes = malloc(size), *seen = malloc(size + 6);
	nrt_tensor_t *src, *dst;

	WANT(bytes && seen);
	pattern(bytes, size, (unsigned)size);
	WANT_STATUS(lib.nrt_tensor_allocate(from, 1, size + 3, "src", &src), 0);
	WANT_STATUS(lib.nrt_tensor_allocate(to, 1, size + 6, "dst", &dst), 0);
	WANT_STATUS(lib.nrt_tensor_memset(dst, 0, 0xee, size + 6), 0);
	WANT_STATUS(lib.nrt_tensor_write(src, bytes, 3, size), 0);
	WANT_STATUS(lib.nrt_tensor_copy(src, 3, dst, 5, size), 0);
	WANT_STATUS(lib.nrt_tensor_read(dst, seen, 0, size + 6), 0);
	for (int i = 0; i < 5; i++)
		WANT(seen[i] == 0xee);
	WANT(memcmp(seen + 5, bytes, size) == 0 && seen[size + 5] == 0xee);
	WANT_STATUS(lib.nrt_tensor_memset(dst, 5, 0x1234, size), 0); /* the low byte */
	WANT_STATUS(lib.nrt_tensor_read(dst, seen, 0, size + 6), 0);
	for (size_t i = 0; i < size; i++)
		WANT(seen[i + 5] == 0x34);
	WANT(seen[4] == 0xee && seen[size + 5] == 0xee);
	lib.nrt_tensor_free(&src);
	lib.nrt_tensor_free(&dst);
	free(bytes);
	free(seen);
	return 0;
}

static int copies(void *arg)
{
	static const size_t sizes[] = {1, 7, 4095, 4097, 65535, 65536, 65537, 1000003};

	WANT(begin(arg) == 0);
	for (size_t i = 0; i < COUNT(sizes); i++) {
		WANT(copy_one(HOST, HOST, sizes[i]) == 0);
		WANT(copy_one(HOST, DEVICE, sizes[i]) == 0);
		WANT(copy_one(DEVICE, HOST, sizes[i]) == 0);
		WANT(copy_one(DEVICE, DEVICE, sizes[i]) == 0);
	}
	WANT(stat_of(arg, "ioctl.MEM_COPY64") == COUNT(sizes));
	return 0;
}

DEVICE_TEST(
	"tensor: copies and fillings between host and device, of every size, touch nothing else",
	copies, two_cores)

static int overlapping(void *arg)
{
	static const nrt_tensor_placement_t places[] = {DEVICE, HOST};
	enum { SIZE = 70000, MOVED = 66000 };
	static uint8_t bytes[SIZE], seen[SIZE];

	WANT(begin(arg) == 0);
	for (size_t k = 0; k < COUNT(places); k++)
		for (int up = 0; up < 2; up++) {
			nrt_tensor_t *whole, *low, *high;

			WANT_STATUS(lib.nrt_tensor_allocate(places[k], 0, SIZE, "w", &whole), 0);
			WANT_STATUS(lib.nrt_tensor_allocate_slice(whole, 10, MOVED, "l", &low), 0);
			WANT_STATUS(
				lib.nrt_tensor_allocate_slice(whole, 2000, MOVED, "h", &high), 0);
			pattern(bytes, SIZE, 9);
			WANT_STATUS(lib.nrt_tensor_write(whole, bytes, 0, SIZE), 0);
			WANT_STATUS(
				lib.nrt_tensor_copy(up ? low : high, 0, up ? high : low, 0, MOVED),
				0);
			memmove(bytes + (up ? 2000 : 10), bytes + (up ? 10 : 2000), MOVED);
			WANT_STATUS(lib.nrt_tensor_read(whole, seen, 0, SIZE), 0);
			WANT(memcmp(bytes, seen, SIZE) == 0);
			lib.nrt_tensor_free(&whole);
			lib.nrt_tensor_free(&low);
			lib.nrt_tensor_free(&high);
		}
	return 0;
}

DEVICE_TEST("tensor: overlapping ranges are copied as if there were two of them", overlapping,
	two_cores)

static int cores(void *arg)
{
	nrt_tensor_t *here, *there, *host;
	struct place *p = arg;

	WANT(begin(p) == 0);
	WANT_STATUS(lib.nrt_tensor_allocate(DEVICE, 0, 8, "here", &here), 0);
	WANT_STATUS(lib.nrt_tensor_allocate(DEVICE, 1, 8, "there", &there), 0);
	WANT_STATUS(lib.nrt_tensor_allocate(HOST, 1, 8, "host", &host), 0);
	WANT_STATUS(lib.nrt_tensor_copy(here, 0, there, 0, 8), NRT_INVALID);
	WANT(said(p, "Cannot copy from a device tensor of nc 0 to one of nc 1"));
	WANT_STATUS(lib.nrt_tensor_copy(here, 0, host, 0, 8), 0);
	WANT_STATUS(lib.nrt_tensor_copy(host, 0, there, 0, 8), 0);
	return 0;
}

DEVICE_TEST("tensor: device tensors of two cores are not copied into each other", cores, two_cores)

/* A sanitizer looks at each byte: there less has to do. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define LARGE (1ull << 24)
#else
#define LARGE (1ull << 30)
#endif

/* Pieces of a GiB at either end, and around the middle. */
static int gigabyte(void *arg)
{
	const size_t size = LARGE + 8192;
	nrt_tensor_t *whole, *low, *high;
	char seen[8] = "";

	WANT(begin(arg) == 0);
	WANT_STATUS(lib.nrt_tensor_allocate(DEVICE, 0, size, "whole", &whole), 0);
	WANT_STATUS(lib.nrt_tensor_allocate_slice(whole, 0, size - 4096, "low", &low), 0);
	WANT_STATUS(lib.nrt_tensor_allocate_slice(whole, 4096, size - 4096, "high", &high), 0);
	WANT_STATUS(lib.nrt_tensor_memset(whole, 0, 'm', size), 0);
	WANT_STATUS(lib.nrt_tensor_write(whole, "begin", 0, 5), 0);
	WANT_STATUS(lib.nrt_tensor_write(whole, "middle", LARGE - 3, 6), 0);
	WANT_STATUS(lib.nrt_tensor_copy(low, 0, high, 0, size - 4096), 0);
	WANT_STATUS(lib.nrt_tensor_read(high, seen, 0, 6), 0);
	WANT(!memcmp(seen, "beginm", 6));
	WANT_STATUS(lib.nrt_tensor_read(high, seen, LARGE - 3, 6), 0);
	WANT(!memcmp(seen, "middle", 6));
	WANT_STATUS(lib.nrt_tensor_read(whole, seen, size - 1, 1), 0);
	WANT(seen[0] == 'm');
	return 0;
}

static const char *const large_memory[] = {"--cores=4", "--memory=3G", NULL};

TEST("tensor: 1 GiB is filled, and moved within itself, in pieces", "[nrt][tensor][vdev]")
{
	if (device_lacks())
		SKIP(device_lacks());
	with_device(gigabyte, large_memory);
}

/* ---- batches ------------------------------------------------------------------------------ */

static int batches(void *arg)
{
	static uint8_t bytes[5][1000], seen[5][1000];
	nrt_tensor_batch_op_t ops[5], back[5];
	nrt_tensor_t *a, *b, *c;
	struct place *p = arg;

	WANT(begin(p) == 0);
	WANT_STATUS(lib.nrt_tensor_allocate(DEVICE, 0, 3000, "a", &a), 0);
	WANT_STATUS(lib.nrt_tensor_allocate(DEVICE, 1, 3000, "b", &b), 0);
	WANT_STATUS(lib.nrt_tensor_allocate(HOST, 0, 3000, "c", &c), 0);
	for (unsigned i = 0; i < 5; i++) {
		pattern(bytes[i], 1000, i);
		ops[i] = (nrt_tensor_batch_op_t){i % 3 * 1000, i == 4 ? 0 : 1000, bytes[i]};
		back[i] = (nrt_tensor_batch_op_t){i % 3 * 1000, i == 4 ? 0 : 1000, seen[i]};
	}
	{
		const nrt_tensor_batch_t in[] = {
			{a, ops, 2}, {b, &ops[2], 1}, {a, NULL, 0}, {c, &ops[3], 2}};
		const nrt_tensor_batch_t out[] = {{c, &back[3], 2}, {b, &back[2], 1}, {a, back, 2}};

		WANT_STATUS(lib.nrt_tensor_write_batch(in, 4, false), 0);
		WANT_STATUS(lib.nrt_tensor_read_batch(out, 3, true), 0);
		WANT(memcmp(bytes, seen, 4000) == 0);
		WANT_STATUS(lib.nrt_tensor_write_batch(NULL, 0, false), 0);
		WANT_STATUS(lib.nrt_tensor_read_batch(NULL, 1, false), NRT_INVALID);
		WANT(said(p, "No batches given"));
	}
	return 0;
}

DEVICE_TEST("tensor: a batch writes and reads many places of many tensors", batches, two_cores)

/* The last of many transfers is wrong. */
static int whole_or_not(void *arg)
{
	char new[4] = "new", old[4] = "old", seen[4] = "";
	const nrt_tensor_batch_op_t good = {0, 4, new}, late = {97, 4, new}, none = {0, 4, NULL};
	nrt_tensor_t *a, *b;
	struct place *p = arg;

	WANT(begin(p) == 0);
	WANT_STATUS(lib.nrt_tensor_allocate(DEVICE, 0, 100, "a", &a), 0);
	WANT_STATUS(lib.nrt_tensor_allocate(HOST, 0, 100, "b", &b), 0);
	WANT_STATUS(lib.nrt_tensor_write(a, old, 0, 4), 0);
	{
		const nrt_tensor_batch_t wrong[][2] = {{{a, &good, 1}, {b, &late, 1}},
			{{a, &good, 1}, {b, &none, 1}}, {{a, &good, 1}, {b, NULL, 1}}};
		static const char *const says[] = {"Bad transfer of 4 bytes at 97: tensor 'b'",
			"Batch 1 of 2: no buffer given", "Batch 1 of 2: no transfers given"};

		for (size_t i = 0; i < COUNT(wrong); i++) {
			WANT_STATUS(lib.nrt_tensor_write_batch(wrong[i], 2, true), NRT_INVALID);
			WANT(said(p, says[i]));
		}
	}
	WANT_STATUS(lib.nrt_tensor_read(a, seen, 0, 4), 0);
	WANT(!strcmp(seen, "old"));
	return 0;
}

DEVICE_TEST("tensor: a batch with one bad transfer moves nothing", whole_or_not, two_cores)
