/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log.c - the way of a message: is it wanted, what is its text, where does it go.
 */
#include "runtime/log/log.h"

#include <stdarg.h>
#include <stdbool.h>

#include "runtime/log/log_block.h"
#include "runtime/log/log_levels.h"
#include "runtime/log/log_line.h"
#include "runtime/log/log_sinks.h"

/* A line of the block of the call that this thread is in; false: it is none.  `full` is its text, should the call
 * itself speak. */
static bool goes_into_block(unsigned places, const struct log_source *s, struct log_line *full,
	const char *format, va_list ap) __attribute__((format(printf, 4, 0)));
static bool goes_into_block(unsigned places, const struct log_source *s, struct log_line *full,
	const char *format, va_list ap)
{
	enum log_block_part part = log_block_part(s->func);
	struct log_line cause;

	if (part == LOG_BLOCK_CALL) {
		if (!log_block_add(places, log_line_text(full), full->len))
			return false;
		log_block_write();
		return true;
	}
	if (part == LOG_BLOCK_NONE)
		return false;
	log_line_short(&cause, s, format, ap);
	return log_block_add(places, log_line_text(&cause), cause.len);
}

static void write_line(const struct log_source *s, bool keep, const char *format, va_list ap)
	__attribute__((format(printf, 3, 0)));
static void write_line(const struct log_source *s, bool keep, const char *format, va_list ap)
{
	unsigned places = log_places(s->level, s->tag);
	bool is_error = s->level == LOG_LEVEL_ERROR;
	struct log_line l;
	va_list again;

	if (!places)
		return;
	va_copy(again, ap);
	log_line_full(&l, s, is_error ? log_block_resolution(s->func) : NULL, format, ap);
	if (is_error && keep)
		log_line_keep(&l);
	if (!is_error || !goes_into_block(places, s, &l, format, again))
		log_send(places, s->level, log_line_text(&l), l.len, false);
	va_end(again);
}

void log_write(enum log_level level, const char *tag, const char *func, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	write_line(&(struct log_source){level, tag, func}, true, format, ap);
	va_end(ap);
}

void log_write_unkept(
	enum log_level level, const char *tag, const char *func, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	write_line(&(struct log_source){level, tag, func}, false, format, ap);
	va_end(ap);
}
