/* SPDX-License-Identifier: Apache-2.0 */
/* root.c - the directory of a virtual device; see root.h. */
#include "runtime/vdev/root.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/base/file.h"

#define LOCK_NAME ".lock"
#define MOUNT_NAME ".fuse"
#define MAGIC "ntrace-vdev\n"
#define CREATED "created\n"

extern char **environ;

static const struct {
	const char *name, *target;
} links[] = {
	{"dev", MOUNT_NAME "/dev"},
	{"sys", MOUNT_NAME "/sys"},
	{"stats", MOUNT_NAME "/stats"},
};
#define LINKS (sizeof(links) / sizeof(links[0]))

/* ---- cleaning ---------------------------------------------------------------------------- */

/* Who is not root may unmount only through the helper. */
static void unmount_by_helper(const char *path)
{
	char *argv[] = {"fusermount3", "-u", "-z", "-q", (char *)(uintptr_t)path, NULL};
	pid_t pid;

	if (posix_spawnp(&pid, argv[0], NULL, NULL, argv, environ) == 0)
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			continue;
}

/* A dead mount answers ENOTCONN to everything but umount. */
static void unmount(int dir_fd, const char *path)
{
	struct stat here, there;

	if (geteuid() == 0) {
		while (umount2(path, MNT_DETACH | UMOUNT_NOFOLLOW) == 0)
			continue;
		return;
	}
	if (fstatat(dir_fd, ".", &here, 0) == 0 &&
		fstatat(dir_fd, MOUNT_NAME, &there, AT_SYMLINK_NOFOLLOW) == 0 &&
		here.st_dev == there.st_dev)
		return;
	unmount_by_helper(path);
}

/* All but the lock. */
static void remove_contents(int dir_fd, const char *path)
{
	_cleanup_free_ char *mount_point = NULL;

	if (asprintf(&mount_point, "%s/%s", path, MOUNT_NAME) < 0) {
		mount_point = NULL;
		return;
	}
	unmount(dir_fd, mount_point);
	unlinkat(dir_fd, MOUNT_NAME, AT_REMOVEDIR);
	unlinkat(dir_fd, VDEV_SOCK_NAME, 0);
	for (size_t i = 0; i < LINKS; i++)
		unlinkat(dir_fd, links[i].name, 0);
}

/* ---- the lock ---------------------------------------------------------------------------- */

/* The lock of a dead device: its descriptor, locked.  -ENOENT none, -EBUSY alive, -ENOTEMPTY a file
 * of that name that is not ours. */
static int take_old_lock(int dir_fd, bool *ret_created)
{
	_cleanup_close_ int fd = openat(dir_fd, LOCK_NAME, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	char text[64] = "";
	struct stat mine, now;
	int taken;

	if (fd < 0)
		return errno == ELOOP ? -ENOTEMPTY : -errno;
	if (pread(fd, text, sizeof(text) - 1, 0) < 0 || strncmp(text, MAGIC, strlen(MAGIC)) != 0)
		return -ENOTEMPTY;
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK ? -EBUSY : -errno;
	/* Its owner may have removed it between open and flock. */
	if (fstat(fd, &mine) < 0 || fstatat(dir_fd, LOCK_NAME, &now, AT_SYMLINK_NOFOLLOW) < 0 ||
		mine.st_ino != now.st_ino || mine.st_dev != now.st_dev)
		return -ENOENT;
	*ret_created = strstr(text, CREATED);
	taken = fd;
	fd = -1;
	return taken;
}

/* A new lock appears under its name locked and written, so nobody can take it in between.
 * -EEXIST when somebody was faster. */
static int make_lock(int dir_fd, bool created)
{
	_cleanup_close_ int fd = -1;
	char name[32];
	int made;

	snprintf(name, sizeof(name), LOCK_NAME ".%d", getpid());
	unlinkat(dir_fd, name, 0);
	fd = openat(dir_fd, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (fd < 0)
		return -errno;
	if (flock(fd, LOCK_EX | LOCK_NB) < 0 ||
		dprintf(fd, MAGIC "%s", created ? CREATED : "") < 0 ||
		renameat2(dir_fd, name, dir_fd, LOCK_NAME, RENAME_NOREPLACE) < 0) {
		int error = -errno;

		unlinkat(dir_fd, name, 0);
		return error;
	}
	made = fd;
	fd = -1;
	return made;
}

/* Names of locks in the making do not count. */
static bool is_empty(int dir_fd)
{
	int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;
	bool empty = dir;

	while (dir && (entry = readdir(dir)))
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
			strncmp(entry->d_name, LOCK_NAME, strlen(LOCK_NAME)) != 0)
			empty = false;
	if (dir)
		closedir(dir);
	else
		cleanup_close(&fd);
	return empty;
}

static int take_lock(struct vdev_root *root)
{
	for (;;) {
		bool created = root->created;

		root->lock_fd = take_old_lock(root->dir_fd, &created);
		if (root->lock_fd >= 0) {
			root->created = created;
			remove_contents(root->dir_fd, root->path);
			return 0;
		}
		if (root->lock_fd != -ENOENT)
			return root->lock_fd;
		if (!is_empty(root->dir_fd))
			return -ENOTEMPTY;
		root->lock_fd = make_lock(root->dir_fd, root->created);
		if (root->lock_fd != -EEXIST)
			return root->lock_fd < 0 ? root->lock_fd : 0;
	}
}

/* ---- taking and leaving ------------------------------------------------------------------ */

static int open_dir(struct vdev_root *root, const char *path)
{
	root->path = realpath(path, NULL);
	if (!root->path)
		return -errno;
	if (asprintf(&root->mount_point, "%s/%s", root->path, MOUNT_NAME) < 0) {
		root->mount_point = NULL;
		return -ENOMEM;
	}
	root->dir_fd = open(root->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return root->dir_fd < 0 ? -errno : 0;
}

static void forget(struct vdev_root *root)
{
	free(root->path);
	free(root->mount_point);
	cleanup_close(&root->dir_fd);
	cleanup_close(&root->lock_fd);
	*root = (struct vdev_root){.dir_fd = -1, .lock_fd = -1};
}

int vdev_root_open(struct vdev_root *root, const char *path)
{
	int r;

	*root = (struct vdev_root){.dir_fd = -1, .lock_fd = -1};
	root->created = mkdir(path, 0755) == 0;
	if (!root->created && errno != EEXIST)
		return -errno;
	r = open_dir(root, path);
	if (r == 0)
		r = take_lock(root);
	if (r < 0) {
		if (root->created)
			rmdir(path);
		root->lock_fd = -1;
		forget(root);
		return r;
	}
	if (mkdirat(root->dir_fd, MOUNT_NAME, 0755) < 0) {
		r = -errno;
		vdev_root_close(root);
	}
	return r;
}

static const char *temp_dir(void)
{
	const char *dir = getenv("TMPDIR");

	return dir && dir[0] == '/' ? dir : "/tmp";
}

int vdev_root_open_private(struct vdev_root *root)
{
	_cleanup_free_ char *path = NULL;
	int r;

	*root = (struct vdev_root){.dir_fd = -1, .lock_fd = -1};
	if (asprintf(&path, "%s/%sXXXXXX", temp_dir(), VDEV_PRIVATE_PREFIX) < 0) {
		path = NULL;
		return -ENOMEM;
	}
	if (!mkdtemp(path))
		return -errno;
	/* Programs that root starts for other users must reach the device. */
	if (geteuid() == 0)
		chmod(path, 0755);
	r = vdev_root_open(root, path);
	if (r < 0)
		rmdir(path);
	else
		root->created = true;
	return r;
}

int vdev_root_fill(const struct vdev_root *root)
{
	for (size_t i = 0; i < LINKS; i++)
		if (symlinkat(links[i].target, root->dir_fd, links[i].name) < 0)
			return -errno;
	return 0;
}

void vdev_root_close(struct vdev_root *root)
{
	if (root->dir_fd < 0)
		return;
	remove_contents(root->dir_fd, root->path);
	unlinkat(root->dir_fd, LOCK_NAME, 0);
	if (root->created)
		rmdir(root->path);
	forget(root);
}

/* ---- sweeping ---------------------------------------------------------------------------- */

static void sweep_one(int parent_fd, const char *parent, const char *name)
{
	struct vdev_root root = {.dir_fd = -1, .lock_fd = -1, .created = true};
	struct stat st;
	bool created;

	root.dir_fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (root.dir_fd < 0)
		return;
	if (fstat(root.dir_fd, &st) == 0 && st.st_uid == geteuid())
		root.lock_fd = take_old_lock(root.dir_fd, &created);
	if (root.lock_fd >= 0 && asprintf(&root.path, "%s/%s", parent, name) >= 0)
		vdev_root_close(&root);
	else
		cleanup_close(&root.dir_fd);
	if (root.lock_fd >= 0)
		cleanup_close(&root.lock_fd);
}

void vdev_root_sweep(void)
{
	const char *parent = temp_dir();
	int fd = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;

	while (dir && (entry = readdir(dir)))
		if (strncmp(entry->d_name, VDEV_PRIVATE_PREFIX, strlen(VDEV_PRIVATE_PREFIX)) == 0)
			sweep_one(fd, parent, entry->d_name);
	if (dir)
		closedir(dir);
	else
		cleanup_close(&fd);
}
