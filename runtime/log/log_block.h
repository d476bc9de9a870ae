/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log_block.h - errors of a public call in one block: what the call says of its failure, and behind it
 * what led there, the last first.
 *
 * With NEURON_RT_LOG_COALESCING_ENABLED=1 each thread has 16 KiB, written downward: a new line stands in
 * front of the earlier ones, which a line feed and a tab set off.  An error that the call says
 * in its own name comes with all of them, is written as one block, red on a terminal, and ends with two line
 * feeds.  A call that ends without that gets `Generic API Failure`.
 *
 * Nothing is lost but what the console does not take (log.h): lines that do not fit make the block be written early; a thread that has no memory for it,
 * is in no call or is interrupted in here writes its lines at once.  What speaks in the name of
 * another call is no part of it, and is written at once as well.  The memory goes when the
 * thread ends.
 *
 * Inside of this room, but for log_api_begin and log_api_end (log.h).  A thread has its own; no lock.
 */
#ifndef NTRACE_LOG_LOG_BLOCK_H
#define NTRACE_LOG_LOG_BLOCK_H

#include <stdbool.h>
#include <stddef.h>

#define LOG_BLOCK_BYTES (16u << 10)

/* What an error of this name is to the call that the thread is in. */
enum log_block_part {
	LOG_BLOCK_NONE,	 /* written at once */
	LOG_BLOCK_CAUSE, /* held */
	LOG_BLOCK_CALL,	 /* the call speaks: the block goes out */
};
enum log_block_part log_block_part(const char *func);

/* Holds a line without its end, for the places that it is wanted at; false: it has to be written at once. */
bool log_block_add(unsigned places, const char *text, size_t len);
void log_block_write(void);

/* What to do about the cause of the error that the call of this name says; NULL: nothing is known. */
const char *log_block_resolution(const char *func);

#endif
