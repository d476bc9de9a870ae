/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ingest.c - the front of the merge.
 *
 * A recording is a sequence of frames.  Each source (the kernel hooks, each runtime) gives its records in
 * an order of its own, which is nearly that of time, and now and then a watermark: nothing older
 * than this will come.  The merge reads frames once, in their order, and never looks ahead.  What it
 * writes depends on the order of frames within a source, which the recorder cannot change, and not on how
 * the frames of different sources lie between each other, nor on their sizes.  The rules that see to it:
 *
 * WATERMARK.  A source's mark is its newest watermark, held back by device runs that are still
 * awaited (submits.c).  Items older than the marks of all sources are written (held.c orders them).
 * A time equal to the mark may still come, so it is not yet safe.  A source holds the others back from
 * its first frame on until it says that nothing at all will come (all ones).  A call that is open for
 * long does not: the hooks announce it, and its start is written when it is announced.
 *
 * LATE.  A record older than its own source's mark breaks its source's word.  Its place has perhaps been
 * written past; how far depends on the others, but its own mark has certainly not been passed.  So it is
 * moved there: it takes the time of the mark, `late_ns` says by how much it was moved, and a span's
 * duration is that between start and stop as they are written.  A stop never stands before its
 * start, so it moves on with it.  A record of a source that had nothing more to come has no place that
 * its source alone could tell, so it is one that cannot be.
 *
 * PAIRS.  Start and stop find each other by source and id when they are read; all that the stop must say
 * of its start is then copied into it.  A stop whose start has not come (rings are drained one after
 * the other) waits until its source's mark has passed it, and is an instant `start=lost` then.  Of
 * several starts with one id the first is the span: one bit per id remembers which were used.
 * If the stop came before the mark passed the start, that is noted in the start (COMPLETE): whoever
 * walks the items in order of time then knows that the span ends, and need not guess.
 *
 * Nothing here grows with the length of the recording but these bits, 64 bytes for 512 ids.  What waits
 * for a start, a stop or a submit is bounded for each source (ingest_marks.c).
 */
#include "runtime/record/ingest.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/trace/event_registry.h"

#define EVENT_TYPE_LIMIT 1000u /* numbers from here on are kernel spans in ntrace.pb */
#define ID_PAGE_BITS 9u

struct id_page {
	uint64_t bits[(1u << ID_PAGE_BITS) / 64];
};

int ingest_init(
	struct ingest *in, struct session *session, struct held *held, struct processes *processes)
{
	*in = (struct ingest){.session = session, .held = held, .processes = processes};
	in->by_number = calloc(SESSION_SOURCES, sizeof(*in->by_number));
	in->cpus = calloc(SEQUENCE_CPUS, sizeof(*in->cpus));
	in->id_last = 0;
	return in->by_number && in->cpus ? ingest_device_init(in) : -ENOMEM;
}

void ingest_free(struct ingest *in)
{
	for (size_t i = 0; in->by_number && i < SESSION_SOURCES; i++) {
		if (in->by_number[i])
			ingest_free_source(in->by_number[i]);
		free(in->by_number[i]);
	}
	free(in->by_number);
	free(in->list);
	free(in->open_spans);
	free(in->free_spans);
	free(in->id_pages);
	free(in->cpus);
	free(in->last_calls);
	free(in->layouts);
	map64_free(&in->pairs);
	map64_free(&in->id_index);
	map64_free(&in->dma);
	map64_free(&in->announced);
	map64_free(&in->last_done);
	memset(in, 0, sizeof(*in));
}

/* ---- the end ------------------------------------------------------------------------------ */

int ingest_end(struct ingest *in)
{
	int rc = 0;

	while (rc == 0 && in->source_count)
		rc = ingest_end_source(in, in->list[in->source_count - 1]);
	in->session->seq_gaps += sequence_gaps(in->cpus);
	return rc;
}

/* ---- spans that are open ------------------------------------------------------------------ */

uint64_t ingest_take_span(struct ingest *in)
{
	if (in->free_count)
		return in->free_spans[--in->free_count];
	if (session_grow(&in->open_spans, &in->span_cap, in->span_count + 1,
		    sizeof(*in->open_spans)) < 0 ||
		session_grow(&in->free_spans, &in->free_cap, in->span_count + 1,
			sizeof(*in->free_spans)) < 0)
		return UINT64_MAX;
	return in->span_count++;
}

void ingest_give_span(struct ingest *in, uint64_t index)
{
	in->free_spans[in->free_count++] = (uint32_t)index; /* there is room for all of them */
}

int ingest_use_id(struct ingest *in, uint64_t pair)
{
	uint64_t key = (pair >> ID_PAGE_BITS) + 1;
	unsigned bit = pair & ((1u << ID_PAGE_BITS) - 1);
	uint64_t *place, *word;

	if (in->id_last != key) {
		place = map64_find(&in->id_index, key);
		if (!place) {
			if (session_grow(&in->id_pages, &in->id_cap, in->id_count + 1,
				    sizeof(*in->id_pages)) < 0 ||
				map64_put(&in->id_index, key, in->id_count) < 0)
				return -ENOMEM;
			memset(&in->id_pages[in->id_count++], 0, sizeof(*in->id_pages));
			place = map64_find(&in->id_index, key);
		}
		in->id_last = key;
		in->id_last_page = *place;
	}
	word = &in->id_pages[in->id_last_page].bits[bit / 64];
	if (*word >> bit % 64 & 1)
		return 1;
	*word |= 1ull << bit % 64;
	return 0;
}

/* ---- runtime records ---------------------------------------------------------------------- */

static bool is_hardware(uint32_t type)
{
	const struct trace_event_info *info = trace_event_info(type);

	return info && info->category == TRACE_HARDWARE;
}

/* Impossible times of a device are looked at later. */
static bool record_valid(const struct ingest *in, const struct trace_record *r)
{
	return (clock_map_valid(&in->session->clock, r->timestamp_ns) ||
		       is_hardware(r->trace_type)) &&
	       r->phase <= TRACE_INSTANT && r->trace_type < EVENT_TYPE_LIMIT &&
	       r->thread_id < TID_FOREIGN &&
	       (r->nc_idx < TRACE_MAX_NC || r->nc_idx == TRACE_NC_UNKNOWN) &&
	       item_id_valid(r->tracking_id);
}

static uint16_t core_of(const struct trace_record *r)
{
	return (uint16_t)(r->nc_idx + 1u); /* unknown becomes 0 */
}

/* The host's id of a record's thread.  One that is not known cannot be taken for a thread of the host. */
static uint32_t thread_of(const struct ingest_source *s, const struct trace_record *r)
{
	uint32_t tid = (uint32_t)r->thread_id, host;

	if (!s->foreign || tid == 0)
		return tid;
	/* The time of a device event is the device's, not that of the thread that reports it. */
	host = thread_map_host(
		&s->threads, tid, is_hardware(r->trace_type) ? UINT64_MAX : r->timestamp_ns);
	return host ? host : tid | TID_FOREIGN;
}

/* What an item has from its record alone. */
static void fill(struct item *i, const struct ingest_source *s, const struct trace_record *r)
{
	*i = (struct item){
		.start = r->timestamp_ns,
		.pair = item_pair(s->number, r->tracking_id),
		.seq = r->id,
		.process = s->process,
		.tid = thread_of(s, r),
		.source = s->number,
		.place = core_of(r),
		.core = core_of(r),
		.type = (uint16_t)r->trace_type,
		.side = SIDE_RUNTIME,
		.flags = (uint16_t)((r->has_nrta_seq_id ? ITEM_NRTA : 0) |
				    (is_hardware(r->trace_type) ? ITEM_HARDWARE : 0)),
		.status = r->phase == TRACE_START ? 0 : r->status,
		.nrta_seq_id = r->nrta_seq_id,
	};
	memcpy(i->data, r->data, sizeof(i->data));
}

int ingest_threads(struct ingest *in, const struct rec_frame *f, const uint8_t *payload)
{
	struct ingest_source *s;
	int rc = ingest_join(in, f->source);

	if (rc < 0)
		return rc;
	s = in->by_number[f->source];
	s->foreign = true;
	for (size_t n = session_rows(in->session, f->size, sizeof(struct rec_thread));
		rc >= 0 && n > 0; n--) {
		struct rec_thread t;

		memcpy(&t, payload, sizeof(t));
		payload += sizeof(t);
		if (!s->ended && t.host_tid && t.host_tid < TID_FOREIGN)
			rc = thread_map_add(&s->threads, &t);
	}
	return rc < 0 ? rc : 0;
}

static uint64_t exec_id_of(const struct item *i)
{
	const struct trace_event_info *info = trace_event_info(i->type);

	for (uint32_t n = 0; info && n < info->field_count; n++)
		if (info->fields[n].phase == TRACE_START && !strcmp(info->fields[n].key, "exec_id"))
			return trace_field_value(&info->fields[n], i->data);
	return 0;
}

/* The stop of a device run: put at once when its submit is certain. */
static int put_run(
	struct ingest *in, struct ingest_source *s, struct item *i, const struct open_span *o)
{
	struct submits_run run = {.core = i->place,
		.exec_id = (uint32_t)o->exec_id,
		.start = i->start,
		.end = i->time};

	i->other = o->link;
	if (o->link || submits_exact(s->submits, &run, &i->other)) {
		i->flags |= ITEM_LINK | ITEM_EXACT;
		return held_put(in->held, i);
	}
	if (submits_inferred(s->submits, &run, &i->other))
		i->flags |= ITEM_LINK;
	return ingest_wait_submit(in, s, i, &run);
}

int ingest_put_stop(
	struct ingest *in, struct ingest_source *s, struct item *i, const struct open_span *o)
{
	struct process *p = &in->processes->list[i->process];
	uint64_t told = i->time - i->late_ns;
	unsigned flags = ITEM_COMPLETE;

	if (told < o->told) {
		uint64_t moved = o->told - told;

		if (moved > i->clamped_ns)
			i->clamped_ns = moved;
		p->clamped++;
		p->clamped_ns += moved;
		told = o->told;
	}
	if (i->time < o->start)
		i->time = o->start;
	i->late_ns = i->time > told ? i->time - told : 0;
	i->start = o->start;
	if (i->time == o->start) {
		flags |= ITEM_ZERO;
		i->flags |= ITEM_ZERO;
	}
	if (i->tid != o->tid) {
		flags |= ITEM_MOVED;
		i->flags |= ITEM_MOVED;
		i->other = o->tid;
	}
	/* Of a span without extent the stop has its own place among what happens at that time. */
	if (!(i->flags & ITEM_ZERO) || i->place != o->place || i->seq <= o->seq)
		i->seq = o->seq;
	i->place = o->place;
	i->flags = (uint16_t)((i->flags & ~ITEM_HARDWARE) | (o->hardware ? ITEM_HARDWARE : 0));
	if (o->start >= s->mark) {
		int rc = held_flags(
			in->held, o->item, o->generation, i->pair, (enum item_flags)flags);
		if (rc < 0)
			return rc;
	}
	if (submits_wanted(o->type))
		submits_stop(s->submits, o->type, o->tid, i->pair, i->time, told);
	if (o->type == TRACE_DEVICE_EXEC)
		return put_run(in, s, i, o);
	return held_put(in->held, i);
}

static int put_start(struct ingest *in, struct ingest_source *s, struct item *i, uint64_t told)
{
	uint64_t *known = map64_find(&in->pairs, i->pair), index = known ? *known : UINT64_MAX;
	struct open_span o = {.start = i->time,
		.told = told,
		.seq = i->seq,
		.item = i,
		.tid = i->tid,
		.place = i->place,
		.type = i->type,
		.hardware = (i->flags & ITEM_HARDWARE) != 0};
	int rc = 0;

	i->start = i->time;
	if (i->type == TRACE_EXEC_WAIT)
		o.exec_id = exec_id_of(i);
	if (submits_wanted(i->type))
		rc = submits_start(s->submits, i->type, i->core, i->tid, i->pair, i->time, told,
			(uint32_t)o.exec_id);
	o.generation = in->held->generation; /* before the put, which may send it away at once */
	if (rc == 0)
		rc = held_put(in->held, i);
	if (rc < 0)
		return rc;
	if (!known) {
		index = ingest_take_span(in);
		if (index == UINT64_MAX)
			return -ENOMEM;
		in->open_spans[index] = o;
		return map64_put(&in->pairs, i->pair, index);
	}
	struct item *orphan = ingest_wake(in, s, index);
	ingest_give_span(in, index);
	map64_remove(&in->pairs, i->pair);
	return orphan ? ingest_put_stop(in, s, orphan, &o) : -ENOMEM;
}

static int take_start(struct ingest *in, struct ingest_source *s, struct item *i, uint64_t told)
{
	int used = ingest_use_id(in, i->pair);

	if (used < 0)
		return used;
	i->kind = used ? ITEM_DUPLICATE : ITEM_START;
	return used ? held_put(in->held, i) : put_start(in, s, i, told);
}

static int take_stop(struct ingest *in, struct ingest_source *s, struct item *i)
{
	uint64_t *known = map64_find(&in->pairs, i->pair), index;
	struct open_span o;

	i->kind = ITEM_STOP;
	if (!known)
		return ingest_wait_span(in, s, i, WAIT_START, &(struct open_span){.orphan = true});
	index = *known;
	if (in->open_spans[index].hardware)
		return ingest_device_stop(in, s, i, i->time - i->late_ns);
	if (in->open_spans[index].orphan) { /* the first one has the better claim to the start */
		i->kind = ITEM_LOST;
		return held_put(in->held, i);
	}
	o = in->open_spans[index];
	ingest_give_span(in, index);
	map64_remove(&in->pairs, i->pair);
	return ingest_put_stop(in, s, i, &o);
}

static int take_record(struct ingest *in, struct ingest_source *s, const struct trace_record *r)
{
	uint16_t core = core_of(r);
	struct item *i = held_item(in->held);

	if (!i)
		return -ENOMEM;
	/* A record that comes again is no gap. */
	if (r->id > s->newest[core] + 1 && s->newest[core])
		submits_gap(s->submits, core);
	if (r->id > s->newest[core])
		s->newest[core] = r->id;
	fill(i, s, r);
	if (i->tid & TID_FOREIGN) {
		in->processes->list[s->process].foreign++;
		in->session->foreign++;
	}
	if (i->flags & ITEM_HARDWARE)
		return ingest_device(in, s, i, r);
	ingest_place(in, s, i, r->timestamp_ns);
	if (r->phase == TRACE_START)
		return take_start(in, s, i, r->timestamp_ns);
	if (r->phase == TRACE_STOP)
		return take_stop(in, s, i);
	i->kind = ITEM_INSTANT;
	return held_put(in->held, i);
}

/* Finds the process when the first valid record comes. */
static int find_process(struct ingest *in, struct ingest_source *s)
{
	int64_t process = process_of(in->processes, session_settle(in->session, s->number));

	if (process < 0)
		return (int)process;
	s->process = (uint32_t)process;
	s->has_process = true;
	return 0;
}

int ingest_runtime(struct ingest *in, const struct rec_frame *f, const uint8_t *payload)
{
	struct session *session = in->session;
	struct ingest_source *s;
	size_t body, count;
	bool possible = f->source >= REC_SOURCE_RUNTIME0 &&
			session->sources[f->source].ordinal <= ITEM_MAX_RUNTIME;
	int rc = 0;

	if (f->size < sizeof(struct rec_runtime))
		return session_invalid(session);
	rc = ingest_join(in, f->source);
	if (rc < 0)
		return rc;
	s = in->by_number[f->source];
	body = f->size - sizeof(struct rec_runtime);
	count = session_rows(session, body, sizeof(struct trace_record));
	payload += sizeof(struct rec_runtime);
	session->read += count;
	session->read_done += count;
	session->has_runtime |= count > 0;
	for (size_t n = 0; rc == 0 && n < count; n++, payload += sizeof(struct trace_record)) {
		struct trace_record r;

		memcpy(&r, payload, sizeof(r));
		if (!possible || s->ended || !record_valid(in, &r)) {
			session->invalid++;
			continue;
		}
		if (!s->has_process)
			rc = find_process(in, s);
		if (rc == 0)
			rc = take_record(in, s, &r);
		if (rc == 0)
			in->processes->list[s->process].read++;
	}
	return rc;
}
