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
	/* What the ledger must say, over all processes. */
	uint64_t read, written, announced, not_wanted, lost;
	uint64_t late, late_ns;
	uint64_t wrong[WRONG_AFTER + 1];	   /* device runs of impossible times */
	uint64_t missed, missed_perhaps;	   /* calls that their thread left */
	uint64_t clamped, clamped_ns, clamped_max; /* device runs */
};

/* Which expected span this is, for messages; two can be named at a time. */
const char *check_name(const struct checker *c, const struct want *w);

#define FAIL(c, w, format, ...) \
	model_fail((c)->m, "%s: " format, check_name((c), (w)), ##__VA_ARGS__)

/* An attribute's number; 0 when it is not there. */
uint64_t check_number(const struct ntrace_event_view *e, const char *key);
/* Driver calls are left out by option. */
bool check_is_written(const struct checker *c, const struct want *w);

/* check_times.c: takes a span's times from its records, and holds them against what they must be. */
bool check_times(struct checker *c, struct want *w);

/* check_fields.c: the records of one span, once all times are known. */
bool check_want(struct checker *c, uint32_t want);

/* check_ledger.c: the books, when all files have been looked at. */
bool check_ledger(struct checker *c);

#endif
