/* SPDX-License-Identifier: Apache-2.0 */
/*
 * env_checks.c - variables that depend on each other, on known names and on the machine.
 */
#include "runtime/base/env_checks.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/instance.h"

/* Variables that make others go unused. */
static const struct {
	enum env_id id, instead;
	bool with_text; /* an empty text does not */
	bool is_read;	/* all the same */
} overruled[] = {
	{ENV_ID_NEURON_RT_NUM_CORES, ENV_ID_NEURON_RT_VISIBLE_CORES, false, true},
	{ENV_ID_NEURON_RT_VIRTUAL_CORE_SIZE, ENV_ID_NEURON_LOGICAL_NC_CONFIG, false, false},
	{ENV_ID_NEURON_RT_FAKE_INSTANCE_TYPE, ENV_ID_NTRACE_DEVICE_ROOT, true, true},
};

const struct env_row *env_overruled_by(enum env_id id, env_lookup_fn *lookup, void *context)
{
	for (size_t i = 0; i < sizeof(overruled) / sizeof(overruled[0]); i++) {
		const char *text;

		if (overruled[i].id != id)
			continue;
		text = lookup(context, overruled[i].instead);
		if (text && (*text || !overruled[i].with_text))
			return env_row(overruled[i].instead);
	}
	return NULL;
}

bool env_left_unread(enum env_id id, env_lookup_fn *lookup, void *context)
{
	for (size_t i = 0; i < sizeof(overruled) / sizeof(overruled[0]); i++)
		if (overruled[i].id == id && !overruled[i].is_read)
			return env_overruled_by(id, lookup, context) != NULL;
	return false;
}

/* ---- the checks --------------------------------------------------------------------------- */

/* The number of a variable; 'otherwise' when there is none, or a wrong one. */
static int64_t number_of(enum env_id id, env_lookup_fn *lookup, void *context, int64_t otherwise)
{
	const char *text = lookup(context, id);
	struct env_value v;

	return text && env_parse(env_row(id), text, &v) == 0 ? v.number : otherwise;
}

/* More than one rank per proxy needs the barrier in hardware; whether an instance has it without being told
 * is not known here. */
static bool barrier_is_off(
	enum env_id id, env_lookup_fn *lookup, void *context, char *ret, size_t size)
{
	enum env_id barrier = ENV_ID_NEURON_RT_ENABLE_HW_EXECUTION_BARRIER;

	(void)snprintf(ret, size, "needs %s=1", env_row(barrier)->name);
	return number_of(id, lookup, context, 0) > 1 && number_of(barrier, lookup, context, 1) == 0;
}

/* The library knows the machine, and says this itself. */
static bool is_no_core_size(
	enum env_id id, env_lookup_fn *lookup, void *context, char *ret, size_t size)
{
	(void)snprintf(ret, size, "is not 1 or 2 (Inf2 and Trn1 have 1, whatever is set)");
	return number_of(id, lookup, context, 1) > 2;
}

static bool is_no_instance(
	enum env_id id, env_lookup_fn *lookup, void *context, char *ret, size_t size)
{
	const char *text = lookup(context, id);
	size_t used =
		(size_t)snprintf(ret, size, "is not an instance type that is known; these are: ");

	instance_list_types(ret + used, size - used);
	return text && *text && !instance_type_known(text);
}

static const struct {
	enum env_id id;
	bool (*is_wrong)(
		enum env_id id, env_lookup_fn *lookup, void *context, char *ret, size_t size);
} checks[] = {
	{ENV_ID_NEURON_RT_RANKS_PER_NETWORK_PROXY, barrier_is_off},
	{ENV_ID_NEURON_LOGICAL_NC_CONFIG, is_no_core_size},
	{ENV_ID_NEURON_RT_VIRTUAL_CORE_SIZE, is_no_core_size},
	{ENV_ID_NEURON_RT_FAKE_INSTANCE_TYPE, is_no_instance},
};

bool env_check(enum env_id id, env_lookup_fn *lookup, void *context, char *ret, size_t size)
{
	if (env_overruled_by(id, lookup, context))
		return false;
	for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++)
		if (checks[i].id == id)
			return checks[i].is_wrong(id, lookup, context, ret, size);
	return false;
}

bool env_waits_for_session(enum env_id id, env_lookup_fn *lookup, void *context)
{
	static const enum env_id of_sessions[] = {ENV_ID_NEURON_RT_INSPECT_OUTPUT_DIR,
		ENV_ID_NEURON_RT_INSPECT_SYSTEM_PROFILE, ENV_ID_NEURON_RT_INSPECT_DEVICE_PROFILE,
		ENV_ID_NEURON_RT_INSPECT_HOST_MEMORY, ENV_ID_NEURON_RT_INSPECT_CPU_UTIL,
		ENV_ID_NEURON_RT_INSPECT_EVENT_FILTER_NC,
		ENV_ID_NEURON_RT_INSPECT_EVENT_FILTER_TYPE};

	if (!lookup(context, id) ||
		number_of(ENV_ID_NEURON_RT_INSPECT_ENABLE, lookup, context, 0) ||
		number_of(ENV_ID_NEURON_RT_INSPECT_ON_FAIL, lookup, context, 0))
		return false;
	for (size_t i = 0; i < sizeof(of_sessions) / sizeof(of_sessions[0]); i++)
		if (of_sessions[i] == id)
			return true;
	return false;
}
