/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ingest.h - raw records become items, with what can be known of them before their time comes.
 *
 * The essay on order, watermarks and lateness stands in ingest.c.
 */
#ifndef NTRACE_RECORD_INGEST_H
#define NTRACE_RECORD_INGEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/record/held.h"
#include "runtime/record/map64.h"
#include "runtime/record/process.h"
#include "runtime/record/sequence.h"
#include "runtime/record/session.h"
#include "runtime/record/submits.h"
#include "runtime/record/thread_map.h"

/* An item that cannot be put yet. */
enum waiting_for {
	WAIT_START,  /* a stop whose start has not come */
	WAIT_SUBMIT, /* the stop of a device run that no wait explains */
	WAIT_STOP,   /* the start of a device's span, which is judged together with its stop */
};

struct waiting {
	struct item item; /* a copy: what waits for long must not keep a page of the queue */
	struct submits_run of;
	uint32_t span; /* of open_spans, which knows its place; not of a run */
	uint8_t what;  /* enum waiting_for */
	bool gone;     /* what it waited for came */
};

/* Where in the payload of an event type the device's time stands, by phase, and which physical core it is of; 0xff:
 * nowhere. */
struct device_layout {
	uint8_t nc[2];
	uint8_t core;
};

/* A core may be made of two physical ones, each with its clock: the one with the even number and the other. */
#define CORE_CLOCKS 2u

struct ingest_source {
	uint16_t number;
	bool has_process;
	bool foreign; /* its process is in another pid namespace: threads says which are which */
	uint32_t process;
	bool ended;	  /* it said that nothing at all will come: it holds nobody back */
	uint64_t said;	  /* newest watermark of its own, but for that */
	uint64_t mark;	  /* what counts: held back by runs that are awaited */
	uint64_t *newest; /* by core: id of the last record */
	uint32_t *clocks; /* by core and CORE_CLOCKS: place + 1 in session->device_clocks */
	struct submits *submits;
	struct thread_map threads;
	struct waiting *waiting;  /* in the order in which they came */
	uint64_t *waiting_blocks; /* of so many of them in a row: no item that waits is older */
	size_t waiting_count, waiting_gone, waiting_cap, waiting_blocks_cap;
	uint64_t waiting_min; /* of all */
};

/* A span of which only the start has come (or only the stop: orphan). */
struct open_span {
	uint64_t start, told; /* as written, as recorded */
	uint64_t seq;
	struct item *item; /* the start's in the queue, once it is there */
	size_t waiting;	   /* place of the start or the orphan, while it waits */
	uint64_t exec_id;
	/* Of a device: its start before it was moved to its submit, the bound of that, the submit. */
	uint64_t before, bound, link;
	uint32_t generation, tid;
	uint16_t place, type;
	bool orphan, hardware, corrected;
	uint8_t judged; /* of a device: enum item_kind of its start, ITEM_KINDS: it waits */
	uint8_t clock;	/* of a device: which of its core's clocks it is of */
};

/* The call of a thread that ended last. */
struct last_call {
	uint64_t start, end;
	uint32_t tid;
};

struct id_page;

/* Is told of device runs, their physical core, and the mark of their source when they come. */
typedef void (*ingest_run_fn)(
	void *ctx, const struct item *start, uint32_t exec_id, uint32_t device_core, uint64_t mark);

struct ingest {
	struct session *session;
	struct held *held;
	struct processes *processes;
	struct ingest_source **by_number; /* NULL: has not appeared */
	struct ingest_source **list;	  /* that have not ended */
	size_t source_count, source_cap;
	uint64_t ended_mark; /* the newest mark of one that has */

	struct map64 pairs; /* pair -> open_spans */
	struct open_span *open_spans;
	uint32_t *free_spans;
	size_t span_count, span_cap, free_count, free_cap;

	struct map64 id_index; /* which ids were used: pages of bits */
	struct id_page *id_pages;
	size_t id_count, id_cap;
	uint64_t id_last, id_last_page; /* the page of the last look-up */

	struct map64 dma;	/* what a span of the DMA path is told by -> open_spans */
	struct map64 announced; /* (thread, start) -> open_spans of calls */
	struct map64 last_done; /* thread -> last_calls */
	struct last_call *last_calls;
	size_t last_count, last_cap;
	struct sequence *cpus;
	struct device_layout *layouts; /* by event type */
	uint64_t calls;		       /* and spans of the DMA path, numbered */
	ingest_run_fn run;	       /* may be NULL; set by the merge */
	void *run_ctx;
	uint64_t released; /* everything before this has been written; set by the merge */
};

int ingest_init(
	struct ingest *in, struct session *session, struct held *held, struct processes *processes);
void ingest_free(struct ingest *in);

/* A source that will give records holds the watermark from now on. */
int ingest_join(struct ingest *in, uint16_t source);
int ingest_runtime(struct ingest *in, const struct rec_frame *f, const uint8_t *payload);
int ingest_kernel(struct ingest *in, const struct rec_frame *f, const uint8_t *payload);
int ingest_driver(struct ingest *in, const struct rec_frame *f, const uint8_t *payload);
/* What the threads of a runtime in another pid namespace are called here. */
int ingest_threads(struct ingest *in, const struct rec_frame *f, const uint8_t *payload);
int ingest_watermark(struct ingest *in, const struct rec_frame *f, const uint8_t *payload);
/* Nothing more will come from any source. */
int ingest_end(struct ingest *in);
/* Everything before this has been put. */
uint64_t ingest_safe(const struct ingest *in);
/* Nothing of a source from this time on has been written, whatever the other sources said. */
uint64_t ingest_reach(const struct ingest *in, uint16_t source);

/* ---- ingest_kernel.c, for ingest.c and back ------------------------------------------------- */

/* Sets an item's time: at the watermark of its source when it comes too late. */
void ingest_place(struct ingest *in, struct ingest_source *s, struct item *item, uint64_t time);
uint64_t ingest_take_span(struct ingest *in); /* a free open_span; all ones: no memory */
void ingest_give_span(struct ingest *in, uint64_t index);

/* Marks an id as used: 1 it was already, 0 it was not, -ENOMEM. */
int ingest_use_id(struct ingest *in, uint64_t pair);
/* A stop that has its start, which was put. */
int ingest_put_stop(
	struct ingest *in, struct ingest_source *s, struct item *i, const struct open_span *o);

/* ---- ingest_marks.c, for the others ------------------------------------------------------------ */

/* What the open span is known by waits for the other end.  Takes the item.  0 or -errno. */
int ingest_wait_span(struct ingest *in, struct ingest_source *s, struct item *i,
	enum waiting_for what, const struct open_span *o);
/* The stop of a device run waits for a wait that tells its submit. */
int ingest_wait_submit(
	struct ingest *in, struct ingest_source *s, struct item *i, const struct submits_run *run);
/* What the item of an open span waited for came: gives it back, NULL when memory is short. */
struct item *ingest_wake(struct ingest *in, struct ingest_source *s, uint64_t span);
/* Nothing more will come from a source: it leaves the list, and what it needed is freed.  Its mark stays
 * where it was. */
int ingest_end_source(struct ingest *in, struct ingest_source *s);
void ingest_free_source(struct ingest_source *s);

/* ---- ingest_device.c ------------------------------------------------------------------------ */

int ingest_device_init(struct ingest *in);
/* A record of a hardware event, whose times may be impossible. */
int ingest_device(
	struct ingest *in, struct ingest_source *s, struct item *i, const struct trace_record *r);
/* A stop, perhaps of another type, whose start is that of a hardware event. */
int ingest_device_stop(struct ingest *in, struct ingest_source *s, struct item *i, uint64_t told);
/* What a device run that is awaited holds the source's mark to; all ones: none is. */
uint64_t ingest_device_hold(const struct ingest *in, const struct ingest_source *s);
/* Puts the start of a device's span that waits for its stop. */
int ingest_device_start(struct ingest *in, struct ingest_source *s, struct item *i);

#endif
