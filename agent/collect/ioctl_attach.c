/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ioctl_attach.c - which hooks are on: the process filter always, the driver's own where they can be, the
 * system call where they cannot or where a virtual device is.
 *
 * No call is recorded twice.  While the driver's own hooks see ioctls, character devices are not in the
 * map of the system-call level, and its programs are detached when there is no virtual device.  When the
 * levels change over, both may meet one call: nev_cpu.overlap has the second look for it.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/collect/ioctl_parts.h"
#include "bpf/ioctl.skel.h"
#include "runtime/base/clock.h"
#include "runtime/base/errno_name.h"
#include "runtime/base/file.h"

/* ---- names and ladder ----------------------------------------------------------------------- */

static const char *error_word(int error)
{
	const char *name = errno_name(-error);

	return error == 0 ? REC_REACHED : name ? name : "failed";
}

static unsigned add_name(struct ioctl_hooks *h, unsigned n, const char *name)
{
	if (n < IOCTL_MAX_NAMES)
		h->names[n++] = name;
	h->names[n] = NULL;
	return n;
}

static unsigned add_step(struct ioctl_hooks *h, unsigned n, const struct rec_ladder_step *step)
{
	if (n < IOCTL_MAX_STEPS)
		h->ladder[n++] = *step;
	h->ladder[n] = (struct rec_ladder_step){0};
	return n;
}

/* Is this process in the first pid namespace?  Its inode number is fixed in the kernel. */
static bool has_kernels_pids(void)
{
	struct stat st;

	return stat("/proc/self/ns/pid", &st) < 0 || st.st_ino == 0xEFFFFFFCu;
}

void ioctl_hooks_list(struct ioctl_hooks *h)
{
	const char *filter = h->all_processes || has_kernels_pids() ? REC_REACHED : REC_OTHER_PIDS;
	const char *const *name = h->driver ? driver_hooks_names(h->driver) : NULL;
	const struct rec_ladder_step *step = h->driver ? driver_hooks_ladder(h->driver) : NULL;
	const char *syscall =
		h->enter || h->syscall_error ? error_word(h->syscall_error) : "not needed";
	unsigned n = add_name(h, 0, "tp_btf:sched_process_exit");

	n = add_name(h, n, "tp_btf:sched_process_free");
	if (h->filter_count > 2)
		n = add_name(h, n, "tp_btf:sched_process_fork");
	if (h->exit)
		n = add_name(h, n, "tracepoint:syscalls:sys_exit_ioctl");
	if (h->enter)
		n = add_name(h, n, "tracepoint:syscalls:sys_enter_ioctl");
	while (name && *name)
		n = add_name(h, n, *name++);
	n = add_step(h, 0, &(struct rec_ladder_step){"process", "tp_btf", filter});
	while (step && step->family)
		n = add_step(h, n, step++);
	add_step(h, n, &(struct rec_ladder_step){"ioctl", "syscall", syscall});
}

void ioctl_hooks_list_none(struct ioctl_hooks *h, int error)
{
	unsigned n =
		add_step(h, 0, &(struct rec_ladder_step){"process", "tp_btf", error_word(error)});

	add_step(h, n, &(struct rec_ladder_step){"ioctl", "syscall", error_word(error)});
}

/* ---- the process filter --------------------------------------------------------------------- */

static int attach_filter(struct ioctl_hooks *h, const struct bpf_program *prog)
{
	struct bpf_link *link = bpf_program__attach(prog);

	if (!link)
		return -errno;
	h->filter[h->filter_count++] = link;
	return 0;
}

static int attach_filters(struct ioctl_hooks *h, const char **ret_what)
{
	int r;

	*ret_what = "attaching to sched_process_exit and sched_process_free";
	r = attach_filter(h, h->skel->progs.follow_exit);
	r = r ? r : attach_filter(h, h->skel->progs.follow_free);
	if (r || h->all_processes)
		return r;
	*ret_what = "attaching to sched_process_fork";
	return attach_filter(h, h->skel->progs.follow_fork);
}

/* ---- the system call ------------------------------------------------------------------------ */

static int attach_tracepoint(struct ioctl_hooks *h, int tracefs, const char *name,
	struct bpf_program *prog, struct bpf_link **ret)
{
	int r = tracepoint_attach(tracefs, "syscalls", name, prog, ret);

	h->uncounted += r == 0 && !bpf_counts_missed();
	return r;
}

/* The return before the entry: what enters will also be seen to return. */
static int attach_syscall(struct ioctl_hooks *h, const char **ret_what)
{
	_cleanup_close_ int tracefs = tracefs_open(NULL);
	int r = 0;

	*ret_what = "reaching the kernel's tracepoints (tracefs)";
	if (tracefs < 0)
		return tracefs;
	*ret_what = "attaching to the ioctl system call (CONFIG_FTRACE_SYSCALLS)";
	if (!h->exit)
		r = attach_tracepoint(
			h, tracefs, "sys_exit_ioctl", h->skel->progs.exit_ioctl, &h->exit);
	if (!r && !h->enter)
		r = attach_tracepoint(
			h, tracefs, "sys_enter_ioctl", h->skel->progs.enter_ioctl, &h->enter);
	return r;
}

static void drop(struct bpf_link **link)
{
	bpf_link__destroy(*link);
	*link = NULL;
}

static bool has_virtual(const struct ioctl_hooks *h)
{
	for (int i = 0; i < h->device_count; i++)
		if (h->devices[i].is_virtual)
			return true;
	return false;
}

/* Calls that only the system-call level will see return. */
static bool has_open_syscalls(const struct ioctl_hooks *h)
{
	return ioctl_hooks_walk(h, 0) == 0 && h->walk->open_via[NEV_VIA_SYSCALL];
}

int ioctl_hooks_settle(struct ioctl_hooks *h)
{
	bool wanted = !h->driver_has_ioctl || has_virtual(h);
	const char *what;

	if (!h->skel || h->stopped || wanted == (h->enter != NULL)) {
		if (h->skel && !wanted && h->exit && !has_open_syscalls(h)) {
			drop(&h->exit);
			ioctl_hooks_list(h);
		}
		return 0;
	}
	if (wanted)
		h->syscall_error = attach_syscall(h, &what);
	else
		drop(&h->enter);
	ioctl_hooks_list(h);
	return h->driver_has_ioctl ? 0 : h->syscall_error;
}

/* ---- the driver ----------------------------------------------------------------------------- */

static void set_overlap(struct ioctl_hooks *h, uint64_t value)
{
	for (unsigned i = 0; i < h->cpu_count; i++)
		__atomic_store_n(&h->cpus[i].overlap, value, __ATOMIC_RELAXED);
	h->overlap = value != 0;
}

/* Character devices leave the map of the system-call level; ioctl_hooks_scan_devices brings them back. */
static int forget_character_devices(struct ioctl_hooks *h)
{
	struct nev_file_key key, last, *from = NULL;
	const struct bpf_map *map = h->skel->maps.devices;

	while (bpf_map__get_next_key(map, from, &key, sizeof(key)) == 0) {
		if (key.is_chr) {
			int r = bpf_map__delete_elem(map, &key, sizeof(key), 0);

			if (r)
				return r;
			from = NULL; /* the order of a hash is that of what is in it */
			continue;
		}
		last = key;
		from = &last;
	}
	return 0;
}

static int take_driver(struct ioctl_hooks *h)
{
	h->driver_has_ioctl = driver_hooks_level(h->driver, "ioctl") < HOOK_LEVEL_SYSCALL;
	return h->driver_has_ioctl ? forget_character_devices(h) : 0;
}

/* The module is what it was: lets go of it, or takes it again. */
static int tend_driver(struct ioctl_hooks *h)
{
	int r = 0;

	if (driver_hooks_between(h->driver)) {
		set_overlap(h, driver_hooks_overlap(h->driver));
		r = ioctl_hooks_walk(h, 0);
		if (r == 0)
			driver_hooks_settle(h->driver, h->walk->open_via);
	} else if (driver_hooks_should_switch(h->driver)) {
		set_overlap(h, driver_hooks_overlap(h->driver));
		driver_hooks_switch(h->driver);
	} else if (h->overlap) {
		set_overlap(h, 0);
	}
	return r;
}

bool ioctl_hooks_driver_changed(struct ioctl_hooks *h)
{
	if (!h->driver || h->stopped)
		return false;
	if (!driver_hooks_changed(h->driver)) {
		h->looked_ns = clock_boot().ns;
		return false;
	}
	set_overlap(h, NEV_VIA_MAX);
	h->driver_has_ioctl = false;
	return true;
}

struct ioctl_hooks_unseen ioctl_hooks_unseen(const struct ioctl_hooks *h)
{
	return h->unseen;
}

int ioctl_hooks_follow(struct ioctl_hooks *h)
{
	uint64_t calls_ns = clock_boot().ns;
	int r;

	if (!h->driver || h->stopped)
		return 0;
	if (!ioctl_hooks_driver_changed(h))
		return tend_driver(h);
	r = driver_hooks_follow(h->driver);
	if (r < 0)
		return r;
	r = take_driver(h);
	r = r ? r : ioctl_hooks_settle(h);
	h->unseen = (struct ioctl_hooks_unseen){
		calls_ns - h->looked_ns, clock_boot().ns - h->looked_ns};
	h->looked_ns = calls_ns;
	ioctl_hooks_list(h);
	return r ? r : 1;
}

static int open_driver(
	struct ioctl_hooks *h, const struct ioctl_hooks_options *o, char *why, size_t why_size)
{
	const struct driver_hooks_options d = {
		.force = o->level,
		.off = o->off,
		.rate_ceiling = h->rate_ceiling,
		.all_processes = o->all_processes,
		.shared = h->skel->obj,
		.sys = o->sys,
	};
	int r = driver_hooks_open(&d, &h->driver, why, why_size);
	return r ? r : take_driver(h);
}

int ioctl_hooks_attach(struct ioctl_hooks *h, const struct ioctl_hooks_options *o,
	const char **ret_what, char *why, size_t why_size)
{
	int r = attach_filters(h, ret_what);

	if (r)
		return r;
	*ret_what = NULL;
	r = open_driver(h, o, why, why_size);
	if (r)
		return r;
	h->syscall_error = attach_syscall(h, ret_what);
	ioctl_hooks_list(h);
	return h->driver_has_ioctl ? 0 : h->syscall_error;
}

uint64_t ioctl_hooks_uncounted(const struct ioctl_hooks *h)
{
	return h->uncounted + (h->driver ? driver_hooks_uncounted(h->driver) : 0);
}

uint64_t ioctl_hooks_kprobes_off_ns(const struct ioctl_hooks *h)
{
	return h->driver ? driver_hooks_kprobes_off_ns(h->driver) : 0;
}

uint64_t ioctl_hooks_switches_failed(const struct ioctl_hooks *h)
{
	return h->driver ? driver_hooks_switches_failed(h->driver) : 0;
}

void ioctl_hooks_detach(struct ioctl_hooks *h, bool all)
{
	h->stopped = true;
	drop(&h->enter);
	if (h->driver)
		driver_hooks_detach(h->driver, all);
	if (!all)
		return;
	drop(&h->exit);
	while (h->filter_count)
		bpf_link__destroy(h->filter[--h->filter_count]);
}
