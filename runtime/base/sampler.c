/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sampler.c - raw host samples from /proc.
 *
 * Files are opened and closed at each sample: once a second that costs nothing, and a descriptor
 * kept in a traced program could be closed or reused by it.
 */
#include "runtime/base/sampler.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/file.h"

#define MAX_STAT_BYTES (8u << 20) /* 4096 rows and an interrupt line fit several times over */

/* Columns of a cpu row of /proc/stat.  The two that follow, guest and guest_nice, are already part
 * of user and nice. */
enum { USER, NICE, SYSTEM, IDLE, IOWAIT, IRQ, SOFTIRQ, STEAL, COLUMNS };

/* Reads a number behind blanks within the line; false when there is none. */
static bool next_number(const char **p, uint64_t *ret)
{
	char *end;

	while (**p == ' ')
		(*p)++;
	if (!isdigit((unsigned char)**p))
		return false;
	*ret = strtoull(*p, &end, 10);
	*p = end;
	return true;
}

/* "cpu3 1 2 3 4 ..."; old kernels have fewer columns, but never fewer than four. */
static bool parse_cpu_row(const char *line, struct sampler_cpu *row)
{
	uint64_t v[COLUMNS] = {0}, cpu;
	const char *p = line + 3;
	int n = 0;

	if (strncmp(line, "cpu", 3) != 0 || !isdigit((unsigned char)*p))
		return false;
	if (!next_number(&p, &cpu) || cpu > UINT32_MAX)
		return false;
	while (n < COLUMNS && next_number(&p, &v[n]))
		n++;
	if (n <= IDLE)
		return false;
	*row = (struct sampler_cpu){.cpu = (uint32_t)cpu,
		.busy = v[USER] + v[NICE] + v[SYSTEM] + v[IRQ] + v[SOFTIRQ] + v[STEAL]};
	row->total = row->busy + v[IDLE] + v[IOWAIT];
	return true;
}

int sampler_parse_stat(const char *text, struct sampler_cpu *rows, int max)
{
	int n = 0;

	/* The kernel lists CPUs in ascending order, those that are offline left out. */
	for (const char *line = text; line && n < max;) {
		if (parse_cpu_row(line, &rows[n]))
			n++;
		line = strchr(line, '\n');
		if (line)
			line++;
	}
	return n;
}

int sampler_cpus(struct sampler_cpu *rows, int max)
{
	_cleanup_free_ char *text = NULL;
	size_t size;
	int err = file_read("/proc/stat", MAX_STAT_BYTES, &text, &size);

	return err ? err : sampler_parse_stat(text, rows, max);
}

int sampler_rss(pid_t pid, uint64_t *ret_bytes)
{
	_cleanup_free_ char *text = NULL;
	uint64_t total, resident;
	const char *p;
	char path[48];
	size_t size;
	int err;

	/* The main thread may have ended, and has no memory then. */
	if (pid == getpid())
		snprintf(path, sizeof(path), "/proc/thread-self/statm");
	else
		snprintf(path, sizeof(path), "/proc/%d/statm", (int)pid);
	err = file_read(path, 4096, &text, &size);
	if (err)
		return err;
	p = text;
	if (!next_number(&p, &total) || !next_number(&p, &resident))
		return -EBADMSG;
	*ret_bytes = resident * (uint64_t)sysconf(_SC_PAGESIZE);
	return 0;
}
