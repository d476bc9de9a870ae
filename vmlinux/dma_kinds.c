// SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0)
/*
 * dma_kinds.c - the kinds of the DMA path as a table.
 */
#include "vmlinux/dma_kinds.h"

#include <string.h>

enum {
	NONE,
#define DMA_KIND(id, hint, span, link) KIND_##id,
#include "vmlinux/dma_kinds.def"
#undef DMA_KIND
	KINDS,
};

static const struct dma_kind rows[KINDS] = {
#define DMA_KIND(id, hint, span, link) [KIND_##id] = {hint, link, span},
#include "vmlinux/dma_kinds.def"
#undef DMA_KIND
};

const struct dma_kind *dma_kind_row(unsigned kind)
{
	return kind > NONE && kind < KINDS ? &rows[kind] : NULL;
}

unsigned dma_kind_of(const char *hint, size_t len)
{
	if (len < 4 || memcmp(hint, "dma_", 4) != 0)
		return NONE;
	for (unsigned k = 1; k < KINDS; k++)
		if (strlen(rows[k].hint) == len && !memcmp(rows[k].hint, hint, len))
			return k;
	return NONE;
}
