/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace_read.h - reads an ntrace.pb, or another delimited stream, from front to back in memory that does
 * not grow with it, finds the traces below a directory and the trace_info.pb beside each.
 *
 * The file may be foreign or damaged: lengths are believed only as far as bytes come.
 */
#ifndef NTRACE_OUTPUT_TRACE_READ_H
#define NTRACE_OUTPUT_TRACE_READ_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/event_codec.h"
#include "proto/neuron_trace.pb-c.h"

/* A record beyond this is damage: an event has at most a few KiB. */
#define TRACE_READ_MAX_RECORD (64u << 20)

struct trace_read {
	int fd;
	uint8_t *buf;
	size_t cap, have, at; /* bytes in buf, and where the next record begins */
	size_t size;	      /* of the record that was returned last, with its prefix */
	uint64_t base;	      /* offset in the file of buf[0] */
	bool eof;
	uint64_t count;			     /* records returned so far */
	const volatile sig_atomic_t *cancel; /* non-zero: reads end with -ECANCELED; may be NULL */
};

/* 0 or -errno; then nothing is to be closed. */
int trace_read_open(struct trace_read *r, const char *path);
/* The same, until a signal sets *cancel: a pipe may keep its reader waiting.  -ECANCELED then. */
int trace_read_open_until(
	struct trace_read *r, const char *path, const volatile sig_atomic_t *cancel);

/*
 * The next event; its strings are valid until the next call.  1; 0 at the end; -EBADMSG when the
 * record at trace_read_offset() is damaged; -ENOMEM; another -errno from reading.
 */
int trace_read_next(struct trace_read *r, struct ntrace_event_view *e);

/* The same for a stream of any messages: the next one, valid until the next call.  The caller counts it
 * with trace_read_skip when it could be parsed; until then it comes again. */
int trace_read_record(struct trace_read *r, const uint8_t **ret_msg, size_t *ret_len);
void trace_read_skip(struct trace_read *r);

/* Looks at what comes next without going on: *ret_size bytes, at least `size` of them unless the file
 * ends before (r->eof); valid until the next call.  0 or -errno. */
int trace_read_peek(struct trace_read *r, size_t size, const uint8_t **ret_data, size_t *ret_size);

/* Reads what is left without keeping it; *ret_size: of the whole file.  0 or -errno. */
int trace_read_rest(struct trace_read *r, uint64_t *ret_size);

/* Where in the file the next record begins (after -EBADMSG: the damaged one). */
uint64_t trace_read_offset(const struct trace_read *r);

void trace_read_close(struct trace_read *r);

/* The trace_info.pb beside the file `trace`: 0, and NULL when there is none; -EBADMSG, another -errno.
 * *ret_path is its path.  Both are to be freed in any case. */
int trace_info_read(const char *trace, Ntff__NtraceInfo **ret_info, char **ret_path);

/*
 * Is a file that was read to its end all that trace_info.pb tells of it?  False, and what differs is in
 * text.  A file that it does not tell of is fine; info may be NULL.
 */
#define TRACE_TEXT 160
bool trace_info_agrees(const Ntff__NtraceInfo *info, const char *path, uint64_t messages,
	uint64_t bytes, char text[TRACE_TEXT]);

/* The traces that a path names. */
struct trace_set {
	char **files; /* paths of ntrace.pb files, in order of their directories' names */
	size_t count;
	bool is_file; /* the path itself is the file */
};

/*
 * path is a file (taken as an ntrace.pb whatever its name), a directory with an ntrace.pb, or one
 * whose subdirectories hold them, or hold directories with them that are named by a time, as those of inspect
 * sessions may be; numbers within names count as numbers, so pid 999 comes before pid
 * 1000.  0; -ENODATA: a directory without any; another -errno.  trace_set_free in any case.
 */
int trace_set_find(const char *path, struct trace_set *ret);
void trace_set_free(struct trace_set *s);

#endif
