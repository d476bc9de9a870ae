/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/*
 * ioctl_table.c - the one instance of the driver's request table, and the look-ups.
 *
 * The look-up is a switch that the table itself writes: the compiler turns it into a decision tree,
 * needs no set-up at run time, and refuses a table with two rows of one number.
 */
#include "vmlinux/ioctl_table.h"

#include <string.h>

#include "vmlinux/file_ops.h"

/* clang-format off */
#define F(role, offset, width) {IOCTL_ROLE_##role, width, offset, false}
#define OUT(role, offset, width) {IOCTL_ROLE_##role, width, offset, true}
#define NO_FIELDS {0}
/* clang-format on */

const struct ioctl_row ioctl_rows[] = {
#define IOCTL(name, cmd, arg_size, flags, drivers, ...) \
	{#name, cmd, arg_size, flags, drivers, {__VA_ARGS__}},
#include "vmlinux/ioctl_table.def"
#undef IOCTL
};

static const struct ioctl_row file_op_rows[] = {
#define FILE_OP(id, number, name, ...) \
	[number] = {name, NEV_OP_REQUEST(number), 0, 0, "2.24,2.30", {__VA_ARGS__}},
#include "vmlinux/file_ops.def"
#undef FILE_OP
};

/* Position of each row in the array. */
enum {
#define IOCTL(name, ...) ROW_##name,
#include "vmlinux/ioctl_table.def"
#undef IOCTL
	ROW_COUNT,
};

const size_t ioctl_row_count = ROW_COUNT;

static const char *const role_attributes[] = {
#define IOCTL_ROLE(id, attribute) [IOCTL_ROLE_##id] = attribute,
#include "vmlinux/ioctl_roles.def"
#undef IOCTL_ROLE
};

const struct ioctl_row *ioctl_row_find(uint32_t cmd)
{
	switch (cmd) {
#define IOCTL(name, number, ...) \
	case number:             \
		return &ioctl_rows[ROW_##name];
#include "vmlinux/ioctl_table.def"
#undef IOCTL
#define FILE_OP(id, number, ...)     \
	case NEV_OP_REQUEST(number): \
		return &file_op_rows[number];
#include "vmlinux/file_ops.def"
#undef FILE_OP
	default:
		return NULL;
	}
}

const struct ioctl_row *ioctl_row_of_number(uint32_t cmd)
{
	for (size_t i = 0; i < ioctl_row_count; i++)
		if ((ioctl_rows[i].cmd & 0xffff) == (cmd & 0xffff) && ioctl_rows[i].cmd != cmd)
			return &ioctl_rows[i];
	return NULL;
}

void ioctl_numbers(uint64_t ret[4])
{
	memset(ret, 0, 4 * sizeof(*ret));
	for (size_t i = 0; i < ioctl_row_count; i++)
		ret[ioctl_rows[i].cmd >> 6 & 3] |= 1ull << (ioctl_rows[i].cmd & 63);
}

bool ioctl_row_in_driver(const struct ioctl_row *row, const char *driver)
{
	size_t length = strlen(driver);

	for (const char *at = row->drivers; *at;
		at += strcspn(at, ",") + (at[strcspn(at, ",")] == ','))
		if (strncmp(at, driver, length) == 0 && (at[length] == ',' || !at[length]))
			return true;
	return false;
}

const char *ioctl_release_of(const char *version)
{
	static const char *const releases[] = {"2.24", "2.30"};

	for (size_t i = 0; version && i < sizeof(releases) / sizeof(*releases); i++) {
		size_t n = strlen(releases[i]);

		if (strncmp(version, releases[i], n) == 0 && (version[n] == '.' || !version[n]))
			return releases[i];
	}
	return NULL;
}

const char *ioctl_role_attribute(enum ioctl_role role)
{
	return (unsigned)role < IOCTL_ROLE_MAX ? role_attributes[role] : NULL;
}

unsigned ioctl_row_fields(const struct ioctl_row *row)
{
	unsigned n = 0;

	while (n < IOCTL_MAX_FIELDS && row->fields[n].role != IOCTL_ROLE_NONE)
		n++;
	return n;
}
