/* SPDX-License-Identifier: Apache-2.0 */
/*
 * children.h - what is left of a command when it has ended.
 *
 * Orphaned descendants become children of this process (PR_SET_CHILD_SUBREAPER), so the command
 * and all that it left behind are our children, except those that we had before: the shell that
 * became us may have had some, for `ntrace-vdev ... > >(tee log)`.  One thread.
 */
#ifndef NTRACE_VDEV_CHILDREN_H
#define NTRACE_VDEV_CHILDREN_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct vdev_children {
	pid_t *before; /* children that are no business of ours */
	size_t count;
};

/* Notes the children there are and takes orphans from now on.  0 or -errno. */
int vdev_children_begin(struct vdev_children *c);
void vdev_children_free(struct vdev_children *c);

/* Reaps what has ended; the wait status of `pid` goes to *ret_status when it is among it (true). */
bool vdev_children_reap(pid_t pid, int *ret_status);

/* Is there a child that came after vdev_children_begin? */
bool vdev_children_left(const struct vdev_children *c);

#endif
