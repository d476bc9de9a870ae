/* SPDX-License-Identifier: Apache-2.0 */
/* notification_types.c - kinds of notifications; see notification_types.h. */
#include "runtime/profile/notification_types.h"

#include <assert.h>
#include <stddef.h>

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

bool notification_convert(
	unsigned kind, enum ntff_trace_type *ret_trace, enum ntff_block_type *ret_block)
{
	if (kind >= NOTIFICATION_TOPSP_CC_STATUS)
		return false;
	for (unsigned i = 0; i < NOTIFICATION_TYPES; i++)
		if ((unsigned)types[i].kind == kind) {
			*ret_trace = types[i].trace;
			*ret_block = types[i].block;
			return true;
		}
	return false;
}
