/* SPDX-License-Identifier: Apache-2.0 */
/*
 * refused.h - requests that the driver refused because they are of another version of it.
 *
 * The same number of a request has other sizes in other drivers, and a driver answers EINVAL or ENOTTY
 * to a size that is not its own.  That is told apart from an argument that was wrong by the driver's
 * version and the request table.
 */
#ifndef NTRACE_RECORD_REFUSED_H
#define NTRACE_RECORD_REFUSED_H

#include <stddef.h>
#include <stdint.h>

#include "bpf/neuron_event.h"
#include "runtime/record/modules.h"

#define REFUSED_ROWS 4u
#define REFUSED_BYTES 224u

struct refused_row {
	uint32_t request;
	int32_t result;
	uint64_t calls;
	char driver[33]; /* version of the one that refused it */
};

struct refused {
	struct refused_row rows[REFUSED_ROWS]; /* in the order of their first call */
	uint32_t count;
	uint64_t more_calls; /* of requests beyond */
};

/* Notes a call that has ended; m, first: as of modules_driver_at. */
void refused_note(
	struct refused *r, const struct modules *m, const char *first, const struct nev_ioctl *e);
/* The sentence about a row: what was refused by which version, and which version has it. */
void refused_line(const struct refused_row *r, char *ret, size_t size);

#endif
