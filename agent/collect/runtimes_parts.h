/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runtimes_parts.h - what runtimes.c (rings) and runtimes_announce.c (connections) share.
 */
#ifndef NTRACE_COLLECT_RUNTIMES_PARTS_H
#define NTRACE_COLLECT_RUNTIMES_PARTS_H

#include <sys/stat.h>

#include "agent/collect/runtimes.h"
#include "agent/collect/threads.h"
#include "runtime/trace/attach.h"

#define MAX_STRANGERS 64u

/* What stays of a ring when its memory is let go. */
struct final_ring {
	uint32_t nc_idx, lane;
	struct ring_counters counters;
};

struct followed {
	struct runtime_source source;
	struct ctl_reader *reader; /* NULL once retired; then the final numbers hold */
	struct threads threads;
	int64_t shift_ns; /* to its times */
	dev_t dev;
	ino_t ino;
	int fd;	       /* connection, -1 when it ended */
	bool attached; /* through its mailbox; it has no connection */
	struct attach_page page;
	int maps;      /* of the memory that it was found in; -1: not known */
	bool replaced; /* by another program, in the same process (execve) */
	int pidfd;     /* -1: there was no descriptor for it */
	uint32_t final_count;
	struct final_ring *final;
	uint64_t final_names_lost;
	uint32_t final_sessions;
};

/* A connection that has not said hello. */
struct stranger {
	int fd;
	uint64_t since_ns; /* BOOTTIME */
};

struct runtimes {
	int listen_fd;
	int epoll_fd;
	int spare_fd;
	bool paused;   /* not listening until the next poll */
	char name[64]; /* with the leading '@' */
	uint32_t ring_capacity;
	uint16_t first_source;
	struct runtimes_sink sink;
	struct rlimit old_limit;
	uint64_t refused, failed, replaced;
	unsigned stranger_count;
	struct stranger strangers[MAX_STRANGERS]; /* oldest first */
	unsigned live_count;
	struct followed *live[RUNTIMES_MAX]; /* those of the list that have a reader */
	unsigned count, room;
	struct followed **list; /* all, by source */
};

/* ---- runtimes_announce.c ------------------------------------------------------------------ */

/* Opens the socket, names it and watches it.  0 or -errno; what was opened is closed by runtimes_close. */
int announcements_open(struct runtimes *r);
/* Listens again after a pause.  0 or -errno. */
int announcements_watch(struct runtimes *r);
/* Sends those away who did not say hello in time. */
int announcements_expire(struct runtimes *r, uint64_t now_ns);

/* ---- runtimes_attach.c --------------------------------------------------------------------- */

/* Closes a descriptor of the control file that is followed already. */
void runtimes_close_copy(struct followed *f, int memfd);
/* Has the process become another program since it was attached to? */
bool runtimes_replaced(struct runtimes *r, struct followed *f);
/* Asks those that were attached to for no more, and waits until they have heard, a second for all at the most. */
void runtimes_detach(struct runtimes *r);

/* ---- runtimes.c --------------------------------------------------------------------------- */

/* The runtime of a process with this control file, NULL: not followed. */
struct followed *runtimes_find(struct runtimes *r, pid_t pid, const struct stat *st);
/* A new one; takes memfd when it succeeds.  NULL: not possible, or its memory is not sound. */
struct followed *runtimes_follow(struct runtimes *r, pid_t pid, int memfd, const struct stat *st);
/* What a process is called, padded with zeros. */
void runtimes_read_comm(pid_t pid, char comm[16]);
/* Has the process ended?  Zombies are gone too. */
bool runtimes_gone(const struct followed *f);
/* Told to the sink, with its threads. */
int runtimes_tell(struct runtimes *r, struct followed *f);

#endif
