/* SPDX-License-Identifier: Apache-2.0 */
/*
 * errors_file.h - the file into which the last errors of the log go when a core dump is made.
 *
 * It is opened below a directory that nobody else can bend (base/safe_dir.h), written under its lock, and handed
 * to others by its name only when that still is the file that was written: a plain one of this user, with that one name.
 */
#ifndef NTRACE_LIFECYCLE_ERRORS_FILE_H
#define NTRACE_LIFECYCLE_ERRORS_FILE_H

#include <stdint.h>

#include "runtime/base/safe_dir.h"

/* Appends the errors that it does not have yet; a new one gets all that are kept.  Its lock is waited for at most one
 * second, and not beyond until_ns (BOOTTIME).  0; -EPERM and *ret_why, such as "is no plain file"; or -errno. */
int errors_file_append(
	const struct safe_dir *dir, const char *name, uint64_t until_ns, const char **ret_why);

#endif
