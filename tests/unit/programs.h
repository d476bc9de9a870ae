/* SPDX-License-Identifier: Apache-2.0 */
/*
 * programs.h - runs the built programs from a test: start, wait, kill, read what they printed.
 *
 * Header only.  Programs are looked for below $BUILD (default: build).
 */
#ifndef NTRACE_TESTS_PROGRAMS_H
#define NTRACE_TESTS_PROGRAMS_H

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/unit/vdev_harness.h"

struct program_path {
	char s[512];
};

/* Absolute path of a built file, e.g. "bin/ntrace". */
static inline struct program_path program_path(const char *name)
{
	struct program_path p;
	const char *build = getenv("BUILD");
	char cwd[256];

	if (!build || !*build)
		build = "build";
	if (*build == '/' || !getcwd(cwd, sizeof(cwd)))
		snprintf(p.s, sizeof(p.s), "%s/%s", build, name);
	else
		snprintf(p.s, sizeof(p.s), "%s/%s/%s", cwd, build, name);
	return p;
}

static inline bool program_exists(const char *name)
{
	return access(program_path(name).s, X_OK) == 0;
}

/* Starts argv (argv[0] a path) with output to the file `log`.  env: "NAME=value" or NULL.  It dies
 * with the test. */
static inline pid_t program_start(char *const argv[], const char *log, const char *env)
{
	fflush(NULL);
	pid_t pid = fork();

	if (pid == 0) {
		int fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (env)
			putenv((char *)env);
		if (fd < 0 || dup2(fd, 1) < 0 || dup2(fd, 2) < 0)
			_exit(99);
		execv(argv[0], argv);
		_exit(98);
	}
	return pid;
}

/* Exit status, or 128 + signal, as a shell gives it. */
static inline int program_wait(pid_t pid)
{
	int status = 0;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -1;
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static inline int program_run(char *const argv[], const char *log, const char *env)
{
	return program_wait(program_start(argv, log, env));
}

/* "ASAN_OPTIONS=...", as env(1) takes it, for a program that tests/faults.so is loaded into: its findings go where
 * ours go. */
static inline const char *program_asan_options(char *text, size_t size)
{
	const char *ours = getenv("ASAN_OPTIONS");

	snprintf(text, size, "ASAN_OPTIONS=%s%sverify_asan_link_order=0:detect_leaks=1",
		ours ? ours : "", ours ? ":" : "");
	return text;
}

/* Waits until cond(arg) holds, at most `seconds`; polls, because what is waited for has no event.
 */
static inline bool program_until(bool (*cond)(void *), void *arg, int seconds)
{
	struct timespec pause = {.tv_nsec = 2000000};

	for (int i = 0; i < seconds * 500; i++) {
		if (cond(arg))
			return true;
		nanosleep(&pause, NULL);
	}
	return cond(arg);
}

/* Whole file as text ("" when there is none), to be freed. */
static inline char *program_text(const char *path)
{
	char *text = calloc(1, 1 << 20);
	FILE *f = fopen(path, "r");

	if (text && f) {
		size_t n = fread(text, 1, (1 << 20) - 1, f);
		text[n] = 0;
	}
	if (f)
		fclose(f);
	return text;
}

/* For program_until: is there no such process (pid_t *) any more, or but a zombie? */
static inline bool program_gone(void *pid)
{
	char path[64], *text, *state;
	bool gone;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)*(pid_t *)pid);
	text = program_text(path);
	state = strrchr(text, ')');
	gone = !state || state[2] == 'Z' || state[2] == 'X';
	free(text);
	return gone;
}

/* The first child of a process, 0 when it has none. */
static inline pid_t program_child(pid_t pid)
{
	char path[64], line[64] = "";
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)pid, (int)pid);
	f = fopen(path, "r");
	if (f) {
		if (!fgets(line, sizeof(line), f))
			line[0] = 0;
		fclose(f);
	}
	return (pid_t)atoi(line);
}

/* ---- a virtual device --------------------------------------------------------------------- */

struct virtual_device {
	pid_t pid;
	char root[600], log[640], env[700]; /* env: NTRACE_DEVICE_ROOT=... */
};

static inline bool virtual_device_ready_(void *arg)
{
	struct virtual_device *v = arg;
	char *text = program_text(v->log);
	bool ready = text && strstr(text, "ready ") != NULL;

	free(text);
	return ready || waitpid(v->pid, NULL, WNOHANG) != 0;
}

/* Starts ntrace-vdev on <dir>/root with these further arguments (up to 8, NULL-terminated). */
static inline bool virtual_device_start(
	struct virtual_device *v, const char *dir, const char *const more[])
{
	char program[512];
	char *argv[16] = {program, "--root", v->root};
	int n = 3;

	vdev_sweep_tests();
	snprintf(program, sizeof(program), "%s", program_path("bin/ntrace-vdev").s);
	snprintf(v->root, sizeof(v->root), "%s/root", dir);
	snprintf(v->log, sizeof(v->log), "%s/vdev.log", dir);
	snprintf(v->env, sizeof(v->env), "NTRACE_DEVICE_ROOT=%s", v->root);
	for (int i = 0; more && more[i] && i < 8; i++)
		argv[n++] = (char *)more[i];
	v->pid = program_start(argv, v->log, NULL);
	return v->pid > 0 && program_until(virtual_device_ready_, v, 20) && kill(v->pid, 0) == 0;
}

/* Value of a line "name value" of the device's stats, -1 when there is none. */
static inline long long virtual_device_stat(const struct virtual_device *v, const char *name)
{
	char path[640], key[128];
	long long value, found = -1;

	snprintf(path, sizeof(path), "%s/stats", v->root);
	FILE *f = fopen(path, "r");
	while (f && fscanf(f, "%127s %lld", key, &value) == 2)
		if (!strcmp(key, name))
			found = value;
	if (f)
		fclose(f);
	return found;
}

struct virtual_device_wish_ {
	const struct virtual_device *v;
	const char *name;
	long long value;
};

static inline bool virtual_device_has_(void *arg)
{
	const struct virtual_device_wish_ *w = arg;

	return virtual_device_stat(w->v, w->name) == w->value;
}

/* Waits until that value is reached: the device hears of a close after close(2) has returned. */
static inline bool virtual_device_reaches(
	const struct virtual_device *v, const char *name, long long value)
{
	return program_until(
		virtual_device_has_, &(struct virtual_device_wish_){v, name, value}, 20);
}

/* Ends it in order; its exit status. */
static inline int virtual_device_stop(struct virtual_device *v)
{
	kill(v->pid, SIGTERM);
	return program_wait(v->pid);
}

/* What recording on a virtual device needs and this machine lacks, or NULL. */
static inline const char *recording_lacks(void)
{
	if (geteuid() != 0)
		return "root";
	if (access("/sys/kernel/btf/vmlinux", R_OK) < 0)
		return "kernel BTF";
	if (access("/dev/fuse", R_OK | W_OK) < 0)
		return "/dev/fuse";
	if (!program_exists("bin/ntrace-vdev") || !program_exists("bin/ntrace"))
		return "the built programs";
	return NULL;
}

#endif
