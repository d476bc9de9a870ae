/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log_ring.h - the last errors of this process, kept for whoever writes down what was left of it.
 *
 * Inside of this room; others have log_dump_errors and log_set_cores (log.h).  Any thread, any
 * signal handler, any child of a fork: there is no lock.
 */
#ifndef NTRACE_LOG_LOG_RING_H
#define NTRACE_LOG_LOG_RING_H

#include <stddef.h>

#define LOG_RING_CORE_BYTES (128u << 10) /* per logical core */
#define LOG_RING_LINE_MAX 1024u

/* Keeps a line, which brings its line feed; of a longer one the beginning. */
void log_ring_add(const char *line, size_t len);

#endif
