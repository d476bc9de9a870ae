/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ring_reader.c - the reader's side: another process's control file, mapped read-only.
 *
 * The other process may be broken or hostile (ring_map.c checks where things lie).  One poll passes at most
 * POLL_POSITIONS positions, whatever the heads say, and the next one begins with another ring.  A poll looks at
 * the writer's counters once, checks them against each other and against what was read, and everything after
 * that uses what it saw.  What is impossible is -EPROTO, for good.  The contents of records are handed on as
 * they are: the caller judges them.
 *
 * Every position that the cursor passes is delivered, or lost by one of three causes.  The reader knows
 * which positions it gave up (abandoned); the writer counts its drops (slot_busy); the rest
 * of the lost ones was overwritten.  A drop leaves no mark in its slot, so the reader, at a slot
 * that still shows an older lap, passes on as soon as the writer's counter shows a drop that is
 * not accounted for; otherwise it waits, for the writer may be between its two steps.
 */
#include "runtime/trace/ring_reader_parts.h"

#include <errno.h>
#include <string.h>

#define STALL_NS 200000000ull
#define POLL_POSITIONS (1u << 20)  /* of all rings */
#define GIVE_BACK 4096u		   /* positions, half a megabyte */
#define MAX_EVENTS (1ull << 48)	   /* a month of one event every 10 ns */
#define MAX_IN_FLIGHT (1ull << 22) /* threads that a kernel can have */
#define MAX_NAME_BYTES 1024u
#define RECORD_WORDS (sizeof(struct trace_record) / sizeof(uint64_t))

uint32_t ctl_reader_pid(const struct ctl_reader *r)
{
	return r->ctl->pid;
}

int ctl_reader_fd(const struct ctl_reader *r)
{
	return r->file.fd;
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
		rc = on_name ? on_name(ctx, name.id, text, name.len) : 0;
		if (rc < 0)
			return rc;
		r->names_read += whole;
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

static const struct ring_slot *slot_at_cursor(struct ring_view *v)
{
	uint64_t index, first;
	uint32_t segment;

	while (v->epoch + 1 < v->epochs && v->cursor >= v->start[v->epoch + 1])
		v->epoch++;
	index = v->cursor & (((uint64_t)v->capacity << v->epoch) - 1);
	segment = ring_segment_of(index, v->capacity, &first);
	return &v->slots[segment][index - first];
}

/* Takes the record of the cursor when it is whole.  1 taken, 0 lost or not for us, -1 not there yet. */
static int take_record(
	struct ctl_reader *r, struct ring_view *v, struct trace_record *to, uint64_t now_ns)
{
	const struct ring_slot *slot = slot_at_cursor(v);
	uint64_t want = 2 * v->cursor + 2;
	uint64_t stamp = atomic_load_explicit(&slot->stamp, memory_order_acquire), wanted;

	if (stamp < want)
		return pass_unwritten(v, stamp, r->dead, now_ns) ? 0 : -1;
	if (stamp > want)
		return 0;
	wanted = record_load(to, slot);
	if (atomic_load_explicit(&slot->stamp, memory_order_relaxed) != want)
		return 0;
	if ((wanted & CTL_SUB_BIT(r->who)) && wanted >> RING_WANTED_SHIFT >= r->since)
		return 1;
	v->filtered++;
	return 0;
}

/* Looks at the counters of a ring.  In this order a live writer cannot make the parts larger than the
 * sum.  -EPROTO: no writer leaves such numbers. */
static int ring_look(struct ctl_reader *r, struct ring_view *v)
{
	uint64_t busy = atomic_load_explicit(&v->head->slot_busy, memory_order_acquire);
	uint64_t word = atomic_load_explicit(&v->head->head, memory_order_acquire);
	uint64_t head = word & RING_POS_MASK, epoch = word >> RING_POS_BITS;
	uint64_t emitted = atomic_load_explicit(&v->head->emitted, memory_order_acquire);

	if (head < v->head_seen || busy < v->busy_seen || emitted < v->emitted_seen ||
		emitted > MAX_EVENTS || emitted < head || emitted - head > MAX_IN_FLIGHT ||
		busy > head || epoch + 1 < v->epochs)
		return -EPROTO;
	if (epoch >= v->epochs) {
		int rc = ring_map_epochs(r, v, epoch, head);

		if (rc < 0)
			return rc;
	}
	v->head_seen = head;
	v->busy_seen = busy;
	v->emitted_seen = emitted;
	return 0;
}

/*
 * The same for the counters of the process, and all its rings; the newest first.  A thread that gets a lane leaves
 * an older ring for it: whoever sees its events there sees those before them as well.
 */
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
	r->sessions = atomic_load_explicit(&r->ctl->sessions, memory_order_relaxed);
	r->since = atomic_load_explicit(&r->ctl->since[r->who], memory_order_acquire);
	for (uint32_t i = r->ring_count; i > 0 && rc == 0; i--)
		rc = ring_look(r, &r->rings[i - 1]);
	return rc;
}

/* *budget: positions that may still be passed. */
static long ring_poll(struct ctl_reader *r, struct ring_view *v, uint32_t *budget, uint64_t now_ns,
	ring_batch_fn on_batch, void *ctx)
{
	uint64_t busy = v->busy_seen, head = v->head_seen;
	struct ring_view batch_begin;
	uint32_t filled = 0;
	long delivered = 0;
	bool held = false;
	int rc = 0;

	if (head - v->cursor > (uint64_t)v->capacity << (v->epochs - 1))
		v->cursor = head - ((uint64_t)v->capacity << (v->epochs - 1));
	batch_begin = *v;
	while (v->cursor != head && !held && *budget && rc >= 0) {
		int took = take_record(r, v, &r->batch[filled], now_ns);

		held = took < 0;
		if (!held) {
			v->cursor++;
			--*budget;
		}
		if (took > 0)
			filled++;
		if (filled &&
			(filled == RING_BATCH_RECORDS || held || v->cursor == head || !*budget)) {
			rc = on_batch ? on_batch(ctx, v->nc_idx, v->lane, r->batch, filled) : 0;
			if (rc >= 0) {
				v->delivered += filled;
				delivered += filled;
				batch_begin = *v;
			}
			filled = 0;
		}
	}
	if (rc < 0) {
		*v = batch_begin;
		return rc;
	}
	if (v->cursor >= v->goal) {
		v->clear_ns = v->goal_ns;
		v->goal = head;
		v->goal_ns = now_ns;
	}
	if (!held && v->cursor == head) {
		v->hold_since = 0;
		v->clear_ns = now_ns;
		v->busy_taken = busy; /* all drops so far lie behind the cursor */
	}
	if (v->cursor - v->given_back >= GIVE_BACK ||
		(v->cursor == head && v->given_back != head)) {
		v->given_back = v->cursor;
		ring_map_release(v);
	}
	/* What was whole was not dropped. */
	if (busy > head - v->delivered - v->filtered)
		return -EPROTO;
	return delivered;
}

/* What precedes the records: new rings, counters, names. */
static int prepare(struct ctl_reader *r, ring_name_fn on_name, void *ctx)
{
	int rc = r->error;

	if (rc == 0)
		rc = ring_map_new(r);
	if (rc == 0)
		rc = look(r);
	if (rc == 0)
		rc = names_poll(r, on_name, ctx);
	/* Everything else may be better next time: memory that is short, for one. */
	if (rc == -EPROTO)
		r->error = -EPROTO;
	return rc;
}

/* What has begun but has no position yet counts as what comes. */
int ctl_reader_skip(struct ctl_reader *r)
{
	int rc = r->error = ring_map_new(r);

	if (rc == 0)
		rc = r->error = look(r);
	for (uint32_t i = 0; i < r->ring_count && rc == 0; i++) {
		struct ring_view *v = &r->rings[i];

		v->base = v->cursor = v->head_seen;
		v->busy_base = v->busy_taken = v->busy_seen;
	}
	r->no_ring_base = r->no_ring;
	return rc;
}

long ctl_reader_poll(struct ctl_reader *r, bool dead, uint64_t now_ns, ring_batch_fn on_batch,
	ring_name_fn on_name, void *ctx)
{
	uint32_t budget = POLL_POSITIONS, first = r->next_ring;
	long delivered = 0;
	long rc = prepare(r, on_name, ctx);

	if (rc < 0)
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
	r->more = budget == 0;
	return delivered;
}

bool ctl_reader_more(const struct ctl_reader *r)
{
	return r->more;
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
	uint64_t head = v->head_seen, busy = v->busy_seen - v->busy_base, excess;

	c->emitted = v->emitted_seen - v->base;
	c->delivered = v->delivered;
	c->filtered = v->filtered;
	c->abandoned = v->abandoned;
	c->overwritten = v->cursor - v->base - v->delivered - v->filtered -
			 v->abandoned; /* drops still among them */
	c->unread = head - v->cursor;
	/* Drops lie among the passed positions, or ahead of the cursor, or (a writer that woke up
	 * after it had been given up) among the abandoned ones.  The rest lies before the base. */
	excess = busy - draw(&c->overwritten, busy);
	excess -= draw(&c->unread, excess);
	excess -= draw(&c->abandoned, excess);
	c->slot_busy = busy - excess;
	/* Begun, but no position yet. */
	if (c->emitted > head - v->base)
		*(dead ? &c->abandoned : &c->unread) += v->emitted_seen - head;
}

uint64_t ctl_reader_names_lost(const struct ctl_reader *r)
{
	return r->names_lost;
}

uint32_t ctl_reader_sessions(const struct ctl_reader *r)
{
	return r->sessions;
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
		ret->no_ring = r->no_ring - r->no_ring_base;
		ret->emitted += r->emitted_no_ring - r->no_ring_base;
		*(r->dead ? &ret->abandoned : &ret->unread) += r->emitted_no_ring - r->no_ring;
	}
}
