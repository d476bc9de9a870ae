/* SPDX-License-Identifier: Apache-2.0 */
/* exec.c - launches of a core; see exec.h. */
#include "runtime/vdev/exec.h"

#include <errno.h>
#include <sys/prctl.h>
#include <time.h>

#include "runtime/base/clock.h"
#include "runtime/vdev/launch_run.h"

/* ---- the core's thread ------------------------------------------------------------------- */

/* CLOCK_MONOTONIC, the condition variable's clock, `ns` from now. */
static struct timespec monotonic_in(uint64_t ns)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	ns += (uint64_t)t.tv_nsec;
	t.tv_sec += (time_t)(ns / 1000000000u);
	t.tv_nsec = (long)(ns % 1000000000u);
	return t;
}

bool vdev_core_goes_on(const struct vdev_core *core)
{
	return !core->stop && !core->cancelled;
}

bool vdev_core_wait_boot(struct vdev_core *core, uint64_t until_ns)
{
	while (vdev_core_goes_on(core)) {
		uint64_t now_ns = clock_boot().ns;
		struct timespec t;

		if (now_ns >= until_ns)
			return true;
		t = monotonic_in(until_ns - now_ns);
		pthread_cond_timedwait(&core->wake, &core->lock, &t);
	}
	return false;
}

static void *core_main(void *arg)
{
	struct vdev_core *core = arg;

	/* The default 50 us of timer slack would stand on every run. */
	prctl(PR_SET_TIMERSLACK, 1ul, 0, 0, 0);
	pthread_mutex_lock(&core->lock);
	while (!core->stop) {
		struct vdev_launch *launch = core->first;

		if (!launch) {
			pthread_cond_wait(&core->wake, &core->lock);
			continue;
		}
		core->first = launch->next;
		if (!core->first)
			core->last = &core->first;
		core->running = launch;
		core->cancelled = false;
		vdev_launch_run(core, launch);
		if (core->running) { /* ended early */
			core->running = NULL;
			core->pending--;
		}
		pthread_cond_broadcast(&core->wake); /* who waits for that */
		vdev_launch_free(launch);
	}
	pthread_mutex_unlock(&core->lock);
	return NULL;
}

static int submit_locked(struct vdev_core *core, struct vdev_launch *launch)
{
	if (!vdev_run_ring(&core->rings)->memory)
		return -EINVAL;
	if (core->stop || core->pending >= VDEV_EXEC_MAX_PENDING)
		return -EBUSY;
	if (!core->started && pthread_create(&core->thread, NULL, core_main, core) != 0)
		return -EAGAIN;
	core->started = true;
	launch->next = NULL;
	*core->last = launch;
	core->last = &launch->next;
	core->pending++;
	core->submitted++;
	atomic_fetch_add(&core->device->vdev->counters.launches, 1);
	pthread_cond_broadcast(&core->wake);
	return 0;
}

int vdev_core_submit(struct vdev_core *core, struct vdev_launch *launch)
{
	int r;

	pthread_mutex_lock(&core->lock);
	r = submit_locked(core, launch);
	pthread_mutex_unlock(&core->lock);
	return r;
}

static void cancel_locked(struct vdev_core *core, pid_t owner)
{
	for (struct vdev_launch **at = &core->first; *at;) {
		struct vdev_launch *launch = *at;

		if (owner && launch->owner != owner) {
			at = &launch->next;
			continue;
		}
		*at = launch->next;
		core->pending--;
		vdev_launch_free(launch);
	}
	core->last = &core->first;
	while (*core->last)
		core->last = &(*core->last)->next;
	if (core->running && (!owner || core->running->owner == owner)) {
		core->cancelled = true;
		pthread_cond_broadcast(&core->wake);
	}
}

void vdev_core_cancel(struct vdev_core *core, pid_t owner)
{
	pthread_mutex_lock(&core->lock);
	cancel_locked(core, owner);
	pthread_mutex_unlock(&core->lock);
}

void vdev_core_await_cancelled(struct vdev_core *core)
{
	pthread_mutex_lock(&core->lock);
	while (core->running && core->cancelled)
		pthread_cond_wait(&core->wake, &core->lock);
	pthread_mutex_unlock(&core->lock);
}

void vdev_core_stop(struct vdev_core *core)
{
	bool started;

	pthread_mutex_lock(&core->lock);
	core->stop = true;
	started = core->started;
	cancel_locked(core, 0);
	pthread_cond_broadcast(&core->wake);
	pthread_mutex_unlock(&core->lock);
	if (started)
		pthread_join(core->thread, NULL);
	core->started = false;
}
