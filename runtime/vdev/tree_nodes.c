/* SPDX-License-Identifier: Apache-2.0 */
/* tree_nodes.c - what is in the tree; see tree_nodes.h.  Paths and texts are those of the
 * driver's sysfs. */
#include "runtime/vdev/tree_nodes.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- texts ------------------------------------------------------------------------------- */

__attribute__((format(printf, 2, 3))) static char *format_text(
	size_t *ret_size, const char *format, ...)
{
	char *text;
	va_list args;
	int n;

	va_start(args, format);
	n = vasprintf(&text, format, args);
	va_end(args);
	if (n < 0)
		return NULL;
	*ret_size = (size_t)n;
	return text;
}

static char *text_stats(struct vdev *vdev, const struct vdev_node *node, size_t *ret_size)
{
	(void)node;
	return vdev_stats_text(vdev, ret_size);
}

static char *text_version(struct vdev *vdev, const struct vdev_node *node, size_t *ret_size)
{
	(void)node;
	return format_text(ret_size, "%s\n", vdev->config.driver_version);
}

static char *text_product(struct vdev *vdev, const struct vdev_node *node, size_t *ret_size)
{
	(void)node;
	return format_text(ret_size, "%s\n", vdev->config.instance->type);
}

static char *text_asset_tag(struct vdev *vdev, const struct vdev_node *node, size_t *ret_size)
{
	(void)node;
	return format_text(ret_size, "%s\n", vdev->config.instance_id);
}

/* The driver writes no newline here. */
static char *text_core_count(struct vdev *vdev, const struct vdev_node *node, size_t *ret_size)
{
	(void)node;
	return format_text(ret_size, "%u", vdev->config.cores);
}

static char *text_connected(struct vdev *vdev, const struct vdev_node *node, size_t *ret_size)
{
	uint32_t n[VDEV_MAX_NEIGHBOURS];
	unsigned count = vdev_neighbours(
		vdev->config.instance->family, vdev->config.devices, node->device, n);
	char list[16 * VDEV_MAX_NEIGHBOURS] = "";
	size_t used = 0;

	for (unsigned i = 0; i < count; i++)
		used += (size_t)snprintf(
			list + used, sizeof(list) - used, "%s%u", i ? ", " : "", n[i]);
	return format_text(ret_size, "%s\n", list);
}

static char *text_minus_one(struct vdev *vdev, const struct vdev_node *node, size_t *ret_size)
{
	(void)vdev;
	(void)node;
	return format_text(ret_size, "-1\n");
}

static char *text_serial(struct vdev *vdev, const struct vdev_node *node, size_t *ret_size)
{
	(void)vdev;
	return format_text(ret_size, "%016x\n", node->device);
}

static char *text_arch(struct vdev *vdev, const struct vdev_node *node, size_t *ret_size)
{
	(void)node;
	return format_text(ret_size, "%s\n", vdev->config.instance->family->arch_type);
}

static char *text_instance(struct vdev *vdev, const struct vdev_node *node, size_t *ret_size)
{
	(void)node;
	return format_text(ret_size, "%s\n", vdev->config.instance->family->instance_type);
}

static char *text_device_name(struct vdev *vdev, const struct vdev_node *node, size_t *ret_size)
{
	(void)node;
	return format_text(ret_size, "%s\n", vdev->config.instance->family->device_name);
}

static char *text_core_arch(struct vdev *vdev, const struct vdev_node *node, size_t *ret_size)
{
	(void)node;
	return format_text(ret_size, "%s\n", vdev_arch_of(vdev)->nc_arch_type);
}

/* ---- building ---------------------------------------------------------------------------- */

typedef char *(*text_fn)(struct vdev *, const struct vdev_node *, size_t *);

static const struct file_row {
	const char *path;
	text_fn text;
} machine_files[] =
	{
		{"stats", text_stats},
		{"sys/module/neuron/version", text_version},
		{"sys/class/dmi/id/product_name", text_product},
		{"sys/class/dmi/id/board_asset_tag", text_asset_tag},
},
  device_files[] =
	  {
		  {"core_count", text_core_count},
		  {"connected_devices", text_connected},
		  {"info/notify_delay", text_minus_one},
		  {"info/serial_number", text_serial},
		  {"info/architecture/arch_type", text_arch},
		  {"info/architecture/instance_type", text_instance},
		  {"info/architecture/device_name", text_device_name},
},
  core_files[] = {
	  {"info/architecture/arch_type", text_core_arch},
};
#define ROWS(table) (sizeof(table) / sizeof((table)[0]))

const struct vdev_node *vdev_node(const struct vdev_tree *tree, uint64_t ino)
{
	return ino >= 1 && ino <= tree->count ? &tree->nodes[ino - 1] : NULL;
}

uint64_t vdev_node_find(const struct vdev_tree *tree, uint64_t parent, const char *name)
{
	for (size_t i = 1; i < tree->count; i++)
		if (tree->nodes[i].parent == parent && strcmp(tree->nodes[i].name, name) == 0)
			return i + 1;
	return 0;
}

/* Inode number of the new node, 0 when there is no memory. */
static uint64_t add_node(struct vdev_tree *tree, uint64_t parent, const char *name, size_t length,
	enum vdev_node_kind kind)
{
	struct vdev_node *node;

	if (tree->count == tree->slots) {
		size_t slots = tree->slots ? 2 * tree->slots : 256;
		struct vdev_node *grown = reallocarray(tree->nodes, slots, sizeof(*grown));

		if (!grown)
			return 0;
		tree->nodes = grown;
		tree->slots = slots;
	}
	node = &tree->nodes[tree->count++];
	*node = (struct vdev_node){.parent = parent, .kind = kind};
	snprintf(node->name, sizeof(node->name), "%.*s", (int)length, name);
	return tree->count;
}

/* Adds a file and the directories on the way; 0 when there is no memory. */
static uint64_t add_path(
	struct vdev_tree *tree, uint64_t parent, const char *path, enum vdev_node_kind kind)
{
	for (;;) {
		size_t length = strcspn(path, "/");
		char name[32];
		uint64_t ino;

		if (!path[length])
			return add_node(tree, parent, path, length, kind);
		snprintf(name, sizeof(name), "%.*s", (int)length, path);
		ino = vdev_node_find(tree, parent, name);
		if (!ino)
			ino = add_node(tree, parent, path, length, VDEV_NODE_DIR);
		if (!ino)
			return 0;
		parent = ino;
		path += length + 1;
	}
}

static int add_files(struct vdev_tree *tree, uint64_t parent, const struct file_row *rows,
	size_t count, unsigned device, unsigned core)
{
	for (size_t i = 0; i < count; i++) {
		uint64_t ino = add_path(tree, parent, rows[i].path, VDEV_NODE_TEXT);

		if (!ino)
			return -ENOMEM;
		tree->nodes[ino - 1].text = rows[i].text;
		tree->nodes[ino - 1].hidden = rows[i].text == text_core_count &&
					      tree->vdev->config.driver->hides_core_count;
		tree->nodes[ino - 1].device = device;
		tree->nodes[ino - 1].core = core;
	}
	return 0;
}

static int add_device(struct vdev_tree *tree, unsigned index)
{
	char path[64];
	uint64_t dir, ino;

	snprintf(path, sizeof(path), "dev/neuron%u", index);
	ino = add_path(tree, 1, path, VDEV_NODE_DEVICE);
	if (!ino)
		return -ENOMEM;
	tree->nodes[ino - 1].device = index;
	snprintf(path, sizeof(path), "sys/class/neuron_device/neuron%u", index);
	dir = add_path(tree, 1, path, VDEV_NODE_DIR);
	if (!dir || add_files(tree, dir, device_files, ROWS(device_files), index, 0) < 0)
		return -ENOMEM;
	for (unsigned c = 0; c < tree->vdev->config.cores; c++) {
		snprintf(path, sizeof(path), "neuron_core%u", c);
		ino = add_path(tree, dir, path, VDEV_NODE_DIR);
		if (!ino || add_files(tree, ino, core_files, ROWS(core_files), index, c) < 0)
			return -ENOMEM;
	}
	return 0;
}

int vdev_nodes_build(struct vdev_tree *tree)
{
	if (!add_node(tree, 1, "", 0, VDEV_NODE_DIR) ||
		add_files(tree, 1, machine_files, ROWS(machine_files), 0, 0) < 0)
		return -ENOMEM;
	for (unsigned i = 0; i < tree->vdev->config.devices; i++)
		if (add_device(tree, i) < 0)
			return -ENOMEM;
	return 0;
}
