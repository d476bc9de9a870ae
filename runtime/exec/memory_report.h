/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory_report.h - who holds what, when a device has no memory left.
 */
#ifndef NTRACE_EXEC_MEMORY_REPORT_H
#define NTRACE_EXEC_MEMORY_REPORT_H

#include "runtime/exec/memory.h"

/* Says in the log who holds the memory bank of the core: this process by usage, its largest allocations by
 * name, its cores, the other processes.  The same with all allocations goes to a new
 * neuron_mem_table_device_<d>_hbm_<h>.log in NEURON_RT_OOM_DUMP_DIRECTORY when that is set; a name that
 * exists is not taken, but _2 and so on, at most 16 of them.  wanted: what there was no room for. */
void memory_report(
	const struct device_core *core, uint32_t nc, enum memory_usage usage, uint64_t wanted);

#endif
