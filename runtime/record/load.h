/* SPDX-License-Identifier: Apache-2.0 */
/*
 * load.h - the first stage of the merge: all frames of a recording as typed arrays.
 *
 * Nothing is interpreted here beyond what is needed to refuse what cannot be: a record whose times,
 * phase or ids are impossible is counted in `invalid` and not kept.  Records keep the order of the
 * recording.  Each is given the process that it belongs to; processes stand in pid order.
 */
#ifndef NTRACE_RECORD_LOAD_H
#define NTRACE_RECORD_LOAD_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/neuron_event.h"
#include "runtime/base/sampler.h"
#include "runtime/record/clock_map.h"
#include "runtime/record/header.h"
#include "runtime/record/recording.h"
#include "runtime/trace/record.h"

#define LOAD_NONE 0xffffffffu
#define LOAD_MAX_NAME 4096u /* bytes of a name that are kept */

/* Bits of span ids that the merge itself gives out; a runtime's ids have neither. */
#define ID_KERNEL (1ull << 63)
#define ID_MARKER (1ull << 62)

struct load_record { /* of a runtime */
	struct trace_record r;
	uint32_t source;
	uint32_t process; /* index into processes */
};

struct load_call {	     /* of the kernel hooks */
	uint64_t start, end; /* end = start while the call is open */
	uint64_t args[NEV_MAX_ARGS];
	uint32_t tgid, tid;
	uint32_t request;
	int32_t result;
	uint32_t seq;
	uint32_t process;
	uint16_t cpu, device, flags;
	uint8_t nargs;
	bool done; /* NEV_IOCTL_DONE */
};

/* -errno of a call that failed, else 0.  The driver returns what a failed copy from or to user memory
 * left over as a positive number, and no request has a positive success. */
static inline int32_t load_call_error(const struct load_call *c)
{
	return c->result > 0 ? -EFAULT : c->result;
}

struct load_name {
	uint64_t id;
	uint32_t source;
	uint32_t len;
	size_t offset; /* into name_text; valid UTF-8, no NUL */
};

struct load_cpu { /* one sample of all CPUs */
	uint64_t time;
	size_t first; /* into cpu_rows */
	size_t count;
};

struct load_mem {
	uint64_t time;
	uint32_t pid;
	uint64_t rss_bytes;
};

struct load_counter {
	uint32_t source, id, sub;
	uint32_t pad;
	uint64_t order; /* ascending in the recording */
	uint64_t value;
};

struct load_source {
	uint32_t source;
	uint32_t pid;
};

/* A process with records. */
struct load_process {
	uint32_t pid;	   /* 0: its REC_PROCESS is lost */
	uint32_t *records; /* indices, in the order of the recording */
	uint32_t *calls;
	size_t record_count, call_count;
	uint32_t source_count; /* runtimes that gave records under this pid */
};

struct load {
	struct rec_header header; /* empty when its frame is lost */
	struct clock_map clock;
	struct load_record *records;
	struct load_call *calls;
	struct load_name *names; /* sorted by (source, id), each pair once */
	char *name_text;
	struct load_cpu *cpus;
	struct sampler_cpu *cpu_rows;
	struct load_mem *mems;
	struct load_counter *counters; /* newest value of each (source, id, sub), sorted */
	struct load_source *sources;   /* as first announced */
	struct load_process *processes;
	struct clock_snapshot *clocks;
	size_t record_count, call_count, name_count, name_bytes, cpu_count, cpu_row_count,
		mem_count, counter_count, source_count, process_count, clock_count;
	uint64_t read_done;  /* raw records found: runtime records and finished calls */
	uint64_t read_calls; /* finished calls among them */
	uint64_t read;	     /* all raw records found, invalid ones too */
	uint64_t invalid;
	uint64_t seq_gaps;
	bool has_header, is_virtual, ended;
	struct rec_end end;
	struct rec_damage damage;
};

/*
 * Loads the whole recording.  0; what rec_reader_open says; -ENODATA when no clock snapshot is
 * left, without which no time can be told; -ENOMEM; -EFBIG beyond 2^32 - 2 records of a kind.
 * load_free in either case.
 */
int load_recording(const char *path, struct load *ret);
void load_free(struct load *l);

/* The text of an id, or a zero length.  The text lies in l->name_text. */
const char *load_name(const struct load *l, uint32_t source, uint64_t id, uint32_t *ret_len);

#endif
