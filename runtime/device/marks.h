/* SPDX-License-Identifier: Apache-2.0 */
/*
 * marks.h - marking NeuronCores as one's own, in the form that the driver knows.
 *
 * Marks are advice that all runtimes keep: the driver holds a table core -> process, and nothing else
 * looks at it.  The newer request has a map of 512 cores, of which this library uses the first
 * CORES_MAX; the older one a map of 64.  A driver without the newer one answers it with EINVAL
 * or ENOTTY, and the older one is used from then on.  One thread.
 */
#ifndef NTRACE_DEVICE_MARKS_H
#define NTRACE_DEVICE_MARKS_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/device/cores.h"

#define MARKS_OLD_CORES 64u

struct marks {
	/* Sends a request on the query handle: 0 or -errno. */
	int (*send)(void *context, uint32_t cmd, void *arg);
	void *context;
	bool old_form; /* the driver is known to lack the newer requests */
};

/* Marks `count` neighbouring free cores between first and last.  0: *ret is which; -EBUSY: there are not
 * so many, *ret_free is the longest free run that the driver saw; -EDOM: the driver has the older
 * request, which does not reach these cores; -EPROTO: it marked something else; otherwise what the
 * driver said.  The driver goes on two cores behind a blocked one, so only a window of exactly
 * `count` cores is searched reliably. */
int marks_take(struct marks *m, uint32_t count, uint32_t first, uint32_t last, struct core_map *ret,
	uint32_t *ret_free);

/* Gives those of them back that are this process's.  0 or -errno. */
int marks_give(struct marks *m, const struct core_map *map);

#endif
