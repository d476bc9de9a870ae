/* SPDX-License-Identifier: Apache-2.0 */
/*
 * threads.h - which thread of the host is which thread of a process in another pid namespace.
 *
 * A runtime stamps its records with thread ids of its own namespace; the kernel hooks see those of the
 * host.  /proc says both for every thread that lives.  It is read when the process is attached, whenever
 * a batch shows an id that is not known yet, and every second, because ids are used again.
 * A thread that ended before it was looked for stays unknown and is counted.
 *
 * Owner: runtimes.c; one thread.  Nothing is done for processes of the recorder's own namespace.
 */
#ifndef NTRACE_COLLECT_THREADS_H
#define NTRACE_COLLECT_THREADS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "runtime/record/thread_map.h"
#include "runtime/trace/record.h"

struct threads {
	pid_t pid; /* as the recorder sees it */
	int pidfd; /* not owned; -1: none */
	bool foreign;
	uint64_t scanned_ns;	 /* BOOTTIME of the last look */
	struct thread_map known; /* by the ids of the namespace */
	struct map64 gone;	 /* ids that were not found */
	uint64_t gone_count;
	uint32_t last; /* that was seen or given up, usually the next one too; 0: none */
};

/* The id that the thread or process of a status file (/proc/PID/status) has in its innermost pid namespace;
 * *ret_levels: how many ids it has.  0: unknown. */
uint32_t threads_innermost_id(const char *path, unsigned *ret_levels);

/* News: threads that were not known.  Called once with count 0 for a process in another namespace
 * without any.  Non-zero ends the call and is returned. */
typedef int (*threads_fn)(void *ctx, const struct rec_thread *rows, size_t count);

/* said_pid: what the process takes for its pid, for when /proc does not know it any more.  0, -ENOMEM, or
 * what on_threads returned; threads_close in any case. */
int threads_open(struct threads *t, pid_t pid, int pidfd, uint32_t said_pid, threads_fn on_threads,
	void *ctx);
void threads_close(struct threads *t);

/* Before records are handed on: looks for the threads that they name, if need be.  As threads_open. */
int threads_see(struct threads *t, const struct trace_record *records, size_t count,
	threads_fn on_threads, void *ctx);

/* Looks again when the last time is long ago.  As threads_open. */
int threads_refresh(struct threads *t, uint64_t now_ns, threads_fn on_threads, void *ctx);

#endif
