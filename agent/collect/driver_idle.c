/* SPDX-License-Identifier: Apache-2.0 */
/*
 * driver_idle.c - lets go of the module while nobody else uses it.
 *
 * fentry programs and raw tracepoints hold references of the module whose functions they watch, so that
 * rmmod would be refused as long as we record.  They are attached only while somebody else holds a
 * reference too, which an open device does.  In between kprobes stand in for them, which hold none: the
 * first open is seen, and what follows until the programs are back.  They are loaded when they are first needed:
 * that takes time, and nothing happens then.
 *
 *	HELD      fentry and tracepoints are on
 *	FREEING   stand-ins are on too; fentry sees no call enter, and goes when those it saw have returned
 *	FREE      stand-ins alone
 *	TAKING    fentry is on again too; the same for the stand-ins
 *
 * What no kprobe can stand in for is not seen from the first open until the programs are back: the ladder has a
 * step "idle" for each such family.  When a stand-in cannot be put on, or a program not put back, all stays as it was
 * and is tried again later: nothing is lost, but the module is not let go, or the stand-ins work on.
 *
 * While both are on, nev_cpu.overlap has each call belong to the hook that saw it enter first, and its work
 * on the DMA path to the same kind; work outside of calls belongs to the kind that was on alone before, and from when
 * its entries are off to the other.  What sees the work of calls is on before what sees calls enter, and off after the
 * last call of its kind has returned.
 *
 * Kprobes can be switched off for the whole machine.  Then they can stand in for nothing: the module is not let go,
 * or is taken back.  The kernel tells nobody when that happens, so it is looked at every second while there are any; how
 * long at most nothing was seen is told (kernel kprobes_off_ns).
 */
#include <errno.h>
#include <string.h>

#include "agent/collect/driver_parts.h"
#include "runtime/base/clock.h"

/* Drains that a new driver may stay unused before it is let go: whoever loads it uses it soon.  And those until what
 * failed is tried again. */
#define GRACE 50u
#define KPROBES_LOOK_NS 1000000000u

static bool holds_module(const struct driver_link *l)
{
	return l->level == HOOK_LEVEL_FENTRY || l->level == HOOK_LEVEL_TRACEPOINT;
}

/* Of calls: what is done inside of one goes on to be seen as long as it is open. */
static bool is_call_entry(const struct driver_link *l)
{
	return l->is_entry && strstr(l->name, ":ncdev_");
}

static bool is_holding_entry(const struct driver_link *l)
{
	return holds_module(l) && is_call_entry(l);
}

static bool is_standin_entry(const struct driver_link *l)
{
	return l->is_standin && is_call_entry(l);
}

static bool is_standin(const struct driver_link *l)
{
	return l->is_standin;
}

static bool is_holding(const struct driver_hooks *h)
{
	for (unsigned i = 0; i < h->link_count; i++)
		if (holds_module(&h->links[i]))
			return true;
	return false;
}

/* Is there a kprobe that is alone in what it sees? */
static bool relies_on_kprobes(const struct driver_hooks *h)
{
	bool alone = h->idle == DRIVER_FREE || (h->idle == DRIVER_TAKING && !h->no_entries);

	for (unsigned i = 0; i < h->link_count; i++)
		if (h->links[i].level == HOOK_LEVEL_KPROBE && (alone || !h->links[i].is_standin))
			return true;
	return false;
}

void driver_idle_look_at_kprobes(struct driver_hooks *h)
{
	bool off = bpf_kprobes_are_off(h->o.sys);
	uint64_t now = clock_boot().ns;

	if ((off || h->kprobes_off) && relies_on_kprobes(h))
		h->kprobes_off_ns += now - h->kprobes_looked_ns;
	h->kprobes_off = off;
	h->kprobes_looked_ns = now;
}

/* The kprobes that stand in for a family; NULL: there are none. */
static struct driver_instance *standin_of(struct driver_hooks *h, unsigned family)
{
	for (unsigned i = 0; i < hook_row_count && h->standin_families >> family & 1; i++)
		if (driver_family_of(h, hook_rows[i].family) == family)
			return &h->standins[hook_rows[i].object];
	return NULL;
}

/* On an error none of them is left.  0 or -errno.  Calls are the first families of hooks.def: here and in take_back
 * they come last. */
static int attach_standins(struct driver_hooks *h)
{
	unsigned before = h->link_count;
	int r;

	driver_idle_look_at_kprobes(h);
	if (h->kprobes_off && h->standin_families)
		return -EOPNOTSUPP;
	r = driver_standins_open(h);
	if (r)
		return r;
	for (unsigned f = h->family_count; f-- > 0;) {
		struct driver_instance *in = standin_of(h, f);

		r = in ? driver_family_attach(h, in, HOOK_LEVEL_KPROBE, f) : 0;

		if (r) {
			driver_links_drop(h, before, NULL);
			return r;
		}
	}
	for (unsigned i = before; i < h->link_count; i++)
		h->links[i].is_standin = true;
	return 0;
}

static int take_back(struct driver_hooks *h)
{
	unsigned before = h->link_count;
	int r = 0;

	driver_instances_reopen(h);
	for (unsigned f = h->family_count; f-- > 0;)
		for (unsigned i = 0; i < h->instance_count && r == 0; i++)
			if (h->instances[i].families >> f & 1 &&
				h->levels[f] == h->instances[i].level &&
				h->levels[f] != HOOK_LEVEL_KPROBE)
				r = driver_family_attach(
					h, &h->instances[i], (enum hook_level)h->levels[f], f);
	if (r == 0)
		return 0;
	driver_links_drop(h, before, NULL);
	driver_instances_unload(h);
	return r;
}

bool driver_idle_is_unseen(struct driver_hooks *h, unsigned family)
{
	return h->force != HOOK_LEVEL_TRACEPOINT &&
	       (h->levels[family] == HOOK_LEVEL_FENTRY ||
		       h->levels[family] == HOOK_LEVEL_TRACEPOINT) &&
	       !standin_of(h, family);
}

void driver_idle_prepare(struct driver_hooks *h)
{
	h->idle = DRIVER_HELD;
	h->idle_ticks = 0;
	h->was_used = false;
	h->switch_failed = false;
}

bool driver_hooks_between(const struct driver_hooks *h)
{
	return h->idle == DRIVER_FREEING || h->idle == DRIVER_TAKING;
}

uint64_t driver_hooks_overlap(const struct driver_hooks *h)
{
	if (!h->standin_families)
		return NEV_VIA_MAX;
	switch (h->idle) {
	case DRIVER_HELD:
		return NEV_VIA_FENTRY;
	case DRIVER_FREE:
		return NEV_VIA_KPROBE;
	case DRIVER_FREEING:
		return h->no_entries ? NEV_VIA_KPROBE : NEV_VIA_FENTRY;
	default:
		return h->no_entries ? NEV_VIA_FENTRY : NEV_VIA_KPROBE;
	}
}

bool driver_hooks_should_switch(struct driver_hooks *h)
{
	int users;

	if (!h->module.present || driver_hooks_between(h))
		return false;
	if (relies_on_kprobes(h) && clock_boot().ns - h->kprobes_looked_ns >= KPROBES_LOOK_NS)
		driver_idle_look_at_kprobes(h);
	if (h->force == HOOK_LEVEL_TRACEPOINT || (h->idle == DRIVER_HELD && !is_holding(h)))
		return false;
	users = driver_refs_users(h);
	h->was_used |= users > 0;
	h->idle_ticks++;
	if (h->switch_failed && h->idle_ticks <= GRACE)
		return false;
	if (h->idle == DRIVER_FREE)
		return users > 0 || (h->kprobes_off && h->standin_families);
	return users == 0 && (h->was_used || h->idle_ticks > GRACE);
}

void driver_hooks_switch(struct driver_hooks *h)
{
	bool held = h->idle == DRIVER_HELD;
	int r = held ? attach_standins(h) : take_back(h);

	h->no_entries = false;
	h->idle_ticks = 0;
	h->switch_failed = r < 0;
	if (r == 0)
		h->idle = held ? DRIVER_FREEING : DRIVER_TAKING;
	else
		h->switches_failed++;
	driver_hooks_list(h);
}

void driver_hooks_settle(struct driver_hooks *h, const uint32_t open_via[NEV_VIA_MAX])
{
	/* First no call enters there any more, then all that did have returned. */
	if (!h->no_entries) {
		if (h->kprobes_off)
			driver_idle_look_at_kprobes(h);
		driver_links_drop(
			h, 0, h->idle == DRIVER_FREEING ? is_holding_entry : is_standin_entry);
		h->no_entries = true;
	} else if (h->idle == DRIVER_FREEING && !open_via[NEV_VIA_FENTRY]) {
		driver_links_drop(h, 0, holds_module);
		driver_instances_unload(h);
		h->idle = DRIVER_FREE;
	} else if (h->idle == DRIVER_TAKING && !open_via[NEV_VIA_KPROBE]) {
		driver_links_drop(h, 0, is_standin);
		driver_idle_prepare(h);
	}
	driver_hooks_list(h);
}
