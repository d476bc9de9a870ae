/* SPDX-License-Identifier: Apache-2.0 */
/*
 * encode_device.h - records of ntrace.pb about what a device's own records (a device profile) tell.
 *
 * There are millions of them and most of what stands on them is that of their unit or run, so these parts are
 * encoded once (struct attr_part) and copied.
 */
#ifndef NTRACE_RECORD_ENCODE_DEVICE_H
#define NTRACE_RECORD_ENCODE_DEVICE_H

#include "runtime/record/encode.h"

#define ATTR_PART_BYTES 80u

/* Some attributes, encoded. */
struct attr_part {
	uint32_t len;
	uint8_t bytes[ATTR_PART_BYTES];
};

/* Fills encoder->device_keys.  0 or -ENOMEM. */
int encode_device_init(struct encoder *e);

/* engine, unless that is "", and device_core_idx */
void encode_device_unit(
	const struct encoder *e, struct attr_part *to, const char *engine, uint32_t device_core);
/* exec_id */
void encode_device_run(const struct encoder *e, struct attr_part *to, uint64_t exec_id);
/* link.id, link.kind and link of the run that something is a part of. */
void encode_device_link(const struct encoder *e, struct attr_part *to, uint64_t id);

enum device_kind {
	DEVICE_START,
	DEVICE_STOP,
	DEVICE_START_LOST, /* a stop without its start: an instant */
	DEVICE_SEMAPHORE,
	DEVICE_ERROR,
};

/* What one record tells; times in BOOTTIME ns. */
struct device_event {
	enum device_kind kind;
	uint64_t time, duration, late_ns;
	uint64_t bound; /* of the times */
	uint64_t id;
	uint64_t ps;		 /* device's time; of a STOP how long it took */
	const char *unit, *what; /* the hint is unit.what, or what alone without a unit */
	uint32_t device;
	uint32_t core;				    /* logical + 1; 0 unknown */
	uint32_t index;				    /* of the instruction */
	uint32_t custom, subtype;		    /* as in the record */
	const struct attr_part *place, *run, *link; /* run and link may be NULL */
};

/* 0 or -ENOMEM. */
int encode_device(struct encoder *e, struct process *p, const struct device_event *d);

#endif
