/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sys_trace_capture.h - tests of a program's own capture: the start of one, and some work to be captured.
 *
 * Header only; on top of sys_trace_reader.h.
 */
#ifndef NTRACE_TESTS_SYS_TRACE_CAPTURE_H
#define NTRACE_TESTS_SYS_TRACE_CAPTURE_H

#include "tests/unit/sys_trace_reader.h"

/* Starts with what change makes of the defaults; the config is gone before anything is recorded. */
static inline NRT_STATUS start(void (*change)(nrt_sys_trace_config_t *config))
{
	nrt_sys_trace_config_t *config = NULL;
	NRT_STATUS status = lib.nrt_sys_trace_config_allocate(&config);

	if (status)
		return status;
	if (change)
		change(config);
	status = lib.nrt_sys_trace_start(config);
	lib.nrt_sys_trace_config_set_capture_enabled_for_nc(config, 0, false);
	lib.nrt_sys_trace_config_set_capture_enabled_for_nc(config, 1, false);
	lib.nrt_sys_trace_config_free(config);
	return status;
}

static inline int begin(const struct place *p, void (*change)(nrt_sys_trace_config_t *config))
{
	WANT(enter(p) == 0);
	WANT_STATUS(init(), 0);
	WANT_STATUS(start(change), 0);
	return 0;
}

static inline int run_some(struct job *j, int runs)
{
	for (int i = 0; i < runs; i++)
		WANT(job_run(j, (float)i, 2.0f) == 0);
	return 0;
}

#define DEVICE_TEST(name, fn, options)        \
	TEST(name, "[nrt][sys_trace][vdev]")  \
	{                                     \
		if (device_lacks())           \
			SKIP(device_lacks()); \
		with_device(fn, options);     \
	}

#endif
