/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inspect_dir_test.c - directories of sessions: their names, and who gets which when several want one.
 */
#include <pthread.h>
#include <sys/stat.h>

#include "runtime/profile/inspect_config.h"
#include "tests/unit/inspect_dir_place.h"

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
