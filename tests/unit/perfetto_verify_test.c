/* SPDX-License-Identifier: Apache-2.0 */
/*
 * perfetto_verify_test.c - the checker of Perfetto files refuses each thing that it knows, and only that.
 *
 * Traces are written as texts, packets separated by `;`, fields as NUMBER:VALUE: a number is a varint, f1
 * eight bytes, "text" a string, {...} a message.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "agent/output/perfetto_verify.h"
#include "proto/delimited.h"
#include "proto/event_codec.h"
#include "runtime/base/file.h"
#include "tests/shim/shim.h"

/* ---- traces from texts ------------------------------------------------------------------------- */

static void put(struct pb_buf *b, uint64_t v)
{
	uint8_t bytes[PB_MAX_VARINT];

	pb_buf_append(b, bytes, pb_varint_put(bytes, v));
}

/* Puts the fields up to a closing brace, a semicolon or the end. */
static const char *put_fields(struct pb_buf *b, const char *p)
{
	for (;;) {
		while (*p == ' ' || *p == '\n')
			p++;
		if (!isdigit((unsigned char)*p))
			return p;
		uint64_t number = strtoull(p, (char **)&p, 10);
		p++;
		if (*p == '{' || *p == '"') {
			struct pb_buf inner = {0};

			if (*p == '{') {
				p = put_fields(&inner, p + 1) + 1;
			} else {
				size_t n = strcspn(++p, "\"");

				pb_buf_append(&inner, p, n);
				p += n + 1;
			}
			put(b, number << 3 | 2);
			put(b, inner.len);
			pb_buf_append(b, inner.data, inner.len);
			pb_buf_free(&inner);
		} else if (*p == 'f') {
			uint64_t v = strtoull(p + 1, (char **)&p, 10);

			put(b, number << 3 | 1);
			pb_buf_append(b, &v, 8);
		} else {
			put(b, number << 3);
			put(b, strtoull(p, (char **)&p, 10));
		}
	}
}

static void put_trace(struct pb_buf *b, const char *p)
{
	for (;; p++) {
		struct pb_buf packet = {0};

		p = put_fields(&packet, p);
		if (packet.len) {
			put(b, 1 << 3 | 2);
			put(b, packet.len);
			pb_buf_append(b, packet.data, packet.len);
		}
		pb_buf_free(&packet);
		if (*p != ';')
			return;
	}
}

/* ---- running ----------------------------------------------------------------------------------- */

struct heard {
	uint64_t count;
	uint64_t last_offset;
};

static void hear(void *ctx, const struct pfv_finding *f)
{
	struct heard *h = ctx;

	h->count++;
	h->last_offset = f->offset;
	test_info("byte %llu: %s: %s", (unsigned long long)f->offset, pfv_kind_name(f->kind),
		f->text);
}

static int verify(const void *data, size_t size, struct pfv_result *r, struct heard *h)
{
	_cleanup_close_ int fd = memfd_create("trace", MFD_CLOEXEC);

	*h = (struct heard){0};
	if (fd < 0 || file_write_all(fd, data, size) < 0 || lseek(fd, 0, SEEK_SET) < 0)
		return -1;
	return perfetto_verify(fd, hear, h, r);
}

/* Sequence 1 with its state, clock 64, names 1 and 2, and a track. */
#define BEGINNING                                                                          \
	"10:1 13:1 59:{58:64} 12:{1:{1:1 2:\"c\"} 2:{1:1 2:\"a\"} 2:{1:2 2:\"b\"} 3:{1:1 " \
	"2:\"k\"} "                                                                        \
	"29:{1:1 2:\"v\"}};"                                                               \
	"10:1 13:2 6:{1:{1:6 2:1000} 1:{1:1 2:5000} 1:{1:64 2:1000 3:1}};"                 \
	"60:{1:5 3:{1:7 6:\"p\"}}; 60:{1:6 5:5 4:{1:7 2:8}}; 60:{1:9 5:5 8:{3:3}};"
#define BEGIN "8:10 10:1 13:2 11:{9:1 11:6 10:1 3:1 4:{1:1 17:1}};"
#define END "8:10 10:1 13:2 11:{9:2 11:6};"

static const struct {
	const char *name, *trace;
	int kind; /* -1: sound */
	unsigned count;
} cases[] = {
	{"slices, instants and counters",
		BEGINNING BEGIN BEGIN
		"8:0 10:1 13:2 11:{9:3 23:\"i\" 11:6 23:\"i\" 4:{10:\"x\" 3:7}};" END END
		"8:1 10:1 13:2 11:{9:4 11:9 30:5}; 8:1 10:1 13:2 11:{9:4 11:9 44:f0}",
		-1, 0},
	{"a slice that is open at the end", BEGINNING BEGIN, -1, 0},
	{"a descriptor that is repeated", BEGINNING "60:{1:6 5:5 4:{1:7 2:8}};" BEGIN END, -1, 0},
	{"a clock of the trace that is explained later",
		"60:{1:6}; 10:1 8:5 58:1 11:{9:3 23:\"i\" 11:6}; 6:{1:{1:6 2:1} 1:{1:1 2:9}}", -1,
		0},
	{"unknown fields",
		BEGINNING "10:1 8:1 13:2 900:{1:1} 11:{9:3 23:\"i\" 11:6 38:{2:1} 9900:4}", -1, 0},
	{"packed numbers", BEGINNING "8:1 10:1 13:2 11:{9:3 23:\"i\" 11:6 3:\"\1\1\"}", -1, 0},
	{"the same track from two sequences", BEGINNING "10:2 8:5 11:{9:2 11:6};" BEGIN, -1, 0},
	{"a flow from one event to another",
		BEGINNING "8:1 10:1 13:2 11:{9:3 23:\"i\" 11:6 47:f7}; 8:1 10:1 13:2 11:{9:3 "
			  "23:\"i\" 11:6 47:f7};"
			  "8:1 10:1 13:2 11:{9:3 23:\"i\" 11:6 48:f7}",
		-1, 0},
	{"a flow whose source is written last",
		BEGINNING "8:900 10:1 13:2 11:{9:3 23:\"i\" 11:6 48:f7}; 10:2 8:5 11:{9:3 23:\"i\" "
			  "11:6 47:f7}",
		-1, 0},
	{"state that is cleared and told again",
		BEGINNING BEGIN
		"10:1 13:1 12:{2:{1:1 2:\"a\"}}; 10:1 13:2 8:5000 58:6 11:{9:3 23:\"i\" 11:6 10:1}",
		-1, 0},

	{"a field of another type", BEGINNING "8:1 10:1 13:2 11:{9:3 23:\"i\" 11:6 23:4}",
		PFV_WIRE_TYPE, 1},
	{"a text that is not UTF-8", BEGINNING "8:1 10:1 13:2 11:{9:3 23:\"i\" 11:6 23:\"\xff\"}",
		PFV_NOT_UTF8, 1},
	{"an event without a sequence", "60:{1:6}; 8:1 11:{9:3 23:\"i\" 11:6}", PFV_NO_SEQUENCE, 1},
	{"interning without a sequence", "12:{2:{1:1 2:\"a\"}}", PFV_NO_SEQUENCE, 1},
	{"an event without a timestamp", BEGINNING "10:1 13:2 11:{9:3 23:\"i\" 11:6}",
		PFV_NO_TIMESTAMP, 1},
	{"time that goes back",
		BEGINNING "10:1 8:9000 58:6 11:{9:3 23:\"i\" 11:6};"
			  "10:1 8:8999 58:6 11:{9:3 23:\"i\" 11:6}",
		PFV_ORDER, 1},
	{"a clock of another sequence", BEGINNING "10:2 8:1 58:64 11:{9:3 23:\"i\" 11:6}",
		PFV_CLOCK, 1},
	{"the clock of the largest number, which nothing explains",
		BEGINNING "10:1 8:1 58:18446744073709551615 11:{9:3 23:\"i\" 11:6}", PFV_CLOCK, 1},
	{"a clock that nothing explains", BEGINNING "10:1 8:1 58:3 11:{9:3 23:\"i\" 11:6}",
		PFV_CLOCK, 1},
	{"a snapshot without boot time", "6:{1:{1:1 2:5} 1:{1:3 2:5}}", PFV_SNAPSHOT, 1},
	{"snapshots that go back", BEGINNING "6:{1:{1:6 2:999} 1:{1:1 2:9}}", PFV_SNAPSHOT, 1},
	{"a clock twice in a snapshot", "6:{1:{1:6 2:1} 1:{1:6 2:2}}", PFV_SNAPSHOT, 1},
	{"interning before the state has begun", "10:1 12:{2:{1:1 2:\"a\"}}", PFV_NO_STATE, 1},
	{"need of state that has not begun", "60:{1:6}; 10:1 13:2 8:1 11:{9:3 23:\"i\" 11:6}",
		PFV_NO_STATE, 1},
	{"need of state that was lost", BEGINNING "10:1 13:2 42:1 8:1 11:{9:3 23:\"i\" 11:6}",
		PFV_NO_STATE, 1},
	{"an interned name without the flag",
		BEGINNING "10:1 8:9000 58:6 11:{9:3 23:\"i\" 11:6 10:1}", PFV_NEEDS_FLAG, 1},
	{"a default clock without the flag", BEGINNING "10:1 8:1 11:{9:3 23:\"i\" 11:6}",
		PFV_NEEDS_FLAG, 1},
	{"number 0 defined", "10:1 13:1 12:{2:{2:\"a\"}}", PFV_IID_ZERO, 1},
	{"a name that was not defined", BEGINNING "8:1 10:1 13:2 11:{9:3 23:\"i\" 11:6 10:3}",
		PFV_IID_UNDEFINED, 1},
	{"a category, a key and a value that were not defined",
		BEGINNING "8:1 10:1 13:2 11:{9:3 23:\"i\" 11:6 3:9 4:{1:9 17:9}}",
		PFV_IID_UNDEFINED, 3},
	{"a name of another sequence",
		BEGINNING "10:2 13:1; 10:2 8:1 13:2 11:{9:3 23:\"i\" 11:6 10:1}", PFV_IID_UNDEFINED,
		1},
	{"a name that becomes another", BEGINNING "10:1 13:2 12:{2:{1:1 2:\"z\"}}",
		PFV_IID_REDEFINED, 1},
	{"a name that becomes another after a reset", BEGINNING "10:1 13:1 12:{2:{1:1 2:\"z\"}}",
		PFV_IID_REDEFINED, 1},
	{"a name from before a reset",
		BEGINNING "10:1 13:1; 10:1 8:9000 58:6 13:2 11:{9:3 23:\"i\" 11:6 10:1}",
		PFV_IID_CLEARED, 1},
	{"an event without a type", BEGINNING "8:1 10:1 13:2 11:{11:6}", PFV_NO_TYPE, 1},
	{"an annotation without a name", BEGINNING "8:1 10:1 13:2 11:{9:3 23:\"i\" 11:6 4:{3:1}}",
		PFV_NO_NAME, 1},
	{"an end without a begin", BEGINNING BEGIN END END, PFV_UNBALANCED, 1},
	{"an end before its begin", BEGINNING END BEGIN, PFV_UNBALANCED, 1},
	{"more ends than begins from two sequences", BEGINNING BEGIN END "10:2 8:5 11:{9:2 11:6}",
		PFV_UNBALANCED, 1},
	{"a slice on a counter", BEGINNING "8:1 10:1 13:2 11:{9:3 23:\"i\" 11:9}", PFV_COUNTER, 1},
	{"a counter event on a thread", BEGINNING "8:1 10:1 13:2 11:{9:4 11:6 30:1}", PFV_COUNTER,
		1},
	{"a counter event without a value", BEGINNING "8:1 10:1 13:2 11:{9:4 11:9}", PFV_COUNTER,
		1},
	{"a track that is never described", BEGINNING "8:1 10:1 13:2 11:{9:3 23:\"i\" 11:77}",
		PFV_TRACK_UNKNOWN, 1},
	{"a track that is described too late",
		BEGINNING "8:1 10:1 13:2 11:{9:3 23:\"i\" 11:77}; 60:{1:77}", PFV_TRACK_UNKNOWN, 1},
	{"a track with two parents", BEGINNING "60:{1:6 5:9 4:{1:7 2:8}}", PFV_TRACK_CHANGED, 1},
	{"a parent that is not there", "60:{1:6 5:7}", PFV_TRACK_PARENT, 1},
	{"a track that is its own ancestor", "60:{1:6 5:7}; 60:{1:7 5:8}; 60:{1:8 5:6}",
		PFV_TRACK_PARENT, 1},
	{"a flow used after its end",
		BEGINNING "8:1 10:1 13:2 11:{9:3 23:\"i\" 11:6 48:f7}; 8:1 10:1 13:2 11:{9:3 "
			  "23:\"i\" 11:6 47:f7}",
		PFV_FLOW_REUSED, 1},
	{"a flow that ends twice",
		BEGINNING "8:1 10:1 13:2 11:{9:3 23:\"i\" 11:6 47:f7}; 8:1 10:1 13:2 11:{9:3 "
			  "23:\"i\" 11:6 48:f7}; 8:0 10:1 13:2 11:{9:3 23:\"i\" 11:6 48:f7}",
		PFV_FLOW_REUSED, 1},
	{"a flow that an event passes on and ends",
		BEGINNING "8:1 10:1 13:2 11:{9:3 23:\"i\" 11:6 47:f7 48:f7}", PFV_FLOW_TWICE, 1},
	{"a flow that an event ends and passes on",
		BEGINNING "8:1 10:1 13:2 11:{9:3 23:\"i\" 11:6 48:f7 47:f7}", PFV_FLOW_TWICE, 1},
	{"a flow that an event passes on twice",
		BEGINNING "8:1 10:1 13:2 11:{9:3 23:\"i\" 11:6 47:f7 47:f7}", PFV_FLOW_TWICE, 1},
	{"the last of many flows that an event ends too",
		BEGINNING "8:1 10:1 13:2 11:{9:3 23:\"i\" 11:6 47:f100 47:f101 47:f102 47:f103 "
			  "47:f104 47:f105 47:f106 47:f107 47:f108 47:f109 47:f110 47:f111 47:f112 "
			  "47:f113 47:f114 47:f115 47:f116 47:f117 47:f118 47:f119 47:f120 47:f121 "
			  "47:f122 47:f123 47:f124 47:f125 47:f126 47:f127 47:f128 47:f129 47:f130 "
			  "47:f131 47:f132 47:f133 47:f134 47:f135 47:f136 47:f137 47:f138 47:f139 "
			  "47:f140 47:f141 47:f142 47:f143 47:f144 47:f145 47:f146 47:f147 47:f148 "
			  "47:f149 47:f150 47:f151 47:f152 47:f153 47:f154 47:f155 47:f156 47:f157 "
			  "47:f158 47:f159 47:f160 47:f161 47:f162 47:f163 47:f164 48:f164}",
		PFV_FLOW_TWICE, 1},
	{"flow 0", BEGINNING "8:1 10:1 13:2 11:{9:3 23:\"i\" 11:6 48:f0}", PFV_FLOW_ZERO, 1},
	{"a flow that ends and was never passed on",
		BEGINNING "8:1 10:1 13:2 11:{9:3 23:\"i\" 11:6 48:f7}", PFV_FLOW_UNBEGUN, 1},
	{"a flow that ends twice by a clock that is explained later",
		"10:1 60:{1:6}; 10:1 8:5 58:1 11:{9:3 23:\"i\" 11:6 47:f7}; 10:1 8:5 58:1 11:{9:3 "
		"23:\"i\" 11:6 48:f7};"
		"10:1 8:6 58:1 11:{9:3 23:\"i\" 11:6 48:f7}; 6:{1:{1:6 2:1} 1:{1:1 2:9}}",
		PFV_FLOW_REUSED, 1},
	{"time that goes back by a clock that is explained later",
		"10:1 60:{1:6}; 10:1 8:9 58:1 11:{9:3 23:\"i\" 11:6}; 10:1 8:8 58:1 11:{9:3 "
		"23:\"i\" 11:6};"
		"6:{1:{1:6 2:1} 1:{1:1 2:9}}",
		PFV_ORDER, 1},
	{"an interned value that is not UTF-8", BEGINNING "10:1 13:2 12:{29:{1:9 2:\"\xff\"}}",
		PFV_NOT_UTF8, 1},
	{"a name without a text", BEGINNING "10:1 13:2 12:{2:{1:9}}", PFV_IID_EMPTY, 1},
	{"a thread that gets another name", BEGINNING "60:{1:6 5:5 4:{1:7 2:8 5:\"z\"}}",
		PFV_TRACK_CHANGED, 1},
	{"a process of another pid", BEGINNING "60:{1:5 3:{1:70 6:\"p\"}}", PFV_TRACK_CHANGED, 1},
	{"a counter of another unit", BEGINNING "60:{1:9 5:5 8:{3:2}}", PFV_TRACK_CHANGED, 1},
	{"a track that becomes another kind", BEGINNING "60:{1:9 5:5}", PFV_TRACK_CHANGED, 1},
	{"a descriptor without uuid", "60:{2:\"t\"}", PFV_TRACK_KIND, 1},
	{"a process without pid", "60:{1:1 3:{6:\"p\"}}", PFV_TRACK_KIND, 1},
	{"threads without pid or tid", "60:{1:1 4:{1:7}}; 60:{1:2 4:{2:7}}", PFV_TRACK_KIND, 2},
	{"a track of two kinds", "60:{1:1 3:{1:7} 8:{3:3}}", PFV_TRACK_KIND, 1},
	{"two tracks of a thread", BEGINNING "60:{1:16 4:{1:7 2:8}}", PFV_TRACK_TWICE, 1},
	{"two tracks of a process", BEGINNING "60:{1:16 3:{1:7}}", PFV_TRACK_TWICE, 1},
	{"a clock without its number", "6:{1:{1:6 2:5} 1:{2:5}}", PFV_SNAPSHOT, 1},
	{"a clock without its time", "6:{1:{1:6 2:5} 1:{1:1}}", PFV_SNAPSHOT, 1},
	{"a primary clock that is not there", "6:{1:{1:6 2:5} 2:99}", PFV_SNAPSHOT, 1},
	{"boot time that counts from packet to packet", "6:{1:{1:6 2:5 3:1}}", PFV_SNAPSHOT, 1},
	{"a snapshot of 2^63", "6:{1:{1:6 2:5} 1:{1:1 2:9223372036854775808}}", PFV_TIME_RANGE, 1},
	{"a clock whose unit takes it beyond",
		"6:{1:{1:6 2:5} 1:{1:1 2:9223372036854775 4:1000000}}", PFV_TIME_RANGE, 1},
	{"a timestamp of 2^63", BEGINNING "10:1 13:2 8:9223372036854775808 11:{9:3 23:\"i\" 11:6}",
		PFV_TIME_RANGE, 1},
	{"a timestamp of 2^63 in boot time",
		BEGINNING "10:1 8:9223372036854775808 58:6 11:{9:3 23:\"i\" 11:6}", PFV_TIME_RANGE,
		1},
	{"a slice and an instant without a name",
		BEGINNING "8:1 10:1 13:2 11:{9:1 11:6}; 8:1 10:1 13:2 11:{9:3 11:6}", PFV_NO_NAME,
		2},
	{"a counter of two values", BEGINNING "8:1 10:1 13:2 11:{9:4 11:9 30:5 44:f0}", PFV_COUNTER,
		1},
	{"a counter that is no number",
		BEGINNING "8:1 10:1 13:2 11:{9:4 11:9 44:f9221120237041090560}", PFV_COUNTER, 1},
	{"an annotation of two values",
		BEGINNING "8:1 10:1 13:2 11:{9:3 23:\"i\" 11:6 4:{10:\"x\" 3:1 6:\"y\"}}",
		PFV_NOTE_VALUES, 1},
	{"two events in a packet",
		BEGINNING "8:1 10:1 13:2 11:{9:3 23:\"i\" 11:6} 11:{9:3 23:\"i\" 11:6}",
		PFV_FIELD_TWICE, 1},
	{"two timestamps in a packet", BEGINNING "8:1 8:1 10:1 13:2 11:{9:3 23:\"i\" 11:6}",
		PFV_FIELD_TWICE, 1},
	{"a first packet behind others", BEGINNING "10:1 87:1", PFV_FIRST_PACKET, 1},
};

TEST("perfetto verify: each broken trace is refused for what is wrong with it, sound ones are not",
	"[perfetto]")
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct pb_buf b = {0};
		struct pfv_result r;
		struct heard h;

		test_info("case: %s", cases[i].name);
		put_trace(&b, cases[i].trace);
		CHECK_EQ(verify(b.data, b.len, &r, &h), 0);
		CHECK_EQ(r.findings, cases[i].count);
		CHECK_EQ(h.count, cases[i].count);
		if (cases[i].kind >= 0)
			CHECK_EQ(r.counts[cases[i].kind], cases[i].count);
		CHECK_EQ(r.damage, 0);
		CHECK_EQ(r.bytes, b.len);
		pb_buf_free(&b);
	}
}

TEST("perfetto verify: every rule has a case that breaks it", "[perfetto]")
{
	for (unsigned k = 0; k < PFV_KINDS; k++) {
		bool found = k == PFV_TRUNCATED || k == PFV_MALFORMED || k == PFV_EMPTY_PACKET;
		/* these below */

		for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
			found |= cases[i].kind == (int)k;
		test_info("%s", pfv_kind_name(k));
		CHECK(found);
	}
}

TEST("perfetto verify: a file that is cut is sound up to a packet's end and truncated elsewhere",
	"[perfetto]")
{
	struct pb_buf b = {0};
	struct pfv_result r;
	struct heard h;
	size_t ends = 0;

	put_trace(&b, BEGINNING BEGIN BEGIN END END);
	for (size_t cut = 1; cut < b.len; cut++) {
		REQUIRE_EQ(verify(b.data, cut, &r, &h), 0);
		test_info("cut at %zu", cut);
		CHECK_EQ(r.findings, r.damage);
		CHECK_EQ(r.findings, r.counts[PFV_TRUNCATED]);
		CHECK(r.findings <= 1);
		CHECK(r.bytes <= cut);
		ends += r.findings == 0;
	}
	CHECK_EQ(ends, 8); /* of nine packets the last one's end is the whole file */
	pb_buf_free(&b);
}

TEST("perfetto verify: any byte that is changed is read to an end", "[perfetto]")
{
	struct pb_buf b = {0};
	struct pfv_result r;
	struct heard h;
	unsigned found = 0;

	put_trace(&b, BEGINNING BEGIN BEGIN END END);
	for (size_t i = 0; i < b.len; i++)
		for (unsigned bit = 0; bit < 8; bit++) {
			b.data[i] ^= (uint8_t)(1u << bit);
			CHECK_EQ(verify(b.data, b.len, &r, &h), 0);
			found += r.findings != 0;
			b.data[i] ^= (uint8_t)(1u << bit);
		}
	CHECK(found > b.len); /* the others change texts and times */
	pb_buf_free(&b);
}

TEST("perfetto verify: what is no trace is damaged at its first byte", "[perfetto]")
{
	struct pfv_result r;
	struct heard h;

	CHECK_EQ(verify("{\"traceEvents\":[]}", 18, &r, &h), 0);
	CHECK_EQ(r.counts[PFV_MALFORMED], 1);
	CHECK_EQ(h.last_offset, 0);
	CHECK_EQ(verify("\x0a\x02\xff\xff", 4, &r, &h), 0);
	CHECK_EQ(r.counts[PFV_MALFORMED], 1);
	CHECK_EQ(h.last_offset, 2);
	CHECK_EQ(verify("", 0, &r, &h), 0);
	CHECK_EQ(r.packets, 0);
}

TEST("perfetto verify: packets of nothing are no trace", "[perfetto]")
{
	struct pfv_result r;
	struct heard h;

	CHECK_EQ(verify("\x0a\0\x0a\0", 4, &r, &h), 0);
	CHECK_EQ(r.counts[PFV_EMPTY_PACKET], 2);
}

TEST("perfetto verify: numbers of a state that was cleared very often are cleared", "[perfetto]")
{
	static const char clear[] = "\x0a\x04\x50\x01\x68\x01";
	struct pb_buf b = {0};
	struct pfv_result r;
	struct heard h;

	put_trace(&b, BEGINNING);
	for (unsigned i = 0; i < 65536; i++)
		pb_buf_append(&b, clear, sizeof(clear) - 1);
	put_trace(&b, "10:1 8:9000 58:6 13:2 11:{9:3 11:6 10:1}");
	CHECK_EQ(verify(b.data, b.len, &r, &h), 0);
	CHECK_EQ(r.counts[PFV_IID_CLEARED], 1);
	pb_buf_free(&b);
}
