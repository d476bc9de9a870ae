/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory.c - device memory: allocation, copies, accounting.
 */
#include "runtime/exec/memory.h"

#include <errno.h>
#include <stdlib.h>

#include "runtime/exec/memory_report.h"
#include "runtime/exec/memory_table.h"
#include "runtime/log/log.h"
#include "runtime/profile/collector.h"
#include "runtime/profile/exec_trace.h"
#include "runtime/trace/payload.h"
#include "runtime/trace/trace.h"

#define TAG "TDRV"

NRT_STATUS status_from_errno(int rc)
{
	switch (rc) {
	case 0:
		return NRT_SUCCESS;
	case -ENOMEM:
	case -ENOSPC:
		return NRT_RESOURCE;
	case -EINVAL:
		return NRT_INVALID;
	case -EBUSY:
		return NRT_EXEC_NC_BUSY;
	case -ETIMEDOUT:
		return NRT_TIMEOUT;
	case -EIO:
	case -ENODEV:
	case -ENOTCONN:
	case -ECONNABORTED:
		return NRT_HW_ERROR;
	default:
		return NRT_FAILURE;
	}
}

static NRT_STATUS said(int rc, const char *what, const struct device_core *core)
{
	if (rc < 0)
		log_error(TAG, "%s failed on nd%u nc%u: %s", what, core->device->index, core->index,
			device_strerror(rc));
	return status_from_errno(rc);
}

/* ---- allocate, free ----------------------------------------------------------------------- */

/* Profile rings are what can be done without. */
static int request(struct device_memory *m)
{
	int rc;

	do
		rc = device_mem_alloc(m->core, m->size,
			m->usage == MEMORY_INSTR_PE ? DEVICE_MEM_CODE : DEVICE_MEM_TENSORS,
			&m->handle, &m->address);
	while ((rc == -ENOMEM || rc == -ENOSPC) && collector_give_room(m->core));
	return rc;
}

/* The request, and the entry in the table. */
static NRT_STATUS alloc(struct device_memory *m, struct memory_process_sums *sums)
{
	struct memory_entry *e = calloc(1, sizeof(*e));
	int rc;

	*sums = memory_table_sums(m->usage);
	if (!e)
		return NRT_RESOURCE;
	rc = request(m);
	if (rc < 0) {
		free(e);
		(void)said(rc, "Memory allocation", m->core);
		if (rc == -ENOMEM || rc == -ENOSPC)
			memory_report(m->core, m->nc, m->usage, m->size);
		return status_from_errno(rc);
	}
	e->nc = m->nc;
	e->device = m->core->device->index;
	e->hbm = m->core->hbm;
	e->usage = m->usage;
	e->size = m->size;
	*sums = memory_table_add(e);
	m->entry = e;
	return NRT_SUCCESS;
}

/* No core, as in the vendor's records. */
static void put_record(enum exec_trace_type type, const struct device_memory *m)
{
	const struct exec_trace_event e = {.type = type,
		.data = m->size,
		.nd = m->core->device->index,
		.hint = trace_usage_name(m->usage)};

	if (exec_trace_memory_on())
		exec_trace_put(&e);
}

NRT_STATUS memory_alloc(const struct device_core *core, uint32_t nc, enum memory_usage usage,
	uint64_t size, struct device_memory *ret)
{
	struct trace_mem_alloc start = {.hbm_idx = core->hbm,
		.usage_type = usage,
		.is_nc_hbm = 1,
		.mla_idx = core->device->index};
	struct trace_mem_alloc_stop stop = {0};
	struct trace_span span = trace_start(nc, TRACE_DMA_MEM_ALLOC, &start, sizeof(start));
	struct device_memory m = {.core = core, .nc = nc, .usage = usage, .size = size};
	struct memory_process_sums sums;
	NRT_STATUS status = alloc(&m, &sums);

	if (!status) {
		*ret = m;
		put_record(EXEC_TRACE_MEM_ALLOC, ret);
		stop.allocated_bytes = size;
		stop.physical_address = m.address;
	}
	stop.return_code = status;
	stop.usage_type_total_bytes = sums.usage;
	stop.total_bytes = sums.total;
	trace_stop(&span, status, &stop, sizeof(stop));
	return status;
}

void memory_name(struct device_memory *m, const char *name)
{
	memory_table_name(m->entry, name);
}

void memory_free(struct device_memory *m)
{
	struct trace_mem_free start;
	struct trace_mem_free_stop stop = {0};
	struct memory_process_sums sums;
	struct trace_span span;
	NRT_STATUS status;

	if (!m->core)
		return;
	start = (struct trace_mem_free){.hbm_idx = m->core->hbm,
		.is_nc_hbm = 1,
		.mla_idx = m->core->device->index,
		.usage_type = m->usage,
		.physical_address = m->address};
	span = trace_start(m->nc, TRACE_DMA_MEM_DEALLOC, &start, sizeof(start));
	status = said(device_mem_free(m->core->device, m->handle), "Freeing memory", m->core);
	stop.freed_bytes = status ? 0 : m->size;
	if (!status)
		put_record(EXEC_TRACE_MEM_FREE, m);
	sums = memory_table_remove(m->entry);
	stop.usage_type_total_bytes = sums.usage;
	stop.total_bytes = sums.total;
	trace_stop(&span, status, &stop, sizeof(stop));
	free(m->entry);
	*m = (struct device_memory){0};
}

/* ---- copies ------------------------------------------------------------------------------- */

static uint32_t clip32(uint64_t value)
{
	return value > UINT32_MAX ? UINT32_MAX : (uint32_t)value;
}

static struct trace_span copy_start(
	const struct device_memory *m, enum trace_type type, uint64_t offset, uint64_t size)
{
	struct trace_dmem_copy start = {.mem_type = MEMORY_LOCATION_DEVICE,
		.mem_handle = m->handle,
		.offset = clip32(offset),
		.size = clip32(size)};

	return trace_start(m->nc, type, &start, sizeof(start));
}

NRT_STATUS memory_copy_in(
	const struct device_memory *m, uint64_t offset, const void *from, uint64_t size)
{
	struct trace_span span = copy_start(m, TRACE_DMEM_BUF_COPYIN, offset, size);
	int rc = device_copy_in(m->core->device, m->handle, offset, from, size);
	NRT_STATUS status = said(rc, "Copy to the device", m->core);

	trace_stop(&span, status, NULL, 0);
	return status;
}

NRT_STATUS memory_copy_out(const struct device_memory *m, uint64_t offset, void *to, uint64_t size)
{
	struct trace_span span = copy_start(m, TRACE_DMEM_BUF_COPYOUT, offset, size);
	int rc = device_copy_out(m->core->device, m->handle, offset, to, size);
	NRT_STATUS status = said(rc, "Copy from the device", m->core);

	trace_stop(&span, status, NULL, 0);
	return status;
}

NRT_STATUS memory_copy_of_batch(
	const struct device_memory *m, bool to_device, uint64_t offset, void *host, uint64_t size)
{
	int rc = to_device ? device_copy_in(m->core->device, m->handle, offset, host, size)
			   : device_copy_out(m->core->device, m->handle, offset, host, size);

	return said(rc, to_device ? "Copy to the device" : "Copy from the device", m->core);
}

NRT_STATUS memory_copy(const struct device_memory *from, uint64_t from_offset,
	const struct device_memory *to, uint64_t to_offset, uint64_t size)
{
	int rc = device_mem_copy(
		to->core->device, from->handle, from_offset, to->handle, to_offset, size);

	return said(rc, "Copy within the device", to->core);
}

NRT_STATUS memory_fill(const struct device_memory *m, uint64_t offset, uint64_t size, uint8_t byte)
{
	int rc = device_mem_fill(m->core->device, m->handle, offset, size, byte);

	return said(rc, "Filling memory", m->core);
}
