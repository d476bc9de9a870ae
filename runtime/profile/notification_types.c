/* SPDX-License-Identifier: Apache-2.0 */
/* notification_types.c - kinds of notifications; see notification_types.h. */
#include "runtime/profile/notification_types.h"

#include <assert.h>
#include <stddef.h>

#include "proto/ntff.pb-c.h"

/* The message has the same numbers. */
#define SAME(ours, theirs) static_assert((int)(ours) == (int)(theirs), #ours)
SAME(NTFF_TRACE_INSTRUCTION, NTFF__NOTIFICATION_TRACE_TYPE__NOTIFICATION_INSTRUCTION);
SAME(NTFF_TRACE_EVENT, NTFF__NOTIFICATION_TRACE_TYPE__NOTIFICATION_EVENT);
SAME(NTFF_TRACE_ERROR, NTFF__NOTIFICATION_TRACE_TYPE__NOTIFICATION_ERROR);
SAME(NTFF_TRACE_EXPLICIT, NTFF__NOTIFICATION_TRACE_TYPE__NOTIFICATION_EXPLICIT);
SAME(NTFF_TRACE_DMA, NTFF__NOTIFICATION_TRACE_TYPE__NOTIFICATION_DMA);
SAME(NTFF_TRACE_THROTTLE, NTFF__NOTIFICATION_TRACE_TYPE__NOTIFICATION_THROTTLE);
SAME(NTFF_BLOCK_NC, NTFF__BLOCK_TYPE__BLOCK_NC);
SAME(NTFF_BLOCK_DMA, NTFF__BLOCK_TYPE__BLOCK_DMA);
SAME(NTFF_BLOCK_TOPSP, NTFF__BLOCK_TYPE__BLOCK_TOPSP);
#undef SAME

static const struct notification_type types[] = {
#define KIND(number, name, trace, block, device, type, first, last, size)        \
	{NOTIFICATION_##name, #name, NTFF_TRACE_##trace, NTFF_BLOCK_##block,     \
		VDEV_NQ_DEV_TYPE_##device, VDEV_NQ_TYPE_##type, (first), (last), \
		NOTIFICATION_SIZE_##size},
#include "runtime/profile/notification_types.def"
#undef KIND
	{NOTIFICATION_EXPLICIT_CC, "EXPLICIT_CC", NTFF_TRACE_EXPLICIT, NTFF_BLOCK_TOPSP,
		VDEV_NQ_DEV_TYPE_TOP_SP, VDEV_NQ_TYPE_NOTIFY, 0, 0, NOTIFICATION_SIZE_OWN},
};
static_assert(sizeof(types) / sizeof(types[0]) == NOTIFICATION_TYPES, "all kinds");

const struct notification_type *notification_type(unsigned index)
{
	return index < NOTIFICATION_TYPES ? &types[index] : NULL;
}
