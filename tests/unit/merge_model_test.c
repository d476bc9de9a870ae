/* SPDX-License-Identifier: Apache-2.0 */
/*
 * merge_model_test.c - a sample of the model test's seeds (tests/model/); build/tests/model runs as many
 * as one likes.
 */
#include "tests/model/model.h"
#include "tests/shim/shim.h"
#include "tests/unit/scratch.h"

#define SEEDS 150u

TEST("model: what is merged from a recording is what truly happened, less what the ledger says",
	"[merge]")
{
	struct scratch dir = {0};

	REQUIRE(scratch_make(&dir));
	struct model_run run = {.dir = dir.dir, .allowed = MODEL_ALL, .twin = 3};
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		char what[1024] = "";

		bool right = model_seed(&run, seed, what);
		test_info("%s", what);
		CHECK(right);
	}
	scratch_remove(&dir);
}

TEST("model: a merge that is wrong is found", "[merge]")
{
	struct scratch dir = {0};
	struct merge_result result = {0};
	struct model *m = calloc(1, sizeof(*m));
	char *error = NULL;

	REQUIRE(m && scratch_make(&dir));
	*m = (struct model){.seed = 7, .size = 2};
	model_make(m);
	model_weave(m, 1);
	REQUIRE(model_write(m, scratch_path(&dir, "recording").s));
	REQUIRE(merge_recording(scratch_path(&dir, "recording").s, scratch_path(&dir, "out").s,
			&m->options, &result, &error) == 0);
	CHECK(model_check(m, &result));
	/* A span ends a nanosecond later, and a loss is counted that was none. */
	struct model_span *p = &m->spans[0];
	while (p->instant || p->hardware || p->open)
		p++;
	p->to++;
	p->said_to++;
	CHECK(!model_check(m, &result));
	CHECK(m->what[0] != 0);
	p->to--;
	p->said_to--;
	m->what[0] = 0;
	result.ledger[REC_C_KERNEL_RING_FULL].value++;
	CHECK(!model_check(m, &result));
	merge_result_free(&result);
	free(error);
	model_free_frames(m);
	free(m);
	scratch_remove(&dir);
}
