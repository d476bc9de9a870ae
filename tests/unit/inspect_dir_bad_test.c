/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inspect_dir_bad_test.c - bases that cannot be one, and faults while a directory is made: nothing half-made stays.
 */
#include <errno.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "tests/unit/inspect_dir_place.h"
#include "tests/unit/nrt_faults.h"

/* ---- bases that can't be one -------------------------------------------------------------- */

static int refused(const struct place *p, const char *base, NRT_STATUS status, const char *text)
{
	int before = entries(p);

	for (int on_fail = 0; on_fail < 2; on_fail++)
		for (int layout = 0; layout < 3; layout++) {
			struct inspect_dir_wish wish = wish_for(base, (enum inspect_layout)layout);
			struct inspect_dir *d = NULL;

			wish.on_fail = on_fail;
			WANT_STATUS(inspect_dir_open(CALL, &wish, &d), status);
			WANT(!d && said(p, text));
			WANT(entries(p) == before);
		}
	return 0;
}

static int bad_bases(void *arg)
{
	char deep[PATH_MAX + 10], long_name[NAME_MAX + 10];
	struct place *p = arg;

	WANT(start(p) == 0);
	WANT(make_file(".", "file", "") && symlink("loop", "loop") == 0);
	memset(long_name, 'n', sizeof(long_name) - 1);
	long_name[sizeof(long_name) - 1] = '\0';
	for (size_t i = 0; i < sizeof(deep) - 1; i++)
		deep[i] = i % 100 ? 'd' : '/';
	deep[sizeof(deep) - 1] = '\0';
	WANT(refused(p, "./tmp", NRT_INVALID, "Tmp is not acceptable for output directory name.") ==
		0);
	WANT(refused(p, "file", NRT_INVALID, "below 'file': Not a directory; name a directory") ==
		0);
	WANT(refused(p, "file/below", NRT_INVALID, "Not a directory; name a directory") == 0);
	WANT(refused(p, "loop", NRT_INVALID, "name a directory") == 0);
	WANT(refused(p, long_name, NRT_INVALID,
		     "File name too long; name a directory with a shorter") == 0);
	WANT(refused(p, deep, NRT_INVALID, "File name too long; name a directory with a shorter") ==
		0);
	WANT(refused(p, "/proc/none", NRT_FAILURE, "No such file or directory; name another") == 0);
	return 0;
}

TEST("inspect dir: ./tmp, files, circles and long names are refused, with what to do",
	"[inspect_dir]")
{
	run_in_place(bad_bases);
}

static int not_ours(void *arg)
{
	struct place *p = arg;

	WANT(start(p) == 0);
	WANT(mkdir("closed", 0555) == 0 && chmod(".", 0755) == 0 && fchmod(2, 0644) == 0);
	if (geteuid() == 0)
		WANT(seteuid(65534) == 0);
	WANT(refused(p, "closed", NRT_FAILURE,
		     "below 'closed': Permission denied; name a directory that this user may write "
		     "to") == 0);
	WANT(refused(p, "closed/new", NRT_FAILURE, "Permission denied") == 0);
	return 0;
}

TEST("inspect dir: a base that this user may not write to is refused", "[inspect_dir]")
{
	run_in_place(not_ours);
}

/* inodes: for the base and so many more, which only the last layout's second directory lacks */
static int full(void *arg)
{
	struct place *p = arg;

	WANT(start(p) == 0);
	WANT(mkdir("small", 0700) == 0);
	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
		mount("none", "small", "tmpfs", 0, "nr_inodes=3"))
		return CHILD_SKIP;
	/* Its root and one directory have two of the three. */
	WANT(mkdir("small/a", 0700) == 0 && mkdir("small/b", 0700) == 0);
	WANT(refused(p, "small", NRT_RESOURCE,
		     "No space left on device; make room there, in bytes or in inodes") == 0);
	WANT(rmdir("small/b") == 0);
	for (int i = 0; i < 2; i++) { /* room for one of two */
		struct inspect_dir_wish wish =
			wish_for("small", i ? INSPECT_LAYOUT_FLAT : INSPECT_LAYOUT_SEED);
		struct inspect_dir *d;

		wish.on_fail = i;
		WANT_STATUS(inspect_dir_open(CALL, &wish, &d), NRT_RESOURCE);
		WANT(scratch_entries("small") == 1);
	}
	return 0;
}

TEST("inspect dir: without inodes nothing half-made stays", "[inspect_dir]")
{
	run_in_place(full);
}

static int gone(void *arg)
{
	struct inspect_dir_wish wish = wish_for("out", INSPECT_LAYOUT_FLAT);
	struct place *p = arg;
	struct inspect_dir *d;

	WANT(start(p) == 0);
	WANT(mkdir("here", 0700) == 0 && chdir("here") == 0 && rmdir("../here") == 0);
	WANT_STATUS(inspect_dir_open(CALL, &wish, &d), NRT_FAILURE);
	WANT(said(p, "below 'out': No such file or directory"));
	return 0;
}

TEST("inspect dir: a relative base in a current directory that is gone is refused", "[inspect_dir]")
{
	run_in_place(gone);
}

/* ---- faults ------------------------------------------------------------------------------- */

#define LAST_FAULT 400u

static int each_fault(const struct faults *f, enum inspect_layout layout, bool on_fail)
{
	bool happened = true;

	for (unsigned long n = 1; happened && n < LAST_FAULT; n++) {
		struct inspect_dir_wish wish = wish_for("a/b", layout);
		struct belongings before = belongings_now(), after;
		struct inspect_dir *d = NULL;
		NRT_STATUS status;

		wish.on_fail = on_fail;
		f->arm(n, false);
		status = inspect_dir_open(CALL, &wish, &d);
		happened = f->happened();
		f->arm(0, false);
		WANT((status == NRT_SUCCESS) == (d != NULL));
		WANT(happened || status == NRT_SUCCESS);
		inspect_dir_close(d);
		after = belongings_now();
		WANT(belongings_equal(&before, &after) && scratch_entries(".") == 0);
	}
	WANT(!happened);
	return 0;
}

static int with_faults(const struct place *p, const struct faults *f)
{
	setenv("NEURON_RT_LOG_LEVEL", "QUIET", 1);
	log_configure();
	WANT(chdir(p->scratch.dir) == 0);
	for (int layout = 0; layout < 3; layout++)
		for (int on_fail = 0; on_fail < 2; on_fail++)
			WANT(each_fault(f, (enum inspect_layout)layout, on_fail) == 0);
	WANT(leaks() == 0);
	return 0;
}

TEST("inspect dir: with a fault (hidden)", "[.inspect_dir_faults]")
{
	faults_work(with_faults);
}

TEST("inspect dir: no allocation that fails leaves anything", "[inspect_dir]")
{
	faults_run("[.inspect_dir_faults]");
}

TEST("inspect dir: no call to the system that fails leaves anything", "[inspect_dir]")
{
	faults_run_on("[.inspect_dir_faults]", "NTRACE_FAULT=file:0", two_cores);
}
