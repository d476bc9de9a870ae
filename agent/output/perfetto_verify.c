/* SPDX-License-Identifier: Apache-2.0 */
/*
 * perfetto_verify.c - reads a trace packet by packet; the rules about sequences and interning.
 */
#include "agent/output/perfetto_verify.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "agent/output/perfetto_check.h"
#include "proto/delimited.h"

#define MAX_PACKET ((uint64_t)256 << 20)
#define READ_BYTES ((size_t)1 << 20)
#define BOOTTIME 6u

static const struct {
	const char *name, *rule;
	bool damage;
} kinds[PFV_KINDS] = {
#define FINDING(id, name, damage, rule) [PFV_##id] = {name, rule, damage},
#include "agent/output/perfetto_findings.def"
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

/* ---- sequences --------------------------------------------------------------------------------- */

/* The sequence of an id, made when it is new; NULL: no memory. */
static struct pfv_sequence *sequence_of(struct pfv_check *c, uint32_t id)
{
	const uint64_t *place = map64_find(&c->sequence_by_id, id);
	struct pfv_sequence *more;
	uint64_t n = c->result->sequences;

	if (place)
		return &c->sequences[*place];
	more = realloc(c->sequences, (n + 1) * sizeof(*more));
	if (more)
		c->sequences = more;
	if (!more || map64_put(&c->sequence_by_id, id, n) < 0) {
		c->error = -ENOMEM;
		return NULL;
	}
	c->sequences[n] = (struct pfv_sequence){.id = id};
	c->result->sequences++;
	return &c->sequences[n];
}

/* ---- interning --------------------------------------------------------------------------------- */

#define HASH_MASK ((1ull << 48) - 1)

static const struct {
	uint32_t field;
	enum pfv_message message;
	const char *name;
} tables[PFV_TABLES] = {
	[PFV_CATEGORIES] = {1, PFV_ENTRY, "category"},
	[PFV_NAMES] = {2, PFV_ENTRY, "event name"},
	[PFV_KEYS] = {3, PFV_ENTRY, "annotation name"},
	[PFV_VALUES] = {29, PFV_STRING, "string value"},
};

static void define(struct pfv_check *c, unsigned table, struct pfv_bytes bytes)
{
	struct pfv_walk w;
	struct pfv_field f;
	uint64_t iid = 0, hash = XXH3_64bits("", 0) & HASH_MASK, *old;

	pfv_walk(&w, c, tables[table].message, bytes);
	while (pfv_next(&w, &f)) {
		if (f.number == 1)
			iid = f.value;
		else
			hash = XXH3_64bits(f.bytes.data, f.bytes.len) & HASH_MASK;
	}
	if (iid == 0) {
		pfv_say(c, PFV_IID_ZERO, bytes.at, "%s", tables[table].name);
		return;
	}
	old = map64_find(&c->seq->tables[table], iid);
	if (old && (*old & HASH_MASK) != hash)
		pfv_say(c, PFV_IID_REDEFINED, bytes.at, "%s %llu of sequence %u",
			tables[table].name, (unsigned long long)iid, c->seq->id);
	if (map64_put(&c->seq->tables[table], iid, (uint64_t)c->seq->generation << 48 | hash) < 0)
		c->error = -ENOMEM;
}

void pfv_interned(struct pfv_check *c, struct pfv_bytes bytes)
{
	struct pfv_walk w;
	struct pfv_field f;

	pfv_walk(&w, c, PFV_INTERNED, bytes);
	while (pfv_next(&w, &f))
		for (unsigned t = 0; t < PFV_TABLES; t++)
			if (tables[t].field == f.number)
				define(c, t, f.bytes);
}

void pfv_use(struct pfv_check *c, unsigned table, uint64_t iid, uint64_t at)
{
	const uint64_t *found;

	c->uses_state = true;
	if (iid == 0) {
		pfv_say(c, PFV_IID_ZERO, at, "%s", tables[table].name);
		return;
	}
	found = c->seq ? map64_find(&c->seq->tables[table], iid) : NULL;
	if (!found)
		pfv_say(c, PFV_IID_UNDEFINED, at, "%s %llu", tables[table].name,
			(unsigned long long)iid);
	else if (*found >> 48 != c->seq->generation)
		pfv_say(c, PFV_IID_CLEARED, at, "%s %llu of sequence %u", tables[table].name,
			(unsigned long long)iid, c->seq->id);
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

	*p = (struct packet){0};
	pfv_walk(&w, c, PFV_PACKET, bytes);
	while (pfv_next(&w, &f))
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
	if (has_time && s && time < s->last)
		pfv_say(c, PFV_ORDER, c->at, "sequence %u goes back by %llu ns", s->id,
			(unsigned long long)(s->last - time));
	else if (has_time && s)
		s->last = time;
	pfv_event(c, p->event, has_time, time);
	if (c->uses_state && s && !(p->flags & 2))
		pfv_say(c, PFV_NEEDS_FLAG, c->at, "an event of sequence %u", s->id);
}

static void take_packet(struct pfv_check *c, struct pfv_bytes bytes)
{
	struct packet p;

	c->at = bytes.at;
	c->uses_state = false;
	read_packet(c, bytes, &p);
	c->seq = p.sequence && p.sequence <= UINT32_MAX ? sequence_of(c, (uint32_t)p.sequence)
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
	for (uint64_t i = 0; i < c->result->sequences; i++) {
		for (unsigned t = 0; t < PFV_TABLES; t++)
			map64_free(&c->sequences[i].tables[t]);
		free(c->sequences[i].own);
	}
	free(c->sequences);
	free(c->tracks);
	free(c->clocks);
	map64_free(&c->sequence_by_id);
	map64_free(&c->track_by_uuid);
	map64_free(&c->flows);
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
	}
	ret->flows = c.flows.count;
	rc = rc < 0 ? rc : c.error;
	check_free(&c);
	free(in.data);
	return rc;
}
