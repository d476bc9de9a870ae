/* SPDX-License-Identifier: Apache-2.0 */
/*
 * records.h - steps through the records of a KERNEL or RUNTIME payload, whatever its bytes are.
 */
#ifndef NTRACE_RECORD_RECORDS_H
#define NTRACE_RECORD_RECORDS_H

#include <string.h>

#include "bpf/neuron_event.h"
#include "runtime/record/recording.h"
#include "runtime/trace/record.h"
#include "vmlinux/dma_kinds.h"

/* The driver call at `at` and the bytes it takes; 0: there is no whole one. */
static inline size_t records_call(
	const uint8_t *payload, size_t size, size_t at, struct nev_ioctl *ret)
{
	size_t n;

	if (size - at < sizeof(*ret))
		return 0;
	memcpy(ret, payload + at, sizeof(*ret));
	n = sizeof(*ret) + (size_t)ret->hdr.nargs * sizeof(uint64_t);
	if (ret->hdr.nargs > NEV_MAX_ARGS || size - at < n ||
		(ret->hdr.type != NEV_IOCTL_DONE && ret->hdr.type != NEV_IOCTL_START))
		return 0;
	return n;
}

/* The record of the DMA path at `at` and the bytes it takes; 0: there is no whole one. */
static inline size_t records_dma(
	const uint8_t *payload, size_t size, size_t at, struct nev_dma *ret)
{
	if (size - at < sizeof(*ret))
		return 0;
	memcpy(ret, payload + at, sizeof(*ret));
	return sizeof(*ret);
}

static inline bool records_dma_valid(const struct nev_dma *d)
{
	return d->hdr.type >= NEV_DMA_START && d->hdr.type <= NEV_DMA_POINT && d->hdr.nargs == 0 &&
	       d->kind > 0 && d->kind < NEV_DMA_KIND_END;
}

/* What the two records of a span of the DMA path share; they never share a thread id or a source of
 * others. */
struct records_dma_key {
	uint64_t who, id;
};

/* Is the record an end of such a span? */
static inline bool records_dma_span(const struct nev_dma *d, struct records_dma_key *ret)
{
	const struct dma_kind *row = dma_kind_row(d->kind);
	const uint64_t owner[] = {[DMA_POINT] = 0,
		[DMA_OF_QUEUE] = (uint64_t)d->device << 32 | (uint64_t)d->engine << 16 | d->queue,
		[DMA_OF_DEVICE] = d->device,
		[DMA_OF_THREAD] = d->tid};

	if (!row || row->span == DMA_POINT || d->hdr.type == NEV_DMA_POINT || d->sequence == 0)
		return false;
	*ret = (struct records_dma_key){(uint64_t)d->kind << 56 | owner[row->span], d->sequence};
	return true;
}

/* The runtime record at `at`, which begins at sizeof(struct rec_runtime). */
static inline size_t records_runtime(
	const uint8_t *payload, size_t size, size_t at, struct trace_record *ret)
{
	if (size < at || size - at < sizeof(*ret))
		return 0;
	memcpy(ret, payload + at, sizeof(*ret));
	return sizeof(*ret);
}

static inline uint64_t records_call_end(const struct nev_ioctl *e)
{
	return e->hdr.type == NEV_IOCTL_DONE ? e->start_ns + e->duration_ns : e->start_ns;
}

#endif
