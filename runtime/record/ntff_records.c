/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ntff_records.c - opens a device profile: which rings it has, of which cores, and what else it says of
 * these: sync points, runs, names of instructions.
 *
 * Everything is put into lists that are sorted once, so that nothing is looked for one by one.
 */
#include "runtime/record/ntff_records.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "proto/message.h"
#include "proto/notification.h"
#include "runtime/base/file.h"
#include "runtime/record/ntff_lists.h"
#include "runtime/record/session.h"

/* What a message may take of memory, by its size: one that says something takes five times it. */
#define MEMORY_PER_BYTE 32u
#define MEMORY_BASE (1u << 20)

static void flaw(struct ntff_profile *p, uint64_t at, const char *what)
{
	if (p->flaw_count < NTFF_MAX_FLAWS)
		p->flaws[p->flaw_count] = (struct ntff_flaw){what, at};
	p->flaw_count++;
}

static int unpack(struct ntff_profile *p)
{
	const uint8_t *bytes = ntff_file_message(&p->file);
	size_t size = (size_t)p->file.header.message_size;
	ProtobufCMessage *m = NULL;
	uint64_t memory;
	int rc = pb_message_measure(&ntff__ntff_info__descriptor, bytes, size, &memory);

	if (rc == 0 && memory > MEMORY_BASE + (uint64_t)size * MEMORY_PER_BYTE)
		rc = -EBADMSG;
	if (rc == 0)
		rc = pb_message_unpack(&ntff__ntff_info__descriptor, bytes, size, &m);
	p->info = (Ntff__NtffInfo *)m;
	if (rc == -EBADMSG) {
		p->file.damage = "its message is no ntff_info";
		p->file.damage_at = p->file.header.message_offset;
	}
	return rc;
}

/* ---- blobs -------------------------------------------------------------------------------- */

/* All that the message says of bytes in the file. */
struct blob {
	uint64_t offset, size;
	const Ntff__TraceInfo *trace; /* NULL: code of an engine */
	struct ntff_stream stream;
	bool usable;
};

struct blobs {
	struct blob *list;
	size_t count, cap;
};

static int add_blob(struct blobs *b, uint64_t offset, uint64_t size, const Ntff__TraceInfo *trace)
{
	int rc = session_grow(&b->list, &b->cap, b->count + 1, sizeof(*b->list));

	if (rc == 0)
		b->list[b->count++] = (struct blob){.offset = offset, .size = size, .trace = trace};
	return rc;
}

static int add_traces(struct blobs *b, Ntff__TraceInfo *const *list, size_t count)
{
	int rc = 0;

	for (size_t i = 0; i < count && rc == 0; i++)
		rc = add_blob(b, list[i]->offset, list[i]->size, list[i]);
	return rc;
}

static int add_code(struct blobs *b, Ntff__EngineInstructionInfo *const *list, size_t count)
{
	int rc = 0;

	for (size_t i = 0; i < count && rc == 0; i++)
		if (list[i]->instructions_size > 0)
			rc = add_blob(
				b, list[i]->instructions_offset, list[i]->instructions_size, NULL);
	return rc;
}

static int add_graph(struct blobs *b, const Ntff__SubgraphInfo *g)
{
	int rc = add_traces(b, g->traces, g->n_traces);

	if (rc == 0)
		rc = add_code(b, g->instruction_info, g->n_instruction_info);
	if (rc == 0)
		rc = add_code(
			b, g->collectives_instruction_info, g->n_collectives_instruction_info);
	if (rc == 0 && g->coll_info)
		rc = add_code(b, g->coll_info->topsp, g->coll_info->n_topsp);
	return rc;
}

static int add_all(struct blobs *b, const Ntff__NtffInfo *info)
{
	int rc = add_traces(b, info->session_notifications, info->n_session_notifications);

	for (size_t i = 0; i < info->n_neff_nodes; i++) {
		const Ntff__NdNodeInfo *node = ntff_node_graphs(info->neff_nodes[i]);

		for (size_t k = 0; node && k < node->n_graphs && rc == 0; k++)
			rc = add_graph(b, node->graphs[k]);
	}
	return rc;
}

/* Takes the records of a ring; returns what is wrong with them, and whether they can be read all the same. */
static const char *take_records(const struct ntff_file *f, struct blob *b)
{
	const Ntff__TraceInfo *t = b->trace;
	struct ntff_stream *s = &b->stream;
	uint64_t there;

	b->usable = false;
	if ((unsigned)t->trace_type > NTFF__NOTIFICATION_TRACE_TYPE__NOTIFICATION_THROTTLE ||
		(unsigned)t->block_type > NTFF__BLOCK_TYPE__BLOCK_TOPSP)
		return "a ring is of a kind that this program does not know";
	if (t->size % sizeof(struct notification) != 0 ||
		(t->size > 0 && t->offset % NTFF_BLOB_ALIGN != 0))
		return "records of a ring do not lie at multiples of 16";
	s->info = t;
	b->usable = true;
	if (t->size == 0)
		return t->count ? "a ring has another number of records than it says" : NULL;
	b->usable = ntff_file_blob(f, t->offset, t->size, &s->records, &there);
	if (!b->usable)
		return "records of a ring are said to be where no blobs are";
	s->count = there / sizeof(struct notification);
	if (there < t->size)
		return NULL; /* the file was cut, and file.damage says so */
	b->usable = !t->xxh3 || XXH3_64bits(s->records, (size_t)t->size) == t->xxh3;
	if (!b->usable)
		return "records of a ring have another checksum";
	return s->count == t->count ? NULL : "a ring has another number of records than it says";
}

static int by_offset(const void *a, const void *b)
{
	const struct blob *const *x = a, *const *y = b;

	if ((*x)->offset != (*y)->offset)
		return (*x)->offset < (*y)->offset ? -1 : 1;
	return *x < *y ? -1 : *x > *y;
}

/* Of two blobs that overlap, the second is taken for wrong. */
static int check_overlaps(struct ntff_profile *p, struct blobs *b)
{
	_cleanup_free_ struct blob **order = calloc(b->count + 1, sizeof(struct blob *));
	uint64_t end = 0;
	size_t n = 0;

	if (!order)
		return -ENOMEM;
	for (size_t i = 0; i < b->count; i++)
		if (b->list[i].usable && b->list[i].size > 0)
			order[n++] = &b->list[i];
	qsort(order, n, sizeof(struct blob *), by_offset);
	for (size_t i = 0; i < n; i++) {
		if (order[i]->offset < end) {
			flaw(p, order[i]->offset, "a blob lies in another one");
			order[i]->usable = false;
		} else {
			end = order[i]->offset + order[i]->size;
		}
	}
	return 0;
}

static int check_blobs(struct ntff_profile *p, struct blobs *b)
{
	const struct ntff_file *f = &p->file;

	for (size_t i = 0; i < b->count; i++) {
		struct blob *x = &b->list[i];
		const uint8_t *bytes;
		const char *what = NULL;
		uint64_t there;

		if (x->trace) {
			what = take_records(f, x);
		} else {
			x->usable = ntff_file_blob(f, x->offset, x->size, &bytes, &there);
			if (!x->usable)
				what = "instructions are said to be where no blobs are";
		}
		if (what)
			flaw(p, x->offset, what);
	}
	return check_overlaps(p, b);
}

/* ---- cores -------------------------------------------------------------------------------- */

static int add_core(struct ntff_keys *k, uint32_t nd_idx, uint32_t nc_idx)
{
	return ntff_keys_add(k, ntff_core_key(nd_idx, nc_idx));
}

/* All that are named by something that a reader asks for. */
static int find_cores(struct ntff_profile *p, const struct blobs *b)
{
	_cleanup_(ntff_keys_free) struct ntff_keys keys = {0};
	const Ntff__NtffInfo *m = p->info;
	int rc = 0;

	for (size_t i = 0; i < b->count && rc == 0; i++)
		if (b->list[i].trace && b->list[i].usable)
			rc = add_core(&keys, b->list[i].trace->nd_idx, b->list[i].trace->nc_idx);
	for (size_t i = 0; i < m->n_sync_points && rc == 0; i++)
		rc = add_core(&keys, m->sync_points[i]->nd_idx, m->sync_points[i]->nc_idx);
	for (size_t i = 0; i < m->n_execution_timeline && rc == 0; i++)
		rc = add_core(
			&keys, m->execution_timeline[i]->nd_idx, m->execution_timeline[i]->nc_idx);
	if (rc < 0)
		return rc;
	ntff_keys_sort(&keys);
	p->cores = calloc(keys.count + 1, sizeof(*p->cores));
	if (!p->cores)
		return -ENOMEM;
	for (size_t i = 0; i < keys.count; i++)
		p->cores[p->core_count++] = (struct ntff_core){
			.nd_idx = (uint32_t)(keys.list[i] >> 32), .nc_idx = (uint32_t)keys.list[i]};
	p->core_keys = keys.list;
	keys.list = NULL;
	return 0;
}

/* Streams by core, each core's as in the message. */
static int list_streams(struct ntff_profile *p, struct blobs *b)
{
	uint32_t next = 0;

	p->streams = calloc(b->count + 1, sizeof(*p->streams));
	if (!p->streams)
		return -ENOMEM;
	for (size_t i = 0; i < b->count; i++) {
		struct blob *x = &b->list[i];
		struct ntff_core *c;

		x->usable = x->usable && x->trace;
		if (!x->usable)
			continue;
		c = ntff_core_of(p, x->trace->nd_idx, x->trace->nc_idx);
		x->stream.core = (uint32_t)(c - p->cores);
		c->stream_count++;
	}
	for (uint32_t i = 0; i < p->core_count; i++) {
		p->cores[i].first_stream = next;
		next += p->cores[i].stream_count;
		p->cores[i].stream_count = 0;
	}
	for (size_t i = 0; i < b->count; i++) {
		struct ntff_core *c = &p->cores[b->list[i].stream.core];

		if (b->list[i].usable)
			p->streams[c->first_stream + c->stream_count++] = b->list[i].stream;
	}
	p->stream_count = next;
	return 0;
}

/* ---- open --------------------------------------------------------------------------------- */

int ntff_profile_open(struct ntff_profile *ret, const void *data, size_t size)
{
	struct blobs b = {0};
	int rc;

	*ret = (struct ntff_profile){0};
	rc = ntff_file_open(&ret->file, data, size);
	if (rc == 0)
		rc = unpack(ret);
	if (rc == 0)
		rc = add_all(&b, ret->info);
	if (rc == 0)
		rc = check_blobs(ret, &b);
	if (rc == 0)
		rc = find_cores(ret, &b);
	if (rc == 0)
		rc = list_streams(ret, &b);
	if (rc == 0)
		rc = ntff_list_points(ret);
	if (rc == 0)
		rc = ntff_list_runs(ret);
	if (rc == 0)
		rc = ntff_list_names(ret);
	free(b.list);
	return rc;
}

void ntff_profile_close(struct ntff_profile *p)
{
	free(p->cores);
	free(p->core_keys);
	free(p->streams);
	free(p->names);
	free(p->points);
	free(p->eras);
	free(p->runs);
	if (p->info)
		ntff__ntff_info__free_unpacked(p->info, NULL);
	*p = (struct ntff_profile){0};
}
