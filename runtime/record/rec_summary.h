/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rec_summary.h - what a recording holds: one pass over all of it, nothing is written.
 *
 * Made for `ntrace rec info` and `rec verify`.
 */
#ifndef NTRACE_RECORD_REC_SUMMARY_H
#define NTRACE_RECORD_REC_SUMMARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/record/header.h"
#include "runtime/record/ledger.h"
#include "runtime/record/modules.h"
#include "runtime/record/recording.h"

#define SUMMARY_TYPES 32u

struct summary_type {
	uint64_t frames, bytes; /* payloads as they were before they were made smaller */
};

struct summary_source {
	uint16_t source;
	bool is_process; /* has a PROCESS frame */
	struct rec_process process;
	uint64_t records;	    /* runtime records, or driver calls and DMA path */
	uint64_t first_ns, last_ns; /* of them */
	uint64_t watermark;	    /* newest */
};

struct summary_profile {
	struct rec_device_profile frame;
	int error; /* 0: the file is as it was; or what device_sum_verify says */
};

struct rec_summary {
	uint32_t version; /* of the newest segment */
	struct rec_header header;
	bool has_header;
	struct summary_type types[SUMMARY_TYPES];
	struct summary_source *sources; /* ascending */
	size_t source_count;
	struct summary_profile *profiles; /* in the order of the recording */
	size_t profile_count, profile_cap;
	struct clock_snapshot clock; /* the first that can be; all 0: none */
	uint64_t first_ns, last_ns;  /* of all records; 0: none */
	uint64_t stored_bytes;	     /* of the segments' blocks (version 2) */
	uint64_t blocks;
	uint64_t invalid; /* records that are not whole */
	struct ledger ledger;
	struct modules modules;	      /* the driver's comings and goings */
	struct rec_failure *failures; /* in the order of the recording */
	size_t failure_count, failure_cap;
	struct rec_hook_cost
		*hook_cost; /* rows of the newest frame, the dearest first; NULL: there is none */
	size_t hook_cost_count;
	uint64_t seq_gaps;   /* driver calls that are missing by number */
	uint64_t open_spans; /* begun and not ended */
	bool in_work;	     /* still being written */
	bool ended;
	struct rec_end end;
	struct rec_damage damage;
	bool has_footer;
	uint64_t behind_end; /* frames but the footer behind the end frame, which is the last */
	const char *footer_fault; /* NULL: it agrees with what was found */
};

/* 0, what rec_reader_open says, or -errno.  rec_summary_free in any case. */
int rec_summary_make(const char *path, struct rec_summary *ret);
void rec_summary_free(struct rec_summary *s);

/* What is wrong with a device profile; NULL: nothing, or there is none. */
const char *summary_profile_fault(const struct summary_profile *p);

#endif
