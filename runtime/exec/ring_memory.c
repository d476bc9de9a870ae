/* SPDX-License-Identifier: Apache-2.0 */
/* ring_memory.c - notification rings in the table of memory; see ring_memory.h. */
#include "runtime/exec/ring_memory.h"

/* Of a logical core, under its lock; size 0: not in the table. */
static struct memory_entry entries[CORES_MAX];

void ring_memory_add(uint32_t nc, const struct device_core *first, uint32_t parts)
{
	struct memory_entry *e = &entries[nc];

	if (e->size)
		return;
	*e = (struct memory_entry){.nc = nc,
		.device = first->device->index,
		.hbm = first->hbm,
		.usage = MEMORY_NOTIFICATION};
	for (uint32_t p = 0; p < parts; p++)
		for (unsigned i = 0; i < DEVICE_RING_COUNT; i++)
			e->size += first[p].rings[i].bytes;
	(void)memory_table_add(e);
	memory_table_name(e, "notification rings");
}

void ring_memory_forget(void)
{
	for (uint32_t i = 0; i < CORES_MAX; i++) {
		if (entries[i].size)
			(void)memory_table_remove(&entries[i]);
		entries[i].size = 0;
	}
}
