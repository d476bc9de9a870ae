/* SPDX-License-Identifier: Apache-2.0 */
/*
 * time_shift.h - BOOTTIME of a process in another time namespace (time_namespaces(7)), as this one reads it.
 *
 * A container or a restored checkpoint may have a boot clock that is set off from the machine's, and its runtime
 * stamps events with that.
 */
#ifndef NTRACE_COLLECT_TIME_SHIFT_H
#define NTRACE_COLLECT_TIME_SHIFT_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "runtime/trace/record.h"

/*
 * What to add to the process's BOOTTIME, ns.  0; -EOPNOTSUPP: it is in a namespace of its own and has made another
 * for its children since, so that nobody tells its offsets; or -errno, it is gone.
 */
int time_shift_of(pid_t pid, int64_t *ret_ns);

/* What this process's own BOOTTIME is set off from the machine's, which is what the hooks in the kernel read.  0 or
 * -errno. */
int time_shift_own(int64_t *ret_ns);

/* Adds that to the host times of records: their own and those in their payloads that are shown. */
void time_shift_records(struct trace_record *records, size_t count, int64_t shift_ns);

#endif
