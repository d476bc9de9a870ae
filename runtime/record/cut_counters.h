/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cut_counters.h - the counters of a cut: those of the recording that is cut, and what the cut leaves out,
 * so that the ledger of either is the same up to the recording stage.
 */
#ifndef NTRACE_RECORD_CUT_COUNTERS_H
#define NTRACE_RECORD_CUT_COUNTERS_H

#include <stdint.h>

#include "runtime/record/footer.h"
#include "runtime/record/ledger.h"
#include "runtime/record/recording.h"

/* Writes them as COUNTERS frames of the time.  newest: the counters that were read; they are sorted, and of a
 * recorder that died brought up to what was found.  found: what is in the recording that is cut; kept: how
 * many of its records are in the cut.  0 or what rec_writer_frame_at says. */
int cut_counters_write(struct rec_writer *w, struct footer *newest, struct ledger_found *found,
	uint64_t kept, uint64_t time_ns);

#endif
