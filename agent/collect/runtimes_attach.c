/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runtimes_attach.c - follows runtimes that were found (attach.c) instead of having announced themselves.
 *
 * The order keeps what is recorded whole: the lock is taken, the reader passes over what others have recorded,
 * only then the runtime is asked for events; at the end it is told to stop, and has answered, before the rings are
 * read for the last time.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/collect/attach.h"
#include "agent/collect/runtimes_parts.h"
#include "agent/collect/time_shift.h"
#include "runtime/base/clock.h"
#include "runtime/base/file.h"
#include "runtime/trace/announce.h"

#define ANSWER_MS \
	2000 /* its service thread looks at once; it may wait for a CPU, and allocates rings */
#define SERVING_MS 500
#define LEAVE_MS 1000

void runtimes_close_copy(struct followed *f, int memfd)
{
	pid_t holder;

	/* The kernel takes the lock away with any descriptor of the file. */
	close(memfd);
	(void)attach_claim(ctl_reader_fd(f->reader), &holder);
}

static const struct {
	int error;
	const char *text;
} reasons[] = {
	{-ESRCH, "has ended"},
	{-ENOTCONN, "has closed its Neuron runtime (nrt_close): attach when it has initialised it "
		    "again"},
	{-ETIMEDOUT, "does not answer: is it stopped (SIGSTOP, a debugger)?"},
	{-EBADF, ATTACH_CLOSED},
	{-EOPNOTSUPP, "has made a time namespace for its children while it is in one of its own: "
		      "the offsets of its clocks are not known"},
	{-ENOMEM, "cannot get memory for its events"},
	{-ENOSPC, "cannot get memory for its events"},
};

static int explain(pid_t pid, int error, char *why, size_t size)
{
	const char *text = NULL;

	for (size_t i = 0; i < sizeof(reasons) / sizeof(*reasons); i++)
		if (reasons[i].error == error)
			text = reasons[i].text;
	if (text)
		snprintf(why, size, "process %d %s", (int)pid, text);
	else
		snprintf(why, size, "process %d cannot be attached to: %s", (int)pid,
			strerror(-error));
	return error;
}

static int explain_busy(pid_t pid, pid_t holder, char *why, size_t size)
{
	if (holder > 0)
		snprintf(why, size, "process %d is being recorded by process %d already", (int)pid,
			(int)holder);
	else
		snprintf(why, size,
			"process %d is being recorded already, by a process of another pid "
			"namespace",
			(int)pid);
	return -EBUSY;
}

static int ask(struct runtimes *r, struct followed *f)
{
	int rc = ctl_reader_skip(f->reader);

	if (rc == 0)
		rc = attach_subscribe(
			&f->page, ctl_reader_fd(f->reader), r->ring_capacity, SERVING_MS);
	if (rc == 0)
		rc = attach_answer(&f->page, ANSWER_MS);
	return rc;
}

/* Memory also goes shortly before a process ends: only another one in its place tells of another program. */
bool runtimes_replaced(struct runtimes *r, struct followed *f)
{
	_cleanup_close_ int maps = -1;
	char path[64];

	if (f->replaced || f->maps < 0 || !attach_memory_is_gone(f->maps))
		return f->replaced;
	snprintf(path, sizeof(path), "/proc/%d/maps", (int)f->source.pid);
	maps = open(path, O_RDONLY | O_CLOEXEC);
	f->replaced = maps < 0 ? errno == EACCES || errno == EPERM : !attach_memory_is_gone(maps);
	f->replaced = f->replaced && !runtimes_gone(f); /* nor is it that of a later process */
	r->replaced += f->replaced;
	return f->replaced;
}

int runtimes_attach(struct runtimes *r, pid_t pid, int memfd, int maps, char *why, size_t why_size)
{
	struct followed *f;
	pid_t holder;
	struct stat st;
	uint32_t flags;
	int64_t shift;
	int rc = fstat(memfd, &st) < 0 ? -errno : attach_claim(memfd, &holder);

	if (rc == 0)
		rc = time_shift_of(pid, &shift);
	f = rc < 0 ? NULL : runtimes_follow(r, pid, memfd, &st);
	if (!f) {
		close(memfd);
		return rc == -EBUSY ? explain_busy(pid, holder, why, why_size)
				    : explain(pid, rc < 0 ? rc : -EPROTO, why, why_size);
	}
	f->attached = true;
	f->maps = fcntl(maps, F_DUPFD_CLOEXEC, 3);
	rc = ask(r, f);
	if (rc == -ETIMEDOUT && runtimes_gone(f))
		rc = -ESRCH;
	if (rc < 0)
		return explain(pid, rc, why, why_size);
	flags = atomic_load(&f->page.ctl->mail.flags);
	f->source.is_virtual = flags & ANNOUNCE_F_VIRTUAL;
	f->source.is_simulated = flags & ANNOUNCE_F_SIMULATED;
	rc = runtimes_tell(r, f);
	return rc < 0 ? explain(pid, rc, why, why_size) : 0;
}

void runtimes_detach(struct runtimes *r)
{
	uint64_t end = clock_boot().ns + LEAVE_MS * 1000000ull, now;

	for (unsigned i = 0; i < r->live_count; i++)
		if (r->live[i]->page.ctl)
			attach_unsubscribe(&r->live[i]->page);
	for (unsigned i = 0; i < r->live_count; i++) {
		struct followed *f = r->live[i];

		now = clock_boot().ns;
		if (f->page.ctl && !runtimes_gone(f) && !runtimes_replaced(r, f))
			(void)attach_answer(
				&f->page, now < end ? (int)((end - now) / 1000000u) : 0);
	}
}
