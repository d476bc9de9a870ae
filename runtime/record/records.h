/* SPDX-License-Identifier: Apache-2.0 */
/*
 * records.h - steps through the records of a KERNEL or RUNTIME payload, whatever its bytes are.
 */
#ifndef NTRACE_RECORD_RECORDS_H
#define NTRACE_RECORD_RECORDS_H

#include <string.h>

#include "bpf/neuron_event.h"
#include "runtime/record/recording.h"
#include "runtime/trace/record.h"

/* The driver call at `at` and the bytes it takes; 0: there is no whole one. */
static inline size_t records_call(
	const uint8_t *payload, size_t size, size_t at, struct nev_ioctl *ret)
{
	size_t n;

	if (size - at < sizeof(*ret))
		return 0;
	memcpy(ret, payload + at, sizeof(*ret));
	n = sizeof(*ret) + (size_t)ret->hdr.nargs * sizeof(uint64_t);
	if (ret->hdr.nargs > NEV_MAX_ARGS || size - at < n ||
		(ret->hdr.type != NEV_IOCTL_DONE && ret->hdr.type != NEV_IOCTL_START))
		return 0;
	return n;
}

/* The runtime record at `at`, which begins at sizeof(struct rec_runtime). */
static inline size_t records_runtime(
	const uint8_t *payload, size_t size, size_t at, struct trace_record *ret)
{
	if (size < at || size - at < sizeof(*ret))
		return 0;
	memcpy(ret, payload + at, sizeof(*ret));
	return sizeof(*ret);
}

static inline uint64_t records_call_end(const struct nev_ioctl *e)
{
	return e->hdr.type == NEV_IOCTL_DONE ? e->start_ns + e->duration_ns : e->start_ns;
}

#endif
