/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ntff_hostile_test.c - device profiles that are not what they say: what is wrong costs what it is in, is told,
 * and is counted; what is there of a file that was cut is read.
 */
#include <errno.h>
#include <stdint.h>

#include "runtime/record/ntff_records.h"
#include "tests/shim/shim.h"
#include "tests/unit/ntff_fixture.h"

#define LENGTH(a) (sizeof(a) / sizeof((a)[0]))

static void outside(Ntff__TraceInfo *t)
{
	t->offset += 1ull << 40;
}

static void in_message(Ntff__TraceInfo *t)
{
	t->offset = NTFF_HEADER_BYTES;
}

static void too_long(Ntff__TraceInfo *t)
{
	t->size = UINT64_MAX - 15;
}

static void uneven(Ntff__TraceInfo *t)
{
	t->size -= 1;
}

static void askew(Ntff__TraceInfo *t)
{
	t->offset += 8;
}

static void over_next(Ntff__TraceInfo *t)
{
	t->offset += 16;
	t->xxh3 = 0;
}

static void other_bytes(Ntff__TraceInfo *t)
{
	t->xxh3 ^= 1;
}

static void no_kind(Ntff__TraceInfo *t)
{
	t->trace_type = (Ntff__NotificationTraceType)6;
}

static void no_block(Ntff__TraceInfo *t)
{
	t->block_type = (Ntff__BlockType)-1;
}

static void count_wrong(Ntff__TraceInfo *t)
{
	t->count++;
}

static void nothing(Ntff__TraceInfo *t)
{
	t->size = 0;
}

TEST("ntff records: a ring that is not as the message says costs itself alone", "[ntff]")
{
	static const struct {
		const char *name;
		void (*spoil)(Ntff__TraceInfo *t);
		unsigned streams;
	} rows[] = {
		{"outside", outside, 2},
		{"in the message", in_message, 2},
		{"too long", too_long, 2},
		{"uneven", uneven, 2},
		{"askew", askew, 2},
		{"over the next", over_next, 2},
		{"other bytes", other_bytes, 2},
		{"no such kind", no_kind, 2},
		{"no such block", no_block, 2},
		{"another count", count_wrong, 3},
		{"nothing there", nothing, 3},
	};

	for (size_t i = 0; i < LENGTH(rows); i++) {
		static struct nx x;
		struct ntff_profile p;
		uint64_t records = 0;

		test_info("%s", rows[i].name);
		nx_init(&x);
		for (uint32_t k = 0; k < 3; k++)
			nx_ran(nx_ring(&x, NX_INSTRUCTION, NX_ON_NC, k, 0, 0), 1, 1, 5, 6);
		nx_layout(&x);
		rows[i].spoil(&x.rings[1].info);
		nx_pack(&x);
		REQUIRE_EQ(ntff_profile_open(&p, x.bytes, x.size), 0);
		CHECK_EQ(p.flaw_count, 1);
		CHECK(p.flaws[0].what != NULL);
		CHECK_EQ(p.stream_count, rows[i].streams);
		for (uint32_t k = 0; k < p.stream_count; k++)
			records += p.streams[k].count;
		CHECK_EQ(records, rows[i].spoil == count_wrong ? 6 : 4);
		ntff_profile_close(&p);
		nx_free(&x);
	}
}

TEST("ntff records: flaws are counted beyond those that are kept", "[ntff]")
{
	static struct nx x;
	struct ntff_profile p;

	nx_init(&x);
	for (uint32_t k = 0; k < 40; k++)
		nx_ring(&x, NX_EVENT, NX_ON_NC, k, 0, 0);
	nx_layout(&x);
	for (uint32_t k = 0; k < 40; k++)
		x.rings[k].info.count = 1;
	nx_pack(&x);
	REQUIRE_EQ(ntff_profile_open(&p, x.bytes, x.size), 0);
	CHECK_EQ(p.flaw_count, 40);
	ntff_profile_close(&p);
	nx_free(&x);
}

TEST("ntff records: of a file that was cut anywhere, the records that are there are read", "[ntff]")
{
	static struct nx x;
	struct ntff_profile p;

	nx_sample(&x);
	for (size_t cut = x.size; cut > 0; cut--) {
		uint64_t records = 0, want = cut > x.blobs_offset ? (cut - x.blobs_offset) / 16 : 0;
		int rc = ntff_profile_open(&p, x.bytes, cut);

		test_info("cut to %zu", cut);
		CHECK((p.file.damage != NULL) == (cut < x.size));
		for (uint32_t k = 0; rc == 0 && k < p.stream_count; k++)
			records += p.streams[k].count;
		if (rc == 0)
			CHECK_EQ(records, want);
		else
			CHECK_EQ(rc, cut < 8 ? -EINVAL : -EBADMSG);
		ntff_profile_close(&p);
	}
	nx_free(&x);
}

TEST("ntff records: code of engines must lie in the blobs, and in nobody else's", "[ntff]")
{
	static struct nx x;
	Ntff__EngineInstructionInfo code[2], *list[] = {&code[0], &code[1]};
	struct ntff_profile p;
	struct nx_graph *g;

	nx_init(&x);
	nx_ran(nx_ring(&x, NX_INSTRUCTION, NX_ON_NC, 0, 0, 0), 1, 1, 5, 6);
	g = nx_graph(&x, 0, 0);
	ntff__engine_instruction_info__init(&code[0]);
	ntff__engine_instruction_info__init(&code[1]);
	g->info.instruction_info = list;
	g->info.n_instruction_info = 2;
	nx_layout(&x);
	code[0].instructions_offset = x.blobs_offset + x.blobs_size;
	code[0].instructions_size = 5;
	x.blobs_size += 16;
	nx_pack(&x);
	REQUIRE_EQ(ntff_profile_open(&p, x.bytes, x.size), 0);
	CHECK_EQ(p.flaw_count, 0);
	CHECK_EQ(p.stream_count, 1);
	ntff_profile_close(&p);

	code[0].instructions_offset = x.blobs_offset + 40; /* behind the records */
	code[1].instructions_offset = x.blobs_offset + 16;
	code[0].instructions_size = code[1].instructions_size = 50;
	nx_pack(&x);
	REQUIRE_EQ(ntff_profile_open(&p, x.bytes, x.size), 0);
	CHECK_EQ(p.flaw_count, 2);
	CHECK_EQ(p.stream_count, 1);
	ntff_profile_close(&p);
	nx_free(&x);
}

TEST("ntff records: a message that takes far more memory than it has bytes is refused", "[ntff]")
{
	/* One node with two million empty graphs, two bytes each. */
	const size_t graphs = 2 << 20, all = 128 + graphs + 64;
	uint8_t *bytes = calloc(1, all), *at;
	struct ntff_profile p;
	size_t inner = graphs, size;

	REQUIRE(bytes != NULL);
	static const uint8_t tag[] = {0xc2, 0x3e}; /* neff_nodes, 1000 */
	at = bytes + 128;
	memcpy(at, tag, 2);
	at += 2;
	/* node: nd_node (4): graphs (1) */
	for (size_t v = inner + 5; v; v >>= 7)
		*at++ = (uint8_t)((v & 0x7f) | (v > 0x7f ? 0x80 : 0));
	*at++ = 0x22;
	for (size_t v = inner; v; v >>= 7)
		*at++ = (uint8_t)((v & 0x7f) | (v > 0x7f ? 0x80 : 0));
	for (size_t i = 0; i < graphs; i += 2)
		*at++ = 0x0a, *at++ = 0x00;
	size = (size_t)(at - (bytes + 128));
	REQUIRE_EQ(ntff_header_encode(bytes, bytes + 128, size, ntff_blobs_offset(size), 0, ""), 0);
	CHECK_EQ(ntff_profile_open(&p, bytes, ntff_blobs_offset(size)), -EBADMSG);
	CHECK(p.file.damage != NULL);
	CHECK(p.info == NULL);
	ntff_profile_close(&p);
	free(bytes);
}

TEST("ntff records: a message that is no ntff_info is told from one that is damaged", "[ntff]")
{
	uint8_t bytes[160] = {0};
	struct ntff_profile p;

	bytes[128] = 0x42; /* field 8, and its end is missing */
	bytes[129] = 0x05;
	REQUIRE_EQ(ntff_header_encode(bytes, bytes + 128, 2, 144, 16, ""), 0);
	CHECK_EQ(ntff_profile_open(&p, bytes, sizeof(bytes)), -EBADMSG);
	CHECK_STR(p.file.damage, "its message is no ntff_info");
	ntff_profile_close(&p);

	REQUIRE_EQ(ntff_header_encode(bytes, bytes + 128, 0, 144, 16, ""), 0);
	CHECK_EQ(ntff_profile_open(&p, bytes, sizeof(bytes)), 0);
	CHECK_EQ(p.core_count, 0);
	ntff_profile_close(&p);
}
