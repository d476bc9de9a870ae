/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log_line.c - formatting of messages.
 *
 * Dates are computed here: the C library's conversions take the time zone's lock, which a fork
 * can leave locked in the child, and the child must still be able to say that it cannot go on.
 */
#include "runtime/log/log_line.h"

#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/utf8.h"
#include "runtime/log/log_levels.h"
#include "runtime/log/log_ring.h"

#define RESOLUTION " Resolution: "

void log_clean(char *text, size_t len)
{
	for (size_t i = 0; i < len;) {
		unsigned char *c = (unsigned char *)text + i;
		size_t n = utf8_length(c, len - i);

		if (n == 0 || *c < 0x20 || *c == 0x7f || (*c == 0xc2 && c[1] < 0xa0)) {
			n = n ? n : 1;
			memset(c, '?', n);
		}
		i += n;
	}
}

/* Days since 1970-01-01 to a date (proleptic Gregorian; years begin in March inside). */
static void civil_date(uint64_t days, unsigned *year, unsigned *month, unsigned *day)
{
	uint64_t z = days + 719468, era = z / 146097, doe = z % 146097;
	uint64_t yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
	uint64_t doy = doe - (365 * yoe + yoe / 4 - yoe / 100), mp = (5 * doy + 2) / 153;

	*day = (unsigned)(doy - (153 * mp + 2) / 5 + 1);
	*month = (unsigned)(mp < 10 ? mp + 3 : mp - 9);
	*year = (unsigned)(yoe + era * 400 + (*month <= 2));
}

/* What snprintf has put into size bytes. */
static size_t written(int n, size_t size)
{
	if (n < 0 || size == 0)
		return 0;
	return (size_t)n < size ? (size_t)n : size - 1;
}

size_t log_prefix(char *buf, size_t size, uint64_t unix_ns, int pid, int tid, enum log_level level,
	const char *tag, const char *func)
{
	static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
	uint64_t s = unix_ns / 1000000000ull, us = unix_ns / 1000 % 1000000;
	unsigned year, month, day;

	civil_date(s / 86400, &year, &month, &day);
	return written(
		snprintf(buf, size, "%04u-%.3s-%02u %02u:%02u:%02u.%06u %5d:%-5d %5s %5s:%-40s ",
			year, months + (size_t)3 * (month - 1), day, (unsigned)(s / 3600 % 24),
			(unsigned)(s / 60 % 60), (unsigned)(s % 60), (unsigned)us, pid, tid,
			log_level_name(level), tag, func),
		size);
}

/* Appends the message; `reserved` bytes at the end of the line are left. */
static void add_message(struct log_line *l, size_t reserved, const char *format, va_list ap)
	__attribute__((format(printf, 3, 0)));
static void add_message(struct log_line *l, size_t reserved, const char *format, va_list ap)
{
	size_t limit = LOG_LINE_BYTES - reserved, room = limit > l->len ? limit - l->len : 0;
	char *at = log_line_text(l) + l->len;
	size_t n = written(vsnprintf(at, room, format, ap), room);

	log_clean(at, n);
	l->len += n;
}

void log_line_full(struct log_line *l, const struct log_source *s, const char *resolution,
	const char *format, va_list ap)
{
	size_t behind = resolution ? strlen(RESOLUTION) + strlen(resolution) : 0;
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	l->len = log_prefix(log_line_text(l), LOG_LINE_BYTES,
		(uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec, getpid(),
		(int)syscall(SYS_gettid), s->level, s->tag, s->func);
	add_message(l, behind, format, ap);
	if (resolution)
		l->len += written(snprintf(log_line_text(l) + l->len, LOG_LINE_BYTES - l->len,
					  RESOLUTION "%s", resolution),
			LOG_LINE_BYTES - l->len);
}

void log_line_say(struct log_line *l, const struct log_source *s, const char *resolution,
	const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	log_line_full(l, s, resolution, format, ap);
	va_end(ap);
}

void log_line_short(struct log_line *l, const struct log_source *s, const char *format, va_list ap)
{
	l->len = written(snprintf(log_line_text(l), LOG_LINE_BYTES, "%s:%s ", s->tag, s->func),
		LOG_LINE_BYTES);
	add_message(l, 0, format, ap);
}

void log_line_keep(struct log_line *l)
{
	log_line_text(l)[l->len] = '\n';
	log_ring_add(log_line_text(l), l->len + 1);
}
