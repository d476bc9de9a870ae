/* SPDX-License-Identifier: Apache-2.0 */
/*
 * collector.h - the notifications of NeuronCores, for whoever makes profiles of them.
 *
 * The first subscriber of a logical core opens its profile rings, the last one closes them.  One thread empties the
 * rings of all cores; the rings that an execution reads itself come through the taps.  What comes is kept once, in
 * pieces that are only ever appended to; each subscriber has a cursor, and a piece goes when the last cursor and the last
 * struct collector_data that needs it have gone.
 *
 * At most NTRACE_PROFILE_MAX_MB are kept for a logical core: what comes beyond is dropped and counted.  Losses never
 * change how an execution ends.
 *
 * Any thread that keeps nrt_close out (api_enter, profile_enter), but a cursor belongs to one thread at a time.  Functions that return
 * NRT_STATUS have said in the log what was wrong.
 */
#ifndef NTRACE_PROFILE_COLLECTOR_H
#define NTRACE_PROFILE_COLLECTOR_H

#include <stdbool.h>
#include <stdint.h>

#include <nrt/nrt_status.h>

#include "proto/notification.h"
#include "runtime/base/clock.h"
#include "runtime/profile/notification_types.h"

struct device_core;
struct collector_cursor;
struct collector_piece;

/* Records one behind another. */
struct collector_span {
	const struct notification *records;
	uint32_t count;
	struct collector_piece *piece; /* the collector's */
};

/* What came from one ring, in the order in which the device wrote it. */
struct collector_row {
	enum notification_kind kind;
	enum ntff_trace_type trace_type;
	enum ntff_block_type block_type;
	uint32_t engine; /* engine or DMA queue */
	uint32_t part;	 /* which physical core of the logical one */
	uint32_t nd_idx; /* N of neuronN */
	uint32_t nc_idx; /* physical core within the device */
	uint64_t count;	 /* records in all spans */
	uint32_t span_count;
	struct collector_span *spans;
	uint64_t lost;	    /* that the device wrote, or wanted to, and nobody could read */
	bool lost_at_least; /* there may be more of them than `lost` */
	uint64_t
		replaced; /* of the lost ones: in rings in whose place the device has put another */
	bool was_replaced; /* it did; then there may be more of those */
	bool unasked;	   /* the device did not answer: there may be more of all */
	bool given_back;   /* the program needed the ring's memory: there may be more */
	bool doubtful;	   /* else the device does not count, and there may be more */
	uint64_t dropped;  /* that were read and not kept: the limit, or no memory; exact */
	uint64_t ring_bytes;
};

/* A run of a program on a physical core, as the host saw it; in the order of their ends. */
struct collector_run {
	uint32_t part, nd_idx, nc_idx;
	uint32_t exec_id;
	uint64_t model_id;     /* of its name, as in events */
	uint64_t model_number; /* of the load, from 1 */
	char model_name[256];
	uint64_t start_ps, end_ps; /* as far as started, ended; else 0 */
	bool started, ended;
	uint32_t status;	/* NRT_STATUS */
	uint64_t host_start_ns; /* BOOTTIME, just before it was submitted */
	uint64_t host_end_ns;	/* and when its end had been read */
};

/* One moment in two clocks: the core's was device_ps when BOOTTIME was boot_ns, give or take bound_ns. */
struct collector_sync {
	uint32_t part, nd_idx, nc_idx;
	uint32_t exec_id; /* 0: of no execution */
	uint64_t device_ps;
	uint64_t boot_ns;
	uint64_t bound_ns;
	int64_t real_offset_ns; /* REALTIME - BOOTTIME then */
};

/* What a subscriber gets.  Rows: for each physical core, the kinds in the order of the table, each by engine; also those
 * without records. */
struct collector_data {
	uint32_t row_count, run_count, sync_count;
	struct collector_row *rows;
	struct collector_run *runs;
	struct collector_sync *syncs;
	uint64_t runs_dropped;		     /* beyond the limit, too */
	int unasked;			     /* -errno of a device that did not answer, or 0 */
	uint64_t boot_ns_begin, boot_ns_end; /* from when to when this is complete */
	void *spans;			     /* the collector's */
};

/* Begins with what comes from now on.  vnc: logical core of this process.  NRT_INVALID: there is none such;
 * NRT_RESOURCE: no memory for rings, here or on the device; otherwise what the device answered. */
NRT_STATUS collector_subscribe(uint32_t vnc, struct collector_cursor **ret);

/* NULL is harmless. */
void collector_unsubscribe(struct collector_cursor *c);

/* Everything since the cursor's place, all that the device has written until this call included; the cursor is behind it
 * then.  Spans are not copied: what *ret has counts as kept until collector_data_free.  NRT_RESOURCE: no memory, and the
 * cursor has not moved. */
NRT_STATUS collector_read(struct collector_cursor *c, struct collector_data *ret);

/* Can all that collector_read needs be had until then?  lock_within.h. */
bool collector_is_free(struct collector_cursor *c, struct boot_ns until);

/* Passes over everything until now. */
void collector_skip(struct collector_cursor *c);

/* Gives back what collector_read gave; also after nrt_close.  Leaves it empty. */
void collector_data_free(struct collector_data *data);

/* The device of `core` has no room for what the program needs: gives some of the memory of its profile rings back.
 * false: there is none. */
bool collector_give_room(const struct device_core *core);

/* Copies the records of a row to a place for row->count of them. */
void collector_row_copy(const struct collector_row *row, struct notification *to);

/* For nrt_close, when no call is in any more: ends the thread, closes what is open.  Cursors that are left may only be
 * unsubscribed. */
void collector_close(void);

#endif
