/* SPDX-License-Identifier: Apache-2.0 */
/*
 * load_internal.h - shared by load.c (frames to arrays) and load_index.c (arrays put in order).
 */
#ifndef NTRACE_RECORD_LOAD_INTERNAL_H
#define NTRACE_RECORD_LOAD_INTERNAL_H

#include "runtime/record/load.h"

/* Capacities of the arrays that are being filled. */
struct loader {
	struct load *l;
	size_t record_cap, call_cap, name_cap, name_bytes_cap, cpu_cap, cpu_row_cap, mem_cap,
		counter_cap, source_cap, clock_cap;
	uint64_t counter_order;
};

/* Makes room for `need` elements in *(T **)array.  0, -ENOMEM, -EFBIG. */
int load_grow(void *array, size_t *cap, size_t need, size_t element);

/* Notes the value of a counter; older values of the same are dropped now and then. */
int load_counter(struct loader *ld, uint32_t source, const struct rec_counter *c);

/* Adds a name, made valid UTF-8 and cut to LOAD_MAX_NAME. */
int load_add_name(struct loader *ld, uint32_t source, uint64_t id, const char *text, size_t len);

/* Refuses what is impossible, finds each record's process, sorts names and counters, counts
 * gaps. */
int load_index(struct loader *ld);

#endif
