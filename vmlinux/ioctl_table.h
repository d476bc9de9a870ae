/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/*
 * ioctl_table.h - the neuron driver's requests, one row each, and how to find a row.
 *
 * The rows stand in ioctl_table.def and nowhere else.  BPF reads argument fields by them, the
 * runtime and the virtual device take numbers and sizes from them, the merge names and decodes
 * kernel spans with them.  A request is known by its full command number: the same macro name
 * means different bytes in different driver versions.
 */
#ifndef NTRACE_VMLINUX_IOCTL_TABLE_H
#define NTRACE_VMLINUX_IOCTL_TABLE_H

#ifdef __KERNEL__ /* the driver of the tests */
#include <linux/types.h>
#else
#include <stdbool.h>
#include <stdint.h>
#include <stddef.h>
#endif

#define IOCTL_MAX_FIELDS 6

/* What a decoded argument field means; decides the attribute it becomes. */
enum ioctl_role {
	IOCTL_ROLE_NONE = 0,
#define IOCTL_ROLE(id, attribute) IOCTL_ROLE_##id,
#include "vmlinux/ioctl_roles.def"
#undef IOCTL_ROLE
	IOCTL_ROLE_MAX,
};

struct ioctl_field {
	uint8_t role;	 /* enum ioctl_role; NONE ends the list */
	uint8_t width;	 /* bytes: 1, 2, 4, 8 */
	uint16_t offset; /* into the argument structure */
	/* The value is not there but where a user pointer of 8 bytes at `offset` leads, once the call has
	 * returned 0.  At most one, the last. */
	bool is_out;
};

enum ioctl_flags {
	IOCTL_F_MISC = 1,	  /* also allowed on a write-only (query) handle */
	IOCTL_F_ATTACH_CHECK = 2, /* -EACCES unless the caller's tgid is attached */
	IOCTL_F_NESTED = 4,	  /* the argument holds user pointers */
	IOCTL_F_COPY = 8,	  /* moves bytes; has a SIZE field */
	IOCTL_F_REFUSED = 16,	  /* defined, and refused by each driver that was read */
	/* Can return a -1 that is no errno, as those that copy can: that of waiting for the DMA path in vain (for
	 * the driver's own -1 before 2.30 this is read from the calls that each makes), or, NOTIFICATIONS_QUEUE_INFO,
	 * always. */
	IOCTL_F_HANDS_ON = 32,
};

struct ioctl_row {
	const char *name;    /* the driver's macro without NEURON_IOCTL_ */
	uint32_t cmd;	     /* full command number */
	uint16_t arg_size;   /* real size of the argument structure, bytes */
	uint16_t flags;	     /* enum ioctl_flags */
	const char *drivers; /* releases that have it, "2.24,2.30" */
	struct ioctl_field fields[IOCTL_MAX_FIELDS];
};

/* The request numbers by name: NEURON_IOCTL_<name>. */
enum {
#define IOCTL(name, cmd, arg_size, flags, drivers, ...) NEURON_IOCTL_##name = (cmd),
#include "vmlinux/ioctl_table.def"
#undef IOCTL
};

/* The table, for user space; ioctl_table.c instantiates it.  Rows are in the order of the file. */
extern const struct ioctl_row ioctl_rows[];
extern const size_t ioctl_row_count;

/* The row of a full command number, or of one of file_ops.def; NULL: neither. */
const struct ioctl_row *ioctl_row_find(uint32_t cmd);

/* The first row with the same number (_IOC_NR) but another command, whatever its size; NULL: none. */
const struct ioctl_row *ioctl_row_of_number(uint32_t cmd);

/* A bit per number (_IOC_NR) that a row has. */
void ioctl_numbers(uint64_t ret[4]);

/* Whether a driver has the request, "2.24" or "2.30". */
bool ioctl_row_in_driver(const struct ioctl_row *row, const char *driver);

/* The release that a version ("2.30.2.0") belongs to, as in `drivers`, when the table has all requests of it;
 * NULL: of that one it says little. */
const char *ioctl_release_of(const char *version);

/* Attribute name of a role ("bytes", "handle", ...), or NULL for NONE. */
const char *ioctl_role_attribute(enum ioctl_role role);

/* Number of decoded fields of a row, and the record class (0, 2, 4, 6) that holds them. */
unsigned ioctl_row_fields(const struct ioctl_row *row);
static inline unsigned ioctl_class(unsigned fields)
{
	return (fields + 1u) & ~1u;
}

#endif
