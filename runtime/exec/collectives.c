/* SPDX-License-Identifier: Apache-2.0 */
/*
 * collectives.c - what several workers do together, as far as one worker can do it.
 *
 * There is no network.  Ranks meet in the collectives of a model that nrt_load_collectives loads; joining a
 * communicator before that only checks who wants to, and tells the trace its number.  Outside of a model
 * nobody meets: with one worker a barrier is passed at once and a gathering is a copy; more than one is refused.
 */
#include <string.h>

#include <nrt/nrt_experimental.h>

#include "runtime/lifecycle/absent.h"
#include "runtime/lifecycle/runtime.h"
#include "runtime/log/log.h"
#include "runtime/trace/sys_trace.h"
#include "runtime/vdev/vdev_abi.h"

#define TAG "NRT"

/* Between api_enter and api_leave, as the next. */
static NRT_STATUS check_core(const char *call, int32_t vnc)
{
	if (runtime_core(vnc))
		return NRT_SUCCESS;
	log_write(LOG_LEVEL_ERROR, TAG, call, "There is no core %d; this process has %u", vnc,
		device_logical_count(runtime_get()->devices));
	return NRT_INVALID;
}

/* Can there be this worker? */
static NRT_STATUS check_worker(const char *call, int32_t vnc, uint32_t id, uint32_t count)
{
	NRT_STATUS status = check_core(call, vnc);

	if (status)
		return status;
	if (id >= count) {
		log_write(LOG_LEVEL_ERROR, TAG, call,
			"There is no worker %u of %u: they count from 0", id, count);
		return NRT_INVALID;
	}
	if (count <= VDEV_MAX_RANKS)
		return NRT_SUCCESS;
	log_write(LOG_LEVEL_ERROR, TAG, call, "%u workers; at most %u work together here", count,
		VDEV_MAX_RANKS);
	return NRT_INVALID;
}

/* Is this worker all that there are? */
static NRT_STATUS check_alone(
	const char *call, atomic_bool *said, int32_t vnc, uint32_t id, uint32_t count)
{
	NRT_STATUS status = check_worker(call, vnc, id, count);

	if (status || count == 1)
		return status;
	return absent_inside(call, said,
		ABSENT_UNSUPPORTED "several workers meet in the collectives of a model alone");
}

static NRT_STATUS join(const char *call, int32_t vnc, uint32_t id, uint32_t count)
{
	NRT_STATUS status = api_enter(call);

	if (status)
		return status;
	status = check_worker(call, vnc, id, count);
	if (!status)
		sys_trace_set_worker((uint32_t)vnc, (int32_t)id);
	api_leave();
	return status;
}

NRT_STATUS nrt_build_global_comm(int32_t vnc, uint32_t g_device_id, uint32_t g_device_count)
{
	return join(__func__, vnc, g_device_id, g_device_count);
}

NRT_STATUS nrt_cc_global_comm_init(uint32_t vnc, uint32_t g_device_id, uint32_t g_device_count)
{
	return join(__func__, vnc > INT32_MAX ? -1 : (int32_t)vnc, g_device_id, g_device_count);
}

NRT_STATUS nrt_barrier(int32_t vnc, uint32_t g_device_id, uint32_t g_device_count)
{
	static atomic_bool said;
	NRT_STATUS status = api_enter(__func__);

	if (status)
		return status;
	status = check_alone(__func__, &said, vnc, g_device_id, g_device_count);
	api_leave();
	return status;
}

NRT_STATUS nrt_all_gather(int32_t vnc, uint32_t g_device_id, uint32_t g_device_count,
	uint32_t rank_input_size, void *input, void *output)
{
	static atomic_bool said;
	NRT_STATUS status = api_enter(__func__);

	if (status)
		return status;
	status = check_alone(__func__, &said, vnc, g_device_id, g_device_count);
	if (!status && rank_input_size && (!input || !output)) {
		log_error(TAG, "No %s given (NULL)", input ? "output" : "input");
		status = NRT_INVALID;
	}
	if (!status && rank_input_size)
		memmove(output, input, rank_input_size);
	api_leave();
	return status;
}
