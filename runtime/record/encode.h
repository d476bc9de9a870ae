/* SPDX-License-Identifier: Apache-2.0 */
/*
 * encode.h - records of ntrace.pb, straight into a process's buffer.
 */
#ifndef NTRACE_RECORD_ENCODE_H
#define NTRACE_RECORD_ENCODE_H

#include <stddef.h>
#include <stdint.h>

#include "proto/event_codec.h"
#include "runtime/record/clock_map.h"
#include "runtime/record/item.h"
#include "runtime/record/merge.h"
#include "runtime/record/process.h"
#include "runtime/record/session.h"
#include "vmlinux/ioctl_table.h"

struct interval {
	uint64_t from, to;
};

/* Driver work inside a span, on its thread. */
struct work {
	uint64_t ioctls, ioctl_ns, errors, copies, dma_bytes, dma_ns;
	struct interval *open; /* union of copies that later ones may still overlap; ascending */
	uint32_t open_count, open_cap;
	int64_t last_error;
};

struct event_out {
	enum ntrace_event_phase phase;
	uint64_t id, parent;
	const struct work *work; /* NULL: none */
	uint64_t call;		 /* of the DMA path: id of the driver call it belongs to; 0: none */
	int64_t error;		 /* of a driver call that ends, as call_error() has it; 0: none */
};

struct attr_key;
struct type_keys;

struct encoder {
	const struct session *session;
	enum merge_kernel_events kernel_events;
	struct type_keys *types;      /* [type][phase] */
	struct attr_key *keys;	      /* encode.c's own */
	struct attr_key *roles;	      /* [role] */
	struct attr_key *device_keys; /* encode_device.c's own */
	struct attr_key *dma_keys;    /* encode_dma.c's own */
	uint32_t request;	      /* of the row that was looked up last */
	uint32_t name_len, fields;
	const struct ioctl_row *row;
	/* Takes what a process's buffer holds. */
	void (*flush)(void *ctx, struct process *p);
	void *ctx;
};

/* The caller sets flush and ctx.  0 or -ENOMEM; encoder_free in any case. */
int encoder_init(
	struct encoder *e, const struct session *session, enum merge_kernel_events kernel_events);
void encoder_free(struct encoder *e);

/* 0 or -ENOMEM. */
int encode_item(
	struct encoder *e, struct process *p, const struct item *i, const struct event_out *out);
int encode_step(struct encoder *e, struct process *p, const struct clock_step *s, uint64_t id);
/* The driver has come or gone: INSTANT driver_loaded or driver_unloaded. */
int encode_module(struct encoder *e, struct process *p, const struct module_change *m, uint64_t id);

/* The row of a request and bytes of a copy that was made, for whoever sums them. */
const struct ioctl_row *encode_row(struct encoder *e, uint32_t request);

#endif
