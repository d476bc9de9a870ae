/* SPDX-License-Identifier: Apache-2.0 */
/*
 * summary.c - from what was gathered to what is printed: unions, gaps, totals, order.
 */
#include "agent/output/summary.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/output/sum.h"

/* ---- one core ------------------------------------------------------------------------------ */

static struct summary_gaps gaps_between(const struct intervals *busy)
{
	struct summary_gaps g = {0};

	for (size_t i = 1; i < busy->n; i++) {
		uint64_t ns = busy->list[i].from - busy->list[i - 1].to;

		g.n++;
		g.total_ns += ns;
		g.longest_ns = ns > g.longest_ns ? ns : g.longest_ns;
	}
	return g;
}

/* How much of `busy` is in a too, and in b when that is not NULL. */
static int common_total(const struct intervals *busy, const struct intervals *a,
	const struct intervals *b, uint64_t *ret)
{
	struct intervals x = {0};
	int rc = intervals_join(&x, a);

	if (rc == 0 && b)
		rc = intervals_join(&x, b);
	if (rc == 0)
		rc = intervals_common(&x, busy);
	*ret = intervals_total(&x);
	intervals_free(&x);
	return rc;
}

/* The time in which all physical cores ran. */
static int all_busy(const struct summary_core *c, uint64_t *ret)
{
	struct intervals x = {0};
	int rc = intervals_join(&x, &c->physical[0].ran);

	for (size_t i = 1; rc == 0 && i < c->physical_count; i++)
		rc = intervals_common(&x, &c->physical[i].ran);
	*ret = intervals_total(&x);
	intervals_free(&x);
	return rc;
}

static int compute_busy(struct summary_core *c, const struct intervals *busy)
{
	uint64_t neither = 0;
	int rc = common_total(busy, &c->collective, NULL, &c->collective_ns);

	if (rc == 0)
		rc = common_total(busy, &c->barrier, NULL, &c->barrier_ns);
	if (rc == 0)
		rc = common_total(busy, &c->collective, &c->barrier, &neither);
	c->busy_ns = intervals_total(busy);
	c->rest_ns = c->busy_ns - neither;
	c->gaps = gaps_between(busy);
	/* One that was never seen to run makes this nothing. */
	if (rc == 0 && c->physical_count && c->physical_count == c->logical_size)
		rc = all_busy(c, &c->all_busy_ns);
	return rc;
}

static int compare_physical(const void *a, const void *b)
{
	const struct summary_physical *x = a, *y = b;

	return (x->index > y->index) - (x->index < y->index);
}

static int compute_core(const struct summary *s, struct summary_core *c)
{
	struct intervals busy = {0};
	int rc = 0;

	intervals_finish(&c->collective);
	intervals_finish(&c->barrier);
	if (c->physical_count)
		qsort(c->physical, c->physical_count, sizeof(*c->physical), compare_physical);
	for (size_t i = 0; rc == 0 && i < c->physical_count; i++) {
		struct summary_physical *p = &c->physical[i];

		intervals_finish(&p->ran);
		c->runs += p->runs;
		sum_add(&c->sum_ns, p->run_ns);
		rc = intervals_append(&busy, &p->ran);
	}
	intervals_finish(&busy);
	c->logical_size = s->logical_size ? s->logical_size : 1;
	if (c->physical_count > c->logical_size)
		c->logical_size = (uint32_t)c->physical_count;
	if (rc == 0)
		rc = compute_busy(c, &busy);
	if (rc == 0)
		rc = summary_end_units(c);
	intervals_free(&busy);
	return rc;
}

/* ---- order --------------------------------------------------------------------------------- */

#define ORDER(x, y) (((x) > (y)) - ((x) < (y)))

struct ranked {
	const struct summary_process *process;
	size_t place;
};

static int compare_ranked(const void *a, const void *b)
{
	const struct summary_process *x = ((const struct ranked *)a)->process;
	const struct summary_process *y = ((const struct ranked *)b)->process;
	int rc = ORDER(x->pid, y->pid);

	return rc ? rc : strcmp(x->name, y->name);
}

/* Processes by pid; cores and models follow. */
static int sort_processes(struct summary *s)
{
	size_t n = s->process_count;
	struct ranked *ranked = calloc(n + 1, sizeof(*ranked));
	struct summary_process *sorted = calloc(n + 1, sizeof(*sorted));
	size_t *rank = calloc(n + 1, sizeof(*rank));
	int rc = ranked && sorted && rank ? 0 : -ENOMEM;

	for (size_t i = 0; rc == 0 && i < n; i++)
		ranked[i] = (struct ranked){&s->processes[i], i};
	if (rc == 0 && n) {
		qsort(ranked, n, sizeof(*ranked), compare_ranked);
		for (size_t i = 0; i < n; i++) {
			sorted[i] = *ranked[i].process;
			rank[ranked[i].place] = i;
		}
		for (size_t i = 0; i < s->core_count; i++)
			s->cores[i].process = rank[s->cores[i].process];
		for (size_t i = 0; i < s->model_count; i++)
			s->models[i].process = rank[s->models[i].process];
		memcpy(s->processes, sorted, n * sizeof(*sorted));
	}
	free(ranked);
	free(sorted);
	free(rank);
	return rc;
}

static int compare_cores(const void *a, const void *b)
{
	const struct summary_core *x = a, *y = b;

	return x->process != y->process ? ORDER(x->process, y->process) : ORDER(x->nc, y->nc);
}

static int compare_models(const void *a, const void *b)
{
	const struct summary_model *x = a, *y = b;
	int rc = ORDER(x->process, y->process);

	if (!rc)
		rc = strcmp(x->name, y->name);
	if (!rc)
		rc = ORDER(x->id, y->id);
	return rc ? rc : ORDER(x->on_device, y->on_device);
}

/* Those that took the most time first. */
static int compare_names(const void *a, const void *b)
{
	const struct summary_name *x = a, *y = b;
	int rc = ORDER(y->total_ns, x->total_ns);

	if (!rc)
		rc = ORDER(y->events.total, x->events.total);
	if (!rc)
		rc = ORDER(x->kind, y->kind);
	if (!rc)
		rc = memcmp(x->name, y->name, x->len < y->len ? x->len : y->len);
	return rc ? rc : ORDER(x->len, y->len);
}

static int compare_errors(const void *a, const void *b)
{
	const struct summary_error *x = a, *y = b;
	int rc = ORDER(y->n, x->n);

	return rc ? rc : strcmp(x->name, y->name);
}

static void sort(void *list, size_t n, size_t element, int (*compare)(const void *, const void *))
{
	if (n > 1)
		qsort(list, n, element, compare);
}

/* ---- the whole ----------------------------------------------------------------------------- */

static void add_process(struct summary *s, const struct summary_process *p)
{
	s->events.total += p->events.total;
	s->events.starts += p->events.starts;
	s->events.stops += p->events.stops;
	s->events.instants += p->events.instants;
	s->events.start_lost += p->events.start_lost;
	s->events.closed += p->events.closed;
	if (p->window.any)
		summary_widen(&s->window, p->window.first_ns, p->window.last_ns);
}

static bool cancelled(const struct summary *s)
{
	return s->cancel && *s->cancel;
}

int summary_compute(struct summary *s)
{
	int rc = sort_processes(s);

	for (size_t i = 0; rc == 0 && i < s->process_count; i++)
		add_process(s, &s->processes[i]);
	for (size_t i = 0; rc == 0 && i < s->core_count; i++)
		rc = cancelled(s) ? -ECANCELED : compute_core(s, &s->cores[i]);
	for (size_t i = 0; i < SUMMARY_SOURCES * EVENT_DIRECTIONS; i++) {
		struct summary_copies *c = &s->copies[0][0] + i;

		intervals_finish(&c->ran);
		c->wall_ns = intervals_total(&c->ran);
	}
	for (size_t i = 0; rc == 0 && i < s->name_count; i++) {
		rc = cancelled(s) ? -ECANCELED : 0;
		durations_sort(&s->names[i].durations);
		sort(s->names[i].errors, s->names[i].error_count, sizeof(*s->names[i].errors),
			compare_errors);
	}
	if (rc == 0)
		rc = summary_end_firsts(s);
	for (size_t i = 0; i < s->model_count; i++) {
		durations_sort(&s->models[i].first);
		durations_sort(&s->models[i].rest);
	}
	sort(s->cores, s->core_count, sizeof(*s->cores), compare_cores);
	sort(s->models, s->model_count, sizeof(*s->models), compare_models);
	sort(s->names, s->name_count, sizeof(*s->names), compare_names);
	return rc;
}

void summary_widen(struct summary_window *w, uint64_t first, uint64_t last)
{
	if (!w->any || first < w->first_ns)
		w->first_ns = first;
	if (!w->any || last > w->last_ns)
		w->last_ns = last;
	w->any = true;
}

uint64_t summary_length(const struct summary_window *w)
{
	return w->last_ns - w->first_ns;
}

uint64_t summary_open_count(const struct summary_events *e)
{
	return e->starts - e->closed;
}

bool summary_losses_known(const struct summary *s)
{
	for (size_t i = 0; i < s->capture_count; i++)
		if (*state_unknown(&s->captures[i].state))
			return false;
	return !s->without_info && !s->damaged && !s->left_out;
}

struct rec_damage summary_damage(const struct summary *s)
{
	struct rec_damage d = {0};

	for (size_t i = 0; i < s->capture_count; i++) {
		const struct rec_damage *of = &s->captures[i].state.damage;

		d.skipped_bytes += of->skipped_bytes;
		d.cut_bytes += of->cut_bytes;
		d.bad_frames += of->bad_frames;
	}
	return d;
}

uint64_t summary_goodput(const struct summary_copies *c)
{
	unsigned __int128 rate =
		c->wall_ns ? (unsigned __int128)c->bytes * 1000000000u / c->wall_ns : 0;

	return rate > UINT64_MAX ? UINT64_MAX : (uint64_t)rate;
}

const char *summary_source_name(enum summary_source s)
{
	static const char *const names[] = {"driver", "runtime"};

	return names[s];
}
