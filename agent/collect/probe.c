/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probe.c - tries what a recording needs, one row each.  See the header.
 *
 * A row of the table below is a name, a function that tries, and what follows when it fails.  Rows
 * run in order; the programs that one row loads are attached by later ones.
 */
#include "agent/collect/probe.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/collect/bpf_support.h"
#include "agent/collect/driver_hooks.h"
#include "runtime/base/host.h"
#include "bpf/neuron_event.h"
#include "bpf/ioctl.skel.h"
#include "runtime/base/env.h"
#include "runtime/base/file.h"
#include "runtime/record/blind_hooks.h"

#define MAX_DEVICES 64 /* neuron0 to neuron63 */

/* Programs of type "syscall" and walks over map elements: 5.14; perf links: 5.15. */
#define KERNEL_MAJOR 5
#define KERNEL_MINOR 15

struct probe {
	const char *sys, *dev;
	struct ioctl_bpf *skel; /* loaded, or NULL */
	int tracefs;		/* or -1 */
	const char *root;	/* of the virtual device that a command here would use, or NULL */
	const char *level;	/* of hooks that is asked for, or NULL */
	struct host host, seen; /* the machine, and as such a command sees it */
	bool has_btf;
	bool sees_ioctls; /* by hooks inside of the driver */
};

/* When a recording cannot work without what a row tries. */
enum probe_need { NEVER, ALWAYS, WITHOUT_DRIVER_HOOKS };

struct probe_step {
	const char *name;
	enum probe_need need;
	void (*run)(struct probe *p, struct probe_row *row);
	const char *consequence;
};

__attribute__((format(printf, 3, 4))) static void say(
	struct probe_row *row, enum probe_state state, const char *format, ...)
{
	va_list args;

	row->state = state;
	va_start(args, format);
	vsnprintf(row->detail, sizeof(row->detail), format, args);
	va_end(args);
}

/* Says what a negative errno means for a row. */
static void say_error(struct probe_row *row, int error, const char *what)
{
	bool denied = error == -EPERM || error == -EACCES;
	const char *last = denied ? "" : bpf_log_last();

	say(row, denied ? PROBE_DENIED : PROBE_MISSING, "%s: %s%s%s", what, strerror(-error),
		*last ? ": " : "", last);
}

/* The same for what the hooks take. */
static void say_bpf_error(struct probe_row *row, int error, const char *what)
{
	size_t used;

	say_error(row, error, what);
	used = strlen(row->detail);
	if (row->state == PROBE_DENIED)
		snprintf(row->detail + used, sizeof(row->detail) - used,
			"; run as root, or with " BPF_PRIVILEGES);
}

/* The first line of a small file below /sys; 0 or -errno. */
static int read_sys(const struct probe *p, const char *name, char *ret, size_t size)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", p->sys, name);
	return file_read_line(path, ret, size);
}

/* ---- rows --------------------------------------------------------------------------------- */

static void try_kernel(struct probe *p, struct probe_row *row)
{
	const char *kernel = host_fact(&p->host, HOST_KERNEL);

	if (!bpf_kernel_is(KERNEL_MAJOR, KERNEL_MINOR))
		say(row, PROBE_MISSING, "%s, but %d.%d or later is needed", kernel, KERNEL_MAJOR,
			KERNEL_MINOR);
	else
		say(row, PROBE_OK, "%s", kernel);
}

/* The file reads "none [integrity] confidentiality": the word in brackets counts. */
static void try_lockdown(struct probe *p, struct probe_row *row)
{
	char line[128], *mode, *end;

	if (read_sys(p, "kernel/security/lockdown", line, sizeof(line)) < 0) {
		say(row, PROBE_OK, "this kernel has none");
		return;
	}
	mode = strchr(line, '[');
	end = mode ? strchr(mode, ']') : NULL;
	if (!end) {
		say(row, PROBE_MISSING, "not understood: %s", line);
		return;
	}
	*end = '\0';
	say(row, strcmp(mode + 1, "confidentiality") == 0 ? PROBE_DENIED : PROBE_OK, "mode %s",
		mode + 1);
}

static void try_btf(struct probe *p, struct probe_row *row)
{
	char path[PATH_MAX];
	struct stat st;

	snprintf(path, sizeof(path), "%s/kernel/btf/vmlinux", p->sys);
	p->has_btf = access(path, R_OK) == 0 && stat(path, &st) == 0;
	if (p->has_btf)
		say(row, PROBE_OK, "%s, %lld bytes", path, (long long)st.st_size);
	else
		say_error(row, -errno, path);
}

static void try_ring(struct probe *p, struct probe_row *row)
{
	int fd = bpf_map_create(
		BPF_MAP_TYPE_RINGBUF, "ntrace_probe", 0, 0, (uint32_t)sysconf(_SC_PAGESIZE), NULL);

	(void)p;
	if (fd < 0) {
		say_bpf_error(row, fd, "creating one");
		return;
	}
	close(fd);
	say(row, PROBE_OK, "created one");
}

static void try_load(struct probe *p, struct probe_row *row)
{
	int r;

	if (!p->has_btf) {
		say(row, PROBE_MISSING, "not tried: it needs kernel BTF");
		return;
	}
	p->skel = ioctl_bpf__open();
	r = p->skel ? ioctl_bpf__load(p->skel) : -errno;
	if (r == 0) {
		say(row, PROBE_OK, "the verifier takes them");
		return;
	}
	say_bpf_error(row, r, "loading them");
	ioctl_bpf__destroy(p->skel);
	p->skel = NULL;
}

static void try_tracefs(struct probe *p, struct probe_row *row)
{
	bool detached = false;
	int id;

	p->tracefs = tracefs_open(&detached);
	if (p->tracefs < 0) {
		say_bpf_error(row, p->tracefs, "neither a private one nor a mounted one");
		return;
	}
	id = tracepoint_id(p->tracefs, "syscalls", "sys_enter_ioctl");
	if (id < 0)
		say_bpf_error(row, id, "tracepoint syscalls/sys_enter_ioctl");
	else
		say(row, PROBE_OK, "%s, tracepoint number %d",
			detached ? "a private one" : "mounted", id);
}

static bool can_attach(struct probe *p, struct probe_row *row)
{
	if (!p->skel)
		say(row, PROBE_MISSING, "not tried: the programs are not loaded");
	return p->skel;
}

static int attach_one(struct probe *p, struct bpf_program *prog, const char *event)
{
	struct bpf_link *link;
	int r = tracepoint_attach(p->tracefs, "syscalls", event, prog, &link);

	return r ? r : bpf_link__destroy(link);
}

static void try_syscalls(struct probe *p, struct probe_row *row)
{
	int r;

	if (!can_attach(p, row))
		return;
	if (p->tracefs < 0) {
		say(row, PROBE_MISSING, "not tried: it needs tracefs");
		return;
	}
	r = attach_one(p, p->skel->progs.enter_ioctl, "sys_enter_ioctl");
	r = r ? r : attach_one(p, p->skel->progs.exit_ioctl, "sys_exit_ioctl");
	if (r)
		say_bpf_error(row, r, "attaching to ioctl");
	else
		say(row, PROBE_OK, "entry and return of ioctl");
}

static void try_sched(struct probe *p, struct probe_row *row)
{
	if (!can_attach(p, row))
		return;
	const struct bpf_program *const progs[] = {
		p->skel->progs.follow_fork, p->skel->progs.follow_exit, p->skel->progs.follow_free};
	for (size_t i = 0; i < sizeof(progs) / sizeof(progs[0]); i++) {
		struct bpf_link *link = bpf_program__attach(progs[i]);

		if (!link) {
			say_bpf_error(row, -errno, "attaching to the scheduler's events");
			return;
		}
		bpf_link__destroy(link);
	}
	say(row, PROBE_OK, "fork, exit and end of processes");
}

static void try_fuse(struct probe *p, struct probe_row *row)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/fuse", p->dev);
	if (access(path, R_OK | W_OK) == 0)
		say(row, PROBE_OK, "%s", path);
	else
		say_error(row, -errno, path);
}

static bool is_device(const char *dev, const char *name)
{
	char path[PATH_MAX];
	struct stat st;

	if (host_device_number(name) < 0)
		return false;
	snprintf(path, sizeof(path), "%s/%s", dev, name);
	return stat(path, &st) == 0 && S_ISCHR(st.st_mode);
}

/* Devices below the root that a command of this environment would use. */
static void add_virtual(const struct probe *p, struct probe_row *row)
{
	size_t used = strlen(row->detail);
	char path[PATH_MAX];
	int n = 0;

	if (!p->root)
		return;
	for (int i = 0; i < MAX_DEVICES; i++) {
		(void)snprintf(path, sizeof(path), "%s/dev/neuron%d", p->root, i);
		n += access(path, F_OK) == 0;
	}
	(void)snprintf(row->detail + used, sizeof(row->detail) - used,
		"; %d below '%s' (" ENV_DEVICE_ROOT ")", n, p->root);
}

static void try_devices(struct probe *p, struct probe_row *row)
{
	const struct dirent *entry;
	DIR *dir = opendir(p->dev);
	int n = 0;

	if (!dir) {
		say_error(row, -errno, p->dev);
		return;
	}
	while ((entry = readdir(dir)))
		n += is_device(p->dev, entry->d_name);
	closedir(dir);
	say(row, n ? PROBE_OK : PROBE_MISSING, n == 1 ? "%d device" : "%d devices", n);
	add_virtual(p, row);
}

static void try_driver(struct probe *p, struct probe_row *row)
{
	size_t used;

	if (!p->host.driver[0])
		say(row, PROBE_MISSING, "module neuron is not loaded");
	else
		say(row, PROBE_OK, "%s", host_fact(&p->host, HOST_DRIVER));
	used = strlen(row->detail);
	if (p->root)
		(void)snprintf(row->detail + used, sizeof(row->detail) - used,
			"; %s below '%s' (" ENV_DEVICE_ROOT ")", host_fact(&p->seen, HOST_DRIVER),
			p->root);
}

/* Nothing can be missing here: they are names, for those who compare. */
static void try_instance(struct probe *p, struct probe_row *row)
{
	say(row, PROBE_OK, "%s", host_fact(&p->seen, HOST_INSTANCE));
}

static void try_node(struct probe *p, struct probe_row *row)
{
	say(row, PROBE_OK, "%s", host_fact(&p->seen, HOST_NODE));
}

/* ---- the table ---------------------------------------------------------------------------- */

static const struct probe_step steps[] = {
	{"kernel", ALWAYS, try_kernel, "the hooks cannot be loaded"},
	{"lockdown", ALWAYS, try_lockdown, "BPF programs may not read kernel memory"},
	{"kernel BTF", ALWAYS, try_btf,
		"programs cannot be fitted to this kernel (CONFIG_DEBUG_INFO_BTF)"},
	{"BPF ring buffer", ALWAYS, try_ring, "records cannot leave the kernel"},
	{"BPF programs", ALWAYS, try_load, "no kernel events"},
	{"tracefs", WITHOUT_DRIVER_HOOKS, try_tracefs, "system-call tracepoints cannot be found"},
	{"system-call hooks", WITHOUT_DRIVER_HOOKS, try_syscalls,
		"ioctls are not seen (CONFIG_FTRACE_SYSCALLS)"},
	{"process hooks", ALWAYS, try_sched, "children of the command cannot be followed"},
	{"FUSE", NEVER, try_fuse, "no virtual device: ntrace-vdev cannot run"},
	{"neuron devices", NEVER, try_devices,
		"until there is one, which a recording waits for, only a virtual device can be "
		"recorded"},
	{"neuron driver", NEVER, try_driver,
		"until it is loaded, which a recording waits for, only a virtual device can be "
		"recorded"},
	{"instance", NEVER, try_instance, "recordings have another name"},
	{"node name", NEVER, try_node, "recordings have another name"},
};

/* ---- hooks inside of the driver: a row for each family ------------------------------------- */

/* What came of the steps of a family, best first: "kprobe (fentry: no BTF)". */
static void say_family(struct probe_row *row, const struct rec_ladder_step *ladder,
	const char *family, const char *reached)
{
	char others[128] = "";
	size_t used = 0;

	for (const struct rec_ladder_step *s = ladder; s->family; s++) {
		if (strcmp(s->family, family) != 0 || strcmp(s->result, REC_REACHED) == 0 ||
			used >= sizeof(others))
			continue;
		(void)snprintf(others + used, sizeof(others) - used, "%s%s: %s", used ? ", " : "",
			s->step, s->result);
		used = strlen(others);
	}
	(void)snprintf(row->name, sizeof(row->name), "driver hooks: %s", family);
	say(row, reached ? PROBE_OK : PROBE_MISSING, "%s%s%s%s", reached ? reached : "none",
		used ? " (" : "", others, used ? ")" : "");
}

/* One that the driver has no need of is not missing. */
static void try_family(struct probe_row *row, const struct driver_hooks *h, const char *family)
{
	const char *since = blind_family_since(family, driver_hooks_module(h)->version);
	enum hook_level level = driver_hooks_level(h, family);

	*row = (struct probe_row){.consequence = blind_family_without(family)};
	say_family(row, driver_hooks_ladder(h), family, hook_level_name(level));
	if (since && level == HOOK_LEVELS)
		say(row, PROBE_OK, "not needed: drivers do that from %s on", since);
}

static void say_level(
	const struct probe *p, struct probe_row *row, enum probe_state state, const char *detail)
{
	*row = (struct probe_row){.name = "level of hooks",
		.required = true,
		.consequence = "hooks of no other level than NTRACE_HOOKS says are put on"};
	if (state == PROBE_OK)
		say(row, state, "%s (NTRACE_HOOKS)", p->level);
	else
		say(row, state, "%s", detail);
}

static int try_driver_hooks(struct probe *p, struct probe_row *rows, int max)
{
	bool any = !p->level || strcmp(p->level, "auto") == 0;
	struct driver_hooks *h;
	char why[256];
	int n = 0;

	if (!p->skel || max < 1)
		return 0;
	const struct driver_hooks_options o = {
		.all_processes = true, .shared = p->skel->obj, .sys = p->sys, .force = p->level};

	if (driver_hooks_open(&o, &h, why, sizeof(why)) < 0) {
		if (!any)
			say_level(p, &rows[n++], PROBE_MISSING, why);
		return n;
	}
	if (!any)
		say_level(p, &rows[n++], PROBE_OK, NULL);
	for (unsigned f = 0; n < max && driver_hooks_module(h)->present; f++) {
		const char *family = driver_hooks_family(h, f);

		if (!family)
			break;
		try_family(&rows[n++], h, family);
	}
	p->sees_ioctls = driver_hooks_level(h, "ioctl") < HOOK_LEVEL_SYSCALL;
	driver_hooks_close(h);
	return n;
}

int probe_run(const struct probe_paths *paths, struct probe_row *rows, int max)
{
	struct probe p = {
		.sys = paths->sys ? paths->sys : "/sys",
		.dev = paths->dev ? paths->dev : "/dev",
		.tracefs = -1,
		.level = paths->hooks,
	};
	const char *root = getenv(ENV_DEVICE_ROOT);
	int n = 0, tried;

	p.root = root && *root ? root : NULL;
	host_read(&p.host, NULL, p.sys);
	host_read(&p.seen, p.root, p.sys);
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]) && n < max; i++) {
		struct probe_row *row = &rows[n++];

		*row = (struct probe_row){.consequence = steps[i].consequence};
		(void)snprintf(row->name, sizeof(row->name), "%s", steps[i].name);
		bpf_log_capture();
		steps[i].run(&p, row);
	}
	tried = n;
	n += try_driver_hooks(&p, rows + n, max - n);
	for (int i = 0; i < tried; i++)
		rows[i].required = steps[i].need == ALWAYS ||
				   (steps[i].need == WITHOUT_DRIVER_HOOKS && !p.sees_ioctls);
	ioctl_bpf__destroy(p.skel);
	cleanup_close(&p.tracefs);
	return n;
}

const char *probe_state_name(enum probe_state state)
{
	static const char *const names[] = {
		[PROBE_OK] = "ok", [PROBE_MISSING] = "missing", [PROBE_DENIED] = "denied"};

	return names[state];
}

bool probe_can_record(const struct probe_row *rows, int count)
{
	for (int i = 0; i < count; i++)
		if (rows[i].required && rows[i].state != PROBE_OK)
			return false;
	return true;
}
