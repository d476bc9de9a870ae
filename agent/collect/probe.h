/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probe.h - what this machine allows: the table behind `ntrace check`.
 *
 * Each row was tried, not guessed: programs are loaded and attached, files opened.  Nothing stays.  One
 * thread; never prints.
 */
#ifndef NTRACE_COLLECT_PROBE_H
#define NTRACE_COLLECT_PROBE_H

#include <stdbool.h>

enum probe_state {
	PROBE_OK,
	PROBE_MISSING, /* not there, or too old */
	PROBE_DENIED,  /* there, but not for this user or in this mode */
};

struct probe_row {
	char name[32]; /* e.g. "kernel BTF" */
	enum probe_state state;
	bool required;		 /* `ntrace record` cannot work without it */
	char detail[256];	 /* what was found, or why not; one line */
	const char *consequence; /* what follows when the state is not OK */
};

#define PROBE_MAX_ROWS 32

/* Where things lie.  NULL members: "/sys" and "/dev". */
struct probe_paths {
	const char *sys;
	const char *dev;
	const char *hooks; /* level of hooks that is asked for, as driver_hooks_options.force */
};

/* Fills at most max rows, in the order in which a person wants to read them; returns how many. */
int probe_run(const struct probe_paths *paths, struct probe_row *rows, int max);

/* "ok", "missing", "denied". */
const char *probe_state_name(enum probe_state state);

/* True if no required row is amiss. */
bool probe_can_record(const struct probe_row *rows, int count);

#endif
