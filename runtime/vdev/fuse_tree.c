/* SPDX-License-Identifier: Apache-2.0 */
/* fuse_tree.c - the FUSE side of the file tree; see fuse_tree.h. */
#define FUSE_USE_VERSION 314
#include "runtime/vdev/fuse_tree.h"

#include <errno.h>
#include <fcntl.h>
#include <fuse_lowlevel.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/file.h"
#include "runtime/vdev/request.h"
#include "runtime/vdev/tree_nodes.h"
#include "runtime/vdev/user_memory.h"

/* Nothing ever changes: the kernel may keep names and attributes. */
#define KEEP_SECONDS 86400.0
/* More than may wait in requests (request.c), so that there is always one for the rest. */
#define MAX_THREADS 1024u
#define IDLE_THREADS 8u

/* Behind fuse_file_info.fh.  Listed, because at the end of the connection no release comes for
 * what clients still hold. */
struct vdev_open_file {
	struct vdev_open_file *next, **link;
	bool device;
	struct vdev_handle handle; /* of a device */
	char *text;		   /* of a text file */
	size_t text_size;
};

static struct vdev_tree *tree_of(fuse_req_t req)
{
	return fuse_req_userdata(req);
}

static const struct vdev_node *node_of(fuse_req_t req, fuse_ino_t ino)
{
	return vdev_node(tree_of(req), ino);
}

static void fill_attr(fuse_ino_t ino, const struct vdev_node *node, struct stat *st)
{
	static const mode_t modes[] = {
		[VDEV_NODE_DIR] = S_IFDIR | 0555,
		[VDEV_NODE_TEXT] = S_IFREG | 0444,
		[VDEV_NODE_DEVICE] = S_IFREG | 0666, /* as the driver package's udev rule */
	};

	*st = (struct stat){
		.st_ino = ino,
		.st_mode = node->hidden ? S_IFREG | 0400 : modes[node->kind],
		.st_nlink = node->kind == VDEV_NODE_DIR ? 2 : 1,
		.st_uid = getuid(),
		.st_gid = getgid(),
		.st_blksize = 4096,
	};
}

static void init_connection(void *userdata, struct fuse_conn_info *conn)
{
	(void)userdata;
	/* O_TRUNC on a device is an open like any other. */
	if (conn->capable & FUSE_CAP_ATOMIC_O_TRUNC)
		conn->want |= FUSE_CAP_ATOMIC_O_TRUNC;
}

/* ---- names ------------------------------------------------------------------------------- */

static void lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct fuse_entry_param entry = {
		.attr_timeout = KEEP_SECONDS, .entry_timeout = KEEP_SECONDS};
	uint64_t ino = vdev_node_find(tree_of(req), parent, name);

	if (!ino) {
		fuse_reply_err(req, ENOENT);
		return;
	}
	entry.ino = ino;
	fill_attr(ino, node_of(req, ino), &entry.attr);
	fuse_reply_entry(req, &entry);
}

static void getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	const struct vdev_node *node = node_of(req, ino);
	struct stat st;

	(void)fi;
	if (!node) {
		fuse_reply_err(req, ENOENT);
		return;
	}
	fill_attr(ino, node, &st);
	fuse_reply_attr(req, &st, KEEP_SECONDS);
}

/* Truncation and times are accepted and mean nothing, as on a device node; the rest is fixed. */
static void setattr(
	fuse_req_t req, fuse_ino_t ino, struct stat *attr, int to_set, struct fuse_file_info *fi)
{
	(void)attr;
	if (to_set & (FUSE_SET_ATTR_MODE | FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID))
		fuse_reply_err(req, EPERM);
	else
		getattr(req, ino, fi);
}

static void readdir(
	fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset, struct fuse_file_info *fi)
{
	const struct vdev_tree *tree = tree_of(req);
	char *buffer = malloc(size);
	size_t used = 0;

	(void)fi;
	if (!buffer) {
		fuse_reply_err(req, ENOMEM);
		return;
	}
	/* Offsets: 1 after ".", 2 after "..", then inode number + 1. */
	for (size_t at = (size_t)offset; at < tree->count + 2; at++) {
		const char *name = at == 0 ? "." : at == 1 ? ".." : NULL;
		struct stat st = {.st_ino = ino, .st_mode = S_IFDIR};
		size_t n;

		if (!name) {
			const struct vdev_node *node = vdev_node(tree, at - 1);

			if (at - 1 == 1 || node->parent != ino)
				continue;
			name = node->name;
			fill_attr(at - 1, node, &st);
		}
		n = fuse_add_direntry(req, buffer + used, size - used, name, &st, (off_t)at + 1);
		if (n > size - used)
			break;
		used += n;
	}
	fuse_reply_buf(req, buffer, used);
	free(buffer);
}

static void refuse_new(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode)
{
	(void)parent;
	(void)name;
	(void)mode;
	fuse_reply_err(req, EPERM);
}

static void refuse_mknod(
	fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, dev_t rdev)
{
	(void)rdev;
	refuse_new(req, parent, name, mode);
}

static void refuse_remove(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	refuse_new(req, parent, name, 0);
}

static void refuse_symlink(fuse_req_t req, const char *target, fuse_ino_t parent, const char *name)
{
	(void)target;
	refuse_new(req, parent, name, 0);
}

static void refuse_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t parent, const char *name)
{
	(void)ino;
	refuse_new(req, parent, name, 0);
}

static void refuse_rename(fuse_req_t req, fuse_ino_t parent, const char *name,
	fuse_ino_t new_parent, const char *new_name, unsigned flags)
{
	(void)new_parent;
	(void)new_name;
	(void)flags;
	refuse_new(req, parent, name, 0);
}

/* ---- open files -------------------------------------------------------------------------- */

static struct vdev_open_file *file_of(const struct fuse_file_info *fi)
{
	return (struct vdev_open_file *)(uintptr_t)fi->fh;
}

static void list_file(struct vdev_tree *tree, struct vdev_open_file *file)
{
	pthread_mutex_lock(&tree->lock);
	file->next = tree->files;
	file->link = &tree->files;
	if (file->next)
		file->next->link = &file->next;
	tree->files = file;
	pthread_mutex_unlock(&tree->lock);
}

static void free_file(struct vdev_tree *tree, struct vdev_open_file *file)
{
	pthread_mutex_lock(&tree->lock);
	*file->link = file->next;
	if (file->next)
		file->next->link = file->link;
	pthread_mutex_unlock(&tree->lock);
	free(file->text);
	free(file);
}

static int open_text(
	struct vdev *vdev, const struct vdev_node *node, int flags, struct vdev_open_file *file)
{
	if ((flags & O_ACCMODE) != O_RDONLY)
		return -EACCES;
	file->text = node->text(vdev, node, &file->text_size);
	return file->text ? 0 : -ENOMEM;
}

/* The caller of an open has a signal, or the device ends. */
static bool open_ended(void *context)
{
	fuse_req_t req = context;

	return atomic_load(&tree_of(req)->vdev->stopping) || fuse_req_interrupted(req);
}

static int open_device(
	fuse_req_t req, const struct vdev_node *node, int flags, struct vdev_open_file *file)
{
	struct vdev *vdev = tree_of(req)->vdev;
	struct vdev_handle *handle = &file->handle;
	unsigned row;
	int r;

	handle->device = &vdev->devices[node->device];
	handle->opener = vdev_user_tgid(fuse_req_ctx(req)->pid);
	handle->query = (flags & O_ACCMODE) == O_WRONLY;
	if (handle->opener <= 0) /* not in our pid namespace: its memory could not be reached */
		return -EACCES;
	row = handle->query ? VDEV_ROW_OPEN_QUERY : VDEV_ROW_OPEN;
	r = vdev_rule_obey(&vdev->config.rules.row[row],
		atomic_fetch_add(&vdev->counters.by_request[row], 1) + 1, open_ended, req);
	if (r == 0 && !handle->query)
		r = vdev_attach(handle->device, handle->opener);
	if (r < 0)
		return r;
	file->device = true;
	atomic_fetch_add(&vdev->counters.open_handles, 1);
	return 0;
}

/* What close(2) by the process tgid does, as the driver's flush. */
static void close_by(struct vdev *vdev, struct vdev_handle *handle, pid_t tgid)
{
	if (tgid == handle->opener)
		atomic_store(&handle->flushed, true);
	if (handle->query)
		vdev_marks_give_all(&vdev->marks, tgid);
	else
		vdev_detach(handle->device, tgid);
}

/* An open file can end without a flush (an open that failed late); the driver never meets that. */
static void close_file(struct vdev_tree *tree, struct vdev_open_file *file)
{
	if (file->device) {
		if (!atomic_load(&file->handle.flushed))
			close_by(tree->vdev, &file->handle, file->handle.opener);
		atomic_fetch_sub(&tree->vdev->counters.open_handles, 1);
	}
	free_file(tree, file);
}

static void open_file(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct vdev_tree *tree = tree_of(req);
	const struct vdev_node *node = vdev_node(tree, ino);
	struct vdev_open_file *file = calloc(1, sizeof(*file));
	int r;

	if (!file) {
		fuse_reply_err(req, ENOMEM);
		return;
	}
	list_file(tree, file);
	r = node->kind == VDEV_NODE_DEVICE ? open_device(req, node, fi->flags, file)
					   : open_text(tree->vdev, node, fi->flags, file);
	if (r < 0) {
		free_file(tree, file);
		fuse_reply_err(req, -r);
		return;
	}
	fi->fh = (uintptr_t)file;
	fi->direct_io = 1;
	fi->nonseekable = file->device;
	if (fuse_reply_open(req, fi) == -ENOENT) /* the caller is gone: no release will come */
		close_file(tree, file);
}

/* The thread that closes is usually one of the opener; a forked child closes its copy as itself.  A
 * caller that cannot be resolved is taken for the opener. */
static void flush(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct vdev_open_file *file = file_of(fi);

	(void)ino;
	if (file->device) {
		pid_t tgid = vdev_user_tgid(fuse_req_ctx(req)->pid);

		close_by(tree_of(req)->vdev, &file->handle, tgid > 0 ? tgid : file->handle.opener);
	}
	fuse_reply_err(req, 0);
}

static void release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	(void)ino;
	close_file(tree_of(req), file_of(fi));
	fuse_reply_err(req, 0);
}

/* The reply is made from a copy: once the bytes are out, the reader may close the file and
 * another thread free its text, while this one is still coming back from the write. */
static void read_file(
	fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset, struct fuse_file_info *fi)
{
	const struct vdev_open_file *file = file_of(fi);
	_cleanup_free_ char *copy = NULL;
	size_t at, n;

	(void)ino;
	if (file->device) {
		fuse_reply_err(req, EINVAL);
		return;
	}
	at = offset < 0 || (size_t)offset > file->text_size ? file->text_size : (size_t)offset;
	n = size < file->text_size - at ? size : file->text_size - at;
	copy = malloc(n + 1);
	if (!copy) {
		fuse_reply_err(req, ENOMEM);
		return;
	}
	memcpy(copy, file->text + at, n);
	fuse_reply_buf(req, copy, n);
}

static void write_file(fuse_req_t req, fuse_ino_t ino, const char *data, size_t size, off_t offset,
	struct fuse_file_info *fi)
{
	(void)ino;
	(void)data;
	(void)size;
	(void)offset;
	(void)fi;
	fuse_reply_err(req, EINVAL);
}

static bool request_interrupted(void *context)
{
	return fuse_req_interrupted(context);
}

static void ioctl_file(fuse_req_t req, fuse_ino_t ino, unsigned cmd, void *arg,
	struct fuse_file_info *fi, unsigned flags, const void *in, size_t in_size, size_t out_size)
{
	struct vdev_ioctl io = {
		.handle = &file_of(fi)->handle,
		.tid = fuse_req_ctx(req)->pid,
		.cmd = cmd,
		.arg = (uintptr_t)arg,
		.in = in_size ? in : NULL,
		.in_size = in_size,
		.interrupted = request_interrupted,
		.context = req,
	};

	(void)ino;
	(void)out_size;
	/* The driver has no 32-bit entry. */
	if (!file_of(fi)->device || flags & FUSE_IOCTL_COMPAT) {
		fuse_reply_err(req, ENOTTY);
		return;
	}
	vdev_ioctl(tree_of(req)->vdev, &io);
	fuse_reply_ioctl(req, io.result, io.reply_size ? io.reply : NULL, io.reply_size);
}

static const struct fuse_lowlevel_ops operations = {
	.init = init_connection,
	.lookup = lookup,
	.getattr = getattr,
	.setattr = setattr,
	.readdir = readdir,
	.mknod = refuse_mknod,
	.mkdir = refuse_new,
	.unlink = refuse_remove,
	.rmdir = refuse_remove,
	.symlink = refuse_symlink,
	.link = refuse_link,
	.rename = refuse_rename,
	.open = open_file,
	.flush = flush,
	.release = release,
	.read = read_file,
	.write = write_file,
	.ioctl = ioctl_file,
};

/* ---- life -------------------------------------------------------------------------------- */

int vdev_tree_mount(struct vdev_tree *tree, struct vdev *vdev, const char *mount_point, bool others)
{
	char *argv[] = {"ntrace-vdev", "-o",
		others ? "fsname=ntrace-vdev,subtype=ntrace-vdev,nosuid,nodev,default_permissions,"
			 "allow_other"
		       : "fsname=ntrace-vdev,subtype=ntrace-vdev,nosuid,nodev,default_permissions",
		NULL};
	struct fuse_args args = FUSE_ARGS_INIT(3, argv);
	int r;

	*tree = (struct vdev_tree){.vdev = vdev};
	pthread_mutex_init(&tree->lock, NULL);
	r = vdev_nodes_build(tree);
	if (r < 0)
		goto fail;
	r = -ENODEV;
	tree->session = fuse_session_new(&args, &operations, sizeof(operations), tree);
	fuse_opt_free_args(&args);
	if (!tree->session)
		goto fail;
	errno = 0;
	if (fuse_session_mount(tree->session, mount_point) == 0)
		return 0;
	r = errno ? -errno : -ENODEV;
fail:
	vdev_tree_destroy(tree);
	return r;
}

int vdev_tree_serve(struct vdev_tree *tree)
{
	struct fuse_loop_config *config = fuse_loop_cfg_create();
	int r;

	if (!config)
		return -ENOMEM;
	fuse_loop_cfg_set_max_threads(config, MAX_THREADS);
	fuse_loop_cfg_set_idle_threads(config, IDLE_THREADS);
	r = fuse_session_loop_mt(tree->session, config);
	fuse_loop_cfg_destroy(config);
	return r > 0 ? -r : r;
}

void vdev_tree_exit(struct vdev_tree *tree)
{
	fuse_session_exit(tree->session);
}

void vdev_tree_unmount(struct vdev_tree *tree)
{
	fuse_session_unmount(tree->session);
}

void vdev_tree_destroy(struct vdev_tree *tree)
{
	if (tree->session)
		fuse_session_destroy(tree->session);
	while (tree->files)
		free_file(tree, tree->files);
	free(tree->nodes);
	pthread_mutex_destroy(&tree->lock);
	*tree = (struct vdev_tree){0};
}
