/* SPDX-License-Identifier: Apache-2.0 */
/*
 * perfetto_writer.c - bytes of packets, texts that get numbers, clocks of sequences.
 *
 * An event takes one packet: time since the packet before, sequence, event, flags; what it interns goes
 * into the same packet, which readers take in before they look at the event.
 */
#include "agent/output/perfetto_writer.h"

#include <errno.h>
#include <string.h>

#include "proto/varint_fast.h"
#include "runtime/base/utf8.h"

#define FLUSH_BYTES ((size_t)64 << 10)
#define TEXT_MAX 256u

/* The clock of an incremental sequence: the first of those that are a sequence's own. */
#define CLOCK_OWN 64u
#define CLOCK_BOOTTIME 6u
#define CLOCK_REALTIME 1u

enum { FLAG_CLEARED = 1, FLAG_NEEDS = 2 };

/* Numbers of fields, and with their wire types as they stand in a file. */
enum {
#define FIELD(id, message, name, number, wire) N_##id = (number), id = (number) << 3 | WIRE_##wire,
#include "agent/output/perfetto_fields.def"
#undef FIELD
};

static const struct {
	uint8_t tag[2];
	uint8_t tag_len;
	uint32_t max;
} tables[PFT_TABLES] = {
	[PFT_NAMES] = {{INTERNED_NAME}, 1, 4096},
	[PFT_KEYS] = {{INTERNED_KEY}, 1, 4096},
	[PFT_VALUES] = {{(INTERNED_VALUE & 0x7f) | 0x80, INTERNED_VALUE >> 7}, 2, 16384},
};

static const char *const categories[PFT_CATEGORIES] = {
	[PFT_RUNTIME] = "runtime",
	[PFT_DEVICE] = "device",
	[PFT_DRIVER] = "driver",
	[PFT_MARK] = "mark",
};

/* ---- bytes ------------------------------------------------------------------------------------- */

/* Room for n bytes, and for what fast varints scribble over; NULL once something has failed. */
static uint8_t *room(struct pft_writer *w, struct pb_buf *b, size_t n)
{
	if (!w->error)
		w->error = pb_buf_reserve(b, n + 2 * PB_MAX_VARINT + PB_WORD_SLACK);
	return w->error ? NULL : b->data + b->len;
}

static void taken(struct pb_buf *b, const uint8_t *end)
{
	b->len = (size_t)(end - b->data);
}

static void put_varint(struct pft_writer *w, struct pb_buf *b, uint32_t field, uint64_t v)
{
	uint8_t *p = room(w, b, 0);

	if (!p)
		return;
	p = pb_varint_put_fast(p, field << 3 | WIRE_VARINT);
	taken(b, pb_varint_put_fast(p, v));
}

static void put_fixed64(struct pft_writer *w, struct pb_buf *b, uint32_t field, uint64_t v)
{
	uint8_t *p = room(w, b, 8);

	if (!p)
		return;
	p = pb_varint_put_fast(p, field << 3 | WIRE_FIXED64);
	pb_store_word(p, v);
	taken(b, p + 8);
}

static void put_bytes(
	struct pft_writer *w, struct pb_buf *b, uint32_t field, const void *data, size_t size)
{
	uint8_t *p = room(w, b, size);

	if (!p)
		return;
	p = pb_varint_put_fast(p, field << 3 | WIRE_LEN);
	p = pb_varint_put_fast(p, size);
	memcpy(p, data, size);
	taken(b, p + size);
}

/* Copies a text; what is not UTF-8 becomes question marks, because readers refuse it. */
static void copy_text(uint8_t *to, struct pb_str s)
{
	for (uint32_t i = 0; i < s.len;) {
		size_t n = utf8_length(s.s + i, s.len - i);

		if (n)
			memcpy(to + i, s.s + i, n);
		else
			to[i] = '?';
		i += n ? (uint32_t)n : 1;
	}
}

static void put_text(struct pft_writer *w, struct pb_buf *b, uint32_t field, struct pb_str s)
{
	uint8_t *p = room(w, b, s.len);

	if (!p)
		return;
	p = pb_varint_put_fast(p, field << 3 | WIRE_LEN);
	p = pb_varint_put_fast(p, s.len);
	copy_text(p, s);
	taken(b, p + s.len);
}

void pft_flush(struct pft_writer *w)
{
	if (!w->error && w->out.len)
		w->error = w->write(w->ctx, w->out.data, w->out.len);
	w->out.len = 0;
}

/* Appends `packet` to the trace. */
static void put_packet(struct pft_writer *w)
{
	uint8_t *p = room(w, &w->out, w->packet.len);

	if (!p)
		return;
	size_t before = w->out.len;
	*p++ = TRACE_PACKET;
	p = pb_varint_put_fast(p, w->packet.len);
	memcpy(p, w->packet.data, w->packet.len);
	taken(&w->out, p + w->packet.len);
	w->packet.len = 0;
	w->bytes += w->out.len - before;
	w->packets++;
	if (w->out.len >= FLUSH_BYTES)
		pft_flush(w);
}

void pft_writer_free(struct pft_writer *w)
{
	pb_buf_free(&w->event);
	pb_buf_free(&w->scratch);
	pb_buf_free(&w->packet);
	pb_buf_free(&w->out);
}

/* ---- interning --------------------------------------------------------------------------------- */

/* Tells the reader a number and what it stands for. */
static void define(struct pft_writer *w, struct pft_seq *s, const uint8_t *tag, size_t tag_len,
	uint32_t iid, struct pb_str text)
{
	uint8_t *p = room(w, &s->fresh, text.len + tag_len + 4 * PB_MAX_VARINT);

	if (!p)
		return;
	size_t size = 2 + pb_varint_size(iid) + pb_varint_size(text.len) + text.len;
	memcpy(p, tag, tag_len);
	p = pb_varint_put_fast(p + tag_len, size);
	*p++ = TEXT_IID;
	p = pb_varint_put_fast(p, iid);
	*p++ = TEXT_STRING;
	p = pb_varint_put_fast(p, text.len);
	copy_text(p, text);
	taken(&s->fresh, p + text.len);
}

static struct pft_text *intern(struct pft_writer *w, struct pft_seq *s, enum pft_table table,
	struct pb_str text, uint32_t max)
{
	struct pft_intern *t = &s->tables[table];
	struct pft_text *found;
	uint64_t hash;

	if (w->error || text.len > TEXT_MAX || !s->incremental)
		return NULL;
	found = pft_intern_find(t, text, &hash);
	if (found || t->count >= max)
		return found;
	found = pft_intern_add(t, hash, text);
	if (found)
		define(w, s, tables[table].tag, tables[table].tag_len, found->iid, text);
	else
		w->error = -ENOMEM;
	return found;
}

struct pft_text *pft_intern(
	struct pft_writer *w, struct pft_seq *s, enum pft_table table, struct pb_str text)
{
	return intern(w, s, table, text, tables[table].max);
}

struct pft_text *pft_intern_own(
	struct pft_writer *w, struct pft_seq *s, enum pft_table table, struct pb_str text)
{
	return intern(w, s, table, text, UINT32_MAX);
}

/* ---- sequences, clocks, tracks ----------------------------------------------------------------- */

static void put_clock(struct pft_writer *w, uint32_t id, uint64_t time, bool incremental)
{
	uint8_t clock[3 * PB_MAX_VARINT + 4], *p = clock;

	*p++ = CLOCK_ID;
	p += pb_varint_put(p, id);
	*p++ = CLOCK_TIME;
	p += pb_varint_put(p, time);
	if (incremental) {
		*p++ = CLOCK_INCREMENTAL;
		*p++ = 1;
	}
	put_bytes(w, &w->event, N_SNAPSHOT_CLOCK, clock, (size_t)(p - clock));
}

/* A packet with a clock snapshot: boot time, realtime and, of a sequence that begins, its own clock. */
static void put_snapshot(
	struct pft_writer *w, const struct pft_seq *s, uint64_t boot, int64_t offset, bool own)
{
	w->event.len = 0;
	put_clock(w, CLOCK_BOOTTIME, boot, false);
	put_clock(w, CLOCK_REALTIME, boot + (uint64_t)offset, false);
	if (own)
		put_clock(w, CLOCK_OWN, boot, true);
	put_varint(w, &w->event, N_SNAPSHOT_PRIMARY, CLOCK_BOOTTIME);
	if (w->error)
		return;
	put_varint(w, &w->packet, N_PACKET_SEQUENCE, s->id);
	put_bytes(w, &w->packet, N_PACKET_CLOCKS, w->event.data, w->event.len);
	if (s->incremental)
		put_varint(w, &w->packet, N_PACKET_FLAGS, FLAG_NEEDS);
	put_packet(w);
}

void pft_clock(struct pft_writer *w, const struct pft_seq *s, uint64_t boot_ns, int64_t offset_ns)
{
	put_snapshot(w, s, boot_ns, offset_ns, false);
}

void pft_seq_open(struct pft_writer *w, struct pft_seq *s, bool incremental)
{
	static const uint8_t category_tag = INTERNED_CATEGORY;

	*s = (struct pft_seq){.id = ++w->sequences, .incremental = incremental};
	s->last = PFT_ORIGIN_NS;
	put_varint(w, &w->packet, N_PACKET_SEQUENCE, s->id);
	put_varint(w, &w->packet, N_PACKET_FLAGS, FLAG_CLEARED);
	put_varint(w, &w->packet, N_PACKET_DROPPED, 1);
	put_varint(w, &w->packet, N_PACKET_FIRST, 1);
	if (incremental) {
		uint8_t clock[2 + PB_MAX_VARINT];
		size_t n = pb_varint_put(clock, DEFAULTS_CLOCK);

		n += pb_varint_put(clock + n, CLOCK_OWN);
		put_bytes(w, &w->packet, N_PACKET_DEFAULTS, clock, n);
		for (unsigned c = PFT_RUNTIME; c < PFT_CATEGORIES; c++)
			define(w, s, &category_tag, 1, c, pft_str(categories[c]));
		if (!w->error)
			put_bytes(w, &w->packet, N_PACKET_INTERNED, s->fresh.data, s->fresh.len);
		s->fresh.len = 0;
	}
	put_packet(w);
	if (incremental)
		put_snapshot(w, s, PFT_ORIGIN_NS, w->offset, true);
}

void pft_seq_free(struct pft_seq *s)
{
	for (unsigned t = 0; t < PFT_TABLES; t++)
		pft_intern_free(&s->tables[t]);
	pb_buf_free(&s->fresh);
}

/* The descriptor's part that says what kind of track it is. */
static void put_kind(struct pft_writer *w, const struct pft_track *t)
{
	struct pb_buf *b = &w->scratch;
	uint32_t field = t->is_process	? N_TRACK_PROCESS
			 : t->is_thread ? N_TRACK_THREAD
					: N_TRACK_COUNTER;

	if (!t->is_process && !t->is_thread && !t->is_counter)
		return;
	b->len = 0;
	if (t->is_process || t->is_thread)
		put_varint(w, b, t->is_process ? N_PROCESS_PID : N_THREAD_PID, t->pid);
	if (t->is_thread)
		put_varint(w, b, N_THREAD_TID, t->tid);
	if (t->is_process || t->is_thread)
		put_text(w, b, t->is_process ? N_PROCESS_NAME : N_THREAD_NAME, t->name);
	if (t->unit)
		put_varint(w, b, N_COUNTER_UNIT, (uint64_t)t->unit);
	else if (t->unit_name)
		put_text(w, b, N_COUNTER_UNIT_NAME, pft_str(t->unit_name));
	if (!w->error)
		put_bytes(w, &w->event, field, b->data, b->len);
}

uint32_t pft_track(struct pft_writer *w, const struct pft_seq *s, const struct pft_track *t)
{
	uint32_t uuid = ++w->tracks;

	w->event.len = 0;
	put_varint(w, &w->event, N_TRACK_UUID, uuid);
	if (!t->is_process && !t->is_thread)
		put_text(w, &w->event, N_TRACK_NAME, t->name);
	put_kind(w, t);
	if (t->parent)
		put_varint(w, &w->event, N_TRACK_PARENT, t->parent);
	if (w->error)
		return uuid;
	put_varint(w, &w->packet, N_PACKET_SEQUENCE, s->id);
	if (s->incremental)
		put_varint(w, &w->packet, N_PACKET_FLAGS, FLAG_NEEDS);
	put_bytes(w, &w->packet, N_PACKET_TRACK, w->event.data, w->event.len);
	put_packet(w);
	w->event.len = 0;
	return uuid;
}

/* ---- events ------------------------------------------------------------------------------------ */

void pft_event(struct pft_writer *w, enum pft_type type, uint32_t track)
{
	w->event.len = 0;
	uint8_t *p = room(w, &w->event, 0);

	if (!p)
		return;
	*p++ = EVENT_TYPE;
	*p++ = (uint8_t)type;
	*p++ = EVENT_TRACK;
	taken(&w->event, pb_varint_put_fast(p, track));
}

void pft_category(struct pft_writer *w, enum pft_category c)
{
	uint8_t *p = room(w, &w->event, 0);

	if (!p)
		return;
	*p++ = EVENT_CATEGORY;
	*p++ = (uint8_t)c;
	taken(&w->event, p);
}

void pft_name_iid(struct pft_writer *w, uint32_t iid)
{
	uint8_t *p = room(w, &w->event, 0);

	if (!p)
		return;
	*p++ = EVENT_NAME_IID;
	taken(&w->event, pb_varint_put_fast(p, iid));
}

void pft_name(struct pft_writer *w, struct pft_seq *s, struct pb_str name)
{
	const struct pft_text *known = pft_intern(w, s, PFT_NAMES, name);

	if (known)
		pft_name_iid(w, known->iid);
	else
		put_text(w, &w->event, N_EVENT_NAME, name);
}

/* The number that a text is the usual form of, and the field for it; 0 when it is none. */
static uint8_t number_of(struct pb_str s, uint64_t *ret)
{
	const char *p = s.s, *end = s.s + s.len;
	bool minus = s.len > 1 && *p == '-';
	uint64_t v = 0;

	if (s.len > 2 && p[0] == '0' && p[1] == 'x') {
		if (s.len > 18 || (p[2] == '0' && s.len > 3))
			return 0;
		for (p += 2; p < end; p++) {
			unsigned d = (unsigned)(*p - '0');

			if (d > 9)
				d = *p >= 'a' && *p <= 'f' ? (unsigned)(*p - 'a') + 10 : 16;
			if (d > 15)
				return 0;
			v = v << 4 | d;
		}
		*ret = v;
		return NOTE_POINTER;
	}
	p += minus;
	if (end - p < 1 || end - p > 19 || (*p == '0' && (end - p > 1 || minus)))
		return 0;
	for (; p < end; p++) {
		unsigned d = (unsigned)(*p - '0');

		if (d > 9)
			return 0;
		v = v * 10 + d;
	}
	if (minus && v > (uint64_t)INT64_MAX)
		return 0;
	*ret = minus ? -v : v;
	return minus ? NOTE_INT : NOTE_UINT;
}

static uint8_t scalar_of(struct pb_str s, uint64_t *ret)
{
	char c = s.len ? s.s[0] : 0;

	if ((c >= '0' && c <= '9') || c == '-')
		return number_of(s, ret);
	*ret = c == 't';
	if ((s.len == 4 && !memcmp(s.s, "true", 4)) || (s.len == 5 && !memcmp(s.s, "false", 5)))
		return NOTE_BOOL;
	return 0;
}

/* An annotation of a known key and one varint behind a tag of at most two bytes. */
static void note_varint(struct pft_writer *w, uint32_t key, uint32_t tag, uint64_t v)
{
	uint8_t *p = room(w, &w->event, 4 * PB_MAX_VARINT), *body;

	if (!p)
		return;
	*p = EVENT_NOTE;
	body = p + 2;
	*body++ = NOTE_KEY_IID;
	body = pb_varint_put_fast(body, key);
	body = pb_varint_put_fast(body, tag);
	body = pb_varint_put_fast(body, v);
	p[1] = (uint8_t)(body - p - 2);
	taken(&w->event, body);
}

/* Whatever does not fit there: a key or a value that has no number. */
static void note_long(
	struct pft_writer *w, const struct pft_text *known, struct pb_str key, struct pb_str value)
{
	struct pb_buf *b = &w->scratch;
	uint64_t v;
	uint8_t tag = scalar_of(value, &v);

	b->len = 0;
	if (known)
		put_varint(w, b, N_NOTE_KEY_IID, known->iid);
	else
		put_text(w, b, N_NOTE_KEY, key);
	if (tag)
		put_varint(w, b, tag >> 3, v);
	else
		put_text(w, b, N_NOTE_STRING, value);
	if (!w->error)
		put_bytes(w, &w->event, N_EVENT_NOTE, b->data, b->len);
}

void pft_note_key(struct pft_writer *w, struct pft_seq *s, const struct pft_text *known,
	struct pb_str key, struct pb_str value)
{
	const struct pft_text *text;
	uint64_t v;
	uint8_t tag = scalar_of(value, &v);

	if (known && tag) {
		note_varint(w, known->iid, tag, v);
		return;
	}
	text = known ? pft_intern(w, s, PFT_VALUES, value) : NULL;
	if (text)
		note_varint(w, known->iid, NOTE_VALUE_IID, text->iid);
	else
		note_long(w, known, key, value);
}

void pft_note(struct pft_writer *w, struct pft_seq *s, struct pb_str key, struct pb_str value)
{
	pft_note_key(w, s, pft_intern(w, s, PFT_KEYS, key), key, value);
}

void pft_note_u64(struct pft_writer *w, struct pft_seq *s, const char *key, uint64_t value)
{
	const struct pft_text *known = pft_intern_own(w, s, PFT_KEYS, pft_str(key));

	if (known)
		note_varint(w, known->iid, NOTE_UINT, value);
}

void pft_flow(struct pft_writer *w, uint64_t id, bool terminates)
{
	put_fixed64(w, &w->event, terminates ? N_EVENT_FLOW_END : N_EVENT_FLOW, id);
}

void pft_value(struct pft_writer *w, int64_t value)
{
	put_varint(w, &w->event, N_EVENT_COUNTER, (uint64_t)value);
}

void pft_value_double(struct pft_writer *w, double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	put_fixed64(w, &w->event, N_EVENT_DOUBLE, bits);
}

void pft_put(struct pft_writer *w, struct pft_seq *s, uint64_t time)
{
	size_t event = w->event.len, fresh = s->fresh.len;
	uint8_t *p;

	if (time < s->last)
		time = s->last;
	w->newest = time > w->newest ? time : w->newest;
	p = room(w, &w->packet, event + fresh + 6 * PB_MAX_VARINT);
	if (!p)
		return;
	*p++ = PACKET_TIME;
	p = pb_varint_put_fast(p, s->incremental ? time - s->last : time);
	s->last = time;
	*p++ = PACKET_SEQUENCE;
	p = pb_varint_put_fast(p, s->id);
	*p++ = PACKET_EVENT;
	p = pb_varint_put_fast(p, event);
	memcpy(p, w->event.data, event);
	p += event;
	if (fresh) {
		*p++ = PACKET_INTERNED;
		p = pb_varint_put_fast(p, fresh);
		memcpy(p, s->fresh.data, fresh);
		p += fresh;
		s->fresh.len = 0;
	}
	if (s->incremental) {
		*p++ = PACKET_FLAGS;
		*p++ = FLAG_NEEDS;
	}
	taken(&w->packet, p);
	put_packet(w);
}
