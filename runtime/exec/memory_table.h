/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory_table.h - who holds device memory: every allocation of this process, and sums by logical core and
 * usage.
 *
 * Any thread; one lock, under which nothing else is taken.
 */
#ifndef NTRACE_EXEC_MEMORY_TABLE_H
#define NTRACE_EXEC_MEMORY_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/exec/memory.h"

#define MEMORY_NAME_BYTES 64u /* a longer name is cut */

/* One allocation.  The owner makes it, fills what is above the line, and frees it after
 * memory_table_remove. */
struct memory_entry {
	uint32_t nc;
	uint32_t device, hbm;
	enum memory_usage usage;
	uint64_t size;
	/* ---- */
	char name[MEMORY_NAME_BYTES]; /* "" = none */
	struct memory_entry *next, **link;
};

/* Bytes of the whole process, for the events. */
struct memory_process_sums {
	uint64_t usage, total;
};

struct memory_process_sums memory_table_add(struct memory_entry *e);
struct memory_process_sums memory_table_remove(struct memory_entry *e);
struct memory_process_sums memory_table_sums(enum memory_usage usage);
/* NULL: no name. */
void memory_table_name(struct memory_entry *e, const char *name);

/* Bytes now, and the most there ever were since the last reset. */
struct memory_sum {
	uint64_t now, peak;
};
struct memory_core_sums {
	struct memory_sum usage[MEMORY_USAGE_COUNT];
	struct memory_sum total;
};
/* Of a logical core, all 0 for one that there is not. */
void memory_table_core(uint32_t nc, struct memory_core_sums *ret);
/* Peaks become what there is now. */
void memory_table_reset_peaks(void);

/* Calls fn for each allocation in that memory bank, under the lock. */
void memory_table_each(uint32_t device, uint32_t hbm,
	void (*fn)(void *arg, const struct memory_entry *e), void *arg);

#endif
