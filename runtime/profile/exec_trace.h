/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exec_trace.h - the trace of nrt_trace_start: a ring of records of what was allocated, copied and
 * executed, which nrt_trace_stop writes as one ntrace_info.
 *
 * It is apart from the rings of trace.h, as it is in the vendor's library: one ring for the
 * process, under a lock, which keeps the newest NEURON_RT_TRACE_NUM_ENTRIES records.  While there is
 * no trace a tap costs one load.  Taps are for any thread that is inside of the library; not for
 * signal handlers.
 */
#ifndef NTRACE_PROFILE_EXEC_TRACE_H
#define NTRACE_PROFILE_EXEC_TRACE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/clock.h"

enum exec_trace_type {
#define TYPE(id, phase, origin) EXEC_TRACE_##id,
#include "runtime/profile/exec_trace_types.def"
#undef TYPE
	EXEC_TRACE_TYPES
};

struct exec_trace_event {
	enum exec_trace_type type;
	struct boot_ns when; /* 0: now */
	uint64_t data;	     /* exec_trace_types.def */
	uint32_t nd;	     /* N of neuronN */
	uint32_t nc;	     /* physical core within it; of a logical one, its first */
	uint32_t status;     /* NRT_STATUS */
	const char *hint;    /* copied; NULL: none */
};

/* Bits: there is a trace; it is one of device memory, too. */
#define EXEC_TRACE_ON 1u
#define EXEC_TRACE_MEMORY 2u
extern _Atomic uint32_t exec_trace_gate;

static inline bool exec_trace_on(void)
{
	return atomic_load_explicit(&exec_trace_gate, memory_order_relaxed) & EXEC_TRACE_ON;
}

static inline bool exec_trace_memory_on(void)
{
	return atomic_load_explicit(&exec_trace_gate, memory_order_relaxed) & EXEC_TRACE_MEMORY;
}

/* Adds a record, in place of the oldest when the ring is full. */
void exec_trace_add(const struct exec_trace_event *e);

static inline void exec_trace_put(const struct exec_trace_event *e)
{
	if (exec_trace_on())
		exec_trace_add(e);
}

/* For nrt_close: a trace that nobody has stopped is dropped, with a warning. */
void exec_trace_close(void);

/* ---- of exec_trace.c and exec_trace_file.c --------------------------------------------------- */

/* As it stands in the ring; that it has 48 bytes and which of these it has is public. */
struct exec_trace_record {
	uint64_t boot_ns;
	uint64_t data;
	uint32_t type;
	uint32_t nd, nc;
	uint32_t thread;
	uint32_t status; /* ours */
	uint32_t number; /* ours; of the record, modulo 2^32 */
	char *hint;	 /* its own copy, or NULL */
};
_Static_assert(sizeof(struct exec_trace_record) == 48, "exec_trace_record");

/* What becomes of a ring. */
struct exec_trace_content {
	struct exec_trace_record *records; /* count of them */
	size_t count;
	uint64_t added;	      /* records, ever */
	uint64_t overwritten; /* by newer ones */
	uint64_t no_memory;   /* lost for want of memory for the hint */
	uint64_t stopping;    /* lost while an earlier stop tried to write */
	int64_t offset_ns;    /* realtime - boottime at the start */
	uint64_t begin_ns;    /* boottime at the start */
};

/* What is known of the runtime, for the file. */
struct exec_trace_about {
	uint32_t arch, lnc_size;
	bool is_virtual, is_simulated;
};

/* Sorts the records by time and writes the file, whole or not at all; nothing is replaced.  0
 * or -errno. */
int exec_trace_write(
	const char *path, struct exec_trace_content *c, const struct exec_trace_about *about);

#endif
