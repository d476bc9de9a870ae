/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recording.h - the recording: what was captured, as it came, in checksummed frames.
 *
 * A recording is a directory of segments `segment-NNNNNN.ntrec`, appended by one writer and flushed
 * every 100 ms, so that the death of the writer costs at most that.  A segment begins with a
 * struct rec_segment, then blocks: a head and compressed frames (frame.h).  A frame is a struct
 * rec_frame, its payload, and padding to 8 bytes.  All integers are little-endian.  The merge
 * (merge.h) is a pure function of these frames.  docs/recording-format.md describes the bytes.
 */
#ifndef NTRACE_RECORD_RECORDING_H
#define NTRACE_RECORD_RECORDING_H

#include <assert.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/clock.h"
#include "runtime/base/kept_fd.h"

#define REC_DIR "recording"
#define REC_SEGMENT_FORMAT "segment-%06u.ntrec"
#define REC_DEVICE_PROFILE_FORMAT "device-%06u.ntff" /* beside the segments */
#define REC_MAGIC "NTREC\0\0"			     /* 8 bytes with the terminator */
#define REC_FORMAT_VERSION 2u			     /* what is written; older ones are read */
#define REC_FRAME_MAGIC 0x5246544eu		     /* "NTFR" */
#define REC_MAX_PAYLOAD (16u << 20)

struct rec_segment {
	char magic[8];
	uint32_t version;
	uint32_t index; /* of this segment, from 0 */
};

struct rec_frame {
	uint32_t magic;
	uint16_t type;	  /* enum rec_type */
	uint16_t source;  /* number of the source, 0 = the recorder itself */
	uint32_t size;	  /* payload bytes, without padding */
	uint32_t check;	  /* low 32 bits of XXH3 over type, source, size, time and payload */
	uint64_t time_ns; /* BOOTTIME when the frame was made */
};

enum rec_type {
	REC_HEADER = 1,	   /* JSON text, keys in docs/recording-format.md */
	REC_CLOCK = 2,	   /* struct clock_snapshot */
	REC_DEVICE = 3,	   /* struct rec_device */
	REC_PROCESS = 4,   /* struct rec_process */
	REC_KERNEL = 5,	   /* raw nev_ioctl records, back to back (bpf/neuron_event.h) */
	REC_RUNTIME = 6,   /* struct rec_runtime, then trace_records */
	REC_WATERMARK = 7, /* u64: nothing older than this will come from the source */
	REC_COUNTERS = 8,  /* struct rec_counter rows; the newest value of each counts */
	REC_CPU = 9,	   /* sampler_cpu rows */
	REC_MEM = 10,	   /* struct rec_mem */
	REC_NAME = 11,	   /* struct rec_name, then text */
	REC_END = 12,	   /* struct rec_end: the recorder stopped in order */
	REC_FOOTER = 13,   /* struct rec_footer: what is where; written at close */
	REC_THREAD = 14,   /* struct rec_thread rows: the source is in another pid namespace */
	REC_DEVICE_PROFILE = 15, /* struct rec_device_profile; stands before END */
	REC_FILE = 16,		 /* struct rec_file, then its name */
	REC_DRIVER = 17,	 /* struct nev_dma records, back to back (bpf/neuron_event.h) */
	REC_MODULE = 18,	 /* struct rec_module, then rec_module_step rows (modules.h) */
	REC_HOOK_COST = 19,	 /* struct rec_hook_cost rows; the newest frame counts */
	REC_FAILURE = 20,	 /* struct rec_failure: the nrt_init of a process failed then */
	REC_HOOKS = 21,		 /* generation (4), 0 (4), then names of hooks (modules.h) */
	REC_TYPES_END,
};

/* Sources: 0 the recorder, 1 the kernel hooks, 2.. the runtimes in order of appearance. */
#define REC_SOURCE_RECORDER 0
#define REC_SOURCE_KERNEL 1
#define REC_SOURCE_RUNTIME0 2

struct rec_device {
	uint32_t index;	     /* N of neuronN */
	uint32_t is_virtual; /* 1 = ntrace-vdev */
};

#define REC_SIMULATED 2u /* a runtime without any device: virtual as well */

/* A process that is traced.  One row per source of a runtime, and one with source = kernel for the
 * command itself. */
struct rec_process {
	uint32_t pid;	     /* initial pid namespace (as the recorder sees it) */
	uint32_t is_virtual; /* 1 = ntrace-vdev, REC_SIMULATED */
	char comm[16];
};

/* A device profile of a traced process, a file of its own beside the segments.  The frame stands
 * before END; its time is when the file came into the recording. */
struct rec_device_profile {
	uint32_t index; /* of the file: REC_DEVICE_PROFILE_FORMAT; or REC_DEVICE_PROFILE_NONE */
	uint32_t pid;	/* initial pid namespace */
	uint64_t bytes; /* of the file */
	uint64_t check; /* XXH3-64 (seed 0) of the file */
};

/* A file that the session of an inspection has left in its directory, where trace_info.pb comes to be. */
struct rec_file {
	char type[16]; /* "ntff", "neff", REC_FILE_LOST, REC_FILE_UNWRITTEN; padded with zeros */
	uint64_t bytes;
};

/* What a program in the kernel has cost until now, for whatever process (--hook-cost). */
struct rec_hook_cost {
	char program[32]; /* its name in bpf/, padded with zeros */
	uint64_t runs, run_ns;
};

/* There is none: a signal ended the program while a thread worked on it.  The name says of which core. */
#define REC_FILE_LOST "lost"
/* There is none: it could not be written.  The name is what it would have had, or says of which core. */
#define REC_FILE_UNWRITTEN "unwritten"

/* Behind all that the hooks saw of the process until then. */
struct rec_failure {
	uint32_t pid;	 /* initial pid namespace */
	uint32_t status; /* NRT_STATUS */
	char comm[16];
};

#define REC_DEVICE_PROFILE_NONE UINT32_MAX /* the process was profiled and has left no file */

struct rec_runtime {
	uint32_t nc_idx;
	uint32_t lane;
};

/* A thread of a source whose process is in another pid namespace than the recorder. */
struct rec_thread {
	uint32_t tid;	   /* in its own namespace, as in trace_record */
	uint32_t host_tid; /* initial pid namespace, as in nev_ioctl */
	uint64_t from_ns;  /* BOOTTIME; the id was another thread's before */
};

struct rec_mem {
	uint32_t pid;
	uint32_t pad;
	uint64_t rss_bytes;
};

struct rec_name {
	uint64_t id;
};

/* Counter ids: counters.def.  sub: core | lane << 16 for runtime counters (0xffffffff: no
 * core), 0 otherwise. */
struct rec_counter {
	uint32_t id;
	uint32_t sub;
	uint64_t value;
};

struct rec_end {
	int32_t wait_status; /* of the traced command, as wait(2) gives it; -1 unknown */
	uint32_t reason;     /* enum rec_end_reason */
};

enum rec_end_reason {
	REC_END_COMMAND,  /* the command ended */
	REC_END_ASKED,	  /* asked to stop */
	REC_END_NO_SPACE, /* no room for what came next: all from here on is missing */
	REC_END_FAILED,	  /* the recorder failed otherwise: the same */
};

/* Is everything there that was captured?  Reasons to come are no order. */
static inline bool rec_end_in_order(const struct rec_end *end)
{
	return end->reason <= REC_END_ASKED;
}

/* Followed by `counters` struct rec_footer_counter, the newest of every (source, id, sub), then by
 * `entries` struct rec_index. */
struct rec_footer {
	uint64_t frames, blocks; /* before the footer's own */
	uint64_t payload_bytes;	 /* of those frames */
	uint32_t counters;
	uint32_t entries;
};

struct rec_footer_counter {
	uint32_t source, id, sub, zero;
	uint64_t value;
};

/* A run of neighbouring blocks. */
struct rec_index {
	uint32_t segment, blocks;
	uint64_t offset;	    /* of the first one's head in its segment */
	uint64_t first_ns, last_ns; /* times of their first and last frame */
	uint32_t types;		    /* as in the heads of blocks */
	uint32_t frames;
};

static_assert(sizeof(struct rec_footer) == 32, "rec_footer");
static_assert(sizeof(struct rec_index) == 40, "rec_index");
static_assert(sizeof(struct rec_segment) == 16, "rec_segment");
static_assert(sizeof(struct rec_frame) == 24, "rec_frame");
static_assert(sizeof(struct rec_thread) == 16, "rec_thread");
static_assert(sizeof(struct rec_device_profile) == 24, "rec_device_profile");
static_assert(sizeof(struct rec_file) == 24, "rec_file");
static_assert(sizeof(struct rec_failure) == 24, "rec_failure");

enum rec_counter_id {
	REC_COUNTER_NONE,
#define REC_COUNTER(id, stage, name, kind, text) REC_C_##id,
#include "runtime/record/counters.def"
	REC_COUNTER_RECORDED_END, /* ids from here on never stand in a recording */
	REC_COUNTER_BEFORE_MERGE = REC_COUNTER_RECORDED_END - 1,
#include "runtime/record/merge_counters.def"
#undef REC_COUNTER
	REC_COUNTER_MAX,
};

/* ---- writer ------------------------------------------------------------------------------- */

struct rec_writer; /* one thread */

/* Creates directory `path` (must not exist: -EEXIST) and its first segment.  Holds a lock (flock) on
 * the directory until it is closed or its process is dead.  Descriptors are kept ones (kept_fd.h); one that the program
 * has closed is had again by the path.  0 or -errno. */
int rec_writer_open(const char *path, struct rec_writer **ret_writer);
/* For a writer that must not allocate for a while: when this gave 0 it does not, and takes no lock, until
 * 1024 blocks more are written or `counters` counters more are new; frames are to have at most 256 KiB.  0 or
 * the sticky error. */
int rec_writer_reserve(struct rec_writer *w, size_t counters);
/* In the child of a fork: gives up the descriptors, and the lock with them.  Nothing else of the writer is to be used there.
 * Async-signal-safe. */
void rec_writer_forget(struct rec_writer *w);
/* Appends a frame to the open block; a large batch of records becomes several.  Counters are noted
 * for the footer.  0 or the first error ever met (sticky), e.g. -ENOSPC; -EMSGSIZE beyond
 * REC_MAX_PAYLOAD. */
int rec_writer_frame(struct rec_writer *w, enum rec_type type, uint16_t source, const void *head,
	size_t head_size, const void *body, size_t body_size);
/* The same with the frame's time, for copies of recordings. */
int rec_writer_frame_at(struct rec_writer *w, enum rec_type type, uint16_t source, uint64_t time_ns,
	const void *head, size_t head_size, const void *body, size_t body_size);
/* Closes the block and hands everything to the kernel.  0 or -errno. */
int rec_writer_flush(struct rec_writer *w);
/* The sticky error; 0. */
int rec_writer_error(const struct rec_writer *w);
/* Bytes of the segments so far, without the open block. */
uint64_t rec_writer_bytes(const struct rec_writer *w);
/*
 * When the recording ends early: takes back a block that is half on the disk and writes a REC_END in
 * its place, into room that rec_writer_open has reserved.  Its reason follows from the error that was
 * met.  A reader can so tell a recorder that stopped here from one that was killed.  wait_status: as
 * in struct rec_end.  0 or -errno: there is no mark.  Afterwards only rec_writer_close, which returns
 * the error from before.
 */
int rec_writer_stop(struct rec_writer *w, int wait_status);
/* Writes the footer, flushes, syncs and frees.  0 or the first error.  Without memory for the footer it is left out,
 * which is no error: all that was recorded is there. */
int rec_writer_close(struct rec_writer *w);
/* The same, but the lock is kept until the caller closes *ret_lock: nobody shall take the recording for one that was
 * left behind while it is being merged.  ret_lock may be NULL. */
int rec_writer_end(struct rec_writer *w, struct kept_fd *ret_lock);
/* Removes a recording that is here no longer needed: its segments, and then its directory, in which nothing else may be.
 * It has another name meanwhile, OUTFILE_TEMPORARY "<pid>-" REC_REMOVED beside it: a process that dies over it leaves a recording or none, never
 * a part of one.  0 or -errno. */
#define REC_REMOVED "recording"
int rec_remove(const char *path);

/* ---- reader ------------------------------------------------------------------------------- */

struct rec_reader; /* one thread */
struct rec_block;  /* memory with the payloads of some frames; counted references, one thread */

/* What was skipped or cut, for the report. */
/* Segments that are not as they were written: how many, and the first by its file's number. */
struct rec_odd_segments {
	uint32_t count, first;
};

struct rec_damage {
	uint64_t skipped_bytes; /* between frames that are whole */
	uint64_t cut_bytes;	/* behind the last whole frame */
	uint64_t
		bad_frames; /* checksum or length wrong, or a segment missing or none: one per place */
	uint64_t unknown_frames; /* types this version does not know: skipped, not damage */
	/* Of what the numbers above count, where that can be told: */
	struct rec_odd_segments missing;   /* the first ones that are gone in a row */
	struct rec_odd_segments misplaced; /* their heads have other numbers */
	struct rec_odd_segments no_file;   /* a directory, a device */
	uint32_t misplaced_is;		   /* the number in the head of the first */
};

/* Is anything missing that was once written?  Frames of unknown types are no damage. */
static inline bool rec_damaged(const struct rec_damage *d)
{
	return d->skipped_bytes || d->cut_bytes || d->bad_frames;
}

/* path: the recording directory, or a directory that holds one named REC_DIR.  -ENOENT: there is
 * none; -EPROTO: not a recording; -EPROTONOSUPPORT: a newer format version.  0 or -errno. */
int rec_reader_open(const char *path, struct rec_reader **ret_reader);
/* The directory with the segments: a descriptor that stays the reader's. */
int rec_reader_dir(const struct rec_reader *r);
/* Once *cancel is not zero, a search through a damaged place ends with -ECANCELED. */
void rec_reader_cancel_by(struct rec_reader *r, const volatile sig_atomic_t *cancel);
/* Was a writer at work on it when the reader was opened? */
bool rec_reader_in_work(const struct rec_reader *r);
/* Next whole frame: 1 and the frame (valid until the next call), 0 at the end, -errno.  The payload
 * begins at a multiple of 8 and stays valid until the next call, or as long as its block has a
 * reference. */
int rec_reader_next(
	struct rec_reader *r, const struct rec_frame **ret_frame, const uint8_t **ret_payload);
/* The block that holds the payload of the frame that rec_reader_next just returned.  The reader
 * keeps its own reference; a caller that wants the payload longer takes one.  The same block comes
 * again for the frames that share it. */
struct rec_block *rec_reader_block(struct rec_reader *r);
/* Takes a reference and returns b.  References may outlive the reader. */
struct rec_block *rec_block_ref(struct rec_block *b);
void rec_block_unref(struct rec_block *b); /* NULL is fine */
/* Memory that the block holds, for those who keep many. */
size_t rec_block_bytes(const struct rec_block *b);
/* Where the frame that rec_reader_next just returned lies. */
struct rec_place {
	uint32_t version; /* of the segment's format; the fields below are those of version 2 */
	uint32_t segment;
	uint64_t offset; /* of the block's head in the segment */
	uint32_t number; /* of the block */
	uint32_t bytes;	 /* of the block with its head */
	uint32_t types;	 /* in the block, as in struct rec_index */
};
void rec_reader_place(const struct rec_reader *r, struct rec_place *ret);
/* The newest footer, found from the end of the recording without reading the rest.  -ENODATA: it has
 * none (a recorder that was killed, version 1); -EBADMSG: what stands at its end does not lead to one that
 * is whole.  The caller gives *ret_block back;
 * *ret_payload lies in it. */
int rec_reader_footer(struct rec_reader *r, struct rec_block **ret_block,
	const uint8_t **ret_payload, size_t *ret_size);
/* The parts of a footer; the arrays lie in the payload.  0 or -EBADMSG. */
int rec_footer_parse(const uint8_t *payload, size_t size, struct rec_footer *ret,
	const struct rec_footer_counter **ret_counters, const struct rec_index **ret_entries);
/* From now on, blocks of version 2 that the filter does not want are passed over unread, and their
 * checks are not made; so the counts of damage are those of the blocks that are read.  NULL: none. */
typedef bool (*rec_reader_filter)(void *ctx, uint32_t segment, uint64_t offset);
void rec_reader_set_filter(struct rec_reader *r, rec_reader_filter filter, void *ctx);
/* Back to the first frame. */
void rec_reader_rewind(struct rec_reader *r);
/* Counts of the last complete pass. */
struct rec_damage rec_reader_damage(const struct rec_reader *r);
void rec_reader_close(struct rec_reader *r);

#endif
