/* SPDX-License-Identifier: Apache-2.0 */
/*
 * profile.c - which cores are profiled, and the nodes of the models that ran on them.
 *
 * While nobody profiles, an execution pays for seven loads of three words that nobody writes.
 */
#include "runtime/profile/profile.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/lock_within.h"
#include "runtime/device/simulate.h"
#include "runtime/exec/model_text.h"
#include "runtime/log/log.h"
#include "runtime/profile/collector.h"
#include "runtime/profile/inspect_device.h"

#define TAG "NRT"

/* A load that ran. */
struct known {
	uint64_t number;
	struct profile_node *node;
};

static struct core {
	pthread_mutex_t lock;
	_Atomic uint32_t holds; /* changed under lock */
	struct known *list;	/* under lock; empty while nobody holds the core */
	uint32_t count, room;
} cores[PROFILE_MAX_CORES] = {
	[0 ... PROFILE_MAX_CORES - 1] = {.lock = PTHREAD_MUTEX_INITIALIZER},
};

/* ---- nodes -------------------------------------------------------------------------------- */

void profile_node_put(struct profile_node *n)
{
	if (!n || atomic_fetch_sub_explicit(&n->refs, 1, memory_order_acq_rel) != 1)
		return;
	for (uint32_t p = 0; p < CORES_MAX_SIZE; p++)
		free(n->parts[p].image);
	model_text_put(n->text);
	free(n->lines);
	free(n);
}

static struct profile_node *node_ref(struct profile_node *n)
{
	if (n)
		atomic_fetch_add_explicit(&n->refs, 1, memory_order_relaxed);
	return n;
}

void profile_uuid(const struct nrt_model *m, char ret[PROFILE_UUID_BYTES])
{
	const uint64_t *digest = m->digest;

	(void)snprintf(ret, PROFILE_UUID_BYTES,
		"%08" PRIx64 "-%04" PRIx64 "-%04" PRIx64 "-%04" PRIx64 "-%012" PRIx64,
		digest[0] >> 32, digest[0] >> 16 & 0xffff, digest[0] & 0xffff, digest[1] >> 48,
		digest[1] & 0xffffffffffff);
}

static bool fill_part(struct profile_node *n, const struct nrt_model *m, uint32_t part)
{
	struct model_place place = m->place;
	size_t bytes;

	place.part = part;
	n->parts[part].nd_idx = m->core[part].device->index;
	n->parts[part].nc_idx = m->core[part].index;
	n->parts[part].image = model_program(&m->desc, &place, &bytes);
	return n->parts[part].image != NULL;
}

static struct profile_node *node_new(const struct nrt_model *m, const char *uuid)
{
	const struct model_desc *d = &m->desc;
	struct profile_node *n = calloc(1, sizeof(*n));
	bool whole;

	if (!n)
		return NULL;
	atomic_init(&n->refs, 1);
	memcpy(n->name, d->name, sizeof(n->name));
	memcpy(n->uuid, uuid, sizeof(n->uuid));
	n->model_id = m->id;
	n->text = model_text_ref(m->text);
	n->nc = m->nc;
	n->step_count = d->step_count;
	n->collectives = d->collectives;
	n->place = m->place;
	n->lines = calloc(d->step_count ? d->step_count : 1, sizeof(n->lines[0]));
	whole = n->lines != NULL;
	if (whole && d->step_count)
		memcpy(n->lines, d->lines, d->step_count * sizeof(n->lines[0]));
	for (uint32_t p = 0; p < m->place.parts && whole; p++)
		whole = fill_part(n, m, p);
	if (whole)
		return n;
	profile_node_put(n);
	return NULL;
}

/* The same program for the same place, of another load. */
static struct profile_node *node_alike(
	const struct core *c, const struct nrt_model *m, const char *uuid)
{
	for (uint32_t i = 0; i < c->count; i++) {
		struct profile_node *n = c->list[i].node;

		if (!strcmp(n->uuid, uuid) && n->place.rank == m->place.rank &&
			n->place.ranks == m->place.ranks && n->place.group == m->place.group)
			return n;
	}
	return NULL;
}

/* Under the lock. */
static struct profile_node *node_of(const struct core *c, struct nrt_model *m)
{
	char uuid[PROFILE_UUID_BYTES];

	if (m->node)
		return m->node;
	profile_uuid(m, uuid);
	m->node = node_ref(node_alike(c, m, uuid));
	if (!m->node)
		m->node = node_new(m, uuid);
	return m->node;
}

struct profile_node *profile_node_of(struct nrt_model *m)
{
	struct core *c = &cores[m->nc];
	struct profile_node *n;

	pthread_mutex_lock(&c->lock);
	n = node_ref(node_of(c, m));
	pthread_mutex_unlock(&c->lock);
	return n;
}

/* ---- what ran ----------------------------------------------------------------------------- */

static const struct known *find(const struct core *c, uint64_t number)
{
	for (uint32_t i = c->count; i > 0; i--) /* the newest first */
		if (c->list[i - 1].number == number)
			return &c->list[i - 1];
	return NULL;
}

static void add(struct core *c, struct nrt_model *m)
{
	struct profile_node *n = node_of(c, m);

	if (n && c->count == c->room) {
		uint32_t room = c->room ? 2 * c->room : 16;
		void *list = realloc(c->list, room * sizeof(c->list[0]));

		if (!list)
			return;
		c->list = list;
		c->room = room;
	}
	if (n)
		c->list[c->count++] = (struct known){m->number, node_ref(n)};
}

/* Without memory the profile lacks the model's program, and has its records all the same. */
static void remember(struct core *c, struct nrt_model *m)
{
	pthread_mutex_lock(&c->lock);
	if (atomic_load_explicit(&c->holds, memory_order_relaxed) && !find(c, m->number))
		add(c, m);
	pthread_mutex_unlock(&c->lock);
}

struct profile_node *profile_node_find(uint32_t nc, uint64_t number)
{
	struct core *c = &cores[nc];
	const struct known *k;
	struct profile_node *n;

	pthread_mutex_lock(&c->lock);
	k = find(c, number);
	n = k ? node_ref(k->node) : NULL;
	pthread_mutex_unlock(&c->lock);
	return n;
}

void profile_hold(uint32_t nc)
{
	struct core *c = &cores[nc];

	pthread_mutex_lock(&c->lock);
	atomic_fetch_add_explicit(&c->holds, 1, memory_order_relaxed);
	pthread_mutex_unlock(&c->lock);
}

void profile_release(uint32_t nc)
{
	struct core *c = &cores[nc];

	pthread_mutex_lock(&c->lock);
	if (atomic_fetch_sub_explicit(&c->holds, 1, memory_order_relaxed) == 1) {
		for (uint32_t i = 0; i < c->count; i++)
			profile_node_put(c->list[i].node);
		free(c->list);
		c->list = NULL;
		c->count = c->room = 0;
	}
	pthread_mutex_unlock(&c->lock);
}

bool profile_core_is_free(uint32_t nc, struct boot_ns until)
{
	return lock_is_free(&cores[nc].lock, until);
}

NRT_STATUS profile_subscribe(uint32_t nc, struct collector_cursor **ret)
{
	NRT_STATUS status;

	profile_hold(nc);
	status = collector_subscribe(nc, ret);
	if (status) {
		*ret = NULL;
		profile_release(nc);
	}
	return status;
}

void profile_unsubscribe(uint32_t nc, struct collector_cursor **cursor)
{
	if (!*cursor)
		return;
	collector_unsubscribe(*cursor);
	*cursor = NULL;
	profile_release(nc);
}

/* ---- hooks -------------------------------------------------------------------------------- */

static bool is_held(uint32_t nc)
{
	return atomic_load_explicit(&cores[nc].holds, memory_order_relaxed) != 0;
}

void profile_before_run(struct nrt_model *m)
{
	if (continuous_is_enabled())
		continuous_before_run(m);
	if (inspect_device_wants_runs())
		inspect_device_before_run(m);
}

void profile_run_begins(struct nrt_model *m)
{
	if (!is_held(m->nc))
		return;
	remember(&cores[m->nc], m);
	continuous_run_begins(m);
	if (inspect_device_wants_runs())
		inspect_device_run_begins(m);
}

/* Somebody may have come in the middle of it. */
void profile_run_ended(struct nrt_model *m, NRT_STATUS status)
{
	if (inspect_device_wants_runs())
		inspect_device_run_ended(m, status);
	if (!is_held(m->nc))
		return;
	remember(&cores[m->nc], m);
	continuous_run_ended(m);
}

void profile_after_run(struct nrt_model *m)
{
	if (inspect_device_wants_runs())
		inspect_device_after_run(m);
}

/* ---- checks ------------------------------------------------------------------------------- */

NRT_STATUS profile_check_core(const char *call, int64_t vnc)
{
	struct device_system *d = runtime_get()->devices;

	if (vnc < 0 || vnc >= device_logical_count(d)) {
		log_write(LOG_LEVEL_ERROR, TAG, call,
			"There is no core %" PRId64 "; this process has %u, from 0", vnc,
			device_logical_count(d));
		return NRT_INVALID;
	}
	return simulate_lacks(d, SIMULATE_MODEL) ? NRT_INVALID : NRT_SUCCESS;
}

NRT_STATUS profile_check_synchronous(const char *call, const char *what)
{
	if (!runtime_get()->async_max_inflight)
		return NRT_SUCCESS;
	log_write(LOG_LEVEL_ERROR, TAG, call,
		"%s is not supported in implicit async execution mode; set "
		"NEURON_RT_ASYNC_EXEC_MAX_INFLIGHT_REQUESTS=0, or profile the core "
		"(nrt_profile_session_start)",
		what);
	return NRT_INVALID;
}

/* ---- nrt_init and nrt_close --------------------------------------------------------------- */

static struct {
	pthread_mutex_t lock;
	pthread_cond_t empty;
	uint32_t in; /* under lock, as is: */
	bool open;
} gate = {.lock = PTHREAD_MUTEX_INITIALIZER, .empty = PTHREAD_COND_INITIALIZER};

bool profile_try_enter(void)
{
	bool open;

	pthread_mutex_lock(&gate.lock);
	open = gate.open;
	gate.in += open;
	pthread_mutex_unlock(&gate.lock);
	return open;
}

void profile_leave_run(void)
{
	pthread_mutex_lock(&gate.lock);
	if (--gate.in == 0)
		pthread_cond_broadcast(&gate.empty);
	pthread_mutex_unlock(&gate.lock);
}

NRT_STATUS profile_enter(const char *call)
{
	NRT_STATUS status = api_enter(call);

	if (status || profile_try_enter())
		return status;
	api_leave();
	return state_refuse(STATE_CLOSED, call);
}

void profile_leave(void)
{
	profile_leave_run();
	api_leave();
}

NRT_STATUS profile_open(uint32_t logical_cores)
{
	session_open(logical_cores);
	pthread_mutex_lock(&gate.lock);
	gate.open = true;
	pthread_mutex_unlock(&gate.lock);
	return NRT_SUCCESS;
}

void profile_close(void)
{
	pthread_mutex_lock(&gate.lock);
	gate.open = false;
	while (gate.in)
		pthread_cond_wait(&gate.empty, &gate.lock);
	pthread_mutex_unlock(&gate.lock);
	continuous_close();
	model_profile_close();
	session_close();
	inspect_device_close();
}
