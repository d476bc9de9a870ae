/* SPDX-License-Identifier: Apache-2.0 */
/* children.c - what is left of a command when it has ended; see children.h. */
#include "runtime/vdev/children.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>

/* Calls fn for each child of any of our threads, until it returns something else than 0, which is
 * returned.  -errno when the kernel does not list them. */
static int each_child(int (*fn)(pid_t pid, void *arg), void *arg)
{
	DIR *tasks = opendir("/proc/self/task");
	const struct dirent *task;
	int r = tasks ? 0 : -errno;

	while (tasks && r == 0 && (task = readdir(tasks))) {
		char path[64];
		FILE *f;
		int pid;

		if (task->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "/proc/self/task/%.20s/children", task->d_name);
		f = fopen(path, "re");
		if (!f) {
			r = errno == ENOENT || errno == ESRCH ? 0 : -errno; /* the thread ended */
			continue;
		}
		while (r == 0 && fscanf(f, "%d", &pid) == 1)
			r = fn(pid, arg);
		fclose(f);
	}
	if (tasks)
		closedir(tasks);
	return r;
}

static int note(pid_t pid, void *arg)
{
	struct vdev_children *c = arg;
	pid_t *grown = reallocarray(c->before, c->count + 1, sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	c->before = grown;
	c->before[c->count++] = pid;
	return 0;
}

static int is_new(pid_t pid, void *arg)
{
	const struct vdev_children *c = arg;

	for (size_t i = 0; i < c->count; i++)
		if (c->before[i] == pid)
			return 0;
	return 1;
}

int vdev_children_begin(struct vdev_children *c)
{
	struct sigaction by_default = {.sa_handler = SIG_DFL};
	int r;

	*c = (struct vdev_children){0};
	r = each_child(note, c);
	if (r < 0)
		return r;
	/* Where it is ignored, statuses are lost. */
	sigaction(SIGCHLD, &by_default, NULL);
	return prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0 ? -errno : 0;
}

void vdev_children_free(struct vdev_children *c)
{
	free(c->before);
	*c = (struct vdev_children){0};
}

bool vdev_children_reap(pid_t pid, int *ret_status)
{
	bool found = false;
	pid_t ended;
	int status;

	while ((ended = waitpid(-1, &status, WNOHANG)) > 0)
		if (ended == pid) {
			*ret_status = status;
			found = true;
		}
	return found;
}

bool vdev_children_left(const struct vdev_children *c)
{
	siginfo_t info;

	if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0 && errno == ECHILD)
		return false;
	return c->count == 0 || each_child(is_new, (void *)(uintptr_t)c) != 0;
}
