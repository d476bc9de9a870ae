/* SPDX-License-Identifier: Apache-2.0 */
/*
 * execute_run.h - an execution in progress, as the files of it share it: execute.c (sets, tensors, calls),
 * execute_run.c (what the host does), execute_device.c (what the device says it did),
 * execute_records.c (what nrt_trace_start records of it).
 *
 * A logical core has one struct core_run per physical core.  All of it belongs to the thread that executes, which
 * holds the core's lock from execution_run on.
 */
#ifndef NTRACE_EXEC_EXECUTE_RUN_H
#define NTRACE_EXEC_EXECUTE_RUN_H

#include <stdbool.h>

#include "runtime/exec/model.h"
#include "runtime/exec/tensor.h"
#include "runtime/profile/exec_trace.h"
#include "runtime/trace/trace.h"

/* Records of a ring, read while the run goes on, for the events that are made of them at its end. */
struct core_notes {
	struct notification *list;
	uint32_t count, room;
	uint64_t lost; /* records that could not be had */
};

/* What one physical core does of it. */
struct core_run {
	struct device_core *core;
	bool started, ended;
	bool given_up; /* it was ended by the host, or the device is gone */
	uint64_t start_ps, end_ps;
	uint64_t switch_ps[2]; /* the core's own change of model before it; 0: none */
	NRT_STATUS status;
	uint32_t ends; /* runs whose end was read, also of earlier ones: to be acknowledged */
	struct core_notes errors, collectives;
	uint32_t fault; /* enum vdev_core_fault of its first record of an error, 0: none */
	uint32_t fault_step;
	bool synced;
	struct device_sync sync; /* when synced */
	/* Of a clock that gained more on the host's than the reading can be wrong: the first record of the run, and
	 * the earliest that it can have been; host.ns 0: none. */
	struct device_sync begin;
};

struct execution {
	struct nrt_model *model;
	uint32_t id;
	uint64_t starting_ns,
		submitted_ns; /* BOOTTIME: just before the cores were started, and after */
	struct nrt_tensor
		*tensors[VDEV_MAX_BINDINGS];	   /* with references; NULL for temporary ones */
	struct tensor_use uses[VDEV_MAX_BINDINGS]; /* of these tensors */
	NRT_STATUS tensor_status;		   /* why it cannot run with them */
	struct core_run runs[CORES_MAX_SIZE];	   /* model->place.parts of them */
};

/* Runs it, its tensors being known.  Needs the core's lock. */
NRT_STATUS execution_run(struct execution *e);

/* ---- execute_device.c --------------------------------------------------------------------- */

/* Forgets what the rings of errors and collectives still hold of earlier executions. */
void device_forget(struct core_run *r);
/* Takes what the core has written so far, into all its rings. */
void device_take_notes(const struct execution *e, struct core_run *r);
/* Reads both clocks and says so; sets r->synced.  Nothing when nobody wants to know or the clock cannot be
 * read. */
void device_take_sync(const struct execution *e, struct core_run *r);
/* The events of a run whose core has a sync point: the core's change of model and the run. */
void device_say_run(const struct execution *e, const struct core_run *r);
/* The same for a profile of the core. */
void device_profile_run(const struct execution *e, const struct core_run *r);
/* An event for each record of the ring of errors; the first is the run's fault. */
void device_say_errors(const struct execution *e, struct core_run *r);
/* An event for each collective of the ring of the TopSP. */
void device_say_collectives(const struct execution *e, struct core_run *r);
/* Frees what was taken. */
void device_drop_notes(struct core_run *r);

/* ---- execute_records.c, times of the host ------------------------------------------------- */

void record_execution(const struct execution *e, enum exec_trace_type type, NRT_STATUS status);
/* r->sync, as two records. */
void record_sync(const struct core_run *r);
void record_run(
	const struct execution *e, const struct core_run *r, uint64_t start_ns, uint64_t end_ns);
void record_collective(const struct execution *e, const struct core_run *r, uint32_t op,
	uint64_t start_ns, uint64_t end_ns, NRT_STATUS status);
void record_error(const struct execution *e, const struct core_run *r, uint64_t ns, uint32_t fault,
	NRT_STATUS status);

/* ---- execute_failure.c -------------------------------------------------------------------- */

/* Logs why it has this status, when its cores say so; nothing when it succeeded.  After device_say_errors. */
void execution_say_failure(const struct execution *e, NRT_STATUS status);

#endif
