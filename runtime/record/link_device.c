/* SPDX-License-Identifier: Apache-2.0 */
/*
 * link_device.c - which submit started which device run.
 *
 * A device run carries its core and exec_id; a submit carries neither exec_id nor anything else
 * that the run repeats.  What ties them is the wait for the run: kbl_exec_wait has core and exec_id
 * and lies in the same nrt_execute as the submit.  So:
 *
 *	exact	 the run's (core, exec_id) is that of a wait, whose nrt_execute holds a submit to
 *		 this core before it; without a submit record, the nrt_execute itself
 *	inferred no such wait: the last submit to the core that began before the run ended
 *
 * exec_ids may come again in a long trace.  Of several waits that one counts which was going on
 * when the run began, or else the next; it is refused when its nrt_execute began more than a second
 * after the run had ended (the run's host time comes from another clock and may be off).
 */
#include "runtime/record/link_device.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/file.h"
#include "runtime/trace/event_registry.h"

#define CLOCK_SLACK_NS 1000000000u

/* A wait, keyed by (core, exec_id), or a submit, keyed by (nrt_execute) and by core. */
struct call_key {
	uint64_t key;
	uint64_t start;
	uint32_t item;
};

struct keys {
	struct call_key *k;
	size_t count;
};

struct linker {
	struct timeline *t;
	struct keys waits;	/* by core and exec_id */
	struct keys in_execute; /* submits by the nrt_execute around them */
	struct keys on_core;	/* submits by core */
};

static bool find_exec_id(const struct timeline *t, const struct item *i, uint32_t *ret)
{
	const struct trace_event_info *info = trace_event_info(i->type);

	for (uint32_t n = 0; info && n < info->field_count; n++) {
		const struct trace_field *f = &info->fields[n];

		if (f->phase == TRACE_START && !strcmp(f->key, "exec_id")) {
			*ret = (uint32_t)trace_field_value(f, item_record(t, i)->data);
			return true;
		}
	}
	return false;
}

static uint64_t core_key(const struct timeline *t, const struct item *i, uint32_t exec_id)
{
	return (uint64_t)item_record(t, i)->nc_idx << 32 | exec_id;
}

/* The outermost nrt_execute around an item. */
static uint32_t execute_around(const struct timeline *t, const struct item *i)
{
	uint32_t found = NO_ITEM;

	for (uint32_t at = i->parent; at != NO_ITEM; at = t->items[at].parent)
		if (t->items[at].side == SIDE_RUNTIME && t->items[at].type == TRACE_EXECUTE_API)
			found = at;
	return found;
}

static int compare_keys(const void *a, const void *b)
{
	const struct call_key *x = a, *y = b;

	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->item < y->item ? -1 : x->item > y->item;
}

/* First place whose (key, start) is not below the given one. */
static size_t lower(const struct keys *s, uint64_t key, uint64_t start)
{
	size_t lo = 0, hi = s->count;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (s->k[mid].key < key || (s->k[mid].key == key && s->k[mid].start < start))
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static void add_key(struct keys *s, uint64_t key, const struct item *i, uint32_t index)
{
	s->k[s->count++] = (struct call_key){key, i->start, index};
}

static int collect(struct linker *ln)
{
	struct timeline *t = ln->t;
	struct keys *all[] = {&ln->waits, &ln->in_execute, &ln->on_core};
	size_t counts[3] = {0};
	uint32_t exec_id;

	for (uint32_t n = 0; n < t->item_count; n++) {
		const struct item *i = &t->items[n];
		if (i->side != SIDE_RUNTIME || i->kind > ITEM_OPEN)
			continue;
		counts[0] += i->type == TRACE_EXEC_WAIT;
		counts[1] += i->type == TRACE_MODEL_SUBMIT;
	}
	counts[2] = counts[1];
	for (size_t n = 0; n < 3; n++) {
		all[n]->k = calloc(counts[n] + 1, sizeof(*all[n]->k));
		if (!all[n]->k)
			return -ENOMEM;
	}
	for (uint32_t n = 0; n < t->item_count; n++) {
		const struct item *i = &t->items[n];
		if (i->side != SIDE_RUNTIME || i->kind > ITEM_OPEN)
			continue;
		if (i->type == TRACE_EXEC_WAIT && find_exec_id(t, i, &exec_id))
			add_key(&ln->waits, core_key(t, i, exec_id), i, n);
		if (i->type == TRACE_MODEL_SUBMIT) {
			add_key(&ln->in_execute, execute_around(t, i), i, n);
			add_key(&ln->on_core, item_record(t, i)->nc_idx, i, n);
		}
	}
	for (size_t n = 0; n < 3; n++)
		qsort(all[n]->k, all[n]->count, sizeof(*all[n]->k), compare_keys);
	return 0;
}

/* The wait for this device run, or NO_ITEM. */
static uint32_t find_wait(const struct linker *ln, const struct item *run)
{
	const struct timeline *t = ln->t;
	uint32_t exec_id;
	uint64_t key;
	size_t n;

	if (!find_exec_id(t, run, &exec_id))
		return NO_ITEM;
	key = core_key(t, run, exec_id);
	n = lower(&ln->waits, key, run->start + 1);
	if (n > 0 && ln->waits.k[n - 1].key == key) {
		const struct item *wait = &t->items[ln->waits.k[n - 1].item];

		if (wait->kind == ITEM_OPEN || wait->end >= run->start)
			return ln->waits.k[n - 1].item;
	}
	return n < ln->waits.count && ln->waits.k[n].key == key ? ln->waits.k[n].item : NO_ITEM;
}

/* The last submit to this core in an nrt_execute before a time; the nrt_execute when there is
 * none. */
static uint32_t submit_in(
	const struct linker *ln, uint32_t execute, uint32_t nc_idx, uint64_t before)
{
	const struct timeline *t = ln->t;

	for (size_t n = lower(&ln->in_execute, execute, before + 1); n-- > 0;) {
		const struct call_key *k = &ln->in_execute.k[n];

		if (k->key != execute)
			break;
		uint32_t nc = item_record(t, &t->items[k->item])->nc_idx;
		if (nc == nc_idx || nc == TRACE_NC_UNKNOWN)
			return k->item;
	}
	return execute;
}

static void link_run(const struct linker *ln, struct item *run)
{
	const struct timeline *t = ln->t;
	uint32_t nc = item_record(t, run)->nc_idx, wait = find_wait(ln, run);
	uint32_t execute = wait == NO_ITEM ? NO_ITEM : execute_around(t, &t->items[wait]);
	size_t n;

	if (execute != NO_ITEM && t->items[execute].start <= run->end + CLOCK_SLACK_NS) {
		run->link = submit_in(ln, execute, nc, t->items[wait].start);
		run->link_exact = true;
		return;
	}
	n = lower(&ln->on_core, nc, run->end + 1);
	if (n > 0 && ln->on_core.k[n - 1].key == nc)
		run->link = ln->on_core.k[n - 1].item;
}

int link_device_runs(struct timeline *t)
{
	struct linker ln = {.t = t};
	int rc = t->device_runs ? collect(&ln) : 0;

	for (size_t n = 0; rc == 0 && t->device_runs && n < t->item_count; n++)
		if (t->items[n].type == TRACE_DEVICE_EXEC && t->items[n].kind == ITEM_SPAN &&
			t->items[n].side == SIDE_RUNTIME)
			link_run(&ln, &t->items[n]);
	free(ln.waits.k);
	free(ln.in_execute.k);
	free(ln.on_core.k);
	return rc;
}
