/* SPDX-License-Identifier: Apache-2.0 */
/*
 * merge.c - drives the merge: frames go in at the front (session, ingest), and whatever is safe to
 * write comes out at the back (held, timeline, encode, output).
 *
 * One pass over the recording, in its order.  Only the first clock snapshot is looked for beforehand,
 * because without it no time can be told; it stands near the beginning unless that is damaged.
 */
#include "runtime/record/merge.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "runtime/base/file.h"
#include "runtime/record/blind.h"
#include "runtime/record/device_rows.h"
#include "runtime/record/held.h"
#include "runtime/record/ingest.h"
#include "runtime/record/ledger.h"
#include "runtime/record/output.h"
#include "runtime/record/process.h"
#include "runtime/record/session.h"
#include "runtime/record/timeline.h"

struct merger {
	struct session session;
	struct processes processes;
	struct held held;
	struct ingest ingest;
	struct timeline timeline;
	struct device_rows device;
	struct output output;
	struct merge_result *ret;
	struct ledger capture;		     /* the stages before the merge */
	struct ledger total;		     /* with the merge of all processes */
	const volatile sig_atomic_t *cancel; /* as in merge_options */
};

/* ---- processes ---------------------------------------------------------------------------- */

void processes_free(struct processes *p)
{
	for (size_t i = 0; i < p->count; i++)
		pb_buf_free(&p->list[i].buf);
	free(p->list);
	map64_free(&p->pids);
	*p = (struct processes){0};
}

int64_t process_of(struct processes *p, uint32_t pid)
{
	const uint64_t *known;

	if (p->count && p->list[p->last].pid == pid)
		return (int64_t)p->last;
	known = map64_find(&p->pids, (uint64_t)pid + 1);
	if (known)
		return (int64_t)(p->last = *known);
	if (session_grow(&p->list, &p->cap, p->count + 1, sizeof(*p->list)) < 0 ||
		map64_put(&p->pids, (uint64_t)pid + 1, p->count) < 0)
		return -ENOMEM;
	p->list[p->count] = (struct process){.pid = pid};
	p->last = p->count++;
	return (int64_t)p->last;
}

static int open_process(void *ctx, struct process *p)
{
	struct merger *m = ctx;

	return output_open(&m->output, p);
}

/* ---- frames ------------------------------------------------------------------------------- */

static int cancelled(const struct merger *m)
{
	if (m->output.error)
		return m->output.error;
	return m->cancel && *m->cancel ? -ECANCELED : 0;
}

/* What is traced chooses keys of these tables; it does not know what the recorder wrote at its start. */
static void seed_tables(struct merger *m, uint64_t seed)
{
	struct map64 *const tables[] = {&m->session.name_index, &m->session.counter_index,
		&m->session.runtimes, &m->session.inspected, &m->processes.pids,
		&m->held.late_flags, &m->ingest.pairs, &m->ingest.id_index, &m->ingest.announced,
		&m->ingest.dma, &m->ingest.last_done, &m->timeline.threads, &m->timeline.displaced};

	m->session.seed = seed;
	for (size_t i = 0; i < sizeof(tables) / sizeof(*tables); i++)
		tables[i]->seed = seed;
}

/* Finds the first clock snapshot; then the frames stand at their beginning again.  Header and snapshot
 * are the seed. */
static int find_clock(struct merger *m, const struct merge_frames *frames)
{
	const struct rec_frame *f;
	const uint8_t *payload;
	uint64_t seed = 0;
	int rc = 0;

	while (!m->session.clock.known && (rc = frames->next(frames->ctx, &f, &payload)) > 0) {
		rc = cancelled(m);
		if (rc < 0)
			return rc;
		if (f->type == REC_HEADER || f->type == REC_CLOCK)
			seed = XXH3_64bits_withSeed(payload, f->size, seed);
		clock_map_find_frame(&m->session.clock, f, payload);
	}
	if (!m->session.clock.known)
		return rc < 0 ? rc : -ENODATA;
	seed_tables(m, seed);
	frames->rewind(frames->ctx);
	return 0;
}

/* Rows of device profiles come in between. */
static int item_after_rows(void *ctx, const struct item *item)
{
	struct merger *m = ctx;
	int rc = m->device.next < item->time ? device_rows_give(&m->device, item->time) : 0;

	return rc < 0 ? rc : timeline_item(&m->timeline, item);
}

static int release(struct merger *m, uint64_t before)
{
	int rc;

	if (before <= m->ingest.released)
		return 0;
	if (m->device.stream_count)
		rc = held_release(&m->held, before, item_after_rows, m);
	else
		rc = held_release(&m->held, before, timeline_item, &m->timeline);
	m->ingest.released = before;
	return rc;
}

/* It has come further than where it failed before. */
static void note_announced(struct merger *m, uint32_t pid)
{
	const uint64_t *known = map64_find(&m->processes.pids, (uint64_t)pid + 1);

	if (known)
		failures_announced(&m->processes.list[*known].failures);
}

/* The process of a session is there with or without records; others only with some. */
static int take_process(struct merger *m, const struct rec_frame *f, const uint8_t *payload)
{
	int rc = ingest_join(&m->ingest, f->source);
	uint32_t pid;

	if (rc == 0)
		rc = session_frame(&m->session, f, payload);
	pid = m->session.sources[f->source].pid;
	if (rc == 0 && session_own(&m->session) && pid)
		rc = process_of(&m->processes, pid) < 0 ? -ENOMEM : 0;
	if (rc == 0)
		note_announced(m, pid);
	return rc;
}

/* One whose nrt_init failed is there, too: it may have come no further than to that. */
static int take_failure(struct merger *m, const struct rec_frame *f, const uint8_t *payload)
{
	struct rec_failure failure;
	int64_t process;

	if (f->size < sizeof(failure) || f->source != REC_SOURCE_RECORDER)
		return session_invalid(&m->session);
	memcpy(&failure, payload, sizeof(failure));
	if (failure.pid == 0 || failure.status == 0)
		return session_invalid(&m->session);
	process = process_of(&m->processes, failure.pid);
	if (process < 0)
		return (int)process;
	failures_init(&m->processes.list[process].failures, &failure, f->time_ns);
	m->session.has_failed = true;
	return 0;
}

static int take_frame(struct merger *m, const struct rec_frame *f, const uint8_t *payload)
{
	int rc;

	switch (f->type) {
	case REC_RUNTIME:
		return ingest_runtime(&m->ingest, f, payload);
	case REC_KERNEL:
		return ingest_kernel(&m->ingest, f, payload);
	case REC_DRIVER:
		return ingest_driver(&m->ingest, f, payload);
	case REC_THREAD:
		return ingest_threads(&m->ingest, f, payload);
	case REC_WATERMARK:
		rc = ingest_watermark(&m->ingest, f, payload);
		return rc < 0 ? rc : release(m, ingest_safe(&m->ingest));
	case REC_NAME:
		return session_take_name(
			&m->session, f, payload, ingest_reach(&m->ingest, f->source));
	case REC_PROCESS:
		return take_process(m, f, payload);
	case REC_FAILURE:
		return take_failure(m, f, payload);
	default:
		return session_frame(&m->session, f, payload);
	}
}

/* A profile that is not whole is damage like any other. */
static void add_bad_profiles(struct session *s)
{
	s->damage.bad_frames += s->profiles.bad;
	s->damage.skipped_bytes += s->profiles.bad_bytes;
}

static int check_device_files(struct merger *m)
{
	const struct device_file *f = device_files_cut(&m->device.files);

	return f ? output_fail(&m->output, -EBADMSG,
			   "%s became shorter while it was read; leave the recording alone and "
			   "merge "
			   "it again",
			   f->name)
		 : 0;
}

static int take_frames(struct merger *m, const struct merge_frames *frames)
{
	const struct rec_frame *f;
	const uint8_t *payload;
	int rc;

	while ((rc = frames->next(frames->ctx, &f, &payload)) > 0) {
		rc = cancelled(m);
		if (rc == 0)
			rc = take_frame(m, f, payload);
		if (rc < 0)
			return rc;
	}
	m->session.damage = frames->damage(frames->ctx);
	add_bad_profiles(&m->session);
	if (rc == 0)
		rc = ingest_end(&m->ingest);
	if (rc == 0)
		rc = release(m, UINT64_MAX);
	if (rc == 0)
		rc = device_rows_give(&m->device, UINT64_MAX);
	if (rc == 0)
		device_rows_end(&m->device);
	return rc < 0 ? rc : check_device_files(m);
}

/* ---- the end ------------------------------------------------------------------------------ */

static int compare_pids(const void *a, const void *b)
{
	uint32_t x = ((const struct process *)a)->pid, y = ((const struct process *)b)->pid;

	return (x > y) - (x < y);
}

static int end_process(struct merger *m, struct process *p)
{
	struct ledger g = m->capture;
	int rc = p->files ? 0 : output_open(&m->output, p);

	ledger_add_process(&g, p);
	ledger_add_invalid(&g, &m->session);
	if (rc == 0)
		rc = timeline_end(&m->timeline, p);
	if (rc == 0)
		rc = output_commit(&m->output, p, &g, &m->ret->outputs[m->ret->output_count]);
	if (rc < 0)
		return rc;
	m->ret->output_count++;
	ledger_add_process(&m->total, p);
	return 0;
}

/* Commits the processes, in the order of their pids. */
static int end_processes(struct merger *m)
{
	struct processes *p = &m->processes;
	int rc = 0;

	ledger_capture(&m->capture, &m->session);
	m->total = m->capture;
	if (p->count == 0)
		return 0;
	qsort(p->list, p->count, sizeof(*p->list), compare_pids);
	m->ret->outputs = calloc(p->count, sizeof(*m->ret->outputs));
	if (!m->ret->outputs)
		return -ENOMEM;
	m->session.process_count = p->count;
	for (size_t i = 0; rc == 0 && i < p->count; i++) {
		rc = cancelled(m);
		if (rc == 0)
			rc = end_process(m, &p->list[i]);
	}
	return rc;
}

static int fill_failures(struct merger *m)
{
	struct merge_result *r = m->ret;

	r->failures = calloc(m->processes.count * FAILURES_TEXTS + 1, sizeof(*r->failures));
	if (!r->failures)
		return -ENOMEM;
	for (size_t i = 0; i < m->processes.count; i++) {
		const struct process *p = &m->processes.list[i];

		r->failure_count += failures_tell(&p->failures, p->pid, session_end(&m->session),
			m->session.end_ns, &r->failures[r->failure_count]);
	}
	return 0;
}

static void fill_result(struct merger *m)
{
	struct merge_result *r = m->ret;
	const struct session *s = &m->session;
	uint64_t device_runs = 0;

	for (size_t i = 0; i < m->processes.count; i++)
		device_runs += m->processes.list[i].device_runs - m->processes.list[i].device.runs;
	ledger_add_invalid(&m->total, s);
	for (uint32_t id = 0; id < REC_COUNTER_MAX; id++)
		r->ledger[id] = (struct merge_ledger_row){id, m->total.value[id]};
	r->lost = ledger_lost(&m->total);
	r->seq_gaps = s->seq_gaps;
	r->balanced = ledger_balanced(&m->total, s->seq_gaps, s->ended) &&
		      ledger_complete(&m->total, s->read);
	r->ended = s->ended;
	r->end = s->end;
	r->is_virtual = s->is_virtual;
	r->is_simulated = s->is_simulated;
	r->counted = s->counter_count > 0;
	r->is_cut = s->header.info.is_cut;
	r->is_session = session_own(s) != NULL;
	r->begin_ns = clock_map_real(&s->clock, s->clock.begin);
	r->damage = s->damage;
	r->spilled = m->held.spilled;
	r->samples_spilled = s->samples_spilled;
	if (s->profiles.asked) {
		r->profiles_missing = s->profiles.bad + s->profiles.absent + s->profiles.at_least;
		r->runs_missing = device_runs;
	}
	r->blind_count = blind_lines(s, device_runs, r->blind);
}

/* ---- the whole ---------------------------------------------------------------------------- */

static int init(struct merger *m, const char *out_dir, const struct merge_options *options,
	char **ret_error)
{
	int rc = session_init(&m->session);

	m->cancel = options->cancel;
	m->output = (struct output){.session = &m->session,
		.dir = out_dir,
		.sink = options->sink,
		.leaf = options->leaf,
		.kernel_events = options->kernel_events,
		.ret_error = ret_error};
	m->session.samples =
		(struct stored_place){output_temporary, &m->output, &m->session.samples_spilled};
	held_init(&m->held, options->held_bytes, output_temporary, &m->output);
	if (rc == 0)
		rc = ingest_init(&m->ingest, &m->session, &m->held, &m->processes);
	if (rc == 0)
		rc = timeline_init(
			&m->timeline, &m->session, &m->processes, options->kernel_events);
	m->timeline.open = open_process;
	m->timeline.ctx = m;
	m->timeline.encoder.flush = output_flush;
	m->timeline.encoder.ctx = &m->output;
	return rc;
}

static void done(struct merger *m)
{
	for (size_t i = 0; i < m->processes.count; i++)
		output_discard(&m->output, &m->processes.list[i]);
	output_end(&m->output);
	device_rows_free(&m->device);
	ingest_free(&m->ingest);
	held_free(&m->held);
	timeline_free(&m->timeline);
	processes_free(&m->processes);
	session_free(&m->session);
}

static int is_stopped(void *ctx)
{
	return cancelled(ctx);
}

static void run_began(
	void *ctx, const struct item *start, uint32_t exec_id, uint32_t device_core, uint64_t mark)
{
	device_rows_run(ctx, start, exec_id, device_core, mark);
}

static int open_device(struct merger *m, struct rec_reader *reader)
{
	int rc = device_rows_open(&m->device, reader, &m->session, &m->processes, &m->timeline);

	m->device.stop = is_stopped;
	m->device.ctx = m;
	m->ingest.run = run_began;
	m->ingest.run_ctx = &m->device;
	return rc;
}

/* reader: where device profiles are, when their rows are wanted; else NULL. */
static int merge_all(const struct merge_frames *frames, struct rec_reader *reader, const char *name,
	const char *out_dir, const struct merge_options *options, struct merge_result *ret,
	char **ret_error)
{
	struct merger m = {.ret = ret};
	int rc;

	memset(ret, 0, sizeof(*ret));
	*ret_error = NULL;
	rc = init(&m, out_dir, options, ret_error);
	if (rc == 0)
		rc = find_clock(&m, frames);
	if (rc == -ENODATA)
		output_fail(&m.output, rc,
			"%s holds no clock snapshot, so no time in it can be told", name);
	if (rc == 0 && reader)
		rc = open_device(&m, reader);
	if (rc == 0)
		rc = take_frames(&m, frames);
	if (rc == 0)
		rc = fill_failures(&m); /* what can fail comes before the files have their names */
	if (rc == 0)
		rc = end_processes(&m);
	if (rc == 0)
		fill_result(&m);
	if (rc == -ECANCELED)
		output_fail(&m.output, rc, "interrupted");
	done(&m);
	return rc;
}

int merge_frames(const struct merge_frames *frames, const char *name, const char *out_dir,
	const struct merge_options *options, struct merge_result *ret, char **ret_error)
{
	return merge_all(frames, NULL, name, out_dir, options, ret, ret_error);
}

static int reader_next(void *ctx, const struct rec_frame **ret_frame, const uint8_t **ret_payload)
{
	return rec_reader_next(ctx, ret_frame, ret_payload);
}

static void reader_rewind(void *ctx)
{
	rec_reader_rewind(ctx);
}

static struct rec_damage reader_damage(void *ctx)
{
	return rec_reader_damage(ctx);
}

int merge_recording(const char *rec_path, const char *out_dir, const struct merge_options *options,
	struct merge_result *ret, char **ret_error)
{
	struct merge_frames frames = {
		.next = reader_next, .rewind = reader_rewind, .damage = reader_damage};
	struct rec_reader *reader;
	int rc = rec_reader_open(rec_path, &reader);
	bool in_work;

	memset(ret, 0, sizeof(*ret));
	*ret_error = NULL;
	if (rc < 0)
		return rc;
	frames.ctx = reader;
	in_work = rec_reader_in_work(reader);
	rec_reader_cancel_by(reader, options->cancel);
	rc = in_work && options->only_at_rest ? -EBUSY
					      : merge_all(&frames, options->device ? reader : NULL,
							rec_path, out_dir, options, ret, ret_error);
	ret->in_work = in_work;
	rec_reader_close(reader);
	return rc;
}

void merge_result_free(struct merge_result *r)
{
	for (uint32_t i = 0; i < r->output_count; i++)
		free(r->outputs[i].dir);
	free(r->outputs);
	free(r->failures);
	memset(r, 0, sizeof(*r));
}
