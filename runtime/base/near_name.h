/* SPDX-License-Identifier: Apache-2.0 */
/*
 * near_name.h - what a misspelt name was probably meant to be.
 *
 * Pure.  Any thread.
 */
#ifndef NTRACE_BASE_NEAR_NAME_H
#define NTRACE_BASE_NEAR_NAME_H

#include <stddef.h>

#define NEAR_NAME_LONGEST 80u /* bytes; nothing is near to a longer one */
#define NEAR_NAME_FAR 3u      /* more letters than are ever allowed to be wrong */

/* How many letters have to be put in, taken out, replaced or exchanged with their neighbour;
 * NEAR_NAME_FAR when it is that or more. */
unsigned near_name_distance(const char *a, size_t na, const char *b, size_t nb);

/* A name of len bytes is near when it is less than this away: a quarter may be wrong, and never
 * more than two letters. */
unsigned near_name_bound(size_t len);

#endif
