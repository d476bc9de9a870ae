/* SPDX-License-Identifier: Apache-2.0 */
/* daemon.c - the life of a virtual device; see daemon.h. */
#include "runtime/vdev/daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/base/env.h"
#include "runtime/vdev/children.h"
#include "runtime/vdev/fuse_tree.h"
#include "runtime/vdev/mem_sock.h"
#include "runtime/vdev/root.h"

extern char **environ;

#define WAKE_SIGNAL SIGUSR1	/* to the serving thread: look at the exit flag */
#define SERVED_SIGNAL SIGUSR2	/* to the watching thread: serving ended by itself */
#define END_TRIES 200		/* of 10 ms */
#define SAY_KEPT_NS 1000000000u /* a program that ends with the command is not worth a word */

struct daemon {
	const struct vdev_options *options;
	struct vdev vdev;
	struct vdev_tree tree;
	struct vdev_sock sock;
	struct vdev_root root;
	pthread_t serving_thread, watching_thread;
	sem_t served; /* posted when vdev_tree_serve() has returned */
	sigset_t old_mask;
	struct rlimit old_files;
	int status; /* exit code */
};

static int fail_code(const struct daemon *d, int code)
{
	return d->options->command ? VDEV_EXIT_WRAPPER : code;
}

/* ---- signals and limits ------------------------------------------------------------------ */

static void do_nothing(int signal)
{
	(void)signal;
}

static void watched_signals(sigset_t *set)
{
	static const int signals[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGCHLD, SERVED_SIGNAL};

	sigemptyset(set);
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		sigaddset(set, signals[i]);
}

static void set_up_process(struct daemon *d)
{
	struct sigaction wake = {.sa_handler = do_nothing}; /* no SA_RESTART: it must interrupt */
	struct sigaction ignore = {.sa_handler = SIG_IGN};
	struct rlimit all;
	sigset_t set;

	watched_signals(&set);
	pthread_sigmask(SIG_BLOCK, &set, &d->old_mask);
	sigaction(WAKE_SIGNAL, &wake, NULL);
	sigaction(SIGPIPE, &ignore, NULL);
	/* An allocation is a descriptor. */
	getrlimit(RLIMIT_NOFILE, &d->old_files);
	all = d->old_files;
	all.rlim_cur = all.rlim_max;
	setrlimit(RLIMIT_NOFILE, &all);
}

/* ---- the command ------------------------------------------------------------------------- */

/* Says why, in the words of ntrace; the exit code. */
static int not_started(const char *name, int error)
{
	bool there = strchr(name, '/') && access(name, F_OK) == 0;

	fprintf(stderr, "ntrace-vdev: %s: %s\n", name,
		error != ENOENT ? strerror(error)
		: there		? "the file is there, but not the interpreter that it names"
				: "command not found");
	return error == ENOENT ? 127 : error == EAGAIN || error == ENOMEM ? VDEV_EXIT_WRAPPER : 126;
}

/* Starts the command with the signals and limits that we were started with, in our process group,
 * so that the terminal stays its own.  0 or its exit code. */
static int start_command(struct daemon *d, pid_t *ret_pid)
{
	char **command = d->options->command;
	posix_spawnattr_t attr;
	struct rlimit raised;
	sigset_t defaults;
	int r;

	sigemptyset(&defaults);
	sigaddset(&defaults, SIGPIPE);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setsigmask(&attr, &d->old_mask);
	posix_spawnattr_setsigdefault(&attr, &defaults);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	getrlimit(RLIMIT_NOFILE, &raised);
	setrlimit(RLIMIT_NOFILE, &d->old_files);
	r = posix_spawnp(ret_pid, command[0], NULL, &attr, command, environ);
	setrlimit(RLIMIT_NOFILE, &raised);
	posix_spawnattr_destroy(&attr);
	if (r == 0)
		return 0;
	return not_started(command[0], r);
}

static bool in_use(struct daemon *d)
{
	return atomic_load(&d->vdev.counters.open_handles) > 0;
}

static void say_kept(const struct daemon *d)
{
	if (!d->options->quiet)
		fprintf(stderr,
			"ntrace-vdev: %s has ended, but not all that it started or that uses the "
			"device: the device stays as long, or until SIGTERM\n",
			d->options->command[0]);
}

/* A program that outlives the command, perhaps because that was killed, keeps its device.  Ends
 * with the last descendant and the last handle, or with a signal. */
static void serve_the_rest(struct daemon *d, const struct vdev_children *children)
{
	uint64_t begin = clock_boot().ns;
	bool said = false;
	sigset_t set;
	long ms = 1;

	watched_signals(&set);
	for (;;) {
		bool left = vdev_children_left(children);
		struct timespec pause = {.tv_nsec = ms * 1000000L};
		int signal;

		if (!left && !in_use(d))
			return;
		/* The end of a child is an event; that of a handle is not, and comes soon. */
		signal = sigtimedwait(&set, NULL, left && said ? NULL : &pause);
		if (signal > 0 && signal != SIGCHLD)
			return;
		vdev_children_reap(0, NULL);
		ms = ms < 100 ? 2 * ms : 100;
		if (!said && clock_boot().ns - begin > SAY_KEPT_NS) {
			say_kept(d);
			said = true;
		}
	}
}

static int watch_started(struct daemon *d, pid_t pid, const struct vdev_children *children)
{
	bool told = false; /* to end, so it ends with the command */
	int status;
	sigset_t set;

	watched_signals(&set);
	while (!vdev_children_reap(pid, &status)) {
		int signal = sigwaitinfo(&set, NULL);

		/* Ctrl-C and Ctrl-\ reach the command by themselves. */
		if (signal == SIGTERM || signal == SIGHUP) {
			kill(pid, signal);
			told = true;
		}
	}
	if (!told)
		serve_the_rest(d, children);
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static int watch_command(struct daemon *d)
{
	struct vdev_children children;
	int r = vdev_children_begin(&children), code;
	pid_t pid;

	if (r < 0)
		fprintf(stderr, "ntrace-vdev: what outlives the command is not seen: %s\n",
			strerror(-r));
	code = start_command(d, &pid);
	if (code == 0)
		code = watch_started(d, pid, &children);
	vdev_children_free(&children);
	return code;
}

static int watch_signals(struct daemon *d)
{
	sigset_t set;
	int signal;

	printf("ready %s\n", d->root.path);
	fflush(stdout);
	watched_signals(&set);
	do
		signal = sigwaitinfo(&set, NULL);
	while (signal < 0 || signal == SIGCHLD);
	if (signal != SERVED_SIGNAL)
		return VDEV_EXIT_OK;
	fprintf(stderr, "ntrace-vdev: %s was unmounted by somebody else\n", d->root.mount_point);
	return VDEV_EXIT_ENVIRONMENT;
}

/* ---- ending ------------------------------------------------------------------------------ */

static bool wait_served(struct daemon *d)
{
	struct timespec t = clock_in_ms(CLOCK_REALTIME, 10);

	return sem_timedwait(&d->served, &t) == 0;
}

/* The serving thread may be just before its wait when a signal comes, so signals are repeated. */
static void end_serving(struct daemon *d)
{
	vdev_stop(&d->vdev);
	vdev_tree_exit(&d->tree);
	for (int i = 0; i < END_TRIES; i++) {
		pthread_kill(d->serving_thread, WAKE_SIGNAL);
		if (wait_served(d))
			return;
	}
	/* A client keeps a request from ending, say by a page that never comes.  Past all exit
	 * handlers, a sanitizer's too: threads are still at work. */
	vdev_root_close(&d->root);
	syscall(SYS_exit_group, d->status);
}

static void *watch(void *arg)
{
	struct daemon *d = arg;

	d->status = d->options->command ? watch_command(d) : watch_signals(d);
	end_serving(d);
	return NULL;
}

/* ---- starting ---------------------------------------------------------------------------- */

static int open_root(struct daemon *d)
{
	const char *path = d->options->root;
	int r;

	vdev_root_sweep();
	r = path ? vdev_root_open(&d->root, path) : vdev_root_open_private(&d->root);
	if (r == 0)
		return 0;
	path = path ? path : "a private directory";
	if (r == -EBUSY)
		fprintf(stderr,
			"ntrace-vdev: %s is in use by a running device: end it, or choose another "
			"--root\n",
			path);
	else if (r == -ENOTEMPTY)
		fprintf(stderr,
			"ntrace-vdev: %s is not empty and no virtual device: choose an empty or a "
			"new directory\n",
			path);
	else
		fprintf(stderr, "ntrace-vdev: cannot use %s: %s\n", path, strerror(-r));
	return fail_code(d, r == -ENOTEMPTY ? VDEV_EXIT_USAGE : VDEV_EXIT_ENVIRONMENT);
}

static int mount_tree(struct daemon *d)
{
	int r = vdev_tree_mount(&d->tree, &d->vdev, d->root.mount_point, geteuid() == 0);

	if (r < 0) {
		fprintf(stderr,
			"ntrace-vdev: cannot mount a FUSE file system on %s: %s (needs /dev/fuse, "
			"and "
			"root or fusermount3)\n",
			d->root.mount_point, strerror(-r));
		return fail_code(d, VDEV_EXIT_ENVIRONMENT);
	}
	return 0;
}

static int internal(struct daemon *d, const char *what, int error)
{
	fprintf(stderr, "ntrace-vdev: %s: %s\n", what, strerror(-error));
	return fail_code(d, VDEV_EXIT_INTERNAL);
}

static void say_virtual(const struct daemon *d)
{
	const struct vdev_config *c = &d->options->config;

	if (!d->options->quiet)
		fprintf(stderr,
			"ntrace-vdev: VIRTUAL: %u %s device%s, %u NeuronCore%s each, at %s\n",
			c->devices, c->instance->family->device_name, c->devices == 1 ? "" : "s",
			c->cores, c->cores == 1 ? "" : "s", d->root.path);
}

/* Serves in this thread until the watching one ends it. */
static int serve(struct daemon *d)
{
	int r;

	d->serving_thread = pthread_self();
	r = -pthread_create(&d->watching_thread, NULL, watch, d);
	if (r < 0)
		return internal(d, "cannot start a thread", r);
	vdev_tree_serve(&d->tree);
	/* Unmounted by somebody else, perhaps: tell the other side, then let it end us. */
	pthread_kill(d->watching_thread, SERVED_SIGNAL);
	sem_post(&d->served);
	pthread_join(d->watching_thread, NULL);
	return d->status;
}

static int run_in_root(struct daemon *d)
{
	int code = mount_tree(d), r;

	if (code)
		return code;
	r = vdev_root_fill(&d->root);
	if (r == 0)
		r = vdev_sock_start(&d->sock, &d->vdev, d->root.dir_fd, VDEV_SOCK_NAME);
	if (r == 0) {
		say_virtual(d);
		setenv(ENV_DEVICE_ROOT, d->root.path, 1);
		code = serve(d);
		vdev_sock_stop(&d->sock);
	} else {
		code = internal(d, "cannot set up the directory", r);
	}
	vdev_stop(&d->vdev);
	vdev_tree_unmount(&d->tree);
	vdev_tree_destroy(&d->tree);
	return code;
}

int vdev_daemon_run(const struct vdev_options *options)
{
	static struct daemon d;
	int code, r;

	d.options = options;
	sem_init(&d.served, 0, 0);
	set_up_process(&d);
	r = vdev_create(&d.vdev, &options->config);
	if (r < 0)
		return internal(&d, "no memory for the devices", r);
	code = open_root(&d);
	if (code == 0) {
		code = run_in_root(&d);
		vdev_root_close(&d.root);
	}
	vdev_destroy(&d.vdev);
	return code;
}
