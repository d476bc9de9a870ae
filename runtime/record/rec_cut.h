/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rec_cut.h - a part of a recording as a recording of its own.
 *
 * A span is kept whole when any part of it lies in the time that is wanted: its start may be older
 * and its stop newer.  Header, clock snapshots, devices, processes, names, losses and the end frame
 * are kept.  What is left out is counted (CUT_OUT), so that the ledger of a cut balances.
 */
#ifndef NTRACE_RECORD_REC_CUT_H
#define NTRACE_RECORD_REC_CUT_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/record/recording.h"

enum cut_time_kind {
	CUT_OPEN,     /* no limit */
	CUT_RELATIVE, /* ns since the first clock snapshot */
	CUT_EPOCH,    /* epoch ns */
};

struct cut_time {
	enum cut_time_kind kind;
	uint64_t ns;
};

#define CUT_MAX_CHOICES 64u

struct rec_cut_options {
	struct cut_time from, to; /* from <= t < to */
	uint32_t pids[CUT_MAX_CHOICES], cores[CUT_MAX_CHOICES];
	unsigned pid_count, core_count; /* 0: all */
};

/* Different values in order of appearance, as many as fit. */
struct rec_cut_found {
	uint32_t values[CUT_MAX_CHOICES];
	unsigned count, newest;
	bool more; /* there are others */
};

struct rec_cut_result {
	uint64_t from_ns, to_ns; /* BOOTTIME; to_ns UINT64_MAX: no limit */
	uint64_t kept, left_out; /* records */
	uint64_t bytes;		 /* of the new recording */
	bool in_work;		 /* the old one is still being written */
	bool ended;
	struct rec_damage damage; /* of the old one */
	/* What the old one covers: BOOTTIME of its first clock snapshot (0: unknown) and of its
	 * records (last_ns 0: it has none), their processes and the runtime's cores. */
	uint64_t begin_ns, first_ns, last_ns;
	struct rec_cut_found pids, cores;
	/* Device profiles: copied; left out because of a limit that they cannot be cut to; left out because they are
	 * missing or not as they were. */
	uint64_t profiles_kept, profiles_left_out, profiles_bad;
};

/*
 * Writes the part of the recording at `path` to the directory `out_path`, which must not exist
 * (-EEXIST).  A core keeps the records of that core and those of none, driver calls among them.
 * Device profiles of the processes are copied whole when neither time nor core is chosen, else they are left out.
 * What rec_reader_open says; -ENODATA: a time is given, and no clock snapshot is left to tell it by;
 * -ERANGE: `from` is not before `to`; -ENOMSG: something is chosen, and none of the records is in it; -EFBIG: the
 * header is so long that it cannot be rewritten; or -errno.  On error nothing is left; who is killed leaves
 * a hidden directory beside out_path at most.
 */
int rec_cut(const char *path, const char *out_path, const struct rec_cut_options *options,
	struct rec_cut_result *ret);

#endif
