/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tensor_completion.c - how often executions have completed a tensor as their output, and waiting for it.
 */
#include <errno.h>
#include <time.h>

#include "runtime/exec/tensor.h"
#include "runtime/lifecycle/runtime.h"
#include "runtime/log/log.h"

#define TAG "NRT"
#define NS_PER_US 1000ull
#define NS_PER_S 1000000000ull
#define LOOK_NS 100000000ull /* how often a wait looks whether the library is being closed */
#define WARN_NS (30 * NS_PER_S)

void tensor_completed(struct nrt_tensor *t)
{
	pthread_mutex_lock(&t->lock);
	t->completed++;
	pthread_cond_broadcast(&t->counted);
	pthread_mutex_unlock(&t->lock);
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

/* UINT64_MAX: never. */
static uint64_t deadline(uint64_t begin, int64_t timeout_us)
{
	uint64_t us = (uint64_t)timeout_us;

	if (timeout_us < 0 || us > (UINT64_MAX - begin) / NS_PER_US)
		return UINT64_MAX;
	return begin + us * NS_PER_US;
}

/* Sleeps until something is counted, at most until `until`.  Under the tensor's lock. */
static void sleep_until(struct nrt_tensor *t, uint64_t until)
{
	struct timespec ts = {(time_t)(until / NS_PER_S), (long)(until % NS_PER_S)};

	(void)pthread_cond_timedwait(&t->counted, &t->lock, &ts);
}

NRT_STATUS tensor_wait_completed(
	struct nrt_tensor *t, int64_t timeout_us, uint64_t expected, uint64_t warn_ns)
{
	uint64_t begin = now_ns(), now = begin, end = deadline(begin, timeout_us);
	NRT_STATUS status = NRT_SUCCESS;
	bool warned = timeout_us >= 0;

	pthread_mutex_lock(&t->lock);
	while (t->completed < expected && !status) {
		if (now >= end)
			status = NRT_TIMEOUT;
		else if (state_now() != STATE_INIT)
			status = NRT_CLOSED;
		else
			sleep_until(t, end - now < LOOK_NS ? end : now + LOOK_NS);
		now = now_ns();
		if (!warned && now - begin >= warn_ns && t->completed < expected) {
			log_warn(TAG, "Tensor '%s': still waiting for completion %llu, it has %llu",
				t->name, (unsigned long long)expected,
				(unsigned long long)t->completed);
			warned = true;
		}
	}
	pthread_mutex_unlock(&t->lock);
	return status;
}

NRT_STATUS nrt_tensor_check_output_completion(
	const nrt_tensor_t *output_tensor, int64_t timeout, uint64_t expected_completion_count)
{
	NRT_STATUS status = api_enter(__func__);
	struct object *o;

	if (status)
		return status;
	status = object_get(output_tensor, OBJECT_TENSOR, &o);
	if (!status) {
		status = tensor_wait_completed(
			(struct nrt_tensor *)o, timeout, expected_completion_count, WARN_NS);
		object_put(o);
	}
	api_leave();
	return status;
}

NRT_STATUS nrt_tensor_reset_output_completion(nrt_tensor_t *output_tensor)
{
	NRT_STATUS status = api_enter(__func__);
	struct object *o;

	if (status)
		return status;
	status = object_get(output_tensor, OBJECT_TENSOR, &o);
	if (!status) {
		struct nrt_tensor *t = (struct nrt_tensor *)o;

		pthread_mutex_lock(&t->lock);
		t->completed = 0;
		pthread_mutex_unlock(&t->lock);
		object_put(o);
	}
	api_leave();
	return status;
}
