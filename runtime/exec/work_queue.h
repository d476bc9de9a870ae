/* SPDX-License-Identifier: Apache-2.0 */
/*
 * work_queue.h - work that is done later and in order: the queues of the execution units of cores.
 *
 * A queue has a number (the execution unit's id of nrt_async.h) and, from its first use to
 * nrt_close, a thread that does its work piece by piece.  Work is numbered from 1 in the order in
 * which it was put; what is done is done in that order, so one number tells what is complete.
 * Queues know nothing of each other.
 *
 * All calls are made between api_enter and api_leave, but work_queues_close.  A piece of work runs
 * outside of that: nrt_close waits for it after the last call has left.
 */
#ifndef NTRACE_EXEC_WORK_QUEUE_H
#define NTRACE_EXEC_WORK_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include <nrt/nrt_async.h>

#define WORK_QUEUE_IDS 8192u /* execution unit ids that there can be: 32 of each core */

/* Who is limited together. */
enum work_kind {
	WORK_SCHEDULED, /* the program asks whether it is done */
	WORK_POSTED,	/* nrt_execute has returned before its end */
	WORK_KINDS
};

struct work;

/* What is done with a piece of work, in this order; all but run may be NULL. */
struct work_ops {
	/* It has its number and nobody works on it yet.  Under the queue's lock. */
	void (*announce)(const struct work *w);
	/* These two on the queue's thread.  release gives back what the work refers to; also when it is
	 * cancelled. */
	NRT_STATUS (*run)(struct work *w);
	void (*release)(struct work *w);
	/* It is complete, also for who asks.  May call the library as the program does. */
	void (*tell)(const struct work *w, NRT_STATUS status);
};

/* First member of every piece of work, which is one block of malloc. */
struct work {
	const struct work_ops *ops;
	enum work_kind kind;
	NRT_STATUS *ret; /* gets the status before the work is complete; NULL = nobody does */
	nrta_seq_t seq;	 /* the queue's id and the number: by work_queue_put */
	struct work *next;
};

struct work_queue;

/* The queue with this id, below WORK_QUEUE_IDS; made when there is none.  NRT_RESOURCE when it
 * cannot be. */
NRT_STATUS work_queue_get(uint16_t id, struct work_queue **ret);
/* NULL when nothing was ever put there.  Takes no lock. */
struct work_queue *work_queue_find(uint16_t id);

/*
 * Puts the work at the end, unless `limit` of its kind are not complete yet: NRT_QUEUE_FULL.  On
 * success the queue owns it and *ret_seq is its number.
 */
NRT_STATUS work_queue_put(
	struct work_queue *q, struct work *w, uint64_t limit, nrta_seq_t *ret_seq);

/* Waits until fewer than `limit` of the kind are not complete; false, at once, for the thread of a
 * queue. */
bool work_queue_await_room(struct work_queue *q, enum work_kind kind, uint64_t limit);

/* Waits until all that is there now is complete and has been told; false, at once, for the thread
 * of a queue. */
bool work_queue_drain(struct work_queue *q);

/* Is the caller being told of work (tell), on the thread of a queue? */
bool work_queue_tells(void);

/* Numbers of the last one that was put, and of the last that is complete; take no lock.  Whoever
 * has seen a number complete sees what its work has written. */
uint64_t work_queue_last(const struct work_queue *q);
uint64_t work_queue_done(const struct work_queue *q);

/*
 * Ends all queues: their work is done, the threads are gone.  When one of a queue's ends with
 * NRT_TIMEOUT or NRT_HW_ERROR meanwhile, the rest of that queue is cancelled with NRT_CLOSED.
 * Nobody may use queues any more.
 */
void work_queues_close(void);

#endif
