/* SPDX-License-Identifier: Apache-2.0 */
/*
 * launch_run.h - one launch on a core, from its START record to its END record.
 *
 * The schedule (schedule.h) says what comes next; this computes it, writes its records and keeps
 * the pace: a record is written when the core's clock has reached its time, not before, and
 * everything that nobody sees is done as fast as the host can.  At a collective the core waits for
 * the others (meeting.h).  A fault writes its record and then does what its row of faults.def
 * says.
 */
#ifndef NTRACE_VDEV_LAUNCH_RUN_H
#define NTRACE_VDEV_LAUNCH_RUN_H

#include "runtime/vdev/program.h"

/* Runs core->running in the core's thread.  core->lock is held, and dropped while the host
 * computes or waits.  When the launch has its END record core->running is NULL and the launch is
 * counted as completed; else it was cancelled, or the core stopped. */
void vdev_launch_run(struct vdev_core *core, struct vdev_launch *launch);

#endif
