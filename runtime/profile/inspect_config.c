/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inspect_config.c - config objects of inspections.  They need no initialised runtime.
 */
#include "runtime/profile/inspect_config.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/name_list.h"
#include "runtime/log/log.h"

#define TAG "NRT"
#define ACTIVITIES 4u

static const struct {
	const char *name;
	uint32_t bits;
} activities[ACTIVITIES + 1] = {
	{"system_profile", INSPECT_SYSTEM_PROFILE}, {"device_profile", INSPECT_DEVICE_PROFILE},
	{"host_memory", INSPECT_HOST_MEMORY}, {"cpu_util", INSPECT_CPU_UTIL},
	{"all", INSPECT_ALL}, /* a name for setting only */
};

const char *inspect_activity_name(uint32_t bit)
{
	for (uint32_t i = 0; i < ACTIVITIES; i++)
		if (activities[i].bits == bit)
			return activities[i].name;
	return NULL;
}

/* ---- the object --------------------------------------------------------------------------- */

/* The header of the vendor has all activities on; a listing of the binary has none.  Programs clear
 * them first, so the header's. */
static void set_defaults(struct nrt_inspect_config *c)
{
	free(c->output_dir);
	*c = (struct nrt_inspect_config){
		.session_id = 1,
		.activities = INSPECT_ALL,
		.device_profile_mode = NRT_INSPECT_DEVICE_PROFILE_MODE_DISABLED,
	};
	sys_trace_config_defaults(&c->sys_trace);
	memset(c->nc, true, sizeof(c->nc));
}

NRT_STATUS nrt_inspect_config_allocate(nrt_inspect_config_t **options)
{
	NRT_STATUS status;
	nrt_inspect_config_t *o = sys_trace_new_object(__func__, options, sizeof(*o), &status);

	if (o) {
		set_defaults(o);
		*options = o;
	}
	return status;
}

NRT_STATUS nrt_inspect_config_free(nrt_inspect_config_t *options)
{
	NRT_STATUS status = sys_trace_check_object(__func__, options);

	if (!status)
		free(options->output_dir);
	free(options);
	return status;
}

NRT_STATUS nrt_inspect_config_set_defaults(nrt_inspect_config_t *options)
{
	NRT_STATUS status = sys_trace_check_object(__func__, options);

	if (!status)
		set_defaults(options);
	return status;
}

/* ---- setters ------------------------------------------------------------------------------ */

NRT_STATUS nrt_inspect_config_set_session_id(nrt_inspect_config_t *options, int session_id)
{
	NRT_STATUS status = sys_trace_check_object(__func__, options);

	if (!status)
		options->session_id = session_id;
	return status;
}

/* An unusable text is refused as the vendor's header says, and clears as the binary's listing says. */
NRT_STATUS nrt_inspect_config_set_output_dir(nrt_inspect_config_t *options, const char *output_dir)
{
	NRT_STATUS status = sys_trace_check_object(__func__, options);
	char *copy = NULL;

	if (status)
		return status;
	if (!output_dir || !*output_dir) {
		log_warn(TAG, "No output directory given (NULL or empty): it is %s again",
			INSPECT_DEFAULT_DIR);
		status = NRT_INVALID;
	} else {
		copy = strdup(output_dir);
		if (!copy)
			return NRT_RESOURCE;
	}
	free(options->output_dir);
	options->output_dir = copy;
	return status;
}

NRT_STATUS nrt_inspect_config_set_activity(
	nrt_inspect_config_t *options, const char *activity_type, bool enabled)
{
	NRT_STATUS status = sys_trace_check_object(__func__, options);

	if (status)
		return status;
	for (uint32_t i = 0; i <= ACTIVITIES && activity_type; i++) {
		if (strcmp(activities[i].name, activity_type) != 0)
			continue;
		if (enabled)
			options->activities |= activities[i].bits;
		else
			options->activities &= ~activities[i].bits;
		return NRT_SUCCESS;
	}
	log_error(TAG, "There is no activity '%.64s'", activity_type ? activity_type : "(NULL)");
	return NRT_INVALID;
}

NRT_STATUS nrt_inspect_config_set_capture_enabled_for_nc(
	nrt_inspect_config_t *options, uint32_t nc_idx, bool enabled)
{
	NRT_STATUS status = sys_trace_check_object(__func__, options);

	if (!status)
		status = sys_trace_config_set_nc(__func__, &options->sys_trace, nc_idx, enabled);
	if (!status)
		options->nc[nc_idx] = enabled;
	return status;
}

NRT_STATUS nrt_inspect_config_set_capture_enabled_for_event_type_string(
	nrt_inspect_config_t *options, const char *event_type, bool enabled)
{
	NRT_STATUS status = sys_trace_check_object(__func__, options);

	return status ? status
		      : sys_trace_config_set_type(
				__func__, &options->sys_trace, event_type, enabled);
}

NRT_STATUS nrt_inspect_config_set_capture_enabled_for_event_type(
	nrt_inspect_config_t *options, uint32_t event_type, bool enabled)
{
	NRT_STATUS status = sys_trace_check_object(__func__, options);

	return status ? status
		      : sys_trace_config_set_type_number(
				__func__, &options->sys_trace, event_type, enabled);
}

NRT_STATUS nrt_inspect_config_set_enable_inspect(nrt_inspect_config_t *options, bool enable_inspect)
{
	NRT_STATUS status = sys_trace_check_object(__func__, options);

	if (!status)
		options->enable_inspect = enable_inspect;
	return status;
}

NRT_STATUS nrt_inspect_config_set_enable_inspect_on_fail(
	nrt_inspect_config_t *options, bool enable_inspect_on_fail)
{
	NRT_STATUS status = sys_trace_check_object(__func__, options);

	if (!status)
		options->enable_inspect_on_fail = enable_inspect_on_fail;
	return status;
}

NRT_STATUS nrt_inspect_config_set_inspect_device_profile_mode(
	nrt_inspect_config_t *options, nrt_inspect_device_profile_mode_t mode)
{
	NRT_STATUS status = sys_trace_check_object(__func__, options);

	if (status)
		return status;
	if ((unsigned)mode > NRT_INSPECT_DEVICE_PROFILE_MODE_SESSION) {
		log_error(TAG, "There is no device profile mode %d", (int)mode);
		return NRT_INVALID;
	}
	options->device_profile_mode = mode;
	return NRT_SUCCESS;
}

NRT_STATUS nrt_inspect_config_set_sys_trace_max_events_per_nc(
	nrt_inspect_config_t *options, uint64_t sys_trace_max_events_per_nc)
{
	NRT_STATUS status = sys_trace_check_object(__func__, options);

	if (!status)
		options->sys_trace.max_events_per_nc = sys_trace_max_events_per_nc;
	return status;
}

/* ---- names -------------------------------------------------------------------------------- */

static NRT_STATUS answer_activities(
	const char *call, uint32_t bits, const char ***activity_types, size_t *count)
{
	const char *names[ACTIVITIES];
	size_t n = 0;

	for (uint32_t i = 0; i < ACTIVITIES; i++)
		if (bits & activities[i].bits)
			names[n++] = activities[i].name;
	return sys_trace_answer_names(call, names, n, activity_types, count);
}

NRT_STATUS nrt_inspect_config_get_all_activity_types(const char ***activity_types, size_t *count)
{
	return answer_activities(__func__, INSPECT_ALL, activity_types, count);
}

NRT_STATUS nrt_inspect_config_get_enabled_activity_types(
	nrt_inspect_config_t *options, const char ***activity_types, size_t *count)
{
	NRT_STATUS status = sys_trace_check_object(__func__, options);

	return status ? status
		      : answer_activities(__func__, options->activities, activity_types, count);
}

void nrt_inspect_config_free_activity_types(const char **activity_types, size_t count)
{
	name_list_free(activity_types, count);
}
