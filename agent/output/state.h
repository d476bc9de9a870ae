/* SPDX-License-Identifier: Apache-2.0 */
/*
 * state.h - is a trace all that there was?  One rule for all commands that read traces or recordings: what
 * has a fault here is damaged or incomplete, and the exit code is EXIT_DATA.
 */
#ifndef NTRACE_OUTPUT_STATE_H
#define NTRACE_OUTPUT_STATE_H

#include <stdbool.h>

#include "proto/neuron_trace.pb-c.h"
#include "runtime/record/merge.h"

#define STATE_TEXT 512

struct trace_state {
	bool in_work;	    /* still being written when it was read */
	bool ended;	    /* in order */
	bool session;	    /* a program recorded itself: there was no recorder */
	bool cut;	    /* a part that rec cut made: of damage before that it knows nothing */
	struct rec_end end; /* zero without one */
	struct rec_damage damage;
};

struct trace_state state_of_merge(const struct merge_result *m);
struct trace_state state_of_info(const Ntff__NtraceInfo *info);

/* What is wrong with it, in words; false: nothing, and "". */
bool state_fault(const struct trace_state *s, char text[STATE_TEXT]);
/* What of its losses cannot be known, as the begin of a line that goes on with those that are; "" when all are
 * known. */
const char *state_unknown(const struct trace_state *s);
/* How much is damaged: "20 bytes skipped in 1 place, 5 bytes cut off at the end", and which segments, where that
 * can be told: "segment 3 is missing"; "" for nothing. */
void state_damage(const struct rec_damage *d, char text[STATE_TEXT]);

#endif
