/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ntff_fixture.h - device profiles made by hand: rings with records, sync points, runs and a model with
 * names, laid out and packed into a file in memory.
 */
#ifndef NTRACE_TESTS_NTFF_FIXTURE_H
#define NTRACE_TESTS_NTFF_FIXTURE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "proto/notification.h"
#include "proto/ntff.pb-c.h"
#include "proto/ntff_file.h"

#define NX_MAX 256u
#define NX_CORES 4u

#define NX_INSTRUCTION NTFF__NOTIFICATION_TRACE_TYPE__NOTIFICATION_INSTRUCTION
#define NX_EVENT NTFF__NOTIFICATION_TRACE_TYPE__NOTIFICATION_EVENT
#define NX_ERROR NTFF__NOTIFICATION_TRACE_TYPE__NOTIFICATION_ERROR
#define NX_EXPLICIT NTFF__NOTIFICATION_TRACE_TYPE__NOTIFICATION_EXPLICIT
#define NX_DMA NTFF__NOTIFICATION_TRACE_TYPE__NOTIFICATION_DMA
#define NX_THROTTLE NTFF__NOTIFICATION_TRACE_TYPE__NOTIFICATION_THROTTLE
#define NX_ON_NC NTFF__BLOCK_TYPE__BLOCK_NC
#define NX_ON_DMA NTFF__BLOCK_TYPE__BLOCK_DMA
#define NX_ON_TOPSP NTFF__BLOCK_TYPE__BLOCK_TOPSP

struct nx_ring {
	Ntff__TraceInfo info;
	struct notification *records;
	size_t used, cap;
};

/* One core's part of the model. */
struct nx_graph {
	Ntff__SubgraphInfo info;
	Ntff__NtffInstruction names[NX_MAX];
	Ntff__NtffInstruction *list[NX_MAX];
};

/* nx_init, then add what the profile is to have, nx_layout, nx_pack; nx_free. */
struct nx {
	Ntff__NtffInfo info;
	Ntff__VersionInfo runtime;
	struct nx_ring rings[NX_MAX];
	Ntff__TraceInfo *ring_list[NX_MAX];
	Ntff__NtffSyncPoint points[NX_MAX], *point_list[NX_MAX];
	Ntff__ExecutionInfo runs[NX_MAX], *run_list[NX_MAX];
	Ntff__NtffLoss losses[NX_MAX], *loss_list[NX_MAX];
	struct nx_graph graphs[NX_CORES];
	Ntff__SubgraphInfo *graph_list[NX_CORES];
	Ntff__NdNodeInfo device;
	Ntff__NeffNodeInfo node, *node_list[2]; /* the second is a test's own */
	uint64_t blobs_offset, blobs_size;
	uint8_t *bytes; /* the file, after nx_pack */
	size_t size;
};

static inline void nx_init(struct nx *x)
{
	memset(x, 0, sizeof(*x));
	ntff__ntff_info__init(&x->info);
	ntff__version_info__init(&x->runtime);
	ntff__nd_node_info__init(&x->device);
	ntff__neff_node_info__init(&x->node);
	x->info.session_notifications = x->ring_list;
	x->info.sync_points = x->point_list;
	x->info.execution_timeline = x->run_list;
	x->info.losses = x->loss_list;
	x->info.neff_nodes = x->node_list;
	x->info.neuron_runtime_version = &x->runtime;
	x->info.producer = (char *)"tests";
	x->runtime.major = 2;
	x->device.graphs = x->graph_list;
	x->node_list[0] = &x->node;
	x->node.name = (char *)"model";
	x->node.uuid = (char *)"";
	x->node.model_id = 7;
	x->node.node_info_case = NTFF__NEFF_NODE_INFO__NODE_INFO_ND_NODE;
	x->node.nd_node = &x->device;
}

static inline struct nx_ring *nx_ring(struct nx *x, Ntff__NotificationTraceType trace,
	Ntff__BlockType block, uint32_t engine, uint32_t nd_idx, uint32_t nc_idx)
{
	struct nx_ring *r = &x->rings[x->info.n_session_notifications];

	ntff__trace_info__init(&r->info);
	r->info.trace_type = trace;
	r->info.block_type = block;
	r->info.engine_index = engine;
	r->info.nd_idx = nd_idx;
	r->info.nc_idx = nc_idx;
	x->ring_list[x->info.n_session_notifications++] = &r->info;
	return r;
}

static inline void nx_note(struct nx_ring *r, struct notification n)
{
	if (r->used == r->cap) {
		r->cap = r->cap ? 2 * r->cap : 16;
		r->records = realloc(r->records, r->cap * sizeof(n));
		if (!r->records)
			abort();
	}
	r->records[r->used++] = n;
}

/* Start and end of an instruction of an engine. */
static inline void nx_ran(
	struct nx_ring *r, uint16_t index, uint16_t op, uint64_t start_ps, uint64_t end_ps)
{
	uint32_t engine = r->info.engine_index;

	nx_note(r, (struct notification){.id = index,
			   .type_phase = (uint8_t)NOTE_TYPE_INST_START(engine),
			   .custom = op,
			   .subtype = NOTE_START,
			   .timestamp_ps = start_ps});
	nx_note(r, (struct notification){.id = index,
			   .type_phase = (uint8_t)NOTE_TYPE_INST_END(engine),
			   .custom = op,
			   .subtype = NOTE_END,
			   .timestamp_ps = end_ps});
}

/* The same with records of one type, which say by their subtype which they are. */
static inline void nx_did(struct nx_ring *r, unsigned type, uint16_t index, uint16_t begins,
	uint64_t start_ps, uint64_t end_ps)
{
	nx_note(r, (struct notification){.id = index,
			   .type_phase = (uint8_t)type,
			   .subtype = begins,
			   .timestamp_ps = start_ps});
	nx_note(r, (struct notification){.id = index,
			   .type_phase = (uint8_t)type,
			   .subtype = (uint16_t)(begins + 1),
			   .timestamp_ps = end_ps});
}

static inline void nx_sync(struct nx *x, uint32_t nd_idx, uint32_t nc_idx, uint64_t device_ps,
	uint64_t boot_ns, uint64_t bound_ns)
{
	Ntff__NtffSyncPoint *s = &x->points[x->info.n_sync_points];

	ntff__ntff_sync_point__init(s);
	s->nd_idx = nd_idx;
	s->nc_idx = nc_idx;
	s->device_ps = device_ps;
	s->boot_ns = boot_ns;
	s->bound_ns = bound_ns;
	x->point_list[x->info.n_sync_points++] = s;
}

static inline void nx_run(struct nx *x, uint32_t nd_idx, uint32_t nc_idx, uint64_t exec_id,
	uint64_t start_ps, uint64_t end_ps)
{
	Ntff__ExecutionInfo *r = &x->runs[x->info.n_execution_timeline];

	ntff__execution_info__init(r);
	r->exec_id = exec_id;
	r->model_id = x->node.model_id;
	r->nd_idx = nd_idx;
	r->nc_idx = nc_idx;
	r->start_ps = start_ps;
	r->end_ps = end_ps;
	r->started = r->ended = true;
	r->model_name = (char *)"model";
	x->run_list[x->info.n_execution_timeline++] = r;
}

static inline void nx_lost(struct nx *x, const struct nx_ring *r, uint64_t lost, bool at_least)
{
	Ntff__NtffLoss *l = &x->losses[x->info.n_losses];

	ntff__ntff_loss__init(l);
	l->nd_idx = r->info.nd_idx;
	l->nc_idx = r->info.nc_idx;
	l->trace_type = r->info.trace_type;
	l->block_type = r->info.block_type;
	l->engine_index = r->info.engine_index;
	l->lost = lost;
	l->at_least = at_least;
	l->why = (char *)"overwritten";
	x->loss_list[x->info.n_losses++] = l;
}

static inline struct nx_graph *nx_graph(struct nx *x, uint32_t nd_idx, uint32_t nc_idx)
{
	struct nx_graph *g = &x->graphs[x->device.n_graphs];

	ntff__subgraph_info__init(&g->info);
	g->info.name = (char *)"sg00";
	g->info.nd_idx = nd_idx;
	g->info.nc_idx = nc_idx;
	g->info.instructions = g->list;
	x->graph_list[x->device.n_graphs++] = &g->info;
	x->info.n_neff_nodes = 1;
	return g;
}

static inline void nx_name(struct nx_graph *g, uint32_t index, Ntff__BlockType block,
	uint32_t engine, const char *op, uint64_t duration_ps)
{
	Ntff__NtffInstruction *i = &g->names[g->info.n_instructions];

	ntff__ntff_instruction__init(i);
	i->index = index;
	i->block_type = block;
	i->engine_type = block == NX_ON_NC ? (Ntff__NcEngineType)engine : 0;
	i->engine_index = engine;
	i->op = (char *)op;
	i->duration_ps = duration_ps;
	i->source_line = index + 3;
	g->list[g->info.n_instructions++] = i;
}

/* Gives each ring its place; a test may make that wrong before nx_pack. */
static inline void nx_layout(struct nx *x)
{
	uint64_t room = 64 + ntff__ntff_info__get_packed_size(&x->info) +
			24 * x->info.n_session_notifications;

	x->blobs_offset = ntff_blobs_offset(room);
	x->blobs_size = 0;
	for (size_t i = 0; i < x->info.n_session_notifications; i++) {
		struct nx_ring *r = &x->rings[i];

		r->info.offset = x->blobs_offset + x->blobs_size;
		r->info.count = r->used;
		r->info.size = r->used * sizeof(struct notification);
		r->info.xxh3 = XXH3_64bits(r->records, r->info.size);
		x->blobs_size += r->info.size;
	}
}

static inline void nx_pack(struct nx *x)
{
	size_t message = ntff__ntff_info__get_packed_size(&x->info);
	uint64_t at = x->blobs_offset;

	free(x->bytes);
	x->size = (size_t)(x->blobs_offset + x->blobs_size);
	x->bytes = calloc(1, x->size);
	if (!x->bytes || message > x->blobs_offset - NTFF_HEADER_BYTES)
		abort();
	ntff__ntff_info__pack(&x->info, x->bytes + NTFF_HEADER_BYTES);
	for (size_t i = 0; i < x->info.n_session_notifications; i++) {
		const struct nx_ring *r = &x->rings[i];
		size_t size = r->used * sizeof(struct notification);

		if (size > 0 && at + size <= x->size)
			memcpy(x->bytes + at, r->records, size);
		at += size;
	}
	if (ntff_header_encode(x->bytes, x->bytes + NTFF_HEADER_BYTES, message, x->blobs_offset,
		    x->blobs_size, "tests") < 0)
		abort();
}

static inline void nx_build(struct nx *x)
{
	nx_layout(x);
	nx_pack(x);
}

static inline void nx_free(struct nx *x)
{
	for (size_t i = 0; i < NX_MAX; i++)
		free(x->rings[i].records);
	free(x->bytes);
}

/* Two runs of a model of one core with an engine, a DMA queue, a semaphore, a collective and an error. */
static inline void nx_sample(struct nx *x)
{
	const uint64_t us = 1000000, second = 1000000 * us;
	struct nx_graph *g;
	struct nx_ring *pe, *run, *dma, *event, *error, *top;

	nx_init(x);
	x->info.profile_start_time = 1700000000000000000;
	x->info.arch = 3;
	x->info.virtual_device = true;
	x->info.boot_ns_begin = 5000000000;
	x->info.boot_ns_end = 5100000000;
	pe = nx_ring(x, NX_INSTRUCTION, NX_ON_NC, 0, 0, 1);
	run = nx_ring(x, NX_INSTRUCTION, NX_ON_NC, 4, 0, 1);
	dma = nx_ring(x, NX_DMA, NX_ON_DMA, 3, 0, 1);
	event = nx_ring(x, NX_EVENT, NX_ON_NC, 0, 0, 1);
	error = nx_ring(x, NX_ERROR, NX_ON_NC, 0, 0, 1);
	top = nx_ring(x, NX_EXPLICIT, NX_ON_TOPSP, 0, 0, 1);
	g = nx_graph(x, 0, 1);
	nx_name(g, 0, NX_ON_DMA, 3, "copy", 2 * us);
	nx_name(g, 1, NX_ON_NC, 0, "add", 5 * us);
	nx_name(g, 2, NX_ON_TOPSP, 0, "all_reduce", 3 * us);
	for (uint64_t i = 0; i < 2; i++) {
		uint64_t t = second + i * 20 * us;

		nx_run(x, 0, 1, i + 1, t, t + 10 * us);
		nx_did(run, NOTE_TYPE_EXPLICIT_SP, (uint16_t)(i + 1), NOTE_START, t, t + 10 * us);
		nx_did(dma, NOTE_TYPE_DMA, 0, NOTE_START, t, t + 2 * us);
		nx_ran(pe, 1, 2, t + 2 * us, t + 7 * us);
		nx_did(top, NOTE_TYPE_EXPLICIT_SP, 2, NOTE_CC_START, t + 7 * us, t + 10 * us);
		nx_note(event, (struct notification){.id = 1,
				       .type_phase = (uint8_t)NOTE_TYPE_SEMAPHORE(0u),
				       .custom = 4,
				       .subtype = 1,
				       .timestamp_ps = t + 7 * us});
	}
	nx_note(error, (struct notification){.id = 1,
			       .type_phase = NOTE_TYPE_TPB_ERROR | NOTE_SW_OVERFLOW,
			       .custom = 1,
			       .subtype = 1003,
			       .timestamp_ps = second + 27 * us});
	nx_sync(x, 0, 1, second - us, 5000000000, 50);
	nx_sync(x, 0, 1, second + 39 * us, 5000040000, 60);
	nx_lost(x, error, 2, true);
	nx_build(x);
}

#endif
