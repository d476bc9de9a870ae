/* SPDX-License-Identifier: Apache-2.0 */
/*
 * merge.c - drives the stages: load, then for each process pair, order, link and the four writers.
 *
 * The four files of a process appear together or not at all: they are written under temporary
 * names, trace_info.pb last, and what was committed is taken back when a later one fails.
 * Processes stand for themselves: those written before a failure stay.
 */
#include "runtime/record/merge.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/file.h"
#include "runtime/record/blind.h"
#include "runtime/record/ledger.h"
#include "runtime/record/load.h"
#include "runtime/record/out.h"
#include "runtime/record/timeline.h"

#define MAX_INSTANCE 64

enum out_file { FILE_NTRACE, FILE_CPU_UTIL, FILE_HOST_MEM, FILE_TRACE_INFO, FILE_COUNT };

static const struct {
	const char *name, *type;
} file_names[FILE_COUNT] = {
	[FILE_NTRACE] = {"ntrace.pb", "ntrace"},
	[FILE_CPU_UTIL] = {"cpu_util.pb", "cpu_util"},
	[FILE_HOST_MEM] = {"host_mem.pb", "host_mem"},
	[FILE_TRACE_INFO] = {"trace_info.pb", "trace_info"},
};

/* The files of one process while they are being written. */
struct file_set {
	char *dir;
	char *path[FILE_COUNT];
	struct outfile file[FILE_COUNT];
	unsigned opened, committed;
	uint64_t messages[FILE_COUNT];
};

struct merger {
	struct load load;
	const char *out_dir;
	struct merge_result *ret;
	char **ret_error;
	struct ledger capture; /* the stages before the merge */
	struct ledger total;   /* with the merge of all processes */
	uint64_t device_runs;
};

static int fail(struct merger *m, int error, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Says what failed; the first saying counts. */
static int fail(struct merger *m, int error, const char *format, ...)
{
	va_list ap;

	if (*m->ret_error)
		return error;
	va_start(ap, format);
	if (vasprintf(m->ret_error, format, ap) < 0)
		*m->ret_error = NULL;
	va_end(ap);
	return error;
}

/* ---- a process's files -------------------------------------------------------------------- */

/* The instance becomes part of a path and comes from a file: only harmless characters stay. */
static void instance_name(const struct load *l, char name[MAX_INSTANCE + 1])
{
	const char *s = l->header.info.instance_id;
	size_t n = 0;

	for (; s && *s && n < MAX_INSTANCE; s++) {
		bool plain = (*s >= 'a' && *s <= 'z') || (*s >= 'A' && *s <= 'Z') ||
			     (*s >= '0' && *s <= '9') || *s == '-' || *s == '_' ||
			     (*s == '.' && n > 0);
		name[n++] = plain ? *s : '_';
	}
	name[n] = '\0';
	if (n == 0)
		snprintf(name, MAX_INSTANCE + 1, "unknown");
}

static void file_set_discard(struct file_set *s)
{
	for (unsigned i = 0; i < s->opened; i++)
		outfile_abort(&s->file[i]);
	for (unsigned i = 0; i < s->committed; i++)
		unlink(s->path[i]);
	if (s->dir)
		rmdir(s->dir); /* made by this run; fails if anything else is in it */
}

static void file_set_free(struct file_set *s)
{
	for (unsigned i = 0; i < FILE_COUNT; i++)
		free(s->path[i]);
	free(s->dir);
}

static int file_set_open(struct merger *m, struct file_set *s, uint32_t pid)
{
	char instance[MAX_INSTANCE + 1];
	_cleanup_free_ char *base = NULL;
	int rc;

	instance_name(&m->load, instance);
	if (asprintf(&base, "%s/%s_pid_%u", m->out_dir, instance, pid) < 0) {
		base = NULL;
		return fail(m, -ENOMEM, "out of memory");
	}
	rc = file_mkdir_unique(base, &s->dir);
	if (rc < 0)
		return fail(m, rc, "cannot create %s: %s", base, strerror(-rc));
	for (unsigned i = 0; i < FILE_COUNT; i++) {
		if (asprintf(&s->path[i], "%s/%s", s->dir, file_names[i].name) < 0) {
			s->path[i] = NULL;
			return fail(m, -ENOMEM, "out of memory");
		}
		rc = outfile_open(&s->file[i], s->path[i]);
		if (rc < 0)
			return fail(m, rc, "cannot create %s: %s", s->path[i], strerror(-rc));
		s->opened++;
	}
	return 0;
}

static int file_set_write(struct merger *m, struct file_set *s, struct timeline *t)
{
	struct out_profile profiles[FILE_TRACE_INFO];
	struct ledger g = m->capture;
	uint32_t pid = t->p->pid;
	int rc = out_ntrace(t, &s->file[FILE_NTRACE], &s->messages[FILE_NTRACE]);

	if (rc == 0)
		rc = out_cpu_util(&m->load, &s->file[FILE_CPU_UTIL], &s->messages[FILE_CPU_UTIL]);
	if (rc == 0)
		rc = out_host_mem(
			&m->load, pid, &s->file[FILE_HOST_MEM], &s->messages[FILE_HOST_MEM]);
	for (unsigned i = 0; i < FILE_TRACE_INFO; i++)
		profiles[i] = (struct out_profile){
			file_names[i].name, file_names[i].type, s->messages[i], s->file[i].bytes};
	ledger_add_timeline(&g, t);
	ledger_add_invalid(&g, &m->load);
	if (rc == 0)
		rc = out_trace_info(t, &g, profiles, FILE_TRACE_INFO, &s->file[FILE_TRACE_INFO]);
	return rc < 0 ? fail(m, rc, "cannot write below %s: %s", s->dir, strerror(-rc)) : 0;
}

static int file_set_commit(struct merger *m, struct file_set *s)
{
	for (unsigned i = 0; i < FILE_COUNT; i++) {
		int rc = outfile_commit(&s->file[i]);
		if (rc < 0)
			return fail(m, rc, "cannot write %s: %s", s->path[i], strerror(-rc));
		s->committed++;
	}
	return 0;
}

/* ---- a process ---------------------------------------------------------------------------- */

static void note_output(struct merger *m, struct file_set *s, const struct timeline *t)
{
	m->ret->outputs[m->ret->output_count++] = (struct merge_output){
		.pid = t->p->pid,
		.dir = s->dir,
		.events = s->messages[FILE_NTRACE],
		.cpu_samples = s->messages[FILE_CPU_UTIL],
		.mem_samples = s->messages[FILE_HOST_MEM],
		.spans = t->spans,
		.open_spans = t->open_spans,
		.kernel_spans = t->kernel_spans,
	};
	s->dir = NULL;
	m->device_runs += t->device_runs;
	ledger_add_timeline(&m->total, t);
}

static int write_process(struct merger *m, struct timeline *t)
{
	struct file_set s = {0};
	int rc = file_set_open(m, &s, t->p->pid);

	if (rc == 0)
		rc = file_set_write(m, &s, t);
	if (rc == 0)
		rc = file_set_commit(m, &s);
	if (rc == 0)
		note_output(m, &s, t);
	else
		file_set_discard(&s);
	file_set_free(&s);
	return rc;
}

static int merge_process(
	struct merger *m, const struct load_process *p, const struct merge_options *options)
{
	struct timeline t;
	int rc;

	if (options->cancel && *options->cancel)
		return fail(m, -ECANCELED, "interrupted");
	timeline_init(&t, &m->load, p, options->kernel_events);
	t.cancel = options->cancel;
	rc = timeline_pair(&t);
	if (rc == 0)
		rc = timeline_order(&t);
	if (rc == 0)
		rc = timeline_link(&t);
	if (rc < 0)
		fail(m, rc, "cannot merge process %u: %s", p->pid, strerror(-rc));
	else
		rc = write_process(m, &t);
	timeline_free(&t);
	return rc;
}

/* ---- the whole ---------------------------------------------------------------------------- */

static void fill_result(struct merger *m)
{
	struct merge_result *r = m->ret;
	const struct load *l = &m->load;

	ledger_add_invalid(&m->total, l);
	for (uint32_t id = 0; id < REC_COUNTER_MAX; id++)
		r->ledger[id] = (struct merge_ledger_row){id, m->total.value[id]};
	r->lost = ledger_lost(&m->total);
	r->seq_gaps = l->seq_gaps;
	r->balanced = ledger_balanced(&m->total, l->seq_gaps, l->ended);
	r->ended = l->ended;
	r->end = l->end;
	r->is_virtual = l->is_virtual;
	r->damage = l->damage;
	r->blind_count = blind_lines(l, m->device_runs, r->blind);
}

static int merge_processes(struct merger *m, const struct merge_options *options)
{
	const struct load *l = &m->load;
	unsigned made;
	int rc;

	if (l->process_count == 0)
		return 0;
	m->ret->outputs = calloc(l->process_count, sizeof(*m->ret->outputs));
	if (!m->ret->outputs)
		return fail(m, -ENOMEM, "out of memory");
	rc = file_mkdirs(m->out_dir, &made);
	if (rc < 0)
		return fail(m, rc, "cannot create %s: %s", m->out_dir, strerror(-rc));
	for (size_t i = 0; rc == 0 && i < l->process_count; i++)
		rc = merge_process(m, &l->processes[i], options);
	if (rc < 0)
		file_mkdirs_undo(m->out_dir, made);
	return rc;
}

int merge_recording(const char *rec_path, const char *out_dir, const struct merge_options *options,
	struct merge_result *ret, char **ret_error)
{
	struct merger m = {.out_dir = out_dir, .ret = ret, .ret_error = ret_error};
	int rc;

	memset(ret, 0, sizeof(*ret));
	*ret_error = NULL;
	rc = load_recording(rec_path, &m.load);
	if (rc == -ENODATA)
		fail(&m, rc, "%s holds no clock snapshot, so no time in it can be told", rec_path);
	if (rc == 0) {
		ledger_capture(&m.capture, &m.load);
		m.total = m.capture;
		rc = merge_processes(&m, options);
	}
	if (rc == 0)
		fill_result(&m);
	load_free(&m.load);
	return rc;
}

void merge_result_free(struct merge_result *r)
{
	for (uint32_t i = 0; i < r->output_count; i++)
		free(r->outputs[i].dir);
	free(r->outputs);
	memset(r, 0, sizeof(*r));
}
