/* SPDX-License-Identifier: Apache-2.0 */
/*
 * perfetto_process.h - what the exporter knows of a process and of a host; for agent/output/perfetto*.c.
 */
#ifndef NTRACE_OUTPUT_PERFETTO_PROCESS_H
#define NTRACE_OUTPUT_PERFETTO_PROCESS_H

#include "agent/output/feed.h"
#include "agent/output/perfetto_lines.h"
#include "agent/output/perfetto_writer.h"
#include "runtime/trace/event_registry.h"

#define PFT_CPUS 4096u /* numbers beyond are not believed */

/* Rates of copies: windows of WINDOW_NS, of which the newest stay open for copies that go on. */
#define PFT_WINDOW_NS 10000000u
#define PFT_WINDOWS 1024u

enum pft_direction { PFT_TO_DEVICE, PFT_TO_HOST, PFT_BETWEEN, PFT_DIRECTIONS };

struct pft_copies {
	struct pft_seq seq;
	uint64_t first;			/* number of the oldest window that is held */
	uint64_t end;			/* behind the newest; == first: none */
	uint64_t (*bytes)[PFT_WINDOWS]; /* by direction; window n at n % PFT_WINDOWS */
	uint64_t total[PFT_DIRECTIONS], rate[PFT_DIRECTIONS];
	uint32_t rate_track[PFT_DIRECTIONS], total_track[PFT_DIRECTIONS];
};

/* Slices that outlived what contained them; each lane is a sequence, as its times are its own. */
struct pft_spare {
	struct pft_seq seq;
	uint32_t track;
};
#define PFT_SPARES 64u

/* Flows that a submission announced; places are found by its id. */
struct pft_announced {
	uint64_t id, first;
	uint8_t count, used;
};
#define PFT_ANNOUNCED 4096u

struct pft_host {
	char *name;
	struct pft_seq seq; /* CPUs */
	uint32_t track, mean_track;
	uint32_t *cpu_tracks;  /* by number; PFT_CPUS */
	uint64_t cpu_time;     /* of the samples that came last, epoch ns */
	struct map64 cpu_seen; /* epoch time of samples -> process they came with + 1 */
	double cpu_sum;
	uint32_t cpu_count;
};

struct pft_process {
	struct pft_writer *w;
	struct pft_host *host;
	uint32_t pid; /* 0: not shown as a process of its own */
	uint32_t track;
	struct pft_seq seq, mem_seq;
	uint32_t mem_track, loss_track, loss_counter;
	uint64_t losses;
	uint32_t type_names[TRACE_TYPE_COUNT]; /* iids */
	struct pft_lines lines;
	struct pft_copies copies;
	struct pft_spare *spares;
	uint32_t spare_count;
	struct pft_announced *announced;
	uint8_t flows_per_submit;
	/* Realtime steps. */
	struct pft_step {
		uint64_t boot;
		int64_t offset;
	} * steps;
	uint32_t step_count;
	/* Packed trace_info.pb of a process without events: told when the file's newest time is known. */
	uint8_t *late_info;
	size_t late_size;
};

/* Boot time of an epoch time in a file; never 0. */
static inline uint64_t pft_boot(const struct pft_writer *w, uint64_t epoch_ns)
{
	uint64_t boot = epoch_ns - (uint64_t)w->offset;

	return w->offset > 0 && epoch_ns <= (uint64_t)w->offset ? 1 : boot ? boot : 1;
}

/* A counter track below a parent. */
uint32_t pft_counter(struct pft_writer *w, const struct pft_seq *s, uint64_t parent,
	const char *name, const char *unit);
void pft_count(
	struct pft_writer *w, struct pft_seq *s, uint32_t track, uint64_t time, int64_t value);

/* The track of a line's lane, made when it is new; 0: no memory. */
uint32_t pft_line_track(struct pft_process *p, struct pft_line *line, uint32_t lane);

/* The number of a unit of a core by its name in `engine`; one number for all names that are not known. */
uint32_t pft_unit(struct pb_str name);

/* One event of a process.  0 or -errno. */
int pft_process_event(struct pft_process *p, const struct ntrace_event_view *e);

/* Notes one more record that was lost or broken, as far as its time is known (boot ns). */
void pft_process_loss(struct pft_process *p, uint64_t time);

/* A copy of so many bytes between two boot times.  0 or -ENOMEM. */
int pft_copies_add(
	struct pft_process *p, enum pft_direction d, uint64_t from, uint64_t to, uint64_t bytes);
/* Writes what is still open. */
void pft_copies_end(struct pft_process *p);

#endif
