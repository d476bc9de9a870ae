/* SPDX-License-Identifier: Apache-2.0 */
/* memory_report.c - the table of who holds a memory bank; see memory_report.h. */
#include "runtime/exec/memory_report.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/file.h"
#include "runtime/device/owners.h"
#include "runtime/exec/memory_table.h"
#include "runtime/lifecycle/runtime.h"
#include "runtime/log/log.h"
#include "runtime/trace/event_registry.h"

#define TAG "TDRV"
#define LARGEST_IN_LOG 10u
#define MAX_FILES 16
#define MAX_USERS 16u

struct report {
	const struct device_core *core;
	uint32_t nc;
	enum memory_usage usage; /* of what was wanted */
	uint64_t wanted;
	struct memory_entry *held; /* copies, the largest first */
	size_t count, room;
};

/* ---- gathering ---------------------------------------------------------------------------- */

static void keep(void *arg, const struct memory_entry *e)
{
	struct report *r = arg;

	if (r->count == r->room) {
		size_t room = r->room ? 2 * r->room : 64;
		struct memory_entry *grown = reallocarray(r->held, room, sizeof(*grown));

		if (!grown)
			return; /* a shorter report */
		r->held = grown;
		r->room = room;
	}
	r->held[r->count++] = *e;
}

static int larger_first(const void *a, const void *b)
{
	uint64_t x = ((const struct memory_entry *)a)->size;
	uint64_t y = ((const struct memory_entry *)b)->size;

	return (x < y) - (x > y);
}

static const char *usage_text(enum memory_usage usage)
{
	const char *name = trace_usage_name(usage);

	return name ? name : "?";
}

/* ---- the text ----------------------------------------------------------------------------- */

static void print_usages(FILE *f, const struct report *r)
{
	if (r->count)
		fprintf(f, "By usage:\n");
	for (unsigned u = 0; u < MEMORY_USAGE_COUNT; u++) {
		uint64_t bytes = 0;
		size_t n = 0;

		for (size_t i = 0; i < r->count; i++)
			if (r->held[i].usage == u) {
				bytes += r->held[i].size;
				n++;
			}
		if (n)
			fprintf(f, "  %15" PRIu64 " %-22s in %zu\n", bytes,
				usage_text((enum memory_usage)u), n);
	}
}

static void print_largest(FILE *f, const struct report *r, size_t limit)
{
	size_t n = r->count < limit ? r->count : limit;

	if (n)
		fprintf(f, "The largest:\n");
	for (size_t i = 0; i < n; i++) {
		const struct memory_entry *e = &r->held[i];

		fprintf(f, "  %15" PRIu64 " %-22s nc %-3u %s\n", e->size, usage_text(e->usage),
			e->nc, *e->name ? e->name : "(no name)");
	}
	if (r->count > n)
		fprintf(f, "  and %zu smaller ones\n", r->count - n);
}

static void print_cores(FILE *f, const struct report *r)
{
	uint32_t cores = device_logical_count(runtime_get()->devices);

	fprintf(f, "By core, now and at most:\n");
	for (uint32_t nc = 0; nc < cores; nc++) {
		const struct device_core *core = runtime_core((int32_t)nc);
		struct memory_core_sums sums;

		memory_table_core(nc, &sums);
		if (core->device == r->core->device && core->hbm == r->core->hbm)
			fprintf(f, "  %15" PRIu64 " %-22" PRIu64 " nc %u\n", sums.total.now,
				sums.total.peak, nc);
	}
}

/* The whole device: its banks may share one memory. */
static void print_device(FILE *f, const struct report *r)
{
	struct owners_user users[MAX_USERS];
	const struct device *d = r->core->device;
	uint64_t bytes;
	int n = owners_memory(d, users, MAX_USERS);

	if (device_memory_bytes(r->core, runtime_get()->devices->arch, &bytes) == 0)
		fprintf(f, "%s nd%u has %" PRIu64 " bytes\n",
			d->file.is_real ? "A bank of" : "For all cores,", d->index, bytes);
	if (n < 0)
		fprintf(f, "Who else is on nd%u cannot be told: %s\n", d->index,
			device_strerror(n));
	for (int i = 0; i < n; i++)
		fprintf(f, "Process %d%s has %" PRIu64 " bytes of nd%u\n", users[i].pid,
			users[i].pid == getpid() ? " (this one)" : "", users[i].bytes, d->index);
}

/* NULL: no memory. */
static char *text_of(const struct report *r, size_t limit)
{
	uint64_t total = 0;
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	if (!f)
		return NULL;
	for (size_t i = 0; i < r->count; i++)
		total += r->held[i].size;
	fprintf(f, "No memory for %" PRIu64 " bytes of %s for nc %u on nd%u hbm%u\n", r->wanted,
		usage_text(r->usage), r->nc, r->core->device->index, r->core->hbm);
	fprintf(f, "This process (%d) holds %" PRIu64 " bytes there in %zu allocations\n",
		(int)getpid(), total, r->count);
	print_usages(f, r);
	print_largest(f, r, limit);
	print_cores(f, r);
	print_device(f, r);
	if (fclose(f) == 0)
		return text;
	free(text);
	return NULL;
}

/* ---- where it goes ------------------------------------------------------------------------ */

static void say(const struct report *r)
{
	_cleanup_free_ char *text = text_of(r, LARGEST_IN_LOG);
	char *rest = NULL;

	for (char *line = text ? strtok_r(text, "\n", &rest) : NULL; line;
		line = strtok_r(NULL, "\n", &rest))
		log_write(LOG_LEVEL_ERROR, TAG, "memory_report", "%s", line);
}

static int write_file(const char *path, const char *text)
{
	struct outfile f;
	int rc = outfile_open(&f, path);

	if (rc < 0)
		return rc;
	outfile_write(&f, text, strlen(text));
	return outfile_commit(&f);
}

/* Tries one name after the other until one is new. */
static int write_new(
	const struct report *r, const char *directory, const char *text, char path[static 320])
{
	int rc = file_mkdirs(directory, NULL);

	if (rc < 0)
		return rc;
	rc = -EEXIST;
	for (int n = 1; rc == -EEXIST && n <= MAX_FILES; n++) {
		char suffix[16] = "";

		if (n > 1)
			(void)snprintf(suffix, sizeof(suffix), "_%d", n);
		(void)snprintf(path, 320, "%s/neuron_mem_table_device_%u_hbm_%u%s.log", directory,
			r->core->device->index, r->core->hbm, suffix);
		rc = write_file(path, text);
	}
	return rc;
}

static void dump(const struct report *r, const char *directory)
{
	_cleanup_free_ char *text = text_of(r, SIZE_MAX);
	char path[320] = "";
	int rc = text ? write_new(r, directory, text, path) : -ENOMEM;

	if (rc < 0)
		log_error(TAG, "The memory table was not written to %s (%s): %s", directory,
			"NEURON_RT_OOM_DUMP_DIRECTORY", strerror(-rc));
	else
		log_error(TAG, "The whole memory table is in %s", path);
}

void memory_report(
	const struct device_core *core, uint32_t nc, enum memory_usage usage, uint64_t wanted)
{
	struct report r = {.core = core, .nc = nc, .usage = usage, .wanted = wanted};
	const char *directory = runtime_get()->oom_directory;

	memory_table_each(core->device->index, core->hbm, keep, &r);
	if (r.count)
		qsort(r.held, r.count, sizeof(r.held[0]), larger_first);
	say(&r);
	if (*directory)
		dump(&r, directory);
	free(r.held);
}
