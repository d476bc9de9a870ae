/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file_kind.h - which of the files that ntrace knows a file is, by its begin, to tell somebody who named
 * another than the command takes.
 */
#ifndef NTRACE_OUTPUT_FILE_KIND_H
#define NTRACE_OUTPUT_FILE_KIND_H

enum file_kind {
	FILE_UNTOLD, /* no regular file, empty, cannot be read, or damaged: the command itself will say */
	FILE_NTRACE,
	FILE_CPU_UTIL,
	FILE_HOST_MEM,
	FILE_TRACE_INFO,
	FILE_PERFETTO,
	FILE_SEGMENT,
	FILE_NTFF,
	FILE_NTFF_FOREIGN, /* by its name an .ntff, of somebody else's */
	FILE_INFO_FOREIGN, /* a trace_info.pb of somebody else's */
	FILE_NEFF,	   /* by its name */
	FILE_MODEL,	   /* a text for our libnrt */
	FILE_FOREIGN,	   /* none of these */
};

/* What the file at path is; `wanted` when it could be that as well. */
enum file_kind file_kind_of(const char *path, enum file_kind wanted);

/* "a trace_info.pb"; "" for FILE_UNTOLD. */
const char *file_kind_text(enum file_kind kind);

#endif
