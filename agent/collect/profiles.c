/* SPDX-License-Identifier: Apache-2.0 */
/*
 * profiles.c - what runtimes left in the directory of device profiles becomes files and frames of
 * the recording.
 *
 * The names are all that is believed of the files' makers, and only what a regular file holds is
 * read.
 */
#include "agent/collect/profiles.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/file.h"
#include "runtime/base/profile_dir.h"
#include "runtime/record/device_sum.h"

/* A name in the directory. */
struct entry {
	int pid;
	bool is_mark; /* of a process that is not done */
	uint32_t nc;
	uint64_t number;
};

struct entries {
	struct entry *list;
	size_t count, room;
};

/* ---- the directory ------------------------------------------------------------------------ */

int profiles_open(struct profiles *p, const char *rec_path)
{
	_cleanup_free_ char *absolute = realpath(rec_path, NULL);
	char *dir = NULL;

	*p = (struct profiles){0};
	if (!absolute)
		return -errno;
	if (asprintf(&dir, "%s/" PROFILES_DIR, absolute) < 0)
		return -ENOMEM;
	if (mkdir(dir, 0777) < 0) {
		int error = -errno;

		free(dir);
		return error;
	}
	p->dir = dir;
	return 0;
}

void profiles_close(struct profiles *p)
{
	DIR *d = p->dir ? opendir(p->dir) : NULL;
	struct dirent *e;

	while (d && (e = readdir(d)))
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			(void)unlinkat(dirfd(d), e->d_name, 0);
	if (d)
		closedir(d);
	if (p->dir)
		(void)rmdir(p->dir);
	free(p->dir);
	p->dir = NULL;
}

/* ---- what is in it ------------------------------------------------------------------------ */

/* Is it a name that profile_dir.h has, written as it has it? */
static bool parse(const char *name, struct entry *ret)
{
	char as_written[NAME_MAX + 1];

	*ret = (struct entry){0};
	if (sscanf(name, PROFILE_FILE_SCAN, &ret->pid, &ret->nc, &ret->number) == 3) {
		snprintf(as_written, sizeof(as_written), PROFILE_FILE_FORMAT, ret->pid, ret->nc,
			ret->number);
	} else if (sscanf(name, PROFILE_MARK_FORMAT, &ret->pid) == 1) {
		ret->is_mark = true;
		snprintf(as_written, sizeof(as_written), PROFILE_MARK_FORMAT, ret->pid);
	} else {
		return false;
	}
	return ret->pid > 0 && !strcmp(name, as_written);
}

static int add(struct entries *s, const struct entry *e)
{
	if (s->count == s->room) {
		size_t room = s->room ? 2 * s->room : 64;
		struct entry *list = realloc(s->list, room * sizeof(*list));

		if (!list)
			return -ENOMEM;
		s->list = list;
		s->room = room;
	}
	s->list[s->count++] = *e;
	return 0;
}

/* By process; its profiles by core and number, then its mark. */
static int compare(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	if (x->is_mark != y->is_mark)
		return x->is_mark ? 1 : -1;
	if (x->nc != y->nc)
		return x->nc < y->nc ? -1 : 1;
	return (x->number > y->number) - (x->number < y->number);
}

static int list_entries(DIR *d, struct entries *ret)
{
	struct dirent *e;
	int rc = 0;

	while (rc == 0 && (e = readdir(d))) {
		struct entry entry;

		if (parse(e->d_name, &entry))
			rc = add(ret, &entry);
	}
	if (rc == 0 && ret->count)
		qsort(ret->list, ret->count, sizeof(*ret->list), compare);
	return rc;
}

/* ---- into the recording ------------------------------------------------------------------- */

static int put_frame(struct rec_writer *rec, const struct rec_device_profile *p)
{
	return rec_writer_frame(
		rec, REC_DEVICE_PROFILE, REC_SOURCE_RECORDER, p, sizeof(*p), NULL, 0);
}

/* Moves a file, which becomes number p->index.  0 or -errno, and then it is not in the
 * recording. */
static int take_file(DIR *d, int rec_fd, const struct entry *e, struct rec_device_profile *p)
{
	char from[NAME_MAX + 1], to[32];

	snprintf(from, sizeof(from), PROFILE_FILE_FORMAT, e->pid, e->nc, e->number);
	snprintf(to, sizeof(to), REC_DEVICE_PROFILE_FORMAT, p->index);
	_cleanup_close_ int fd = device_sum_open(dirfd(d), from);
	if (fd < 0)
		return fd;
	int rc = device_sum(fd, &p->bytes, &p->check);
	if (rc < 0)
		return rc;
	file_chown_invoker(fd);
	return renameat(dirfd(d), from, rec_fd, to) < 0 ? -errno : 0;
}

static bool take(struct profiles *p, DIR *d, int rec_fd, const struct entry *e,
	struct rec_device_profile *frame)
{
	int rc = take_file(d, rec_fd, e, frame);

	if (rc < 0 && rc != -EINVAL && rc != -ENOENT) {
		p->failed++;
		p->error = rc;
	}
	return rc == 0;
}

static int collect(struct profiles *profiles, DIR *d, int rec_fd, const struct entries *s,
	struct rec_writer *rec)
{
	uint32_t index = 0;
	int missing = 0; /* the process of which that was said */

	for (size_t i = 0; i < s->count; i++) {
		const struct entry *e = &s->list[i];
		struct rec_device_profile p = {.index = index, .pid = (uint32_t)e->pid};
		bool taken = !e->is_mark && take(profiles, d, rec_fd, e, &p);
		int rc;

		if (!taken && missing == e->pid)
			continue;
		if (!taken) {
			missing = e->pid;
			p = (struct rec_device_profile){
				.index = REC_DEVICE_PROFILE_NONE, .pid = (uint32_t)e->pid};
		}
		index += taken;
		rc = put_frame(rec, &p);
		if (rc < 0)
			return rc;
	}
	return 0;
}

int profiles_collect(struct profiles *p, const char *rec_path, struct rec_writer *rec)
{
	struct entries s = {0};
	_cleanup_close_ int rec_fd = -1;
	DIR *d;
	int rc;

	if (!p->dir)
		return 0;
	rec_fd = open(rec_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	d = rec_fd < 0 ? NULL : opendir(p->dir);
	if (!d) { /* somebody took it away; the rest of the recording is whole */
		p->error = -errno;
		p->failed++;
		profiles_close(p);
		return 0;
	}
	rc = list_entries(d, &s);
	if (rc == 0)
		rc = collect(p, d, rec_fd, &s, rec);
	closedir(d);
	free(s.list);
	profiles_close(p);
	return rc;
}
