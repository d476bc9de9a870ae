/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attach.h - finds what can be observed of a process that runs already: its control file, if it has a runtime
 * of ours, or why it has none.
 *
 * The file is found in /proc/PID/maps and opened through /proc/PID/fd, which works for processes in containers
 * too.  When the program has closed the descriptor, /proc/PID/map_files is tried, which the kernel allows root
 * alone, as the runtime itself does then.  The process is not trusted: nothing is opened that is not a memfd, or
 * not the very file that is mapped.
 */
#ifndef NTRACE_COLLECT_ATTACH_H
#define NTRACE_COLLECT_ATTACH_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* What is said of a program that closed the descriptor; the runtime can open the file anew if it is root's. */
#define ATTACH_CLOSED                                                                              \
	"has closed the descriptor of its runtime's memory (ntrace-ctl), without which no events " \
	"can be recorded: start it with `ntrace record`"

struct attach_target {
	pid_t pid;
	int pidfd; /* readable when the process has ended */
	int memfd; /* control file, open for writing; -1: another libnrt than ours is loaded */
	int maps; /* its /proc/PID/maps: tells the memory that memfd was found in from another program's */
};

#define ATTACH_NONE ((struct attach_target){.pidfd = -1, .memfd = -1, .maps = -1})

/*
 * 0 or -errno, then with a line for the user in why, which starts with the process: -ESRCH no such process, -EPERM not
 * allowed, -ENODEV no runtime, -EAGAIN it is not initialised, -EPROTONOSUPPORT it is of another version, -ECHILD a
 * fork that does not trace; others.  attach_target_close in any case.
 */
int attach_find(pid_t pid, struct attach_target *ret, char *why, size_t why_size);
/* The root of the device tree that the process was started with (NTRACE_DEVICE_ROOT), as a path of ours, to be freed;
 * NULL: none, or it is not known.  0 or -ENOMEM. */
int attach_device_root(pid_t pid, char **ret);
/* Has the memory gone that these maps are of?  An open file of maps stays with the memory that it was opened for. */
bool attach_memory_is_gone(int maps);
void attach_target_close(struct attach_target *t);

#endif
