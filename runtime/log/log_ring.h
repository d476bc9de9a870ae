/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log_ring.h - the last errors of this process, kept for whoever writes down what was left of it.
 *
 * Inside of this room; others have log_dump_errors and log_set_cores (log.h).  Any thread, any
 * signal handler, any child of a fork: there is no lock.
 */
#ifndef NTRACE_LOG_LOG_RING_H
#define NTRACE_LOG_LOG_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LOG_RING_CORE_BYTES (128u << 10) /* per logical core */
#define LOG_RING_LINE_MAX 1024u

/* Keeps a line, which brings its line feed, in the ring of the process; of a longer one the beginning. */
void log_ring_add(const char *line, size_t len);

struct log_ring;

/* The same in any ring, and what log_dump_errors does. */
void log_ring_put(struct log_ring *r, const char *line, size_t len);
int log_ring_dump(const struct log_ring *r, int fd, bool again);

/* A ring for so many cores that follows this one (NULL: none), which stays: until the new one is full, what is in the
 * old one, or still comes there, is written out first.  Or this one, where it is as large, or where there is no
 * memory. */
struct log_ring *log_ring_larger(struct log_ring *old, uint32_t logical_cores);

#endif
