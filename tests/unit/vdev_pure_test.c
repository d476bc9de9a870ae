/* SPDX-License-Identifier: Apache-2.0 */
/* vdev_pure_test.c - the parts of the virtual device that need no device: sums, marks, argument
 * structures. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "nrt/nrt.h"
#include "runtime/vdev/arithmetic.h"
#include "runtime/vdev/core_marks.h"
#include "runtime/vdev/memory.h"
#include "tests/shim/shim.h"
#include "vmlinux/ioctl_table.h"
#include "vmlinux/neuron_args.h"

TEST("vdev: every 16-bit float survives the way to float and back", "[vdev]")
{
	unsigned wrong = 0;

	for (unsigned bits = 0; bits < 65536; bits++) {
		bool nan16 = (bits & 0x7c00) == 0x7c00 && (bits & 0x3ff);
		bool nan_b = (bits & 0x7f80) == 0x7f80 && (bits & 0x7f);
		float half = vdev_float16_to_float((uint16_t)bits);
		float brain = vdev_bfloat16_to_float((uint16_t)bits);

		if (nan16 ? !isnan(half) ||
					!isnan(vdev_float16_to_float(vdev_float_to_float16(half)))
			  : vdev_float_to_float16(half) != bits)
			wrong++;
		if (nan_b ? !isnan(brain) || !isnan(vdev_bfloat16_to_float(
						     vdev_float_to_bfloat16(brain)))
			  : vdev_float_to_bfloat16(brain) != bits)
			wrong++;
	}
	CHECK_EQ(wrong, 0);
}

TEST("vdev: conversion to 16-bit floats rounds to nearest, ties to even", "[vdev]")
{
	static const struct {
		float value;
		uint16_t half, brain;
	} rows[] = {
		{0.0f, 0x0000, 0x0000},
		{-0.0f, 0x8000, 0x8000},
		{1.0f, 0x3c00, 0x3f80},
		{-2.5f, 0xc100, 0xc020},
		{0x1.002p0f, 0x3c00, 0x3f80}, /* half: tie, even below */
		{0x1.006p0f, 0x3c02, 0x3f80}, /* half: tie, even above */
		{0x1.01p0f, 0x3c04, 0x3f80},  /* bfloat16: tie, even below */
		{0x1.03p0f, 0x3c0c, 0x3f82},  /* bfloat16: tie, even above */
		{65504.0f, 0x7bff, 0x4780},
		{65519.0f, 0x7bff, 0x4780}, /* below the half's tie to infinity */
		{65520.0f, 0x7c00, 0x4780},
		{0x1p-24f, 0x0001, 0x3380}, /* smallest half */
		{0x1p-25f, 0x0000, 0x3300}, /* tie to zero */
		{0x1.000002p-25f, 0x0001, 0x3300},
		{0x1.ff8p-15f, 0x03ff, 0x3880}, /* largest subnormal half */
		{0x1.ffcp-15f, 0x0400, 0x3880}, /* tie into the normal ones */
		{0x1.fffffep127f, 0x7c00, 0x7f80},
		{INFINITY, 0x7c00, 0x7f80},
		{-INFINITY, 0xfc00, 0xff80},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		test_info("value %a", (double)rows[i].value);
		CHECK_EQ(vdev_float_to_float16(rows[i].value), rows[i].half);
		CHECK_EQ(vdev_float_to_bfloat16(rows[i].value), rows[i].brain);
	}
	CHECK(isnan(vdev_float16_to_float(vdev_float_to_float16(NAN))));
	CHECK(isnan(vdev_bfloat16_to_float(vdev_float_to_bfloat16(NAN))));
}

TEST("vdev: every type adds, integers wrap, operands may be unaligned", "[vdev]")
{
	static const struct {
		uint32_t dtype;
		size_t bytes;
		uint64_t a, b, sum; /* bit patterns */
	} rows[] = {
		{NRT_DTYPE_UINT8, 1, 200, 100, 44},
		{NRT_DTYPE_INT8, 1, 0x7f, 1, 0x80},
		{NRT_DTYPE_UINT16, 2, 65535, 3, 2},
		{NRT_DTYPE_INT16, 2, 0x8000, 0xffff, 0x7fff},
		{NRT_DTYPE_UINT32, 4, 0xfffffffeu, 5, 3},
		{NRT_DTYPE_INT32, 4, 0xfffffff6u, 7, 0xfffffffdu},
		{NRT_DTYPE_UINT64, 8, UINT64_MAX, 2, 1},
		{NRT_DTYPE_INT64, 8, (uint64_t)-5, 3, (uint64_t)-2},
		{NRT_DTYPE_FLOAT32, 4, 0x3fc00000u, 0x40100000u, 0x40700000u}, /* 1.5 + 2.25 */
		{NRT_DTYPE_BFLOAT16, 2, 0x3fc0, 0x4010, 0x4070},
		{NRT_DTYPE_FLOAT16, 2, 0x3e00, 0x4080, 0x4380},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint8_t a[27] = {0}, b[27] = {0}, dst[27] = {0}, want[27] = {0};
		size_t n = rows[i].bytes;

		test_info("dtype %u", rows[i].dtype);
		for (size_t e = 0; e < 3; e++) {
			memcpy(a + 1 + e * n, &rows[i].a, n);
			memcpy(b + 1 + e * n, &rows[i].b, n);
			memcpy(want + 1 + e * n, &rows[i].sum, n);
		}
		REQUIRE(vdev_can_add(rows[i].dtype));
		CHECK_EQ(vdev_dtype_bytes(rows[i].dtype), n);
		vdev_add(rows[i].dtype, dst + 1, a + 1, b + 1, 3);
		CHECK(memcmp(dst, want, sizeof(dst)) == 0);
		vdev_add(rows[i].dtype, a + 1, a + 1, b + 1, 3); /* in place */
		CHECK(memcmp(a, want, sizeof(a)) == 0);
	}
	CHECK(!vdev_can_add(0));
	CHECK(!vdev_can_add(NRT_DTYPE_FP8_E4));
	CHECK(!vdev_can_add(16));
	CHECK_EQ(vdev_dtype_bytes(0), 0);
	CHECK_EQ(vdev_dtype_bytes(16), 0);
	CHECK_EQ(vdev_dtype_bytes(UINT32_MAX), 0);
}

TEST("vdev: the mark search takes the first window and steps two past a blocked core", "[vdev]")
{
	static const struct {
		const char *owners; /* '.' free */
		unsigned first, last, count;
		int found;
		unsigned free;
	} rows[] = {
		{"........", 0, 7, 1, 0, 8},
		{"........", 0, 7, 8, 0, 8},
		{"........", 3, 5, 3, 3, 3},
		{"x.......", 0, 7, 2, 2, 7},	  /* core 1 is stepped over */
		{"x.......", 0, 7, 7, -EBUSY, 7}, /* and so the only window of 7 is missed */
		{"..x.....", 0, 7, 3, 4, 5},
		{"x.x.x.x.", 0, 7, 1, -EBUSY, 1}, /* each step lands on a taken core */
		{".x.x.x.x", 0, 7, 1, 0, 1},
		{"xxxxxxxx", 0, 7, 1, -EBUSY, 0},
		{"........", 0, 7, 9, -EBUSY, 8},
		{"....xxxx", 2, 7, 3, -EBUSY, 2},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		pid_t owner[8];
		unsigned longest = 99;

		test_info("%s, %u in [%u, %u]", rows[i].owners, rows[i].count, rows[i].first,
			rows[i].last);
		for (unsigned c = 0; c < 8; c++)
			owner[c] = rows[i].owners[c] == '.' ? 0 : 1;
		CHECK_EQ(vdev_marks_find(
				 owner, rows[i].first, rows[i].last, rows[i].count, &longest),
			rows[i].found);
		CHECK_EQ(longest, rows[i].free);
	}
}

TEST("vdev: marks are given back only by their owner, maps are relative to the device", "[vdev]")
{
	static struct vdev_marks marks = {.lock = PTHREAD_MUTEX_INITIALIZER, .cores = 16};
	uint64_t map = 0;
	unsigned longest;

	REQUIRE_EQ(vdev_marks_take(&marks, 10, 8, 1, 7, 2, &map, 64, &longest), 0);
	CHECK_EQ(map, 0x6);
	CHECK_EQ(marks.owner[9], 10);
	CHECK_EQ(marks.owner[10], 10);
	vdev_marks_give(&marks, 11, 8, &map, 64);
	CHECK_EQ(marks.owner[9], 10);
	vdev_marks_give(&marks, 10, 8, &map, 64);
	CHECK_EQ(marks.owner[9], 0);
	/* From device 0 the range may reach into device 1, but not past the last. */
	CHECK_EQ(vdev_marks_take(&marks, 10, 0, 6, 9, 4, &map, 64, &longest), 0);
	CHECK_EQ(map, 0x3c0);
	CHECK_EQ(vdev_marks_take(&marks, 10, 8, 0, 8, 1, &map, 64, &longest), -EINVAL);
	CHECK_EQ(vdev_marks_take(&marks, 10, 0, 3, 2, 1, &map, 64, &longest), -EINVAL);
	CHECK_EQ(vdev_marks_take(&marks, 10, 0, 0, 7, 0, &map, 64, &longest), -EINVAL);
	vdev_marks_give_all(&marks, 10);
	for (unsigned c = 0; c < 16; c++)
		CHECK_EQ(marks.owner[c], 0);
}

TEST("vdev: argument structures have the sizes of the request table", "[vdev]")
{
	static const struct {
		uint32_t cmd;
		size_t bytes;
	} rows[] = {
		{NEURON_IOCTL_MEM_ALLOC, sizeof(struct neuron_mem_alloc)},
		{NEURON_IOCTL_MEM_ALLOC_V2, sizeof(struct neuron_mem_alloc_v2)},
		{NEURON_IOCTL_MEM_ALLOC_V2MT, NEURON_MEM_ALLOC_V2MT_BYTES},
		{NEURON_IOCTL_MEM_ALLOC_V2MT64, NEURON_MEM_ALLOC_V2MT64_BYTES},
		{NEURON_IOCTL_MEM_ALLOC_V2MT64_PA, sizeof(struct neuron_mem_alloc_v2mt)},
		{NEURON_IOCTL_MEM_FREE, sizeof(struct neuron_mem_free)},
		{NEURON_IOCTL_MEM_COPY, sizeof(struct neuron_mem_copy)},
		{NEURON_IOCTL_MEM_COPY64, sizeof(struct neuron_mem_copy64)},
		{NEURON_IOCTL_MEM_COPY64_DEPRECATED, NEURON_MEM_COPY64_DEPRECATED_BYTES},
		{NEURON_IOCTL_MEM_BUF_COPY, sizeof(struct neuron_mem_buf_copy)},
		{NEURON_IOCTL_MEM_BUF_COPY64, sizeof(struct neuron_mem_buf_copy64)},
		{NEURON_IOCTL_MEMSET, sizeof(struct neuron_memset)},
		{NEURON_IOCTL_MEMSET64, sizeof(struct neuron_memset64)},
		{NEURON_IOCTL_MEM_GET_PA, sizeof(struct neuron_mem_get_pa)},
		{NEURON_IOCTL_MEM_GET_INFO, sizeof(struct neuron_mem_get_info)},
		{NEURON_IOCTL_MEM_GET_EXTENDED_INFO, sizeof(struct neuron_mem_get_extended_info)},
		{NEURON_IOCTL_BAR_READ, sizeof(struct neuron_bar_rw)},
		{NEURON_IOCTL_POST_METRIC, sizeof(struct neuron_post_metric)},
		{NEURON_IOCTL_PRINTK, sizeof(struct neuron_printk)},
		{NEURON_IOCTL_DMA_ENG_INIT, sizeof(struct neuron_dma_eng_init)},
		{NEURON_IOCTL_DMA_ENG_SET_STATE, sizeof(struct neuron_dma_eng_set_state)},
		{NEURON_IOCTL_DMA_QUEUE_INIT, sizeof(struct neuron_dma_queue_init)},
		{NEURON_IOCTL_DMA_QUEUE_RELEASE, sizeof(struct neuron_dma_queue_release)},
		{NEURON_IOCTL_DMA_QUEUE_COPY_START, sizeof(struct neuron_dma_queue_copy_start)},
		{NEURON_IOCTL_DMA_ACK_COMPLETED, sizeof(struct neuron_dma_ack_completed)},
		{NEURON_IOCTL_DMA_QUEUE_GET_STATE, sizeof(struct neuron_dma_queue_get_state)},
		{NEURON_IOCTL_NOTIFICATIONS_INIT_V1, sizeof(struct neuron_notifications_init_v1)},
		{NEURON_IOCTL_NOTIFICATIONS_INIT_V2, sizeof(struct neuron_notifications_init_v2)},
		{NEURON_IOCTL_NOTIFICATIONS_INIT_WITH_REALLOC_V2,
			sizeof(struct neuron_notifications_init_with_realloc_v2)},
		{NEURON_IOCTL_CRWL_NC_RANGE_MARK, sizeof(struct neuron_crwl_nc_map)},
		{NEURON_IOCTL_CRWL_NC_RANGE_MARK_EXT0, sizeof(struct neuron_crwl_nc_map_ext)},
		{NEURON_IOCTL_CINIT_SET_STATE, sizeof(struct neuron_cinit_set)},
		{NEURON_IOCTL_NC_RESET, sizeof(struct neuron_device_reset)},
		{NEURON_IOCTL_NC_RESET_READY, sizeof(struct neuron_device_ready)},
		{NEURON_IOCTL_COMPATIBLE_VERSION, sizeof(struct neuron_compatible_version)},
		{NEURON_IOCTL_DEVICE_BASIC_INFO, sizeof(struct neuron_device_basic_info)},
		{NEURON_IOCTL_DEVICE_BDF, sizeof(struct neuron_device_bdf)},
		{NEURON_IOCTL_DEVICE_BDF_EXT, sizeof(struct neuron_device_bdf_ext)},
		{NEURON_IOCTL_DEVICE_INFO, sizeof(struct neuron_device_info)},
		{NEURON_IOCTL_DEVICE_GET_ALL_APPS_INFO, sizeof(struct neuron_apps_info)},
		{NEURON_IOCTL_ACQUIRE_NEURON_DS, sizeof(struct neuron_ds_info)},
		{NEURON_IOCTL_RELEASE_NEURON_DS, sizeof(struct neuron_ds_info)},
		{NEURON_IOCTL_NC_PID_STATE_DUMP, sizeof(struct neuron_nc_pid_state_dump)},
		{NEURON_IOCTL_HBM_SCRUB_START, sizeof(struct neuron_hbm_scrub_start)},
		{NEURON_IOCTL_HBM_SCRUB_WAIT, sizeof(struct neuron_hbm_scrub_wait)},
		{NEURON_IOCTL_GET_LOGICAL_TO_PHYSICAL_NC_MAP, sizeof(struct neuron_get_nc_map)},
		{NEURON_IOCTL_POD_INFO, sizeof(struct neuron_pod_info)},
		{NEURON_IOCTL_POD_STATUS, NEURON_POD_STATUS_BYTES},
		{NEURON_IOCTL_POD_STATUS_V2, sizeof(struct neuron_pod_status)},
		{NEURON_IOCTL_POD_CTRL, NEURON_POD_CTRL_BYTES},
		{NEURON_IOCTL_POD_CTRL_V2, sizeof(struct neuron_pod_ctrl)},
		{NEURON_IOCTL_DRIVER_INFO_GET, sizeof(struct neuron_device_driver_info)},
		{NEURON_IOCTL_HOST_DEVICE_ID_TO_RID_MAP,
			sizeof(struct neuron_host_device_id_to_rid_map)},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct ioctl_row *row = ioctl_row_find(rows[i].cmd);

		REQUIRE(row);
		test_info("%s", row->name);
		CHECK_EQ(row->arg_size, rows[i].bytes);
	}
}
