/* SPDX-License-Identifier: Apache-2.0 */
/*
 * execute_records.c - the records of nrt_trace_start that an execution makes
 * (runtime/profile/exec_trace.h).
 */
#include <stdio.h>

#include "runtime/exec/execute_run.h"
#include "runtime/profile/exec_trace.h"

static void put(const struct device_core *core, enum exec_trace_type type, uint64_t ns,
	uint64_t data, NRT_STATUS status, const char *hint)
{
	const struct exec_trace_event event = {.type = type,
		.when = {ns},
		.data = data,
		.nd = core->device->index,
		.nc = core->index,
		.status = status,
		.hint = hint};

	exec_trace_add(&event);
}

void record_execution(const struct execution *e, enum exec_trace_type type, NRT_STATUS status)
{
	if (exec_trace_on())
		put(e->model->core, type, 0, e->id, status, e->model->desc.name);
}

void record_sync(const struct core_run *r)
{
	const struct device_sync *s = &r->sync;

	if (!exec_trace_on())
		return;
	put(r->core, EXEC_TRACE_NC_TIMESTAMP_SYNC, s->host.ns, s->clock.ps, NRT_SUCCESS, NULL);
	put(r->core, EXEC_TRACE_CPU_TIMESTAMP_SYNC, s->host.ns, s->bound_ns, NRT_SUCCESS, NULL);
}

void record_run(
	const struct execution *e, const struct core_run *r, uint64_t start_ns, uint64_t end_ns)
{
	const char *name = e->model->desc.name;

	if (!exec_trace_on())
		return;
	put(r->core, EXEC_TRACE_NC_EXEC_START, start_ns, e->id, NRT_SUCCESS, name);
	put(r->core, EXEC_TRACE_NC_EXEC_END, end_ns, e->id, r->status, name);
}

void record_collective(const struct execution *e, const struct core_run *r, uint32_t op,
	uint64_t start_ns, uint64_t end_ns, NRT_STATUS status)
{
	char hint[16];

	if (!exec_trace_on())
		return;
	(void)snprintf(hint, sizeof(hint), "%u", op);
	put(r->core, EXEC_TRACE_CC_START, start_ns, e->id, NRT_SUCCESS, hint);
	put(r->core, EXEC_TRACE_CC_END, end_ns, e->id, status, hint);
}

void record_error(const struct execution *e, const struct core_run *r, uint64_t ns, uint32_t fault,
	NRT_STATUS status)
{
	if (exec_trace_on())
		put(r->core, EXEC_TRACE_ERROR, ns, fault, status, e->model->desc.name);
}
