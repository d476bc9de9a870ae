/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workload.h - what the workloads share: options, a message for a call that failed, threads.
 *
 * Header only, over the public headers alone: a workload is a program like any other and knows nothing of the
 * inside of the library.
 */
#ifndef NTRACE_TESTS_WORKLOAD_H
#define NTRACE_TESTS_WORKLOAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <nrt/nrt.h>

/* Ranks belong to a job: to that of the environment, else to one of this process alone. */
static inline void workload_name_job(void)
{
	unsigned id = (unsigned)getpid();
	char job[32];

	snprintf(job, sizeof(job), "127.%u.%u.%u:4000", id >> 16 & 255, id >> 8 & 255, id & 255);
	(void)setenv("NEURON_RT_ROOT_COMM_ID", job, 0);
}

/* An option `--name VALUE`: a number up to `most`, or a text when that is 0. */
#define NUMBER_OPTION(option, variable, at_most)                           \
	{                                                                  \
		.name = (option), .number = &(variable), .most = (at_most) \
	}
#define TEXT_OPTION(option, variable)                 \
	{                                             \
		.name = (option), .text = &(variable) \
	}
struct workload_option {
	const char *name;
	unsigned *number, most;
	const char **text;
};

static inline bool workload_option_set(const struct workload_option *o, const char *value)
{
	unsigned long number;
	char *end;

	if (o->text) {
		*o->text = value;
		return true;
	}
	number = strtoul(value, &end, 10);
	*o->number = (unsigned)number;
	return end != value && !*end && number <= o->most;
}

/* Reads the command line; options ends with a row without a name.  false: it is wrong. */
static inline bool workload_options(int argc, char **argv, const struct workload_option *options)
{
	for (int i = 1; i < argc; i += 2) {
		const struct workload_option *o = options;

		while (o->name && strcmp(o->name, argv[i]) != 0)
			o++;
		if (!o->name || i + 1 == argc || !workload_option_set(o, argv[i + 1]))
			return false;
	}
	return true;
}

/* Did it fail?  Says so. */
static inline bool failed(const char *what, NRT_STATUS status)
{
	if (status)
		fprintf(stderr, "%s gave status %d\n", what, (int)status);
	return status != NRT_SUCCESS;
}

/* A device tensor, put into a set under its name. */
static inline bool tensor_for(
	nrt_tensor_set_t *set, unsigned core, const char *name, size_t size, nrt_tensor_t **ret)
{
	return !failed("nrt_tensor_allocate", nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE,
						      (int)core, size, name, ret)) &&
	       !failed("nrt_add_tensor_to_tensor_set",
		       nrt_add_tensor_to_tensor_set(set, name, *ret));
}

static inline bool init_cores(unsigned wanted)
{
	uint32_t cores = 0;

	if (failed("nrt_init", nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", "")) ||
		failed("nrt_get_visible_vnc_count", nrt_get_visible_vnc_count(&cores)))
		return false;
	if (wanted > cores)
		fprintf(stderr, "%u cores are wanted, and this program has %u\n", wanted, cores);
	return wanted <= cores;
}

#endif
