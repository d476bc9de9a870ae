/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sampler.h - raw host samples: per-CPU time from /proc/stat, resident bytes from
 * /proc/<pid>/statm.
 *
 * Keeps no state and no descriptor between calls; any thread may call.  Values are raw counters;
 * utilisation is computed where the samples are merged.
 */
#ifndef NTRACE_BASE_SAMPLER_H
#define NTRACE_BASE_SAMPLER_H

#include <stdint.h>
#include <sys/types.h>

#define SAMPLER_MAX_CPUS 4096

struct sampler_cpu {
	uint32_t cpu;
	uint32_t pad;
	uint64_t busy;	/* USER_HZ ticks: user + nice + system + irq + softirq + steal */
	uint64_t total; /* busy + idle + iowait */
};

/* Fills up to max rows in CPU order from the text of /proc/stat; returns how many.  Rows of CPUs
 * that are offline are missing there and here. */
int sampler_parse_stat(const char *text, struct sampler_cpu *rows, int max);

/* Reads /proc/stat; rows or -errno. */
int sampler_cpus(struct sampler_cpu *rows, int max);

/* Resident bytes of a process (second field of statm times the page size); -errno (-ESRCH/-ENOENT
 * when it is gone). */
int sampler_rss(pid_t pid, uint64_t *ret_bytes);

#endif
