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

uint32_t rec_counter_find(const char *stage, const char *name)
{
	for (uint32_t id = 1; id < REC_COUNTER_MAX; id++)
		if (!strcmp(table[id].stage, stage) && !strcmp(table[id].name, name))
			return id;
	return REC_COUNTER_NONE;
}

const char *rec_counter_kind_name(enum rec_counter_kind kind)
{
	return kind_names[kind];
}

/* A recorder that died left counters older than its last records: those that these records passed
 * on their way take part in what was found. */
static void catch_up(struct ledger *g, uint64_t found, enum rec_counter_id taken,
	enum rec_counter_id waiting, enum rec_counter_id before, enum rec_counter_id first)
{
	uint64_t more = found > g->value[taken] ? found - g->value[taken] : 0;
	uint64_t waited = more < g->value[waiting] ? more : g->value[waiting];

	g->value[taken] += more;
	g->value[waiting] -= waited;
	g->value[before] += more - waited;
	if (first)
		g->value[first] += more - waited;
}

void ledger_add(struct ledger *g, struct ledger_found *found, uint32_t id, uint64_t value)
{
	if (id == REC_COUNTER_NONE || id >= REC_COUNTER_RECORDED_END)
		return;
	g->value[id] += value;
	found->counted |= id == REC_C_KERNEL_RECEIVED || id == REC_C_DMA_RECEIVED ||
			  id == REC_C_RUNTIME_DELIVERED;
}

/*
 * A recorder reads its counters one after the other while calls begin and end; only the last ones of
 * an orderly end are those of one moment.  Of others, what entered and was not done was open.
 */
static void settle(struct ledger *g)
{
	uint64_t *v = g->value;
	uint64_t gone = v[REC_C_KERNEL_DONE] + v[REC_C_KERNEL_RING_FULL] +
			v[REC_C_KERNEL_INFLIGHT_FULL] + v[REC_C_KERNEL_EXIT_LOST] +
			v[REC_C_KERNEL_RATE];

	if (v[REC_C_KERNEL_ENTERED] < gone)
		v[REC_C_KERNEL_ENTERED] = gone;
	v[REC_C_KERNEL_OPEN] = v[REC_C_KERNEL_ENTERED] - gone;
	v[REC_C_DMA_MADE] = v[REC_C_DMA_DONE] + v[REC_C_DMA_RING_FULL];
}

void ledger_compare(struct ledger *g, const struct ledger_found *found)
{
	if (!found->ended && found->counted) {
		catch_up(g, found->calls, REC_C_KERNEL_RECEIVED, REC_C_KERNEL_LEFT,
			REC_C_KERNEL_DONE, REC_C_KERNEL_ENTERED);
		catch_up(g, found->dma, REC_C_DMA_RECEIVED, REC_C_KERNEL_LEFT, REC_C_DMA_DONE,
			REC_C_DMA_MADE);
		catch_up(g, found->records - found->calls - found->dma, REC_C_RUNTIME_DELIVERED,
			REC_C_RUNTIME_UNREAD, REC_C_RUNTIME_EMITTED, REC_COUNTER_NONE);
		settle(g);
	}
	uint64_t taken = g->value[REC_C_KERNEL_RECEIVED] + g->value[REC_C_DMA_RECEIVED];
	uint64_t captured = taken + g->value[REC_C_RUNTIME_DELIVERED];
	uint64_t known = found->records + g->value[REC_C_CUT_OUT] + g->value[REC_C_CUT_DAMAGED];

	g->value[REC_C_READER_OFFERED] = g->value[REC_C_KERNEL_DONE] + g->value[REC_C_DMA_DONE];
	g->value[REC_C_READER_TAKEN] = taken;
	if (!found->counted)
		captured = known;
	g->value[REC_C_RECORDING_CAPTURED] = captured;
	g->value[REC_C_RECORDING_READ] = found->records;
	/* A recorder that died may have counted what it did not write any more. */
	if (captured > known && (found->damaged || !found->ended))
		g->value[REC_C_RECORDING_DAMAGED] = captured - known;
}

void ledger_capture(struct ledger *g, const struct session *s)
{
	struct ledger_found found = {.records = s->read_done,
		.calls = s->read_calls,
		.dma = s->read_dma,
		.ended = s->ended,
		.damaged = rec_damaged(&s->damage)};

	memset(g, 0, sizeof(*g));
	for (size_t i = 0; i < s->counter_count; i++)
		ledger_add(g, &found, s->counters[i].id, s->counters[i].value);
	ledger_compare(g, &found);
}

void ledger_add_process(struct ledger *g, const struct process *p)
{
	const struct {
		uint32_t id;
		uint64_t value;
	} rows[] = {
		{REC_C_MERGE_READ, p->read},
		{REC_C_MERGE_WRITTEN, p->written},
		{REC_C_MERGE_ANNOUNCED, p->announced + p->announced_again},
		{REC_C_MERGE_NOT_WANTED, p->not_wanted},
		{REC_C_MERGE_START_LOST, p->start_lost},
		{REC_C_MERGE_CLAMPED, p->clamped},
		{REC_C_MERGE_CLAMPED_NS, p->clamped_ns},
		{REC_C_MERGE_LATE, p->late},
		{REC_C_MERGE_LATE_NS, p->late_ns},
		{REC_C_MERGE_EXIT_MISSED, p->exit_missed},
		{REC_C_MERGE_FOREIGN_THREAD, p->foreign},
		{REC_C_MERGE_DEVICE_CLAMPED, p->causality},
		{REC_C_MERGE_DEVICE_CLAMPED_NS, p->causality_ns},
		{REC_C_MERGE_DEVICE_CORRECTED, p->corrected},
		{REC_C_MERGE_DEVICE_ZERO, p->invalid[0]},
		{REC_C_MERGE_DEVICE_BACKWARD, p->invalid[1]},
		{REC_C_MERGE_DEVICE_BEFORE_SUBMIT, p->invalid[2]},
		{REC_C_MERGE_DEVICE_AFTER_COLLECTION, p->invalid[3]},
		{REC_C_DEVICE_RECORDED, p->device.read + p->device.lost},
		{REC_C_DEVICE_WRITTEN, p->device.written},
		{REC_C_DEVICE_TOLD, p->device.told},
		{REC_C_DEVICE_UNPAIRED, p->device.unpaired},
		{REC_C_DEVICE_TIMELESS, p->device.timeless},
		{REC_C_DEVICE_LOST, p->device.lost},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		g->value[rows[i].id] += rows[i].value;
	if (p->causality_max > g->value[REC_C_MERGE_DEVICE_CLAMPED_MAX])
		g->value[REC_C_MERGE_DEVICE_CLAMPED_MAX] = p->causality_max;
}

void ledger_add_invalid(struct ledger *g, const struct session *s)
{
	g->value[REC_C_MERGE_READ] += s->invalid;
	g->value[REC_C_MERGE_INVALID] += s->invalid;
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

uint64_t ledger_gaps_explained(const struct ledger *g)
{
	return g->value[REC_C_KERNEL_RING_FULL] + g->value[REC_C_DMA_RING_FULL] +
	       g->value[REC_C_RECORDING_DAMAGED] + g->value[REC_C_CUT_OUT] +
	       g->value[REC_C_CUT_DAMAGED];
}

bool ledger_balanced(const struct ledger *g, uint64_t seq_gaps, bool ended)
{
	if (ended && (seq_gaps > ledger_gaps_explained(g) || g->value[REC_C_KERNEL_LEFT]))
		return false;
	return stages_balanced(g);
}

bool ledger_complete(const struct ledger *g, uint64_t found)
{
	return g->value[REC_C_MERGE_READ] == found;
}

uint64_t ledger_lost(const struct ledger *g)
{
	uint64_t lost = 0;

	for (uint32_t id = 1; id < REC_COUNTER_MAX; id++)
		if (table[id].kind == REC_KIND_LOST)
			lost += g->value[id];
	return lost;
}
