/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inspect_dir_on_fail_test.c - what is moved out of the scratch directory of a session that only failures keep.
 */
#include <sys/stat.h>

#include "tests/unit/inspect_dir_place.h"

/* ---- scratch directories ------------------------------------------------------------------ */

static int salvage(
	const struct place *p, enum inspect_layout layout, const char *before, const char *after)
{
	static const char *const names[] = {
		"failed.ntff", "never.ntff", "taken.pb", "../x", "trace_info.pb"};
	struct inspect_dir_wish wish = wish_for("out", layout);
	struct inspect_dir *d;
	char path[PATH_MAX], text[PATH_MAX * 2];

	wish.on_fail = true;
	WANT_STATUS(inspect_dir_open(CALL, &wish, &d), 0);
	WANT(is_path(d->work, p->scratch.dir, "out/.%s%d%s.tmp", before, (int)getpid(), after));
	WANT(is_dir(d->work) && is_dir(d->path));
	WANT(make_file(d->work, "failed.ntff", "f") && make_file(d->work, "good.ntff", "g") &&
		make_file(d->work, "taken.pb", "new") && make_file(d->path, "taken.pb", "old") &&
		make_file(d->work, "trace_info.pb", "t") && make_file("out", "x", "other"));
	/* A program may close every descriptor that it does not know. */
	if (layout == INSPECT_LAYOUT_FLAT)
		close_range(3, complaint_fd - 1, 0), close_range(complaint_fd + 1, ~0U, 0);
	WANT(inspect_dir_keep(CALL, d, names, 5) == -EEXIST);
	snprintf(text, sizeof(text), "Move %s/failed.ntff to %s/failed.ntff", d->work, d->path);
	WANT(said(p, text));
	WANT(holds(d->path, "failed.ntff", "f") && holds(d->path, "trace_info.pb", "t") &&
		holds(d->path, "taken.pb", "old") && holds(d->work, "taken.pb", "new") &&
		holds("out", "x", "other"));
	WANT(scratch_entries(d->path) == 3 && scratch_entries(d->work) == 2);
	WANT(inspect_dir_drop(d, "good.ntff") == 0 && inspect_dir_drop(d, "good.ntff") == 0 &&
		inspect_dir_drop(d, "../x") == -EINVAL && holds("out", "x", "other"));
	snprintf(path, sizeof(path), "%s", d->path);
	snprintf(text, sizeof(text), "The working directory %s of the session stays", d->work);
	inspect_dir_close(d);
	WANT(said(p, text));
	WANT(scratch_entries(path) == 3);
	return 0;
}

static int salvages(void *arg)
{
	struct place *p = arg;

	WANT(start(p) == 0);
	WANT(salvage(p, INSPECT_LAYOUT_FLAT, ID "_pid_", "") == 0);
	WANT(salvage(p, INSPECT_LAYOUT_TIMESTAMP, ID "_pid_", "_" TIME_TEXT) == 0);
	WANT(salvage(p, INSPECT_LAYOUT_SEED, ID "-", "_1796043518016188000") == 0);
	return 0;
}

TEST("inspect dir: files of failures are moved by name, nothing is replaced, and what is left is "
     "said",
	"[inspect_dir]")
{
	run_in_place(salvages);
}

static int nothing_failed(void *arg)
{
	struct place *p = arg;

	WANT(start(p) == 0);
	for (int layout = 0; layout < 3; layout++) {
		struct inspect_dir_wish wish = wish_for("new/out", (enum inspect_layout)layout);
		struct inspect_dir *d;

		wish.on_fail = true;
		WANT_STATUS(inspect_dir_open(CALL, &wish, &d), 0);
		WANT(make_file(d->work, "good.ntff", "g") && inspect_dir_drop(d, "good.ntff") == 0);
		inspect_dir_close(d);
		WANT(entries(p) == 0);
	}
	return 0;
}

TEST("inspect dir: when nothing failed nothing is left", "[inspect_dir]")
{
	run_in_place(nothing_failed);
}

static int leaf_removed(void *arg)
{
	static const char *const names[] = {"failed.ntff"};
	struct inspect_dir_wish wish = wish_for("out", INSPECT_LAYOUT_FLAT);
	struct place *p = arg;
	struct inspect_dir *d;
	char work[PATH_MAX];

	WANT(start(p) == 0);
	wish.on_fail = true;
	WANT_STATUS(inspect_dir_open(CALL, &wish, &d), 0);
	snprintf(work, sizeof(work), "%s", d->work);
	WANT(rmdir(d->path) == 0 && make_file(d->work, "failed.ntff", "f"));
	WANT(inspect_dir_keep(CALL, d, names, 1) == -ENOENT);
	WANT(said(p, "No such file or directory; it stays there"));
	/* Somebody has the name now; it is not taken away. */
	WANT(mkdir(d->path, 0700) == 0);
	inspect_dir_close(d);
	WANT(holds(work, "failed.ntff", "f"));
	WANT(scratch_entries("out") == 2);
	return 0;
}

TEST("inspect dir: what cannot be moved stays where it is; a directory that is another's now stays "
     "too",
	"[inspect_dir]")
{
	run_in_place(leaf_removed);
}
