/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emit.c - the recorder of the model: drains rings tick by tick, writes frames, and is harmed.
 *
 * What a source's stream is - records, watermarks and counters in their order - follows from the seed
 * alone.  How it is cut into frames, and how the frames of different sources lie between each other,
 * is the weave, which must not matter.
 */
#include "tests/model/model.h"

#include <stdlib.h>
#include <string.h>

#include "bpf/neuron_event.h"
#include "runtime/record/header.h"
#include "runtime/trace/event_registry.h"

#define STREAM_ITEMS 4096u
#define KERNEL MODEL_SOURCES
#define KERNEL_ROWS 9u
#define RUNTIME_ROWS 8u

enum { RNG_STREAM = 11, RNG_WEAVE, RNG_INVALID, RNG_NAMES };

enum item_what { ITEM_RECORD, ITEM_WATERMARK, ITEM_COUNTERS, ITEM_NAME };

struct stream_item {
	enum item_what what;
	uint32_t record;
	unsigned tick;
	uint64_t watermark, name;
	struct rec_counter *rows;
	uint32_t row_count;
};

struct stream {
	struct stream_item items[STREAM_ITEMS];
	uint32_t count, next;
};

struct emitter {
	struct model *m;
	struct stream streams[MODEL_SOURCES + 1];
	bool drained[MODEL_RECORDS];
	bool told[MODEL_CALLS];	  /* their announcement was read */
	bool left[MODEL_SOURCES]; /* the last records stay in the rings */
};

/* ---- streams --------------------------------------------------------------------------------- */

/* The stop of a run with impossible times comes with its start. */
static bool is_joined(const struct model *m, const struct model_record *r)
{
	return r->source != KERNEL && r->kind == RECORD_START && m->spans[r->index].wrong;
}

static struct stream_item *add_item(struct stream *s, enum item_what what, unsigned tick)
{
	struct stream_item *i = &s->items[s->count++];

	*i = (struct stream_item){.what = what, .tick = tick};
	return i;
}

static uint32_t place_of(const struct model *m, const struct model_record *r)
{
	uint32_t nc = m->spans[r->index].nc;

	return nc == TRACE_NC_UNKNOWN ? MODEL_CORES : nc;
}

/* Takes what is in one ring, not always all of it. */
static void drain_ring(
	struct emitter *e, struct rng *r, uint32_t source, uint32_t place, unsigned tick, bool last)
{
	struct model *m = e->m;
	uint32_t most = last || rng_below(r, 4) ? MODEL_RECORDS : rng_below(r, 6);

	for (uint32_t i = 0; i < m->record_count && most > 0; i++) {
		const struct model_record *rec = &m->records[i];

		if (rec->source != source || e->drained[i] || rec->lost ||
			(source != KERNEL && place_of(m, rec) != place))
			continue;
		if (!last && rec->emit > m->ticks[tick])
			return;
		e->drained[i] = true;
		if (rec->kind == RECORD_ANNOUNCE)
			e->told[rec->index] = true;
		add_item(&e->streams[source], ITEM_RECORD, tick)->record = i;
		most -= !is_joined(m, rec);
	}
}

/* Nothing older will come, but for what breaks the word, and device runs, which the merge awaits. */
static uint64_t oldest_to_come(const struct emitter *e, uint32_t source)
{
	const struct model *m = e->m;
	uint64_t oldest = UINT64_MAX;

	for (uint32_t i = 0; i < m->record_count; i++) {
		const struct model_record *r = &m->records[i];
		uint64_t time = r->time;

		if (r->source != source || e->drained[i] || r->lost || r->late)
			continue;
		if (source != KERNEL && m->spans[r->index].type == TRACE_DEVICE_EXEC)
			continue;
		/* The reader waits for a call that is open until it has announced it. */
		if (source == KERNEL && e->told[r->index])
			time = r->kind == RECORD_DONE ? m->calls[r->index].to : r->emit;
		if (time < oldest)
			oldest = time;
	}
	return oldest;
}

/* Driver calls of different threads change places among those of one tick. */
static void shuffle(struct emitter *e, struct rng *r, uint32_t from)
{
	struct stream *s = &e->streams[KERNEL];
	const struct model *m = e->m;

	for (uint32_t n = 0; s->count > from + 1 && n < 2 * (s->count - from); n++) {
		uint32_t k = from + rng_below(r, s->count - from - 1);
		struct stream_item swap = s->items[k];

		if (m->calls[m->records[swap.record].index].tid ==
			m->calls[m->records[s->items[k + 1].record].index].tid)
			continue;
		s->items[k] = s->items[k + 1];
		s->items[k + 1] = swap;
	}
}

/* ---- counters --------------------------------------------------------------------------------- */

static void kernel_rows(const struct emitter *e, uint64_t now, struct rec_counter *rows)
{
	static const enum rec_counter_id lost[] = {
		REC_C_KERNEL_RING_FULL, REC_C_KERNEL_INFLIGHT_FULL, REC_C_KERNEL_EXIT_LOST};
	const struct model *m = e->m;
	uint64_t done = 0, received = 0, open = 0, by_cause[3] = {0}, ended = 0;

	for (uint32_t i = 0; i < m->record_count; i++) {
		const struct model_record *r = &m->records[i];

		if (r->kind != RECORD_DONE || r->emit > now)
			continue;
		ended++;
		done += !r->lost;
		received += e->drained[i];
		for (unsigned k = 0; k < 3; k++)
			by_cause[k] += r->lost == lost[k];
	}
	for (uint32_t i = 0; i < m->call_count; i++)
		open += m->calls[i].from <= now &&
			(m->calls[i].fate == CALL_OPEN || m->calls[i].to > now);
	rows[0] = (struct rec_counter){REC_C_KERNEL_ENTERED, 0, ended + open};
	rows[1] = (struct rec_counter){REC_C_KERNEL_DONE, 0, done};
	rows[2] = (struct rec_counter){REC_C_KERNEL_OPEN, 0, open};
	rows[3] = (struct rec_counter){REC_C_KERNEL_RECEIVED, 0, received};
	for (unsigned k = 0; k < 3; k++)
		rows[4 + k] = (struct rec_counter){lost[k], 0, by_cause[k]};
	rows[7] = (struct rec_counter){REC_C_KERNEL_MISSED, 0, 3};
	rows[8] = (struct rec_counter){REC_C_KERNEL_LEFT, 0, done - received};
}

static void runtime_rows(const struct emitter *e, uint32_t source, uint32_t place, uint64_t now,
	struct rec_counter *rows)
{
	static const enum rec_counter_id lost[] = {
		REC_C_RUNTIME_OVERWRITTEN, REC_C_RUNTIME_SLOT_BUSY, REC_C_RUNTIME_ABANDONED};
	const struct model *m = e->m;
	uint64_t emitted = 0, delivered = 0, by_cause[3] = {0};
	uint64_t filtered = m->sources[source].filtered;

	for (uint32_t i = 0; i < m->record_count; i++) {
		const struct model_record *r = &m->records[i];

		if (r->source != source || place_of(m, r) != place ||
			(r->emit > now && !e->drained[i]))
			continue;
		emitted++;
		delivered += e->drained[i];
		for (unsigned k = 0; k < 3; k++)
			by_cause[k] += r->lost == lost[k];
	}
	rows[0] = (struct rec_counter){REC_C_RUNTIME_EMITTED, place, emitted + filtered};
	rows[1] = (struct rec_counter){REC_C_RUNTIME_DELIVERED, place, delivered};
	rows[2] = (struct rec_counter){REC_C_RUNTIME_UNREAD, place,
		emitted - delivered - by_cause[0] - by_cause[1] - by_cause[2]};
	for (unsigned k = 0; k < 3; k++)
		rows[3 + k] = (struct rec_counter){lost[k], place, by_cause[k]};
	rows[6] = (struct rec_counter){REC_C_RUNTIME_FILTERED, place, filtered};
	rows[7] = (struct rec_counter){REC_C_NAMES_LOST, place, 1};
}

static void add_counters(struct emitter *e, uint32_t source, unsigned tick, uint64_t now)
{
	struct stream_item *i = add_item(&e->streams[source], ITEM_COUNTERS, tick);

	i->row_count = source == KERNEL ? KERNEL_ROWS : RUNTIME_ROWS * (MODEL_CORES + 1);
	i->rows = calloc(i->row_count, sizeof(*i->rows));
	if (!i->rows)
		abort();
	if (source == KERNEL)
		kernel_rows(e, now, i->rows);
	else
		for (uint32_t p = 0; p <= MODEL_CORES; p++)
			runtime_rows(e, source, p, now, i->rows + p * RUNTIME_ROWS);
}

/* ---- a source's stream ------------------------------------------------------------------------ */

static void drain_source(
	struct emitter *e, struct rng *r, uint32_t source, unsigned tick, bool last)
{
	uint32_t first = e->streams[source].count, start = rng_below(r, MODEL_CORES + 1);

	if (source == KERNEL) {
		drain_ring(e, r, source, 0, tick, last);
		if (model_has(e->m, WITH_SHUFFLE))
			shuffle(e, r, first);
		return;
	}
	for (uint32_t n = 0; n <= MODEL_CORES; n++)
		drain_ring(e, r, source, (start + n) % (MODEL_CORES + 1), tick, last);
}

/* Now and then a runtime tells a name, before or after the records that need it and the watermark. */
static void tell_name(
	struct emitter *e, struct rng *names, uint32_t source, unsigned tick, uint64_t *told)
{
	if (source != KERNEL && *told < MODEL_NAMES && rng_one_in(names, 12))
		add_item(&e->streams[source], ITEM_NAME, tick)->name = ++*told;
}

static void make_stream(struct emitter *e, struct rng *r, uint32_t source)
{
	const struct model *m = e->m;
	struct rng names = rng_for(m->seed + source, RNG_NAMES);
	uint64_t told = 0;

	for (unsigned tick = 0; tick < m->tick_count; tick++) {
		uint64_t now = m->ticks[tick], mark;
		bool last = tick + 1 == m->tick_count;

		/* A source that leaves records in its rings does not come to the end. */
		if (source != KERNEL && e->left[source] && tick > m->tick_count / 2)
			break;
		if (last)
			now = UINT64_MAX; /* what was held back is there by now */
		tell_name(e, &names, source, tick, &told);
		drain_source(e, r, source, tick, last);
		mark = oldest_to_come(e, source);
		if (mark > m->ticks[tick])
			mark = m->ticks[tick];
		if (rng_one_in(r, 6))
			mark -= mark / 4;
		tell_name(e, &names, source, tick, &told);
		if (rng_below(r, 4))
			add_item(&e->streams[source], ITEM_WATERMARK, tick)->watermark =
				MODEL_BOOT + mark;
		if (rng_one_in(r, 4) && !last)
			add_counters(e, source, tick, now);
	}
	add_counters(e, source, m->tick_count, UINT64_MAX);
}

/* ---- payloads ---------------------------------------------------------------------------------- */

static void put(uint8_t *at, uint64_t value, size_t width)
{
	memcpy(at, &value, width);
}

uint64_t model_name_id(const struct model_span *p)
{
	switch (p->type) {
	case TRACE_EXECUTE_API:
	case TRACE_POST_REQUEST:
	case TRACE_MODEL_LOAD:
		return 1 + p->id % MODEL_NAMES;
	default:
		return 0;
	}
}

static void fill_payload(struct trace_record *t, const struct model_span *p, bool stop)
{
	switch (p->type) {
	case TRACE_DEVICE_EXEC:
		put(t->data + (stop ? 0 : 8), stop ? p->nc_to : p->nc_from, 8);
		put(t->data + (stop ? 8 : 16), t->timestamp_ns, 8);
		if (!stop)
			put(t->data + 4, p->exec_id, 4);
		break;
	case TRACE_TIMESTAMP_SYNC:
		put(t->data + 8, p->nc_from, 8);
		put(t->data + 16, t->timestamp_ns, 8);
		put(t->data + 24, p->bound, 8);
		break;
	case TRACE_EXEC_WAIT:
	case TRACE_EXEC_CORE:
		put(t->data, stop ? 0 : p->exec_id, 8);
		break;
	case TRACE_MODEL_LOAD:
		put(t->data, stop ? model_name_id(p) : 0, 8);
		break;
	default:
		put(t->data, stop ? 0 : model_name_id(p), 8);
		break;
	}
}

static void runtime_bytes(const struct model *m, const struct model_record *r, uint8_t *out)
{
	const struct model_span *p = &m->spans[r->index];
	bool stop = r->kind == RECORD_STOP;
	struct rng rubbish = rng_for(m->seed + r->order, RNG_INVALID);
	struct trace_record t = {
		.trace_type = p->type,
		.status = p->status,
		.thread_id = stop ? p->stop_tid : p->tid,
		.id = r->seq,
		.tracking_id = p->id,
		.timestamp_ns = MODEL_BOOT + r->time,
		.phase = stop			     ? TRACE_STOP
			 : r->kind == RECORD_INSTANT ? TRACE_INSTANT
						     : TRACE_START,
		.nc_idx = p->nc,
		.nrta_seq_id = r->index + 1u,
		.has_nrta_seq_id = 1,
	};

	fill_payload(&t, p, stop);
	if (r->invalid)
		switch (rng_below(&rubbish, 4)) {
		case 0:
			/* An impossible time of a device is set aside, not dropped. */
			if (!p->hardware) {
				t.timestamp_ns = 0;
				break;
			}
			/* fall through */
		case 1:
			t.tracking_id = 0;
			break;
		case 2:
			t.phase = 3 + rng_below(&rubbish, 1000);
			break;
		default:
			t.nc_idx = TRACE_MAX_NC + rng_below(&rubbish, 1000);
		}
	memcpy(out, &t, sizeof(t));
}

static size_t kernel_bytes(const struct model *m, const struct model_record *r, uint8_t *out)
{
	const struct model_call *c = &m->calls[r->index];
	bool done = r->kind == RECORD_DONE;
	struct nev_ioctl e = {
		.hdr = {.time_ns = MODEL_BOOT + (done ? c->to : r->emit),
			.seq = done ? c->seq : 0,
			.cpu = done ? (uint16_t)c->cpu : 0xffff,
			.type = done ? NEV_IOCTL_DONE : NEV_IOCTL_START,
			.nargs = 4},
		.start_ns = r->invalid ? 0 : MODEL_BOOT + c->from,
		.duration_ns = done ? c->to - c->from : 0,
		.tgid = m->pids[c->process],
		.tid = c->tid,
		.request = c->request,
		.result = done ? c->result : 0,
		.device = 1,
		.fd = 7,
	};
	uint64_t args[4] = {r->index + 1u, c->bytes, 0, 1};

	memcpy(out, &e, sizeof(e));
	memcpy(out + sizeof(e), args, sizeof(args));
	return sizeof(e) + sizeof(args);
}

/* ---- frames ------------------------------------------------------------------------------------- */

static struct model_frame *add_frame(
	struct model *m, enum rec_type type, uint16_t source, const void *body, size_t size)
{
	struct model_frame *f = &m->frames[m->frame_count++];

	*f = (struct model_frame){
		.type = type, .source = source, .size = (uint32_t)size, .first = m->sequence_count};
	f->body = malloc(size + 1);
	if (!f->body || m->frame_count == MODEL_FRAMES)
		abort();
	if (size)
		memcpy(f->body, body, size);
	return f;
}

static void add_clock(struct model *m, const struct model_clock *c)
{
	struct clock_snapshot s = {
		.boot_before = MODEL_BOOT + c->at - 50,
		.realtime = MODEL_EPOCH + c->at + (uint64_t)c->step,
		.monotonic = MODEL_BOOT + c->at,
		.monotonic_raw = MODEL_BOOT + c->at,
		.boot_after = MODEL_BOOT + c->at + 50,
	};

	add_frame(m, REC_CLOCK, REC_SOURCE_RECORDER, &s, sizeof(s));
}

static void add_name(struct model *m, uint16_t source, uint64_t id)
{
	uint8_t body[sizeof(id) + 32];
	int len = snprintf((char *)body + sizeof(id), 32, MODEL_NAME_FORMAT, id);

	memcpy(body, &id, sizeof(id));
	add_frame(m, REC_NAME, source, body, sizeof(id) + (size_t)len);
}

static void preamble(struct model *m)
{
	static const char *const hooks[] = {"tracepoint:syscalls:sys_enter_ioctl", NULL};
	struct rec_header_info info = {.producer = "ntrace model",
		.instance_id = "i-model",
		.host = "model",
		.hooks = hooks,
		.registry_hash = trace_registry_hash(),
		.ioctl_hash = rec_ioctl_table_hash()};
	struct rec_process p = {.pid = m->pids[0], .comm = "model"};
	char *text = NULL;

	if (rec_header_text(&info, &text) < 0)
		abort();
	add_frame(m, REC_HEADER, REC_SOURCE_RECORDER, text, strlen(text));
	free(text);
	add_clock(m, &m->clocks[0]);
	add_frame(m, REC_PROCESS, REC_SOURCE_KERNEL, &p, sizeof(p));
	for (uint32_t s = 0; s < m->source_count; s++) {
		p.pid = m->pids[m->sources[s].process];
		add_frame(m, REC_PROCESS, (uint16_t)m->sources[s].number, &p, sizeof(p));
	}
	m->frames[m->frame_count - 1].flush = true;
}

static void add_records(struct model *m, const uint32_t *records, uint32_t count)
{
	const struct model_record *first = &m->records[records[0]];
	static uint8_t body[512 * sizeof(struct trace_record)];
	struct model_frame *f;
	size_t size = 0;

	for (uint32_t i = 0; i < count; i++) {
		const struct model_record *r = &m->records[records[i]];

		if (r->source == KERNEL) {
			size += kernel_bytes(m, r, body + size);
		} else {
			runtime_bytes(m, r, body + size);
			size += sizeof(struct trace_record);
		}
	}
	if (first->source == KERNEL) {
		f = add_frame(m, REC_KERNEL, REC_SOURCE_KERNEL, body, size);
	} else {
		struct rec_runtime head = {place_of(m, first), 0};

		f = add_frame(
			m, REC_RUNTIME, (uint16_t)m->sources[first->source].number, body, size);
		f->head_size = sizeof(head);
		memcpy(f->head, &head, sizeof(head));
	}
	f->count = count;
	for (uint32_t i = 0; i < count; i++)
		m->sequence[m->sequence_count++] = records[i];
}

/* Whole items of one tick; a batch is of one ring. */
static void weave_tick(struct emitter *e, struct rng *w, uint32_t source, unsigned tick)
{
	struct stream *s = &e->streams[source];
	struct model *m = e->m;
	uint16_t number =
		source == KERNEL ? REC_SOURCE_KERNEL : (uint16_t)m->sources[source].number;

	while (s->next < s->count && s->items[s->next].tick == tick) {
		const struct stream_item *i = &s->items[s->next];
		uint32_t batch[512], count = 0, most = 1 + rng_below(w, rng_one_in(w, 2) ? 4 : 500);

		for (; s->next < s->count && i->what == ITEM_RECORD &&
			(count < most || is_joined(m, &m->records[batch[count - 1]]));
			i++) {
			if (i->tick != tick || (count && source != KERNEL &&
						       place_of(m, &m->records[i->record]) !=
							       place_of(m, &m->records[batch[0]])))
				break;
			batch[count++] = i->record;
			s->next++;
		}
		if (count) {
			add_records(m, batch, count);
		} else if (i->what == ITEM_WATERMARK) {
			add_frame(m, REC_WATERMARK, number, &i->watermark, sizeof(i->watermark))
				->watermark = i->watermark;
			s->next++;
		} else if (i->what == ITEM_NAME) {
			add_name(m, number, i->name);
			s->next++;
		} else {
			add_frame(
				m, REC_COUNTERS, number, i->rows, i->row_count * sizeof(*i->rows));
			s->next++;
		}
		m->frames[m->frame_count - 1].flush = rng_one_in(w, 4);
	}
}

static void weave(struct emitter *e, struct rng *w)
{
	struct model *m = e->m;
	unsigned at[MODEL_SOURCES + 1] = {0}, clocks = 1;
	uint32_t sources = m->source_count + 1, waiting = sources;

	/* The last tick's counters stand at the end, see below. */
	while (waiting > 0) {
		uint32_t k = rng_below(w, sources), source = k == m->source_count ? KERNEL : k;

		if (at[k] == m->tick_count)
			continue;
		/* A snapshot comes before anything that happened later. */
		for (; clocks < m->clock_count && at[k] &&
			m->clocks[clocks].at <= m->ticks[at[k] - 1];
			clocks++)
			add_clock(m, &m->clocks[clocks]);
		/* It may come earlier than it must. */
		if (clocks < m->clock_count && rng_one_in(w, 4))
			add_clock(m, &m->clocks[clocks++]);
		weave_tick(e, w, source, at[k]);
		if (++at[k] == m->tick_count)
			waiting--;
	}
	for (; clocks < m->clock_count; clocks++)
		add_clock(m, &m->clocks[clocks]);
	m->frames[m->frame_count - 1].flush = true;
	m->last_frame = m->frame_count;
	for (uint32_t k = 0; k < sources; k++)
		weave_tick(e, w, k == m->source_count ? KERNEL : k, m->tick_count);
	add_frame(m, REC_END, REC_SOURCE_RECORDER, &(struct rec_end){0}, sizeof(struct rec_end));
}

void model_weave(struct model *m, uint64_t weave_seed)
{
	struct emitter *e = calloc(1, sizeof(*e));
	struct rng r = rng_for(m->seed, RNG_STREAM), w = rng_for(m->seed + weave_seed, RNG_WEAVE);

	if (!e)
		abort();
	e->m = m;
	model_free_frames(m);
	for (uint32_t s = 0; s < m->source_count; s++)
		e->left[s] = model_has(m, WITH_UNREAD) && rng_one_in(&r, 2);
	for (uint32_t s = 0; s < m->source_count; s++)
		make_stream(e, &r, s);
	make_stream(e, &r, KERNEL);
	preamble(m);
	weave(e, &w);
	for (unsigned s = 0; s <= MODEL_SOURCES; s++)
		for (uint32_t i = 0; i < e->streams[s].count; i++)
			free(e->streams[s].items[i].rows);
	free(e);
}

void model_free_frames(struct model *m)
{
	for (uint32_t i = 0; i < m->frame_count; i++)
		free(m->frames[i].body);
	m->frame_count = m->sequence_count = 0;
}
