/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log_console.c - standard output and standard error, which are the program's.
 *
 * The program may have made them non-blocking.  Then the first message that finds no room waits a little for it; what
 * does not get in is counted, and said in front of the next one that does.  Until then none waits.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/base/errno_name.h"
#include "runtime/base/file.h"
#include "runtime/base/quiet_signal.h"
#include "runtime/log/log_levels.h"
#include "runtime/log/log_line.h"
#include "runtime/log/log_sinks.h"
#include "runtime/log/log_turn.h"

#define RESET "\033[0m"
#define ROOM_NS 200000000ull /* for whoever reads to make room */

static const char *const colours[] = {
	[LOG_LEVEL_ERROR] = "\033[91m",
	[LOG_LEVEL_WARN] = "\033[95m",
	[LOG_LEVEL_TRACE] = NULL,
};

/* ---- writing ------------------------------------------------------------------------------ */

/* Signals by which a write would end the program. */
struct quiet {
	struct quiet_signal pipe, limit;
};

static void quiet_begin(struct quiet *q)
{
	quiet_signal_begin(&q->pipe, SIGPIPE);
	quiet_signal_begin(&q->limit, SIGXFSZ);
}

static void quiet_end(const struct quiet *q, int rc)
{
	quiet_signal_end(&q->limit, rc == -EFBIG);
	quiet_signal_end(&q->pipe, rc == -EPIPE);
}

int log_write_quietly(int fd, const char *text, size_t len)
{
	struct quiet q;
	int rc;

	quiet_begin(&q);
	rc = file_write_all(fd, text, len);
	quiet_end(&q, rc);
	return rc;
}

/* Waits for room until then; false: there is none. */
static bool has_room(int fd, uint64_t end_ns)
{
	struct pollfd p = {.fd = fd, .events = POLLOUT};
	uint64_t now;

	while ((now = clock_boot().ns) < end_ns) {
		int n = poll(&p, 1, (int)((end_ns - now) / 1000000) + 1);

		if (n > 0 || (n < 0 && errno != EINTR))
			return n > 0;
	}
	return false;
}

/* *ret_done: so many bytes got in, also on error. */
static int write_within(int fd, const char *text, size_t len, uint64_t wait_ns, size_t *ret_done)
{
	uint64_t end_ns = clock_boot().ns + wait_ns;

	for (*ret_done = 0; *ret_done < len;) {
		ssize_t n = write(fd, text + *ret_done, len - *ret_done);

		if (n > 0)
			*ret_done += (size_t)n;
		else if (n == 0)
			return -EIO;
		else if (errno != EINTR && (errno != EAGAIN || !has_room(fd, end_ns)))
			return -errno;
	}
	return 0;
}

/* ---- what gets lost ----------------------------------------------------------------------- */

/* Changed by whose turn it is; what is atomic by handlers, too. */
static struct output {
	const int fd;
	const enum log_level level; /* of the line that says it */
	_Atomic unsigned lost;
	atomic_int error; /* of the last one */
	bool is_cut;	  /* it has no end */
} outputs[] = {
	{.fd = STDOUT_FILENO, .level = LOG_LEVEL_WARN},
	{.fd = STDERR_FILENO, .level = LOG_LEVEL_ERROR},
};

static struct output *output_of(enum log_level level)
{
	return &outputs[level == LOG_LEVEL_ERROR];
}

static void count_lost(struct output *o, int error)
{
	atomic_store(&o->error, error);
	atomic_fetch_add(&o->lost, 1);
}

/* 0 or -errno. */
static int write_part(struct output *o, const char *text, size_t len, uint64_t wait_ns)
{
	size_t done;
	int rc = write_within(o->fd, text, len, wait_ns, &done);

	if (done)
		o->is_cut = rc < 0;
	return rc;
}

static int say_lost_before(struct output *o, unsigned lost)
{
	const struct log_source self = {o->level, "NLOG", "log_to_console"};
	const char *name = errno_name(atomic_load(&o->error));
	struct log_line l;
	char *text;
	int rc;

	log_line_say(&l, &self, NULL, "%u message%s before this line could not be written: %s",
		lost, lost == 1 ? "" : "s", name ? name : "unknown error");
	text = log_line_text(&l);
	text[l.len++] = '\n';
	if (o->is_cut) {
		*--text = '\n';
		l.len++;
	}
	rc = write_part(o, text, l.len, 0);
	if (rc == 0)
		atomic_fetch_sub(&o->lost, lost);
	return rc;
}

static void write_in_turn(struct output *o, const char *text, size_t len)
{
	struct log_turn turn;
	struct quiet q;
	unsigned lost;
	int rc = 0;

	quiet_begin(&q);
	log_turn_begin(&turn);
	lost = atomic_load(&o->lost);
	if (lost)
		rc = say_lost_before(o, lost);
	if (rc == 0)
		rc = write_part(o, text, len, lost ? 0 : ROOM_NS);
	if (rc < 0)
		count_lost(o, -rc);
	log_turn_end(&turn);
	quiet_end(&q, rc);
}

/* ---- messages ----------------------------------------------------------------------------- */

static size_t put(char *to, const char *text)
{
	size_t len = strlen(text);

	memcpy(to, text, len);
	return len;
}

void log_to_console(enum log_level level, char *text, size_t len, bool block)
{
	struct output *o = output_of(level);
	const char *colour = colours[level] && isatty(o->fd) ? colours[level] : "";
	const char *reset = *colour ? RESET : "";

	text -= strlen(colour);
	len += put(text, colour);
	len += put(text + len, block ? "\n\n" : reset);
	len += put(text + len, block ? reset : "\n");
	write_in_turn(o, text, len);
}

void log_say_plainly(const char *text)
{
	char line[160 + 1];
	size_t len = strnlen(text, sizeof(line) - 1);

	memcpy(line, text, len);
	line[len++] = '\n';
	write_in_turn(output_of(LOG_LEVEL_INFO), line, len);
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
		"Syslog (%s) did not take this message: %s; of later ones that are lost nothing is "
		"said; NEURON_RT_LOG_LOCATION=CONSOLE shows them here",
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
	struct output *o = output_of(level);
	struct pollfd fd = {.fd = o->fd, .events = POLLOUT};
	unsigned places = log_places_known(level, tag);
	int saved = errno, rc = -EAGAIN;

	if (places & LOG_SYSLOG)
		(void)log_to_syslog(level, text, len && text[len - 1] == '\n' ? len - 1 : len);
	if (places & LOG_CONSOLE && poll(&fd, 1, 0) == 1 && fd.revents == POLLOUT)
		rc = log_write_quietly(fd.fd, text, len);
	if (places & LOG_CONSOLE && rc < 0)
		count_lost(o, -rc);
	errno = saved;
}
