/* SPDX-License-Identifier: Apache-2.0 */
/*
 * held.h - the items that wait for their turn.
 *
 * Items are taken from pages that live as long as any item in them.  What has been put waits by its
 * time; held_release gives everything before a time, in the order of docs/formats.md.  Beyond a limit
 * all that waits is written, sorted, to a temporary file, and merged back when its time comes; the
 * result is the same.
 */
#ifndef NTRACE_RECORD_HELD_H
#define NTRACE_RECORD_HELD_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/record/item.h"
#include "runtime/record/map64.h"

struct held_ref {
	uint64_t time;
	struct item *item;
};

#define HELD_BLOCK_REFS 4095u

struct held_block {
	uint64_t min, max;
	uint32_t count;
	struct held_ref refs[HELD_BLOCK_REFS];
};

struct held_page;

/* A sorted run in the temporary file. */
struct held_run {
	uint64_t offset; /* bytes */
	uint64_t count;
	uint64_t next; /* first item that was not given yet */
	uint64_t head; /* its time */
	struct item *buf;
	uint32_t at, have, cap; /* of buf */
};

struct held_refs {
	struct held_ref *refs;
	size_t count, cap;
};

struct held {
	struct held_block **blocks; /* the last one is being filled */
	size_t block_count, block_cap;
	struct held_page *page, *spare, *pages; /* pages: all, to be freed */
	size_t page_count;			/* in use */
	size_t count;				/* items that were put and not given, in memory */
	struct held_refs batch, scratch;

	int (*open_file)(void *ctx); /* gives the temporary file */
	void *ctx;
	size_t limit; /* bytes in memory */
	int fd;
	uint64_t file_bytes;
	struct held_run *runs;
	size_t run_count, run_cap;
	struct map64 late_flags; /* pair of a start in the file -> flags it got since */
	uint32_t generation;	 /* changes when items leave memory */
	uint64_t spilled;	 /* items ever written */
};

/* Called in order; the item is gone after it.  A negative return ends the release. */
typedef int (*held_fn)(void *ctx, const struct item *item);

/* open_file gives the descriptor of an empty file, or -errno; it is called when the limit is met.
 * limit 0: the default, 256 MiB. */
void held_init(struct held *h, size_t limit, int (*open_file)(void *ctx), void *ctx);
void held_free(struct held *h);

/* A new item with undefined contents, NULL when memory is short. */
struct item *held_item(struct held *h);
/* Makes it wait.  Its time must not change any more; its flags may, by held_flags.  0, -ENOMEM or
 * what the temporary file says. */
int held_put(struct held *h, struct item *item);
/* Adds flags to a start that was put when the generation was `generation`. */
int held_flags(struct held *h, struct item *item, uint32_t generation, uint64_t pair,
	enum item_flags flags);
/* Gives all items with time < before. */
int held_release(struct held *h, uint64_t before, held_fn fn, void *ctx);

/* ---- held_file.c: runs in the temporary file ----------------------------------------------- */

/* Writes sorted refs as a run. */
int held_write_run(struct held *h, const struct held_ref *refs, size_t count);
/* Gives the items of the runs and of the sorted batch before a time, in order. */
int held_merge_runs(struct held *h, uint64_t before, held_fn fn, void *ctx);

/* Orders items of one time; total. */
int held_compare(const struct item *a, const struct item *b);
/* Gives the items of one time in order. */
int held_give_group(struct held_ref *refs, size_t count, held_fn fn, void *ctx);
/* The item in memory is no longer needed. */
void held_release_item(struct held *h, struct item *item);

#endif
