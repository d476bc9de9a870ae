/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kineto_order.cpp - the calls of a framework's profiler plug-in to the inspect session, in its
 * order, from C++.
 *
 * The plug-in brings the runtime up when it is first asked, clears all activities and sets those
 * that were asked for, one by one; what else it wants comes as one text, "key:value;...".  Its
 * config lives until the plug-in goes, which is after the stop; or, with `early`, only until the
 * begin.  A bad status it notes and goes on; here it is a failure.
 *
 *	kineto_order CONFIG EXECUTIONS [early]
 */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <sstream>

#include <nrt/nrt_profile.h>

#include "tests/workloads/client.hpp"

using namespace client;

namespace
{

class Session
{
      public:
	explicit Session(const std::string &custom)
	{
		want(nrt_init(NRT_FRAMEWORK_TYPE_PYTORCH, "2.9", "2.9"), "nrt_init");
		want(nrt_inspect_config_allocate(&config_), "nrt_inspect_config_allocate");
		want(nrt_inspect_config_set_defaults(config_), "nrt_inspect_config_set_defaults");
		want(nrt_inspect_config_set_enable_inspect(config_, true),
			"nrt_inspect_config_set_enable_inspect");
		want(nrt_inspect_config_set_activity(config_, "all", false),
			"nrt_inspect_config_set_activity(all)");
		activity("system_profile");
		activity("device_profile");
		want(nrt_inspect_config_set_inspect_device_profile_mode(
			     config_, NRT_INSPECT_DEVICE_PROFILE_MODE_SESSION),
			"nrt_inspect_config_set_inspect_device_profile_mode");
		activity("cpu_util");
		take(custom);
	}
	Session(const Session &) = delete;
	Session &operator=(const Session &) = delete;
	~Session()
	{
		free_config();
	}
	void start()
	{
		want(nrt_inspect_begin_with_options(config_), "nrt_inspect_begin_with_options");
	}
	void stop()
	{
		want(nrt_inspect_stop(), "nrt_inspect_stop");
	}
	void free_config()
	{
		if (config_)
			want(nrt_inspect_config_free(config_), "nrt_inspect_config_free");
		config_ = nullptr;
	}

      private:
	nrt_inspect_config_t *config_ = nullptr;

	void activity(const char *name)
	{
		want(nrt_inspect_config_set_activity(config_, name, true),
			std::string("nrt_inspect_config_set_activity(") + name + ")");
	}
	/* A list like 0-1,3. */
	void cores(const std::string &list)
	{
		std::istringstream items(list);
		std::string item;

		for (unsigned nc = 0; nc < 256; nc++)
			want(nrt_inspect_config_set_capture_enabled_for_nc(config_, nc, false),
				"nrt_inspect_config_set_capture_enabled_for_nc");
		while (std::getline(items, item, ',')) {
			char *end;
			unsigned long low = std::strtoul(item.c_str(), &end, 10);
			unsigned long high = *end == '-' ? std::strtoul(end + 1, nullptr, 10) : low;

			for (; low <= high; low++)
				want(nrt_inspect_config_set_capture_enabled_for_nc(
					     config_, uint32_t(low), true),
					"nrt_inspect_config_set_capture_enabled_for_nc");
		}
	}
	void take_one(const std::string &key, const std::string &value)
	{
		if (key == "max_events_per_nc")
			want(nrt_inspect_config_set_sys_trace_max_events_per_nc(
				     config_, std::strtoull(value.c_str(), nullptr, 10)),
				"nrt_inspect_config_set_sys_trace_max_events_per_nc");
		else if (key == "capture_enabled_for_nc")
			cores(value);
		else if (key == "host_memory" && value == "true")
			activity("host_memory");
		else if (key == "profile_output_dir")
			want(nrt_inspect_config_set_output_dir(config_, value.c_str()),
				"nrt_inspect_config_set_output_dir");
		else
			want(key == "host_memory", "the key " + key + " is known");
	}
	void take(const std::string &custom)
	{
		std::istringstream parts(custom);
		std::string part;

		while (std::getline(parts, part, ';')) {
			size_t colon = part.find(':');

			want(colon != std::string::npos, "'" + part + "' is key:value");
			take_one(part.substr(0, colon), part.substr(colon + 1));
		}
	}
};

void run(const std::string &custom, int executions, bool early)
{
	Session session(custom);
	Job job; /* loaded before the session */

	job.run(0);
	want(nrt_inspect_begin_with_options(nullptr), "NULL options record nothing, and");
	session.start();
	if (early)
		session.free_config();
	for (int i = 0; i < executions; i++)
		job.run(float(i));
	session.stop();
	want(nrt_inspect_stop(), "the second nrt_inspect_stop");
	job.run(1);
}

} // namespace

int main(int argc, char **argv)
{
	if (argc < 3) {
		std::fprintf(stderr, "usage: %s CONFIG EXECUTIONS [early]\n", argv[0]);
		return 2;
	}
	try {
		run(argv[1], std::atoi(argv[2]), argc > 3 && !std::strcmp(argv[3], "early"));
	} catch (const Failure &f) {
		std::fprintf(stderr, "kineto_order: %s\n", f.what.c_str());
		return 1;
	}
	nrt_close();
	std::puts("all answers are right");
	return 0;
}
