/* SPDX-License-Identifier: Apache-2.0 */
/*
 * path_template.h - names of core dumps: texts with tokens such as %p in them.
 *
 *	%p pid   %t tid   %l number of the helper's run   %c cluster id   %d date and time   %i instance id
 *
 * A % before anything else stands for itself.  The result never crosses its bound: it is what fits of the
 * whole, and always ends in a NUL.  Pure; any thread.
 */
#ifndef NTRACE_LIFECYCLE_PATH_TEMPLATE_H
#define NTRACE_LIFECYCLE_PATH_TEMPLATE_H

#include <assert.h>
#include <stddef.h>

#define PATH_TEMPLATE_DIR_BYTES 4096u /* of directories and prefixes, with the NUL */
#define PATH_TEMPLATE_FILE_BYTES 255u /* of names of files */

/* What the tokens stand for: texts with a NUL.  The sizes are those of libnrt 2.31, from its debug data. */
struct path_variables {
	char pid[14];
	char tid[14];
	char log_id[14];
	char cluster_id[20];
	char datetime[16];
	char instance_id[23];
};
static_assert(sizeof(struct path_variables) == 101, "as libnrt has it");
static_assert(offsetof(struct path_variables, tid) == 14, "as libnrt has it");
static_assert(offsetof(struct path_variables, log_id) == 28, "as libnrt has it");
static_assert(offsetof(struct path_variables, cluster_id) == 42, "as libnrt has it");
static_assert(offsetof(struct path_variables, datetime) == 62, "as libnrt has it");
static_assert(offsetof(struct path_variables, instance_id) == 78, "as libnrt has it");

/* Writes at most size bytes with the NUL (nothing when size is 0); text: NULL is "".  Returns the length. */
size_t path_template(char *ret, size_t size, const char *text, const struct path_variables *v);

#endif
