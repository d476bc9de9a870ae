/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file_test.c - files that are whole or not there, under the failures that make it hard: a target
 * that exists, a full disk, a limit, a file system without RENAME_NOREPLACE, and somebody who is
 * faster.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "runtime/base/file.h"
#include "tests/shim/shim.h"
#include "tests/unit/scratch.h"

/* Does path hold exactly this text? */
static bool holds(const char *path, const char *text)
{
	_cleanup_free_ char *data = NULL;
	size_t size;

	return file_read(path, 1 << 20, &data, &size) == 0 && size == strlen(text) &&
	       memcmp(data, text, size) == 0;
}

static int write_text(const char *path, const char *text)
{
	struct outfile f;
	int err = outfile_open(&f, path);

	if (err)
		return err;
	outfile_write(&f, text, strlen(text));
	return outfile_commit(&f);
}

TEST("file_read_line: the first line, as much as fits, and nothing of a file that is not there",
	"[base]")
{
	static const struct {
		const char *text, *line;
	} cases[] = {{"one\ntwo\n", "one"}, {"one", "one"}, {"", ""}, {"\ntwo", ""},
		{"1234567\n", "1234567"}, {"12345678\n", "1234567"}};
	struct scratch_path path;
	char line[8] = "before";
	struct scratch s;

	REQUIRE(scratch_make(&s));
	path = scratch_path(&s, "text");
	CHECK_EQ(file_read_line(path.s, line, sizeof(line)), -ENOENT);
	CHECK_STR(line, "");
	CHECK_EQ(file_read_line(path.s, line, 0), -EINVAL);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		test_info("case %zu", i);
		REQUIRE_EQ(write_text(path.s, cases[i].text), 0);
		CHECK_EQ(file_read_line(path.s, line, sizeof(line)), 0);
		CHECK_STR(line, cases[i].line);
		REQUIRE(unlink(path.s) == 0);
	}
	scratch_remove(&s);
}

/* ---- outfile -------------------------------------------------------------------------------- */

TEST("outfile: the name appears at commit, with everything written", "[base]")
{
	static const size_t sizes[] = {0, 1, 100, 65535, 65536, 65537, 200000, 3};
	struct scratch s;
	struct scratch_path path;
	_cleanup_free_ char *data = NULL, *want = NULL;
	size_t size = 0, total = 0;
	struct outfile f;

	REQUIRE(scratch_make(&s));
	path = scratch_path(&s, "out");
	want = malloc(1 << 20);
	REQUIRE(want != NULL);
	for (size_t i = 0; i < 1 << 20; i++)
		want[i] = (char)(i * 2654435761u >> 13);
	REQUIRE_EQ(outfile_open(&f, path.s), 0);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		outfile_write(&f, want + total, sizes[i]);
		total += sizes[i];
		CHECK_EQ(f.bytes, total);
	}
	CHECK(access(path.s, F_OK) != 0);
	CHECK(strncmp(strrchr(f.tmp_path, '/'), "/.ntrace-tmp-", 13) == 0);
	CHECK_EQ(scratch_entries(s.dir), 1);
	CHECK_EQ(outfile_commit(&f), 0);
	CHECK_EQ(scratch_entries(s.dir), 1);
	REQUIRE_EQ(file_read(path.s, 1 << 20, &data, &size), 0);
	CHECK_EQ(size, total);
	CHECK(memcmp(data, want, total) == 0);
	outfile_abort(&f); /* harmless after commit */
	CHECK_EQ(scratch_entries(s.dir), 1);
	scratch_remove(&s);
}

TEST("outfile: an existing target is refused at open, whatever it is", "[base]")
{
	struct scratch s;
	struct outfile f;

	REQUIRE(scratch_make(&s));
	REQUIRE_EQ(write_text(scratch_path(&s, "file").s, "mine"), 0);
	REQUIRE_EQ(mkdir(scratch_path(&s, "dir").s, 0700), 0);
	REQUIRE_EQ(symlink("nowhere", scratch_path(&s, "dangling").s), 0);
	CHECK_EQ(outfile_open(&f, scratch_path(&s, "file").s), -EEXIST);
	outfile_abort(&f); /* harmless after a failed open */
	CHECK_EQ(outfile_open(&f, scratch_path(&s, "dir").s), -EEXIST);
	CHECK_EQ(outfile_open(&f, scratch_path(&s, "dangling").s), -EEXIST);
	CHECK_EQ(outfile_open(&f, scratch_path(&s, "no/such/dir").s), -ENOENT);
	CHECK(holds(scratch_path(&s, "file").s, "mine"));
	CHECK_EQ(scratch_entries(s.dir), 3);
	scratch_remove(&s);
}

TEST("outfile: a target that appears meanwhile is not replaced and nothing is left", "[base]")
{
	struct scratch s;
	struct outfile a, b;

	REQUIRE(scratch_make(&s));
	REQUIRE_EQ(outfile_open(&a, scratch_path(&s, "out").s), 0);
	REQUIRE_EQ(outfile_open(&b, scratch_path(&s, "out").s), 0);
	outfile_write(&a, "first", 5);
	outfile_write(&b, "second", 6);
	CHECK_EQ(outfile_commit(&b), 0);
	CHECK_EQ(outfile_commit(&a), -EEXIST);
	CHECK(holds(scratch_path(&s, "out").s, "second"));
	CHECK_EQ(scratch_entries(s.dir), 1);
	scratch_remove(&s);
}

TEST("outfile: abort leaves nothing and closes what it opened", "[base]")
{
	struct outfile f;
	struct scratch s;
	int fd;

	REQUIRE(scratch_make(&s));
	REQUIRE_EQ(outfile_open(&f, scratch_path(&s, "out").s), 0);
	fd = f.fd;
	outfile_write(&f, "text", 4);
	outfile_abort(&f);
	CHECK(fcntl(fd, F_GETFD) < 0);
	outfile_abort(&f);
	CHECK_EQ(outfile_commit(&f), -EBADF);
	CHECK_EQ(scratch_entries(s.dir), 0);
	scratch_remove(&s);
}

TEST("outfile: what was never opened is left alone, its descriptor number too", "[base]")
{
	struct outfile zero = {0}, other = {0};
	int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);

	REQUIRE(fd >= 0);
	outfile_abort(&zero); /* 0 is somebody's descriptor */
	CHECK_EQ(zero.fd, -1);
	other.fd = fd;
	CHECK_EQ(outfile_commit(&other), -EBADF);
	outfile_abort(&other);
	CHECK(fcntl(fd, F_GETFD) >= 0);
	close(fd);
}

TEST("outfile: a leftover with the next temporary name is passed over and kept", "[base]")
{
	struct scratch_path stale;
	struct outfile f;
	struct scratch s;
	unsigned n;
	int pid;

	REQUIRE(scratch_make(&s));
	REQUIRE_EQ(outfile_open(&f, scratch_path(&s, "a").s), 0);
	REQUIRE_EQ(sscanf(strrchr(f.tmp_path, '/'), "/.ntrace-tmp-%d-%u", &pid, &n), 2);
	CHECK_EQ(pid, getpid());
	outfile_abort(&f);
	snprintf(stale.s, sizeof(stale.s), "%s/.ntrace-tmp-%d-%u", s.dir, pid, n + 1);
	REQUIRE(symlink("stale", stale.s) == 0);
	CHECK_EQ(write_text(scratch_path(&s, "b").s, "b"), 0);
	CHECK(holds(scratch_path(&s, "b").s, "b"));
	CHECK_EQ(scratch_entries(s.dir), 2);
	scratch_remove(&s);
}

/* Makes renameat2 answer EINVAL in this process, as file systems without RENAME_NOREPLACE do. */
static int refuse_renameat2(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_renameat2, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = {sizeof(code) / sizeof(code[0]), code};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, 2, &prog))
		return -errno;
	return 0;
}

#define CHILD_SKIP 77

static int commit_by_link(void *arg)
{
	const struct scratch *s = arg;
	struct outfile f;

	if (outfile_open(&f, scratch_path(s, "taken").s))
		return 1;
	outfile_write(&f, "new", 3);
	if (write_text(scratch_path(s, "taken").s, "old"))
		return 2;
	if (refuse_renameat2())
		return CHILD_SKIP;
	if (renameat2(AT_FDCWD, "x", AT_FDCWD, "y", 1) == 0 || errno != EINVAL)
		return 3;
	if (outfile_commit(&f) != -EEXIST)
		return 4;
	return write_text(scratch_path(s, "fresh").s, "fresh") ? 5 : 0;
}

TEST("outfile: without RENAME_NOREPLACE a link does the same", "[base]")
{
	struct scratch s;
	int code;

	REQUIRE(scratch_make(&s));
	code = scratch_child(commit_by_link, &s);
	if (code != CHILD_SKIP) {
		CHECK_EQ(code, 0);
		CHECK(holds(scratch_path(&s, "fresh").s, "fresh"));
		CHECK(holds(scratch_path(&s, "taken").s, "old"));
		CHECK_EQ(scratch_entries(s.dir), 2);
	}
	scratch_remove(&s);
	if (code == CHILD_SKIP)
		SKIP("seccomp filters");
}

struct limited {
	struct scratch *s;
	size_t limit, bytes;
};

/* Writes `bytes` in small pieces where the kernel refuses to go beyond `limit`. */
static int write_beyond_limit(void *arg)
{
	const struct limited *l = arg;
	struct rlimit limit = {l->limit, l->limit};
	static const char piece[100];
	struct outfile f;

	if (setrlimit(RLIMIT_FSIZE, &limit))
		return 1;
	if (outfile_open(&f, scratch_path(l->s, "out").s))
		return 2;
	for (size_t done = 0; done < l->bytes; done += sizeof(piece))
		outfile_write(&f, piece, sizeof(piece));
	return outfile_commit(&f) == -EFBIG ? 0 : 3;
}

TEST("outfile: a failed write is reported by commit and nothing is left", "[base]")
{
	static const size_t limits[][2] = {
		{100000, 1000000}, /* fails in the middle, the error sticks */
		{1000, 2000},	   /* fails at the last flush, in commit */
		{0, 100},
	};

	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		struct scratch s;
		struct limited l = {&s, limits[i][0], limits[i][1]};

		test_info("limit %zu, written %zu", l.limit, l.bytes);
		REQUIRE(scratch_make(&s));
		CHECK_EQ(scratch_child(write_beyond_limit, &l), 0);
		CHECK_EQ(scratch_entries(s.dir), 0);
		scratch_remove(&s);
	}
}

/* On a file system of 64 KiB of its own, which goes with the child's mount namespace. */
static int write_to_full_disk(void *arg)
{
	const struct scratch *s = arg;
	struct outfile f;
	char piece[4096] = {1};

	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
		mount("none", s->dir, "tmpfs", 0, "size=64k"))
		return CHILD_SKIP;
	if (outfile_open(&f, scratch_path(s, "out").s))
		return 1;
	for (int i = 0; i < 64; i++)
		outfile_write(&f, piece, sizeof(piece));
	if (f.error != -ENOSPC || outfile_commit(&f) != -ENOSPC)
		return 2;
	if (scratch_entries(s->dir) != 0)
		return 3;
	/* and the space is there again */
	return write_text(scratch_path(s, "small").s, "fits") ? 4 : 0;
}

TEST("outfile: a full disk is ENOSPC and its space is given back", "[base]")
{
	struct scratch s;
	int code;

	REQUIRE(scratch_make(&s));
	code = scratch_child(write_to_full_disk, &s);
	scratch_remove(&s);
	if (code == CHILD_SKIP)
		SKIP("the right to mount a tmpfs");
	CHECK_EQ(code, 0);
}

/* ---- owner and mode ------------------------------------------------------------------------- */

struct masked {
	struct scratch s;
	mode_t mask;
};

static int create_with_umask(void *arg)
{
	const struct masked *m = arg;

	umask(m->mask);
	if (file_mkdirs(scratch_path(&m->s, "d/e").s, NULL))
		return 1;
	return write_text(scratch_path(&m->s, "d/e/f").s, "x") ? 2 : 0;
}

static bool has(const struct scratch *s, const char *name, mode_t mode, uid_t uid, gid_t gid)
{
	struct stat st;

	return stat(scratch_path(s, name).s, &st) == 0 && (st.st_mode & 0777) == mode &&
	       st.st_uid == uid && st.st_gid == gid;
}

TEST("file: what is created follows the umask", "[base]")
{
	static const mode_t masks[] = {0, 022, 027, 077};

	for (size_t i = 0; i < sizeof(masks) / sizeof(masks[0]); i++) {
		struct masked m = {.mask = masks[i]};

		test_info("umask %03o", masks[i]);
		REQUIRE(scratch_make(&m.s));
		CHECK_EQ(scratch_child(create_with_umask, &m), 0);
		CHECK(has(&m.s, "d/e", 0777 & ~masks[i], geteuid(), getegid()));
		CHECK(has(&m.s, "d/e/f", 0666 & ~masks[i], geteuid(), getegid()));
		scratch_remove(&m.s);
	}
}

struct sudo {
	struct scratch s;
	const char *uid, *gid;
};

static int create_under_sudo(void *arg)
{
	struct sudo *sudo = arg;
	_cleanup_free_ char *path = NULL;

	umask(022);
	if (setenv("SUDO_UID", sudo->uid, 1) || setenv("SUDO_GID", sudo->gid, 1))
		return 1;
	if (file_mkdirs(scratch_path(&sudo->s, "old/new").s, NULL) ||
		file_mkdir_unique(scratch_path(&sudo->s, "old").s, &path))
		return 2;
	return write_text(scratch_path(&sudo->s, "old/new/f").s, "x") ? 3 : 0;
}

TEST("file: under sudo, what is created belongs to who called it", "[base]")
{
	static const struct {
		const char *uid, *gid;
		uid_t want_uid;
		gid_t want_gid;
	} rows[] = {
		{"12345", "23456", 12345, 23456},
		{"12345x", "23456", 0, 0},
		{"-1", "23456", 0, 0},
		{"4294967295", "23456", 0, 0},
		{"", "", 0, 0},
	};

	if (geteuid() != 0)
		SKIP("root");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct sudo sudo = {.uid = rows[i].uid, .gid = rows[i].gid};
		uid_t u = rows[i].want_uid;
		gid_t g = rows[i].want_gid;

		test_info("SUDO_UID=%s", rows[i].uid);
		REQUIRE(scratch_make(&sudo.s));
		REQUIRE_EQ(mkdir(scratch_path(&sudo.s, "old").s, 0755), 0);
		CHECK_EQ(scratch_child(create_under_sudo, &sudo), 0);
		CHECK(has(&sudo.s, "old", 0755, 0, getegid())); /* was there before: not touched */
		CHECK(has(&sudo.s, "old/new", 0755, u, g));
		CHECK(has(&sudo.s, "old_2", 0755, u, g));
		CHECK(has(&sudo.s, "old/new/f", 0644, u, g));
		scratch_remove(&sudo.s);
	}
}

/* ---- directories ---------------------------------------------------------------------------- */

TEST("file_mkdirs: what was made can be taken back, and nothing else", "[base]")
{
	struct scratch s;
	unsigned made = 9;

	REQUIRE(scratch_make(&s));
	REQUIRE_EQ(file_mkdirs(scratch_path(&s, "old").s, &made), 0);
	CHECK_EQ(made, 1);
	REQUIRE_EQ(file_mkdirs(scratch_path(&s, "old//x/y/").s, &made), 0);
	CHECK_EQ(made, 2);
	file_mkdirs_undo(scratch_path(&s, "old//x/y/").s, made);
	CHECK_EQ(scratch_entries(scratch_path(&s, "old").s), 0);
	REQUIRE_EQ(file_mkdirs(scratch_path(&s, "old").s, &made), 0);
	CHECK_EQ(made, 0);
	file_mkdirs_undo(scratch_path(&s, "old").s, made);
	CHECK_EQ(scratch_entries(scratch_path(&s, "old").s), 0);

	/* Fails in the middle: what was made before is gone again. */
	REQUIRE_EQ(write_text(scratch_path(&s, "old/file").s, "x"), 0);
	CHECK_EQ(file_mkdirs(scratch_path(&s, "old/a/../file/b").s, &made), -ENOTDIR);
	REQUIRE_EQ(file_mkdirs(scratch_path(&s, "old/in/use").s, &made), 0);
	REQUIRE_EQ(write_text(scratch_path(&s, "old/in/use/file").s, "x"), 0);
	file_mkdirs_undo(scratch_path(&s, "old/in/use").s, made);
	CHECK_EQ(scratch_entries(scratch_path(&s, "old/in/use").s), 1);
	scratch_remove(&s);
}

TEST("file_mkdirs: makes what is missing, accepts what is there", "[base]")
{
	static const struct {
		const char *path;
		int want;
	} rows[] = {
		{"a", 0},
		{"a", 0},
		{"a/b//c/", 0},
		{"a/b/c/../d", 0},
		{"link/in/link", 0},
		{"file", -ENOTDIR},
		{"file/x", -ENOTDIR},
	};
	struct scratch s;

	REQUIRE(scratch_make(&s));
	REQUIRE_EQ(write_text(scratch_path(&s, "file").s, "x"), 0);
	REQUIRE_EQ(symlink("a", scratch_path(&s, "link").s), 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct scratch_path p = scratch_path(&s, rows[i].path);
		struct stat st;

		test_info("%s", rows[i].path);
		CHECK_EQ(file_mkdirs(p.s, NULL), rows[i].want);
		CHECK((stat(p.s, &st) == 0 && S_ISDIR(st.st_mode)) == (rows[i].want == 0));
	}
	CHECK_EQ(file_mkdirs("/", NULL), 0);
	CHECK_EQ(file_mkdirs("", NULL), -ENOENT);
	scratch_remove(&s);
}

TEST("file_mkdir_unique: base, then _2, _3, whatever stands in the way", "[base]")
{
	static const char *const names[] = {"run", "run_2", "run_5", "run_6"};
	struct scratch s;
	char *path = NULL;

	REQUIRE(scratch_make(&s));
	REQUIRE_EQ(write_text(scratch_path(&s, "run_3").s, "a file"), 0);
	REQUIRE_EQ(symlink("nowhere", scratch_path(&s, "run_4").s), 0);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		/* a slash at the end makes no difference */
		REQUIRE_EQ(
			file_mkdir_unique(scratch_path(&s, i == 2 ? "run/" : "run").s, &path), 0);
		CHECK_STR(path, scratch_path(&s, names[i]).s);
		CHECK_EQ(scratch_entries(path), 0);
		free(path);
	}
	path = NULL;
	CHECK_EQ(file_mkdir_unique(scratch_path(&s, "no/parent").s, &path), -ENOENT);
	CHECK(path == NULL);
	scratch_remove(&s);
}

#define RACERS 16

/* Waits for the gate to open, takes a directory, leaves a file named after itself in it. */
static int race(const struct scratch *s, int gate, int number)
{
	_cleanup_free_ char *path = NULL;
	char name[PATH_MAX], byte;

	if (read(gate, &byte, 1) != 0 || file_mkdir_unique(scratch_path(s, "run").s, &path))
		return 1;
	snprintf(name, sizeof(name), "%s/%d", path, number);
	return write_text(name, "x") ? 2 : 0;
}

TEST("file_mkdir_unique: of many at once each gets its own", "[base]")
{
	pid_t pids[RACERS];
	struct scratch s;
	int gate[2];

	REQUIRE(scratch_make(&s));
	REQUIRE_EQ(pipe(gate), 0);
	for (int i = 0; i < RACERS; i++) {
		pids[i] = fork();
		if (pids[i] == 0) {
			close(gate[1]);
			_exit(race(&s, gate[0], i));
		}
		CHECK(pids[i] > 0);
	}
	close(gate[1]); /* opens the gate: everybody reads the end */
	close(gate[0]);
	for (int i = 0; i < RACERS; i++) {
		int status = -1;

		CHECK(waitpid(pids[i], &status, 0) == pids[i]);
		CHECK_EQ(status, 0);
	}
	CHECK_EQ(scratch_entries(s.dir), RACERS);
	for (int n = 1; n <= RACERS; n++) {
		char name[32];

		snprintf(name, sizeof(name), n == 1 ? "run" : "run_%d", n);
		CHECK_EQ(scratch_entries(scratch_path(&s, name).s), 1);
	}
	scratch_remove(&s);
}

/* ---- reading and writing -------------------------------------------------------------------- */

TEST("file_read: whole files up to the limit, with a NUL behind", "[base]")
{
	static const struct {
		const char *text;
		size_t max;
		int want;
	} rows[] = {
		{"", 0, 0},
		{"x", 0, -EFBIG},
		{"12345", 5, 0},
		{"12345", 4, -EFBIG},
		{"12345", SIZE_MAX, 0},
	};
	struct scratch s;

	REQUIRE(scratch_make(&s));
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct scratch_path p;
		char name[16], *data = NULL;
		size_t size = 99;

		snprintf(name, sizeof(name), "f%zu", i);
		p = scratch_path(&s, name);
		test_info("\"%s\", at most %zu", rows[i].text, rows[i].max);
		REQUIRE_EQ(write_text(p.s, rows[i].text), 0);
		CHECK_EQ(file_read(p.s, rows[i].max, &data, &size), rows[i].want);
		CHECK((data != NULL) == (rows[i].want == 0));
		if (data) {
			CHECK_EQ(size, strlen(rows[i].text));
			CHECK_STR(data, rows[i].text);
		}
		free(data);
	}
	scratch_remove(&s);
}

TEST("file_read: files without a size, and what is no file", "[base]")
{
	_cleanup_free_ char *data = NULL;
	size_t size = 0;

	REQUIRE_EQ(file_read("/proc/self/status", 1 << 20, &data, &size), 0);
	CHECK(size > 0);
	CHECK(strstr(data, "\nPid:\t") != NULL);
	CHECK_EQ(strlen(data), size);
	CHECK_EQ(file_read("/proc/self/no-such", 100, &data, &size), -ENOENT);
	CHECK_EQ(file_read("/", 100, &data, &size), -EISDIR);
}

TEST("file_write_all: an error after a part is an error", "[base]")
{
	int p[2];

	CHECK_EQ(file_write_all(-1, "x", 0), 0);
	CHECK_EQ(file_write_all(-1, "x", 1), -EBADF);
	REQUIRE_EQ(pipe2(p, O_NONBLOCK), 0);
	_cleanup_free_ char *big = calloc(1, 1 << 21);
	REQUIRE(big != NULL);
	CHECK_EQ(file_write_all(p[1], big, 1 << 21), -EAGAIN); /* a part fits, the rest does not */
	CHECK(read(p[0], big, 1 << 21) > 0);
	close(p[0]);
	close(p[1]);
}

TEST("cleanup: close keeps errno, and takes a negative descriptor", "[base]")
{
	int fd = dup(1), none = -1;

	REQUIRE(fd >= 0);
	errno = ENOSPC;
	cleanup_close(&fd);
	cleanup_close(&none);
	CHECK_EQ(errno, ENOSPC);
	CHECK(fcntl(fd, F_GETFD) < 0);
}
