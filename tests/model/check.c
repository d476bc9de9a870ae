/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check.c - the files of a merge against what must stand in them.
 *
 * Every record of a file is found by what the model wrote into it (runtime records: nrta_seq_id; driver
 * calls: their handle), its time is held against the truth, and then the whole sequence, parents,
 * sums and links against brute force over the times as written.
 */
#include "tests/model/check.h"

#include <inttypes.h>

#include "proto/neuron_trace.pb-c.h"
#include "runtime/trace/event_registry.h"

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

static const char *const side_names[] = {"runtime", "call", "marker"};
static const char *const kind_names[] = {
	"span", "open span", "instant", "lost start", "duplicate", "impossible"};

const char *check_name(const struct checker *c, const struct want *w)
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

uint64_t check_number(const struct ntrace_event_view *e, const char *key)
{
	const char *text = event_attr(e, key);

	return *text ? strtoull(text, NULL, 0) : 0;
}

bool check_is_written(const struct checker *c, const struct want *w)
{
	return w->side != WANT_KERNEL || c->m->options.kernel_events != MERGE_KERNEL_OFF;
}

/* ---- finding ------------------------------------------------------------------------------------ */

static bool find_runtime(struct checker *c, struct want *w, bool *taken)
{
	static const char *const starts[] = {[WANT_INSTANT] = "",
		[WANT_LOST] = "lost",
		[WANT_DUPLICATE] = "duplicate",
		[WANT_INVALID] = ""};

	for (size_t i = 0; i < c->file.count; i++) {
		const struct ntrace_event_view *e = &c->file.events[i];

		if (taken[i] || !e->has_nrta_seq_id || e->nrta_seq_id != w->index + 1u)
			continue;
		/* Whether it shows depends on what else is known of its execution: see check_fields.c. */
		if (c->m->spans[w->index].wrong && w->kind == WANT_SPAN &&
			*event_attr(e, "invalid"))
			expect_invalid(c->x, w);
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

		if (taken[i] || e->has_nrta_seq_id || check_number(e, "handle") != w->index + 1u)
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
		       (int64_t)check_number(e, "old_offset_ns") == MODEL_OFFSET + w->old_step &&
		       (int64_t)check_number(e, "new_offset_ns") == MODEL_OFFSET + w->new_step;
	}
	return false;
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
		else if (check_is_written(c, w))
			found = find_call(c, w, taken);
		if (!found || (check_is_written(c, w) &&
				      (w->kind == WANT_SPAN) != (w->stop_event != NULL)))
			return FAIL(c, w, "not in the file as such");
	}
	for (size_t i = 0; taken && i < c->file.count; i++)
		if (!taken[i])
			return model_fail(c->m,
				"record %zu (tag %" PRIu64 ", phase %u) is one too many", i,
				c->file.events[i].nrta_seq_id, c->file.events[i].phase);
	return taken != NULL;
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

		if (!check_is_written(c, w))
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
	for (uint32_t i = 0; i < c->x->count; i++)
		if (check_is_written(c, &c->x->wants[i]) && !check_want(c, i))
			return false;
	return true;
}

/* Calls that are open in the file while their thread did other things; `perhaps`: this shows only if the
 * merge did not know that a span went on to another thread. */
static void count_missed(struct checker *c)
{
	for (uint32_t i = 0; i < c->x->count; i++) {
		const struct want *w = &c->x->wants[i];

		if (w->side != WANT_KERNEL || w->kind != WANT_OPEN)
			continue;
		c->missed += w->closed_at != WANT_NONE;
		c->missed_perhaps += w->closed_at == WANT_NONE && w->doubt_at != WANT_NONE;
	}
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
		if (!check_times(c, &c->x->wants[i]))
			return false;
	expect_order(c->x);
	count_missed(c);
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
