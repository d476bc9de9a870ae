/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ntff_build.c - the message of a profile: what was profiled, runs, clocks, losses, and where the records are.
 *
 * Filled is what is known to be true; what the vendor's message has besides stays empty.  The records of a
 * session stand at the top, those of a model in the graph of the core that they are from, as in the vendor's
 * files.
 */
#include "runtime/profile/ntff_build.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <xxhash.h>

#include "proto/ntff_file.h"
#include "runtime/lifecycle/version.h"
#include "runtime/log/log.h"

#define TAG "NRT"

/* ---- memory ------------------------------------------------------------------------------- */

struct arena_block {
	struct arena_block *next;
	max_align_t memory[];
};

void *profile_take(struct profile *p, size_t count, size_t size)
{
	struct arena_block *block = NULL;
	size_t bytes;

	if (!__builtin_mul_overflow(count, size, &bytes) && bytes < SIZE_MAX / 2)
		block = calloc(1, sizeof(*block) + (bytes ? bytes : 1));
	if (!block)
		return NULL;
	block->next = p->blocks;
	p->blocks = block;
	return block->memory;
}

void *profile_messages(struct profile *p, const ProtobufCMessageDescriptor *type, size_t count)
{
	ProtobufCMessage **list = profile_take(p, count, sizeof(*list));
	char *messages = list ? profile_take(p, count, type->sizeof_message) : NULL;

	for (size_t i = 0; messages && i < count; i++) {
		list[i] = (ProtobufCMessage *)(void *)(messages + i * type->sizeof_message);
		type->message_init(list[i]);
	}
	return messages ? list : NULL;
}

bool profile_more_blobs(struct profile *p, uint32_t count)
{
	struct ntff_blob *blobs =
		profile_take(p, (size_t)p->blob_count + count, sizeof(p->blobs[0]));

	if (blobs && p->blob_count)
		memcpy(blobs, p->blobs, p->blob_count * sizeof(blobs[0]));
	if (blobs)
		p->blobs = blobs;
	return blobs != NULL;
}

void profile_add_blob(
	struct profile *p, const struct iovec *pieces, uint32_t count, uint64_t *offset)
{
	struct ntff_blob *b = &p->blobs[p->blob_count++];

	*b = (struct ntff_blob){.pieces = pieces, .piece_count = count, .offset = offset};
	for (uint32_t i = 0; i < count; i++)
		b->size += pieces[i].iov_len;
}

void profile_free(struct profile *p)
{
	if (!p)
		return;
	collector_data_free(&p->data);
	for (uint32_t i = 0; i < p->node_count; i++)
		profile_node_put(p->nodes[i]);
	while (p->blocks) {
		struct arena_block *block = p->blocks;

		p->blocks = block->next;
		free(block);
	}
	free(p);
}

/* ---- which nodes -------------------------------------------------------------------------- */

static bool is_wanted(const struct profile_wish *wish, const struct collector_run *r)
{
	if (wish->session)
		return true;
	return r->model_number == wish->model && (!wish->exec || r->exec_id == wish->exec);
}

/* Takes the reference. */
static void keep_node(struct profile *p, struct profile_node *n)
{
	for (uint32_t i = 0; i < p->node_count; i++)
		if (p->nodes[i] == n) {
			profile_node_put(n);
			return;
		}
	p->nodes[p->node_count++] = n;
}

/* The nodes of all runs that are wanted, each once, and that of each run. */
static bool find_nodes(struct profile *p, const struct profile_wish *wish)
{
	const struct collector_data *d = &p->data;
	struct profile_node **of = profile_take(p, d->run_count, sizeof(struct profile_node *));
	uint64_t number = 0;
	struct profile_node *n = NULL;

	p->nodes = profile_take(p, (size_t)d->run_count + 1, sizeof(struct profile_node *));
	if (!of || !p->nodes)
		return false;
	for (uint32_t i = 0; i < d->run_count; i++) {
		if (!is_wanted(wish, &d->runs[i]))
			continue;
		if (d->runs[i].model_number != number) {
			number = d->runs[i].model_number;
			n = profile_node_find(wish->nc, number);
			if (n)
				keep_node(p, n);
		}
		of[i] = n;
	}
	if (wish->node) {
		atomic_fetch_add_explicit(&wish->node->refs, 1, memory_order_relaxed);
		keep_node(p, wish->node);
	}
	p->run_nodes = of;
	return true;
}

/* ---- lists of the message ----------------------------------------------------------------- */

static void fill_execution(Ntff__ExecutionInfo *to, const struct collector_run *r)
{
	to->exec_id = r->exec_id;
	to->model_id = r->model_id;
	to->nd_idx = r->nd_idx;
	to->nc_idx = r->nc_idx;
	to->start_ps = r->start_ps;
	to->end_ps = r->end_ps;
	to->status = r->status;
	to->started = r->started;
	to->ended = r->ended;
	to->model_name = (char *)r->model_name;
}

static bool add_executions(struct profile *p, const struct profile_wish *wish)
{
	const struct collector_data *d = &p->data;
	Ntff__NtffInfo *info = &p->info;

	info->execution_timeline =
		profile_messages(p, &ntff__execution_info__descriptor, d->run_count);
	if (!info->execution_timeline)
		return false;
	for (uint32_t i = 0; i < d->run_count; i++) {
		Ntff__ExecutionInfo *e = info->execution_timeline[info->n_execution_timeline];

		if (!is_wanted(wish, &d->runs[i]))
			continue;
		fill_execution(e, &d->runs[i]);
		if (p->run_nodes[i])
			e->model_uuid = p->run_nodes[i]->uuid;
		info->n_execution_timeline++;
	}
	return true;
}

static bool add_syncs(struct profile *p)
{
	const struct collector_data *d = &p->data;
	Ntff__NtffInfo *info = &p->info;

	info->sync_points = profile_messages(p, &ntff__ntff_sync_point__descriptor, d->sync_count);
	if (!info->sync_points)
		return false;
	for (uint32_t i = 0; i < d->sync_count; i++) {
		const struct collector_sync *s = &d->syncs[i];
		Ntff__NtffSyncPoint *to = info->sync_points[i];

		to->nd_idx = s->nd_idx;
		to->nc_idx = s->nc_idx;
		to->device_ps = s->device_ps;
		to->boot_ns = s->boot_ns;
		to->real_offset_ns = s->real_offset_ns;
		to->bound_ns = s->bound_ns;
		to->exec_id = s->exec_id;
	}
	info->n_sync_points = d->sync_count;
	return true;
}

/* What a ring may lack, and why. */
#define CAUSES 5u

static void add_loss(Ntff__NtffInfo *info, const struct collector_row *row, uint64_t lost,
	bool at_least, const char *why)
{
	Ntff__NtffLoss *to;

	if (!lost && !at_least)
		return;
	to = info->losses[info->n_losses++];
	to->nd_idx = row->nd_idx;
	to->nc_idx = row->nc_idx;
	to->trace_type = (Ntff__NotificationTraceType)row->trace_type;
	to->block_type = (Ntff__BlockType)row->block_type;
	to->engine_index = row->engine;
	to->lost = lost;
	to->at_least = at_least;
	to->why = (char *)why;
	info->partial = true;
}

static bool add_losses(struct profile *p)
{
	const struct collector_data *d = &p->data;

	p->info.losses =
		profile_messages(p, &ntff__ntff_loss__descriptor, CAUSES * (size_t)d->row_count);
	if (!p->info.losses)
		return false;
	for (uint32_t i = 0; i < d->row_count; i++) {
		const struct collector_row *row = &d->rows[i];

		add_loss(&p->info, row, row->lost - row->replaced, row->doubtful,
			row->lost > row->replaced ? "the ring was full"
						  : "the device does not count its records");
		add_loss(&p->info, row, row->replaced, row->was_replaced,
			"the device has replaced the ring");
		add_loss(&p->info, row, 0, row->unasked, "the device did not answer");
		add_loss(&p->info, row, 0, row->given_back, "ring given back");
		add_loss(&p->info, row, row->dropped, false,
			"more than NTRACE_PROFILE_MAX_MB, or no memory");
	}
	return true;
}

static bool has_buffer(const Ntff__NtffInfo *info, const struct collector_row *row)
{
	for (size_t i = 0; i < info->n_notification_buffers; i++)
		if ((int)info->notification_buffers[i]->trace_type == (int)row->trace_type &&
			(int)info->notification_buffers[i]->block_type == (int)row->block_type)
			return true;
	return false;
}

/* One for each pair of types: the first ring, in the order of rows. */
static bool add_buffers(struct profile *p)
{
	const struct collector_data *d = &p->data;
	Ntff__NtffInfo *info = &p->info;

	info->notification_buffers =
		profile_messages(p, &ntff__notification_buffer_size__descriptor, d->row_count);
	if (!info->notification_buffers)
		return false;
	for (uint32_t i = 0; i < d->row_count; i++) {
		const struct collector_row *row = &d->rows[i];
		Ntff__NotificationBufferSize *to;

		if (!row->ring_bytes || has_buffer(info, row))
			continue;
		to = info->notification_buffers[info->n_notification_buffers++];
		to->block_type = (Ntff__BlockType)row->block_type;
		to->trace_type = (Ntff__NotificationTraceType)row->trace_type;
		to->buffer_size = row->ring_bytes;
	}
	return true;
}

/* ---- records ------------------------------------------------------------------------------ */

/* The runs of a physical core; a run without an end lasts until the next begins.  after_ends: each from the end of the
 * one before it, as in the ring that has the change of model before a run, too. */
static struct ntff_window *windows_of(struct profile *p, const struct profile_wish *wish,
	uint32_t part, bool after_ends, uint32_t *ret_count)
{
	const struct collector_data *d = &p->data;
	struct ntff_window *w = profile_take(p, d->run_count, sizeof(*w));
	uint64_t last_ps = 0; /* end of the run before it, where the clock has gone on */
	uint32_t n = 0;

	for (uint32_t i = 0; w && i < d->run_count; i++) {
		const struct collector_run *r = &d->runs[i];

		if (r->part != part || !r->started)
			continue;
		if (n && w[n - 1].end_ps == UINT64_MAX && r->start_ps > w[n - 1].start_ps)
			w[n - 1].end_ps = r->start_ps - 1;
		w[n++] = (struct ntff_window){.start_ps = !after_ends		  ? r->start_ps
							  : r->start_ps > last_ps ? last_ps + 1
										  : 0,
			.end_ps = r->ended ? r->end_ps : UINT64_MAX,
			.wanted = is_wanted(wish, r)};
		last_ps = r->ended ? r->end_ps : r->start_ps;
	}
	*ret_count = n;
	return w;
}

static struct iovec *all_pieces(struct profile *p, const struct collector_row *row)
{
	struct iovec *to = profile_take(p, row->span_count, sizeof(*to));

	for (uint32_t i = 0; to && i < row->span_count; i++)
		to[i] = (struct iovec){(void *)row->spans[i].records,
			row->spans[i].count * sizeof(row->spans[i].records[0])};
	return to;
}

/* What is in it of a row. */
struct selection {
	struct iovec *pieces;
	uint32_t count;
	uint64_t records;
};

static bool select_records(struct profile *p, const struct profile_wish *wish,
	const struct collector_row *row, struct ntff_window *windows, uint32_t window_count,
	struct selection *ret)
{
	if (wish->session) {
		*ret = (struct selection){all_pieces(p, row), row->span_count, row->count};
		return ret->pieces != NULL;
	}
	ret->count = ntff_cut(row, windows, window_count, NULL, &ret->records);
	ret->pieces = profile_take(p, ret->count, sizeof(struct iovec));
	if (ret->pieces)
		(void)ntff_cut(row, windows, window_count, ret->pieces, &ret->records);
	return ret->pieces != NULL;
}

/* The list that the records of a physical core go to. */
static bool list_for(struct profile *p, const struct profile_wish *wish,
	const struct collector_row *row, Ntff__TraceInfo ****ret_list, size_t **ret_count)
{
	Ntff__SubgraphInfo *graph = NULL;

	if (!wish->session)
		graph = profile_graph(p, wish->node, row->nd_idx, row->nc_idx);
	*ret_list = graph ? &graph->traces : &p->info.session_notifications;
	*ret_count = graph ? &graph->n_traces : &p->info.n_session_notifications;
	if (!**ret_list)
		**ret_list = profile_messages(p, &ntff__trace_info__descriptor,
			graph ? NOTIFICATION_RINGS : p->data.row_count);
	return **ret_list != NULL;
}

static uint64_t hash_of(const struct selection *s)
{
	XXH3_state_t *state = XXH3_createState();
	uint64_t hash = 0;

	if (state && XXH3_64bits_reset(state) == XXH_OK) {
		for (uint32_t i = 0; i < s->count; i++)
			(void)XXH3_64bits_update(
				state, s->pieces[i].iov_base, s->pieces[i].iov_len);
		hash = XXH3_64bits_digest(state);
	}
	(void)XXH3_freeState(state);
	return hash; /* 0: none is given */
}

static bool add_row(struct profile *p, const struct profile_wish *wish,
	const struct collector_row *row, const struct selection *s)
{
	Ntff__TraceInfo ***list, *t;
	size_t *count;

	if (!list_for(p, wish, row, &list, &count))
		return false;
	t = (*list)[(*count)++];
	t->trace_type = (Ntff__NotificationTraceType)row->trace_type;
	t->block_type = (Ntff__BlockType)row->block_type;
	t->engine_index = row->engine;
	t->size = s->records * sizeof(struct notification);
	t->nd_idx = row->nd_idx;
	t->nc_idx = row->nc_idx;
	t->count = s->records;
	t->xxh3 = hash_of(s);
	profile_add_blob(p, s->pieces, s->count, &t->offset);
	return true;
}

static bool add_rows(struct profile *p, const struct profile_wish *wish)
{
	const struct collector_data *d = &p->data;
	struct ntff_window *windows[2 * CORES_MAX_SIZE] = {NULL};
	uint32_t counts[2 * CORES_MAX_SIZE] = {0};

	if (!profile_more_blobs(p, d->row_count))
		return false;
	for (uint32_t i = 0; i < 2 * CORES_MAX_SIZE && !wish->session; i++) {
		windows[i] = windows_of(p, wish, i / 2, i % 2, &counts[i]);
		if (!windows[i])
			return false;
	}
	for (uint32_t i = 0; i < d->row_count; i++) {
		const struct collector_row *row = &d->rows[i];
		uint32_t w = 2 * row->part + (row->kind == NOTIFICATION_INFER_STATUS);
		struct selection s;

		if (!row->count)
			continue;
		if (!select_records(p, wish, row, windows[w], counts[w], &s))
			return false;
		if (s.records && !add_row(p, wish, row, &s))
			return false;
	}
	return true;
}

/* ---- the top of it ------------------------------------------------------------------------ */

static Ntff__VersionInfo *add_version(
	struct profile *p, uint64_t major, uint64_t minor, const char *detail)
{
	Ntff__VersionInfo **v = profile_messages(p, &ntff__version_info__descriptor, 1);

	if (!v)
		return NULL;
	v[0]->major = major;
	v[0]->minor = minor;
	v[0]->detail = (char *)detail;
	return v[0];
}

static bool add_versions(struct profile *p)
{
	const struct device_driver *driver = &runtime_get()->devices->driver;
	Ntff__NtffInfo *info = &p->info;

	info->neuron_runtime_version = add_version(p, VERSION_MAJOR, VERSION_MINOR,
		"the version whose interface it has; ntrace " NTRACE_VERSION);
	info->neuron_driver_version = add_version(p, driver->major, driver->minor, "");
	info->neuron_collectives_version =
		add_version(p, 0, 0, "no library: the virtual device does them");
	if (!info->neuron_runtime_version || !info->neuron_driver_version ||
		!info->neuron_collectives_version)
		return false;
	info->neuron_runtime_version->patch = VERSION_PATCH;
	info->neuron_runtime_version->maintenance = VERSION_MAINTENANCE;
	return true;
}

static void fill_top(struct profile *p, const struct profile_wish *wish)
{
	const struct device_system *s = runtime_get()->devices;
	const struct collector_data *d = &p->data;
	Ntff__NtffInfo *info = &p->info;

	info->id = wish->id;
	if (wish->session)
		info->session_id = wish->id;
	info->arch = s->arch;
	info->start_nc = cores_logical(s->first_core, s->lnc_size);
	info->pid = (uint32_t)getpid();
	info->producer = "ntrace " NTRACE_VERSION;
	info->boot_ns_begin = d->boot_ns_begin;
	info->boot_ns_end = d->boot_ns_end;
	if (d->sync_count)
		info->profile_start_time = d->boot_ns_begin + (uint64_t)d->syncs[0].real_offset_ns;
	info->virtual_device = s->is_virtual;
	info->logical_nc = wish->nc + 1;
}

/* Is the last that the device told of its runs that one began? */
static bool has_open_run(const struct collector_row *row)
{
	const struct collector_span *last;

	if (row->kind != NOTIFICATION_INFER_STATUS || row->span_count == 0)
		return false;
	last = &row->spans[row->span_count - 1];
	return last->records[last->count - 1].subtype == NOTE_START;
}

/* A profile that began or ended in the middle of a run has not all of its records. */
static void note_cut_runs(struct profile *p, const struct profile_wish *wish)
{
	const struct collector_data *d = &p->data;

	if (d->runs_dropped)
		p->info.partial = true;
	for (uint32_t i = 0; i < d->run_count; i++)
		if (is_wanted(wish, &d->runs[i]) && d->runs[i].host_start_ns < d->boot_ns_begin)
			p->info.partial = true;
	for (uint32_t i = 0; wish->session && i < d->row_count; i++)
		if (has_open_run(&d->rows[i]))
			p->info.partial = true;
}

static bool fill(struct profile *p, const struct profile_wish *wish)
{
	fill_top(p, wish);
	if (!add_versions(p) || !find_nodes(p, wish) || !profile_add_nodes(p) ||
		!add_executions(p, wish) || !add_syncs(p) || !add_losses(p) || !add_buffers(p) ||
		!add_rows(p, wish))
		return false;
	note_cut_runs(p, wish);
	return true;
}

NRT_STATUS profile_build(const char *call, const struct profile_wish *wish,
	struct profile_harvest *harvest, struct profile **ret)
{
	struct profile *p = calloc(1, sizeof(*p));

	if (p) {
		ntff__ntff_info__init(&p->info);
		p->info.partial = harvest->partial;
		p->data = harvest->data;
	}
	if (p && fill(p, wish)) {
		*harvest = (struct profile_harvest){0};
		*ret = p;
		return NRT_SUCCESS;
	}
	if (p)
		p->data = (struct collector_data){0}; /* still the caller's */
	profile_free(p);
	log_write(LOG_LEVEL_ERROR, TAG, call,
		"No memory for the profile of NC %u; it is kept, call again", wish->nc);
	return NRT_RESOURCE;
}

void profile_harvest(struct profile_harvest *h, struct collector_cursor *cursor, uint32_t nc)
{
	NRT_STATUS status;
	int rc;

	if (h->taken)
		return;
	h->taken = true;
	status = collector_read(cursor, &h->data);
	if (status)
		h->data = (struct collector_data){0};
	rc = status ? -ENOMEM : h->data.unasked;
	if (rc == 0)
		return;
	log_warn(TAG, "Failed to read notifications from device for NC %u: %s; the profile has %s",
		nc, strerror(-rc), status ? "none" : "those that were there");
	h->partial = true;
}

void profile_harvest_drop(struct profile_harvest *h)
{
	collector_data_free(&h->data);
	*h = (struct profile_harvest){0};
}

uint64_t profile_lay_out(struct profile *p, uint64_t at)
{
	uint64_t begin = at;

	for (uint32_t i = 0; i < p->blob_count; i++) {
		*p->blobs[i].offset = at;
		at += ntff_align(p->blobs[i].size);
	}
	return at - begin;
}
