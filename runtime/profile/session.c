/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session.c - profiles of cores (nrt_profile_session_...).
 *
 * Each logical core has a slot.  A session that was stopped is kept there under a number, which each core counts from
 * 0; so a number alone does not say which core's session is meant.  The calls that are given no core take the lowest
 * core that has the number, and the next time the next one.
 *
 * Known of libnrt 2.31: the slots, the numbers, the order of the search, the three messages, and that a failed reading
 * is no failure of the stop.  Inferred: the status 2 for an unknown number, and that a start of a core that
 * is active already is refused with 2.  Ours: a session whose writing failed is kept.
 */
#include <inttypes.h>
#include <stdlib.h>

#include <nrt/nrt_profile.h>

#include "runtime/lifecycle/runtime.h"
#include "runtime/log/log.h"
#include "runtime/profile/serialize.h"

#define TAG "NRT"

/* A session that was stopped. */
struct stashed {
	struct stashed *next; /* in the order of numbers */
	uint64_t id;
	struct profile *profile;
};

static struct slot {
	pthread_mutex_t
		lock; /* held while a session of the core starts, stops, or is searched for */
	uint64_t next_id;
	struct collector_cursor *cursor; /* NULL: no session is active */
	struct profile_harvest harvest;
	struct stashed *stash;
} slots[PROFILE_MAX_CORES] = {
	[0 ... PROFILE_MAX_CORES - 1] = {.lock = PTHREAD_MUTEX_INITIALIZER},
};

static uint32_t slot_count; /* written while no call is in */

/* ---- the stash ---------------------------------------------------------------------------- */

static void put_back(struct slot *s, struct stashed *entry)
{
	struct stashed **link = &s->stash;

	while (*link && (*link)->id < entry->id)
		link = &(*link)->next;
	entry->next = *link;
	*link = entry;
}

static struct stashed *take(struct slot *s, uint64_t id)
{
	struct stashed **link = &s->stash, *entry;

	while (*link && (*link)->id != id)
		link = &(*link)->next;
	entry = *link;
	if (entry)
		*link = entry->next;
	return entry;
}

static void free_entry(struct stashed *entry)
{
	if (entry)
		profile_free(entry->profile);
	free(entry);
}

static void clear(struct slot *s)
{
	while (s->stash)
		free_entry(take(s, s->stash->id));
}

/* Takes the session with this number from the lowest core that has one. */
static NRT_STATUS take_lowest(
	const char *call, uint64_t id, struct slot **ret_slot, struct stashed **ret)
{
	for (uint32_t i = 0; i < slot_count; i++) {
		struct slot *s = &slots[i];

		pthread_mutex_lock(&s->lock);
		*ret = take(s, id);
		pthread_mutex_unlock(&s->lock);
		*ret_slot = s;
		if (*ret)
			return NRT_SUCCESS;
	}
	log_write(LOG_LEVEL_ERROR, TAG, call, "Unable to find profile session id %" PRIu64, id);
	return NRT_INVALID;
}

/* ---- start and stop ----------------------------------------------------------------------- */

static NRT_STATUS start(uint32_t nc)
{
	struct slot *s = &slots[nc];

	if (s->cursor) {
		log_write(LOG_LEVEL_ERROR, TAG, "nrt_profile_session_start",
			"A profile session is active for NC %u already; stop it first "
			"(nrt_profile_session_stop)",
			nc);
		return NRT_INVALID;
	}
	return profile_subscribe(nc, &s->cursor);
}

static void end_capture(struct slot *s, uint32_t nc)
{
	profile_unsubscribe(nc, &s->cursor);
	profile_harvest_drop(&s->harvest);
}

/* What could be read is kept.  Without memory for it the session stays, so that the call can be made again. */
static NRT_STATUS stop(struct slot *s, uint32_t nc, uint64_t *ret_id)
{
	static const char call[] = "nrt_profile_session_stop";
	struct profile_wish wish = {.nc = nc, .id = s->next_id, .session = true};
	struct stashed *entry = calloc(1, sizeof(*entry));
	NRT_STATUS status;

	if (!entry)
		return NRT_RESOURCE;
	profile_harvest(&s->harvest, s->cursor, nc);
	status = profile_build(call, &wish, &s->harvest, &entry->profile);
	if (status) {
		free(entry);
		return status;
	}
	entry->id = s->next_id++;
	put_back(s, entry);
	*ret_id = entry->id;
	end_capture(s, nc);
	return NRT_SUCCESS;
}

/* ---- the calls ---------------------------------------------------------------------------- */

NRT_STATUS nrt_profile_session_start(int32_t vnc)
{
	NRT_STATUS status = profile_enter(__func__);

	if (status)
		return status;
	status = profile_check_core(__func__, vnc);
	if (!status) {
		pthread_mutex_lock(&slots[vnc].lock);
		status = start((uint32_t)vnc);
		pthread_mutex_unlock(&slots[vnc].lock);
	}
	profile_leave();
	return status;
}

static NRT_STATUS stop_active(int32_t vnc, uint64_t *ret_id)
{
	struct slot *s = vnc >= 0 && (uint32_t)vnc < slot_count ? &slots[vnc] : NULL;
	NRT_STATUS status = NRT_INVALID;

	if (s)
		pthread_mutex_lock(&s->lock);
	if (s && s->cursor)
		status = stop(s, (uint32_t)vnc, ret_id);
	else
		log_write(LOG_LEVEL_ERROR, TAG, "nrt_profile_session_stop",
			"No active profile session for NC %d", vnc);
	if (s)
		pthread_mutex_unlock(&s->lock);
	return status;
}

NRT_STATUS nrt_profile_session_stop(int32_t vnc, uint64_t *session_id)
{
	NRT_STATUS status = profile_enter(__func__);

	if (status)
		return status;
	status = session_id ? stop_active(vnc, session_id) : runtime_no_place(__func__);
	profile_leave();
	return status;
}

NRT_STATUS nrt_profile_session_serialize(uint64_t session_id, const char *filename)
{
	NRT_STATUS status = profile_enter(__func__);
	struct slot *s;
	struct stashed *entry;

	if (status)
		return status;
	status = profile_check_path(__func__, filename);
	if (!status)
		status = take_lowest(__func__, session_id, &s, &entry);
	if (!status) {
		status = profile_write(__func__, entry->profile, filename);
		if (status) {
			pthread_mutex_lock(&s->lock);
			put_back(s, entry);
			pthread_mutex_unlock(&s->lock);
		} else {
			free_entry(entry);
		}
	}
	profile_leave();
	return status;
}

NRT_STATUS nrt_profile_session_drop(uint64_t session_id)
{
	NRT_STATUS status = profile_enter(__func__);
	struct slot *s;
	struct stashed *entry;

	if (status)
		return status;
	status = take_lowest(__func__, session_id, &s, &entry);
	if (!status)
		free_entry(entry);
	profile_leave();
	return status;
}

NRT_STATUS nrt_profile_session_drop_all(int32_t vnc)
{
	NRT_STATUS status = profile_enter(__func__);

	if (status)
		return status;
	status = profile_check_core(__func__, vnc);
	if (!status) {
		pthread_mutex_lock(&slots[vnc].lock);
		clear(&slots[vnc]);
		pthread_mutex_unlock(&slots[vnc].lock);
	}
	profile_leave();
	return status;
}

/* ---- nrt_init and nrt_close --------------------------------------------------------------- */

void session_open(uint32_t logical_cores)
{
	slot_count = logical_cores < PROFILE_MAX_CORES ? logical_cores : PROFILE_MAX_CORES;
}

void session_close(void)
{
	for (uint32_t i = 0; i < slot_count; i++) {
		struct slot *s = &slots[i];

		if (s->cursor)
			end_capture(s, i);
		clear(s);
		s->next_id = 0;
	}
	slot_count = 0;
}
