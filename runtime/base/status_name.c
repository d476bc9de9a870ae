/* SPDX-License-Identifier: Apache-2.0 */
/*
 * status_name.c - see the header.
 */
#include "runtime/base/status_name.h"

#include <nrt/nrt_status.h>

const char *status_name(int64_t status)
{
	switch (status) {
#define STATUS(name) \
	case name:   \
		return #name;
#include "runtime/base/status_names.def"
#undef STATUS
	default:
		return "UNKNOWN";
	}
}
