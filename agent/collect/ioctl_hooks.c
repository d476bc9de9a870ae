/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ioctl_hooks.c - loads and drains the system-call level hooks.
 *
 * How far has everything been seen?  A call is on exactly one of these places, in this order: on
 * its CPU (nev_cpu.entering_ns), in the map of open calls, in the ring buffer.  It is put into the
 * next place before it leaves the last.  So a drain looks in the same order: it reads the clock,
 * then the CPUs, then walks the open calls, then notes the end of the ring buffer and reads up to
 * there.  A call that started before the clock was read and was met nowhere does not exist, and the
 * watermark is the older of the clock and the oldest call met on a CPU or open.  If a record that
 * is still being written bars the way to the noted end, the watermark stays where it was.
 *
 * A call that is open for long does not hold the watermark: after OPEN_LONG_NS it is announced, and
 * what is left to come of it is its end, which is not older than the clock that was read.  So the
 * watermark is never further back than that and one drain, 200 ms at the most.
 *
 * Counters and answers come through mapped memory and the walk runs as a program: the kernel skips
 * a hook whose CPU is inside a map operation of a system call, so a reader that looked values up by
 * system call would lose what it reads about.
 */
#include "agent/collect/ioctl_hooks.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "agent/collect/bpf_support.h"
#include "agent/collect/host.h"
#include "bpf/ioctl.skel.h"
#include "runtime/base/clock.h"
#include "runtime/base/file.h"
#include "vmlinux/ioctl_table.h"

/* The programs publish entering_ns with plain stores, in the order that x86 keeps. */
#ifndef __x86_64__
#error "the order of stores in bpf/ioctl.bpf.c is that of x86"
#endif

#define RING_DEFAULT (4u << 20)
#define RING_MAX (1ull << 30)
#define INFLIGHT_DEFAULT 16384u
#define OPEN_LONG_NS 100000000ull
/* The clock may run ahead of a store that another CPU has made but not yet shown. */
#define GUARD_NS 10000ull
#define BATCH_BYTES (64u << 10)
#define RECORD_MAX (sizeof(struct nev_ioctl) + NEV_MAX_ARGS * sizeof(uint64_t))
#define MAX_LINKS 4

struct known_device {
	uint16_t index;
	bool is_virtual;
};

struct ioctl_hooks {
	struct ioctl_bpf *skel;
	struct bpf_link *links[MAX_LINKS];
	const char *names[MAX_LINKS + 1];
	unsigned link_count;
	struct rec_ladder_step ladder[MAX_LINKS + 1];
	unsigned step_count;

	struct bpf_ring ring;
	struct nev_cpu *cpus;
	size_t cpus_bytes;
	unsigned cpu_count;
	struct nev_walk *walk;
	size_t walk_bytes;

	struct known_device devices[NEV_MAX_DEVICES];
	int device_count;
	bool scanned;

	uint64_t watermark_ns;
	uint64_t received;
	uint32_t start_seq;

	uint8_t batch[BATCH_BYTES] __attribute__((aligned(8)));
	size_t batch_used;
};

__attribute__((format(printf, 3, 4))) static void explain(
	char *why, size_t why_size, const char *format, ...)
{
	va_list args;

	if (!why_size)
		return;
	va_start(args, format);
	vsnprintf(why, why_size, format, args);
	va_end(args);
}

/* ---- opening ------------------------------------------------------------------------------ */

/* The ring sizes the kernel takes are powers of two from a page on; 1 GiB is our own limit. */
static uint64_t nearest_ring_size(uint64_t bytes)
{
	uint64_t below = (uint64_t)sysconf(_SC_PAGESIZE);

	while (below * 2 <= bytes && below < RING_MAX)
		below *= 2;
	if (bytes <= below || below == RING_MAX)
		return below;
	return bytes - below > 2 * below - bytes ? 2 * below : below;
}

static int check_options(const struct ioctl_hooks_options *o, char *why, size_t why_size)
{
	uint64_t legal = nearest_ring_size(o->ring_bytes);

	if (o->ring_bytes && o->ring_bytes != legal) {
		explain(why, why_size,
			"a ring buffer of %u bytes is not possible: it must be a power of two and "
			"a "
			"multiple of the page size; the nearest is %llu",
			o->ring_bytes, (unsigned long long)legal);
		return -EINVAL;
	}
	if (access(BPF_KERNEL_BTF, R_OK) < 0) {
		explain(why, why_size,
			"the kernel offers no type information (%s): it must be built with "
			"CONFIG_DEBUG_INFO_BTF",
			BPF_KERNEL_BTF);
		return -ENOENT;
	}
	return 0;
}

static int refused(int error, const char *what, char *why, size_t why_size)
{
	const char *last = bpf_log_last();

	if (error == -EPERM || error == -EACCES) {
		explain(why, why_size, "%s is not permitted: run as root, or with " BPF_PRIVILEGES,
			what);
		return -EPERM;
	}
	explain(why, why_size, "%s failed: %s%s%s", what, strerror(-error), *last ? ": " : "",
		last);
	return error;
}

static int size_maps(struct ioctl_hooks *h, const struct ioctl_hooks_options *o)
{
	int r = libbpf_num_possible_cpus();

	if (r < 0)
		return r;
	h->cpu_count = (unsigned)r;
	h->skel->rodata->all_processes = o->all_processes;
	r = bpf_map__set_max_entries(
		h->skel->maps.ring, o->ring_bytes ? o->ring_bytes : RING_DEFAULT);
	r = r ? r
	      : bpf_map__set_max_entries(h->skel->maps.inflight,
			o->inflight_limit ? o->inflight_limit : INFLIGHT_DEFAULT);
	r = r ? r : bpf_map__set_max_entries(h->skel->maps.requests, (uint32_t)ioctl_row_count);
	r = r ? r : bpf_map__set_max_entries(h->skel->maps.cpus, h->cpu_count);
	return r ? r : bpf_program__set_autoload(h->skel->progs.follow_fork, !o->all_processes);
}

static int fill_requests(struct ioctl_hooks *h)
{
	for (size_t i = 0; i < ioctl_row_count; i++) {
		const struct ioctl_row *row = &ioctl_rows[i];
		unsigned fields = ioctl_row_fields(row);
		struct nev_request q = {.nargs = (uint16_t)ioctl_class(fields)};
		int r;

		for (unsigned f = 0; f < fields; f++) {
			unsigned end = row->fields[f].offset + row->fields[f].width;

			q.args[f].offset = row->fields[f].offset;
			q.args[f].width = row->fields[f].width;
			if (end > q.span)
				q.span = (uint16_t)end;
		}
		r = bpf_map__update_elem(h->skel->maps.requests, &row->cmd, sizeof(row->cmd), &q,
			sizeof(q), BPF_NOEXIST);
		if (r)
			return r;
	}
	return 0;
}

static int map_memory(struct ioctl_hooks *h)
{
	const struct bpf_map *ring = h->skel->maps.ring;
	int r = bpf_ring_open(&h->ring, bpf_map__fd(ring), bpf_map__max_entries(ring));

	if (r)
		return r;
	h->cpus = bpf_array_map(bpf_map__fd(h->skel->maps.cpus), h->cpu_count,
		sizeof(struct nev_cpu), &h->cpus_bytes);
	if (!h->cpus)
		return -errno;
	h->walk = bpf_array_map(
		bpf_map__fd(h->skel->maps.walk), 1, sizeof(struct nev_walk), &h->walk_bytes);
	return h->walk ? 0 : -errno;
}

static int attached(struct ioctl_hooks *h, struct bpf_link *link, const char *name)
{
	int r = (int)libbpf_get_error(link);

	if (r)
		return r;
	h->names[h->link_count] = name;
	h->links[h->link_count++] = link;
	return 0;
}

static int attach_syscall(struct ioctl_hooks *h, int tracefs, struct bpf_program *prog,
	const char *event, const char *name)
{
	struct bpf_link *link;
	int r = tracepoint_attach(tracefs, "syscalls", event, prog, &link);

	return r ? r : attached(h, link, name);
}

/* A step that all hooks of a family have taken. */
static void reached(struct ioctl_hooks *h, const char *family, const char *step)
{
	h->ladder[h->step_count++] = (struct rec_ladder_step){family, step, "reached"};
}

/* The filter first and the entry last: what enters will also be seen to return. */
static int attach_all(struct ioctl_hooks *h, bool all_processes, const char **ret_what)
{
	_cleanup_close_ int tracefs = tracefs_open(NULL);
	int r = 0;

	*ret_what = "reaching the kernel's tracepoints (tracefs)";
	if (tracefs < 0)
		return tracefs;
	*ret_what = "attaching to sched_process_exit";
	r = attached(
		h, bpf_program__attach(h->skel->progs.follow_exit), "tp_btf:sched_process_exit");
	if (!r && !all_processes) {
		*ret_what = "attaching to sched_process_fork";
		r = attached(h, bpf_program__attach(h->skel->progs.follow_fork),
			"tp_btf:sched_process_fork");
	}
	if (r)
		return r;
	reached(h, "process", "tp_btf");
	*ret_what = "attaching to the ioctl system call (CONFIG_FTRACE_SYSCALLS)";
	r = attach_syscall(h, tracefs, h->skel->progs.exit_ioctl, "sys_exit_ioctl",
		"tracepoint:syscalls:sys_exit_ioctl");
	r = r ? r
	      : attach_syscall(h, tracefs, h->skel->progs.enter_ioctl, "sys_enter_ioctl",
			"tracepoint:syscalls:sys_enter_ioctl");
	if (!r)
		reached(h, "ioctl", "tracepoint");
	return r;
}

static int load(struct ioctl_hooks *h, const struct ioctl_hooks_options *o, const char **ret_what)
{
	int r;

	*ret_what = "opening the BPF programs";
	h->skel = ioctl_bpf__open();
	if (!h->skel)
		return -errno;
	r = size_maps(h, o);
	if (r)
		return r;
	*ret_what = "loading the BPF programs";
	r = ioctl_bpf__load(h->skel);
	if (r)
		return r;
	*ret_what = "setting the BPF maps up";
	r = fill_requests(h);
	r = r ? r : map_memory(h);
	return r ? r : attach_all(h, o->all_processes, ret_what);
}

int ioctl_hooks_open(const struct ioctl_hooks_options *options, struct ioctl_hooks **ret, char *why,
	size_t why_size)
{
	const char *what = "";
	struct ioctl_hooks *h;
	int r = check_options(options, why, why_size);

	if (r)
		return r;
	h = calloc(1, sizeof(*h));
	if (!h) {
		explain(why, why_size, "out of memory");
		return -ENOMEM;
	}
	bpf_log_capture();
	r = load(h, options, &what);
	if (r) {
		r = refused(r, what, why, why_size);
		ioctl_hooks_close(h);
		return r;
	}
	*ret = h;
	return 0;
}

/* Detaches the newest hooks until `keep` are left: the entry comes first. */
static void detach(struct ioctl_hooks *h, unsigned keep)
{
	while (h->link_count > keep)
		bpf_link__destroy(h->links[--h->link_count]);
}

void ioctl_hooks_close(struct ioctl_hooks *h)
{
	if (!h)
		return;
	detach(h, 0);
	bpf_ring_close(&h->ring);
	if (h->cpus)
		munmap(h->cpus, h->cpus_bytes);
	if (h->walk)
		munmap(h->walk, h->walk_bytes);
	ioctl_bpf__destroy(h->skel);
	free(h);
}

const char *const *ioctl_hooks_names(const struct ioctl_hooks *h)
{
	return h->names;
}

const struct rec_ladder_step *ioctl_hooks_ladder(const struct ioctl_hooks *h)
{
	return h->ladder;
}

/* ---- what to watch ------------------------------------------------------------------------ */

static void know_device(struct ioctl_hooks *h, uint16_t index, bool is_virtual)
{
	for (int i = 0; i < h->device_count; i++)
		if (h->devices[i].index == index)
			return;
	if (h->device_count < NEV_MAX_DEVICES)
		h->devices[h->device_count++] =
			(struct known_device){.index = index, .is_virtual = is_virtual};
}

/* The kernel writes a device number as major << 20 | minor; stat(2) tells it in another way. */
static uint32_t kernel_dev(dev_t dev)
{
	return major(dev) << 20 | minor(dev);
}

/* below_root: the tree of a virtual device, where the file need not be a character device. */
static int add_device(struct ioctl_hooks *h, int dir, const char *name, bool below_root)
{
	struct nev_file_key key = {0};
	int index = host_device_number(name);
	uint32_t value = (uint32_t)index;
	struct stat st;
	int r;

	if (index < 0 || fstatat(dir, name, &st, 0) < 0)
		return 0; /* not ours, or gone again */
	if (S_ISCHR(st.st_mode)) {
		key.dev = kernel_dev(st.st_rdev);
		key.is_chr = 1;
	} else if (below_root && S_ISREG(st.st_mode)) {
		key.ino = st.st_ino;
		key.dev = kernel_dev(st.st_dev);
	} else {
		return 0;
	}
	r = bpf_map__update_elem(
		h->skel->maps.devices, &key, sizeof(key), &value, sizeof(value), BPF_ANY);
	if (!r)
		know_device(h, (uint16_t)index, !key.is_chr);
	return r;
}

static void cleanup_dir(DIR **dir)
{
	if (*dir)
		closedir(*dir);
}

int ioctl_hooks_scan_devices(struct ioctl_hooks *h, const char *root)
{
	_cleanup_(cleanup_dir) DIR *dir = NULL;
	bool below_root = root && *root;
	const struct dirent *entry;
	char path[PATH_MAX];

	if (snprintf(path, sizeof(path), "%s/dev", below_root ? root : "") >= (int)sizeof(path))
		return -ENAMETOOLONG;
	dir = opendir(path);
	if (!dir)
		return errno == ENOENT && h->scanned ? h->device_count : -errno;
	h->scanned = true;
	while ((entry = readdir(dir))) {
		int r = add_device(h, dirfd(dir), entry->d_name, below_root);

		if (r)
			return r;
	}
	return h->device_count;
}

uint16_t ioctl_hooks_device(const struct ioctl_hooks *h, int i)
{
	return h->devices[i].index;
}

bool ioctl_hooks_device_is_virtual(const struct ioctl_hooks *h, int i)
{
	return h->devices[i].is_virtual;
}

int ioctl_hooks_track(struct ioctl_hooks *h, pid_t tgid)
{
	uint32_t key = (uint32_t)tgid, one = 1;

	return bpf_map__update_elem(
		h->skel->maps.tracked, &key, sizeof(key), &one, sizeof(one), BPF_ANY);
}

unsigned ioctl_hooks_tracked(const struct ioctl_hooks *h)
{
	uint32_t key, *from = NULL;
	unsigned n = 0;

	while (bpf_map__get_next_key(h->skel->maps.tracked, from, &key, sizeof(key)) == 0) {
		from = &key;
		n++;
	}
	return n;
}

bool ioctl_hooks_tracks(const struct ioctl_hooks *h, pid_t tgid)
{
	uint32_t key = (uint32_t)tgid, value;

	return bpf_map__lookup_elem(
		       h->skel->maps.tracked, &key, sizeof(key), &value, sizeof(value), 0) == 0;
}

/* ---- draining ----------------------------------------------------------------------------- */

static int flush(struct ioctl_hooks *h, ioctl_hooks_fn on_batch, void *ctx)
{
	size_t size = h->batch_used;

	h->batch_used = 0;
	return size ? on_batch(ctx, h->batch, size) : 0;
}

/* Appends to the batch, which always has room for the longest record; hands it on before it has
 * not. */
static int append(
	struct ioctl_hooks *h, const void *record, size_t size, ioctl_hooks_fn on_batch, void *ctx)
{
	if (size > RECORD_MAX)
		return -EPROTO;
	memcpy(h->batch + h->batch_used, record, size);
	h->batch_used += size;
	if (h->batch_used + RECORD_MAX <= sizeof(h->batch))
		return 0;
	bpf_ring_release(&h->ring);
	return flush(h, on_batch, ctx);
}

static uint64_t load_relaxed(const void *p)
{
	return __atomic_load_n((const uint64_t *)p, __ATOMIC_RELAXED);
}

static uint64_t load_acquire(const void *p)
{
	return __atomic_load_n((const uint64_t *)p, __ATOMIC_ACQUIRE);
}

/* Start of the oldest call that is just being entered; a CPU that is reading its clock gives 1. */
static uint64_t oldest_entering(const struct ioctl_hooks *h)
{
	uint64_t oldest = UINT64_MAX;

	for (unsigned i = 0; i < h->cpu_count; i++) {
		uint64_t t = load_acquire(&h->cpus[i].entering_ns);

		if (t && t < oldest)
			oldest = t;
	}
	return oldest;
}

/* True if no call can be open.  `entered` is read last: what it misses entered after this function.
 */
static bool none_open(const struct ioctl_hooks *h)
{
	static const uint8_t left[] = {
		NEV_C_DONE, NEV_C_LOST_RING_FULL, NEV_C_LOST_INFLIGHT_FULL, NEV_C_LOST_EXIT};
	uint64_t out = 0, in = 0;

	for (unsigned i = 0; i < h->cpu_count; i++)
		for (size_t c = 0; c < sizeof(left); c++)
			out += load_acquire(&h->cpus[i].counters[left[c]]);
	for (unsigned i = 0; i < h->cpu_count; i++)
		in += load_acquire(&h->cpus[i].counters[NEV_C_ENTERED]);
	return in == out;
}

static int walk(const struct ioctl_hooks *h, uint64_t before_ns)
{
	LIBBPF_OPTS(bpf_test_run_opts, opts);
	int r;

	h->walk->before_ns = before_ns;
	r = bpf_prog_test_run_opts(bpf_program__fd(h->skel->progs.walk_inflight), &opts);
	if (r)
		return r < 0 ? r : -EIO;
	return opts.retval ? -EIO : 0;
}

static int announce(struct ioctl_hooks *h, const struct nev_inflight *in, uint64_t now,
	ioctl_hooks_fn on_batch, void *ctx)
{
	size_t args =
		in->nargs <= NEV_MAX_ARGS ? in->nargs * sizeof(in->args[0]) : sizeof(in->args);
	uint8_t record[RECORD_MAX];
	struct nev_ioctl head = {
		.hdr = {.time_ns = now,
			.seq = h->start_seq++,
			.cpu = NEV_CPU_READER,
			.type = NEV_IOCTL_START,
			.nargs = (uint8_t)(args / sizeof(in->args[0]))},
		.start_ns = in->start_ns,
		.tgid = in->tgid,
		.tid = in->tid,
		.request = in->request,
		.device = in->device,
		.flags = in->flags,
		.fd = in->fd,
	};

	memcpy(record, &head, sizeof(head));
	memcpy(record + sizeof(head), in->args, args);
	return append(h, record, sizeof(head) + args, on_batch, ctx);
}

/* Announces the calls that have been open for long; returns how many.  *oldest_ns is lowered to the
 * start of the oldest open call that is not announced. */
static long drain_open(struct ioctl_hooks *h, uint64_t now, uint64_t *oldest_ns,
	ioctl_hooks_fn on_batch, void *ctx)
{
	uint32_t n;
	int r;

	if (none_open(h))
		return 0;
	r = walk(h, now - OPEN_LONG_NS);
	if (r)
		return r;
	if (h->walk->oldest_ns < *oldest_ns)
		*oldest_ns = h->walk->oldest_ns;
	n = h->walk->found_count;
	for (uint32_t i = 0; i < n && i < NEV_WALK_MAX; i++) {
		r = announce(h, &h->walk->found[i], now, on_batch, ctx);
		if (r)
			return r;
	}
	return (long)n;
}

static long drain_ring(struct ioctl_hooks *h, uint64_t end, ioctl_hooks_fn on_batch, void *ctx)
{
	const void *record;
	size_t size;
	long n = 0;
	int r = 0;

	while (!r && bpf_ring_next(&h->ring, end, &record, &size)) {
		r = append(h, record, size, on_batch, ctx);
		n++;
	}
	bpf_ring_release(&h->ring);
	h->received += (uint64_t)n;
	return r ? r : n;
}

long ioctl_hooks_drain(
	struct ioctl_hooks *h, ioctl_hooks_fn on_batch, void *ctx, uint64_t *ret_watermark)
{
	uint64_t now = clock_boot().ns, oldest = oldest_entering(h), end;
	long started = drain_open(h, now, &oldest, on_batch, ctx), done;
	int r;

	if (started < 0)
		return started;
	end = bpf_ring_end(&h->ring);
	done = drain_ring(h, end, on_batch, ctx);
	if (done < 0)
		return done;
	r = flush(h, on_batch, ctx);
	if (r)
		return r;
	if (now - GUARD_NS < oldest)
		oldest = now - GUARD_NS;
	if (h->ring.pos >= end && oldest > h->watermark_ns)
		h->watermark_ns = oldest;
	*ret_watermark = h->watermark_ns;
	return started + done;
}

/* Detaches the hooks above `keep`, waits until they run nowhere any more, drains. */
static int stop_above(struct ioctl_hooks *h, unsigned keep, ioctl_hooks_fn on_batch, void *ctx,
	uint64_t *ret_watermark)
{
	long n = 0;

	if (h->link_count > keep) {
		detach(h, keep);
		n = bpf_programs_wait();
	}
	n = n ? n : ioctl_hooks_drain(h, on_batch, ctx, ret_watermark);
	return n < 0 ? (int)n : 0;
}

int ioctl_hooks_stop(
	struct ioctl_hooks *h, ioctl_hooks_fn on_batch, void *ctx, uint64_t *ret_watermark)
{
	unsigned all_but_entry = h->link_count ? h->link_count - 1 : 0;
	int r = stop_above(h, all_but_entry, on_batch, ctx, ret_watermark);

	return r ? r : stop_above(h, 0, on_batch, ctx, ret_watermark);
}

uint64_t ioctl_hooks_left(const struct ioctl_hooks *h)
{
	return bpf_ring_unread(&h->ring);
}

/* ---- counters ----------------------------------------------------------------------------- */

int ioctl_hooks_counters(const struct ioctl_hooks *h, uint64_t ret[NEV_C_MAX], uint64_t *ret_open,
	uint64_t *ret_received)
{
	int r = walk(h, 0);

	if (r)
		return r;
	for (int c = 0; c < NEV_C_MAX; c++) {
		ret[c] = 0;
		for (unsigned i = 0; i < h->cpu_count; i++)
			ret[c] += load_relaxed(&h->cpus[i].counters[c]);
	}
	*ret_open = h->walk->open;
	*ret_received = h->received;
	return 0;
}

uint64_t ioctl_hooks_missed(const struct ioctl_hooks *h)
{
	const struct bpf_program *progs[] = {h->skel->progs.enter_ioctl, h->skel->progs.exit_ioctl};
	uint64_t missed = 0;

	for (size_t i = 0; i < sizeof(progs) / sizeof(progs[0]); i++) {
		struct bpf_prog_info info = {0};
		uint32_t size = sizeof(info);

		if (bpf_obj_get_info_by_fd(bpf_program__fd(progs[i]), &info, &size) == 0)
			missed += info.recursion_misses;
	}
	return missed;
}
