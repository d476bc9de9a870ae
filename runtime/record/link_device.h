/* SPDX-License-Identifier: Apache-2.0 */
/*
 * link_device.h - device runs and the calls that submitted them.
 */
#ifndef NTRACE_RECORD_LINK_DEVICE_H
#define NTRACE_RECORD_LINK_DEVICE_H

#include "runtime/record/timeline.h"

/* Sets `link` and `link_exact` of the device runs.  Parents are known already.  0 or -ENOMEM. */
int link_device_runs(struct timeline *t);

#endif
