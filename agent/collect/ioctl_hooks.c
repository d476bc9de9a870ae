/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ioctl_hooks.c - loads and attaches the system-call level hooks, and says what they watch.  What they
 * write is read in ioctl_drain.c.
 */
#include "agent/collect/ioctl_parts.h"

#include <assert.h>
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

#include "bpf/ioctl.skel.h"
#include "runtime/base/file.h"
#include "runtime/base/host.h"
#include "vmlinux/ioctl_table.h"

#define RING_DEFAULT (4u << 20)
#define RING_DEVICE (256u << 10) /* 16 KiB for each of the 16 queues of an engine in use */
#define RING_DEFAULT_MAX (64u << 20)
#define RING_MAX (1ull << 30)
#define INFLIGHT_DEFAULT 16384u

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
uint64_t ioctl_hooks_ring_size(uint64_t bytes)
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
	uint64_t legal = ioctl_hooks_ring_size(o->ring_bytes);

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
	if (bpf_is_locked_down())
		explain(why, why_size,
			"%s failed: the kernel is locked down (mode confidentiality "
			"of " BPF_LOCKDOWN "), and BPF programs may not read its memory",
			what);
	else
		explain(why, why_size, "%s failed: %s%s%s", what, strerror(-error),
			*last ? ": " : "", last);
	return error;
}

static_assert(NEV_RATE_WINDOW_NS == 1000000000u, "the ceiling that is asked for is per second");

static uint32_t default_ring(unsigned devices)
{
	uint32_t bytes = RING_DEFAULT;

	while (bytes < RING_DEFAULT_MAX && bytes / RING_DEVICE < devices)
		bytes *= 2;
	return bytes;
}

static int size_maps(struct ioctl_hooks *h, const struct ioctl_hooks_options *o)
{
	int r = libbpf_num_possible_cpus();

	if (r < 0)
		return r;
	h->cpu_count = (unsigned)r;
	h->skel->rodata->all_processes = o->all_processes;
	h->rate_ceiling = o->rate;
	h->skel->rodata->rate_ceiling = h->rate_ceiling;
	ioctl_numbers((uint64_t *)(void *)h->skel->rodata->known_numbers);
	r = bpf_map__set_max_entries(
		h->skel->maps.ring, o->ring_bytes ? o->ring_bytes : default_ring(o->devices));
	r = r ? r
	      : bpf_map__set_max_entries(h->skel->maps.inflight,
			o->inflight_limit ? o->inflight_limit : INFLIGHT_DEFAULT);
	r = r ? r : bpf_map__set_max_entries(h->skel->maps.requests, (uint32_t)ioctl_row_count);
	r = r ? r : bpf_map__set_max_entries(h->skel->maps.cpus, h->cpu_count);
	return r ? r : bpf_program__set_autoload(h->skel->progs.follow_fork, !o->all_processes);
}

struct nev_request ioctl_request(const struct ioctl_row *row)
{
	unsigned fields = ioctl_row_fields(row);
	struct nev_request q = {.nargs = (uint16_t)ioctl_class(fields)};

	for (unsigned f = 0; f < fields; f++) {
		const struct ioctl_field *x = &row->fields[f];
		unsigned end = x->offset + (x->is_out ? 8u : x->width);

		if (x->is_out) {
			q.out = x->offset;
			q.out_index = (uint16_t)f;
		} else {
			q.args[f].offset = x->offset;
			q.args[f].width = x->width;
		}
		if (end > q.span)
			q.span = (uint16_t)end;
	}
	return q;
}

static int fill_requests(struct ioctl_hooks *h)
{
	for (size_t i = 0; i < ioctl_row_count; i++) {
		const struct ioctl_row *row = &ioctl_rows[i];
		struct nev_request q = ioctl_request(row);
		int r = bpf_map__update_elem(h->skel->maps.requests, &row->cmd, sizeof(row->cmd),
			&q, sizeof(q), BPF_NOEXIST);

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

static int load(struct ioctl_hooks *h, const struct ioctl_hooks_options *o, const char **ret_what,
	char *why, size_t why_size)
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
	return r ? r : ioctl_hooks_attach(h, o, ret_what, why, why_size);
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
	h->all_processes = options->all_processes;
	h->stats_fd = options->cost ? bpf_enable_stats(BPF_STATS_RUN_TIME) : -1;
	r = load(h, options, &what, why, why_size);
	if (r) {
		/* NULL: why is there already. */
		r = what ? refused(r, what, why, why_size) : r;
		ioctl_hooks_close(h);
		return r;
	}
	*ret = h;
	return 0;
}

int ioctl_hooks_open_none(int error, struct ioctl_hooks **ret)
{
	struct ioctl_hooks *h = calloc(1, sizeof(*h));

	if (!h)
		return -ENOMEM;
	h->stats_fd = -1;
	ioctl_hooks_list_none(h, error);
	*ret = h;
	return 0;
}

void ioctl_hooks_close(struct ioctl_hooks *h)
{
	if (!h)
		return;
	ioctl_hooks_detach(h, true);
	driver_hooks_close(h->driver);
	bpf_ring_close(&h->ring);
	if (h->cpus)
		munmap(h->cpus, h->cpus_bytes);
	if (h->walk)
		munmap(h->walk, h->walk_bytes);
	ioctl_bpf__destroy(h->skel);
	cleanup_close(&h->stats_fd);
	free(h);
}

uint32_t ioctl_hooks_generation(const struct ioctl_hooks *h)
{
	return h->driver ? driver_hooks_generation(h->driver) : 0;
}

const struct driver_module *ioctl_hooks_module(const struct ioctl_hooks *h)
{
	return h->driver ? driver_hooks_module(h->driver) : NULL;
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
	/* The driver's own hooks need no list of files. */
	r = !h->skel || (key.is_chr && h->driver_has_ioctl)
		    ? 0
		    : bpf_map__update_elem(h->skel->maps.devices, &key, sizeof(key), &value,
			      sizeof(value), BPF_ANY);
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
	if (ioctl_hooks_settle(h) < 0)
		return h->syscall_error;
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
	uint32_t key = (uint32_t)tgid, lives = NEV_TRACKED_LIVES;

	if (!h->skel)
		return 0;
	return bpf_map__update_elem(
		h->skel->maps.tracked, &key, sizeof(key), &lives, sizeof(lives), BPF_ANY);
}

unsigned ioctl_hooks_tracked(const struct ioctl_hooks *h)
{
	uint32_t key, value, *from = NULL;
	unsigned n = 0;

	while (h->skel &&
		bpf_map__get_next_key(h->skel->maps.tracked, from, &key, sizeof(key)) == 0) {
		from = &key;
		n += bpf_map__lookup_elem(h->skel->maps.tracked, &key, sizeof(key), &value,
			     sizeof(value), 0) == 0 &&
		     value == NEV_TRACKED_LIVES;
	}
	return n;
}

bool ioctl_hooks_tracks(const struct ioctl_hooks *h, pid_t tgid)
{
	uint32_t key = (uint32_t)tgid, value;

	return h->skel && bpf_map__lookup_elem(h->skel->maps.tracked, &key, sizeof(key), &value,
				  sizeof(value), 0) == 0;
}
