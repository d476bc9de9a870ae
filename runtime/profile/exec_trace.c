/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exec_trace.c - nrt_trace_start and nrt_trace_stop, and the ring between them.
 *
 * Two locks: `calls` for the two calls and nrt_close, one at a time; `ring.lock`, inside of it, for
 * the records. While a stop writes, the ring is empty-handed: what comes then is counted, and lost
 * only when the stop fails and the trace goes on.
 */
#include "runtime/profile/exec_trace.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <nrt/nrt_experimental.h>

#include "runtime/exec/memory.h"
#include "runtime/lifecycle/runtime.h"
#include "runtime/log/log.h"

#define TAG "NRT"

_Atomic uint32_t exec_trace_gate;

static pthread_mutex_t calls = PTHREAD_MUTEX_INITIALIZER;

static struct {
	pthread_mutex_t lock;
	struct exec_trace_record *slots; /* NULL: a stop has them, or there is no trace */
	size_t room, next;		 /* slots there are; the one for the next record */
	struct exec_trace_content c;	 /* without its records */
} ring = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- records ------------------------------------------------------------------------------ */

static uint32_t thread_id(void)
{
	static _Thread_local uint32_t id;

	if (!id)
		id = (uint32_t)syscall(SYS_gettid);
	return id;
}

/* hint: to be kept or freed; NULL although there is one to copy: there is no memory. */
static void add_locked(const struct exec_trace_event *e, bool has_hint, char *hint)
{
	uint64_t number = ring.c.added++;
	struct exec_trace_record *r;

	if (!ring.slots || (has_hint && !hint)) {
		*(ring.slots ? &ring.c.no_memory : &ring.c.stopping) += 1;
		free(hint);
		return;
	}
	r = &ring.slots[ring.next];
	ring.next = (ring.next + 1) % ring.room;
	free(r->hint);
	if (ring.c.count == ring.room)
		ring.c.overwritten++;
	else
		ring.c.count++;
	*r = (struct exec_trace_record){.boot_ns = e->when.ns,
		.data = e->data,
		.type = e->type,
		.nd = e->nd,
		.nc = e->nc,
		.thread = thread_id(),
		.status = e->status,
		.number = (uint32_t)number,
		.hint = hint};
}

void exec_trace_add(const struct exec_trace_event *e)
{
	struct exec_trace_event at = *e;
	bool has_hint = e->hint && *e->hint;
	char *hint = has_hint ? strdup(e->hint) : NULL;

	if (!at.when.ns)
		at.when = clock_boot();
	pthread_mutex_lock(&ring.lock);
	if (exec_trace_on())
		add_locked(&at, has_hint, hint);
	else
		free(hint);
	pthread_mutex_unlock(&ring.lock);
}

/* ---- the ring as a whole ------------------------------------------------------------------ */

static void free_slots(struct exec_trace_record *slots, size_t count)
{
	for (size_t i = 0; i < count; i++)
		free(slots[i].hint);
	free(slots);
}

static int open_ring(size_t room, bool memory)
{
	struct clock_snapshot now = clock_snapshot_take();
	struct exec_trace_record *slots = calloc(room, sizeof(*slots));

	if (!slots)
		return -ENOMEM;
	pthread_mutex_lock(&ring.lock);
	ring.slots = slots;
	ring.room = room;
	ring.next = 0;
	ring.c = (struct exec_trace_content){
		.offset_ns = clock_snapshot_offset(&now), .begin_ns = now.boot_after};
	atomic_store(&exec_trace_gate, EXEC_TRACE_ON | (memory ? EXEC_TRACE_MEMORY : 0));
	pthread_mutex_unlock(&ring.lock);
	return 0;
}

/* The records, in any order.  What comes from here on is counted alone. */
static struct exec_trace_content take_ring(void)
{
	struct exec_trace_content c;

	pthread_mutex_lock(&ring.lock);
	c = ring.c;
	c.records = ring.slots;
	ring.slots = NULL;
	pthread_mutex_unlock(&ring.lock);
	return c;
}

/* The stop has failed, and the trace goes on.  The records are sorted now: the oldest is the
 * first. */
static void give_ring_back(struct exec_trace_record *slots)
{
	pthread_mutex_lock(&ring.lock);
	ring.slots = slots;
	ring.next = ring.c.count % ring.room;
	pthread_mutex_unlock(&ring.lock);
}

static void end_ring(struct exec_trace_record *slots)
{
	pthread_mutex_lock(&ring.lock);
	atomic_store(&exec_trace_gate, 0);
	free_slots(slots ? slots : ring.slots, ring.c.count);
	ring.slots = NULL;
	pthread_mutex_unlock(&ring.lock);
}

/* ---- start -------------------------------------------------------------------------------- */

/* The text up to the dots is the vendor's. */
static NRT_STATUS check_mode(const char *call)
{
	if (!runtime_get()->async_max_inflight)
		return NRT_SUCCESS;
	log_write(LOG_LEVEL_ERROR, TAG, call,
		"Trace is not supported in implicit async execution mode: "
		"NEURON_RT_ASYNC_EXEC_MAX_INFLIGHT_REQUESTS is %u; set it to 0",
		runtime_get()->async_max_inflight);
	return NRT_INVALID;
}

static NRT_STATUS start(const char *call, bool memory)
{
	uint32_t room = runtime_get()->trace_entries;
	NRT_STATUS status = check_mode(call);

	if (status)
		return status;
	if (exec_trace_on()) {
		log_write(LOG_LEVEL_ERROR, TAG, call,
			"A trace is on already; nothing changes.  nrt_trace_stop ends it");
		return NRT_INVALID;
	}
	if (!room) {
		log_write(LOG_LEVEL_ERROR, TAG, call,
			"NEURON_RT_TRACE_NUM_ENTRIES is 0: there is no room for a record");
		return NRT_INVALID;
	}
	if (open_ring(room, memory) == 0)
		return NRT_SUCCESS;
	log_write(LOG_LEVEL_ERROR, TAG, call,
		"No memory for %u records (NEURON_RT_TRACE_NUM_ENTRIES)", room);
	return NRT_RESOURCE;
}

NRT_STATUS nrt_trace_start(bool trace_mem)
{
	NRT_STATUS status = api_enter(__func__);

	if (status)
		return status;
	pthread_mutex_lock(&calls);
	status = start(__func__, trace_mem);
	pthread_mutex_unlock(&calls);
	api_leave();
	return status;
}

/* ---- stop --------------------------------------------------------------------------------- */

/* A name that cannot be had is the caller's fault. */
static NRT_STATUS status_of_file(int rc)
{
	static const int names[] = {
		-EEXIST, -ENOENT, -ENOTDIR, -EISDIR, -ENAMETOOLONG, -EACCES, -EROFS};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (rc == names[i])
			return NRT_INVALID;
	return status_from_errno(rc);
}

static NRT_STATUS check_stop(const char *call, const char *filename)
{
	NRT_STATUS status = check_mode(call);

	if (status)
		return status;
	if (!exec_trace_on()) {
		log_write(LOG_LEVEL_ERROR, TAG, call,
			"There is no trace to stop; nrt_trace_start begins one");
		return NRT_INVALID;
	}
	if (filename && *filename)
		return NRT_SUCCESS;
	log_write(LOG_LEVEL_ERROR, TAG, call, "No file name given (%s); the trace goes on",
		filename ? "empty" : "NULL");
	return NRT_INVALID;
}

static NRT_STATUS stop(const char *call, const char *filename)
{
	const struct device_system *s = runtime_get()->devices;
	const struct exec_trace_about about = {.arch = s->arch,
		.lnc_size = s->lnc_size,
		.is_virtual = s->is_virtual,
		.is_simulated = s->topology.simulated};
	struct exec_trace_content c;
	NRT_STATUS status = check_stop(call, filename);
	int rc;

	if (status)
		return status;
	c = take_ring();
	rc = exec_trace_write(filename, &c, &about);
	if (rc < 0) {
		give_ring_back(c.records);
		log_write(LOG_LEVEL_ERROR, TAG, call, "%s: %s; the trace goes on%s", filename,
			strerror(-rc), rc == -EEXIST ? ", choose another name" : "");
		return status_of_file(rc);
	}
	end_ring(c.records);
	if (c.added != c.count)
		log_write(LOG_LEVEL_WARN, TAG, call,
			"%s has %zu records; %llu more are lost (NEURON_RT_TRACE_NUM_ENTRIES is "
			"%u)",
			filename, c.count, (unsigned long long)(c.added - c.count),
			runtime_get()->trace_entries);
	return NRT_SUCCESS;
}

NRT_STATUS nrt_trace_stop(const char *filename)
{
	NRT_STATUS status = api_enter(__func__);

	if (status)
		return status;
	pthread_mutex_lock(&calls);
	status = stop(__func__, filename);
	pthread_mutex_unlock(&calls);
	api_leave();
	return status;
}

void exec_trace_close(void)
{
	pthread_mutex_lock(&calls);
	if (exec_trace_on()) {
		log_write(LOG_LEVEL_WARN, TAG, "nrt_close",
			"A trace that nrt_trace_stop has not ended is dropped");
		end_ring(NULL);
	}
	pthread_mutex_unlock(&calls);
}
