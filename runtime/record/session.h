/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session.h - what a recording says beside its events: header, clocks, sources, names, counters,
 * samples, how it ended.
 *
 * Filled frame by frame in the order of the recording.  Nothing here grows with the number of events;
 * samples, of which there is one row per CPU and period, are encoded as they come, and wait in a file when they are many.
 */
#ifndef NTRACE_RECORD_SESSION_H
#define NTRACE_RECORD_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/event_codec.h"
#include "runtime/base/sampler.h"
#include "runtime/record/clock_map.h"
#include "runtime/record/device_clock.h"
#include "runtime/record/header.h"
#include "runtime/record/map64.h"
#include "runtime/record/modules.h"
#include "runtime/record/recording.h"
#include "runtime/record/refused.h"
#include "runtime/record/stored.h"

#define SESSION_MAX_NAME 4096u /* bytes of a name that are kept */
#define SESSION_SOURCES 65536u

struct session_name {
	uint64_t id;
	uint32_t source;
	uint32_t len;
	size_t offset; /* into name_text; valid UTF-8, no NUL */
	uint64_t from; /* it is not that of items before this time */
};

struct session_counter {
	uint32_t source, id, sub;
	uint64_t value; /* the newest */
};

struct session_source {
	uint32_t pid; /* 0: its REC_PROCESS is lost */
	uint16_t
		ordinal; /* of the runtimes under this pid, from 0; under 0 the number of the source */
	bool settled;	 /* what a REC_PROCESS says from now on changes nothing */
};

/* The clock of one core, as one runtime saw it. */
struct session_clock {
	uint16_t source;
	uint16_t core;	    /* + 1, 0 unknown */
	uint16_t of_device; /* which core of its device, + 1; 0: not said */
	struct device_clock clock;
};

/* Resident memory of a process, encoded as in host_mem.pb. */
struct session_mem {
	uint32_t pid;
	uint64_t messages;
	uint64_t first_ns, last_ns; /* times of the samples */
	struct stored data;
};

/* An interval between two CPU samples; in the recording of a program of itself one for all of them. */
struct session_interval {
	uint64_t from_ns, to_ns;
	uint64_t messages;
	uint64_t at, size; /* of its messages in session.cpu */
};

/* A file that a REC_FILE names. */
struct session_file {
	char *name; /* valid UTF-8 */
	char type[17];
	uint64_t bytes;
};

/* What REC_FILEs say that there is not: whose, and how many. */
struct session_lost {
	uint64_t count;
	char first[97]; /* valid UTF-8 */
};

#define SESSION_BAD_PROFILES 3u

/* The device profiles that the recording names. */
struct session_profiles {
	bool asked;		 /* for their rows */
	uint64_t named;		 /* by frames, each index once or not */
	uint64_t found;		 /* those that were looked for, when they were asked for */
	uint64_t bad, bad_bytes; /* of these, not whole */
	char why[SESSION_BAD_PROFILES][160]; /* of the first of them */
	uint64_t at_least;		     /* that lost more records than they say */
	/* Processes that left none, or not all. */
	uint64_t absent;
	uint32_t absent_pids[SESSION_BAD_PROFILES]; /* the first of them */
};

struct session {
	struct rec_header header; /* empty when its frame is lost */
	struct clock_map clock;
	struct session_name *names; /* in the order of the recording, each (source, id) once */
	char *name_text;
	struct session_counter *counters;
	struct session_source *sources; /* by number */
	struct session_mem *mems;
	struct session_clock *device_clocks;
	struct session_file *files;
	struct stored cpu;	     /* encoded as in cpu_util.pb */
	struct stored_place samples; /* where they wait */
	uint64_t samples_spilled;    /* bytes of them that had to */
	struct session_interval *intervals;
	size_t interval_count, interval_cap, name_count, name_cap, name_bytes, name_bytes_cap,
		counter_count, counter_cap, mem_count, mem_cap, device_clock_count,
		device_clock_cap, file_count, file_cap;
	uint64_t read_done;  /* raw records found: runtime records, finished calls, DMA path */
	uint64_t read_calls; /* finished calls among them */
	uint64_t read_dma;   /* records of the DMA path among them */
	uint64_t read;	     /* all raw records found, invalid ones too */
	uint64_t invalid;
	size_t process_count; /* that have files; known at the end */
	uint64_t seq_gaps;
	uint64_t foreign; /* records whose thread has no id of the host */
	uint64_t unnamed; /* runtimes with records of which the REC_PROCESS is lost */
	uint64_t seed; /* of all tables with keys from the recording; set before the first frame */
	bool has_header, is_virtual, is_simulated, has_runtime, has_failed; /* an nrt_init */
	struct rec_end end;						    /* when has_end */
	uint64_t end_ns;
	bool has_end, ended; /* ended: in order */
	struct rec_damage damage;
	struct session_profiles profiles;
	struct session_lost lost_files, unwritten_files; /* REC_FILE_LOST, REC_FILE_UNWRITTEN */
	struct refused refused;
	struct modules modules;

	struct map64 name_index, counter_index;
	struct map64 runtimes;	       /* pid -> how many have announced themselves */
	struct map64 inspected;	       /* pids that have had inspect sessions */
	struct sampler_cpu *last_cpus; /* the sample before */
	size_t last_cpu_count;
	uint64_t last_cpu_ns;
};

/* 0 or -ENOMEM.  session_free in either case. */
int session_init(struct session *s);
void session_free(struct session *s);

/* Takes a frame; those with events are left alone.  0 or -ENOMEM.  A payload that cannot be is
 * counted as one invalid record. */
int session_frame(struct session *s, const struct rec_frame *f, const uint8_t *payload);
/* The pid of a source that has a record now, which settles it. */
uint32_t session_settle(struct session *s, uint16_t source);
/* Did a program record itself?  NULL: no, or the header is lost. */
static inline const struct rec_session *session_own(const struct session *s)
{
	return s->header.info.session;
}
/* How the recorder stopped; NULL: nobody says. */
static inline const struct rec_end *session_end(const struct session *s)
{
	return s->has_end ? &s->end : NULL;
}
/* Is there a file of this type among those that the recording names? */
bool session_has_file(const struct session *s, const char *type);
/* Key for a table of a pair, which nobody can choose who does not know the seed.  Not 0. */
uint64_t session_key(const struct session *s, uint64_t a, uint64_t b);
/* A payload or record that cannot be. */
int session_invalid(struct session *s);
/* How many rows of a size are in a payload; what is left over behind them is counted as invalid. */
size_t session_rows(struct session *s, size_t bytes, size_t row);

/* A REC_NAME: the name of an id in what its source gives from a time on.  0 or -ENOMEM. */
int session_take_name(
	struct session *s, const struct rec_frame *f, const uint8_t *payload, uint64_t from);
/* What an id of a source was called at a time, or a zero length.  Valid until the next frame. */
const char *session_name(
	const struct session *s, uint16_t source, uint64_t id, uint64_t time, uint32_t *ret_len);

/* Has the process had, as far as is known now, inspect sessions of its own? */
bool session_inspected(const struct session *s, uint32_t pid);

/* Memory samples of a process, NULL when there are none. */
const struct session_mem *session_mem(const struct session *s, uint32_t pid);

/* Makes room for `need` elements in *(T **)array.  0, -ENOMEM. */
int session_grow(void *array, size_t *cap, size_t need, size_t element);

/* ---- out_host.c --------------------------------------------------------------------------- */

/* A sample of all CPUs, in CPU order; encodes the interval since the one before. */
int session_cpu(struct session *s, uint64_t time, const struct sampler_cpu *rows, size_t count);
/* What belongs into the cpu_util.pb of a process that was seen from first to last: the intervals that
 * touch this time.  A run of them from number *place on, which moves behind it; false: no more.  It is the bytes *ret_at to
 * *ret_at + *ret_size of s->cpu; its messages are added to *messages. */
bool session_cpu_run(const struct session *s, uint64_t first_ns, uint64_t last_ns, size_t *place,
	uint64_t *ret_at, uint64_t *ret_size, uint64_t *messages);
int session_memory(struct session *s, uint64_t time, uint32_t pid, uint64_t rss_bytes);

#endif
