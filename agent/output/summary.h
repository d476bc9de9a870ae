/* SPDX-License-Identifier: Apache-2.0 */
/*
 * summary.h - what a trace says in one page: how long, what was lost, how busy the cores were, which
 * calls took the time.
 *
 * Three steps, in this order: the sink of summary_sink gathers, summary_compute makes what is printed of
 * it and sorts, the printers print.  Memory: 8 bytes per span, for exact percentiles, and 16 per gap
 * between runs and between copies.  Times are epoch ns as in the trace; printers show them from its
 * first event on.
 */
#ifndef NTRACE_OUTPUT_SUMMARY_H
#define NTRACE_OUTPUT_SUMMARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "agent/output/durations.h"
#include "agent/output/event_kind.h"
#include "agent/output/feed.h"
#include "agent/output/intervals.h"
#include "agent/output/state.h"
#include "runtime/record/map64.h"

#define SUMMARY_NO_CORE UINT32_MAX
#define SUMMARY_MAX_NAMES 4096u	       /* what comes later counts as SUMMARY_OTHER_NAMES */
#define SUMMARY_OTHER_NAMES "(others)" /* of its kind */
#define SUMMARY_MAX_ERRORS 64u	       /* of one name; the rest too counts as the others */
#define SUMMARY_MAX_PHYSICAL 64u       /* of one logical core; the rest counts as one more */
#define SUMMARY_OTHER_PHYSICAL UINT32_MAX
#define SUMMARY_MAX_UNITS 256u /* of one logical core; the rest counts as one more */
#define SUMMARY_UNIT_NAME 20u

/* From the first event to the last. */
struct summary_window {
	bool any;
	uint64_t first_ns, last_ns;
};

/* Events by phase. */
struct summary_events {
	uint64_t total, starts, stops, instants, start_lost;
	uint64_t closed;      /* starts whose stop was seen */
	uint64_t open_idless; /* while gathering: starts without an id that wait for such a stop */
};

struct summary_process {
	uint32_t pid;
	char *name;
	struct summary_events events;
	struct summary_window window;
	bool has_info, ended;
	bool no_driver_calls;	   /* left out by --kernel-events=off */
	bool units_at_least;	   /* device records are missing */
	const char *first_unknown; /* why its first executions need not be here; NULL: they are */
	struct map64 open;	   /* while gathering: id -> place in summary.open + 1 */
	struct map64 begun;	   /* id -> place of the name that has started under it */
};

/* How often a name of an error stands on calls. */
struct summary_error {
	char *name;
	uint64_t n;
};

/* Events with one name. */
struct summary_name {
	char *name;	      /* as it stands in the trace, which need not be printable */
	size_t len;	      /* of name, which may hold any byte, with a 0 behind */
	enum event_kind kind; /* marks are counted with the host's */
	struct summary_events events;
	uint64_t failed;
	struct durations durations; /* of STOPs */
	uint64_t total_ns;
	struct summary_error *errors;
	size_t error_count;
};

/* The device runs of one physical core. */
struct summary_physical {
	uint32_t index; /* device_core_idx */
	uint64_t runs, run_ns;
	struct intervals ran;
};

/* An engine, a DMA queue or the TopSP of a physical core, by what device profiles tell. */
struct summary_unit {
	char name[SUMMARY_UNIT_NAME];
	uint32_t physical; /* device_core_idx */
	uint64_t n;	   /* spans */
	struct intervals ran;
	/* Computed: time in them, how much of it is in device runs of its core, and how long these are. */
	uint64_t busy_ns, in_runs_ns, runs_ns;
};

struct summary_gaps {
	uint64_t n, total_ns, longest_ns;
};

/* A logical core of a process. */
struct summary_core {
	size_t process;
	uint32_t nc;		      /* SUMMARY_NO_CORE: events that belong to none */
	struct summary_window window; /* of the runtime's events */
	struct summary_physical *physical;
	size_t physical_count;
	struct summary_unit *units;
	size_t unit_count;
	uint64_t unit_bound_ns;
	uint64_t open_runs;
	uint64_t collectives, barriers; /* spans */
	struct intervals collective, barrier;
	uint64_t bound_ns;		     /* largest of its device times */
	uint64_t bound_known, bound_unknown; /* device times with one, and that have none */
	/* Computed. */
	uint32_t logical_size; /* physical cores that it has, as far as is known */
	uint64_t runs, sum_ns, busy_ns, all_busy_ns;
	uint64_t collective_ns, barrier_ns, rest_ns; /* within busy_ns */
	struct summary_gaps gaps;
};

enum summary_source { SUMMARY_BY_DRIVER, SUMMARY_BY_RUNTIME, SUMMARY_SOURCES };

/* Copies that succeeded. */
struct summary_copies {
	uint64_t n, bytes;
	uint64_t unsized; /* of n: how much they copied is not known */
	struct intervals ran;
	uint64_t wall_ns; /* computed: of the union */
};

/* Executions of a model in a process, by what was timed. */
struct summary_model {
	size_t process;
	uint64_t id;
	char *name;	/* "" when it is not known */
	bool on_device; /* nc_exec_running, else nrt_execute */
	uint64_t failed, failed_ns;
	/* Those that succeeded: computed, the first on each core apart unless process.first_unknown;
	 * while gathering, all but the firsts so far. */
	struct durations first, rest;
};

/* The earliest execution of a model that succeeded on a core, so far. */
struct summary_first {
	size_t model;
	uint64_t start_ns, duration_ns;
};

struct summary_row {
	char *stage, *counter;
	uint64_t value;
};

/* What failed, and the driver's last errors before it. */
struct summary_failure {
	size_t process;
	char *what;
	char **errors;
	size_t error_count;
};

/* What the processes of one recording share. */
struct summary_capture {
	uint64_t begin_ns; /* these four tell captures apart */
	int64_t offset_ns;
	uint64_t cpu_ns, bytes;
	uint64_t events;
	struct trace_state state;
	bool session;		    /* a program recorded itself */
	bool cut;		    /* a part that rec cut made, of `records`, */
	uint64_t left_out, records; /* of which it left some out */
};

/* What is known of a span that has started. */
struct summary_open {
	size_t core, physical, model; /* physical: or unit; model: place + 1, 0: none */
	unsigned work;		      /* what it is, as summary_work.c names it */
	bool sized;
	uint64_t bytes;
	uint64_t on; /* key of (model, core) */
	size_t next_free;
};

struct summary {
	struct summary_process *processes;
	size_t process_count;
	struct summary_events events;
	struct summary_window window;
	struct summary_name *names;
	size_t name_count;
	struct summary_core *cores;
	size_t core_count;
	struct summary_copies copies[SUMMARY_SOURCES][EVENT_DIRECTIONS];
	struct summary_model *models;
	size_t model_count;
	struct summary_first *firsts;
	size_t first_count;
	struct summary_row *lost, *noted;
	size_t lost_count, noted_count;
	uint64_t lost_total, overwritten;
	struct summary_capture *captures;
	size_t capture_count;
	struct summary_failure *failures;
	size_t failure_count;
	char **blind;
	size_t blind_count;
	bool is_virtual, is_simulated;
	uint64_t without_info; /* processes without a trace_info.pb */
	uint64_t damaged;      /* processes of which not all could be read */
	uint64_t left_out;     /* sessions that no file was made of yet */
	uint32_t logical_size; /* largest that a trace_info.pb tells */

	const volatile sig_atomic_t *cancel; /* of summary_compute, may be NULL */

	/* While gathering. */
	struct map64 row_index, blind_index; /* hashes of texts -> places */
	struct map64 name_index, core_index, model_index, executed;
	struct summary_open *open;
	size_t open_count, first_free; /* place + 1 */
};

/* A sink that gathers into *s, which is all zero at first.  summary_free in any case. */
struct feed_sink summary_sink(struct summary *s);
void summary_free(struct summary *s);

/* 0, -ENOMEM or -ECANCELED.  Everything is sorted then; in which order processes came does not matter. */
int summary_compute(struct summary *s);

void summary_print_text(FILE *f, const struct summary *s);
void summary_print_json(FILE *f, const struct summary *s);

void summary_widen(struct summary_window *w, uint64_t first, uint64_t last);
uint64_t summary_length(const struct summary_window *w);
/* Spans whose end was not seen. */
uint64_t summary_open_count(const struct summary_events *e);
/* Bytes per second of wall time; 0 when there was no time. */
uint64_t summary_goodput(const struct summary_copies *c);
const char *summary_source_name(enum summary_source s);
/* Are all losses counted? */
bool summary_losses_known(const struct summary *s);
/* What was damaged in all recordings together. */
struct rec_damage summary_damage(const struct summary *s);

/* ---- between the files that gather --------------------------------------------------------- */

/* Makes room for one more in *(T **)list with n elements; the new one is zero.  0 or -ENOMEM. */
int summary_grow(void *list, size_t n, size_t element);
/* What runs on devices, copies and models: the events that need more than a count.  0 or -ENOMEM. */
int summary_take_runtime(struct summary *s, size_t core, const struct ntrace_event_view *e);
/* An event of a device profile. */
int summary_take_unit(struct summary *s, size_t core, const struct ntrace_event_view *e);
/* When the runs of a core are known. */
int summary_end_units(struct summary_core *c);
/* When processes are sorted: the first executions to their models, apart or with the rest.  0 or -ENOMEM. */
int summary_end_firsts(struct summary *s);
/* Spans between their START and their STOP, by process and id.  close: false, and *ret is what is known without
 * it, when such a start on this core with this work was not seen. */
int summary_open_span(
	struct summary *s, size_t process, uint64_t id, const struct summary_open *what);
bool summary_close_span(
	struct summary *s, size_t core, uint64_t id, unsigned work, struct summary_open *ret);
/* The STOP of a driver call. */
int summary_take_driver(struct summary *s, const struct ntrace_event_view *e);
/* A process's trace_info.pb; NULL: it has none.  0 or -ENOMEM. */
int summary_take_info(struct summary *s, size_t process, const Ntff__NtraceInfo *info);

#endif
