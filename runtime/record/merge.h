/* SPDX-License-Identifier: Apache-2.0 */
/*
 * merge.h - from a recording to ntrace.pb, trace_info.pb, cpu_util.pb and host_mem.pb.
 *
 * The merge is a pure function of the recording: it reads no clock, no environment, no /proc, and
 * works in integers.  The same recording gives the same bytes on any machine, live or replayed.
 */
#ifndef NTRACE_RECORD_MERGE_H
#define NTRACE_RECORD_MERGE_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/record/failures.h"
#include "runtime/record/recording.h"

enum merge_kernel_events {
	MERGE_KERNEL_HINT,     /* event_type 0, name in hint (default) */
	MERGE_KERNEL_EXTENDED, /* event_type from 1000 on */
	MERGE_KERNEL_OFF,
};

/* "hint", "extended", "off", as in --kernel-events and trace_info.pb; NULL beyond the last. */
const char *merge_kernel_events_name(unsigned kernel_events);

/* "command", "asked", "no_space", "failed": the reasons of REC_END as in trace_info.pb; NULL beyond the last. */
const char *merge_end_name(unsigned reason);

/* The files of a process, in the order in which they are finished. */
enum merge_file { MERGE_NTRACE, MERGE_CPU_UTIL, MERGE_HOST_MEM, MERGE_TRACE_INFO, MERGE_FILES };
/* "ntrace.pb", ... */
const char *merge_file_name(enum merge_file which);

/* Takes what would be written, in place of a directory.  Calls return 0, or -errno, which ends the
 * merge with it and without a text. */
struct merge_sink {
	void *ctx;
	/* Before anything of a process.  name: that of its directory; it and what *ret_process is
	 * set to are the sink's. */
	int (*open)(void *ctx, uint32_t pid, const char *name, int64_t realtime_offset_ns,
		void **ret_process);
	/* Whole messages.  Those of ntrace.pb come in many calls while the merge runs, of several
	 * processes in turn; the others at its end, one file after the other, each in one or more calls (the first may be of 0 bytes),
	 * trace_info.pb in one, so that this is a process's last. */
	int (*write)(
		void *ctx, void *process, enum merge_file which, const uint8_t *data, size_t size);
};

struct merge_options {
	enum merge_kernel_events kernel_events;
	/* When it becomes non-zero the merge ends with -ECANCELED and leaves nothing half-written: a
	 * process has all its files or none.  May be NULL. */
	const volatile sig_atomic_t *cancel;
	size_t held_bytes;	       /* memory for events that wait for their turn; 0: 256 MiB */
	const struct merge_sink *sink; /* takes all output; out_dir is then NULL */
	bool leaf; /* out_dir, which is there, is a session's: its files go directly into it */
	bool only_at_rest; /* refuse a recording that is still being written */
	bool device;	   /* rows of the recording's device profiles (merge_recording alone) */
};

/* What was written for one process. */
struct merge_output {
	uint32_t pid;
	char *dir; /* <out>/<instance>_pid_<pid> (or ntrace-<instance>-<pid>, of a process with inspect
		    * sessions), with _2, _3 ... when that existed */
	uint64_t events, cpu_samples, mem_samples; /* messages per file */
	uint64_t bytes;				   /* of ntrace.pb */
	uint64_t spans;				   /* of the runtime, whole */
	uint64_t kernel_spans;			   /* whole */
	uint64_t open_spans;			   /* of both: their end was not seen */
	uint64_t device_spans;			   /* of device profiles, whole */
};

struct merge_ledger_row {
	uint32_t id; /* enum rec_counter_id */
	uint64_t value;
};

struct merge_result {
	struct merge_output *outputs;
	uint32_t output_count;
	struct merge_ledger_row ledger[REC_COUNTER_MAX]; /* summed over sources and cores */
	uint64_t lost;					 /* sum of the LOST rows */
	uint64_t seq_gaps; /* kernel records missing by sequence number */
	bool balanced;	   /* every stage's identity holds */
	bool ended;	   /* the recorder stopped in order: nothing is missing behind its end */
	bool is_virtual, is_simulated;
	bool is_cut;	    /* made by rec cut */
	bool is_session;    /* a program recorded itself */
	bool in_work;	    /* still being written: this is what there was so far */
	struct rec_end end; /* zero without a REC_END */
	struct rec_damage damage;
	bool counted;	   /* it has counters */
	uint64_t begin_ns; /* epoch ns: first clock snapshot */
	/* Device profiles that were asked for and are missing or not whole, and those that do not know how much they lost;
	 * runs of the device that none has. */
	uint64_t profiles_missing, runs_missing;
	uint64_t spilled;	  /* events that waited in the temporary file */
	uint64_t samples_spilled; /* bytes of samples that waited in files */
	char blind[24][512];	  /* what the active hooks could not see, one line each */
	uint32_t blind_count;
	struct failures_text *failures; /* what went wrong, in the order of pids */
	uint32_t failure_count;
};

/*
 * Merges the recording at `rec_path` into directories below `out_dir`.  0 or -errno; *ret_error is
 * then a text (to be freed) that says what failed on which path, or NULL when the recording could
 * not be opened (the codes of rec_reader_open), is in work (-EBUSY), or memory is short.  -ENODATA:
 * no clock snapshot is left.  On error outputs[] holds the processes that were written before it; the others left
 * nothing. merge_result_free in either case.
 */
int merge_recording(const char *rec_path, const char *out_dir, const struct merge_options *options,
	struct merge_result *ret, char **ret_error);
void merge_result_free(struct merge_result *r);

/* Frames from elsewhere than a recording's directory, as rec_reader gives them. */
struct merge_frames {
	/* 1 and a frame that is valid until the next call, 0 at the end, -errno. */
	int (*next)(void *ctx, const struct rec_frame **ret_frame, const uint8_t **ret_payload);
	void (*rewind)(void *ctx);
	struct rec_damage (*damage)(void *ctx);
	void *ctx;
};

/* As merge_recording.  out_dir NULL without a sink: nothing is kept, all goes to /dev/null. */
int merge_frames(const struct merge_frames *frames, const char *name, const char *out_dir,
	const struct merge_options *options, struct merge_result *ret, char **ret_error);

#endif
