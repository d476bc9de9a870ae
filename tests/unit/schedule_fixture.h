/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schedule_fixture.h - work for later in tests: waiting for it, and holding a core's queue.
 *
 * Header only.  A queue is held by a callback that does not return before the test lets it: from then on nothing
 * of that queue is done, however fast the machine is.
 */
#ifndef NTRACE_TESTS_SCHEDULE_FIXTURE_H
#define NTRACE_TESTS_SCHEDULE_FIXTURE_H

#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>

#include "tests/unit/nrt_lib.h"

#define UNSET ((NRT_STATUS)4711) /* what no call gives */

/* Model a + 2 b of 32 bytes on core `vnc`, with the tensors filled: c will be a + 2 b. */
static inline int filled_job(struct job *j, int vnc)
{
	float a[8], b[8];

	for (int i = 0; i < 8; i++) {
		a[i] = (float)i;
		b[i] = 10.0f;
	}
	WANT(job_open(j, ADD_MODEL, vnc) == 0);
	WANT_STATUS(lib.nrt_tensor_write(j->a, a, 0, sizeof(a)), 0);
	WANT_STATUS(lib.nrt_tensor_write(j->b, b, 0, sizeof(b)), 0);
	return 0;
}

static inline bool computed(nrt_tensor_t *c)
{
	float got[8];

	if (lib.nrt_tensor_read(c, got, 0, sizeof(got)))
		return false;
	for (int i = 0; i < 8; i++)
		if (got[i] != (float)i + 20.0f)
			return false;
	return true;
}

static inline NRT_STATUS schedule(const struct job *j, NRT_STATUS *ret, nrta_seq_t *seq)
{
	*ret = UNSET;
	return lib.nrta_execute_schedule(j->model, j->in, j->out, 0, ret, seq);
}

static inline bool is_done(nrta_seq_t seq)
{
	bool done = false;

	return lib.nrta_is_completed(seq, &done) == NRT_SUCCESS && done;
}

static inline bool is_done_(void *seq)
{
	return is_done(*(const nrta_seq_t *)seq);
}

static inline bool await(nrta_seq_t seq)
{
	return program_until(is_done_, &seq, 60);
}

/* ---- holding a queue ---------------------------------------------------------------------- */

struct gate {
	sem_t entered, leave;
	uint32_t vnc;	   /* others pass */
	_Atomic int calls; /* on this core */
	struct told {
		uint32_t model_id, vnc;
		uint64_t job_id;
		NRT_STATUS status;
	} last;
};

static inline void pass_gate(
	void *params, uint32_t model_id, uint32_t vnc, uint64_t job_id, NRT_STATUS status)
{
	struct gate *g = params;

	if (vnc != g->vnc)
		return;
	g->last = (struct told){model_id, vnc, job_id, status};
	if (atomic_fetch_add(&g->calls, 1) > 0)
		return;
	sem_post(&g->entered);
	sem_wait(&g->leave);
}

/* Runs the job once; then the queue of its core stands still until gate_open. */
static inline int gate_close(struct gate *g, const struct job *j)
{
	nrt_model_info_t info;
	NRT_STATUS ret;
	nrta_seq_t seq;
	size_t size;

	memset(g, 0, sizeof(*g));
	WANT_STATUS(lib.nrt_get_model_info(j->model, &info, sizeof(info), &size), 0);
	g->vnc = info.vnc;
	sem_init(&g->entered, 0, 0);
	sem_init(&g->leave, 0, 0);
	WANT_STATUS(lib.nrt_register_async_exec_callback(pass_gate, g), 0);
	WANT_STATUS(schedule(j, &ret, &seq), 0);
	sem_wait(&g->entered);
	WANT(is_done(seq) && ret == NRT_SUCCESS);
	return 0;
}

static inline void gate_open(struct gate *g)
{
	sem_post(&g->leave);
}

#define QUEUE_TEST(name, fn, options)         \
	TEST(name, "[nrt][schedule][vdev]")   \
	{                                     \
		if (device_lacks())           \
			SKIP(device_lacks()); \
		with_device(fn, options);     \
	}

#endif
