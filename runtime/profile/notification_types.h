/* SPDX-License-Identifier: Apache-2.0 */
/*
 * notification_types.h - kinds of notifications: the host's numbers, what they are called in a profile, which rings
 * have them.
 *
 * notification_types.def is the table.  Pure; any thread.
 */
#ifndef NTRACE_PROFILE_NOTIFICATION_TYPES_H
#define NTRACE_PROFILE_NOTIFICATION_TYPES_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/vdev/vdev_abi.h"

/* The host's notification_type. */
enum notification_kind {
#define KIND(number, name, ...) NOTIFICATION_##name = (number),
#include "runtime/profile/notification_types.def"
#undef KIND
	NOTIFICATION_TOPSP_CC_STATUS = 9, /* refused by the table; see NOTIFICATION_EXPLICIT_CC */
	NOTIFICATION_MAX = 10,
	/* Ours, no number of the host's: the explicit status of collectives, which the TopSP writes.  Not among the lists
	 * of a profile's rings, it is put behind them. */
	NOTIFICATION_EXPLICIT_CC = 11,
};

/* ntff's notification_trace_type and block_type. */
enum ntff_trace_type {
	NTFF_TRACE_INSTRUCTION = 0,
	NTFF_TRACE_EVENT = 1,
	NTFF_TRACE_ERROR = 2,
	NTFF_TRACE_EXPLICIT = 3,
	NTFF_TRACE_DMA = 4,
	NTFF_TRACE_THROTTLE = 5,
};
enum ntff_block_type { NTFF_BLOCK_NC = 0, NTFF_BLOCK_DMA = 1, NTFF_BLOCK_TOPSP = 2 };

/* Whose memory the ring is. */
enum notification_size {
	NOTIFICATION_SIZE_INSTRUCTION,
	NOTIFICATION_SIZE_EVENT,
	NOTIFICATION_SIZE_DMA,
	NOTIFICATION_SIZE_THROTTLE,
	NOTIFICATION_SIZE_CC_CORE_INSTRUCTION,
	NOTIFICATION_SIZE_CC_CORE_EVENT,
	NOTIFICATION_SIZE_COUNT,
	NOTIFICATION_SIZE_OWN = NOTIFICATION_SIZE_COUNT, /* the executor's */
};

struct notification_type {
	enum notification_kind kind;
	const char *name;
	enum ntff_trace_type trace;
	enum ntff_block_type block;
	uint32_t device, type;		    /* VDEV_NQ_DEV_TYPE_..., VDEV_NQ_TYPE_... */
	uint32_t first_engine, last_engine; /* or DMA queues */
	enum notification_size size;
};

/* What a core and its TopSP have: the collected kinds in their order, and the explicit status last. */
#define NOTIFICATION_TYPES 10u
#define NOTIFICATION_RINGS 33u /* of all of them together: rows of a physical core */
const struct notification_type *notification_type(unsigned index);
#endif
