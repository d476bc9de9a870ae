/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check.h - what the parts of the check share: the model, the merge's result, and sums over its files.
 */
#ifndef NTRACE_TESTS_CHECK_H
#define NTRACE_TESTS_CHECK_H

#include "tests/model/expect.h"

struct checker {
	struct model *m;
	const struct merge_result *result;
	struct expect *x; /* of the process that is looked at */
	struct trace_file file;
	uint64_t late, late_ns; /* as the files say; all below: over all processes */
	uint64_t read, written, announced, not_wanted, lost;
};

/* check_ledger.c: the books, when all files have been looked at. */
bool check_ledger(struct checker *c);

#endif
