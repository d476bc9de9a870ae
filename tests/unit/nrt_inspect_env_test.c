/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nrt_inspect_env_test.c - the NEURON_RT_INSPECT_ variables as the config of a session, and what is
 * said of lists that name what there is not.
 */
#include <stdlib.h>
#include <string.h>

#include "runtime/profile/inspect.h"
#include "runtime/profile/inspect_config.h"
#include "tests/shim/shim.h"
#include "tests/unit/hearing.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define CORES 4u /* of the process */

struct reading {
	nrt_inspect_config_t *config;
	NRT_STATUS status;
	char *said;
};

/* With one more variable, or none. */
static struct reading read_with(struct hearing *h, const char *name, const char *value)
{
	struct reading r = {0};

	if (nrt_inspect_config_allocate(&r.config))
		return r;
	if (name)
		setenv(name, value, 1);
	hear_on(h);
	r.status = inspect_config_read("nrt_inspect_begin", CORES, r.config);
	r.said = hear(h);
	if (name)
		unsetenv(name);
	return r;
}

static void reading_free(struct reading *r)
{
	(void)nrt_inspect_config_free(r->config);
	free(r->said);
}

static unsigned count(const bool *flags, unsigned n)
{
	unsigned sum = 0;

	for (unsigned i = 0; i < n; i++)
		sum += flags[i];
	return sum;
}

/* ---- single values ------------------------------------------------------------------------ */

TEST("inspect env: without a variable nothing begins; events are the one activity", "[inspect]")
{
	struct hearing h;
	struct reading r;

	REQUIRE(hear_begin(&h, "WARN"));
	r = read_with(&h, NULL, NULL);
	REQUIRE(r.said != NULL);
	CHECK_EQ(r.status, NRT_SUCCESS);
	CHECK(!r.config->enable_inspect && !r.config->enable_inspect_on_fail);
	CHECK_EQ(r.config->activities, INSPECT_SYSTEM_PROFILE);
	CHECK_EQ(r.config->device_profile_mode, NRT_INSPECT_DEVICE_PROFILE_MODE_DISABLED);
	CHECK_STR(r.config->output_dir, "./output");
	CHECK_EQ(r.config->sys_trace.max_events_per_nc, 1048576);
	CHECK_EQ(count(r.config->nc, TRACE_MAX_NC), TRACE_MAX_NC);
	CHECK_EQ(count(r.config->sys_trace.nc, TRACE_MAX_NC), TRACE_MAX_NC);
	CHECK_EQ(count(r.config->sys_trace.type, TRACE_TYPE_COUNT), TRACE_TYPE_COUNT);
	CHECK_STR(r.said, "");
	reading_free(&r);
	hear_end(&h);
}

TEST("inspect env: each variable sets what it is for, and nothing else", "[inspect]")
{
	static const struct {
		const char *name, *value;
		bool enable, on_fail;
		uint32_t activities, mode;
		uint64_t events;
		const char *dir;
	} rows[] = {
		{"ENABLE", "1", true, false, 1, 0, 1048576, "./output"},
		{"ENABLE", "0", false, false, 1, 0, 1048576, "./output"},
		{"ON_FAIL", "1", false, true, 1, 0, 1048576, "./output"},
		{"SYSTEM_PROFILE", "0", false, false, 0, 0, 1048576, "./output"},
		{"DEVICE_PROFILE", "0", false, false, 1, 0, 1048576, "./output"},
		{"DEVICE_PROFILE", "1", false, false, 3, 1, 1048576, "./output"},
		{"DEVICE_PROFILE", "model", false, false, 3, 1, 1048576, "./output"},
		{"DEVICE_PROFILE", "Session", false, false, 3, 2, 1048576, "./output"},
		{"DEVICE_PROFILE", "", false, false, 1, 0, 1048576, "./output"},
		{"HOST_MEMORY", "1", false, false, 5, 0, 1048576, "./output"},
		{"CPU_UTIL", "1", false, false, 9, 0, 1048576, "./output"},
		{"SYS_TRACE_MAX_EVENTS_PER_NC", "5000", false, false, 1, 0, 5000, "./output"},
		{"SYS_TRACE_MAX_EVENTS_PER_NC", "4000000", false, false, 1, 0, 1048576, "./output"},
		{"OUTPUT_DIR", "/a/b", false, false, 1, 0, 1048576, "/a/b"},
		{"OUTPUT_DIR", "", false, false, 1, 0, 1048576, ""},
	};
	struct hearing h;

	REQUIRE(hear_begin(&h, "WARN"));
	for (size_t i = 0; i < COUNT(rows); i++) {
		char name[64];
		struct reading r;

		snprintf(name, sizeof(name), "NEURON_RT_INSPECT_%s", rows[i].name);
		r = read_with(&h, name, rows[i].value);
		test_info("%s='%s': %s", name, rows[i].value, r.said);
		REQUIRE(r.said != NULL);
		CHECK_EQ(r.status, NRT_SUCCESS);
		CHECK_EQ(r.config->enable_inspect, rows[i].enable);
		CHECK_EQ(r.config->enable_inspect_on_fail, rows[i].on_fail);
		CHECK_EQ(r.config->activities, rows[i].activities);
		CHECK_EQ(r.config->device_profile_mode, rows[i].mode);
		CHECK_EQ(r.config->sys_trace.max_events_per_nc, rows[i].events);
		CHECK_STR(r.config->output_dir, rows[i].dir);
		CHECK_STR(r.said, "");
		reading_free(&r);
	}
	hear_end(&h);
}

TEST("inspect env: a malformed value is refused with its variable and what is allowed", "[inspect]")
{
	static const char *const rows[][3] = {
		{"NEURON_RT_INSPECT_ENABLE", "yes",
			"NEURON_RT_INSPECT_ENABLE='yes' is not 0 or 1\n"},
		{"NEURON_RT_INSPECT_DEVICE_PROFILE", "2", "is not one of 0 1 model session\n"},
		{"NEURON_RT_INSPECT_EVENT_FILTER_NC", "0,,1",
			"is not a list like 0-3,5 of cores up to 255\n"},
		{"NEURON_RT_INSPECT_EVENT_FILTER_NC", "256", "of cores up to 255\n"},
		{"NEURON_RT_INSPECT_SYS_TRACE_MAX_EVENTS_PER_NC", "many", "is not a number"},
	};
	struct hearing h;

	REQUIRE(hear_begin(&h, "ERROR"));
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct reading r = read_with(&h, rows[i][0], rows[i][1]);

		test_info("%s: %s", rows[i][0], r.said);
		REQUIRE(r.said != NULL);
		CHECK_EQ(r.status, NRT_INVALID);
		CHECK(strstr(r.said, rows[i][2]) != NULL);
		CHECK(!r.config->output_dir); /* untouched */
		reading_free(&r);
	}
	hear_end(&h);
}

/* ---- cores -------------------------------------------------------------------------------- */

TEST("inspect env: cores that the process does not see are named and left out", "[inspect]")
{
	static const struct {
		const char *value;
		uint32_t chosen;      /* a bit each */
		const char *warnings; /* one each */
	} rows[] = {
		{"0", 0x1, ""},
		{"1-2", 0x6, ""},
		{"0-3", 0xf, ""},
		{"3,5", 0x8, "5"},
		{"4", 0x0, "4"},
		{"6-7", 0x0, "67"},
	};
	struct hearing h;

	REQUIRE(hear_begin(&h, "WARN"));
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct reading r =
			read_with(&h, "NEURON_RT_INSPECT_EVENT_FILTER_NC", rows[i].value);
		uint32_t chosen = 0, events = 0;
		const char *at = r.said;

		REQUIRE(r.said != NULL);
		test_info("%s: %s", rows[i].value, r.said);
		CHECK_EQ(r.status, NRT_SUCCESS);
		for (uint32_t nc = 0; nc < 32; nc++) {
			chosen |= (uint32_t)r.config->nc[nc] << nc;
			events |= (uint32_t)r.config->sys_trace.nc[nc] << nc;
		}
		CHECK_EQ(chosen, rows[i].chosen);
		CHECK_EQ(events, rows[i].chosen);
		CHECK_EQ(count(r.config->nc + 32, TRACE_MAX_NC - 32), 0);
		for (const char *w = rows[i].warnings; *w; w++) {
			char text[64];

			snprintf(text, sizeof(text),
				"Requested capture for NC %c, but it is not visible", *w);
			at = at ? strstr(at, text) : NULL;
			CHECK(at != NULL);
			at = at ? at + 1 : NULL;
		}
		CHECK(!at || !strstr(at, "Requested"));
		reading_free(&r);
	}
	hear_end(&h);
}

/* ---- event types -------------------------------------------------------------------------- */

/* A text of names, each with a blank behind, of the types that are on; those of the hardware as *,
 * of the software as +, when all of them are. */
static void describe(const bool *type, char *ret, size_t size)
{
	unsigned on[2] = {0}, all[2] = {0};
	size_t used = 0;

	ret[0] = '\0';
	for (uint32_t i = 0; i < TRACE_TYPE_COUNT; i++) {
		on[trace_event_info(i)->category] += type[i];
		all[trace_event_info(i)->category]++;
	}
	for (int c = 0; c < 2; c++)
		if (on[c] == all[c])
			used += (size_t)snprintf(ret + used, size - used, "%c ", "+*"[c]);
	for (uint32_t i = 0; i < TRACE_TYPE_COUNT; i++) {
		int c = trace_event_info(i)->category;

		if (on[c] != all[c] && type[i])
			used += (size_t)snprintf(
				ret + used, size - used, "%s ", trace_event_info(i)->name);
	}
}

TEST("inspect env: event types by name, group and exception, in any order", "[inspect]")
{
	static const struct {
		const char *value, *types;
		const char *said[3]; /* in one line each; "" = nothing else */
	} rows[] = {
		{"", "+ * ", {""}},
		{"nrt_execute", "nrt_execute ", {""}},
		{" nrt_execute , nrt_load ,", "nrt_load nrt_execute ", {""}},
		{"hardware", "* ", {""}},
		{"software", "+ ", {""}},
		{"hardware,software", "+ * ", {""}},
		{"^software", "* ", {""}},
		{"^ software", "* ", {""}},
		{"^software,^cc_running,^cc_exec_barrier,^numerical_err,^nc_model_switch,^hw_"
		 "notify",
			"nc_exec_running timestamp_sync_point ", {""}},
		{"hardware,^timestamp_sync_point,^cc_running,^cc_exec_barrier,^numerical_err,"
		 "^hw_notify,^nc_model_switch",
			"nc_exec_running ", {""}},
		{"^nc_exec_running,nc_exec_running,nrt_load", "nrt_load ", {""}},
		{"model_load", "nrt_load ",
			{"Event type 'model_load' is retired; taken for 'nrt_load'"}},
		{"nrt_exeucte,nrt_load", "nrt_load ",
			{"there is no event type 'nrt_exeucte'; did you mean nrt_execute? It is "
			 "left "
			 "out"}},
		{"nc_exec_runing", "+ * ", {"did you mean nc_exec_running?"}},
		{"hostcc,nrt_load", "nrt_load ",
			{"did you mean hostcc_build_context, hostcc_load, hostcc_exec, "
			 "hostcc_wait?"}},
		{"zebra,nrt_load", "nrt_load ",
			{"there is no event type 'zebra'; nrt_sys_trace_get_event_types names "
			 "them"}},
		{"^zebra", "+ * ", {"there is no event type 'zebra'"}},
		{"^software,^hardware", "", {"leaves no event type"}},
	};
	struct hearing h;

	REQUIRE(hear_begin(&h, "WARN"));
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct reading r =
			read_with(&h, "NEURON_RT_INSPECT_EVENT_FILTER_TYPE", rows[i].value);
		char types[2048];

		REQUIRE(r.said != NULL);
		test_info("'%s': %s", rows[i].value, r.said);
		CHECK_EQ(r.status, NRT_SUCCESS);
		describe(r.config->sys_trace.type, types, sizeof(types));
		CHECK_STR(types, rows[i].types);
		for (size_t k = 0; k < COUNT(rows[i].said) && rows[i].said[k]; k++)
			CHECK(*rows[i].said[k] ? strstr(r.said, rows[i].said[k]) != NULL
					       : *r.said == '\0');
		reading_free(&r);
	}
	hear_end(&h);
}

/* ---- what trace_info.pb lists ------------------------------------------------------------- */

static const char *const set[][2] = {
	{"NEURON_RT_INSPECT_ENABLE", "1"},
	{"NEURON_RT_INSPECT_OUTPUT_DIR", "a=b"},
	{"NEURON_RT_INSPECT_DURATION_NSEC", "7"},
	{"NEURON_RT_INSPECT_CPU_UTIL", ""},
	{"NEURON_RT_VISIBLE_CORES", "0"},
	{"NTRACE_INSPECT_PERIOD_MS", "20"},
	{"NTRACE_ALLOW_RESET", "0"},
};

TEST("inspect env: the list has the variables that are set and that the session goes by",
	"[inspect]")
{
	static const char *const wanted[] = {"NTRACE_INSPECT_PERIOD_MS=20",
		"NEURON_RT_INSPECT_ENABLE=1", "NEURON_RT_INSPECT_OUTPUT_DIR=a=b"};

	for (int by_environment = 0; by_environment < 2; by_environment++) {
		char **list;
		size_t n = 0;

		for (size_t i = 0; i < sizeof(set) / sizeof(set[0]); i++)
			setenv(set[i][0], set[i][1], 1);
		list = inspect_env_list(by_environment);
		for (size_t i = 0; i < sizeof(set) / sizeof(set[0]); i++)
			unsetenv(set[i][0]);
		REQUIRE(list != NULL);
		for (; n < 3 && list[n]; n++)
			CHECK_STR(list[n], wanted[n]);
		CHECK_EQ(n, by_environment ? 3 : 1);
		inspect_env_free(list);
	}
}
