/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client_order.cpp - the calls of a public client of the runtime, in its order, from C++.
 *
 * The client binds the runtime for Python: init, tensors, a slice, load, a capture whose config is
 * freed straight after the start, execute, fetch, a profile whose statuses it does not look at,
 * stop (again), unload, close, and all of it once more, but with the argument `once`.  It pairs
 * events by tracking_id alone and measures by the device's clock.  Every answer is looked at; exit
 * status 0: all are right.
 */
#include <cstdio>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include <jansson.h>

#include <nrt/ndebug_stream.h>
#include <nrt/nec.h>
#include <nrt/nrt.h>
#include <nrt/nrt_async.h>
#include <nrt/nrt_async_sendrecv.h>
#include <nrt/nrt_experimental.h>
#include <nrt/nrt_profile.h>
#include <nrt/nrt_sys_trace.h>

#include "tests/workloads/client.hpp"

using namespace client;

namespace {

/* ---- the capture -------------------------------------------------------------------------- */

void trace_start()
{
	nrt_sys_trace_config_t *config = nullptr;

	want(nrt_sys_trace_config_allocate(&config), "nrt_sys_trace_config_allocate");
	nrt_sys_trace_config_set_capture_enabled_for_nc(config, core, true);
	NRT_STATUS status = nrt_sys_trace_start(config);
	nrt_sys_trace_config_free(config);
	want(status, "nrt_sys_trace_start");
}

json_t *trace_fetch()
{
	nrt_sys_trace_fetch_options_t *options = nullptr;
	char *buffer = nullptr;
	size_t size = 0;

	want(nrt_sys_trace_fetch_options_allocate(&options), "nrt_sys_trace_fetch_options_allocate");
	nrt_sys_trace_fetch_options_set_nc_idx(options, core);
	NRT_STATUS status = nrt_sys_trace_fetch_events(&buffer, &size, options);
	nrt_sys_trace_fetch_options_free(options);
	want(status, "nrt_sys_trace_fetch_events");
	json_t *root = json_loadb(buffer, size, 0, nullptr); /* the size is without a terminator */
	nrt_sys_trace_buffer_free(buffer);
	want(root != nullptr, "the events are JSON");
	return root;
}

/* The durations of device runs, as the client has them: starts by tracking_id, device clock. */
std::vector<long long> device_runs(const json_t *root)
{
	std::map<long long, long long> open;
	std::vector<long long> durations;
	size_t i;
	json_t *event;

	json_array_foreach(json_object_get(root, "events"), i, event)
	{
		const char *type = json_string_value(json_object_get(event, "event_type"));
		const char *phase = json_string_value(json_object_get(event, "phase"));
		long long id = json_integer_value(json_object_get(event, "tracking_id"));
		const json_t *clock = json_object_get(json_object_get(event, "data"), "nc_timestamp_ns");

		want(type && phase && id, "each event has a type, a phase and a tracking_id");
		if (std::strcmp(type, "nc_exec_running") != 0 || !clock)
			continue;
		if (std::strcmp(phase, "start") == 0) {
			want(open.emplace(id, json_integer_value(clock)).second,
				"a tracking_id is open once");
			continue;
		}
		want(open.count(id) == 1, "a start stands before its stop");
		durations.push_back(json_integer_value(clock) - open[id]);
		open.erase(id);
	}
	want(open.empty(), "each start has a stop");
	return durations;
}

size_t events_left()
{
	json_t *root = trace_fetch();
	size_t n = json_array_size(json_object_get(root, "events"));

	json_decref(root);
	return n;
}

/* ---- the order ---------------------------------------------------------------------------- */

void profiled(Job &job)
{
	NRT_STATUS begun = nrt_profile_start(job.model, "profile.ntff");

	job.run(5);
	NRT_STATUS ended = nrt_profile_stop("profile.ntff");
	std::printf("profile: start %d, stop %d, %s\n", int(begun), int(ended),
		std::remove("profile.ntff") == 0 ? "a file" : "no file");
}

void session()
{
	want(nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "spike", "1.0"), "nrt_init");
	{
		Job job;

		trace_start();
		job.run(1);
		want(events_left() > 0, "there is something to drain");
		want(events_left() == 0, "what was drained is gone");
		job.run(2);
		job.run(3);
		json_t *root = trace_fetch();
		std::vector<long long> runs = device_runs(root);
		json_decref(root);
		std::printf("device runs: %zu\n", runs.size());
		for (long long ns : runs)
			want(ns == 50000, "a run takes the 50 us of its steps, not " +
						  std::to_string(ns) + " ns");
		profiled(job);
		want(nrt_sys_trace_stop(), "nrt_sys_trace_stop");
		(void)nrt_sys_trace_stop();
		job.run(6);
		want(nrt_unload(job.model), "nrt_unload");
	}
	nrt_close();
}

} // namespace

int main(int argc, char **argv)
{
	try {
		session();
		if (argc < 2 || std::strcmp(argv[1], "once") != 0)
			session();
	} catch (const Failure &f) {
		std::fprintf(stderr, "client_order: %s\n", f.what.c_str());
		return 1;
	}
	std::puts("all answers are right");
	return 0;
}
