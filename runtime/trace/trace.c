/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace.c - emission inside the runtime, and the state behind it.
 *
 * What the control page says of subscribers is shared with the parent after a fork and must not be
 * changed by the child; the gate, which emission looks at, is the process's own, and the child closes it.
 */
#include "runtime/trace/trace.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
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

static const struct trace_hooks *_Atomic hooks;

static __thread struct {
	uint32_t tid;
	uint32_t lane;		 /* that it can have to itself on a core */
	uint64_t owner;		 /* what it is as the owner of one */
	struct ring_writer *own; /* that it has, of the core it found last; or NULL */
	uint64_t seq;		 /* of the work it does, 0 = none */
} self __attribute__((tls_model("initial-exec")));

static void know_self(void)
{
	static _Atomic uint32_t serials;
	uint32_t tid = (uint32_t)syscall(SYS_gettid);

	self.lane = control_lane(tid);
	self.owner = control_self(tid, atomic_fetch_add(&serials, 1) + 1);
	self.tid = tid;
}

/* ---- events ------------------------------------------------------------------------------- */

static uint32_t ring_index(uint32_t nc)
{
	return nc < TRACE_MAX_NC ? nc : NO_CORE;
}

/* Who wants an event, and the newest subscription.  The latter is read first: whoever came after it is not
 * served, neither with the start of a span nor with its stop. */
struct order {
	uint32_t subscription, wanted;
};

static inline struct order order_of(uint32_t nc, uint32_t type)
{
	struct order o;

	o.subscription = atomic_load_explicit(&trace_gate.subscription, memory_order_acquire);
	o.wanted = trace_wanted(nc, type);
	return o;
}

/* What becomes a record, before it has a place. */
struct what {
	enum trace_type type;
	enum trace_phase phase;
	uint32_t status;
	struct order order;
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
		.wanted = what->order.wanted,
		.subscription = what->order.subscription,
	};
}

/* Has this thread a lane of its own, or is it offered one? */
static bool owns_lane(struct control *c, uint32_t index)
{
	uint64_t owner = atomic_load_explicit(&c->owner[index][self.lane], memory_order_acquire);

	return owner == self.owner ||
	       (owner == self.tid && control_take_lane(c, index, self.owner));
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
	if (owns_lane(c, index)) {
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
	struct boot_ns when, uint32_t index, struct what what)
{
	struct ring_writer *own = self.own;

	if (own && own->core_bits == (uint64_t)index << TRACK_CORE_SHIFT) {
		struct ring_event e = ring_event_of(when, index, &what);

		return ring_write_alone(own, &e);
	}
	return emit_anywhere(when, index,
		&(const struct what){what.type, what.phase, what.status, what.order, what.tracking,
			what.payload, what.size});
}

void trace_set_sequence(uint64_t seq)
{
	self.seq = seq;
}

static inline __attribute__((always_inline)) struct trace_span start_at(bool now,
	struct boot_ns when, uint32_t nc, enum trace_type type, const void *payload, size_t size)
{
	struct order order = order_of(nc, type);
	struct trace_span span = {.subscription = order.subscription,
		.ring = (uint16_t)ring_index(nc),
		.type = (uint8_t)type,
		.wanted = (uint8_t)order.wanted};

	if (order.wanted)
		span.tracking = emit(now ? clock_boot() : when, span.ring,
			(struct what){.type = type,
				.phase = TRACE_START,
				.order = order,
				.payload = payload,
				.size = size});
	return span;
}

static inline __attribute__((always_inline)) void stop_at(bool now, struct boot_ns when,
	const struct trace_span *span, uint32_t status, const void *payload, size_t size)
{
	struct order order = {
		span->subscription, span->wanted & trace_wanted(span->ring, span->type)};

	if (order.wanted)
		(void)emit(now ? clock_boot() : when, span->ring,
			(struct what){(enum trace_type)span->type, TRACE_STOP, status, order,
				span->tracking, payload, size});
}

struct trace_span trace_start_event(
	uint32_t nc, enum trace_type type, const void *payload, size_t size)
{
	return start_at(true, (struct boot_ns){0}, nc, type, payload, size);
}

struct trace_span trace_start_at(
	struct boot_ns when, uint32_t nc, enum trace_type type, const void *payload, size_t size)
{
	return start_at(false, when, nc, type, payload, size);
}

void trace_stop_event(
	const struct trace_span *span, uint32_t status, const void *payload, size_t size)
{
	stop_at(true, (struct boot_ns){0}, span, status, payload, size);
}

void trace_stop_at(struct boot_ns when, const struct trace_span *span, uint32_t status,
	const void *payload, size_t size)
{
	stop_at(false, when, span, status, payload, size);
}

void trace_instant(uint32_t nc, enum trace_type type, const void *payload, size_t size)
{
	struct order order = order_of(nc, type);

	if (order.wanted)
		(void)emit(clock_boot(), ring_index(nc),
			(struct what){.type = type,
				.phase = TRACE_INSTANT,
				.order = order,
				.payload = payload,
				.size = size});
}

uint64_t trace_event_at(struct boot_ns when, uint32_t nc, enum trace_type type,
	enum trace_phase phase, uint64_t tracking, uint32_t status, const void *payload,
	size_t size)
{
	struct order order = order_of(nc, type);

	return order.wanted
		       ? emit(when, ring_index(nc),
				 (struct what){type, phase, status, order, tracking, payload, size})
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

/*
 * Opens or closes the gate for a subscriber.  First it takes away what the filter has not, then it adds what it
 * has: in between an event meets a part of both filters, so what both have is never missed, and nothing is seen
 * that neither has.
 */
static void gate_set(enum ctl_subscriber who, const struct trace_filter *filter)
{
	uint8_t bit = (uint8_t)CTL_SUB_BIT(who);

	for (int add = 0; add < 2; add++) {
		for (uint32_t type = 0; type < 64; type++)
			if ((filter && filter->types >> type & 1) == add)
				gate_bit(&trace_gate.types[type], bit, add);
		for (uint32_t nc = 0; nc < TRACE_MAX_NC; nc++)
			if ((filter && wants_core(filter, nc)) == add)
				gate_bit(&trace_gate.cores[nc], bit, add);
	}
	gate_bit(&trace_gate.cores[TRACE_MAX_NC], bit, filter != NULL);
	gate_bit(&trace_gate.any, bit, filter != NULL);
}

/* Is this the child of a fork?  It may be one that no handler ran in. */
static bool forked(void)
{
	return state.forked || (state.hooked && !atomic_load(&trace_gate.ours));
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
		/* Where pages are larger the handler alone has to do. */
		(void)madvise(&trace_gate, sizeof(trace_gate), MADV_WIPEONFORK);
		atomic_store(&trace_gate.ours, 1);
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

	if (forked())
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

	if (forked() || atomic_load_explicit(&state.control.ready[index], memory_order_acquire))
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

	if (forked())
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

/* What began before is not the new subscriber's: its reader knows that first, then who emits, then the gate opens. */
static void begin_subscription(enum ctl_subscriber who)
{
	uint32_t number = atomic_load(&trace_gate.subscription) + 1;

	atomic_store(&state.control.ctl->since[who], number);
	atomic_store(&trace_gate.subscription, number);
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

	if (forked())
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
		if (!wish_before)
			begin_subscription(who);
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
	if (forked())
		return;
	pthread_mutex_lock(&state.lock);
	if (state.open) {
		gate_set(who, NULL);
		show(who, NULL);
		state.wishes[who] = 0;
	}
	pthread_mutex_unlock(&state.lock);
}

void trace_set_hooks(const struct trace_hooks *h)
{
	atomic_store(&hooks, h);
}

int trace_tend(void)
{
	const struct trace_hooks *h = atomic_load(&hooks);
	uint32_t wishes[TRACE_MAX_NC + 1];
	int ms = 0, error = 0, look;

	pthread_mutex_lock(&state.lock);
	if (state.open && trace_on()) {
		for (uint32_t i = 0; i <= NO_CORE; i++)
			wishes[i] = wish_of(i);
		error = state.control.grow_error;
		ms = control_tend(&state.control, wishes, clock_boot().ns);
		error = error ? 0 : state.control.grow_error;
	}
	pthread_mutex_unlock(&state.lock);
	if (error && h)
		h->cannot_grow(error);
	look = ms && h && h->look ? h->look() : 0;
	return look && look < ms ? look : ms;
}

const char *trace_hint(int error)
{
	static const struct {
		int error;
		const char *text;
	} hints[] = {
		{-EBADF, " (the program has closed the descriptor of " CTL_NAME ")"},
		{-EFBIG, " (RLIMIT_FSIZE, `ulimit -f`, counts for memory of files too)"},
		{-EPROTO, " (something has written into " CTL_NAME
			  ", the memory of events: there are none until the program starts "
			  "again)"},
	};

	for (size_t i = 0; i < sizeof(hints) / sizeof(hints[0]); i++)
		if (hints[i].error == error)
			return hints[i].text;
	return "";
}

struct ctl *trace_ctl(void)
{
	return state.open && !forked() ? state.control.ctl : NULL;
}

void trace_count_session(void)
{
	struct ctl *ctl = trace_ctl();

	if (ctl)
		atomic_fetch_add(&ctl->sessions, 1);
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
	if (state.open)
		fd = control_open_reading(&state.control);
	pthread_mutex_unlock(&state.lock);
	return fd;
}

int trace_reader_open(enum ctl_subscriber who, struct ctl_reader **ret)
{
	struct kept_fd file;
	int rc = trace_open();

	if (rc == 0)
		rc = trace_control_fd();
	/* Low numbers are the program's. */
	if (rc >= 0)
		rc = kept_fd_adopt(&file, rc);
	if (rc < 0)
		return rc;
	rc = ctl_reader_open(file.fd, who, ret);
	if (rc < 0)
		kept_fd_close(&file);
	return rc;
}
