/* SPDX-License-Identifier: Apache-2.0 */
/* user_memory.c - reads and writes the caller's memory and finds its process; see user_memory.h. */
#include "runtime/vdev/user_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "runtime/base/file.h"

/* One call moves at most 2 GiB; smaller steps keep a killed caller from waiting long. */
#define STEP_BYTES (64ull << 20)

typedef ssize_t (*transfer_fn)(pid_t, const struct iovec *, unsigned long, const struct iovec *,
	unsigned long, unsigned long);

static int transfer(transfer_fn fn, pid_t tid, uint64_t address, void *local, uint64_t size)
{
	uint64_t done = 0;

	while (done < size) {
		uint64_t want = size - done < STEP_BYTES ? size - done : STEP_BYTES;
		struct iovec here = {(uint8_t *)local + done, want};
		struct iovec there = {(void *)(uintptr_t)(address + done), want};
		ssize_t n = fn(tid, &here, 1, &there, 1, 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EPERM ? -EPERM : -EFAULT;
		if (n == 0)
			return -EFAULT;
		done += (uint64_t)n;
	}
	return 0;
}

int vdev_user_read(pid_t tid, uint64_t address, void *to, uint64_t size)
{
	return transfer(process_vm_readv, tid, address, to, size);
}

int vdev_user_write(pid_t tid, uint64_t address, const void *from, uint64_t size)
{
	return transfer(process_vm_writev, tid, address, (void *)(uintptr_t)from, size);
}

pid_t vdev_user_tgid(pid_t tid)
{
	_cleanup_close_ int fd = -1;
	char path[32], text[1024];
	const char *line;
	ssize_t n;

	if (tid <= 0)
		return -ESRCH;
	snprintf(path, sizeof(path), "/proc/%d/status", tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -ESRCH;
	n = read(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return -ESRCH;
	text[n] = '\0';
	line = strstr(text, "\nTgid:");
	return line ? (pid_t)strtol(line + strlen("\nTgid:"), NULL, 10) : -ESRCH;
}

bool vdev_user_is_thread(pid_t tgid, pid_t tid)
{
	char path[64];

	if (tid <= 0)
		return false;
	if (tgid == tid)
		return true;
	snprintf(path, sizeof(path), "/proc/%d/task/%d", tgid, tid);
	return access(path, F_OK) == 0;
}
