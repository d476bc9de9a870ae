/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ntff_node.c - what a profile says of a model: a graph per physical core, with the program of each unit.
 *
 * A unit is an engine, a DMA queue or the TopSP.  Its program is the unit's instructions of the program image
 * (vdev_abi.h), in their order; what they are called, how long they were to take and where they stand in
 * the model's text is in `instructions`, by the index that records have.
 */
#include <stdio.h>

#include "runtime/exec/memory_table.h"
#include "runtime/profile/ntff_build.h"

static const struct {
	uint8_t op;
	const char *name;
} ops[] = {
#define OP(id, name, words, where, kind) {VDEV_OP_##id, name},
#include "runtime/vdev/ops.def"
#undef OP
};

static const char *op_name(uint8_t op)
{
	for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++)
		if (ops[i].op == op)
			return ops[i].name;
	return "";
}

/* ---- units -------------------------------------------------------------------------------- */

struct unit {
	Ntff__BlockType block;
	uint32_t index; /* engine, DMA queue, 0 */
};

static struct unit unit_of(unsigned unit)
{
	unsigned kind = vdev_unit_kind(unit);

	if (kind == VDEV_ON_DMA)
		return (struct unit){NTFF__BLOCK_TYPE__BLOCK_DMA, unit - VDEV_DMA};
	if (kind == VDEV_ON_TOP_SP)
		return (struct unit){NTFF__BLOCK_TYPE__BLOCK_TOPSP, 0};
	return (struct unit){NTFF__BLOCK_TYPE__BLOCK_NC, unit};
}

static Ntff__NcEngineType engine_of(struct unit u)
{
	return u.block == NTFF__BLOCK_TYPE__BLOCK_NC ? (Ntff__NcEngineType)u.index
						     : NTFF__NC_ENGINE_TYPE__NC_ENGINE_PE;
}

/* How many instructions each unit has. */
static void count_units(
	const struct vdev_instruction *steps, uint32_t count, uint32_t ret[VDEV_UNITS])
{
	for (uint32_t i = 0; i < count; i++)
		if (steps[i].unit < VDEV_UNITS)
			ret[steps[i].unit]++;
}

/* ---- programs ----------------------------------------------------------------------------- */

/* The unit's instructions where they lie in the image, one piece for each stretch of them. */
static bool add_program(struct profile *p, const struct vdev_instruction *steps, uint32_t count,
	unsigned unit, uint32_t of_unit, Ntff__EngineInstructionInfo *to)
{
	struct iovec *pieces = profile_take(p, of_unit, sizeof(*pieces));
	uint32_t n = 0;

	if (!pieces)
		return false;
	for (uint32_t i = 0; i < count; i++) {
		if (steps[i].unit != unit)
			continue;
		if (i == 0 || steps[i - 1].unit != unit)
			pieces[n++] = (struct iovec){(void *)&steps[i], 0};
		pieces[n - 1].iov_len += sizeof(steps[i]);
	}
	to->nc_engine_type = engine_of(unit_of(unit));
	to->engine_index = unit_of(unit).index;
	to->block_type = unit_of(unit).block;
	to->instructions_size = of_unit * sizeof(steps[0]);
	profile_add_blob(p, pieces, n, &to->instructions_offset);
	return true;
}

static bool add_programs(struct profile *p, const struct profile_node *n, uint32_t part,
	const uint32_t of_unit[VDEV_UNITS], Ntff__SubgraphInfo *g)
{
	const struct vdev_instruction *steps = profile_steps(n, part);

	g->instruction_info =
		profile_messages(p, &ntff__engine_instruction_info__descriptor, VDEV_UNITS);
	g->collectives_instruction_info =
		profile_messages(p, &ntff__engine_instruction_info__descriptor, 1);
	if (!g->instruction_info || !g->collectives_instruction_info ||
		!profile_more_blobs(p, VDEV_UNITS))
		return false;
	for (unsigned unit = 0; unit < VDEV_UNITS; unit++) {
		Ntff__EngineInstructionInfo *to;

		if (!of_unit[unit])
			continue;
		to = unit == VDEV_TOP_SP
			     ? g->collectives_instruction_info[g->n_collectives_instruction_info++]
			     : g->instruction_info[g->n_instruction_info++];
		if (!add_program(p, steps, n->step_count, unit, of_unit[unit], to))
			return false;
	}
	return true;
}

static bool add_instructions(
	struct profile *p, const struct profile_node *n, uint32_t part, Ntff__SubgraphInfo *g)
{
	const struct vdev_instruction *steps = profile_steps(n, part);

	g->instructions = profile_messages(p, &ntff__ntff_instruction__descriptor, n->step_count);
	if (!g->instructions)
		return false;
	for (uint32_t i = 0; i < n->step_count; i++) {
		Ntff__NtffInstruction *to = g->instructions[i];
		struct unit u = unit_of(steps[i].unit);

		to->index = i;
		to->block_type = u.block;
		to->engine_type = engine_of(u);
		to->engine_index = u.index;
		to->op = (char *)op_name(steps[i].op);
		to->duration_ps = steps[i].duration_ps;
		to->source_line = n->lines[i];
	}
	g->n_instructions = n->step_count;
	return true;
}

/* ---- DMA queues and memory ---------------------------------------------------------------- */

static bool add_queue(struct profile *p, uint32_t queue, uint32_t packets, Ntff__SubgraphInfo *g)
{
	Ntff__DmaQueueUsageInfo *to = g->dma_queue_usage[g->n_dma_queue_usage++];
	char *name = profile_take(p, 16, 1);

	to->desc_block_info = profile_messages(p, &ntff__desc_block_info__descriptor, 1);
	if (!name || !to->desc_block_info)
		return false;
	(void)snprintf(name, 16, "DMA%u", queue);
	to->engine_index = queue;
	to->name = name;
	to->n_desc_block_info = 1;
	to->desc_block_info[0]->packet_count = packets;
	return true;
}

static bool add_queues(struct profile *p, const uint32_t of_unit[VDEV_UNITS], Ntff__SubgraphInfo *g)
{
	g->dma_queue_usage =
		profile_messages(p, &ntff__dma_queue_usage_info__descriptor, VDEV_DMA_QUEUES);
	if (!g->dma_queue_usage)
		return false;
	for (uint32_t q = 0; q < VDEV_DMA_QUEUES; q++)
		if (of_unit[VDEV_DMA + q] && !add_queue(p, q, of_unit[VDEV_DMA + q], g))
			return false;
	return true;
}

/* Memory of a logical core is with its first physical core. */
static bool add_memory(struct profile *p, uint32_t nc, Ntff__SubgraphInfo *g)
{
	struct memory_core_sums sums;

	memory_table_core(nc, &sums);
	g->memory_usage_breakdown =
		profile_messages(p, &ntff__nc_memory_usage__descriptor, MEMORY_USAGE_COUNT);
	if (!g->memory_usage_breakdown)
		return false;
	for (uint32_t i = 0; i < MEMORY_USAGE_COUNT; i++) {
		g->memory_usage_breakdown[i]->usage = i;
		g->memory_usage_breakdown[i]->bytes = sums.usage[i].now;
	}
	g->n_memory_usage_breakdown = MEMORY_USAGE_COUNT;
	return true;
}

/* ---- clocks ------------------------------------------------------------------------------- */

/* From the first sync point of the core to its last one; false when they do not say, as after a reset. */
static bool clock_of(
	const struct collector_data *d, const Ntff__SubgraphInfo *g, Ntff__BlockTimestampInfo *ret)
{
	const struct collector_sync *first = NULL, *last = NULL;

	for (uint32_t i = 0; i < d->sync_count; i++) {
		const struct collector_sync *s = &d->syncs[i];

		if (s->nd_idx != g->nd_idx || s->nc_idx != g->nc_idx)
			continue;
		if (last && s->device_ps <= last->device_ps)
			return false;
		first = first ? first : s;
		last = s;
	}
	if (!first || first == last || last->boot_ns <= first->boot_ns)
		return false;
	ret->init_timestamp = first->device_ps;
	ret->actual_timestamp_inc = last->device_ps - first->device_ps;
	ret->expected_timestamp_inc = (last->boot_ns - first->boot_ns) * 1000;
	return true;
}

/* All blocks of a core have one clock here. */
static bool add_clocks(struct profile *p, const uint32_t of_unit[VDEV_UNITS], Ntff__SubgraphInfo *g)
{
	Ntff__BlockTimestampInfo **clock =
		profile_messages(p, &ntff__block_timestamp_info__descriptor, 1);
	Ntff__NcTimestampInfo **info = profile_messages(p, &ntff__nc_timestamp_info__descriptor, 1);
	Ntff__BlockTimestampInfo **dma =
		profile_take(p, VDEV_DMA_QUEUES, sizeof(Ntff__BlockTimestampInfo *));

	if (!clock || !info || !dma)
		return false;
	if (!clock_of(&p->data, g, clock[0]))
		return true;
	info[0]->tpb_pe = info[0]->tpb_act = info[0]->tpb_pool = clock[0];
	info[0]->tpb_dve = info[0]->tpb_sp = clock[0];
	if (of_unit[VDEV_TOP_SP])
		info[0]->top_sp = clock[0];
	info[0]->dma = dma;
	for (uint32_t q = 0; q < VDEV_DMA_QUEUES; q++)
		if (of_unit[VDEV_DMA + q])
			dma[info[0]->n_dma++] = clock[0];
	g->timestamp_info = info[0];
	return true;
}

/* Of the newest run of the node that ended, among those that are in the profile. */
static uint64_t duration_of(
	const struct profile *p, const struct profile_node *n, const Ntff__SubgraphInfo *g)
{
	for (uint32_t i = p->data.run_count; i > 0; i--) {
		const struct collector_run *r = &p->data.runs[i - 1];

		if (p->run_nodes[i - 1] == n && r->nd_idx == g->nd_idx && r->nc_idx == g->nc_idx &&
			r->started && r->ended)
			return r->end_ps - r->start_ps;
	}
	return 0;
}

/* ---- collectives -------------------------------------------------------------------------- */

static bool add_communicator(struct profile *p, const struct profile_node *n, Ntff__SubgraphInfo *g)
{
	if (!n->collectives)
		return true;
	g->comm_info = profile_messages(p, &ntff__collectives_comm_info__descriptor, 1);
	if (!g->comm_info)
		return false;
	g->n_comm_info = 1;
	g->comm_info[0]->id = (uint32_t)n->place.group;
	g->comm_info[0]->rank = n->place.rank;
	g->comm_info[0]->rank_n = n->place.ranks;
	g->comm_info[0]->node_n = 1; /* machines do not meet */
	g->comm_info[0]->local_rank_n = n->place.ranks;
	return true;
}

/* ---- all of it ---------------------------------------------------------------------------- */

static bool add_graph(
	struct profile *p, const struct profile_node *n, uint32_t part, Ntff__SubgraphInfo *g)
{
	uint32_t of_unit[VDEV_UNITS] = {0};

	g->name = (char *)n->name;
	g->nd_idx = n->parts[part].nd_idx;
	g->nc_idx = n->parts[part].nc_idx;
	g->exec_duration = duration_of(p, n, g);
	count_units(profile_steps(n, part), n->step_count, of_unit);
	return add_programs(p, n, part, of_unit, g) && add_instructions(p, n, part, g) &&
	       add_queues(p, of_unit, g) && (part || add_memory(p, n->nc, g)) &&
	       add_clocks(p, of_unit, g) && add_communicator(p, n, g);
}

static bool add_node(struct profile *p, const struct profile_node *n, Ntff__NeffNodeInfo *to)
{
	Ntff__NdNodeInfo **nd = profile_messages(p, &ntff__nd_node_info__descriptor, 1);

	if (!nd)
		return false;
	nd[0]->graphs = profile_messages(p, &ntff__subgraph_info__descriptor, n->place.parts);
	if (!nd[0]->graphs)
		return false;
	nd[0]->n_graphs = n->place.parts;
	to->node_info_case = NTFF__NEFF_NODE_INFO__NODE_INFO_ND_NODE;
	to->nd_node = nd[0];
	to->name = (char *)n->name;
	to->uuid = (char *)n->uuid;
	to->model_id = n->model_id;
	for (uint32_t part = 0; part < n->place.parts; part++)
		if (!add_graph(p, n, part, nd[0]->graphs[part]))
			return false;
	return true;
}

bool profile_add_nodes(struct profile *p)
{
	Ntff__NtffInfo *info = &p->info;

	info->neff_nodes = profile_messages(p, &ntff__neff_node_info__descriptor, p->node_count);
	if (!info->neff_nodes)
		return false;
	for (uint32_t i = 0; i < p->node_count; i++)
		if (!add_node(p, p->nodes[i], info->neff_nodes[i]))
			return false;
	info->n_neff_nodes = p->node_count;
	return true;
}

Ntff__SubgraphInfo *profile_graph(
	struct profile *p, const struct profile_node *n, uint32_t nd_idx, uint32_t nc_idx)
{
	for (uint32_t i = 0; i < p->node_count; i++) {
		const Ntff__NdNodeInfo *nd = p->info.neff_nodes[i]->nd_node;

		for (size_t g = 0; p->nodes[i] == n && g < nd->n_graphs; g++)
			if (nd->graphs[g]->nd_idx == nd_idx && nd->graphs[g]->nc_idx == nc_idx)
				return nd->graphs[g];
	}
	return NULL;
}
