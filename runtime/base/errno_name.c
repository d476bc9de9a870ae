/* SPDX-License-Identifier: Apache-2.0 */
/*
 * errno_name.c - the table of errno_names.def.
 */
#include "runtime/base/errno_name.h"

#include <stddef.h>

static const char *const names[] = {
#define ERRNO_NAME(number, name) [number] = #name,
#include "runtime/base/errno_names.def"
#undef ERRNO_NAME
};

const char *errno_name(int64_t number)
{
	return number >= 0 && number < (int64_t)(sizeof(names) / sizeof(*names)) ? names[number]
										 : NULL;
}
