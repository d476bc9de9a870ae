/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inspect_runs.c - see inspect_runs.h.
 *
 * The cursor passes over all that was before when a wanted run begins, so what there is when it
 * ends is that run; as in continuous.c.  For first executions it is there only while one is to
 * come, so that the core's rings cost nothing afterwards; for those that fail it stays, for nobody
 * knows before which one will.
 */
#include "runtime/profile/inspect_runs.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/log/log.h"

#define TAG "NRT"
#define MAX_FILES 16u /* of a model on a core: one that always fails must not fill the disk */

struct inspect_model {
	struct inspect_model *next;
	uint64_t digest[2];
	uint32_t files;
	enum { NOT_PROFILED, WAITING, RUNNING, COMPLETE } first;
};

/* ---- models ------------------------------------------------------------------------------- */

static struct inspect_model *find(const struct inspect_runs *r, const struct nrt_model *m)
{
	struct inspect_model *found = r->models;

	while (found && memcmp(found->digest, m->digest, sizeof(m->digest)) != 0)
		found = found->next;
	return found;
}

/* NULL: no memory. */
static struct inspect_model *get(struct inspect_runs *r, const struct nrt_model *m)
{
	struct inspect_model *found = find(r, m);

	if (found)
		return found;
	found = calloc(1, sizeof(*found));
	if (!found)
		return NULL;
	memcpy(found->digest, m->digest, sizeof(found->digest));
	found->next = r->models;
	r->models = found;
	return found;
}

static bool any_waiting(const struct inspect_runs *r)
{
	for (const struct inspect_model *m = r->models; m; m = m->next)
		if (m->first == WAITING)
			return true;
	return false;
}

/* ---- the cursor --------------------------------------------------------------------------- */

static void subscribe(struct inspect_runs *r, uint32_t nc)
{
	NRT_STATUS status;

	if (r->cursor || r->refused)
		return;
	status = profile_subscribe(nc, &r->cursor);
	if (!status)
		return;
	log_warn(TAG, "Executions on NC %u are not profiled, status %u", nc, (unsigned)status);
	r->refused = true;
}

void inspect_runs_load(struct inspect_runs *r, uint32_t nc, uint32_t wants)
{
	if (wants & INSPECT_WANT_FAILED)
		subscribe(r, nc);
}

void inspect_runs_before(struct inspect_runs *r, const struct nrt_model *m, uint32_t wants)
{
	struct inspect_model *model = wants & INSPECT_WANT_FIRST ? get(r, m) : NULL;

	if (model && model->first == NOT_PROFILED)
		model->first = WAITING;
	if ((model && model->first == WAITING) || (wants & INSPECT_WANT_FAILED))
		subscribe(r, m->nc);
}

/* ---- a run -------------------------------------------------------------------------------- */

void inspect_runs_begin(struct inspect_runs *r, const struct nrt_model *m, uint32_t wants)
{
	struct inspect_model *model = find(r, m);

	r->is_first = r->cursor && model && model->first == WAITING;
	r->armed = r->is_first || (r->cursor && (wants & INSPECT_WANT_FAILED));
	if (r->is_first)
		model->first = RUNNING;
	if (r->armed)
		collector_skip(r->cursor);
}

/* The execution's number; 0: it has not begun on the device. */
static uint32_t exec_of(const struct collector_data *d, uint64_t number)
{
	for (uint32_t i = d->run_count; i > 0; i--)
		if (d->runs[i - 1].model_number == number)
			return d->runs[i - 1].exec_id;
	return 0;
}

static bool harvest(struct inspect_runs *r, struct nrt_model *m, uint32_t number)
{
	struct inspect_taken *t = calloc(1, sizeof(*t));

	if (!t)
		return false;
	profile_harvest(&t->harvest, r->cursor, m->nc);
	t->wish = (struct profile_wish){.nc = m->nc,
		.id = m->id,
		.model = m->number,
		.exec = exec_of(&t->harvest.data, m->number),
		.node = profile_node_of(m)};
	inspect_files_name(t->name, m->digest, m->nc, number);
	if (r->last)
		r->last->next = t;
	else
		r->taken = t;
	r->last = t;
	return true;
}

static void take_run(struct inspect_runs *r, struct nrt_model *m, struct inspect_model *model)
{
	bool taken = model && harvest(r, m, model->files + 1);

	if (taken && ++model->files == MAX_FILES)
		log_warn(TAG, "Model '%s' on NC %u has %u device profiles; no more are kept",
			m->desc.name, m->nc, MAX_FILES);
	if (!taken)
		log_error(TAG, "No memory for the device profile of model '%s' on NC %u",
			m->desc.name, m->nc);
	if (model && r->is_first)
		model->first = taken ? COMPLETE : NOT_PROFILED;
}

void inspect_runs_end(
	struct inspect_runs *r, struct nrt_model *m, NRT_STATUS status, uint32_t wants)
{
	bool failed = status && (wants & INSPECT_WANT_FAILED);
	struct inspect_model *model;

	if (!r->armed)
		return;
	model = failed ? get(r, m) : find(r, m);
	if (r->is_first || (failed && !(model && model->files == MAX_FILES)))
		take_run(r, m, model);
	r->armed = r->is_first = false;
	if (!(wants & INSPECT_WANT_FAILED) && !any_waiting(r))
		profile_unsubscribe(m->nc, &r->cursor);
}

/* ---- afterwards --------------------------------------------------------------------------- */

struct inspect_taken *inspect_runs_take(struct inspect_runs *r)
{
	struct inspect_taken *taken = r->taken;

	r->taken = r->last = NULL;
	return taken;
}

struct inspect_taken *inspect_taken_free(struct inspect_taken *t)
{
	struct inspect_taken *next = t->next;

	profile_free(t->profile);
	profile_harvest_drop(&t->harvest);
	profile_node_put(t->wish.node);
	free(t);
	return next;
}

void inspect_runs_drop(struct inspect_runs *r, uint32_t nc)
{
	while (r->taken)
		r->taken = inspect_taken_free(r->taken);
	while (r->models) {
		struct inspect_model *m = r->models;

		r->models = m->next;
		free(m);
	}
	profile_unsubscribe(nc, &r->cursor);
	*r = (struct inspect_runs){0};
}
