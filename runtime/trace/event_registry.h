/* SPDX-License-Identifier: Apache-2.0 */
/*
 * event_registry.h - the 46 sys_trace event types, as data.
 *
 * Everything that must know an event type (enum, names, payload layout, attributes, JSON keys,
 * documents) reads event_registry.def; nobody writes a switch over types.  The table is constant;
 * any thread may read it.
 */
#ifndef NTRACE_TRACE_EVENT_REGISTRY_H
#define NTRACE_TRACE_EVENT_REGISTRY_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/trace/record.h"

enum trace_category { TRACE_SOFTWARE = 0, TRACE_HARDWARE = 1 };

enum trace_name_source { NAME_CONFIRMED = 0, NAME_INFERRED = 1 };

enum trace_type {
#define EVENT(number, id, name, source, category) TRACE_##id = (number),
#define FIELD(id, phase, offset, type, key, form)
#include "runtime/trace/event_registry.def"
#undef EVENT
#undef FIELD
	TRACE_TYPE_COUNT = 46,
};

/* How a payload value becomes text in an attribute. */
enum trace_form {
	FORM_DEC,      /* decimal */
	FORM_HEX,      /* 0x... */
	FORM_ADDRESS,  /* 0x..., left out when 0: not known (no driver gives address 0 away) */
	FORM_BOOL,     /* "true" / "false" (ours: no source says) */
	FORM_INTERNED, /* decimal id; the name follows as `model_name` where one is known */
	FORM_USAGE,    /* name of a dma_mem_usage_type; decimal when out of range */
	FORM_HOST_NS,  /* decimal; a host time: BOOTTIME in a ring, epoch ns at output */
};

enum trace_width { FIELD_U8, FIELD_U16, FIELD_U32, FIELD_U64, FIELD_I32 };

struct trace_field {
	uint8_t offset; /* within the 40-byte payload */
	uint8_t width;	/* enum trace_width */
	uint8_t form;	/* enum trace_form */
	uint8_t phase;	/* enum trace_phase; instants use the TRACE_START fields */
	const char *key;
};

struct trace_event_info {
	uint16_t number;
	uint8_t category;    /* enum trace_category */
	uint8_t name_source; /* enum trace_name_source: is the spelling confirmed? */
	const char *name;    /* public name, e.g. "nrt_execute" */
	const struct trace_field *fields;
	uint32_t field_count;
};

/* The row of a type; NULL for a number beyond the table. */
const struct trace_event_info *trace_event_info(uint32_t type);

/* The type with this public name, or -ENOENT. */
int trace_event_by_name(const char *name);

/*
 * The same for names that other releases have: of a retired one, the nearest type of today (which one that is, is
 * ours); -ENOTSUP for one that is newer than the table; -ENOENT.
 */
int trace_event_by_other_name(const char *name);

/* Reads a field from a payload, zero- or sign-extended to 64 bits. */
uint64_t trace_field_value(const struct trace_field *f, const uint8_t payload[TRACE_PAYLOAD_BYTES]);

/* Writes the value's attribute text (NUL-terminated, at most size bytes); returns its length. */
size_t trace_field_text(const struct trace_field *f, uint64_t value, char *buf, size_t size);

/* Name of a dma_mem_usage_type, NULL when it is out of range. */
const char *trace_usage_name(uint64_t value);

/* XXH3 of numbers, names and fields: stored in recordings, so that a reader with another table
 * notices. */
uint64_t trace_registry_hash(void);

#endif
