/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options.h - the options of ntrace-vdev: one table, and what they make of the machine together.
 *
 * An option is set by its text; what was not given follows from what was, in
 * vdev_options_resolve().  Nothing is printed here: a wrong value is answered by the words that
 * say what would be right.
 */
#ifndef NTRACE_VDEV_OPTIONS_H
#define NTRACE_VDEV_OPTIONS_H

#include <argp.h>

#include "runtime/vdev/daemon.h"

/* For argp; ends with an empty row. */
extern const struct argp_option vdev_option_table[];

/* Everything 0 before the first vdev_options_set(). */
struct vdev_choice {
	struct vdev_options options;
	const struct vdev_arch *arch;
};

/* Name of an option by its key, NULL when there is none. */
const char *vdev_option_name(int key);
/* NULL, or what the value should have been ("a number from 1 to 64"). */
const char *vdev_options_set(struct vdev_choice *choice, int key, const char *value);
/* Fills in what was not given.  NULL, or why the options contradict each other; static text. */
const char *vdev_options_resolve(struct vdev_choice *choice);

#endif
