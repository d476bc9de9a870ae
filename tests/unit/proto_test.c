/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proto_test.c - the schemas: numbers that public descriptions confirm, a mark on each of ours,
 * presence and unknown fields through protobuf-c, and the sample streams as protoc reads them.
 */
#include <string.h>

#include "proto/neuron_trace.pb-c.h"
#include "runtime/base/file.h"
#include "tests/shim/shim.h"
#include "tests/unit/protoc.h"

#define U32 PROTOBUF_C_TYPE_UINT32
#define U64 PROTOBUF_C_TYPE_UINT64
#define STR PROTOBUF_C_TYPE_STRING
#define MSG PROTOBUF_C_TYPE_MESSAGE

/* Numbers that are not ours to choose, and those of ours that are promised in files. */
static const struct {
	const ProtobufCMessageDescriptor *message;
	const char *name;
	unsigned number;
	ProtobufCType type;
} numbers[] = {
	{&ntff__ntrace_event__descriptor, "timestamp", 1, U64},
	{&ntff__ntrace_event__descriptor, "data", 2, U64},
	{&ntff__ntrace_event__descriptor, "nd_idx", 3, U32},
	{&ntff__ntrace_event__descriptor, "nc_idx", 4, U32},
	{&ntff__ntrace_event__descriptor, "event_type", 5, U32},
	{&ntff__ntrace_event__descriptor, "hint", 6, STR},
	{&ntff__ntrace_event__descriptor, "duration", 7, U64},
	{&ntff__ntrace_event__descriptor, "thread_id", 8, U32},
	{&ntff__ntrace_event__descriptor, "id", 9, U64},
	{&ntff__ntrace_event__descriptor, "parent_id", 10, U64},
	{&ntff__ntrace_event__descriptor, "status", 11, U32},
	{&ntff__ntrace_event__descriptor, "attributes", 12, MSG},
	{&ntff__ntrace_event__descriptor, "phase", 13, PROTOBUF_C_TYPE_ENUM},
	{&ntff__ntrace_event__descriptor, "tracking_id", 14, U64},
	{&ntff__ntrace_event__descriptor, "type", 15, U32},
	{&ntff__ntrace_event__descriptor, "nrta_seq_id", 16, U64},
	{&ntff__ntrace_event__attributes_entry__descriptor, "key", 1, STR},
	{&ntff__ntrace_event__attributes_entry__descriptor, "value", 2, STR},
	{&ntff__interned_data_db__descriptor, "id_map", 2, MSG},
	{&ntff__interned_data_db__id_map_entry__descriptor, "key", 1, U64},
	{&ntff__interned_data_db__id_map_entry__descriptor, "value", 2, STR},
	{&ntff__cpu_util__descriptor, "util", 1, PROTOBUF_C_TYPE_FLOAT},
	{&ntff__cpu_util__descriptor, "timestamp", 2, U64},
	{&ntff__cpu_util__descriptor, "cpu", 1000, U32},
	{&ntff__host_mem_usage__descriptor, "usage", 1, PROTOBUF_C_TYPE_INT64},
	{&ntff__host_mem_usage__descriptor, "timestamp", 2, U64},
};

TEST("schema: known fields have their numbers and types", "[proto]")
{
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		const ProtobufCFieldDescriptor *f = protobuf_c_message_descriptor_get_field_by_name(
			numbers[i].message, numbers[i].name);

		test_info("%s.%s", numbers[i].message->name, numbers[i].name);
		REQUIRE(f != NULL);
		CHECK_EQ(f->id, numbers[i].number);
		CHECK_EQ(f->type, numbers[i].type);
	}
	CHECK_EQ(ntff__ntrace_event__descriptor.n_fields, 16);
	CHECK_EQ(ntff__interned_data_db__descriptor.n_fields, 1);
	CHECK_STR(ntff__ntrace_event__descriptor.package_name, "ntff");
}

TEST("schema: phases are the capture's plus one, as in the codec", "[proto]")
{
	static const struct {
		enum ntrace_event_phase codec;
		const char *name;
	} rows[] = {
		{PHASE_INVALID, "NTRACE_EVENT_PHASE_INVALID"},
		{PHASE_START, "NTRACE_EVENT_PHASE_START"},
		{PHASE_STOP, "NTRACE_EVENT_PHASE_STOP"},
		{PHASE_INSTANT, "NTRACE_EVENT_PHASE_INSTANT"},
	};
	const ProtobufCEnumDescriptor *d = &ntff__ntrace_event_phase_type__descriptor;

	REQUIRE_EQ(d->n_values, sizeof(rows) / sizeof(rows[0]));
	for (size_t i = 0; i < d->n_values; i++) {
		const ProtobufCEnumValue *v =
			protobuf_c_enum_descriptor_get_value(d, (int)rows[i].codec);

		REQUIRE(v != NULL);
		CHECK_STR(v->name, rows[i].name);
		CHECK_EQ(v->value, (int)rows[i].codec);
		CHECK_EQ((int)rows[i].codec, (int)i);
	}
}

/* What the .proto says of one message. */
struct marks {
	char name[64];
	unsigned fields, unmarked, known, ours_low;
};

/* "	uint64 data = 2;   // C   text": the number and the mark; false when it is no field. */
static bool field_line(const char *line, unsigned *number, char mark[8])
{
	const char *eq = strstr(line, " = "), *end = strstr(line, "\n");
	const char *comment = strstr(line, "// ");

	*mark = '\0';
	if (line[0] != '\t' || !eq || (end && eq > end) || sscanf(eq, " = %u;", number) != 1)
		return false;
	if (comment && (!end || comment < end))
		sscanf(comment, "// %7s", mark);
	return true;
}

static void count_field(struct marks *m, unsigned number, const char *mark)
{
	m->fields++;
	if (strcmp(mark, "C") == 0 || strcmp(mark, "C-") == 0 || strcmp(mark, "I") == 0)
		m->known++;
	else if (strcmp(mark, "ours") != 0)
		m->unmarked++;
	else if (number < 1000)
		m->ours_low++;
}

/* Checks the marks of all fields of a schema; 0, or why it could not be read. */
static int check_marks(const char *path, unsigned *ret_messages, unsigned *ret_fields)
{
	_cleanup_free_ char *text = NULL;
	struct marks m = {0};
	size_t size;
	int rc = file_read(path, 1 << 20, &text, &size);

	*ret_messages = *ret_fields = 0;
	for (char *line = text; rc == 0 && line && *line;
		line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
		unsigned number = 0;
		char mark[8];

		if (strncmp(line, "message ", 8) == 0) {
			m = (struct marks){0};
			sscanf(line, "message %63s", m.name);
			++*ret_messages;
		} else if (*ret_messages && field_line(line, &number, mark)) {
			count_field(&m, number, mark);
			++*ret_fields;
		} else if (line[0] == '}' && *ret_messages) {
			test_info("message %s", m.name);
			CHECK_EQ(m.unmarked, 0);
			CHECK(m.known == 0 || m.ours_low == 0);
			CHECK(m.known > 0 || m.ours_low > 0 || m.fields == 0);
		}
	}
	return rc;
}

TEST("schema: each field carries a mark, and ours never take a number of the vendor's", "[proto]")
{
	static const struct {
		const char *file;
		unsigned messages, fields;
	} rows[] = {
		{"/proto/neuron_trace.proto", 13, 99},
		{"/proto/ntff.proto", 35, 178},
	};
	struct scratch_path root = protoc_root();

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct scratch_path path = root;
		unsigned messages, fields;

		strncat(path.s, rows[i].file, sizeof(path.s) - strlen(path.s) - 1);
		if (access(path.s, R_OK) != 0)
			SKIP("the .proto files (run from the root of the tree)");
		REQUIRE_EQ(check_marks(path.s, &messages, &fields), 0);
		CHECK_EQ(messages, rows[i].messages);
		CHECK_EQ(fields, rows[i].fields);
	}
}

TEST("schema: nrta_seq_id 0 that is set differs from one that is not", "[proto]")
{
	Ntff__NtraceEvent e = NTFF__NTRACE_EVENT__INIT;
	uint8_t bytes[16] = {0};

	CHECK_EQ(ntff__ntrace_event__pack(&e, bytes), 0);
	e.nrta_seq_id_presence_case = NTFF__NTRACE_EVENT__NRTA_SEQ_ID_PRESENCE_NRTA_SEQ_ID;
	REQUIRE_EQ(ntff__ntrace_event__pack(&e, bytes), 3);
	CHECK(memcmp(bytes, "\x80\x01\x00", 3) == 0);
}

TEST("schema: fields of a newer producer survive reading and writing", "[proto]")
{
	/* interned_data_db with its unknown field 1, one entry {7: "m"}, and a field 900 */
	static const uint8_t in[] = "\x0a\x02hi\x12\x05\x08\x07\x12\x01m\xa0\x38\x05";
	const size_t size = sizeof(in) - 1;
	Ntff__InternedDataDb *db = ntff__interned_data_db__unpack(NULL, size, in);
	uint8_t out[64];

	REQUIRE(db != NULL);
	CHECK_EQ(db->n_id_map, 1);
	CHECK(db->n_id_map == 1 && db->id_map[0]->key == 7);
	CHECK(db->n_id_map == 1 && strcmp(db->id_map[0]->value, "m") == 0);
	CHECK_EQ(db->base.n_unknown_fields, 2);
	REQUIRE_EQ(ntff__interned_data_db__get_packed_size(db), size);
	ntff__interned_data_db__pack(db, out);
	/* known fields first, then the unknown ones, each as it stood */
	CHECK(memcmp(out, "\x12\x05\x08\x07\x12\x01m\x0a\x02hi\xa0\x38\x05", size) == 0);
	ntff__interned_data_db__free_unpacked(db, NULL);
}

/* ---- sample streams through protoc ---------------------------------------------------------- */

static int append_packed(struct pb_buf *b, const ProtobufCMessage *m)
{
	size_t size = protobuf_c_message_get_packed_size(m);
	uint8_t prefix[PB_MAX_VARINT];
	int err = pb_buf_append(b, prefix, pb_varint_put(prefix, size));

	if (!err)
		err = pb_buf_reserve(b, size);
	if (!err)
		b->len += protobuf_c_message_pack(m, b->data + b->len);
	return err;
}

/* Decodes a stream with protoc and compares the text. */
static bool reads_as(const struct pb_buf *stream, const char *type, const char *want)
{
	_cleanup_free_ char *text = NULL;
	struct pb_buf wrapped = {0};
	size_t size;
	bool same;

	same = protoc_wrap(stream->data, stream->len, &wrapped) == 0 &&
	       protoc_run("decode", type, wrapped.data, wrapped.len, &text, &size) == 0 &&
	       strcmp(text, want) == 0;
	if (!same)
		test_info("protoc printed: %s", text ? text : "(nothing)");
	pb_buf_free(&wrapped);
	return same;
}

TEST("streams: protoc reads cpu_util with our cpu number, zeros left out", "[proto]")
{
	static const struct {
		float util;
		uint32_t cpu;
	} rows[] = {{0, 0}, {12.5f, 1}, {100, 4095}};
	const char *missing = protoc_missing();
	struct pb_buf stream = {0};

	if (missing)
		SKIP(missing);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		Ntff__CpuUtil m = NTFF__CPU_UTIL__INIT;

		m.util = rows[i].util;
		m.timestamp = 1753000000123456789;
		m.cpu = rows[i].cpu;
		REQUIRE_EQ(append_packed(&stream, &m.base), 0);
	}
	CHECK(reads_as(&stream, "ntff_test.cpu_stream",
		"sample {\n  timestamp: 1753000000123456789\n}\n"
		"sample {\n  util: 12.5\n  timestamp: 1753000000123456789\n  cpu: 1\n}\n"
		"sample {\n  util: 100\n  timestamp: 1753000000123456789\n  cpu: 4095\n}\n"));
	pb_buf_free(&stream);
}

TEST("streams: protoc reads host_mem_usage beyond 32 bits", "[proto]")
{
	static const int64_t usage[] = {0, 4096, 1ll << 40};
	const char *missing = protoc_missing();
	struct pb_buf stream = {0};

	if (missing)
		SKIP(missing);
	for (size_t i = 0; i < sizeof(usage) / sizeof(usage[0]); i++) {
		Ntff__HostMemUsage m = NTFF__HOST_MEM_USAGE__INIT;

		m.usage = usage[i];
		m.timestamp = i;
		REQUIRE_EQ(append_packed(&stream, &m.base), 0);
	}
	CHECK(reads_as(&stream, "ntff_test.mem_stream",
		"sample {\n}\n"
		"sample {\n  usage: 4096\n  timestamp: 1\n}\n"
		"sample {\n  usage: 1099511627776\n  timestamp: 2\n}\n"));
	pb_buf_free(&stream);
}

TEST("trace_info: protoc reads what protobuf-c wrote", "[proto]")
{
	Ntff__NtraceInfo info = NTFF__NTRACE_INFO__INIT;
	Ntff__NtraceDataFile file = NTFF__NTRACE_DATA_FILE__INIT, *files[] = {&file};
	Ntff__NtraceLedgerRow row = NTFF__NTRACE_LEDGER_ROW__INIT, *ledger[] = {&row};
	Ntff__NtraceClockStep step = NTFF__NTRACE_CLOCK_STEP__INIT, *steps[] = {&step};
	char *blind[] = {"doorbells"};
	const char *missing = protoc_missing();
	_cleanup_free_ char *text = NULL;
	uint8_t bytes[512];
	size_t size;

	if (missing)
		SKIP(missing);
	info.pid = 42;
	file.name = "ntrace.pb";
	file.message_count = 3;
	info.n_collected_profiles = 1;
	info.collected_profiles = files;
	row.stage = "kernel";
	row.value = UINT64_MAX;
	info.n_ledger = 1;
	info.ledger = ledger;
	info.n_blind = 1;
	info.blind = blind;
	info.realtime_offset_ns = -5;
	step.boot_ns = 9;
	step.new_offset_ns = -6;
	info.n_clock_steps = 1;
	info.clock_steps = steps;
	info.virtual_device = 1;
	info.ended = 1;
	REQUIRE(ntff__ntrace_info__get_packed_size(&info) <= sizeof(bytes));
	size = ntff__ntrace_info__pack(&info, bytes);
	REQUIRE_EQ(protoc_run("decode", "ntff.ntrace_info", bytes, size, &text, &size), 0);
	CHECK_STR(text, "pid: 42\n"
			"collected_profiles {\n  name: \"ntrace.pb\"\n  message_count: 3\n}\n"
			"virtual_device: true\n"
			"ledger {\n  stage: \"kernel\"\n  value: 18446744073709551615\n}\n"
			"blind: \"doorbells\"\n"
			"realtime_offset_ns: -5\n"
			"clock_steps {\n  boot_ns: 9\n  new_offset_ns: -6\n}\n"
			"ended: true\n");
}
