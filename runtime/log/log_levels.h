/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log_levels.h - which messages are wanted, and where: two levels for each tag, one for the console and
 * one for syslog.
 *
 * Inside of this room.  A tag's place is found by its first four bytes; one that has none shares
 * that of NRT.  Any thread, no lock.
 */
#ifndef NTRACE_LOG_LOG_LEVELS_H
#define NTRACE_LOG_LOG_LEVELS_H

#include <stdbool.h>

#include "runtime/log/log.h"

/* Bits: where a message goes. */
enum log_place { LOG_CONSOLE = 1, LOG_SYSLOG = 2 };

/* Where a message is wanted; 0: nowhere, which most cost no more than one load.  Reads the environment when
 * nobody has yet; _known does not, and then says nowhere: it is async-signal-safe. */
unsigned log_places(enum log_level level, const char *tag);
unsigned log_places_known(enum log_level level, const char *tag);

/* Sets what a tag shows at both places, or with "all" what every one does. */
void log_set_levels(const char *tag, enum log_level console, enum log_level syslog);

/* Are errors of a call held until the call speaks itself (log_block.h)?  Reads the environment as log_places. */
bool log_coalesces(void);

/* "ERROR", "WARN" and so on. */
const char *log_level_name(enum log_level level);

#endif
