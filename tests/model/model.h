/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model.h - the merge against a ground truth that it cannot know.
 *
 * A seed makes a small world: processes, threads, runtime spans with driver calls inside, device runs,
 * all with their true times (truth.c).  The world is then seen as the recorder would see it: stamped by
 * clocks that drift, in rings that overwrite, in batches of any size, late, twice, cut, damaged
 * (emit.c).  What is left in the recording says, by the rules of docs/formats.md and brute force, what
 * must stand in the files (expect.c); the files are held against that and against the truth
 * (check.c).
 *
 * Everything is a function of the seed.  A failing seed is tried again with fewer of its features, so
 * that what is reported is small (run.c).
 *
 * Times are ns since MODEL_BOOT, a BOOTTIME.
 */
#ifndef NTRACE_TESTS_MODEL_H
#define NTRACE_TESTS_MODEL_H

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "runtime/record/merge.h"
#include "runtime/record/recording.h"
#include "runtime/trace/record.h"

#define MODEL_BOOT 5000000000000ull
#define MODEL_OFFSET 1790000000000000000ll
#define MODEL_EPOCH (MODEL_BOOT + (uint64_t)MODEL_OFFSET)

#define MODEL_SPANS 512u
#define MODEL_CALLS 512u
#define MODEL_RECORDS 3072u
#define MODEL_FRAMES 4096u
#define MODEL_PROCESSES 3u
#define MODEL_SOURCES 6u
#define MODEL_CORES 4u /* per source; one more place for "unknown" */
#define MODEL_CPUS 4u
#define MODEL_CLOCKS 40u
#define MODEL_TICKS 64u
#define MODEL_NAMES 3u	/* per source: ids from 1 */
#define MODEL_COPIES 3u /* of one record, at most */

/* What may happen to a world; each seed has some. */
#define MODEL_FEATURES(F)                                                      \
	F(TIES, "ties", "coarse clocks: equal times, spans without extent")    \
	F(RING_FULL, "ring_full", "driver calls lost in the kernel")           \
	F(OVERWRITTEN, "overwritten", "runtime records lost in their rings")   \
	F(UNREAD, "unread", "records left in the rings at the end")            \
	F(TWICE, "twice", "runtime records that come twice")                   \
	F(LATE, "late", "records older than their source's watermark")         \
	F(SHUFFLE, "shuffle", "driver calls in another order than they ended") \
	F(ANNOUNCE, "announce", "long calls announced while they are open")    \
	F(OPEN, "open", "threads that end inside spans and calls")             \
	F(REUSE, "reuse", "thread ids used again")                             \
	F(PROCESSES, "processes", "several processes")                         \
	F(RUNTIMES, "runtimes", "several runtimes under one pid")              \
	F(DRIFT, "drift", "device clocks with offset and drift")               \
	F(STEPS, "steps", "steps of the realtime clock")                       \
	F(CROSS, "cross", "spans that cross, and spans that change threads")   \
	F(RECURSE, "recurse", "spans inside spans of their own type")          \
	F(INVALID, "invalid", "records with impossible contents")              \
	F(KILL, "kill", "a recorder that is killed")                           \
	F(DAMAGE, "damage", "a damaged place in the recording")                \
	F(OPTION, "option", "driver calls extended or off")                    \
	F(IMPOSSIBLE, "impossible", "device runs at times that cannot be")

enum model_feature {
#define F(id, name, text) WITH_##id,
	MODEL_FEATURES(F)
#undef F
		MODEL_FEATURE_COUNT
};
#define MODEL_ALL ((1u << MODEL_FEATURE_COUNT) - 1)

const char *model_feature_name(unsigned feature);
const char *model_feature_text(unsigned feature);

/* ---- random numbers: the same everywhere ---------------------------------------------------- */

struct rng {
	uint64_t state;
};

static inline uint64_t rng_next(struct rng *r)
{
	uint64_t z = r->state += 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

/* 0 .. limit - 1; 0 when limit is 0. */
static inline uint32_t rng_below(struct rng *r, uint32_t limit)
{
	return limit ? (uint32_t)(rng_next(r) >> 32) % limit : 0;
}

static inline bool rng_one_in(struct rng *r, uint32_t n)
{
	return rng_below(r, n) == 0;
}

/* A stream of its own for each purpose, so that what one feature draws changes no other. */
static inline struct rng rng_for(uint64_t seed, uint64_t purpose)
{
	struct rng r = {seed * 0x2545f4914f6cdd1dull + purpose * 0x9e3779b97f4a7c15ull};

	rng_next(&r);
	return r;
}

/* ---- the world ------------------------------------------------------------------------------- */

/* What is wrong with the times of a device run. */
enum model_wrong {
	WRONG_NOTHING,
	WRONG_ZERO,    /* the host's are 0 */
	WRONG_ZERO_NC, /* the device's are 0 */
	WRONG_BACKWARD,
	WRONG_BEFORE, /* its execution */
	WRONG_AFTER,  /* it was collected */
};

/* A span or an instant of a runtime. */
struct model_span {
	uint32_t process, source; /* indices */
	uint32_t tid, stop_tid;	  /* 0: the device's side */
	uint32_t type, nc;
	uint64_t from, to;	     /* true times */
	uint64_t said_from, said_to; /* as stamped; differ for device runs */
	uint64_t bound;		     /* stamps differ from the truth by at most this */
	uint64_t id;		     /* tracking id */
	uint64_t nc_from, nc_to;     /* what the device's clock shows then */
	uint64_t exec_id;
	int execute, submit; /* device run: indices of what truly started it; else -1 */
	uint64_t collected;  /* device run: when its wait ended */
	enum model_wrong wrong;
	uint32_t status;
	bool instant, hardware, open;
};

enum model_fate { /* of a driver call's record */
	CALL_RECORDED,
	CALL_RING_FULL,
	CALL_INFLIGHT_FULL,
	CALL_EXIT_LOST,
	CALL_OPEN, /* never returns */
};

struct model_call {
	uint32_t process, tid, cpu, request;
	uint64_t from, to, bytes;
	int32_t result;
	enum model_fate fate;
	uint32_t seq;
	unsigned announcements;
};

enum model_record_kind { RECORD_START, RECORD_STOP, RECORD_INSTANT, RECORD_DONE, RECORD_ANNOUNCE };

/* A raw record: what was emitted, and what became of it. */
struct model_record {
	enum model_record_kind kind;
	uint32_t source; /* index of a runtime, or MODEL_SOURCES for the kernel */
	uint32_t index;	 /* of the span or call */
	uint64_t emit;	 /* when it is in the ring */
	uint32_t order;	 /* among records emitted at one time */
	uint64_t time;	 /* its stamp; a finished call: its start */
	uint64_t seq;	 /* within core or CPU */
	bool late;	 /* the source's watermark does not wait for it */
	bool copy;	 /* comes a second time */
	bool invalid;	 /* replaced by rubbish */
	uint32_t lost;	 /* enum rec_counter_id of the cause; 0: delivered */
	bool read;	 /* found in the recording */
	uint64_t said;	 /* newest watermark of its source when it was read */
};

struct model_source {
	uint32_t process, number; /* in frames */
	uint64_t begin, end;
	uint64_t next_seq[MODEL_CORES + 1];
	uint64_t next_id, next_exec;
	int64_t clock_offset[MODEL_CORES]; /* of the device: device ns at MODEL_BOOT */
	int32_t clock_ppm[MODEL_CORES];
	uint64_t filtered; /* events that only others wanted, per core */
};

/* A frame to be written, and whether it is still there. */
struct model_frame {
	enum rec_type type;
	uint16_t source;
	uint32_t head_size, size;
	uint8_t head[8];
	uint8_t *body;
	uint32_t first, count; /* of the sequence of records */
	uint64_t watermark;
	uint64_t said; /* newest watermark of its source before it, relative */
	bool flush, survives;
};

struct model_clock {
	uint64_t at;
	int64_t step; /* of REALTIME against the beginning */
};

struct model {
	uint64_t seed;
	uint32_t features;
	unsigned size;	/* 1 .. 8 */
	uint64_t scale; /* ns per unit of time */
	uint64_t end;	/* of the world */
	struct merge_options options;
	unsigned process_count, source_count, clock_count, tick_count;
	uint32_t pids[MODEL_PROCESSES];
	struct model_source sources[MODEL_SOURCES];
	struct model_span spans[MODEL_SPANS];
	struct model_call calls[MODEL_CALLS];
	struct model_record records[MODEL_RECORDS];
	uint32_t span_count, call_count, record_count;
	struct model_clock clocks[MODEL_CLOCKS];
	uint64_t ticks[MODEL_TICKS];

	/* emit.c: in the order in which they are written */
	uint32_t sequence[MODEL_RECORDS];
	uint32_t sequence_count;
	struct model_frame frames[MODEL_FRAMES];
	uint32_t frame_count;
	uint32_t last_frame;  /* from here on the last counters and the end, which are not harmed */
	bool killed, damaged; /* what was done to the recording */
	bool verbose;	      /* shows the file that is wrong */

	char what[512]; /* the first thing that is wrong */
};

static inline bool model_has(const struct model *m, enum model_feature f)
{
	return m->features >> f & 1;
}

/* Notes what is wrong; the first saying counts.  Returns false. */
bool model_fail(struct model *m, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The model that a span is about; 0: none. */
uint64_t model_name_id(const struct model_span *p);
#define MODEL_NAME_FORMAT "model-%" PRIu64

/* truth.c: the world and all records, those that will be lost marked. */
void model_make(struct model *m);
/* fate.c, for truth.c */
void model_fates(struct model *m);

/* emit.c */
/* Frames from records; `weave` chooses how those of different sources lie between each other and how
 * large the batches are. */
void model_weave(struct model *m, uint64_t weave);
/* write.c: writes a recording to `path`, harms it as the features say, and notes what is left of it. */
bool model_write(struct model *m, const char *path);
void model_free_frames(struct model *m);

/* check.c: the merge's result against what must come. */
bool model_check(struct model *m, const struct merge_result *result);

/* run.c */
struct model_run {
	const char *dir;  /* for scratch; one of its own */
	uint32_t allowed; /* features */
	unsigned twin;	  /* every n-th seed is delivered in a second way too */
	bool verbose;
};
/* One seed.  True when the merge is right; else *what says what is wrong in which smallest world. */
bool model_seed(const struct model_run *run, uint64_t seed, char what[1024]);

#endif
