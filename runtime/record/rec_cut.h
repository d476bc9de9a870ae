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

struct rec_cut_result {
	uint64_t from_ns, to_ns; /* BOOTTIME */
	uint64_t kept, left_out; /* records */
	uint64_t bytes;		 /* of the new recording */
	bool in_work;		 /* the old one is still being written */
	bool ended;
	struct rec_damage damage; /* of the old one */
};

/*
 * Writes the part of the recording at `path` to the directory `out_path`, which must not exist
 * (-EEXIST).  A core keeps the records of that core and those of none, driver calls among them.
 * What rec_reader_open says; -ENODATA: a time is given, and no clock snapshot is left to tell it by;
 * or -errno.  On error nothing is left; who is killed leaves
 * a hidden directory beside out_path at most.
 */
int rec_cut(const char *path, const char *out_path, const struct rec_cut_options *options,
	struct rec_cut_result *ret);

#endif
