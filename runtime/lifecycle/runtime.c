/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runtime.c - nrt_init, nrt_close, and the state between them.
 */
#include "runtime/lifecycle/runtime.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/clock.h"
#include "runtime/exec/object.h"
#include "runtime/lifecycle/info.h"
#include "runtime/lifecycle/version.h"
#include "runtime/log/log.h"
#include "runtime/trace/announce.h"
#include "runtime/trace/trace.h"

#define TAG "NRT"

enum state { STATE_START, STATE_INIT, STATE_CHILD, STATE_CLOSED };

static const char *const state_names[] = {
	"NRT_STATE_START", "NRT_STATE_INIT", "NRT_STATE_CHILD", "NRT_STATE_CLOSED"};

static struct {
	_Atomic int state;
	pthread_mutex_t change;	 /* nrt_init and nrt_close, one at a time */
	pthread_rwlock_t inside; /* read: calls in progress */
	bool fork_handler;
	struct runtime runtime;
} lib = {.change = PTHREAD_MUTEX_INITIALIZER, .inside = PTHREAD_RWLOCK_INITIALIZER};

/* ---- the door ----------------------------------------------------------------------------- */

static enum state current(void)
{
	return (enum state)atomic_load(&lib.state);
}

static NRT_STATUS refuse(enum state state, const char *call)
{
	switch (state) {
	case STATE_START:
		log_write(LOG_LEVEL_ERROR, TAG, call, "NRT uninitialized");
		return NRT_UNINITIALIZED;
	case STATE_CLOSED:
		log_write(LOG_LEVEL_WARN, TAG, call, "NRT already closed");
		return NRT_CLOSED;
	default:
		log_write(LOG_LEVEL_ERROR, TAG, call, "Incompatible runtime state: %s",
			state_names[state]);
		return NRT_FAILURE;
	}
}

NRT_STATUS api_enter(const char *call)
{
	enum state state = current();

	if (state != STATE_INIT)
		return refuse(state, call);
	pthread_rwlock_rdlock(&lib.inside);
	state = current();
	if (state == STATE_INIT)
		return NRT_SUCCESS;
	pthread_rwlock_unlock(&lib.inside);
	return refuse(state, call);
}

void api_leave(void)
{
	pthread_rwlock_unlock(&lib.inside);
}

const struct runtime *runtime_get(void)
{
	return &lib.runtime;
}

struct device_core *runtime_core(int32_t vnc)
{
	struct device_system *d = lib.runtime.devices;

	if (vnc < 0 || (uint32_t)vnc >= device_logical_count(d))
		return NULL;
	return &d->cores[cores_physical((uint32_t)vnc, d->lnc_size)];
}

static void after_fork_in_child(void)
{
	atomic_store(&lib.state, STATE_CHILD);
}

/* ---- nrt_init ----------------------------------------------------------------------------- */

static void start_tracing(bool is_virtual)
{
	int rc = trace_open();

	if (rc == 0)
		rc = trace_service_start(is_virtual);
	if (rc < 0)
		log_warn(TAG, "Not traced: %s (%s=%s)", strerror(-rc), ANNOUNCE_ENV,
			getenv(ANNOUNCE_ENV) ? getenv(ANNOUNCE_ENV) : "");
}

static NRT_STATUS set_fork_handler(void)
{
	int rc = lib.fork_handler ? 0 : pthread_atfork(NULL, NULL, after_fork_in_child);

	if (rc) {
		log_error(TAG, "Failed to set atfork handlers, ret=%d", rc);
		return NRT_FAILURE;
	}
	lib.fork_handler = true;
	return NRT_SUCCESS;
}

/* Times of another clock would be wrong without anybody noticing. */
static NRT_STATUS check_clocks(void)
{
	const char *name;
	int rc = clock_check(&name);

	if (rc == 0)
		return NRT_SUCCESS;
	log_error(TAG, "Cannot read %s: %s", name, strerror(-rc));
	return NRT_FAILURE;
}

static void say_cores(const struct device_system *s)
{
	log_info(TAG, "Instance info:: device count:%u cores per device:%u architecture:V%u%s",
		s->topology.device_count, s->topology.cores_per_device, s->arch,
		s->is_virtual ? " VIRTUAL" : "");
	log_info(TAG, "LNC info: first lnc %u last lnc %u first pnc %u last pnc %u",
		cores_logical(s->first_core, s->lnc_size),
		cores_logical(s->first_core + s->core_count - 1, s->lnc_size), s->first_core,
		s->first_core + s->core_count - 1);
}

static NRT_STATUS bring_up(const struct config *config)
{
	const struct device_place place = {.root = config->device_root,
		.allow_real = config->allow_device,
		.allow_reset = config->allow_reset,
		.fake_instance = config->fake_instance};
	const struct device_wish wish = {
		.explicit_cores = config->visible_cores.count != 0,
		.first_core = config->visible_cores.first,
		.core_count = config->visible_cores.count ? config->visible_cores.count
							  : config->core_count,
		.lnc_size = config->lnc_size,
	};
	struct device_system *s = NULL;
	NRT_STATUS status = device_new(&place, &s);

	if (!status)
		status = device_find(s);
	if (!status)
		status = device_negotiate(s);
	if (!status)
		status = device_reserve(s, &wish);
	if (!status)
		status = device_start(s, config->reset_cores);
	if (status) {
		device_shut_down(s);
		return status;
	}
	say_cores(s);
	lib.runtime.devices = s;
	return NRT_SUCCESS;
}

static NRT_STATUS init_locked(void)
{
	struct config config;
	NRT_STATUS status;

	log_configure();
	status = check_clocks();
	if (status)
		return status;
	status = config_read(&config);
	if (status)
		return status;
	log_info(TAG, "Neuron Runtime " VERSION_TEXT " (ntrace %s)", NTRACE_VERSION);
	status = bring_up(&config);
	if (status)
		return status;
	status = set_fork_handler();
	if (status) {
		device_shut_down(lib.runtime.devices);
		lib.runtime.devices = NULL;
		return status;
	}
	lib.runtime.exec_timeout_s = config.exec_timeout_s;
	info_set_cores(device_logical_count(lib.runtime.devices),
		device_logical_total(lib.runtime.devices));
	start_tracing(lib.runtime.devices->is_virtual);
	atomic_store(&lib.state, STATE_INIT);
	return NRT_SUCCESS;
}

NRT_STATUS nrt_init(nrt_framework_type_t framework, const char *fw_version, const char *fal_version)
{
	enum state state = current();
	NRT_STATUS status = NRT_SUCCESS;

	(void)fw_version;
	(void)fal_version;
	if (state == STATE_CLOSED || state == STATE_CHILD)
		return refuse(state, __func__);
	log_debug(TAG, "API:IN: (framework=%d)", (int)framework);
	pthread_mutex_lock(&lib.change);
	if (current() != STATE_INIT)
		status = init_locked();
	pthread_mutex_unlock(&lib.change);
	log_debug(TAG, "API:OUT: (ret=%d)", (int)status);
	return status;
}

/* ---- nrt_close ---------------------------------------------------------------------------- */

static void close_locked(void)
{
	atomic_store(&lib.state, STATE_CLOSED);
	pthread_rwlock_wrlock(&lib.inside); /* calls in progress end first */
	object_retire_all(OBJECT_MODEL);
	object_retire_all(OBJECT_SET);
	object_retire_all(OBJECT_TENSOR);
	trace_service_stop();
	device_shut_down(lib.runtime.devices);
	lib.runtime.devices = NULL;
	info_set_cores(0, 0);
	pthread_rwlock_unlock(&lib.inside);
	atomic_store(&lib.state, STATE_START);
}

void nrt_close(void)
{
	enum state state = current();

	if (state != STATE_INIT) {
		(void)refuse(state, __func__);
		return;
	}
	pthread_mutex_lock(&lib.change);
	if (current() == STATE_INIT)
		close_locked();
	pthread_mutex_unlock(&lib.change);
}
