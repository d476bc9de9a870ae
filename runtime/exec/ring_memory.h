/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ring_memory.h - the executor's own notification rings in the table of who holds device memory.
 *
 * They belong to the device: made with the first model of a core, there until nrt_close.
 */
#ifndef NTRACE_EXEC_RING_MEMORY_H
#define NTRACE_EXEC_RING_MEMORY_H

#include "runtime/exec/memory_table.h"

/* Puts the open rings of logical core nc into the table, once.  Needs the core's lock. */
void ring_memory_add(uint32_t nc, const struct device_core *first, uint32_t parts);

/* For nrt_close, when no call is in any more: takes all of them out. */
void ring_memory_forget(void);

#endif
