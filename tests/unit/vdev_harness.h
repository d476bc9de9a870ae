/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vdev_harness.h - starts the built ntrace-vdev for a test and speaks to it as a raw ioctl
 * client.
 *
 * The program is $BUILD/bin/ntrace-vdev.  A run ends, with its directory, when its variable goes
 * out of scope (_cleanup_(vdev_run_end)), so a test may leave at any REQUIRE.
 */
#ifndef NTRACE_TESTS_UNIT_VDEV_HARNESS_H
#define NTRACE_TESTS_UNIT_VDEV_HARNESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "runtime/vdev/vdev_abi.h"
#include "vmlinux/neuron_args.h"

/* What a machine must have for these tests; NULL when it has. */
const char *vdev_missing(void);
#define NEED_VDEV()                                    \
	do {                                           \
		const char *missing_ = vdev_missing(); \
		if (missing_)                          \
			SKIP(missing_);                \
	} while (0)

struct vdev_run {
	pid_t pid; /* 0: not running */
	char root[64];
};

/* Removes the devices that killed test runs of this user left, with their directories: those that
 * nobody has locked and nothing has touched for two minutes.  Once per process, before the first
 * device is started. */
void vdev_sweep_tests(void);

const char *vdev_program(void);
/* A directory name that does not exist yet. */
void vdev_new_root(char root[64]);
/* Starts with --root and up to 8 more arguments (NULL-ended); waits for "ready". */
bool vdev_run_start(struct vdev_run *run, const char *const *args);
/* The same on a root that is already named in run. */
bool vdev_run_restart(struct vdev_run *run, const char *const *args);
/* Signals it (0: none) and waits; its wait status, -1 when it does not end within ten seconds. */
int vdev_run_stop(struct vdev_run *run, int signal);
void vdev_run_end(struct vdev_run *run);

/* Runs the program with these arguments, output to /dev/null; exit code, or 128+n. */
int vdev_exec(const char *const *args);

int vdev_open(const struct vdev_run *run, unsigned device, int flags); /* fd or -errno */
/* ioctl(2): its result, or -errno. */
int vdev_call(int fd, unsigned long cmd, void *arg);
/* Value of a line of the stats file, -1 when there is none. */
long long vdev_stat(const struct vdev_run *run, const char *name);

/* Waits until a line of the stats file reaches a value; false after ten seconds. */
bool vdev_wait_stat(const struct vdev_run *run, const char *name, long long value);
/* The same until it has exactly this value: the device hears of a close after close(2) has returned. */
bool vdev_stat_settles(const struct vdev_run *run, const char *name, long long value);

/* Short forms over the newest requests; 0 or -errno. */
int vdev_alloc(int fd, uint64_t size, uint64_t *ret_handle);
int vdev_write(int fd, uint64_t handle, uint64_t offset, const void *data, uint64_t size);
int vdev_read(int fd, uint64_t handle, uint64_t offset, void *data, uint64_t size);

/* mem.sock: connection or -errno; one question on it: descriptor or -errno. */
int vdev_connect(const struct vdev_run *run);
int vdev_ask(int sock, unsigned device, uint64_t handle, uint64_t *ret_size);
/* Both, and mmap: NULL on failure. */
void *vdev_map(const struct vdev_run *run, unsigned device, uint64_t handle, uint64_t *ret_size);

/* Runs fn in a forked child; its return value (0..255), or 128+n, or -1. */
int vdev_in_child(int (*fn)(void *), void *arg);

/* CINIT_SET_STATE: its result and the state that holds. */
int vdev_set_cinit(int fd, unsigned core, uint32_t state, uint32_t *ret_state);
/* The same for core 0 and STARTED, as a thread's body; arg is one of these. */
struct vdev_cinit_waiter {
	int fd, result;
	uint32_t state;
};
void *vdev_start_cinit(void *arg);

/* Of an instruction that only its place in the list orders. */
#define UNORDERED .wait = VDEV_NO_SEMAPHORE, .post = VDEV_NO_SEMAPHORE

/* A notification ring and how far it is read. */
struct vdev_notes {
	struct notification *ring; /* mapped; NULL: not open */
	uint64_t ring_size, slots;
	uint64_t seen; /* records taken so far */
};

/* Gets the ring of (core or TopSP, type, engine) of a device; 0 or -errno. */
int vdev_notes_open(struct vdev_notes *n, const struct vdev_run *run, int fd, unsigned device,
	const struct neuron_notifications_init_v2 *which);
void vdev_notes_close(struct vdev_notes *n);
/* Next record; false when none comes within ten seconds. */
bool vdev_notes_next(struct vdev_notes *n, struct notification *ret);
/* Whether a record is there now. */
bool vdev_notes_has(const struct vdev_notes *n);

/* A core with its ring, program and binding table. */
struct vdev_client {
	int fd;
	unsigned core;
	uint64_t program, table;
	struct vdev_notes notes;
};

/* Makes a ring of ring_size bytes and binds an exec queue; 0 or -errno.  On device 0, or on any. */
int vdev_client_open(struct vdev_client *c, const struct vdev_run *run, int fd, unsigned core,
	uint32_t ring_size);
int vdev_client_open_on(struct vdev_client *c, const struct vdev_run *run, int fd, unsigned device,
	unsigned core, uint32_t ring_size);
void vdev_client_close(struct vdev_client *c); /* not the fd */
/* Writes a program image and the binding table: a serial program, or one whose header says all but
 * magic and counts of instructions and bindings. */
int vdev_client_load(struct vdev_client *c, const struct vdev_instruction *steps,
	uint32_t step_count, const struct vdev_binding *bindings, uint32_t binding_count);
int vdev_client_load_program(struct vdev_client *c, struct vdev_program header,
	const struct vdev_instruction *steps, uint32_t step_count,
	const struct vdev_binding *bindings, uint32_t binding_count);
/* Binds (anew) or releases its exec queue: 0 or -errno. */
int vdev_client_bind(const struct vdev_client *c);
int vdev_client_release(const struct vdev_client *c);
int vdev_client_launch(struct vdev_client *c, uint32_t number);
/* Next record of the ring; false when none comes within ten seconds. */
bool vdev_client_next(struct vdev_client *c, struct notification *ret);
/* Whether a record is there now. */
bool vdev_client_has(const struct vdev_client *c);
/* Launches, and takes the START and END records of that. */
bool vdev_client_run(struct vdev_client *c, uint32_t number, struct notification *ret_start,
	struct notification *ret_end);

#endif
