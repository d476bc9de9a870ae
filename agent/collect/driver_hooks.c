/* SPDX-License-Identifier: Apache-2.0 */
/*
 * driver_hooks.c - the ladder of the driver-level hooks: what is tried in which order, and what came of
 * it.
 *
 * On each level all families that have not reached a better one are loaded together, since loading
 * costs most by the object, and attached one by one.  When the load fails, each family is loaded by
 * itself: one that the kernel refuses takes none of the others with it.
 */
#include "agent/collect/driver_hooks.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/collect/driver_parts.h"
#include "runtime/base/errno_name.h"

static const char *const level_names[HOOK_LEVELS] = {
	[HOOK_LEVEL_FENTRY] = "fentry",
	[HOOK_LEVEL_KPROBE] = "kprobe",
	[HOOK_LEVEL_TRACEPOINT] = "tracepoint",
	[HOOK_LEVEL_SYSCALL] = "syscall",
};

const char *hook_level_name(enum hook_level level)
{
	return level < HOOK_LEVELS ? level_names[level] : NULL;
}

enum hook_level hook_level_of(const char *name)
{
	unsigned level = 0;

	while (level < HOOK_LEVELS && strcmp(level_names[level], name) != 0)
		level++;
	return (enum hook_level)level;
}

/* ---- families ------------------------------------------------------------------------------- */

unsigned driver_family_of(const struct driver_hooks *h, const char *name)
{
	unsigned i = 0;

	while (i < h->family_count && strcmp(h->families[i], name) != 0)
		i++;
	return i;
}

static void know_families(struct driver_hooks *h)
{
	for (unsigned i = 0; i < hook_row_count; i++) {
		unsigned f = driver_family_of(h, hook_rows[i].family);

		if (f == h->family_count && f < DRIVER_MAX_FAMILIES)
			h->families[h->family_count++] = hook_rows[i].family;
	}
}

/* Is a family in a list with commas? */
static bool is_listed(const char *list, const char *family)
{
	size_t n = strlen(family);

	for (const char *at = list; at && *at; at += strcspn(at, ","), at += *at == ',')
		if (strcspn(at, ",") == n && strncmp(at, family, n) == 0)
			return true;
	return false;
}

const char *driver_hooks_unknown_family(const char *list, size_t *ret_length)
{
	for (const char *at = list; *at; at += strcspn(at, ","), at += *at == ',') {
		size_t n = strcspn(at, ",");
		bool known = false;

		for (unsigned i = 0; i < hook_row_count; i++)
			known |= strlen(hook_rows[i].family) == n &&
				 strncmp(hook_rows[i].family, at, n) == 0;
		*ret_length = n;
		if (!known)
			return at;
	}
	return NULL;
}

static void note(struct driver_hooks *h, unsigned family, enum hook_level level, const char *result)
{
	h->ladder[h->step_count++] =
		(struct rec_ladder_step){h->families[family], level_names[level], result};
	if (strcmp(result, REC_REACHED) == 0)
		h->levels[family] = (uint8_t)level;
}

static void note_error(struct driver_hooks *h, unsigned family, enum hook_level level, int error)
{
	const char *name = errno_name(-error);

	note(h, family, level, name ? name : "failed");
}

/* Families that want this level of this object and can have it; of those that cannot the reason is
 * noted. */
static uint32_t candidates(struct driver_hooks *h, enum hook_object object, enum hook_level level)
{
	uint32_t mask = 0, refused = 0;

	for (unsigned i = 0; i < hook_row_count; i++) {
		const struct hook_row *row = &hook_rows[i];
		unsigned f = driver_family_of(h, row->family);
		const char *why;

		if (row->object != object || row->level != level || h->levels[f] != HOOK_LEVELS ||
			refused >> f & 1)
			continue;
		why = is_listed(h->o.off, row->family) ? "off" : driver_row_refused(h, row);
		mask |= 1u << f;
		if (why) {
			refused |= 1u << f;
			note(h, f, level, why);
		}
	}
	return mask & ~refused;
}

/* ---- trying --------------------------------------------------------------------------------- */

static void attach_families(struct driver_hooks *h, struct driver_instance *in,
	enum hook_level level, uint32_t families)
{
	unsigned links = h->link_count;

	for (unsigned f = 0; f < h->family_count; f++) {
		int r;

		if (!(families >> f & 1))
			continue;
		r = driver_family_attach(h, in, level, f);
		if (r) {
			driver_family_unload(h, in, f);
			note_error(h, f, level, r);
		} else {
			note(h, f, level, REC_REACHED);
		}
	}
	if (h->link_count == links)
		driver_instance_close_last(h);
}

static void try_level(struct driver_hooks *h, enum hook_object object, enum hook_level level)
{
	uint32_t families = candidates(h, object, level);
	struct driver_instance *in;
	int error;

	if (!families)
		return;
	in = driver_instance_open(h, object, level, families, &error);
	if (in) {
		attach_families(h, in, level, families);
		return;
	}
	for (unsigned f = 0; f < h->family_count; f++) {
		if (!(families >> f & 1))
			continue;
		in = driver_instance_open(h, object, level, 1u << f, &error);
		if (in)
			attach_families(h, in, level, 1u << f);
		else
			note_error(h, f, level, error);
	}
}

void driver_hooks_list(struct driver_hooks *h)
{
	for (unsigned i = 0; i < h->link_count; i++)
		h->names[i] = h->links[i].name;
	h->names[h->link_count] = NULL;
}

/* Puts the hooks on the module that is there. */
static void put_on(struct driver_hooks *h)
{
	h->step_count = 0;
	driver_idle_prepare(h);
	driver_idle_look_at_kprobes(h);
	h->refs = (struct driver_refs){0};
	h->module_btf_id = 0;
	memset(h->levels, HOOK_LEVELS, sizeof(h->levels));
	if (!h->module.present) {
		h->ladder[h->step_count++] =
			(struct rec_ladder_step){"driver", "module", "not loaded"};
	} else if (h->force != HOOK_LEVEL_SYSCALL) {
		h->generation++;
		if (h->module.has_btf && driver_module_btf(&h->kernel_btf, &h->module_btf) < 0)
			h->module_btf = h->kernel_btf = NULL;
		h->by_program = driver_refs_by_program(h->kernel_btf);
		if (h->module_btf)
			h->module_btf_id = driver_refs_module_btf();
		for (unsigned level = 0; level < HOOK_LEVEL_SYSCALL; level++)
			for (unsigned object = 0; object < HOOK_OBJECTS; object++)
				if (h->force == HOOK_LEVELS || h->force == level)
					try_level(h, (enum hook_object)object,
						(enum hook_level)level);
		driver_standins_choose(h);
		for (unsigned f = 0; f < h->family_count; f++)
			if (driver_idle_is_unseen(h, f))
				h->ladder[h->step_count++] =
					(struct rec_ladder_step){h->families[f], "idle", "unseen"};
		if (h->module_btf)
			driver_module_btf_free(h->kernel_btf, h->module_btf);
		h->module_btf = h->kernel_btf = NULL;
		free(h->symbols);
		h->symbols = NULL;
	}
	h->ladder[h->step_count] = (struct rec_ladder_step){0};
	driver_hooks_list(h);
}

static void take_off(struct driver_hooks *h)
{
	driver_hooks_detach(h, true);
	driver_instances_close(h);
	driver_standins_close(h);
}

/* ---- the handle ----------------------------------------------------------------------------- */

static int check_force(struct driver_hooks *h, char *why, size_t why_size)
{
	const char *force = h->o.force;

	h->force = HOOK_LEVELS;
	if (!force || strcmp(force, "auto") == 0)
		return 0;
	h->force = hook_level_of(force);
	if (h->force != HOOK_LEVELS)
		return 0;
	snprintf(why, why_size,
		"there is no level of hooks '%s'; there are auto, fentry, kprobe, tracepoint and "
		"syscall",
		force);
	return -EINVAL;
}

/* A level that was asked for must be there. */
static int check_reached(const struct driver_hooks *h, char *why, size_t why_size)
{
	const char *reason = h->step_count ? h->ladder[0].result : "nothing is hooked there";

	if (h->force >= HOOK_LEVEL_SYSCALL)
		return 0;
	for (unsigned f = 0; f < h->family_count; f++)
		if (h->levels[f] == h->force)
			return 0;
	if (!h->module.present)
		snprintf(why, why_size,
			"hooks of level %s sit inside of the neuron driver, and "
			"module " DRIVER_MODULE " is not loaded; level auto waits for it, and sees "
			"virtual devices as well",
			level_names[h->force]);
	else
		snprintf(why, why_size, "hooks of level %s are not possible with driver %s: %s%s%s",
			level_names[h->force],
			h->module.version[0] ? h->module.version : "of unknown version", reason,
			h->error[0] ? ": " : "", h->error);
	return -ENOENT;
}

int driver_hooks_open(const struct driver_hooks_options *options, struct driver_hooks **ret,
	char *why, size_t why_size)
{
	struct driver_hooks *h = calloc(1, sizeof(*h));
	int r;

	if (!h) {
		snprintf(why, why_size, "out of memory");
		return -ENOMEM;
	}
	h->o = *options;
	know_families(h);
	r = check_force(h, why, why_size);
	if (r == 0) {
		driver_module_read(h->o.sys, &h->module);
		put_on(h);
		r = check_reached(h, why, why_size);
	}
	if (r) {
		driver_hooks_close(h);
		return r;
	}
	*ret = h;
	return 0;
}

void driver_hooks_close(struct driver_hooks *h)
{
	if (!h)
		return;
	take_off(h);
	driver_maps_close(h);
	free(h);
}

bool driver_hooks_changed(const struct driver_hooks *h)
{
	return !driver_module_unchanged(h->o.sys, &h->module);
}

int driver_hooks_follow(struct driver_hooks *h)
{
	struct driver_module now;

	if (!driver_hooks_changed(h))
		return 0;
	/* What comes while hooks are taken off, which takes a while, is a change of its own. */
	driver_module_read(h->o.sys, &now);
	take_off(h);
	h->module = now;
	put_on(h);
	return 1;
}

static bool is_entry(const struct driver_link *l)
{
	return l->is_entry;
}

void driver_hooks_detach(struct driver_hooks *h, bool returns)
{
	driver_idle_look_at_kprobes(h);
	driver_links_drop(h, 0, returns ? NULL : is_entry);
	driver_hooks_list(h);
}

/* ---- what came of it ------------------------------------------------------------------------ */

uint32_t driver_hooks_generation(const struct driver_hooks *h)
{
	return h->generation;
}

const struct driver_module *driver_hooks_module(const struct driver_hooks *h)
{
	return &h->module;
}

const struct rec_ladder_step *driver_hooks_ladder(const struct driver_hooks *h)
{
	return h->ladder;
}

enum hook_level driver_hooks_level(const struct driver_hooks *h, const char *family)
{
	unsigned f = driver_family_of(h, family);

	return f < h->family_count ? (enum hook_level)h->levels[f] : HOOK_LEVELS;
}

const char *driver_hooks_family(const struct driver_hooks *h, unsigned i)
{
	return i < h->family_count ? h->families[i] : NULL;
}

const char *const *driver_hooks_names(const struct driver_hooks *h)
{
	return h->names;
}

uint64_t driver_hooks_missed(const struct driver_hooks *h)
{
	uint64_t missed = h->missed;

	for (unsigned i = 0; i < h->instance_count; i++)
		if (h->instances[i].obj) /* else the module is let go */
			missed += bpf_missed_of_programs(h->instances[i].obj);
	for (unsigned i = 0; i < HOOK_OBJECTS; i++)
		if (h->standins[i].obj)
			missed += bpf_missed_of_programs(h->standins[i].obj);
	for (unsigned i = 0; i < h->link_count; i++)
		if (h->links[i].level == HOOK_LEVEL_KPROBE)
			missed += bpf_missed_of_kprobe(h->links[i].link);
	return missed;
}

uint64_t driver_hooks_uncounted(const struct driver_hooks *h)
{
	return h->uncounted;
}

uint64_t driver_hooks_kprobes_off_ns(const struct driver_hooks *h)
{
	return h->kprobes_off_ns;
}

uint64_t driver_hooks_switches_failed(const struct driver_hooks *h)
{
	return h->switches_failed;
}

void driver_hooks_cost(const struct driver_hooks *h, struct bpf_cost *sum)
{
	for (unsigned i = 0; i < h->cost.count; i++)
		bpf_cost_add(sum, &h->cost.programs[i]);
	for (unsigned i = 0; i < h->instance_count; i++)
		if (h->instances[i].obj)
			bpf_cost_of_programs(h->instances[i].obj, sum);
	for (unsigned i = 0; i < HOOK_OBJECTS; i++)
		if (h->standins[i].obj)
			bpf_cost_of_programs(h->standins[i].obj, sum);
	for (unsigned i = 0; i < h->map_count; i++)
		bpf_cost_of_map(h->maps[i].fd, sum);
}
