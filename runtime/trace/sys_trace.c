/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sys_trace.c - start, stop and fetch of nrt_sys_trace.h.
 *
 * The capture reads the process's rings as an agent does, with a reader of its own, so its cursor is nobody
 * else's.  A fetch takes out all that is new, keeps it in queues as long as the config says (event_store.h)
 * and writes what was asked for.  Host times become epoch times by one offset, taken at the start: a clock that
 * is set meanwhile changes neither order nor durations.
 *
 * While somebody else subscribes, his events are in the rings too and could push out those that the program
 * has not fetched.  So the service thread then reads for the capture, into a store of its own, the intake, every
 * millisecond as long as there are events; a fetch takes that over first.  The thread waits for nobody: who has
 * the intake's lock reads himself, and holds it for no longer than that.
 */
#include "runtime/trace/sys_trace.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/clock.h"
#include "runtime/base/kept_fd.h"
#include "runtime/lifecycle/state.h"
#include "runtime/log/log.h"
#include "runtime/trace/event_store.h"
#include "runtime/trace/sys_trace_config.h"
#include "runtime/trace/trace.h"

#define TAG "NRT"
#define INTAKE_MS 1	/* between looks of the service thread while there are events */
#define IDLE_LOOKS 100u /* without an event, until it looks as seldom as at the rings */

/* Of all rings since the capture began. */
struct totals {
	uint64_t read, unread, overwritten, dropped;
};

static struct {
	pthread_mutex_t lock;
	struct ctl_reader *reader; /* NULL = off */
	struct event_store *store;
	int64_t offset_ns;
} capture = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* What the service thread has as well.  Its lock is taken inside of the capture's. */
static struct {
	pthread_mutex_t lock;
	struct ctl_reader *reader; /* the capture's; NULL = off */
	struct event_store *store;
	uint64_t seen; /* events of all subscribers at the thread's last look */
	uint32_t idle; /* looks since there was one */
} intake = {.lock = PTHREAD_MUTEX_INITIALIZER};

static _Atomic int32_t workers[TRACE_MAX_NC]; /* gid + 1; 0 = not known */

void sys_trace_set_worker(uint32_t nc, int32_t gid)
{
	if (nc < TRACE_MAX_NC)
		atomic_store(&workers[nc], gid + 1);
}

/* Events that were emitted, for anybody. */
static uint64_t emitted(const struct ctl_reader *r)
{
	struct ring_counters c;
	uint64_t sum = 0;
	uint32_t nc, lane;

	for (uint32_t i = 0; i < ctl_reader_rings(r); i++) {
		ctl_reader_counters(r, i, &nc, &lane, &c);
		sum += c.emitted;
	}
	return sum;
}

/* The service thread's part.  An error is the next fetch's too, and records that found no room come again. */
static int look(void)
{
	uint8_t others = atomic_load(&trace_gate.any) & (uint8_t)~CTL_SUB_BIT(CTL_SUB_API);
	int ms = 0;

	if (!others)
		return 0;
	if (pthread_mutex_trylock(&intake.lock))
		return INTAKE_MS;
	if (intake.reader) {
		(void)ctl_reader_poll(intake.reader, false, clock_boot().ns, event_store_add,
			event_store_add_name, intake.store);
		uint64_t now = emitted(intake.reader);

		intake.idle = now == intake.seen ? intake.idle + 1 : 0;
		intake.seen = now;
		ms = intake.idle < IDLE_LOOKS ? INTAKE_MS : 0;
	}
	pthread_mutex_unlock(&intake.lock);
	return ms;
}

static void cannot_grow(int error)
{
	log_warn(TAG,
		"The memory of events cannot grow any more, so that more may be overwritten: %s%s",
		strerror(-error), trace_hint(error));
}

void sys_trace_open(void)
{
	static const struct trace_hooks hooks = {look, cannot_grow};

	trace_set_hooks(&hooks);
}

/* ---- start, stop -------------------------------------------------------------------------- */

/* From here on the service thread may read as well. */
static void open_intake(void)
{
	pthread_mutex_lock(&intake.lock);
	intake.reader = capture.reader;
	intake.seen = 0;
	intake.idle = 0;
	pthread_mutex_unlock(&intake.lock);
}

static void close_intake(void)
{
	pthread_mutex_lock(&intake.lock);
	event_store_free(intake.store);
	intake.store = NULL;
	intake.reader = NULL;
	pthread_mutex_unlock(&intake.lock);
}

static void close_locked(void)
{
	close_intake();
	ctl_reader_close(capture.reader);
	event_store_free(capture.store);
	capture.reader = NULL;
	capture.store = NULL;
}

static struct totals totals(void)
{
	struct totals sum = {0};
	struct ring_counters c;
	uint32_t nc, lane;

	for (uint32_t i = 0; i < ctl_reader_rings(capture.reader); i++) {
		ctl_reader_counters(capture.reader, i, &nc, &lane, &c);
		sum.read += c.delivered;
		sum.unread += c.unread;
		sum.overwritten += c.overwritten;
		sum.dropped += c.slot_busy + c.no_ring + c.abandoned;
	}
	return sum;
}

/*
 * Takes out of the rings what is there at the begin, however much comes meanwhile.  0 or -errno.  ret_mark: of the
 * time up to this nothing is missing.  What is younger is to wait: a thread that is held up between the steps of
 * an event hides those behind it in its ring, and the stop of a span may be seen where its start is not.
 */
static int drain(ring_batch_fn on_batch, uint64_t *ret_mark)
{
	uint64_t begin = clock_boot().ns, now = begin;
	long n;

	do {
		n = ctl_reader_poll(
			capture.reader, false, now, on_batch, event_store_add_name, capture.store);
		now = clock_boot().ns;
		*ret_mark = ctl_reader_watermark(capture.reader, begin);
	} while (n >= 0 && *ret_mark < begin && ctl_reader_more(capture.reader));
	return n < 0 ? (int)n : 0;
}

/* The same behind what the service thread has taken. */
static int take(uint64_t *ret_mark)
{
	int rc;

	pthread_mutex_lock(&intake.lock);
	rc = event_store_move(capture.store, intake.store);
	if (rc == 0)
		rc = drain(event_store_add, ret_mark);
	pthread_mutex_unlock(&intake.lock);
	return rc;
}

static int open_locked(const struct nrt_sys_trace_config *config)
{
	uint64_t max = config->max_events_per_nc;
	const struct trace_filter filter = sys_trace_filter(config);
	struct clock_snapshot now = clock_snapshot_take();
	int rc;

	max = max < RING_MIN_CAPACITY ? RING_MIN_CAPACITY : max;
	capture.store = event_store_new(max);
	intake.store = event_store_new(max); /* nobody else looks at it before open_intake */
	rc = capture.store && intake.store ? trace_reader_open(CTL_SUB_API, &capture.reader)
					   : -ENOMEM;
	if (rc == 0)
		rc = ctl_reader_skip(capture.reader); /* an earlier capture's */
	if (rc == 0) {
		open_intake();
		rc = trace_subscribe(
			CTL_SUB_API, &filter, max > UINT32_MAX ? UINT32_MAX : (uint32_t)max);
	}
	capture.offset_ns = clock_snapshot_offset(&now);
	if (rc < 0)
		close_locked();
	return rc;
}

/* The status for an error, which it says. */
static NRT_STATUS failed(const char *call, const char *what, int rc)
{
	log_write(LOG_LEVEL_ERROR, TAG, call, "%s: %s%s", what, strerror(-rc), trace_hint(rc));
	return rc == -ENOMEM ? NRT_RESOURCE : NRT_FAILURE;
}

static NRT_STATUS start(const char *call, const struct nrt_sys_trace_config *config)
{
	NRT_STATUS status = NRT_SUCCESS;

	pthread_mutex_lock(&capture.lock);
	if (capture.reader) {
		log_write(LOG_LEVEL_WARN, TAG, call, "The capture is on already; nothing changes");
		status = NRT_FAILURE;
	} else {
		int rc = open_locked(config);

		if (rc < 0)
			status = failed(call, "The capture cannot start", rc);
	}
	pthread_mutex_unlock(&capture.lock);
	return status;
}

NRT_STATUS nrt_sys_trace_start(nrt_sys_trace_config_t *options)
{
	NRT_STATUS status = api_enter(__func__);

	if (status)
		return status;
	log_debug(TAG, "API:IN: ()");
	status = sys_trace_check_object(__func__, options);
	if (!status)
		status = start(__func__, options);
	log_debug(TAG, "API:OUT: ()");
	api_leave();
	return status;
}

/* Where all events of the capture are; what was not fetched is counted where it is. */
static void say_counts(const char *call)
{
	uint64_t limit, fetched, mark;
	struct totals n;

	pthread_mutex_lock(&intake.lock);
	intake.reader = NULL;
	pthread_mutex_unlock(&intake.lock);
	limit = event_store_dropped(capture.store) + event_store_dropped(intake.store);
	n = totals();
	fetched = n.read - limit - event_store_waiting(capture.store) -
		  event_store_waiting(intake.store);
	if (drain(NULL, &mark) < 0)
		log_write(LOG_LEVEL_WARN, TAG, call, "What was not fetched cannot be counted");
	n = totals();
	log_write(LOG_LEVEL_INFO, TAG, call,
		"Capture ends: %llu events fetched, %llu not fetched, %llu beyond the limit, %llu "
		"overwritten, %llu dropped",
		(unsigned long long)fetched,
		(unsigned long long)(n.read + n.unread - limit - fetched),
		(unsigned long long)limit, (unsigned long long)n.overwritten,
		(unsigned long long)n.dropped);
}

static void stop(const char *call)
{
	pthread_mutex_lock(&capture.lock);
	if (capture.reader) {
		trace_unsubscribe(CTL_SUB_API);
		say_counts(call);
		close_locked();
	} else {
		log_write(LOG_LEVEL_DEBUG, TAG, call, "There is no capture");
	}
	pthread_mutex_unlock(&capture.lock);
}

NRT_STATUS nrt_sys_trace_stop(void)
{
	NRT_STATUS status = api_enter(__func__);

	if (status)
		return status;
	stop(__func__);
	api_leave();
	return NRT_SUCCESS;
}

void sys_trace_close(void)
{
	stop("nrt_close");
	for (uint32_t nc = 0; nc < TRACE_MAX_NC; nc++)
		atomic_store(&workers[nc], 0);
}

/* ---- fetch -------------------------------------------------------------------------------- */

/* Writes what was asked for; without a capture, no events. */
static int write_locked(
	const struct nrt_sys_trace_fetch_options *options, char **ret_text, size_t *ret_len)
{
	int32_t gids[TRACE_MAX_NC];
	const struct event_json_source source = {.offset_ns = capture.offset_ns,
		.name = event_store_name,
		.ctx = capture.store,
		.gids = gids,
		.gid_count = TRACE_MAX_NC};
	struct event_json json;
	uint64_t mark;
	int rc;

	for (uint32_t nc = 0; nc < TRACE_MAX_NC; nc++)
		gids[nc] = atomic_load(&workers[nc]) - 1;
	rc = event_json_begin(&json, &source);
	if (rc == 0 && capture.reader) {
		rc = take(&mark);
		if (rc == 0)
			rc = event_store_write(capture.store, options->nc_idx,
				options->max_events_per_nc, mark, &json);
	}
	if (rc == 0)
		event_json_end(&json, ret_text, ret_len);
	else
		event_json_drop(&json);
	return rc;
}

static NRT_STATUS fetch(const char *call, char **buffer, size_t *written_size,
	const nrt_sys_trace_fetch_options_t *options)
{
	struct nrt_sys_trace_fetch_options defaults;
	NRT_STATUS status = NRT_SUCCESS;
	int rc;

	pthread_mutex_lock(&capture.lock);
	if (!capture.reader)
		log_write(
			LOG_LEVEL_WARN, TAG, call, "The capture is off: there is nothing to fetch");
	sys_trace_fetch_defaults(&defaults);
	rc = write_locked(options ? options : &defaults, buffer, written_size);
	if (rc < 0)
		status = failed(call, "The events cannot be read", rc);
	pthread_mutex_unlock(&capture.lock);
	return status;
}

NRT_STATUS nrt_sys_trace_fetch_events(
	char **buffer, size_t *written_size, const nrt_sys_trace_fetch_options_t *options)
{
	NRT_STATUS status = api_enter(__func__);

	if (status)
		return status;
	log_debug(TAG, "API:IN: ()");
	if (!buffer || !written_size) {
		log_error(TAG, "No place for the %s (NULL)", buffer ? "length" : "events");
		status = NRT_INVALID;
	} else if (*buffer) {
		log_warn(TAG, "*buffer is not NULL: it may hold events that were not freed");
		status = NRT_INVALID;
	} else {
		status = fetch(__func__, buffer, written_size, options);
	}
	log_debug(TAG, "API:OUT: (written_size=%zu)", status ? 0 : *written_size);
	api_leave();
	return status;
}
