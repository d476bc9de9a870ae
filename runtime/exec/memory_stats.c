/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory_stats.c - nrt_get_vnc_memory_stats: what this process has on a core, and what there is.
 */
#include <nrt/nrt.h>

#include "runtime/device/simulate.h"
#include "runtime/exec/memory_table.h"
#include "runtime/lifecycle/runtime.h"
#include "runtime/log/log.h"

#define TAG "NRT"

static NRT_STATUS look(uint32_t vnc, nrt_vnc_memory_stats_t *ret)
{
	struct device_system *s = runtime_get()->devices;
	const struct device_core *core = vnc <= INT32_MAX ? runtime_core((int32_t)vnc) : NULL;
	struct memory_core_sums sums;
	uint64_t limit;
	int rc;

	if (!core) {
		log_error(TAG, "There is no core %u; this process has %u, from 0", vnc,
			device_logical_count(s));
		return NRT_INVALID;
	}
	if (simulate_lacks(s, SIMULATE_TENSOR))
		return NRT_INVALID;
	rc = device_memory_bytes(core, s->arch, &limit);
	if (rc < 0) {
		log_error(TAG, "How much memory nd%u has cannot be told: %s", core->device->index,
			device_strerror(rc));
		return status_from_errno(rc);
	}
	memory_table_core(vnc, &sums);
	*ret = (nrt_vnc_memory_stats_t){.bytes_used = sums.total.now, .bytes_limit = limit};
	return NRT_SUCCESS;
}

NRT_STATUS nrt_get_vnc_memory_stats(
	uint32_t vnc, nrt_vnc_memory_stats_t *stats, size_t stats_size_in, size_t *stats_size_out)
{
	NRT_STATUS status = api_enter(__func__);

	if (status)
		return status;
	if (!stats || !stats_size_out) {
		status = runtime_no_place(__func__);
	} else if (stats_size_in < sizeof(*stats)) {
		log_error(TAG, "Size is < %zu", sizeof(*stats));
		status = NRT_INVALID;
	} else {
		status = look(vnc, stats);
	}
	if (!status)
		*stats_size_out = sizeof(*stats);
	api_leave();
	return status;
}
