/* SPDX-License-Identifier: Apache-2.0 */
/*
 * printable.h - texts from files on a terminal.
 *
 * What a traced program, a file or a directory calls itself may hold escape sequences, which a terminal
 * would obey, and line ends, which would make rows of its own.  Control characters, those that turn
 * the direction of text, and bytes that are not UTF-8 are shown as \xNN or \uNNNN instead, line end and
 * tab as \n and \t.  JSON has its own escapes and needs none of this.
 */
#ifndef NTRACE_BASE_PRINTABLE_H
#define NTRACE_BASE_PRINTABLE_H

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define PRINTABLE_BYTES 512

/* The text in buf, which it returns; one that is too long for size (at least 16) ends in "...". */
const char *printable_into(const char *s, size_t len, char *buf, size_t size);
/* The same, into the usual room. */
const char *printable(const char *s, size_t len, char buf[PRINTABLE_BYTES]);

/* A C string as an argument of printf. */
#define PRINTABLE(s) printable((s), strlen(s), (char[PRINTABLE_BYTES]){0})

/* Writes all of a text. */
void printable_put(FILE *f, const char *s, size_t len);

#endif
