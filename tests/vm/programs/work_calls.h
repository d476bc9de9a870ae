/* SPDX-License-Identifier: Apache-2.0 */
/*
 * work_calls.h - the calls that work.c makes: each writes down its events, makes the call, and checks its result.
 *
 * A result that is not as written down ends the program.
 */
#ifndef NTRACE_VM_WORK_CALLS_H
#define NTRACE_VM_WORK_CALLS_H

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/vm/programs/expect.h"
#include "vmlinux/ioctl_table.h"
#include "vmlinux/neuron_args.h"

#define KIB(n) ((uint64_t)(n) << 10)
#define MIB(n) ((uint64_t)(n) << 20)
#define PARAMETERS "/sys/module/neuron/parameters/"

struct handle {
	int fd, device;
	bool query;
};

static char handles_used[EXPECT_DEVICES][256]; /* by number */

static void fail(const char *what, int64_t got, int64_t wanted)
{
	fprintf(stderr, "work: %s: got %lld, not %lld\n", what, (long long)got, (long long)wanted);
	exit(1);
}

static void must(const char *what, int64_t got, int64_t wanted)
{
	if (got != wanted)
		fail(what, got, wanted);
}

/* A parameter of the stand-in. */
static void set_parameter(const char *name, const char *value)
{
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), PARAMETERS "%s", name);
	f = fopen(path, "we");
	if (!f || fputs(value, f) < 0 || fclose(f))
		fail(path, -errno, 0);
}

/* ---- files -------------------------------------------------------------------------------- */

static void expect_file(struct expect *x, const char *name, const struct handle *h, int64_t bytes)
{
	struct event e = {EVENT("file", name, h->device)};

	e.bytes = bytes;
	e.has_result = true;
	e.file = h->query ? "query" : "work";
	if (x->dma)
		expect(x, &e);
}

static struct handle open_device(struct expect *x, int device, bool query)
{
	const char *root = getenv("NTRACE_DEVICE_ROOT");
	struct handle h = {.device = device, .query = query};
	char path[4096];

	snprintf(path, sizeof(path), "%s/dev/neuron%d", root ? root : "", device);
	expect_file(x, "open", &h, NO);
	h.fd = open(path, (query ? O_WRONLY : O_RDWR) | O_CLOEXEC);
	if (h.fd < 0)
		fail(path, -errno, 0);
	return h;
}

/* `queues` says whether queues of the process are put aside then. */
static void close_device(struct expect *x, const struct handle *h, void (*queues)(struct expect *))
{
	expect_file(x, "flush", h, NO);
	if (queues)
		queues(x);
	expect_file(x, "release", h, NO);
	must("close", close(h->fd), 0);
	if (!h->query) /* the driver frees what the process left */
		memset(handles_used[h->device], 0, sizeof(handles_used[0]));
}

/* ---- requests ----------------------------------------------------------------------------- */

static struct event request_event(const struct handle *h, const char *name)
{
	struct event e = {EVENT("ioctl", name, h->device)};

	e.file = h->query ? "query" : "work";
	return e;
}

static void expect_request(struct expect *x, struct event e, int64_t result)
{
	e.has_result = true;
	e.result = result;
	expect(x, &e);
}

/* What the kernel returns: -errno, 0 or a positive number. */
static int64_t request(const struct handle *h, uint32_t cmd, void *arg)
{
	int r = ioctl(h->fd, cmd, arg);

	return r == -1 ? -errno : r;
}

/* A request with nothing but a name. */
#define SIMPLE(x, h, name, arg, result)                                    \
	do {                                                               \
		expect_request(x, request_event(h, #name), result);        \
		must(#name, request(h, NEURON_IOCTL_##name, arg), result); \
	} while (0)

/* The lowest number that is free. */
static int64_t next_handle(const struct handle *h)
{
	int64_t n = 1;

	while (handles_used[h->device][n])
		n++;
	return n;
}

struct chunk {
	uint64_t handle, size;
	unsigned nc;
	bool host;
};

static struct chunk allocate(
	struct expect *x, const struct handle *h, uint64_t size, unsigned nc, bool host)
{
	struct chunk c = {.size = size, .nc = nc, .host = host};
	struct neuron_mem_alloc_v2mt a = {
		.size = size,
		.host_memory = host,
		.nc_id = nc,
		.mem_handle = (uintptr_t)&c.handle,
	};
	struct event e = request_event(h, "MEM_ALLOC_V2MT64");

	e.bytes = (int64_t)size;
	e.handle = next_handle(h);
	if (x->dma)
		expect_request(x, e, 0);
	must("MEM_ALLOC_V2MT64", request(h, NEURON_IOCTL_MEM_ALLOC_V2MT64, &a), 0);
	if (!x->dma) {
		e.handle = (int64_t)c.handle; /* a virtual device has its own way */
		expect_request(x, e, 0);
		return c;
	}
	must("handle", (int64_t)c.handle, e.handle);
	handles_used[h->device][c.handle] = 1;
	return c;
}

static void release(struct expect *x, const struct handle *h, const struct chunk *c)
{
	struct neuron_mem_free a = {c->handle};
	struct event e = request_event(h, "MEM_FREE");

	e.handle = (int64_t)c->handle;
	expect_request(x, e, 0);
	must("MEM_FREE", request(h, NEURON_IOCTL_MEM_FREE, &a), 0);
	if (x->dma)
		handles_used[h->device][c->handle] = 0;
}

/* The event of a request on a chunk. */
static struct event chunk_event(
	const struct handle *h, const char *name, const struct chunk *c, uint64_t bytes)
{
	struct event e = request_event(h, name);

	e.handle = (int64_t)c->handle;
	e.bytes = bytes;
	return e;
}

static void buffer_copy(struct expect *x, const struct handle *h, const struct chunk *c,
	void *buffer, uint64_t size, bool to_device, int result)
{
	struct neuron_mem_buf_copy64 a = {
		.mem_handle = c->handle,
		.buffer = (uintptr_t)buffer,
		.size = size,
		.copy_to_mem_handle = to_device,
	};

	expect_request(x, chunk_event(h, "MEM_BUF_COPY64", c, size), result);
	if (!c->host)
		expect_buffer(x, h->device, c->nc, size, result);
	must("MEM_BUF_COPY64", request(h, NEURON_IOCTL_MEM_BUF_COPY64, &a), result);
}

static void copy(struct expect *x, const struct handle *h, const struct chunk *src,
	const struct chunk *dst, uint64_t size, int result)
{
	struct neuron_mem_copy64 a = {
		.src_mem_handle = src->handle, .dst_mem_handle = dst->handle, .size = size};
	unsigned nc = src->host && !dst->host ? dst->nc : src->nc;

	expect_request(x, chunk_event(h, "MEM_COPY64_DEPRECATED", src, size), result);
	expect_transfer(x, h->device, nc, size, result);
	must("MEM_COPY64_DEPRECATED", request(h, NEURON_IOCTL_MEM_COPY64_DEPRECATED, &a), result);
}

static void fill(struct expect *x, const struct handle *h, const struct chunk *c, uint32_t value,
	uint64_t size, int result)
{
	struct neuron_memset64 a = {.mem_handle = c->handle, .value = value, .size = size};

	expect_request(x, chunk_event(h, "MEMSET64", c, size), result);
	expect_memset(x, h->device, c->nc, size, result);
	must("MEMSET64", request(h, NEURON_IOCTL_MEMSET64, &a), result);
}

/* What a copy that the device never makes ends with. */
static int timed_out(const struct expect *x)
{
	return x->is_230 ? -ETIMEDOUT : -1;
}

/* Driver 2.30: with a sequence number the request only begins here. */
static void zero_copy_230(struct expect *x, const struct handle *h, const struct chunk *c,
	void *buffer, uint64_t size, bool to_device, uint64_t sequence, int result)
{
	struct neuron_mem_buf_zerocopy64 a = {
		.mem_handle = c->handle,
		.buffer = (uintptr_t)buffer,
		.size = size,
		.is_copy_to_device = to_device,
		.h2t_qid = -1,
		.sequence_num = sequence,
	};
	struct event e = chunk_event(h, "MEM_BUF_ZEROCOPY64", c, size);

	e.queue = UINT32_MAX; /* the default one */
	expect_request(x, e, sequence ? 0 : result);
	expect_zero_copy(x, h->device, c->nc, size, result);
	must("MEM_BUF_ZEROCOPY64", request(h, NEURON_IOCTL_MEM_BUF_ZEROCOPY64, &a),
		sequence ? 0 : result);
}

static void zero_copy(struct expect *x, const struct handle *h, const struct chunk *c, void *buffer,
	uint64_t size, bool to_device, int result)
{
	struct neuron_mem_buf_copy64 a = {
		.mem_handle = c->handle,
		.buffer = (uintptr_t)buffer,
		.size = size,
		.copy_to_mem_handle = to_device,
	};

	if (x->is_230) {
		zero_copy_230(x, h, c, buffer, size, to_device, 0, result);
		return;
	}
	expect_request(x, chunk_event(h, "MEM_BUF_ZEROCOPY64_V40", c, size), result);
	expect_zero_copy(x, h->device, c->nc, size, result);
	must("MEM_BUF_ZEROCOPY64_V40", request(h, NEURON_IOCTL_MEM_BUF_ZEROCOPY64_V40, &a), result);
}

/* Starts a copy, which ends with `result` when it is waited for; returns its wait handle. */
static uint32_t copy_async(struct expect *x, const struct handle *h, const struct chunk *src,
	const struct chunk *dst, uint64_t size, int earlier, int result)
{
	struct neuron_mem_copy_async64 a = {
		.src_mem_handle = src->handle,
		.dst_mem_handle = dst->handle,
		.size = size,
		.pwait_handle = (uint32_t)earlier,
	};

	expect_request(x, chunk_event(h, "MEM_COPY_ASYNC64", src, size), 0);
	expect_async(x, h->device, src->nc, size, result);
	must("MEM_COPY_ASYNC64", request(h, NEURON_IOCTL_MEM_COPY_ASYNC64, &a), 0);
	return a.wait_handle;
}

static void wait_async(struct expect *x, const struct handle *h, const struct chunk *src,
	const struct chunk *dst, uint32_t wait_handle, int result)
{
	struct neuron_mem_copy_async_wait a = {
		.src_mem_handle = src->handle,
		.dst_mem_handle = dst->handle,
		.pwait_handle = wait_handle,
	};

	expect_request(x, chunk_event(h, "MEM_COPY_ASYNC_WAIT", src, NO), result);
	must("MEM_COPY_ASYNC_WAIT", request(h, NEURON_IOCTL_MEM_COPY_ASYNC_WAIT, &a), result);
}

static uint64_t address_of(struct expect *x, const struct handle *h, const struct chunk *c)
{
	uint64_t pa = 0;
	struct neuron_mem_get_pa a = {.mem_handle = c->handle, .pa = (uintptr_t)&pa};

	expect_request(x, chunk_event(h, "MEM_GET_PA", c, NO), 0);
	must("MEM_GET_PA", request(h, NEURON_IOCTL_MEM_GET_PA, &a), 0);
	return pa;
}

/* ---- contents ----------------------------------------------------------------------------- */

static void *pages(uint64_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (p == MAP_FAILED)
		fail("memory", -errno, 0);
	return p;
}

static void put_pattern(uint8_t *at, uint64_t size, unsigned seed)
{
	for (uint64_t i = 0; i < size; i++)
		at[i] = (uint8_t)(i * 31 + (i >> 12) + seed);
}

static void same(const char *what, const void *got, const void *wanted, uint64_t size)
{
	must(what, memcmp(got, wanted, size), 0);
}

#endif
