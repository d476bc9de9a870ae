/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nrt_init_fixture.h - the runtime that is linked into the tests, so that a test can stand between the
 * steps of nrt_init and between its doors; and what nrt_init must leave behind when it fails: nothing.
 *
 * Header only, on top of nrt_lib.h: after enter_linked the calls of `lib` are the linked ones.
 */
#ifndef NTRACE_TESTS_NRT_INIT_FIXTURE_H
#define NTRACE_TESTS_NRT_INIT_FIXTURE_H

#include <pthread.h>
#include <semaphore.h>
#include <sys/ioctl.h>

#include "runtime/lifecycle/init.h"
#include "runtime/lifecycle/state.h"
#include "runtime/log/log.h"
#include "tests/unit/nrt_lib.h"
#include "vmlinux/ioctl_table.h"
#include "vmlinux/neuron_args.h"

/* In the child: both outputs go to the log, at this level (NULL: errors only). */
static inline int enter_linked(const struct place *p, const char *level)
{
	int log = open(p->log.s, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	complaint_fd = fcntl(2, F_DUPFD_CLOEXEC, 100);
	WANT(complaint_fd >= 0 && log >= 0);
	WANT(dup2(log, 1) == 1 && dup2(log, 2) == 2 && close(log) == 0);
#define NRT_CALL(name, node, returns, state) lib.name = name;
#include "tests/unit/nrt_calls.def"
#undef NRT_CALL
	setenv("NTRACE_DEVICE_ROOT", p->device.pid ? p->device.root : p->scratch.dir, 1);
	if (level)
		setenv("NEURON_RT_LOG_LEVEL", level, 1);
	log_configure(); /* a test before this one may have read another level */
	return 0;
}

/* Descriptors, threads, mappings of memfds of this process. */
struct belongings {
	int fds, threads, memfds;
};

static inline int count_lines_(const char *path, const char *with)
{
	char line[512];
	FILE *f = fopen(path, "r");
	int n = 0;

	while (f && fgets(line, sizeof(line), f))
		n += strstr(line, with) != NULL;
	if (f)
		fclose(f);
	return n;
}

static inline struct belongings belongings_now(void)
{
	return (struct belongings){.fds = scratch_entries("/proc/self/fd"),
		.threads = scratch_entries("/proc/self/task"),
		.memfds = count_lines_("/proc/self/maps", "memfd:")};
}

static inline bool belongings_equal(const struct belongings *a, const struct belongings *b)
{
	if (a->fds == b->fds && a->threads == b->threads && a->memfds == b->memfds)
		return true;
	dprintf(complaint_fd, "descriptors %d and %d, threads %d and %d, memfds %d and %d\n",
		a->fds, b->fds, a->threads, b->threads, a->memfds, b->memfds);
	return false;
}

/* The device of these tests: two cores, each a logical one. */
#define FIXTURE_CORES 2u
static const char *const fixture_device[]
	__attribute__((unused)) = {"--arch=v2", "--cores=2", NULL};

/* Can somebody else mark all cores?  Asked in a process of its own, for marks belong to a process. */
static inline int mark_all_(void *arg)
{
	struct neuron_crwl_nc_map_ext map = {
		.nc_count = FIXTURE_CORES, .end_nc_index = FIXTURE_CORES - 1};
	char path[700];
	int fd;

	snprintf(path, sizeof(path), "%s/dev/neuron0", ((const struct place *)arg)->device.root);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	return fd >= 0 && ioctl(fd, NEURON_IOCTL_CRWL_NC_RANGE_MARK_EXT0, &map) == 0 ? 0 : 1;
}

static inline bool cores_are_free(void *place)
{
	return scratch_child(mark_all_, place) == 0;
}

/* Leaks so far, under AddressSanitizer: 0 when there are none, or without it. */
extern int __lsan_do_recoverable_leak_check(void) __attribute__((weak));
static inline int leaks(void)
{
	return __lsan_do_recoverable_leak_check ? __lsan_do_recoverable_leak_check() : 0;
}

#endif
