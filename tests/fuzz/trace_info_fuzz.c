/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace_info_fuzz.c - two trace_info.pb of any bytes: printed, and their losses compared.
 *
 * The input is the length of the first (2 bytes) and both.  Beyond not crashing: what is printed is
 * JSON, and a file has the losses of itself.
 */
#include <errno.h>
#include <jansson.h>

#include "agent/output/diff.h"
#include "agent/output/dump.h"
#include "tests/fuzz/fuzz.h"

/* Is it printed as one JSON object?  False when it is damaged. */
static bool print(const uint8_t *data, size_t size)
{
	char *text = NULL;
	size_t text_size = 0, at;
	FILE *f = open_memstream(&text, &text_size);

	FUZZ_REQUIRE(f);
	int rc = dump_print(f, DUMP_TRACE_INFO, DUMP_JSON, data, size, &at);
	FUZZ_REQUIRE(fclose(f) == 0 && (rc == 0 || (rc == -EBADMSG && text_size == 0)));
	if (rc == 0) {
		json_error_t error;
		json_t *j = json_loadb(text, text_size,
			JSON_DECODE_INT_AS_REAL | JSON_ALLOW_NUL | JSON_DISABLE_EOF_CHECK, &error);

		FUZZ_REQUIRE(json_is_object(j) && text[text_size - 1] == '\n');
		json_decref(j);
	}
	free(text);
	return rc == 0;
}

static int losses(const char *a, const char *b, size_t *ret_count)
{
	static const struct diff_options options = {0};
	struct diff_side side[2] = {{a, false}, {b, false}};
	struct diff_fault fault = {0};
	struct diff d = {0};
	int rc = diff_read_info(side, &options, &d, &fault);

	if (rc == 0)
		diff_print_text(fuzz_sink(), side, &d, &options);
	*ret_count = d.loss_count;
	diff_free(&d);
	free(fault.path);
	return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t head = size < 2 ? size : 2, first, count;
	struct scratch_path a = scratch_path(fuzz_scratch(), "a/ntrace.pb");
	struct scratch_path b = scratch_path(fuzz_scratch(), "b/ntrace.pb");
	uint16_t told = 0;

	memcpy(&told, data, head);
	data += head;
	size -= head;
	first = told < size ? told : size;
	mkdir(scratch_path(fuzz_scratch(), "a").s, 0700);
	mkdir(scratch_path(fuzz_scratch(), "b").s, 0700);
	fuzz_file("a/trace_info.pb", data, first);
	fuzz_file("b/trace_info.pb", data + first, size - first);
	bool good[2] = {print(data, first), print(data + first, size - first)};
	FUZZ_REQUIRE((losses(a.s, b.s, &count) == 0) == (good[0] && good[1]));
	FUZZ_REQUIRE((losses(a.s, a.s, &count) == 0) == good[0] && count == 0);
	return 0;
}
