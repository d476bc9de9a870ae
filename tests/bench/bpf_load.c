/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bpf_load.c - how long it takes until the hooks are there, beside the smallest object that the kernel can be
 * given.
 *
 * Each round loads and attaches everything that a recording does, and closes it again; the peer is the creation of
 * one array of one element.  Under 300 ms is wanted on an ordinary machine.
 */
#include <bpf/bpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "agent/collect/ioctl_hooks.h"
#include "runtime/base/clock.h"

#define ROUNDS 11
#define CANNOT_RUN 77 /* exit code for tests/bench/run.sh: something is lacking here */
#define WANTED_MS 300.0

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double ms_since(uint64_t start)
{
	return (double)(clock_boot().ns - start) / 1e6;
}

static double smallest(void)
{
	uint64_t start = clock_boot().ns;
	int fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "ntrace_bench", 4, 4, 1, NULL);

	if (fd >= 0)
		close(fd);
	return ms_since(start);
}

static int round_of(double *ret_open, double *ret_close)
{
	struct ioctl_hooks_options o = {0};
	uint64_t start = clock_boot().ns;
	struct ioctl_hooks *h;
	char why[256];

	if (ioctl_hooks_open(&o, &h, why, sizeof(why)) < 0) {
		fprintf(stderr, "bpf_load: %s\n", why);
		return CANNOT_RUN;
	}
	*ret_open = ms_since(start);
	start = clock_boot().ns;
	ioctl_hooks_close(h);
	*ret_close = ms_since(start);
	return 0;
}

int main(void)
{
	double opened[ROUNDS], closed[ROUNDS], peer[ROUNDS];

	for (int i = 0; i < ROUNDS; i++) {
		int r = round_of(&opened[i], &closed[i]);

		if (r)
			return r;
		peer[i] = smallest();
	}
	qsort(opened, ROUNDS, sizeof(double), by_value);
	qsort(closed, ROUNDS, sizeof(double), by_value);
	qsort(peer, ROUNDS, sizeof(double), by_value);
	printf("hooks: %.1f ms to load and attach (%.1f to %.1f), %.1f ms to close; one empty map: "
	       "%.3f ms\n",
		opened[ROUNDS / 2], opened[0], opened[ROUNDS - 1], closed[ROUNDS / 2],
		peer[ROUNDS / 2]);
	printf("hooks: %s %.0f ms\n", opened[ROUNDS / 2] < WANTED_MS ? "below" : "NOT BELOW",
		WANTED_MS);
	return 0;
}
