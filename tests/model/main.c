/* SPDX-License-Identifier: Apache-2.0 */
/*
 * main.c - the model test as a program: many seeds, or one seed closely.
 *
 *	model [--seeds FROM-TO] [--seed N] [--without FEATURE]... [--only FEATURE]... [-v]
 *
 * Ends with `N passed, N failed, 0 skipped`; at most 20 failures are described.
 */
#include "tests/model/model.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/scratch.h"

#define MAX_SHOWN 20u

struct arguments {
	uint64_t from, to;
	uint32_t allowed, only;
	bool verbose;
};

static void usage(void)
{
	printf("usage: model [--seeds FROM-TO] [--seed N] [--without FEATURE] [--only FEATURE] "
	       "[-v]\n");
	for (unsigned f = 0; f < MODEL_FEATURE_COUNT; f++)
		printf("  %-12s %s\n", model_feature_name(f), model_feature_text(f));
}

static bool add_feature(const char *name, uint32_t *set, bool on)
{
	for (unsigned f = 0; f < MODEL_FEATURE_COUNT; f++)
		if (strcmp(name, model_feature_name(f)) == 0) {
			*set = on ? *set | 1u << f : *set & ~(1u << f);
			return true;
		}
	return false;
}

static bool parse(int argc, char **argv, struct arguments *a)
{
	static const struct option options[] = {{"seeds", required_argument, NULL, 'r'},
		{"seed", required_argument, NULL, 's'}, {"without", required_argument, NULL, 'w'},
		{"only", required_argument, NULL, 'o'}, {NULL, 0, NULL, 0}};
	int c;

	while ((c = getopt_long(argc, argv, "v", options, NULL)) != -1) {
		bool ok = true;

		if (c == 'r')
			ok = sscanf(optarg, "%" SCNu64 "-%" SCNu64, &a->from, &a->to) == 2;
		else if (c == 's')
			ok = sscanf(optarg, "%" SCNu64, &a->from) == 1 && ((a->to = a->from), true);
		else if (c == 'w')
			ok = add_feature(optarg, &a->allowed, false);
		else if (c == 'o')
			ok = add_feature(optarg, &a->only, true);
		else if (c == 'v')
			a->verbose = true;
		else
			ok = false;
		if (!ok)
			return false;
	}
	if (a->only)
		a->allowed = a->only;
	return optind == argc && a->from <= a->to;
}

int main(int argc, char **argv)
{
	struct arguments a = {.from = 1, .to = 10000, .allowed = MODEL_ALL};
	struct scratch dir;
	uint64_t passed = 0, failed = 0;

	if (!parse(argc, argv, &a)) {
		usage();
		return 2;
	}
	if (!getenv("TMPDIR") && access("/dev/shm", W_OK) == 0)
		setenv("TMPDIR", "/dev/shm", 1);
	if (!scratch_make(&dir)) {
		printf("cannot make a directory for scratch\n0 passed, 1 failed, 0 skipped\n");
		return 3;
	}
	struct model_run run = {
		.dir = dir.dir, .allowed = a.allowed, .twin = 3, .verbose = a.verbose};
	for (uint64_t seed = a.from; seed <= a.to; seed++) {
		char what[1024];

		if (model_seed(&run, seed, what)) {
			passed++;
		} else if (failed++ < MAX_SHOWN) {
			printf("failed: %s\n", what);
			fflush(stdout);
		}
	}
	scratch_remove(&dir);
	printf("%" PRIu64 " passed, %" PRIu64 " failed, 0 skipped\n", passed, failed);
	return failed > 0;
}
