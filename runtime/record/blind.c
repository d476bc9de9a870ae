/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blind.c - one sentence per thing that could not be seen, from the recording alone.
 */
#include "runtime/record/blind.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "runtime/trace/event_registry.h"

struct lines {
	char (*text)[BLIND_BYTES];
	uint32_t count;
};

static void add(struct lines *s, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void add(struct lines *s, const char *format, ...)
{
	va_list ap;

	if (s->count == BLIND_LINES)
		return;
	va_start(ap, format);
	vsnprintf(s->text[s->count++], BLIND_BYTES, format, ap);
	va_end(ap);
}

static void about_hooks(struct lines *s, const struct session *l)
{
	const char *const *hooks = l->header.info.hooks;

	if (l->has_header && (!hooks || !*hooks)) {
		add(s, "no kernel hook was active: driver requests");
		return;
	}
	/* System-call level is the only level of hooks that there is yet. */
	add(s, "doorbells rung from user space through mapped registers");
	add(s, "DMA that devices start by themselves, and the driver's own threads and interrupts");
	if (l->has_header && !l->header.info.all_processes)
		add(s, "ioctls of processes other than the command and its children");
}

static void about_tables(struct lines *s, const struct session *l)
{
	if (!l->has_header) {
		add(s, "the recording's header is lost: host, hooks and instance are not known");
		return;
	}
	if (l->header.info.registry_hash != trace_registry_hash())
		add(s, "recorded with another event registry: payload attributes may be misread");
	if (l->header.info.ioctl_hash != rec_ioctl_table_hash())
		add(s, "recorded with another request table: driver attributes may be misread");
}

uint32_t blind_lines(
	const struct session *l, uint64_t device_runs, char lines[BLIND_LINES][BLIND_BYTES])
{
	struct lines s = {.text = lines};

	memset(lines, 0, BLIND_LINES * BLIND_BYTES);
	about_hooks(&s, l);
	if (device_runs)
		add(&s, "inside of %" PRIu64 " device runs: no device profile (NTFF) was taken",
			device_runs);
	else
		add(&s, "inside of the device: no device profile (NTFF) was taken");
	if (!l->has_runtime)
		add(&s, "host spans: no process announced a runtime of ours");
	if (!l->ended)
		add(&s, "the last 100 ms before the recorder died");
	about_tables(&s, l);
	return s.count;
}
