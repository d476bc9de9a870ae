/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ledger.c - sums the counters and checks the identity of each stage: in = out + lost.
 *
 * The stages kernel and runtime are counted where they happen; reader and recording compare
 * independent counts of the same records (in the kernel, by the reader, in the ring buffer); the
 * merge counts itself.
 */
#include "runtime/record/ledger.h"

#include <string.h>

#define IN REC_KIND_IN
#define OUT REC_KIND_OUT
#define LOST REC_KIND_LOST
#define NOTE REC_KIND_NOTE

static const struct rec_counter_info table[REC_COUNTER_MAX] = {
#define REC_COUNTER(id, stage, name, kind, text) [REC_C_##id] = {stage, name, text, kind},
#include "runtime/record/counters.def"
#include "runtime/record/merge_counters.def"
#undef REC_COUNTER
};

static const char *const kind_names[] = {
	[REC_KIND_IN] = "in",
	[REC_KIND_OUT] = "out",
	[REC_KIND_LOST] = "lost",
	[REC_KIND_NOTE] = "note",
};

const struct rec_counter_info *rec_counter_info(uint32_t id)
{
	return id > REC_COUNTER_NONE && id < REC_COUNTER_MAX ? &table[id] : NULL;
}

const char *rec_counter_kind_name(enum rec_counter_kind kind)
{
	return kind_names[kind];
}

/* A recorder that died left counters older than its last records: those that these records passed
 * on their way take part in what was found. */
static void catch_up(struct ledger *g, uint64_t found, enum rec_counter_id taken,
	enum rec_counter_id before, enum rec_counter_id first)
{
	uint64_t more = found > g->value[taken] ? found - g->value[taken] : 0;

	g->value[taken] += more;
	g->value[before] += more;
	if (first)
		g->value[first] += more;
}

/* What is in the recording against what its readers say they took. */
static void compare_with_frames(struct ledger *g, const struct load *l, bool counted)
{
	const struct rec_damage *d = &l->damage;
	uint64_t captured = g->value[REC_C_KERNEL_RECEIVED] + g->value[REC_C_RUNTIME_DELIVERED];

	if (!counted)
		captured = l->read_done;
	g->value[REC_C_RECORDING_CAPTURED] = captured;
	g->value[REC_C_RECORDING_READ] = l->read_done;
	if (captured > l->read_done && (d->bad_frames || d->skipped_bytes || d->cut_bytes))
		g->value[REC_C_RECORDING_DAMAGED] = captured - l->read_done;
}

void ledger_capture(struct ledger *g, const struct load *l)
{
	bool counted = false;

	memset(g, 0, sizeof(*g));
	for (size_t i = 0; i < l->counter_count; i++) {
		uint32_t id = l->counters[i].id;

		g->value[id] += l->counters[i].value;
		counted |= id == REC_C_KERNEL_RECEIVED || id == REC_C_RUNTIME_DELIVERED;
	}
	if (!l->ended && counted) {
		catch_up(g, l->read_calls, REC_C_KERNEL_RECEIVED, REC_C_KERNEL_DONE,
			REC_C_KERNEL_ENTERED);
		catch_up(g, l->read_done - l->read_calls, REC_C_RUNTIME_DELIVERED,
			REC_C_RUNTIME_EMITTED, REC_COUNTER_NONE);
	}
	g->value[REC_C_READER_OFFERED] = g->value[REC_C_KERNEL_DONE];
	g->value[REC_C_READER_TAKEN] = g->value[REC_C_KERNEL_RECEIVED];
	compare_with_frames(g, l, counted);
}

void ledger_add_timeline(struct ledger *g, const struct timeline *t)
{
	g->value[REC_C_MERGE_READ] += t->p->record_count + t->p->call_count;
	g->value[REC_C_MERGE_WRITTEN] += t->written;
	g->value[REC_C_MERGE_ANNOUNCED] += t->announced;
	g->value[REC_C_MERGE_NOT_WANTED] += t->not_wanted;
	g->value[REC_C_MERGE_START_LOST] += t->start_lost;
	g->value[REC_C_MERGE_CLAMPED] += t->clamped;
	g->value[REC_C_MERGE_CLAMPED_NS] += t->clamped_ns;
}

void ledger_add_invalid(struct ledger *g, const struct load *l)
{
	g->value[REC_C_MERGE_READ] += l->invalid;
	g->value[REC_C_MERGE_INVALID] += l->invalid;
}

static bool stage_balanced(const struct ledger *g, const char *stage)
{
	uint64_t in = 0, out = 0;

	for (uint32_t id = 1; id < REC_COUNTER_MAX; id++) {
		if (table[id].kind == REC_KIND_NOTE || strcmp(table[id].stage, stage) != 0)
			continue;
		*(table[id].kind == REC_KIND_IN ? &in : &out) += g->value[id];
	}
	return in == out;
}

static bool stages_balanced(const struct ledger *g)
{
	for (uint32_t id = 1; id < REC_COUNTER_MAX; id++)
		if (!stage_balanced(g, table[id].stage))
			return false;
	return true;
}

bool ledger_balanced(const struct ledger *g, uint64_t seq_gaps, bool ended)
{
	uint64_t explained = g->value[REC_C_KERNEL_RING_FULL] + g->value[REC_C_RECORDING_DAMAGED];

	if (ended && (seq_gaps > explained || g->value[REC_C_KERNEL_LEFT]))
		return false;
	return stages_balanced(g);
}

uint64_t ledger_lost(const struct ledger *g)
{
	uint64_t lost = 0;

	for (uint32_t id = 1; id < REC_COUNTER_MAX; id++)
		if (table[id].kind == REC_KIND_LOST)
			lost += g->value[id];
	return lost;
}
