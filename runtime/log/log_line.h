/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log_line.h - the text of messages.
 *
 * Inside of this room.  Pure but for the clock and the numbers of process and thread; no lock, no
 * memory of its own.
 */
#ifndef NTRACE_LOG_LOG_LINE_H
#define NTRACE_LOG_LOG_LINE_H

#include <stdarg.h>
#include <stddef.h>

#include "runtime/log/log.h"
#include "runtime/log/log_sinks.h"

#define LOG_LINE_BYTES 1024u /* with its line feed */

#define LOG_DATE_BYTES 28u /* of a full line, with the blank behind it */

/* A text with room around it, as the sinks need. */
struct log_line {
	char room[LOG_MARGIN + LOG_LINE_BYTES + LOG_MARGIN];
	size_t len; /* of the text, without a line feed */
};

static inline char *log_line_text(struct log_line *l)
{
	return l->room + LOG_MARGIN;
}

/* Who says it. */
struct log_source {
	enum log_level level;
	const char *tag, *func;
};

/* Date, process, thread, level, tag, function and message; behind it, where it is not NULL, ` Resolution: `
 * and that text, for which the message makes room. */
void log_line_full(struct log_line *l, const struct log_source *s, const char *resolution,
	const char *format, va_list ap) __attribute__((format(printf, 4, 0)));

void log_line_say(struct log_line *l, const struct log_source *s, const char *resolution,
	const char *format, ...) __attribute__((format(printf, 4, 5)));

/* `TAG:func message`, for the causes in a block. */
void log_line_short(struct log_line *l, const struct log_source *s, const char *format, va_list ap)
	__attribute__((format(printf, 3, 0)));

/* Puts a full line into the ring of errors. */
void log_line_keep(struct log_line *l);

/* What others have named (processes, files, settings) must neither drive a terminal nor begin a line: control
 * characters, among them those above ASCII, become '?'. */
void log_clean(char *text, size_t len);

#endif
