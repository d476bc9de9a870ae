/* SPDX-License-Identifier: Apache-2.0 */
/*
 * perfetto_event.c - events of a process as slices, instants and flows.
 *
 * A START begins a slice, its STOP ends it: both are written as they come, so attributes stand where
 * they stand in ntrace.pb and readers join them.  perfetto_lines.h says on which track.
 *
 * A flow is an arrow from a submission to a device run.  Its id must stand on the submission, which is
 * written before anything is known of runs; so each announces as many as there have been runs for one.
 * An id that nobody comes for is no arrow.
 *
 * An attribute is left out when it says what is said already: an arrow instead of link.id, no result of
 * a call that succeeded, no core that is not known, no number of a request that goes by its name.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/output/event_kind.h"
#include "agent/output/perfetto_process.h"
#include "bpf/neuron_event.h"
#include "vmlinux/dma_kinds.h"
#include "vmlinux/ioctl_table.h"

#define FLOWS_MAX 8u
#define STEPS_MAX 4096u

/* Attributes that are looked at, as `aux` of their text in PFT_KEYS. */
enum key {
	KEY_NEW, /* not looked up yet */
	KEY_PLAIN,
	KEY_NC,
	KEY_REQUEST,
	KEY_RESULT,
	KEY_BYTES,
	KEY_DIRECTION,
	KEY_ERRNO,
	KEY_LINK_ID,
	KEY_LINK,
	KEY_LINK_KIND,
	KEY_START,
	KEY_INVALID,
	KEY_NEW_OFFSET,
	KEY_ENGINE,
	KEY_DEVICE_CORE,
	KEY_DMA_ENGINE,
	KEY_DMA_QUEUE,
	KEY_COUNT,
};

static const char *const key_names[KEY_COUNT] = {
	[KEY_NC] = "nc",
	[KEY_REQUEST] = "request",
	[KEY_RESULT] = "result",
	[KEY_BYTES] = "bytes",
	[KEY_DIRECTION] = "direction",
	[KEY_ERRNO] = "errno",
	[KEY_LINK_ID] = "link.id",
	[KEY_LINK] = "link",
	[KEY_LINK_KIND] = "link.kind",
	[KEY_START] = "start",
	[KEY_INVALID] = "invalid",
	[KEY_NEW_OFFSET] = "new_offset_ns",
	[KEY_ENGINE] = "engine",
	[KEY_DEVICE_CORE] = "device_core_idx",
	[KEY_DMA_ENGINE] = "dma.engine",
	[KEY_DMA_QUEUE] = "dma.queue",
};

/* What one event is made into. */
struct shown {
	const struct ntrace_event_view *e;
	uint64_t time; /* boot ns */
	bool is_call, is_mark, is_device;
	bool is_unit;				 /* of a device, and told by itself */
	unsigned dma;				 /* enum nev_dma_kind; 0: it is none */
	bool is_queue;				 /* of that; on the track of its queue */
	const struct pb_str *special[KEY_COUNT]; /* values of the attributes above */
};

static bool same(const struct pb_str *s, const char *text)
{
	return s && s->len == strlen(text) && !memcmp(s->s, text, s->len);
}

/* The number that a text begins with; UINT64_MAX for what is more. */
static uint64_t decimal(const struct pb_str *s)
{
	uint64_t v = 0;

	for (uint32_t i = 0; s && i < s->len && s->s[i] >= '0' && s->s[i] <= '9'; i++)
		if (__builtin_mul_overflow(v, 10, &v) ||
			__builtin_add_overflow(v, (uint64_t)(s->s[i] - '0'), &v))
			return UINT64_MAX;
	return v;
}

/* ---- names ------------------------------------------------------------------------------------- */

/* Place of the request with this name in the driver's table + 1; 0: there is none. */
static uint32_t request_of(struct pb_str name)
{
	for (size_t i = 0; i < ioctl_row_count; i++)
		if (strlen(ioctl_rows[i].name) == name.len &&
			!memcmp(ioctl_rows[i].name, name.s, name.len))
			return (uint32_t)i + 1;
	return 0;
}

#define NO_REQUEST UINT32_MAX

/* What an event is called. */
struct name {
	struct pb_str text;
	uint32_t iid;  /* 0: the text has no number, it is written out */
	uint32_t call; /* of a driver call: its request's place + 1 */
	char number[EVENT_NAME];
};

static void name_call(struct pft_process *p, struct name *n)
{
	struct pft_text *text = pft_intern(p->w, &p->seq, PFT_NAMES, n->text);

	if (!text)
		n->call = request_of(n->text);
	if (!text && n->call)
		text = pft_intern_own(p->w, &p->seq, PFT_NAMES, n->text);
	if (!text)
		return;
	if (text->aux == 0) {
		text->aux = request_of(n->text);
		text->aux = text->aux ? text->aux : NO_REQUEST;
	}
	n->iid = text->iid;
	n->call = text->aux == NO_REQUEST ? 0 : text->aux;
}

static void name_of(struct pft_process *p, const struct shown *s, struct name *n)
{
	const struct ntrace_event_view *e = s->e;
	const struct trace_event_info *info = trace_event_info(e->event_type);

	n->iid = n->call = 0;
	if (!s->is_call && !s->is_mark && info && (e->event_type || !e->hint.len)) {
		uint32_t *iid = &p->type_names[e->event_type];
		struct pft_text *text;

		n->text = pft_str(info->name);
		text = *iid ? NULL : pft_intern_own(p->w, &p->seq, PFT_NAMES, n->text);
		if (text)
			*iid = text->iid;
		n->iid = *iid;
		return;
	}
	n->text = s->dma == NEV_DMA_ACK ? pft_str("acked") : event_name(e, n->number);
	name_call(p, n);
}

static void put_name(struct pft_process *p, const struct name *n)
{
	if (n->iid)
		pft_name_iid(p->w, n->iid);
	else
		pft_name(p->w, &p->seq, n->text);
}

/* ---- attributes -------------------------------------------------------------------------------- */

static enum key special_key(struct pb_str key)
{
	for (unsigned k = KEY_PLAIN + 1; k < KEY_COUNT; k++)
		if (same(&key, key_names[k]))
			return (enum key)k;
	return KEY_PLAIN;
}

/* Which key an attribute has, and its number: NULL when there is none left for it. */
static enum key key_of(struct pft_process *p, struct pb_str key, struct pft_text **ret_text)
{
	struct pft_text *text = pft_intern(p->w, &p->seq, PFT_KEYS, key);
	enum key k;

	if (!text && (k = special_key(key)) != KEY_PLAIN)
		text = pft_intern_own(p->w, &p->seq, PFT_KEYS, key);
	if (text && text->aux == KEY_NEW)
		text->aux = special_key(key);
	*ret_text = text;
	return text ? (enum key)text->aux : KEY_PLAIN;
}

/* Does the name of a call's slice say its request? */
static bool says_request(uint32_t call, const struct pb_str *request)
{
	static const char digits[] = "0123456789abcdef";
	uint32_t cmd = call ? ioctl_rows[call - 1].cmd : 0;

	if (cmd < 0x10000000u || request->len != 10 || memcmp(request->s, "0x", 2) != 0)
		return false;
	for (unsigned i = 9; i >= 2; i--, cmd >>= 4)
		if (request->s[i] != digits[cmd & 15])
			return false;
	return true;
}

/* Is an attribute said otherwise? */
static bool is_said(const struct shown *s, uint32_t call, enum key k, const struct pb_str *value)
{
	switch (k) {
	case KEY_NC:
		return (s->is_call || s->dma) && same(value, "unknown");
	case KEY_DMA_ENGINE:
	case KEY_DMA_QUEUE:
		return s->is_queue;
	case KEY_RESULT:
		return same(value, "0");
	case KEY_ENGINE:
	case KEY_DEVICE_CORE:
		return s->is_unit;
	case KEY_REQUEST:
		return says_request(call, value);
	default:
		return false;
	}
}

/* Finds the special attributes before put_notes does. */
static void find_special(struct pft_process *p, struct shown *s)
{
	for (uint32_t i = 0; i < s->e->attr_count; i++) {
		struct pft_text *text;

		s->special[key_of(p, s->e->attrs[i].key, &text)] = &s->e->attrs[i].value;
	}
}

/* The fields that have no other place. */
static void put_fields(
	struct pft_process *p, struct pft_seq *seq, const struct ntrace_event_view *e)
{
	if (e->status)
		pft_note_u64(p->w, seq, "status", e->status);
	if (e->has_nrta_seq_id)
		pft_note_u64(p->w, seq, "nrta_seq_id", e->nrta_seq_id);
}

/* Annotations: all attributes but those said otherwise, and fields. */
static void put_notes(struct pft_process *p, struct shown *s, uint32_t call, bool linked)
{
	const struct ntrace_event_view *e = s->e;

	for (uint32_t i = 0; i < e->attr_count; i++) {
		const struct pb_attr *a = &e->attrs[i];
		struct pft_text *text;
		enum key k = key_of(p, a->key, &text);

		s->special[k] = &a->value;
		if (!is_said(s, call, k, &a->value) && !(linked && k == KEY_LINK_ID))
			pft_note_key(p->w, &p->seq, text, a->key, a->value);
	}
	put_fields(p, &p->seq, e);
	if (s->time < p->seq.last)
		pft_note_u64(p->w, &p->seq, "out_of_order_ns", p->seq.last - s->time);
}

/* Where it was, which the track does not say: the device of a call, the core of a thread's span. */
static void put_place(struct pft_process *p, const struct shown *s)
{
	if (s->is_call || (s->dma && !s->is_queue))
		pft_note_u64(p->w, &p->seq, "nd", s->e->nd_idx);
	else if (!s->is_device && !s->is_mark && !s->dma && !s->special[KEY_NC])
		pft_note_u64(p->w, &p->seq, "nc", s->e->nc_idx);
}

/* ---- flows ------------------------------------------------------------------------------------- */

static struct pft_announced *announced_at(const struct pft_process *p, uint64_t id)
{
	return &p->announced[(id * 0x9e3779b97f4a7c15ull) >> 52];
}

static const struct {
	uint32_t type;
	bool many; /* as many as runs, else one */
} submissions[] = {{TRACE_MODEL_SUBMIT, true}, {TRACE_EXECUTE_API, false}};

/* Puts the ids that runs of this submission will use onto its slice. */
static int announce(struct pft_process *p, const struct shown *s)
{
	uint8_t count = 0;

	for (size_t i = 0; i < sizeof(submissions) / sizeof(*submissions); i++)
		if (!s->is_call && s->e->event_type == submissions[i].type)
			count = submissions[i].many ? p->flows_per_submit : 1;
	if (!count)
		return 0;
	if (!p->announced)
		p->announced = calloc(PFT_ANNOUNCED, sizeof(*p->announced));
	if (!p->announced)
		return -ENOMEM;
	*announced_at(p, s->e->id) =
		(struct pft_announced){.id = s->e->id, .first = p->w->flows + 1, .count = count};
	for (unsigned i = 0; i < count; i++)
		pft_flow(p->w, ++p->w->flows, false);
	return 0;
}

/* The flow that a run takes from its submission; 0: none was announced, or all are taken. */
static uint64_t take_flow(struct pft_process *p, uint64_t submission)
{
	struct pft_announced *a = p->announced ? announced_at(p, submission) : NULL;

	if (!a || a->id != submission || !a->count)
		return 0;
	if (a->used < a->count)
		return a->first + a->used++;
	if (p->flows_per_submit <= a->used && p->flows_per_submit < FLOWS_MAX)
		p->flows_per_submit = (uint8_t)(a->used + 1);
	return 0;
}

/* An inferred link ends in a step that says so: arrows themselves have no name. */
static void put_inferred(
	struct pft_process *p, const struct shown *s, uint32_t track, uint64_t flow)
{
	const struct pb_str *kind = s->special[KEY_LINK_KIND];
	char name[64];

	snprintf(name, sizeof(name), "%.*s (inferred)",
		kind ? (int)(kind->len < 32 ? kind->len : 32) : 4, kind ? kind->s : "link");
	pft_event(p->w, PFT_INSTANT, track);
	pft_category(p->w, PFT_DEVICE);
	pft_name(p->w, &p->seq, pft_str(name));
	pft_flow(p->w, flow, true);
	pft_put(p->w, &p->seq, s->time);
}

/* Resolves the link of an event whose special attributes were found; the flow to be put on it, or 0. */
static uint64_t link_of(
	struct pft_process *p, const struct shown *s, uint32_t track, bool *ret_linked)
{
	const struct pb_str *id = s->special[KEY_LINK_ID];
	uint64_t number = id ? decimal(id) : UINT64_MAX;
	uint64_t flow = number != UINT64_MAX ? take_flow(p, number) : 0;

	*ret_linked = flow != 0;
	if (flow && same(s->special[KEY_LINK], "inferred")) {
		put_inferred(p, s, track, flow);
		return 0;
	}
	return flow;
}

/* ---- slices --------------------------------------------------------------------------------- */

/* The line of a queue.  Events know it from their start on, or not at all. */
static struct pft_line *line_of_queue(struct pft_process *p, const struct shown *s)
{
	const struct pb_str *engine = s->special[KEY_DMA_ENGINE],
			    *queue = s->special[KEY_DMA_QUEUE];

	return pft_line_get(&p->lines, PFT_LINE_QUEUE,
		s->e->nd_idx << 16 | (engine ? (uint32_t)decimal(engine) & 0xffff : PFT_NO_QUEUE),
		queue ? (uint32_t)decimal(queue) & 0xffff : PFT_NO_QUEUE);
}

/* The line that an event belongs to.  NULL: no memory. */
static struct pft_line *line_of(struct pft_process *p, const struct shown *s)
{
	const struct ntrace_event_view *e = s->e;
	uint32_t core = same(s->special[KEY_NC], "unknown") ? UINT32_MAX : e->nc_idx, physical;

	if (s->is_queue)
		return line_of_queue(p, s);
	if (!s->is_device)
		return pft_line_get(&p->lines, PFT_LINE_THREAD, e->thread_id, 0);
	if (!s->special[KEY_DEVICE_CORE])
		return pft_line_get(&p->lines, PFT_LINE_CORE, core, 0);
	physical = (uint32_t)decimal(s->special[KEY_DEVICE_CORE]);
	if (!s->is_unit || !s->special[KEY_ENGINE])
		return pft_line_get(&p->lines, PFT_LINE_PHYSICAL, core, physical);
	return pft_line_get(&p->lines, PFT_LINE_UNIT, core,
		physical << PFT_UNIT_BITS | pft_unit(*s->special[KEY_ENGINE]));
}

static enum pft_category category_of(const struct shown *s)
{
	return s->is_call || s->dma ? PFT_DRIVER
	       : s->is_mark	    ? PFT_MARK
	       : s->is_device	    ? PFT_DEVICE
				    : PFT_RUNTIME;
}

/* Ends the slices of a lane down to a depth: they are not known to end, but what is next says so. */
static int cut_down(struct pft_process *p, struct pft_lane *lane, uint32_t depth, uint64_t time)
{
	int rc = 0;

	while (rc == 0 && lane->depth > depth) {
		struct pft_span s = pft_lines_close(&p->lines, lane);

		pft_event(p->w, PFT_END, lane->track);
		pft_note(p->w, &p->seq, pft_str("end"), pft_str("not seen"));
		pft_put(p->w, &p->seq, time);
		rc = pft_lines_cut(&p->lines, &s, p->seq.last);
	}
	return rc;
}

/* The start was seen, and its slice was cut here: nothing was lost. */
static const char rest_unseen[] = "cut, rest not shown";

/* `start`: what is wrong with its start; NULL: nothing. */
static void put_instant(struct pft_process *p, struct shown *s, uint32_t track,
	const struct name *name, const char *start)
{
	bool linked;
	uint64_t flow;

	flow = link_of(p, s, track, &linked);
	pft_event(p->w, PFT_INSTANT, track);
	pft_category(p->w, category_of(s));
	put_name(p, name);
	put_notes(p, s, name->call, linked);
	put_place(p, s);
	if (start)
		pft_note(p->w, &p->seq, pft_str("start"), pft_str(start));
	if (start && s->e->duration)
		pft_note_u64(p->w, &p->seq, "duration_ns", s->e->duration);
	if (flow)
		pft_flow(p->w, flow, true);
	pft_put(p->w, &p->seq, s->time);
	if ((start && start != rest_unseen) || s->special[KEY_START] || s->special[KEY_INVALID])
		pft_process_loss(p, p->seq.last);
}

static int at_start(struct pft_process *p, struct shown *s)
{
	struct pft_line *line = line_of(p, s), *other = NULL;
	struct pft_span span = {
		.id = s->e->id, .type = (uint16_t)(s->dma ? PFT_WORK + s->dma : s->e->event_type)};
	struct pft_lane *lane;
	struct name name;
	uint32_t keep, n, track, place = 0;
	int rc;

	if (!line)
		return -ENOMEM;
	if (pft_lines_find(&p->lines, s->e->id, &other, &place)) {
		track = pft_line_track(p, line, 0);
		name_of(p, s, &name);
		put_instant(p, s, track, &name, "duplicate");
		return 0;
	}
	n = pft_lines_place(line, span.type, s->is_call, &keep);
	track = pft_line_track(p, line, n);
	lane = pft_lane_get(line, n);
	rc = lane ? cut_down(p, lane, keep, s->time) : -ENOMEM;
	if (rc < 0)
		return rc;
	name_of(p, s, &name);
	span.is_call = s->is_call;
	span.name = name.iid;
	span.call = name.call;
	pft_event(p->w, PFT_BEGIN, track);
	pft_category(p->w, category_of(s));
	put_name(p, &name);
	put_notes(p, s, name.call, false);
	put_place(p, s);
	rc = announce(p, s);
	pft_put(p->w, &p->seq, s->time);
	return rc < 0 ? rc : pft_lines_open(&p->lines, line, n, &span);
}

/* A spare lane that is free from a time on; NULL when there are too many, or no memory. */
static struct pft_spare *spare_lane(struct pft_process *p, uint64_t from)
{
	struct pft_track t = {.parent = p->track, .name = pft_str("outlived what it was within")};
	struct pft_spare *s;

	for (uint32_t i = 0; i < p->spare_count; i++)
		if (p->spares[i].seq.last <= from)
			return &p->spares[i];
	if (!p->spares)
		p->spares = calloc(PFT_SPARES, sizeof(*p->spares));
	if (!p->spares)
		p->w->error = -ENOMEM;
	if (!p->spares || p->spare_count == PFT_SPARES)
		return NULL;
	s = &p->spares[p->spare_count++];
	pft_seq_open(p->w, &s->seq, true);
	s->track = pft_track(p->w, &s->seq, &t);
	return s;
}

/* The end of a span that was cut: its rest as a whole, on a spare lane. */
static bool put_rest(struct pft_process *p, const struct shown *s, const struct pft_cut *cut)
{
	struct pft_spare *spare = spare_lane(p, cut->time);
	struct pft_writer *w = p->w;
	struct name name;

	if (!spare)
		return false;
	if (cut->span.name)
		name.text = pft_intern_text(&p->seq.tables[PFT_NAMES], cut->span.name);
	else
		name_of(p, s, &name); /* it was too long to be kept, or one too many */
	pft_event(w, PFT_BEGIN, spare->track);
	pft_category(w, category_of(s));
	pft_name(w, &spare->seq, name.text);
	pft_note(w, &spare->seq, pft_str("continued"), pft_str("true"));
	pft_put(w, &spare->seq, cut->time);
	pft_event(w, PFT_END, spare->track);
	for (uint32_t i = 0; i < s->e->attr_count; i++)
		pft_note(w, &spare->seq, s->e->attrs[i].key, s->e->attrs[i].value);
	put_fields(p, &spare->seq, s->e);
	pft_put(w, &spare->seq, s->time);
	return true;
}

/* A copy that succeeded, with how many bytes it moved and where to. */
static int count_copy(struct pft_process *p, const struct shown *s, uint32_t call)
{
	const struct ioctl_row *row = call ? &ioctl_rows[call - 1] : NULL;
	const struct pb_str *bytes = s->special[KEY_BYTES], *to = s->special[KEY_DIRECTION];
	uint64_t from;

	if (!row || !(row->flags & IOCTL_F_COPY) || !bytes || s->special[KEY_ERRNO])
		return 0;
	from = s->e->duration < s->time ? s->time - s->e->duration : 1;
	return pft_copies_add(p,
		same(to, "host_to_device")   ? PFT_TO_DEVICE
		: same(to, "device_to_host") ? PFT_TO_HOST
					     : PFT_BETWEEN,
		from, s->time, decimal(bytes));
}

static int at_unknown_stop(struct pft_process *p, struct shown *s)
{
	struct pft_line *line = line_of(p, s);
	struct pft_cut cut;
	bool was_cut = pft_lines_cut_take(&p->lines, s->e->id, &cut);
	struct name name;

	if (!line)
		return -ENOMEM;
	if (was_cut && put_rest(p, s, &cut)) {
		find_special(p, s);
		return count_copy(p, s, cut.span.call);
	}
	was_cut = was_cut || pft_lines_cut_forgotten(&p->lines);
	name_of(p, s, &name);
	put_instant(p, s, pft_line_track(p, line, 0), &name, was_cut ? rest_unseen : "not seen");
	return count_copy(p, s, name.call);
}

static int at_stop(struct pft_process *p, struct shown *s)
{
	struct pft_line *line = NULL;
	uint32_t place = 0;
	struct pft_lane *lane = pft_lines_find(&p->lines, s->e->id, &line, &place);
	bool linked = false;
	uint64_t flow = 0;
	int rc;

	if (!lane)
		return at_unknown_stop(p, s);
	rc = cut_down(p, lane, place + 1, s->time);
	if (rc < 0)
		return rc;
	struct pft_span span = pft_lines_close(&p->lines, lane);
	flow = link_of(p, s, lane->track, &linked);
	pft_event(p->w, PFT_END, lane->track);
	put_notes(p, s, span.call, linked);
	if (line->kind == PFT_LINE_THREAD && line->number != s->e->thread_id)
		pft_note_u64(p->w, &p->seq, "stop_thread", s->e->thread_id);
	if (flow)
		pft_flow(p->w, flow, true);
	pft_put(p->w, &p->seq, s->time);
	return count_copy(p, s, span.call);
}

/* ---- the rest ---------------------------------------------------------------------------------- */

/* Steps of the realtime clock are told at the end of the file, in order; what is no time is not one. */
static int note_step(struct pft_process *p, const struct shown *s)
{
	const struct pb_str *offset = s->special[KEY_NEW_OFFSET];
	struct pft_step *steps;
	bool minus = offset && offset->len && offset->s[0] == '-';
	struct pb_str digits;
	uint64_t number;

	if (!offset || p->step_count == STEPS_MAX)
		return 0;
	digits = (struct pb_str){offset->s + minus, offset->len - minus};
	number = decimal(&digits);
	if (number > INT64_MAX - s->time || (minus && number > s->time))
		return 0;
	steps = realloc(p->steps, (p->step_count + 1) * sizeof(*steps));
	if (!steps)
		return -ENOMEM;
	p->steps = steps;
	p->steps[p->step_count].boot = s->time;
	p->steps[p->step_count].offset = minus ? -(int64_t)number : (int64_t)number;
	p->step_count++;
	return 0;
}

static int at_instant(struct pft_process *p, struct shown *s)
{
	struct pft_line *line = s->is_mark ? NULL : line_of(p, s);
	struct name name;

	if (!line && !s->is_mark)
		return -ENOMEM;
	name_of(p, s, &name);
	put_instant(p, s, line ? pft_line_track(p, line, 0) : p->track, &name, NULL);
	return s->is_mark ? note_step(p, s) : 0;
}

int pft_process_event(struct pft_process *p, const struct ntrace_event_view *e)
{
	enum event_kind kind = event_kind(e);
	struct shown s = {.e = e, .time = pft_boot(p->w, e->timestamp)};
	int rc = 0;

	s.is_mark = kind == EVENT_MARK;
	s.is_call = kind == EVENT_DRIVER;
	s.is_unit = kind == EVENT_UNIT;
	s.is_device = kind == EVENT_DEVICE || s.is_unit;
	s.dma = kind == EVENT_DMA ? dma_kind_of(e->hint.s, e->hint.len) : 0;
	s.is_queue = s.dma && dma_kind_row(s.dma)->span != DMA_OF_THREAD;
	if (s.is_device || s.is_mark || s.dma)
		find_special(p, &s);
	if (e->phase == PHASE_START)
		rc = at_start(p, &s);
	else if (e->phase == PHASE_STOP)
		rc = at_stop(p, &s);
	else
		rc = at_instant(p, &s);
	return rc < 0 ? rc : p->w->error;
}
