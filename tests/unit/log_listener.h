/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log_listener.h - a syslog of the test's own, and what the log wrote taken apart.
 *
 * Header only.
 */
#ifndef NTRACE_TESTS_UNIT_LOG_LISTENER_H
#define NTRACE_TESTS_UNIT_LOG_LISTENER_H

#include <regex.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "runtime/log/log.h"
#include "tests/unit/scratch.h"

/* The documented beginning of a line, without and with its date; the function is padded to 40. */
#define LOG_WHO(level, tag, func) " {0,4}[0-9]+:[0-9]+ {1,5}" level " +" tag ":" func " +"
#define LOG_DATE                                                                 \
	"[0-9]{4}-(Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)-[0-3][0-9] " \
	"[0-2][0-9]:[0-5][0-9]:[0-6][0-9]\\.[0-9]{6}"
#define LOG_HEAD(level, tag, func) LOG_DATE " " LOG_WHO(level, tag, func)

/* Does the whole text match the extended regular expression? */
static inline bool log_matches(const char *text, const char *expression)
{
	char whole[1024];
	regex_t r;
	bool is;

	snprintf(whole, sizeof(whole), "^%s$", expression);
	if (!text || regcomp(&r, whole, REG_EXTENDED | REG_NOSUB))
		return false;
	is = regexec(&r, text, 0, NULL, 0) == 0;
	regfree(&r);
	return is;
}

static inline unsigned log_count(const char *text, const char *what)
{
	unsigned n = 0;

	for (const char *p = text; p && (p = strstr(p, what)); p += strlen(what))
		n++;
	return n;
}

struct listener {
	struct scratch dir;
	struct scratch_path path;
	int fd;
};

static inline bool listener_begin(struct listener *l)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};

	if (!scratch_make(&l->dir))
		return false;
	l->path = scratch_path(&l->dir, "log");
	snprintf(at.sun_path, sizeof(at.sun_path), "%.100s", l->path.s);
	l->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	log_set_syslog(l->path.s);
	return l->fd >= 0 && bind(l->fd, (struct sockaddr *)&at, sizeof(at)) == 0;
}

static inline void listener_end(struct listener *l)
{
	log_set_syslog(NULL);
	close(l->fd);
	scratch_remove(&l->dir);
}

/* The next message, "" when none waits; to be freed. */
static inline char *listener_next(struct listener *l)
{
	static char text[20 << 10];
	ssize_t n = recv(l->fd, text, sizeof(text) - 1, MSG_DONTWAIT);

	text[n > 0 ? n : 0] = '\0';
	return strdup(text);
}

#endif
