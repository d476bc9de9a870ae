/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ntff_lists.c - sync points, runs and names of a device profile, sorted by core.
 */
#include "runtime/record/ntff_lists.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/record/session.h"

/* How far records of one ring may be out of order without the clock having begun anew. */
#define DISORDER_PS 1000000000ull
/* How many eras are looked at for a time, so that a file of many takes no longer. */
#define ERAS_AHEAD 8u

/* ---- keys --------------------------------------------------------------------------------- */

int ntff_keys_add(struct ntff_keys *k, uint64_t key)
{
	int rc = session_grow(&k->list, &k->cap, k->count + 1, sizeof(*k->list));

	if (rc == 0)
		k->list[k->count++] = key;
	return rc;
}

static int compare(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

static int by_number(const void *a, const void *b)
{
	return compare(*(const uint64_t *)a, *(const uint64_t *)b);
}

void ntff_keys_sort(struct ntff_keys *k)
{
	size_t n = 0;

	if (k->count > 0)
		qsort(k->list, k->count, sizeof(*k->list), by_number);
	for (size_t i = 0; i < k->count; i++)
		if (n == 0 || k->list[n - 1] != k->list[i])
			k->list[n++] = k->list[i];
	k->count = n;
}

void ntff_keys_free(struct ntff_keys *k)
{
	free(k->list);
	*k = (struct ntff_keys){0};
}

struct ntff_core *ntff_core_of(const struct ntff_profile *p, uint32_t nd_idx, uint32_t nc_idx)
{
	uint64_t key = ntff_core_key(nd_idx, nc_idx);
	uint32_t low = 0, high = p->core_count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		int order = compare(p->core_keys[middle], key);

		if (order == 0)
			return &p->cores[middle];
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

const Ntff__NdNodeInfo *ntff_node_graphs(const Ntff__NeffNodeInfo *node)
{
	return node->node_info_case == NTFF__NEFF_NODE_INFO__NODE_INFO_ND_NODE ? node->nd_node
									       : NULL;
}

/* ---- sync points -------------------------------------------------------------------------- */

static int by_core_and_time(const void *a, const void *b)
{
	const Ntff__NtffSyncPoint *const *x = a, *const *y = b;
	int order = compare(ntff_core_key((*x)->nd_idx, (*x)->nc_idx),
		ntff_core_key((*y)->nd_idx, (*y)->nc_idx));

	if (order == 0)
		order = compare((*x)->boot_ns, (*y)->boot_ns);
	return order ? order : compare((*x)->device_ps, (*y)->device_ps);
}

static struct device_point point_of(const Ntff__NtffSyncPoint *s)
{
	return (struct device_point){s->device_ps / 1000, s->boot_ns, s->bound_ns};
}

/* Lets the clock take the points of a core, which are `count` from c->points on; keeps those that it takes.  A clock that
 * has stood still or gone by leaps is in the same era: its times are still in order. */
static void make_eras(struct ntff_core *c, uint32_t count)
{
	struct device_clock clock = {0};
	uint64_t last_ps = 0;

	c->era_count = 1;
	for (uint32_t i = 0; i < count; i++) {
		const struct device_point point = point_of(c->points[i]);
		uint64_t total = clock.total, resets = clock.resets;
		struct ntff_era *e;

		device_clock_add(&clock, &point);
		if (clock.total == total)
			continue;
		if (clock.resets != resets && c->points[i]->device_ps < last_ps)
			c->eras[c->era_count++].first = c->point_count;
		last_ps = c->points[i]->device_ps;
		e = &c->eras[c->era_count - 1];
		if (clock.resets != resets)
			e->last = e->count;
		if (e->last == 0)
			e->steady = e->count + 1;
		if (clock.drift_limit > e->drift_limit)
			e->drift_limit = clock.drift_limit;
		e->high_ps = last_ps;
		if (e->count++ == 0)
			e->low_ps = e->high_ps;
		c->points[c->point_count++] = c->points[i];
	}
}

int ntff_list_points(struct ntff_profile *p)
{
	const Ntff__NtffInfo *m = p->info;
	size_t next = 0, eras = 0;

	p->points = calloc(m->n_sync_points + 1, sizeof(*p->points));
	p->eras = calloc(m->n_sync_points + p->core_count + 1, sizeof(*p->eras));
	if (!p->points || !p->eras)
		return -ENOMEM;
	for (size_t i = 0; i < m->n_sync_points; i++)
		p->points[i] = m->sync_points[i];
	qsort(p->points, m->n_sync_points, sizeof(*p->points), by_core_and_time);
	for (uint32_t i = 0; i < p->core_count; i++) {
		struct ntff_core *c = &p->cores[i];
		size_t first = next;

		while (next < m->n_sync_points && p->points[next]->nd_idx == c->nd_idx &&
			p->points[next]->nc_idx == c->nc_idx)
			next++;
		c->points = &p->points[first];
		c->eras = &p->eras[eras];
		make_eras(c, (uint32_t)(next - first));
		eras += c->era_count;
	}
	return 0;
}

static bool has(const struct ntff_core *c, uint32_t era, uint64_t ps)
{
	const struct ntff_era *e = &c->eras[era];

	return e->count > 0 && e->low_ps <= ps && ps <= e->high_ps;
}

/* What is at the time of the first point of an era that comes may be the end of what was before. */
static bool has_behind_its_first(const struct ntff_core *c, uint32_t era, uint64_t ps)
{
	return has(c, era, ps) && ps > c->eras[era].low_ps;
}

uint32_t ntff_era_after(
	const struct ntff_core *core, uint32_t era, uint64_t last_ps, uint64_t device_ps)
{
	bool back = device_ps < last_ps && last_ps - device_ps > DISORDER_PS;

	if (era + 1 >= core->era_count || (!back && has(core, era, device_ps)))
		return era;
	for (uint32_t i = era + 1; i < core->era_count && i <= era + ERAS_AHEAD; i++)
		if (has_behind_its_first(core, i, device_ps))
			return i;
	return back ? era + 1 : era;
}

/* ---- runs --------------------------------------------------------------------------------- */

struct placed_run {
	const Ntff__ExecutionInfo *run;
	uint32_t core, era;
};

static int by_core_and_start(const void *a, const void *b)
{
	const struct placed_run *x = a, *y = b;
	int order = compare((uint64_t)x->core << 32 | x->era, (uint64_t)y->core << 32 | y->era);

	return order ? order : compare(x->run->start_ps, y->run->start_ps);
}

/* Places the runs that began in the eras of their cores; returns how many. */
static size_t place_runs(const struct ntff_profile *p, struct placed_run *to)
{
	const Ntff__NtffInfo *m = p->info;
	size_t n = 0;

	for (size_t i = 0; i < m->n_execution_timeline; i++) {
		const Ntff__ExecutionInfo *r = m->execution_timeline[i];
		struct ntff_core *c = ntff_core_of(p, r->nd_idx, r->nc_idx);

		if (!r->started)
			continue;
		c->run_era = ntff_era_after(c, c->run_era, c->run_ps, r->start_ps);
		c->run_ps = r->start_ps;
		to[n++] = (struct placed_run){r, (uint32_t)(c - p->cores), c->run_era};
	}
	return n;
}

int ntff_list_runs(struct ntff_profile *p)
{
	size_t all = p->info->n_execution_timeline, n;
	struct placed_run *placed = calloc(all + 1, sizeof(*placed));

	p->runs = calloc(all + 1, sizeof(*p->runs));
	if (!placed || !p->runs) {
		free(placed);
		return -ENOMEM;
	}
	n = place_runs(p, placed);
	qsort(placed, n, sizeof(*placed), by_core_and_start);
	for (size_t i = 0; i < n; i++) {
		struct ntff_core *c = &p->cores[placed[i].core];
		struct ntff_era *e = &c->eras[placed[i].era];

		p->runs[i] = placed[i].run;
		if (!c->runs)
			c->runs = &p->runs[i];
		if (e->run_count++ == 0)
			e->first_run = c->run_count;
		c->run_count++;
	}
	free(placed);
	return 0;
}

const Ntff__ExecutionInfo *ntff_run_of(const struct ntff_core *core, const struct ntff_item *item)
{
	const struct ntff_era *e = &core->eras[item->era];
	uint32_t low = 0, high = e->run_count;
	const Ntff__ExecutionInfo **runs, *run;

	if (e->run_count == 0)
		return NULL;
	runs = core->runs + e->first_run;
	/* The first run that begins after the item; at the very time of a moment, it is the one before. */
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (runs[middle]->start_ps <= item->start_ps)
			low = middle + 1;
		else
			high = middle;
	}
	if (low > 1 && !item->span && runs[low - 1]->start_ps == item->start_ps &&
		runs[low - 2]->ended && runs[low - 2]->end_ps == item->start_ps)
		low--;
	if (low == 0)
		return NULL;
	run = runs[low - 1];
	return run->ended && run->end_ps < item->start_ps ? NULL : run;
}

/* ---- names -------------------------------------------------------------------------------- */

/* Models of one name may have different texts, so a number beside a uuid says nothing. */
static struct ntff_model model_of(const char *uuid, uint64_t number)
{
	return (struct ntff_model){uuid, *uuid ? 0 : number};
}

static int compare_models(const struct ntff_name *x, const struct ntff_name *y)
{
	int order = compare(x->core, y->core);

	if (order == 0)
		order = strcmp(x->model.uuid, y->model.uuid);
	return order ? order : compare(x->model.number, y->model.number);
}

static int compare_names(const struct ntff_name *x, const struct ntff_name *y)
{
	int order = compare_models(x, y);

	return order ? order : compare(x->index, y->index);
}

static int by_name(const void *a, const void *b)
{
	const struct ntff_name *x = a, *y = b;
	int order = compare_names(x, y);

	return order ? order : compare(x->node, y->node);
}

static void add_names(struct ntff_profile *p, size_t node, const Ntff__SubgraphInfo *g)
{
	const Ntff__NeffNodeInfo *n = p->info->neff_nodes[node];
	const struct ntff_core *c = ntff_core_of(p, g->nd_idx, g->nc_idx);

	for (size_t i = 0; c && i < g->n_instructions; i++)
		p->names[p->name_count++] =
			(struct ntff_name){model_of(n->uuid, n->model_id), (uint32_t)(c - p->cores),
				g->instructions[i]->index, node, g->instructions[i]};
}

/* Two nodes of one uuid have the same text.  Two of one number alone may not: takes their names away. */
static void drop_doubtful(struct ntff_profile *p)
{
	for (size_t first = 0, i = 0; i < p->name_count; first = i) {
		bool doubtful = false;

		for (; i < p->name_count && !compare_models(&p->names[first], &p->names[i]); i++)
			doubtful |= !*p->names[i].model.uuid &&
				    p->names[i].node != p->names[first].node;
		for (size_t k = first; doubtful && k < i; k++)
			p->names[k].instruction = NULL;
	}
}

static void each_graph(struct ntff_profile *p,
	void (*body)(struct ntff_profile *p, size_t node, const Ntff__SubgraphInfo *g))
{
	for (size_t i = 0; i < p->info->n_neff_nodes; i++) {
		const Ntff__NdNodeInfo *node = ntff_node_graphs(p->info->neff_nodes[i]);

		for (size_t k = 0; node && k < node->n_graphs; k++)
			body(p, i, node->graphs[k]);
	}
}

static void count_names(struct ntff_profile *p, size_t node, const Ntff__SubgraphInfo *g)
{
	(void)node;
	p->name_count += g->n_instructions;
}

int ntff_list_names(struct ntff_profile *p)
{
	each_graph(p, count_names);
	p->names = calloc(p->name_count + 1, sizeof(*p->names));
	if (!p->names)
		return -ENOMEM;
	p->name_count = 0;
	each_graph(p, add_names);
	qsort(p->names, p->name_count, sizeof(*p->names), by_name);
	drop_doubtful(p);
	return 0;
}

/* The first name that is not below. */
static size_t find_name(const struct ntff_profile *p, const struct ntff_name *wanted)
{
	size_t low = 0, high = p->name_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (compare_names(&p->names[middle], wanted) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* The one model that a core has names of. */
static bool only_model(const struct ntff_profile *p, uint32_t core, struct ntff_model *ret)
{
	size_t first = find_name(p, &(struct ntff_name){.model = {""}, .core = core});
	size_t behind = find_name(p, &(struct ntff_name){.model = {""}, .core = core + 1});

	if (first == behind || compare_models(&p->names[first], &p->names[behind - 1]) != 0)
		return false;
	*ret = p->names[first].model;
	return true;
}

const Ntff__NtffInstruction *ntff_instruction_of(const struct ntff_profile *p,
	const struct ntff_core *core, const Ntff__ExecutionInfo *run, const struct ntff_item *item)
{
	struct ntff_name wanted = {.core = (uint32_t)(core - p->cores), .index = item->id};
	size_t found;

	if (run)
		wanted.model = model_of(run->model_uuid, run->model_id);
	else if (!only_model(p, wanted.core, &wanted.model))
		return NULL;
	found = find_name(p, &wanted);
	if (found == p->name_count || compare_names(&p->names[found], &wanted) != 0)
		return NULL;
	return p->names[found].instruction;
}
