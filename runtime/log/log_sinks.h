/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log_sinks.h - where messages end: the console and syslog.
 *
 * Inside of this room.  Nothing here ends the program or calls back; messages to the console wait for each other, but not
 * without end (log_turn.h).
 */
#ifndef NTRACE_LOG_LOG_SINKS_H
#define NTRACE_LOG_LOG_SINKS_H

#include <stdbool.h>
#include <stddef.h>

#include "runtime/log/log.h"

/* Writable bytes before and behind a text that is sent: colours and ends of lines go there, so that a message is one
 * write. */
#define LOG_MARGIN 8u

/* 0 or -errno.  What cannot be written must not end the program: not by the signal of a pipe that nobody reads, nor
 * by that of a file that may not become larger.  Async-signal-safe. */
int log_write_quietly(int fd, const char *text, size_t len);

/* ERROR goes to stderr, the rest to stdout; colours only to a terminal.  A block ends with two line
 * feeds instead of one. */
void log_to_console(enum log_level level, char *text, size_t len, bool block);

/* A plain line on stdout, as the vendor's library has for settings that are wrong; any level. */
void log_say_plainly(const char *text);

/* One datagram, if it can be had at once; 0 or -errno.  Async-signal-safe. */
int log_to_syslog(enum log_level level, const char *text, size_t len);
const char *log_syslog_path(void);

/* A full line or a block to both, as the bits say; the date of a line is not for syslog, which has its own.  What syslog
 * does not take is said once on stderr. */
void log_send(unsigned places, enum log_level level, char *text, size_t len, bool block);

#endif
