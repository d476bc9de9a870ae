/* SPDX-License-Identifier: Apache-2.0 */
/*
 * errno_name.h - the name of an error number, from a table of our own: other C libraries know other
 * names, and what is written of a recording must be the same everywhere.
 */
#ifndef NTRACE_BASE_ERRNO_NAME_H
#define NTRACE_BASE_ERRNO_NAME_H

#include <stdint.h>

/* "EINVAL" of 22; NULL of a number that has no name.  Any value may be asked for. */
const char *errno_name(int64_t number);

#endif
