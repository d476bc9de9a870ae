/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace.c - emission inside the runtime, and the state behind it.
 *
 * The gate is a process-local pointer to the enable words.  The words themselves are shared with
 * the parent after a fork and must not be cleared by the child; the child turns its own pointer to
 * three zeros instead.
 */
#include "runtime/trace/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/trace/control.h"
#include "runtime/trace/intern.h"

#define NO_CORE TRACE_MAX_NC /* index of the ring for events of no core */
#define MIN_CAPACITY 1024u
#define MAX_CAPACITY (1u << 20)
#define MAX_NAMES 4096u /* distinct names that are remembered as logged */
#define MAX_NAME_BYTES 255u

static const _Atomic uint32_t nobody[CTL_SUB_MAX];
struct trace_gate trace_gate = {.enable = nobody};

static struct {
	pthread_mutex_t lock;
	bool open, forked, hooked;
	struct control control;
	uint32_t capacity;
	_Atomic uint32_t touched[TRACE_MAX_NC + 1];
	uint64_t names[MAX_NAMES]; /* open addressing, 0 = free */
	uint32_t name_count;
} state = {.lock = PTHREAD_MUTEX_INITIALIZER, .capacity = RING_DEFAULT_CAPACITY};

static __thread uint32_t cached_tid __attribute__((tls_model("initial-exec")));

static uint32_t thread_id(void)
{
	if (cached_tid == 0)
		cached_tid = (uint32_t)syscall(SYS_gettid);
	return cached_tid;
}

/* ---- events ------------------------------------------------------------------------------- */

static uint32_t ring_index(uint32_t nc)
{
	return nc < TRACE_MAX_NC ? nc : NO_CORE;
}

static uint64_t emit(struct boot_ns when, uint32_t nc, enum trace_type type, enum trace_phase phase,
	uint64_t tracking, uint32_t status, const void *payload, size_t size)
{
	uint32_t index = ring_index(nc);
	struct trace_record r;

	if (!atomic_load_explicit(&state.control.ready[index], memory_order_acquire)) {
		struct ctl *ctl = state.control.ctl;

		atomic_fetch_add_explicit(&ctl->emitted_no_ring, 1, memory_order_relaxed);
		atomic_fetch_add_explicit(&ctl->no_ring, 1, memory_order_release);
		return 0;
	}
	memset(&r, 0, sizeof(r));
	r.trace_type = type;
	r.status = status;
	r.thread_id = thread_id();
	r.tracking_id = tracking;
	r.timestamp_ns = when.ns;
	if (size)
		memcpy(r.data, payload, size < sizeof(r.data) ? size : sizeof(r.data));
	r.phase = phase;
	r.nc_idx = index == NO_CORE ? TRACE_NC_UNKNOWN : nc;
	return ring_emit(&state.control.writers[index], &r, index);
}

struct trace_span trace_start_event(
	uint32_t nc, enum trace_type type, const void *payload, size_t size)
{
	struct trace_span span = {.nc = nc, .type = (uint16_t)type, .on = true};

	span.tracking = emit(clock_boot(), nc, type, TRACE_START, 0, 0, payload, size);
	return span;
}

void trace_stop_event(
	const struct trace_span *span, uint32_t status, const void *payload, size_t size)
{
	if (trace_on())
		(void)emit(clock_boot(), span->nc, (enum trace_type)span->type, TRACE_STOP,
			span->tracking, status, payload, size);
}

void trace_instant(uint32_t nc, enum trace_type type, const void *payload, size_t size)
{
	if (trace_on())
		(void)emit(clock_boot(), nc, type, TRACE_INSTANT, 0, 0, payload, size);
}

uint64_t trace_event_at(struct boot_ns when, uint32_t nc, enum trace_type type,
	enum trace_phase phase, uint64_t tracking, uint32_t status, const void *payload,
	size_t size)
{
	return trace_on() ? emit(when, nc, type, phase, tracking, status, payload, size) : 0;
}

/* ---- set-up ------------------------------------------------------------------------------- */

static void after_fork_in_child(void)
{
	atomic_store_explicit(&trace_gate.enable, nobody, memory_order_relaxed);
	cached_tid = 0;
	state.forked = true;
	kept_fd_close(&state.control.file);
	trace_service_forget();
}

static int open_locked(void)
{
	int rc;

	if (state.open)
		return 0;
	if (!state.hooked) {
		rc = pthread_atfork(NULL, NULL, after_fork_in_child);
		if (rc)
			return -rc;
		state.hooked = true;
	}
	rc = control_create(&state.control);
	if (rc < 0)
		return rc;
	state.open = true;
	atomic_store_explicit(&trace_gate.enable, state.control.ctl->enable, memory_order_release);
	return 0;
}

int trace_open(void)
{
	int rc;

	if (state.forked)
		return -ECHILD;
	pthread_mutex_lock(&state.lock);
	rc = open_locked();
	pthread_mutex_unlock(&state.lock);
	return rc;
}

void trace_core_touch(uint32_t nc)
{
	uint32_t index = ring_index(nc);

	if (state.forked || atomic_load_explicit(&state.control.ready[index], memory_order_acquire))
		return;
	pthread_mutex_lock(&state.lock);
	atomic_store(&state.touched[index], 1);
	/* An error leaves the core without a ring: its events are counted no_ring. */
	if (state.open && trace_on())
		(void)control_add_ring(&state.control, index, state.capacity);
	pthread_mutex_unlock(&state.lock);
}

/* Notes that the id is logged; false when it was. */
static bool remember_name(uint64_t id)
{
	uint64_t at = id % MAX_NAMES;

	while (state.names[at]) {
		if (state.names[at] == id)
			return false;
		at = (at + 1) % MAX_NAMES;
	}
	if (state.name_count == MAX_NAMES - 1)
		return true; /* from here on names may stand in the log twice */
	state.names[at] = id;
	state.name_count++;
	return true;
}

uint64_t trace_intern(const char *text)
{
	size_t len = strlen(text);
	uint64_t id = intern_id(text, len);

	if (state.forked)
		return id;
	pthread_mutex_lock(&state.lock);
	if (state.open && remember_name(id))
		(void)control_add_name(&state.control, id, text,
			len < MAX_NAME_BYTES ? (uint32_t)len : MAX_NAME_BYTES);
	pthread_mutex_unlock(&state.lock);
	return id;
}

static uint32_t fit_capacity(uint32_t wish)
{
	uint32_t capacity = MIN_CAPACITY;

	if (wish == 0)
		return RING_DEFAULT_CAPACITY;
	while (capacity < wish && capacity < MAX_CAPACITY)
		capacity *= 2;
	return capacity;
}

int trace_subscribe(enum ctl_subscriber who, uint32_t capacity)
{
	int rc;

	if (state.forked)
		return -ECHILD;
	pthread_mutex_lock(&state.lock);
	rc = open_locked();
	if (rc == 0) {
		state.capacity = fit_capacity(capacity);
		rc = control_add_ring(&state.control, NO_CORE, state.capacity);
	}
	for (uint32_t nc = 0; nc < TRACE_MAX_NC && rc == 0; nc++)
		if (atomic_load(&state.touched[nc]))
			rc = control_add_ring(&state.control, nc, state.capacity);
	if (rc == 0)
		atomic_store(&state.control.ctl->enable[who], 1);
	pthread_mutex_unlock(&state.lock);
	return rc;
}

void trace_unsubscribe(enum ctl_subscriber who)
{
	if (state.forked)
		return;
	pthread_mutex_lock(&state.lock);
	if (state.open)
		atomic_store(&state.control.ctl->enable[who], 0);
	pthread_mutex_unlock(&state.lock);
}

int trace_control_fd(void)
{
	int fd = -EBADF;

	pthread_mutex_lock(&state.lock);
	if (state.open && kept_fd_valid(&state.control.file)) {
		fd = fcntl(state.control.file.fd, F_DUPFD_CLOEXEC, 3);
		if (fd < 0)
			fd = -errno;
	}
	pthread_mutex_unlock(&state.lock);
	return fd;
}
