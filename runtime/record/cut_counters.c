/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cut_counters.c - copies the newest counters of a recording into its cut.
 *
 * The counters of a recorder that died are older than its last records, and a reader corrects them by
 * the records that it finds.  A cut has fewer: there the correction must stand in the counters.
 */
#include "runtime/record/cut_counters.h"

#define ROWS 64u /* in a frame */

/* Changes the rows of an id so that their sum goes from `before` to `after`; what is more and has no row is
 * returned. */
static uint64_t correct(struct footer *f, uint32_t id, uint64_t before, uint64_t after)
{
	for (uint32_t i = 0; i < f->head.counters && before != after; i++) {
		struct rec_footer_counter *k = &f->counters[i];
		uint64_t less = before > after ? before - after : 0;

		if (k->id != id)
			continue;
		if (less > k->value)
			less = k->value;
		k->value = less ? k->value - less : k->value + (after - before);
		before = less ? before - less : after;
	}
	return after > before ? after - before : 0;
}

static int put_rows(struct rec_writer *w, const struct footer *f, uint64_t time_ns)
{
	const struct rec_footer_counter *k = f->counters;
	uint32_t n = f->head.counters, used = 0;
	struct rec_counter rows[ROWS];
	int rc = 0;

	for (uint32_t i = 0; i < n && rc == 0; i++) {
		rows[used++] = (struct rec_counter){k[i].id, k[i].sub, k[i].value};
		if (used < ROWS && i + 1 < n && k[i + 1].source == k[i].source)
			continue;
		rc = rec_writer_frame_at(w, REC_COUNTERS, (uint16_t)k[i].source, time_ns, rows,
			used * sizeof(rows[0]), NULL, 0);
		used = 0;
	}
	return rc;
}

int cut_counters_write(struct rec_writer *w, struct footer *newest, struct ledger_found *found,
	uint64_t kept, uint64_t time_ns)
{
	struct rec_counter own[REC_COUNTER_RECORDED_END];
	struct ledger told = {0}, g;
	size_t n = 0;

	footer_sort(newest);
	for (uint32_t i = 0; i < newest->head.counters; i++)
		ledger_add(&told, found, newest->counters[i].id, newest->counters[i].value);
	g = told;
	ledger_compare(&g, found);
	g.value[REC_C_CUT_OUT] += found->records - kept;
	g.value[REC_C_CUT_DAMAGED] += g.value[REC_C_RECORDING_DAMAGED];
	for (uint32_t id = 1; id < REC_COUNTER_RECORDED_END; id++) {
		bool of_cut = id == REC_C_CUT_OUT || id == REC_C_CUT_DAMAGED;
		uint64_t more =
			of_cut ? g.value[id] : correct(newest, id, told.value[id], g.value[id]);
		if (more || of_cut)
			own[n++] = (struct rec_counter){id, 0, more};
	}
	int rc = put_rows(w, newest, time_ns);
	return rc < 0 ? rc
		      : rec_writer_frame_at(w, REC_COUNTERS, REC_SOURCE_RECORDER, time_ns, own,
				n * sizeof(own[0]), NULL, 0);
}
