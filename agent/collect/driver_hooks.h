/* SPDX-License-Identifier: Apache-2.0 */
/*
 * driver_hooks.h - the hooks inside the neuron driver: chosen by trial, put on again when the driver is
 * loaded anew.
 *
 * For each family of hooks.def the levels are tried from the best down: fentry (needs the module's
 * BTF), kprobe (needs a known prototype), tracepoint.  A level counts as reached when all its programs
 * were loaded and attached.  Families without any are what the system-call level sees or nobody.
 *
 * The records go into the maps of ioctl.bpf.c, so this handle lives inside that of ioctl_hooks.h.
 * fentry and raw tracepoints hold a reference of the module, kprobes do not: the former are taken back
 * when nobody else uses the module, so that rmmod is not refused because of us.
 *
 * Owner: ioctl_hooks.  One thread; detaching starts up to 8 more, which have ended when it returns.  Never prints; says why in `why`.
 */
#ifndef NTRACE_COLLECT_DRIVER_HOOKS_H
#define NTRACE_COLLECT_DRIVER_HOOKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/collect/driver_module.h"
#include "bpf/neuron_event.h"
#include "runtime/record/header.h"

struct bpf_object;
struct driver_hooks;

/* Steps of the ladder, best first. */
enum hook_level {
	HOOK_LEVEL_FENTRY,
	HOOK_LEVEL_KPROBE,
	HOOK_LEVEL_TRACEPOINT,
	HOOK_LEVEL_SYSCALL,
	HOOK_LEVELS,
};

/* "fentry", "kprobe", "tracepoint", "syscall"; and the level of a name, HOOK_LEVELS if there is none
 * such. */
const char *hook_level_name(enum hook_level level);
enum hook_level hook_level_of(const char *name);

/* The first word of such a list that is no family; NULL: all are.  *ret_length: of the word. */
const char *driver_hooks_unknown_family(const char *list, size_t *ret_length);

struct driver_hooks_options {
	const char *force;     /* name of the one level to use; NULL or "auto": the best there is */
	const char *off;       /* families that are not hooked, separated by commas; NULL: none */
	uint32_t rate_ceiling; /* calls of a process per NEV_RATE_WINDOW_NS; 0: all */
	bool all_processes;
	struct bpf_object *
		shared; /* whose maps the programs use, by name, instead of their own; NULL: none */
	const char *sys; /* NULL: "/sys"; tests have others */
};

/* Also without a driver: generation 0, nothing attached, and driver_hooks_follow waits for one.  0,
 * -EINVAL (force is no level), -ENOMEM, -ENOENT (a level is forced that no family reaches although the
 * driver is there); why: a line. */
int driver_hooks_open(const struct driver_hooks_options *options, struct driver_hooks **ret,
	char *why, size_t why_size);
void driver_hooks_close(struct driver_hooks *h);

/* Has the module come, gone or changed since hooks were put on? */
bool driver_hooks_changed(const struct driver_hooks *h);
/* To be called once per drain: has the module come, gone or changed?  1: yes, and hooks, ladder and
 * generation are new; 0: no; -errno. */
int driver_hooks_follow(struct driver_hooks *h);

/* Is the module to be let go, or taken again, because nobody else, or somebody, uses it?  Asked once per
 * drain.  driver_hooks_switch then attaches what comes next; while both are attached
 * (driver_hooks_between) nev_cpu.overlap must be set, each time to what driver_hooks_overlap says, and
 * driver_hooks_settle is told how many calls are open by what saw them enter, until it has detached what was before. */
uint64_t driver_hooks_overlap(const struct driver_hooks *h);
bool driver_hooks_should_switch(struct driver_hooks *h);
void driver_hooks_switch(struct driver_hooks *h);
bool driver_hooks_between(const struct driver_hooks *h);
void driver_hooks_settle(struct driver_hooks *h, const uint32_t open_via[NEV_VIA_MAX]);

/* How often hooks have been put on a module; 0: none was there yet. */
uint32_t driver_hooks_generation(const struct driver_hooks *h);
const struct driver_module *driver_hooks_module(const struct driver_hooks *h);
/* Families and levels that were tried for the present generation; ends with one without a family. */
const struct rec_ladder_step *driver_hooks_ladder(const struct driver_hooks *h);
/* Level that a family reached; HOOK_LEVELS: none. */
enum hook_level driver_hooks_level(const struct driver_hooks *h, const char *family);
/* Name of the i-th family; NULL beyond the last. */
const char *driver_hooks_family(const struct driver_hooks *h, unsigned i);
/* Names of the attached hooks, "fentry:ncdev_ioctl", NULL-terminated. */
const char *const *driver_hooks_names(const struct driver_hooks *h);
/* Adds what the hooks have cost, those that are detached by now among them. */
struct bpf_cost;
void driver_hooks_cost(const struct driver_hooks *h, struct bpf_cost *sum);

/* How often the kernel skipped a hook, as ioctl_hooks_missed. */
uint64_t driver_hooks_missed(const struct driver_hooks *h);
/* As ioctl_hooks_uncounted, ioctl_hooks_kprobes_off_ns, ioctl_hooks_switches_failed. */
uint64_t driver_hooks_uncounted(const struct driver_hooks *h);
uint64_t driver_hooks_kprobes_off_ns(const struct driver_hooks *h);
uint64_t driver_hooks_switches_failed(const struct driver_hooks *h);
/* Detaches everything: first entries, then, with `returns`, the rest.  Records stay where they are. */
void driver_hooks_detach(struct driver_hooks *h, bool returns);

#endif
