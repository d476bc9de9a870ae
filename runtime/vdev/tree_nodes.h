/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree_nodes.h - names and contents of the virtual device's file tree, without FUSE.
 *
 * Nodes stand in one array; a node's inode number is its place plus one, the root is 1.
 */
#ifndef NTRACE_VDEV_TREE_NODES_H
#define NTRACE_VDEV_TREE_NODES_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/vdev/fuse_tree.h"

enum vdev_node_kind { VDEV_NODE_DIR, VDEV_NODE_TEXT, VDEV_NODE_DEVICE };

struct vdev_node {
	char name[32];
	uint64_t parent; /* inode number */
	enum vdev_node_kind kind;
	bool hidden;	       /* root's alone */
	unsigned device, core; /* what the text is about */
	char *(*text)(struct vdev *vdev, const struct vdev_node *node, size_t *ret_size);
};

/* 0 or -ENOMEM */
int vdev_nodes_build(struct vdev_tree *tree);
/* NULL when there is none. */
const struct vdev_node *vdev_node(const struct vdev_tree *tree, uint64_t ino);
/* Inode number of a name in a directory, 0 when there is none. */
uint64_t vdev_node_find(const struct vdev_tree *tree, uint64_t parent, const char *name);

#endif
