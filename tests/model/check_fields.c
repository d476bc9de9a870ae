/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check_fields.c - what each record says: its own fields, and its relations to the others (parent, sums
 * of driver work, link) against brute force over the times as written.
 */
#include "tests/model/check.h"

#include <errno.h>
#include <inttypes.h>

#include "runtime/trace/event_registry.h"
#include "vmlinux/ioctl_table.h"

/* ---- fields -------------------------------------------------------------------------------------- */

/* What a run of impossible times says of itself. */
static bool check_told(struct checker *c, const struct want *w)
{
	static const char *const names[] = {
		"", "zero", "zero", "backward", "before_submit", "after_collection"};
	const struct model_span *p = &c->m->spans[w->index];
	const struct ntrace_event_view *e = w->start_event;
	uint64_t zero = p->wrong == WRONG_ZERO ? MODEL_EPOCH - MODEL_BOOT : 0;

	c->wrong[p->wrong]++;
	if (strcmp(event_attr(e, "invalid"), names[p->wrong]) != 0)
		return FAIL(c, w, "invalid is '%s'", event_attr(e, "invalid"));
	if (check_number(e, "told_start_ns") != MODEL_EPOCH + p->said_from - zero ||
		check_number(e, "told_end_ns") != MODEL_EPOCH + p->said_to - zero)
		return FAIL(c, w, "told %s to %s", event_attr(e, "told_start_ns"),
			event_attr(e, "told_end_ns"));
	return true;
}

/* A name is that of what its source wrote from the watermark on that it had given before; of older records it
 * is where that watermark was held back. */
static bool check_model_name(
	struct checker *c, const struct want *w, const struct ntrace_event_view *e)
{
	const struct model *m = c->m;
	uint64_t id = model_name_id(&m->spans[w->index]), time = e->timestamp - MODEL_EPOCH;
	const char *name = event_attr(e, "model_name");
	bool must = false, may = false;
	char text[32];

	for (uint32_t i = 0; i < m->frame_count; i++) {
		const struct model_frame *f = &m->frames[i];

		if (f->type != REC_NAME || !f->survives || f->source != w->source ||
			*(const uint64_t *)(const void *)f->body != id)
			continue;
		may = true;
		must = time >= f->said;
	}
	snprintf(text, sizeof(text), MODEL_NAME_FORMAT, id);
	return (!*name && !must) || (may && strcmp(name, text) == 0) ||
	       FAIL(c, w, "model_name is '%s', %s known", name,
		       must  ? "which is"
		       : may ? "perhaps"
			     : "not");
}

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
	if (e->status !=
		(stop || w->kind == WANT_INSTANT || w->kind == WANT_INVALID ? p->status : 0))
		return FAIL(c, w, "status %u", e->status);
	if (p->type == TRACE_EXEC_WAIT && !stop && check_number(e, "exec_id") != p->exec_id)
		return FAIL(c, w, "exec_id %s", event_attr(e, "exec_id"));
	if (w->kind == WANT_INVALID)
		return check_told(c, w);
	return model_name_id(p) == 0 || stop != (p->type == TRACE_MODEL_LOAD) ||
	       check_model_name(c, w, e);
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
	if (check_number(e, "request") != k->request ||
		check_number(e, "handle") != w->index + 1u ||
		(copy && check_number(e, "bytes") != k->bytes))
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
		parent == WANT_NONE ? "none" : check_name(c, &c->x->wants[parent]));
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
	if (w->doubt_at < w->stop_at && check_number(e, "driver.ioctls") < s.ioctls)
		return check_number(e, "driver.ioctl_ns") <= s.ioctl_ns ||
		       FAIL(c, w, "driver.ioctl_ns");
	/* Copies beside a call that had been given up count as if it were not there. */
	if (s.missed && check_number(e, keys[3]) > s.dma_ns &&
		check_number(e, keys[3]) <= s.dma_most)
		values[3] = check_number(e, keys[3]);
	for (unsigned k = 0; k < 5; k++)
		if ((*event_attr(e, keys[k]) != 0) != present[k] ||
			check_number(e, keys[k]) != values[k])
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
	       FAIL(c, run, "graded exact but not its submit: %s", check_name(c, w));
}

/* A run before its execution or after its wait must be seen to be so when its cause is known and how well its
 * clock is. */
static bool check_seen(struct checker *c, uint32_t i)
{
	const struct want *w = &c->x->wants[i], *wait = expect_wait(c->x, w);
	const struct model_span *p = &c->m->spans[w->index];
	bool must, collected = wait && wait->kind == WANT_SPAN;

	expect_cause(c->x, i, &must);
	if (w->kind != WANT_SPAN || (p->wrong != WRONG_BEFORE && p->wrong != WRONG_AFTER) ||
		!must || (p->wrong == WRONG_AFTER && !collected) ||
		expect_sync(c->m, p, w->first) != p + 1)
		return true;
	return FAIL(c, w, "not seen to be impossible");
}

static bool check_link(struct checker *c, uint32_t i)
{
	const struct want *w = &c->x->wants[i];
	const struct ntrace_event_view *e =
		w->kind == WANT_INVALID ? w->start_event : w->stop_event;
	bool must, exact;
	uint32_t want, link;
	uint64_t id;

	if (w->side != WANT_RUNTIME || w->type != TRACE_DEVICE_EXEC || !e)
		return !e || !*event_attr(e, "link") || FAIL(c, w, "a link");
	id = check_number(e, "link.id");
	link = span_with_id(c, id);
	if (!check_seen(c, i))
		return false;
	want = w->kind == WANT_INVALID ? expect_cause(c->x, i, &must) : expect_link(c->x, i, &must);
	exact = strcmp(event_attr(e, "link"), "exact") == 0;
	if (id && link == WANT_NONE)
		return FAIL(c, w, "linked to %" PRIx64 ", which does not exist", id);
	if (strcmp(event_attr(e, "link.kind"), id ? "submit" : "") != 0 ||
		(!exact && strcmp(event_attr(e, "link"), id ? "inferred" : "") != 0))
		return FAIL(c, w, "link is '%s'", event_attr(e, "link"));
	if (must && (link != want || !exact))
		return FAIL(c, w, "link.id %" PRIx64 " (%s) instead of exactly %s", id,
			event_attr(e, "link"), check_name(c, &c->x->wants[want]));
	/* The order of emission may tell more than what is left of the spans. */
	if (exact)
		return check_exact(c, w, link);
	if (w->kind == WANT_INVALID)
		return !id || FAIL(c, w, "a link that is not exact");
	return expect_may_infer(c->x, i, link) || FAIL(c, w, "inferred link.id %" PRIx64, id);
}

bool check_want(struct checker *c, uint32_t i)
{
	const struct want *w = &c->x->wants[i];

	return check_event(c, w, true) && (!w->stop_event || check_event(c, w, false)) &&
	       check_parent(c, i) && check_sums(c, i) && check_link(c, i);
}
