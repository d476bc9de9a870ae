/* SPDX-License-Identifier: Apache-2.0 */
/*
 * columns_test.c - batches of records are coded and restored without loss, whatever they hold, and
 * coded bytes that are damaged are refused or give other records, never anything worse.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "bpf/neuron_event.h"
#include "runtime/base/file.h"
#include "runtime/record/columns.h"
#include "runtime/record/columns_layout.h"
#include "runtime/trace/record.h"
#include "tests/shim/shim.h"

#define MAX_RECORDS 700u

static uint64_t state = 1;

static uint64_t noise(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

/* A number of any length, zero often. */
static uint64_t some(void)
{
	unsigned bits = (unsigned)(noise() % 10) * 8;

	return bits == 0 ? 0 : bits > 64 ? noise() : noise() >> (64 - bits);
}

/* Records of any content (wild), or such as a runtime writes. */
static size_t make_runtime(uint8_t *to, size_t count, bool wild)
{
	for (size_t i = 0; i < count; i++) {
		struct trace_record r = {
			.trace_type = (uint32_t)(noise() % 6),
			.thread_id = 4711 + noise() % 3,
			.id = i + 5,
			.tracking_id = (1ull << 50) + i + 5 - noise() % 4,
			.timestamp_ns = 1000000000000u + i * 1000 + noise() % 999,
			.phase = (uint32_t)(noise() % 3),
			.nc_idx = 1,
		};

		memcpy(to + i * sizeof(r), &r, sizeof(r));
		for (size_t k = 0; wild && k < sizeof(r); k += 8) {
			uint64_t v = some();

			memcpy(to + i * sizeof(r) + k, &v, 8);
		}
	}
	return count * sizeof(struct trace_record);
}

static size_t make_kernel(uint8_t *to, size_t count, bool wild)
{
	size_t used = 0;

	for (size_t i = 0; i < count; i++) {
		struct nev_ioctl e = {
			.hdr = {.time_ns = 1000000 + i * 50,
				.seq = (uint32_t)i,
				.type = NEV_IOCTL_DONE},
			.start_ns = 1000000 + i * 40,
			.duration_ns = i * 10,
			.tgid = 1,
			.tid = (uint32_t)(noise() % 4),
			.request = 0xc0104e00u | (uint32_t)(noise() % 5),
		};
		unsigned nargs = (unsigned)(e.request % 5 + noise() % 2);

		for (size_t k = 0; wild && k < sizeof(e); k += 8) {
			uint64_t v = some();

			memcpy((uint8_t *)&e + k, &v, 8);
		}
		e.hdr.nargs = (uint8_t)nargs;
		memcpy(to + used, &e, sizeof(e));
		used += sizeof(e);
		for (unsigned k = 0; k < nargs; k++, used += 8) {
			uint64_t v = some();

			memcpy(to + used, &v, 8);
		}
	}
	return used;
}

struct batch {
	enum rec_type type;
	uint8_t *payload; /* head and records */
	size_t head, size, count;
	uint8_t *coded;
	size_t coded_size;
};

static bool batch_make(struct batch *b, enum rec_type type, size_t count, bool wild)
{
	size_t records, found;

	*b = (struct batch){.type = type, .count = count, .head = rec_columns_head(type)};
	b->payload = malloc(b->head + MAX_RECORDS * sizeof(struct trace_record));
	b->coded = malloc(rec_columns_bound(count) + REC_COLUMNS_SLACK);
	if (!b->payload || !b->coded)
		return false;
	for (size_t i = 0; i < b->head; i++)
		b->payload[i] = (uint8_t)noise();
	records = (type == REC_RUNTIME ? make_runtime : make_kernel)(
		b->payload + b->head, count, wild);
	b->size = b->head + records;
	if (rec_columns_prefix(type, b->payload + b->head, records, records, &found) != records ||
		found != count)
		return false;
	b->coded_size = rec_columns_encode(
		type, b->payload, b->payload + b->head, records, count, b->coded);
	return b->coded_size <= rec_columns_bound(count);
}

static void batch_free(struct batch *b)
{
	free(b->payload);
	free(b->coded);
}

/* Decodes exactly `size` coded bytes into memory of exactly the right size. */
static int decode(const struct batch *b, size_t size, uint8_t **ret, uint32_t *ret_size)
{
	_cleanup_free_ uint8_t *in = calloc(1, size + REC_COLUMNS_SLACK);
	int rc = in ? 0 : -ENOMEM;

	*ret = NULL;
	if (rc == 0 && size)
		memcpy(in, b->coded, size);
	if (rc == 0)
		rc = rec_columns_size(in, size, ret_size);
	if (rc == 0 && !(*ret = malloc(*ret_size + 1u)))
		rc = -ENOMEM;
	return rc < 0 ? rc : rec_columns_decode(b->type, in, size, *ret, *ret_size);
}

static const enum rec_type types[] = {REC_RUNTIME, REC_KERNEL};

TEST("columns: any batch comes back as it was", "[record]")
{
	static const size_t counts[] = {1, 2, 3, 63, 64, 65, 127, 128, 129, 500, MAX_RECORDS};

	for (unsigned round = 0; round < 4 * sizeof(counts) / sizeof(*counts); round++) {
		struct batch b;
		uint8_t *again;
		uint32_t size;

		REQUIRE(batch_make(&b, types[round % 2], counts[round / 4], round & 2));
		test_info("type %d, %zu records", b.type, b.count);
		REQUIRE_EQ(decode(&b, b.coded_size, &again, &size), 0);
		REQUIRE_EQ(size, b.size);
		CHECK(!memcmp(again, b.payload, b.size));
		free(again);
		batch_free(&b);
	}
}

TEST("columns: usual records take a fraction of their size", "[record]")
{
	struct batch b;

	REQUIRE(batch_make(&b, REC_RUNTIME, 500, false));
	CHECK(b.coded_size < b.size / 10);
	batch_free(&b);
}

TEST("columns: coded bytes that are cut or changed are refused or give something of that size",
	"[record]")
{
	for (unsigned t = 0; t < 2; t++) {
		struct batch b;
		uint8_t *again;
		uint32_t size;

		REQUIRE(batch_make(&b, types[t], 100, false));
		for (size_t cut = 0; cut < b.coded_size; cut++) {
			CHECK_EQ(decode(&b, cut, &again, &size), -EBADMSG);
			free(again);
		}
		for (unsigned i = 0; i < 20000; i++) {
			size_t at = i < 800 ? i / 8 : noise() % b.coded_size;
			uint8_t was = b.coded[at];

			b.coded[at] = (uint8_t)(i < 800 ? was ^ 1u << i % 8 : noise());
			int rc = decode(&b, b.coded_size, &again, &size);
			CHECK(rc == 0 || rc == -EBADMSG);
			free(again);
			b.coded[at] = was;
		}
		batch_free(&b);
	}
}

TEST("columns: only whole records within the limit make a batch", "[record]")
{
	_cleanup_free_ uint8_t *calls = malloc(100 * 104);
	size_t count, size;

	REQUIRE(calls != NULL);
	size = make_kernel(calls, 100, false);
	CHECK_EQ(rec_columns_prefix(REC_KERNEL, calls, 55, 1000, &count), 0);
	CHECK(rec_columns_prefix(REC_KERNEL, calls, size - 1, size, &count) < size);
	CHECK_EQ(count, 99);
	CHECK(rec_columns_prefix(REC_KERNEL, calls, size, 1, &count) > 0);
	CHECK_EQ(count, 1);
	CHECK(rec_columns_prefix(REC_KERNEL, calls, size, 1000, &count) <= 1000);
	CHECK_EQ(rec_columns_prefix(REC_NAME, calls, size, 1000, &count), 0);
	calls[offsetof(struct nev_ioctl, hdr.nargs)] = 7;
	CHECK_EQ(rec_columns_prefix(REC_KERNEL, calls, size, size, &count), 0);
}

/* Memory for `size` bytes that ends where nothing may be read. */
static uint8_t *before_guard(size_t size, void **ret_map, size_t *ret_mapped)
{
	size_t page = 4096, whole = (size + page - 1) & ~(page - 1);
	uint8_t *map = mmap(NULL, whole + 16 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (map == MAP_FAILED || mprotect(map, whole, PROT_READ | PROT_WRITE) < 0)
		return NULL;
	*ret_map = map;
	*ret_mapped = whole + 16 * page;
	return map + whole - size;
}

TEST("columns: records that claim more arguments than there are values are refused", "[record]")
{
	const uint32_t records = 4000;
	const struct coded_head head = {
		.size = (uint32_t)(records * sizeof(struct nev_ioctl)),
		.records = records,
		.columns = 1u << 2 | 1u << kernel_layout.count, /* hdr.nargs, the arguments */
	};
	const uint32_t sizes[2] = {1, 0};
	size_t lengths = (records + 1) / 2, mapped = 0;
	size_t size = sizeof(head) + sizeof(sizes) + lengths + 1;
	void *map = NULL;
	uint8_t *coded = before_guard(size + REC_COLUMNS_SLACK, &map, &mapped), *p = coded;
	_cleanup_free_ uint8_t *out = malloc(head.size);

	REQUIRE(coded && out);
	REQUIRE_EQ(kernel_layout.column[2].offset, offsetof(struct nev_ioctl, hdr.nargs));
	memcpy(p, &head, sizeof(head));
	p += sizeof(head);
	memcpy(p, sizes, sizeof(sizes));
	p += sizeof(sizes);
	p[0] = 1;	 /* the first record's count has one byte, the others are like it */
	p[lengths] = 12; /* zigzag: 6 arguments each */
	CHECK_EQ(rec_columns_decode(REC_KERNEL, coded, size, out, head.size), -EBADMSG);
	munmap(map, mapped);
}
