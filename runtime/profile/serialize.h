/* SPDX-License-Identifier: Apache-2.0 */
/*
 * serialize.h - writing a profile as an .ntff file: whole under its name, or not there.
 */
#ifndef NTRACE_PROFILE_SERIALIZE_H
#define NTRACE_PROFILE_SERIALIZE_H

#include "runtime/profile/ntff_build.h"

/* Could a file be made under this name?  NRT_INVALID: NULL, empty, no directory, or there is
 * something already; said in the name of `call`. */
NRT_STATUS profile_check_path(const char *call, const char *path);

/*
 * Writes the file: under a temporary name in its directory, which becomes path when all is written
 * and synced; what has that name already stays.  Records go from the collector's memory straight to
 * the file.  The profile is as before, whatever happens.  NRT_INVALID: the name cannot be had;
 * NRT_RESOURCE: no memory; NRT_FAILURE: the file system refused.  Said in the name of `call`, and
 * what to do.
 */
NRT_STATUS profile_write(const char *call, struct profile *p, const char *path);

/* The two halves of it: 0 or -errno, and what is said of that.  *ret_bytes (may be NULL): the
 * file's. */
int profile_store(struct profile *p, const char *path, uint64_t *ret_bytes);
NRT_STATUS profile_say_refused(const char *call, const char *path, int rc);

#endif
