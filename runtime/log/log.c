/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log.c - formatting and writing of messages.
 *
 * Dates are computed here: the C library's conversions take the time zone's lock, which a fork
 * can leave locked in the child, and the child must still be able to say that it cannot go on.
 */
#include "runtime/log/log.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/quiet_signal.h"
#include "runtime/base/utf8.h"
#include "runtime/log/log_ring.h"

#define LINE_BYTES 1024u
#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

/* The level per tag; UNSET until the environment has been read. */
#define UNSET (-1)
static struct {
	const char *tag;
	_Atomic int level;
} tags[] = {{"NRT", UNSET}, {"TDRV", UNSET}, {"NMGR", UNSET}};

static const struct {
	const char *name;
	int level;
} level_names[] = {
	/* A setting is searched for these in this order. */
	{"ERROR", LOG_LEVEL_ERROR},
	{"WARN", LOG_LEVEL_WARN},
	{"INFO", LOG_LEVEL_INFO},
	{"DEBUG", LOG_LEVEL_DEBUG},
	{"TRACE", LOG_LEVEL_TRACE},
	{"DISABLED", LOG_DISABLED},
	{"QUIET", LOG_DISABLED},
};

static const char *const level_texts[] = {"", "ERROR", "WARN", "INFO", "DEBUG", "TRACE"};

/* A message that cannot be written has nobody to be told, and must not end the program: not by the signal of a
 * pipe that nobody reads, nor by that of a file that may not become larger. */
static void write_line(int fd, const char *text, size_t len)
{
	struct quiet_signal pipe, limit;
	int error = 0;

	quiet_signal_begin(&pipe, SIGPIPE);
	quiet_signal_begin(&limit, SIGXFSZ);
	if (write(fd, text, len) < 0)
		error = errno;
	quiet_signal_end(&limit, error == EFBIG);
	quiet_signal_end(&pipe, error == EPIPE);
}

/* What others have named (processes, files, settings) must neither drive a terminal nor begin a line: control
 * characters, among them those above ASCII, become '?'. */
static void clean(char *text, size_t len)
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

int log_parse_level(const char *text)
{
	for (size_t i = 0; i < ARRAY_SIZE(level_names); i++)
		if (strcasestr(text, level_names[i].name))
			return level_names[i].level;
	return -1;
}

static int level_from(const char *variable, int otherwise)
{
	const char *text = getenv(variable);
	char line[128];
	int level, n;

	if (!text || !*text)
		return otherwise;
	level = log_parse_level(text);
	if (level >= 0)
		return level;
	n = snprintf(line, sizeof(line), "invalid level %.80s, default to ERROR", text);
	clean(line, (size_t)n);
	line[n++] = '\n';
	write_line(STDOUT_FILENO, line, (size_t)n);
	return LOG_LEVEL_ERROR;
}

/* There is one place; a setting that names none of the vendor's is said, as there. */
static void check_location(void)
{
	const char *text = getenv("NEURON_RT_LOG_LOCATION");
	char line[160];
	int n;

	if (!text || !*text || strcasestr(text, "CONSOLE") || strcasestr(text, "SYSLOG"))
		return;
	n = snprintf(
		line, sizeof(line), "invalid log location setting %.80s, default to CONSOLE", text);
	clean(line, (size_t)n);
	line[n++] = '\n';
	write_line(STDOUT_FILENO, line, (size_t)n);
}

void log_configure(void)
{
	int all = level_from("NEURON_RT_LOG_LEVEL", LOG_LEVEL_ERROR);

	check_location();

	for (size_t i = 0; i < ARRAY_SIZE(tags); i++) {
		char variable[64];

		(void)snprintf(variable, sizeof(variable), "NEURON_RT_LOG_LEVEL_%s", tags[i].tag);
		atomic_store(&tags[i].level, level_from(variable, all));
	}
}

static int level_of(const char *tag)
{
	for (size_t i = 0; i < ARRAY_SIZE(tags); i++)
		if (!strcmp(tags[i].tag, tag))
			return atomic_load(&tags[i].level);
	return atomic_load(&tags[0].level);
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

size_t log_prefix(char *buf, size_t size, uint64_t unix_ns, int pid, int tid, enum log_level level,
	const char *tag, const char *func)
{
	static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
	uint64_t s = unix_ns / 1000000000ull, us = unix_ns / 1000 % 1000000;
	unsigned year, month, day;
	int n;

	civil_date(s / 86400, &year, &month, &day);
	n = snprintf(buf, size, "%04u-%.3s-%02u %02u:%02u:%02u.%06u %5d:%-5d %5s %5s:%-40s ", year,
		months + (size_t)3 * (month - 1), day, (unsigned)(s / 3600 % 24),
		(unsigned)(s / 60 % 60), (unsigned)(s % 60), (unsigned)us, pid, tid,
		level_texts[level], tag, func);
	if (n < 0 || size == 0)
		return 0;
	return (size_t)n < size ? (size_t)n : size - 1;
}

static int descriptor_of(enum log_level level)
{
	return level == LOG_LEVEL_ERROR ? STDERR_FILENO : STDOUT_FILENO;
}

/* An environment that nobody has read yet is not read in a handler: UNSET shows nothing. */
void log_from_handler(enum log_level level, const char *tag, const char *text, size_t len)
{
	struct pollfd fd = {.fd = descriptor_of(level), .events = POLLOUT};
	int saved = errno;

	if ((int)level <= level_of(tag) && poll(&fd, 1, 0) == 1 && fd.revents == POLLOUT)
		write_line(fd.fd, text, len);
	errno = saved;
}

void log_write(enum log_level level, const char *tag, const char *func, const char *format, ...)
{
	int fd = descriptor_of(level);
	const char *colour = level == LOG_LEVEL_ERROR  ? "\033[91m"
			     : level == LOG_LEVEL_WARN ? "\033[95m"
						       : "";
	char line[LINE_BYTES];
	struct timespec now;
	size_t used = 0, room = sizeof(line) - 8; /* the end of the line always fits */
	va_list ap;
	int n;

	if (atomic_load(&tags[0].level) == UNSET)
		log_configure();
	if ((int)level > level_of(tag))
		return;
	if (*colour && !isatty(fd))
		colour = "";
	clock_gettime(CLOCK_REALTIME, &now);
	used = (size_t)snprintf(line, room, "%s", colour);
	used += log_prefix(line + used, room - used,
		(uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec, getpid(),
		(int)syscall(SYS_gettid), level, tag, func);
	va_start(ap, format);
	n = vsnprintf(line + used, room - used, format, ap);
	va_end(ap);
	if (n > 0) {
		size_t len = (size_t)n < room - used ? (size_t)n : room - used - 1;

		clean(line + used, len);
		used += len;
	}
	if (level == LOG_LEVEL_ERROR) {
		line[used] = '\n';
		log_ring_add(line + strlen(colour), used + 1 - strlen(colour));
	}
	used += (size_t)snprintf(line + used, 8, "%s\n", *colour ? "\033[0m" : "");
	write_line(fd, line, used);
}
