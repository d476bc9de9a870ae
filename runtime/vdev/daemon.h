/* SPDX-License-Identifier: Apache-2.0 */
/*
 * daemon.h - the life of a virtual device: set up, serve, watch signals or a command, take down.
 *
 * The calling thread serves FUSE; a second thread waits for signals and for the command.  All
 * signals that matter are blocked in every thread and taken by that one.  The end must not hang:
 * what is still in a request after two seconds is cut off.
 */
#ifndef NTRACE_VDEV_DAEMON_H
#define NTRACE_VDEV_DAEMON_H

#include <stdbool.h>

#include "runtime/vdev/device.h"

/* Exit codes of the program; with a command its own status, 126, 127, and 125 in place of 3 and
 * 5. */
enum vdev_exit {
	VDEV_EXIT_OK = 0,
	VDEV_EXIT_USAGE = 2,
	VDEV_EXIT_ENVIRONMENT = 3,
	VDEV_EXIT_INTERNAL = 5,
	VDEV_EXIT_WRAPPER = 125,
};

struct vdev_options {
	struct vdev_config config;
	const char *root; /* NULL: a private one */
	char **command;	  /* NULL: run until a signal */
	bool quiet;
};

/* Runs the device; returns the exit code. */
int vdev_daemon_run(const struct vdev_options *options);

#endif
