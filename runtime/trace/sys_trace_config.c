/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sys_trace_config.c - config and options objects of nrt_sys_trace.h.  They need no initialised runtime.
 */
#include "runtime/trace/sys_trace_config.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/name_list.h"
#include "runtime/log/log.h"

#define TAG "NRT"

static_assert(sizeof(struct nrt_sys_trace_config) == 312, "config");
static_assert(offsetof(struct nrt_sys_trace_config, nc) == 8, "cores");
static_assert(offsetof(struct nrt_sys_trace_config, type) == 264, "types");
static_assert(sizeof(struct nrt_sys_trace_fetch_options) == 16, "options");
static_assert(offsetof(struct nrt_sys_trace_fetch_options, nc_idx) == 8, "core");

static const struct {
	const char *name;
	enum trace_category category;
} groups[] = {{"hardware", TRACE_HARDWARE}, {"software", TRACE_SOFTWARE}};

/* ---- shared with inspections -------------------------------------------------------------- */

NRT_STATUS sys_trace_check_object(const char *call, const void *object)
{
	if (object)
		return NRT_SUCCESS;
	log_write(LOG_LEVEL_ERROR, TAG, call, "called with null options.");
	return NRT_INVALID;
}

void *sys_trace_new_object(const char *call, const void *place, size_t size, NRT_STATUS *ret_status)
{
	void *object;

	*ret_status = sys_trace_check_object(call, place);
	if (*ret_status)
		return NULL;
	object = calloc(1, size);
	if (!object) {
		log_write(LOG_LEVEL_ERROR, TAG, call, "No memory");
		*ret_status = NRT_RESOURCE;
	}
	return object;
}

void sys_trace_config_defaults(struct nrt_sys_trace_config *config)
{
	config->max_events_per_nc = SYS_TRACE_DEFAULT_EVENTS;
	memset(config->nc, true, sizeof(config->nc));
	memset(config->type, true, sizeof(config->type));
}

NRT_STATUS sys_trace_config_set_nc(
	const char *call, struct nrt_sys_trace_config *config, uint32_t nc, bool enabled)
{
	if (nc >= TRACE_MAX_NC) {
		log_write(LOG_LEVEL_ERROR, TAG, call, "There is no NC %u: at most %u", nc,
			TRACE_MAX_NC - 1);
		return NRT_INVALID;
	}
	config->nc[nc] = enabled;
	return NRT_SUCCESS;
}

NRT_STATUS sys_trace_config_set_type_number(
	const char *call, struct nrt_sys_trace_config *config, uint32_t type, bool enabled)
{
	if (type >= TRACE_TYPE_COUNT) {
		log_write(LOG_LEVEL_ERROR, TAG, call, "There is no event type %u: at most %u", type,
			TRACE_TYPE_COUNT - 1);
		return NRT_INVALID;
	}
	config->type[type] = enabled;
	return NRT_SUCCESS;
}

/* False: no group has this name. */
static bool set_group(struct nrt_sys_trace_config *config, const char *name, bool enabled)
{
	for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
		if (strcmp(groups[i].name, name) != 0)
			continue;
		for (uint32_t type = 0; type < TRACE_TYPE_COUNT; type++)
			if (trace_event_info(type)->category == groups[i].category)
				config->type[type] = enabled;
		return true;
	}
	return false;
}

/* A name of another release is said, and taken for the nearest of today where there is one.  False: it is none. */
static bool set_other(
	const char *call, struct nrt_sys_trace_config *config, const char *name, bool enabled)
{
	int type = trace_event_by_other_name(name);

	if (type == -ENOTSUP) {
		log_write(LOG_LEVEL_WARN, TAG, call,
			"Event type '%s' is of a newer runtime; there is nothing to change", name);
		return true;
	}
	if (type < 0)
		return false;
	log_write(LOG_LEVEL_WARN, TAG, call, "Event type '%s' is retired; taken for '%s'", name,
		trace_event_info((uint32_t)type)->name);
	config->type[type] = enabled;
	return true;
}

bool sys_trace_config_try_type(
	const char *call, struct nrt_sys_trace_config *config, const char *name, bool enabled)
{
	int type = trace_event_by_name(name);

	if (type < 0)
		return set_group(config, name, enabled) || set_other(call, config, name, enabled);
	config->type[type] = enabled;
	return true;
}

NRT_STATUS sys_trace_config_set_type(
	const char *call, struct nrt_sys_trace_config *config, const char *name, bool enabled)
{
	if (name && sys_trace_config_try_type(call, config, name, enabled))
		return NRT_SUCCESS;
	log_write(LOG_LEVEL_ERROR, TAG, call,
		"There is no event type '%.64s'; nrt_sys_trace_get_event_types names them",
		name ? name : "(NULL)");
	return NRT_INVALID;
}

NRT_STATUS sys_trace_answer_names(const char *call, const char *const *names, size_t count,
	const char ***ret, size_t *ret_count)
{
	if (!ret || !ret_count) {
		log_write(LOG_LEVEL_ERROR, TAG, call, "No place for the answer (NULL)");
		return NRT_INVALID;
	}
	if (name_list_copy(names, count, ret) < 0) {
		log_write(LOG_LEVEL_ERROR, TAG, call, "No memory");
		return NRT_RESOURCE;
	}
	*ret_count = count;
	return NRT_SUCCESS;
}

/* ---- config ------------------------------------------------------------------------------- */

NRT_STATUS nrt_sys_trace_config_allocate(nrt_sys_trace_config_t **options)
{
	NRT_STATUS status;
	nrt_sys_trace_config_t *o = sys_trace_new_object(__func__, options, sizeof(*o), &status);

	if (o) {
		sys_trace_config_defaults(o);
		*options = o;
	}
	return status;
}

void nrt_sys_trace_config_free(nrt_sys_trace_config_t *options)
{
	free(options);
}

void nrt_sys_trace_config_set_defaults(nrt_sys_trace_config_t *options)
{
	if (!sys_trace_check_object(__func__, options))
		sys_trace_config_defaults(options);
}

void nrt_sys_trace_config_set_max_events_per_nc(
	nrt_sys_trace_config_t *options, uint64_t max_events_per_nc)
{
	if (!sys_trace_check_object(__func__, options))
		options->max_events_per_nc = max_events_per_nc;
}

void nrt_sys_trace_config_set_capture_enabled_for_nc(
	nrt_sys_trace_config_t *options, uint32_t nc_idx, bool enabled)
{
	if (!sys_trace_check_object(__func__, options))
		(void)sys_trace_config_set_nc(__func__, options, nc_idx, enabled);
}

NRT_STATUS nrt_sys_trace_config_set_capture_enabled_for_event_type(
	nrt_sys_trace_config_t *options, const char *event_type, bool enabled)
{
	NRT_STATUS status = sys_trace_check_object(__func__, options);

	return status ? status : sys_trace_config_set_type(__func__, options, event_type, enabled);
}

/* ---- names -------------------------------------------------------------------------------- */

/* Those of the types that are enabled. */
static size_t type_names(const bool *enabled, const char **names)
{
	size_t n = 0;

	for (uint32_t type = 0; type < TRACE_TYPE_COUNT; type++)
		if (enabled[type])
			names[n++] = trace_event_info(type)->name;
	return n;
}

NRT_STATUS nrt_sys_trace_get_event_types(const char ***event_types, size_t *count)
{
	struct nrt_sys_trace_config all;
	const char *names[TRACE_TYPE_COUNT];

	sys_trace_config_defaults(&all);
	return sys_trace_answer_names(
		__func__, names, type_names(all.type, names), event_types, count);
}

NRT_STATUS nrt_sys_trace_config_get_enabled_event_types(
	nrt_sys_trace_config_t *options, const char ***event_types, size_t *count)
{
	NRT_STATUS status = sys_trace_check_object(__func__, options);
	const char *names[TRACE_TYPE_COUNT];

	if (status)
		return status;
	return sys_trace_answer_names(
		__func__, names, type_names(options->type, names), event_types, count);
}

void nrt_sys_trace_free_event_types(const char **event_types, size_t count)
{
	name_list_free(event_types, count);
}

/* ---- fetch options ------------------------------------------------------------------------ */

struct trace_filter sys_trace_filter(const struct nrt_sys_trace_config *c)
{
	struct trace_filter f = {0};

	for (uint32_t type = 0; type < TRACE_TYPE_COUNT; type++)
		f.types |= (uint64_t)c->type[type] << type;
	for (uint32_t nc = 0; nc < TRACE_MAX_NC; nc++)
		f.cores[nc / 64] |= (uint64_t)c->nc[nc] << nc % 64;
	return f;
}

void sys_trace_fetch_defaults(struct nrt_sys_trace_fetch_options *options)
{
	*options = (struct nrt_sys_trace_fetch_options){.nc_idx = TRACE_ALL_NC};
}

NRT_STATUS nrt_sys_trace_fetch_options_allocate(nrt_sys_trace_fetch_options_t **options)
{
	NRT_STATUS status;
	nrt_sys_trace_fetch_options_t *o =
		sys_trace_new_object(__func__, options, sizeof(*o), &status);

	if (o) {
		sys_trace_fetch_defaults(o);
		*options = o;
	}
	return status;
}

void nrt_sys_trace_fetch_options_free(nrt_sys_trace_fetch_options_t *options)
{
	free(options);
}

void nrt_sys_trace_fetch_options_set_defaults(nrt_sys_trace_fetch_options_t *options)
{
	if (!sys_trace_check_object(__func__, options))
		sys_trace_fetch_defaults(options);
}

void nrt_sys_trace_fetch_options_set_max_events_per_nc(
	nrt_sys_trace_fetch_options_t *options, uint64_t max_events_per_nc)
{
	if (!sys_trace_check_object(__func__, options))
		options->max_events_per_nc = max_events_per_nc;
}

void nrt_sys_trace_fetch_options_set_nc_idx(nrt_sys_trace_fetch_options_t *options, uint64_t nc_idx)
{
	if (sys_trace_check_object(__func__, options))
		return;
	if (nc_idx >= TRACE_MAX_NC && nc_idx != UINT64_MAX) {
		log_error(TAG, "There is no NC %llu: at most %u", (unsigned long long)nc_idx,
			TRACE_MAX_NC - 1);
		return;
	}
	options->nc_idx = nc_idx == UINT64_MAX ? TRACE_ALL_NC : (int32_t)nc_idx;
}

void nrt_sys_trace_buffer_free(char *buffer)
{
	free(buffer);
}
