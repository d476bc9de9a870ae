/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model_profile.c - profiles of models (nrt_profile_start, nrt_profile_stop), each known by the name of its file.
 *
 * A profile has the records of the runs of one load of a model, from the start on; what else runs on the core is not in
 * it.  The model may be unloaded meanwhile.  One model may have several files, and one core several profiles,
 * sessions besides.
 *
 * Known of libnrt 2.31: a file name stands for a model, stop harvests, builds and writes in one call, the message
 * for a name that nobody has started, and that implicitly asynchronous execution does not go with it.
 * Inferred: the status 2 for all that is refused.  Ours: what is checked at the start, that a profile which
 * could not be written is kept for another stop, and that names are compared as texts.
 */
#include <stdlib.h>
#include <string.h>

#include <nrt/nrt_profile.h>

#include "runtime/log/log.h"
#include "runtime/profile/serialize.h"

#define TAG "NRT"

struct requested {
	struct requested *next;
	char *filename;
	uint32_t nc;
	uint64_t number; /* of the load */
	struct profile_node *node;
	struct collector_cursor *cursor; /* NULL: none any more, for there is a profile: */
	struct profile_harvest harvest;
	struct profile *profile;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct requested *requests; /* under lock */

/* ---- the map ------------------------------------------------------------------------------ */

static struct requested **find(const char *filename)
{
	struct requested **link = &requests;

	while (*link && strcmp((*link)->filename, filename) != 0)
		link = &(*link)->next;
	return link;
}

/* False when the name is there already. */
static bool put(struct requested *r)
{
	struct requested **link;
	bool is_new;

	pthread_mutex_lock(&lock);
	link = find(r->filename);
	is_new = !*link;
	if (is_new)
		*link = r;
	pthread_mutex_unlock(&lock);
	return is_new;
}

static struct requested *take(const char *filename)
{
	struct requested **link, *r;

	pthread_mutex_lock(&lock);
	link = find(filename);
	r = *link;
	if (r) {
		*link = r->next;
		r->next = NULL;
	}
	pthread_mutex_unlock(&lock);
	return r;
}

static void end_capture(struct requested *r)
{
	profile_unsubscribe(r->nc, &r->cursor);
	profile_harvest_drop(&r->harvest);
}

static void free_request(struct requested *r)
{
	end_capture(r);
	profile_free(r->profile);
	profile_node_put(r->node);
	free(r->filename);
	free(r);
}

/* ---- start -------------------------------------------------------------------------------- */

static NRT_STATUS begin(struct requested *r, struct nrt_model *m, const char *filename)
{
	r->nc = m->nc;
	r->number = m->number;
	r->filename = strdup(filename);
	r->node = profile_node_of(m);
	if (!r->filename || !r->node)
		return NRT_RESOURCE;
	return profile_subscribe(m->nc, &r->cursor);
}

static NRT_STATUS say_twice(const char *filename)
{
	log_write(LOG_LEVEL_ERROR, TAG, "nrt_profile_start",
		"A profile for '%.300s' is being made already; stop it first (nrt_profile_stop), "
		"or give another name",
		filename);
	return NRT_INVALID;
}

static bool is_requested(const char *filename)
{
	bool found;

	pthread_mutex_lock(&lock);
	found = *find(filename) != NULL;
	pthread_mutex_unlock(&lock);
	return found;
}

static NRT_STATUS start(struct nrt_model *m, const char *filename)
{
	struct requested *r;
	NRT_STATUS status;

	if (is_requested(filename))
		return say_twice(filename);
	r = calloc(1, sizeof(*r));
	if (!r)
		return NRT_RESOURCE;
	status = begin(r, m, filename);
	if (!status && !put(r)) /* another thread was faster */
		status = say_twice(filename);
	if (status)
		free_request(r);
	return status;
}

NRT_STATUS nrt_profile_start(nrt_model_t *model, const char *filename)
{
	NRT_STATUS status = profile_enter(__func__);
	struct object *o;

	if (status)
		return status;
	status = profile_check_synchronous(__func__, "A profile of a model");
	if (!status)
		status = profile_check_path(__func__, filename);
	if (!status)
		status = object_get(model, OBJECT_MODEL, &o);
	if (!status) {
		status = start((struct nrt_model *)o, filename);
		object_put(o);
	}
	profile_leave();
	return status;
}

/* ---- stop --------------------------------------------------------------------------------- */

static NRT_STATUS build(struct requested *r)
{
	struct profile_wish wish = {
		.nc = r->nc, .id = r->node->model_id, .model = r->number, .node = r->node};
	NRT_STATUS status;

	if (r->profile)
		return NRT_SUCCESS;
	profile_harvest(&r->harvest, r->cursor, r->nc);
	status = profile_build("nrt_profile_stop", &wish, &r->harvest, &r->profile);
	if (!status)
		end_capture(r);
	return status;
}

static NRT_STATUS stop(const char *filename)
{
	struct requested *r = take(filename);
	NRT_STATUS status;

	if (!r) {
		log_write(LOG_LEVEL_ERROR, TAG, "nrt_profile_stop",
			"Profile stop request for %.300s not found: it was not started "
			"(nrt_profile_start), or has been stopped",
			filename);
		return NRT_INVALID;
	}
	status = build(r);
	if (!status)
		status = profile_write("nrt_profile_stop", r->profile, filename);
	/* It is kept, unless another one has begun under its name meanwhile. */
	if (!status || !put(r))
		free_request(r);
	return status;
}

NRT_STATUS nrt_profile_stop(const char *filename)
{
	NRT_STATUS status = profile_enter(__func__);

	if (status)
		return status;
	if (!filename || !*filename) {
		log_error(TAG, "No file name given (%s)", filename ? "empty" : "NULL");
		status = NRT_INVALID;
	} else {
		status = stop(filename);
	}
	profile_leave();
	return status;
}

/* ---- nrt_close ---------------------------------------------------------------------------- */

void model_profile_close(void)
{
	while (requests) {
		struct requested *r = requests;

		log_warn(TAG, "The profile '%.300s' was not stopped and is not written",
			r->filename);
		requests = r->next;
		free_request(r);
	}
}
