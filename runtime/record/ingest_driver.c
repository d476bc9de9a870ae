/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ingest_driver.c - records of the driver's DMA path become items.
 *
 * Start and stop are records of their own, told to belong together by kind, queue (or thread, or
 * device) and sequence (dma_kinds.def).  They come through one ring, a start before its stop, so a stop
 * that finds no start has lost it and is an instant.  A sequence begins anew when the driver is loaded
 * again: a start whose key is still open is another span, and the older one has lost its stop.
 *
 * A span is of the process and queue of its start, whoever saw its end.
 */
#include "runtime/record/ingest.h"

#include <errno.h>

#include "runtime/record/records.h"

static uint64_t hash_of(const struct ingest *in, const struct records_dma_key *k)
{
	return session_key(in->session, k->who, k->id);
}

/* The span that is open under a key, or NULL. */
static struct open_span *find_open(struct ingest *in, const struct records_dma_key *k)
{
	uint64_t *place = map64_find(&in->dma, hash_of(in, k));
	struct open_span *o = place ? &in->open_spans[*place] : NULL;

	return o && o->exec_id == k->who && o->told == k->id ? o : NULL;
}

static struct item *new_item(
	struct ingest *in, struct ingest_source *s, const struct nev_dma *d, uint32_t process)
{
	struct item *i = held_item(in->held);

	if (!i)
		return NULL;
	*i = (struct item){
		.seq = d->hdr.seq,
		.process = process,
		.tid = d->tid,
		.place = d->hdr.cpu,
		.kind = ITEM_INSTANT,
		.side = SIDE_DMA,
		.dma = {.call = d->call_ns,
			.bytes = d->bytes,
			.sequence = d->sequence,
			.tx = d->tx,
			.rx = d->rx,
			.outcome = d->result,
			.nd = d->device,
			.engine = d->engine,
			.queue = d->queue,
			.dma_kind = d->kind,
			.dma_flags = d->flags},
	};
	ingest_place(in, s, i, d->hdr.time_ns);
	return i;
}

static int take_start(struct ingest *in, struct item *i, const struct records_dma_key *k)
{
	uint64_t hash = hash_of(in, k), *older = map64_find(&in->dma, hash);
	uint64_t index = older ? *older : ingest_take_span(in);
	int rc;

	if (index == UINT64_MAX)
		return -ENOMEM;
	i->kind = ITEM_START;
	i->start = i->time;
	i->pair = ++in->calls;
	in->open_spans[index] = (struct open_span){.start = i->time,
		.told = k->id,
		.exec_id = k->who,
		.item = i,
		.generation = in->held->generation,
		.seq = i->pair,
		.link = i->process,
		.tid = i->tid};
	rc = held_put(in->held, i);
	return rc < 0 || older ? rc : map64_put(&in->dma, hash, index);
}

static int take_stop(struct ingest *in, struct ingest_source *s, struct item *i,
	const struct records_dma_key *k, struct open_span *o)
{
	const struct open_span known = *o;
	enum item_flags flags = ITEM_COMPLETE;

	ingest_give_span(in, (uint64_t)(o - in->open_spans));
	map64_remove(&in->dma, hash_of(in, k));
	i->kind = ITEM_STOP;
	i->pair = known.seq;
	i->start = known.start;
	if (i->time < known.start)
		i->time = known.start;
	if (i->time == known.start) {
		flags |= ITEM_ZERO;
		i->flags |= ITEM_ZERO;
	}
	if (i->tid != known.tid) {
		flags |= ITEM_MOVED;
		i->flags |= ITEM_MOVED;
	}
	if (known.start >= s->mark) {
		int rc = held_flags(in->held, known.item, known.generation, i->pair, flags);

		if (rc < 0)
			return rc;
	}
	return held_put(in->held, i);
}

static int take_record(struct ingest *in, struct ingest_source *s, const struct nev_dma *d)
{
	struct records_dma_key key = {0};
	bool is_span = records_dma_span(d, &key);
	struct open_span *o = is_span && d->hdr.type == NEV_DMA_STOP ? find_open(in, &key) : NULL;
	int64_t process = o ? (int64_t)o->link : process_of(in->processes, d->tgid);
	struct item *i;

	if (process < 0)
		return (int)process;
	i = new_item(in, s, d, (uint32_t)process);
	if (!i)
		return -ENOMEM;
	in->processes->list[process].read++;
	if (o)
		return take_stop(in, s, i, &key, o);
	if (is_span && d->hdr.type == NEV_DMA_START)
		return take_start(in, i, &key);
	i->pair = ++in->calls;
	if (d->hdr.type == NEV_DMA_STOP)
		i->kind = ITEM_LOST;
	return held_put(in->held, i);
}

int ingest_driver(struct ingest *in, const struct rec_frame *f, const uint8_t *payload)
{
	size_t count = session_rows(in->session, f->size, sizeof(struct nev_dma));
	int rc = ingest_join(in, f->source);

	in->session->read += count;
	in->session->read_done += count;
	in->session->read_dma += count;
	for (size_t n = 0; rc == 0 && n < count; n++) {
		struct ingest_source *s = in->by_number[f->source];
		struct nev_dma d;

		records_dma(payload, f->size, n * sizeof(d), &d);
		sequence_note(in->cpus, &d.hdr);
		if (s->ended || !records_dma_valid(&d) ||
			!clock_map_valid(&in->session->clock, d.hdr.time_ns)) {
			in->session->invalid++;
			continue;
		}
		rc = take_record(in, s, &d);
	}
	return rc;
}
