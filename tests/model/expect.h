/* SPDX-License-Identifier: Apache-2.0 */
/*
 * expect.h - what must stand in one process's ntrace.pb, found by brute force from the rules.
 */
#ifndef NTRACE_TESTS_EXPECT_H
#define NTRACE_TESTS_EXPECT_H

#include "tests/model/model.h"
#include "tests/unit/trace_file.h"

enum want_side { WANT_RUNTIME, WANT_KERNEL, WANT_MARKER };
enum want_kind { WANT_SPAN, WANT_OPEN, WANT_INSTANT, WANT_LOST, WANT_DUPLICATE, WANT_INVALID };
enum want_form { AT_STOP, AT_START, AT_ZERO_START, AT_ZERO_STOP, AT_INSTANT };

#define WANT_NONE UINT32_MAX

/* A span or instant as it must be written. */
struct want {
	enum want_side side;
	enum want_kind kind;
	uint32_t index; /* of the span, call or clock step */
	const struct model_record *first, *last;
	const struct ntrace_event_view *start_event, *stop_event; /* in the file */
	uint64_t start, end;					  /* as written */
	uint64_t seq, stop_seq;
	uint32_t tid;	/* 0: on no thread */
	uint32_t began; /* thread it began on; differs when it changed threads */
	uint32_t source, place, type;
	uint32_t start_at, stop_at; /* in the order of all that is written */
	uint32_t closed_at;	    /* open spans: where they have certainly ended */
	uint32_t shown_at;	    /* where another start surely shows that it has ended */
	uint32_t doubt_at;	    /* where it can first be taken for one that lost its stop */
	int64_t old_step, new_step;
};

struct want_step {
	uint64_t time;
	uint32_t want;
	enum want_form form;
};

#define WANTS (MODEL_RECORDS + MODEL_CLOCKS)

struct expect {
	struct model *m;
	uint32_t process;
	struct want wants[WANTS];
	uint32_t count;
	struct want_step steps[2 * WANTS];
	uint32_t step_count;
	uint64_t read, announced, calls, lost; /* records; what the ledger must say */
	uint64_t runtime_spans, kernel_spans, open_spans, device_runs;
};

struct driver_sums {
	uint64_t ioctls, ioctl_ns, copies, dma_bytes, dma_ns, errors;
	uint64_t dma_most;		 /* the copies one by one */
	bool missed;			 /* of a call it was thought that no end would come */
	int32_t last_error, other_error; /* of the call that began last, and that ended last */
};

/* The spans and instants of a process, from what is left of the recording. */
void expect_make(struct expect *x, struct model *m, uint32_t process);
/* When the written times are known: order, and where open spans end. */
void expect_order(struct expect *x);
/* The nearest span around one that began before place `before` in the order; WANT_NONE: there is
 * none. */
uint32_t expect_parent(const struct expect *x, uint32_t want, uint32_t before);
/* Does span `outer` contain span or instant `inner`? */
bool expect_contains(const struct expect *x, const struct want *outer, const struct want *inner);
struct driver_sums expect_sums(const struct expect *x, uint32_t want);
/* What a device run must link to exactly, if anything. */
uint32_t expect_link(const struct expect *x, uint32_t run, bool *ret_exact);
/* The wait for a device run by its name alone; NULL: none is left. */
const struct want *expect_wait(const struct expect *x, const struct want *run);
/* What a device run of impossible times must point to; WANT_NONE: nothing.  *ret_exact: it
 * must be known. */
uint32_t expect_cause(const struct expect *x, uint32_t run, bool *ret_exact);
/* The newest reading of a run's core that the recording has before a record; NULL: none. */
const struct model_span *expect_sync(
	const struct model *m, const struct model_span *run, const struct model_record *before);
/* A run that was expected as a span is an instant, its times being impossible. */
void expect_invalid(struct expect *x, struct want *w);
/* May it be inferred that a run belongs to this submit, or (WANT_NONE) to none? */
bool expect_may_infer(const struct expect *x, uint32_t run, uint32_t link);

#endif
