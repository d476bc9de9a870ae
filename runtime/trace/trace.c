/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace.c - emission inside the runtime, and the state behind it.
 *
 * What the control page says of subscribers is shared with the parent after a fork and must not be
 * changed by the child; the gate, which emission looks at, is the process's own, and the child closes it.
 */
#include "runtime/trace/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/base/utf8.h"
#include "runtime/trace/control.h"
#include "runtime/trace/intern.h"
#include "runtime/trace/ring_write.h"

#define NO_CORE TRACE_MAX_NC /* index of the ring for events of no core */
#define MAX_NAMES 65536u /* distinct names that are remembered as logged: more than the log holds */

struct trace_gate trace_gate;

static struct {
	pthread_mutex_t lock;
	bool open, forked, hooked;
	struct control control;
	uint32_t wishes[CTL_SUB_MAX]; /* records per core; 0 = not subscribed */
	struct trace_filter filters[CTL_SUB_MAX];
	_Atomic uint32_t touched[TRACE_MAX_NC + 1];
	uint64_t names[MAX_NAMES]; /* open addressing, 0 = free */
	uint32_t name_count;
} state = {.lock = PTHREAD_MUTEX_INITIALIZER};

static __thread struct {
	uint32_t tid;
	uint32_t lane;		 /* that it can have to itself on a core */
	struct ring_writer *own; /* that it has, of the core it found last; or NULL */
	uint64_t seq;		 /* of the work it does, 0 = none */
} self __attribute__((tls_model("initial-exec")));

static void know_self(void)
{
	uint32_t tid = (uint32_t)syscall(SYS_gettid);

	self.lane = control_lane(tid);
	self.tid = tid;
}

/* ---- events ------------------------------------------------------------------------------- */

static uint32_t ring_index(uint32_t nc)
{
	return nc < TRACE_MAX_NC ? nc : NO_CORE;
}

/* What becomes a record, before it has a place. */
struct what {
	enum trace_type type;
	enum trace_phase phase;
	uint32_t status, wanted;
	uint64_t tracking;
	const void *payload;
	size_t size;
};

static inline __attribute__((always_inline)) struct ring_event ring_event_of(
	struct boot_ns when, uint32_t index, const struct what *what)
{
	return (struct ring_event){
		.type = what->type,
		.status = what->status,
		.phase = what->phase,
		.nc_idx = index == NO_CORE ? TRACE_NC_UNKNOWN : index,
		.thread_id = self.tid,
		.timestamp_ns = when.ns,
		.tracking_id = what->tracking,
		.payload = what->payload,
		.size = what->size,
		.nrta_seq_id = self.seq,
		.has_nrta_seq_id = self.seq != 0,
		.wanted = what->wanted,
	};
}

/* Where the thread is not known to have a lane of its own. */
static __attribute__((noinline)) uint64_t emit_anywhere(
	struct boot_ns when, uint32_t index, const struct what *what)
{
	struct control *c = &state.control;

	if (self.tid == 0)
		know_self();
	if (!atomic_load_explicit(&c->ready[index], memory_order_acquire)) {
		atomic_fetch_add_explicit(&c->ctl->emitted_no_ring, 1, memory_order_relaxed);
		atomic_fetch_add_explicit(&c->ctl->no_ring, 1, memory_order_release);
		return 0;
	}
	if (atomic_load_explicit(&c->owner[index][self.lane], memory_order_acquire) == self.tid) {
		struct ring_event e = ring_event_of(when, index, what);

		/* For good: an owner changes only when its thread is gone. */
		self.own = &c->writers[index][self.lane];
		return ring_emit_alone(self.own, &e);
	}
	struct ring_event e = ring_event_of(when, index, what);

	return ring_write(&c->writers[index][0], &e, false);
}

/* Inline, and the event built for each way apart: it then never lies in memory, where words that were stored
 * by halves would have to be waited for. */
static inline __attribute__((always_inline)) uint64_t emit(
	struct boot_ns when, uint32_t nc, struct what what)
{
	uint32_t index = ring_index(nc);
	struct ring_writer *own = self.own;

	if (own && own->core_bits == (uint64_t)index << TRACK_CORE_SHIFT) {
		struct ring_event e = ring_event_of(when, index, &what);

		return ring_write_alone(own, &e);
	}
	return emit_anywhere(when, index,
		&(const struct what){what.type, what.phase, what.status, what.wanted, what.tracking,
			what.payload, what.size});
}

void trace_set_sequence(uint64_t seq)
{
	self.seq = seq;
}

struct trace_span trace_start_event(
	uint32_t nc, enum trace_type type, const void *payload, size_t size)
{
	uint32_t wanted = trace_wanted(nc, type);
	struct trace_span span = {.nc = nc, .type = (uint16_t)type, .wanted = (uint8_t)wanted};

	if (wanted)
		span.tracking = emit(clock_boot(), nc,
			(struct what){.type = type,
				.phase = TRACE_START,
				.wanted = wanted,
				.payload = payload,
				.size = size});
	return span;
}

void trace_stop_event(
	const struct trace_span *span, uint32_t status, const void *payload, size_t size)
{
	uint32_t wanted = span->wanted & trace_wanted(span->nc, span->type);

	if (wanted)
		(void)emit(clock_boot(), span->nc,
			(struct what){(enum trace_type)span->type, TRACE_STOP, status, wanted,
				span->tracking, payload, size});
}

void trace_instant(uint32_t nc, enum trace_type type, const void *payload, size_t size)
{
	uint32_t wanted = trace_wanted(nc, type);

	if (wanted)
		(void)emit(clock_boot(), nc,
			(struct what){.type = type,
				.phase = TRACE_INSTANT,
				.wanted = wanted,
				.payload = payload,
				.size = size});
}

uint64_t trace_event_at(struct boot_ns when, uint32_t nc, enum trace_type type,
	enum trace_phase phase, uint64_t tracking, uint32_t status, const void *payload,
	size_t size)
{
	uint32_t wanted = trace_wanted(nc, type);

	return wanted ? emit(when, nc,
				(struct what){type, phase, status, wanted, tracking, payload, size})
		      : 0;
}

/* ---- set-up ------------------------------------------------------------------------------- */

static bool wants_core(const struct trace_filter *filter, uint32_t nc)
{
	return filter->cores[nc / 64] >> nc % 64 & 1;
}

static void gate_bit(_Atomic uint8_t *word, uint8_t bit, bool on)
{
	if (on)
		atomic_fetch_or(word, bit);
	else
		atomic_fetch_and(word, (uint8_t)~bit);
}

/* Opens or closes the gate for a subscriber.  While it changes, an event may meet the one half and not the other:
 * whoever was not there before, or goes, does not see it. */
static void gate_set(enum ctl_subscriber who, const struct trace_filter *filter)
{
	uint8_t bit = (uint8_t)CTL_SUB_BIT(who);

	for (uint32_t type = 0; type < 64; type++)
		gate_bit(&trace_gate.types[type], bit, filter && filter->types >> type & 1);
	for (uint32_t nc = 0; nc < TRACE_MAX_NC; nc++)
		gate_bit(&trace_gate.cores[nc], bit, filter && wants_core(filter, nc));
	gate_bit(&trace_gate.cores[TRACE_MAX_NC], bit, filter != NULL);
	gate_bit(&trace_gate.any, bit, filter != NULL);
}

static void after_fork_in_child(void)
{
	for (int who = 0; who < CTL_SUB_MAX; who++)
		gate_set((enum ctl_subscriber)who, NULL);
	self.tid = 0;
	self.own = NULL;
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

/* The largest wish of those who want this core; 0 = nobody does. */
static uint32_t wish_of(uint32_t index)
{
	uint32_t most = 0;

	for (int who = 0; who < CTL_SUB_MAX; who++)
		if (state.wishes[who] > most &&
			(index == NO_CORE || wants_core(&state.filters[who], index)))
			most = state.wishes[who];
	return most;
}

/* A ring for a core that somebody wants. */
static int add_ring(uint32_t index)
{
	uint32_t wish = wish_of(index);

	return control_add_ring(
		&state.control, index, wish < RING_DEFAULT_CAPACITY ? wish : RING_DEFAULT_CAPACITY);
}

void trace_core_touch(uint32_t nc)
{
	uint32_t index = ring_index(nc);

	if (state.forked || atomic_load_explicit(&state.control.ready[index], memory_order_acquire))
		return;
	pthread_mutex_lock(&state.lock);
	atomic_store(&state.touched[index], 1);
	/* An error leaves the core without a ring: its events are counted no_ring. */
	if (state.open && wish_of(index))
		(void)add_ring(index);
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
		return true; /* the log is full: each is counted as lost */
	state.names[at] = id;
	state.name_count++;
	return true;
}

static_assert(MAX_NAMES > CTL_NAMES_BYTES / (sizeof(struct ctl_name) + 8), "the log is full first");

uint64_t trace_intern(const char *text)
{
	size_t len = strlen(text);
	uint64_t id = intern_id(text, len);

	if (state.forked)
		return id;
	pthread_mutex_lock(&state.lock);
	if (state.open && remember_name(id))
		(void)control_add_name(
			&state.control, id, text, (uint32_t)utf8_cut(text, len, TRACE_NAME_BYTES));
	pthread_mutex_unlock(&state.lock);
	return id;
}

static uint32_t fit_capacity(uint32_t wish)
{
	uint32_t capacity = RING_MIN_CAPACITY;

	if (wish == 0)
		return RING_DEFAULT_CAPACITY;
	while (capacity < wish && capacity < RING_MAX_CAPACITY)
		capacity *= 2;
	return capacity;
}

static const struct trace_filter everything = {
	.types = UINT64_MAX, .cores = {UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX}};

/* Says in the control page what the subscriber wants; NULL: nothing more. */
static void show(enum ctl_subscriber who, const struct trace_filter *filter)
{
	struct ctl *ctl = state.control.ctl;

	if (filter) {
		atomic_store(&ctl->filters[who].types, filter->types);
		for (size_t i = 0; i < TRACE_MAX_NC / 64; i++)
			atomic_store(&ctl->filters[who].cores[i], filter->cores[i]);
	}
	atomic_store(&ctl->enable[who], filter != NULL);
}

/* Rings for what a subscriber with this filter wants of what is touched. */
static int add_rings(const struct trace_filter *filter)
{
	int rc = add_ring(NO_CORE);

	for (uint32_t nc = 0; nc < TRACE_MAX_NC && rc == 0; nc++)
		if (atomic_load(&state.touched[nc]) && wants_core(filter, nc))
			rc = add_ring(nc);
	return rc;
}

int trace_set_subscriber(
	enum ctl_subscriber who, const struct trace_filter *filter, uint32_t records_per_core)
{
	struct trace_filter filter_before;
	uint32_t wish_before;
	int rc;

	if (state.forked)
		return -ECHILD;
	if (!filter)
		filter = &everything;
	pthread_mutex_lock(&state.lock);
	rc = open_locked();
	wish_before = state.wishes[who];
	filter_before = state.filters[who];
	if (rc == 0) {
		state.wishes[who] = fit_capacity(records_per_core);
		state.filters[who] = *filter;
		rc = add_rings(filter);
	}
	if (rc == 0) {
		gate_set(who, NULL);
		gate_set(who, filter);
		show(who, filter);
	} else {
		state.wishes[who] = wish_before;
		state.filters[who] = filter_before;
	}
	pthread_mutex_unlock(&state.lock);
	return rc;
}

int trace_subscribe(
	enum ctl_subscriber who, const struct trace_filter *filter, uint32_t records_per_core)
{
	int rc = trace_set_subscriber(who, filter, records_per_core);

	if (rc == 0)
		trace_service_need();
	return rc;
}

void trace_unsubscribe(enum ctl_subscriber who)
{
	if (state.forked)
		return;
	pthread_mutex_lock(&state.lock);
	if (state.open) {
		gate_set(who, NULL);
		show(who, NULL);
		state.wishes[who] = 0;
	}
	pthread_mutex_unlock(&state.lock);
}

int trace_tend(void)
{
	uint32_t wishes[TRACE_MAX_NC + 1];
	int ms = 0;

	pthread_mutex_lock(&state.lock);
	if (state.open && trace_on()) {
		for (uint32_t i = 0; i <= NO_CORE; i++)
			wishes[i] = wish_of(i);
		ms = control_tend(&state.control, wishes, clock_boot().ns);
	}
	pthread_mutex_unlock(&state.lock);
	return ms;
}

struct ctl *trace_ctl(void)
{
	return state.open && !state.forked ? state.control.ctl : NULL;
}

int trace_agent_lives(void)
{
	int rc = -EBADF;

	pthread_mutex_lock(&state.lock);
	if (state.open)
		rc = control_reopen(&state.control);
	if (rc == 0)
		rc = control_agent_lives(&state.control);
	pthread_mutex_unlock(&state.lock);
	return rc;
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
