/* SPDX-License-Identifier: Apache-2.0 */
/*
 * event_kind.h - what an event of ntrace.pb is, by which name it goes, and what it copied: asked in one
 * place, so that all who show a trace answer alike.
 *
 * Kinds follow from the event type, the hint and the bits of the id that the merge gives out: bit 63
 * is the driver's side, a call unless its name is one of dma_kinds.def, bit 62 what the merge itself or somebody outside of the process saw, bit 60 alone what
 * a device profile tells.  Files of others have no such bits; there a named event is a driver call, but for an instant of thread 0.
 * Nothing here keeps anything; texts point into the event.
 */
#ifndef NTRACE_OUTPUT_EVENT_KIND_H
#define NTRACE_OUTPUT_EVENT_KIND_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/event_codec.h"
#include "vmlinux/ioctl_table.h"

#define EVENT_CALL_TYPE 1000u /* event types from here on are driver calls */
#define EVENT_NAME 48	      /* enough for the name of a type that has none */

enum event_kind {
	EVENT_HOST,   /* of the runtime's host side, or a span seen from outside */
	EVENT_DEVICE, /* of a core, told by the runtime */
	EVENT_UNIT, /* of a core's engine, DMA queue or TopSP, told by the core itself (a device profile) */
	EVENT_DRIVER, /* a call of the driver */
	EVENT_DMA,    /* what the driver did on its DMA path */
	EVENT_MARK,   /* noted by the merge: a step of the clock, a suspend */
	EVENT_KINDS
};

enum event_kind event_kind(const struct ntrace_event_view *e);

/* Its type's name, its hint where the type says nothing, else "type N" in buf. */
struct pb_str event_name(const struct ntrace_event_view *e, char buf[EVENT_NAME]);

bool event_text_is(struct pb_str s, const char *text);
/* The value of the first attribute with this key; an empty text, never NULL, when there is none. */
struct pb_str event_value(const struct ntrace_event_view *e, const char *key);
/* All of it is a number, decimal or 0x..., of at most 64 bits; else false, and *ret is 0. */
bool event_number(struct pb_str s, uint64_t *ret);
/* The same of an attribute. */
bool event_value_number(const struct ntrace_event_view *e, const char *key, uint64_t *ret);

/* The driver's request that a call is, by its number or else its name; NULL: not known. */
const struct ioctl_row *event_request(const struct ntrace_event_view *e);

enum event_direction { EVENT_TO_DEVICE, EVENT_TO_HOST, EVENT_ELSEWHERE, EVENT_DIRECTIONS };

struct event_copy {
	enum event_direction direction;
	bool sized;	/* how much it copied is known */
	uint64_t bytes; /* 0 when it is not */
};

/*
 * Is this event of kind EVENT_DRIVER the end of a copy that succeeded and whose arguments could be
 * read?  Which copies count is what the merge's driver.dma_bytes counts.
 */
bool event_driver_copy(const struct ntrace_event_view *e, struct event_copy *ret);

/* "host_to_device", "device_to_host", "other". */
const char *event_direction_name(enum event_direction d);

#endif
