/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recorded.h - device profiles for `ntrace record --device`: of each core that a model was loaded on, from
 * its first load to nrt_close or, in a program that does not call it, to its exit.
 *
 * They are apart from the program's own profiles, which they share the collector with: no call
 * behaves differently because of them.  Whatever goes wrong with them is said in the log.  What the
 * recorder finds is told in runtime/base/profile_dir.h.
 */
#ifndef NTRACE_PROFILE_RECORDED_H
#define NTRACE_PROFILE_RECORDED_H

#include "runtime/lifecycle/runtime.h"

/* When nrt_init has done its work, before any call is in.  Nothing unless NTRACE_DEVICE_PROFILE
 * named a directory. */
void recorded_open(const struct runtime *r);

/* Before a model is loaded on a logical core: the first one opens the core's rings. */
void recorded_load(uint32_t nc);

/* When executions have ended, before the collector does: writes what there is. */
void recorded_close(void);

#endif
