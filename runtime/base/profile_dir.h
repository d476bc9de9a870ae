/* SPDX-License-Identifier: Apache-2.0 */
/*
 * profile_dir.h - the directory that NTRACE_DEVICE_PROFILE names: how a runtime leaves its device
 * profiles there, and how the recorder that made it knows what is missing.
 *
 * A process makes its mark when it begins to profile and takes it away when all its profiles are
 * there.  A mark that is left is that of a process that was killed, or whose profiles could not be
 * written.
 */
#ifndef NTRACE_BASE_PROFILE_DIR_H
#define NTRACE_BASE_PROFILE_DIR_H

#include <inttypes.h>

#define ENV_DEVICE_PROFILE "NTRACE_DEVICE_PROFILE"

/* pid (int), logical core (uint32_t), number from 0 (uint64_t): the first that is free */
#define PROFILE_FILE_FORMAT "%d_nc_%" PRIu32 "_session_%" PRIu64 ".ntff"
#define PROFILE_FILE_SCAN "%d_nc_%" SCNu32 "_session_%" SCNu64 ".ntff"
/* pid (int) */
#define PROFILE_MARK_FORMAT "%d.open"

#endif
