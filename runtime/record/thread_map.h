/* SPDX-License-Identifier: Apache-2.0 */
/*
 * thread_map.h - thread ids of a process in another pid namespace, as the host counts them.
 *
 * A runtime knows the ids of its own namespace, the driver hooks those of the host.  The recorder fills
 * one map per runtime and writes what is new into the recording; the merge fills the same map from there
 * and translates.  An id may be used again by a later thread, so each row says from when it holds.
 *
 * Zeroed = empty.  One thread.
 */
#ifndef NTRACE_RECORD_THREAD_MAP_H
#define NTRACE_RECORD_THREAD_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/record/map64.h"
#include "runtime/record/recording.h"

struct thread_row {
	uint64_t from_ns;
	uint32_t host_tid;
};

/* The threads that had one id, each from later on than the one before it. */
struct thread_rows {
	struct thread_row *rows;
	uint32_t count, cap;
};

struct thread_map {
	struct map64 places; /* id + 1 -> place in ids */
	struct thread_rows *ids;
	size_t count, cap;
};

/* Adds a thread: 1, 0 when it says what is known, -ENOMEM. */
int thread_map_add(struct thread_map *m, const struct rec_thread *t);

/* Is there a thread with this id of the namespace at any time? */
bool thread_map_knows(const struct thread_map *m, uint32_t tid);

/* The host's id of the thread that had this id at a time (BOOTTIME ns); 0: not known. */
uint32_t thread_map_host(const struct thread_map *m, uint32_t tid, uint64_t at_ns);

void thread_map_free(struct thread_map *m);

#endif
