/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inspect_ends.h - what a program that ends in some way tells the test that looks at what it left: a page of
 * shared memory, which the end does not touch.
 */
#ifndef NTRACE_TESTS_INSPECT_ENDS_H
#define NTRACE_TESTS_INSPECT_ENDS_H

#include <stdatomic.h>
#include <stdint.h>

enum ends_stage {
	ENDS_BEGINS,
	ENDS_READY,    /* the executions that were asked for are done */
	ENDS_GOES_ON,  /* set by the test, for --wait */
	ENDS_STOPPING, /* nrt_inspect_stop is the next call */
	ENDS_STOPPED,
	ENDS_INSIDE,   /* nrt_execute is the next call, and does not return */
	ENDS_HEADLESS, /* the main thread has ended */
};

struct ends_page {
	_Atomic uint32_t stage;
	_Atomic uint32_t count;	     /* executions that have ended */
	_Atomic uint32_t safe;	     /* of those, before the pause of --rest */
	_Atomic int32_t stop_status; /* of nrt_inspect_stop */
};

#endif
