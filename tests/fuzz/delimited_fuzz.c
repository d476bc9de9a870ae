/* SPDX-License-Identifier: Apache-2.0 */
/*
 * delimited_fuzz.c - delimited streams of any bytes: the walk, the parser of events, dump and diff.
 *
 * Beyond not crashing: protobuf-c reads the same values, what is encoded anew is the same event, the
 * reader of files finds as many events as the walk in memory, and a trace equals itself.
 */
#include <string.h>

#include "agent/output/diff.h"
#include "agent/output/dump.h"
#include "agent/output/json_out.h"
#include "agent/output/trace_read.h"
#include "proto/delimited.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/event_opinion.h"
#include "tests/unit/event_samples.h"

/* What was parsed, encoded anew and parsed again. */
static void encode_again(const struct ntrace_event_view *e)
{
	struct ntrace_event_view back;
	struct pb_buf b = {0};
	const uint8_t *msg = NULL;
	size_t pos = 0, len = 0, at;

	FUZZ_REQUIRE(ntrace_event_append(&b, e) == 0);
	FUZZ_REQUIRE(pb_delimited_next(b.data, b.len, &pos, &msg, &len) == 1 && pos == b.len);
	FUZZ_REQUIRE(ntrace_event_parse(msg, len, &back, &at) == 0);
	FUZZ_REQUIRE(sample_same_view(e, &back));
	FUZZ_REQUIRE(sample_same_text(e->unknown, back.unknown));
	pb_buf_free(&b);
}

/* A message in memory of exactly its size; is it an event? */
static bool one_message(const uint8_t *msg, size_t len)
{
	uint8_t *exact = malloc(len ? len : 1);
	struct ntrace_event_view e;
	size_t at = 0;
	int rc;

	FUZZ_REQUIRE(exact);
	memcpy(exact, msg, len);
	rc = ntrace_event_parse(exact, len, &e, &at);
	FUZZ_REQUIRE(opinion_in_bounds(rc, &e, at, exact, len));
	if (rc == 0) {
		FUZZ_REQUIRE(opinion_protobuf_c(exact, len, &e));
		encode_again(&e);
	}
	free(exact);
	return rc == 0;
}

/* How many events stand before the first damage. */
static uint64_t walk(const uint8_t *data, size_t size, bool *ret_whole)
{
	const uint8_t *msg;
	size_t pos = 0, len;
	uint64_t count = 0;
	int rc;

	while ((rc = pb_delimited_next(data, size, &pos, &msg, &len)) == 1) {
		if (!one_message(msg, len))
			break;
		count++;
	}
	*ret_whole = rc == 0;
	return count;
}

static void read_file(const char *path, uint64_t count, bool whole)
{
	struct ntrace_event_view e;
	struct trace_read r;
	int rc;

	FUZZ_REQUIRE(trace_read_open(&r, path) == 0);
	while ((rc = trace_read_next(&r, &e)) == 1)
		;
	FUZZ_REQUIRE(r.count == count && (rc == 0) == whole);
	trace_read_close(&r);
}

static void diff_with_itself(const char *path, bool whole, const struct diff_options *options)
{
	struct diff_side side[2] = {{path, true}, {path, true}};
	struct json_out j = {.f = fuzz_sink()};
	struct diff_fault fault = {0};
	struct diff d;
	int rc = diff_traces(side, options, &d, &fault);

	FUZZ_REQUIRE((rc == 0) == whole);
	if (rc == 0) {
		FUZZ_REQUIRE(diff_same(&d, options));
		diff_print_text(j.f, side, &d, options);
		diff_print_json(&j, side, &d, options);
	}
	diff_free(&d);
	free(fault.path);
}

/* As a file and in memory, with the same end. */
static void dump(const char *path, enum dump_kind kind, const uint8_t *data, size_t size)
{
	struct trace_read r;
	uint64_t file_at;
	size_t at;

	FUZZ_REQUIRE(trace_read_open(&r, path) == 0);
	int rc = dump_print(fuzz_sink(), kind, DUMP_JSON, data, size, &at);
	FUZZ_REQUIRE(dump_file(fuzz_sink(), kind, DUMP_JSON, &r, &file_at) == rc);
	FUZZ_REQUIRE(file_at == at);
	trace_read_close(&r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const enum dump_kind kinds[] = {DUMP_NTRACE, DUMP_CPU_UTIL, DUMP_HOST_MEM};
	static const struct diff_options options[] = {{0}, {.ignore_times = true}};
	struct scratch_path path = fuzz_file("ntrace.pb", data, size);
	bool whole;
	uint64_t count = walk(data, size, &whole);
	size_t at;

	read_file(path.s, count, whole);
	dump_sniff_content(data, size);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		dump(path.s, kinds[i], data, size);
	dump_print(fuzz_sink(), DUMP_NTRACE, DUMP_TEXT, data, size, &at);
	for (size_t i = 0; i < sizeof(options) / sizeof(*options); i++)
		diff_with_itself(path.s, whole, &options[i]);
	return 0;
}
