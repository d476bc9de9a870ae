/* SPDX-License-Identifier: Apache-2.0 */
/*
 * perfetto.h - a trace as a file for Perfetto.
 *
 * docs/perfetto.md shows the tracks.  The file is streamed: however many events there are, memory holds
 * what is open, what is interned, 10 s of copy rates, a line for each thread and core that was seen, and
 * the times at which CPUs were sampled.
 */
#ifndef NTRACE_OUTPUT_PERFETTO_H
#define NTRACE_OUTPUT_PERFETTO_H

#include <stddef.h>
#include <stdbool.h>
#include <stdint.h>

#include "agent/output/feed.h"

/* Takes bytes of the file in their order; 0 or -errno. */
typedef int (*perfetto_write_fn)(void *ctx, const void *data, size_t size);

/* What was written. */
struct perfetto_result {
	uint64_t events; /* of ntrace.pb files */
	uint64_t bytes;
	uint64_t packets;
	uint32_t processes;
	bool device_left; /* it has device profiles, which were not asked for */
};

/*
 * Exports the trace at path, as feed_trace takes it.  0 or -errno as that returns them; -EBADMSG also
 * when all that can be read was written.  *ret_write_failed: the error came from write.
 */
int perfetto_export(const char *path, const struct feed_options *options, perfetto_write_fn write,
	void *ctx, struct perfetto_result *ret, bool *ret_write_failed, char **ret_error);

#endif
