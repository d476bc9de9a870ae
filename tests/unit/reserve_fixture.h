/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reserve_fixture.h - occupying and reserving cores of a virtual device, for tests.
 *
 * Header only.
 */
#ifndef NTRACE_TESTS_RESERVE_FIXTURE_H
#define NTRACE_TESTS_RESERVE_FIXTURE_H

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "runtime/device/device.h"
#include "tests/unit/nrt_lib.h"
#include "vmlinux/ioctl_table.h"
#include "vmlinux/neuron_args.h"

static const char *const one_device[] __attribute__((unused)) = {"--cores=8", NULL};

/* ---- occupying ---------------------------------------------------------------------------- */

static inline int open_query(const struct place *p)
{
	char path[700];

	snprintf(path, sizeof(path), "%s/dev/neuron0", p->device.root);
	return open(path, O_WRONLY | O_CLOEXEC);
}

/* Marks each core of the mask; 0 or -errno of the first that was not free. */
static inline int occupy(int fd, uint64_t mask)
{
	for (uint32_t i = 0; i < 64; i++) {
		struct neuron_crwl_nc_map_ext arg = {
			.nc_count = 1, .start_nc_index = i, .end_nc_index = i};

		if (mask >> i & 1 && ioctl(fd, NEURON_IOCTL_CRWL_NC_RANGE_MARK_EXT0, &arg) < 0)
			return -errno;
	}
	return 0;
}

static inline bool all_free(const struct place *p, uint64_t mask)
{
	int fd = open_query(p);
	int rc = occupy(fd, mask);

	close(fd); /* which drops the marks */
	return rc == 0;
}

/* ---- reserving ---------------------------------------------------------------------------- */

/* Sends this process's messages to the place's log. */
static inline bool log_to(const struct place *p)
{
	int log = open(p->log.s, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	complaint_fd = fcntl(2, F_DUPFD_CLOEXEC, 100);
	return log >= 0 && complaint_fd >= 0 && dup2(log, 2) == 2;
}

static inline NRT_STATUS reserve(
	const struct place *p, const struct device_wish *wish, struct device_system **ret)
{
	const struct device_place at = {.root = p->device.root};
	NRT_STATUS status = device_new(&at, ret);

	if (!status)
		status = device_find(*ret);
	if (!status)
		status = device_negotiate(*ret);
	return status ? status : device_reserve(*ret, wish);
}

#endif
