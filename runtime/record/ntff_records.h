/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ntff_records.h - reads a device profile: the records of its rings, one after another, as what they
 * say - instructions, transfers, collectives, semaphores, errors - and their times on the host's clock.
 *
 * A profile is a file in memory (proto/ntff_file.h) with one stream of 16-byte records
 * (proto/notification.h) per ring.  Opening it checks all that the message says against the bytes: a stream
 * that lies outside, overlaps another or has another checksum is left out and noted as a flaw, the
 * others are read.  Of a file that was cut, what is there is read.
 *
 * Two records, START and END with the same number, make one item; in one ring they come in the order of
 * time.  Times are the core's own, in picoseconds, and exact.  The host's BOOTTIME follows from the
 * profile's sync points of the same physical core, and is known to a bound (device_clock.h).  When a core's
 * clock went back during the profile, its points fall into eras; an item's era is the one whose
 * points its time fits, never an earlier one than of an item before it in its ring.  A clock that stands still
 * between two points or leaps stays in its era, and what lies between them is reckoned back from the later one.
 *
 * Takes memory in proportion to the message, none per record; time n log n at most, whatever a file
 * says.  A profile that is open does not change: any thread may read it, each with cursors of its own.
 */
#ifndef NTRACE_RECORD_NTFF_RECORDS_H
#define NTRACE_RECORD_NTFF_RECORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/ntff.pb-c.h"
#include "proto/ntff_file.h"
#include "runtime/record/device_clock.h"
#include "runtime/record/map64.h"

/* ---- the profile -------------------------------------------------------------------------- */

/* Something in the file that is not as it must be; it costs what it names. */
struct ntff_flaw {
	const char *what; /* a text that stays */
	uint64_t at;	  /* byte of the file */
};
#define NTFF_MAX_FLAWS 16u /* kept; all are counted */

/* The records of one ring. */
struct ntff_stream {
	const Ntff__TraceInfo *info;
	const uint8_t *records; /* 16 bytes each */
	uint64_t count;
	uint32_t core; /* index in cores */
};

struct ntff_era {
	uint32_t first, count; /* of the core's points */
	uint32_t steady;       /* points until the clock stands still or leaps for the first time */
	uint32_t last;	       /* the first one since it did so for the last time */
	uint32_t drift_limit;  /* ppb */
	uint64_t low_ps, high_ps;      /* times of its first and last point */
	uint32_t first_run, run_count; /* of the core's runs */
};

/* A physical core: all that has its nd_idx and nc_idx. */
struct ntff_core {
	uint32_t nd_idx, nc_idx;
	uint32_t first_stream, stream_count; /* of the profile's streams */
	const Ntff__NtffSyncPoint **points;  /* those that the clock takes, in order of time */
	uint32_t point_count;
	struct ntff_era *eras; /* one at least, if without points */
	uint32_t era_count;
	const Ntff__ExecutionInfo **runs; /* those that started, in order of time */
	uint32_t run_count;
	uint32_t run_era; /* while they are listed: of the last one, and its start */
	uint64_t run_ps;
};

struct ntff_name; /* an instruction of a model on a core */

struct ntff_profile {
	struct ntff_file file;
	Ntff__NtffInfo *info;
	struct ntff_core *cores;     /* ascending by nd_idx, nc_idx */
	struct ntff_stream *streams; /* of cores in their order, each as in the message */
	uint64_t *core_keys;	     /* nd_idx << 32 | nc_idx of each */
	uint32_t core_count, stream_count;
	struct ntff_flaw flaws[NTFF_MAX_FLAWS];
	uint64_t flaw_count;
	struct ntff_name *names;
	size_t name_count;
	/* What the cores point to. */
	const Ntff__NtffSyncPoint **points;
	struct ntff_era *eras;
	const Ntff__ExecutionInfo **runs;
};

/*
 * Opens a file that stays where it is until ntff_profile_close.  0: there is something to read, though perhaps
 * not all of it (file.damage, flaw_count); as ntff_file_open otherwise, or -EBADMSG when the message cannot be
 * understood, with file.damage; -ENOMEM.  Close it in each case.
 */
int ntff_profile_open(struct ntff_profile *ret, const void *data, size_t size);
void ntff_profile_close(struct ntff_profile *p);

/* ---- items -------------------------------------------------------------------------------- */

enum ntff_what {
	NTFF_RUN,	  /* of a model: id = low bits of its launch, custom = status */
	NTFF_SWITCH,	  /* to another model, before a run */
	NTFF_INSTRUCTION, /* of an engine: id = index of the instruction */
	NTFF_TRANSFER,	  /* of a DMA queue */
	NTFF_COLLECTIVE,  /* of the TopSP */
	NTFF_SEMAPHORE,	  /* id, custom = semaphore, subtype = its value */
	NTFF_ERROR,	  /* id, custom = which fault, subtype = status */
	NTFF_THROTTLE,
	NTFF_OTHER, /* a record that none of these has */
	NTFF_WHATS,
};

/* "instruction"; NULL for what is none. */
const char *ntff_what_name(enum ntff_what what);

struct ntff_item {
	enum ntff_what what;
	bool span;	    /* has a start and an end; else start_ps is when it was */
	bool lost_before;   /* the ring says that records are missing before the one it ends with */
	uint8_t type, hint; /* of that record */
	uint16_t id, custom, subtype;
	uint32_t engine; /* engine, DMA queue, 0 */
	uint32_t era;
	uint64_t start_ps, end_ps;
	uint64_t record; /* number of that record in its stream */
};

/* "pe", "dma3", "topsp": the unit of a block. */
#define NTFF_UNIT_BYTES 20u
void ntff_unit_name(Ntff__BlockType block, uint32_t engine, char unit[NTFF_UNIT_BYTES]);

/* "numerical": what models call a fault of the virtual device; NULL: there is none such. */
const char *ntff_fault_name(uint32_t fault);

/* Where one reader of one stream is; open it with ntff_cursor_open. */
struct ntff_cursor {
	const struct ntff_profile *profile;
	const struct ntff_stream *stream;
	const struct ntff_core *core;
	uint64_t next;	  /* record */
	uint64_t last_ps; /* time of the record before it */
	uint32_t era;
	struct map64 open; /* starts without an end yet */
	/* Counted so far; those that are open at the end of the stream are in `no_end` then. */
	uint64_t no_start, no_end, lost_marks;
	/* The part of the core's clock that was asked last: two points, or one twice. */
	struct device_point part[2];
	uint32_t part_era, part_point;
	bool part_known, part_broken; /* broken: the clock stood still between the two, or leapt */
};

void ntff_cursor_open(
	struct ntff_cursor *c, const struct ntff_profile *p, const struct ntff_stream *s);
/* The next item, spans at their end.  1; 0 at the end; -ENOMEM. */
int ntff_cursor_next(struct ntff_cursor *c, struct ntff_item *ret);
void ntff_cursor_close(struct ntff_cursor *c);

/* BOOTTIME of a time of the cursor's core in an era, and by how much it may be wrong.  False: no sync point.  Where the
 * clock stood still a time has two answers: the end of it, for what begins then, and with _end the begin of it, for
 * what ends then. */
bool ntff_host_ns(struct ntff_cursor *c, uint32_t era, uint64_t device_ps, uint64_t *ret_boot_ns,
	uint64_t *ret_bound_ns);
bool ntff_host_ns_end(struct ntff_cursor *c, uint32_t era, uint64_t device_ps,
	uint64_t *ret_boot_ns, uint64_t *ret_bound_ns);

/* The run in which an item of this core begins, or NULL. */
const Ntff__ExecutionInfo *ntff_run_of(const struct ntff_core *core, const struct ntff_item *item);

/* The instruction that an item of this core names by its id; run: ntff_run_of, or NULL when that is not known,
 * which is enough where one model alone was on the core.  NULL: not known. */
const Ntff__NtffInstruction *ntff_instruction_of(const struct ntff_profile *p,
	const struct ntff_core *core, const Ntff__ExecutionInfo *run, const struct ntff_item *item);

#endif
