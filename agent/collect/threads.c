/* SPDX-License-Identifier: Apache-2.0 */
/*
 * threads.c - reads /proc for the ids that threads have in their pid namespaces.
 *
 * The line NSpid of a thread's status has its ids from the outermost namespace that this /proc shows to
 * its own; the last is what gettid says there.  A pid may be another process's by the time it is looked at, so
 * what was found counts only if the process still lives afterwards.
 *
 * What a runtime's memory says of threads is not trusted: a batch costs one look at the most, and what is
 * remembered of ids that do not exist has a limit.
 */
#include "agent/collect/threads.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/base/file.h"
#include "runtime/record/session.h"

#define REFRESH_NS 1000000000ull
#define MAX_GONE 65536u
#define MAX_TID INT32_MAX
#define PROC_TEXT 65536u
#define START_FIELD 20 /* starttime, counted from the state behind the name */

struct found {
	struct rec_thread *rows;
	size_t count, cap;
};

/* ---- /proc -------------------------------------------------------------------------------- */

uint32_t threads_innermost_id(const char *path, unsigned *ret_levels)
{
	_cleanup_free_ char *text = NULL;
	unsigned long id = 0;
	size_t size;
	char *p, *end;

	*ret_levels = 0;
	if (file_read(path, PROC_TEXT, &text, &size) < 0 || !(p = strstr(text, "\nNSpid:")))
		return 0;
	p += strlen("\nNSpid:");
	while (*p == '\t' || *p == ' ') {
		unsigned long n = strtoul(p, &end, 10);

		if (end == p)
			break;
		id = n;
		p = end;
		++*ret_levels;
	}
	return id <= MAX_TID ? (uint32_t)id : 0;
}

/* When a thread began, rounded down to ticks; false: it is gone. */
static bool start_of(const char *path, uint64_t *ret_ns)
{
	_cleanup_free_ char *text = NULL;
	uint64_t hz = (uint64_t)sysconf(_SC_CLK_TCK);
	size_t size;
	char *p;

	if (file_read(path, PROC_TEXT, &text, &size) < 0 || !(p = strrchr(text, ')')))
		return false;
	for (int field = 0; p && field < START_FIELD; field++)
		p = strchr(p + 1, ' ');
	if (!p)
		return false;
	uint64_t ticks = strtoull(p, NULL, 10);
	*ret_ns = ticks / hz * 1000000000u + ticks % hz * 1000000000u / hz;
	return true;
}

/* Does this /proc show pids as this process sees them?  Not when it was mounted in another namespace. */
static bool proc_is_ours(void)
{
	char text[16] = "";

	return readlink("/proc/self", text, sizeof(text) - 1) > 0 && atoi(text) == getpid();
}

static int look_at(const struct threads *t, const char *tid, struct found *to)
{
	struct rec_thread row = {.host_tid = (uint32_t)strtoul(tid, NULL, 10)};
	char path[80];
	unsigned levels;

	snprintf(path, sizeof(path), "/proc/%d/task/%u/status", (int)t->pid, row.host_tid);
	row.tid = threads_innermost_id(path, &levels);
	if (!row.tid || thread_map_host(&t->known, row.tid, UINT64_MAX) == row.host_tid)
		return 0;
	snprintf(path, sizeof(path), "/proc/%d/task/%u/stat", (int)t->pid, row.host_tid);
	if (!start_of(path, &row.from_ns))
		return 0;
	if (session_grow(&to->rows, &to->cap, to->count + 1, sizeof(*to->rows)) < 0)
		return -ENOMEM;
	to->rows[to->count++] = row;
	return 0;
}

static bool lives(const struct threads *t)
{
	struct pollfd ended = {.fd = t->pidfd, .events = POLLIN};

	return t->pidfd < 0 || poll(&ended, 1, 0) == 0;
}

static int look(const struct threads *t, struct found *to)
{
	char path[64];
	int rc = 0;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)t->pid);
	DIR *dir = opendir(path);
	if (!dir)
		return 0; /* it is gone */
	for (struct dirent *e; rc == 0 && (e = readdir(dir));)
		if (isdigit((unsigned char)e->d_name[0]))
			rc = look_at(t, e->d_name, to);
	closedir(dir);
	if (!lives(t))
		to->count = 0;
	return rc;
}

/* ---- what is known ------------------------------------------------------------------------ */

static int scan(struct threads *t, uint64_t now_ns, threads_fn on_threads, void *ctx)
{
	struct found found = {0};
	int rc = look(t, &found);

	t->scanned_ns = now_ns;
	for (size_t i = 0; rc >= 0 && i < found.count; i++)
		rc = thread_map_add(&t->known, &found.rows[i]);
	if (rc >= 0)
		rc = found.count ? on_threads(ctx, found.rows, found.count) : 0;
	free(found.rows);
	return rc;
}

int threads_open(struct threads *t, pid_t pid, int pidfd, uint32_t said_pid, threads_fn on_threads,
	void *ctx)
{
	char path[64];
	unsigned levels;
	int rc;

	*t = (struct threads){.pid = pid, .pidfd = pidfd};
	if (!proc_is_ours())
		return 0;
	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	threads_innermost_id(path, &levels);
	t->foreign = levels && lives(t) ? levels > 1 : said_pid != (uint32_t)pid;
	if (!t->foreign)
		return 0;
	rc = scan(t, clock_boot().ns, on_threads, ctx);
	return rc == 0 && t->known.count == 0 ? on_threads(ctx, NULL, 0) : rc;
}

void threads_close(struct threads *t)
{
	thread_map_free(&t->known);
	map64_free(&t->gone);
	t->foreign = false;
}

static bool is_open_question(struct threads *t, const struct trace_record *r)
{
	uint32_t tid = (uint32_t)r->thread_id;

	if (r->thread_id == 0 || r->thread_id > MAX_TID || tid == t->last)
		return false;
	t->last = tid;
	return !thread_map_knows(&t->known, tid) && !map64_find(&t->gone, (uint64_t)tid + 1);
}

/* Those that were not found will not be looked for again. */
static int give_up(struct threads *t, const struct trace_record *records, size_t count)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < count; i++) {
		if (!is_open_question(t, &records[i]) || t->gone.count == MAX_GONE)
			continue;
		rc = map64_put(&t->gone, records[i].thread_id + 1, 1);
		t->gone_count++;
	}
	return rc;
}

int threads_see(struct threads *t, const struct trace_record *records, size_t count,
	threads_fn on_threads, void *ctx)
{
	size_t i = 0;
	int rc;

	if (!t->foreign || t->gone.count == MAX_GONE)
		return 0;
	while (i < count && !is_open_question(t, &records[i]))
		i++;
	if (i == count)
		return 0;
	rc = scan(t, clock_boot().ns, on_threads, ctx);
	t->last = 0;
	return rc < 0 ? rc : give_up(t, records + i, count - i);
}

int threads_refresh(struct threads *t, uint64_t now_ns, threads_fn on_threads, void *ctx)
{
	if (!t->foreign || now_ns - t->scanned_ns < REFRESH_NS)
		return 0;
	return scan(t, now_ns, on_threads, ctx);
}
