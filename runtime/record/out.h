/* SPDX-License-Identifier: Apache-2.0 */
/*
 * out.h - the writer of trace_info.pb.
 */
#ifndef NTRACE_RECORD_OUT_H
#define NTRACE_RECORD_OUT_H

#include "runtime/record/ledger.h"
#include "runtime/record/merge.h"
#include "runtime/record/process.h"
#include "runtime/record/session.h"

/* A file that trace_info.pb names. */
struct out_profile {
	const char *name; /* relative to trace_info.pb */
	const char *type;
	uint64_t messages, bytes;
};

/* Appends trace_info.pb.  g: ledger of the capture and of this process.  0 or -ENOMEM. */
int out_trace_info(const struct session *s, const struct process *p,
	enum merge_kernel_events kernel_events, const struct ledger *g,
	const struct out_profile *profiles, size_t profile_count, struct pb_buf *to);

#endif
