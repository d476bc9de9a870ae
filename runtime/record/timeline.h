/* SPDX-License-Identifier: Apache-2.0 */
/*
 * timeline.h - the back of the merge: items in order of time become records of ntrace.pb.
 *
 * Keeps a stack of running spans per (process, thread), which gives parents and driver work, and hands
 * each record to the encoder.
 */
#ifndef NTRACE_RECORD_TIMELINE_H
#define NTRACE_RECORD_TIMELINE_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/record/encode.h"
#include "runtime/record/item.h"
#include "runtime/record/map64.h"
#include "runtime/record/merge.h"
#include "runtime/record/process.h"
#include "runtime/record/session.h"

/* Deeper spans contain nothing.  Real stacks have fewer than ten; hostile ones must not cost n^2. */
#define TIMELINE_MAX_DEPTH 256u

struct frame {
	uint64_t pair, id, start;
	uint64_t order; /* of all starts */
	uint64_t told;	/* of a call: its start as recorded */
	uint16_t type, source;
	uint8_t side;
	bool complete; /* its stop is known to come */
	bool missed;   /* a call that was counted as one whose return was not seen */
	int32_t dma_error; /* a call: errno of the last work on the DMA path that failed in it; 0: none */
	struct work work;
};

struct thread_stack {
	struct frame *frames;
	uint32_t depth, cap;
	uint32_t calls; /* of the frames */
};

struct timeline {
	const struct session *session;
	struct processes *processes;
	struct encoder encoder;
	struct map64 threads; /* (process, tid) -> stacks */
	struct thread_stack *stacks;
	size_t stack_count, stack_cap;
	struct map64 displaced; /* pair -> elsewhere: left a stack, may still stop */
	struct frame *elsewhere;
	uint32_t *free_frames;
	size_t elsewhere_count, elsewhere_cap, free_count, free_cap;
	uint64_t order;
	/* Called before the first record of a process is written. */
	int (*open)(void *ctx, struct process *p);
	void *ctx;
};

/* The caller sets open and ctx.  0 or -ENOMEM; timeline_free in any case. */
int timeline_init(struct timeline *t, const struct session *session, struct processes *processes,
	enum merge_kernel_events kernel_events);
void timeline_free(struct timeline *t);

/* The next item in order (a held_fn; ctx is the timeline).  0 or -errno. */
int timeline_item(void *ctx, const struct item *item);
/* Somebody else writes a record of the process at a time, in order of time as items come: what stands before
 * it is written.  0 or -errno. */
int timeline_reach(struct timeline *t, struct process *p, uint64_t time);
/* What is left to be written of a process. */
int timeline_end(struct timeline *t, struct process *p);

#endif
