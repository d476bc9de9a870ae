/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inspect_spool.h - the thread of an inspect session: what the runtime and the host tell goes into
 * a recording every 100 ms and, at the end, from there into the four .pb files.
 *
 * The thread "nrt-inspect" owns the recording (runtime/record), the reader of the rings
 * (CTL_SUB_INSPECT) and the samples.  The program dies in whatever way: what is older than 100 ms
 * is in `recording` in the session's directory, and `ntrace salvage` makes the files from it.
 * Whatever goes wrong with the recording is said once, ends it in order, and leaves the program
 * alone.
 *
 * One owner, the controller, whose calls come one at a time; each may be made in the thread itself,
 * from `asked`.  The thread blocks all signals, and takes no lock of the controller but by `asked`.
 */
#ifndef NTRACE_PROFILE_INSPECT_SPOOL_H
#define NTRACE_PROFILE_INSPECT_SPOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/record/rec_session.h"
#include "runtime/record/recording.h"

struct inspect_dir;
struct inspect_spool;
struct nrt_sys_trace_config;

/* What trace_info.pb says of the session.  All of it is copied by inspect_spool_open; NULL and 0:
 * not known, left out. */
struct inspect_info {
	int32_t session_id;
	bool enabled, on_fail;
	const char *device_profile;	   /* mode in effect: "off", "model", "session" */
	const char *device_profile_wanted; /* mode that was asked for */
	uint32_t activities;		   /* in effect: INSPECT_* of inspect_config.h */
	const char *layout;		   /* of the directory: "flat", "timestamp", "seed" */
	uint32_t arch;			   /* driver's number: 2, 3, 4 */
	uint32_t logical_cores;		   /* that the process sees: 0 ... - 1 */
	uint32_t logical_nc_size;	   /* physical cores per logical one */
	const bool *nc; /* TRACE_MAX_NC: cores with device profiles; NULL: none */
	const char *instance_id;
	const char *runtime; /* version of the interface */
	const char *driver;  /* version */
	const struct rec_device *devices;
	uint32_t device_count;
	uint32_t is_virtual; /* as in struct rec_process */
	/* NEURON_RT_INSPECT_* and NTRACE_* that were in effect, "NAME=value"; ends with NULL.
	 * NULL: none */
	const char *const *environment;
	/* Ends with one without `what`.  NULL: nothing is off. */
	const struct rec_session_off *off;
};

struct inspect_spool_wish {
	/* Where; stays valid until finish or drop.  A null directory: samples and rings are not
	 * read, nothing is written. */
	const struct inspect_dir *dir;
	/* Types, cores and number of the events; copied.  NULL: no events. */
	const struct nrt_sys_trace_config *events;
	bool cpu_util, host_memory;
	uint32_t period_ms; /* of these two: 10 to 60000; 0: as NTRACE_INSPECT_PERIOD_MS says */
	const struct inspect_info *info;
	/*
	 * A signal wants the session to end (inspect_end.h); in the thread, when everything is
	 * flushed.  finish: the process dies after it, so the session is to be ended now, by
	 * inspect_spool_finish among others.  false: it goes on. May be NULL.
	 */
	void (*asked)(void *ctx, bool finish);
	void *ctx;
};

/* What became of it. */
struct inspect_outcome {
	int error; /* 0: the four files are there, or the directory is null; else the first -errno */
	bool is_kept;	  /* the recording is still there, for salvage or because it was wanted */
	uint64_t events;  /* in ntrace.pb */
	uint64_t lost;	  /* records of events, by all causes */
	uint64_t samples; /* in cpu_util.pb and host_mem.pb */
	double seconds;	  /* that making the files took */
};

/*
 * Subscribes to the events, makes the recording and starts the thread; all or nothing.  When it
 * returns the header, a clock snapshot and the first sample are on their way, and no event from
 * then on is missed.  0 or -errno, said in the log.
 */
int inspect_spool_open(const struct inspect_spool_wish *wish, struct inspect_spool **ret);

/* A file of the session that lies in its directory (dir->work) becomes a row of collected_profiles:
 * name without directory; type: "ntff", "neff".  Any thread.  0 or -errno. */
int inspect_spool_add_file(
	struct inspect_spool *s, const char *name, const char *type, uint64_t bytes);

/*
 * Ends it: unsubscribes, reads what is left, ends and joins the thread (unless called in it, then
 * it ends when the caller returns to it), makes the .pb files in dir->work, removes the recording
 * (NTRACE_KEEP_RECORDING=1 keeps it).  s is gone. The first error, as ret->error; the files that
 * could not be made are not there, and the recording stays.
 */
int inspect_spool_finish(
	struct inspect_spool *s, enum rec_end_reason reason, struct inspect_outcome *ret);

/* Takes it back: no thread, no subscription, no recording, no files.  NULL is fine. */
void inspect_spool_drop(struct inspect_spool *s);

#endif
