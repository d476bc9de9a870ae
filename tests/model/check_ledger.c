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

/* Raises a counter to what is known to be true; returns by how much. */
static uint64_t at_least(uint64_t *value, uint64_t known)
{
	uint64_t more = known > *value ? known - *value : 0;

	*value += more;
	return more;
}

/* A recorder that was killed: what it wrote, it had taken, and what it had taken had been made. */
static void outlive(
	uint64_t *taken, uint64_t *left, uint64_t *made, uint64_t *begun, uint64_t found)
{
	uint64_t known = *taken + *left;
	uint64_t more = at_least(&known, found);

	*made += more;
	*begun += more;
	at_least(taken, found);
	*left = known - *taken;
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

/* What was found of the recording. */
struct found {
	uint64_t records, calls, invalid;
};

static struct found count_found(const struct model *m)
{
	struct found n = {0};

	for (uint32_t i = 0; i < m->record_count; i++) {
		const struct model_record *r = &m->records[i];

		n.records += r->read && r->kind != RECORD_ANNOUNCE;
		n.calls += r->read && r->kind == RECORD_DONE;
		n.invalid += r->read && r->invalid;
	}
	return n;
}

/* The stages up to the recording. */
static void want_capture(
	const struct model *m, const struct found *n, bool ended, uint64_t want[REC_COUNTER_MAX])
{
	uint64_t none = 0;

	newest_counters(m, want);
	if (!ended && has_counters(m)) {
		outlive(&want[REC_C_KERNEL_RECEIVED], &want[REC_C_KERNEL_LEFT],
			&want[REC_C_KERNEL_DONE], &want[REC_C_KERNEL_ENTERED], n->calls);
		outlive(&want[REC_C_RUNTIME_DELIVERED], &want[REC_C_RUNTIME_UNREAD],
			&want[REC_C_RUNTIME_EMITTED], &none, n->records - n->calls);
	}
	want[REC_C_READER_OFFERED] = want[REC_C_KERNEL_DONE];
	want[REC_C_READER_TAKEN] = want[REC_C_KERNEL_RECEIVED];
	want[REC_C_RECORDING_CAPTURED] =
		want[REC_C_KERNEL_RECEIVED] + want[REC_C_RUNTIME_DELIVERED];
	if (!ended)
		at_least(&want[REC_C_RECORDING_CAPTURED], n->records);
	want[REC_C_RECORDING_READ] = n->records;
	want[REC_C_RECORDING_DAMAGED] = want[REC_C_RECORDING_CAPTURED] - n->records;
}

static void want_merge(
	const struct checker *c, const struct found *n, uint64_t want[REC_COUNTER_MAX])
{
	want[REC_C_MERGE_READ] = c->read + n->invalid;
	want[REC_C_MERGE_WRITTEN] = c->written;
	want[REC_C_MERGE_ANNOUNCED] = c->announced;
	want[REC_C_MERGE_NOT_WANTED] = c->not_wanted;
	want[REC_C_MERGE_INVALID] = n->invalid;
	want[REC_C_MERGE_START_LOST] = c->lost;
	want[REC_C_MERGE_LATE] = c->late;
	want[REC_C_MERGE_LATE_NS] = c->late_ns;
	want[REC_C_MERGE_EXIT_MISSED] = c->missed;
	want[REC_C_MERGE_DEVICE_ZERO] = c->wrong[WRONG_ZERO] + c->wrong[WRONG_ZERO_NC];
	want[REC_C_MERGE_DEVICE_BACKWARD] = c->wrong[WRONG_BACKWARD];
	want[REC_C_MERGE_DEVICE_BEFORE_SUBMIT] = c->wrong[WRONG_BEFORE];
	want[REC_C_MERGE_DEVICE_AFTER_COLLECTION] = c->wrong[WRONG_AFTER];
	want[REC_C_MERGE_DEVICE_CLAMPED] = c->clamped;
	want[REC_C_MERGE_DEVICE_CLAMPED_NS] = c->clamped_ns;
	want[REC_C_MERGE_DEVICE_CLAMPED_MAX] = c->clamped_max;
}

static bool check_rows(struct checker *c, const uint64_t want[REC_COUNTER_MAX])
{
	uint64_t missed = c->result->ledger[REC_C_MERGE_EXIT_MISSED].value;

	for (uint32_t id = 1; id < REC_COUNTER_MAX; id++) {
		if (id == REC_C_MERGE_EXIT_MISSED && missed >= c->missed &&
			missed <= c->missed + c->missed_perhaps)
			continue;
		if (!check_row(c, (enum rec_counter_id)id, want[id]))
			return false;
	}
	return true;
}

static uint64_t sum_lost(const uint64_t want[REC_COUNTER_MAX])
{
	uint64_t lost = 0;

	for (uint32_t id = 1; id < REC_COUNTER_MAX; id++)
		if (rec_counter_info(id)->kind == REC_KIND_LOST)
			lost += want[id];
	return lost;
}

bool check_ledger(struct checker *c)
{
	const struct merge_result *r = c->result;
	struct model *m = c->m;
	uint64_t want[REC_COUNTER_MAX] = {0};
	struct found found = count_found(m);
	bool ended = has_end(m);

	want_capture(m, &found, ended, want);
	want_merge(c, &found, want);
	if (r->ended != ended || r->seq_gaps != count_gaps(m))
		return model_fail(m, "ended %d, gaps %d instead of %d", r->ended, (int)r->seq_gaps,
			(int)count_gaps(m));
	if (ended && want[REC_C_RECORDING_DAMAGED] && !rec_damaged(&r->damage))
		return model_fail(m, "%d records are missing and no damage is reported",
			(int)want[REC_C_RECORDING_DAMAGED]);
	if (!check_rows(c, want))
		return false;
	if (r->lost != sum_lost(want))
		return model_fail(m, "lost %d instead of %d", (int)r->lost, (int)sum_lost(want));
	return r->balanced || model_fail(m, "the books do not balance");
}
