/* SPDX-License-Identifier: Apache-2.0 */
/*
 * init.c - the order of nrt_init and of nrt_close, as tables.
 *
 * The order is libnrt's, with the numbers of docs/conformance.md.  A step without a function has its place
 * but nothing to do here: that document says why.  Undoing runs from the last step that was done to the
 * first, with the functions of nrt_close; the devices are given back as a whole, whatever of them the steps
 * had reached.
 */
#include "runtime/lifecycle/init.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/clock.h"
#include "runtime/base/env_table.h"
#include "runtime/exec/memory_table.h"
#include "runtime/exec/object.h"
#include "runtime/exec/ring_memory.h"
#include "runtime/exec/schedule.h"
#include "runtime/lifecycle/core_dump.h"
#include "runtime/lifecycle/info.h"
#include "runtime/lifecycle/infodump.h"
#include "runtime/lifecycle/version.h"
#include "runtime/log/log.h"
#include "runtime/profile/collector.h"
#include "runtime/profile/exec_trace.h"
#include "runtime/profile/inspect.h"
#include "runtime/profile/profile.h"
#include "runtime/profile/recorded.h"
#include "runtime/trace/announce.h"
#include "runtime/trace/sys_trace.h"
#include "runtime/trace/trace.h"

#define TAG "NRT"

struct init {
	const struct init_caller *caller;
	struct runtime *r;
	struct config config;
	void (*say_in)(const struct runtime *);
};

/* ---- finding out -------------------------------------------------------------------------- */

/* Times of another clock would be wrong without anybody noticing. */
static NRT_STATUS check_clocks(struct init *i)
{
	const char *name;
	int rc = clock_check(&name);

	(void)i;
	if (rc == 0)
		return NRT_SUCCESS;
	log_error(TAG, "Cannot read %s: %s", name, strerror(-rc));
	return NRT_FAILURE;
}

/* Discovery comes before the environment is read as a whole, so it has a reader of its own. */
static NRT_STATUS find_devices(struct init *i)
{
	struct config_discovery c;
	struct device_place place;
	NRT_STATUS status = config_read_discovery(&c);

	if (status)
		return status;
	place = (struct device_place){
		.root = c.root, .allow_real = c.allow_device, .fake_instance = c.fake_instance};
	status = device_new(&place, &i->r->devices);
	if (!status)
		status = device_find(i->r->devices);
	if (status)
		config_say_discovery_names();
	return status;
}

/* Unmarks the cores through the query handle and closes it, the last of all handles. */
static void give_devices_back(struct runtime *r)
{
	device_shut_down(r->devices);
	r->devices = NULL;
}

static NRT_STATUS read_environment(struct init *i)
{
	return config_read(&i->config);
}

static NRT_STATUS copy_settings(struct init *i)
{
	i->r->exec_timeout_s = i->config.exec_timeout_s;
	i->r->async_max_inflight = i->config.async_max_inflight;
	i->r->compute_queue_limit = i->config.compute_queue_limit;
	i->r->trace_entries = i->config.trace_entries;
	(void)snprintf(
		i->r->oom_directory, sizeof(i->r->oom_directory), "%s", i->config.oom_directory);
	(void)snprintf(i->r->profile_dir, sizeof(i->r->profile_dir), "%s", i->config.profile_dir);
	(void)snprintf(
		i->r->local_dump_dir, sizeof(i->r->local_dump_dir), "%s", i->config.local_dump_dir);
	(void)snprintf(
		i->r->s3_dump_prefix, sizeof(i->r->s3_dump_prefix), "%s", i->config.s3_dump_prefix);
	i->r->dump_seconds = i->config.dump_seconds;
	i->r->dumps_asked_for = getenv(env_row(ENV_ID_NEURON_RT_LOCAL_CORE_DUMP_DIRECTORY)->name) ||
				getenv(env_row(ENV_ID_NEURON_RT_S3_CORE_DUMP_PREFIX)->name);
	core_dump_begin();
	i->r->output_layout = i->config.output_layout;
	i->r->profile = i->config.profile;
	i->r->core_count = i->config.core_count;
	i->r->reset_cores = i->config.reset_cores;
	i->r->devices->allow_reset = i->config.allow_reset; /* before any file is opened */
	(void)snprintf(
		i->r->root_comm_id, sizeof(i->r->root_comm_id), "%s", i->config.root_comm_id);
	i->say_in(i->r);
	return NRT_SUCCESS;
}

static NRT_STATUS say_banner(struct init *i)
{
	(void)i;
	log_info(TAG,
		"Neuron Runtime " VERSION_TEXT " built on " VERSION_DATE
		" (its interface; this is ntrace %s)",
		NTRACE_VERSION);
	return NRT_SUCCESS;
}

/* ---- devices ------------------------------------------------------------------------------ */

static NRT_STATUS negotiate(struct init *i)
{
	return device_negotiate(i->r->devices);
}

static NRT_STATUS allocate_cores(struct init *i)
{
	const struct config *c = &i->config;
	struct device_system *s = i->r->devices;
	const struct device_wish wish = {
		.explicit_cores = c->visible_cores.count != 0,
		.first_core = c->visible_cores.first,
		.core_count = c->visible_cores.count ? c->visible_cores.count : c->core_count,
		.lnc_size = c->lnc_size,
		.lnc_variable = c->lnc_variable,
	};
	NRT_STATUS status;

	log_info(TAG,
		"Instance info:: device count:%d cores per device:%d architecture:TRN (V%u%s)",
		(int)s->topology.device_count, (int)s->topology.cores_per_device, s->arch,
		s->topology.simulated ? ", SIMULATED"
		: s->is_virtual	      ? ", VIRTUAL"
				      : "");
	status = device_reserve(s, &wish);
	if (!status)
		log_info(TAG, "LNC info: first lnc %u last lnc %u first pnc %u last pnc %u",
			cores_logical(s->first_core, s->lnc_size),
			cores_logical(s->first_core + s->core_count - 1, s->lnc_size),
			s->first_core, s->first_core + s->core_count - 1);
	return status;
}

static NRT_STATUS start_devices(struct init *i)
{
	NRT_STATUS status = device_start(i->r->devices, i->config.reset_cores);

	if (status)
		log_error(TAG, "Failed to initialize devices, error:%u", (unsigned)status);
	return status;
}

/* ---- the rest ----------------------------------------------------------------------------- */

static NRT_STATUS count_cores(struct init *i)
{
	const struct device_system *s = i->r->devices;

	info_set_cores(device_logical_count(s), device_logical_total(s));
	return NRT_SUCCESS;
}

static void forget_cores(struct runtime *r)
{
	(void)r;
	info_set_cores(0, 0);
}

/* Messages have been written since before the first step; here its ring of errors gets its size. */
static NRT_STATUS open_log(struct init *i)
{
	log_set_cores(device_logical_count(i->r->devices));
	return NRT_SUCCESS;
}

/* Keeps what fits of a text, on one line. */
static void keep_version(char *to, const char *text, const char *what)
{
	if (!text)
		text = "";
	if (strlen(text) >= RUNTIME_VERSION_BYTES)
		log_warn(TAG, "The %s version is cut to %u bytes", what, RUNTIME_VERSION_BYTES - 1);
	(void)snprintf(to, RUNTIME_VERSION_BYTES, "%s", text);
	for (char *c = to; *c; c++)
		if (iscntrl((unsigned char)*c))
			*c = '?';
}

static NRT_STATUS register_framework(struct init *i)
{
	static const char *const names[] = {
		"none", "no framework", "TensorFlow", "PyTorch", "MXNet", "precheck"};
	unsigned type = (unsigned)i->caller->framework;
	struct runtime *r = i->r;

	r->framework = i->caller->framework;
	keep_version(r->fw_version, i->caller->fw_version, "framework");
	keep_version(r->fal_version, i->caller->fal_version, "framework adapter");
	if (type >= sizeof(names) / sizeof(names[0]))
		log_warn(TAG, "Framework type %u is not known", type);
	log_info(TAG, "Framework: %s, version '%s', adapter '%s'",
		type < sizeof(names) / sizeof(names[0]) ? names[type] : "unknown", r->fw_version,
		r->fal_version);
	return NRT_SUCCESS;
}

static NRT_STATUS watch_forks(struct init *i)
{
	int rc = state_watch_forks();

	(void)i;
	if (rc == 0)
		return NRT_SUCCESS;
	log_error(TAG, "Failed to set atfork handlers, ret=%u", (unsigned)rc);
	return NRT_FAILURE;
}

static uint32_t announce_flags(const struct device_system *s)
{
	return (s->is_virtual ? ANNOUNCE_F_VIRTUAL : 0) |
	       (s->topology.simulated ? ANNOUNCE_F_SIMULATED : 0);
}

/* Without an agent the runtime works all the same. */
static NRT_STATUS start_tracing(struct init *i)
{
	int rc = trace_open();

	sys_trace_open();
	if (rc == 0)
		rc = trace_service_start(announce_flags(i->r->devices));
	if (rc < 0)
		log_warn(TAG, "Not traced: %s (%s=%s)", strerror(-rc), ANNOUNCE_ENV,
			getenv(ANNOUNCE_ENV) ? getenv(ANNOUNCE_ENV) : "");
	return NRT_SUCCESS;
}

static void stop_tracing(struct runtime *r)
{
	(void)r;
	trace_service_stop();
}

static NRT_STATUS open_profiles(struct init *i)
{
	return profile_open(device_logical_count(i->r->devices));
}

static void end_profiles(struct runtime *r)
{
	(void)r;
	profile_close();
}

/* ---- the order ---------------------------------------------------------------------------- */

static const struct step {
	const char *name;
	NRT_STATUS (*run)(struct init *i);
	void (*undo)(struct runtime *r);
} steps[] = {
	/* 0b, ours */ {"clocks", check_clocks, NULL},
	/* 1 */ {"driver callback", NULL, NULL},
	/* 2, the guard, is nrt_init's own */
	/* 3 */ {"device discovery", find_devices, give_devices_back},
	/* 4 */ {"environment", read_environment, NULL},
	/* 5 */ {"hardware revision", NULL, NULL},
	/* 6 */ {"settings", copy_settings, NULL},
	/* 6b */ {"banner", say_banner, NULL},
	/* 7 */ {"driver negotiation", negotiate, NULL},
	/* 8 */ {"core allocation", allocate_cores, NULL},
	/* 9 */ {"core usage", count_cores, forget_cores},
	/* 10 */ {"log", open_log, NULL},
	/* 11 */ {"microcode", NULL, NULL},
	/* 12 */ {"collectives firmware", NULL, NULL},
	/* 13 */ {"decode tables", NULL, NULL},
	/* 14 */ {"collectives", NULL, NULL},
	/* 15 */ {"framework", register_framework, NULL},
	/* 16 */ {"devices", start_devices, NULL},
	/* 17 */ {"fork handlers", watch_forks, NULL},
	/* 18 */ {"profile session", open_profiles, end_profiles},
	/* 19; inspect_init comes behind all of them (runtime.c) */ {"inspect", NULL, NULL},
	/* 19b, ours */ {"tracing", start_tracing, stop_tracing},
	/* 20 */ {"ready program", NULL, NULL},
};
#define STEPS (sizeof(steps) / sizeof(steps[0]))

static init_probe *probe;
static init_watch *watch;

void init_set_probe(init_probe *p)
{
	probe = p;
}

void init_set_watch(init_watch *w)
{
	watch = w;
}

const char *init_step_name(size_t index)
{
	return index < STEPS ? steps[index].name : NULL;
}

static NRT_STATUS run_step(const struct step *s, struct init *i)
{
	NRT_STATUS status = probe ? probe(s->name) : NRT_SUCCESS;

	if (!status && s->run)
		status = s->run(i);
	if (!status && watch)
		watch(s->name, i->r);
	return status;
}

/* Where it was for want of descriptors those of the steps are free by now. */
static void tell_again(uint32_t status, int error)
{
	if (error == -EMFILE || error == -ENFILE)
		error = trace_service_failed(status);
	if (error < 0)
		log_write(LOG_LEVEL_ERROR, TAG, "nrt_init",
			"The recorder could not be told of this failure: %s", strerror(-error));
}

NRT_STATUS init_run(const struct init_caller *caller, struct runtime *ret,
	void (*say_in)(const struct runtime *))
{
	struct init i = {.caller = caller, .r = ret, .say_in = say_in};
	NRT_STATUS status = NRT_SUCCESS;
	size_t n;
	int told;

	*ret = (struct runtime){0};
	log_configure();
	for (n = 0; n < STEPS && !status; n++)
		status = run_step(&steps[n], &i);
	if (!status)
		return NRT_SUCCESS;
	log_write(LOG_LEVEL_ERROR, TAG, "nrt_init", "Failure: status %u in nrt_init(), step '%s'",
		(unsigned)status, steps[n - 1].name);
	infodump(LOG_LEVEL_ERROR, -1, status, "nrt_init", ret->devices);
	told = trace_service_failed((uint32_t)status);
	/* What a step that failed has left half-made is its undo's, too. */
	while (n-- > 0)
		if (steps[n].undo)
			steps[n].undo(ret);
	if (told < 0)
		tell_again((uint32_t)status, told);
	return status;
}

/* ---- nrt_close ---------------------------------------------------------------------------- */

static void unload_models(struct runtime *r)
{
	(void)r;
	schedule_close();
	object_retire_all(OBJECT_MODEL);
	object_retire_all(OBJECT_SET);
	object_retire_all(OBJECT_TENSOR);
	ring_memory_forget();
	memory_table_reset_peaks();
}

static void end_capture(struct runtime *r)
{
	(void)r;
	sys_trace_close();
	exec_trace_close();
}

static void close_profiles(struct runtime *r)
{
	(void)r;
	recorded_close();
	collector_close();
}

static void end_inspection(struct runtime *r)
{
	(void)r;
	inspect_close();
}

struct close_step {
	const char *name;
	void (*run)(struct runtime *r);
};

/* While calls are still let in. */
static const struct close_step producers[] = {
	{"asynchronous send and receive", NULL},
	{"inspect", end_inspection},
	{"system trace capture", end_capture},
	{"profile session", end_profiles},
};

/* CLOSED, and no call is in any more. */
static const struct close_step teardown[] = {
	{"execution and models", unload_models},
	{"profiles, ours", close_profiles},
	{"tracing, ours", stop_tracing},
	{"communicators", NULL},
	{"devices and marks", give_devices_back},
	{"framework, microcode, settings", forget_cores},
	{"log", NULL},
};

static void run_close(const struct close_step *s, size_t count, struct runtime *r)
{
	for (size_t n = 0; n < count; n++) {
		if (s[n].run)
			s[n].run(r);
		if (watch)
			watch(s[n].name, r);
	}
}

void init_close_producers(struct runtime *r)
{
	run_close(producers, sizeof(producers) / sizeof(producers[0]), r);
}

void init_close(struct runtime *r)
{
	run_close(teardown, sizeof(teardown) / sizeof(teardown[0]), r);
}
