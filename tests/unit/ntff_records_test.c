/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ntff_records_test.c - device profiles as they are read: items of each ring to the picosecond, names,
 * runs, host times within their bound whatever the clock does.  Files that are damaged are in
 * ntff_hostile_test.c.
 */
#include <errno.h>
#include <stdint.h>
#include <unistd.h>

#include "runtime/base/file.h"
#include "runtime/record/ntff_records.h"
#include "tests/shim/shim.h"
#include "tests/unit/ntff_fixture.h"

#define LENGTH(a) (sizeof(a) / sizeof((a)[0]))
#define US 1000000ull /* ps */
#define SECOND 1000000000000ull

static uint64_t state;

static uint64_t dice(uint64_t below)
{
	state = state * 6364136223846793005ull + 1442695040888963407ull;
	return (state >> 33) % below;
}

/* ---- the sample --------------------------------------------------------------------------- */

/* Other tests have it as a file; NTRACE_WRITE_SAMPLE=tests/unit/golden/sample.ntff writes it anew. */
TEST("ntff records: the sample that is kept as a file is the one that is made here", "[ntff]")
{
	static const char path[] = "tests/unit/golden/sample.ntff";
	const char *write_to = getenv("NTRACE_WRITE_SAMPLE");
	_cleanup_free_ char *bytes = NULL;
	static struct nx x;
	size_t size = 0;

	nx_sample(&x);
	if (write_to) {
		FILE *f = fopen(write_to, "w");

		REQUIRE(f != NULL);
		CHECK_EQ(fwrite(x.bytes, 1, x.size, f), x.size);
		CHECK_EQ(fclose(f), 0);
	}
	if (access(path, R_OK) != 0)
		SKIP("tests/unit/golden/sample.ntff (run from the root of the tree)");
	REQUIRE_EQ(file_read(path, 1 << 20, &bytes, &size), 0);
	REQUIRE_EQ(size, x.size);
	CHECK(memcmp(bytes, x.bytes, size) == 0);
	nx_free(&x);
}

static const struct ntff_stream *stream_of(const struct ntff_profile *p,
	Ntff__NotificationTraceType trace, Ntff__BlockType block, uint32_t engine)
{
	for (uint32_t i = 0; i < p->stream_count; i++) {
		const Ntff__TraceInfo *t = p->streams[i].info;

		if (t->trace_type == trace && t->block_type == block && t->engine_index == engine)
			return &p->streams[i];
	}
	return NULL;
}

TEST("ntff records: rings give the items that their records make, with names and runs", "[ntff]")
{
	static const struct {
		Ntff__NotificationTraceType trace;
		Ntff__BlockType block;
		uint32_t engine;
		struct ntff_item item; /* start and end: us since the run's start */
		const char *op;
		unsigned per_run;
	} rows[] = {
		{NX_INSTRUCTION, NX_ON_NC, 0,
			{.what = NTFF_INSTRUCTION,
				.span = true,
				.id = 1,
				.custom = 2,
				.start_ps = 2,
				.end_ps = 7},
			"add", 1},
		{NX_INSTRUCTION, NX_ON_NC, 4, {.what = NTFF_RUN, .span = true, .end_ps = 10}, NULL,
			1},
		{NX_DMA, NX_ON_DMA, 3, {.what = NTFF_TRANSFER, .span = true, .end_ps = 2}, "copy",
			1},
		{NX_EVENT, NX_ON_NC, 0,
			{.what = NTFF_SEMAPHORE,
				.id = 1,
				.custom = 4,
				.subtype = 1,
				.start_ps = 7,
				.end_ps = 7},
			NULL, 1},
		{NX_EXPLICIT, NX_ON_TOPSP, 0,
			{.what = NTFF_COLLECTIVE,
				.span = true,
				.id = 2,
				.start_ps = 7,
				.end_ps = 10},
			"all_reduce", 1},
	};
	static struct nx x;
	struct ntff_profile p;

	nx_sample(&x);
	REQUIRE_EQ(ntff_profile_open(&p, x.bytes, x.size), 0);
	CHECK(p.file.damage == NULL);
	CHECK_EQ(p.flaw_count, 0);
	REQUIRE_EQ(p.core_count, 1);
	CHECK_EQ(p.cores[0].nd_idx, 0);
	CHECK_EQ(p.cores[0].nc_idx, 1);
	CHECK_EQ(p.cores[0].stream_count, 6);
	CHECK_EQ(p.cores[0].run_count, 2);
	for (size_t i = 0; i < LENGTH(rows); i++) {
		const struct ntff_stream *s =
			stream_of(&p, rows[i].trace, rows[i].block, rows[i].engine);
		const struct ntff_item *want = &rows[i].item;
		struct ntff_cursor c;

		test_info("row %zu", i);
		REQUIRE(s != NULL);
		ntff_cursor_open(&c, &p, s);
		for (uint64_t run = 0; run < 2; run++) {
			const Ntff__ExecutionInfo *of;
			const Ntff__NtffInstruction *named;
			uint64_t t = SECOND + run * 20 * US;
			struct ntff_item item;

			REQUIRE_EQ(ntff_cursor_next(&c, &item), 1);
			CHECK_EQ(item.what, want->what);
			CHECK_EQ(item.span, want->span);
			CHECK_EQ(item.id, want->what == NTFF_RUN ? run + 1 : want->id);
			CHECK_EQ(item.engine, rows[i].engine);
			CHECK_EQ(item.start_ps, t + want->start_ps * US);
			CHECK_EQ(item.end_ps, t + want->end_ps * US);
			if (want->what == NTFF_SEMAPHORE) {
				CHECK_EQ(item.custom, want->custom);
				CHECK_EQ(item.subtype, want->subtype);
			}
			of = ntff_run_of(&p.cores[0], &item);
			REQUIRE(of != NULL);
			CHECK_EQ(of->exec_id, run + 1);
			named = ntff_instruction_of(&p, &p.cores[0], of, &item);
			if (rows[i].op) {
				REQUIRE(named != NULL);
				CHECK_STR(named->op, rows[i].op);
				CHECK(ntff_instruction_of(&p, &p.cores[0], NULL, &item) == named);
			}
		}
		CHECK_EQ(ntff_cursor_next(&c, &(struct ntff_item){0}), 0);
		CHECK_EQ(c.no_start + c.no_end, 0);
		ntff_cursor_close(&c);
	}
	ntff_profile_close(&p);
	nx_free(&x);
}

/* A second model of the same number, in another text. */
static void add_model(struct nx *x, Ntff__NeffNodeInfo *node, Ntff__NdNodeInfo *device,
	struct nx_graph *g, Ntff__SubgraphInfo **list)
{
	*node = x->node;
	*device = x->device;
	ntff__subgraph_info__init(&g->info);
	g->info.nc_idx = 1;
	g->info.instructions = g->list;
	nx_name(g, 1, NX_ON_NC, 0, "mul", 5 * US);
	list[0] = &g->info;
	device->graphs = list;
	node->nd_node = device;
	x->node_list[1] = node;
	x->info.n_neff_nodes = 2;
}

TEST("ntff records: models of one name have each its own names, by their texts", "[ntff]")
{
	static const struct {
		const char *what, *nodes[2], *runs[2], *ops[2];
	} rows[] = {
		{"two texts", {"x", "y"}, {"x", "y"}, {"add", "mul"}},
		{"the other way round", {"x", "y"}, {"y", "x"}, {"mul", "add"}},
		{"one without a text", {"", "y"}, {"", "y"}, {"add", "mul"}},
		{"a run of neither", {"x", "y"}, {"z", "x"}, {NULL, "add"}},
		{"a run without a text", {"x", "y"}, {"", "y"}, {NULL, "mul"}},
		{"one text twice", {"x", "x"}, {"x", "x"}, {"add", "add"}},
		{"no text", {"", ""}, {"", ""}, {NULL, NULL}},
	};
	static struct nx x;

	for (size_t i = 0; i < LENGTH(rows); i++) {
		Ntff__NeffNodeInfo node;
		Ntff__NdNodeInfo device;
		Ntff__SubgraphInfo *list[1];
		static struct nx_graph graph;
		struct ntff_profile p;
		struct ntff_cursor c;

		test_info("%s", rows[i].what);
		graph = (struct nx_graph){0};
		nx_sample(&x);
		add_model(&x, &node, &device, &graph, list);
		x.node.uuid = (char *)rows[i].nodes[0];
		node.uuid = (char *)rows[i].nodes[1];
		for (int run = 0; run < 2; run++)
			x.runs[run].model_uuid = (char *)rows[i].runs[run];
		nx_build(&x);
		REQUIRE_EQ(ntff_profile_open(&p, x.bytes, x.size), 0);
		ntff_cursor_open(&c, &p, stream_of(&p, NX_INSTRUCTION, NX_ON_NC, 0));
		for (int run = 0; run < 2; run++) {
			const Ntff__NtffInstruction *named;
			struct ntff_item item;

			REQUIRE_EQ(ntff_cursor_next(&c, &item), 1);
			named = ntff_instruction_of(&p, c.core, ntff_run_of(c.core, &item), &item);
			CHECK_STR(named ? named->op : "none",
				rows[i].ops[run] ? rows[i].ops[run] : "none");
		}
		ntff_cursor_close(&c);
		ntff_profile_close(&p);
		nx_free(&x);
	}
}

TEST("ntff records: an error is a moment, and says what was lost before it", "[ntff]")
{
	static struct nx x;
	struct ntff_profile p;
	struct ntff_cursor c;
	struct ntff_item item;

	nx_sample(&x);
	REQUIRE_EQ(ntff_profile_open(&p, x.bytes, x.size), 0);
	ntff_cursor_open(&c, &p, stream_of(&p, NX_ERROR, NX_ON_NC, 0));
	REQUIRE_EQ(ntff_cursor_next(&c, &item), 1);
	CHECK_EQ(item.what, NTFF_ERROR);
	CHECK(!item.span);
	CHECK(item.lost_before);
	CHECK_EQ(item.type, NOTE_TYPE_TPB_ERROR);
	CHECK_EQ(item.subtype, 1003);
	CHECK_EQ(ntff_cursor_next(&c, &item), 0);
	CHECK_EQ(c.lost_marks, 1);
	ntff_cursor_close(&c);
	ntff_profile_close(&p);
	nx_free(&x);
}

TEST("ntff records: a switch of models is a span of its own", "[ntff]")
{
	static struct nx x;
	struct ntff_profile p;
	struct ntff_cursor c;
	struct ntff_item item;
	struct nx_ring *r;

	nx_init(&x);
	r = nx_ring(&x, NX_INSTRUCTION, NX_ON_NC, 4, 0, 0);
	for (unsigned hint = NOTE_HINT_SWITCH_BEGINS; hint <= NOTE_HINT_SWITCH_ENDS; hint++)
		nx_note(r, (struct notification){.id = 9,
				   .hint = NOTE_HINT(hint),
				   .type_phase = NOTE_TYPE_EXPLICIT_SP | NOTE_PHASE,
				   .subtype = NOTE_CUSTOM,
				   .timestamp_ps = hint * 100});
	nx_did(r, NOTE_TYPE_EXPLICIT_SP, 9, NOTE_START, 200, 300);
	nx_build(&x);
	REQUIRE_EQ(ntff_profile_open(&p, x.bytes, x.size), 0);
	ntff_cursor_open(&c, &p, &p.streams[0]);
	REQUIRE_EQ(ntff_cursor_next(&c, &item), 1);
	CHECK_EQ(item.what, NTFF_SWITCH);
	CHECK_EQ(item.start_ps, 100);
	CHECK_EQ(item.end_ps, 200);
	CHECK(ntff_run_of(c.core, &item) == NULL);
	REQUIRE_EQ(ntff_cursor_next(&c, &item), 1);
	CHECK_EQ(item.what, NTFF_RUN);
	CHECK_EQ(item.start_ps, 200);
	ntff_cursor_close(&c);
	ntff_profile_close(&p);
	nx_free(&x);
}

/* ---- pairs -------------------------------------------------------------------------------- */

struct step {
	char side; /* s, e; S, E: with the mark of a gap before */
	uint16_t id;
	uint64_t ps;
};

TEST("ntff records: starts and ends are paired by their number, and what has no other half is "
     "counted",
	"[ntff]")
{
	static const struct {
		const char *name;
		struct step steps[8];
		struct {
			uint16_t id;
			uint64_t start, end;
		} items[4];
		unsigned item_count, no_start, no_end;
	} rows[] = {
		{"again and again",
			{{'s', 1, 10}, {'e', 1, 20}, {'s', 1, 30}, {'e', 1, 40}, {0, 0, 0}},
			{{1, 10, 20}, {1, 30, 40}}, 2, 0, 0},
		{"one in another", {{'s', 1, 10}, {'s', 2, 11}, {'e', 2, 12}, {'e', 1, 13}},
			{{2, 11, 12}, {1, 10, 13}}, 2, 0, 0},
		{"no time", {{'s', 1, 10}, {'e', 1, 10}}, {{1, 10, 10}}, 1, 0, 0},
		{"no start", {{'e', 1, 10}, {'s', 2, 11}, {'e', 2, 12}}, {{2, 11, 12}}, 1, 1, 0},
		{"no end", {{'s', 1, 10}, {'s', 2, 11}, {'e', 2, 12}}, {{2, 11, 12}}, 1, 0, 1},
		{"two starts", {{'s', 1, 10}, {'s', 1, 11}, {'e', 1, 12}}, {{1, 11, 12}}, 1, 0, 1},
		{"end before start", {{'s', 1, 10}, {'e', 1, 9}}, {{0}}, 0, 1, 1},
		{"a gap between", {{'s', 1, 10}, {'E', 1, 20}, {'s', 1, 30}, {'e', 1, 31}},
			{{1, 30, 31}}, 1, 1, 1},
		{"a gap before", {{'S', 1, 10}, {'e', 1, 20}}, {{1, 10, 20}}, 1, 0, 0},
	};

	for (size_t i = 0; i < LENGTH(rows); i++) {
		static struct nx x;
		struct ntff_profile p;
		struct ntff_cursor c;
		struct ntff_item item;
		struct nx_ring *r;

		test_info("%s", rows[i].name);
		nx_init(&x);
		r = nx_ring(&x, NX_INSTRUCTION, NX_ON_NC, 2, 0, 0);
		for (const struct step *s = rows[i].steps; s->side; s++) {
			bool start = s->side == 's' || s->side == 'S';
			bool gap = s->side == 'S' || s->side == 'E';

			nx_note(r,
				(struct notification){.id = s->id,
					.type_phase = (uint8_t)((start ? NOTE_TYPE_INST_START(2u)
								       : NOTE_TYPE_INST_END(2u)) |
								(gap ? NOTE_HW_OVERFLOW : 0)),
					.subtype = start ? NOTE_START : NOTE_END,
					.timestamp_ps = s->ps});
		}
		nx_build(&x);
		REQUIRE_EQ(ntff_profile_open(&p, x.bytes, x.size), 0);
		ntff_cursor_open(&c, &p, &p.streams[0]);
		for (unsigned k = 0; k < rows[i].item_count; k++) {
			REQUIRE_EQ(ntff_cursor_next(&c, &item), 1);
			CHECK_EQ(item.what, NTFF_INSTRUCTION);
			CHECK_EQ(item.engine, 2);
			CHECK_EQ(item.id, rows[i].items[k].id);
			CHECK_EQ(item.start_ps, rows[i].items[k].start);
			CHECK_EQ(item.end_ps, rows[i].items[k].end);
		}
		CHECK_EQ(ntff_cursor_next(&c, &item), 0);
		CHECK_EQ(ntff_cursor_next(&c, &item), 0);
		CHECK_EQ(c.no_start, rows[i].no_start);
		CHECK_EQ(c.no_end, rows[i].no_end);
		ntff_cursor_close(&c);
		ntff_profile_close(&p);
		nx_free(&x);
	}
}

TEST("ntff records: records that nobody knows are shown as what they are", "[ntff]")
{
	static const struct {
		Ntff__NotificationTraceType trace;
		Ntff__BlockType block;
		unsigned type, subtype;
		enum ntff_what what;
	} rows[] = {
		{NX_INSTRUCTION, NX_ON_NC, 0x1b, NOTE_START, NTFF_OTHER},
		{NX_INSTRUCTION, NX_ON_NC, 0, NOTE_START, NTFF_OTHER},
		{NX_INSTRUCTION, NX_ON_NC, NOTE_TYPE_EXPLICIT_SP, 99, NTFF_OTHER},
		{NX_INSTRUCTION, NX_ON_NC, NOTE_TYPE_EXPLICIT_SP, NOTE_CUSTOM, NTFF_OTHER},
		{NX_INSTRUCTION, NX_ON_TOPSP, NOTE_TYPE_EXPLICIT_SP, 99, NTFF_OTHER},
		{NX_DMA, NX_ON_DMA, NOTE_TYPE_DMA, 99, NTFF_OTHER},
		{NX_DMA, NX_ON_DMA, NOTE_TYPE_ERROR, NOTE_START, NTFF_OTHER},
		{NX_EVENT, NX_ON_NC, NOTE_TYPE_INST_START(1u), NOTE_START, NTFF_OTHER},
		{NX_EVENT, NX_ON_NC, NOTE_TYPE_SEMAPHORE(4u), 7, NTFF_SEMAPHORE},
		{NX_THROTTLE, NX_ON_NC, 0x1e, 7, NTFF_THROTTLE},
		{NX_ERROR, NX_ON_TOPSP, 0, 0, NTFF_ERROR},
	};

	for (size_t i = 0; i < LENGTH(rows); i++) {
		static struct nx x;
		struct ntff_profile p;
		struct ntff_cursor c;
		struct ntff_item item;

		test_info("row %zu", i);
		nx_init(&x);
		nx_note(nx_ring(&x, rows[i].trace, rows[i].block, 4, 0, 0),
			(struct notification){.type_phase = (uint8_t)rows[i].type,
				.subtype = (uint16_t)rows[i].subtype});
		nx_build(&x);
		REQUIRE_EQ(ntff_profile_open(&p, x.bytes, x.size), 0);
		ntff_cursor_open(&c, &p, &p.streams[0]);
		REQUIRE_EQ(ntff_cursor_next(&c, &item), 1);
		CHECK_EQ(item.what, rows[i].what);
		CHECK(!item.span);
		CHECK(ntff_what_name(item.what) != NULL);
		CHECK_EQ(ntff_cursor_next(&c, &item), 0);
		ntff_cursor_close(&c);
		ntff_profile_close(&p);
		nx_free(&x);
	}
	CHECK(ntff_what_name(NTFF_WHATS) == NULL);
}

TEST("ntff records: a timeline comes back as it was, whatever its rings", "[ntff]")
{
	for (uint64_t seed = 1; seed <= 20; seed++) {
		static struct nx x;
		static struct {
			uint64_t start, end;
			uint16_t id;
		} want[5][400];
		struct ntff_profile p;
		struct ntff_item item;

		state = seed;
		test_info("seed %llu", (unsigned long long)seed);
		nx_init(&x);
		for (uint32_t e = 0; e < 5; e++) {
			struct nx_ring *r = nx_ring(&x, NX_INSTRUCTION, NX_ON_NC, e, 1, 2);
			uint64_t t = dice(1ull << 30) << 20;

			for (unsigned i = 0; i < 400; i++) {
				want[e][i].id = (uint16_t)dice(4096);
				want[e][i].start = t += dice(3) ? dice(1000) : 0;
				want[e][i].end = t += dice(3) ? dice(1000000007) : 0;
				nx_ran(r, want[e][i].id, 1, want[e][i].start, want[e][i].end);
			}
		}
		nx_build(&x);
		REQUIRE_EQ(ntff_profile_open(&p, x.bytes, x.size), 0);
		for (uint32_t e = 0; e < 5; e++) {
			struct ntff_cursor c;

			ntff_cursor_open(&c, &p, &p.streams[e]);
			for (unsigned i = 0; i < 400; i++) {
				REQUIRE_EQ(ntff_cursor_next(&c, &item), 1);
				REQUIRE_EQ(item.id, want[e][i].id);
				REQUIRE_EQ(item.start_ps, want[e][i].start);
				REQUIRE_EQ(item.end_ps, want[e][i].end);
			}
			CHECK_EQ(ntff_cursor_next(&c, &item), 0);
			CHECK_EQ(c.no_start + c.no_end, 0);
			ntff_cursor_close(&c);
		}
		ntff_profile_close(&p);
		nx_free(&x);
	}
}

/* ---- times -------------------------------------------------------------------------------- */

/* A device's clock that is slower by ppm, began `boot` ns after the host's, and where a reader looks. */
static uint64_t device_ps(uint64_t host_ns, uint64_t boot, int64_t ppm)
{
	__int128 ps = (__int128)(host_ns - boot) * 1000;

	return (uint64_t)(ps - ps * ppm / 1000000);
}

static uint64_t apart(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

TEST("ntff records: host times lie within their bound, between sync points and beyond", "[ntff]")
{
	static const int64_t drifts[] = {0, 100, -100, 37, -99};

	for (uint64_t seed = 0; seed < 50; seed++) {
		const int64_t ppm = drifts[seed % LENGTH(drifts)];
		const uint64_t boot = 1000000000000ull, begin = boot + 5000000000ull;
		const uint64_t points = 2 + seed % 7;
		static struct nx x;
		struct ntff_profile p;
		struct ntff_cursor c;

		state = seed;
		nx_init(&x);
		nx_ring(&x, NX_EVENT, NX_ON_NC, 0, 0, 3);
		for (uint64_t i = 0; i < points; i++) {
			uint64_t host = begin + i * 100000000ull, bound = 100 + dice(5000);

			nx_sync(&x, 0, 3, device_ps(host, boot, ppm),
				host + dice(2 * bound) - bound, bound);
		}
		nx_build(&x);
		REQUIRE_EQ(ntff_profile_open(&p, x.bytes, x.size), 0);
		REQUIRE_EQ(p.cores[0].era_count, 1);
		ntff_cursor_open(&c, &p, &p.streams[0]);
		for (unsigned i = 0; i < 300; i++) {
			uint64_t host = begin - 50000000ull + dice((points + 1) * 100000000ull);
			uint64_t got, bound;
			bool inside;

			REQUIRE(ntff_host_ns(&c, 0, device_ps(host, boot, ppm), &got, &bound));
			test_info("seed %llu, point %u: off by %llu of %llu",
				(unsigned long long)seed, i, (unsigned long long)apart(got, host),
				(unsigned long long)bound);
			REQUIRE(apart(got, host) <= bound);
			/* Each point errs by 5.1 us at most, and 100 ppm are 5 us over the 50 ms to
			 * the nearest, 15 us over the 150 ms behind the last. */
			inside = host >= begin && host <= begin + (points - 1) * 100000000ull;
			REQUIRE(bound <= 2 * (5100u + (inside ? 5000u : 15000u) + 20u));
		}
		CHECK(!ntff_host_ns(&c, 1, 0, &(uint64_t){0}, &(uint64_t){0}));
		ntff_cursor_close(&c);
		ntff_profile_close(&p);
		nx_free(&x);
	}
}

TEST("ntff records: without a sync point of the same core there is no host time", "[ntff]")
{
	static struct nx x;
	struct ntff_profile p;
	struct ntff_cursor c;
	uint64_t ns, bound;

	nx_init(&x);
	nx_ring(&x, NX_EVENT, NX_ON_NC, 0, 0, 1);
	nx_sync(&x, 0, 0, 1000, 5, 1);
	nx_sync(&x, 1, 1, 1000, 5, 1);
	nx_build(&x);
	REQUIRE_EQ(ntff_profile_open(&p, x.bytes, x.size), 0);
	REQUIRE_EQ(p.core_count, 3);
	REQUIRE_EQ(p.stream_count, 1);
	CHECK_EQ(p.streams[0].core, 1);
	ntff_cursor_open(&c, &p, &p.streams[0]);
	CHECK(!ntff_host_ns(&c, 0, 1000, &ns, &bound));
	ntff_cursor_close(&c);
	ntff_profile_close(&p);
	nx_free(&x);
}

TEST("ntff records: when a core's clock begins anew, items before and after have their own times",
	"[ntff]")
{
	const uint64_t first = 10000000000ull,
		       second = 20000000000ull; /* boot ns of both clocks' zero */
	static struct nx x;
	struct ntff_profile p;
	struct ntff_cursor c;
	struct ntff_item item;
	struct nx_ring *r;
	uint64_t ns, bound;

	nx_init(&x);
	r = nx_ring(&x, NX_INSTRUCTION, NX_ON_NC, 0, 0, 0);
	nx_ran(r, 1, 1, 3 * SECOND, 3 * SECOND + 5);
	nx_note(r, (struct notification){.id = 8,
			   .type_phase = NOTE_TYPE_INST_START(0u),
			   .timestamp_ps = 4 * SECOND});
	nx_ran(r, 8, 1, SECOND / 2, SECOND / 2 + 7);
	nx_ran(r, 1, 1, 4 * SECOND, 4 * SECOND + 9);
	nx_run(&x, 0, 0, 1, 3 * SECOND, 5 * SECOND);
	nx_run(&x, 0, 0, 2, SECOND / 2, 4 * SECOND + 9);
	nx_sync(&x, 0, 0, 2 * SECOND, first + 2000000000, 10);
	nx_sync(&x, 0, 0, 5 * SECOND, first + 5000000000, 10);
	nx_sync(&x, 0, 0, SECOND / 4, second + 250000000, 10);
	nx_sync(&x, 0, 0, 9 * SECOND, second + 9000000000, 10);
	nx_build(&x);
	REQUIRE_EQ(ntff_profile_open(&p, x.bytes, x.size), 0);
	REQUIRE_EQ(p.cores[0].era_count, 2);
	ntff_cursor_open(&c, &p, &p.streams[0]);
	for (unsigned i = 0; i < 3; i++) {
		static const uint64_t want[] = {13000000000ull, 20500000000ull, 24000000000ull};

		test_info("item %u", i);
		REQUIRE_EQ(ntff_cursor_next(&c, &item), 1);
		CHECK_EQ(item.era, i > 0);
		REQUIRE(ntff_host_ns(&c, item.era, item.start_ps, &ns, &bound));
		CHECK(apart(ns, want[i]) <= 2);
		CHECK(bound < 500000);
		REQUIRE(ntff_run_of(c.core, &item) != NULL);
		CHECK_EQ(ntff_run_of(c.core, &item)->exec_id, i > 0 ? 2 : 1);
	}
	CHECK_EQ(ntff_cursor_next(&c, &item), 0);
	CHECK_EQ(c.no_end, 1); /* what began before the clock did */
	ntff_cursor_close(&c);
	ntff_profile_close(&p);
	nx_free(&x);
}

TEST("ntff records: an item belongs to the run that it is in, if any", "[ntff]")
{
	static const struct {
		uint64_t ps;
		bool span;
		uint64_t exec_id;
	} rows[] = {
		{99, false, 0},
		{100, false, 1},
		{150, true, 1},
		{200, true, 1},
		{250, false, 0},
		{300, true, 2},
		{399, true, 2},
		{400, true, 3},	 /* begins with its run */
		{400, false, 2}, /* the last of the run before */
		{500, true, 3},
		{501, true, 0},
	};
	static struct nx x;
	struct ntff_profile p;

	nx_init(&x);
	nx_run(&x, 0, 0, 1, 100, 200);
	nx_run(&x, 0, 0, 2, 300, 400);
	nx_run(&x, 0, 0, 3, 400, 500);
	nx_build(&x);
	REQUIRE_EQ(ntff_profile_open(&p, x.bytes, x.size), 0);
	for (size_t i = 0; i < LENGTH(rows); i++) {
		const struct ntff_item item = {
			.start_ps = rows[i].ps, .end_ps = rows[i].ps, .span = rows[i].span};
		const Ntff__ExecutionInfo *run = ntff_run_of(&p.cores[0], &item);

		test_info("row %zu", i);
		CHECK_EQ(run ? run->exec_id : 0, rows[i].exec_id);
	}
	ntff_profile_close(&p);
	nx_free(&x);
}

TEST("ntff records: a clock that stands still or leaps has not begun anew", "[ntff]")
{
	/* Runs of 300 us back to back on a clock that only they move; the host waits 1 s between two, and each takes it 40 us;
	 * the clocks are read after each. */
	const uint64_t run_ps = 300000000ull, idle_ns = 1000000000ull, run_ns = 40000;
	const uint64_t begin_ns = 5000000000ull;
	static struct nx x;
	struct ntff_profile p;
	struct ntff_cursor c;
	struct ntff_item item;
	struct nx_ring *r;

	nx_init(&x);
	r = nx_ring(&x, NX_INSTRUCTION, NX_ON_NC, 0, 0, 0);
	nx_sync(&x, 0, 0, SECOND, begin_ns, 10);
	for (uint64_t i = 0; i < 4; i++) {
		const uint64_t start_ps = SECOND + i * run_ps;

		nx_run(&x, 0, 0, i + 1, start_ps, start_ps + run_ps);
		nx_ran(r, 3, 1, start_ps, start_ps + run_ps);
		nx_sync(&x, 0, 0, start_ps + run_ps, begin_ns + (i + 1) * (idle_ns + run_ns), 10);
		nx_sync(&x, 0, 0, start_ps + run_ps,
			begin_ns + (i + 2) * idle_ns + (i + 1) * run_ns, 10);
	}
	nx_build(&x);
	REQUIRE_EQ(ntff_profile_open(&p, x.bytes, x.size), 0);
	REQUIRE_EQ(p.cores[0].era_count, 1);
	ntff_cursor_open(&c, &p, &p.streams[0]);
	for (uint64_t i = 0; i < 4; i++) {
		uint64_t start, end, bound;

		test_info("run %llu", (unsigned long long)i);
		REQUIRE_EQ(ntff_cursor_next(&c, &item), 1);
		CHECK_EQ(item.era, 0);
		REQUIRE(ntff_run_of(c.core, &item) != NULL);
		CHECK_EQ(ntff_run_of(c.core, &item)->exec_id, i + 1);
		REQUIRE(ntff_host_ns_end(&c, 0, item.end_ps, &end, &bound));
		CHECK(apart(end, begin_ns + (i + 1) * (idle_ns + run_ns)) <= bound);
		CHECK(i == 0 || bound <= run_ns + 100);
		REQUIRE(ntff_host_ns(&c, 0, item.start_ps, &start, &bound));
		CHECK(start <= end);
		/* All that is known of the first: between the two readings around it. */
		CHECK(apart(start, begin_ns + (i + 1) * idle_ns + i * run_ns) <= bound);
	}
	CHECK_EQ(ntff_cursor_next(&c, &item), 0);
	CHECK_EQ(c.no_start + c.no_end, 0);
	ntff_cursor_close(&c);
	ntff_profile_close(&p);
	nx_free(&x);
}
