/* SPDX-License-Identifier: Apache-2.0 */
/*
 * name_list.h - lists of texts that are handed to a program: an array and its texts, each from malloc, so
 * that the program may free them itself.
 */
#ifndef NTRACE_BASE_NAME_LIST_H
#define NTRACE_BASE_NAME_LIST_H

#include <stddef.h>

/* Copies count texts.  The array is never NULL and has a NULL behind the last.  0 or -ENOMEM. */
int name_list_copy(const char *const *names, size_t count, const char ***ret);

/* NULL is harmless, also in the place of a text. */
void name_list_free(const char **names, size_t count);

#endif
