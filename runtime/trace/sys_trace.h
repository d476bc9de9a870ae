/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sys_trace.h - the program's own capture, as the rest of the library sees it.
 *
 * The calls are those of nrt_sys_trace.h.  Capture is a subscriber of its own: what an agent or an inspection wants
 * changes nothing here.  Any thread.
 */
#ifndef NTRACE_TRACE_SYS_TRACE_H
#define NTRACE_TRACE_SYS_TRACE_H

#include <stdint.h>

/* Before the service thread is started: tells it what the capture wants of it. */
void sys_trace_open(void);

/* Ends the capture if there is one; what was not fetched is lost, and so are the workers' numbers. */
void sys_trace_close(void);

/* The number that the worker on this core has among all workers; shown as worker_gid. */
void sys_trace_set_worker(uint32_t nc, int32_t gid);

#endif
