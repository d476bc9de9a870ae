/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kept_fd.c - moving a descriptor out of the way, keeping it out, and knowing it again.
 *
 * The identity comes from statx without synchronisation: on a FUSE file a plain fstat may wait for
 * the daemon, and fails once it is gone, when the descriptor is still to be closed.
 */
#include "runtime/base/kept_fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static int identify(int fd, struct statx *ret)
{
	return statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_INO, ret);
}

int kept_fd_adopt(struct kept_fd *k, int fd)
{
	static const int floors[] = {900, 200, 60, 3}; /* as RLIMIT_NOFILE allows */
	int high = -1;

	k->fd = -1;
	for (size_t i = 0; i < sizeof(floors) / sizeof(floors[0]) && high < 0; i++)
		high = fcntl(fd, F_DUPFD_CLOEXEC, floors[i]);
	if (high < 0) {
		int rc = -errno;

		(void)close(fd);
		return rc;
	}
	(void)close(fd);
	return kept_fd_know(k, high);
}

int kept_fd_know(struct kept_fd *k, int fd)
{
	int rc = kept_fd_learn(k, fd);

	if (rc < 0)
		(void)close(fd);
	return rc;
}

int kept_fd_learn(struct kept_fd *k, int fd)
{
	struct statx st;

	k->fd = -1;
	if (identify(fd, &st) < 0)
		return -errno;
	k->fd = fd;
	k->dev_major = st.stx_dev_major;
	k->dev_minor = st.stx_dev_minor;
	k->ino = st.stx_ino;
	return 0;
}

int kept_fd_again(struct kept_fd *k, int fd)
{
	const struct kept_fd was = *k;
	int rc = kept_fd_adopt(k, fd);

	if (rc < 0)
		return rc;
	if (k->dev_major == was.dev_major && k->dev_minor == was.dev_minor && k->ino == was.ino)
		return 0;
	kept_fd_close(k);
	*k = was;
	k->fd = -1;
	return -ESTALE;
}

bool kept_fd_valid(const struct kept_fd *k)
{
	struct statx st;

	return k->fd >= 0 && identify(k->fd, &st) == 0 && st.stx_dev_major == k->dev_major &&
	       st.stx_dev_minor == k->dev_minor && st.stx_ino == k->ino;
}

void kept_fd_close(struct kept_fd *k)
{
	if (kept_fd_valid(k))
		(void)close(k->fd);
	k->fd = -1;
}

/* ---- 0, 1 and 2 --------------------------------------------------------------------------- */

/* Files of their own, so that they are known again when the program puts others there meanwhile. */
int standard_fds_hold(struct standard_fds *s)
{
	s->count = 0;
	for (int number = 0; number <= STDERR_FILENO; number++) {
		int rc, fd;

		if (fcntl(number, F_GETFD) >= 0)
			continue;
		fd = memfd_create("ntrace-standard", MFD_CLOEXEC);
		if (fd < 0)
			rc = -errno;
		else if (fd > STDERR_FILENO)
			rc = close(fd); /* somebody was faster */
		else
			rc = kept_fd_know(&s->held[s->count++], fd);
		if (rc < 0) {
			standard_fds_release(s);
			return rc;
		}
	}
	return 0;
}

void standard_fds_release(struct standard_fds *s)
{
	int saved = errno;

	while (s->count)
		kept_fd_close(&s->held[--s->count]);
	errno = saved;
}
