/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inspect_names.h - what the directories of a session are called, for inspect_dir.c, which makes
 * them, and inspect_where.c, which only says it.
 */
#ifndef NTRACE_PROFILE_INSPECT_NAMES_H
#define NTRACE_PROFILE_INSPECT_NAMES_H

#include <sys/stat.h>

#include "runtime/profile/inspect_dir.h"

#define INSPECT_NAME_BYTES 160u
#define INSPECT_NAME_TRIES 1000000u /* of name_2, name_3, ... */

struct inspect_names {
	char level[INSPECT_NAME_BYTES]; /* "" = none */
	char leaf[INSPECT_NAME_BYTES];
};

/* The names that a session of this process has in a base where nothing is yet. */
void inspect_names_make(const struct inspect_dir_wish *wish, struct inspect_names *ret);

/* The n-th of name, name_2, name_3, ...: name or buf. */
const char *inspect_name_numbered(char buf[INSPECT_NAME_BYTES + 16], const char *name, unsigned n);
void inspect_name_copy(char to[INSPECT_NAME_BYTES], const char *name);

/* base as seen from where the program is now, to be freed.  0 or -errno. */
int inspect_path_absolute(const char *base, char **ret);

/* base/level/leaf, without the level when it is "", to be freed; NULL = no memory. */
char *inspect_path_join(const char *base, const char *level, const char *leaf);

/* NRT_INVALID for the text that is refused as a base, said in the log. */
NRT_STATUS inspect_base_check(const char *call, const char *base);

/* A directory that is no link: its descriptor or -errno. */
int inspect_directory_open(int parent, const char *name);

/* The level that is there under this name: its descriptor.  -EEXIST: it is no directory, or who
 * owns it could exchange what is made in it; -ENOENT, -errno.  base: of the directory that it is
 * in. */
int inspect_level_open(int parent, const struct stat *base, const char *name);

#endif
