/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ingest_kernel.c - driver calls become items.
 *
 * The hooks give one record per finished call, which is a start and a stop at once.  A call that has
 * been open for long is announced: its start is an item by itself then, with its arguments, and the
 * record that comes when it ends is the stop alone.  That the two belong together is known by thread
 * and time of the start.  A second announcement of a call says nothing new, also when the call has ended
 * meanwhile: each thread's last call is remembered until the mark has passed its end.
 */
#include "runtime/record/ingest.h"

#include <errno.h>
#include <string.h>

#define MANY_THREADS 4096u

static uint64_t call_key(const struct nev_ioctl *e)
{
	uint64_t h = (e->start_ns ^ (uint64_t)e->tid << 40) * 0xff51afd7ed558ccdull;

	return (h ^ h >> 31 ^ e->tid) | 1;
}

/* The call that was announced and not ended yet, or NULL. */
static struct open_span *find_announced(struct ingest *in, const struct nev_ioctl *e)
{
	uint64_t *place = map64_find(&in->announced, call_key(e));
	struct open_span *o = place ? &in->open_spans[*place] : NULL;

	return o && o->told == e->start_ns && o->tid == e->tid ? o : NULL;
}

/* Forgets calls of which no announcement can come any more. */
static int forget_calls(struct ingest *in, const struct ingest_source *s)
{
	size_t kept = 0;

	for (size_t i = 0; i < in->last_count; i++) {
		const struct last_call *l = &in->last_calls[i];
		uint64_t key = (uint64_t)l->tid + 1;

		if (l->end < s->mark) {
			map64_remove(&in->last_done, key);
			continue;
		}
		in->last_calls[kept] = *l;
		*map64_find(&in->last_done, key) = kept++;
	}
	in->last_count = kept;
	/* Few that were forgotten are no reason to look again soon. */
	return kept > in->last_cap / 2 ? session_grow(&in->last_calls, &in->last_cap,
						 in->last_cap + 1, sizeof(*in->last_calls))
				       : 0;
}

/* Notes the last call of a thread. */
static int note_done(struct ingest *in, const struct ingest_source *s, const struct nev_ioctl *e)
{
	struct last_call call = {e->start_ns, e->start_ns + e->duration_ns, e->tid};
	uint64_t *place = map64_find(&in->last_done, (uint64_t)e->tid + 1);

	if (place) {
		in->last_calls[*place] = call;
		return 0;
	}
	if (in->last_count == in->last_cap && in->last_count >= MANY_THREADS &&
		forget_calls(in, s) < 0)
		return -ENOMEM;
	if (session_grow(&in->last_calls, &in->last_cap, in->last_count + 1,
		    sizeof(*in->last_calls)) < 0)
		return -ENOMEM;
	in->last_calls[in->last_count] = call;
	return map64_put(&in->last_done, (uint64_t)e->tid + 1, in->last_count++);
}

/* Has this call ended already? */
static bool is_done(const struct ingest *in, const struct nev_ioctl *e)
{
	const uint64_t *place = map64_find(&in->last_done, (uint64_t)e->tid + 1);

	return place && in->last_calls[*place].start == e->start_ns;
}

static struct item *new_item(struct ingest *in, const struct nev_ioctl *e, const uint8_t *args,
	uint32_t process, enum item_kind kind)
{
	struct item *i = held_item(in->held);

	if (!i)
		return NULL;
	*i = (struct item){
		.seq = e->hdr.seq,
		.process = process,
		.tid = e->tid,
		.place = e->hdr.cpu,
		.kind = (uint8_t)kind,
		.side = SIDE_KERNEL,
		.request = e->request,
		.result = e->result,
		.device = e->device,
		.call_flags = e->flags,
		.nargs = e->hdr.nargs,
	};
	memcpy(i->args, args, (size_t)e->hdr.nargs * sizeof(i->args[0]));
	return i;
}

static int take_announcement(struct ingest *in, struct ingest_source *s, const struct nev_ioctl *e,
	const uint8_t *args, uint32_t process)
{
	struct item *i;
	uint64_t index;

	if (find_announced(in, e) || is_done(in, e)) {
		in->processes->list[process].announced_again++;
		return 0;
	}
	i = new_item(in, e, args, process, ITEM_START);
	index = ingest_take_span(in);
	if (!i || index == UINT64_MAX)
		return -ENOMEM;
	ingest_place(in, s, i, e->start_ns);
	i->start = i->time;
	i->pair = ++in->calls;
	i->flags = ITEM_ANNOUNCED;
	in->open_spans[index] = (struct open_span){.start = i->time,
		.told = e->start_ns,
		.item = i,
		.generation = in->held->generation,
		.seq = i->pair,
		.tid = e->tid};
	int rc = held_put(in->held, i);
	return rc < 0 ? rc : map64_put(&in->announced, call_key(e), index);
}

/* The stop of a call; takes it as late by what it was moved. */
static int put_stop(struct ingest *in, struct ingest_source *s, struct item *i,
	const struct nev_ioctl *e, uint64_t start)
{
	uint64_t end = e->start_ns + e->duration_ns;

	i->time = end > start ? end : start;
	if (i->time < s->mark)
		i->time = s->mark;
	i->late_ns = i->time - end;
	if (i->late_ns && i->flags & ITEM_ANNOUNCED) {
		in->processes->list[i->process].late++;
		in->processes->list[i->process].late_ns += i->late_ns;
	}
	i->start = start;
	if (i->time == start)
		i->flags |= ITEM_ZERO;
	return held_put(in->held, i);
}

static int end_announced(struct ingest *in, struct ingest_source *s, const struct nev_ioctl *e,
	const uint8_t *args, uint32_t process, struct open_span *o)
{
	struct item *i = new_item(in, e, args, process, ITEM_STOP);
	struct open_span known = *o;
	int rc = 0;

	if (!i)
		return -ENOMEM;
	ingest_give_span(in, (uint64_t)(o - in->open_spans));
	map64_remove(&in->announced, call_key(e));
	i->pair = known.seq;
	i->flags = ITEM_ANNOUNCED;
	/* Both at one time: they are written one after the other, and the start must know. */
	if (e->start_ns + e->duration_ns <= known.start && known.start >= s->mark)
		rc = held_flags(in->held, known.item, known.generation, i->pair, ITEM_ZERO);
	return rc < 0 ? rc : put_stop(in, s, i, e, known.start);
}

static int take_call(struct ingest *in, struct ingest_source *s, const struct nev_ioctl *e,
	const uint8_t *args, uint32_t process)
{
	struct open_span *o = in->announced.count ? find_announced(in, e) : NULL;
	struct item *start, *stop;
	uint64_t begin;
	int rc = note_done(in, s, e);

	if (rc < 0)
		return rc;
	if (o)
		return end_announced(in, s, e, args, process, o);
	start = new_item(in, e, args, process, ITEM_START);
	stop = new_item(in, e, args, process, ITEM_STOP);
	if (!start || !stop)
		return -ENOMEM;
	ingest_place(in, s, start, e->start_ns);
	begin = start->start = start->time;
	start->pair = stop->pair = ++in->calls;
	start->flags = ITEM_COMPLETE;
	if (e->start_ns + e->duration_ns <= begin)
		start->flags |= ITEM_ZERO;
	rc = held_put(in->held, start);
	return rc < 0 ? rc : put_stop(in, s, stop, e, begin);
}

static bool call_valid(const struct ingest *in, const struct nev_ioctl *e)
{
	uint64_t end = e->start_ns + e->duration_ns;

	return end >= e->start_ns && clock_map_valid(&in->session->clock, e->start_ns) &&
	       clock_map_valid(&in->session->clock, end);
}

/* One record; args lie behind it. */
static int take_record(
	struct ingest *in, struct ingest_source *s, struct nev_ioctl *e, const uint8_t *args)
{
	bool done = e->hdr.type == NEV_IOCTL_DONE;
	int64_t process;
	int rc;

	in->session->read++;
	in->session->read_done += done;
	in->session->read_calls += done;
	sequence_note(in->cpus, &e->hdr);
	if (!done)
		e->duration_ns = 0;
	if (s->ended || !call_valid(in, e)) {
		in->session->invalid++;
		return 0;
	}
	if (done)
		refused_note(&in->session->refused, &in->session->modules,
			in->session->header.info.driver, e);
	process = process_of(in->processes, e->tgid);
	if (process < 0)
		return (int)process;
	if (done)
		failures_note(&in->processes->list[process].failures, e);
	rc = done ? take_call(in, s, e, args, (uint32_t)process)
		  : take_announcement(in, s, e, args, (uint32_t)process);
	in->processes->list[process].read++;
	return rc;
}

int ingest_kernel(struct ingest *in, const struct rec_frame *f, const uint8_t *payload)
{
	const uint8_t *p = payload, *end = payload + f->size;
	struct nev_ioctl e;
	int rc = ingest_join(in, f->source);

	while (rc == 0 && p < end) {
		size_t size;

		if ((size_t)(end - p) < sizeof(e))
			return session_invalid(in->session);
		memcpy(&e, p, sizeof(e));
		size = sizeof(e) + (size_t)e.hdr.nargs * sizeof(uint64_t);
		if (e.hdr.nargs > NEV_MAX_ARGS || (size_t)(end - p) < size ||
			(e.hdr.type != NEV_IOCTL_DONE && e.hdr.type != NEV_IOCTL_START))
			return session_invalid(
				in->session); /* where the next begins is not known */
		rc = take_record(in, in->by_number[f->source], &e, p + sizeof(e));
		p += size;
	}
	return rc;
}
