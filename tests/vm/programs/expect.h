/* SPDX-License-Identifier: Apache-2.0 */
/*
 * expect.h - what a tracer must see of the stand-in driver, written down before it happens.
 *
 * One line per event, in the order in which the events of a thread begin; what happens inside a call
 * follows it.  Columns, `-` where an event has none:
 *
 *	kind name device engine queue seq bytes handle tx rx result thread file pid
 *
 * kind is ioctl, file or dma.  Of an ioctl the name is the request's and bytes, engine, queue and handle
 * are decoded arguments (an allocation's handle is the one it gets).  file says which kind of handle the
 * call was made on, query or work.  seq is shared by doorbells and starts of one queue, counted from 1, by
 * asynchronous copies of a device, and by the other whole transfers of a thread.
 *
 * All of it follows from the rules of the stand-in (tests/vm/standin): the h2t queue of core n is engine
 * 128 + n/2, queue n%2; a pair of descriptors moves at most 64 KiB, a doorbell at most 2032 pairs, and
 * a marker follows them; buffers are copied in slices of 64 KiB; zero copy rings per 64 pages.
 * Nothing else may use the devices meanwhile, and recording begins before the program does.
 */
#ifndef NTRACE_VM_EXPECT_H
#define NTRACE_VM_EXPECT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#define EXPECT_DEVICES 16
#define EXPECT_ENGINES 132
#define EXPECT_QUEUES 16
#define EXPECT_SLICE 65536u
#define EXPECT_PAIRS 2032u
#define EXPECT_ZC_PAGES 64u
#define EXPECT_PAGE 4096u
#define NO (-1ll) /* the event has no such value */

struct event {
	const char *kind, *name;
	int64_t device, engine, queue, seq, bytes, handle, tx, rx;
	int64_t result;
	bool has_result;
	const char *file;
};
/* An event with nothing but its name, for `{EVENT(...), .bytes = 1}`. */
#define EVENT(kind_, name_, device_)                                                      \
	.kind = (kind_), .name = (name_), .device = (device_), .engine = NO, .queue = NO, \
	.seq = NO, .bytes = NO, .handle = NO, .tx = NO, .rx = NO

/* One thread of the program. */
struct expect {
	FILE *out; /* NULL: nothing is written */
	const char *thread;
	pid_t pid;
	bool dma;	    /* the device is the stand-in, so there is a DMA path */
	bool is_230;	    /* in the shape of driver 2.30 */
	unsigned transfers; /* begun so far */
};

/* Of all threads: each queue belongs to one of them. */
static unsigned expect_doorbells[EXPECT_DEVICES][EXPECT_ENGINES][EXPECT_QUEUES];
static unsigned expect_asyncs[EXPECT_DEVICES];

static void expect_number(FILE *out, int64_t value)
{
	if (value == NO)
		fprintf(out, " -");
	else
		fprintf(out, " %lld", (long long)value);
}

static void expect(const struct expect *x, const struct event *e)
{
	const int64_t numbers[] = {
		e->device, e->engine, e->queue, e->seq, e->bytes, e->handle, e->tx, e->rx};

	if (!x->out)
		return;
	fprintf(x->out, "%s %s", e->kind, e->name);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		expect_number(x->out, numbers[i]);
	if (e->has_result)
		fprintf(x->out, " %lld", (long long)e->result);
	else
		fprintf(x->out, " -");
	fprintf(x->out, " %s %s %d\n", x->thread, e->file ? e->file : "-", (int)x->pid);
}

/* ---- DMA ---------------------------------------------------------------------------------- */

static void expect_doorbell(struct expect *x, int device, unsigned nc, unsigned pairs, int result)
{
	unsigned engine = 128 + nc / 2, queue = nc % 2;
	struct event e = {EVENT("dma", "doorbell", device)};

	e.engine = engine;
	e.queue = queue;
	e.seq = ++expect_doorbells[device][engine][queue];
	e.tx = e.rx = pairs + 1;
	e.has_result = true;
	e.result = result;
	expect(x, &e);
}

/* A whole transfer of a kind, without its doorbells. */
static void expect_whole(struct expect *x, const char *name, int device, uint64_t bytes, int result)
{
	struct event e = {EVENT("dma", name, device)};

	e.seq = ++x->transfers;
	e.bytes = bytes;
	e.has_result = true;
	e.result = result;
	expect(x, &e);
}

/* A copy that the driver makes and waits for. */
static void expect_transfer(struct expect *x, int device, unsigned nc, uint64_t bytes, int result)
{
	const uint64_t most = (uint64_t)EXPECT_PAIRS * EXPECT_SLICE;

	if (!x->dma)
		return;
	expect_whole(x, "copy", device, bytes, result);
	for (uint64_t done = 0; done < bytes; done += most) {
		uint64_t now = bytes - done < most ? bytes - done : most;

		expect_doorbell(
			x, device, nc, (unsigned)((now + EXPECT_SLICE - 1) / EXPECT_SLICE), result);
		if (result)
			break;
	}
}

/* Between a buffer of the program and device memory. */
static void expect_buffer(struct expect *x, int device, unsigned nc, uint64_t bytes, int result)
{
	for (uint64_t done = 0; done < bytes; done += EXPECT_SLICE) {
		uint64_t now = bytes - done < EXPECT_SLICE ? bytes - done : EXPECT_SLICE;

		expect_transfer(x, device, nc, now, result);
		if (result)
			break;
	}
}

static void expect_memset(struct expect *x, int device, unsigned nc, uint64_t bytes, int result)
{
	if (!x->dma)
		return;
	expect_whole(x, "memset", device, bytes, result);
	expect_transfer(x, device, nc, bytes < EXPECT_SLICE ? bytes : EXPECT_SLICE, result);
	if (!result && bytes > EXPECT_SLICE)
		expect_transfer(x, device, nc, bytes - EXPECT_SLICE, result);
}

/* The buffer begins on a page.  In 2.30 nothing says the whole of it. */
static void expect_zero_copy(struct expect *x, int device, unsigned nc, uint64_t bytes, int result)
{
	uint64_t pages = (bytes + EXPECT_PAGE - 1) / EXPECT_PAGE;
	unsigned doorbells = 0;

	if (!x->is_230)
		expect_whole(x, "zerocopy", device, bytes, result);
	for (uint64_t done = 0; done < pages; done += EXPECT_ZC_PAGES) {
		if (result && doorbells++ == 2)
			break; /* two are open when the first is found to hang */
		expect_doorbell(x, device, nc,
			(unsigned)(pages - done < EXPECT_ZC_PAGES ? pages - done : EXPECT_ZC_PAGES),
			result);
	}
}

/* From its submit to the wait for it. */
static void expect_async(struct expect *x, int device, unsigned nc, uint64_t bytes, int result)
{
	struct event e = {EVENT("dma", "async", device)};

	e.seq = ++expect_asyncs[device];
	e.bytes = bytes;
	e.has_result = true;
	e.result = result;
	expect(x, &e);
	expect_doorbell(
		x, device, nc, (unsigned)((bytes + EXPECT_SLICE - 1) / EXPECT_SLICE), result);
}

/* ---- rings of processes ------------------------------------------------------------------- */

static struct event expect_queue(const char *name, int device, unsigned engine, unsigned queue)
{
	struct event e = {EVENT("dma", name, device)};

	e.engine = engine;
	e.queue = queue;
	e.has_result = true;
	return e;
}

static void expect_queue_init(
	struct expect *x, int device, unsigned engine, unsigned queue, unsigned tx, unsigned rx)
{
	struct event e = expect_queue("queue_init", device, engine, queue);

	e.tx = tx;
	e.rx = rx;
	expect(x, &e);
}

/* The driver sees no end of it. */
static void expect_user_start(
	struct expect *x, int device, unsigned engine, unsigned queue, unsigned tx, unsigned rx)
{
	struct event e = expect_queue("user", device, engine, queue);

	e.seq = ++expect_doorbells[device][engine][queue];
	e.tx = tx;
	e.rx = rx;
	expect(x, &e);
}

static void expect_ack(
	struct expect *x, int device, unsigned engine, unsigned queue, unsigned count, int result)
{
	struct event e = expect_queue("ack", device, engine, queue);

	e.rx = count ? count : NO;
	e.result = result;
	expect(x, &e);
}

static void expect_queue_release(struct expect *x, int device, unsigned engine, unsigned queue)
{
	struct event e = expect_queue("queue_release", device, engine, queue);

	expect(x, &e);
}

#endif
