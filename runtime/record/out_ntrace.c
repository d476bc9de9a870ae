/* SPDX-License-Identifier: Apache-2.0 */
/*
 * out_ntrace.c - ntrace.pb: the sequence of one process, one record per step.
 *
 * A runtime's payload stands on the record that it came with; what is known at the end only
 * (duration, parent, driver work, links) on the STOP.  A driver call has all its attributes on the
 * STOP, and on the START while it is open.  Attribute texts are built in a scratch area that serves
 * one record; names and keys are pointed to where they lie.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "proto/event_codec.h"
#include "runtime/record/out.h"
#include "runtime/trace/event_registry.h"
#include "vmlinux/ioctl_table.h"

#define CHUNK_BYTES (256u << 10)
#define SCRATCH_BYTES 2048u
#define NUMBER_BYTES 24u   /* longest number with its sign or 0x */
#define CANCEL_EVERY 4096u /* messages between looks at the cancel flag */
#define EXTENDED_BASE 1000u
#define EXTENDED_UNKNOWN 1999u /* a request without a row */

struct writer {
	struct timeline *t;
	struct outfile *f;
	struct pb_buf buf;
	struct ntrace_event_view e;
	char scratch[SCRATCH_BYTES];
	size_t used;
	uint64_t messages;
};

/* ---- attributes --------------------------------------------------------------------------- */

static inline struct pb_str str(const char *s)
{
	return (struct pb_str){s, (uint32_t)strlen(s)};
}

#define KEY(literal) ((struct pb_str){literal, sizeof(literal) - 1})

/* Room for a number's text; every record's numbers fit many times over. */
static char *room(struct writer *w)
{
	return w->used + NUMBER_BYTES <= SCRATCH_BYTES ? w->scratch + w->used : NULL;
}

static void put(struct writer *w, struct pb_str key, const char *value, size_t len)
{
	w->used += len;
	ntrace_event_attr(&w->e, key, (struct pb_str){value, (uint32_t)len});
}

static void put_decimal(struct writer *w, struct pb_str key, uint64_t value)
{
	char text[NUMBER_BYTES], *p = text + sizeof(text), *at = room(w);
	size_t len;

	if (!at)
		return;
	do
		*--p = (char)('0' + value % 10);
	while (value /= 10);
	len = (size_t)(text + sizeof(text) - p);
	memcpy(at, p, len);
	put(w, key, at, len);
}

static void put_signed(struct writer *w, struct pb_str key, int64_t value)
{
	char *at = room(w);

	if (at)
		put(w, key, at, (size_t)snprintf(at, NUMBER_BYTES, "%" PRId64, value));
}

static void put_hex(struct writer *w, struct pb_str key, uint64_t value)
{
	char *at = room(w);

	if (at)
		put(w, key, at, (size_t)snprintf(at, NUMBER_BYTES, "0x%08" PRIx64, value));
}

static void put_text(struct writer *w, struct pb_str key, const char *value)
{
	ntrace_event_attr(&w->e, key, str(value));
}

/* The name of a -errno, or its number where the C library has no name. */
static void put_errno(struct writer *w, struct pb_str key, int32_t error)
{
	const char *name = strerrorname_np(-error);

	if (name)
		put_text(w, key, name);
	else
		put_signed(w, key, -(int64_t)error);
}

static void put_core(struct writer *w, uint32_t nc_idx)
{
	if (nc_idx == TRACE_NC_UNKNOWN)
		put_text(w, KEY("nc"), "unknown");
	else
		w->e.nc_idx = nc_idx;
}

/* ---- runtime ------------------------------------------------------------------------------ */

static void put_field(struct writer *w, const struct load_record *r, const struct trace_field *f)
{
	uint64_t value = trace_field_value(f, r->r.data);
	const struct clock_map *clock = &w->t->l->clock;
	struct pb_str key = str(f->key);
	char *at;

	if (f->form == FORM_ADDRESS && value == 0)
		return;
	if (f->form == FORM_HOST_NS && clock_map_valid(clock, value))
		value = clock_map_real(clock, value);
	if (f->width != FIELD_I32 &&
		(f->form == FORM_DEC || f->form == FORM_INTERNED || f->form == FORM_HOST_NS)) {
		put_decimal(w, key, value);
	} else if ((at = room(w))) {
		put(w, key, at, trace_field_text(f, value, at, NUMBER_BYTES));
	}
	if (f->form == FORM_INTERNED) {
		uint32_t len;
		const char *name = load_name(w->t->l, r->source, value, &len);

		if (len)
			ntrace_event_attr(&w->e, KEY("model_name"), (struct pb_str){name, len});
	}
}

/* Fills what a runtime's record says itself; fields are those of the phase (instants: of the
 * start). */
static void put_record(struct writer *w, uint32_t index, enum trace_phase fields)
{
	const struct load_record *r = &w->t->l->records[index];
	const struct trace_event_info *info = trace_event_info(r->r.trace_type);

	w->e.event_type = r->r.trace_type;
	w->e.thread_id = (uint32_t)r->r.thread_id;
	w->e.status = r->r.phase == TRACE_START ? 0 : r->r.status;
	w->e.has_nrta_seq_id = r->r.has_nrta_seq_id != 0;
	w->e.nrta_seq_id = w->e.has_nrta_seq_id ? r->r.nrta_seq_id : 0;
	put_core(w, r->r.nc_idx);
	for (uint32_t i = 0; info && i < info->field_count; i++)
		if (info->fields[i].phase == fields)
			put_field(w, r, &info->fields[i]);
	w->t->written++;
}

static void put_work(struct writer *w, const struct item *i)
{
	const struct work *d = i->work == NO_ITEM ? NULL : &w->t->work[i->work];

	if (!d)
		return;
	put_decimal(w, KEY("driver.ioctls"), d->ioctls);
	put_decimal(w, KEY("driver.ioctl_ns"), d->ioctl_ns);
	if (d->copies) {
		put_decimal(w, KEY("driver.dma_bytes"), d->dma_bytes);
		put_decimal(w, KEY("driver.dma_ns"), d->dma_ns);
	}
	if (d->errors) {
		put_decimal(w, KEY("driver.errors"), d->errors);
		put_errno(w, KEY("driver.last_errno"), d->last_error);
	}
}

static void put_link(struct writer *w, const struct item *i)
{
	if (i->link == NO_ITEM)
		return;
	put_decimal(w, KEY("link.id"), w->t->items[i->link].id);
	put_text(w, KEY("link.kind"), "submit");
	put_text(w, KEY("link"), i->link_exact ? "exact" : "inferred");
}

static void runtime_step(struct writer *w, const struct item *i, enum ntrace_event_phase phase)
{
	if (phase == PHASE_STOP) {
		put_record(w, i->last, TRACE_STOP);
		put_work(w, i);
		put_link(w, i);
		if (i->clamped_ns)
			put_decimal(w, KEY("clamped_ns"), i->clamped_ns);
		return;
	}
	put_record(w, i->first, i->kind == ITEM_LOST ? TRACE_STOP : TRACE_START);
	if (i->kind == ITEM_LOST)
		put_text(w, KEY("start"), "lost");
	else if (i->kind == ITEM_DUPLICATE)
		put_text(w, KEY("start"), "duplicate");
}

/* ---- kernel ------------------------------------------------------------------------------- */

/* The core that a call names, or TRACE_NC_UNKNOWN. */
static uint32_t call_core(const struct load_call *c, const struct ioctl_row *row)
{
	for (unsigned i = 0; row && i < c->nargs && i < ioctl_row_fields(row); i++)
		if (row->fields[i].role == IOCTL_ROLE_NC && c->args[i] < TRACE_MAX_NC)
			return (uint32_t)c->args[i];
	return TRACE_NC_UNKNOWN;
}

static void put_argument(struct writer *w, enum ioctl_role role, uint64_t value)
{
	struct pb_str key = str(ioctl_role_attribute(role));

	if (role == IOCTL_ROLE_NC && value >= TRACE_MAX_NC)
		return; /* no core: nc=unknown says so */
	if (role == IOCTL_ROLE_TO_DEVICE)
		put_text(w, key, value ? "host_to_device" : "device_to_host");
	else if (role == IOCTL_ROLE_ADDRESS)
		put_hex(w, key, value);
	else
		put_decimal(w, key, value);
}

static void put_arguments(struct writer *w, const struct load_call *c, const struct ioctl_row *row)
{
	put_hex(w, KEY("request"), c->request);
	if (c->flags & NEV_F_ARG_FAULT) {
		put_text(w, KEY("args"), "unreadable");
		return;
	}
	for (unsigned i = 0; row && i < c->nargs && i < ioctl_row_fields(row); i++)
		put_argument(w, (enum ioctl_role)row->fields[i].role, c->args[i]);
}

static void name_call(struct writer *w, const struct load_call *c, const struct ioctl_row *row)
{
	if (row) {
		w->e.hint = str(row->name);
	} else {
		char *at = room(w);
		int len = at ? snprintf(at, NUMBER_BYTES, "ioctl_0x%08" PRIx32, c->request) : 0;

		w->e.hint = (struct pb_str){at, (uint32_t)len};
		w->used += (size_t)len;
	}
	if (w->t->kernel_events == MERGE_KERNEL_EXTENDED)
		w->e.event_type = EXTENDED_BASE + (c->request & 0xff); /* _IOC_NR */
}

static void kernel_step(struct writer *w, const struct item *i, enum ntrace_event_phase phase)
{
	const struct load_call *c = item_call(w->t, i);
	const struct ioctl_row *row = ioctl_row_find(c->request);

	name_call(w, c, row);
	w->e.thread_id = c->tid;
	w->e.nd_idx = c->device;
	put_core(w, call_core(c, row));
	/* The start of a whole call repeats nothing: there are many of them. */
	if (phase == PHASE_STOP || i->kind == ITEM_OPEN) {
		put_arguments(w, c, row);
		w->t->written++;
	}
	if (phase == PHASE_STOP) {
		put_signed(w, KEY("result"), c->result);
		if (load_call_error(c))
			put_errno(w, KEY("errno"), load_call_error(c));
	}
}

static void marker_step(struct writer *w, const struct item *i)
{
	const struct clock_step *s = &w->t->l->clock.steps[i->first];

	w->e.hint = KEY("clock_step");
	put_core(w, TRACE_NC_UNKNOWN);
	put_signed(w, KEY("old_offset_ns"), s->old_offset);
	put_signed(w, KEY("new_offset_ns"), s->new_offset);
}

/* ---- the sequence ------------------------------------------------------------------------- */

static const uint8_t phases[] = {
	[STEP_STOP] = PHASE_STOP,
	[STEP_START] = PHASE_START,
	[STEP_ZERO_START] = PHASE_START,
	[STEP_ZERO_STOP] = PHASE_STOP,
	[STEP_INSTANT] = PHASE_INSTANT,
};

static void fill(struct writer *w, const struct sort_entry *s)
{
	const struct item *i = &w->t->items[s->index];
	enum ntrace_event_phase phase = (enum ntrace_event_phase)phases[s->minor];

	/* The attributes are 1.5 KiB, of which attr_count says how much counts: not cleared. */
	memset(&w->e, 0, offsetof(struct ntrace_event_view, attrs));
	w->e.unknown = (struct pb_str){"", 0};
	w->e.unknown_runs = 0;
	w->used = 0;
	w->e.timestamp = clock_map_real(&w->t->l->clock, s->key);
	w->e.id = w->e.tracking_id = i->id;
	w->e.phase = phase;
	if (phase == PHASE_STOP)
		w->e.duration = i->end - i->start;
	if (phase != PHASE_START && i->parent != NO_ITEM)
		w->e.parent_id = w->t->items[i->parent].id;
	if (i->side == SIDE_RUNTIME)
		runtime_step(w, i, phase);
	else if (i->side == SIDE_KERNEL)
		kernel_step(w, i, phase);
	else
		marker_step(w, i);
}

static int write_sequence(struct writer *w)
{
	for (size_t k = 0; k < w->t->sequence_count; k++) {
		const struct sort_entry *s = &w->t->sequence[k];
		int rc;

		if (w->t->kernel_events == MERGE_KERNEL_OFF &&
			w->t->items[s->index].side == SIDE_KERNEL)
			continue;
		fill(w, s);
		rc = ntrace_event_append(&w->buf, &w->e);
		if (rc < 0)
			return rc;
		if (++w->messages % CANCEL_EVERY == 0 && w->t->cancel && *w->t->cancel)
			return -ECANCELED;
		if (w->buf.len >= CHUNK_BYTES) {
			outfile_write(w->f, w->buf.data, w->buf.len);
			w->buf.len = 0;
		}
	}
	outfile_write(w->f, w->buf.data, w->buf.len);
	return 0;
}

int out_ntrace(struct timeline *t, struct outfile *f, uint64_t *ret_messages)
{
	struct writer w = {.t = t, .f = f};
	int rc;

	t->written = 0;
	rc = write_sequence(&w);
	pb_buf_free(&w.buf);
	*ret_messages = w.messages;
	return rc;
}
