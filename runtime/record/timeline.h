/* SPDX-License-Identifier: Apache-2.0 */
/*
 * timeline.h - one process's records as spans and instants, in order, with parents, links and sums.
 *
 * The stages, each in a file of its own and each called once, in this order:
 *   pair.c   starts and stops become items
 *   order.c  items become the sequence of records to be written, ids are given out
 *   link.c   parents and driver work by containment, device runs to their submits
 * Then out_ntrace.c writes the sequence.
 */
#ifndef NTRACE_RECORD_TIMELINE_H
#define NTRACE_RECORD_TIMELINE_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/record/load.h"
#include "runtime/record/merge.h"
#include "runtime/record/sort.h"

#define NO_ITEM LOAD_NONE

enum item_side { SIDE_RUNTIME, SIDE_KERNEL, SIDE_MARKER };

enum item_kind {
	ITEM_SPAN,
	ITEM_OPEN,	/* a start whose stop never came */
	ITEM_INSTANT,	/* everything from here on is written as one INSTANT record */
	ITEM_LOST,	/* a stop whose start was lost */
	ITEM_DUPLICATE, /* a start with the id of another */
};

struct item {
	uint64_t start, end; /* BOOTTIME ns; end = start unless ITEM_SPAN */
	uint64_t id;	     /* as written; 0 until order.c for what the merge numbers itself */
	uint64_t clamped_ns; /* the stop was so much earlier than the start */
	uint32_t first;	     /* record, call or clock step */
	uint32_t last;	     /* runtime spans: the stop's record */
	uint32_t thread;     /* index of the thread, NO_ITEM: not on a host thread */
	uint32_t parent;     /* item; of an open span: what contained its start */
	uint32_t link;	     /* item that this device run was submitted by */
	uint32_t work;	     /* index of the driver work inside, NO_ITEM: none */
	uint32_t type;	     /* event type of a runtime's item */
	uint8_t side;	     /* enum item_side */
	uint8_t kind;	     /* enum item_kind */
	bool hardware;
	bool link_exact;
};

/* Driver work inside a runtime span, on its thread. */
struct work {
	uint64_t ioctls, ioctl_ns, errors, copies, dma_bytes, dma_ns;
	uint64_t dma_until; /* end of the copies counted so far */
	int32_t last_error;
};

/* What a sequence entry writes; its `minor`. */
enum step { STEP_STOP, STEP_START, STEP_ZERO_START, STEP_ZERO_STOP, STEP_INSTANT };

struct timeline {
	const struct load *l;
	const struct load_process *p;
	enum merge_kernel_events kernel_events;
	const volatile sig_atomic_t *cancel; /* as in merge_options */
	struct item *items;
	struct sort_entry *sequence; /* key: BOOTTIME, index: item, minor: enum step */
	struct work *work;
	uint32_t *tids; /* ascending */
	size_t item_count, item_cap, sequence_count, work_count, work_cap, thread_count;
	uint64_t spans, open_spans, kernel_spans, device_runs;
	uint64_t announced, not_wanted, start_lost, clamped, clamped_ns;
	uint64_t written; /* raw records that the sequence holds; counted when it is written */
};

static inline const struct trace_record *item_record(const struct timeline *t, const struct item *i)
{
	return &t->l->records[i->first].r;
}

static inline const struct load_call *item_call(const struct timeline *t, const struct item *i)
{
	return &t->l->calls[i->first];
}

/* Ready for the stages.  timeline_free in any case. */
void timeline_init(struct timeline *t, const struct load *l, const struct load_process *p,
	enum merge_kernel_events kernel_events);
void timeline_free(struct timeline *t);

/* The stages: 0, -ENOMEM, -EFBIG. */
int timeline_pair(struct timeline *t);
int timeline_order(struct timeline *t);
int timeline_link(struct timeline *t);

#endif
