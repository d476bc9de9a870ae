/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dump_ntff.c - a device profile as JSON lines.
 */
#include "agent/output/dump_ntff.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "agent/output/json_out.h"
#include "agent/output/message_json.h"

static struct json_out line_begin(FILE *f, const char *what)
{
	struct json_out j = {.f = f};

	jout_begin(&j, '{');
	jout_key_text(&j, "what", what);
	return j;
}

static void line_end(struct json_out *j)
{
	jout_end(j, '}');
	fputc('\n', j->f);
}

/* A message as it is; also numbers that are 0, of which cores and engines have some. */
static void print_message(FILE *f, const char *what, const ProtobufCMessage *m)
{
	struct json_out j = line_begin(f, what);

	message_json_all(&j, m);
	line_end(&j);
}

const char *ntff_place(
	const struct ntff_cursor *c, const struct ntff_item *item, char buf[NTFF_UNIT_BYTES])
{
	Ntff__BlockType block = c->stream->info->block_type;
	const Ntff__NtffInstruction *i;

	if (item->what == NTFF_ERROR) {
		/* The ring is that of all units of the core. */
		i = ntff_instruction_of(c->profile, c->core, ntff_run_of(c->core, item), item);
		if (!i)
			return block == NTFF__BLOCK_TYPE__BLOCK_TOPSP ? "topsp" : "nc";
		ntff_unit_name(i->block_type, i->engine_index, buf);
		return buf;
	}
	if (block == NTFF__BLOCK_TYPE__BLOCK_NC &&
		(item->what == NTFF_RUN || item->what == NTFF_SWITCH ||
			item->what == NTFF_THROTTLE))
		return "nc";
	ntff_unit_name(block, item->engine, buf);
	return buf;
}

struct ntff_lost ntff_lost_sum(const struct ntff_profile *p)
{
	struct ntff_lost sum = {0};

	for (size_t i = 0; i < p->info->n_losses; i++) {
		sum.records += p->info->losses[i]->lost;
		sum.at_least |= p->info->losses[i]->at_least;
	}
	return sum;
}

void ntff_sums_add(struct ntff_sums *to, const struct ntff_cursor *c)
{
	to->no_start += c->no_start;
	to->no_end += c->no_end;
	to->lost_marks += c->lost_marks;
}

/* ---- what the message says ---------------------------------------------------------------- */

/* Of the program, from 0; the message has it plus 1. */
static void print_vnc(struct json_out *j, const struct ntff_profile *p)
{
	if (p->info->logical_nc)
		jout_key_unsigned(j, "vnc", p->info->logical_nc - 1);
}

static void print_profile(FILE *f, const struct ntff_profile *p)
{
	const struct ntff_header *h = &p->file.header;
	Ntff__NtffInfo info = *p->info;
	struct json_out j = line_begin(f, "profile");

	/* These have lines of their own. */
	info.n_neff_nodes = 0;
	info.n_execution_timeline = 0;
	info.n_session_notifications = 0;
	info.n_sync_points = 0;
	info.n_losses = 0;
	jout_key_unsigned(&j, "container", h->container_version);
	jout_key_unsigned(&j, "format", h->format);
	jout_key_unsigned(&j, "file_size", h->file_size);
	jout_key_unsigned(&j, "message_size", h->message_size);
	jout_key_unsigned(&j, "cores", p->core_count);
	jout_key_unsigned(&j, "rings", p->stream_count);
	print_vnc(&j, p);
	message_json_members(&j, &info.base);
	line_end(&j);
}

static void print_graph(FILE *f, const Ntff__SubgraphInfo *g, uint64_t model)
{
	Ntff__SubgraphInfo rest = *g;
	struct json_out j = line_begin(f, "subgraph");

	rest.n_instructions = 0;
	rest.n_traces = 0;
	jout_key_unsigned(&j, "model_id", model);
	jout_key_unsigned(&j, "instructions", g->n_instructions);
	jout_key_unsigned(&j, "rings", g->n_traces);
	message_json_all(&j, &rest.base);
	line_end(&j);
}

static void print_node(FILE *f, const Ntff__NeffNodeInfo *node)
{
	Ntff__NeffNodeInfo rest = *node;
	struct json_out j;

	if (node->node_info_case != NTFF__NEFF_NODE_INFO__NODE_INFO_ND_NODE) {
		print_message(f, "node", &node->base);
		return;
	}
	rest.node_info_case = NTFF__NEFF_NODE_INFO__NODE_INFO__NOT_SET;
	j = line_begin(f, "node");
	message_json_members(&j, &rest.base);
	line_end(&j);
	for (size_t i = 0; i < node->nd_node->n_graphs; i++)
		print_graph(f, node->nd_node->graphs[i], node->model_id);
}

/* ---- items -------------------------------------------------------------------------------- */

static void print_run_and_time(
	struct json_out *j, struct ntff_cursor *c, const struct ntff_item *item)
{
	const Ntff__ExecutionInfo *run = ntff_run_of(c->core, item);
	uint64_t boot_ns, bound_ns;

	if (run)
		jout_key_unsigned(j, "exec_id", run->exec_id);
	if (item->span) {
		jout_key_unsigned(j, "start_ps", item->start_ps);
		jout_key_unsigned(j, "end_ps", item->end_ps);
		jout_key_unsigned(j, "duration_ps", item->end_ps - item->start_ps);
	} else {
		jout_key_unsigned(j, "at_ps", item->start_ps);
	}
	if (ntff_host_ns(c, item->era, item->start_ps, &boot_ns, &bound_ns)) {
		jout_key_unsigned(j, "boot_ns", boot_ns);
		jout_key_unsigned(j, "bound_ns", bound_ns);
	}
	if (item->lost_before)
		jout_key_bool(j, "lost_before", true);
}

static bool has_name(enum ntff_what what)
{
	return what == NTFF_INSTRUCTION || what == NTFF_TRANSFER || what == NTFF_COLLECTIVE ||
	       what == NTFF_SEMAPHORE || what == NTFF_ERROR;
}

/* What the three small numbers of a record mean. */
static void print_meaning(
	struct json_out *j, const struct ntff_cursor *c, const struct ntff_item *item)
{
	const Ntff__NtffInstruction *i = NULL;

	if (has_name(item->what))
		i = ntff_instruction_of(c->profile, c->core, ntff_run_of(c->core, item), item);
	if (has_name(item->what))
		jout_key_unsigned(j, "index", item->id);
	else if (item->what == NTFF_RUN || item->what == NTFF_SWITCH)
		jout_key_unsigned(j, "launch", item->id);
	if (i && i->op && *i->op)
		jout_key_text(j, "op", i->op);
	if (i && i->source_line)
		jout_key_unsigned(j, "source_line", i->source_line);
	if (item->what == NTFF_SEMAPHORE) {
		jout_key_unsigned(j, "semaphore", item->custom);
		jout_key_unsigned(j, "value16", item->subtype);
	} else if (item->what == NTFF_ERROR) {
		jout_key_unsigned(j, "fault", item->custom);
		if (ntff_fault_name(item->custom))
			jout_key_text(j, "fault_name", ntff_fault_name(item->custom));
		jout_key_unsigned(j, "status", item->subtype);
	} else if (item->what == NTFF_RUN) {
		jout_key_unsigned(j, "status", item->custom);
	} else if (item->what == NTFF_OTHER || item->what == NTFF_THROTTLE) {
		jout_key_unsigned(j, "type", item->type);
		jout_key_unsigned(j, "id", item->id);
		jout_key_unsigned(j, "hint", item->hint);
		jout_key_unsigned(j, "custom", item->custom);
		jout_key_unsigned(j, "subtype", item->subtype);
	}
}

static void print_item(FILE *f, struct ntff_cursor *c, const struct ntff_item *item)
{
	struct json_out j = line_begin(f, ntff_what_name(item->what));
	char place[NTFF_UNIT_BYTES];

	jout_key_unsigned(&j, "nd_idx", c->core->nd_idx);
	jout_key_unsigned(&j, "nc_idx", c->core->nc_idx);
	jout_key_text(&j, "engine", ntff_place(c, item, place));
	print_meaning(&j, c, item);
	print_run_and_time(&j, c, item);
	line_end(&j);
}

static int print_ring(
	FILE *f, const struct ntff_profile *p, const struct ntff_stream *s, struct ntff_sums *sums)
{
	struct ntff_cursor c;
	struct ntff_item item;
	int rc;

	ntff_cursor_open(&c, p, s);
	while ((rc = ntff_cursor_next(&c, &item)) > 0) {
		print_item(f, &c, &item);
		sums->items[item.what]++;
	}
	ntff_sums_add(sums, &c);
	ntff_cursor_close(&c);
	return rc;
}

/* ---- cores -------------------------------------------------------------------------------- */

static int print_core(
	FILE *f, const struct ntff_profile *p, const struct ntff_core *c, struct ntff_sums *sums)
{
	struct json_out j = line_begin(f, "core");
	uint64_t records = 0;
	int rc = 0;

	for (uint32_t i = 0; i < c->stream_count; i++)
		records += p->streams[c->first_stream + i].count;
	jout_key_unsigned(&j, "nd_idx", c->nd_idx);
	jout_key_unsigned(&j, "nc_idx", c->nc_idx);
	print_vnc(&j, p);
	jout_key_unsigned(&j, "rings", c->stream_count);
	jout_key_unsigned(&j, "records", records);
	jout_key_unsigned(&j, "sync_points", c->point_count);
	jout_key_unsigned(&j, "clock_resets", c->era_count - 1);
	line_end(&j);
	for (uint32_t i = 0; i < c->point_count; i++)
		print_message(f, "sync_point", &c->points[i]->base);
	for (uint32_t i = 0; i < c->run_count; i++)
		print_message(f, "execution", &c->runs[i]->base);
	for (uint32_t i = 0; i < c->stream_count && rc == 0; i++)
		rc = print_ring(f, p, &p->streams[c->first_stream + i], sums);
	return rc;
}

static void print_total(FILE *f, const struct ntff_profile *p, const struct ntff_sums *sums)
{
	struct json_out j = line_begin(f, "total");
	const struct ntff_lost lost = ntff_lost_sum(p);

	for (unsigned i = 0; i < NTFF_WHATS; i++)
		if (sums->items[i] > 0)
			jout_key_unsigned(&j, ntff_what_name(i), sums->items[i]);
	jout_key_unsigned(&j, "no_start", sums->no_start);
	jout_key_unsigned(&j, "no_end", sums->no_end);
	jout_key_unsigned(&j, "lost", lost.records);
	if (lost.at_least)
		jout_key_bool(&j, "lost_at_least", true);
	jout_key_unsigned(&j, "gaps", sums->lost_marks);
	line_end(&j);
}

int dump_ntff_json(FILE *f, const struct ntff_profile *p)
{
	struct ntff_sums sums = {0};
	int rc = 0;

	print_profile(f, p);
	for (size_t i = 0; i < p->info->n_neff_nodes; i++)
		print_node(f, p->info->neff_nodes[i]);
	for (uint32_t i = 0; i < p->core_count && rc == 0; i++)
		rc = print_core(f, p, &p->cores[i], &sums);
	for (size_t i = 0; i < p->info->n_losses; i++)
		print_message(f, "loss", &p->info->losses[i]->base);
	if (rc == 0)
		print_total(f, p, &sums);
	return rc;
}
