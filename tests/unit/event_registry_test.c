/* SPDX-License-Identifier: Apache-2.0 */
/*
 * event_registry_test.c - the table of event types is complete, fits its payloads, and the C
 * structures of payload.h lie where its rows say.
 */
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "runtime/trace/event_registry.h"
#include "runtime/trace/payload.h"
#include "tests/shim/shim.h"

static const unsigned widths[] = {
	[FIELD_U8] = 1, [FIELD_U16] = 2, [FIELD_U32] = 4, [FIELD_U64] = 8, [FIELD_I32] = 4};

TEST("registry: 46 types in order, found by number and by name", "[registry]")
{
	CHECK_EQ(TRACE_HOSTCC_WAIT, 45);
	for (uint32_t i = 0; i < TRACE_TYPE_COUNT; i++) {
		const struct trace_event_info *e = trace_event_info(i);

		REQUIRE(e != NULL);
		CHECK_EQ(e->number, i);
		REQUIRE(e->name != NULL);
		CHECK_EQ(trace_event_by_name(e->name), i);
	}
	CHECK(trace_event_info(46) == NULL);
	CHECK(trace_event_info(UINT32_MAX) == NULL);
	CHECK_EQ(trace_event_by_name("nc_exec_runnin"), -ENOENT);
	CHECK_EQ(trace_event_by_name(""), -ENOENT);
}

TEST("registry: hardware types are those of the vendor's mask", "[registry]")
{
	uint64_t mask = 0;

	for (uint32_t i = 0; i < TRACE_TYPE_COUNT; i++)
		if (trace_event_info(i)->category == TRACE_HARDWARE)
			mask |= 1ull << i;
	CHECK_EQ(mask, 0x70021C0);
}

TEST("registry: fields lie in the payload and do not overlap", "[registry]")
{
	for (uint32_t i = 0; i < TRACE_TYPE_COUNT; i++) {
		const struct trace_event_info *e = trace_event_info(i);
		uint64_t used[2] = {0, 0};
		uint32_t names[2] = {0, 0}; /* event_json.c has room for one */

		test_info("type %u %s", i, e->name);
		for (uint32_t k = 0; k < e->field_count; k++) {
			const struct trace_field *f = &e->fields[k];
			uint64_t bits = (1ull << widths[f->width]) - 1;

			REQUIRE(f->key != NULL);
			CHECK(f->phase == TRACE_START || f->phase == TRACE_STOP);
			CHECK(f->offset + widths[f->width] <= TRACE_PAYLOAD_BYTES);
			CHECK_EQ(f->offset % widths[f->width], 0);
			CHECK((used[f->phase] & bits << f->offset) == 0);
			used[f->phase] |= bits << f->offset;
			names[f->phase] += f->form == FORM_INTERNED;
		}
		CHECK(names[TRACE_START] <= 1 && names[TRACE_STOP] <= 1);
	}
}

TEST("registry: retired names have a type of today, newer ones none, and none is a name of today",
	"[registry]")
{
	static const char *const retired[] = {"model_load", "runtime_execute", "device_exec",
		"cc_exec", "tensor_read", "tensor_write", "dlr_infer", "kbl_infer_exec_wait"};

	for (size_t i = 0; i < sizeof(retired) / sizeof(retired[0]); i++) {
		CHECK(trace_event_by_other_name(retired[i]) > 0);
		CHECK_EQ(trace_event_by_name(retired[i]), -ENOENT);
	}
	CHECK_EQ(trace_event_by_other_name("nrta_execute_schedule"), -ENOTSUP);
	CHECK_EQ(trace_event_by_other_name("nrt_profile_add_node_info"), -ENOTSUP);
	CHECK_EQ(trace_event_by_other_name("nrt_execute"), -ENOENT);
}

/* Value of the field with this key, from a payload. */
static long long value_of(enum trace_type type, enum trace_phase phase, const char *key,
	const void *payload, size_t size)
{
	const struct trace_event_info *e = trace_event_info(type);
	uint8_t data[TRACE_PAYLOAD_BYTES] = {0};

	memcpy(data, payload, size);
	for (uint32_t k = 0; k < e->field_count; k++)
		if (e->fields[k].phase == phase && !strcmp(e->fields[k].key, key))
			return (long long)trace_field_value(&e->fields[k], data);
	return -1;
}

#define SHOWN(type, phase, payload, key) \
	value_of(TRACE_##type, TRACE_##phase, key, &(payload), sizeof(payload))

TEST("registry: payload structures agree with the rows", "[registry]")
{
	struct trace_device_exec run = {
		.device_core_idx = 3, .exec_id = 7, .sync = {11, 12}, .model_id = 1ull << 50};
	struct trace_device_stop end = {.sync = {21, 22}};
	struct trace_timestamp_sync sync = {.exec_id = 5, .sync = {31, 32}, .sync_bound_ns = 33};
	struct trace_exec wait = {.exec_id = 41, .model_id = 42};
	struct trace_tensor tensor = {.tensor_id = 51, .size = 52, .ref_count = 53};
	struct trace_model_switch swap = {
		.device_core_idx = 61, .model_id = 62, .is_neuron_core_work = 1};
	struct trace_model model = {.model_id = 71};
	struct trace_tensor_batch batch = {.num_batches = 81};
	struct trace_tensor_block block = {82, 83, 84};

	CHECK_EQ(SHOWN(DEVICE_EXEC, START, run, "device_core_idx"), 3);
	CHECK_EQ(SHOWN(DEVICE_EXEC, START, run, "exec_id"), 7);
	CHECK_EQ(SHOWN(DEVICE_EXEC, START, run, "nc_timestamp_ns"), 11);
	CHECK_EQ(SHOWN(DEVICE_EXEC, START, run, "model_id"), 1ll << 50);
	CHECK_EQ(SHOWN(DEVICE_EXEC, STOP, end, "nc_timestamp_ns"), 21);
	CHECK_EQ(SHOWN(TIMESTAMP_SYNC, START, sync, "exec_id"), 5);
	CHECK_EQ(SHOWN(TIMESTAMP_SYNC, START, sync, "nc_timestamp_ns"), 31);
	CHECK_EQ(SHOWN(TIMESTAMP_SYNC, START, sync, "cpu_timestamp_ns"), 32);
	CHECK_EQ(SHOWN(TIMESTAMP_SYNC, START, sync, "sync_bound_ns"), 33);
	CHECK_EQ(SHOWN(EXEC_WAIT, START, wait, "exec_id"), 41);
	CHECK_EQ(SHOWN(EXEC_WAIT, START, wait, "model_id"), 42);
	CHECK_EQ(SHOWN(TENSOR_FREE, START, tensor, "tensor_id"), 51);
	CHECK_EQ(SHOWN(TENSOR_FREE, START, tensor, "size"), 52);
	CHECK_EQ(SHOWN(TENSOR_FREE, START, tensor, "ref_count"), 53);
	CHECK_EQ(SHOWN(TENSOR_WRITE, START, tensor, "size"), 52);
	CHECK_EQ(SHOWN(TENSOR_READ_BATCH, START, batch, "num_batches"), 81);
	CHECK_EQ(SHOWN(TENSOR_BLOCK_WHILE_EXEC, START, block, "tensor_id"), 82);
	CHECK_EQ(SHOWN(TENSOR_BLOCK_WHILE_EXEC, START, block, "pending_reader_count"), 83);
	CHECK_EQ(SHOWN(TENSOR_BLOCK_WHILE_EXEC, START, block, "pending_writer_count"), 84);
	CHECK_EQ(SHOWN(MODEL_SWITCH, START, swap, "device_core_idx"), 61);
	CHECK_EQ(SHOWN(MODEL_SWITCH, START, swap, "model_id"), 62);
	CHECK_EQ(SHOWN(MODEL_SWITCH, START, swap, "is_neuron_core_work"), 1);
	CHECK_EQ(SHOWN(MODEL_LOAD, STOP, model, "model_id"), 71);
	CHECK_EQ(SHOWN(EXECUTE_API, START, model, "model_id"), 71);
	CHECK_EQ(SHOWN(MODEL_SUBMIT, START, model, "model_id"), 71);
}

TEST("registry: payloads of the device's side agree with the rows", "[registry]")
{
	struct trace_device_stop stop = {.sync = {1, 2}};
	struct trace_cc_exec cc = {3, 4, 5, 0, {6, 7}, 8, 9};
	struct trace_cc_barrier barrier = {11, 12, 13, {14, 15}};
	struct trace_nc_model_switch swap = {21, 0, 22, 23, {24, 25}};
	struct trace_hw_notify other = {31, 32, 0, 33, 0, 34, {35, 36}};
	struct trace_enc_barrier host = {-1, 0, 41, 42, 0};
	struct trace_device_exec error = {51, 52, {53, 54}, 0, 55};
	struct trace_load_collectives load = {61, 62};

	CHECK_EQ(SHOWN(CC_EXEC, START, cc, "gid"), 3);
	CHECK_EQ(SHOWN(CC_EXEC, START, cc, "op_id"), 4);
	CHECK_EQ(SHOWN(CC_EXEC, START, cc, "exec_id"), 5);
	CHECK_EQ(SHOWN(CC_EXEC, START, cc, "nc_timestamp_ns"), 6);
	CHECK_EQ(SHOWN(CC_EXEC, START, cc, "algorithm"), 8);
	CHECK_EQ(SHOWN(CC_EXEC, START, cc, "device_core_idx"), 9);
	CHECK_EQ(SHOWN(CC_EXEC, STOP, stop, "nc_timestamp_ns"), 1);
	CHECK_EQ(SHOWN(CC_EXEC_BARRIER, START, barrier, "model_id"), 11);
	CHECK_EQ(SHOWN(CC_EXEC_BARRIER, START, barrier, "exec_id"), 12);
	CHECK_EQ(SHOWN(CC_EXEC_BARRIER, START, barrier, "device_core_idx"), 13);
	CHECK_EQ(SHOWN(CC_EXEC_BARRIER, START, barrier, "nc_timestamp_ns"), 14);
	CHECK_EQ(SHOWN(CC_EXEC_BARRIER, STOP, stop, "nc_timestamp_ns"), 1);
	CHECK_EQ(SHOWN(NC_MODEL_SWITCH, START, swap, "device_core_idx"), 21);
	CHECK_EQ(SHOWN(NC_MODEL_SWITCH, START, swap, "model_id"), 22);
	CHECK_EQ(SHOWN(NC_MODEL_SWITCH, START, swap, "exec_id"), 23);
	CHECK_EQ(SHOWN(NC_MODEL_SWITCH, START, swap, "nc_timestamp_ns"), 24);
	CHECK_EQ(SHOWN(HW_NOTIFY, START, other, "device_core_idx"), 31);
	CHECK_EQ(SHOWN(HW_NOTIFY, START, other, "hint"), 32);
	CHECK_EQ(SHOWN(HW_NOTIFY, START, other, "custom_data"), 33);
	CHECK_EQ(SHOWN(HW_NOTIFY, START, other, "exec_id"), 34);
	CHECK_EQ(SHOWN(HW_NOTIFY, START, other, "nc_timestamp_ns"), 35);
	CHECK_EQ((int32_t)SHOWN(ENC_BARRIER, START, host, "peer_id"), -1);
	CHECK_EQ(SHOWN(ENC_BARRIER, START, host, "exec_id"), 41);
	CHECK_EQ(SHOWN(ENC_BARRIER, START, host, "nec_dev_id"), 42);
	CHECK_EQ(SHOWN(NUM_ERR, START, error, "device_core_idx"), 51);
	CHECK_EQ(SHOWN(NUM_ERR, START, error, "exec_id"), 52);
	CHECK_EQ(SHOWN(NUM_ERR, START, error, "nc_timestamp_ns"), 53);
	CHECK_EQ(SHOWN(NUM_ERR, START, error, "model_id"), 55);
	CHECK_EQ(SHOWN(CC_LOAD, START, load, "g_device_id"), 61);
	CHECK_EQ(SHOWN(CC_LOAD, START, load, "g_device_count"), 62);
}

TEST("registry: payloads of device memory agree with the rows", "[registry]")
{
	struct trace_dmem_copy copy = {
		.mem_type = 2, .mem_handle = 1ull << 40, .offset = 0xfffffff0u, .size = 9};
	struct trace_mem_alloc alloc = {
		.hbm_idx = 1, .usage_type = 12, .is_nc_hbm = 1, .mla_idx = 4};
	struct trace_mem_alloc_stop got = {1, 2, 3, 4, 5};
	struct trace_mem_free gone = {.hbm_idx = 1,
		.is_nc_hbm = 1,
		.mla_idx = 2,
		.usage_type = 12,
		.physical_address = 6};
	struct trace_mem_free_stop freed = {7, 8, 9};
	struct trace_dmem_batch batch = {
		.mem_type = 2, .num_batches = 91, .total_num_ops = 92, .total_size = 1ull << 41};

	CHECK_EQ(SHOWN(DMEM_BUF_COPYIN, START, copy, "mem_type"), 2);
	CHECK_EQ(SHOWN(DMEM_BUF_COPYIN, START, copy, "mem_handle"), 1ll << 40);
	CHECK_EQ(SHOWN(DMEM_BUF_COPYIN, START, copy, "offset"), 0xfffffff0ll);
	CHECK_EQ(SHOWN(DMEM_BUF_COPYOUT, START, copy, "size"), 9);
	CHECK_EQ(SHOWN(DMEM_BUF_BATCH_COPYIN, START, batch, "mem_type"), 2);
	CHECK_EQ(SHOWN(DMEM_BUF_BATCH_COPYIN, START, batch, "num_batches"), 91);
	CHECK_EQ(SHOWN(DMEM_BUF_BATCH_COPYOUT, START, batch, "total_num_ops"), 92);
	CHECK_EQ(SHOWN(DMEM_BUF_BATCH_COPYOUT, START, batch, "total_size"), 1ll << 41);
	CHECK_EQ(SHOWN(DMA_MEM_ALLOC, START, alloc, "hbm_idx"), 1);
	CHECK_EQ(SHOWN(DMA_MEM_ALLOC, START, alloc, "usage_type"), 12);
	CHECK_EQ(SHOWN(DMA_MEM_ALLOC, START, alloc, "is_nc_hbm"), 1);
	CHECK_EQ(SHOWN(DMA_MEM_ALLOC, START, alloc, "is_aligned"), 0);
	CHECK_EQ(SHOWN(DMA_MEM_ALLOC, START, alloc, "mla_idx"), 4);
	CHECK_EQ(SHOWN(DMA_MEM_ALLOC, STOP, got, "allocated_bytes"), 1);
	CHECK_EQ(SHOWN(DMA_MEM_ALLOC, STOP, got, "physical_address"), 2);
	CHECK_EQ(SHOWN(DMA_MEM_ALLOC, STOP, got, "return_code"), 3);
	CHECK_EQ(SHOWN(DMA_MEM_ALLOC, STOP, got, "usage_type_total_bytes"), 4);
	CHECK_EQ(SHOWN(DMA_MEM_ALLOC, STOP, got, "total_bytes"), 5);
	CHECK_EQ(SHOWN(DMA_MEM_DEALLOC, START, gone, "is_nc_hbm"), 1);
	CHECK_EQ(SHOWN(DMA_MEM_DEALLOC, START, gone, "mla_idx"), 2);
	CHECK_EQ(SHOWN(DMA_MEM_DEALLOC, START, gone, "usage_type"), 12);
	CHECK_EQ(SHOWN(DMA_MEM_DEALLOC, START, gone, "physical_address"), 6);
	CHECK_EQ(SHOWN(DMA_MEM_DEALLOC, STOP, freed, "freed_bytes"), 7);
	CHECK_EQ(SHOWN(DMA_MEM_DEALLOC, STOP, freed, "usage_type_total_bytes"), 8);
	CHECK_EQ(SHOWN(DMA_MEM_DEALLOC, STOP, freed, "total_bytes"), 9);
}

TEST("registry: values become text by their form and stay in the buffer", "[registry]")
{
	static const struct {
		struct trace_field field;
		uint64_t value;
		const char *text;
	} rows[] = {
		{{0, FIELD_U64, FORM_DEC, 0, "k"}, UINT64_MAX, "18446744073709551615"},
		{{0, FIELD_I32, FORM_DEC, 0, "k"}, (uint64_t)-5, "-5"},
		{{0, FIELD_U64, FORM_HEX, 0, "k"}, 0xabc, "0xabc"},
		{{0, FIELD_U64, FORM_ADDRESS, 0, "k"}, 0xabc, "0xabc"},
		{{0, FIELD_U8, FORM_BOOL, 0, "k"}, 1, "true"},
		{{0, FIELD_U8, FORM_BOOL, 0, "k"}, 0, "false"},
		{{0, FIELD_U32, FORM_USAGE, 0, "k"}, 12, "TENSOR"},
		{{0, FIELD_U32, FORM_USAGE, 0, "k"}, 21, "DMA_RING_COLLECTIVES"},
		{{0, FIELD_U32, FORM_USAGE, 0, "k"}, 22, "22"},
		{{0, FIELD_U64, FORM_INTERNED, 0, "k"}, 77, "77"},
		{{0, FIELD_U64, FORM_HOST_NS, 0, "k"}, 78, "78"},
	};
	uint8_t negative[TRACE_PAYLOAD_BYTES] = {0xfb, 0xff, 0xff, 0xff};
	char text[64], tiny[4];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		CHECK_EQ(trace_field_text(&rows[i].field, rows[i].value, text, sizeof(text)),
			strlen(rows[i].text));
		CHECK_STR(text, rows[i].text);
	}
	CHECK_EQ((int64_t)trace_field_value(&rows[1].field, negative), -5);
	CHECK_EQ(trace_field_text(&rows[0].field, UINT64_MAX, tiny, sizeof(tiny)), 3);
	CHECK_STR(tiny, "184");
}

TEST("registry: the hash is stable within a build and not trivial", "[registry]")
{
	uint64_t hash = trace_registry_hash();

	CHECK(hash != 0);
	CHECK_EQ(trace_registry_hash(), hash);
}
