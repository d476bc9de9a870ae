/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inspect_spool_dir.h - a directory that is there already, as that of a session.
 */
#ifndef NTRACE_TESTS_INSPECT_SPOOL_DIR_H
#define NTRACE_TESTS_INSPECT_SPOOL_DIR_H

#include <fcntl.h>
#include <stdbool.h>
#include <string.h>

#include "runtime/profile/inspect_dir.h"

/* path stays the caller's. */
static inline bool spool_dir_open(struct inspect_dir *d, char *path)
{
	int fd = open(path, O_DIRECTORY | O_CLOEXEC);

	*d = (struct inspect_dir){.path = path, .work = path};
	d->fd.fd = d->leaf.fd = -1;
	return fd >= 0 && kept_fd_adopt(&d->fd, fd) == 0;
}

static inline void spool_dir_close(struct inspect_dir *d)
{
	kept_fd_close(&d->fd);
}

#endif
