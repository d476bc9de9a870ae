/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inspect_names.c - names and paths of a session's directories.
 */
#include "runtime/profile/inspect_names.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "runtime/log/log.h"
#include "runtime/profile/inspect_config.h"

#define TAG "NRT"
#define REFUSED_DIR "./tmp" /* as a text: where the vendor's library has its scratch directory */

#define NS_PER_S UINT64_C(1000000000)
#define NS_PER_MS UINT64_C(1000000)

static void name_timestamp(char ret[INSPECT_NAME_BYTES], uint64_t time_ns)
{
	time_t seconds = (time_t)(time_ns / NS_PER_S);
	struct tm tm;
	size_t n;

	(void)gmtime_r(&seconds, &tm);
	n = strftime(ret, INSPECT_NAME_BYTES, "%Y%m%d_%H%M%S", &tm);
	(void)snprintf(ret + n, INSPECT_NAME_BYTES - n, "_%03u",
		(unsigned)(time_ns % NS_PER_S / NS_PER_MS));
}

void inspect_names_make(const struct inspect_dir_wish *wish, struct inspect_names *ret)
{
	const char *id = wish->instance_id;
	int pid = (int)getpid();

	*ret = (struct inspect_names){.level = ""};
	switch (wish->layout) {
	case INSPECT_LAYOUT_TIMESTAMP:
		(void)snprintf(ret->level, INSPECT_NAME_BYTES, "%.64s_pid_%d", id, pid);
		name_timestamp(ret->leaf, wish->time_ns);
		break;
	case INSPECT_LAYOUT_SEED:
		(void)snprintf(ret->level, INSPECT_NAME_BYTES, "%.64s-%d", id, pid);
		(void)snprintf(ret->leaf, INSPECT_NAME_BYTES, "%" PRIu64, wish->time_ns);
		break;
	case INSPECT_LAYOUT_FLAT:
		(void)snprintf(ret->leaf, INSPECT_NAME_BYTES, "%.64s_pid_%d", id, pid);
		break;
	}
}

/* The n-th of name, name_2, name_3, ... */
const char *inspect_name_numbered(char buf[INSPECT_NAME_BYTES + 16], const char *name, unsigned n)
{
	if (n == 1)
		return name;
	(void)snprintf(buf, INSPECT_NAME_BYTES + 16, "%s_%u", name, n);
	return buf;
}

void inspect_name_copy(char to[INSPECT_NAME_BYTES], const char *name)
{
	(void)snprintf(to, INSPECT_NAME_BYTES, "%s", name);
}

/* base as seen from where the program is now, without what changes nothing; ".." stays, for what it
 * means links decide. */
int inspect_path_absolute(const char *base, char **ret)
{
	char cwd[PATH_MAX] = "";
	char *out, *to;

	if (strlen(base) >= PATH_MAX)
		return -ENAMETOOLONG;
	if (*base != '/' && !getcwd(cwd, sizeof(cwd)))
		return -errno;
	out = to = malloc(strlen(cwd) + strlen(base) + 2);
	if (!out)
		return -ENOMEM;
	to = stpcpy(to, strcmp(cwd, "/") == 0 ? "" : cwd);
	for (;;) {
		size_t n;

		base += strspn(base, "/");
		n = strcspn(base, "/");
		if (!n)
			break;
		if (n != 1 || *base != '.') {
			*to++ = '/';
			to = mempcpy(to, base, n);
		}
		base += n;
	}
	if (to == out)
		*to++ = '/';
	*to = '\0';
	*ret = out;
	return 0;
}

/* base/level/leaf, without the level when it is "". */
char *inspect_path_join(const char *base, const char *level, const char *leaf)
{
	char *path = NULL;

	if (asprintf(&path, "%s%s%s%s%s", base, base[strlen(base) - 1] == '/' ? "" : "/", level,
		    *level ? "/" : "", leaf) < 0)
		return NULL;
	return path;
}

NRT_STATUS inspect_base_check(const char *call, const char *base)
{
	if (strcmp(base, REFUSED_DIR) != 0)
		return NRT_SUCCESS;
	log_write(LOG_LEVEL_ERROR, TAG, call, "Tmp is not acceptable for output directory name.");
	return NRT_INVALID;
}

/* ---- opening ------------------------------------------------------------------------------ */

int inspect_directory_open(int parent, const char *name)
{
	int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

/* May a session's leaf be made in the directory that is there under this name? */
static bool is_ours(int fd, const struct stat *base)
{
	struct stat st;

	return fstat(fd, &st) == 0 && (st.st_uid == geteuid() || st.st_uid == base->st_uid);
}

/* The level that is there under this name; -EEXIST: it is none for us, -ENOENT, -errno. */
int inspect_level_open(int parent, const struct stat *base, const char *name)
{
	int fd = inspect_directory_open(parent, name);

	if (fd == -ENOTDIR || fd == -ELOOP || fd == -EACCES)
		return -EEXIST;
	if (fd < 0 || is_ours(fd, base))
		return fd;
	(void)close(fd);
	return -EEXIST;
}
