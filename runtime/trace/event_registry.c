/* SPDX-License-Identifier: Apache-2.0 */
/*
 * event_registry.c - event_registry.def as tables, and the few functions that read them.
 */
#include "runtime/trace/event_registry.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <xxhash.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

/*
 * One array of fields per event.  Each EVENT row closes the array before it and opens its own,
 * with an empty first element, so that an event without fields is no special case.
 */
/* clang-format off */
static const struct trace_field fields_begin[] __attribute__((unused)) = {{0, 0, 0, 0, NULL}
#define EVENT(number, id, name, source, category)                                                  \
	};                                                                                         \
	static const struct trace_field fields_##id[] = {{0, 0, 0, 0, NULL}
#define FIELD(id, phase, offset, type, key, form)                                                  \
	, {(offset), FIELD_##type, FORM_##form, TRACE_##phase, (key)}
#include "runtime/trace/event_registry.def"
#undef EVENT
#undef FIELD
};
/* clang-format on */

static const struct trace_event_info events[TRACE_TYPE_COUNT] = {
#define EVENT(num, id, text, source, cat)                   \
	[num] = {                                           \
		.number = (num),                            \
		.category = TRACE_##cat,                    \
		.name_source = NAME_##source,               \
		.name = (text),                             \
		.fields = fields_##id + 1,                  \
		.field_count = ARRAY_SIZE(fields_##id) - 1, \
	},
#define FIELD(id, phase, offset, type, key, form)
#include "runtime/trace/event_registry.def"
#undef EVENT
#undef FIELD
};

/* dma_mem_usage_type of the vendor's runtime, 0..21. */
static const char *const usage_names[] = {
	"GENERIC",
	"INSTR_PE",
	"INSTR_ACT",
	"INSTR_POOL",
	"IO",
	"DRAM_SPILL",
	"WEIGHT",
	"NOTIFICATION",
	"ACT_TABLE",
	"INSTR_DVE",
	"INSTR_SP",
	"SCRATCHPAD",
	"TENSOR",
	"UCODE_LIB",
	"POOL_STDIO",
	"CC",
	"SCRATCHPAD_NOT_SHARED",
	"XT_CC",
	"DMA_RING",
	"DMA_RING_SPILL",
	"DMA_RING_IO",
	"DMA_RING_COLLECTIVES",
};

static const uint8_t width_bytes[] = {
	[FIELD_U8] = 1, [FIELD_U16] = 2, [FIELD_U32] = 4, [FIELD_U64] = 8, [FIELD_I32] = 4};

const struct trace_event_info *trace_event_info(uint32_t type)
{
	return type < TRACE_TYPE_COUNT ? &events[type] : NULL;
}

int trace_event_by_name(const char *name)
{
	for (int i = 0; i < TRACE_TYPE_COUNT; i++)
		if (!strcmp(events[i].name, name))
			return i;
	return -ENOENT;
}

/* Names of other releases.  Retired: in older documents and traces.  Newer: seen in later traces, but 2.31
 * has no number for them. */
static const struct {
	const char *name;
	int type; /* the nearest, or -ENOTSUP: none */
} other_names[] = {
	{"model_load", TRACE_MODEL_LOAD},
	{"runtime_execute", TRACE_RUNTIME_EXECUTE},
	{"device_exec", TRACE_DEVICE_EXEC},
	{"cc_exec", TRACE_CC_EXEC},
	{"tensor_read", TRACE_TENSOR_READ},
	{"tensor_write", TRACE_TENSOR_WRITE},
	{"dlr_infer", TRACE_EXECUTE_API},
	{"kbl_infer_exec_wait", TRACE_EXEC_WAIT},
	{"nrta_execute_schedule", -ENOTSUP},
	{"nrt_profile_add_node_info", -ENOTSUP},
};

int trace_event_by_other_name(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(other_names); i++)
		if (!strcmp(other_names[i].name, name))
			return other_names[i].type;
	return -ENOENT;
}

uint64_t trace_field_value(const struct trace_field *f, const uint8_t payload[TRACE_PAYLOAD_BYTES])
{
	size_t bytes = width_bytes[f->width];
	uint64_t value = 0;

	if (f->offset + bytes > TRACE_PAYLOAD_BYTES)
		return 0;
	memcpy(&value, payload + f->offset, bytes); /* little-endian, as everything here */
	if (f->width == FIELD_I32)
		value = (uint64_t)(int64_t)(int32_t)value;
	return value;
}

const char *trace_usage_name(uint64_t value)
{
	return value < ARRAY_SIZE(usage_names) ? usage_names[value] : NULL;
}

size_t trace_field_text(const struct trace_field *f, uint64_t value, char *buf, size_t size)
{
	int n;

	if (f->form == FORM_HEX || f->form == FORM_ADDRESS)
		n = snprintf(buf, size, "0x%" PRIx64, value);
	else if (f->form == FORM_BOOL)
		n = snprintf(buf, size, "%s", value ? "true" : "false");
	else if (f->form == FORM_USAGE && trace_usage_name(value))
		n = snprintf(buf, size, "%s", trace_usage_name(value));
	else if (f->width == FIELD_I32)
		n = snprintf(buf, size, "%" PRId64, (int64_t)value);
	else
		n = snprintf(buf, size, "%" PRIu64, value);
	if (n < 0 || size == 0)
		return 0;
	return (size_t)n < size ? (size_t)n : size - 1;
}

/* Chains XXH3 through its seed; a text counts with its terminator. */
static uint64_t hash_text(uint64_t hash, const char *text)
{
	return XXH3_64bits_withSeed(text, strlen(text) + 1, hash);
}

uint64_t trace_registry_hash(void)
{
	uint64_t hash = 0;

	for (uint32_t i = 0; i < TRACE_TYPE_COUNT; i++) {
		const struct trace_event_info *e = &events[i];

		hash = XXH3_64bits_withSeed(&e->number, sizeof(e->number), hash);
		hash = hash_text(hash, e->name);
		for (uint32_t k = 0; k < e->field_count; k++) {
			const struct trace_field *f = &e->fields[k];
			uint8_t shape[4] = {f->offset, f->width, f->form, f->phase};

			hash = XXH3_64bits_withSeed(shape, sizeof(shape), hash);
			hash = hash_text(hash, f->key);
		}
	}
	return hash;
}
