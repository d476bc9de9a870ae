/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inspect_facts.c - the answer to "what was this session?", put together at its begin.
 */
#include "runtime/profile/inspect_facts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/env_table.h"
#include "runtime/lifecycle/version.h"
#include "runtime/log/log.h"
#include "runtime/profile/inspect.h"

#define TAG "NRT"
#define NOT_ASKED "not asked for"

/* ---- what is off -------------------------------------------------------------------------- */

struct offs {
	struct inspect_facts *f;
	const char *call;
	size_t n;
};

static void add_off(struct offs *o, const char *what, const char *why)
{
	o->f->off[o->n++] = (struct rec_session_off){what, why};
}

/* Something that was asked for; a program whose log shows errors alone reads it in trace_info.pb. */
static void add_refused(struct offs *o, const char *what, const char *why)
{
	add_off(o, what, why);
	log_write(LOG_LEVEL_WARN, TAG, o->call, "Not in the session: %s: %s", what, why);
}

/* ---- device profiles ---------------------------------------------------------------------- */

static const char *const modes[] = {
	[NRT_INSPECT_DEVICE_PROFILE_MODE_DISABLED] = "off",
	[NRT_INSPECT_DEVICE_PROFILE_MODE_MODEL] = "model",
	[NRT_INSPECT_DEVICE_PROFILE_MODE_SESSION] = "session",
};

/* Device profiles that are asked for and cannot be: why.  NULL: they can, or are not asked for. */
static const char *refused(const struct runtime *r, const struct nrt_inspect_config *c)
{
	nrt_inspect_device_profile_mode_t mode = c->device_profile_mode;

	if (!mode && !c->enable_inspect_on_fail)
		return NULL;
	if (r->devices->topology.simulated)
		return "the device is simulated (NEURON_RT_FAKE_INSTANCE_TYPE) and runs nothing";
	if (!mode)
		return NULL;
	if (!(c->activities & INSPECT_DEVICE_PROFILE))
		return "a mode of it is set, but the activity device_profile is off";
	if (mode == NRT_INSPECT_DEVICE_PROFILE_MODE_MODEL && c->enable_inspect &&
		r->async_max_inflight)
		return "mode model is not supported in implicit async execution mode "
		       "(NEURON_RT_ASYNC_EXEC_MAX_INFLIGHT_REQUESTS); mode session is";
	return NULL;
}

/* None is asked for: why.  NULL: there are some. */
static const char *not_wanted(const struct nrt_inspect_config *c)
{
	bool on = c->activities & INSPECT_DEVICE_PROFILE;

	if (on && c->device_profile_mode && c->enable_inspect)
		return NULL;
	if (c->enable_inspect_on_fail)
		return "only those of executions that fail";
	return on ? "no mode of device profiles is set" : NOT_ASKED;
}

nrt_inspect_device_profile_mode_t inspect_facts_mode(
	const struct runtime *r, const struct nrt_inspect_config *c)
{
	return refused(r, c) || not_wanted(c) ? NRT_INSPECT_DEVICE_PROFILE_MODE_DISABLED
					      : c->device_profile_mode;
}

static void say_device_profiles(
	struct offs *o, const struct runtime *r, const struct nrt_inspect_config *c)
{
	const char *name = inspect_activity_name(INSPECT_DEVICE_PROFILE);
	const char *why = refused(r, c);

	if (why)
		add_refused(o, name, why);
	else if ((why = not_wanted(c)))
		add_off(o, name, why);
}

/* ---- activities and filters --------------------------------------------------------------- */

static void say_activities(
	struct offs *o, const struct runtime *r, const struct nrt_inspect_config *c)
{
	const char *name;

	for (uint32_t bit = 1; (name = inspect_activity_name(bit)); bit <<= 1) {
		size_t before = o->n;

		if (bit == INSPECT_DEVICE_PROFILE)
			say_device_profiles(o, r, c);
		else if (!(c->activities & bit))
			add_off(o, name, NOT_ASKED);
		if (o->n == before)
			o->f->info.activities |= bit;
	}
	if (!o->f->info.activities && !c->enable_inspect_on_fail)
		log_write(LOG_LEVEL_WARN, TAG, o->call,
			"All activities are off: the files of the session stay empty");
}

static bool has_core(const struct runtime *r, const bool *nc)
{
	return memchr(nc, 1, device_logical_count(r->devices)) != NULL;
}

static void say_filters(struct offs *o, const struct runtime *r, const struct nrt_inspect_config *c)
{
	static const char cores[] = "event_cores", types[] = "event_types";

	if (*c->cores_left_out)
		add_off(o, cores, c->cores_left_out);
	if (!has_core(r, c->sys_trace.nc))
		add_refused(o, cores,
			"no core of this process is selected: no event of a core and "
			"no device profile is recorded");
	if (*c->types_left_out)
		add_off(o, types, c->types_left_out);
	if (!memchr(c->sys_trace.type, 1, sizeof(c->sys_trace.type)))
		add_refused(o, types, "no type of event is selected: none is recorded");
}

/* ---- the machine -------------------------------------------------------------------------- */

static void fill_machine(const struct device_system *s, struct inspect_facts *f)
{
	struct inspect_info *i = &f->info;

	host_read(&f->host, s->is_virtual ? s->root : NULL, NULL);
	for (uint32_t d = 0; d < s->device_count; d++)
		f->devices[d] = (struct rec_device){s->devices[d].index, s->is_virtual};
	i->arch = s->arch;
	i->logical_cores = device_logical_count(s);
	i->logical_nc_size = s->lnc_size;
	i->instance_id = f->host.instance_id;
	i->driver = s->topology.simulated || !f->host.driver[0] ? NULL : f->host.driver;
	i->devices = f->devices;
	i->device_count = s->device_count;
	i->is_virtual = s->topology.simulated ? REC_SIMULATED : s->is_virtual;
}

NRT_STATUS inspect_facts_get(const char *call, const struct runtime *r,
	const struct nrt_inspect_config *c, bool environment, struct inspect_facts *ret)
{
	nrt_inspect_device_profile_mode_t mode = inspect_facts_mode(r, c);
	struct offs offs = {ret, call, 0};

	*ret = (struct inspect_facts){0};
	ret->devices = calloc(r->devices->device_count + 1, sizeof(ret->devices[0]));
	ret->environment = inspect_env_list(environment);
	if (!ret->devices || !ret->environment) {
		inspect_facts_free(ret);
		return NRT_RESOURCE;
	}
	fill_machine(r->devices, ret);
	env_word(env_row(ENV_ID_NTRACE_OUTPUT_LAYOUT), r->output_layout, ret->layout,
		sizeof(ret->layout));
	ret->info.session_id = c->session_id;
	ret->info.enabled = c->enable_inspect;
	ret->info.on_fail = c->enable_inspect_on_fail;
	ret->info.device_profile = modes[mode];
	ret->info.device_profile_wanted = modes[c->device_profile_mode];
	ret->info.layout = ret->layout;
	ret->info.nc = mode || c->enable_inspect_on_fail ? c->nc : NULL;
	ret->info.runtime = VERSION_TEXT;
	ret->info.environment = (const char *const *)ret->environment;
	say_activities(&offs, r, c);
	say_filters(&offs, r, c);
	ret->info.off = ret->off;
	return NRT_SUCCESS;
}

void inspect_facts_free(struct inspect_facts *f)
{
	inspect_env_free(f->environment);
	free(f->devices);
	*f = (struct inspect_facts){0};
}
