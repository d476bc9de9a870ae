/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nrt_core_dump_file_test.c - the file of errors of a core dump: what is in it, what others have put in its place, and
 * that it cannot be written.
 */
#include <pthread.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "tests/unit/nrt_core_dump.h"

/* ---- what is in it ------------------------------------------------------------------------ */

/* Its path, which a first dump tells; nothing is there any more. */
static int find_file(const struct place *p, char *ret, size_t size)
{
	char *file;

	WANT(fail_with_helper(p, "") == 0);
	file = dump_value(p, 2, "--runtime-generated");
	snprintf(ret, size, "%s", file);
	free(file);
	WANT(*ret && unlink(ret) == 0);
	return 0;
}

static int appended(void *arg)
{
	char path[PATH_MAX], *text;
	FILE *f;

	WANT(find_file(arg, path, sizeof(path)) == 0);
	f = fopen(path, "we");
	WANT(f && fputs("of another\n", f) >= 0 && fclose(f) == 0);
	WANT(fail_to_load() == 0);
	text = program_text(path);
	WANT(!strncmp(text, "of another\n", 11));
	free(text);
	WANT(dump_runs(arg, "--runtime-generated") == 2);
	return 0;
}

DUMP_TEST("core dump: what another process has written to the file of errors stays", appended)

static int count_failures(const char *path)
{
	char *text = program_text(path), *at = text;
	int n = 0;

	for (; (at = strstr(at, " Model: ")); at++)
		n++;
	free(text);
	return n;
}

static int once_each(void *arg)
{
	char path[PATH_MAX];

	WANT(find_file(arg, path, sizeof(path)) == 0);
	/* A new file has all that there was. */
	WANT(fail_to_load() == 0 && count_failures(path) == 2);
	/* The same one gets but what is new. */
	WANT_STATUS(lib.nrt_load_collectives("\177NEFF", 6, 0, -1, 0, 1, &(nrt_model_t *){NULL}),
		GARBAGE_STATUS);
	WANT(count_failures(path) == 3);
	WANT(truncate(path, 0) == 0);
	WANT_STATUS(lib.nrt_load_collectives("\177NEFF", 6, 0, -1, 0, 1, &(nrt_model_t *){NULL}),
		GARBAGE_STATUS);
	WANT(count_failures(path) == 4);
	return 0;
}

DUMP_TEST("core dump: an error comes into the same file once, and into a new one again", once_each)

/* A first nrt_init that fails writes the support bundle, with the environment, as errors. */
static int confidential(void *arg)
{
	char path[PATH_MAX], *text;
	nrt_model_t *m = NULL;
	struct stat st;

	setenv("NEURON_RT_SECRET", "told to nobody", 1);
	WANT(find_file(arg, path, sizeof(path)) == 0);
	lib.nrt_close();
	setenv("NEURON_RT_NUM_CORES", "nonsense", 1);
	WANT_STATUS(init(), NRT_INVALID);
	unsetenv("NEURON_RT_NUM_CORES");
	WANT_STATUS(init(), 0);
	umask(0);
	WANT_STATUS(lib.nrt_load("\177NEFF", 6, 0, -1, &m), GARBAGE_STATUS);
	WANT(stat(path, &st) == 0 && (st.st_mode & 0777) == 0600);
	text = program_text(path);
	WANT(strstr(text, " Model: ") && !strstr(text, "nrt_infodump") &&
		!strstr(text, "told to nobody"));
	free(text);
	WANT(said(arg, "NEURON_RT_SECRET=told to nobody"));
	return 0;
}

DUMP_TEST("core dump: the file of errors has nothing of the environment, and is its owner's alone",
	confidential)

static int locked(void *arg)
{
	char path[PATH_MAX];
	int fd;

	WANT(find_file(arg, path, sizeof(path)) == 0);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	WANT(fd >= 0 && flock(fd, LOCK_EX) == 0);
	WANT(fail_to_load() == 0);
	WANT(said(arg, "Resource temporarily unavailable"));
	WANT(dump_runs(arg, "--runtime-generated") == 1);
	return close(fd);
}

DUMP_TEST("core dump: the file of errors is written under a lock, which is not waited for without "
	  "end",
	locked)

/* ---- what others have put there ----------------------------------------------------------- */

#define STRANGER 12345u /* a user */

/* Once more, with another status than before. */
static int fail_again(void)
{
	WANT_STATUS(lib.nrt_load(NULL, 1, 0, -1, NULL), NRT_INVALID);
	return 0;
}

static int planted(void *arg)
{
	char path[PATH_MAX];
	int reader;

	WANT(find_file(arg, path, sizeof(path)) == 0);
	WANT(mkfifo(path, 0600) == 0);
	WANT(fail_to_load() == 0);
	WANT(said(arg, "Cannot write"));
	reader = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	WANT(reader >= 0 && fail_again() == 0);
	WANT(said(arg, ".log: it is no plain file"));
	WANT(unlink(path) == 0 && symlink("/etc/passwd", path) == 0);
	WANT(fail_again() == 0);
	WANT(said(arg, "Too many levels of symbolic links"));
	WANT(dump_runs(arg, "--runtime-generated") == 1);
	return close(reader);
}

DUMP_TEST("core dump: a FIFO or a link in the place of the file of errors is neither written nor "
	  "handed out",
	planted)

static int of_others(void *arg)
{
	struct scratch_path other = dump_place(arg, "other");
	char path[PATH_MAX];
	struct stat st;
	int fd;

	WANT(find_file(arg, path, sizeof(path)) == 0);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	WANT(fd >= 0 && fchown(fd, STRANGER, 0) == 0);
	WANT(fail_to_load() == 0);
	WANT(said(arg, ".log: it belongs to another user"));
	WANT(fchown(fd, geteuid(), 0) == 0 && link(path, other.s) == 0);
	WANT(fail_again() == 0);
	WANT(said(arg, ".log: it has another name, too"));
	WANT(fstat(fd, &st) == 0 && st.st_size == 0);
	WANT(dump_runs(arg, "--runtime-generated") == 1);
	return close(fd);
}

DUMP_TEST("core dump: a file of errors of another user, or with two names, is neither written nor "
	  "handed out",
	of_others)

struct swap {
	const char *path;
	int locked; /* of the test; the library has another descriptor of the same file */
};

static bool is_opened_twice(void *path)
{
	char link[64], to[PATH_MAX];
	int found = 0;

	for (int fd = 3; fd < 256; fd++) {
		ssize_t n;

		snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
		n = readlink(link, to, sizeof(to) - 1);
		to[n > 0 ? n : 0] = '\0';
		found += !strcmp(to, path);
	}
	return found == 2;
}

/* As soon as the library waits for the lock. */
static void *swap_it(void *arg)
{
	struct swap *s = arg;

	if (program_until(is_opened_twice, (void *)s->path, 20) && unlink(s->path) == 0)
		(void)symlink("/etc/passwd", s->path);
	(void)flock(s->locked, LOCK_UN);
	return NULL;
}

/* The lock is waited for but a second: on a busy machine one more try. */
static int swapped(void *arg)
{
	char path[PATH_MAX], *log = NULL;
	struct swap s = {.path = path};
	pthread_t thread;

	WANT(find_file(arg, path, sizeof(path)) == 0);
	for (int i = 0; i < 3 && !(log && strstr(log, "it has been replaced")); i++) {
		free(log);
		(void)unlink(path);
		s.locked = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
		WANT(s.locked >= 0 && flock(s.locked, LOCK_EX) == 0);
		WANT(pthread_create(&thread, NULL, swap_it, &s) == 0);
		WANT((i ? fail_again() : fail_to_load()) == 0);
		WANT(pthread_join(thread, NULL) == 0 && close(s.locked) == 0);
		log = program_text(dump_place(arg, "log").s);
	}
	free(log);
	WANT(said(arg, ".log: it has been replaced while it was opened"));
	WANT(dump_runs(arg, "--runtime-generated") == 1);
	return 0;
}

DUMP_TEST("core dump: a name that is swapped for a link while the lock is waited for is not handed "
	  "out",
	swapped)

static int others_directory(void *arg)
{
	struct scratch_path dir = dump_place(arg, "theirs/dumps"),
			    theirs = dump_place(arg, "theirs");

	WANT(mkdir(theirs.s, 0755) == 0 && chown(theirs.s, STRANGER, 0) == 0);
	WANT(dump_begin(arg, dir.s, "ERROR") == 0);
	WANT(fail_to_load() == 0);
	WANT(said(arg, "theirs belongs to another user"));
	WANT(chown(theirs.s, geteuid(), 0) == 0 && chmod(theirs.s, 0777) == 0);
	WANT(fail_again() == 0);
	WANT(said(arg, "theirs can be changed by all users"));
	WANT(access(dir.s, F_OK) < 0 && dump_runs(arg, "") == 0);
	return 0;
}

DUMP_TEST(
	"core dump: none goes where another user can change what is found there, and that is said",
	others_directory)

/* ---- it cannot be written ----------------------------------------------------------------- */

static int nowhere(void *arg)
{
	struct scratch_path out = dump_place(arg, "plain/dumps"), plain = dump_place(arg, "plain");
	int fd = open(plain.s, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	struct scratch_path log = dump_place(arg, "log");
	char *text;

	WANT(fd >= 0);
	close(fd);
	WANT(dump_begin(arg, out.s, "ERROR") == 0);
	WANT(fail_to_load() == 0);
	text = program_text(log.s);
	WANT(strstr(text, "Cannot write ") && strstr(text, "Not a directory"));
	WANT(strstr(text, "Unable to find file: ") && strstr(text, "/plain/dumps/"));
	free(text);
	WANT(dump_runs(arg, "") == 2 && dump_runs(arg, "--runtime-generated") == 0);
	return 0;
}

DUMP_TEST("core dump: a directory that cannot be made: the cores are dumped, the file is said to "
	  "be missing",
	nowhere)

/* What is said goes through a pipe, for it could not grow either. */
static int limited(void *arg)
{
	struct scratch_path dir = dump_place(arg, "dumps");
	const struct rlimit none = {0, RLIM_INFINITY};
	char text[8192] = "";
	int ends[2];

	WANT(dump_begin(arg, dir.s, "ERROR") == 0);
	WANT(pipe2(ends, O_CLOEXEC) == 0 && dup2(ends[1], 2) == 2);
	WANT(setrlimit(RLIMIT_FSIZE, &none) == 0);
	WANT(fail_to_load() == 0);
	WANT(read(ends[0], text, sizeof(text) - 1) > 0);
	WANT(strstr(text, "Cannot write ") && strstr(text, "File too large"));
	return 0;
}

DUMP_TEST("core dump: a limit on the size of files does not end the program", limited)

static int without_descriptors(void *arg)
{
	struct scratch_path dir = dump_place(arg, "dumps");
	struct rlimit few = {0, 0}, was;

	WANT(dump_begin(arg, dir.s, "ERROR") == 0);
	WANT(getrlimit(RLIMIT_NOFILE, &was) == 0);
	few.rlim_max = was.rlim_max;
	WANT(setrlimit(RLIMIT_NOFILE, &few) == 0);
	WANT(fail_to_load() == 0);
	WANT(setrlimit(RLIMIT_NOFILE, &was) == 0);
	WANT(said(arg, "Too many open files"));
	WANT(access(dir.s, F_OK) < 0);
	return 0;
}

DUMP_TEST("core dump: without a descriptor there is no file, which is said", without_descriptors)
