/* SPDX-License-Identifier: Apache-2.0 */
/*
 * continuous_options.c - options objects of continuous profiling.  They need no initialised runtime.
 */
#include <stdlib.h>
#include <string.h>

#include "runtime/log/log.h"
#include "runtime/profile/inspect_config.h"

#define TAG "NRT"

NRT_STATUS nrt_profile_continuous_options_allocate(nrt_profile_continuous_options_t **options)
{
	NRT_STATUS status;
	nrt_profile_continuous_options_t *o =
		sys_trace_new_object(__func__, options, sizeof(*o), &status);

	if (o)
		*options = o;
	return status;
}

NRT_STATUS nrt_profile_continuous_options_free(nrt_profile_continuous_options_t *options)
{
	NRT_STATUS status = sys_trace_check_object(__func__, options);

	if (!status)
		free(options->output_dir);
	free(options);
	return status;
}

NRT_STATUS nrt_profile_continuous_options_set_output_dir(
	nrt_profile_continuous_options_t *options, const char *output_dir)
{
	NRT_STATUS status = sys_trace_check_object(__func__, options);
	char *copy;

	if (status)
		return status;
	if (!output_dir || !*output_dir) {
		log_error(TAG, "Cannot set output dir to NULL or empty string.");
		return NRT_INVALID;
	}
	copy = strdup(output_dir);
	if (!copy)
		return NRT_RESOURCE;
	free(options->output_dir);
	options->output_dir = copy;
	return NRT_SUCCESS;
}
