/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inspect_dir_test.c - directories of sessions: their names, who gets which when several want one,
 * links and files in the way, bases that can't be one, what is moved out of a scratch directory,
 * and that nothing is left.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "runtime/base/file.h"
#include "runtime/profile/inspect_config.h"
#include "runtime/profile/inspect_dir.h"
#include "tests/unit/nrt_faults.h"
#include "tests/unit/nrt_init_fixture.h"

#define CALL "the_call"
#define ID "i-0123456789abcdef0"
/* 2026-11-30 12:58:38.016 UTC, and some ns */
#define TIME_NS UINT64_C(1796043518016188000)
#define TIME_TEXT "20261130_125838_016"
#define CHILD_SKIP 255 /* WANT gives less */

static struct inspect_dir_wish wish_for(const char *base, enum inspect_layout layout)
{
	return (struct inspect_dir_wish){
		.base = base, .layout = layout, .instance_id = ID, .time_ns = TIME_NS};
}

static bool is_dir(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static bool make_file(const char *dir, const char *name, const char *text)
{
	struct scratch_path path;
	FILE *f;

	snprintf(path.s, sizeof(path.s), "%s/%s", dir, name);
	f = fopen(path.s, "w");
	return f && fputs(text, f) >= 0 && fclose(f) == 0;
}

static bool holds(const char *dir, const char *name, const char *text)
{
	_cleanup_free_ char *found = NULL;
	struct scratch_path path;

	snprintf(path.s, sizeof(path.s), "%s/%s", dir, name);
	found = program_text(path.s);
	return found && strcmp(found, text) == 0;
}

/* path == base + "/" + what the format makes */
__attribute__((format(printf, 3, 4))) static bool is_path(
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
static void run_in_place(int (*body)(void *))
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

static int start(const struct place *p)
{
	WANT(enter_linked(p, "INFO") == 0);
	WANT(chdir(p->scratch.dir) == 0);
	umask(022);
	return 0;
}

/* How much is in the scratch directory beside the log. */
static int entries(const struct place *p)
{
	return scratch_entries(p->scratch.dir) - 1;
}

/* ---- names -------------------------------------------------------------------------------- */

static int each_layout(void *arg)
{
	static const struct {
		enum inspect_layout layout;
		const char *before, *after;
	} cases[] = {
		{INSPECT_LAYOUT_FLAT, ID "_pid_", ""},
		{INSPECT_LAYOUT_TIMESTAMP, ID "_pid_", "/" TIME_TEXT},
		{INSPECT_LAYOUT_SEED, ID "-", "/1796043518016188000"},
	};
	struct place *p = arg;

	WANT(start(p) == 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct inspect_dir_wish wish = wish_for("./a//./b/", cases[i].layout);
		struct inspect_dir *d;

		WANT_STATUS(inspect_dir_open(CALL, &wish, &d), 0);
		WANT(is_path(d->path, p->scratch.dir, "a/b/%s%d%s", cases[i].before, (int)getpid(),
			cases[i].after));
		WANT(!d->is_null && strcmp(d->path, d->work) == 0);
		WANT(is_dir(d->path) && kept_fd_valid(&d->fd));
		inspect_dir_close(d);
		WANT(entries(p) == 0);
	}
	return 0;
}

TEST("inspect dir: each layout has its names, and what stayed empty goes with the session",
	"[inspect_dir]")
{
	run_in_place(each_layout);
}

static int elsewhere(void *arg)
{
	struct inspect_dir_wish wish = wish_for("out", INSPECT_LAYOUT_TIMESTAMP);
	struct place *p = arg;
	struct inspect_dir *d;
	char path[PATH_MAX];
	struct stat st;

	WANT(start(p) == 0);
	umask(027);
	WANT_STATUS(inspect_dir_open(CALL, &wish, &d), 0);
	WANT(chdir("/") == 0 && is_dir(d->path));
	WANT(stat(d->path, &st) == 0 && (st.st_mode & 0777) == 0750);
	WANT(make_file(d->path, "one", "1"));
	snprintf(path, sizeof(path), "%s", d->path);
	inspect_dir_close(d);
	WANT(holds(path, "one", "1"));
	return 0;
}

TEST("inspect dir: a relative base is the one of the begin; the umask holds; a directory with "
     "files stays",
	"[inspect_dir]")
{
	run_in_place(elsewhere);
}

static int no_name(void *arg)
{
	struct inspect_dir_wish wish = wish_for("", INSPECT_LAYOUT_FLAT);
	struct place *p = arg;
	struct inspect_dir *d;

	WANT(start(p) == 0);
	for (int i = 0; i < 2; i++) {
		WANT_STATUS(inspect_dir_open(CALL, &wish, &d), 0);
		WANT(said(p, "provided inspect output directory is empty. Defaulting to ./output"));
		WANT(is_path(d->path, p->scratch.dir, "output/" ID "_pid_%d", (int)getpid()));
		inspect_dir_close(d);
		wish.base = NULL;
	}
	return 0;
}

TEST("inspect dir: without a base it is ./output, which is said", "[inspect_dir]")
{
	run_in_place(no_name);
}

static int nowhere(void *arg)
{
	struct inspect_dir_wish wish = wish_for("/dev/null", INSPECT_LAYOUT_SEED);
	const char *const names[] = {"a"};
	struct place *p = arg;
	struct inspect_dir *d;

	WANT(start(p) == 0);
	wish.on_fail = true;
	WANT_STATUS(inspect_dir_open(CALL, &wish, &d), 0);
	WANT(d->is_null && strcmp(d->path, "/dev/null") == 0 && !d->work && d->fd.fd == -1);
	WANT(inspect_dir_keep(CALL, d, names, 1) == 0 && inspect_dir_drop(d, "a") == 0);
	inspect_dir_close(d);
	WANT(entries(p) == 0);
	return 0;
}

TEST("inspect dir: /dev/null is a base in which nothing is made", "[inspect_dir]")
{
	run_in_place(nowhere);
}

/* ---- names that are taken ----------------------------------------------------------------- */

static int taken(void *arg)
{
	struct inspect_dir_wish wish = wish_for(".", INSPECT_LAYOUT_FLAT);
	struct place *p = arg;
	struct inspect_dir *d[3];
	char name[200];

	WANT(start(p) == 0);
	WANT(mkdir("away", 0700) == 0);
	for (int i = 0; i < 3; i++) {
		WANT_STATUS(inspect_dir_open(CALL, &wish, &d[i]), 0);
		if (i == 0) { /* a link and a file have the next two */
			snprintf(name, sizeof(name), ID "_pid_%d_2", (int)getpid());
			WANT(symlink("away", name) == 0);
			snprintf(name, sizeof(name), ID "_pid_%d_3", (int)getpid());
			WANT(make_file(".", name, "mine"));
		}
	}
	WANT(is_path(d[0]->path, p->scratch.dir, ID "_pid_%d", (int)getpid()));
	WANT(is_path(d[1]->path, p->scratch.dir, ID "_pid_%d_4", (int)getpid()));
	WANT(is_path(d[2]->path, p->scratch.dir, ID "_pid_%d_5", (int)getpid()));
	for (int i = 0; i < 3; i++)
		inspect_dir_close(d[i]);
	WANT(entries(p) == 3 && scratch_entries("away") == 0 && holds(".", name, "mine"));
	return 0;
}

TEST("inspect dir: a name that a directory, a link or a file has is stepped over", "[inspect_dir]")
{
	run_in_place(taken);
}

static int levels(void *arg)
{
	struct inspect_dir_wish wish = wish_for("base", INSPECT_LAYOUT_TIMESTAMP);
	struct place *p = arg;
	struct inspect_dir *d[4];
	char name[200];
	int pid = (int)getpid();

	WANT(start(p) == 0);
	WANT(mkdir("base", 0700) == 0 && mkdir("away", 0700) == 0);
	/* The base is another link, which is the user's own business. */
	WANT(symlink("base", "link") == 0);
	wish.base = "link";
	snprintf(name, sizeof(name), "base/" ID "_pid_%d", pid);
	WANT(symlink("../away", name) == 0);
	snprintf(name, sizeof(name), "base/" ID "_pid_%d_2", pid);
	WANT(mkdir(name, 0777) == 0);
	if (geteuid() == 0)
		WANT(chown(name, 12345, 12345) == 0);
	for (int i = 0; i < 2; i++)
		WANT_STATUS(inspect_dir_open(CALL, &wish, &d[i]), 0);
	if (geteuid() == 0) {
		WANT(is_path(d[0]->path, p->scratch.dir, "link/" ID "_pid_%d_3/" TIME_TEXT, pid));
		WANT(is_path(
			d[1]->path, p->scratch.dir, "link/" ID "_pid_%d_3/" TIME_TEXT "_2", pid));
	}
	inspect_dir_close(d[0]);
	WANT(is_dir(d[1]->path));
	inspect_dir_close(d[1]);
	WANT(scratch_entries("away") == 0 && scratch_entries(name) == 0);
	return 0;
}

TEST("inspect dir: a level is shared, but no link, and no directory of somebody else",
	"[inspect_dir]")
{
	run_in_place(levels);
}

/* ---- several at once ---------------------------------------------------------------------- */

#define THREADS 8
#define ROUNDS 100

static void *open_and_close(void *arg)
{
	struct inspect_dir_wish wish = wish_for("a/b/c", INSPECT_LAYOUT_TIMESTAMP);
	intptr_t bad = 0;

	wish.on_fail = (uintptr_t)arg & 1;
	for (int i = 0; i < ROUNDS; i++) {
		struct inspect_dir *d;

		if (inspect_dir_open(CALL, &wish, &d)) {
			bad++;
			continue;
		}
		bad += mkdirat(d->fd.fd, "mine", 0700) != 0 ||
		       unlinkat(d->fd.fd, "mine", AT_REMOVEDIR);
		inspect_dir_close(d);
	}
	return (void *)bad;
}

static int at_once(void *arg)
{
	pthread_t threads[THREADS];
	struct place *p = arg;
	int before;

	WANT(start(p) == 0);
	before = scratch_entries("/proc/self/fd");
	for (uintptr_t i = 0; i < THREADS; i++)
		WANT(pthread_create(&threads[i], NULL, open_and_close, (void *)i) == 0);
	for (int i = 0; i < THREADS; i++) {
		void *bad;

		WANT(pthread_join(threads[i], &bad) == 0 && !bad);
	}
	WANT(scratch_entries("/proc/self/fd") == before);
	/* The base stays when who made it was not the last; no session is in it. */
	WANT(access("a/b/c", F_OK) < 0 || scratch_entries("a/b/c") == 0);
	return 0;
}

TEST("inspect dir: who wants one name at once gets each a directory, though others take the base "
     "away",
	"[inspect_dir]")
{
	run_in_place(at_once);
}

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

/* ---- the call ----------------------------------------------------------------------------- */

static int init_simulated(void)
{
	unsetenv("NTRACE_DEVICE_ROOT");
	setenv("NEURON_RT_FAKE_INSTANCE_TYPE", "trn1.2xlarge", 1);
	WANT_STATUS(init(), 0);
	return 0;
}

/* What the call says of a directory. */
static const char *where(const char *dir)
{
	static char buf[PATH_MAX];

	if (lib.nrt_inspect_get_instance_output_dir(dir, buf, sizeof(buf)) != NRT_SUCCESS)
		return "";
	return buf;
}

static int asks(void *arg)
{
	struct inspect_dir_wish wish = wish_for("mine", INSPECT_LAYOUT_FLAT);
	struct place *p = arg;
	struct inspect_dir *d;
	char small[8] = "before", first[PATH_MAX], leaf[PATH_MAX];

	WANT(start(p) == 0 && init_simulated() == 0);
	/* Nobody has a session: what one would get, and nothing is made. */
	snprintf(first, sizeof(first), "%s", where(NULL));
	snprintf(leaf, sizeof(leaf), "%s", strrchr(first, '/') + 1);
	WANT(strstr(leaf, "_pid_") && is_path(first, p->scratch.dir, "output/%s", leaf));
	WANT(strcmp(where(""), first) == 0 && strcmp(where("./output/"), first) == 0);
	WANT(strcmp(where("/dev/null"), "/dev/null") == 0);
	WANT(entries(p) == 0);
	WANT(mkdir("output", 0700) == 0 && mkdir(first, 0700) == 0);
	WANT(is_path(where(NULL), p->scratch.dir, "output/%s_2", leaf));
	/* A session's own is not looked for. */
	WANT_STATUS(inspect_dir_open(CALL, &wish, &d), 0);
	inspect_dir_publish(d);
	WANT(strcmp(where(NULL), d->path) == 0 && strcmp(where("./mine"), d->path) == 0);
	WANT(symlink("mine", "yours") == 0 && strcmp(where("yours"), d->path) == 0);
	WANT(is_path(where("output"), p->scratch.dir, "output/%s_2", leaf));
	/* What has ended is where it was, as long as it is there. */
	inspect_dir_publish(NULL);
	WANT(strcmp(where("mine"), d->path) == 0);
	inspect_dir_close(d);
	WANT(is_path(where(NULL), p->scratch.dir, "output/%s_2", leaf));
	WANT(is_path(where("mine"), p->scratch.dir, "mine/%s", leaf));
	/* Refusals. */
	WANT_STATUS(lib.nrt_inspect_get_instance_output_dir("./tmp", small, sizeof(small)),
		NRT_INVALID);
	WANT(said(p, "Tmp is not acceptable"));
	WANT_STATUS(
		lib.nrt_inspect_get_instance_output_dir(NULL, small, sizeof(small)), NRT_INVALID);
	WANT(said(p, "Buffer too small (8 bytes). Need ") && strcmp(small, "before") == 0);
	WANT_STATUS(lib.nrt_inspect_get_instance_output_dir(NULL, NULL, 100), NRT_INVALID);
	WANT(said(p, "No place for the answer"));
	lib.nrt_close();
	return 0;
}

TEST("inspect dir: the call names the session's own directory, else the next, and makes none",
	"[inspect_dir]")
{
	run_in_place(asks);
}

static int asks_by_layout(void *arg)
{
	struct place *p = arg;
	const char *path;

	WANT(start(p) == 0);
	setenv("NTRACE_OUTPUT_LAYOUT", "Timestamp", 1);
	WANT(init_simulated() == 0);
	path = where("out");
	WANT(strstr(path, "_pid_") &&
		strspn(strrchr(path, '/') + 1, "0123456789_") == strlen(TIME_TEXT));
	lib.nrt_close();
	setenv("NTRACE_OUTPUT_LAYOUT", "seed", 1);
	WANT_STATUS(init(), 0);
	path = where("out");
	WANT(!strstr(path, "_pid_") && strspn(strrchr(path, '/') + 1, "0123456789") == 19);
	lib.nrt_close();
	setenv("NTRACE_OUTPUT_LAYOUT", "other", 1);
	WANT_STATUS(init(), NRT_INVALID);
	WANT(said(p, "NTRACE_OUTPUT_LAYOUT='other' is not one of flat timestamp seed"));
	return 0;
}

TEST("inspect dir: NTRACE_OUTPUT_LAYOUT chooses the layout", "[inspect_dir]")
{
	run_in_place(asks_by_layout);
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
