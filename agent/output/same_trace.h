/* SPDX-License-Identifier: Apache-2.0 */
/*
 * same_trace.h - tells traces that were merged from the same recording.
 *
 * A merge into a directory that has the files already makes new ones beside them.  Whoever adds up what is
 * there would count everything twice.
 */
#ifndef NTRACE_OUTPUT_SAME_TRACE_H
#define NTRACE_OUTPUT_SAME_TRACE_H

#include "agent/output/trace_read.h"
#include "runtime/record/merge.h"

/* Are two of the traces of the same process in the same recording?  0; -ENOTUNIQ and a text (to be freed)
 * that names both; another -errno and a text, NULL for no memory.  A trace without a trace_info.pb, or with a
 * damaged one, is like no other. */
int same_trace_twice(const struct trace_set *set, char **ret_text);

/*
 * Are the files that a merge of the recording at rec_path would write below `out` there already?  1, and
 * *ret_text says where and *ret_result is the merge's; 0; what merge_recording says, *ret_text then its
 * text; -errno when what is there cannot be read.  *ret_text is to be freed.  Without a merged file below
 * `out` it costs nothing, else a merge into nothing.  merge_result_free in any case.
 */
int same_trace_merged(const char *rec_path, const char *out, const struct merge_options *options,
	struct merge_result *ret_result, char **ret_text);

#endif
