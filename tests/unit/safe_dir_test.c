/* SPDX-License-Identifier: Apache-2.0 */
/*
 * safe_dir_test.c - paths on which somebody else could put something, and those on which nobody could.
 */
#include "runtime/base/safe_dir.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/shim/shim.h"
#include "tests/unit/scratch.h"

#define STRANGER 12345u /* a user */

/* What the open of a path below the scratch directory gives; "" for the directory itself. */
static int opened(const struct scratch *s, const char *path, struct safe_dir *ret)
{
	int rc = safe_dir_open(scratch_path(s, path).s, ret);

	safe_dir_close(ret);
	return rc;
}

/* Refused, for this reason, because of this part. */
static bool is_refused(const struct scratch *s, const char *path, const char *why, const char *part)
{
	struct safe_dir d;
	int rc = opened(s, path, &d);

	test_info("%s: %d, %s %s", path, rc, d.path, d.why ? d.why : "");
	return rc == -EPERM && d.why && !strcmp(d.why, why) &&
	       !strcmp(d.path, scratch_path(s, part).s);
}

TEST("safe dir: it is made where it is missing, and its path is the real one", "[core-dump]")
{
	static const struct {
		const char *path, *real;
	} rows[] = {
		{"one", "one"},
		{"two/deep/er", "two/deep/er"},
		{"one//./../one/", "one"},
		{"link/below", "two/below"},
		{"up/below", "one/below"},
		{"absolute/x", "two/x"},
	};
	struct scratch s;
	struct safe_dir d;
	struct stat st;
	char cwd[PATH_MAX];

	REQUIRE(scratch_make(&s));
	REQUIRE(opened(&s, "one", &d) == 0 && opened(&s, "two", &d) == 0);
	REQUIRE(symlink("two", scratch_path(&s, "link").s) == 0);
	REQUIRE(symlink("two/../one", scratch_path(&s, "up").s) == 0);
	REQUIRE(symlink(scratch_path(&s, "two").s, scratch_path(&s, "absolute").s) == 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		test_info("%s", rows[i].path);
		CHECK_EQ(opened(&s, rows[i].path, &d), 0);
		CHECK_STR(d.path, scratch_path(&s, rows[i].real).s);
		CHECK(stat(d.path, &st) == 0 && S_ISDIR(st.st_mode) && !(st.st_mode & 0022));
	}
	REQUIRE(getcwd(cwd, sizeof(cwd)) && chdir(s.dir) == 0);
	CHECK_EQ(safe_dir_open("relative/to", &d), 0);
	CHECK_STR(d.path, scratch_path(&s, "relative/to").s);
	CHECK(fstat(d.fd, &st) == 0 && S_ISDIR(st.st_mode));
	safe_dir_close(&d);
	CHECK_EQ(safe_dir_open("/", &d), 0);
	CHECK_STR(d.path, "/");
	safe_dir_close(&d);
	REQUIRE(chdir(cwd) == 0);
	scratch_remove(&s);
}

TEST("safe dir: one that others can change is refused, and which and why is known", "[core-dump]")
{
	struct scratch s;
	struct safe_dir d;

	if (geteuid() != 0)
		SKIP("root, for a directory of somebody else");
	REQUIRE(scratch_make(&s));
	REQUIRE(opened(&s, "theirs/below", &d) == 0 && opened(&s, "open/below", &d) == 0);
	REQUIRE(chown(scratch_path(&s, "theirs").s, STRANGER, 0) == 0);
	REQUIRE(chmod(scratch_path(&s, "open").s, 0777) == 0);
	REQUIRE(symlink("/etc", scratch_path(&s, "link").s) == 0);
	REQUIRE(lchown(scratch_path(&s, "link").s, STRANGER, 0) == 0);
	REQUIRE(symlink("theirs", scratch_path(&s, "mine").s) == 0);
	CHECK(is_refused(&s, "theirs", "belongs to another user", "theirs"));
	CHECK(is_refused(&s, "theirs/below", "belongs to another user", "theirs"));
	CHECK(is_refused(&s, "theirs/new", "belongs to another user", "theirs"));
	CHECK(access(scratch_path(&s, "theirs/new").s, F_OK) < 0);
	CHECK(is_refused(&s, "link", "belongs to another user", "link"));
	CHECK(is_refused(&s, "mine/below", "belongs to another user", "theirs"));
	CHECK(is_refused(&s, "open", "can be changed by all users", "open"));
	CHECK(is_refused(&s, "open/below", "can be changed by all users", "open"));
	REQUIRE(chmod(scratch_path(&s, "open").s, 01777) == 0);
	CHECK_EQ(opened(&s, "open/below", &d), 0);
	scratch_remove(&s);
}

TEST("safe dir: what cannot be had is an error, without a reason of that kind", "[core-dump]")
{
	static char longest[2 * PATH_MAX];
	struct scratch s;
	struct safe_dir d;
	FILE *f;

	REQUIRE(scratch_make(&s));
	f = fopen(scratch_path(&s, "plain").s, "we");
	REQUIRE(f && fclose(f) == 0);
	REQUIRE(symlink("loop", scratch_path(&s, "loop").s) == 0);
	CHECK_EQ(opened(&s, "plain", &d), -ENOTDIR);
	CHECK_EQ(opened(&s, "plain/below", &d), -ENOTDIR);
	CHECK_EQ(opened(&s, "loop", &d), -ELOOP);
	CHECK(!d.why);
	CHECK_EQ(safe_dir_open("", &d), -ENOENT);
	memset(longest, 'x', NAME_MAX + 1);
	CHECK_EQ(opened(&s, longest, &d), -ENAMETOOLONG);
	for (size_t i = 0; i < sizeof(longest) - 1; i++)
		longest[i] = i % 2 ? '/' : 'x';
	CHECK_EQ(safe_dir_open(longest, &d), -ENAMETOOLONG);
	CHECK_EQ(d.fd, -1);
	scratch_remove(&s);
}
