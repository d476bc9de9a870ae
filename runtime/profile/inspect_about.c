/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inspect_about.c - what a session says of itself.
 */
#include "runtime/profile/inspect_about.h"

#include <stdio.h>
#include <sys/utsname.h>

#include "runtime/profile/inspect_config.h"
#include "runtime/profile/inspect_dir.h"
#include "runtime/record/header.h"

#define CORES_TEXT (TRACE_MAX_NC * 4 + 1) /* "255," for each */
#define MAX_ACTIVITIES 8u

/* "0-3,7"; none: "none". */
static void cores_text(const bool *nc, uint32_t count, char ret[CORES_TEXT])
{
	size_t used = 0;

	snprintf(ret, CORES_TEXT, "none");
	for (uint32_t i = 0; nc && i < count; i++) {
		uint32_t last = i;

		if (!nc[i])
			continue;
		while (last + 1 < count && nc[last + 1])
			last++;
		used += (size_t)snprintf(ret + used, CORES_TEXT - used,
			last > i ? "%s%u-%u" : "%s%u", used ? "," : "", i, last);
		i = last;
	}
}

/* The types that are left out. */
static void types_off(const struct nrt_sys_trace_config *events, const char *ret[])
{
	size_t n = 0;

	for (uint32_t type = 0; events && type < TRACE_TYPE_COUNT; type++)
		if (!events->type[type])
			ret[n++] = trace_event_info(type)->name;
	ret[n] = NULL;
}

static void activity_names(uint32_t activities, const char *ret[MAX_ACTIVITIES + 1])
{
	size_t n = 0;

	for (uint32_t bit = 1; bit < 1u << MAX_ACTIVITIES; bit <<= 1)
		if ((activities & bit) && inspect_activity_name(bit))
			ret[n++] = inspect_activity_name(bit);
	ret[n] = NULL;
}

int inspect_about_text(const struct inspect_spool_wish *w, uint32_t period_ms, char **ret_text)
{
	const struct inspect_info *i = w->info;
	uint32_t cores = i->logical_cores ? i->logical_cores : TRACE_MAX_NC;
	const char *activities[MAX_ACTIVITIES + 1], *off_types[TRACE_TYPE_COUNT + 1];
	char event_cores[CORES_TEXT], device_cores[CORES_TEXT];
	struct utsname uts = {.nodename = ""};

	(void)uname(&uts);
	activity_names(i->activities, activities);
	types_off(w->events, off_types);
	cores_text(w->events ? w->events->nc : NULL, cores, event_cores);
	cores_text(i->nc, cores, device_cores);
	const struct rec_session session = {
		.session_id = i->session_id,
		.enabled = i->enabled,
		.on_fail = i->on_fail,
		.arch = i->arch,
		.logical_cores = i->logical_cores,
		.logical_nc_size = i->logical_nc_size,
		.period_ms = period_ms,
		.device_profile = i->device_profile,
		.device_profile_wanted = i->device_profile_wanted,
		.device_cores = device_cores,
		.event_cores = event_cores,
		.layout = i->layout,
		.directory = w->dir->path,
		.runtime = i->runtime,
		.activities = activities,
		.event_types_off = off_types,
		.environment = i->environment,
		.off = i->off,
	};
	const struct rec_header_info info = {
		.producer = "libnrt (ntrace " NTRACE_VERSION ")",
		.instance_id = i->instance_id,
		.host = uts.nodename,
		.kernel = uts.release,
		.machine = uts.machine,
		.driver = i->driver,
		.is_virtual = i->is_virtual != 0,
		.session = &session,
	};
	return rec_header_text(&info, ret_text);
}
