/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recorded.c - profiles all cores of the process for the recorder that started it.
 *
 * A core is profiled from the first load of a model on it, whose rings that opens: what no program uses costs nothing.  A core on
 * which nothing ran leaves no file.
 */
#include "runtime/profile/recorded.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/file.h"
#include "runtime/base/profile_dir.h"
#include "runtime/log/log.h"
#include "runtime/profile/serialize.h"

#define TAG "NRT"
#define CALL "ntrace record --device"
#define MAX_NUMBER 100000u /* of a core's profiles in one directory */

static struct {
	pthread_mutex_t lock;
	char *dir;	 /* NULL: not on */
	bool incomplete; /* a core is not profiled */
	bool tried[PROFILE_MAX_CORES];
	struct collector_cursor *cursors[PROFILE_MAX_CORES];
	uint32_t count;
} recorded = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- the mark ----------------------------------------------------------------------------- */

static char *mark_path(void)
{
	char *path = NULL;

	return asprintf(&path, "%s/" PROFILE_MARK_FORMAT, recorded.dir, (int)getpid()) < 0 ? NULL
											   : path;
}

static int make_mark(void)
{
	_cleanup_free_ char *path = mark_path();
	_cleanup_close_ int fd = -1;

	if (!path)
		return -ENOMEM;
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
	return fd < 0 ? -errno : 0;
}

static void take_mark_away(void)
{
	_cleanup_free_ char *path = mark_path();

	if (path)
		(void)unlink(path);
}

/* ---- begin -------------------------------------------------------------------------------- */

static void subscribe(uint32_t nc)
{
	recorded.tried[nc] = true;
	profile_hold(nc);
	if (collector_subscribe(nc, &recorded.cursors[nc]) == NRT_SUCCESS)
		return;
	recorded.cursors[nc] = NULL;
	recorded.incomplete = true;
	profile_release(nc);
}

void recorded_open(const struct runtime *r)
{
	int rc;

	if (!*r->profile_dir)
		return;
	if (r->devices->topology.simulated) {
		log_error(TAG, "No device profiles: the device is simulated "
			       "(NEURON_RT_FAKE_INSTANCE_TYPE) and runs nothing");
		return;
	}
	pthread_mutex_lock(&recorded.lock);
	recorded.dir = strdup(r->profile_dir);
	rc = recorded.dir ? make_mark() : -ENOMEM;
	if (rc < 0) {
		log_error(TAG, "No device profiles: " ENV_DEVICE_PROFILE "=%s: %s", r->profile_dir,
			strerror(-rc));
		free(recorded.dir);
		recorded.dir = NULL;
	} else {
		recorded.incomplete = false;
		recorded.count = device_logical_count(r->devices);
		memset(recorded.tried, 0, sizeof(recorded.tried));
	}
	pthread_mutex_unlock(&recorded.lock);
}

void recorded_load(uint32_t nc)
{
	pthread_mutex_lock(&recorded.lock);
	if (recorded.dir && nc < recorded.count && !recorded.tried[nc])
		subscribe(nc);
	pthread_mutex_unlock(&recorded.lock);
}

/* ---- end ---------------------------------------------------------------------------------- */

/* Has the core done anything, or may it have? */
static bool is_used(const struct profile_harvest *h)
{
	if (h->partial || h->data.run_count)
		return true;
	for (uint32_t i = 0; i < h->data.row_count; i++) {
		const struct collector_row *row = &h->data.rows[i];

		if (row->count || row->lost || row->dropped)
			return true;
	}
	return false;
}

/* Under the first number that is free: the process may have had another nrt_init before. */
static int store(struct profile *p, uint32_t nc)
{
	int rc = -EEXIST;

	for (uint64_t number = 0; rc == -EEXIST && number < MAX_NUMBER; number++) {
		char *path = NULL;

		if (asprintf(&path, "%s/" PROFILE_FILE_FORMAT, recorded.dir, (int)getpid(), nc,
			    number) < 0)
			return -ENOMEM;
		p->info.session_id = number;
		rc = profile_store(p, path);
		free(path);
	}
	return rc;
}

/* Without a file a profile that could be had is missing: false. */
static bool write_harvest(struct profile_harvest *h, uint32_t nc)
{
	const struct profile_wish wish = {.nc = nc, .session = true};
	struct profile *p;
	int rc;

	if (!is_used(h))
		return true;
	if (profile_build(CALL, &wish, h, &p) != NRT_SUCCESS)
		return false;
	rc = store(p, nc);
	profile_free(p);
	if (rc < 0)
		log_error(TAG, "The device profile of NC %u is lost: %s: %s", nc, recorded.dir,
			strerror(-rc));
	return rc == 0;
}

static bool end_core(uint32_t nc)
{
	struct profile_harvest h = {0};
	bool written;

	profile_harvest(&h, recorded.cursors[nc], nc);
	written = write_harvest(&h, nc);
	profile_harvest_drop(&h);
	collector_unsubscribe(recorded.cursors[nc]);
	recorded.cursors[nc] = NULL;
	profile_release(nc);
	return written;
}

void recorded_close(void)
{
	bool all;

	pthread_mutex_lock(&recorded.lock);
	all = !recorded.incomplete;
	for (uint32_t nc = 0; recorded.dir && nc < recorded.count; nc++)
		if (recorded.cursors[nc])
			all &= end_core(nc);
	if (recorded.dir && all)
		take_mark_away();
	free(recorded.dir);
	recorded.dir = NULL;
	pthread_mutex_unlock(&recorded.lock);
}

/* A program that ends without nrt_close.  When it ends in a signal handler that has interrupted one of our calls, what
 * that call holds cannot be had, and there is no profile. */
__attribute__((destructor)) static void end_of_program(void)
{
	if (state_is_inside() || !state_try_enter())
		return;
	recorded_close();
	api_leave();
}
