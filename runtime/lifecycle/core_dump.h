/* SPDX-License-Identifier: Apache-2.0 */
/*
 * core_dump.h - after a failure a helper program is run that keeps what is known of it.
 *
 * The gate: NEURON_RT_LOCAL_CORE_DUMP_DIRECTORY or NEURON_RT_S3_CORE_DUMP_PREFIX is not empty, and the helper
 * (NEURON_DUMP_PATH, fixed when the library is built) is executable.  The last errors go to a file
 * (errors_file.h); then the helper runs once per physical core of the logical one that the call was about, and once for
 * that file.  Where another user could change what is found in the directory none of this happens.
 *
 * Ours: the failing call waits for all of that together, also for the lock of the file, at most NTRACE_DUMP_SECONDS;
 * then the helper is killed, for whose end it waits up to HELPER_GRACE_MS more, and is not run again before the next
 * nrt_init.  From one nrt_init to the next there are at most CORE_DUMP_MOST dumps, and at most CORE_DUMP_SAME of them of one
 * call with one status: a program that fails in a loop, or asks until it gets no for an answer, is not slowed down for
 * ever.
 */
#ifndef NTRACE_LIFECYCLE_CORE_DUMP_H
#define NTRACE_LIFECYCLE_CORE_DUMP_H

#include <stdbool.h>
#include <stdint.h>

#include <nrt/nrt_status.h>

#define CORE_DUMP_MOST 16u
#define CORE_DUMP_SAME 2u

struct core_dump_of {
	const char *location; /* name of the call that failed */
	NRT_STATUS code;
	const char *neff_name, *neff_uuid; /* NULL: none is known */
	uint32_t logical_core;		   /* of this process, from 0 */
	bool has_core;
};

/* A load, execution or tensor call failed: dumps when the gate is open.  Between api_enter and api_leave, or on a
 * thread that nrt_close waits for; without locks that others need, for it may take long.  Never changes errno; never
 * fails. */
void core_dump(const struct core_dump_of *what);

/* By nrt_init: what was dumped before does not count any more. */
void core_dump_begin(void);

#endif
