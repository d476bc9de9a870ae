/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inspect_spool.c - the thread of an inspect session, and how its recording becomes files.
 *
 * The thread does everything, also the end: whoever ends the session waits for it, and a signal that hits the waiting
 * thread does not stop what it waits for.
 *
 * Files of others are handed over by a list that is pushed to and taken whole, so that nobody waits for a lock that an
 * interrupted thread holds.  Its entries are freed when no signal waits for an answer.
 */
#include "runtime/profile/inspect_spool.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/base/env.h"
#include "runtime/base/env_table.h"
#include "runtime/base/file.h"
#include "runtime/base/last_thread.h"
#include "runtime/base/quiet_signal.h"
#include "runtime/log/log.h"
#include "runtime/profile/inspect_about.h"
#include "runtime/profile/inspect_dir.h"
#include "runtime/profile/inspect_end.h"
#include "runtime/profile/inspect_feed.h"
#include "runtime/record/merge.h"
#include "runtime/trace/trace.h"

#define TAG "NRT"
#define THREAD_NAME "nrt-inspect"
#define STACK_BYTES (512u << 10) /* a program may lock all its memory */
#define MERGE_BYTES (64u << 20)	 /* for events that wait for their turn; the rest waits in a file */
#define NAME_BYTES 256u

/* A file that is to become a row. */
struct note {
	struct note *next;
	uint64_t bytes;
	char type[17];
	char name[NAME_BYTES];
};

struct inspect_spool {
	const struct inspect_dir *dir;
	void (*asked)(void *ctx, bool finish);
	void *ctx;
	struct inspect_feed *feed; /* NULL: the directory is null, or it has ended */
	char *path;		   /* of the recording */
	bool keep_recording;
	pthread_t thread;
	_Atomic(struct note *) notes; /* newest first */
	struct note *written;	      /* to be freed */
	bool said_error, said_rings;  /* of the thread */
	bool ended;		      /* in the thread, which frees all */
	/* Written by whoever ends it, before `ending`. */
	enum rec_end_reason reason;
	bool drop;
	_Atomic bool ending;
	struct inspect_outcome outcome; /* of the thread, until it is joined */
};

/* ---- the child of a fork ------------------------------------------------------------------ */

static _Atomic(struct inspect_feed *) in_work; /* whose descriptors a child is to give up */
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;

static void become_child(void)
{
	struct inspect_feed *f = atomic_exchange(&in_work, NULL);

	if (f)
		inspect_feed_forget(f);
}

static void watch_forks(void)
{
	(void)pthread_atfork(NULL, NULL, become_child);
}

/* ---- files of others ---------------------------------------------------------------------- */

int inspect_spool_add_file(
	struct inspect_spool *s, const char *name, const char *type, uint64_t bytes)
{
	struct note *n = calloc(1, sizeof(*n));

	if (!n)
		return -ENOMEM;
	n->bytes = bytes;
	(void)snprintf(n->type, sizeof(n->type), "%s", type);
	(void)snprintf(n->name, sizeof(n->name), "%s", name);
	n->next = atomic_load(&s->notes);
	while (!atomic_compare_exchange_weak(&s->notes, &n->next, n))
		;
	return 0;
}

/* In the order in which they came. */
static void write_notes(struct inspect_spool *s)
{
	struct note *n = atomic_exchange(&s->notes, NULL), *first = NULL, *next;

	for (; n; n = next) {
		next = n->next;
		n->next = first;
		first = n;
	}
	for (n = first; n; n = next) {
		next = n->next;
		if (s->feed)
			(void)inspect_feed_file(s->feed, n->name, n->type, n->bytes);
		n->next = s->written;
		s->written = n;
	}
}

static void free_notes(struct inspect_spool *s)
{
	while (s->written) {
		struct note *n = s->written;

		s->written = n->next;
		free(n);
	}
}

/* ---- the files ---------------------------------------------------------------------------- */

static void say_not_merged(const struct inspect_spool *s, int error, const char *text)
{
	log_error(TAG,
		"The system profile could not be made from %s: %s; `ntrace salvage %s` makes it "
		"when that has been put right",
		s->path, text ? text : strerror(-error), s->dir->work);
}

/* What the program asked for is kept, and what is needed to make the files later. */
static void remove_recording(struct inspect_spool *s)
{
	int rc;

	if (s->outcome.is_kept)
		return;
	rc = rec_remove(s->path);
	if (rc == 0)
		return;
	s->outcome.is_kept = true;
	log_warn(TAG, "%s is not needed any more and could not be removed: %s", s->path,
		strerror(-rc));
}

/* Somebody may have moved the directory away, and something else there: that is not touched. */
static const char *not_there(int rc)
{
	return rc == -ENOENT   ? "the directory is gone"
	       : rc == -ESTALE ? "the directory is not there any more, something else has its name"
			       : NULL;
}

static int merge(struct inspect_spool *s)
{
	const struct merge_options how = {.leaf = true, .held_bytes = MERGE_BYTES};
	uint64_t begin = clock_boot().ns;
	_cleanup_free_ char *text = NULL;
	struct merge_result m = {0};
	int rc = inspect_dir_check(s->dir);

	if (rc == 0)
		rc = merge_recording(s->path, s->dir->work, &how, &m, &text);
	if (rc < 0) {
		s->outcome.is_kept = true;
		say_not_merged(s, rc, not_there(rc) ? not_there(rc) : text);
	} else if (m.output_count) {
		s->outcome.events = m.outputs[0].events;
		s->outcome.samples = m.outputs[0].cpu_samples + m.outputs[0].mem_samples;
	}
	merge_result_free(&m);
	if (rc < 0)
		return rc;
	s->outcome.seconds = (double)(clock_boot().ns - begin) / 1e9;
	log_info(TAG, "Dumped system profile snapshot in %.2f seconds", s->outcome.seconds);
	if (kept_fd_valid(&s->dir->fd))
		(void)fsync(s->dir->fd.fd);
	return 0;
}

static void say_ended_early(struct inspect_spool *s, int error)
{
	if (s->said_error)
		return;
	s->said_error = true;
	log_error(TAG,
		"The inspect session records no more: %s: %s; what there is until now is kept, the "
		"program is not affected",
		s->path, strerror(-error));
}

/* All that is left to do, in the thread. */
static void end(struct inspect_spool *s)
{
	struct inspect_feed *feed = s->feed;
	struct kept_fd lock = {.fd = -1};
	struct standard_fds hold;
	int rc, merged;

	if (!feed) {
		log_info(TAG, "Not dumping the system profile: the output location is %s",
			INSPECT_NULL_DIR);
		return;
	}
	(void)standard_fds_hold(&hold);
	write_notes(s);
	s->feed = NULL;
	atomic_store(&in_work, NULL);
	if (s->drop) {
		inspect_feed_drop(feed);
		standard_fds_release(&hold);
		return;
	}
	s->outcome.is_kept = s->keep_recording;
	rc = inspect_feed_end(feed, s->reason, &lock, &s->outcome.lost);
	if (rc < 0)
		say_ended_early(s, rc);
	merged = merge(s);
	remove_recording(s);
	kept_fd_close(&lock);
	standard_fds_release(&hold);
	s->outcome.error = rc < 0 ? rc : merged;
}

/* ---- the thread --------------------------------------------------------------------------- */

/* Waits for the next tick, or for a signal that asks. */
static enum inspect_end_ask wait_tick(void)
{
	struct pollfd p = {.fd = inspect_end_ask_fd(), .events = POLLIN};
	const struct timespec nap = {.tv_nsec = INSPECT_FEED_TICK_MS * 1000000L};
	bool slept = p.fd >= 0 && poll(&p, 1, (int)INSPECT_FEED_TICK_MS) == 0;
	enum inspect_end_ask ask = inspect_end_asked();

	/* The number may mean something else by now, which is always ready. */
	if (slept || ask != INSPECT_END_NONE)
		return ask;
	(void)clock_nanosleep(CLOCK_MONOTONIC, 0, &nap, NULL);
	return inspect_end_asked();
}

static void say_rings(struct inspect_spool *s)
{
	int error = s->feed ? inspect_feed_trouble(s->feed) : 0;

	if (!error || s->said_rings)
		return;
	s->said_rings = true;
	log_warn(TAG, "Events cannot be read: %s%s", strerror(-error), trace_hint(error));
}

static void tick(struct inspect_spool *s)
{
	int rc;

	write_notes(s);
	free_notes(s);
	rc = s->feed ? inspect_feed_tick(s->feed) : 0;
	if (rc < 0)
		say_ended_early(s, rc);
	say_rings(s);
}

/* What a signal asks for.  Up to the first answer nothing allocates, locks or speaks. */
static void answer(struct inspect_spool *s, enum inspect_end_ask ask)
{
	if (ask == INSPECT_END_NONE)
		return;
	write_notes(s);
	if (s->feed)
		(void)inspect_feed_flush(s->feed);
	inspect_end_answer(INSPECT_END_FLUSH);
	if (s->asked)
		s->asked(s->ctx, ask == INSPECT_END_FINISH);
	if (ask == INSPECT_END_FINISH)
		inspect_end_answer(INSPECT_END_FINISH);
}

static void spool_free(struct inspect_spool *s)
{
	write_notes(s);
	free_notes(s);
	free(s->path);
	free(s);
}

static void serve(struct inspect_spool *s)
{
	if (s->feed)
		inspect_feed_begin(s->feed);
	inspect_end_thread(true);
	while (!atomic_load(&s->ending) && !s->ended) {
		answer(s, wait_tick());
		if (!s->ended && !atomic_load(&s->ending))
			tick(s);
	}
	if (s->ended) {
		inspect_end_thread(false);
		spool_free(s);
		return;
	}
	end(s);
	inspect_end_thread(false);
	answer(s, inspect_end_asked()); /* a signal that came meanwhile need not wait */
}

static void *run(void *arg)
{
	(void)pthread_setname_np(pthread_self(), THREAD_NAME);
	last_thread_rests();
	serve(arg);
	last_thread_works();
	return NULL;
}

static int make_thread(struct inspect_spool *s)
{
	pthread_attr_t attr;
	sigset_t all, old;
	int rc;

	pthread_attr_init(&attr);
	(void)pthread_attr_setstacksize(&attr, STACK_BYTES);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	rc = -pthread_create(&s->thread, &attr, run, s);
	/* Thread-local memory of the program may need more. */
	if (rc < 0)
		rc = -pthread_create(&s->thread, NULL, run, s);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	return rc;
}

/* ---- begin and end ------------------------------------------------------------------------ */

static int64_t setting(enum env_id id)
{
	return env_number(id, getenv(env_row(id)->name));
}

static int open_feed(struct inspect_spool *s, const struct inspect_spool_wish *w)
{
	struct inspect_feed_wish feed = {.path = s->path,
		.events = w->events,
		.cpu_util = w->cpu_util,
		.host_memory = w->host_memory,
		.period_ms = w->period_ms ? w->period_ms
					  : (uint32_t)setting(ENV_ID_NTRACE_INSPECT_PERIOD_MS),
		.devices = w->info->devices,
		.device_count = w->info->device_count,
		.is_virtual = w->info->is_virtual};
	_cleanup_free_ char *header = NULL;
	struct standard_fds hold;
	struct quiet_signal limit;
	int rc = inspect_about_text(w, feed.period_ms, &header);

	if (rc == 0)
		rc = standard_fds_hold(&hold);
	if (rc < 0)
		return rc;
	feed.header = header;
	quiet_signal_begin(&limit, SIGXFSZ);
	rc = inspect_feed_open(&feed, &s->feed);
	quiet_signal_end(&limit, rc == -EFBIG);
	standard_fds_release(&hold);
	return rc;
}

static int open_spool(struct inspect_spool *s, const struct inspect_spool_wish *w)
{
	int rc = 0;

	s->dir = w->dir;
	s->asked = w->asked;
	s->ctx = w->ctx;
	if (!w->dir->is_null) {
		if (asprintf(&s->path, "%s/" REC_DIR, w->dir->work) < 0) {
			s->path = NULL;
			return -ENOMEM;
		}
		rc = open_feed(s, w);
		atomic_store(&in_work, s->feed);
	}
	return rc < 0 ? rc : make_thread(s);
}

int inspect_spool_open(const struct inspect_spool_wish *wish, struct inspect_spool **ret)
{
	struct inspect_spool *s = calloc(1, sizeof(*s));
	int rc = s ? 0 : -ENOMEM;

	pthread_once(&fork_once, watch_forks);
	file_invoker_fix(); /* the thread is not to look at the environment */
	if (s) {
		s->keep_recording = setting(ENV_ID_NTRACE_KEEP_RECORDING);
		rc = open_spool(s, wish);
	}
	if (rc == 0) {
		*ret = s;
		return 0;
	}
	atomic_store(&in_work, NULL);
	log_error(TAG, "Cannot record the session in %s: %s%s",
		wish->dir->work ? wish->dir->work : wish->dir->path, strerror(-rc), trace_hint(rc));
	if (s) {
		inspect_feed_drop(s->feed);
		spool_free(s);
	}
	return rc;
}

/* The thread is told, and has done it. */
static void stop(struct inspect_spool *s, enum rec_end_reason reason, bool drop)
{
	s->reason = reason;
	s->drop = drop;
	if (pthread_equal(pthread_self(), s->thread)) {
		(void)pthread_detach(s->thread);
		end(s);
		return;
	}
	atomic_store(&s->ending, true);
	(void)pthread_join(s->thread, NULL);
}

/* In the thread it goes when its caller has returned to it. */
static void let_go(struct inspect_spool *s)
{
	if (pthread_equal(pthread_self(), s->thread))
		s->ended = true;
	else
		spool_free(s);
}

int inspect_spool_finish(
	struct inspect_spool *s, enum rec_end_reason reason, struct inspect_outcome *ret)
{
	stop(s, reason, false);
	*ret = s->outcome;
	let_go(s);
	return ret->error;
}

void inspect_spool_drop(struct inspect_spool *s)
{
	if (!s)
		return;
	stop(s, REC_END_FAILED, true);
	let_go(s);
}
