/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inspect_dir_place.h - a place for directories of sessions, in a child, for the tests of inspect_dir_*_test.c.
 */
#ifndef NTRACE_TESTS_INSPECT_DIR_PLACE_H
#define NTRACE_TESTS_INSPECT_DIR_PLACE_H

#include <stdarg.h>
#include <sys/stat.h>

#include "runtime/base/file.h"
#include "runtime/profile/inspect_dir.h"
#include "tests/unit/nrt_init_fixture.h"

#define CALL "the_call"
#define ID "i-0123456789abcdef0"
/* 2026-11-30 12:58:38.016 UTC, and some ns */
#define TIME_NS UINT64_C(1796043518016188000)
#define TIME_TEXT "20261130_125838_016"
#define CHILD_SKIP 255 /* WANT gives less */

static inline struct inspect_dir_wish wish_for(const char *base, enum inspect_layout layout)
{
	return (struct inspect_dir_wish){
		.base = base, .layout = layout, .instance_id = ID, .time_ns = TIME_NS};
}

static inline bool is_dir(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static inline bool make_file(const char *dir, const char *name, const char *text)
{
	struct scratch_path path;
	FILE *f;

	snprintf(path.s, sizeof(path.s), "%s/%s", dir, name);
	f = fopen(path.s, "w");
	return f && fputs(text, f) >= 0 && fclose(f) == 0;
}

static inline bool holds(const char *dir, const char *name, const char *text)
{
	_cleanup_free_ char *found = NULL;
	struct scratch_path path;

	snprintf(path.s, sizeof(path.s), "%s/%s", dir, name);
	found = program_text(path.s);
	return found && strcmp(found, text) == 0;
}

/* path == base + "/" + what the format makes */
__attribute__((format(printf, 3, 4))) static inline bool is_path(
	const char *path, const char *base, const char *format, ...)
{
	char rest[PATH_MAX];
	size_t n = strlen(base);
	va_list ap;

	va_start(ap, format);
	vsnprintf(rest, sizeof(rest), format, ap);
	va_end(ap);
	if (strncmp(path, base, n) == 0 && path[n] == '/' && strcmp(path + n + 1, rest) == 0)
		return true;
	dprintf(complaint_fd, "%s is not %s/%s\n", path, base, rest);
	return false;
}

/* Runs the body in a child, in a scratch directory that is also its current one. */
static inline void run_in_place(int (*body)(void *))
{
	struct place p;
	int rc;

	REQUIRE(place_open(&p));
	rc = scratch_child(body, &p);
	place_close(&p);
	if (rc == CHILD_SKIP)
		SKIP("a mount namespace of its own");
	CHECK_EQ(rc, 0);
}

static inline int start(const struct place *p)
{
	WANT(enter_linked(p, "INFO") == 0);
	WANT(chdir(p->scratch.dir) == 0);
	umask(022);
	return 0;
}

/* How much is in the scratch directory beside the log. */
static inline int entries(const struct place *p)
{
	return scratch_entries(p->scratch.dir) - 1;
}

#endif
