/* SPDX-License-Identifier: Apache-2.0 */
/*
 * merge_hostile_test.c - recordings that break their word or are made to hurt: the merge counts what
 * it cannot place, keeps its books and its order, and needs neither more time nor more memory.
 */
#include "tests/shim/shim.h"
#include "tests/unit/recording_fixture.h"

#define TID 100u
#define REQUEST_COPY NEURON_IOCTL_MEM_BUF_COPY64

/* ---- deep stacks -------------------------------------------------------------------------- */

TEST("hostile: the end of a call that was too deep for the stack finds no missed return that is "
     "another's",
	"[merge]")
{
	struct fx_call deep = {.tid = TID, .request = REQUEST_COPY, .from = 5000, .open = true};
	struct fx_call missed = {
		.tid = TID + 1, .request = REQUEST_COPY, .from = 1000, .open = true};
	struct fixture fx;

	REQUIRE(fx_open(&fx));
	for (unsigned i = 0; i < 256; i++)
		fx_record(&fx, TRACE_TENSOR_READ, TRACE_START, i + 1, TID, 1000 + i);
	fx_records(&fx, FX_SOURCE);
	for (unsigned i = 0; i < 256; i++)
		fx_record(&fx, TRACE_TENSOR_READ, TRACE_STOP, i + 1, TID, 9000 - i);
	fx_records(&fx, FX_SOURCE);
	fx_call(&fx, &missed);
	fx_copy(&fx, TID + 1, 2000, 3000, 64);
	fx_call(&fx, &deep);
	deep.open = false;
	deep.to = 5100;
	fx_call(&fx, &deep);
	REQUIRE(fx_merge_one(&fx));
	CHECK_EQ(fx_ledger(&fx, REC_C_MERGE_EXIT_MISSED), 1);
	CHECK_EQ(fx.result.outputs[0].open_spans, 1);
	CHECK(fx.result.balanced);
	fx_free(&fx);
}
