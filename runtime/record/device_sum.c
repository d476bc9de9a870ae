/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_sum.c - reads device profiles in pieces; they are as large as the program's run was long.
 */
#include "runtime/record/device_sum.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "runtime/base/file.h"

#define PIECE (1u << 20)

int device_sum_open(int dir_fd, const char *name)
{
	int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct stat st;
	int error;

	if (fd < 0)
		return errno == ELOOP ? -EINVAL : -errno;
	error = fstat(fd, &st) < 0 ? -errno : S_ISREG(st.st_mode) ? 0 : -EINVAL;
	if (error == 0)
		return fd;
	close(fd);
	return error;
}

/* to_fd: gets what was read; -1: nobody. */
static int read_all(int fd, int to_fd, XXH3_state_t *state, uint64_t *ret_bytes)
{
	_cleanup_free_ uint8_t *piece = malloc(PIECE);
	uint64_t at = 0;
	ssize_t n;

	if (!piece)
		return -ENOMEM;
	while ((n = pread(fd, piece, PIECE, (off_t)at)) != 0) {
		int rc = 0;

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		XXH3_64bits_update(state, piece, (size_t)n);
		if (to_fd >= 0)
			rc = file_write_all(to_fd, piece, (size_t)n);
		if (rc < 0)
			return rc;
		at += (uint64_t)n;
	}
	*ret_bytes = at;
	return 0;
}

static int sum(int fd, int to_fd, uint64_t *ret_bytes, uint64_t *ret_check)
{
	XXH3_state_t *state = XXH3_createState();
	int rc;

	if (!state)
		return -ENOMEM;
	XXH3_64bits_reset(state);
	rc = read_all(fd, to_fd, state, ret_bytes);
	*ret_check = XXH3_64bits_digest(state);
	XXH3_freeState(state);
	return rc;
}

int device_sum(int fd, uint64_t *ret_bytes, uint64_t *ret_check)
{
	return sum(fd, -1, ret_bytes, ret_check);
}

/* Reads it, and writes it to to_fd when that is one. */
static int compare(int fd, int to_fd, const struct rec_device_profile *p)
{
	uint64_t bytes, check;
	struct stat st;
	int rc;

	if (fstat(fd, &st) < 0)
		return -errno;
	if ((uint64_t)st.st_size != p->bytes)
		return -EMSGSIZE;
	rc = sum(fd, to_fd, &bytes, &check);
	if (rc < 0)
		return rc;
	return bytes != p->bytes ? -EMSGSIZE : check != p->check ? -EBADMSG : 0;
}

static int open_profile(int dir_fd, const struct rec_device_profile *p, char name[32])
{
	snprintf(name, 32, REC_DEVICE_PROFILE_FORMAT, p->index);
	return device_sum_open(dir_fd, name);
}

int device_sum_verify(int dir_fd, const struct rec_device_profile *p)
{
	char name[32];
	_cleanup_close_ int fd = open_profile(dir_fd, p, name);

	return fd < 0 ? fd : compare(fd, -1, p);
}

int device_sum_copy(int from_fd, const struct rec_device_profile *p, int to_fd, uint32_t to_index)
{
	char name[32];
	_cleanup_close_ int fd = open_profile(from_fd, p, name), to = -1;
	int rc;

	if (fd < 0)
		return fd;
	snprintf(name, sizeof(name), REC_DEVICE_PROFILE_FORMAT, to_index);
	to = openat(to_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
	if (to < 0)
		return -errno;
	file_chown_invoker(to);
	rc = compare(fd, to, p);
	if (rc < 0)
		unlinkat(to_fd, name, 0);
	return rc;
}
