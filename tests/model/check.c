/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check.c - the files of a merge against what must stand in them.
 *
 * Every record of a file is found by what the model wrote into it (runtime records: nrta_seq_id; driver
 * calls: their handle), its time is held against the truth, and then the whole sequence, parents,
 * sums and links against brute force over the times as written.
 */
#include "tests/model/expect.h"

#include <errno.h>
#include <inttypes.h>

#include "proto/neuron_trace.pb-c.h"
#include "runtime/record/ledger.h"
#include "runtime/trace/event_registry.h"
#include "vmlinux/ioctl_table.h"

bool model_fail(struct model *m, const char *format, ...)
{
	va_list ap;

	if (m->what[0])
		return false;
	va_start(ap, format);
	vsnprintf(m->what, sizeof(m->what), format, ap);
	va_end(ap);
	return false;
}

struct checker {
	struct model *m;
	const struct merge_result *result;
	struct expect *x;
	struct trace_file file;
	uint64_t late_ns; /* in all files */
	uint64_t late, written, announced, not_wanted, lost, read, device_runs;
};

static const char *side_names[] = {"runtime", "call", "marker"};
static const char *kind_names[] = {"span", "open span", "instant", "lost start", "duplicate"};

/* Which expected span this is, for messages. */
static const char *name_of(const struct checker *c, const struct want *w)
{
	static char text[2][160];
	static unsigned next;
	char *out = text[next++ % 2];

	snprintf(out, sizeof(text[0]),
		"process %u %s %s %u (%s, tid %u, true times %" PRIu64 "..%" PRIu64 ")",
		c->x->process, side_names[w->side], kind_names[w->kind], w->index,
		w->side == WANT_RUNTIME ? trace_event_info(w->type)->name : "-", w->tid,
		w->side == WANT_RUNTIME	 ? c->m->spans[w->index].from
		: w->side == WANT_KERNEL ? c->m->calls[w->index].from
					 : 0,
		w->side == WANT_RUNTIME	 ? c->m->spans[w->index].to
		: w->side == WANT_KERNEL ? c->m->calls[w->index].to
					 : 0);
	return out;
}

#define FAIL(c, w, format, ...) model_fail((c)->m, "%s: " format, name_of((c), (w)), ##__VA_ARGS__)

static uint64_t number(const struct ntrace_event_view *e, const char *key)
{
	const char *text = event_attr(e, key);

	return *text ? strtoull(text, NULL, 0) : 0;
}

/* ---- finding ------------------------------------------------------------------------------------ */

static bool find_runtime(struct checker *c, struct want *w, bool *taken)
{
	static const char *const starts[] = {
		[WANT_INSTANT] = "", [WANT_LOST] = "lost", [WANT_DUPLICATE] = "duplicate"};

	for (size_t i = 0; i < c->file.count; i++) {
		const struct ntrace_event_view *e = &c->file.events[i];

		if (taken[i] || !e->has_nrta_seq_id || e->nrta_seq_id != w->index + 1u)
			continue;
		if (w->kind >= WANT_INSTANT) {
			if (e->phase != PHASE_INSTANT ||
				strcmp(event_attr(e, "start"), starts[w->kind]) != 0)
				continue;
			w->start_event = e;
			taken[i] = true;
			return true;
		}
		if (e->phase == PHASE_START && !w->start_event) {
			w->start_event = e;
			taken[i] = true;
		} else if (e->phase == PHASE_STOP && !w->stop_event) {
			w->stop_event = e;
			taken[i] = true;
		}
	}
	return w->start_event != NULL;
}

static bool find_call(struct checker *c, struct want *w, bool *taken)
{
	for (size_t i = 0; i < c->file.count; i++) {
		const struct ntrace_event_view *e = &c->file.events[i];

		if (taken[i] || e->has_nrta_seq_id || number(e, "handle") != w->index + 1u)
			continue;
		taken[i] = true;
		if (e->phase == PHASE_STOP)
			w->stop_event = e;
		else
			w->start_event = e;
	}
	for (size_t i = 0; w->stop_event && !w->start_event && i < c->file.count; i++) {
		const struct ntrace_event_view *e = &c->file.events[i];

		if (!taken[i] && e->phase == PHASE_START && e->id == w->stop_event->id) {
			w->start_event = e;
			taken[i] = true;
		}
	}
	return w->start_event != NULL;
}

static bool find_marker(struct checker *c, struct want *w, bool *taken)
{
	for (size_t i = 0; i < c->file.count; i++) {
		const struct ntrace_event_view *e = &c->file.events[i];

		if (taken[i] || !pb_str_is(e->hint, "clock_step") ||
			e->timestamp != MODEL_EPOCH + w->start)
			continue;
		taken[i] = true;
		w->start_event = e;
		return e->phase == PHASE_INSTANT &&
		       (int64_t)number(e, "old_offset_ns") == MODEL_OFFSET + w->old_step &&
		       (int64_t)number(e, "new_offset_ns") == MODEL_OFFSET + w->new_step;
	}
	return false;
}

static bool is_written(const struct checker *c, const struct want *w)
{
	return w->side != WANT_KERNEL || c->m->options.kernel_events != MERGE_KERNEL_OFF;
}

static bool find_all(struct checker *c)
{
	_cleanup_free_ bool *taken = calloc(c->file.count + 1, sizeof(*taken));

	for (uint32_t i = 0; taken && i < c->x->count; i++) {
		struct want *w = &c->x->wants[i];
		bool found = true;

		if (w->side == WANT_RUNTIME)
			found = find_runtime(c, w, taken);
		else if (w->side == WANT_MARKER)
			found = find_marker(c, w, taken);
		else if (is_written(c, w))
			found = find_call(c, w, taken);
		if (!found ||
			(is_written(c, w) && (w->kind == WANT_SPAN) != (w->stop_event != NULL)))
			return FAIL(c, w, "not in the file as such");
	}
	for (size_t i = 0; taken && i < c->file.count; i++)
		if (!taken[i])
			return model_fail(c->m,
				"record %zu (tag %" PRIu64 ", phase %u) is one too many", i,
				c->file.events[i].nrta_seq_id, c->file.events[i].phase);
	return taken != NULL;
}

/* ---- times --------------------------------------------------------------------------------------- */

/* May a record be moved for being late? */
static bool may_be_late(const struct checker *c, const struct want *w)
{
	const uint32_t harmed =
		1u << WITH_OVERWRITTEN | 1u << WITH_INVALID | 1u << WITH_DAMAGE | 1u << WITH_UNREAD;

	/* The merge waits for a run as long as its execution is known to go on. */
	return w->side != WANT_RUNTIME || w->type != TRACE_DEVICE_EXEC || c->m->features & harmed;
}

/* The time as written, against the stamp, the truth and the watermark that was broken. */
static bool take_time(struct checker *c, struct want *w, const struct ntrace_event_view *e,
	const struct model_record *r, uint64_t stamp, uint64_t truth, uint64_t not_before,
	uint64_t *ret)
{
	uint64_t written = e->timestamp - MODEL_EPOCH, late = number(e, "late_ns");
	uint64_t bound = w->side == WANT_RUNTIME ? c->m->spans[w->index].bound : 0;
	uint64_t unmoved = written - late;

	*ret = written;
	c->late += late > 0;
	c->late_ns += late;
	if (e->timestamp < MODEL_EPOCH || late > written)
		return FAIL(c, w, "impossible time");
	if (bound == 0 && unmoved != stamp && !(w->side == WANT_KERNEL && !late))
		return FAIL(c, w,
			"written at %" PRIu64 " (late by %" PRIu64 ") instead of %" PRIu64, written,
			late, stamp);
	if (unmoved + bound < truth || unmoved > truth + bound) {
		if (w->side != WANT_KERNEL || written < truth)
			return FAIL(c, w, "off by %" PRId64 ", bound %" PRIu64,
				(int64_t)(unmoved - truth), bound);
	}
	if (written <= stamp + bound || written == not_before)
		return true;
	if (stamp >= r->said || written > r->said || !may_be_late(c, w))
		return FAIL(c, w, "moved from %" PRIu64 " to %" PRIu64 ", watermark %" PRIu64,
			stamp, written, r->said);
	return true;
}

/* What is not written has its times from the recording, moved as the rules say. */
static uint64_t moved(uint64_t time, const struct model_record *r)
{
	return time < r->said ? r->said : time;
}

static bool take_times(struct checker *c, struct want *w)
{
	const struct model_span *p = &c->m->spans[w->index];
	const struct model_call *k = &c->m->calls[w->index];
	bool stop_only = w->kind == WANT_LOST, ok;

	if (w->side == WANT_MARKER)
		return true;
	if (!is_written(c, w)) {
		w->start = w->end = moved(k->from, w->first);
		if (w->kind == WANT_SPAN) {
			w->end = moved(k->to, w->last);
			w->end = w->end < w->start ? w->start : w->end;
		}
		return true;
	}
	if (w->side == WANT_KERNEL) {
		ok = take_time(c, w, w->start_event, w->first, k->from, k->from, 0, &w->start);
		w->end = w->start;
		if (ok && w->kind == WANT_SPAN)
			ok = take_time(
				c, w, w->stop_event, w->last, k->to, k->to, w->start, &w->end);
		return ok;
	}
	ok = take_time(c, w, w->start_event, w->first, stop_only ? p->said_to : p->said_from,
		stop_only ? p->to : p->from, 0, &w->start);
	w->end = w->start;
	if (ok && w->kind == WANT_SPAN)
		ok = take_time(c, w, w->stop_event, w->last, p->said_to, p->to, w->start, &w->end);
	return ok;
}

/* ---- fields -------------------------------------------------------------------------------------- */

static bool check_runtime_event(
	struct checker *c, const struct want *w, const struct ntrace_event_view *e, bool is_start)
{
	const struct model_span *p = &c->m->spans[w->index];
	bool unknown = p->nc == TRACE_NC_UNKNOWN;
	bool stop = w->kind == WANT_LOST || (w->kind == WANT_SPAN && !is_start);

	if (e->event_type != p->type || e->hint.len ||
		e->thread_id != (stop ? p->stop_tid : p->tid))
		return FAIL(c, w, "type %u, thread %u", e->event_type, e->thread_id);
	if (e->nc_idx != (unknown ? 0 : p->nc) ||
		strcmp(event_attr(e, "nc"), unknown ? "unknown" : ""))
		return FAIL(c, w, "core %u", e->nc_idx);
	if (e->status != (stop || w->kind == WANT_INSTANT ? p->status : 0))
		return FAIL(c, w, "status %u", e->status);
	if (p->type == TRACE_EXEC_WAIT && !stop && number(e, "exec_id") != p->exec_id)
		return FAIL(c, w, "exec_id %s", event_attr(e, "exec_id"));
	return true;
}

static bool check_call_event(
	struct checker *c, const struct want *w, const struct ntrace_event_view *e, bool is_start)
{
	const struct model_call *k = &c->m->calls[w->index];
	bool copy = k->request == NEURON_IOCTL_MEM_BUF_COPY64;
	bool extended = c->m->options.kernel_events == MERGE_KERNEL_EXTENDED;
	const struct ioctl_row *row = ioctl_row_find(k->request);
	const char *error = k->result == -EACCES ? "EACCES" : k->result == -ENOENT ? "ENOENT" : "";

	if (!pb_str_is(e->hint, row->name) || e->thread_id != k->tid || e->nd_idx != 1 ||
		e->event_type != (extended ? 1000 + (uint32_t)(row - ioctl_rows) : 0))
		return FAIL(c, w, "name, thread, device or type %u", e->event_type);
	if (e->id >> 63 != 1)
		return FAIL(c, w, "id %" PRIx64, e->id);
	if (is_start && w->kind == WANT_SPAN)
		return true;
	if (number(e, "request") != k->request || number(e, "handle") != w->index + 1u ||
		(copy && number(e, "bytes") != k->bytes))
		return FAIL(c, w, "arguments");
	if (!is_start && (strtol(event_attr(e, "result"), NULL, 10) != k->result ||
				 strcmp(event_attr(e, "errno"), error)))
		return FAIL(c, w, "result %s", event_attr(e, "result"));
	return true;
}

static bool check_event(struct checker *c, const struct want *w, bool is_start)
{
	const struct ntrace_event_view *e = is_start ? w->start_event : w->stop_event;
	uint64_t duration = e == w->stop_event ? w->end - w->start : 0;

	if (e->duration != duration)
		return FAIL(
			c, w, "duration %" PRIu64 " instead of %" PRIu64, e->duration, duration);
	if (e->id == 0 || e->id != e->tracking_id)
		return FAIL(c, w, "id and tracking_id");
	if (w->side == WANT_RUNTIME)
		return check_runtime_event(c, w, e, is_start);
	return w->side == WANT_MARKER || check_call_event(c, w, e, is_start);
}

/* ---- relations ----------------------------------------------------------------------------------- */

/* A span that changed threads is on its first one as long as nobody knows. */
static bool is_moved_around(const struct checker *c, uint64_t id, const struct want *w)
{
	uint32_t at = w->kind == WANT_SPAN ? w->stop_at : w->start_at;

	for (uint32_t i = 0; i < c->x->count; i++) {
		const struct want *o = &c->x->wants[i];

		if (o->side == WANT_RUNTIME && o->kind == WANT_SPAN && o->start_event->id == id)
			return !o->tid && o->began && o->began == w->tid &&
			       o->start_at < w->start_at && o->stop_at > at;
	}
	return false;
}

/*
 * The parent is the nearest span that contains this one.  The merge does not look ahead: of a span that
 * is long it may not know yet that its stop will come, and take it for one whose stop was lost
 * when the thread does what it would then only do after its end.  Such spans may be passed over.
 */
static bool check_parent(struct checker *c, uint32_t i)
{
	const struct want *w = &c->x->wants[i];
	const struct ntrace_event_view *e = w->kind == WANT_SPAN ? w->stop_event : w->start_event;
	uint32_t at = w->kind == WANT_SPAN ? w->stop_at : w->start_at, before = WANT_NONE, parent;

	if (w->kind == WANT_SPAN && w->start_event->parent_id)
		return FAIL(c, w, "a parent on the start");
	do {
		parent = w->kind == WANT_OPEN ? WANT_NONE : expect_parent(c->x, i, before);
		if (e->parent_id == (parent == WANT_NONE ? 0 : c->x->wants[parent].start_event->id))
			return true;
		before = parent == WANT_NONE ? 0 : c->x->wants[parent].start_at;
	} while (parent != WANT_NONE && c->x->wants[parent].doubt_at <= at);
	if (e->parent_id && is_moved_around(c, e->parent_id, w))
		return true;
	return FAIL(c, w, "parent %" PRIx64 " instead of %s", e->parent_id,
		parent == WANT_NONE ? "none" : name_of(c, &c->x->wants[parent]));
}

static bool check_sums(struct checker *c, uint32_t i)
{
	static const char *const keys[] = {"driver.ioctls", "driver.ioctl_ns", "driver.dma_bytes",
		"driver.dma_ns", "driver.errors"};
	const struct want *w = &c->x->wants[i];
	const struct ntrace_event_view *e = w->stop_event;
	struct driver_sums s = expect_sums(c->x, i);
	uint64_t values[] = {s.ioctls, s.ioctl_ns, s.dma_bytes, s.dma_ns, s.errors};
	bool present[] = {s.ioctls > 0, s.ioctls > 0, s.copies > 0, s.copies > 0, s.errors > 0};
	const char *error = s.last_error == -EACCES ? "EACCES" : s.last_error ? "ENOENT" : "";

	if (!e)
		return true;
	/* Taken for one whose stop was lost, see check_parent: it has what came until then. */
	if (w->doubt_at < w->stop_at && number(e, "driver.ioctls") < s.ioctls)
		return number(e, "driver.ioctl_ns") <= s.ioctl_ns || FAIL(c, w, "driver.ioctl_ns");
	for (unsigned k = 0; k < 5; k++)
		if ((*event_attr(e, keys[k]) != 0) != present[k] || number(e, keys[k]) != values[k])
			return FAIL(c, w, "%s is '%s' instead of %" PRIu64, keys[k],
				event_attr(e, keys[k]), values[k]);
	if (strcmp(event_attr(e, "driver.last_errno"), error) != 0)
		return FAIL(c, w, "driver.last_errno is '%s' instead of '%s'",
			event_attr(e, "driver.last_errno"), error);
	return true;
}

/* An exact link must be true, not only follow from what is left. */
static bool check_exact(struct checker *c, const struct want *run, uint32_t link)
{
	const struct model_span *p = &c->m->spans[run->index];
	const struct want *w = &c->x->wants[link];

	if (w->index == (uint32_t)p->submit || w->index == (uint32_t)p->execute)
		return true;
	return FAIL(c, run, "graded exact but not its submit: %s", name_of(c, w));
}

static bool check_link(struct checker *c, uint32_t i)
{
	const struct want *w = &c->x->wants[i];
	const struct ntrace_event_view *e = w->stop_event;
	bool exact = false, gap = false;
	uint32_t link;
	uint64_t id;

	if (w->side != WANT_RUNTIME || w->type != TRACE_DEVICE_EXEC || !e)
		return !e || !*event_attr(e, "link") || FAIL(c, w, "a link");
	link = expect_link(c->x, i, &exact, &gap);
	id = link == WANT_NONE ? 0 : c->x->wants[link].start_event->id;
	if (number(e, "link.id") != id)
		return FAIL(c, w, "link.id %" PRIx64 " (%s) instead of %" PRIx64 " (%s) %s",
			number(e, "link.id"), event_attr(e, "link"), id,
			exact ? "exact" : "inferred",
			link == WANT_NONE ? "" : name_of(c, &c->x->wants[link]));
	/* With records missing in between, exact would be a guess. */
	if (exact && gap && strcmp(event_attr(e, "link"), "inferred") == 0)
		exact = false;
	if (strcmp(event_attr(e, "link"), !id	  ? ""
					  : exact ? "exact"
						  : "inferred") != 0 ||
		strcmp(event_attr(e, "link.kind"), id ? "submit" : "") != 0)
		return FAIL(c, w, "link graded '%s', expected %s", event_attr(e, "link"),
			exact ? "exact" : "inferred");
	return !id || !exact || check_exact(c, w, link);
}

/* ---- a file --------------------------------------------------------------------------------------- */

static bool check_order(struct checker *c)
{
	uint64_t calls = 0;
	size_t at = 0;

	for (uint32_t i = 0; i < c->x->step_count; i++) {
		const struct want_step *s = &c->x->steps[i];
		const struct want *w = &c->x->wants[s->want];
		bool stop = s->form == AT_STOP || s->form == AT_ZERO_STOP;

		if (!is_written(c, w))
			continue;
		if (&c->file.events[at] != (stop ? w->stop_event : w->start_event))
			return FAIL(c, w, "its %s is not record %zu, where the order has it",
				stop ? "stop" : "start or instant", at);
		if (w->side == WANT_KERNEL && !stop && w->start_event->id != (1ull << 63 | ++calls))
			return FAIL(c, w, "id %" PRIx64 ", but call %" PRIu64 " in order of start",
				w->start_event->id, calls);
		at++;
	}
	return true;
}

static bool check_ids(struct checker *c)
{
	unsigned sources = 0;

	for (uint32_t s = 0; s < c->m->source_count; s++)
		sources += c->m->sources[s].process == c->x->process;
	for (uint32_t i = 0; i < c->x->count; i++) {
		const struct want *w = &c->x->wants[i];

		if (w->side != WANT_RUNTIME)
			continue;
		if (sources == 1 && w->start_event->id != c->m->spans[w->index].id)
			return FAIL(
				c, w, "id %" PRIx64 " is not the runtime's", w->start_event->id);
		if (w->stop_event && w->stop_event->id != w->start_event->id)
			return FAIL(c, w, "stop and start have different ids");
	}
	return true;
}

static bool check_info(struct checker *c, const struct merge_output *o)
{
	char path[4200];
	_cleanup_free_ char *data = NULL;
	size_t size = 0, steps = 0, open = 0;
	Ntff__NtraceInfo *info;
	bool ok;

	snprintf(path, sizeof(path), "%s/trace_info.pb", o->dir);
	if (file_read(path, 1u << 24, &data, &size) < 0)
		return model_fail(c->m, "no trace_info.pb");
	info = ntff__ntrace_info__unpack(NULL, size, (const uint8_t *)data);
	if (!info)
		return model_fail(c->m, "trace_info.pb cannot be read");
	for (uint32_t i = 0; i < c->x->count; i++)
		steps += c->x->wants[i].side == WANT_MARKER;
	open = c->x->open_spans;
	ok = (info->open_spans == open && info->n_clock_steps == steps &&
		     info->realtime_offset_ns == MODEL_OFFSET && info->pid == o->pid &&
		     info->ended == c->result->ended) ||
	     model_fail(c->m, "trace_info: open_spans %d, clock steps %d of %d, ended %d",
		     (int)info->open_spans, (int)info->n_clock_steps, (int)steps, info->ended);
	for (size_t i = 0; ok && i < info->n_ledger; i++) {
		const Ntff__NtraceLedgerRow *r = info->ledger[i];

		if (strcmp(r->stage, "merge") == 0 && strcmp(r->counter, "start_lost") == 0 &&
			r->value != c->x->lost)
			ok = model_fail(c->m, "trace_info: start_lost %d", (int)r->value);
	}
	ntff__ntrace_info__free_unpacked(info, NULL);
	return ok;
}

static bool check_counts(struct checker *c, const struct merge_output *o)
{
	const struct expect *x = c->x;

	if (o->events != c->file.count || o->spans != x->runtime_spans ||
		o->kernel_spans != x->kernel_spans || o->open_spans != x->open_spans)
		return model_fail(c->m,
			"process %u counts %d events of %d, %d spans of %d, %d calls of %d, %d "
			"open of %d",
			x->process, (int)o->events, (int)c->file.count, (int)o->spans,
			(int)x->runtime_spans, (int)o->kernel_spans, (int)x->kernel_spans,
			(int)o->open_spans, (int)x->open_spans);
	return true;
}

static bool check_wants(struct checker *c)
{
	for (uint32_t i = 0; i < c->x->count; i++) {
		const struct want *w = &c->x->wants[i];

		if (!is_written(c, w))
			continue;
		if (!check_event(c, w, true) || (w->stop_event && !check_event(c, w, false)) ||
			!check_parent(c, i) || !check_sums(c, i) || !check_link(c, i))
			return false;
	}
	return true;
}

static bool check_file(struct checker *c, const struct merge_output *o)
{
	char path[4200];
	size_t open = 0;

	snprintf(path, sizeof(path), "%s/ntrace.pb", o->dir);
	if (!trace_file_load(&c->file, path))
		return model_fail(c->m, "%s cannot be read", path);
	if (!find_all(c))
		return false;
	for (uint32_t i = 0; i < c->x->count; i++)
		if (!take_times(c, &c->x->wants[i]))
			return false;
	expect_order(c->x);
	if (!check_order(c) || !check_ids(c) || !check_wants(c) || !check_counts(c, o) ||
		!check_info(c, o))
		return false;
	const char *fault = trace_file_fault(&c->file, &open);
	if (*fault)
		return model_fail(c->m, "process %u: %s", c->x->process, fault);
	return true;
}

/* ---- the ledger ------------------------------------------------------------------------------------ */

/* What the newest counters in the recording say, summed. */
static void newest_counters(const struct model *m, uint64_t sums[REC_COUNTER_MAX])
{
	static uint64_t newest[MODEL_SOURCES + 2][MODEL_CORES + 1][REC_COUNTER_MAX];

	memset(newest, 0, sizeof(newest));
	for (uint32_t i = 0; i < m->frame_count; i++) {
		const struct model_frame *f = &m->frames[i];

		for (uint32_t k = 0; f->survives && f->type == REC_COUNTERS &&
				     k < f->size / sizeof(struct rec_counter);
			k++) {
			struct rec_counter r;

			memcpy(&r, f->body + k * sizeof(r), sizeof(r));
			newest[f->source][r.sub][r.id] = r.value;
		}
	}
	for (unsigned s = 0; s < MODEL_SOURCES + 2; s++)
		for (unsigned k = 0; k <= MODEL_CORES; k++)
			for (unsigned id = 0; id < REC_COUNTER_MAX; id++)
				sums[id] += newest[s][k][id];
}

/* Numbers of driver calls that are missing below the highest that was seen. */
static uint64_t count_gaps(const struct model *m)
{
	uint64_t highest[MODEL_CPUS] = {0}, seen[MODEL_CPUS] = {0}, gaps = 0;

	for (uint32_t i = 0; i < m->record_count; i++) {
		const struct model_record *r = &m->records[i];

		if (r->kind != RECORD_DONE || !r->read)
			continue;
		const struct model_call *c = &m->calls[r->index];
		seen[c->cpu]++;
		if (r->seq + 1 > highest[c->cpu])
			highest[c->cpu] = r->seq + 1;
	}
	for (unsigned k = 0; k < MODEL_CPUS; k++)
		gaps += highest[k] - seen[k];
	return gaps;
}

static bool check_row(struct checker *c, enum rec_counter_id id, uint64_t value)
{
	const struct rec_counter_info *i = rec_counter_info(id);

	if (c->result->ledger[id].value == value)
		return true;
	return model_fail(c->m, "ledger %s/%s is %" PRIu64 " instead of %" PRIu64, i->stage,
		i->name, c->result->ledger[id].value, value);
}

static bool has_end(const struct model *m)
{
	for (uint32_t i = 0; i < m->frame_count; i++)
		if (m->frames[i].type == REC_END && m->frames[i].survives)
			return true;
	return false;
}

static bool check_late_row(struct checker *c)
{
	for (uint32_t id = 1; id < REC_COUNTER_MAX; id++) {
		const struct rec_counter_info *i = rec_counter_info(id);
		uint64_t value = c->result->ledger[id].value;

		if (strcmp(i->stage, "merge") != 0 || strcmp(i->name, "late") != 0)
			continue;
		if ((value > 0) != (c->late > 0) && c->m->options.kernel_events != MERGE_KERNEL_OFF)
			return model_fail(c->m, "ledger merge/late is %d, files have %d",
				(int)value, (int)c->late);
	}
	return true;
}

static bool check_ledger(struct checker *c)
{
	const struct merge_result *r = c->result;
	struct model *m = c->m;
	uint64_t want[REC_COUNTER_MAX] = {0}, found = 0, invalid = 0, lost = 0, captured;
	bool ended = has_end(m);

	newest_counters(m, want);
	for (uint32_t i = 0; i < m->record_count; i++) {
		found += m->records[i].read && m->records[i].kind != RECORD_ANNOUNCE;
		invalid += m->records[i].read && m->records[i].invalid;
	}
	captured = want[REC_C_KERNEL_RECEIVED] + want[REC_C_RUNTIME_DELIVERED];
	if (!ended && captured < found)
		captured = found;
	for (uint32_t id = 1; id < REC_COUNTER_RECORDED_END; id++) {
		if (!check_row(c, (enum rec_counter_id)id, want[id]))
			return false;
		if (rec_counter_info(id)->kind == REC_KIND_LOST)
			lost += want[id];
	}
	lost += captured - found + invalid;
	if (r->ended != ended || r->seq_gaps != count_gaps(m))
		return model_fail(m, "ended %d, gaps %d instead of %d", r->ended, (int)r->seq_gaps,
			(int)count_gaps(m));
	if (rec_damaged(&r->damage) != (captured > found) && captured > found)
		return model_fail(m, "%d records are missing and no damage is reported",
			(int)(captured - found));
	return check_row(c, REC_C_RECORDING_CAPTURED, captured) &&
	       check_row(c, REC_C_RECORDING_READ, found) &&
	       check_row(c, REC_C_RECORDING_DAMAGED, captured - found) &&
	       check_row(c, REC_C_MERGE_READ, c->read + invalid) &&
	       check_row(c, REC_C_MERGE_WRITTEN, c->written) &&
	       check_row(c, REC_C_MERGE_ANNOUNCED, c->announced) &&
	       check_row(c, REC_C_MERGE_NOT_WANTED, c->not_wanted) &&
	       check_row(c, REC_C_MERGE_INVALID, invalid) &&
	       check_row(c, REC_C_MERGE_START_LOST, c->lost) &&
	       check_row(c, REC_C_MERGE_CLAMPED, 0) && check_late_row(c) &&
	       (r->lost == lost ||
		       model_fail(m, "lost %d instead of %d", (int)r->lost, (int)lost)) &&
	       (r->balanced || model_fail(m, "the books do not balance"));
}

/* ---- everything ------------------------------------------------------------------------------------- */

static const struct merge_output *output_of(const struct merge_result *r, uint32_t pid)
{
	const struct merge_output *found = NULL;

	for (uint32_t i = 0; i < r->output_count; i++)
		if (r->outputs[i].pid == pid)
			found = &r->outputs[i];
	return found;
}

static bool check_process(struct checker *c, uint32_t process, uint32_t *outputs)
{
	const struct merge_output *o = output_of(c->result, c->m->pids[process]);
	bool off = c->m->options.kernel_events == MERGE_KERNEL_OFF, ok;

	expect_make(c->x, c->m, process);
	c->read += c->x->read;
	c->written += c->x->read - c->x->announced - (off ? c->x->calls : 0);
	c->announced += c->x->announced;
	c->not_wanted += off ? c->x->calls : 0;
	c->lost += c->x->lost;
	c->device_runs += c->x->device_runs;
	if (!o)
		return c->x->count == 0 || model_fail(c->m, "no files of process %u", process);
	++*outputs;
	ok = check_file(c, o);
	trace_file_free(&c->file);
	return ok;
}

bool model_check(struct model *m, const struct merge_result *result)
{
	_cleanup_free_ struct expect *x = malloc(sizeof(*x));
	struct checker c = {.m = m, .result = result, .x = x};
	uint32_t outputs = 0;

	if (!x)
		return model_fail(m, "out of memory");
	for (uint32_t p = 0; p < m->process_count; p++)
		if (!check_process(&c, p, &outputs))
			return false;
	if (outputs != result->output_count)
		return model_fail(
			m, "%u processes are written, %u ran", result->output_count, outputs);
	return check_ledger(&c);
}
