/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/*
 * dma_kinds.h - the rows of dma_kinds.def, and how to find one.
 *
 * The merge names and pairs records of the DMA path by them, and whoever shows a trace knows such events
 * by their names.
 */
#ifndef NTRACE_VMLINUX_DMA_KINDS_H
#define NTRACE_VMLINUX_DMA_KINDS_H

#include <stddef.h>
#include <stdint.h>

enum dma_span { DMA_POINT, DMA_OF_QUEUE, DMA_OF_DEVICE, DMA_OF_THREAD };

struct dma_kind {
	const char *hint;
	const char *link;
	uint8_t span; /* enum dma_span */
};

/* The row of an enum nev_dma_kind; NULL: there is none. */
const struct dma_kind *dma_kind_row(unsigned kind);

/* The kind that has this name; 0: none. */
unsigned dma_kind_of(const char *hint, size_t len);

#endif
