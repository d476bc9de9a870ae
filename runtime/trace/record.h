/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record.h - the 112-byte sys_trace record and its 40-byte payloads.
 *
 * Field order and offsets are those of the vendor's 2.31 engine as public documents describe them;
 * `status` lies in a hole of that layout and is ours.  Times are CLOCK_BOOTTIME ns in a ring
 * and are turned into epoch ns only at fetch and output.
 */
#ifndef NTRACE_TRACE_RECORD_H
#define NTRACE_TRACE_RECORD_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#define TRACE_NC_UNKNOWN 0xffffffffu /* nc_idx of an event that belongs to no known core */
#define TRACE_MAX_NC 256u
#define TRACE_ALL_NC (-1) /* where one of them can be chosen */
#define TRACE_PAYLOAD_BYTES 40u
#define TRACE_NAME_BYTES \
	255u /* of a name that an id stands for; of longer ones the rest is not kept */

enum trace_phase {
	TRACE_START = 0,
	TRACE_STOP = 1,
	TRACE_INSTANT = 2,
};

/* A pair of readings of one moment: device clock of the core, and host clock (BOOTTIME in a ring).
 * 16 bytes, part of several payloads. */
struct trace_sync_info {
	uint64_t nc_timestamp_ns;
	uint64_t cpu_timestamp_ns;
};

struct trace_record {
	uint32_t trace_type; /* enum trace_type, event_registry.h */
	uint32_t status;     /* NRT_STATUS of the call, on stops and instants; ours */
	uint64_t thread_id;  /* kernel thread id; of the device's events, the thread that waited */
	uint64_t id; /* sequence within the lane, the lane above it (ring.h): unique on the core */
	uint64_t nc_local_id; /* the same */
	uint64_t tracking_id; /* shared by start and stop; never 0; unique in the process */
	uint64_t timestamp_ns;
	uint8_t data[TRACE_PAYLOAD_BYTES];
	uint32_t phase; /* enum trace_phase */
	uint32_t nc_idx;
	uint64_t nrta_seq_id;
	uint8_t has_nrta_seq_id;
	uint8_t pad[7];
};

static_assert(sizeof(struct trace_record) == 112, "trace_record");
static_assert(offsetof(struct trace_record, thread_id) == 0x08, "thread_id");
static_assert(offsetof(struct trace_record, id) == 0x10, "id");
static_assert(offsetof(struct trace_record, nc_local_id) == 0x18, "nc_local_id");
static_assert(offsetof(struct trace_record, tracking_id) == 0x20, "tracking_id");
static_assert(offsetof(struct trace_record, timestamp_ns) == 0x28, "timestamp_ns");
static_assert(offsetof(struct trace_record, data) == 0x30, "data");
static_assert(offsetof(struct trace_record, phase) == 0x58, "phase");
static_assert(offsetof(struct trace_record, nc_idx) == 0x5c, "nc_idx");
static_assert(offsetof(struct trace_record, nrta_seq_id) == 0x60, "nrta_seq_id");
static_assert(offsetof(struct trace_record, has_nrta_seq_id) == 0x68, "has_nrta_seq_id");

#endif
