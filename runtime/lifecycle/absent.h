/* SPDX-License-Identifier: Apache-2.0 */
/*
 * absent.h - how an exported call says that it does not do what it is for.
 */
#ifndef NTRACE_LIFECYCLE_ABSENT_H
#define NTRACE_LIFECYCLE_ABSENT_H

#include <stdatomic.h>
#include <stdbool.h>

#include <nrt/nrt_status.h>

/*
 * The guard's status where it refuses; else NRT_INVALID, after one warning per process: `call`, then
 * text.  *said: the call's own memory of that.
 */
NRT_STATUS absent(const char *call, atomic_bool *said, const char *text);

/* The same for one who is inside: warns once, gives NRT_INVALID. */
NRT_STATUS absent_inside(const char *call, atomic_bool *said, const char *text);

/* How the warnings begin; the rest is the table's `why`. */
#define ABSENT_UNSUPPORTED "unsupported here: "

#endif
