/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ntff_fuzz.c - an .ntff of any bytes: container, message and records, and what is printed of them.
 *
 * The bytes are tried as they are, and with a header that fits them, so that what is behind the checksums is
 * reached by what was changed there.  Beyond not crashing: each record is in one item or counted as one without
 * its other half, what is read lies in the file, and what is printed is JSON, a line for each item.
 */
#include <errno.h>
#include <jansson.h>

#include "agent/output/dump_ntff.h"
#include "proto/ntff_file.h"
#include "tests/fuzz/fuzz.h"

#define MESSAGE_SIZE_AT 24u /* in the header: where the repaired one takes its own from */

/* Reads a ring to its end; how many items it has. */
static uint64_t read_stream(const struct ntff_profile *p, const struct ntff_stream *s)
{
	uint64_t items = 0, records = 0, boot, bound;
	struct ntff_cursor c;
	struct ntff_item item;

	FUZZ_REQUIRE(s->core < p->core_count);
	FUZZ_REQUIRE(s->count == 0 ||
		     (s->records >= p->file.data &&
			     s->records + 16 * s->count <= p->file.data + p->file.size));
	ntff_cursor_open(&c, p, s);
	while (ntff_cursor_next(&c, &item) == 1) {
		const Ntff__ExecutionInfo *run = ntff_run_of(c.core, &item);

		FUZZ_REQUIRE(ntff_what_name(item.what) && item.start_ps <= item.end_ps);
		FUZZ_REQUIRE(item.era < c.core->era_count);
		FUZZ_REQUIRE(
			!run || (run->nc_idx == c.core->nc_idx && run->start_ps <= item.start_ps));
		ntff_instruction_of(p, c.core, run, &item);
		FUZZ_REQUIRE(ntff_host_ns(&c, item.era, item.start_ps, &boot, &bound) ==
			     (c.core->eras[item.era].count > 0));
		FUZZ_REQUIRE(ntff_host_ns_end(&c, item.era, item.end_ps, &boot, &bound) ==
			     (c.core->eras[item.era].count > 0));
		records += item.span ? 2 : 1;
		items++;
	}
	FUZZ_REQUIRE(records + c.no_start + c.no_end == s->count);
	FUZZ_REQUIRE(c.open.count == 0);
	ntff_cursor_close(&c);
	return items;
}

/* What is printed are JSON objects, as many of items as were read. */
static void check_print(const struct ntff_profile *p, uint64_t items)
{
	char *text = NULL, *save = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&text, &size);
	uint64_t lines = 0;

	FUZZ_REQUIRE(f && dump_ntff_json(f, p) == 0 && fclose(f) == 0);
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		json_t *j = json_loads(line, JSON_DECODE_INT_AS_REAL | JSON_ALLOW_NUL, NULL);

		FUZZ_REQUIRE(json_is_object(j) && json_object_get(j, "what"));
		lines += json_object_get(j, "start_ps") != NULL ||
			 json_object_get(j, "at_ps") != NULL;
		lines -= !strcmp(json_string_value(json_object_get(j, "what")), "execution") &&
			 json_object_get(j, "start_ps") != NULL;
		json_decref(j);
	}
	FUZZ_REQUIRE(lines == items);
	free(text);
	FUZZ_REQUIRE(dump_ntff_text(fuzz_sink(), p) == 0);
}

static void try(const uint8_t *data, size_t size)
{
	struct ntff_profile p;
	int rc = ntff_profile_open(&p, data, size);
	uint64_t items = 0;

	FUZZ_REQUIRE(rc == 0 || rc == -EINVAL || rc == -ENOTSUP || rc == -EBADMSG);
	FUZZ_REQUIRE(rc == 0 || p.file.damage);
	for (uint32_t i = 0; rc == 0 && i < p.stream_count; i++)
		items += read_stream(&p, &p.streams[i]);
	if (rc == 0)
		check_print(&p, items);
	ntff_profile_close(&p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *copy;
	uint32_t told;
	uint64_t blobs;

	try(data, size);
	if (size < NTFF_HEADER_BYTES)
		return 0;
	memcpy(&told, data + MESSAGE_SIZE_AT, sizeof(told));
	told %= (uint32_t)(size - NTFF_HEADER_BYTES) + 1;
	blobs = ntff_blobs_offset(told);
	copy = malloc(size);
	FUZZ_REQUIRE(copy);
	memcpy(copy, data, size);
	FUZZ_REQUIRE(ntff_header_encode(copy, copy + NTFF_HEADER_BYTES, told, blobs,
			     size > blobs ? size - blobs : 0, "fuzz") == 0);
	try(copy, size);
	free(copy);
	return 0;
}
