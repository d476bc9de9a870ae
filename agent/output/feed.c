/* SPDX-License-Identifier: Apache-2.0 */
/*
 * feed.c - what is at a path, and the same calls for either kind of it.
 *
 * Of damaged input all is fed that can be read, process by process; the first damage that was met is
 * told at the end.
 */
#include "agent/output/feed.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/output/leaf.h"
#include "agent/output/leaf_below.h"
#include "agent/output/report.h"
#include "agent/output/same_trace.h"
#include "agent/output/state.h"
#include "agent/output/trace_read.h"
#include "proto/delimited.h"
#include "proto/message.h"
#include "runtime/base/file.h"
#include "runtime/record/merge.h"

/* A process with what it owns. */
struct fed {
	struct feed_process process; /* first, so that either pointer is the other */
	char *name;
};

struct feeder {
	const struct feed_sink *sink;
	const volatile sig_atomic_t *cancel;
	bool device;
	const struct feed_options *options;
	struct fed **list;
	uint32_t count;
	struct ntrace_event_view view;
	bool damaged;
	char **ret_error;
};

/* Says what failed; the first saying counts.  Returns error. */
static int fail(struct feeder *f, int error, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static int fail(struct feeder *f, int error, const char *format, ...)
{
	va_list ap;

	if (*f->ret_error)
		return error;
	va_start(ap, format);
	if (vasprintf(f->ret_error, format, ap) < 0)
		*f->ret_error = NULL;
	va_end(ap);
	return error;
}

static void feeder_free(struct feeder *f)
{
	for (uint32_t i = 0; i < f->count; i++) {
		free(f->list[i]->name);
		free(f->list[i]);
	}
	free(f->list);
}

/* A new process, told to the sink.  0 or -errno. */
static int add_process(
	struct feeder *f, uint32_t pid, const char *name, int64_t offset, struct feed_process **ret)
{
	struct fed **list = realloc(f->list, (f->count + 1) * sizeof(*list));
	struct fed *p = list ? calloc(1, sizeof(*p)) : NULL;

	if (list)
		f->list = list;
	if (p)
		p->name = strdup(name);
	if (!p || !p->name) {
		free(p);
		return -ENOMEM;
	}
	p->process = (struct feed_process){.index = f->count,
		.pid = pid,
		.name = p->name,
		.realtime_offset_ns = offset,
		.has_offset = offset != 0};
	f->list[f->count++] = p;
	*ret = &p->process;
	return f->sink->process ? f->sink->process(f->sink->ctx, &p->process) : 0;
}

/* ---- one message of a file --------------------------------------------------------------------- */

typedef int (*message_fn)(struct feeder *f, struct feed_process *p, const uint8_t *msg, size_t len,
	bool *ret_damaged);

static int feed_event(
	struct feeder *f, struct feed_process *p, const uint8_t *msg, size_t len, bool *ret_damaged)
{
	size_t at;

	/* Zeros parse too, and so do messages of other files. */
	*ret_damaged = ntrace_event_parse(msg, len, &f->view, &at) < 0 ||
		       f->view.phase == PHASE_INVALID || f->view.phase > PHASE_INSTANT ||
		       f->view.timestamp == 0;
	if (*ret_damaged || !f->sink->event)
		return 0;
	return f->sink->event(f->sink->ctx, p, &f->view);
}

static int feed_cpu(
	struct feeder *f, struct feed_process *p, const uint8_t *msg, size_t len, bool *ret_damaged)
{
	ProtobufCMessage *m;
	int rc = pb_message_unpack(&ntff__cpu_util__descriptor, msg, len, &m);

	*ret_damaged = rc == -EBADMSG;
	if (rc < 0)
		return *ret_damaged ? 0 : rc;
	if (f->sink->cpu)
		rc = f->sink->cpu(f->sink->ctx, p, (Ntff__CpuUtil *)m);
	protobuf_c_message_free_unpacked(m, NULL);
	return rc;
}

static int feed_mem(
	struct feeder *f, struct feed_process *p, const uint8_t *msg, size_t len, bool *ret_damaged)
{
	ProtobufCMessage *m;
	int rc = pb_message_unpack(&ntff__host_mem_usage__descriptor, msg, len, &m);

	*ret_damaged = rc == -EBADMSG;
	if (rc < 0)
		return *ret_damaged ? 0 : rc;
	if (f->sink->mem)
		rc = f->sink->mem(f->sink->ctx, p, (Ntff__HostMemUsage *)m);
	protobuf_c_message_free_unpacked(m, NULL);
	return rc;
}

static const message_fn streams[] = {
	[MERGE_NTRACE] = feed_event, [MERGE_CPU_UTIL] = feed_cpu, [MERGE_HOST_MEM] = feed_mem};

static int feed_end(struct feeder *f, struct feed_process *p, const Ntff__NtraceInfo *info)
{
	return f->sink->end ? f->sink->end(f->sink->ctx, p, info) : 0;
}

/* Tells which sessions have no files yet.  How many, or -ENOMEM. */
static int tell_left_out(struct feeder *f, const char *path)
{
	struct leaf_below out;
	int rc = leaf_below_left_out(path, &out);

	for (size_t i = 0; rc == 0 && f->options->left_out && i < out.count; i++)
		f->options->left_out(
			f->options->left_out_ctx, out.dirs[i], leaf_in_work(out.dirs[i]));
	if (rc == 0)
		rc = (int)out.count;
	leaf_below_free(&out);
	return rc;
}

static int judge_left_out(struct feeder *f, const char *path)
{
	int n = tell_left_out(f, path);

	if (n <= 0)
		return n;
	f->damaged = true;
	fail(f, 0, "%s: %d session%s left out; what is shown is that of the others", path, n,
		n == 1 ? " is" : "s are");
	return 0;
}

static int fail_without_any(struct feeder *f, const char *path)
{
	int n = tell_left_out(f, path);

	if (n < 0)
		return n;
	if (n)
		return fail(f, -ENOENT,
			"%s: there is no ntrace.pb here or one directory below, and the %s above "
			"%s no "
			"files yet",
			path, n == 1 ? "session" : "sessions", n == 1 ? "has" : "have");
	return fail(f, -ENOENT,
		"%s: there is no ntrace.pb here or one directory below, and no recording", path);
}

/* ---- a recording ------------------------------------------------------------------------------- */

static int merged_open(
	void *ctx, uint32_t pid, const char *name, int64_t offset, void **ret_process)
{
	struct feed_process *p = NULL;
	int rc = add_process(ctx, pid, name, offset, &p);

	*ret_process = p;
	return rc;
}

static int merged_info(struct feeder *f, struct feed_process *p, const uint8_t *data, size_t size)
{
	ProtobufCMessage *info;
	int rc = pb_message_unpack(&ntff__ntrace_info__descriptor, data, size, &info);

	if (rc < 0)
		return rc;
	rc = feed_end(f, p, (const Ntff__NtraceInfo *)info);
	protobuf_c_message_free_unpacked(info, NULL);
	return rc;
}

static int merged_write(
	void *ctx, void *process, enum merge_file which, const uint8_t *data, size_t size)
{
	const uint8_t *msg;
	size_t pos = 0, len;
	bool damaged = false;
	int rc = 0;

	if (which == MERGE_TRACE_INFO)
		return merged_info(ctx, process, data, size);
	while (rc == 0 && !damaged && pb_delimited_next(data, size, &pos, &msg, &len) == 1)
		rc = streams[which](ctx, process, msg, len, &damaged);
	return rc == 0 && damaged ? -EBADMSG : rc;
}

/* Says what is wrong with a trace that was read; `what` is its recording or its directory. */
static void judge(struct feeder *f, const char *what, int len, const struct trace_state *s)
{
	char fault[STATE_TEXT];

	if (!state_fault(s, fault))
		return;
	f->damaged = true;
	fail(f, 0, "%.*s: %s; what is shown is what there is", len, what, fault);
}

static void judge_merge(struct feeder *f, const char *path, const struct merge_result *m)
{
	const struct trace_state state = state_of_merge(m);

	judge(f, path, (int)strlen(path), &state);
	if (m->balanced)
		return;
	f->damaged = true;
	fail(f, 0, "%s: the ledger does not balance", path);
}

static int feed_recording(struct feeder *f, const char *path)
{
	const struct merge_sink sink = {f, merged_open, merged_write};
	const struct merge_options options = {
		.cancel = f->cancel, .sink = &sink, .device = f->device};
	_cleanup_free_ char *error = NULL;
	struct merge_result m;
	int rc = merge_recording(path, NULL, &options, &m, &error);

	if (rc == -ENOENT)
		rc = fail_without_any(f, path);
	else if (rc == -ENODATA)
		rc = fail(f, -EBADMSG, "%s", error ? error : report_reason(rc));
	else if (rc < 0)
		fail(f, rc, "%s: %s", path, error ? error : report_reason(rc));
	else
		judge_merge(f, path, &m);
	merge_result_free(&m);
	return rc;
}

/* ---- merged files ------------------------------------------------------------------------------ */

/* p: whose file it is, NULL before that is known. */
static int read_failed(
	struct feeder *f, struct feed_process *p, int error, const char *path, uint64_t offset)
{
	if (error == -ECANCELED)
		return fail(f, error, "interrupted");
	if (error == -EBADMSG) {
		f->damaged = true;
		if (p)
			p->damaged = true;
		fail(f, 0, "%s is damaged at byte %llu", path, (unsigned long long)offset);
		return 0;
	}
	return fail(f, error, "cannot read %s: %s", path, strerror(-error));
}

/* Is a file, which was read to its end, all that there was? */
static void check_whole(struct feeder *f, struct feed_process *p, const char *path,
	const struct trace_read *r, const Ntff__NtraceInfo *info)
{
	char text[TRACE_TEXT];

	if (trace_info_agrees(info, path, r->count, trace_read_offset(r), text) &&
		(info || trace_read_offset(r)))
		return;
	p->damaged = f->damaged = true;
	fail(f, 0, "%s %s", path, *text ? text : "is empty");
}

/* Feeds a file's messages as far as they can be read. */
static int feed_stream(struct feeder *f, struct feed_process *p, enum merge_file which,
	const char *path, const Ntff__NtraceInfo *info)
{
	struct trace_read r;
	bool damaged = false;
	int rc = trace_read_open_until(&r, path, f->cancel), fed = 0;

	if (rc == -ENOENT && which != MERGE_NTRACE)
		return 0;
	if (rc < 0)
		return read_failed(f, p, rc, path, 0);
	for (;;) {
		const uint8_t *msg;
		size_t len;

		if (f->cancel && *f->cancel)
			fed = fail(f, -ECANCELED, "interrupted");
		else if ((rc = trace_read_record(&r, &msg, &len)) == 1)
			fed = streams[which](f, p, msg, len, &damaged);
		if (fed < 0 || rc != 1 || damaged)
			break;
		trace_read_skip(&r);
	}
	if (fed == 0 && (rc < 0 || damaged))
		fed = read_failed(f, p, damaged ? -EBADMSG : rc, path, trace_read_offset(&r));
	else if (fed == 0 && (info || which == MERGE_NTRACE))
		check_whole(f, p, path, &r, info);
	trace_read_close(&r);
	return fed;
}

/* cpu_util.pb or host_mem.pb beside a trace. */
static int feed_beside(struct feeder *f, struct feed_process *p, enum merge_file which,
	const char *trace, const Ntff__NtraceInfo *info)
{
	static const char *const names[] = {
		[MERGE_CPU_UTIL] = "cpu_util.pb", [MERGE_HOST_MEM] = "host_mem.pb"};
	const char *slash = strrchr(trace, '/');
	_cleanup_free_ char *path = NULL;

	if (asprintf(&path, "%.*s%s", slash ? (int)(slash - trace + 1) : 0, trace, names[which]) <
		0) {
		path = NULL;
		return -ENOMEM;
	}
	return feed_stream(f, p, which, path, info);
}

/* Do the files beside this one belong to it?  A copy under another name stands alone. */
static bool whole_set(const char *trace)
{
	const char *slash = strrchr(trace, '/');

	return !strcmp(slash ? slash + 1 : trace, "ntrace.pb");
}

/* Name of the directory that a file is in, "" when it cannot be told; to be freed.  NULL: no memory. */
static char *directory_name(const char *file)
{
	_cleanup_free_ char *path = realpath(file, NULL);
	char *slash = path ? strrchr(path, '/') : NULL;

	if (!path && errno == ENOMEM)
		return NULL;
	if (!slash)
		return strdup("");
	*slash = '\0';
	slash = strrchr(path, '/');
	return strdup(slash ? slash + 1 : path);
}

static int feed_with_info(struct feeder *f, const char *trace, const Ntff__NtraceInfo *info)
{
	_cleanup_free_ char *name = directory_name(trace);
	struct feed_process *p;
	int rc = name ? add_process(f, info ? info->pid : 0, name,
				info ? info->realtime_offset_ns : 0, &p)
		      : -ENOMEM;

	if (rc == 0)
		rc = feed_stream(f, p, MERGE_NTRACE, trace, info);
	if (rc == 0 && whole_set(trace))
		rc = feed_beside(f, p, MERGE_CPU_UTIL, trace, info);
	if (rc == 0 && whole_set(trace))
		rc = feed_beside(f, p, MERGE_HOST_MEM, trace, info);
	if (rc == 0 && info) {
		const struct trace_state state = state_of_info(info);
		const char *slash = strrchr(trace, '/');

		judge(f, slash ? trace : ".", slash ? (int)(slash - trace) : 1, &state);
	}
	return rc == 0 ? feed_end(f, p, info) : rc;
}

/* Was it merged with device profiles?  Then its ledger has their rows. */
static bool has_device(const Ntff__NtraceInfo *info)
{
	for (size_t i = 0; info && i < info->n_ledger; i++)
		if (!strcmp(info->ledger[i]->stage, "device"))
			return true;
	return false;
}

/* Files that were merged without device profiles: what else shows them. */
static int refuse_device(struct feeder *f, const char *trace, const Ntff__NtraceInfo *info)
{
	const char *slash = strrchr(trace, '/');
	int len = slash ? (int)(slash - trace) : 1;
	const char *dir = slash ? trace : ".";
	_cleanup_free_ char *kept = NULL;

	if (!info || !info->session)
		return fail(f, -ENOTUNIQ,
			"%s was merged without its device profiles; --device is for a recording: "
			"name that, or merge it with `ntrace replay --device`",
			trace);
	if (asprintf(&kept, "%.*s/" REC_DIR, len, dir) < 0) {
		kept = NULL;
		return -ENOMEM;
	}
	if (access(kept, F_OK) == 0)
		return fail(f, -ENOTUNIQ,
			"%s was merged without the device profiles of its session; name its "
			"recording: %s",
			trace, kept);
	return fail(f, -ENOTUNIQ,
		"%s was merged without the device profiles of its session, and the recording is "
		"gone; "
		"`ntrace dump` shows each .ntff in %.*s, and a session with "
		"NTRACE_KEEP_RECORDING=1 keeps the "
		"recording",
		trace, len, dir);
}

/* The process whose ntrace.pb is at `trace`. */
static int feed_files(struct feeder *f, const char *trace)
{
	_cleanup_free_ char *path = NULL;
	Ntff__NtraceInfo *info = NULL;
	int rc = whole_set(trace) ? trace_info_read(trace, &info, &path) : 0;

	if (rc < 0)
		rc = path ? read_failed(f, NULL, rc, path, 0) : rc;
	if (rc == 0 && f->device && !has_device(info))
		rc = refuse_device(f, trace, info);
	if (rc == 0)
		rc = feed_with_info(f, trace, info);
	if (info)
		ntff__ntrace_info__free_unpacked(info, NULL);
	return rc;
}

/* ---- the whole --------------------------------------------------------------------------------- */

int feed_trace(const char *path, const struct feed_options *options, const struct feed_sink *sink,
	char **ret_error)
{
	struct feeder f = {.sink = sink,
		.cancel = options->cancel,
		.device = options->device,
		.options = options,
		.ret_error = ret_error};
	struct trace_set set;
	int rc;

	*ret_error = NULL;
	rc = trace_set_find(path, &set);
	if (rc == -ENODATA)
		rc = feed_recording(&f, path);
	else if (rc < 0)
		fail(&f, rc, "cannot read %s: %s", path, strerror(-rc));
	else
		rc = same_trace_twice(&set, ret_error);
	for (size_t i = 0; rc == 0 && i < set.count; i++)
		rc = feed_files(&f, set.files[i]);
	if (rc == 0 && set.count && !set.is_file)
		rc = judge_left_out(&f, path);
	if (rc == -ENOMEM)
		fail(&f, rc, "out of memory");
	else if (rc < 0)
		fail(&f, rc, "%s: %s", path, strerror(-rc));
	trace_set_free(&set);
	feeder_free(&f);
	return rc == 0 && f.damaged ? -EBADMSG : rc;
}
