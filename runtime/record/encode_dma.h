/* SPDX-License-Identifier: Apache-2.0 */
/*
 * encode_dma.h - records of ntrace.pb about the driver's DMA path, for encode.c.
 */
#ifndef NTRACE_RECORD_ENCODE_DMA_H
#define NTRACE_RECORD_ENCODE_DMA_H

#include "runtime/record/encode_record.h"

/* Event type of a kind when driver events have types of their own: those of requests end before. */
#define ENCODE_DMA_BASE 1300u

/* Fills encoder->dma_keys.  0 or -ENOMEM. */
int encode_dma_init(struct encoder *e);

/* The errno that the outcome of work tells, 0: none that is known. */
int64_t encode_dma_error(const struct encoder *e, const struct item *i);

/* All of a record from its head on; returns its end.  i->dma.dma_kind is one of the table. */
uint8_t *encode_dma(const struct encoder *e, uint8_t *p, const struct item *i,
	const struct event_out *out, struct head *h);

#endif
