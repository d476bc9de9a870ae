/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ntff_schema_test.c - the schema of device profiles against what is known of the vendor's: 38 messages and
 * two map entries with 207 fields, of these a census by kind, and the numbers that were seen.
 *
 * A vendor's field counts when we declare it under its name.  What is missing, and why, stands here in two
 * tables, by kind and by message: a field more, or of another kind, makes one of them wrong.
 */
#include <stdio.h>
#include <string.h>

#include "proto/neuron_trace.pb-c.h"
#include "proto/ntff.pb-c.h"
#include "tests/shim/shim.h"

#define LENGTH(a) (sizeof(a) / sizeof((a)[0]))

/* ---- kinds -------------------------------------------------------------------------------- */

enum kind {
	K_BOOL,
	K_BYTES,
	K_STRING,
	K_UINT32,
	K_PACKED_UINT32,
	K_UINT64,
	K_OPTIONAL_UINT64,
	K_PACKED_UINT64,
	K_INT32,
	K_INT64,
	K_ENUM,
	K_FLOAT,
	K_DOUBLE,
	K_MESSAGE,
	K_REPEATED_MESSAGE,
	K_ONEOF_MESSAGE,
	K_MAP,
	KINDS,
};

/*
 * By kind: how many the vendor's 207 fields are, and how many of them stand here under their name.  Of uint32
 * there are too many: of our 24 varints whose width is inferred and nine scalars whose type is ours, two at
 * least are of the vendor's ten int32.  dma_queue_usage_info.channel, a message there, is bytes here.
 */
static const struct {
	const char *name;
	unsigned vendor, here;
} census[KINDS] = {
	[K_BOOL] = {"bool", 3, 2},
	[K_BYTES] = {"bytes", 7, 2},
	[K_STRING] = {"string", 21, 9},
	[K_UINT32] = {"uint32", 40, 42},
	[K_PACKED_UINT32] = {"packed uint32", 1, 1},
	[K_UINT64] = {"uint64", 42, 22},
	[K_OPTIONAL_UINT64] = {"optional uint64", 1, 1},
	[K_PACKED_UINT64] = {"packed uint64", 1, 1},
	[K_INT32] = {"int32", 10, 0},
	[K_INT64] = {"int64", 1, 1},
	[K_ENUM] = {"enum", 17, 9},
	[K_FLOAT] = {"float", 3, 2},
	[K_DOUBLE] = {"double", 1, 1},
	[K_MESSAGE] = {"singular message", 22, 12},
	[K_REPEATED_MESSAGE] = {"repeated message", 30, 27},
	[K_ONEOF_MESSAGE] = {"oneof message", 5, 5},
	[K_MAP] = {"map", 2, 2},
};

static bool is_map_entry(const ProtobufCMessageDescriptor *d)
{
	size_t len = strlen(d->short_name);

	return len > 5 && !strcmp(d->short_name + len - 5, "Entry");
}

static enum kind kind_of(const ProtobufCFieldDescriptor *f)
{
	bool repeated = f->label == PROTOBUF_C_LABEL_REPEATED;
	bool oneof = f->flags & PROTOBUF_C_FIELD_FLAG_ONEOF;

	switch (f->type) {
	case PROTOBUF_C_TYPE_BOOL:
		return K_BOOL;
	case PROTOBUF_C_TYPE_BYTES:
		return K_BYTES;
	case PROTOBUF_C_TYPE_STRING:
		return K_STRING;
	case PROTOBUF_C_TYPE_UINT32:
		return f->flags & PROTOBUF_C_FIELD_FLAG_PACKED ? K_PACKED_UINT32 : K_UINT32;
	case PROTOBUF_C_TYPE_UINT64: /* a oneof of one member is how presence is written here */
		return repeated ? K_PACKED_UINT64 : oneof ? K_OPTIONAL_UINT64 : K_UINT64;
	case PROTOBUF_C_TYPE_INT32:
		return K_INT32;
	case PROTOBUF_C_TYPE_INT64:
		return K_INT64;
	case PROTOBUF_C_TYPE_ENUM:
		return K_ENUM;
	case PROTOBUF_C_TYPE_FLOAT:
		return K_FLOAT;
	case PROTOBUF_C_TYPE_DOUBLE:
		return K_DOUBLE;
	case PROTOBUF_C_TYPE_MESSAGE:
		if (is_map_entry(f->descriptor))
			return K_MAP;
		return repeated ? K_REPEATED_MESSAGE : oneof ? K_ONEOF_MESSAGE : K_MESSAGE;
	default:
		return KINDS;
	}
}

/* ---- messages ----------------------------------------------------------------------------- */

#define UNKNOWN 0u

/*
 * The vendor's 38 messages: its number of members where it is known, how many of them stand here under their
 * name, how many fields there are besides that are ours, and why the first two differ.
 */
static const struct {
	const ProtobufCMessageDescriptor *message;
	unsigned vendor, here, ours;
	const char *why;
} messages[] = {
	{&ntff__ntff_info__descriptor, 20, 13, 11,
		"2 are known by type alone, 5 not at all; 10 of those here have numbers of ours"},
	{&ntff__ntrace_info__descriptor, 18, 8, 25,
		"3 are messages without a name, 7 not known at all; no number is known"},
	{&ntff__version_info__descriptor, UNKNOWN, 0, 5, "no member is known"},
	{&ntff__execution_info__descriptor, UNKNOWN, 0, 11, "no member is known"},
	{&ntff__ultraserver_info__descriptor, UNKNOWN, 0, 4, "no member is known"},
	{&ntff__notification_buffer_size__descriptor, 3, 3, 0, NULL},
	{&ntff__neff_node_info__descriptor, 6, 4, 3, "1 has no name; 5 is a text or a message"},
	{&ntff__cpu_node_info__descriptor, 1, 1, 0, NULL},
	{&ntff__nd_node_info__descriptor, 1, 1, 0, NULL},
	{&ntff__outcc_info__descriptor, 5, 5, 0, NULL},
	{&ntff__subgraph_info__descriptor, 17, 17, 1, NULL},
	{&ntff__engine_instruction_info__descriptor, 8, 8, 0, NULL},
	{&ntff__instruction_patch_location__descriptor, UNKNOWN, 0, 0, "no member is known"},
	{&ntff__instruction_patch_info__descriptor, UNKNOWN, 0, 0, "no member is known"},
	{&ntff__desc_block_info__descriptor, 5, 5, 0, NULL},
	{&ntff__dma_queue_usage_info__descriptor, 8, 8, 0, NULL},
	{&ntff__nc_memory_usage__descriptor, UNKNOWN, 0, 2, "no member is known"},
	{&ntff__trace_info__descriptor, UNKNOWN, 2, 7, "of some, 2 names are known"},
	{&ntff__block_timestamp_info__descriptor, 3, 3, 0, NULL},
	{&ntff__nc_timestamp_info__descriptor, 9, 5, 2, "2, 3, 6 and 7 have no name"},
	{&ntff__collectives_stream_info__descriptor, 2, 2, 0, NULL},
	{&ntff__collectives_comm_info__descriptor, 6, 6, 0, NULL},
	{&ntff__collectives_op__descriptor, 6, 6, 0, NULL},
	{&ntff__collectives_op_trace__descriptor, UNKNOWN, 1, 0, "of some, 1 name is known"},
	{&ntff__collectives_op_info__descriptor, UNKNOWN, 0, 0, "no member is known"},
	{&ntff__collectives_semaphore__descriptor, UNKNOWN, 0, 0, "no member is known"},
	{&ntff__collectives_semaphore_update__descriptor, UNKNOWN, 0, 0, "no member is known"},
	{&ntff__collectives_net_idx_update__descriptor, UNKNOWN, 0, 0, "no member is known"},
	{&ntff__collectives_dma_packets__descriptor, 7, 7, 0, NULL},
	{&ntff__collectives_subchannel__descriptor, 4, 4, 0, NULL},
	{&ntff__collectives_channel__descriptor, 3, 3, 0, NULL},
	{&ntff__collectives_info__descriptor, 2, 2, 0, NULL},
	{&ntff__ntrace_event__descriptor, 16, 16, 0, NULL},
	{&ntff__ntrace_data_file__descriptor, UNKNOWN, 0, 4, "no member is known"},
	{&ntff__interned_data_db__descriptor, 2, 1, 0, "1 exists without a name"},
	{&ntff__cpu_util__descriptor, UNKNOWN, 2, 1, "names of a struct that it is made of"},
	{&ntff__host_mem_usage__descriptor, UNKNOWN, 2, 0, "names of a struct that it is made of"},
	{&ntff__host_stats__descriptor, UNKNOWN, 4, 0,
		"names of a struct that it is made of; `samples` may be a number or messages"},
};

/* Fields in them that have no name of the vendor's: NULL stands for all of a message. */
static const struct {
	const char *message, *field;
} ours[] = {
	{"ntff_info", "notification_buffers"},
	{"ntff_info", "ultraserver"},
	{"ntff_info", "sync_points"},
	{"ntff_info", "losses"},
	{"ntff_info", "partial"},
	{"ntff_info", "producer"},
	{"ntff_info", "boot_ns_begin"},
	{"ntff_info", "boot_ns_end"},
	{"ntff_info", "virtual_device"},
	{"ntff_info", "logical_nc"},
	{"ntff_info", "executions_lost"},
	{"version_info", NULL},
	{"ultraserver_info", NULL},
	{"execution_info", NULL},
	{"trace_info", "engine_index"},
	{"trace_info", "offset"},
	{"trace_info", "size"},
	{"trace_info", "nd_idx"},
	{"trace_info", "nc_idx"},
	{"trace_info", "count"},
	{"trace_info", "xxh3"},
	{"neff_node_info", "name"},
	{"neff_node_info", "uuid"},
	{"neff_node_info", "model_id"},
	{"subgraph_info", "instructions"},
	{"nc_memory_usage", NULL},
	{"nc_timestamp_info", "tpb_act"},
	{"nc_timestamp_info", "tpb_dve"},
	{"ntrace_data_file", NULL},
	{"cpu_util", "cpu"},
	{"ntrace_info", "producer"},
	{"ntrace_info", "instance_id"},
	{"ntrace_info", "host"},
	{"ntrace_info", "kernel"},
	{"ntrace_info", "virtual_device"},
	{"ntrace_info", "hooks"},
	{"ntrace_info", "ledger"},
	{"ntrace_info", "blind"},
	{"ntrace_info", "realtime_offset_ns"},
	{"ntrace_info", "clock_steps"},
	{"ntrace_info", "open_spans"},
	{"ntrace_info", "kernel_events"},
	{"ntrace_info", "ended"},
	{"ntrace_info", "agent_cpu_ns"},
	{"ntrace_info", "bytes_recorded"},
	{"ntrace_info", "device_clocks"},
	{"ntrace_info", "suspended_ns"},
	{"ntrace_info", "damage"},
	{"ntrace_info", "begin_ns"},
	{"ntrace_info", "cut"},
	{"ntrace_info", "end"},
	{"ntrace_info", "simulated"},
	{"ntrace_info", "attached"},
	{"ntrace_info", "failures"},
	{"ntrace_info", "session"},
};

static bool is_ours(const ProtobufCMessageDescriptor *d, const ProtobufCFieldDescriptor *f)
{
	for (size_t i = 0; i < LENGTH(ours); i++)
		if (!strcmp(d->name + strlen("ntff."), ours[i].message) &&
			(!ours[i].field || !strcmp(ours[i].field, f->name)))
			return true;
	return false;
}

TEST("ntff schema: the vendor's fields by kind, and which of them are missing", "[ntff]")
{
	unsigned here[KINDS + 1] = {0}, vendor = 0, total = 0, entries = 0;

	for (size_t i = 0; i < LENGTH(messages); i++) {
		const ProtobufCMessageDescriptor *d = messages[i].message;

		for (unsigned k = 0; k < d->n_fields; k++) {
			entries += kind_of(&d->fields[k]) == K_MAP;
			here[kind_of(&d->fields[k])] += !is_ours(d, &d->fields[k]);
		}
	}
	for (unsigned k = 0; k < KINDS; k++) {
		test_info("%s", census[k].name);
		CHECK_EQ(here[k], census[k].here);
		CHECK(census[k].here <= census[k].vendor || k == K_UINT32);
		vendor += census[k].vendor;
		total += census[k].here;
	}
	CHECK_EQ(here[KINDS], 0);
	CHECK_EQ(LENGTH(messages), 38);
	CHECK_EQ(entries, 2);
	CHECK_EQ(vendor, 207);
	CHECK_EQ(total, 139);
}

TEST("ntff schema: where a message lacks members, the reason is known", "[ntff]")
{
	unsigned members = 0, without_number = 0, matched = 0;

	for (size_t i = 0; i < LENGTH(messages); i++) {
		const ProtobufCMessageDescriptor *d = messages[i].message;
		unsigned here = 0, added = 0;

		for (unsigned k = 0; k < d->n_fields; k++)
			*(is_ours(d, &d->fields[k]) ? &added : &here) += 1;
		test_info("%s", d->name);
		CHECK_EQ(here, messages[i].here);
		CHECK_EQ(added, messages[i].ours);
		CHECK((messages[i].vendor == here && here > 0) == !messages[i].why);
		members += messages[i].vendor;
		without_number += messages[i].vendor == UNKNOWN;
		matched += added;
	}
	/* What is left of 207 are the members of the messages whose size is not known. */
	CHECK_EQ(members, 152);
	CHECK_EQ(without_number, 16);
	CHECK_EQ(matched, 76);
}

/* ---- numbers ------------------------------------------------------------------------------ */

#define U32 PROTOBUF_C_TYPE_UINT32
#define U64 PROTOBUF_C_TYPE_UINT64
#define STR PROTOBUF_C_TYPE_STRING
#define MSG PROTOBUF_C_TYPE_MESSAGE
#define ENUM PROTOBUF_C_TYPE_ENUM
#define BOOL PROTOBUF_C_TYPE_BOOL
#define BYTES PROTOBUF_C_TYPE_BYTES

/* All that were seen (C), but those of neuron_trace.proto; no field with another number below 1000 may stand
 * in a message of this table. */
static const struct {
	const ProtobufCMessageDescriptor *message;
	const char *name;
	unsigned number;
	ProtobufCType type;
	const char *of; /* of a message or an enum: its type */
} numbers[] = {
	{&ntff__ntff_info__descriptor, "neuron_runtime_version", 8, MSG, "version_info"},
	{&ntff__ntff_info__descriptor, "neuron_driver_version", 11, MSG, "version_info"},
	{&ntff__ntff_info__descriptor, "neuron_collectives_version", 12, MSG, "version_info"},
	{&ntff__subgraph_info__descriptor, "name", 1, STR, NULL},
	{&ntff__subgraph_info__descriptor, "nd_idx", 2, U32, NULL},
	{&ntff__subgraph_info__descriptor, "nc_idx", 3, U32, NULL},
	{&ntff__subgraph_info__descriptor, "instruction_info", 4, MSG, "engine_instruction_info"},
	{&ntff__subgraph_info__descriptor, "patch_info", 5, MSG, "instruction_patch_info"},
	{&ntff__subgraph_info__descriptor, "traces", 6, MSG, "trace_info"},
	{&ntff__subgraph_info__descriptor, "dma_queue_usage", 7, MSG, "dma_queue_usage_info"},
	{&ntff__subgraph_info__descriptor, "io_dma_data_host", 8, BOOL, NULL},
	{&ntff__subgraph_info__descriptor, "coll_info", 9, MSG, "collectives_info"},
	{&ntff__subgraph_info__descriptor, "timestamp_info", 10, MSG, "nc_timestamp_info"},
	{&ntff__subgraph_info__descriptor, "memory_usage_breakdown", 11, MSG, "nc_memory_usage"},
	{&ntff__subgraph_info__descriptor, "collectives_dma_info", 12, MSG, "collectives_channel"},
	{&ntff__subgraph_info__descriptor, "collectives_instruction_info", 13, MSG,
		"engine_instruction_info"},
	{&ntff__subgraph_info__descriptor, "exec_duration", 14, U64, NULL},
	{&ntff__subgraph_info__descriptor, "cc_op_info", 15, MSG, "collectives_op_info"},
	{&ntff__subgraph_info__descriptor, "comm_info", 16, MSG, "collectives_comm_info"},
	{&ntff__subgraph_info__descriptor, "stream_info", 17, MSG, "collectives_stream_info"},
	{&ntff__notification_buffer_size__descriptor, "block_type", 1, ENUM, "block_type"},
	{&ntff__notification_buffer_size__descriptor, "trace_type", 2, ENUM,
		"notification_trace_type"},
	{&ntff__notification_buffer_size__descriptor, "buffer_size", 3, U64, NULL},
	{&ntff__engine_instruction_info__descriptor, "start_address", 1, U64, NULL},
	{&ntff__engine_instruction_info__descriptor, "nc_engine_type", 2, ENUM, "nc_engine_type"},
	{&ntff__engine_instruction_info__descriptor, "instructions", 3, BYTES, NULL},
	{&ntff__engine_instruction_info__descriptor, "engine_index", 4, U32, NULL},
	{&ntff__engine_instruction_info__descriptor, "block_type", 5, ENUM, "block_type"},
	{&ntff__engine_instruction_info__descriptor, "function_section", 6, BOOL, NULL},
	{&ntff__engine_instruction_info__descriptor, "instructions_offset", 7, U64, NULL},
	{&ntff__engine_instruction_info__descriptor, "instructions_size", 8, U64, NULL},
	{&ntff__dma_queue_usage_info__descriptor, "engine_index", 1, U32, NULL},
	{&ntff__dma_queue_usage_info__descriptor, "queue_index", 2, U32, NULL},
	{&ntff__dma_queue_usage_info__descriptor, "queue_type", 3, ENUM, "dma_queue_type"},
	{&ntff__dma_queue_usage_info__descriptor, "name", 4, STR, NULL},
	{&ntff__dma_queue_usage_info__descriptor, "desc_block_info", 5, MSG, "desc_block_info"},
	{&ntff__dma_queue_usage_info__descriptor, "dma_tracing_event_id", 6, U32, NULL},
	{&ntff__dma_queue_usage_info__descriptor, "axi_port", 7, U32, NULL},
	{&ntff__dma_queue_usage_info__descriptor, "channel", 8, BYTES, NULL},
	{&ntff__desc_block_info__descriptor, "block_id", 1, U32, NULL},
	{&ntff__desc_block_info__descriptor, "packet_count", 2, U32, NULL},
	{&ntff__desc_block_info__descriptor, "m2s_desc_count", 3, U32, NULL},
	{&ntff__desc_block_info__descriptor, "s2m_desc_count", 4, U32, NULL},
	{&ntff__desc_block_info__descriptor, "function_name", 5, STR, NULL},
	{&ntff__collectives_info__descriptor, "channels", 1, MSG, "collectives_channel"},
	{&ntff__collectives_info__descriptor, "topsp", 2, MSG, "engine_instruction_info"},
	{&ntff__collectives_channel__descriptor, "name", 1, STR, NULL},
	{&ntff__collectives_channel__descriptor, "subchannels", 3, MSG, "collectives_subchannel"},
	{&ntff__collectives_channel__descriptor, "engine_index", 4, U32, NULL},
	{&ntff__collectives_subchannel__descriptor, "index", 1, U32, NULL},
	{&ntff__collectives_subchannel__descriptor, "dma", 2, MSG, "dma_queue_usage_info"},
	{&ntff__collectives_subchannel__descriptor, "semaphore", 3, MSG, "collectives_semaphore"},
	{&ntff__collectives_subchannel__descriptor, "packets", 4, MSG, "collectives_dma_packets"},
	{&ntff__collectives_dma_packets__descriptor, "type", 1, ENUM, "collectives_packet_type"},
	{&ntff__collectives_dma_packets__descriptor, "size", 2, U32, NULL},
	{&ntff__collectives_dma_packets__descriptor, "neigh", 3, U32, NULL},
	{&ntff__collectives_dma_packets__descriptor, "sema_update", 4, MSG,
		"collectives_semaphore_update"},
	{&ntff__collectives_dma_packets__descriptor, "net_idx_update", 5, MSG,
		"collectives_net_idx_update"},
	{&ntff__collectives_dma_packets__descriptor, "op_idx", 6, U32, NULL},
	{&ntff__collectives_dma_packets__descriptor, "stream_idx", 7, U32, NULL},
	{&ntff__collectives_op__descriptor, "type", 1, U32, NULL},
	{&ntff__collectives_op__descriptor, "algorithm", 2, U32, NULL},
	{&ntff__collectives_op__descriptor, "num_elements", 3, U64, NULL},
	{&ntff__collectives_op__descriptor, "comm_id", 4, U32, NULL},
	{&ntff__collectives_op__descriptor, "data_type", 5, U32, NULL},
	{&ntff__collectives_op__descriptor, "algorithm_name", 6, STR, NULL},
	{&ntff__collectives_comm_info__descriptor, "id", 1, U32, NULL},
	{&ntff__collectives_comm_info__descriptor, "rank", 2, U32, NULL},
	{&ntff__collectives_comm_info__descriptor, "rank_n", 3, U32, NULL},
	{&ntff__collectives_comm_info__descriptor, "node_n", 4, U32, NULL},
	{&ntff__collectives_comm_info__descriptor, "local_rank_n", 5, U32, NULL},
	{&ntff__collectives_comm_info__descriptor, "stream_id", 6, U32, NULL},
	{&ntff__collectives_stream_info__descriptor, "cc_core_id", 1, U64, NULL},
	{&ntff__collectives_stream_info__descriptor, "id", 2, STR, NULL},
	{&ntff__nc_timestamp_info__descriptor, "tpb_pe", 1, MSG, "block_timestamp_info"},
	{&ntff__nc_timestamp_info__descriptor, "tpb_pool", 4, MSG, "block_timestamp_info"},
	{&ntff__nc_timestamp_info__descriptor, "tpb_sp", 5, MSG, "block_timestamp_info"},
	{&ntff__nc_timestamp_info__descriptor, "dma", 8, MSG, "block_timestamp_info"},
	{&ntff__nc_timestamp_info__descriptor, "top_sp", 9, MSG, "block_timestamp_info"},
	{&ntff__block_timestamp_info__descriptor, "init_timestamp", 1, U64, NULL},
	{&ntff__block_timestamp_info__descriptor, "actual_timestamp_inc", 2, U64, NULL},
	{&ntff__block_timestamp_info__descriptor, "expected_timestamp_inc", 3, U64, NULL},
	{&ntff__neff_node_info__descriptor, "runtime_latency", 2, PROTOBUF_C_TYPE_DOUBLE, NULL},
	{&ntff__neff_node_info__descriptor, "cpu_node", 3, MSG, "cpu_node_info"},
	{&ntff__neff_node_info__descriptor, "nd_node", 4, MSG, "nd_node_info"},
	{&ntff__neff_node_info__descriptor, "outcc", 6, MSG, "outcc_info"},
};

static const char *type_name(const ProtobufCFieldDescriptor *f)
{
	if (f->type == MSG)
		return ((const ProtobufCMessageDescriptor *)f->descriptor)->name + strlen("ntff.");
	if (f->type == ENUM)
		return ((const ProtobufCEnumDescriptor *)f->descriptor)->name + strlen("ntff.");
	return "";
}

TEST("ntff schema: numbers that were seen stand at their fields", "[ntff]")
{
	for (size_t i = 0; i < LENGTH(numbers); i++) {
		const ProtobufCFieldDescriptor *f = protobuf_c_message_descriptor_get_field_by_name(
			numbers[i].message, numbers[i].name);

		test_info("%s.%s", numbers[i].message->name, numbers[i].name);
		REQUIRE(f != NULL);
		CHECK_EQ(f->id, numbers[i].number);
		CHECK_EQ(f->type, numbers[i].type);
		CHECK_STR(type_name(f), numbers[i].of ? numbers[i].of : "");
	}
}

TEST("ntff schema: beside numbers that were seen, ours are 1000 and more", "[ntff]")
{
	for (size_t i = 0; i < LENGTH(numbers); i++) {
		const ProtobufCMessageDescriptor *d = numbers[i].message;
		unsigned low = 0, seen = 0;

		for (unsigned k = 0; k < d->n_fields; k++)
			low += d->fields[k].id < 1000;
		for (size_t k = 0; k < LENGTH(numbers); k++)
			seen += numbers[k].message == d;
		test_info("%s", d->name);
		CHECK_EQ(low, seen);
	}
}

/* ---- enums -------------------------------------------------------------------------------- */

TEST("ntff schema: values of enums are those that were seen", "[ntff]")
{
	static const struct {
		const ProtobufCEnumDescriptor *d;
		const char *text;
	} rows[] = {
		{&ntff__nc_engine_type__descriptor,
			"NC_ENGINE_PE 0, NC_ENGINE_ACT 1, NC_ENGINE_POOL 2, NC_ENGINE_DVE 3, "
			"NC_ENGINE_SP 4, "},
		{&ntff__block_type__descriptor, "BLOCK_NC 0, BLOCK_DMA 1, BLOCK_TOPSP 2, "},
		{&ntff__notification_trace_type__descriptor,
			"NOTIFICATION_INSTRUCTION 0, NOTIFICATION_EVENT 1, NOTIFICATION_ERROR 2, "
			"NOTIFICATION_EXPLICIT 3, NOTIFICATION_DMA 4, NOTIFICATION_THROTTLE 5, "},
		{&ntff__dma_queue_type__descriptor,
			"DMA_QUEUE_UNKNOWN 0, DMA_QUEUE_INSTRUCTIONS 1, DMA_QUEUE_WEIGHTS 2, "
			"DMA_QUEUE_INPUT 3, DMA_QUEUE_OUTPUT 4, DMA_QUEUE_H2T 6, "},
		{&ntff__collectives_packet_type__descriptor,
			"COLLECTIVES_PACKET_MEMCPY 0, COLLECTIVES_PACKET_ADD 1, "
			"COLLECTIVES_PACKET_SEMA_UPDATE_RECV 2, "
			"COLLECTIVES_PACKET_SEMA_UPDATE_SEND 3, "
			"COLLECTIVES_PACKET_NET_IDX_UPDATE 4, "},
		{&ntff__instruction_patch_type__descriptor,
			"INSTRUCTION_PATCH_INSERT 0, INSTRUCTION_PATCH_MODIFY 1, "
			"INSTRUCTION_PATCH_DELETE 2, "},
	};

	for (size_t i = 0; i < LENGTH(rows); i++) {
		char text[512] = "";
		size_t len = 0;

		for (unsigned k = 0; k < rows[i].d->n_values && len < sizeof(text); k++)
			len += (size_t)snprintf(text + len, sizeof(text) - len, "%s %d, ",
				rows[i].d->values[k].name, rows[i].d->values[k].value);
		CHECK_STR(text, rows[i].text);
	}
}
