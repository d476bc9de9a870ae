/* SPDX-License-Identifier: Apache-2.0 */
/*
 * encode_device.c - what the records of a device profile say, as records of ntrace.pb.
 *
 * As for driver calls the event type is 0 and the name stands in the hint.  Who and which stands on
 * the START, how long and how sure on the STOP.
 */
#include "runtime/record/encode_device.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/record/encode_record.h"

#define MAX_HINT 100u

#define KEYS(X)                           \
	X(ENGINE, "engine")               \
	X(CORE, "device_core_idx")        \
	X(INDEX, "index")                 \
	X(EXEC, "exec_id")                \
	X(PS, "device_ps")                \
	X(DURATION, "device_duration_ps") \
	X(LINK_ID, "link.id")             \
	X(LINK_KIND, "link.kind")         \
	X(LINK, "link")                   \
	X(BOUND, "clock.bound_ns")        \
	X(LATE, "late_ns")                \
	X(LOST, "start")                  \
	X(NC, "nc")                       \
	X(SEMAPHORE, "semaphore")         \
	X(VALUE, "value16")               \
	X(FAULT, "fault")

enum key {
#define X(id, text) KEY_##id,
	KEYS(X)
#undef X
		KEY_COUNT,
};

int encode_device_init(struct encoder *e)
{
	static const char *const texts[] = {
#define X(id, text) [KEY_##id] = text,
		KEYS(X)
#undef X
	};

	e->device_keys = calloc(KEY_COUNT, sizeof(*e->device_keys));
	if (!e->device_keys)
		return -ENOMEM;
	for (unsigned k = 0; k < KEY_COUNT; k++)
		e->device_keys[k] = attr_key(texts[k], strlen(texts[k]));
	return 0;
}

/* ---- parts -------------------------------------------------------------------------------- */

static uint8_t *decimal(const struct encoder *e, uint8_t *p, enum key k, uint64_t v)
{
	return attr_decimal(p, &e->device_keys[k], v);
}

static uint8_t *text(const struct encoder *e, uint8_t *p, enum key k, const char *v)
{
	return attr_text(p, &e->device_keys[k], v, strlen(v));
}

/* Attributes are written with room behind them, so not into the part itself. */
static void keep(struct attr_part *to, const uint8_t *bytes, const uint8_t *end)
{
	to->len = (uint32_t)(end - bytes);
	memcpy(to->bytes, bytes, to->len);
}

void encode_device_unit(
	const struct encoder *e, struct attr_part *to, const char *engine, uint32_t device_core)
{
	uint8_t bytes[ATTR_PART_BYTES + ATTR_ROOM] = {0}, *p = bytes;

	if (*engine)
		p = text(e, p, KEY_ENGINE, engine);
	keep(to, bytes, decimal(e, p, KEY_CORE, device_core));
}

void encode_device_run(const struct encoder *e, struct attr_part *to, uint64_t exec_id)
{
	uint8_t bytes[ATTR_PART_BYTES + ATTR_ROOM] = {0};

	keep(to, bytes, decimal(e, bytes, KEY_EXEC, exec_id));
}

void encode_device_link(const struct encoder *e, struct attr_part *to, uint64_t id)
{
	uint8_t bytes[ATTR_PART_BYTES + ATTR_ROOM] = {0};
	uint8_t *p = decimal(e, bytes, KEY_LINK_ID, id);

	p = text(e, p, KEY_LINK_KIND, "run");
	keep(to, bytes, text(e, p, KEY_LINK, "exact"));
}

/* All of a part is copied, of which what is more than its length is written over by what follows. */
static inline uint8_t *put_part(uint8_t *p, const struct attr_part *part)
{
	if (!part)
		return p;
	memcpy(p, part->bytes, sizeof(part->bytes));
	return p + part->len;
}

/* ---- records ------------------------------------------------------------------------------ */

static uint32_t put_hint(char *hint, const struct device_event *d)
{
	size_t unit = d->unit ? strlen(d->unit) : 0, what = strlen(d->what);

	if (unit) {
		memcpy(hint, d->unit, unit);
		hint[unit++] = '.';
	}
	what = what < MAX_HINT - unit ? what : MAX_HINT - unit;
	memcpy(hint + unit, d->what, what);
	return (uint32_t)(unit + what);
}

static uint8_t *put_what(const struct encoder *e, uint8_t *p, const struct device_event *d)
{
	p = put_part(p, d->place);
	p = decimal(e, p, KEY_INDEX, d->index);
	p = put_part(p, d->run);
	if (d->kind == DEVICE_SEMAPHORE) {
		p = decimal(e, p, KEY_SEMAPHORE, d->custom);
		p = decimal(e, p, KEY_VALUE, d->subtype);
	}
	if (d->kind == DEVICE_ERROR)
		p = decimal(e, p, KEY_FAULT, d->custom);
	return decimal(e, p, KEY_PS, d->ps);
}

static uint8_t *put_end(const struct encoder *e, uint8_t *p, const struct device_event *d)
{
	if (d->kind == DEVICE_STOP)
		p = decimal(e, p, KEY_DURATION, d->ps);
	p = put_part(p, d->link);
	return decimal(e, p, KEY_BOUND, d->bound);
}

int encode_device(struct encoder *e, struct process *p, const struct device_event *d)
{
	static const enum ntrace_event_phase phases[] = {[DEVICE_START] = PHASE_START,
		[DEVICE_STOP] = PHASE_STOP,
		[DEVICE_START_LOST] = PHASE_INSTANT,
		[DEVICE_SEMAPHORE] = PHASE_INSTANT,
		[DEVICE_ERROR] = PHASE_INSTANT};
	char hint[2 * MAX_HINT];
	uint8_t *at = encode_begin(e, p);
	struct head h = {
		.time = clock_map_real(&e->session->clock, d->time),
		.id = d->id,
		.duration = d->duration,
		.hint = hint,
		.hint_len = put_hint(hint, d),
		.device = d->device,
		.core = d->core ? d->core - 1 : 0,
		.status = d->kind == DEVICE_ERROR ? d->subtype : 0,
	};

	if (!at)
		return -ENOMEM;
	at = put_head(at, &h);
	if (d->core == 0)
		at = text(e, at, KEY_NC, "unknown");
	if (d->kind != DEVICE_STOP)
		at = put_what(e, at, d);
	if (d->kind != DEVICE_START)
		at = put_end(e, at, d);
	if (d->kind == DEVICE_START_LOST)
		at = text(e, at, KEY_LOST, "lost");
	if (d->late_ns)
		at = decimal(e, at, KEY_LATE, d->late_ns);
	encode_finish(p, put_tail(at, phases[d->kind], d->id));
	return 0;
}
