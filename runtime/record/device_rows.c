/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_rows.c - device profiles, joined in order of time.
 *
 * ROWS.  Instructions, transfers and collectives are spans, semaphores and errors instants.  What a core tells
 * of a run as a whole gives no row: the runtime has told it already.  Of a record whose other half is
 * missing it is not known when it began or ended, so it gives none either; they are counted.
 *
 * TIME.  Device time becomes the host's by the file's sync points (ntff_records.h).  A ring's unit does one
 * thing after another, so its rows come in order of time.  Where a time goes back nevertheless (another
 * era of the clock begins, spans of a ring overlap) it is moved to the newest of its stream, and late_ns
 * says so: each stream is in order, and a heap of streams gives all rows in order.
 *
 * ORDER.  At one time rows of profiles come behind everything else, in the order of file, core, ring and record.
 * The merge asks for rows before it writes an event (device_rows_give), so what is written depends on the
 * events and the files alone.
 *
 * LINKS.  A row belongs to the run of its core in which it began by the device's clock, and that to the
 * nc_exec_running with its exec_id, which comes with the frames.  Rows know it from the mark of its source on,
 * which all orders of frames agree on; that mark waits for runs that go on, so it is before all of theirs.
 *
 * Nothing grows with the number of records.  Files are mapped, and what was read is given back to the
 * kernel.
 */
#include "runtime/record/device_rows.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/record/encode_device.h"
#include "runtime/record/timeline.h"

#define SAME_RUN_NS 1000000000ull /* what both sides tell of a run's start lies closer */
#define STOP_AFTER 4096u	  /* rows, before it is asked again whether to stop */
#define GIVE_BACK (128u << 10)	  /* bytes of a mapping at once */

/* A run of a profile, and the device run that the runtime told. */
struct device_run {
	const struct device_file *file;
	const Ntff__ExecutionInfo *info;
	uint64_t start; /* BOOTTIME ns; 0 not known */
	uint64_t pair;	/* of the nc_exec_running; 0: it has not come */
	uint64_t from;	/* rows before this do not know it */
	uint32_t core;	/* logical + 1 */
};

struct device_stream {
	const struct device_file *file;
	const struct ntff_core *core;
	struct ntff_cursor cursor;
	const uint8_t *passed;	    /* its records up to here are given back */
	struct ntff_item item;	    /* that the next row is about */
	bool in_span;		    /* the next row is its end */
	uint64_t time, late, bound; /* of the next row */
	uint64_t start, id;	    /* of the span whose end is next: as written */
	struct device_run *run;	    /* of the item; NULL: none */
	const Ntff__ExecutionInfo *run_info;
	bool has_link; /* link is that of the run */
	struct attr_part exec, link;
	uint32_t process;
	struct process_device count;
	bool has_process, of_ring; /* of_ring: place is that of this unit */
	uint32_t engine;	   /* of place */
	char unit[NTFF_UNIT_BYTES];
	struct attr_part place;
};

/* ---- what is a row -------------------------------------------------------------------------- */

static const struct {
	bool row, span;
	const char *name; /* of instants */
} kinds[NTFF_WHATS] = {
	[NTFF_INSTRUCTION] = {true, true, NULL},
	[NTFF_TRANSFER] = {true, true, NULL},
	[NTFF_COLLECTIVE] = {true, true, NULL},
	[NTFF_SEMAPHORE] = {true, false, "semaphore"},
	[NTFF_ERROR] = {true, false, "error"},
};

/* ---- streams -------------------------------------------------------------------------------- */

/* The process of a stream, made when its first row comes.  0 or -ENOMEM. */
static int need_process(struct device_rows *r, struct device_stream *s)
{
	int64_t process = s->has_process ? 0 : process_of(r->processes, s->file->frame.pid);

	if (process < 0)
		return (int)process;
	if (!s->has_process)
		s->process = (uint32_t)process;
	s->has_process = true;
	return 0;
}

/* The host's time of one end of the item, not before what the stream gave last.  False: it cannot be told. */
static bool place_row(
	const struct device_rows *r, struct device_stream *s, uint64_t ps, bool begins)
{
	bool (*host_ns)(struct ntff_cursor * c, uint32_t era, uint64_t device_ps,
		uint64_t * ret_boot_ns, uint64_t * ret_bound_ns) =
		begins ? ntff_host_ns : ntff_host_ns_end;
	uint64_t time;

	if (!host_ns(&s->cursor, s->item.era, ps, &time, &s->bound) ||
		!clock_map_valid(&r->session->clock, time))
		return false;
	s->late = time < s->time ? s->time - time : 0;
	s->time += time > s->time ? time - s->time : 0;
	return true;
}

static void find_run(const struct device_rows *r, struct device_stream *s)
{
	const Ntff__ExecutionInfo *info = ntff_run_of(s->core, &s->item);
	const uint64_t *place;

	if (info == s->run_info)
		return;
	place = info ? map64_find(&r->by_info, (uint64_t)(uintptr_t)info) : NULL;
	s->run = place ? &r->runs[*place] : NULL;
	s->run_info = info;
	s->has_link = false;
	if (s->run)
		encode_device_run(&r->timeline->encoder, &s->exec, info->exec_id);
}

static void find_unit(struct device_rows *r, struct device_stream *s)
{
	const Ntff__NtffInstruction *i;

	if (s->of_ring && s->engine == s->item.engine)
		return;
	s->unit[0] = '\0';
	if (s->item.what != NTFF_ERROR) {
		ntff_unit_name(s->cursor.stream->info->block_type, s->item.engine, s->unit);
	} else {
		/* The ring is that of all units of the core. */
		i = ntff_instruction_of(&s->file->profile, s->core, s->run_info, &s->item);
		if (i)
			ntff_unit_name(i->block_type, i->engine_index, s->unit);
	}
	encode_device_unit(&r->timeline->encoder, &s->place, s->unit, s->core->nc_idx);
	s->engine = s->item.engine;
	s->of_ring = s->item.what != NTFF_ERROR;
}

static void give_back(struct device_stream *s)
{
	const uint8_t *at = s->cursor.stream->records + 16 * s->cursor.next;

	if ((size_t)(at - s->passed) >= GIVE_BACK)
		s->passed = device_files_passed(s->passed, at);
}

/* The end of the item's span.  Beyond the year 2100 it ends where it began. */
static void place_end(struct device_rows *r, struct device_stream *s)
{
	uint64_t bound = s->bound;

	s->late = 0;
	if (!place_row(r, s, s->item.end_ps, false) || s->bound < bound)
		s->bound = bound;
}

/* Moves on to the next row.  1; 0: there is none; -ENOMEM. */
static int advance(struct device_rows *r, struct device_stream *s)
{
	int rc;

	if (s->in_span) {
		place_end(r, s);
		return 1;
	}
	while ((rc = ntff_cursor_next(&s->cursor, &s->item)) > 0) {
		unsigned records = s->item.span ? 2 : 1;

		give_back(s);
		if (!kinds[s->item.what].row || kinds[s->item.what].span != s->item.span) {
			s->count.told += records;
			continue;
		}
		if (!place_row(r, s, s->item.start_ps, s->item.span)) {
			s->count.timeless += records;
			continue;
		}
		find_run(r, s);
		find_unit(r, s);
		return 1;
	}
	return rc;
}

/* ---- rows ----------------------------------------------------------------------------------- */

/* The run's link, once rows at this time may know it. */
static const struct attr_part *link_of(struct device_rows *r, struct device_stream *s)
{
	const struct device_run *run = s->run;

	if (!run || !run->pair || s->time < run->from)
		return NULL;
	if (!s->has_link)
		encode_device_link(&r->timeline->encoder, &s->link,
			item_written_id(run->pair, r->session->sources[run->pair >> 48].ordinal));
	s->has_link = true;
	return &s->link;
}

/* The logical core: as the file says, or else the runtime's device run. */
static uint32_t core_of(const struct device_stream *s)
{
	uint32_t said = s->file->profile.info->logical_nc;

	if (said && said <= TRACE_MAX_NC)
		return said;
	return s->run && s->run->pair && s->time >= s->run->from ? s->run->core : 0;
}

/* What an instruction does, as text; what cannot be shown is replaced. */
static void name_of(const struct device_stream *s, char *name, size_t size)
{
	const Ntff__NtffInstruction *i;
	size_t n = 0;

	if (kinds[s->item.what].name) {
		snprintf(name, size, "%s", kinds[s->item.what].name);
		return;
	}
	i = ntff_instruction_of(&s->file->profile, s->core, s->run_info, &s->item);
	if (!i || !*i->op) {
		snprintf(name, size, "op%u", s->item.custom);
		return;
	}
	for (; i->op[n] && n + 1 < size; n++)
		name[n] = i->op[n] > ' ' && i->op[n] < 0x7f ? i->op[n] : '?';
	name[n] = '\0';
}

static enum device_kind kind_of(const struct device_stream *s)
{
	if (s->item.what == NTFF_SEMAPHORE)
		return DEVICE_SEMAPHORE;
	if (s->item.what == NTFF_ERROR)
		return DEVICE_ERROR;
	return s->in_span ? DEVICE_STOP : DEVICE_START;
}

static int write_row(struct device_rows *r, struct device_stream *s)
{
	struct process *p = &r->processes->list[s->process];
	char name[64];
	struct device_event d = {.kind = kind_of(s),
		.time = s->time,
		.duration = s->in_span ? s->time - s->start : 0,
		.late_ns = s->late,
		.bound = s->bound,
		.ps = s->in_span ? s->item.end_ps - s->item.start_ps : s->item.start_ps,
		.unit = s->item.what == NTFF_ERROR ? NULL : s->unit,
		.what = name,
		.device = s->core->nd_idx,
		.core = core_of(s),
		.index = s->item.id,
		.custom = s->item.custom,
		.subtype = s->item.subtype,
		.place = &s->place,
		.run = s->run ? &s->exec : NULL,
		.link = link_of(r, s)};
	int rc = timeline_reach(r->timeline, p, s->time);

	if (rc < 0)
		return rc;
	name_of(s, name, sizeof(name));
	d.id = s->in_span ? s->id : ID_DEVICE | ++p->device_ids;
	s->count.written++;
	p->device.spans += s->in_span;
	if (s->item.span)
		p->open_spans += s->in_span ? -1ull : 1;
	s->start = s->time;
	s->id = d.id;
	s->in_span = s->item.span && !s->in_span;
	return encode_device(&r->timeline->encoder, p, &d);
}

/* ---- the heap ------------------------------------------------------------------------------- */

static bool before(const struct device_stream *a, const struct device_stream *b)
{
	return a->time != b->time ? a->time < b->time : a < b;
}

/* The stream at a place has a later time than before. */
static void sink(struct device_rows *r, size_t place)
{
	struct device_stream *s = r->heap[place];
	size_t child;

	while ((child = 2 * place + 1) < r->heap_count) {
		if (child + 1 < r->heap_count && before(r->heap[child + 1], r->heap[child]))
			child++;
		if (before(s, r->heap[child]))
			break;
		r->heap[place] = r->heap[child];
		place = child;
	}
	r->heap[place] = s;
}

int device_rows_give(struct device_rows *r, uint64_t until)
{
	unsigned rows = 0;

	while (r->heap_count && r->heap[0]->time < until) {
		struct device_stream *s = r->heap[0];
		int rc = need_process(r, s);

		if (rc == 0 && r->stop && rows++ % STOP_AFTER == 0)
			rc = r->stop(r->ctx);
		if (rc == 0)
			rc = write_row(r, s);
		if (rc == 0)
			rc = advance(r, s);
		if (rc < 0)
			return rc;
		if (rc == 0)
			r->heap[0] = r->heap[--r->heap_count];
		if (r->heap_count)
			sink(r, 0);
	}
	r->next = r->heap_count ? r->heap[0]->time : UINT64_MAX;
	return 0;
}

/* ---- opening -------------------------------------------------------------------------------- */

static int open_stream(struct device_rows *r, const struct device_file *f, uint32_t number)
{
	const struct ntff_stream *from = &f->profile.streams[number];
	struct device_stream *s = &r->streams[r->stream_count++];
	int rc;

	s->file = f;
	s->core = &f->profile.cores[from->core];
	s->passed = from->records;
	s->count.read = from->count;
	ntff_cursor_open(&s->cursor, &f->profile, from);
	rc = advance(r, s);
	if (rc <= 0)
		return rc;
	r->heap[r->heap_count++] = s;
	return 0;
}

static int open_streams(struct device_rows *r)
{
	size_t total = 0;
	int rc = 0;

	for (size_t i = 0; i < r->files.count; i++)
		total += r->files.list[i].profile.stream_count;
	r->streams = calloc(total + 1, sizeof(*r->streams));
	r->heap = calloc(total + 1, sizeof(*r->heap));
	if (!r->streams || !r->heap)
		return -ENOMEM;
	for (size_t i = 0; i < r->files.count; i++)
		for (uint32_t k = 0; rc == 0 && k < r->files.list[i].profile.stream_count; k++)
			if (r->files.list[i].profile.streams[k].count)
				rc = open_stream(r, &r->files.list[i], k);
	for (size_t i = r->heap_count / 2; i-- > 0;)
		sink(r, i);
	r->next = r->heap_count ? r->heap[0]->time : UINT64_MAX;
	return rc;
}

/* Without the device, though cores count within one: a process has a number of an execution only once. */
static uint64_t id_key(const struct device_rows *r, uint32_t pid, uint32_t core, uint64_t exec_id)
{
	return session_key(r->session, (uint64_t)pid << 32 | core, exec_id);
}

/* The host's time at which a run began; 0: not known. */
static uint64_t start_of(const struct ntff_profile *p, const struct ntff_core *core, uint64_t ps)
{
	struct ntff_cursor c = {.profile = p, .core = core};
	uint64_t time, bound;

	for (uint32_t era = 0; era < core->era_count; era++)
		if (ps <= core->eras[era].high_ps || era + 1 == core->era_count)
			return ntff_host_ns(&c, era, ps, &time, &bound) ? time : 0;
	return 0;
}

static int add_run(struct device_rows *r, const struct device_file *f, const struct ntff_core *core,
	const Ntff__ExecutionInfo *info)
{
	struct device_run *run = &r->runs[r->run_count];
	int rc = map64_put(&r->by_info, (uint64_t)(uintptr_t)info, r->run_count);

	run->file = f;
	run->info = info;
	run->start = start_of(&f->profile, core, info->start_ps);
	if (rc == 0)
		rc = map64_put(&r->by_id, id_key(r, f->frame.pid, info->nc_idx, info->exec_id),
			r->run_count);
	r->run_count++;
	return rc;
}

static int add_runs(struct device_rows *r)
{
	size_t total = 0;
	int rc = 0;

	for (size_t i = 0; i < r->files.count; i++)
		total += r->files.list[i].profile.info->n_execution_timeline;
	r->runs = calloc(total + 1, sizeof(*r->runs));
	if (!r->runs)
		return -ENOMEM;
	for (size_t i = 0; i < r->files.count; i++) {
		const struct device_file *f = &r->files.list[i];

		for (uint32_t c = 0; c < f->profile.core_count; c++)
			for (uint32_t k = 0; rc == 0 && k < f->profile.cores[c].run_count; k++)
				rc = add_run(
					r, f, &f->profile.cores[c], f->profile.cores[c].runs[k]);
	}
	return rc;
}

int device_rows_open(struct device_rows *r, struct rec_reader *reader, struct session *session,
	struct processes *processes, struct timeline *timeline)
{
	int rc;

	*r = (struct device_rows){.session = session,
		.processes = processes,
		.timeline = timeline,
		.next = UINT64_MAX};
	r->by_info.seed = r->by_id.seed = session->seed;
	rc = encode_device_init(&timeline->encoder);
	if (rc == 0)
		rc = device_files_open(&r->files, reader, session);
	if (rc == 0)
		rc = add_runs(r);
	return rc < 0 ? rc : open_streams(r);
}

void device_rows_free(struct device_rows *r)
{
	for (size_t i = 0; i < r->stream_count; i++)
		ntff_cursor_close(&r->streams[i].cursor);
	free(r->streams);
	free(r->heap);
	free(r->runs);
	map64_free(&r->by_info);
	map64_free(&r->by_id);
	device_files_free(&r->files);
	*r = (struct device_rows){.next = UINT64_MAX};
}

/* ---- beside the rows ------------------------------------------------------------------------ */

void device_rows_run(struct device_rows *r, const struct item *start, uint32_t exec_id,
	uint32_t device_core, uint64_t from)
{
	struct process *p = &r->processes->list[start->process];
	const uint64_t *place = map64_find(&r->by_id, id_key(r, p->pid, device_core, exec_id));
	struct device_run *run = place ? &r->runs[*place] : NULL;
	uint32_t logical;

	if (!run || run->pair || run->info->exec_id != exec_id ||
		run->info->nc_idx != device_core || run->file->frame.pid != p->pid)
		return;
	logical = run->file->profile.info->logical_nc;
	if ((logical && logical != start->core) ||
		(run->start > start->time ? run->start - start->time : start->time - run->start) >
			SAME_RUN_NS)
		return;
	run->pair = start->pair;
	run->from = from;
	run->core = start->core;
	p->device.runs++;
}

static void add_losses(
	struct device_rows *r, const struct device_file *f, struct process_device *to)
{
	const Ntff__NtffInfo *info = f->profile.info;
	bool more = false;

	for (size_t i = 0; i < info->n_losses; i++) {
		uint64_t lost = info->losses[i]->lost;

		/* A file may say any number; 32 bits of each are at least so many, and no sum begins anew. */
		to->lost += lost < UINT32_MAX ? lost : UINT32_MAX;
		more |= info->losses[i]->at_least || lost > UINT32_MAX;
	}
	r->session->profiles.at_least += more || (info->partial && !info->n_losses);
}

void device_rows_end(struct device_rows *r)
{
	for (size_t i = 0; i < r->stream_count; i++) {
		const struct device_stream *s = &r->streams[i];
		const uint64_t *p =
			map64_find(&r->processes->pids, (uint64_t)s->file->frame.pid + 1);
		struct process_device *to = p ? &r->processes->list[*p].device : NULL;

		if (!to)
			continue;
		to->read += s->count.read;
		to->written += s->count.written;
		to->told += s->count.told;
		to->timeless += s->count.timeless;
		to->unpaired += s->cursor.no_start + s->cursor.no_end;
	}
	for (size_t i = 0; i < r->files.count; i++) {
		const uint64_t *p =
			map64_find(&r->processes->pids, (uint64_t)r->files.list[i].frame.pid + 1);

		if (p)
			add_losses(r, &r->files.list[i], &r->processes->list[*p].device);
	}
}
