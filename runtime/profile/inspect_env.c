/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inspect_env.c - the NEURON_RT_INSPECT_ variables as the config of a session.
 *
 * A value that is not allowed is refused, as by nrt_init.  Names within a list are not values in
 * that sense: a program that works must not stop working because of a list that was written for
 * another release or machine.  What nothing here is called, or no core of this process is, is
 * warned of and left out.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/env_table.h"
#include "runtime/base/file.h"
#include "runtime/base/near_name.h"
#include "runtime/lifecycle/config.h"
#include "runtime/log/log.h"
#include "runtime/profile/inspect.h"
#include "runtime/profile/inspect_config.h"

#define TAG "NRT"
#define PREFIX "NEURON_RT_INSPECT_"
#define TYPES "NEURON_RT_INSPECT_EVENT_FILTER_TYPE"
#define CORES "NEURON_RT_INSPECT_EVENT_FILTER_NC"
#define NEAR_NAMES 4u /* that are shown, at most */
#define NAME_SHOWN 64 /* bytes of a name */

static_assert(CONFIG_INSPECT_CORES == TRACE_MAX_NC, "cores of events");

/* What is left out, as far as there is room; all of it is in the log. */
static void note(char list[INSPECT_LEFT_OUT_BYTES], const char *intro, const char *name)
{
	size_t used = strlen(list), room = INSPECT_LEFT_OUT_BYTES - used;
	int len = snprintf(list + used, room, "%s%.*s", used ? ", " : intro, NAME_SHOWN, name);

	if (len < 0 || (size_t)len >= room)
		list[used] = '\0';
}

/* ---- event types -------------------------------------------------------------------------- */

/* Misspelt, or a part of the type's name. */
static bool is_near(const char *name, const char *type)
{
	size_t len = strlen(name);

	return near_name_distance(name, len, type, strlen(type)) < near_name_bound(len) ||
	       (len >= 3 && strstr(type, name));
}

static void say_unknown(const char *call, const char *name)
{
	char near[NEAR_NAMES * 40] = "";
	size_t used = 0;

	for (uint32_t type = 0, n = 0; type < TRACE_TYPE_COUNT && n < NEAR_NAMES; type++) {
		const char *text = trace_event_info(type)->name;

		if (!is_near(name, text) || used + strlen(text) + 3 > sizeof(near))
			continue;
		used += (size_t)snprintf(
			near + used, sizeof(near) - used, "%s%s", n++ ? ", " : "", text);
	}
	if (used)
		log_write(LOG_LEVEL_WARN, TAG, call,
			TYPES ": there is no event type '%.*s'; did you mean %s? It is left out",
			NAME_SHOWN, name, near);
	else
		log_write(LOG_LEVEL_WARN, TAG, call,
			TYPES
			": there is no event type '%.*s'; nrt_sys_trace_get_event_types names "
			"them. It is left out",
			NAME_SHOWN, name);
}

/* Without blanks around it. */
static char *trim(char *text)
{
	size_t n;

	text += strspn(text, " \t");
	n = strlen(text);
	while (n && strchr(" \t", text[n - 1]))
		text[--n] = '\0';
	return text;
}

/* The names without `^`, or those with it; how many of them something has.  list is cut into
 * pieces. */
static unsigned take_names(
	const char *call, char *list, bool wanted, struct nrt_inspect_config *config)
{
	unsigned found = 0;
	char *place, *name;

	for (name = strtok_r(list, ",", &place); name; name = strtok_r(NULL, ",", &place)) {
		name = trim(name);
		if (!*name || (*name != '^') != wanted)
			continue;
		name = trim(name + !wanted);
		if (sys_trace_config_try_type(call, &config->sys_trace, name, wanted)) {
			found++;
		} else {
			say_unknown(call, name);
			note(config->types_left_out, "there is no ", name);
		}
	}
	return found;
}

/* In whatever order they stand: those that are named, or all; without those that are taken away. */
static NRT_STATUS choose_types(
	const char *call, const char *list, struct nrt_inspect_config *config)
{
	_cleanup_free_ char *named = strdup(list), *taken = strdup(list);
	bool all[TRACE_TYPE_COUNT], *type = config->sys_trace.type;

	if (!named || !taken)
		return NRT_RESOURCE;
	memcpy(all, type, sizeof(all));
	memset(type, false, sizeof(all));
	if (!take_names(call, named, true, config))
		memcpy(type, all, sizeof(all));
	(void)take_names(call, taken, false, config);
	if (!memchr(type, 1, sizeof(all)))
		log_write(LOG_LEVEL_WARN, TAG, call, TYPES "='%.200s' leaves no event type", list);
	return NRT_SUCCESS;
}

/* ---- cores -------------------------------------------------------------------------------- */

static void leave_core_out(
	const char *call, uint32_t nc, uint32_t logical_cores, struct nrt_inspect_config *config)
{
	char number[16];

	(void)snprintf(number, sizeof(number), "%" PRIu32, nc);
	note(config->cores_left_out, "not visible to this process: NC ", number);
	log_write(LOG_LEVEL_WARN, TAG, call,
		CORES ": Requested capture for NC %s, but it is not visible; this process has "
		      "%" PRIu32 ", from 0. It is left out",
		number, logical_cores);
}

static void choose_cores(const char *call, const struct config_inspect *env, uint32_t logical_cores,
	struct nrt_inspect_config *config)
{
	for (uint32_t nc = 0; nc < TRACE_MAX_NC; nc++) {
		bool asked = env->cores[nc / 64] >> nc % 64 & 1;

		config->nc[nc] = config->sys_trace.nc[nc] = asked && nc < logical_cores;
		if (asked && nc >= logical_cores)
			leave_core_out(call, nc, logical_cores, config);
	}
}

/* ---- all of them -------------------------------------------------------------------------- */

static void choose_activities(const struct config_inspect *env, struct nrt_inspect_config *config)
{
	config->enable_inspect = env->enable;
	config->enable_inspect_on_fail = env->on_fail;
	config->device_profile_mode = (nrt_inspect_device_profile_mode_t)env->device_profile;
	config->activities = (env->system_profile ? INSPECT_SYSTEM_PROFILE : 0) |
			     (env->device_profile ? INSPECT_DEVICE_PROFILE : 0) |
			     (env->host_memory ? INSPECT_HOST_MEMORY : 0) |
			     (env->cpu_util ? INSPECT_CPU_UTIL : 0);
}

NRT_STATUS inspect_config_read(
	const char *call, uint32_t logical_cores, struct nrt_inspect_config *config)
{
	struct config_inspect env;
	NRT_STATUS status = config_read_inspect(&env);

	if (status)
		return status;
	choose_activities(&env, config);
	config->sys_trace.max_events_per_nc = env.max_events_per_nc;
	free(config->output_dir);
	config->output_dir = strdup(env.output_dir);
	if (env.chosen)
		choose_cores(call, &env, logical_cores, config);
	if (*env.types)
		status = choose_types(call, env.types, config);
	if (!config->output_dir || status) {
		log_write(LOG_LEVEL_ERROR, TAG, call, "No memory");
		return NRT_RESOURCE;
	}
	return NRT_SUCCESS;
}

/* Does a session go by it?  by_environment: it is not one of the calls' own config. */
static bool counts(enum env_id id, bool by_environment)
{
	static const enum env_id ours[] = {ENV_ID_NTRACE_INSPECT_PERIOD_MS,
		ENV_ID_NTRACE_KEEP_RECORDING, ENV_ID_NTRACE_OUTPUT_LAYOUT,
		ENV_ID_NTRACE_PROFILE_MAX_MB};
	const struct env_row *row = env_row(id);

	for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
		if (id == ours[i])
			return true;
	return by_environment && row->use == ENV_USED &&
	       !strncmp(row->name, PREFIX, strlen(PREFIX));
}

void inspect_env_free(char **list)
{
	for (char **p = list; p && *p; p++)
		free(*p);
	free(list);
}

char **inspect_env_list(bool by_environment)
{
	char **list = calloc(ENV_COUNT + 1, sizeof(list[0]));
	size_t n = 0;

	for (int i = 0; i < ENV_COUNT && list; i++) {
		const struct env_row *row = env_row((enum env_id)i);
		const char *text = getenv(row->name);

		if (!counts((enum env_id)i, by_environment) || !env_has_value(row, text))
			continue;
		if (asprintf(&list[n], "%s=%s", row->name, text) < 0) {
			list[n] = NULL;
			inspect_env_free(list);
			return NULL;
		}
		n++;
	}
	return list;
}
