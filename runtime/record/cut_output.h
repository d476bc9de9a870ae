/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cut_output.h - a recording that has its name only when it is whole.
 *
 * It is written in a hidden directory beside its place and renamed at the end, so whoever finds it
 * under its name finds all of it, and a process that is killed before leaves nothing that looks
 * like a recording at that place.  Existing names are never replaced.
 */
#ifndef NTRACE_RECORD_CUT_OUTPUT_H
#define NTRACE_RECORD_CUT_OUTPUT_H

#include "runtime/record/recording.h"

struct cut_output {
	const char *path; /* the final name */
	char *hidden;	  /* directory beside it */
	char *inner;	  /* the recording in there */
	struct rec_writer *writer;
	uint32_t profiles; /* device profiles that are in it */
};

/* Begins a recording that is to be called `path`, which must stay valid.  -EEXIST when there is
 * something called so; 0 or -errno. */
int cut_output_open(struct cut_output *o, const char *path);
/* Copies a device profile from the directory of another recording; p->index becomes that of the copy.  What
 * device_sum_copy says. */
int cut_output_profile(struct cut_output *o, int from_dir, struct rec_device_profile *p);
/* Ends the recording: gives it its name when `error` is 0, else, or when that fails, removes it.  `error` or
 * what went wrong, -EEXIST when the name was taken meanwhile. */
int cut_output_close(struct cut_output *o, int error);

#endif
