/* SPDX-License-Identifier: Apache-2.0 */
/*
 * perfetto_verify.c - reads a trace packet by packet; the rules about packets and their sequences.
 */
#include "agent/output/perfetto_verify.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/output/pfcheck.h"
#include "proto/delimited.h"

#define MAX_PACKET ((uint64_t)256 << 20)
#define READ_BYTES ((size_t)1 << 20)
#define BOOTTIME 6u

static const struct {
	const char *name, *rule;
	bool damage;
} kinds[PFV_KINDS] = {
#define FINDING(id, name, damage, rule) [PFV_##id] = {name, rule, damage},
#include "agent/output/pfcheck_findings.def"
#undef FINDING
};

const char *pfv_kind_name(enum pfv_kind kind)
{
	return kinds[kind].name;
}

const char *pfv_kind_rule(enum pfv_kind kind)
{
	return kinds[kind].rule;
}

void pfv_say(struct pfv_check *c, enum pfv_kind kind, uint64_t at, const char *format, ...)
{
	char text[200];
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	c->result->counts[kind]++;
	c->result->findings++;
	c->result->damage += kinds[kind].damage;
	c->report(c->ctx, &(struct pfv_finding){kind, at, text});
}

/* ---- packets ----------------------------------------------------------------------------------- */

/* The fields of a packet; those that are not there have no data. */
struct packet {
	uint64_t timestamp, clock, sequence, flags;
	bool has_timestamp, cleared, dropped, first;
	struct pfv_bytes event, snapshot, track, interned, defaults;
};

static void read_packet(struct pfv_check *c, struct pfv_bytes bytes, struct packet *p)
{
	struct pfv_walk w;
	struct pfv_field f;
	unsigned __int128 seen = 0;

	*p = (struct packet){0};
	pfv_walk(&w, c, PFV_PACKET, bytes);
	while (pfv_next(&w, &f)) {
		if (seen >> f.number & 1)
			pfv_say(c, PFV_FIELD_TWICE, f.bytes.at, "field %u", f.number);
		seen |= (unsigned __int128)1 << f.number; /* what is known is below 91 */
		switch (f.number) {
		case 6:
			p->snapshot = f.bytes;
			break;
		case 8:
			p->timestamp = f.value;
			p->has_timestamp = true;
			break;
		case 10:
			p->sequence = f.value;
			break;
		case 11:
			p->event = f.bytes;
			break;
		case 12:
			p->interned = f.bytes;
			break;
		case 13:
			p->flags = f.value;
			break;
		case 41:
			p->cleared = f.value != 0;
			break;
		case 42:
			p->dropped = f.value != 0;
			break;
		case 58:
			p->clock = f.value;
			break;
		case 59:
			p->defaults = f.bytes;
			break;
		case 60:
			p->track = f.bytes;
			break;
		case 87:
			p->first = f.value != 0;
			break;
		default:
			break;
		}
	}
	p->cleared |= p->flags & 1;
}

static void take_defaults(struct pfv_check *c, struct pfv_bytes bytes)
{
	struct pfv_walk w, inner;
	struct pfv_field f, g;

	pfv_walk(&w, c, PFV_DEFAULTS, bytes);
	while (pfv_next(&w, &f)) {
		if (f.number == 58)
			c->seq->clock = f.value;
		if (f.number != 11)
			continue;
		pfv_walk(&inner, c, PFV_EVENT_DEFAULTS, f.bytes);
		while (pfv_next(&inner, &g))
			if (g.number == 11)
				c->seq->track = g.value;
	}
}

/* What the packet does to its sequence's state, before anything that uses it is looked at. */
static void take_state(struct pfv_check *c, const struct packet *p)
{
	struct pfv_sequence *s = c->seq;
	bool adds = p->interned.data || p->defaults.data;

	if (!s) {
		if (adds || p->flags)
			pfv_say(c, PFV_NO_SEQUENCE, c->at, "a packet with incremental state");
		return;
	}
	if (p->first && s->begun)
		pfv_say(c, PFV_FIRST_PACKET, c->at, "sequence %u has packets before", s->id);
	s->begun = true;
	if (p->dropped && !p->cleared)
		s->valid = false;
	if (p->cleared) {
		s->valid = true;
		s->generation++;
		s->clock = s->track = 0;
	}
	if (!s->valid && (adds || p->flags & 2))
		pfv_say(c, PFV_NO_STATE, c->at, "sequence %u %s", s->id,
			adds ? "adds to state that has not begun"
			     : "needs state that has not begun");
	if (p->interned.data)
		pfv_interned(c, p->interned);
	if (p->defaults.data)
		take_defaults(c, p->defaults);
}

/* A clock that is explained later is compared with itself. */
static void check_order(
	struct pfv_check *c, const struct packet *p, uint64_t clock, bool has_time, uint64_t time)
{
	struct pfv_sequence *s = c->seq;
	uint64_t *last = has_time ? &s->last : &s->late_last;

	if (!p->has_timestamp)
		return;
	if (!has_time) {
		time = p->timestamp;
		if (s->late_clock != clock)
			s->late_last = 0;
		s->late_clock = clock;
	}
	if (time < *last)
		pfv_say(c, PFV_ORDER, c->at, "sequence %u goes back by %llu ns", s->id,
			(unsigned long long)(*last - time));
	else
		*last = time;
}

static void take_event(struct pfv_check *c, const struct packet *p)
{
	struct pfv_sequence *s = c->seq;
	uint64_t clock = p->clock ? p->clock : s && s->clock ? s->clock : BOOTTIME, time = 0;
	bool has_time = false;

	if (!s)
		pfv_say(c, PFV_NO_SEQUENCE, c->at, "an event");
	if (!p->has_timestamp)
		pfv_say(c, PFV_NO_TIMESTAMP, c->at, "an event");
	else
		has_time = pfv_time(c, clock, p->timestamp, &time);
	c->uses_state |= !p->clock && s && s->clock;
	if (s)
		check_order(c, p, clock, has_time, time);
	pfv_event(c, p->event, has_time, time);
	if (c->uses_state && s && !(p->flags & 2))
		pfv_say(c, PFV_NEEDS_FLAG, c->at, "an event of sequence %u", s->id);
}

static void take_packet(struct pfv_check *c, struct pfv_bytes bytes)
{
	struct packet p;

	c->at = bytes.at;
	c->uses_state = false;
	if (!bytes.len)
		pfv_say(c, PFV_EMPTY_PACKET, bytes.at, "a packet of no bytes");
	read_packet(c, bytes, &p);
	c->seq = p.sequence && p.sequence <= UINT32_MAX ? pfv_sequence(c, (uint32_t)p.sequence)
							: NULL;
	if (c->error)
		return;
	take_state(c, &p);
	if (p.snapshot.data)
		pfv_snapshot(c, p.snapshot);
	if (p.track.data)
		pfv_descriptor(c, p.track);
	if (p.event.data)
		take_event(c, &p);
	c->result->packets++;
}

/* ---- the file ---------------------------------------------------------------------------------- */

struct input {
	int fd;
	uint8_t *data;
	size_t cap, used, at; /* bytes in data, and how far they were consumed */
	uint64_t base;	      /* offset in the file of data[0] */
	bool eof;
};

/* Makes n bytes available behind `at`, or as many as the file still has.  0 or -errno. */
static int fill(struct input *in, size_t n)
{
	if (in->used - in->at >= n)
		return 0;
	if (in->at)
		memmove(in->data, in->data + in->at, in->used - in->at);
	in->base += in->at;
	in->used -= in->at;
	in->at = 0;
	while (in->used < n && !in->eof) {
		if (in->cap < in->used + READ_BYTES) {
			uint8_t *more = realloc(in->data, in->used + READ_BYTES);

			if (!more)
				return -ENOMEM;
			in->data = more;
			in->cap = in->used + READ_BYTES;
		}
		ssize_t got = read(in->fd, in->data + in->used, in->cap - in->used);
		if (got < 0 && errno != EINTR)
			return -errno;
		in->eof = got == 0;
		in->used += got > 0 ? (size_t)got : 0;
	}
	return 0;
}

/* One field of the trace.  1; 0 at the end or where it cannot be read on (which was reported);
 * -errno. */
static int take_field(struct pfv_check *c, struct input *in)
{
	uint64_t tag, size = 0;
	int rc = fill(in, 2 * PB_MAX_VARINT);
	uint64_t at = in->base + in->at;

	if (rc < 0 || in->used == in->at)
		return rc;
	size_t n = pb_varint_get(in->data + in->at, in->data + in->used, &tag);
	size_t m = n ? pb_varint_get(in->data + in->at + n, in->data + in->used, &size) : 0;
	if (n && (tag & 7) != 2) {
		pfv_say(c, PFV_MALFORMED, at, "no packet begins here");
		return 0;
	}
	if (!m || size > MAX_PACKET) {
		pfv_say(c, in->used - in->at < 2 * PB_MAX_VARINT ? PFV_TRUNCATED : PFV_MALFORMED,
			at, "the length of a packet");
		return 0;
	}
	rc = fill(in, n + m + (size_t)size);
	if (rc < 0)
		return rc;
	if (in->used - in->at < n + m + size) {
		pfv_say(c, PFV_TRUNCATED, at, "a packet of %llu bytes, of which %zu are there",
			(unsigned long long)size, in->used - in->at - n - m);
		return 0;
	}
	if (tag >> 3 == 1)
		take_packet(
			c, (struct pfv_bytes){in->data + in->at + n + m, (size_t)size, at + n + m});
	in->at += n + m + (size_t)size;
	c->result->bytes = in->base + in->at;
	return c->error ? c->error : 1;
}

static void check_free(struct pfv_check *c)
{
	pfv_sequences_free(c);
	free(c->tracks);
	free(c->clocks);
	free(c->event_flows);
	map64_free(&c->track_by_uuid);
	map64_free(&c->owner_by_task);
	map64_free(&c->flows);
	map64_free(&c->unbegun);
	map64_free(&c->late_clocks);
	map64_free(&c->clock_by_id);
}

int perfetto_verify(int fd, void (*report)(void *ctx, const struct pfv_finding *f), void *ctx,
	struct pfv_result *ret)
{
	struct pfv_check c = {.report = report, .ctx = ctx, .result = ret};
	struct input in = {.fd = fd};
	int rc;

	*ret = (struct pfv_result){0};
	pfv_tracks_begin(&c);
	while ((rc = take_field(&c, &in)) == 1)
		;
	if (rc == 0) {
		pfv_clocks_end(&c);
		pfv_tracks_end(&c);
		pfv_flows_end(&c);
	}
	ret->flows = c.flows.count;
	rc = rc < 0 ? rc : c.error;
	check_free(&c);
	free(in.data);
	return rc;
}
