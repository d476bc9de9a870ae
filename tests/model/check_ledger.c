/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check_ledger.c - the ledger against what was done to the records: every loss by its cause, exactly.
 */
#include <inttypes.h>

#include "runtime/record/ledger.h"
#include "tests/model/check.h"

/* What the newest counters in the recording say, summed. */
static void newest_counters(const struct model *m, uint64_t sums[REC_COUNTER_MAX])
{
	static uint64_t newest[MODEL_SOURCES + 2][MODEL_CORES + 1][REC_COUNTER_MAX];

	memset(newest, 0, sizeof(newest));
	for (uint32_t i = 0; i < m->frame_count; i++) {
		const struct model_frame *f = &m->frames[i];

		for (uint32_t k = 0; f->survives && f->type == REC_COUNTERS &&
				     k < f->size / sizeof(struct rec_counter);
			k++) {
			struct rec_counter r;

			memcpy(&r, f->body + k * sizeof(r), sizeof(r));
			newest[f->source][r.sub][r.id] = r.value;
		}
	}
	for (unsigned s = 0; s < MODEL_SOURCES + 2; s++)
		for (unsigned k = 0; k <= MODEL_CORES; k++)
			for (unsigned id = 0; id < REC_COUNTER_MAX; id++)
				sums[id] += newest[s][k][id];
}

static bool has_counters(const struct model *m)
{
	for (uint32_t i = 0; i < m->frame_count; i++)
		if (m->frames[i].type == REC_COUNTERS && m->frames[i].survives)
			return true;
	return false;
}

/* Counters of a recorder that died catch up with the records that were found. */
static void catch_up(
	uint64_t *taken, uint64_t *waiting, uint64_t *before, uint64_t *first, uint64_t found)
{
	uint64_t more = found > *taken ? found - *taken : 0;
	uint64_t waited = more < *waiting ? more : *waiting;

	*taken += more;
	*waiting -= waited;
	*before += more - waited;
	if (first)
		*first += more - waited;
}

/* Numbers of driver calls that are missing below the highest that was seen. */
static uint64_t count_gaps(const struct model *m)
{
	uint64_t highest[MODEL_CPUS] = {0}, seen[MODEL_CPUS] = {0}, gaps = 0;

	for (uint32_t i = 0; i < m->record_count; i++) {
		const struct model_record *r = &m->records[i];

		if (r->kind != RECORD_DONE || !r->read)
			continue;
		const struct model_call *c = &m->calls[r->index];
		seen[c->cpu]++;
		if (r->seq + 1 > highest[c->cpu])
			highest[c->cpu] = r->seq + 1;
	}
	for (unsigned k = 0; k < MODEL_CPUS; k++)
		gaps += highest[k] - seen[k];
	return gaps;
}

static bool check_row(struct checker *c, enum rec_counter_id id, uint64_t value)
{
	const struct rec_counter_info *i = rec_counter_info(id);

	if (c->result->ledger[id].value == value)
		return true;
	return model_fail(c->m, "ledger %s/%s is %" PRIu64 " instead of %" PRIu64, i->stage,
		i->name, c->result->ledger[id].value, value);
}

static bool has_end(const struct model *m)
{
	for (uint32_t i = 0; i < m->frame_count; i++)
		if (m->frames[i].type == REC_END && m->frames[i].survives)
			return true;
	return false;
}

static bool check_late_row(struct checker *c)
{
	for (uint32_t id = 1; id < REC_COUNTER_MAX; id++) {
		const struct rec_counter_info *i = rec_counter_info(id);
		uint64_t value = c->result->ledger[id].value;

		if (strcmp(i->stage, "merge") != 0 || strcmp(i->name, "late") != 0)
			continue;
		if ((value > 0) != (c->late > 0) && c->m->options.kernel_events != MERGE_KERNEL_OFF)
			return model_fail(c->m, "ledger merge/late is %d, files have %d",
				(int)value, (int)c->late);
	}
	return true;
}

bool check_ledger(struct checker *c)
{
	const struct merge_result *r = c->result;
	struct model *m = c->m;
	uint64_t want[REC_COUNTER_MAX] = {0}, found = 0, calls = 0, invalid = 0, lost = 0, captured;
	bool ended = has_end(m);

	newest_counters(m, want);
	for (uint32_t i = 0; i < m->record_count; i++) {
		found += m->records[i].read && m->records[i].kind != RECORD_ANNOUNCE;
		calls += m->records[i].read && m->records[i].kind == RECORD_DONE;
		invalid += m->records[i].read && m->records[i].invalid;
	}
	if (!ended && has_counters(m)) {
		catch_up(&want[REC_C_KERNEL_RECEIVED], &want[REC_C_KERNEL_LEFT],
			&want[REC_C_KERNEL_DONE], &want[REC_C_KERNEL_ENTERED], calls);
		catch_up(&want[REC_C_RUNTIME_DELIVERED], &want[REC_C_RUNTIME_UNREAD],
			&want[REC_C_RUNTIME_EMITTED], NULL, found - calls);
	}
	captured = want[REC_C_KERNEL_RECEIVED] + want[REC_C_RUNTIME_DELIVERED];
	if (!ended && captured < found)
		captured = found;
	for (uint32_t id = 1; id < REC_COUNTER_RECORDED_END; id++) {
		if (!check_row(c, (enum rec_counter_id)id, want[id]))
			return false;
		if (rec_counter_info(id)->kind == REC_KIND_LOST)
			lost += want[id];
	}
	lost += captured - found + invalid;
	if (r->ended != ended || r->seq_gaps != count_gaps(m))
		return model_fail(m, "ended %d, gaps %d instead of %d", r->ended, (int)r->seq_gaps,
			(int)count_gaps(m));
	if (ended && captured > found && !rec_damaged(&r->damage))
		return model_fail(m, "%d records are missing and no damage is reported",
			(int)(captured - found));
	return check_row(c, REC_C_RECORDING_CAPTURED, captured) &&
	       check_row(c, REC_C_RECORDING_READ, found) &&
	       check_row(c, REC_C_RECORDING_DAMAGED, captured - found) &&
	       check_row(c, REC_C_MERGE_READ, c->read + invalid) &&
	       check_row(c, REC_C_MERGE_WRITTEN, c->written) &&
	       check_row(c, REC_C_MERGE_ANNOUNCED, c->announced) &&
	       check_row(c, REC_C_MERGE_NOT_WANTED, c->not_wanted) &&
	       check_row(c, REC_C_MERGE_INVALID, invalid) &&
	       check_row(c, REC_C_MERGE_START_LOST, c->lost) &&
	       check_row(c, REC_C_MERGE_CLAMPED, 0) && check_late_row(c) &&
	       (r->lost == lost ||
		       model_fail(m, "lost %d instead of %d", (int)r->lost, (int)lost)) &&
	       (r->balanced || model_fail(m, "the books do not balance"));
}
