/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ring_reader.c - the reader's side: another process's control file, mapped read-only.
 *
 * The other process may be broken or hostile.  What it wrote is copied before it is looked at;
 * offsets, capacities and lengths must lie within the file as fstat measures it; rings lie apart from
 * each other; one poll passes at most POLL_POSITIONS positions, whatever the heads say, and the next
 * one begins with another ring.  A poll looks at the writer's counters once, checks them against each
 * other and against what was read, and everything after that uses what it saw.  What is impossible is
 * -EPROTO, for good.  The contents of records are handed on as they are: the caller judges them.
 *
 * Every position that the cursor passes is delivered, or lost by one of three causes.  The reader knows
 * which positions it gave up (abandoned); the writer counts its drops (slot_busy); the rest
 * of the lost ones was overwritten.  A drop leaves no mark in its slot, so the reader, at a slot
 * that still shows an older lap, passes on as soon as the writer's counter shows a drop that is
 * not accounted for; otherwise it waits, for the writer may be between its two steps.
 */
#include "runtime/trace/ring.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define STALL_NS 200000000ull
#define BATCH_RECORDS 512u
#define MAX_CAPACITY (1u << 20)	   /* as the writer's */
#define POLL_POSITIONS (1u << 20)  /* of all rings */
#define MAX_EVENTS (1ull << 48)	   /* a month of one event every 10 ns */
#define MAX_IN_FLIGHT (1ull << 22) /* threads that a kernel can have */
#define MAX_LANES 64u
#define MAX_NAME_BYTES 1024u
#define RECORD_WORDS (sizeof(struct trace_record) / sizeof(uint64_t))

struct ring_view {
	const struct ring_head *head;
	const struct ring_slot *slots;
	uint64_t offset, map_bytes;
	uint32_t nc_idx, lane, capacity;
	uint64_t cursor;			     /* next position to read */
	uint64_t head_seen, busy_seen, emitted_seen; /* the writer's counters at the last poll */
	uint64_t delivered;			     /* records handed out */
	uint64_t filtered;			     /* whole ones that others wanted */
	uint64_t abandoned;			     /* positions given up */
	uint64_t busy_taken; /* drops of the writer that are accounted for */
	uint64_t hold_pos;   /* position that the last poll stopped at */
	uint64_t hold_since; /* when it first did; 0 = it did not */
	uint64_t clear_ns;   /* last time at which nothing was left behind */
};

struct ctl_reader {
	int fd;
	const struct ctl *ctl;
	const uint8_t *names; /* CTL_NAMES_BYTES */
	uint64_t names_read;
	uint64_t names_offset;
	uint64_t no_ring, emitted_no_ring, names_lost; /* as at the last poll */
	uint64_t polled_ns;
	uint64_t who;	    /* its bit in a slot's `wanted` */
	uint32_t next_ring; /* where the next poll begins */
	bool dead;
	int error; /* sticky */
	uint32_t ring_count;
	struct ring_view rings[CTL_MAX_RINGS];
	struct trace_record batch[BATCH_RECORDS];
};

static int file_size(int fd, uint64_t *ret)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	*ret = (uint64_t)st.st_size;
	return 0;
}

static bool page_aligned(uint64_t offset)
{
	return offset % (uint64_t)sysconf(_SC_PAGESIZE) == 0;
}

static const void *map_part(int fd, uint64_t offset, uint64_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, (off_t)offset);

	return p == MAP_FAILED ? NULL : p;
}

/* ---- open and close ----------------------------------------------------------------------- */

static int check_control(struct ctl_reader *r, uint64_t size)
{
	uint64_t names;

	if (r->ctl->magic != CTL_MAGIC || r->ctl->version != CTL_VERSION)
		return -EPROTO;
	names = r->ctl->names_offset;
	if (names < CTL_PAGE_BYTES || !page_aligned(names) || names > size ||
		size - names < CTL_NAMES_BYTES)
		return -EPROTO;
	r->names_offset = names;
	r->names = map_part(r->fd, names, CTL_NAMES_BYTES);
	return r->names ? 0 : -ENOMEM;
}

int ctl_reader_open(int fd, enum ctl_subscriber who, struct ctl_reader **ret_reader)
{
	int seals = fcntl(fd, F_GET_SEALS);
	struct ctl_reader *r;
	uint64_t size;
	int rc;

	if (seals < 0 || !(seals & F_SEAL_SHRINK))
		return -EPROTO;
	rc = file_size(fd, &size);
	if (rc < 0)
		return rc;
	if (size < CTL_PAGE_BYTES)
		return -EPROTO;
	r = calloc(1, sizeof(*r));
	if (!r)
		return -ENOMEM;
	r->fd = fd;
	r->who = CTL_SUB_BIT(who);
	r->ctl = map_part(fd, 0, CTL_PAGE_BYTES);
	rc = r->ctl ? check_control(r, size) : -ENOMEM;
	if (rc < 0) {
		r->fd = -1; /* stays the caller's */
		ctl_reader_close(r);
		return rc;
	}
	*ret_reader = r;
	return 0;
}

void ctl_reader_close(struct ctl_reader *r)
{
	if (!r)
		return;
	for (uint32_t i = 0; i < r->ring_count; i++)
		(void)munmap((void *)(uintptr_t)r->rings[i].head, r->rings[i].map_bytes);
	if (r->names)
		(void)munmap((void *)(uintptr_t)r->names, CTL_NAMES_BYTES);
	if (r->ctl)
		(void)munmap((void *)(uintptr_t)r->ctl, CTL_PAGE_BYTES);
	if (r->fd >= 0)
		(void)close(r->fd);
	free(r);
}

uint32_t ctl_reader_pid(const struct ctl_reader *r)
{
	return r->ctl->pid;
}

/* ---- new rings and names ------------------------------------------------------------------ */

static bool overlap(uint64_t a, uint64_t a_bytes, uint64_t b, uint64_t b_bytes)
{
	return a < b + b_bytes && b < a + a_bytes;
}

/* Is there such a ring, or anything at the place? */
static bool is_taken(
	const struct ctl_reader *r, uint32_t nc, uint32_t lane, uint64_t offset, uint64_t bytes)
{
	for (uint32_t i = 0; i < r->ring_count; i++) {
		const struct ring_view *v = &r->rings[i];

		if ((v->nc_idx == nc && v->lane == lane) ||
			overlap(v->offset, v->map_bytes, offset, bytes))
			return true;
	}
	return overlap(r->names_offset, CTL_NAMES_BYTES, offset, bytes);
}

static int ring_attach(struct ctl_reader *r, const struct ctl_ring *entry, uint64_t offset)
{
	struct ring_view *v = &r->rings[r->ring_count];
	uint32_t capacity = entry->capacity;
	uint32_t nc = entry->nc_idx, lane = entry->lane;
	uint64_t size, bytes;
	int rc = file_size(r->fd, &size);

	if (rc < 0)
		return rc;
	if (capacity < 2 || capacity > MAX_CAPACITY || (capacity & (capacity - 1)) ||
		(nc >= TRACE_MAX_NC && nc != TRACE_NC_UNKNOWN) || lane >= MAX_LANES ||
		(nc == TRACE_NC_UNKNOWN && lane != 0))
		return -EPROTO;
	bytes = ring_bytes(capacity);
	if (!page_aligned(offset) || offset < CTL_PAGE_BYTES || offset > size ||
		size - offset < bytes || is_taken(r, nc, lane, offset, bytes))
		return -EPROTO;
	memset(v, 0, sizeof(*v));
	v->head = map_part(r->fd, offset, bytes);
	if (!v->head)
		return -ENOMEM;
	v->slots = (const struct ring_slot *)(v->head + 1);
	v->offset = offset;
	v->map_bytes = bytes;
	v->nc_idx = nc;
	v->lane = lane;
	v->capacity = capacity;
	r->ring_count++;
	return 0;
}

static int rings_refresh(struct ctl_reader *r)
{
	uint32_t count = atomic_load_explicit(&r->ctl->ring_count, memory_order_acquire);

	if (count > CTL_MAX_RINGS)
		return -EPROTO;
	while (r->ring_count < count) {
		const struct ctl_ring *entry = &r->ctl->rings[r->ring_count];
		uint64_t offset = atomic_load_explicit(&entry->offset, memory_order_acquire);
		int rc;

		if (offset == 0)
			return 0;
		rc = ring_attach(r, entry, offset);
		if (rc < 0)
			return rc;
	}
	return 0;
}

static int names_poll(struct ctl_reader *r, ring_name_fn on_name, void *ctx)
{
	uint64_t used = atomic_load_explicit(&r->ctl->names_used, memory_order_acquire);
	char text[MAX_NAME_BYTES];

	if (used > CTL_NAMES_BYTES || used % 8)
		return -EPROTO;
	while (r->names_read < used) {
		uint64_t left = used - r->names_read;
		struct ctl_name name;
		uint64_t whole;
		int rc;

		if (left < sizeof(name))
			return -EPROTO;
		memcpy(&name, r->names + r->names_read, sizeof(name));
		whole = sizeof(name) + ((uint64_t)name.len + 7) / 8 * 8;
		if (name.len > MAX_NAME_BYTES || whole > left)
			return -EPROTO;
		memcpy(text, r->names + r->names_read + sizeof(name), name.len);
		r->names_read += whole;
		rc = on_name ? on_name(ctx, name.id, text, name.len) : 0;
		if (rc)
			return rc;
	}
	return 0;
}

/* ---- records ------------------------------------------------------------------------------ */

/* Returns who wants it. */
static uint64_t record_load(struct trace_record *to, const struct ring_slot *slot)
{
	const _Atomic uint64_t *from = (const _Atomic uint64_t *)(const void *)&slot->record;
	uint64_t wanted = atomic_load_explicit(&slot->wanted, memory_order_acquire);
	uint64_t words[RECORD_WORDS] = {0};

	for (size_t i = 0; i < RECORD_WORDS; i++)
		words[i] = atomic_load_explicit(&from[i], memory_order_acquire);
	memcpy(to, words, sizeof(words));
	return wanted;
}

/* The slot of the cursor shows an older lap, or a record in the making: may it be passed? */
static bool pass_unwritten(struct ring_view *v, uint64_t stamp, bool dead, uint64_t now_ns)
{
	if (stamp != 2 * v->cursor + 1 && v->busy_seen > v->busy_taken) {
		v->busy_taken++;
		return true;
	}
	if (v->hold_since == 0 || v->hold_pos != v->cursor) {
		v->hold_pos = v->cursor;
		v->hold_since = now_ns;
	}
	if (!dead && now_ns - v->hold_since <= STALL_NS)
		return false;
	v->abandoned++;
	return true;
}

/* Takes the record of the cursor when it is whole.  1 taken, 0 lost or not for us, -1 not there yet. */
static int take_record(
	struct ctl_reader *r, struct ring_view *v, struct trace_record *to, uint64_t now_ns)
{
	const struct ring_slot *slot = &v->slots[v->cursor & (v->capacity - 1)];
	uint64_t want = 2 * v->cursor + 2;
	uint64_t stamp = atomic_load_explicit(&slot->stamp, memory_order_acquire), wanted;

	if (stamp < want)
		return pass_unwritten(v, stamp, r->dead, now_ns) ? 0 : -1;
	if (stamp > want)
		return 0;
	wanted = record_load(to, slot);
	if (atomic_load_explicit(&slot->stamp, memory_order_relaxed) != want)
		return 0;
	if (wanted & r->who)
		return 1;
	v->filtered++;
	return 0;
}

/* Looks at the counters of a ring.  In this order a live writer cannot make the parts larger than the
 * sum.  -EPROTO: no writer leaves such numbers. */
static int ring_look(struct ring_view *v)
{
	uint64_t busy = atomic_load_explicit(&v->head->slot_busy, memory_order_acquire);
	uint64_t head = atomic_load_explicit(&v->head->head, memory_order_acquire);
	uint64_t emitted = atomic_load_explicit(&v->head->emitted, memory_order_acquire);

	if (head < v->head_seen || busy < v->busy_seen || emitted < v->emitted_seen ||
		emitted > MAX_EVENTS || emitted < head || emitted - head > MAX_IN_FLIGHT ||
		busy > head)
		return -EPROTO;
	v->head_seen = head;
	v->busy_seen = busy;
	v->emitted_seen = emitted;
	return 0;
}

/* The same for the counters of the process, and all its rings. */
static int look(struct ctl_reader *r)
{
	uint64_t no_ring = atomic_load_explicit(&r->ctl->no_ring, memory_order_acquire);
	uint64_t emitted = atomic_load_explicit(&r->ctl->emitted_no_ring, memory_order_acquire);
	uint64_t lost = atomic_load_explicit(&r->ctl->names_lost, memory_order_relaxed);
	int rc = 0;

	if (no_ring < r->no_ring || emitted < r->emitted_no_ring || emitted > MAX_EVENTS ||
		emitted < no_ring || emitted - no_ring > MAX_IN_FLIGHT || lost > MAX_EVENTS)
		return -EPROTO;
	r->no_ring = no_ring;
	r->emitted_no_ring = emitted;
	r->names_lost = lost;
	for (uint32_t i = 0; i < r->ring_count && rc == 0; i++)
		rc = ring_look(&r->rings[i]);
	return rc;
}

/* *budget: positions that may still be passed. */
static long ring_poll(struct ctl_reader *r, struct ring_view *v, uint32_t *budget, uint64_t now_ns,
	ring_batch_fn on_batch, void *ctx)
{
	uint64_t busy = v->busy_seen, head = v->head_seen;
	uint32_t filled = 0;
	long delivered = 0;
	bool held = false;
	int rc = 0;

	if (head - v->cursor > v->capacity)
		v->cursor = head - v->capacity;
	while (v->cursor != head && !held && *budget && rc == 0) {
		int took = take_record(r, v, &r->batch[filled], now_ns);

		held = took < 0;
		if (!held) {
			v->cursor++;
			--*budget;
		}
		if (took > 0)
			filled++;
		if (filled && (filled == BATCH_RECORDS || held || v->cursor == head || !*budget)) {
			v->delivered += filled;
			delivered += filled;
			rc = on_batch ? on_batch(ctx, v->nc_idx, v->lane, r->batch, filled) : 0;
			filled = 0;
		}
	}
	if (!held && v->cursor == head) {
		v->hold_since = 0;
		v->clear_ns = now_ns;
		v->busy_taken = busy; /* all drops so far lie behind the cursor */
	}
	/* What was whole was not dropped. */
	if (rc == 0 && busy > head - v->delivered - v->filtered)
		return -EPROTO;
	return rc ? rc : delivered;
}

/* What precedes the records: new rings, counters, names. */
static int prepare(struct ctl_reader *r, ring_name_fn on_name, void *ctx)
{
	int rc = r->error;

	if (rc == 0)
		rc = r->error = rings_refresh(r);
	if (rc == 0)
		rc = r->error = look(r);
	if (rc == 0) {
		rc = names_poll(r, on_name, ctx);
		if (rc == -EPROTO)
			r->error = -EPROTO;
	}
	return rc;
}

long ctl_reader_poll(struct ctl_reader *r, bool dead, uint64_t now_ns, ring_batch_fn on_batch,
	ring_name_fn on_name, void *ctx)
{
	uint32_t budget = POLL_POSITIONS, first = r->next_ring;
	long delivered = 0;
	long rc = prepare(r, on_name, ctx);

	if (rc)
		return rc;
	r->dead = dead;
	for (uint32_t i = 0; i < r->ring_count; i++) {
		uint32_t at = (first + i) % r->ring_count;

		if (budget)
			r->next_ring = (at + 1) % r->ring_count;
		rc = ring_poll(r, &r->rings[at], &budget, now_ns, on_batch, ctx);
		if (rc == -EPROTO)
			r->error = -EPROTO;
		if (rc < 0)
			return rc;
		delivered += rc;
	}
	r->polled_ns = now_ns;
	return delivered;
}

uint64_t ctl_reader_watermark(const struct ctl_reader *r, uint64_t now_ns)
{
	uint64_t mark = now_ns < r->polled_ns ? now_ns : r->polled_ns;

	for (uint32_t i = 0; i < r->ring_count; i++)
		if (r->rings[i].clear_ns < mark)
			mark = r->rings[i].clear_ns;
	return mark;
}

bool ctl_reader_failed(const struct ctl_reader *r)
{
	return r->error != 0;
}

/* ---- counters ----------------------------------------------------------------------------- */

static bool has_unknown_ring(const struct ctl_reader *r)
{
	for (uint32_t i = 0; i < r->ring_count; i++)
		if (r->rings[i].nc_idx == TRACE_NC_UNKNOWN)
			return true;
	return false;
}

uint32_t ctl_reader_rings(const struct ctl_reader *r)
{
	return r->ring_count + (has_unknown_ring(r) ? 0 : 1);
}

/* Takes up to n from *from; returns what it took. */
static uint64_t draw(uint64_t *from, uint64_t n)
{
	uint64_t take = n < *from ? n : *from;

	*from -= take;
	return take;
}

static void ring_counters(const struct ring_view *v, bool dead, struct ring_counters *c)
{
	uint64_t head = v->head_seen, excess;

	c->slot_busy = v->busy_seen;
	c->emitted = v->emitted_seen;
	c->delivered = v->delivered;
	c->filtered = v->filtered;
	c->abandoned = v->abandoned;
	c->overwritten =
		v->cursor - v->delivered - v->filtered - v->abandoned; /* drops still among them */
	c->unread = head - v->cursor;
	/* Drops lie among the passed positions, or ahead of the cursor, or (a writer that woke up
	 * after it had been given up) among the abandoned ones. */
	excess = c->slot_busy - draw(&c->overwritten, c->slot_busy);
	excess -= draw(&c->unread, excess);
	(void)draw(&c->abandoned, excess);
	/* Begun, but no position yet. */
	if (c->emitted > head)
		*(dead ? &c->abandoned : &c->unread) += c->emitted - head;
}

uint64_t ctl_reader_names_lost(const struct ctl_reader *r)
{
	return r->names_lost;
}

void ctl_reader_counters(const struct ctl_reader *r, uint32_t i, uint32_t *ret_nc_idx,
	uint32_t *ret_lane, struct ring_counters *ret)
{
	memset(ret, 0, sizeof(*ret));
	*ret_nc_idx = TRACE_NC_UNKNOWN;
	*ret_lane = 0;
	if (i < r->ring_count) {
		if (r->error)
			ret->emitted = ret->delivered = r->rings[i].delivered;
		else
			ring_counters(&r->rings[i], r->dead, ret);
		*ret_nc_idx = r->rings[i].nc_idx;
		*ret_lane = r->rings[i].lane;
	}
	if (*ret_nc_idx == TRACE_NC_UNKNOWN && !r->error) {
		ret->no_ring = r->no_ring;
		ret->emitted += r->emitted_no_ring;
		*(r->dead ? &ret->abandoned : &ret->unread) += r->emitted_no_ring - r->no_ring;
	}
}
