/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inspect_facts.c - the answer to "what was this session?", put together at its begin.
 */
#include "runtime/profile/inspect_facts.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "runtime/lifecycle/version.h"
#include "runtime/profile/inspect.h"

/* ---- device profiles ---------------------------------------------------------------------- */

static const char *const modes[] = {
	[NRT_INSPECT_DEVICE_PROFILE_MODE_DISABLED] = "off",
	[NRT_INSPECT_DEVICE_PROFILE_MODE_MODEL] = "model",
	[NRT_INSPECT_DEVICE_PROFILE_MODE_SESSION] = "session",
};

#define FAILURES_ONLY "only those of executions that fail"

/* Why there are no device profiles; NULL: there are. */
static const char *no_device_profiles(const struct runtime *r, const struct nrt_inspect_config *c)
{
	if (!c->enable_inspect)
		return FAILURES_ONLY;
	if (!(c->activities & INSPECT_DEVICE_PROFILE))
		return c->enable_inspect_on_fail ? FAILURES_ONLY : "not asked for";
	if (c->device_profile_mode == NRT_INSPECT_DEVICE_PROFILE_MODE_DISABLED)
		return c->enable_inspect_on_fail ? FAILURES_ONLY
						 : "no mode of device profiles is set";
	if (r->devices->topology.simulated)
		return "the device is simulated and runs nothing";
	if (c->device_profile_mode == NRT_INSPECT_DEVICE_PROFILE_MODE_MODEL &&
		r->async_max_inflight)
		return "profiles of models do not go with executions that are only posted";
	return NULL;
}

nrt_inspect_device_profile_mode_t inspect_facts_mode(
	const struct runtime *r, const struct nrt_inspect_config *c)
{
	return no_device_profiles(r, c) ? NRT_INSPECT_DEVICE_PROFILE_MODE_DISABLED
					: c->device_profile_mode;
}

/* ---- activities --------------------------------------------------------------------------- */

/* Those that are off, with why, and the bits of the others. */
static uint32_t activities(const struct runtime *r, const struct nrt_inspect_config *c,
	struct inspect_off off[INSPECT_FACTS_OFF])
{
	static const struct {
		uint32_t bit;
		const char *name;
	} rows[] = {
		{INSPECT_SYSTEM_PROFILE, "system_profile"},
		{INSPECT_DEVICE_PROFILE, "device_profile"},
		{INSPECT_HOST_MEMORY, "host_memory"},
		{INSPECT_CPU_UTIL, "cpu_util"},
	};
	uint32_t on = 0, n = 0;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *why = rows[i].bit == INSPECT_DEVICE_PROFILE ? no_device_profiles(r, c)
				  : c->activities & rows[i].bit		? NULL
									: "not asked for";

		if (why)
			off[n++] = (struct inspect_off){rows[i].name, why};
		else
			on |= rows[i].bit;
	}
	off[n] = (struct inspect_off){NULL, NULL};
	return on;
}

/* ---- the machine -------------------------------------------------------------------------- */

static void fill_machine(const struct device_system *s, struct inspect_facts *f)
{
	struct inspect_info *i = &f->info;

	(void)snprintf(f->driver, sizeof(f->driver), "%" PRIu32 ".%" PRIu32, s->driver.major,
		s->driver.minor);
	instance_read_id(s->is_virtual ? s->root : NULL, NULL, f->instance_id);
	for (uint32_t d = 0; d < s->device_count; d++)
		f->devices[d] = (struct rec_device){s->devices[d].index, s->is_virtual};
	i->arch = s->arch;
	i->logical_cores = device_logical_count(s);
	i->logical_nc_size = s->lnc_size;
	i->instance_id = f->instance_id;
	i->driver = s->topology.simulated ? NULL : f->driver;
	i->devices = f->devices;
	i->device_count = s->device_count;
	i->is_virtual = s->topology.simulated ? REC_SIMULATED : s->is_virtual;
}

NRT_STATUS inspect_facts_get(const struct runtime *r, const struct nrt_inspect_config *c,
	bool environment, struct inspect_facts *ret)
{
	static const char *const layouts[] = {[INSPECT_LAYOUT_FLAT] = "flat",
		[INSPECT_LAYOUT_TIMESTAMP] = "timestamp",
		[INSPECT_LAYOUT_SEED] = "seed"};
	nrt_inspect_device_profile_mode_t mode = inspect_facts_mode(r, c);

	*ret = (struct inspect_facts){0};
	ret->devices = calloc(r->devices->device_count + 1, sizeof(ret->devices[0]));
	ret->environment = environment ? inspect_env_list() : NULL;
	if (!ret->devices || (environment && !ret->environment)) {
		inspect_facts_free(ret);
		return NRT_RESOURCE;
	}
	fill_machine(r->devices, ret);
	ret->info.session_id = c->session_id;
	ret->info.enabled = c->enable_inspect;
	ret->info.on_fail = c->enable_inspect_on_fail;
	ret->info.device_profile = modes[mode];
	ret->info.device_profile_wanted = modes[c->device_profile_mode];
	ret->info.activities = activities(r, c, ret->off);
	ret->info.layout = layouts[r->output_layout];
	ret->info.nc = mode || c->enable_inspect_on_fail ? c->nc : NULL;
	ret->info.runtime = VERSION_TEXT;
	ret->info.environment = (const char *const *)ret->environment;
	ret->info.off = ret->off;
	return NRT_SUCCESS;
}

void inspect_facts_free(struct inspect_facts *f)
{
	for (char **e = f->environment; e && *e; e++)
		free(*e);
	free(f->environment);
	free(f->devices);
	*f = (struct inspect_facts){0};
}
