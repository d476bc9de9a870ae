/* SPDX-License-Identifier: Apache-2.0 */
/* vdev_life_test.c - how ntrace-vdev starts and ends: signals, crashes, roots, commands. */
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/base/file.h"
#include "tests/shim/shim.h"
#include "tests/unit/vdev_harness.h"
#include "vmlinux/ioctl_table.h"
#include "vmlinux/neuron_args.h"

#define _run_ _cleanup_(vdev_run_end)
#define _client_ _cleanup_(vdev_client_close)

static bool exists(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0;
}

TEST("vdev: SIGTERM and SIGINT leave nothing, whatever clients are doing", "[vdev]")
{
	NEED_VDEV();
	static const int signals[] = {SIGTERM, SIGINT};

	for (int i = 0; i < 2; i++) {
		_run_ struct vdev_run run = {0};
		_cleanup_close_ int fd = -1;
		_client_ struct vdev_client c = {0};
		const struct vdev_instruction step = {
			UNORDERED, .duration_ps = 1800ull * 1000000000000ull};
		struct vdev_cinit_waiter waiter;
		pthread_t thread;
		uint32_t state;

		REQUIRE(vdev_run_start(&run, NULL));
		fd = vdev_open(&run, 0, O_RDWR);
		REQUIRE(fd >= 0);
		REQUIRE_EQ(vdev_client_open(&c, &run, fd, 0, 4096), 0);
		REQUIRE_EQ(vdev_client_load(&c, &step, 1, NULL, 0), 0);
		REQUIRE_EQ(vdev_client_launch(&c, 1), 0);
		REQUIRE_EQ(vdev_set_cinit(fd, 0, NEURON_CINIT_STARTED, &state), 0);
		waiter = (struct vdev_cinit_waiter){.fd = fd};
		REQUIRE(pthread_create(&thread, NULL, vdev_start_cinit, &waiter) == 0);
		CHECK(vdev_wait_stat(&run, "ioctl.CINIT_SET_STATE", 2));
		CHECK_EQ(vdev_run_stop(&run, signals[i]), 0);
		CHECK(!exists(run.root));
		pthread_join(thread, NULL);
		CHECK(waiter.result < 0);
		CHECK(vdev_call(fd, NEURON_IOCTL_DEVICE_RELEASE, NULL) < 0);
	}
}

/* Copies from a page that never comes. */
static int copy_from_nowhere(void *arg)
{
	struct uffdio_api api = {.api = UFFD_API};
	struct uffdio_register registration = {.mode = UFFDIO_REGISTER_MODE_MISSING};
	int faults = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int fd = vdev_open(arg, 0, O_RDWR);
	uint64_t handle;

	registration.range = (struct uffdio_range){(uintptr_t)page, 4096};
	if (ioctl(faults, UFFDIO_API, &api) < 0 ||
		ioctl(faults, UFFDIO_REGISTER, &registration) < 0)
		return 1;
	if (vdev_alloc(fd, 4096, &handle) != 0)
		return 2;
	return vdev_write(fd, handle, 0, page, 4096) < 0 ? 0 : 3;
}

TEST("vdev: a client that keeps a request from ending does not keep the device from it", "[vdev]")
{
	NEED_VDEV();
	_run_ struct vdev_run run = {0};
	_cleanup_close_ int faults = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
	pid_t pid;
	int status = -1;

	if (faults < 0)
		SKIP("userfaultfd");
	REQUIRE(vdev_run_start(&run, NULL));
	pid = fork();
	if (pid == 0)
		_exit(copy_from_nowhere(&run));
	CHECK(vdev_wait_stat(&run, "ioctl.MEM_BUF_COPY64", 1));
	/* The others are served meanwhile. */
	CHECK_EQ(vdev_stat(&run, "open_handles"), 1);
	CHECK_EQ(vdev_run_stop(&run, SIGTERM), 0);
	CHECK(!exists(run.root));
	REQUIRE(waitpid(pid, &status, 0) == pid);
	CHECK_EQ(status, 0);
}

TEST("vdev: after kill -9 the same root works again", "[vdev]")
{
	NEED_VDEV();
	_run_ struct vdev_run run = {0};
	int fd;

	REQUIRE(vdev_run_start(&run, NULL));
	fd = vdev_open(&run, 0, O_RDWR);
	CHECK_EQ(vdev_run_stop(&run, SIGKILL), SIGKILL);
	CHECK_EQ(vdev_open(&run, 0, O_RDWR), -ENOTCONN);
	REQUIRE(vdev_run_restart(&run, NULL));
	close(fd);
	fd = vdev_open(&run, 0, O_RDWR);
	CHECK(fd >= 0);
	close(fd);
	CHECK_EQ(vdev_run_stop(&run, SIGTERM), 0);
	CHECK(!exists(run.root));
}

TEST("vdev: a root in use or with other contents is refused and left alone", "[vdev]")
{
	NEED_VDEV();
	_run_ struct vdev_run run = {0};
	char foreign[64], file[96];
	int fd;

	REQUIRE(vdev_run_start(&run, NULL));
	CHECK_EQ(vdev_exec((const char *[]){"-q", "--root", run.root, NULL}), 3);
	CHECK_EQ(vdev_exec((const char *[]){"-q", "--root", run.root, "--", "true", NULL}), 125);
	fd = vdev_open(&run, 0, O_RDWR);
	CHECK(fd >= 0);
	close(fd);
	vdev_new_root(foreign);
	REQUIRE(mkdir(foreign, 0755) == 0);
	snprintf(file, sizeof(file), "%s/precious", foreign);
	fd = open(file, O_CREAT | O_WRONLY, 0600);
	REQUIRE(fd >= 0);
	close(fd);
	CHECK_EQ(vdev_exec((const char *[]){"-q", "--root", foreign, NULL}), 2);
	CHECK(exists(file));
	unlink(file);
	/* An empty directory of somebody else is used, and stays. */
	CHECK_EQ(vdev_exec((const char *[]){"-q", "--root", foreign, "--", "true", NULL}), 0);
	CHECK_EQ(rmdir(foreign), 0);
}

TEST("vdev: with a command it ends as the command ends", "[vdev]")
{
	NEED_VDEV();
	static const struct {
		const char *args[6];
		int code;
	} rows[] = {
		{{"-q", "--", "true"}, 0},
		{{"-q", "--", "sh", "-c", "exit 7"}, 7},
		{{"-q", "--", "sh", "-c", "test -w $NTRACE_DEVICE_ROOT/dev/neuron0"}, 0},
		{{"-q", "--", "sh", "-c", "grep -q VIRTUAL /dev/null || exit 9"}, 9},
		{{"-q", "--", "sh", "-c", "kill -9 $$"}, 128 + SIGKILL},
		{{"-q", "--", "sh", "-c", "kill -TERM $PPID; sleep 60"}, 128 + SIGTERM},
		{{"-q", "--", "sh", "-c", "kill -INT $PPID; exit 5"}, 5},
		{{"-q", "--", "/nonexistent/program"}, 127},
		{{"-q", "--", "/etc/passwd"}, 126},
		{{"--cores", "9", "--", "true"}, 125},
		{{"--cores", "9"}, 2},
		{{"-q"}, 2},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		test_info("%s %s %s %s", rows[i].args[0], rows[i].args[1] ? rows[i].args[1] : "",
			rows[i].args[2] ? rows[i].args[2] : "",
			rows[i].args[4] ? rows[i].args[4] : "");
		CHECK_EQ(vdev_exec(rows[i].args), rows[i].code);
	}
}

/* Left behind by a shell: says when the shell has been reaped, waits for a word, tries the device. */
#define ORPHAN                                                                           \
	"(while kill -0 $$ 2>/dev/null; do :; done; echo ready >out; read -r word <go; " \
	"true 3<>$NTRACE_DEVICE_ROOT/dev/neuron0 || word=gone; echo $word >out) 2>/dev/null & "

/* Runs `sh -c script` under the device, in a directory with the fifos go and out. */
static pid_t start_wrapper(const char *dir, const char *script)
{
	pid_t pid = fork();

	if (pid == 0) {
		char program[1024], cwd[512] = "";
		const char *name = vdev_program();

		snprintf(program, sizeof(program), "%s%s%s",
			name[0] == '/' || !getcwd(cwd, sizeof(cwd)) ? "" : cwd,
			name[0] == '/' ? "" : "/", name);
		if (chdir(dir) < 0)
			_exit(99);
		execl(program, program, "-q", "--", "sh", "-c", script, (char *)NULL);
		_exit(98);
	}
	return pid;
}

static bool hear(const char *dir, const char *word)
{
	char path[96], line[32] = "";
	FILE *f;

	snprintf(path, sizeof(path), "%s/out", dir);
	f = fopen(path, "r");
	if (f && !fgets(line, sizeof(line), f))
		line[0] = '\0';
	if (f)
		fclose(f);
	line[strcspn(line, "\n")] = '\0';
	test_info("heard: %s", line);
	return strcmp(line, word) == 0;
}

static void tell(const char *dir, const char *word)
{
	char path[96];
	FILE *f;

	snprintf(path, sizeof(path), "%s/go", dir);
	f = fopen(path, "w");
	if (f) {
		fprintf(f, "%s\n", word);
		fclose(f);
	}
}

static bool make_fifos(const char *dir)
{
	char go[96], out[96];

	snprintf(go, sizeof(go), "%s/go", dir);
	snprintf(out, sizeof(out), "%s/out", dir);
	return mkdir(dir, 0700) == 0 && mkfifo(go, 0600) == 0 && mkfifo(out, 0600) == 0;
}

static void remove_fifos(const char *dir)
{
	char path[96];

	snprintf(path, sizeof(path), "%s/go", dir);
	unlink(path);
	snprintf(path, sizeof(path), "%s/out", dir);
	unlink(path);
	snprintf(path, sizeof(path), "%s/never", dir);
	unlink(path);
	CHECK_EQ(rmdir(dir), 0);
}

TEST("vdev: what outlives the command keeps the device, whose status is the command's", "[vdev]")
{
	NEED_VDEV();
	static const struct {
		const char *script;
		int code;
	} rows[] = {
		{ORPHAN "exit 7", 7},
		{ORPHAN "kill -9 $$", 128 + SIGKILL},
		{"(" ORPHAN ") & exit 0", 0},
		{"setsid sh -c '" ORPHAN "'; exit 3", 3},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct vdev_run run = {0};

		test_info("%s", rows[i].script);
		vdev_new_root(run.root);
		REQUIRE(make_fifos(run.root));
		run.pid = start_wrapper(run.root, rows[i].script);
		CHECK(hear(run.root, "ready"));
		CHECK_EQ(waitpid(run.pid, NULL, WNOHANG), 0);
		tell(run.root, "on");
		CHECK(hear(run.root, "on"));
		int status = vdev_run_stop(&run, 0);
		CHECK(WIFEXITED(status));
		CHECK_EQ(WEXITSTATUS(status), rows[i].code);
		remove_fifos(run.root);
	}
}

TEST("vdev: SIGTERM ends a device that only orphans use", "[vdev]")
{
	NEED_VDEV();
	struct vdev_run run = {0};

	vdev_new_root(run.root);
	REQUIRE(make_fifos(run.root));
	run.pid = start_wrapper(run.root, ORPHAN "exit 7");
	CHECK(hear(run.root, "ready"));
	int status = vdev_run_stop(&run, SIGTERM);
	CHECK(WIFEXITED(status));
	CHECK_EQ(WEXITSTATUS(status), 7);
	tell(run.root, "on");
	CHECK(hear(run.root, "gone"));
	remove_fifos(run.root);
}

TEST("vdev: SIGTERM that is passed on ends the device with the command", "[vdev]")
{
	NEED_VDEV();
	struct vdev_run run = {0};

	vdev_new_root(run.root);
	REQUIRE(make_fifos(run.root));
	run.pid = start_wrapper(run.root,
		"trap 'exit 9' TERM; " ORPHAN "echo ready >out; "
		"while sleep 0.05; do :; done"); /* a read might begin behind the signal */
	CHECK(hear(run.root, "ready"));
	int status = vdev_run_stop(&run, SIGTERM);
	CHECK(WIFEXITED(status));
	CHECK_EQ(WEXITSTATUS(status), 9);
	CHECK(hear(run.root, "ready")); /* the orphan */
	tell(run.root, "on");
	CHECK(hear(run.root, "gone"));
	remove_fifos(run.root);
}

/* Children that the shell had which became ntrace-vdev are not the command's. */
TEST("vdev: children from before the command do not keep the device", "[vdev]")
{
	NEED_VDEV();
	struct vdev_run run = {0};

	vdev_new_root(run.root);
	REQUIRE(make_fifos(run.root));
	run.pid = fork();
	if (run.pid == 0) {
		char script[700];

		snprintf(script, sizeof(script),
			"(read -r word <%s/go; echo $word >%s/out) & exec %s -q -- sh -c 'exit 4'",
			run.root, run.root, vdev_program());
		execl("/bin/sh", "sh", "-c", script, (char *)NULL);
		_exit(98);
	}
	int status = vdev_run_stop(&run, 0);
	CHECK(WIFEXITED(status));
	CHECK_EQ(WEXITSTATUS(status), 4);
	tell(run.root, "on");
	CHECK(hear(run.root, "on"));
	remove_fifos(run.root);
}

TEST("vdev: private roots of dead devices are swept by the next start", "[vdev]")
{
	NEED_VDEV();
	char dir[64], command[256];
	const char *old = getenv("TMPDIR");
	_cleanup_free_ char *saved = old ? strdup(old) : NULL;

	vdev_new_root(dir);
	REQUIRE(mkdir(dir, 0700) == 0);
	setenv("TMPDIR", dir, 1);
	CHECK_EQ(vdev_exec((const char *[]){"-q", "--", "sh", "-c", "kill -9 $PPID", NULL}),
		128 + SIGKILL);
	CHECK(rmdir(dir) < 0); /* it left its root */
	snprintf(command, sizeof(command), "test $(ls %s | wc -l) = 1", dir);
	CHECK_EQ(vdev_exec((const char *[]){"-q", "--", "sh", "-c", command, NULL}), 0);
	CHECK_EQ(rmdir(dir), 0);
	if (saved)
		setenv("TMPDIR", saved, 1);
	else
		unsetenv("TMPDIR");
}
