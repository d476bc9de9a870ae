/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inspect_spool_program_test.c - an inspect session in a program that does what it wants: closes, removes, fills the disk.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include "runtime/profile/inspect_spool.h"
#include "runtime/record/merge.h"
#include "runtime/trace/trace.h"
#include "tests/shim/shim.h"
#include "tests/unit/inspect_spool_session.h"
#include "tests/unit/programs.h"
#include "tests/unit/scratch.h"

/* ---- a program that does what it wants ---------------------------------------------------- */

static int closes_all(void *arg)
{
	struct place *p = arg;
	struct inspect_outcome o;
	bool own[1200] = {false};
	int first, fd;

	WANT(begin(p) == 0);
	emit(p, 100);
	nap(150);
	for (fd = 3; fd < 1200; fd++)
		close(fd);
	/* Files of the program's own at all the numbers that were the session's. */
	first = open(scratch_path(&p->scratch, "own").s, O_RDWR | O_CREAT, 0600);
	WANT(first >= 0);
	for (fd = 3; fd < 1200; fd++)
		if (fcntl(fd, F_GETFD) < 0) /* else the session has it again */
			own[fd] = dup2(first, fd) == fd;
	emit(p, 100);
	nap(250);
	WANT(lseek(first, 0, SEEK_END) == 0); /* nobody wrote to it */
	for (fd = 3; fd < 1200; fd++)
		WANT(!own[fd] || fcntl(fd, F_GETFD) >= 0); /* nor closed it */
	WANT(finish(p, &o) == 0);
	WANT(o.events == 400 && o.lost == 0);
	WANT(lseek(first, 0, SEEK_END) == 0);
	unlink(scratch_path(&p->scratch, "own").s);
	return 0;
}

TEST("inspect spool: a program that closes all descriptors keeps its session, and its own files",
	"[inspect][spool]")
{
	struct place p;

#ifdef __SANITIZE_THREAD__
	SKIP("a build without ThreadSanitizer, which objects to a close of what another thread "
	     "uses");
#endif
	REQUIRE(place_open(&p));
	CHECK_EQ(scratch_child(closes_all, &p), 0);
	REQUIRE(read_files(&p));
	CHECK_EQ(p.trace.count, 400);
	CHECK_EQ(strange_names(&p), 0);
	place_close(&p);
}

static int without_stdio(void *arg)
{
	struct place *p = arg;
	struct inspect_outcome o;

	close(0);
	close(1);
	close(2);
	WANT(begin(p) == 0);
	for (int i = 0; i < 50; i++) {
		WANT(write(1, "out", 3) < 0 && write(2, "err", 3) < 0);
		emit(p, 10);
		nap(5);
	}
	WANT(finish(p, &o) == 0);
	WANT(write(1, "out", 3) < 0 && write(2, "err", 3) < 0);
	return 0;
}

TEST("inspect spool: where standard output is closed nothing that is printed lands in a file",
	"[inspect][spool]")
{
	struct place p;

	REQUIRE(place_open(&p));
	CHECK_EQ(scratch_child(without_stdio, &p), 0);
	REQUIRE(read_files(&p));
	CHECK_EQ(p.trace.count, 1000);
	place_close(&p);
}

static int removed(void *arg)
{
	struct place *p = arg;
	struct inspect_outcome o;

	WANT(begin(p) == 0);
	emit(p, 100);
	scratch_remove_tree(p->scratch.dir);
	nap(150);
	emit(p, 100);
	WANT(finish(p, &o) < 0);
	WANT(o.error == -ENOENT);
	WANT(!trace_on());
	return 0;
}

TEST("inspect spool: a directory that is removed is not made again, and the program goes on",
	"[inspect][spool]")
{
	struct place p;

	REQUIRE(place_open(&p));
	CHECK_EQ(scratch_child(removed, &p), 0);
	CHECK(access(p.scratch.dir, F_OK) < 0);
	place_close(&p);
}

static int in_the_way(void *arg)
{
	struct place *p = arg;
	struct inspect_outcome o;

	WANT(begin(p) == 0);
	emit(p, 100);
	WANT(close(open(scratch_path(&p->scratch, "host_mem.pb").s, O_WRONLY | O_CREAT, 0600)) ==
		0);
	WANT(finish(p, &o) == -EEXIST);
	WANT(o.is_kept);
	return 0;
}

TEST("inspect spool: a file that is there already is not overwritten, and the recording stays",
	"[inspect][spool]")
{
	struct place p;

	REQUIRE(place_open(&p));
	CHECK_EQ(scratch_child(in_the_way, &p), 0);
	CHECK_EQ(size_of(&p, "host_mem.pb"), 0);
	CHECK(has(&p, "recording") && !has(&p, "ntrace.pb") && !has(&p, "trace_info.pb"));
	CHECK_EQ(scratch_entries(p.scratch.dir), 2);
	place_close(&p);
}

/* ---- no space ----------------------------------------------------------------------------- */

static int disk_full(void *arg)
{
	struct place *p = arg;
	struct inspect_outcome o;

	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
		mount("none", p->scratch.dir, "tmpfs", 0, "size=256k") < 0)
		return 77;
	WANT(begin(p) == 0);
	for (int i = 0; i < 3000 && trace_on(); i++) {
		emit(p, 5000);
		nap(10);
	}
	WANT(!trace_on()); /* nobody wants more */
	emit(p, 100);
	WANT(finish(p, &o) < 0);
	WANT(o.error == -ENOSPC && o.is_kept);
	/* What there was until then is whole. */
	struct merge_result m;
	char *text;
	WANT(merge_recording(scratch_path(&p->scratch, "recording").s, NULL,
		     &(struct merge_options){.leaf = true}, &m, &text) == 0);
	WANT(m.balanced && !m.ended && m.end.reason == REC_END_NO_SPACE && m.outputs[0].events);
	return 0;
}

TEST("inspect spool: on a full disk the recording ends in order, and the program goes on",
	"[inspect][spool]")
{
	struct place p;
	int rc;

	REQUIRE(place_open(&p));
	rc = scratch_child(disk_full, &p);
	place_close(&p);
	if (rc == 77)
		SKIP("the right to mount a tmpfs");
	CHECK_EQ(rc, 0);
}
