/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuse_tree.h - the file tree of the virtual device, served through low-level FUSE.
 *
 *	dev/neuronN                             regular files on which ioctl(2) works
 *	sys/module/neuron/version
 *	sys/class/neuron_device/...             discovery attributes
 *	stats                                   counters
 *
 * The tree is built once and never changes, so inode numbers are stable and the kernel may keep
 * names. Files are opened with direct I/O: each open of a text file sees the text of that moment.
 * FUSE gives thread ids, and none at release: the opener's tgid is found at open and kept.
 */
#ifndef NTRACE_VDEV_FUSE_TREE_H
#define NTRACE_VDEV_FUSE_TREE_H

#include <stddef.h>
#include <sys/types.h>

#include "runtime/vdev/device.h"

struct fuse_session;
struct vdev_open_file;

struct vdev_tree {
	struct vdev *vdev;
	struct vdev_node *nodes; /* inode number - 1 */
	size_t count, slots;
	struct fuse_session *session;
	pthread_mutex_t lock;
	struct vdev_open_file *files; /* all that are open */
};

/* Builds the tree and mounts it; the mount point exists.  others: any user may enter.  0 or
 * -errno. */
int vdev_tree_mount(
	struct vdev_tree *tree, struct vdev *vdev, const char *mount_point, bool others);
/* Serves until vdev_tree_exit() or until somebody unmounts.  0 or -errno. */
int vdev_tree_serve(struct vdev_tree *tree);
/* Makes the serving thread return; it must also be woken from its wait by a signal. */
void vdev_tree_exit(struct vdev_tree *tree);
/* Detaches the mount (also while vdev_tree_serve() runs). */
void vdev_tree_unmount(struct vdev_tree *tree);
/* Closes the connection: whatever clients still wait for fails. */
void vdev_tree_destroy(struct vdev_tree *tree);

#endif
