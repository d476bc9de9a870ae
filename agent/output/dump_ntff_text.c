/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dump_ntff_text.c - a device profile as a timeline: of each core what all its rings have, in order of
 * its own clock.
 *
 * One cursor per ring, and a heap of what each has next: memory for the rings, not for the records.
 */
#include "agent/output/dump_ntff.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runtime/base/file.h"
#include "runtime/base/printable.h"

#define PS_PER_US 1000000u
#define NS_PER_S 1000000000u

struct ring {
	struct ntff_cursor cursor;
	struct ntff_item item;
};

struct timeline {
	struct ring *rings;
	struct ring **heap; /* the earliest item is first */
	size_t count;
	uint64_t first_ps; /* of the era */
	uint32_t era;
	bool any;
};

static bool before(const struct ring *a, const struct ring *b)
{
	if (a->item.era != b->item.era)
		return a->item.era < b->item.era;
	if (a->item.start_ps != b->item.start_ps)
		return a->item.start_ps < b->item.start_ps;
	return a < b;
}

static void sift_down(struct timeline *t, size_t i)
{
	struct ring *moved = t->heap[i];

	for (size_t child; (child = 2 * i + 1) < t->count; i = child) {
		if (child + 1 < t->count && before(t->heap[child + 1], t->heap[child]))
			child++;
		if (!before(t->heap[child], moved))
			break;
		t->heap[i] = t->heap[child];
	}
	t->heap[i] = moved;
}

/* ---- lines -------------------------------------------------------------------------------- */

static void print_us(FILE *f, int width, const char *sign, uint64_t ps)
{
	char text[40];

	snprintf(text, sizeof(text), "%s%" PRIu64 ".%06" PRIu64, sign, ps / PS_PER_US,
		ps % PS_PER_US);
	fprintf(f, "%*s", width, text);
}

static void name_of(const struct ring *r, const Ntff__ExecutionInfo *run, char *buf, size_t size)
{
	const struct ntff_item *item = &r->item;
	const Ntff__NtffInstruction *i;
	const char *op;

	switch (item->what) {
	case NTFF_RUN:
		snprintf(buf, size, "run #%u%s%s%s", item->id, item->custom ? " failed" : "",
			run && run->model_name && *run->model_name ? " " : "",
			run ? PRINTABLE(run->model_name) : "");
		return;
	case NTFF_SEMAPHORE:
		snprintf(buf, size, "semaphore %u = %u mod 65536", item->custom, item->subtype);
		return;
	case NTFF_ERROR:
		if (ntff_fault_name(item->custom))
			snprintf(buf, size, "fault %s, status %u", ntff_fault_name(item->custom),
				item->subtype);
		else
			snprintf(buf, size, "fault %u, status %u", item->custom, item->subtype);
		return;
	case NTFF_INSTRUCTION:
	case NTFF_TRANSFER:
	case NTFF_COLLECTIVE:
		i = ntff_instruction_of(r->cursor.profile, r->cursor.core, run, item);
		op = i && i->op && *i->op ? i->op : ntff_what_name(item->what);
		snprintf(buf, size, "%s #%u", PRINTABLE(op), item->id);
		return;
	default:
		snprintf(buf, size, "%s #%u", ntff_what_name(item->what), item->id);
	}
}

static void print_item(FILE *f, struct timeline *t, struct ring *r)
{
	const struct ntff_item *item = &r->item;
	const Ntff__ExecutionInfo *run = ntff_run_of(r->cursor.core, item);
	char place[NTFF_UNIT_BYTES], name[PRINTABLE_BYTES + 32];
	uint64_t boot_ns, bound_ns;

	if (!t->any || item->era != t->era) {
		if (t->any)
			fputs("# the core's clock began anew\n", f);
		t->any = true;
		t->era = item->era;
		t->first_ps = item->start_ps;
	}
	name_of(r, run, name, sizeof(name));
	/* In a ring that is not in order, what began earlier may come later. */
	if (item->start_ps < t->first_ps)
		print_us(f, 16, "-", t->first_ps - item->start_ps);
	else
		print_us(f, 16, "", item->start_ps - t->first_ps);
	fprintf(f, "  %-7s %-24s", ntff_place(&r->cursor, item, place), name);
	if (item->span) {
		print_us(f, 15, "", item->end_ps - item->start_ps);
		fputs(" us", f);
	}
	if (run)
		fprintf(f, " exec=%" PRIu64, run->exec_id);
	if (ntff_host_ns(&r->cursor, item->era, item->start_ps, &boot_ns, &bound_ns))
		fprintf(f, " boot=%" PRIu64 "+-%" PRIu64, boot_ns, bound_ns);
	if (item->lost_before)
		fputs(" lost-before", f);
	fputc('\n', f);
}

static void print_core_head(FILE *f, const struct ntff_profile *p, const struct ntff_core *c)
{
	fprintf(f, "# core nd%" PRIu32 "/nc%" PRIu32, c->nd_idx, c->nc_idx);
	if (p->info->logical_nc)
		fprintf(f, ", of the program's core %" PRIu32, p->info->logical_nc - 1);
	fprintf(f, ": rings %" PRIu32 ", sync points %" PRIu32 ", executions %" PRIu32 "\n",
		c->stream_count, c->point_count, c->run_count);
}

/* "event ring of pe" */
static void print_ring_name(FILE *f, const Ntff__NtffLoss *l)
{
	static const char *const kinds[] = {
		"instruction", "event", "error", "explicit", "dma", "throttle"};
	bool whole = l->block_type == NTFF__BLOCK_TYPE__BLOCK_NC &&
		     (l->trace_type == NTFF__NOTIFICATION_TRACE_TYPE__NOTIFICATION_ERROR ||
			     l->trace_type == NTFF__NOTIFICATION_TRACE_TYPE__NOTIFICATION_THROTTLE);
	char unit[NTFF_UNIT_BYTES] = "nc";

	if (!whole)
		ntff_unit_name(l->block_type, l->engine_index, unit);
	fprintf(f, "%s ring of %s",
		(unsigned)l->trace_type < sizeof(kinds) / sizeof(kinds[0]) ? kinds[l->trace_type]
									   : "unknown",
		unit);
}

static void print_losses(FILE *f, const struct ntff_profile *p, const struct ntff_sums *sums)
{
	for (size_t i = 0; i < p->info->n_losses; i++) {
		const Ntff__NtffLoss *l = p->info->losses[i];

		fprintf(f, "# lost: nd%" PRIu32 "/nc%" PRIu32 ", ", l->nd_idx, l->nc_idx);
		print_ring_name(f, l);
		fprintf(f, ": %s%" PRIu64 " records", l->at_least ? "at least " : "", l->lost);
		if (l->why && *l->why)
			fprintf(f, " (%s)", PRINTABLE(l->why));
		fputc('\n', f);
	}
	if (p->info->executions_lost)
		fprintf(f,
			"# lost: what is known of %" PRIu64
			" executions, whose records have no exec=\n",
			p->info->executions_lost);
	if (sums->no_start || sums->no_end)
		fprintf(f,
			"# unpaired: %" PRIu64 " ends without a start, %" PRIu64
			" starts without an end\n",
			sums->no_start, sums->no_end);
}

/* ---- cores -------------------------------------------------------------------------------- */

/* The next item of a ring, which goes from the heap when it has none. */
static int advance(struct timeline *t, struct ring *r)
{
	int rc = ntff_cursor_next(&r->cursor, &r->item);

	if (rc < 0)
		return rc;
	if (rc == 0)
		t->heap[0] = t->heap[--t->count];
	if (t->count > 0)
		sift_down(t, 0);
	return 0;
}

static int fill(struct timeline *t, const struct ntff_profile *p, const struct ntff_core *c)
{
	int rc = 1;

	for (uint32_t i = 0; i < c->stream_count && rc >= 0; i++) {
		struct ring *r = &t->rings[i];

		ntff_cursor_open(&r->cursor, p, &p->streams[c->first_stream + i]);
		rc = ntff_cursor_next(&r->cursor, &r->item);
		if (rc > 0)
			t->heap[t->count++] = r;
	}
	for (size_t i = t->count / 2; i-- > 0;)
		sift_down(t, i);
	return rc < 0 ? rc : 0;
}

static int print_core(
	FILE *f, const struct ntff_profile *p, const struct ntff_core *c, struct ntff_sums *sums)
{
	_cleanup_free_ struct ring *rings = calloc(c->stream_count + 1u, sizeof(*rings));
	_cleanup_free_ struct ring **heap = calloc(c->stream_count + 1u, sizeof(*heap));
	struct timeline t = {.rings = rings, .heap = heap};
	int rc;

	if (!rings || !heap)
		return -ENOMEM;
	print_core_head(f, p, c);
	rc = fill(&t, p, c);
	while (rc == 0 && t.count > 0) {
		struct ring *r = t.heap[0];

		print_item(f, &t, r);
		sums->items[r->item.what]++;
		rc = advance(&t, r);
	}
	for (uint32_t i = 0; i < c->stream_count; i++) {
		ntff_sums_add(sums, &rings[i].cursor);
		ntff_cursor_close(&rings[i].cursor);
	}
	return rc;
}

static void print_head(FILE *f, const struct ntff_profile *p)
{
	const Ntff__NtffInfo *info = p->info;
	time_t begun = (time_t)(info->profile_start_time / NS_PER_S);
	char text[32] = "";
	struct tm tm;

	fprintf(f, "# device profile, format %u, by %s%s%s", p->file.header.format,
		PRINTABLE(p->file.header.producer), info->virtual_device ? "; VIRTUAL device" : "",
		info->partial ? "; PARTIAL" : "");
	if (info->pid)
		fprintf(f, "; pid %" PRIu32, info->pid);
	if (info->profile_start_time && gmtime_r(&begun, &tm) &&
		strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &tm))
		fprintf(f, "; begun %s.%06" PRIu64 " UTC", text,
			info->profile_start_time % NS_PER_S / 1000);
	fputs("\n# microseconds of the core's clock since its first item, unit, what, how long;\n"
	      "# boot: CLOCK_BOOTTIME of its start in ns, and by how much that may be wrong\n",
		f);
}

static void print_total(FILE *f, const struct ntff_profile *p, const struct ntff_sums *sums)
{
	const struct ntff_lost lost = ntff_lost_sum(p);
	const char *sep = "# total: ";

	for (unsigned i = 0; i < NTFF_WHATS; i++) {
		if (!sums->items[i])
			continue;
		fprintf(f, "%s%s %" PRIu64, sep, ntff_what_name(i), sums->items[i]);
		sep = ", ";
	}
	fprintf(f, "%slost %s%" PRIu64 "\n", sep, lost.at_least ? "at least " : "", lost.records);
}

int dump_ntff_text(FILE *f, const struct ntff_profile *p)
{
	struct ntff_sums sums = {0};
	int rc = 0;

	print_head(f, p);
	for (uint32_t i = 0; i < p->core_count && rc == 0; i++)
		rc = print_core(f, p, &p->cores[i], &sums);
	print_losses(f, p, &sums);
	print_total(f, p, &sums);
	return rc;
}
