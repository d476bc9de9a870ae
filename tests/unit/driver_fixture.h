/* SPDX-License-Identifier: Apache-2.0 */
/*
 * driver_fixture.h - records of the driver's DMA path for the recordings of recording_fixture.h.
 */
#ifndef NTRACE_TESTS_DRIVER_FIXTURE_H
#define NTRACE_TESTS_DRIVER_FIXTURE_H

#include "tests/unit/recording_fixture.h"

/* A record at a relative time; whoever wants more sets it.  cpu and number of the record follow. */
static inline struct nev_dma fx_dma_of(
	enum nev_type type, enum nev_dma_kind kind, uint32_t tid, uint64_t at)
{
	return (struct nev_dma){
		.hdr = {.time_ns = FX_BOOT + at, .type = (uint8_t)type},
		.tgid = FX_PID,
		.tid = tid,
		.kind = (uint8_t)kind,
		.device = NEV_DMA_UNKNOWN,
		.engine = NEV_DMA_UNKNOWN,
		.queue = NEV_DMA_UNKNOWN,
	};
}

static inline void fx_dma(struct fixture *fx, struct nev_dma d)
{
	d.hdr.seq = fx->next_seq++;
	fx_frame(fx, REC_DRIVER, REC_SOURCE_KERNEL, &d, sizeof(d));
}

/* An end of a doorbell of device 1, engine 128, queue 0. */
static inline void fx_doorbell(struct fixture *fx, enum nev_type type, uint32_t sequence,
	uint32_t tid, uint64_t at, uint64_t call)
{
	struct nev_dma d = fx_dma_of(type, NEV_DMA_DOORBELL, tid, at);

	d.call_ns = call ? FX_BOOT + call : 0;
	d.sequence = sequence;
	d.device = 1;
	d.engine = 128;
	d.queue = 0;
	d.tx = d.rx = type == NEV_DMA_START ? 3 : 0;
	fx_dma(fx, d);
}

#endif
