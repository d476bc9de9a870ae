/* SPDX-License-Identifier: Apache-2.0 */
/*
 * encode.c - items to bytes: the hot path of the merge.
 *
 * A record is written in one pass, field by field in the order of numbers, two bytes behind the place
 * of its length, because most records take 128 bytes to 16 KiB; shorter ones are moved.  Zero values are
 * left out as proto3 does.  Nothing is formatted that a table can hold: keys are encoded beforehand
 * (encode_attr.h), the fields of each event type stand in a table by type and phase.
 *
 * A runtime's payload stands on the record that it came with; what is known at the end only (duration,
 * parent, driver work, links) on the STOP.  A driver call has all its attributes on the STOP, and on the
 * START when it was announced.
 *
 * This file turns BOOTTIME into epoch time, and nothing before it does.
 */
#include "runtime/record/encode.h"

#include "runtime/record/call_error.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/record/encode_dma.h"
#include "runtime/record/encode_record.h"
#include "runtime/trace/event_registry.h"

#define MAX_FIELDS 6u
#define EXTENDED_BASE 1000u
#define EXTENDED_OPS 1256u /* the driver's other file operations */

struct field_key {
	const struct trace_field *field;
	uint64_t mask;
	struct attr_key key;
};

struct type_keys {
	struct field_key fields[2][MAX_FIELDS]; /* by phase of the fields: start, stop */
	uint8_t count[2];
};

/* The keys that stand in no other table. */
#define KEYS(X)                            \
	X(NC, "nc")                        \
	X(MODEL_NAME, "model_name")        \
	X(IOCTLS, "driver.ioctls")         \
	X(IOCTL_NS, "driver.ioctl_ns")     \
	X(DMA_BYTES, "driver.dma_bytes")   \
	X(DMA_NS, "driver.dma_ns")         \
	X(ERRORS, "driver.errors")         \
	X(LAST_ERRNO, "driver.last_errno") \
	X(LINK_ID, "link.id")              \
	X(LINK_KIND, "link.kind")          \
	X(LINK, "link")                    \
	X(CLAMPED, "clamped_ns")           \
	X(LATE, "late_ns")                 \
	X(START, "start")                  \
	X(REQUEST, "request")              \
	X(ARGS, "args")                    \
	X(FILE, "file")                    \
	X(GENERATION, "generation")        \
	X(VERSION, "version")              \
	X(RESULT, "result")                \
	X(ERRNO, "errno")                  \
	X(OLD_OFFSET, "old_offset_ns")     \
	X(NEW_OFFSET, "new_offset_ns")     \
	X(SUSPENDED, "suspended_ns")       \
	X(BOUND, "clock.bound_ns")         \
	X(CORRECTED, "clock.corrected_ns") \
	X(INVALID, "invalid")              \
	X(TOLD_START, "told_start_ns")     \
	X(TOLD_END, "told_end_ns")

enum key {
#define X(id, text) KEY_##id,
	KEYS(X)
#undef X
		KEY_COUNT,
};

/* The texts are put in by encoder_init. */
static const char *const key_texts[] = {
#define X(id, text) [KEY_##id] = text,
	KEYS(X)
#undef X
};

int encoder_init(
	struct encoder *e, const struct session *session, enum merge_kernel_events kernel_events)
{
	*e = (struct encoder){.session = session, .kernel_events = kernel_events};
	e->types = calloc(TRACE_TYPE_COUNT, sizeof(*e->types));
	e->keys = calloc(KEY_COUNT, sizeof(*e->keys));
	e->roles = calloc(IOCTL_ROLE_MAX, sizeof(*e->roles));
	if (!e->types || !e->keys || !e->roles)
		return -ENOMEM;
	for (unsigned k = 0; k < KEY_COUNT; k++)
		e->keys[k] = attr_key(key_texts[k], strlen(key_texts[k]));
	for (unsigned r = 1; r < IOCTL_ROLE_MAX; r++) {
		const char *name = ioctl_role_attribute((enum ioctl_role)r);
		e->roles[r] = attr_key(name, strlen(name));
	}
	for (uint32_t t = 0; t < TRACE_TYPE_COUNT; t++) {
		static const uint64_t masks[] = {[FIELD_U8] = 0xff,
			[FIELD_U16] = 0xffff,
			[FIELD_U32] = 0xffffffff,
			[FIELD_U64] = UINT64_MAX,
			[FIELD_I32] = 0xffffffff};
		const struct trace_event_info *info = trace_event_info(t);

		for (uint32_t i = 0; i < info->field_count; i++) {
			const struct trace_field *f = &info->fields[i];
			unsigned phase = f->phase == TRACE_STOP;
			struct field_key *to = &e->types[t].fields[phase][e->types[t].count[phase]];

			if (e->types[t].count[phase]++ == MAX_FIELDS)
				return -EOVERFLOW;
			*to = (struct field_key){
				f, masks[f->width], attr_key(f->key, strlen(f->key))};
		}
	}
	return encode_dma_init(e);
}

void encoder_free(struct encoder *e)
{
	free(e->types);
	free(e->keys);
	free(e->roles);
	free(e->device_keys);
	free(e->dma_keys);
	*e = (struct encoder){0};
}

/* ---- pieces ------------------------------------------------------------------------------- */

/* Inline, so that lengths of literals are constants. */
static inline uint8_t *put_text(uint8_t *p, const struct attr_key *k, const char *text)
{
	return attr_text(p, k, text, strlen(text));
}

/* The name of a call's error, or its number when it has none. */
static uint8_t *put_errno(uint8_t *p, const struct attr_key *k, int64_t error)
{
	const char *name = call_error_name(error);

	return name ? put_text(p, k, name) : attr_signed(p, k, error);
}

/* ---- runtime ------------------------------------------------------------------------------ */

static uint8_t *put_name(const struct encoder *e, uint8_t *p, const struct item *i, uint64_t value)
{
	uint32_t len;
	const char *name = session_name(e->session, i->source, value, i->time, &len);

	return len ? attr_text(p, &e->keys[KEY_MODEL_NAME], name, len) : p;
}

/* Epoch time of a BOOTTIME; what is none stays as it is. */
static uint8_t *put_host_time(
	const struct encoder *e, uint8_t *p, const struct attr_key *k, uint64_t value)
{
	const struct clock_map *clock = &e->session->clock;

	return attr_decimal(
		p, k, clock_map_valid(clock, value) ? clock_map_real(clock, value) : value);
}

static inline uint8_t *put_field(
	const struct encoder *e, uint8_t *p, const struct item *i, const struct field_key *k)
{
	const struct trace_field *f = k->field;
	uint64_t value;

	/* Behind the payload lies more of the item, so eight bytes can always be read. */
	memcpy(&value, (const uint8_t *)i + offsetof(struct item, data) + f->offset, 8);
	value &= k->mask;
	if (f->width == FIELD_I32)
		return attr_signed(p, &k->key, (int32_t)value);
	if (f->form == FORM_DEC)
		return attr_decimal(p, &k->key, value);
	if (f->form == FORM_INTERNED)
		return put_name(e, attr_decimal(p, &k->key, value), i, value);
	if (f->form == FORM_HOST_NS)
		return put_host_time(e, p, &k->key, value);
	if (f->form == FORM_BOOL)
		return put_text(p, &k->key, value ? "true" : "false");
	if (f->form == FORM_ADDRESS && value == 0)
		return p;
	if (f->form == FORM_HEX || f->form == FORM_ADDRESS)
		return attr_hex(p, &k->key, value, 1);
	const char *usage = trace_usage_name(value);
	return usage ? put_text(p, &k->key, usage) : attr_decimal(p, &k->key, value);
}

static uint8_t *put_work(const struct encoder *e, uint8_t *p, const struct work *w)
{
	p = attr_decimal(p, &e->keys[KEY_IOCTLS], w->ioctls);
	p = attr_decimal(p, &e->keys[KEY_IOCTL_NS], w->ioctl_ns);
	if (w->copies) {
		p = attr_decimal(p, &e->keys[KEY_DMA_BYTES], w->dma_bytes);
		p = attr_decimal(p, &e->keys[KEY_DMA_NS], w->dma_ns);
	}
	if (w->errors) {
		p = attr_decimal(p, &e->keys[KEY_ERRORS], w->errors);
		p = put_errno(p, &e->keys[KEY_LAST_ERRNO], w->last_error);
	}
	return p;
}

static uint8_t *put_link(const struct encoder *e, uint8_t *p, const struct item *i)
{
	unsigned runtime = e->session->sources[i->source].ordinal;

	p = attr_decimal(p, &e->keys[KEY_LINK_ID], item_written_id(i->other, runtime));
	p = put_text(p, &e->keys[KEY_LINK_KIND], "submit");
	return put_text(p, &e->keys[KEY_LINK], i->flags & ITEM_EXACT ? "exact" : "inferred");
}

/* An event of a device that was taken out of its place: what it said of itself. */
static uint8_t *put_invalid(const struct encoder *e, uint8_t *p, const struct item *i)
{
	static const char *const names[] = {
		"zero", "backward", "before_submit", "after_collection"};

	static_assert(sizeof(names) / sizeof(*names) == ITEM_INVALID_KINDS, "names of kinds");
	p = put_text(p, &e->keys[KEY_INVALID], names[i->kind - ITEM_INVALID_ZERO]);
	if (!(i->flags & ITEM_ENDED))
		p = put_host_time(e, p, &e->keys[KEY_TOLD_START], i->start);
	if (i->flags & (ITEM_ENDED | ITEM_BOTH))
		p = put_host_time(e, p, &e->keys[KEY_TOLD_END], i->clamped_ns);
	return p;
}

static uint8_t *put_device(const struct encoder *e, uint8_t *p, const struct item *i)
{
	if (i->flags & ITEM_LINK && (i->kind == ITEM_STOP || i->kind >= ITEM_INVALID_ZERO))
		p = put_link(e, p, i);
	if (i->kind >= ITEM_INVALID_ZERO)
		return put_invalid(e, p, i);
	if (i->flags & ITEM_CORRECTED)
		p = attr_signed(p, &e->keys[KEY_CORRECTED], item_corrected(i));
	if (!(i->flags & ITEM_BOUND))
		return p;
	if (item_bound(i) == ITEM_BOUND_UNKNOWN)
		return put_text(p, &e->keys[KEY_BOUND], "unknown");
	return attr_decimal(p, &e->keys[KEY_BOUND], item_bound(i));
}

static inline uint8_t *put_remarks(const struct encoder *e, uint8_t *p, const struct item *i)
{
	if (i->kind <= ITEM_START && i->clamped_ns)
		p = attr_decimal(p, &e->keys[KEY_CLAMPED], i->clamped_ns);
	if (i->kind == ITEM_LOST)
		p = put_text(p, &e->keys[KEY_START], "lost");
	if (i->kind == ITEM_DUPLICATE)
		p = put_text(p, &e->keys[KEY_START], "duplicate");
	if (i->late_ns)
		p = attr_decimal(p, &e->keys[KEY_LATE], i->late_ns);
	return p;
}

static uint8_t *put_runtime(const struct encoder *e, uint8_t *p, const struct item *i,
	const struct event_out *out, struct head *h)
{
	unsigned phase = i->kind == ITEM_STOP || i->kind == ITEM_LOST || i->flags & ITEM_ENDED;

	h->core = i->core ? i->core - 1u : 0;
	h->type = i->type;
	h->status = i->status;
	p = put_head(p, h);
	if (i->core == 0)
		p = put_text(p, &e->keys[KEY_NC], "unknown");
	if (i->type < TRACE_TYPE_COUNT) {
		const struct type_keys *t = &e->types[i->type];

		for (unsigned n = 0; n < t->count[phase]; n++)
			p = put_field(e, p, i, &t->fields[phase][n]);
	}
	if (out->work && out->work->ioctls)
		p = put_work(e, p, out->work);
	if (i->flags & ITEM_HARDWARE)
		p = put_device(e, p, i);
	p = put_remarks(e, p, i);
	p = put_tail(p, out->phase, h->id);
	if (i->flags & ITEM_NRTA) {
		*p++ = 0x80; /* tag 16: two bytes */
		*p++ = 0x01;
		p = pb_varint_put_fast(p, i->nrta_seq_id);
	}
	return p;
}

/* ---- kernel ------------------------------------------------------------------------------- */

const struct ioctl_row *encode_row(struct encoder *e, uint32_t request)
{
	if (e->request != request || !e->row) {
		e->request = request;
		e->row = ioctl_row_find(request);
		e->name_len = e->row ? (uint32_t)strlen(e->row->name) : 0;
		e->fields = e->row ? ioctl_row_fields(e->row) : 0;
	}
	return e->row;
}

/* The core that a call names + 1, or 0. */
static uint32_t call_core(const struct encoder *e, const struct item *i)
{
	for (unsigned n = 0; n < i->nargs && n < e->fields; n++)
		if (e->row->fields[n].role == IOCTL_ROLE_NC && i->args[n] < TRACE_MAX_NC)
			return (uint32_t)i->args[n] + 1;
	return 0;
}

static uint8_t *put_argument(
	const struct encoder *e, uint8_t *p, enum ioctl_role role, uint64_t value)
{
	const struct attr_key *k = &e->roles[role];

	if (role == IOCTL_ROLE_NC && value >= TRACE_MAX_NC)
		return p; /* no core: nc=unknown says so */
	if (role == IOCTL_ROLE_TO_DEVICE)
		return put_text(p, k, value ? "host_to_device" : "device_to_host");
	if (role == IOCTL_ROLE_ADDRESS)
		return attr_hex(p, k, value, 8);
	return attr_decimal(p, k, value);
}

static uint8_t *put_arguments(const struct encoder *e, uint8_t *p, const struct item *i)
{
	p = attr_hex(p, &e->keys[KEY_REQUEST], i->request, 8);
	if (i->call_flags & (NEV_F_QUERY | NEV_F_WORK))
		p = put_text(p, &e->keys[KEY_FILE], i->call_flags & NEV_F_QUERY ? "query" : "work");
	if (i->call_flags & NEV_F_ARG_FAULT)
		return put_text(p, &e->keys[KEY_ARGS], "unreadable");
	if (i->call_flags & NEV_F_OTHER_SIZE)
		p = put_text(p, &e->keys[KEY_ARGS], "other_size");
	for (unsigned n = 0; n < i->nargs && n < e->fields; n++)
		if (!e->row->fields[n].is_out || i->call_flags & NEV_F_HANDLE_OUT)
			p = put_argument(e, p, (enum ioctl_role)e->row->fields[n].role, i->args[n]);
	return p;
}

static uint8_t *put_call(struct encoder *e, uint8_t *p, const struct item *i,
	const struct event_out *out, struct head *h)
{
	const struct ioctl_row *row = encode_row(e, i->request);
	uint32_t core = call_core(e, i);
	uint8_t unnamed[24];

	h->hint = row ? row->name : (const char *)unnamed;
	h->hint_len = e->name_len;
	if (!row) {
		memcpy(unnamed, "ioctl_", 6);
		h->hint_len = (uint32_t)(put_hex(unnamed + 6, i->request, 8) - unnamed);
	}
	if (e->kernel_events == MERGE_KERNEL_EXTENDED)
		h->type = NEV_IS_OP(i->request) ? EXTENDED_OPS + (i->request & 0xff)
						: EXTENDED_BASE + (i->request & 0xff); /* _IOC_NR */
	h->device = i->device;
	h->core = core ? core - 1 : 0;
	p = put_head(p, h);
	if (core == 0)
		p = put_text(p, &e->keys[KEY_NC], "unknown");
	/* The start of a whole call repeats nothing: there are many of them. */
	if (i->kind == ITEM_STOP || i->flags & ITEM_ANNOUNCED)
		p = put_arguments(e, p, i);
	if (i->kind == ITEM_STOP) {
		p = attr_signed(p, &e->keys[KEY_RESULT], i->result);
		if (out->error)
			p = put_errno(p, &e->keys[KEY_ERRNO], out->error);
	}
	if (i->late_ns)
		p = attr_decimal(p, &e->keys[KEY_LATE], i->late_ns);
	return put_tail(p, out->phase, h->id);
}

/* ---- records ------------------------------------------------------------------------------ */

int encode_item(
	struct encoder *e, struct process *p, const struct item *i, const struct event_out *out)
{
	uint8_t *at = encode_begin(e, p);
	struct head h = {
		.time = clock_map_real(&e->session->clock, i->time),
		.id = out->id,
		.parent = out->parent,
		.duration = out->phase == PHASE_STOP ? i->time - i->start : 0,
		.thread = i->tid & ~TID_FOREIGN,
	};

	if (!at)
		return -ENOMEM;
	if (i->side == SIDE_RUNTIME)
		at = put_runtime(e, at, i, out, &h);
	else if (i->side == SIDE_DMA)
		at = encode_dma(e, at, i, out, &h);
	else
		at = put_call(e, at, i, out, &h);
	encode_finish(p, at);
	return 0;
}

/* The beginning of a mark in a process's buffer: an INSTANT of no thread.  *ret_at: behind it; NULL: no
 * memory. */
static uint8_t *begin_mark(
	struct encoder *e, struct process *p, uint64_t time, const char *hint, uint64_t id)
{
	struct head h = {.time = clock_map_real(&e->session->clock, time),
		.id = id,
		.hint = hint,
		.hint_len = (uint32_t)strlen(hint)};
	uint8_t *at = encode_begin(e, p);

	return at ? put_text(put_head(at, &h), &e->keys[KEY_NC], "unknown") : NULL;
}

/* Its end; time: where it was written, told: when it was. */
static int end_mark(struct encoder *e, struct process *p, uint8_t *at, uint64_t time, uint64_t told,
	uint64_t id)
{
	if (time > told)
		at = attr_decimal(at, &e->keys[KEY_LATE], time - told);
	encode_finish(p, put_tail(at, PHASE_INSTANT, id));
	p->last_time = time;
	return 0;
}

int encode_step(struct encoder *e, struct process *p, const struct clock_step *s, uint64_t id)
{
	uint64_t time = s->boot_ns < p->last_time ? p->last_time : s->boot_ns;
	uint8_t *at = begin_mark(e, p, time, s->suspended_ns ? "suspend" : "clock_step", id);

	if (!at)
		return -ENOMEM;
	if (s->suspended_ns) {
		at = attr_decimal(at, &e->keys[KEY_SUSPENDED], s->suspended_ns);
	} else {
		at = attr_signed(at, &e->keys[KEY_OLD_OFFSET], s->old_offset);
		at = attr_signed(at, &e->keys[KEY_NEW_OFFSET], s->new_offset);
	}
	return end_mark(e, p, at, time, s->boot_ns, id);
}

int encode_module(struct encoder *e, struct process *p, const struct module_change *m, uint64_t id)
{
	uint64_t time = m->boot_ns < p->last_time ? p->last_time : m->boot_ns;
	uint8_t *at = begin_mark(e, p, time, m->loaded ? "driver_loaded" : "driver_unloaded", id);

	if (!at)
		return -ENOMEM;
	at = attr_decimal(at, &e->keys[KEY_GENERATION], m->generation);
	if (m->version[0])
		at = put_text(at, &e->keys[KEY_VERSION], m->version);
	return end_mark(e, p, at, time, m->boot_ns, id);
}
