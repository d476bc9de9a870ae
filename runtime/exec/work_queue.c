/* SPDX-License-Identifier: Apache-2.0 */
/*
 * work_queue.c - one thread per queue, and the table of queues.
 *
 * Two numbers tell how far a queue is.  `done` is what others see: it grows when the status has been written
 * and the slot is free, before the program's callback.  `settled` grows after the callback; draining waits
 * for that one.
 */
#include "runtime/exec/work_queue.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "runtime/base/last_thread.h"
#include "runtime/lifecycle/state.h"
#include "runtime/log/log.h"

#define TAG "NRT"

struct work_queue {
	uint16_t id;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t more;	 /* work, or the end: for the thread */
	pthread_cond_t progress; /* for who waits */
	_Atomic uint64_t last, done;
	/* under lock: */
	uint64_t settled;
	uint64_t open[WORK_KINDS]; /* not complete */
	struct work *head, **tail;
	bool closing, cancelled;
};

static _Atomic(struct work_queue *) queues[WORK_QUEUE_IDS];
static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;

/* Is this the thread of a queue?  Waiting for a queue it might wait for itself. */
static __thread bool works __attribute__((tls_model("initial-exec")));
static __thread bool tells __attribute__((tls_model("initial-exec")));

/* ---- the thread --------------------------------------------------------------------------- */

static struct work *take(struct work_queue *q, bool *ret_cancelled)
{
	struct work *w;

	pthread_mutex_lock(&q->lock);
	while (!q->head && !q->closing)
		pthread_cond_wait(&q->more, &q->lock);
	w = q->head;
	if (w) {
		q->head = w->next;
		if (!q->head)
			q->tail = &q->head;
	}
	*ret_cancelled = q->cancelled;
	pthread_mutex_unlock(&q->lock);
	return w;
}

static void complete(struct work_queue *q, const struct work *w, NRT_STATUS status)
{
	if (w->ret)
		*w->ret = status;
	pthread_mutex_lock(&q->lock);
	q->open[w->kind]--;
	if (q->closing && (status == NRT_TIMEOUT || status == NRT_HW_ERROR))
		q->cancelled = true;
	atomic_store_explicit(&q->done, NRTA_SEQ_GET_SEQ_NUM(w->seq), memory_order_release);
	pthread_cond_broadcast(&q->progress);
	pthread_mutex_unlock(&q->lock);
}

static void settle(struct work_queue *q, const struct work *w)
{
	pthread_mutex_lock(&q->lock);
	q->settled = NRTA_SEQ_GET_SEQ_NUM(w->seq);
	if (q->settled == atomic_load(&q->last))
		last_thread_rests();
	pthread_cond_broadcast(&q->progress);
	pthread_mutex_unlock(&q->lock);
}

static void *work_on(void *arg)
{
	struct work_queue *q = arg;
	struct work *w;
	bool cancelled;

	works = true;
	state_thread_belongs(); /* the callback of a program cannot end the library under us */
	while ((w = take(q, &cancelled)) != NULL) {
		NRT_STATUS status = cancelled ? NRT_CLOSED : w->ops->run(w);

		if (w->ops->release)
			w->ops->release(w);
		complete(q, w, status);
		tells = true;
		if (w->ops->tell)
			w->ops->tell(w, status);
		tells = false;
		settle(q, w);
		free(w);
	}
	last_thread_works();
	return NULL;
}

/* ---- making and ending -------------------------------------------------------------------- */

static void queue_free(struct work_queue *q)
{
	pthread_cond_destroy(&q->progress);
	pthread_cond_destroy(&q->more);
	pthread_mutex_destroy(&q->lock);
	free(q);
}

/* Signals of the program are for its own threads. */
static int start_thread(struct work_queue *q)
{
	sigset_t all, old;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	rc = pthread_create(&q->thread, NULL, work_on, q);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return rc;
}

static struct work_queue *queue_new(uint16_t id)
{
	struct work_queue *q = calloc(1, sizeof(*q));

	if (!q)
		return NULL;
	q->id = id;
	q->tail = &q->head;
	pthread_mutex_init(&q->lock, NULL);
	pthread_cond_init(&q->more, NULL);
	pthread_cond_init(&q->progress, NULL);
	if (start_thread(q) != 0) {
		queue_free(q);
		return NULL;
	}
	last_thread_rests();
	return q;
}

struct work_queue *work_queue_find(uint16_t id)
{
	return id < WORK_QUEUE_IDS ? atomic_load_explicit(&queues[id], memory_order_acquire) : NULL;
}

NRT_STATUS work_queue_get(uint16_t id, struct work_queue **ret)
{
	struct work_queue *q = work_queue_find(id);

	if (!q) {
		pthread_mutex_lock(&making);
		q = work_queue_find(id);
		if (!q) {
			q = queue_new(id);
			atomic_store_explicit(&queues[id], q, memory_order_release);
		}
		pthread_mutex_unlock(&making);
	}
	if (!q) {
		log_error(TAG, "No memory or no thread for queue %u", id);
		return NRT_RESOURCE;
	}
	*ret = q;
	return NRT_SUCCESS;
}

static void queue_close(struct work_queue *q)
{
	pthread_mutex_lock(&q->lock);
	q->closing = true;
	pthread_cond_signal(&q->more);
	pthread_mutex_unlock(&q->lock);
}

void work_queues_close(void)
{
	/* All of them first: they end side by side. */
	for (uint32_t id = 0; id < WORK_QUEUE_IDS; id++)
		if (queues[id])
			queue_close(queues[id]);
	for (uint32_t id = 0; id < WORK_QUEUE_IDS; id++) {
		struct work_queue *q = queues[id];

		if (!q)
			continue;
		pthread_join(q->thread, NULL);
		queues[id] = NULL;
		queue_free(q);
	}
}

/* ---- putting and waiting ------------------------------------------------------------------ */

NRT_STATUS work_queue_put(struct work_queue *q, struct work *w, uint64_t limit, nrta_seq_t *ret_seq)
{
	NRT_STATUS status = NRT_QUEUE_FULL;

	pthread_mutex_lock(&q->lock);
	if (q->open[w->kind] < limit) {
		uint64_t number = atomic_load(&q->last) + 1;

		w->seq = *ret_seq = (uint64_t)q->id << 48 | number;
		w->next = NULL;
		if (w->ops->announce)
			w->ops->announce(w);
		if (q->settled == number - 1)
			last_thread_works();
		q->open[w->kind]++;
		atomic_store(&q->last, number);
		*q->tail = w;
		q->tail = &w->next;
		pthread_cond_signal(&q->more);
		status = NRT_SUCCESS;
	}
	pthread_mutex_unlock(&q->lock);
	return status;
}

bool work_queue_await_room(struct work_queue *q, enum work_kind kind, uint64_t limit)
{
	if (works)
		return false;
	pthread_mutex_lock(&q->lock);
	while (q->open[kind] >= limit)
		pthread_cond_wait(&q->progress, &q->lock);
	pthread_mutex_unlock(&q->lock);
	return true;
}

bool work_queue_drain(struct work_queue *q)
{
	uint64_t last;

	if (works)
		return false;
	pthread_mutex_lock(&q->lock);
	last = atomic_load(&q->last);
	while (q->settled < last)
		pthread_cond_wait(&q->progress, &q->lock);
	pthread_mutex_unlock(&q->lock);
	return true;
}

bool work_queue_tells(void)
{
	return tells;
}

uint64_t work_queue_last(const struct work_queue *q)
{
	return atomic_load(&q->last);
}

uint64_t work_queue_done(const struct work_queue *q)
{
	return atomic_load_explicit(&q->done, memory_order_acquire);
}
