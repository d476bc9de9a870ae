/* SPDX-License-Identifier: Apache-2.0 */
/*
 * event_kind.c - the rules of event_kind.h: kinds, names, numbers in attributes, copies.
 */
#include "agent/output/event_kind.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "runtime/record/item.h"
#include "runtime/trace/event_registry.h"
#include "vmlinux/dma_kinds.h"

/* Is the event known by its hint rather than by its type? */
static bool by_hint(const struct ntrace_event_view *e)
{
	return e->hint.len && (e->event_type == TRACE_GENERIC || e->event_type >= TRACE_TYPE_COUNT);
}

static enum event_kind driver_kind(const struct ntrace_event_view *e)
{
	return dma_kind_of(e->hint.s, e->hint.len) ? EVENT_DMA : EVENT_DRIVER;
}

enum event_kind event_kind(const struct ntrace_event_view *e)
{
	const struct trace_event_info *info = trace_event_info(e->event_type);

	if (!by_hint(e) && e->event_type < EVENT_CALL_TYPE)
		return info && info->category == TRACE_HARDWARE ? EVENT_DEVICE : EVENT_HOST;
	if (e->id & ID_KERNEL)
		return driver_kind(e);
	if (e->id >> 60 == ID_DEVICE >> 60 && e->thread_id == 0 && e->event_type == 0)
		return EVENT_UNIT;
	if (e->id & ID_MARKER)
		return e->phase == PHASE_INSTANT ? EVENT_MARK : EVENT_HOST;
	return by_hint(e) && e->phase == PHASE_INSTANT && e->thread_id == 0 ? EVENT_MARK
									    : driver_kind(e);
}

struct pb_str event_name(const struct ntrace_event_view *e, char buf[EVENT_NAME])
{
	const struct trace_event_info *info = trace_event_info(e->event_type);
	int len;

	if (by_hint(e))
		return e->hint;
	if (info)
		return (struct pb_str){info->name, (uint32_t)strlen(info->name)};
	len = snprintf(buf, EVENT_NAME, "type %" PRIu32, e->event_type);
	return (struct pb_str){buf, (uint32_t)len};
}

bool event_text_is(struct pb_str s, const char *text)
{
	return s.len == strlen(text) && !memcmp(s.s, text, s.len);
}

struct pb_str event_value(const struct ntrace_event_view *e, const char *key)
{
	for (uint32_t i = 0; i < e->attr_count; i++)
		if (event_text_is(e->attrs[i].key, key))
			return e->attrs[i].value;
	return (struct pb_str){"", 0};
}

bool event_number(struct pb_str s, uint64_t *ret)
{
	bool hex = s.len > 2 && s.s[0] == '0' && s.s[1] == 'x';
	uint64_t base = hex ? 16 : 10, v = 0;

	*ret = 0;
	if (s.len == 0)
		return false;
	for (uint32_t i = hex ? 2 : 0; i < s.len; i++) {
		char c = s.s[i];
		unsigned digit = c >= '0' && c <= '9'	       ? (unsigned)(c - '0')
				 : hex && c >= 'a' && c <= 'f' ? (unsigned)(c - 'a' + 10)
							       : 16;

		if (digit >= base || v > (UINT64_MAX - digit) / base)
			return false;
		v = v * base + digit;
	}
	*ret = v;
	return true;
}

bool event_value_number(const struct ntrace_event_view *e, const char *key, uint64_t *ret)
{
	return event_number(event_value(e, key), ret);
}

/* ---- driver calls -------------------------------------------------------------------------- */

const struct ioctl_row *event_request(const struct ntrace_event_view *e)
{
	uint64_t number;

	if (event_value_number(e, "request", &number))
		return number <= UINT32_MAX ? ioctl_row_find((uint32_t)number) : NULL;
	for (size_t i = 0; i < ioctl_row_count; i++)
		if (event_text_is(e->hint, ioctl_rows[i].name))
			return &ioctl_rows[i];
	return NULL;
}

bool event_driver_copy(const struct ntrace_event_view *e, struct event_copy *ret)
{
	const struct ioctl_row *row;
	struct pb_str direction;

	*ret = (struct event_copy){EVENT_ELSEWHERE, false, 0};
	if (e->phase == PHASE_START || event_kind(e) != EVENT_DRIVER)
		return false;
	row = event_request(e);
	if (!row || !(row->flags & IOCTL_F_COPY) || event_value(e, "errno").len ||
		event_value(e, "args").len)
		return false;
	direction = event_value(e, "direction");
	for (unsigned d = 0; d < EVENT_ELSEWHERE; d++)
		if (event_text_is(direction, event_direction_name((enum event_direction)d)))
			ret->direction = (enum event_direction)d;
	ret->sized = event_value_number(e, "bytes", &ret->bytes);
	return true;
}

const char *event_direction_name(enum event_direction d)
{
	static const char *const names[EVENT_DIRECTIONS] = {
		[EVENT_TO_DEVICE] = "host_to_device",
		[EVENT_TO_HOST] = "device_to_host",
		[EVENT_ELSEWHERE] = "other",
	};

	return names[d];
}
