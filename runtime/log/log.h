/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log.h - the runtime's messages; the only way in which the library speaks.
 *
 * A line is one write(2) where the console takes it whole: ERROR goes to stderr, the rest to stdout, colours only to a terminal; or one
 * datagram for syslog; or both.  What is shown is set by NEURON_RT_LOG_LEVEL, or
 * NEURON_RT_LOG_LEVEL_<TAG> for one tag: ERROR (default), WARN, INFO, DEBUG, TRACE; "disabled" or "quiet"
 * for none; and where by NEURON_RT_LOG_LOCATION and NEURON_RT_LOG_LOCATION_<TAG>.  A line has at most
 * 1024 bytes.  Control characters in a message are shown as '?'.
 *
 * With NEURON_RT_LOG_COALESCING_ENABLED=1 the errors of a public call are held until the call itself
 * says an error, and are then written with it as one block; log_block.h.
 *
 * Any thread, and the child of a fork.  Threads write to the console in turns (log_turn.h): a message has no other
 * one in it, but for the text of a handler (log_from_handler), one that interrupts a message of its own thread, and
 * where a write lasts longer than a second.  A console that takes nothing makes the program wait, as any write does; one
 * that is non-blocking for a fifth of a second, once until it takes something again: what is lost meanwhile is counted,
 * and said with the next message.
 */
#ifndef NTRACE_LOG_LOG_H
#define NTRACE_LOG_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <nrt/nrt_status.h>

enum log_level {
	LOG_DISABLED = 0,
	LOG_LEVEL_ERROR = 1,
	LOG_LEVEL_WARN = 2,
	LOG_LEVEL_INFO = 3,
	LOG_LEVEL_DEBUG = 4,
	LOG_LEVEL_TRACE = 5,
};

/* Reads the environment; the first message does it when nobody has. */
void log_configure(void);

/* tag: NRT (public calls), TDRV (device), NMGR (models). */
void log_write(enum log_level level, const char *tag, const char *func, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/* The same, but log_dump_errors does not write it: it is not for a file that goes to others. */
void log_write_unkept(enum log_level level, const char *tag, const char *func, const char *format,
	...) __attribute__((format(printf, 4, 5)));

/* The same in a signal handler: the text as it is, with its line feed, when the level is shown and the write cannot
 * wait.  Async-signal-safe; errno stays. */
void log_from_handler(enum log_level level, const char *tag, const char *text, size_t len);

/* Writes the last errors of this process, oldest first, one a line and without colours: those whose level is
 * shown somewhere; without those that were written before, unless `again`.  0 or -errno of a write.
 * Async-signal-safe, and safe in the child of a fork. */
int log_dump_errors(int fd, bool again);

/* How many errors are kept: 128 KiB of lines per logical core, and those of one before this call.  Never
 * fewer than before.  One caller at a time. */
void log_set_cores(uint32_t logical_cores);

/* A public call of this thread begins, and ends.  The doors of calls do this (lifecycle/state.h), for the outermost
 * one alone.  call: its name, or NULL where nobody knows it.  What it holds at its end is written, with
 * `Generic API Failure` as the error that it has not said itself.  Async-signal-safe but for the first begin of
 * a thread. */
void log_api_begin(const char *call);
void log_api_end(void);

/* What the call of this thread holds is written now, as at its end: before something that takes long, or may see the
 * end of the program. */
void log_api_flush(void);

/* What went wrong in the call that this thread is in; the next error that the call itself says goes on with what can
 * be done about it.  The first cause stays, a second one is a WARN. */
enum log_cause { LOG_CAUSE_NEFF_ARCH_INCOMPAT = 0 };
void log_set_error_cause(enum log_cause cause);

/* The one level of a tag: that of syslog, or where that has none, that of the console.  NRT_INVALID: there is no such
 * tag; or both are off, which is then said on stdout. */
NRT_STATUS log_get_level(const char *tag, enum log_level *ret);

/* Where syslog is, for tests; it has to stay.  NULL: /dev/log. */
void log_set_syslog(const char *path);

/* The text of a line without its end, for log_write and its test: at most size bytes with NUL.  Returns
 * its length.  unix_ns: epoch ns, shown as UTC. */
size_t log_prefix(char *buf, size_t size, uint64_t unix_ns, int pid, int tid, enum log_level level,
	const char *tag, const char *func);

/* The level that a setting names; -1 when it names none. */
int log_parse_level(const char *text);

#define log_error(tag, ...) log_write(LOG_LEVEL_ERROR, tag, __func__, __VA_ARGS__)
#define log_warn(tag, ...) log_write(LOG_LEVEL_WARN, tag, __func__, __VA_ARGS__)
#define log_info(tag, ...) log_write(LOG_LEVEL_INFO, tag, __func__, __VA_ARGS__)
#define log_debug(tag, ...) log_write(LOG_LEVEL_DEBUG, tag, __func__, __VA_ARGS__)

#endif
