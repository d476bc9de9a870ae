/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check.c - the files of a merge against what must stand in them.
 *
 * Every record of a file is found by what the model wrote into it (runtime records: nrta_seq_id; driver
 * calls: their handle), its time is held against the truth, and then the whole sequence, parents,
 * sums and links against brute force over the times as written.
 */
#include "tests/model/check.h"

#include <errno.h>
#include <inttypes.h>

#include "proto/neuron_trace.pb-c.h"
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
	return w->side != WANT_RUNTIME || w->type != TRACE_DEVICE_EXEC || w->kind > WANT_OPEN ||
	       c->m->features & harmed;
}

/* What the file says a device's times may be wrong by; if it says nothing, what the runtime's stamps may.
 * A device whose clock was never read in time has no bound that could be stated. */
static uint64_t stated_bound(const struct checker *c, const struct want *w)
{
	const struct ntrace_event_view *e = w->stop_event ? w->stop_event : w->start_event;
	const char *text = event_attr(e, "clock.bound_ns");
	uint64_t own = w->side == WANT_RUNTIME ? c->m->spans[w->index].bound : 0;

	if (own == 0)
		return 0;
	/* The start of a run that goes on says no bound: that of a clock read long ago. */
	if (!*text)
		return w->kind == WANT_OPEN ? 2 * own + c->m->end / 10000 : own;
	return strcmp(text, "unknown") == 0 ? c->m->end : strtoull(text, NULL, 10);
}

/* The time as written, against the stamp, the truth and the watermark that was broken. */
static bool take_time(struct checker *c, struct want *w, const struct ntrace_event_view *e,
	const struct model_record *r, uint64_t stamp, uint64_t truth, uint64_t not_before,
	uint64_t *ret)
{
	uint64_t written = e->timestamp - MODEL_EPOCH, late = number(e, "late_ns");
	uint64_t own = w->side == WANT_RUNTIME ? c->m->spans[w->index].bound : 0;
	uint64_t bound = stated_bound(c, w);
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
	if (written <= stamp + own + bound || written == not_before)
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

static const char *error_name(int32_t result)
{
	return result == -EACCES ? "EACCES" : result == -ENOENT ? "ENOENT" : "";
}

static bool check_call_event(
	struct checker *c, const struct want *w, const struct ntrace_event_view *e, bool is_start)
{
	const struct model_call *k = &c->m->calls[w->index];
	bool copy = k->request == NEURON_IOCTL_MEM_BUF_COPY64;
	bool extended = c->m->options.kernel_events == MERGE_KERNEL_EXTENDED;
	const struct ioctl_row *row = ioctl_row_find(k->request);
	const char *error = error_name(k->result);

	if (!pb_str_is(e->hint, row->name) || e->thread_id != k->tid || e->nd_idx != 1 ||
		e->event_type != (extended ? 1000 + (k->request & 0xff) : 0))
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

/*
 * Two more that it cannot know better: a span that changed threads is on its first one as long as it
 * runs; and one whose stop was lost has ended with what was around it only if that was not itself
 * taken for lost.
 */
static bool is_taken_for(const struct checker *c, uint64_t id, const struct want *w)
{
	uint32_t at = w->kind == WANT_SPAN ? w->stop_at : w->start_at;

	for (uint32_t i = 0; i < c->x->count; i++) {
		const struct want *o = &c->x->wants[i];

		if (o->side != WANT_RUNTIME || o->kind > WANT_OPEN || o->start_event->id != id)
			continue;
		if (!o->began || o->began != w->tid || o->start_at > w->start_at)
			return false;
		if (o->kind == WANT_SPAN)
			return !o->tid && o->stop_at > at;
		return o->shown_at > at &&
		       c->m->features & (1u << WITH_CROSS | 1u << WITH_RECURSE | 1u << WITH_LATE);
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
	if (e->parent_id && is_taken_for(c, e->parent_id, w))
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
	const char *error = error_name(s.last_error), *other = error_name(s.other_error);

	if (!e)
		return true;
	/* Taken for one whose stop was lost, see check_parent: it has what came until then. */
	if (w->doubt_at < w->stop_at && number(e, "driver.ioctls") < s.ioctls)
		return number(e, "driver.ioctl_ns") <= s.ioctl_ns || FAIL(c, w, "driver.ioctl_ns");
	for (unsigned k = 0; k < 5; k++)
		if ((*event_attr(e, keys[k]) != 0) != present[k] || number(e, keys[k]) != values[k])
			return FAIL(c, w, "%s is '%s' instead of %" PRIu64, keys[k],
				event_attr(e, keys[k]), values[k]);
	if (strcmp(event_attr(e, "driver.last_errno"), error) != 0 &&
		strcmp(event_attr(e, "driver.last_errno"), other) != 0)
		return FAIL(c, w, "driver.last_errno is '%s' instead of '%s'",
			event_attr(e, "driver.last_errno"), error);
	return true;
}

static uint32_t span_with_id(const struct checker *c, uint64_t id)
{
	for (uint32_t i = 0; i < c->x->count; i++) {
		const struct want *w = &c->x->wants[i];

		if (w->side == WANT_RUNTIME && w->kind <= WANT_OPEN && w->start_event->id == id)
			return i;
	}
	return WANT_NONE;
}

/* An exact link must be true, not only follow from what is left. */
static bool check_exact(struct checker *c, const struct want *run, uint32_t link)
{
	const struct model_span *p = &c->m->spans[run->index];
	const struct want *w = &c->x->wants[link];

	return w->index == (uint32_t)p->submit || w->index == (uint32_t)p->execute ||
	       FAIL(c, run, "graded exact but not its submit: %s", name_of(c, w));
}

static bool check_link(struct checker *c, uint32_t i)
{
	const struct want *w = &c->x->wants[i];
	const struct ntrace_event_view *e = w->stop_event;
	bool must, exact;
	uint32_t want, link;
	uint64_t id;

	if (w->side != WANT_RUNTIME || w->type != TRACE_DEVICE_EXEC || !e)
		return !e || !*event_attr(e, "link") || FAIL(c, w, "a link");
	id = number(e, "link.id");
	link = span_with_id(c, id);
	want = expect_link(c->x, i, &must);
	exact = strcmp(event_attr(e, "link"), "exact") == 0;
	if (id && link == WANT_NONE)
		return FAIL(c, w, "linked to %" PRIx64 ", which does not exist", id);
	if (strcmp(event_attr(e, "link.kind"), id ? "submit" : "") != 0 ||
		(!exact && strcmp(event_attr(e, "link"), id ? "inferred" : "") != 0))
		return FAIL(c, w, "link is '%s'", event_attr(e, "link"));
	if (must && (link != want || !exact))
		return FAIL(c, w, "link.id %" PRIx64 " (%s) instead of exactly %s", id,
			event_attr(e, "link"), name_of(c, &c->x->wants[want]));
	/* The order of emission may tell more than what is left of the spans. */
	if (exact)
		return check_exact(c, w, link);
	return expect_may_infer(c->x, i, link) || FAIL(c, w, "inferred link.id %" PRIx64, id);
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

static void show(const struct checker *c)
{
	static const char *const phases[] = {"?", "start", "stop", "instant"};

	for (size_t i = 0; i < c->file.count; i++) {
		const struct ntrace_event_view *e = &c->file.events[i];
		const struct trace_event_info *info = trace_event_info(e->event_type);

		printf("%4zu %10" PRIu64 " %-7s tid %-5u nc %u %-24.*s id %" PRIx64
		       " parent %" PRIx64 " #%d",
			i, (uint64_t)(e->timestamp - MODEL_EPOCH), phases[e->phase & 3],
			e->thread_id, e->nc_idx, e->hint.len ? (int)e->hint.len : 24,
			e->hint.len ? e->hint.s
			: info	    ? info->name
				    : "",
			e->id, e->parent_id, (int)e->nrta_seq_id - 1);
		for (uint32_t k = 0; k < e->attr_count; k++)
			if (e->attrs[k].key.len > 3 && memcmp(e->attrs[k].key.s, "request", 7) != 0)
				printf(" %.*s=%.*s", (int)e->attrs[k].key.len, e->attrs[k].key.s,
					(int)e->attrs[k].value.len, e->attrs[k].value.s);
		printf("\n");
	}
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
	if (!o)
		return c->x->count == 0 || model_fail(c->m, "no files of process %u", process);
	++*outputs;
	ok = check_file(c, o);
	if (!ok && c->m->verbose)
		show(c);
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
