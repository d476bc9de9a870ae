/* SPDX-License-Identifier: Apache-2.0 */
/*
 * columns_fuzz.c - batches of records in coded form (runtime/record/columns.h).
 *
 * The input is a type, then bytes that are taken for a coded payload and for records.  Beyond not
 * crashing: records are restored as they were, and what could be decoded has a coded form again.
 */
#include "runtime/record/columns.h"
#include "tests/fuzz/fuzz.h"

/* Codes whole records and restores them. */
static void there_and_back(enum rec_type type, const uint8_t *payload, size_t size)
{
	size_t head = rec_columns_head(type), count = 0, records, coded_size;
	uint32_t restored_size = 0;

	if (size < head)
		return;
	records = rec_columns_prefix(type, payload + head, size - head, size, &count);
	if (records == 0)
		return;
	uint8_t *coded = malloc(rec_columns_bound(count) + REC_COLUMNS_SLACK);
	uint8_t *restored = malloc(head + records);
	FUZZ_REQUIRE(coded && restored);
	coded_size = rec_columns_encode(type, payload, payload + head, records, count, coded);
	FUZZ_REQUIRE(coded_size <= rec_columns_bound(count));
	memset(coded + coded_size, 0, REC_COLUMNS_SLACK);
	FUZZ_REQUIRE(rec_columns_size(coded, coded_size, &restored_size) == 0);
	FUZZ_REQUIRE(restored_size == head + records);
	FUZZ_REQUIRE(rec_columns_decode(type, coded, coded_size, restored, restored_size) == 0);
	FUZZ_REQUIRE(memcmp(restored, payload, restored_size) == 0);
	free(coded);
	free(restored);
}

static void decode(enum rec_type type, const uint8_t *data, size_t size)
{
	uint8_t *coded = calloc(1, size + REC_COLUMNS_SLACK);
	uint32_t out_size = 0;

	FUZZ_REQUIRE(coded);
	memcpy(coded, data, size);
	if (rec_columns_size(coded, size, &out_size) == 0 && out_size <= REC_MAX_PAYLOAD) {
		uint8_t *out = malloc(out_size ? out_size : 1);

		FUZZ_REQUIRE(out);
		if (rec_columns_decode(type, coded, size, out, out_size) == 0)
			there_and_back(type, out, out_size);
		free(out);
	}
	free(coded);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const enum rec_type types[] = {REC_KERNEL, REC_RUNTIME, REC_CPU};

	if (size == 0)
		return 0;
	enum rec_type type = types[data[0] % 3];
	decode(type, data + 1, size - 1);
	there_and_back(type, data + 1, size - 1);
	return 0;
}
