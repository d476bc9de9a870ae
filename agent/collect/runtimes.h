/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runtimes.h - processes with our runtime: they announce themselves on a socket, hand over their
 * control memfd, or are found and attached to; and their rings are followed until they and the records are gone.
 *
 * Owner: the recorder; one thread.  The socket lies in the abstract name space under a random
 * name, so nothing is left behind whatever becomes of the recorder.  Clients are not trusted: the
 * pid comes from the kernel, the memfd is validated by ctl_reader_open, messages have a fixed size.
 * Who connects must say hello within a second, and before newer callers need the place.
 */
#ifndef NTRACE_COLLECT_RUNTIMES_H
#define NTRACE_COLLECT_RUNTIMES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "runtime/record/recording.h"
#include "runtime/trace/ring.h"

#define RUNTIMES_MAX 1024 /* whose memory is mapped at a time; what is known of others stays */

struct runtimes;

struct runtime_source {
	uint16_t source; /* number in the recording */
	pid_t pid;	 /* as the recorder sees it */
	bool is_virtual, is_simulated;
	bool failed; /* its memory broke the rules: not read any more */
	char comm[16];
};

/* What the recorder does with news.  All return 0 or -errno, which ends the poll. */
struct runtimes_sink {
	bool (*wants)(void *ctx, pid_t pid); /* is this process to be followed? */
	int (*on_process)(void *ctx, const struct runtime_source *s);
	int (*on_records)(void *ctx, const struct runtime_source *s, uint32_t nc_idx, uint32_t lane,
		const struct trace_record *records, size_t count);
	int (*on_name)(void *ctx, const struct runtime_source *s, uint64_t id, const char *text,
		uint32_t len);
	/* Threads of a process in another pid namespace, before the records that name them; first of all
	 * once with whatever is known, perhaps nothing. */
	int (*on_threads)(void *ctx, const struct runtime_source *s, const struct rec_thread *rows,
		size_t count);
	/* nrt_init failed in a process; it waits until this returns.  May be NULL. */
	int (*on_failure)(void *ctx, const struct rec_failure *failure);
	void *ctx;
};

/* ring_capacity: wish in records per core, 0 = the runtime's default.  Raises the soft limit of
 * descriptors to the hard one until runtimes_close.  0 or -errno. */
int runtimes_open(uint32_t ring_capacity, uint16_t first_source, const struct runtimes_sink *sink,
	struct runtimes **ret);
void runtimes_close(struct runtimes *r);

/* The limit of descriptors (RLIMIT_NOFILE) as it was before, for the command; NULL: not known. */
const struct rlimit *runtimes_old_limit(const struct runtimes *r);

/* Value for NTRACE_SOCKET. */
const char *runtimes_socket_name(const struct runtimes *r);

/* One descriptor for poll/epoll: readable when runtimes_serve has something to do. */
int runtimes_fd(const struct runtimes *r);

/* Accepts and answers announcements, notices ends, sends away who does not say hello.  Never blocks.  0 or -errno of the sink. */
int runtimes_serve(struct runtimes *r);

/*
 * Follows a runtime that runs already, from now on.  memfd: its control file as of attach_find; taken in any case.  maps: as of
 * it, too; stays the caller's.
 * 0; -errno, then with a line for the user: -EBUSY another process records it, -ENOTCONN its runtime is closed,
 * -ETIMEDOUT it does not answer, others.  After an error the whole is to be closed.
 */
int runtimes_attach(struct runtimes *r, pid_t pid, int memfd, int maps, char *why, size_t why_size);

/* Delivers what is new in all rings.  ended: the capture is over; rings of ended processes are
 * emptied, also of slots that nobody will finish.  A source whose process is gone and whose rings
 * are empty is retired, and so is one that failed: its memory is let go, its numbers stay.
 * Number of records or -errno. */
long runtimes_poll(struct runtimes *r, bool ended);

/* Tells all runtimes that the agent no longer wants events; those that were attached to have heard it then. */
void runtimes_disable(struct runtimes *r);

/* The i-th source and its watermark: nothing older will come, all ones once its process is gone;
 * returns false beyond the last. */
bool runtimes_get(
	const struct runtimes *r, unsigned i, struct runtime_source *ret, uint64_t *ret_watermark);

/* Reader of the i-th source; NULL once it is retired. */
const struct ctl_reader *runtimes_reader(const struct runtimes *r, unsigned i);

/* Counters of the i-th source, which exists: rows as of ctl_reader_rings and ctl_reader_counters.
 * Of a retired source they are the last ones. */
uint32_t runtimes_ring_count(const struct runtimes *r, unsigned i);
void runtimes_ring(const struct runtimes *r, unsigned i, uint32_t n, uint32_t *ret_nc_idx,
	uint32_t *ret_lane, struct ring_counters *ret);
uint64_t runtimes_names_lost(const struct runtimes *r, unsigned i);
uint32_t runtimes_sessions(const struct runtimes *r, unsigned i);
uint64_t runtimes_threads_gone(const struct runtimes *r, unsigned i);

/* Callers that were refused: not a wanted process, one that the recorder cannot see, not a control file, no hello in time, or no
 * descriptor left for it. */
uint64_t runtimes_refused(const struct runtimes *r);

/* Runtimes that were dropped because their shared memory broke its rules. */
uint64_t runtimes_failed(const struct runtimes *r);

/* Processes that were attached to and have become other programs since. */
uint64_t runtimes_replacements(const struct runtimes *r);

#endif
