/* SPDX-License-Identifier: Apache-2.0 */
/*
 * residents.h - the processes whose resident memory is sampled.
 *
 * A process is noted when it is first seen and forgotten when it is gone, so what this holds and what
 * a round costs depend on the processes that live, not on those that ever did.  A round takes a
 * bounded number of samples and goes on where the last one ended; what it leaves out is counted.
 */
#ifndef NTRACE_COLLECT_RESIDENTS_H
#define NTRACE_COLLECT_RESIDENTS_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/record/map64.h"
#include "runtime/record/recording.h"

#define RESIDENTS_ROUND 1024u /* samples in a second; each reads a file of /proc */

/* Zero-initialise; residents_free at the end. */
struct residents {
	uint32_t *pids;
	size_t count, cap, next;
	struct map64 places; /* pid + 1 -> place in pids */
	uint64_t skipped;    /* samples left out */
};

/* Notes a process and samples it, unless it is known or gone.  0 or -errno. */
int residents_know(struct residents *m, struct rec_writer *rec, uint32_t pid);
/* A round of at most `most` samples of processes that live.  0 or -errno. */
int residents_sample(struct residents *m, struct rec_writer *rec, size_t most);
void residents_free(struct residents *m);

#endif
