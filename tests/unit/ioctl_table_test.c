/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/*
 * ioctl_table_test.c - the request table is sound in itself and has the numbers of the driver.
 */
#include "vmlinux/ioctl_table.h"

#include <linux/ioctl.h>
#include <string.h>

#include "bpf/neuron_event.h"
#include "tests/shim/shim.h"

TEST("ioctl table: every number is one of the driver's and its size fits", "[ioctl]")
{
	CHECK_EQ(ioctl_row_count, 112);
	for (size_t i = 0; i < ioctl_row_count; i++) {
		const struct ioctl_row *r = &ioctl_rows[i];

		test_info("row %s", r->name);
		CHECK_EQ(_IOC_TYPE(r->cmd), 'N');
		/* Old requests encode the size of a pointer, new ones that of the structure; the one
		 * without an argument that is read has the old form too. */
		CHECK(_IOC_SIZE(r->cmd) == 8 || _IOC_SIZE(r->cmd) == r->arg_size);
		if (_IOC_DIR(r->cmd) == _IOC_NONE)
			CHECK_EQ(r->arg_size, 0);
		/* What no driver that was read accepts is of another one, or of none. */
		CHECK(ioctl_row_in_driver(r, "2.24") || ioctl_row_in_driver(r, "2.30") ||
			r->flags & IOCTL_F_REFUSED);
	}
}

TEST("ioctl table: each row is found by its number, and no other", "[ioctl]")
{
	for (size_t i = 0; i < ioctl_row_count; i++) {
		test_info("row %s", ioctl_rows[i].name);
		CHECK(ioctl_row_find(ioctl_rows[i].cmd) == &ioctl_rows[i]);
		for (size_t k = 0; k < i; k++)
			CHECK(strcmp(ioctl_rows[i].name, ioctl_rows[k].name) != 0);
	}
	CHECK_STR(ioctl_row_find(NEV_OP_REQUEST(1))->name, "open");
	CHECK_STR(ioctl_row_find(NEV_OP_REQUEST(2))->name, "flush");
	CHECK_STR(ioctl_row_find(NEV_OP_REQUEST(3))->name, "release");
	CHECK_STR(ioctl_row_find(NEV_OP_REQUEST(4))->name, "mmap");
	CHECK(ioctl_row_find(NEV_OP_REQUEST(0)) == NULL);
	CHECK(ioctl_row_find(NEV_OP_REQUEST(5)) == NULL);
	for (uint32_t small = 0; small < 16; small++) /* what a tool may send to any file */
		CHECK(ioctl_row_find(small) == NULL);
	CHECK(ioctl_row_find(0x00004e00u) == NULL);
	CHECK(ioctl_row_find(0x80084e67u ^ 1u << 31) == NULL);
	CHECK(ioctl_row_find(0xffffffffu) == NULL);
}

TEST("ioctl table: fields lie inside the argument and are named once per row", "[ioctl]")
{
	for (size_t i = 0; i < ioctl_row_count; i++) {
		const struct ioctl_row *r = &ioctl_rows[i];
		unsigned n = ioctl_row_fields(r), seen = 0;

		for (unsigned f = 0; f < n; f++) {
			const struct ioctl_field *x = &r->fields[f];

			test_info("row %s, field %u", r->name, f);
			CHECK(x->width == 1 || x->width == 2 || x->width == 4 || x->width == 8);
			CHECK(x->offset + x->width <= r->arg_size);
			CHECK(x->offset + x->width <= NEV_ARG_BYTES); /* as far as BPF reads */
			CHECK(ioctl_role_attribute(x->role) != NULL);
			/* What lies behind a pointer is one value, the last, and of a request that says
			 * that it has pointers. */
			CHECK(!x->is_out ||
				(f == n - 1 && x->width == 8 && r->flags & IOCTL_F_NESTED &&
					x->offset + 8u <= r->arg_size &&
					x->offset + 8u <= NEV_ARG_BYTES));
			CHECK(!(seen & 1u << x->role));
			seen |= 1u << x->role;
			for (unsigned k = 0; k < f; k++)
				CHECK(r->fields[k].offset + r->fields[k].width <= x->offset ||
					x->offset + x->width <= r->fields[k].offset);
		}
		for (unsigned f = n; f < IOCTL_MAX_FIELDS; f++)
			CHECK_EQ(r->fields[f].width, 0);
		test_info("row %s moves bytes but says not how many", r->name);
		CHECK(!(r->flags & IOCTL_F_COPY) || (seen & 1u << IOCTL_ROLE_SIZE));
		CHECK(ioctl_class(n) >= n && ioctl_class(n) <= n + 1 && ioctl_class(n) % 2 == 0);
	}
}

TEST("ioctl table: a known number with another size is told from an unknown number", "[ioctl]")
{
	uint64_t numbers[4];

	ioctl_numbers(numbers);
	for (size_t i = 0; i < ioctl_row_count; i++)
		CHECK(numbers[_IOC_NR(ioctl_rows[i].cmd) / 64] >> _IOC_NR(ioctl_rows[i].cmd) % 64 &
			1);
	CHECK(!(numbers[3] >> 63));
	/* Number 124 with 80 bytes is nobody's; with 48 it is 2.27's, with 64 2.30's. */
	CHECK_STR(ioctl_row_of_number(0xc0504e7c)->name, "MEM_BUF_ZEROCOPY64_V40");
	CHECK_STR(ioctl_row_of_number(0xc0284e7c)->name, "MEM_BUF_ZEROCOPY64_DEPRECATED");
	CHECK(ioctl_row_of_number(0xc0504eff) == NULL);
	CHECK(ioctl_row_of_number(0xc050657c) == NULL);
}

TEST("ioctl table: a version belongs to a release that was read, or to none", "[ioctl]")
{
	CHECK_STR(ioctl_release_of("2.24.7.0"), "2.24");
	CHECK_STR(ioctl_release_of("2.30.2.0"), "2.30");
	CHECK_STR(ioctl_release_of("2.30"), "2.30");
	CHECK(ioctl_release_of("2.27.4.0") == NULL);
	CHECK(ioctl_release_of("2.300.1") == NULL);
	CHECK(ioctl_release_of("") == NULL);
	CHECK(ioctl_release_of(NULL) == NULL);
}

TEST("ioctl table: roles have attributes, all different", "[ioctl]")
{
	CHECK(ioctl_role_attribute(IOCTL_ROLE_NONE) == NULL);
	CHECK(ioctl_role_attribute(IOCTL_ROLE_MAX) == NULL);
	CHECK_STR(ioctl_role_attribute(IOCTL_ROLE_SIZE), "bytes");
	CHECK_STR(ioctl_role_attribute(IOCTL_ROLE_TO_DEVICE), "direction");
	for (int a = 1; a < IOCTL_ROLE_MAX; a++)
		for (int b = 1; b < a; b++)
			CHECK(strcmp(ioctl_role_attribute((enum ioctl_role)a),
				      ioctl_role_attribute((enum ioctl_role)b)) != 0);
}

#define ONE(role, offset, width)                        \
	{                                               \
		IOCTL_ROLE_##role, width, offset, false \
	}
#define BEHIND(role, offset, width)                    \
	{                                              \
		IOCTL_ROLE_##role, width, offset, true \
	}

static const struct {
	const char *name;
	uint32_t cmd;
	unsigned arg_size, flags;
	const char *drivers;
	struct ioctl_field fields[IOCTL_MAX_FIELDS];
} spots[] = {
	{"DEVICE_RESET", 0x00004e01, 0, 0, "2.24,2.30", {{0}}},
	{"MEM_ALLOC", 0x80084e15, 32, IOCTL_F_ATTACH_CHECK | IOCTL_F_NESTED, "2.24,2.30",
		{ONE(SIZE, 0, 8), ONE(HOST_MEMORY, 8, 4), ONE(HBM, 12, 4), ONE(NC, 20, 4),
			BEHIND(HANDLE, 24, 8)}},
	{"MEM_ALLOC_V2MT64", 0x80384e66, 56, IOCTL_F_NESTED, "2.24,2.30",
		{ONE(SIZE, 0, 8), ONE(HOST_MEMORY, 16, 4), ONE(HBM, 20, 4), ONE(NC, 28, 4),
			ONE(TYPE, 32, 4), BEHIND(HANDLE, 40, 8)}},
	{"MEM_COPY", 0x80084e17, 32, IOCTL_F_ATTACH_CHECK | IOCTL_F_COPY, "2.24,2.30",
		{ONE(HANDLE, 0, 8), ONE(HANDLE2, 8, 8), ONE(SIZE, 16, 4), ONE(OFFSET, 20, 4),
			ONE(OFFSET2, 24, 4)}},
	{"MEM_COPY64_DEPRECATED", 0x80284e17, 40, IOCTL_F_COPY, "2.24,2.30",
		{ONE(HANDLE, 0, 8), ONE(HANDLE2, 8, 8), ONE(SIZE, 16, 8), ONE(OFFSET, 24, 8),
			ONE(OFFSET2, 32, 8)}},
	{"MEM_COPY64", 0x80384e17, 56, IOCTL_F_COPY, "2.30",
		{ONE(HANDLE, 0, 8), ONE(HANDLE2, 8, 8), ONE(SIZE, 16, 8), ONE(OFFSET, 24, 8),
			ONE(OFFSET2, 32, 8), ONE(SEQUENCE, 40, 8)}},
	{"MEM_BUF_COPY", 0xc0084e18, 32, IOCTL_F_NESTED | IOCTL_F_COPY, "2.24,2.30",
		{ONE(HANDLE, 0, 8), ONE(SIZE, 16, 4), ONE(OFFSET, 20, 4), ONE(TO_DEVICE, 24, 4)}},
	{"MEM_BUF_COPY64", 0xc0284e18, 40, IOCTL_F_NESTED | IOCTL_F_COPY, "2.24,2.30",
		{ONE(HANDLE, 0, 8), ONE(SIZE, 16, 8), ONE(OFFSET, 24, 8), ONE(TO_DEVICE, 32, 4)}},
	{"MEM_BUF_ZEROCOPY64_V40", 0xc0284e7c, 40, IOCTL_F_NESTED | IOCTL_F_COPY, "2.24",
		{ONE(HANDLE, 0, 8), ONE(SIZE, 16, 8), ONE(OFFSET, 24, 8), ONE(TO_DEVICE, 32, 4)}},
	{"MEM_BUF_ZEROCOPY64", 0xc0404e7c, 64, IOCTL_F_NESTED | IOCTL_F_COPY, "2.30",
		{ONE(HANDLE, 0, 8), ONE(SIZE, 16, 8), ONE(OFFSET, 24, 8), ONE(TO_DEVICE, 32, 4),
			ONE(QUEUE, 40, 4), ONE(SEQUENCE, 48, 8)}},
	{"DMA_QUEUE_COPY_START", 0x80084e23, 16, 0, "2.24,2.30",
		{ONE(ENGINE, 0, 4), ONE(QUEUE, 4, 4), ONE(COUNT, 8, 4), ONE(COUNT2, 12, 4)}},
	{"DMA_QUEUE_INIT_BATCH", 0xb0084e85, 12296, 0, "2.24,2.30", {ONE(COUNT, 0, 4)}},
	{"DEVICE_RESET_STATUS", 0x80014e6a, 1, 0, "2.24,2.30", {{0}}},
	{"DEVICE_BDF_EXT", 0x80084e6a, 16, IOCTL_F_MISC, "2.24,2.30", {{0}}},
	{"DRIVER_INFO_SET", 0x40184e6e, 24, IOCTL_F_MISC | IOCTL_F_ATTACH_CHECK, "2.24,2.30",
		{ONE(VALUE, 16, 8)}},
	{"DMABUF_FD_V2", 0x80084e8a, 32, IOCTL_F_MISC | IOCTL_F_NESTED, "2.30", {ONE(SIZE, 8, 8)}},
	{"GET_BAR_INFO", 0xc0c84e8b, 200, 0, "2.30", {ONE(TYPE, 0, 4)}},
};

TEST("ioctl table: rows read off the driver's own structures", "[ioctl]")
{
	for (size_t i = 0; i < sizeof(spots) / sizeof(spots[0]); i++) {
		const struct ioctl_row *r = ioctl_row_find(spots[i].cmd);

		test_info("row %s", spots[i].name);
		REQUIRE(r != NULL);
		CHECK_STR(r->name, spots[i].name);
		CHECK_EQ(r->arg_size, spots[i].arg_size);
		CHECK_EQ(r->flags, spots[i].flags);
		CHECK_STR(r->drivers, spots[i].drivers);
		CHECK(memcmp(r->fields, spots[i].fields, sizeof(r->fields)) == 0);
	}
	CHECK_EQ(NEURON_IOCTL_MEM_COPY64, 0x80384e17u);
	CHECK_EQ(NEURON_IOCTL_MEM_BUF_ZEROCOPY64, 0xc0404e7cu);
}

/* The attach check of both drivers compares these 19 command numbers and no others. */
TEST("ioctl table: the attach check and the query handle cover as many requests as in the driver",
	"[ioctl]")
{
	unsigned attach = 0, misc = 0;

	for (size_t i = 0; i < ioctl_row_count; i++) {
		attach += !!(ioctl_rows[i].flags & IOCTL_F_ATTACH_CHECK);
		misc += !!(ioctl_rows[i].flags & IOCTL_F_MISC);
	}
	CHECK_EQ(attach, 19);
	CHECK_EQ(misc, 23);
}
