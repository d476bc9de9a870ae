/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inspect_config_test.c - config and options objects of sys_trace, inspections and continuous profiling:
 * defaults, setters, lists of names.  None of it needs nrt_init.
 */
#include <stdlib.h>
#include <string.h>

#include "runtime/log/log.h"
#include "runtime/profile/inspect_config.h"
#include "runtime/trace/sys_trace_config.h"
#include "tests/shim/shim.h"

/* Refusals are said in the log; not on the tests' terminal. */
struct hush {
	char *before;
};

static struct hush hush_begin(void)
{
	const char *level = getenv("NEURON_RT_LOG_LEVEL");
	struct hush h = {level ? strdup(level) : NULL};

	setenv("NEURON_RT_LOG_LEVEL", "QUIET", 1);
	log_configure();
	return h;
}

static void hush_end(struct hush *h)
{
	if (h->before)
		setenv("NEURON_RT_LOG_LEVEL", h->before, 1);
	else
		unsetenv("NEURON_RT_LOG_LEVEL");
	free(h->before);
	log_configure();
}

#define HUSHED __attribute__((cleanup(hush_end), unused)) struct hush hush_ = hush_begin()

static int count_true(const bool *flags, int n)
{
	int found = 0;

	for (int i = 0; i < n; i++)
		found += flags[i];
	return found;
}

/* ---- sys_trace ---------------------------------------------------------------------------- */

TEST("sys_trace config: the defaults are all cores, all types and 1048576 events", "[config]")
{
	HUSHED;
	nrt_sys_trace_config_t *c = NULL;

	REQUIRE_EQ(nrt_sys_trace_config_allocate(&c), 0);
	CHECK_EQ(c->max_events_per_nc, 1048576);
	CHECK_EQ(count_true(c->nc, 256), 256);
	CHECK_EQ(count_true(c->type, 46), 46);
	memset(c, 0, sizeof(*c));
	nrt_sys_trace_config_set_defaults(c);
	CHECK_EQ(c->max_events_per_nc, 1048576);
	CHECK_EQ(count_true(c->nc, 256) + count_true(c->type, 46), 256 + 46);
	nrt_sys_trace_config_free(c);
	nrt_sys_trace_config_free(NULL);
	CHECK_EQ(nrt_sys_trace_config_allocate(NULL), NRT_INVALID);
}

TEST("sys_trace config: setters change what they name and refuse what there is not", "[config]")
{
	HUSHED;
	nrt_sys_trace_config_t *c = NULL;
	struct nrt_sys_trace_config before;

	REQUIRE_EQ(nrt_sys_trace_config_allocate(&c), 0);
	nrt_sys_trace_config_set_max_events_per_nc(c, 5);
	CHECK_EQ(c->max_events_per_nc, 5);
	nrt_sys_trace_config_set_capture_enabled_for_nc(c, 255, false);
	CHECK(!c->nc[255] && count_true(c->nc, 256) == 255);
	before = *c;
	nrt_sys_trace_config_set_capture_enabled_for_nc(c, 256, false);
	CHECK_EQ(memcmp(c, &before, sizeof(before)), 0);
	CHECK_EQ(nrt_sys_trace_config_set_capture_enabled_for_event_type(c, "nrt_execute", false),
		0);
	CHECK(!c->type[3] && count_true(c->type, 46) == 45);
	before = *c;
	CHECK_EQ(nrt_sys_trace_config_set_capture_enabled_for_event_type(c, "nrt_exec", true),
		NRT_INVALID);
	CHECK_EQ(nrt_sys_trace_config_set_capture_enabled_for_event_type(c, "", true), NRT_INVALID);
	CHECK_EQ(nrt_sys_trace_config_set_capture_enabled_for_event_type(c, NULL, true),
		NRT_INVALID);
	CHECK_EQ(nrt_sys_trace_config_set_capture_enabled_for_event_type(NULL, "nrt_execute", true),
		NRT_INVALID);
	CHECK_EQ(memcmp(c, &before, sizeof(before)), 0);
	nrt_sys_trace_config_set_defaults(NULL);
	nrt_sys_trace_config_set_max_events_per_nc(NULL, 1);
	nrt_sys_trace_config_set_capture_enabled_for_nc(NULL, 0, true);
	nrt_sys_trace_config_free(c);
}

TEST("sys_trace config: a retired name stands for its nearest, a newer one for nothing", "[config]")
{
	HUSHED;
	static const struct {
		const char *name;
		int type;
	} rows[] = {{"model_load", 1}, {"runtime_execute", 4}, {"device_exec", 7}, {"cc_exec", 8},
		{"tensor_read", 9}, {"tensor_write", 10}, {"dlr_infer", 3},
		{"kbl_infer_exec_wait", 19}, {"nrta_execute_schedule", -1},
		{"nrt_profile_add_node_info", -1}};
	nrt_sys_trace_config_t *c = NULL;

	REQUIRE_EQ(nrt_sys_trace_config_allocate(&c), 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		test_info("%s", rows[i].name);
		nrt_sys_trace_config_set_defaults(c);
		CHECK_EQ(nrt_sys_trace_config_set_capture_enabled_for_event_type(
				 c, rows[i].name, false),
			0);
		CHECK_EQ(count_true(c->type, 46), rows[i].type < 0 ? 46 : 45);
		if (rows[i].type >= 0)
			CHECK(!c->type[rows[i].type]);
	}
	nrt_sys_trace_config_free(c);
}

TEST("sys_trace config: the groups hardware and software divide the types", "[config]")
{
	HUSHED;
	/* mask 0x70021C0 */
	static const int hardware[] = {6, 7, 8, 13, 24, 25, 26};
	nrt_sys_trace_config_t *c = NULL;

	REQUIRE_EQ(nrt_sys_trace_config_allocate(&c), 0);
	CHECK_EQ(nrt_sys_trace_config_set_capture_enabled_for_event_type(c, "software", false), 0);
	CHECK_EQ(count_true(c->type, 46), 7);
	for (int i = 0; i < 7; i++)
		CHECK(c->type[hardware[i]]);
	CHECK_EQ(nrt_sys_trace_config_set_capture_enabled_for_event_type(c, "hardware", false), 0);
	CHECK_EQ(count_true(c->type, 46), 0);
	CHECK_EQ(nrt_sys_trace_config_set_capture_enabled_for_event_type(c, "software", true), 0);
	CHECK_EQ(count_true(c->type, 46), 39);
	nrt_sys_trace_config_free(c);
}

TEST("sys_trace config: names of types come in their order and belong to the caller", "[config]")
{
	HUSHED;
	nrt_sys_trace_config_t *c = NULL;
	const char **names = NULL;
	size_t n = 0;

	REQUIRE_EQ(nrt_sys_trace_get_event_types(&names, &n), 0);
	REQUIRE_EQ(n, 46);
	for (uint32_t i = 0; i < 46; i++)
		CHECK_STR(names[i], trace_event_info(i)->name);
	for (size_t i = 0; i < n; i++) /* as a program may */
		free((void *)names[i]);
	free(names);
	REQUIRE_EQ(nrt_sys_trace_config_allocate(&c), 0);
	CHECK_EQ(nrt_sys_trace_config_set_capture_enabled_for_event_type(c, "software", false), 0);
	CHECK_EQ(nrt_sys_trace_config_set_capture_enabled_for_event_type(c, "nrt_load", true), 0);
	REQUIRE_EQ(nrt_sys_trace_config_get_enabled_event_types(c, &names, &n), 0);
	REQUIRE_EQ(n, 8);
	CHECK_STR(names[0], "nrt_load");
	CHECK_STR(names[2], "nc_exec_running");
	nrt_sys_trace_free_event_types(names, n);
	CHECK_EQ(nrt_sys_trace_config_set_capture_enabled_for_event_type(c, "hardware", false), 0);
	CHECK_EQ(nrt_sys_trace_config_set_capture_enabled_for_event_type(c, "nrt_load", false), 0);
	REQUIRE_EQ(nrt_sys_trace_config_get_enabled_event_types(c, &names, &n), 0);
	CHECK_EQ(n, 0);
	CHECK(names != NULL);
	nrt_sys_trace_free_event_types(names, n);
	nrt_sys_trace_free_event_types(NULL, 0);
	n = 99;
	CHECK_EQ(nrt_sys_trace_get_event_types(NULL, &n), NRT_INVALID);
	CHECK_EQ(nrt_sys_trace_get_event_types(&names, NULL), NRT_INVALID);
	CHECK_EQ(nrt_sys_trace_config_get_enabled_event_types(NULL, &names, &n), NRT_INVALID);
	CHECK_EQ(n, 99);
	nrt_sys_trace_config_free(c);
}

TEST("sys_trace fetch options: all events of all cores, or as set", "[config]")
{
	HUSHED;
	nrt_sys_trace_fetch_options_t *o = NULL;

	REQUIRE_EQ(nrt_sys_trace_fetch_options_allocate(&o), 0);
	CHECK_EQ(o->max_events_per_nc, 0);
	CHECK_EQ(o->nc_idx, -1);
	nrt_sys_trace_fetch_options_set_max_events_per_nc(o, 1000);
	nrt_sys_trace_fetch_options_set_nc_idx(o, 255);
	CHECK_EQ(o->max_events_per_nc, 1000);
	CHECK_EQ(o->nc_idx, 255);
	nrt_sys_trace_fetch_options_set_nc_idx(o, 256);
	nrt_sys_trace_fetch_options_set_nc_idx(o, 1ull << 32); /* would be core 0 if it were cut */
	CHECK_EQ(o->nc_idx, 255);
	nrt_sys_trace_fetch_options_set_nc_idx(o, UINT64_MAX);
	CHECK_EQ(o->nc_idx, -1);
	nrt_sys_trace_fetch_options_set_nc_idx(o, 3);
	nrt_sys_trace_fetch_options_set_defaults(o);
	CHECK_EQ(o->max_events_per_nc, 0);
	CHECK_EQ(o->nc_idx, -1);
	nrt_sys_trace_fetch_options_free(o);
	nrt_sys_trace_fetch_options_free(NULL);
	nrt_sys_trace_fetch_options_set_defaults(NULL);
	nrt_sys_trace_fetch_options_set_max_events_per_nc(NULL, 1);
	nrt_sys_trace_fetch_options_set_nc_idx(NULL, 1);
	CHECK_EQ(nrt_sys_trace_fetch_options_allocate(NULL), NRT_INVALID);
}

/* ---- inspections -------------------------------------------------------------------------- */

static void check_defaults(const nrt_inspect_config_t *c)
{
	CHECK_EQ(c->session_id, 1);
	CHECK(c->output_dir == NULL); /* ./output when it begins */
	CHECK_EQ(c->activities, 255);
	CHECK_EQ(c->sys_trace.max_events_per_nc, 1048576);
	CHECK_EQ(count_true(c->sys_trace.nc, 256), 256);
	CHECK_EQ(count_true(c->sys_trace.type, 46), 46);
	CHECK_EQ(count_true(c->nc, 256), 256);
	CHECK(!c->enable_inspect && !c->enable_inspect_on_fail);
	CHECK_EQ(c->device_profile_mode, NRT_INSPECT_DEVICE_PROFILE_MODE_DISABLED);
}

TEST("inspect config: session 1, ./output, all activities, everything captured, off", "[config]")
{
	HUSHED;
	nrt_inspect_config_t *c = NULL;

	REQUIRE_EQ(nrt_inspect_config_allocate(&c), 0);
	check_defaults(c);
	CHECK_EQ(nrt_inspect_config_set_output_dir(c, "/somewhere"), 0);
	CHECK_EQ(nrt_inspect_config_set_session_id(c, 9), 0);
	CHECK_EQ(nrt_inspect_config_set_activity(c, "all", false), 0);
	CHECK_EQ(nrt_inspect_config_set_enable_inspect(c, true), 0);
	CHECK_EQ(nrt_inspect_config_set_defaults(c), 0);
	check_defaults(c);
	CHECK_EQ(nrt_inspect_config_free(c), 0);
}

TEST("inspect config: setters store what they are given", "[config]")
{
	HUSHED;
	nrt_inspect_config_t *c = NULL;
	char dir[] = "/somewhere";

	REQUIRE_EQ(nrt_inspect_config_allocate(&c), 0);
	CHECK_EQ(nrt_inspect_config_set_session_id(c, -7), 0);
	CHECK_EQ(c->session_id, -7);
	CHECK_EQ(nrt_inspect_config_set_output_dir(c, dir), 0);
	dir[1] = 'S'; /* it was copied */
	CHECK_STR(c->output_dir, "/somewhere");
	CHECK_EQ(nrt_inspect_config_set_output_dir(c, ""), NRT_INVALID);
	CHECK(c->output_dir == NULL);
	CHECK_EQ(nrt_inspect_config_set_output_dir(c, "x"), 0);
	CHECK_EQ(nrt_inspect_config_set_output_dir(c, NULL), NRT_INVALID);
	CHECK(c->output_dir == NULL);
	CHECK_EQ(nrt_inspect_config_set_capture_enabled_for_nc(c, 200, false), 0);
	CHECK(!c->nc[200] && !c->sys_trace.nc[200]);
	CHECK_EQ(nrt_inspect_config_set_capture_enabled_for_nc(c, 256, false), NRT_INVALID);
	CHECK_EQ(nrt_inspect_config_set_capture_enabled_for_event_type_string(c, "nrt_load", false),
		0);
	CHECK(!c->sys_trace.type[1]);
	CHECK_EQ(nrt_inspect_config_set_capture_enabled_for_event_type_string(c, "x", false),
		NRT_INVALID);
	CHECK_EQ(nrt_inspect_config_set_capture_enabled_for_event_type(c, 45, false), 0);
	CHECK(!c->sys_trace.type[45] && count_true(c->sys_trace.type, 46) == 44);
	CHECK_EQ(nrt_inspect_config_set_capture_enabled_for_event_type(c, 46, false), NRT_INVALID);
	CHECK_EQ(nrt_inspect_config_set_enable_inspect(c, true), 0);
	CHECK(c->enable_inspect && !c->enable_inspect_on_fail);
	CHECK_EQ(nrt_inspect_config_set_enable_inspect_on_fail(c, true), 0);
	CHECK(c->enable_inspect_on_fail);
	CHECK_EQ(nrt_inspect_config_set_inspect_device_profile_mode(
			 c, NRT_INSPECT_DEVICE_PROFILE_MODE_SESSION),
		0);
	CHECK_EQ(c->device_profile_mode, 2);
	CHECK_EQ(nrt_inspect_config_set_inspect_device_profile_mode(
			 c, (nrt_inspect_device_profile_mode_t)3),
		NRT_INVALID);
	CHECK_EQ(c->device_profile_mode, 2);
	CHECK_EQ(nrt_inspect_config_set_sys_trace_max_events_per_nc(c, 12), 0);
	CHECK_EQ(c->sys_trace.max_events_per_nc, 12);
	CHECK_EQ(nrt_inspect_config_free(c), 0);
}

TEST("inspect config: without an object every call gives NRT_INVALID", "[config]")
{
	HUSHED;
	const char **names = NULL;
	size_t n = 0;

	CHECK_EQ(nrt_inspect_config_allocate(NULL), NRT_INVALID);
	CHECK_EQ(nrt_inspect_config_free(NULL), NRT_INVALID);
	CHECK_EQ(nrt_inspect_config_set_defaults(NULL), NRT_INVALID);
	CHECK_EQ(nrt_inspect_config_set_session_id(NULL, 1), NRT_INVALID);
	CHECK_EQ(nrt_inspect_config_set_output_dir(NULL, "x"), NRT_INVALID);
	CHECK_EQ(nrt_inspect_config_set_activity(NULL, "all", true), NRT_INVALID);
	CHECK_EQ(nrt_inspect_config_set_capture_enabled_for_nc(NULL, 0, true), NRT_INVALID);
	CHECK_EQ(nrt_inspect_config_set_capture_enabled_for_event_type_string(
			 NULL, "nrt_load", true),
		NRT_INVALID);
	CHECK_EQ(nrt_inspect_config_set_capture_enabled_for_event_type(NULL, 1, true), NRT_INVALID);
	CHECK_EQ(nrt_inspect_config_set_enable_inspect(NULL, true), NRT_INVALID);
	CHECK_EQ(nrt_inspect_config_set_enable_inspect_on_fail(NULL, true), NRT_INVALID);
	CHECK_EQ(nrt_inspect_config_set_inspect_device_profile_mode(
			 NULL, NRT_INSPECT_DEVICE_PROFILE_MODE_MODEL),
		NRT_INVALID);
	CHECK_EQ(nrt_inspect_config_set_sys_trace_max_events_per_nc(NULL, 1), NRT_INVALID);
	CHECK_EQ(nrt_inspect_config_get_enabled_activity_types(NULL, &names, &n), NRT_INVALID);
	CHECK_EQ(nrt_inspect_config_get_all_activity_types(NULL, &n), NRT_INVALID);
	CHECK(names == NULL && n == 0);
}

TEST("inspect config: activities are bits with names, and all is the four", "[config]")
{
	HUSHED;
	static const struct {
		const char *name;
		uint32_t bits;
	} rows[] = {
		{"system_profile", 1}, {"device_profile", 2}, {"host_memory", 4}, {"cpu_util", 8}};
	nrt_inspect_config_t *c = NULL;
	const char **names = NULL;
	size_t n = 0;

	REQUIRE_EQ(nrt_inspect_config_allocate(&c), 0);
	REQUIRE_EQ(nrt_inspect_config_get_all_activity_types(&names, &n), 0);
	REQUIRE_EQ(n, 4);
	for (int i = 0; i < 4; i++) {
		CHECK_STR(names[i], rows[i].name);
		CHECK_EQ(nrt_inspect_config_set_activity(c, "all", false), 0);
		CHECK_EQ(c->activities, 0);
		CHECK_EQ(nrt_inspect_config_set_activity(c, rows[i].name, true), 0);
		CHECK_EQ(c->activities, rows[i].bits);
		CHECK_EQ(nrt_inspect_config_set_activity(c, "all", true), 0);
		CHECK_EQ(nrt_inspect_config_set_activity(c, rows[i].name, false), 0);
		CHECK_EQ(c->activities & 15u, 15u & ~rows[i].bits);
	}
	nrt_inspect_config_free_activity_types(names, n);
	REQUIRE_EQ(nrt_inspect_config_get_enabled_activity_types(c, &names, &n), 0);
	REQUIRE_EQ(n, 3); /* cpu_util was the last to go */
	CHECK_STR(names[2], "host_memory");
	nrt_inspect_config_free_activity_types(names, n);
	CHECK_EQ(nrt_inspect_config_set_activity(c, "gpu_util", true), NRT_INVALID);
	CHECK_EQ(nrt_inspect_config_set_activity(c, NULL, true), NRT_INVALID);
	CHECK_EQ(nrt_inspect_config_free(c), 0);
}

TEST("continuous options: a directory, which cannot be empty", "[config]")
{
	HUSHED;
	nrt_profile_continuous_options_t *o = NULL;

	REQUIRE_EQ(nrt_profile_continuous_options_allocate(&o), 0);
	CHECK(o->output_dir == NULL); /* ./output */
	CHECK_EQ(nrt_profile_continuous_options_set_output_dir(o, "a"), 0);
	CHECK_EQ(nrt_profile_continuous_options_set_output_dir(o, "b"), 0);
	CHECK_EQ(nrt_profile_continuous_options_set_output_dir(o, ""), NRT_INVALID);
	CHECK_EQ(nrt_profile_continuous_options_set_output_dir(o, NULL), NRT_INVALID);
	CHECK_STR(o->output_dir, "b");
	CHECK_EQ(nrt_profile_continuous_options_free(o), 0);
	CHECK_EQ(nrt_profile_continuous_options_free(NULL), NRT_INVALID);
	CHECK_EQ(nrt_profile_continuous_options_set_output_dir(NULL, "a"), NRT_INVALID);
	CHECK_EQ(nrt_profile_continuous_options_allocate(NULL), NRT_INVALID);
}
