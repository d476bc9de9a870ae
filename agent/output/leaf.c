/* SPDX-License-Identifier: Apache-2.0 */
/*
 * leaf.c - finds what a session has left.
 */
#include "agent/output/leaf.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/file.h"
#include "runtime/record/header.h"

static int read_header(struct rec_reader *r, struct rec_header *ret)
{
	const struct rec_frame *f;
	const uint8_t *payload;
	int rc = rec_reader_next(r, &f, &payload);

	if (rc <= 0 || f->type != REC_HEADER)
		return rc < 0 ? rc : 0;
	rc = rec_header_parse((const char *)payload, f->size, ret);
	if (rc == 0)
		return 1;
	rec_header_free(ret);
	return rc == -EBADMSG ? 0 : rc;
}

int leaf_header(const char *rec_path, struct rec_header *ret)
{
	struct rec_reader *r;
	int rc = rec_reader_open(rec_path, &r);

	if (rc < 0)
		return rc;
	rc = read_header(r, ret);
	rec_reader_close(r);
	return rc;
}

/* path, when the recording lies in it; else what path lies in. */
static char *directory_of(const char *path)
{
	_cleanup_free_ char *inner = NULL;
	char *real;

	if (asprintf(&inner, "%s/" REC_DIR, path) < 0) {
		inner = NULL;
		return NULL;
	}
	if (access(inner, F_OK) == 0)
		return strdup(path);
	real = realpath(path, NULL);
	if (real && strrchr(real, '/') > real)
		*strrchr(real, '/') = '\0';
	return real;
}

bool leaf_in_work(const char *rec_path)
{
	struct rec_reader *r;
	bool in_work;

	if (rec_reader_open(rec_path, &r) < 0)
		return false;
	in_work = rec_reader_in_work(r);
	rec_reader_close(r);
	return in_work;
}

int leaf_of(const char *rec_path, char **ret_leaf)
{
	struct rec_header h;
	int rc = leaf_header(rec_path, &h);

	if (rc <= 0)
		return rc;
	rc = h.info.session != NULL;
	rec_header_free(&h);
	if (!rc)
		return 0;
	*ret_leaf = directory_of(rec_path);
	return *ret_leaf ? 1 : -ENOMEM;
}

static char *path_in(const char *dir, const char *name)
{
	char *path = NULL;

	return asprintf(&path, "%s/%s", dir, name) < 0 ? NULL : path;
}

int leaf_lock(const char *leaf)
{
	int fd = open(leaf, O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc;

	if (fd < 0)
		return -errno;
	if (flock(fd, LOCK_EX | LOCK_NB) == 0)
		return fd;
	rc = errno == EWOULDBLOCK ? -EBUSY : -errno;
	(void)close(fd);
	return rc;
}

bool leaf_is_done(const char *dir)
{
	_cleanup_free_ char *info = path_in(dir, merge_file_name(MERGE_TRACE_INFO));

	return info && access(info, F_OK) == 0;
}

/* ---- files of half a set ------------------------------------------------------------------ */

/* What is there, compared with what comes. */
struct comparison {
	const char *leaf;
	FILE *there[MERGE_FILES]; /* NULL: it is not */
	int differs;		  /* enum merge_file + 1; 0: none */
};

static int compare_open(
	void *ctx, uint32_t pid, const char *name, int64_t realtime_offset_ns, void **ret_process)
{
	(void)pid;
	(void)name;
	(void)realtime_offset_ns;
	*ret_process = ctx;
	return 0;
}

static bool same_bytes(FILE *f, const uint8_t *data, size_t size)
{
	uint8_t buf[4096];

	while (size) {
		size_t n = size < sizeof(buf) ? size : sizeof(buf);

		if (fread(buf, 1, n, f) != n || memcmp(buf, data, n))
			return false;
		data += n;
		size -= n;
	}
	return true;
}

static int compare_write(
	void *ctx, void *process, enum merge_file which, const uint8_t *data, size_t size)
{
	struct comparison *c = ctx;

	(void)process;
	if (!c->there[which] || same_bytes(c->there[which], data, size))
		return 0;
	c->differs = (int)which + 1;
	return -EEXIST;
}

/* Does it end where what came ended? */
static int check_end(struct comparison *c, enum merge_file which)
{
	if (!c->there[which] || getc(c->there[which]) == EOF)
		return 0;
	c->differs = (int)which + 1;
	return -EEXIST;
}

static int take_away(struct comparison *c, enum merge_file which)
{
	_cleanup_free_ char *path = path_in(c->leaf, merge_file_name(which));

	if (!c->there[which])
		return 0;
	return !path ? -ENOMEM : unlink(path) < 0 ? -errno : 0;
}

/* NULL: it is not there, or no file that a merge can have written: *ret_other. */
static FILE *open_file(const char *path, bool *ret_other)
{
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;
	FILE *f = NULL;

	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
		f = fdopen(fd, "r");
	if (!f && fd >= 0)
		(void)close(fd);
	*ret_other = !f && lstat(path, &st) == 0 && !S_ISREG(st.st_mode);
	return f;
}

/* How many of the set are there. */
static unsigned open_all(struct comparison *c)
{
	unsigned n = 0;

	for (unsigned i = 0; i < MERGE_FILES; i++) {
		_cleanup_free_ char *path = path_in(c->leaf, merge_file_name((enum merge_file)i));

		bool other = false;

		c->there[i] = path ? open_file(path, &other) : NULL;
		n += c->there[i] != NULL;
		if (other && !c->differs)
			c->differs = (int)i + 1;
	}
	return n;
}

int leaf_take_back(
	const char *rec_path, const char *leaf, const struct merge_options *how, char **ret_text)
{
	struct comparison c = {.leaf = leaf};
	const struct merge_sink sink = {.ctx = &c, .open = compare_open, .write = compare_write};
	struct merge_options options = *how;
	struct merge_result m = {0};
	unsigned found = open_all(&c);
	int rc = 0;

	*ret_text = NULL;
	if (c.differs)
		rc = -EEXIST;
	if (found && rc == 0) {
		options.sink = &sink;
		rc = merge_recording(rec_path, NULL, &options, &m, ret_text);
		for (unsigned i = 0; rc == 0 && i < MERGE_FILES; i++)
			rc = check_end(&c, (enum merge_file)i);
		/* trace_info.pb first: with it the set is whole. */
		for (unsigned i = 0; rc == 0 && i < MERGE_FILES; i++)
			rc = take_away(&c, (enum merge_file)(MERGE_FILES - 1 - i));
	}
	for (unsigned i = 0; i < MERGE_FILES; i++)
		if (c.there[i])
			fclose(c.there[i]);
	merge_result_free(&m);
	if (c.differs && asprintf(ret_text,
				 "%s/%s is there and is not what the recording gives; move it away",
				 leaf, merge_file_name((enum merge_file)(c.differs - 1))) < 0)
		*ret_text = NULL;
	return rc;
}

/* Is it OUTFILE_TEMPORARY "<pid>-" and what comes then?  NULL: no. */
static const char *behind_pid(const char *name)
{
	const char *pid = name + strlen(OUTFILE_TEMPORARY);
	size_t digits;

	if (strncmp(name, OUTFILE_TEMPORARY, strlen(OUTFILE_TEMPORARY)) != 0)
		return NULL;
	digits = strspn(pid, "0123456789");
	return digits && pid[digits] == '-' ? pid + digits + 1 : NULL;
}

/* Unless its program is still at it, which has the lock. */
static void remove_rest(int parent, const char *name)
{
	int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *d;

	if (!dir) {
		cleanup_close(&fd);
		return;
	}
	while (flock(fd, LOCK_EX | LOCK_NB) == 0 && (d = readdir(dir)))
		if (!strncmp(d->d_name, "segment-", strlen("segment-")))
			(void)unlinkat(fd, d->d_name, 0);
	(void)unlinkat(parent, name, AT_REMOVEDIR);
	closedir(dir);
}

void leaf_sweep(const char *leaf)
{
	DIR *dir = opendir(leaf);
	struct dirent *d;

	while (dir && (d = readdir(dir))) {
		const char *what = behind_pid(d->d_name);

		if (what && !strcmp(what, REC_REMOVED))
			remove_rest(dirfd(dir), d->d_name);
	}
	if (dir)
		closedir(dir);
}

void leaf_clean(const char *leaf, uint32_t pid)
{
	DIR *dir = opendir(leaf);
	char prefix[64];
	struct dirent *d;

	if (!dir)
		return;
	snprintf(prefix, sizeof(prefix), OUTFILE_TEMPORARY "%u-", pid);
	while ((d = readdir(dir))) {
		const char *rest = d->d_name + strlen(prefix);

		if (!strncmp(d->d_name, prefix, strlen(prefix)) && *rest &&
			!rest[strspn(rest, "0123456789")])
			(void)unlinkat(dirfd(dir), d->d_name, 0);
	}
	closedir(dir);
}
