/* SPDX-License-Identifier: Apache-2.0 */
/*
 * out.h - the writers of the four files of one process.  Each appends to an open outfile, which
 * keeps write errors for its commit, and returns 0 or -errno for anything else.
 */
#ifndef NTRACE_RECORD_OUT_H
#define NTRACE_RECORD_OUT_H

#include "runtime/base/file.h"
#include "runtime/record/ledger.h"
#include "runtime/record/load.h"
#include "runtime/record/timeline.h"

/* ntrace.pb; sets t->written. */
int out_ntrace(struct timeline *t, struct outfile *f, uint64_t *ret_messages);

/* cpu_util.pb: per interval between two samples one record per CPU. */
int out_cpu_util(const struct load *l, struct outfile *f, uint64_t *ret_messages);

/* host_mem.pb: samples of this process. */
int out_host_mem(const struct load *l, uint32_t pid, struct outfile *f, uint64_t *ret_messages);

/* A file that trace_info.pb names. */
struct out_profile {
	const char *name; /* relative to trace_info.pb */
	const char *type;
	uint64_t messages, bytes;
};

/* trace_info.pb.  g: ledger of the capture and of this process. */
int out_trace_info(const struct timeline *t, const struct ledger *g,
	const struct out_profile *profiles, size_t profile_count, struct outfile *f);

#endif
