/* SPDX-License-Identifier: Apache-2.0 */
/*
 * submits.c - device runs to their submits, and the hold on the watermark.
 *
 * A device run carries its core and exec_id; a submit carries neither exec_id nor anything else that
 * the run repeats.  What ties them is the wait for the run: kbl_exec_wait has core and exec_id and lies
 * in the same nrt_execute as the submit.  So:
 *
 *	exact	 the run's (core, exec_id) is that of a wait, whose nrt_execute holds a submit to this
 *		 core before it; without a submit record, the nrt_execute itself
 *	inferred no such wait: the last submit to the core that began before the run ended
 *
 * A wait tells nothing when records of its core are missing between it and what it would point to: the
 * end of that execution and the beginning of the next one may be among them.
 *
 * exec_ids may come again in a long trace.  Of several waits that one counts which was going on when
 * the run began, or else the next; it is refused when its nrt_execute began after the run had ended.
 *
 * Waits and submits are kept in rings: the newest thousands, far more than can be under way at a time.
 * They are made when the first comes, because of some recordings' thousands of runtimes most submit nothing.  Threads are forgotten once the mark has passed the end of their execution.
 *
 * A submit inside an nrt_execute that has not ended holds the watermark of its source at its own time,
 * less what the core's clock may be wrong by, until its run has come or the nrt_execute has ended: the
 * run, which is emitted before the end of the execution, would else be too late for its place.
 */
#include "runtime/record/submits.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/record/session.h"
#include "runtime/trace/event_registry.h"

/* A device run's host time comes from another clock and may be off by a bad reading; exec_ids that come
 * again lie further apart. */
#define CLOCK_SLACK_NS 1000000000u
#define WAITS 16384u /* a power of two, as is FIRST_WAITS */
#define FIRST_WAITS 64u
#define MAX_CHAIN 64u
#define RECENT 16u /* submits per core */
#define PER_EXECUTE 8u
#define OPEN UINT64_MAX
#define MANY_THREADS 1024u

struct wait {
	uint64_t key; /* core and exec_id */
	uint64_t start, end;
	uint64_t pair;		/* of the wait itself */
	uint64_t link;		/* pair of the submit or execution, 0: none */
	uint64_t execute_start; /* of its nrt_execute */
	uint64_t link_told;	/* start of `link` as recorded */
	uint64_t end_told;	/* end as recorded */
	bool taken;		/* its run has come */
	uint64_t before;	/* number + 1 of the wait before in the same bucket */
	uint32_t tid;
};

/* How often records were missing: on one core, on all. */
struct gaps {
	uint64_t core, all;
};

struct submit {
	uint64_t pair, start, told;
	struct gaps gaps; /* so far */
	uint32_t core;
	bool pending;
};

struct thread {
	uint64_t execute, execute_start, execute_end; /* the last nrt_execute; pair 0: none */
	uint64_t execute_told;			      /* its start as recorded */
	uint32_t execute_core;
	struct gaps gaps;		    /* when it began */
	struct submit submits[PER_EXECUTE]; /* in it */
	unsigned count;
	uint32_t tid;
	uint64_t wait; /* number + 1 of the one that is going on */
};

struct recent {
	struct {
		uint64_t pair, start;
	} submits[RECENT];
	uint64_t count;
};

struct submits {
	struct wait *waits; /* ring, which grows up to WAITS before it is one */
	uint64_t *heads;    /* number + 1 of the newest wait in each bucket; NULL: no wait yet */
	uint64_t wait_count, wait_cap;
	struct thread *threads;
	size_t thread_count, thread_cap;
	size_t pending; /* submits of all threads */
	uint64_t passed;
	struct map64 tids;
	struct recent *recent; /* by core; NULL: no submit yet */
	uint64_t gaps[SUBMITS_CORES], all_gaps;
};

struct submits *submits_new(uint64_t seed)
{
	struct submits *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->tids.seed = seed;
	return s;
}

void submits_free(struct submits *s)
{
	if (!s)
		return;
	free(s->waits);
	free(s->heads);
	free(s->threads);
	free(s->recent);
	map64_free(&s->tids);
	free(s);
}

bool submits_wanted(uint32_t type)
{
	return type == TRACE_EXECUTE_API || type == TRACE_MODEL_SUBMIT || type == TRACE_EXEC_WAIT;
}

static struct thread *find_thread(const struct submits *s, uint32_t tid)
{
	const uint64_t *place = map64_find(&s->tids, (uint64_t)tid + 1);

	return place ? &s->threads[*place] : NULL;
}

static struct wait *wait_by_number(const struct submits *s, uint64_t number)
{
	return number && number + WAITS > s->wait_count ? &s->waits[(number - 1) % WAITS] : NULL;
}

/* Can a record that is still to come need what is known of this thread? */
static bool is_over(const struct submits *s, const struct thread *t)
{
	const struct wait *w = wait_by_number(s, t->wait);

	return (!t->execute || t->execute_end < s->passed) && (!w || w->end < s->passed);
}

static int forget_threads(struct submits *s)
{
	size_t kept = 0;

	for (size_t i = 0; i < s->thread_count; i++) {
		uint64_t key = (uint64_t)s->threads[i].tid + 1;

		if (is_over(s, &s->threads[i])) {
			map64_remove(&s->tids, key);
			continue;
		}
		s->threads[kept] = s->threads[i];
		*map64_find(&s->tids, key) = kept++;
	}
	s->thread_count = kept;
	/* Few that were forgotten are no reason to look again soon. */
	return kept > s->thread_cap / 2 ? session_grow(&s->threads, &s->thread_cap,
						  s->thread_cap + 1, sizeof(*s->threads))
					: 0;
}

static struct thread *thread_of(struct submits *s, uint32_t tid)
{
	struct thread *t = find_thread(s, tid);

	if (t)
		return t;
	if (s->thread_count == s->thread_cap && s->thread_count >= MANY_THREADS &&
		forget_threads(s) < 0)
		return NULL;
	if (session_grow(&s->threads, &s->thread_cap, s->thread_count + 1, sizeof(*s->threads)) <
			0 ||
		map64_put(&s->tids, (uint64_t)tid + 1, s->thread_count) < 0)
		return NULL;
	t = &s->threads[s->thread_count++];
	*t = (struct thread){.tid = tid};
	return t;
}

/* No run is awaited any more for this submit. */
static void stop_awaiting(struct submits *s, struct submit *u)
{
	s->pending -= u->pending;
	u->pending = false;
}

static bool inside_execute(const struct thread *t, uint64_t time)
{
	return t->execute && t->execute_start <= time && time <= t->execute_end;
}

static struct gaps gaps_of(const struct submits *s, uint32_t core)
{
	return (struct gaps){s->gaps[core], s->all_gaps};
}

/* Has everything come since?  What lies on different cores has no common sequence. */
static bool is_whole(
	const struct submits *s, const struct gaps *since, uint32_t from, uint32_t core)
{
	return from == core ? s->gaps[core] == since->core : s->all_gaps == since->all;
}

static int add_submit(struct submits *s, struct thread *t, uint32_t core, uint64_t pair,
	uint64_t time, uint64_t told)
{
	struct recent *r;

	if (!s->recent && !(s->recent = calloc(SUBMITS_CORES, sizeof(*s->recent))))
		return -ENOMEM;
	r = &s->recent[core];
	r->submits[r->count % RECENT].pair = pair;
	r->submits[r->count++ % RECENT].start = time;
	if (!inside_execute(t, time))
		return 0;
	if (t->count == PER_EXECUTE) {
		stop_awaiting(s, &t->submits[0]);
		memmove(&t->submits[0], &t->submits[1], --t->count * sizeof(t->submits[0]));
	}
	s->pending += t->execute_end == OPEN;
	t->submits[t->count++] = (struct submit){.pair = pair,
		.start = time,
		.told = told,
		.gaps = gaps_of(s, core),
		.core = core,
		.pending = t->execute_end == OPEN};
	return 0;
}

/* ---- waits -------------------------------------------------------------------------------- */

static uint64_t wait_key(uint32_t core, uint32_t exec_id)
{
	return (uint64_t)core << 32 | exec_id;
}

/* Room for one wait more, in place of the oldest when there are many. */
static int make_room(struct submits *s)
{
	size_t cap = s->wait_cap ? 2 * s->wait_cap : FIRST_WAITS;
	struct wait *more;

	if (!s->heads && !(s->heads = calloc(WAITS, sizeof(*s->heads))))
		return -ENOMEM;
	if (s->wait_count < s->wait_cap || s->wait_cap == WAITS)
		return 0;
	more = realloc(s->waits, cap * sizeof(*more));
	if (!more)
		return -ENOMEM;
	s->waits = more;
	s->wait_cap = cap;
	return 0;
}

static size_t bucket(uint64_t key)
{
	return (key * 0x9e3779b97f4a7c15ull) >> 50 & (WAITS - 1);
}

/* Number + 1 of the newest wait that may have this key, 0: none. */
static uint64_t newest_wait(const struct submits *s, uint64_t key)
{
	return s->heads ? s->heads[bucket(key)] : 0;
}

/* The submit to this core in the thread's nrt_execute before a time, or the nrt_execute; 0 when records
 * are missing since. */
static uint64_t link_of(const struct submits *s, const struct thread *t, uint32_t core,
	uint64_t before, uint64_t *ret_told)
{
	uint64_t best = t->execute, start = 0;

	*ret_told = t->execute_told;
	bool whole = is_whole(s, &t->gaps, t->execute_core, core);

	for (unsigned i = 0; i < t->count; i++) {
		const struct submit *u = &t->submits[i];

		if ((u->core == core || u->core == 0) && u->start <= before && u->start >= start) {
			best = u->pair;
			start = u->start;
			*ret_told = u->told;
			whole = is_whole(s, &u->gaps, u->core, core);
		}
	}
	return whole ? best : 0;
}

static int add_wait(struct submits *s, struct thread *t, uint32_t core, uint64_t pair,
	uint64_t time, uint32_t exec_id)
{
	uint64_t key = wait_key(core, exec_id), *b;
	struct wait *w;

	if (make_room(s) < 0)
		return -ENOMEM;
	w = &s->waits[s->wait_count % WAITS];
	b = &s->heads[bucket(key)];
	*w = (struct wait){.key = key, .start = time, .end = OPEN, .pair = pair, .before = *b};
	w->tid = t->tid;
	if (inside_execute(t, time)) {
		w->link = link_of(s, t, core, time, &w->link_told);
		w->execute_start = t->execute_start;
	}
	*b = t->wait = ++s->wait_count;
	return 0;
}

/* The wait for this run, or NULL. */
static struct wait *find_wait(const struct submits *s, const struct submits_run *run)
{
	uint64_t key = wait_key(run->core, run->exec_id), number = newest_wait(s, key);
	struct wait *during = NULL, *after = NULL, *w;

	for (unsigned i = 0; i < MAX_CHAIN && (w = wait_by_number(s, number)); i++) {
		number = w->before < number ? w->before : 0;
		if (w->key != key)
			continue;
		if (w->start > run->start)
			after = !after || w->start < after->start ? w : after;
		else
			during = !during || w->start > during->start ? w : during;
	}
	return during && during->end >= run->start ? during : after;
}

/* ---- what is told ------------------------------------------------------------------------- */

static void settle_all(struct submits *s, struct thread *t)
{
	for (unsigned i = 0; i < t->count; i++)
		stop_awaiting(s, &t->submits[i]);
}

static void begin_execute(struct submits *s, struct thread *t, uint32_t core, uint64_t pair,
	uint64_t time, uint64_t told)
{
	settle_all(s, t);
	*t = (struct thread){.execute = pair,
		.execute_start = time,
		.execute_end = OPEN,
		.execute_told = told,
		.execute_core = core,
		.gaps = gaps_of(s, core),
		.tid = t->tid};
}

int submits_start(struct submits *s, uint32_t type, uint32_t core, uint32_t tid, uint64_t pair,
	uint64_t time, uint64_t told, uint32_t exec_id)
{
	struct thread *t = thread_of(s, tid);

	if (!t)
		return -ENOMEM;
	if (type == TRACE_MODEL_SUBMIT)
		return add_submit(s, t, core, pair, time, told);
	if (type == TRACE_EXEC_WAIT)
		return add_wait(s, t, core, pair, time, exec_id);
	begin_execute(s, t, core, pair, time, told);
	return 0;
}

void submits_stop(
	struct submits *s, uint32_t type, uint32_t tid, uint64_t pair, uint64_t time, uint64_t told)
{
	struct thread *t = find_thread(s, tid);
	struct wait *w;

	if (!t)
		return;
	if (type == TRACE_EXECUTE_API && t->execute == pair) {
		t->execute_end = time;
		settle_all(s, t);
	}
	if (type == TRACE_EXEC_WAIT && (w = wait_by_number(s, t->wait)) && w->pair == pair) {
		w->end = time;
		w->end_told = told;
	}
}

void submits_gap(struct submits *s, uint32_t core)
{
	s->gaps[core]++;
	s->all_gaps++;
	for (size_t i = 0; s->pending && i < s->thread_count; i++)
		for (unsigned k = 0; k < s->threads[i].count; k++)
			if (s->threads[i].submits[k].core == core)
				stop_awaiting(s, &s->threads[i].submits[k]);
}

/* The run that this wait is for has come. */
static void settle(struct submits *s, const struct wait *w)
{
	struct thread *t = find_thread(s, w->tid);

	for (unsigned i = 0; t && i < t->count; i++)
		if (t->submits[i].pair == w->link)
			stop_awaiting(s, &t->submits[i]);
}

static bool fits(const struct wait *w, const struct submits_run *run)
{
	return w && w->link && w->execute_start <= run->end + CLOCK_SLACK_NS;
}

bool submits_exact(struct submits *s, const struct submits_run *run, uint64_t *ret_pair)
{
	const struct wait *w = find_wait(s, run);

	if (!fits(w, run))
		return false;
	*ret_pair = w->link;
	settle(s, w);
	return true;
}

/* The newest wait for a run of this name that has not come yet, or NULL. */
static struct wait *find_awaited(const struct submits *s, const struct submits_run *run)
{
	uint64_t key = wait_key(run->core, run->exec_id), number = newest_wait(s, key);
	struct wait *w;

	for (unsigned i = 0; i < MAX_CHAIN && (w = wait_by_number(s, number)); i++) {
		number = w->before < number ? w->before : 0;
		if (w->key == key && !w->taken)
			return w;
	}
	return NULL;
}

bool submits_cause(
	struct submits *s, const struct submits_run *run, bool possible, struct submits_cause *ret)
{
	struct wait *w = possible ? find_wait(s, run) : NULL;

	/* By its times it belongs to none; by its name it may. */
	if (!fits(w, run))
		w = find_awaited(s, run);
	if (!w)
		return false;
	w->taken = true;
	settle(s, w);
	*ret = (struct submits_cause){.pair = w->link,
		.start = w->link_told,
		.collected = w->end == OPEN ? 0 : w->end_told};
	return true;
}

bool submits_inferred(const struct submits *s, const struct submits_run *run, uint64_t *ret_pair)
{
	const struct recent *r = s->recent ? &s->recent[run->core] : NULL;
	uint64_t start = 0, n = !r ? 0 : r->count < RECENT ? r->count : RECENT;
	bool found = false;

	for (uint64_t i = 0; i < n; i++) {
		if (r->submits[i].start > run->end || r->submits[i].start < start)
			continue;
		start = r->submits[i].start;
		*ret_pair = r->submits[i].pair;
		found = true;
	}
	return found;
}

uint64_t submits_hold(const struct submits *s, submits_slack_fn slack, const void *ctx)
{
	uint64_t oldest = UINT64_MAX;

	for (size_t i = 0; s->pending && i < s->thread_count; i++)
		for (unsigned k = 0; k < s->threads[i].count; k++) {
			const struct submit *u = &s->threads[i].submits[k];
			uint64_t less = u->pending ? slack(ctx, u->core, u->start) : 0;
			uint64_t from = u->start > less ? u->start - less : 0;

			if (u->pending && from < oldest)
				oldest = from;
		}
	return oldest;
}

void submits_passed(struct submits *s, uint64_t mark)
{
	s->passed = mark;
}

size_t submits_threads(const struct submits *s)
{
	return s->thread_count;
}
