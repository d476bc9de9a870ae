/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dump.h - prints trace_info.pb, cpu_util.pb, host_mem.pb and ntrace.pb.
 */
#ifndef NTRACE_OUTPUT_DUMP_H
#define NTRACE_OUTPUT_DUMP_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum dump_kind { DUMP_UNKNOWN, DUMP_NTRACE, DUMP_TRACE_INFO, DUMP_CPU_UTIL, DUMP_HOST_MEM };
enum dump_format { DUMP_JSON, DUMP_TEXT };

/* The kind of a file by its name, else by what its bytes parse as. */
enum dump_kind dump_sniff(const char *path, const uint8_t *data, size_t size);

/* The kind by content alone. */
enum dump_kind dump_sniff_content(const uint8_t *data, size_t size);
const char *dump_kind_name(enum dump_kind kind);

/* The kind with this name (ntrace, trace_info, cpu_util, host_mem), or DUMP_UNKNOWN. */
enum dump_kind dump_kind_by_name(const char *name);

/*
 * Prints one line per message.  0; -EBADMSG when the data is damaged, with *ret_at = offset of the
 * message that could not be read (those before it were printed).
 */
int dump_print(FILE *f, enum dump_kind kind, enum dump_format format, const uint8_t *data,
	size_t size, size_t *ret_at);

#endif
