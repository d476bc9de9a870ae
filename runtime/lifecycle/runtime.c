/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runtime.c - nrt_init, nrt_close, and what they make and take away.
 *
 * The steps of both are tables in init.c; here is who may run them and when.
 */
#include "runtime/lifecycle/runtime.h"

#include "runtime/base/last_thread.h"
#include "runtime/lifecycle/infodump.h"
#include "runtime/lifecycle/init.h"
#include "runtime/log/log.h"
#include "runtime/profile/inspect.h"
#include "runtime/profile/recorded.h"

#define TAG "NRT"

/* Written between state_change_begin and state_change_end while no call is in. */
static struct runtime runtime;

const struct runtime *runtime_get(void)
{
	return &runtime;
}

struct device_core *runtime_core(int32_t vnc)
{
	struct device_system *d = runtime.devices;

	if (vnc < 0 || (uint32_t)vnc >= device_logical_count(d))
		return NULL;
	return &d->cores[cores_physical((uint32_t)vnc, d->lnc_size)];
}

NRT_STATUS runtime_no_place(const char *call)
{
	log_write(LOG_LEVEL_ERROR, TAG, call, "No place for the answer (NULL)");
	return NRT_INVALID;
}

/* ---- nrt_init ----------------------------------------------------------------------------- */

static void say_in(const struct runtime *r)
{
	log_write(LOG_LEVEL_DEBUG, TAG, "nrt_init",
		"API:IN: (cc_root_comm_id=%s, num_cores=%u, reset_cores=%u)", r->root_comm_id,
		r->core_count, r->reset_cores);
}

static NRT_STATUS say_out(NRT_STATUS status)
{
	log_write(LOG_LEVEL_DEBUG, TAG, "nrt_init", "API:OUT: (ret=%u)", (unsigned)status);
	return status;
}

/* Is it up already?  Shows the settings it is up with. */
static bool is_up(void)
{
	if (!state_try_enter())
		return false;
	say_in(&runtime);
	api_leave();
	return true;
}

static NRT_STATUS init_alone(const struct init_caller *caller)
{
	struct runtime made;
	NRT_STATUS status = init_run(caller, &made, say_in);

	if (status)
		return status;
	runtime = made;
	recorded_open(&runtime);
	inspect_init();
	state_set(STATE_INIT);
	infodump(LOG_LEVEL_INFO, -1, NRT_SUCCESS, "nrt_init", runtime.devices);
	return NRT_SUCCESS;
}

/* Most programs load the library in the main thread, wherever they call it. */
__attribute__((constructor)) static void loaded(void)
{
	last_thread_watch();
}

NRT_STATUS nrt_init(nrt_framework_type_t framework, const char *fw_version, const char *fal_version)
{
	const struct init_caller caller = {framework, fw_version, fal_version};
	NRT_STATUS status;
	enum lib_state state;

	last_thread_watch();
	if (is_up())
		return say_out(NRT_SUCCESS);
	state = state_now();
	if (state == STATE_CLOSED || state == STATE_CHILD)
		return state_refuse(state, __func__);
	status = state_change_begin(__func__);
	if (status)
		return status;
	/* While this thread waited, another one may have done it. */
	if (!is_up())
		status = init_alone(&caller);
	state_change_end();
	return say_out(status);
}

/* ---- nrt_close ---------------------------------------------------------------------------- */

static void close_alone(void)
{
	init_close_producers(&runtime);
	state_set(STATE_CLOSED);
	state_calls_drain(); /* calls in progress end first */
	init_close(&runtime);
	runtime = (struct runtime){0};
	state_set(STATE_START);
}

void nrt_close(void)
{
	log_debug(TAG, "API:IN: ()");
	if (state_now() == STATE_INIT && state_change_begin(__func__) == NRT_SUCCESS) {
		if (state_now() == STATE_INIT)
			close_alone();
		state_change_end();
	}
	log_debug(TAG, "API:OUT: ()");
}
