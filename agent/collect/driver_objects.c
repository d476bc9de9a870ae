/* SPDX-License-Identifier: Apache-2.0 */
/*
 * driver_objects.c - loading and attaching: rows of hooks.def become programs in the kernel.
 */
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/collect/bpf_support.h"
#include "agent/collect/driver_parts.h"
#include "bpf/dma.skel.h"
#include "bpf/driver.skel.h"
#include "runtime/base/file.h"
#include "vmlinux/ioctl_table.h"

const struct hook_row hook_rows[] = {
#define LEVEL_fentry HOOK_LEVEL_FENTRY
#define LEVEL_kprobe HOOK_LEVEL_KPROBE
#define LEVEL_tracepoint HOOK_LEVEL_TRACEPOINT
#define HOOK(family, level, object, program, target, nargs)                          \
	{family, program, target, LEVEL_##level, HOOK_OBJECT_##object, (nargs)&ARGS, \
		((nargs)&LAYOUT) != 0, ((nargs)&LESS) != 0},
#define ARGS 0x3f
#define LESS 0x40
#define LAYOUT 0x80
#define OR_ONE_LESS(nargs) ((nargs) | LESS)
#define WITH_LAYOUT(nargs) ((nargs) | LAYOUT)
#include "agent/collect/hooks.def"
#undef WITH_LAYOUT
#undef OR_ONE_LESS
#undef LAYOUT
#undef LESS
#undef ARGS
#undef HOOK
};

const unsigned hook_row_count = sizeof(hook_rows) / sizeof(*hook_rows);

/* ---- which rows fit ------------------------------------------------------------------------ */

static bool is_clones(const struct hook_row *row)
{
	return row->target[strlen(row->target) - 1] == '*';
}

/* The names of the module's symbols, NUL-terminated one behind the other.  "" when they cannot be read.
 */
static void read_symbols(struct driver_hooks *h)
{
	FILE *f = fopen("/proc/kallsyms", "re"), *all;
	char line[512], name[256];

	all = open_memstream(&h->symbols, &h->symbols_size);
	while (f && all && fgets(line, sizeof(line), f))
		if (strstr(line, "\t[" DRIVER_MODULE "]") &&
			sscanf(line, "%*s %*s %255s", name) == 1)
			fwrite(name, strlen(name) + 1, 1, all);
	if (all)
		fclose(all);
	if (f)
		fclose(f);
}

/* Is `symbol` the function of this row, or a clone of it that still is all of it?  GCC may leave out arguments of
 * .constprop clones, which a known driver's does not; that of .isra clones are others.  */
static bool is_target(const struct driver_hooks *h, const struct hook_row *row, const char *symbol)
{
	size_t n = strlen(row->target) - (is_clones(row) ? 1 : 0);

	if (strncmp(symbol, row->target, n) != 0)
		return false;
	if (!symbol[n])
		return true;
	return is_clones(row) && h->module.is_known &&
	       strncmp(symbol + n, ".constprop.", 11) == 0 &&
	       !symbol[n + 11 + strspn(symbol + n + 11, "0123456789")];
}

/* The next symbol that a row is for, after `last` (NULL: the first); NULL: none. */
static const char *next_target(struct driver_hooks *h, const struct hook_row *row, const char *last)
{
	const char *end;

	if (!is_clones(row))
		return last ? NULL : row->target;
	if (!h->symbols)
		read_symbols(h);
	if (!h->symbols)
		return NULL;
	end = h->symbols + h->symbols_size;
	for (const char *s = last ? last + strlen(last) + 1 : h->symbols; s < end;
		s += strlen(s) + 1)
		if (is_target(h, row, s))
			return s;
	return NULL;
}

/* Has the target the arguments that the program was written for?  What BTF says counts; without it the
 * version must be one that was read. */
static const char *prototype_refused(const struct driver_hooks *h, const struct hook_row *row)
{
	char target[DRIVER_HOOK_NAME];
	int n = -ENOENT;

	snprintf(target, sizeof(target), "%.*s",
		(int)strlen(row->target) - (is_clones(row) ? 1 : 0), row->target);
	if (h->module_btf)
		n = row->level == HOOK_LEVEL_TRACEPOINT
			    ? driver_module_tracepoint_nargs(h->module_btf, target)
			    : driver_module_nargs(h->module_btf, target);
	if (n >= 0)
		return n == row->nargs || (row->or_less && n == row->nargs - 1)
			       ? NULL
			       : "unknown prototype";
	if (row->level == HOOK_LEVEL_FENTRY)
		return "no such function";
	return h->module.is_known ? NULL : "unknown prototype";
}

/* As driver_row_refused, of what stays so. */
static const char *row_unfit(struct driver_hooks *h, const struct hook_row *row)
{
	const char *why;

	if ((row->level == HOOK_LEVEL_FENTRY || row->layout) && !h->module_btf)
		return "no BTF";
	why = prototype_refused(h, row);
	if (!why && is_clones(row) && !next_target(h, row, NULL))
		why = "no such function";
	return why;
}

const char *driver_row_refused(struct driver_hooks *h, const struct hook_row *row)
{
	const char *why = row_unfit(h, row);

	if (!why && row->level == HOOK_LEVEL_KPROBE && h->kprobes_off)
		why = "kprobes are off";
	return why;
}

/* ---- loading ------------------------------------------------------------------------------- */

static struct bpf_object *open_driver(
	const struct driver_hooks_options *o, bool is_standin, void **ret)
{
	struct driver_bpf *skel = driver_bpf__open();

	if (!skel)
		return NULL;
	skel->rodata->all_processes = o->all_processes;
	skel->rodata->rate_ceiling = o->rate_ceiling;
	(void)is_standin; /* which of two has a call is_taken tells */
	ioctl_numbers((uint64_t *)(void *)skel->rodata->known_numbers);
	*ret = skel;
	return skel->obj;
}

static void close_driver(void *skel)
{
	driver_bpf__destroy(skel);
}

static struct bpf_object *open_dma(
	const struct driver_hooks_options *o, bool is_standin, void **ret)
{
	struct dma_bpf *skel = dma_bpf__open();

	if (!skel)
		return NULL;
	skel->rodata->all_processes = o->all_processes;
	skel->rodata->is_standin = is_standin;
	*ret = skel;
	return skel->obj;
}

static void close_dma(void *skel)
{
	dma_bpf__destroy(skel);
}

static const struct {
	struct bpf_object *(*open)(
		const struct driver_hooks_options *o, bool is_standin, void **ret);
	void (*close)(void *skel);
} objects[HOOK_OBJECTS] = {
	[HOOK_OBJECT_driver] = {open_driver, close_driver},
	[HOOK_OBJECT_dma] = {open_dma, close_dma},
};

/* What is there already under the name of a map; -1: nothing. */
static int shared_fd(const struct driver_hooks *h, const struct bpf_map *map)
{
	const char *name = bpf_map__name(map);
	const struct bpf_map *other =
		h->o.shared ? bpf_object__find_map_by_name(h->o.shared, name) : NULL;

	if (other)
		return bpf_map__fd(other);
	for (unsigned i = 0; i < h->map_count; i++)
		if (strcmp(h->maps[i].name, name) == 0)
			return h->maps[i].fd;
	return -1;
}

/* Has a map use that.  0 or -errno. */
static int share_map(const struct driver_hooks *h, struct bpf_map *map)
{
	int fd = shared_fd(h, map);

	return fd < 0 ? 0 : bpf_map__reuse_fd(map, fd);
}

/* Keeps the object's own maps for later instances. */
static int keep_maps(struct driver_hooks *h, struct bpf_object *obj)
{
	struct bpf_map *map;

	bpf_object__for_each_map(map, obj)
	{
		int fd;

		if (bpf_map__is_internal(map) || shared_fd(h, map) >= 0)
			continue;
		fd = h->map_count < DRIVER_MAX_MAPS ? dup(bpf_map__fd(map)) : -1;
		if (fd < 0)
			return -EMFILE;
		snprintf(h->maps[h->map_count].name, sizeof(h->maps[0].name), "%s",
			bpf_map__name(map));
		h->maps[h->map_count++].fd = fd;
	}
	return 0;
}

static bool is_wanted(const struct driver_hooks *h, const char *program, enum hook_object object,
	enum hook_level level, uint32_t families)
{
	for (unsigned i = 0; i < hook_row_count; i++)
		if (hook_rows[i].object == object && hook_rows[i].level == level &&
			strcmp(hook_rows[i].program, program) == 0 &&
			families >> driver_family_of(h, hook_rows[i].family) & 1)
			return true;
	return false;
}

static int load(struct driver_hooks *h, struct driver_instance *in, enum hook_level level,
	uint32_t families)
{
	struct bpf_program *prog;
	struct bpf_map *map;
	int r = 0;

	bpf_object__for_each_map(map, in->obj)
	{
		r = bpf_map__is_internal(map) ? 0 : share_map(h, map);
		if (r)
			return r;
	}
	bpf_object__for_each_program(prog, in->obj)
	{
		r = bpf_program__set_autoload(
			prog, is_wanted(h, bpf_program__name(prog), in->object, level, families));
		if (r)
			return r;
	}
	r = bpf_object__load(in->obj);
	return r ? r : keep_maps(h, in->obj);
}

static void unload(struct driver_hooks *h, struct driver_instance *in)
{
	if (in->obj) {
		bpf_cost_of_programs(in->obj, &h->cost);
		h->missed += bpf_missed_of_programs(in->obj);
		objects[in->object].close(in->skel);
	}
	in->obj = NULL;
}

static int open_instance(struct driver_hooks *h, struct driver_instance *in)
{
	int r;

	bpf_log_capture();
	in->obj = objects[in->object].open(&h->o, in->is_standin, &in->skel);
	r = in->obj ? load(h, in, in->level, in->families) : -errno;
	if (r) {
		snprintf(h->error, sizeof(h->error), "%s", bpf_log_last());
		unload(h, in);
	}
	return r;
}

struct driver_instance *driver_instance_open(struct driver_hooks *h, enum hook_object object,
	enum hook_level level, uint32_t families, int *ret_error)
{
	struct driver_instance *in = &h->instances[h->instance_count];

	*ret_error = -ENOBUFS;
	if (h->instance_count == DRIVER_MAX_INSTANCES)
		return NULL;
	*in = (struct driver_instance){.object = object, .level = level, .families = families};
	*ret_error = open_instance(h, in);
	if (*ret_error)
		return NULL;
	h->instance_count++;
	return in;
}

void driver_family_unload(struct driver_hooks *h, struct driver_instance *in, unsigned family)
{
	struct bpf_program *prog;

	in->families &= ~(1u << family);
	bpf_object__for_each_program(
		prog, in->obj) if (bpf_program__fd(prog) >= 0 &&
				   !is_wanted(h, bpf_program__name(prog), in->object, in->level,
					   in->families)) bpf_program__unload(prog);
}

void driver_instances_unload(struct driver_hooks *h)
{
	for (unsigned i = 0; i < h->instance_count; i++)
		if (h->instances[i].level != HOOK_LEVEL_KPROBE)
			unload(h, &h->instances[i]);
}

void driver_instances_reopen(struct driver_hooks *h)
{
	for (unsigned i = 0; i < h->instance_count; i++)
		if (!h->instances[i].obj)
			(void)open_instance(h, &h->instances[i]);
}

void driver_standins_choose(struct driver_hooks *h)
{
	uint32_t refused = 0;

	h->standin_families = 0;
	if (driver_hooks_level(h, "ioctl") != HOOK_LEVEL_FENTRY)
		return; /* whose call is whose would not be known */
	for (unsigned i = 0; i < hook_row_count; i++) {
		const struct hook_row *row = &hook_rows[i];
		unsigned f = driver_family_of(h, row->family);

		if (row->level != HOOK_LEVEL_KPROBE || h->levels[f] != HOOK_LEVEL_FENTRY)
			continue;
		h->standin_families |= 1u << f;
		refused |= (uint32_t)(row_unfit(h, row) != NULL) << f;
	}
	h->standin_families &= ~refused;
}

int driver_standins_open(struct driver_hooks *h)
{
	int r = 0;

	for (unsigned o = 0; o < HOOK_OBJECTS && h->standin_families && r == 0; o++) {
		if (h->standins[o].obj)
			continue;
		h->standins[o] = (struct driver_instance){.object = (enum hook_object)o,
			.level = HOOK_LEVEL_KPROBE,
			.families = h->standin_families,
			.is_standin = true};
		r = open_instance(h, &h->standins[o]);
	}
	return r;
}

void driver_standins_close(struct driver_hooks *h)
{
	for (unsigned o = 0; o < HOOK_OBJECTS; o++)
		unload(h, &h->standins[o]);
}

void driver_instance_close_last(struct driver_hooks *h)
{
	unload(h, &h->instances[--h->instance_count]);
}

void driver_instances_close(struct driver_hooks *h)
{
	while (h->instance_count)
		driver_instance_close_last(h);
}

void driver_maps_close(struct driver_hooks *h)
{
	while (h->map_count)
		close(h->maps[--h->map_count].fd);
}

/* ---- attaching ------------------------------------------------------------------------------ */

static const char *kind_of(const struct bpf_program *prog, enum hook_level level)
{
	if (level == HOOK_LEVEL_TRACEPOINT)
		return "raw_tp";
	if (level == HOOK_LEVEL_FENTRY)
		return bpf_program__expected_attach_type(prog) == BPF_TRACE_FEXIT ? "fexit"
										  : "fentry";
	return strncmp(bpf_program__section_name(prog), "kretprobe", 9) == 0 ? "kretprobe"
									     : "kprobe";
}

static struct bpf_link *attach(
	struct bpf_program *prog, enum hook_level level, const char *kind, const char *target)
{
	switch (level) {
	case HOOK_LEVEL_FENTRY:
		return bpf_program__attach_trace(prog);
	case HOOK_LEVEL_KPROBE:
		return bpf_program__attach_kprobe(prog, strcmp(kind, "kretprobe") == 0, target);
	default:
		return bpf_program__attach_raw_tracepoint(prog, target);
	}
}

static int attach_row(struct driver_hooks *h, struct driver_instance *in,
	const struct hook_row *row, unsigned family)
{
	struct bpf_program *prog =
		in->obj ? bpf_object__find_program_by_name(in->obj, row->program) : NULL;
	const char *target = NULL, *kind;
	enum hook_level level = (enum hook_level)row->level;

	if (!prog)
		return -ENOENT;
	kind = kind_of(prog, level);
	while ((target = next_target(h, row, target))) {
		struct driver_link *l = &h->links[h->link_count];
		struct bpf_link *link;

		if (h->link_count == DRIVER_MAX_LINKS)
			return -ENOBUFS;
		link = attach(prog, level, kind, target);
		if (!link)
			return -errno;
		*l = (struct driver_link){.link = link,
			.family = (uint8_t)family,
			.level = row->level,
			.is_entry = strcmp(kind, "fexit") != 0 && strcmp(kind, "kretprobe") != 0};
		snprintf(l->name, sizeof(l->name), "%s:%s", kind, target);
		h->link_count++;
		h->uncounted += level == HOOK_LEVEL_KPROBE && !bpf_counts_missed();
	}
	return 0;
}

int driver_family_attach(
	struct driver_hooks *h, struct driver_instance *in, enum hook_level level, unsigned family)
{
	unsigned before = h->link_count;

	bpf_log_capture();
	for (unsigned i = 0; i < hook_row_count; i++) {
		const struct hook_row *row = &hook_rows[i];
		int r;

		if (row->object != in->object || row->level != level ||
			strcmp(row->family, h->families[family]) != 0)
			continue;
		r = attach_row(h, in, row, family);
		if (r) {
			snprintf(h->error, sizeof(h->error), "%s", bpf_log_last());
			driver_links_drop(h, before, NULL);
			return r;
		}
	}
	return 0;
}

/* Detaching waits for the kernel, 10 ms and more for each hook; several wait at once. */
#define DROPPERS 8u

struct dropping {
	struct bpf_link *links[DRIVER_MAX_LINKS];
	unsigned count, next;
};

static void *drop_some(void *arg)
{
	struct dropping *d = arg;
	unsigned i;

	while ((i = __atomic_fetch_add(&d->next, 1, __ATOMIC_RELAXED)) < d->count)
		bpf_link__destroy(d->links[i]);
	return NULL;
}

void driver_links_drop(
	struct driver_hooks *h, unsigned from, bool (*which)(const struct driver_link *l))
{
	struct dropping d = {.count = 0};
	pthread_t threads[DROPPERS];
	unsigned kept = from, started = 0;

	for (unsigned i = from; i < h->link_count; i++) {
		if (which && !which(&h->links[i])) {
			h->links[kept++] = h->links[i];
			continue;
		}
		if (h->links[i].level == HOOK_LEVEL_KPROBE)
			h->missed += bpf_missed_of_kprobe(h->links[i].link);
		d.links[d.count++] = h->links[i].link;
	}
	h->link_count = kept;
	while (started < DROPPERS && started + 1 < d.count &&
		pthread_create(&threads[started], NULL, drop_some, &d) == 0)
		started++;
	drop_some(&d);
	while (started)
		pthread_join(threads[--started], NULL);
}
