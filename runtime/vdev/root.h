/* SPDX-License-Identifier: Apache-2.0 */
/*
 * root.h - the directory of a virtual device: taken, filled, emptied, and cleaned after a crash.
 *
 *	.lock       held with flock(2) while the device lives; first line "ntrace-vdev"
 *	.fuse/      where the file tree is mounted
 *	dev, sys, stats    links into .fuse
 *	mem.sock
 * The kernel drops the lock with the process, however it ends; so a lock that can be taken marks
 * a dead device, whose mount and names the next one removes.  A directory with other contents is
 * left alone.
 */
#ifndef NTRACE_VDEV_ROOT_H
#define NTRACE_VDEV_ROOT_H

#include <stdbool.h>

#define VDEV_PRIVATE_PREFIX "ntrace-vdev-"
#define VDEV_SOCK_NAME "mem.sock"

struct vdev_root {
	char *path; /* absolute */
	char *mount_point;
	int dir_fd, lock_fd;
	bool created; /* by us: goes away at the end */
};

/* Takes the directory, creating it or cleaning what a dead device left.  -EBUSY: a living device
 * has it; -ENOTEMPTY: it holds something else; otherwise -errno.  Nothing is left behind on
 * failure. */
int vdev_root_open(struct vdev_root *root, const char *path);
/* The same in a new directory VDEV_PRIVATE_PREFIX... under $TMPDIR or /tmp. */
int vdev_root_open_private(struct vdev_root *root);
/* Makes the links once the mount stands. */
int vdev_root_fill(const struct vdev_root *root);
/* Unmounts what is still mounted, removes all names of ours and gives up the lock.  Harmless
 * twice. */
void vdev_root_close(struct vdev_root *root);

/* Removes private directories of this user whose device is dead. */
void vdev_root_sweep(void);

#endif
