/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nrt_inspect_hurry_test.c - a session that ends because the process is about to die, while another
 * thread writes a device profile: that thread finds its directory as it was.
 *
 * The kernel interrupts the thread by a signal when it makes a file (dnotify).
 */
#include <fcntl.h>
#include <semaphore.h>
#include <signal.h>

#include "runtime/profile/inspect.h"
#include "tests/shim/shim.h"
#include "tests/unit/nrt_init_fixture.h"
#include "tests/unit/nrt_inspect.h"
#include "tests/unit/nrt_profile.h"

#define INTERRUPT SIGUSR1

static sem_t ready, in_write, go_on;
static pid_t executor;
static struct job job;

static void interrupted(int number)
{
	(void)number;
	(void)sem_post(&in_write);
	while (sem_wait(&go_on) < 0)
		;
}

/* In a minute. */
static bool comes_to(sem_t *s)
{
	struct timespec until;

	(void)clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += 5;
	return sem_timedwait(s, &until) == 0;
}

static void *execute(void *arg)
{
	(void)arg;
	executor = gettid();
	(void)sem_post(&ready);
	while (sem_wait(&go_on) < 0)
		;
	return (void *)(intptr_t)lib.nrt_execute(job.model, job.in, job.out);
}

static void with_models(nrt_inspect_config_t *config)
{
	(void)lib.nrt_inspect_config_set_activity(config, "all", false);
	(void)lib.nrt_inspect_config_set_activity(config, "device_profile", true);
	(void)lib.nrt_inspect_config_set_inspect_device_profile_mode(
		config, NRT_INSPECT_DEVICE_PROFILE_MODE_MODEL);
}

/* The executor gets a signal as soon as it has made a file here. */
static bool watch(const char *leaf)
{
	struct f_owner_ex owner = {F_OWNER_TID, executor};
	int fd = open(leaf, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd >= 0 && fcntl(fd, F_SETSIG, INTERRUPT) == 0 &&
	       fcntl(fd, F_SETOWN_EX, &owner) == 0 && fcntl(fd, F_NOTIFY, DN_CREATE) == 0;
}

static int hurried(void *arg)
{
	struct sigaction act = {.sa_handler = interrupted};
	char leaf[PATH_MAX];
	pthread_t t;
	void *status;

	WANT(sem_init(&ready, 0, 0) == 0 && sem_init(&in_write, 0, 0) == 0 &&
		sem_init(&go_on, 0, 0) == 0);
	WANT(sigaction(INTERRUPT, &act, NULL) == 0);
	WANT(enter_linked(arg, "WARN") == 0);
	WANT(chdir(((struct place *)arg)->scratch.dir) == 0);
	WANT_STATUS(init(), 0);
	WANT(job_open(&job, ADD_MODEL, 0) == 0);
	WANT_STATUS(inspect_begin(with_models), 0);
	WANT(inspect_leaf(INSPECT_BASE, getpid(), 1, leaf, sizeof(leaf)));
	WANT(pthread_create(&t, NULL, execute, NULL) == 0 && comes_to(&ready) && watch(leaf));
	(void)sem_post(&go_on);
	WANT(comes_to(&in_write));
	WANT(inspect_finish(REC_END_ASKED, false) && !inspect_is_active());
	WANT(said(arg, "Device profiles are lost: a thread that was interrupted writes one"));
	(void)sem_post(&go_on);
	WANT(pthread_join(t, &status) == 0 && !status);
	/* It has written what it was about to write, in the same directory. */
	WANT(inspect_tree(leaf, 1, 1) == 0);
	lib.nrt_close();
	return 0;
}

static bool has_dnotify(void)
{
	int fd = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bool has = fd >= 0 && fcntl(fd, F_NOTIFY, DN_CREATE) == 0;

	(void)close(fd);
	return has;
}

TEST("inspect: a thread that still writes a profile when the process is about to die finds its "
     "directory",
	"[nrt][inspect][vdev]")
{
	if (device_lacks())
		SKIP(device_lacks());
	if (!has_dnotify())
		SKIP("dnotify");
	with_device(hurried, two_cores);
}
