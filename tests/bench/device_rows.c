/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_rows.c - how fast the records of a device profile become rows of ntrace.pb.
 *
 * A recording with a million events of the runtime and the hooks, and a profile of one core: five engines
 * and four DMA queues, each with its ring, in runs of 400 records with a sync point each.  It is merged
 * without the profile and with it; what the profile adds is set against what it takes, beside the rate of
 * the merge alone in the same run.  Resident memory is shown for both: it must not grow with the
 * records.
 *
 * Usage: device_rows [RECORDS...]
 *        device_rows --write DIR RECORDS   only the recording, as DIR/recording; with few events
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <xxhash.h>

#include "proto/notification.h"
#include "proto/ntff.pb-c.h"
#include "proto/ntff_file.h"
#include "runtime/base/file.h"
#include "tests/bench/frames.h"
#include "tests/unit/scratch.h"

#define EVENTS 1000000u
#define FEW_EVENTS 1000u
#define ENGINES 5u
#define QUEUES 4u
#define RINGS (ENGINES + QUEUES)
#define PER_RUN 400u /* records */
#define RUN_PS 100000000ull
#define BEGIN_PS 5000000000000ull

/* ---- the profile -------------------------------------------------------------------------- */

static Ntff__TraceInfo ring_of(unsigned n)
{
	Ntff__TraceInfo t = NTFF__TRACE_INFO__INIT;
	bool engine = n < ENGINES;

	t.trace_type = engine ? NTFF__NOTIFICATION_TRACE_TYPE__NOTIFICATION_INSTRUCTION
			      : NTFF__NOTIFICATION_TRACE_TYPE__NOTIFICATION_DMA;
	t.block_type = engine ? NTFF__BLOCK_TYPE__BLOCK_NC : NTFF__BLOCK_TYPE__BLOCK_DMA;
	t.engine_index = engine ? n : n - ENGINES;
	return t;
}

/* Records of a ring: spans of half their period. */
static void fill_ring(struct notification *to, uint64_t count, unsigned ring, uint64_t runs)
{
	uint64_t period = RUN_PS * runs / (count / 2);

	for (uint64_t i = 0; i < count; i++) {
		bool end = i & 1;

		to[i] = (struct notification){.id = (uint16_t)(i / 2 % 64),
			.type_phase = (uint8_t)(ring >= ENGINES ? NOTE_TYPE_DMA
						: end		? NOTE_TYPE_INST_END(ring)
								: NOTE_TYPE_INST_START(ring)),
			.subtype = end ? NOTE_END : NOTE_START,
			.timestamp_ps =
				BEGIN_PS + i / 2 * period + (end ? period / 2 : 0) + 17 * ring};
	}
}

struct parts {
	Ntff__NtffInfo info;
	Ntff__TraceInfo rings[RINGS], *ring_list[RINGS];
	Ntff__NtffInstruction names[64], *name_list[64];
	Ntff__SubgraphInfo graph, *graph_list[1];
	Ntff__NdNodeInfo device;
	Ntff__NeffNodeInfo node, *node_list[1];
	Ntff__ExecutionInfo *runs, **run_list;
	Ntff__NtffSyncPoint *points, **point_list;
};

static void fill_model(struct parts *p)
{
	ntff__subgraph_info__init(&p->graph);
	ntff__nd_node_info__init(&p->device);
	ntff__neff_node_info__init(&p->node);
	for (unsigned i = 0; i < 64; i++) {
		ntff__ntff_instruction__init(&p->names[i]);
		p->names[i].index = i;
		p->names[i].op = (char *)(i % 3 ? "add" : "copy");
		p->name_list[i] = &p->names[i];
	}
	p->graph.n_instructions = 64;
	p->graph.instructions = p->name_list;
	p->graph_list[0] = &p->graph;
	p->device.n_graphs = 1;
	p->device.graphs = p->graph_list;
	p->node.model_id = 7;
	p->node.node_info_case = NTFF__NEFF_NODE_INFO__NODE_INFO_ND_NODE;
	p->node.nd_node = &p->device;
	p->node_list[0] = &p->node;
	p->info.n_neff_nodes = 1;
	p->info.neff_nodes = p->node_list;
}

static bool fill_runs(struct parts *p, uint64_t runs)
{
	p->runs = calloc(runs, sizeof(*p->runs));
	p->run_list = calloc(runs, sizeof(*p->run_list));
	p->points = calloc(runs + 1, sizeof(*p->points));
	p->point_list = calloc(runs + 1, sizeof(*p->point_list));
	if (!p->runs || !p->run_list || !p->points || !p->point_list)
		return false;
	for (uint64_t i = 0; i <= runs; i++) {
		Ntff__NtffSyncPoint *s = p->point_list[i] = &p->points[i];
		Ntff__ExecutionInfo *e = &p->runs[i];

		ntff__ntff_sync_point__init(s);
		s->device_ps = BEGIN_PS + i * RUN_PS;
		s->boot_ns = BOOT + 1000 + i * (RUN_PS / 1000);
		s->bound_ns = 100;
		if (i == runs)
			break;
		ntff__execution_info__init(e);
		e->exec_id = i + 1;
		e->model_id = 7;
		e->start_ps = BEGIN_PS + i * RUN_PS;
		e->end_ps = e->start_ps + RUN_PS - 1;
		e->started = e->ended = true;
		p->run_list[i] = e;
	}
	p->info.n_execution_timeline = runs;
	p->info.execution_timeline = p->run_list;
	p->info.n_sync_points = runs + 1;
	p->info.sync_points = p->point_list;
	return true;
}

static void free_parts(struct parts *p)
{
	free(p->runs);
	free(p->run_list);
	free(p->points);
	free(p->point_list);
}

static int write_file(const char *path, struct parts *p, const void *records, uint64_t per_ring)
{
	uint64_t bytes = per_ring * RINGS * sizeof(struct notification);
	size_t size = ntff__ntff_info__get_packed_size(&p->info);
	uint64_t blobs = ntff_blobs_offset(size + 1024);
	uint8_t *head = calloc(1, blobs);
	struct outfile f;
	int rc = head ? outfile_open(&f, path) : -ENOMEM;

	if (rc < 0) {
		free(head);
		return rc;
	}
	for (unsigned n = 0; n < RINGS; n++) {
		p->rings[n].size = bytes / RINGS;
		p->rings[n].offset = blobs + n * p->rings[n].size;
		p->rings[n].count = per_ring;
	}
	size = ntff__ntff_info__pack(&p->info, head + NTFF_HEADER_BYTES);
	rc = ntff_header_encode(head, head + NTFF_HEADER_BYTES, size, blobs, bytes, "bench");
	outfile_write(&f, head, blobs);
	outfile_write(&f, records, bytes);
	free(head);
	return rc < 0 ? rc : outfile_commit(&f);
}

static int make_profile(const char *path, uint64_t records)
{
	struct parts p = {.info = NTFF__NTFF_INFO__INIT};
	uint64_t per_ring = records / RINGS & ~1ull,
		 runs = records / PER_RUN ? records / PER_RUN : 1;
	struct notification *list = calloc(per_ring * RINGS, sizeof(*list));
	int rc = list && fill_runs(&p, runs) ? 0 : -ENOMEM;

	fill_model(&p);
	for (unsigned n = 0; rc == 0 && n < RINGS; n++) {
		p.rings[n] = ring_of(n);
		p.ring_list[n] = &p.rings[n];
		fill_ring(list + n * per_ring, per_ring, n, runs);
	}
	p.info.n_session_notifications = RINGS;
	p.info.session_notifications = p.ring_list;
	p.info.logical_nc = 1;
	p.info.producer = (char *)"bench";
	if (rc == 0)
		rc = write_file(path, &p, list, per_ring);
	free(list);
	free_parts(&p);
	return rc;
}

/* ---- the recording ------------------------------------------------------------------------ */

/* The frame that names the profile. */
static int name_profile(struct rec_writer *w, const char *path)
{
	struct rec_device_profile frame = {.pid = PID};
	struct rec_end end = {0};
	_cleanup_free_ char *data = NULL;
	size_t size = 0;
	int rc = file_read(path, 1u << 31, &data, &size);

	if (rc < 0)
		return rc;
	frame.bytes = size;
	frame.check = XXH3_64bits(data, size);
	rc = rec_writer_frame_at(
		w, REC_DEVICE_PROFILE, REC_SOURCE_RECORDER, BOOT, &frame, sizeof(frame), NULL, 0);
	return rc < 0 ? rc
		      : rec_writer_frame_at(
				w, REC_END, REC_SOURCE_RECORDER, BOOT, &end, sizeof(end), NULL, 0);
}

static int make_recording(const char *dir, uint64_t events, uint64_t records)
{
	struct generator *g = new_generator(events);
	const struct rec_frame *f;
	const uint8_t *payload;
	struct rec_writer *w = NULL;
	char path[PATH_MAX];
	int rc = g ? rec_writer_open(dir, &w) : -ENOMEM;

	snprintf(path, sizeof(path), "%s/" REC_DEVICE_PROFILE_FORMAT, dir, 0u);
	if (rc == 0)
		rc = make_profile(path, records);
	while (rc == 0 && generate(g, &f, &payload) > 0)
		rc = rec_writer_frame_at(w, (enum rec_type)f->type, f->source, f->time_ns, payload,
			f->size, NULL, 0);
	if (rc == 0)
		rc = name_profile(w, path);
	int closed = w ? rec_writer_close(w) : 0;
	free(g);
	return rc < 0 ? rc : closed;
}

/* ---- measuring ---------------------------------------------------------------------------- */

struct measured {
	uint64_t events, bytes;
	double seconds;
	long mib;
	bool right;
};

/* One merge in a process of its own. */
static int merge(const char *dir, bool device, struct measured *ret)
{
	int pipes[2], status;
	pid_t child;

	fflush(stdout);
	if (pipe(pipes) < 0 || (child = fork()) < 0)
		return -1;
	if (child == 0) {
		struct merge_options o = {.device = device};
		struct merge_result m;
		struct measured r = {0};
		struct rusage u;
		char *error;
		double start = used();
		int rc = merge_recording(dir, NULL, &o, &m, &error);

		if (rc < 0 || m.output_count != 1)
			_exit(1);
		getrusage(RUSAGE_SELF, &u);
		r = (struct measured){m.outputs[0].events, m.outputs[0].bytes, used() - start,
			u.ru_maxrss >> 10, m.balanced && !rec_damaged(&m.damage)};
		_exit(write(pipes[1], &r, sizeof(r)) != sizeof(r));
	}
	close(pipes[1]);
	ssize_t n = read(pipes[0], ret, sizeof(*ret));
	close(pipes[0]);
	return waitpid(child, &status, 0) == child && status == 0 && n == sizeof(*ret) ? 0 : -1;
}

static int measure(uint64_t records)
{
	struct measured plain, rows;
	struct scratch dir = {0};
	struct scratch_path rec;
	int status = 1;
	pid_t child;

	if (!scratch_make(&dir))
		return 1;
	rec = scratch_path(&dir, REC_DIR);
	child = fork(); /* its memory is not the merge's */
	if (child == 0)
		_exit(make_recording(rec.s, EVENTS, records) < 0);
	if (child > 0 && waitpid(child, &status, 0) == child && status == 0)
		status = merge(rec.s, false, &plain) < 0 || merge(rec.s, true, &rows) < 0;
	scratch_remove(&dir);
	if (status) {
		printf("it failed\n");
		return 1;
	}
	double added = (double)(rows.events - plain.events), took = rows.seconds - plain.seconds;
	double base = (double)plain.events / plain.seconds;
	printf("%.1f M device records: %.2f M rows/s of one core, %.0f bytes each, %ld MiB "
	       "resident; "
	       "merge alone %.2f M events/s, %.0f bytes each, %ld MiB; ratio %.2f\n",
		(double)records / 1e6, added / took / 1e6,
		(double)(rows.bytes - plain.bytes) / added, rows.mib, base / 1e6,
		(double)plain.bytes / (double)plain.events, plain.mib, added / took / base);
	return !(plain.right && rows.right && rows.events > plain.events);
}

int main(int argc, char **argv)
{
	int rc = 0;

	if (argc == 4 && !strcmp(argv[1], "--write")) {
		char dir[PATH_MAX];

		snprintf(dir, sizeof(dir), "%s/" REC_DIR, argv[2]);
		return make_recording(dir, FEW_EVENTS, strtoull(argv[3], NULL, 10)) < 0;
	}
	if (argc < 2)
		return measure(1000000) | measure(10000000);
	for (int i = 1; i < argc; i++)
		rc |= measure(strtoull(argv[i], NULL, 10));
	return rc;
}
