/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log_console.c - standard output and standard error, which are the program's.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/errno_name.h"
#include "runtime/base/file.h"
#include "runtime/base/quiet_signal.h"
#include "runtime/log/log_levels.h"
#include "runtime/log/log_line.h"
#include "runtime/log/log_sinks.h"

#define RESET "\033[0m"

static const char *const colours[] = {
	[LOG_LEVEL_ERROR] = "\033[91m",
	[LOG_LEVEL_WARN] = "\033[95m",
	[LOG_LEVEL_TRACE] = NULL,
};

int log_write_quietly(int fd, const char *text, size_t len)
{
	struct quiet_signal pipe, limit;
	int rc;

	quiet_signal_begin(&pipe, SIGPIPE);
	quiet_signal_begin(&limit, SIGXFSZ);
	rc = file_write_all(fd, text, len);
	quiet_signal_end(&limit, rc == -EFBIG);
	quiet_signal_end(&pipe, rc == -EPIPE);
	return rc;
}

static int descriptor_of(enum log_level level)
{
	return level == LOG_LEVEL_ERROR ? STDERR_FILENO : STDOUT_FILENO;
}

static size_t put(char *to, const char *text)
{
	size_t len = strlen(text);

	memcpy(to, text, len);
	return len;
}

void log_to_console(enum log_level level, char *text, size_t len, bool block)
{
	int fd = descriptor_of(level);
	const char *colour = colours[level] && isatty(fd) ? colours[level] : "";
	const char *reset = *colour ? RESET : "";

	text -= strlen(colour);
	len += put(text, colour);
	len += put(text + len, block ? "\n\n" : reset);
	len += put(text + len, block ? reset : "\n");
	(void)log_write_quietly(fd, text, len);
}

void log_say_plainly(const char *text)
{
	char line[160 + 1];
	size_t len = strnlen(text, sizeof(line) - 1);

	memcpy(line, text, len);
	line[len++] = '\n';
	(void)log_write_quietly(STDOUT_FILENO, line, len);
}

/* ---- both --------------------------------------------------------------------------------- */

static void say_lost(int rc)
{
	static const struct log_source self = {LOG_LEVEL_ERROR, "NLOG", "log_to_syslog"};
	static atomic_bool said;
	const char *name = errno_name(-rc);
	struct log_line l;

	if (atomic_exchange(&said, true))
		return;
	log_line_say(&l, &self, NULL,
		"Messages for syslog (%s) are lost, this one and later ones: %s; "
		"NEURON_RT_LOG_LOCATION=CONSOLE shows them here",
		log_syslog_path(), name ? name : "unknown error");
	log_to_console(self.level, log_line_text(&l), l.len, false);
}

void log_send(unsigned places, enum log_level level, char *text, size_t len, bool block)
{
	int rc = 0;

	/* The daemon adds the time. */
	if (places & LOG_SYSLOG)
		rc = log_to_syslog(level, text + LOG_DATE_BYTES, len - LOG_DATE_BYTES);
	if (places & LOG_CONSOLE)
		log_to_console(level, text, len, block);
	if (rc < 0)
		say_lost(rc);
}

void log_from_handler(enum log_level level, const char *tag, const char *text, size_t len)
{
	struct pollfd fd = {.fd = descriptor_of(level), .events = POLLOUT};
	unsigned places = log_places_known(level, tag);
	int saved = errno;

	if (places & LOG_SYSLOG)
		(void)log_to_syslog(level, text, len && text[len - 1] == '\n' ? len - 1 : len);
	if (places & LOG_CONSOLE && poll(&fd, 1, 0) == 1 && fd.revents == POLLOUT)
		(void)log_write_quietly(fd.fd, text, len);
	errno = saved;
}
