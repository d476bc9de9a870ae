/* SPDX-License-Identifier: Apache-2.0 */
/*
 * process.h - the processes of a recording: counts, and what is being written of each.
 */
#ifndef NTRACE_RECORD_PROCESS_H
#define NTRACE_RECORD_PROCESS_H

#include <stddef.h>
#include <stdint.h>

#include "proto/event_codec.h"
#include "runtime/record/failures.h"
#include "runtime/record/item.h"
#include "runtime/record/map64.h"

struct file_set;

/* Records of device profiles. */
struct process_device {
	uint64_t read, written, told, unpaired, timeless, lost;
	uint64_t spans;
	uint64_t runs; /* device runs that a profile looks into */
};

struct process {
	uint32_t pid;		  /* 0: the REC_PROCESS of its source is lost */
	uint64_t read;		  /* valid raw records */
	uint64_t announced_again; /* announcements that said nothing new */

	/* What was written. */
	uint64_t events, written, announced, not_wanted;
	uint64_t spans, kernel_spans, open_spans, device_runs;
	uint64_t start_lost, clamped, clamped_ns, late, late_ns, exit_missed, foreign;
	uint64_t invalid[ITEM_INVALID_KINDS];		 /* events of devices, by kind */
	uint64_t corrected;				 /* times of devices */
	uint64_t causality, causality_ns, causality_max; /* device runs moved to their submit */
	uint64_t calls, markers, device_ids;		 /* numbered so far */
	struct process_device device;			 /* from device profiles */
	uint64_t last_time;				 /* of the newest record written */
	uint64_t first_seen, last_seen; /* times of the oldest and the newest record; 0: none */
	size_t next_step;		/* clock step that is still to be written */
	size_t next_module;		/* the same of the driver's comings and goings */
	struct process_failures failures;
	struct pb_buf buf;	/* encoded, not yet in the file */
	struct file_set *files; /* NULL until there is something to write */
};

struct processes {
	struct process *list; /* by first appearance */
	size_t count, cap, last;
	struct map64 pids;
};

void processes_free(struct processes *p);
/* Index of the process with this pid, which is made when it is new; or -ENOMEM. */
int64_t process_of(struct processes *p, uint32_t pid);

#endif
