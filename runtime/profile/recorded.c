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
#include "runtime/profile/core_profile.h"
#include "runtime/profile/serialize.h"

#define TAG "NRT"
#define CALL "ntrace record --device"
#define MAX_NUMBER 100000u /* of a core's profiles in one directory */

static struct {
	pthread_mutex_t lock;
	char *dir;	 /* NULL: not on */
	bool incomplete; /* a core is not profiled */
	struct core_profile cores[PROFILE_MAX_CORES];
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
	}
	pthread_mutex_unlock(&recorded.lock);
}

void recorded_load(uint32_t nc)
{
	pthread_mutex_lock(&recorded.lock);
	if (recorded.dir && nc < recorded.count)
		recorded.incomplete |= core_profile_begin(&recorded.cores[nc], nc) != NRT_SUCCESS;
	pthread_mutex_unlock(&recorded.lock);
}

/* ---- end ---------------------------------------------------------------------------------- */

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
		rc = profile_store(p, path, NULL);
		free(path);
	}
	return rc;
}

/* Without a file a profile that could be had is missing: false. */
static bool write_core(uint32_t nc)
{
	struct profile *p;
	int rc;

	if (core_profile_take(CALL, &recorded.cores[nc], nc, 0, &p) != NRT_SUCCESS)
		return false;
	if (!p)
		return true;
	rc = store(p, nc);
	profile_free(p);
	if (rc < 0)
		log_error(TAG, "The device profile of NC %u is lost: %s: %s", nc, recorded.dir,
			strerror(-rc));
	return rc == 0;
}

void recorded_close(void)
{
	bool all;

	pthread_mutex_lock(&recorded.lock);
	all = !recorded.incomplete;
	for (uint32_t nc = 0; recorded.dir && nc < recorded.count; nc++) {
		all &= write_core(nc);
		core_profile_drop(&recorded.cores[nc], nc);
	}
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
