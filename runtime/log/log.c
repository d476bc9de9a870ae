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

void log_write(enum log_level level, const char *tag, const char *func, const char *format, ...)
{
	const struct log_source s = {level, tag, func};
	unsigned places = log_places(level, tag);
	bool is_error = level == LOG_LEVEL_ERROR, held = false;
	struct log_line l;
	va_list ap;

	if (!places)
		return;
	va_start(ap, format);
	log_line_full(&l, &s, is_error ? log_block_resolution(func) : NULL, format, ap);
	va_end(ap);
	if (is_error) {
		log_line_keep(&l);
		va_start(ap, format);
		held = goes_into_block(places, &s, &l, format, ap);
		va_end(ap);
	}
	if (!held)
		log_send(places, level, log_line_text(&l), l.len, false);
}
