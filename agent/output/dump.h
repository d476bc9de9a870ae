/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dump.h - prints trace_info.pb, cpu_util.pb, host_mem.pb and ntrace.pb; names .ntff files, which
 * dump_ntff.h prints.
 */
#ifndef NTRACE_OUTPUT_DUMP_H
#define NTRACE_OUTPUT_DUMP_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "agent/output/trace_read.h"

enum dump_kind {
	DUMP_UNKNOWN,
	DUMP_NTRACE,
	DUMP_TRACE_INFO,
	DUMP_CPU_UTIL,
	DUMP_HOST_MEM,
	DUMP_NTFF,
	DUMP_NO_MEMORY, /* to find out */
};
enum dump_format { DUMP_JSON, DUMP_TEXT };

/* The kind of a file by its name, or DUMP_UNKNOWN. */
enum dump_kind dump_kind_by_path(const char *path);

/* The kind by what the bytes of a whole file parse as. */
enum dump_kind dump_sniff_content(const uint8_t *data, size_t size);
/* The same for a file that was just opened; nothing of it is consumed.  0 or -errno. */
int dump_sniff_file(struct trace_read *r, enum dump_kind *ret);
const char *dump_kind_name(enum dump_kind kind);

/* The kind with this name (ntrace, trace_info, cpu_util, host_mem, ntff), or DUMP_UNKNOWN. */
enum dump_kind dump_kind_by_name(const char *name);

/*
 * Prints one line per message, reading as it goes; of trace_info, which is one message, at most 1 GiB
 * (-EFBIG).  0; -EBADMSG and *ret_at as dump_print; another -errno from reading.
 */
int dump_file(FILE *f, enum dump_kind kind, enum dump_format format, struct trace_read *r,
	uint64_t *ret_at);

/*
 * The same for a file in memory.  0; -ENOMEM; -EBADMSG when the data is damaged, with *ret_at = offset of the
 * message that could not be read (those before it were printed).
 */
int dump_print(FILE *f, enum dump_kind kind, enum dump_format format, const uint8_t *data,
	size_t size, size_t *ret_at);

#endif
