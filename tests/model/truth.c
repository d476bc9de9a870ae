/* SPDX-License-Identifier: Apache-2.0 */
/*
 * truth.c - the world of a seed: who ran when on which thread, and the records that this gives.
 *
 * Each thread is a cursor that moves on in time and leaves spans and calls behind; what it leaves
 * inside a span lies inside in truth too.  Records are emitted when it happens, except those of device
 * runs, which the runtime emits when it has waited for them.
 */
#include "tests/model/model.h"

#include <errno.h>
#include <string.h>

#include "runtime/trace/event_registry.h"
#include "vmlinux/ioctl_table.h"

#define MAX_DEPTH 4u
#define DEVICE_BRACKET_NS 40u /* half of the bracket in which a device clock is read */

enum { RNG_WORLD = 1 };

struct thread {
	struct model *m;
	struct rng *r;
	uint32_t process, source, tid, core;
	uint64_t now, end;
	uint64_t loose_until; /* end of the last span that it did not wait for */
	uint64_t death;	      /* ends inside what it does soon after this */
	bool dead;
};

/* A step of time: never zero where `some` says so. */
static uint64_t step(struct thread *t, bool some)
{
	uint64_t s = t->m->scale, n = rng_below(t->r, 4);

	if (model_has(t->m, WITH_TIES))
		return (n + (some && n == 0)) * s;
	return n * s + 1 + rng_below(t->r, (uint32_t)s);
}

static struct model_record *add_record(
	struct model *m, enum model_record_kind kind, uint32_t source, uint32_t index)
{
	struct model_record *r;

	if (m->record_count == MODEL_RECORDS)
		return NULL;
	r = &m->records[m->record_count];
	*r = (struct model_record){
		.kind = kind, .source = source, .index = index, .order = m->record_count++};
	return r;
}

static bool room(const struct model *m)
{
	return m->span_count + 16 < MODEL_SPANS && m->call_count + 16 < MODEL_CALLS &&
	       m->record_count + 64 < MODEL_RECORDS;
}

static uint64_t tracking_id(struct model_source *s, uint32_t nc)
{
	return (uint64_t)(nc == TRACE_NC_UNKNOWN ? 0 : nc) << 50 | ++s->next_id;
}

/* ---- spans ----------------------------------------------------------------------------------- */

static struct model_span *add_span(struct thread *t, uint32_t type, uint32_t nc)
{
	struct model_source *s = &t->m->sources[t->source];
	struct model_span *p = &t->m->spans[t->m->span_count++];

	*p = (struct model_span){
		.process = t->process,
		.source = t->source,
		.tid = t->tid,
		.stop_tid = t->tid,
		.type = type,
		.nc = nc,
		.from = t->now,
		.said_from = t->now,
		.id = tracking_id(s, nc),
		.execute = -1,
		.submit = -1,
		.status = rng_below(t->r, 4) ? 0 : 1 + rng_below(t->r, 9),
		.hardware = trace_event_info(type)->category == TRACE_HARDWARE,
	};
	return p;
}

static uint32_t index_of(const struct model *m, const struct model_span *p)
{
	return (uint32_t)(p - m->spans);
}

static void emit_start(struct thread *t, const struct model_span *p, uint64_t emit)
{
	struct model_record *r = add_record(
		t->m, p->instant ? RECORD_INSTANT : RECORD_START, t->source, index_of(t->m, p));

	if (r) {
		r->time = p->said_from;
		r->emit = emit;
	}
}

static void emit_stop(struct thread *t, const struct model_span *p, uint64_t emit)
{
	struct model_record *r = add_record(t->m, RECORD_STOP, t->source, index_of(t->m, p));

	if (r) {
		r->time = p->said_to;
		r->emit = emit;
	}
}

static struct model_span *begin(struct thread *t, uint32_t type)
{
	struct model_span *p = add_span(t, type, rng_one_in(t->r, 5) ? TRACE_NC_UNKNOWN : t->core);

	emit_start(t, p, t->now);
	return p;
}

static void finish(struct thread *t, struct model_span *p)
{
	if (t->dead) {
		p->open = true;
		return;
	}
	p->to = p->said_to = t->now;
	emit_stop(t, p, t->now);
}

/* The thread ends here, inside whatever it is doing. */
static bool dies(struct thread *t)
{
	if (!t->dead && t->now > t->death)
		t->dead = rng_one_in(t->r, 3);
	return t->dead;
}

static void instant(struct thread *t, uint32_t type)
{
	struct model_span *p = add_span(t, type, t->core);

	p->instant = true;
	p->to = p->said_to = p->from;
	if (p->hardware)
		p->tid = p->stop_tid = 0;
	emit_start(t, p, t->now);
}

/* ---- driver calls ----------------------------------------------------------------------------- */

static void announce(struct thread *t, struct model_call *c, uint64_t emit)
{
	struct model_record *r =
		add_record(t->m, RECORD_ANNOUNCE, MODEL_SOURCES, (uint32_t)(c - t->m->calls));

	if (r) {
		r->time = c->from;
		r->emit = emit;
		c->announcements++;
	}
}

static void call(struct thread *t)
{
	static const uint32_t requests[] = {
		NEURON_IOCTL_MEM_BUF_COPY64, NEURON_IOCTL_MEM_BUF_COPY64, NEURON_IOCTL_MEM_FREE};
	struct model *m = t->m;
	struct model_call *c = &m->calls[m->call_count++];
	struct model_record *r;
	bool announced = model_has(m, WITH_ANNOUNCE) && rng_one_in(t->r, 4);

	t->now += step(t, announced);
	*c = (struct model_call){
		.process = t->process,
		.tid = t->tid,
		.cpu = rng_below(t->r, MODEL_CPUS),
		.request = requests[rng_below(t->r, 3)],
		.from = t->now,
		.bytes = rng_below(t->r, 100000),
		.result = rng_one_in(t->r, 5) ? (rng_one_in(t->r, 2) ? -EACCES : -ENOENT) : 0,
	};
	if (dies(t)) {
		c->fate = CALL_OPEN;
		if (model_has(m, WITH_ANNOUNCE))
			for (unsigned n = rng_below(t->r, 3); n > 0; n--)
				announce(t, c, t->now + n * m->scale);
		return;
	}
	t->now += step(t, announced);
	c->to = t->now;
	for (unsigned n = announced ? 1 + rng_below(t->r, 2) : 0; n > 0; n--)
		announce(t, c, c->from + 1 + rng_below(t->r, (uint32_t)(c->to - c->from)));
	r = add_record(m, RECORD_DONE, MODEL_SOURCES, (uint32_t)(c - m->calls));
	if (r) {
		r->time = c->from;
		r->emit = c->to;
	}
	/* The reader may have seen the call open just before it took the record of its end. */
	if (announced && rng_one_in(t->r, 6))
		announce(t, c, c->to);
}

/* ---- executions -------------------------------------------------------------------------------- */

static uint64_t distance(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

static uint64_t farthest(uint64_t from, const struct model_span *p)
{
	uint64_t a = distance(from, p->from), b = distance(from, p->to);

	return a > b ? a : b;
}

/* What the device's clock shows. */
static uint64_t device_time(const struct model_source *s, uint32_t core, uint64_t t)
{
	int64_t drift = (int64_t)t / 1000 * s->clock_ppm[core] / 1000;

	return (uint64_t)((int64_t)t + s->clock_offset[core] + drift);
}

/* Moves a run that is to be impossible, as if the device had run then: `from` and `to` are what it says. */
static void misplace(struct thread *t, struct model_span *p, const struct model_span *execute)
{
	/* More than any bound. */
	uint64_t far = 300 + rng_below(t->r, 500) + (t->now - execute->from) / 1000;

	p->wrong = WRONG_ZERO + rng_below(t->r, 5);
	if (p->wrong == WRONG_BACKWARD && p->from == p->to)
		p->wrong = WRONG_ZERO;
	if (p->wrong == WRONG_BEFORE && execute->from <= far)
		p->wrong = WRONG_AFTER;
	if (p->wrong == WRONG_BACKWARD) {
		uint64_t swap = p->from;

		p->from = p->to;
		p->to = swap;
	} else if (p->wrong == WRONG_BEFORE) {
		p->to = execute->from - far + (p->to - p->from);
		p->from = execute->from - far;
	} else if (p->wrong == WRONG_AFTER) {
		p->to = t->now + far;
	}
}

static void forget_times(struct model_span *p)
{
	if (p->wrong == WRONG_ZERO)
		p->said_from = p->said_to = 0 - MODEL_BOOT;
	if (p->wrong == WRONG_ZERO_NC)
		p->nc_from = p->nc_to = 0;
}

static void device_run(
	struct thread *t, const struct model_span *execute, const struct model_span *submit)
{
	struct model_source *s = &t->m->sources[t->source];
	struct model_span *p = add_span(t, TRACE_DEVICE_EXEC, t->core), *sync;
	uint64_t from = submit->to + rng_below(t->r, (uint32_t)(t->now - submit->to) / 2 + 1);
	int64_t error = 0;

	p->from = from;
	p->to = from + rng_below(t->r, (uint32_t)(t->now - from) + 1);
	p->exec_id = s->next_exec;
	p->execute = (int)index_of(t->m, execute);
	p->submit = (int)index_of(t->m, submit);
	p->tid = p->stop_tid = 0;
	p->collected = t->now;
	if (model_has(t->m, WITH_IMPOSSIBLE) && rng_one_in(t->r, 2))
		misplace(t, p, execute);
	/* The runtime reads both clocks now and reckons back. */
	sync = add_span(t, TRACE_TIMESTAMP_SYNC, t->core);
	sync->instant = true;
	sync->to = sync->said_to = sync->from;
	sync->tid = sync->stop_tid = 0;
	if (model_has(t->m, WITH_DRIFT))
		error = (int64_t)rng_below(t->r, 2 * DEVICE_BRACKET_NS) - DEVICE_BRACKET_NS;
	sync->bound = model_has(t->m, WITH_DRIFT) ? DEVICE_BRACKET_NS : 0;
	uint64_t at = device_time(s, t->core, t->now) + (uint64_t)error;
	/* Half the bracket, and 100 ppm of the distance. */
	p->bound = model_has(t->m, WITH_DRIFT) ? DEVICE_BRACKET_NS + 2 + farthest(t->now, p) / 10000
					       : 0;
	p->nc_from = device_time(s, t->core, p->from);
	p->nc_to = device_time(s, t->core, p->to);
	sync->nc_from = at;
	p->said_from = t->now - (at - p->nc_from);
	p->said_to = t->now - (at - p->nc_to);
	forget_times(p);
	emit_start(t, sync, t->now);
	emit_start(t, p, t->now);
	emit_stop(t, p, t->now);
}

static void something(struct thread *t, unsigned depth, uint32_t inside);

static void some_calls(struct thread *t, unsigned most)
{
	for (unsigned n = rng_below(t->r, most + 1); n > 0 && !t->dead && room(t->m); n--)
		call(t);
}

/* As the runtime does it: submit, wait, the device's run, the rest.  All of it names the core. */
static void execution(struct thread *t)
{
	struct model *m = t->m;
	struct model_source *s = &m->sources[t->source];
	struct model_span *execute, *submit, *wait, *core = NULL;

	execute = add_span(t, TRACE_EXECUTE_API, t->core);
	emit_start(t, execute, t->now);
	s->next_exec++;
	t->now += step(t, false);
	submit = add_span(t, TRACE_MODEL_SUBMIT, t->core);
	emit_start(t, submit, t->now);
	some_calls(t, 2);
	t->now += step(t, false);
	finish(t, submit);
	if (rng_one_in(t->r, 2) && !t->dead) {
		t->now += step(t, true);
		core = add_span(t, TRACE_EXEC_CORE, t->core);
		core->exec_id = s->next_exec;
		emit_start(t, core, t->now);
	}
	if (!t->dead) {
		t->now += step(t, true);
		wait = add_span(t, TRACE_EXEC_WAIT, t->core);
		wait->exec_id = s->next_exec;
		emit_start(t, wait, t->now);
		some_calls(t, 2);
		t->now += step(t, true) + step(t, true);
		dies(t);
		finish(t, wait);
		if (!t->dead)
			device_run(t, execute, submit);
	}
	t->now += step(t, true);
	if (core)
		finish(t, core);
	t->now += step(t, true);
	some_calls(t, 1);
	finish(t, execute);
}

/* ---- anything ----------------------------------------------------------------------------------- */

static const uint32_t plain_types[] = {TRACE_TENSOR_WRITE, TRACE_TENSOR_READ, TRACE_DMEM_BUF_COPYIN,
	TRACE_DMEM_BUF_COPYOUT, TRACE_GENERIC, TRACE_DMA_MEM_ALLOC, TRACE_MODEL_LOAD,
	TRACE_TENSOR_ALLOC};

#define PLAIN_TYPES (sizeof(plain_types) / sizeof(*plain_types))

/* `inside` has a bit per plain type that is running on the thread. */
static void plain(struct thread *t, unsigned depth, uint32_t inside)
{
	uint32_t k = rng_below(t->r, PLAIN_TYPES);
	struct model_span *p;

	while (!model_has(t->m, WITH_RECURSE) && inside >> k & 1)
		k = (k + 1) % PLAIN_TYPES;
	p = begin(t, plain_types[k]);
	t->now += step(t, false);
	for (unsigned n = rng_below(t->r, 4); n > 0 && !dies(t) && room(t->m); n--)
		something(t, depth + 1, inside | 1u << k);
	t->now += step(t, false);
	finish(t, p);
}

/* A span that the thread does not wait for: it crosses what comes next, or ends on another thread. */
static void loose(struct thread *t)
{
	struct model_span *p = begin(t, TRACE_POST_REQUEST);

	p->to = p->said_to = t->loose_until = t->now + (1 + rng_below(t->r, 12)) * t->m->scale;
	if (rng_one_in(t->r, 2)) {
		p->type = TRACE_TENSOR_BLOCK_WHILE_EXEC;
		p->stop_tid = t->tid ^ 1u;
	}
	emit_stop(t, p, p->to);
}

static void something(struct thread *t, unsigned depth, uint32_t inside)
{
	switch (rng_below(t->r, 10)) {
	case 0:
		instant(t, rng_one_in(t->r, 2) ? TRACE_GENERIC : TRACE_HW_NOTIFY);
		break;
	case 1:
		if (model_has(t->m, WITH_CROSS) &&
			(t->now >= t->loose_until || model_has(t->m, WITH_RECURSE))) {
			loose(t);
			break;
		}
		/* fall through */
	case 2:
	case 3:
		call(t);
		break;
	case 4:
	case 5:
		if (depth < 2) {
			execution(t);
			break;
		}
		/* fall through */
	default:
		if (depth < MAX_DEPTH)
			plain(t, depth, inside);
		else
			call(t);
	}
}

static void run_thread(struct thread *t)
{
	while (t->now < t->end && !dies(t) && room(t->m)) {
		something(t, 0, 0);
		t->now += step(t, true);
	}
}

/* ---- the world ----------------------------------------------------------------------------------- */

static void make_source(struct model *m, struct rng *r, uint32_t source)
{
	struct model_source *s = &m->sources[source];
	unsigned threads = 1 + rng_below(r, 3);
	uint64_t middle = s->begin + (s->end - s->begin) / 2;

	for (unsigned c = 0; c < MODEL_CORES; c++) {
		bool drift = model_has(m, WITH_DRIFT);

		s->clock_offset[c] = drift ? (int64_t)rng_below(r, 1u << 30) : 0;
		s->clock_ppm[c] = drift ? (int32_t)rng_below(r, 161) - 80 : 0;
	}
	s->filtered = rng_below(r, 20);
	for (unsigned n = 0; n < threads; n++) {
		uint32_t core = (source * 2 + n) % MODEL_CORES;
		bool twice = model_has(m, WITH_REUSE) && rng_one_in(r, 2);
		struct thread t = {.m = m,
			.r = r,
			.process = s->process,
			.source = source,
			.tid = 1000 * (s->process + 1) + 2 * n +
			       (model_has(m, WITH_REUSE) ? 0 : 50 * source),
			.core = core,
			.now = s->begin + rng_below(r, 8) * m->scale,
			.end = twice ? middle : s->end,
			.death = UINT64_MAX};

		if (model_has(m, WITH_OPEN) && rng_one_in(r, 2))
			t.death = t.now + rng_below(r, (uint32_t)(t.end - t.now));

		run_thread(&t);
		if (!twice)
			continue;
		t.now = (t.now > middle ? t.now : middle) + m->scale * 20;
		t.end = s->end;
		t.dead = false;
		run_thread(&t);
	}
}

/* A process's runtimes follow each other: no thread id is used twice at a time. */
static void begin_after_others(struct model *m, uint32_t source)
{
	struct model_source *s = &m->sources[source];
	uint64_t length = s->end - s->begin;

	for (uint32_t i = 0; i < m->record_count; i++) {
		const struct model_record *r = &m->records[i];
		uint32_t process = r->source < MODEL_SOURCES ? m->spans[r->index].process
							     : m->calls[r->index].process;

		if (process == s->process && s->begin < r->emit + 20 * m->scale)
			s->begin = r->emit + 20 * m->scale;
	}
	if (s->end < s->begin)
		s->end = s->begin + length / 2;
}

static void make_processes(struct model *m, struct rng *r)
{
	m->process_count = model_has(m, WITH_PROCESSES) ? 2 + rng_below(r, 2) : 1;
	for (uint32_t p = 0; p < m->process_count; p++) {
		unsigned n = model_has(m, WITH_RUNTIMES) ? 1 + rng_below(r, 2) : 1;

		m->pids[p] = 4000 + 17 * p;
		for (unsigned i = 0; i < n && m->source_count < MODEL_SOURCES; i++) {
			uint64_t length = m->end / n;

			m->sources[m->source_count] = (struct model_source){.process = p,
				.number = REC_SOURCE_RUNTIME0 + m->source_count,
				.begin = i * length + (i ? 30 * m->scale : 1000),
				.end = (i + 1) * length - 30 * m->scale};
			m->source_count++;
		}
	}
}

/* Starts of announced calls do not coincide with others of their process: which record they are
 * ordered by is not said. */
static void separate_announced(struct model *m)
{
	for (uint32_t i = 0; i < m->call_count; i++) {
		struct model_call *c = &m->calls[i];

		for (uint32_t k = 0; c->announcements && k < m->call_count; k++)
			if (k != i && m->calls[k].process == c->process &&
				m->calls[k].from == c->from)
				c->announcements = 0;
	}
	for (uint32_t i = 0; i < m->record_count; i++) {
		struct model_record *r = &m->records[i];

		if (r->kind == RECORD_ANNOUNCE && !m->calls[r->index].announcements)
			r->lost = REC_C_KERNEL_UNTRACKED; /* never made */
	}
}

static void make_clocks(struct model *m, struct rng *r)
{
	int64_t step = 0;

	for (unsigned t = 0; t < m->tick_count && m->clock_count < MODEL_CLOCKS; t++) {
		if (t % 3)
			continue;
		if (t && model_has(m, WITH_STEPS) && rng_one_in(r, 3))
			step += (int64_t)(rng_below(r, 2000) + 5) *
				(rng_one_in(r, 2) ? 1000000 : -1000000);
		m->clocks[m->clock_count++] = (struct model_clock){t ? m->ticks[t] : 0, step};
	}
}

static void choose_option(struct model *m, struct rng *r)
{
	m->options = (struct merge_options){MERGE_KERNEL_HINT};
	if (model_has(m, WITH_OPTION))
		m->options.kernel_events =
			rng_one_in(r, 2) ? MERGE_KERNEL_EXTENDED : MERGE_KERNEL_OFF;
	/* So little that what waits goes to a file. */
	if (rng_one_in(r, 4))
		m->options.held_bytes = 4096u << rng_below(r, 5);
}

void model_make(struct model *m)
{
	struct rng world = rng_for(m->seed, RNG_WORLD);
	static const uint64_t scales[] = {10, 1000, 100000};

	m->scale = scales[rng_below(&world, 3)];
	m->end = (100 + 60 * m->size) * m->scale;
	m->tick_count = 6 + rng_below(&world, MODEL_TICKS - 16);
	make_processes(m, &world);
	for (uint32_t s = 0; s < m->source_count; s++) {
		begin_after_others(m, s);
		make_source(m, &world, s);
	}
	for (uint32_t i = 0; i < m->record_count; i++)
		if (m->records[i].emit >= m->end)
			m->end = m->records[i].emit + 1;
	for (unsigned t = 0; t < m->tick_count; t++)
		m->ticks[t] = m->end * (t + 1) / m->tick_count;
	make_clocks(m, &world);
	choose_option(m, &world);
	separate_announced(m);
	model_fates(m);
}
