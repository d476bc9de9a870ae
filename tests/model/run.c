/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run.c - one seed from world to verdict, and the smallest world in which it still fails.
 */
#include "tests/model/model.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/file.h"
#include "tests/unit/scratch.h"

enum { RNG_FEATURES = 21 };

#define F(id, name, text) [WITH_##id] = {name, text},
static const struct {
	const char *name, *text;
} features[] = {MODEL_FEATURES(F)};
#undef F

const char *model_feature_name(unsigned feature)
{
	return feature < MODEL_FEATURE_COUNT ? features[feature].name : NULL;
}

const char *model_feature_text(unsigned feature)
{
	return features[feature].text;
}

/* Each seed has about a third of the features, one in eight all that fit together. */
static uint32_t choose_features(struct rng *r)
{
	uint32_t chosen = 0;
	bool many = rng_one_in(r, 8);

	for (unsigned f = 0; f < MODEL_FEATURE_COUNT; f++)
		if (rng_one_in(r, many ? 2 : 3))
			chosen |= 1u << f;
	return chosen;
}

static bool merge(
	struct model *m, const struct scratch *dir, const char *out, struct merge_result *result)
{
	_cleanup_free_ char *error = NULL;
	int rc;

	rc = merge_recording(scratch_path(dir, REC_DIR).s, scratch_path(dir, out).s, &m->options,
		result, &error);
	return rc == 0 || model_fail(m, "the merge says %d: %s", rc, error ? error : "-");
}

/* The same bytes in the file of two runs? */
static bool same_file(struct model *m, const char *a, const char *b, const char *name)
{
	char path[2][4200];
	_cleanup_free_ char *data_a = NULL, *data_b = NULL;
	size_t size_a = 0, size_b = 0;

	snprintf(path[0], sizeof(path[0]), "%s/%s", a, name);
	snprintf(path[1], sizeof(path[1]), "%s/%s", b, name);
	if (file_read(path[0], 1u << 30, &data_a, &size_a) < 0 ||
		file_read(path[1], 1u << 30, &data_b, &size_b) < 0)
		return model_fail(m, "%s is missing", name);
	if (size_a == size_b && memcmp(data_a, data_b, size_a) == 0)
		return true;
	return model_fail(m, "%s differs when the frames lie otherwise between each other", name);
}

static bool same_outputs(
	struct model *m, const struct merge_result *a, const struct merge_result *b)
{
	static const char *const names[] = {
		"ntrace.pb", "cpu_util.pb", "host_mem.pb", "trace_info.pb"};

	if (a->output_count != b->output_count)
		return model_fail(m, "another number of processes in another delivery");
	for (uint32_t i = 0; i < a->output_count; i++)
		for (unsigned n = 0; n < 4; n++)
			if (!same_file(m, a->outputs[i].dir, b->outputs[i].dir, names[n]))
				return false;
	return true;
}

/* Writes, merges and checks one delivery. */
static bool deliver(struct model *m, const struct scratch *dir, uint64_t weave, const char *out,
	struct merge_result *result)
{
	scratch_remove_tree(scratch_path(dir, REC_DIR).s);
	model_weave(m, weave);
	return model_write(m, scratch_path(dir, REC_DIR).s) && merge(m, dir, out, result) &&
	       model_check(m, result);
}

static bool try_world(
	const struct model_run *run, uint64_t seed, uint32_t chosen, unsigned size, char what[512])
{
	struct model *m = calloc(1, sizeof(*m));
	struct scratch dir;
	struct merge_result results[2] = {0};
	bool twin = run->twin && seed % run->twin == 0 &&
		    !(chosen & (1u << WITH_KILL | 1u << WITH_DAMAGE));
	bool ok;

	if (!m)
		abort();
	snprintf(dir.dir, sizeof(dir.dir), "%s", run->dir);
	*m = (struct model){
		.seed = seed, .features = chosen, .size = size, .verbose = run->verbose};
	model_make(m);
	ok = deliver(m, &dir, 1, "a", &results[0]);
	if (ok && twin)
		ok = deliver(m, &dir, 2, "b", &results[1]) &&
		     same_outputs(m, &results[0], &results[1]);
	snprintf(what, 512, "%s", m->what);
	merge_result_free(&results[0]);
	merge_result_free(&results[1]);
	scratch_remove_tree(scratch_path(&dir, "a").s);
	scratch_remove_tree(scratch_path(&dir, "b").s);
	model_free_frames(m);
	free(m);
	return ok;
}

bool model_seed(const struct model_run *run, uint64_t seed, char what[1024])
{
	struct rng r = rng_for(seed, RNG_FEATURES);
	uint32_t chosen = choose_features(&r) & run->allowed;
	unsigned size = 1 + rng_below(&r, 6);
	struct model_run quiet = *run;
	char why[512], list[256] = "";

	quiet.verbose = false;
	if (try_world(&quiet, seed, chosen, size, why))
		return true;
	for (unsigned f = 0; f < MODEL_FEATURE_COUNT; f++) {
		char other[512];

		if (!(chosen >> f & 1) || try_world(&quiet, seed, chosen & ~(1u << f), size, other))
			continue;
		chosen &= ~(1u << f);
		memcpy(why, other, sizeof(why));
	}
	while (size > 1) {
		char other[512];

		if (try_world(&quiet, seed, chosen, size - 1, other))
			break;
		size--;
		memcpy(why, other, sizeof(why));
	}
	if (run->verbose)
		try_world(run, seed, chosen, size, why);
	for (unsigned f = 0; f < MODEL_FEATURE_COUNT; f++)
		if (chosen >> f & 1)
			snprintf(list + strlen(list), sizeof(list) - strlen(list), "%s%s",
				*list ? "," : "", features[f].name);
	snprintf(what, 1024, "seed %" PRIu64 ", size %u, features %s: %s", seed, size,
		*list ? list : "none", why);
	return false;
}
