/* SPDX-License-Identifier: Apache-2.0 */
/*
 * helper_test.c - a program that is run from inside of another: how it ends, what it inherits, and that the other
 * does not notice.
 */
#include "runtime/lifecycle/helper.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "tests/shim/shim.h"
#include "tests/unit/programs.h"
#include "tests/unit/scratch.h"

#define LONG_MS 60000u

static struct helper_end shell(const char *script, uint64_t limit_ms)
{
	char *argv[] = {"/bin/sh", "-c", (char *)script, NULL};

	return helper_run(argv, limit_ms);
}

static struct helper_end program(const char *path)
{
	char *argv[] = {(char *)path, NULL};

	return helper_run(argv, LONG_MS);
}

TEST("helper: its end is told, an exit with its status and a death with its signal", "[core-dump]")
{
	struct helper_end end = shell("exit 7", LONG_MS);

	CHECK_EQ(end.how, HELPER_EXITED);
	CHECK_EQ(end.value, 7);
	end = shell("exit 0", LONG_MS);
	CHECK_EQ(end.how, HELPER_EXITED);
	CHECK_EQ(end.value, 0);
	end = shell("kill -SEGV $$", LONG_MS);
	CHECK_EQ(end.how, HELPER_DIED);
	CHECK_EQ(end.value, SIGSEGV);
}

TEST("helper: one that cannot be run says why", "[core-dump]")
{
	struct scratch s;
	struct scratch_path text;
	struct helper_end end = program("/nowhere/at/all");
	int fd;

	CHECK_EQ(end.how, HELPER_NOT_RUN);
	CHECK_EQ(end.value, ENOENT);
	end = program("/tmp");
	CHECK_EQ(end.how, HELPER_NOT_RUN);
	CHECK_EQ(end.value, EACCES);
	REQUIRE(scratch_make(&s));
	text = scratch_path(&s, "text");
	fd = open(text.s, O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
	CHECK_EQ(write(fd, "words\n", 6), 6);
	close(fd);
	end = program(text.s);
	CHECK_EQ(end.how, HELPER_NOT_RUN);
	CHECK_EQ(end.value, ENOEXEC);
	scratch_remove(&s);
}

TEST("helper: one without an end is killed in time, and so are its children", "[core-dump]")
{
	struct scratch s;
	struct scratch_path pids;
	struct helper_end end;
	char script[PATH_MAX + 128], *text;
	int helper = 0, child = 0;

	REQUIRE(scratch_make(&s));
	pids = scratch_path(&s, "pids");
	snprintf(script, sizeof(script), "sleep 600 & echo $$ $! >%s; wait; exit 0", pids.s);
	/* Long enough for the file to be written on a busy machine. */
	end = shell(script, 3000);
	CHECK_EQ(end.how, HELPER_KILLED);
	text = program_text(pids.s);
	CHECK_EQ(sscanf(text, "%d %d", &helper, &child), 2);
	free(text);
	if (helper > 0 && child > 0) {
		CHECK(program_until(program_gone, &helper, 20));
		CHECK(program_until(program_gone, &child, 20));
	}
	scratch_remove(&s);
}

TEST("helper: when the process that waits for it is killed or stopped the caller goes on",
	"[core-dump]")
{
	CHECK_EQ(shell("kill -KILL $PPID", LONG_MS).how, HELPER_UNKNOWN);
	CHECK_EQ(shell("kill -STOP $PPID", 3000).how, HELPER_UNKNOWN);
}

TEST("helper: it does not outlive the process that waits for it", "[core-dump]")
{
	struct scratch s;
	struct scratch_path out;
	char script[PATH_MAX + 64], *text;
	int helper = 0;

	REQUIRE(scratch_make(&s));
	out = scratch_path(&s, "out");
	snprintf(script, sizeof(script), "echo $$ >%s; kill -KILL $PPID; exec sleep 600", out.s);
	CHECK_EQ(shell(script, LONG_MS).how, HELPER_UNKNOWN);
	text = program_text(out.s);
	CHECK_EQ(sscanf(text, "%d", &helper), 1);
	free(text);
	if (helper > 0)
		CHECK(program_until(program_gone, &helper, 20));
	/* Nor does a child of its. */
	helper = 0;
	snprintf(script, sizeof(script), "sleep 600 & echo $! >%s; kill -KILL $PPID; wait", out.s);
	CHECK_EQ(shell(script, LONG_MS).how, HELPER_UNKNOWN);
	text = program_text(out.s);
	CHECK_EQ(sscanf(text, "%d", &helper), 1);
	free(text);
	if (helper > 0)
		CHECK(program_until(program_gone, &helper, 20));
	scratch_remove(&s);
}

TEST("helper: without time there is no run", "[core-dump]")
{
	CHECK_EQ(shell("exec sleep 600", 0).how, HELPER_KILLED);
}

/* ---- what the program does with its children ---------------------------------------------- */

static atomic_int heard;

static void hear(int number)
{
	(void)number;
	atomic_fetch_add(&heard, 1);
}

static bool has_children(void)
{
	char path[64], *text;
	bool some;

	snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)gettid());
	text = program_text(path);
	some = *text != '\0';
	free(text);
	return some;
}

static pid_t own_child(int status)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(status);
	return pid;
}

/* Each in a process of its own, for they change what SIGCHLD does. */
#define NEED(x)                                                         \
	do {                                                            \
		if (!(x)) {                                             \
			fprintf(stderr, "line %d: %s\n", __LINE__, #x); \
			return 1;                                       \
		}                                                       \
	} while (0)

static int with_handler(void *arg)
{
	struct sigaction act = {.sa_handler = hear};

	(void)arg;
	NEED(sigaction(SIGCHLD, &act, NULL) == 0);
	NEED(shell("exit 3", LONG_MS).value == 3);
	NEED(shell("exec sleep 600", 50).how == HELPER_KILLED);
	NEED(atomic_load(&heard) == 0);
	NEED(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
	NEED(!has_children());
	return 0;
}

static int with_signal_ignored(void *arg)
{
	(void)arg;
	NEED(signal(SIGCHLD, SIG_IGN) != SIG_ERR);
	NEED(shell("exit 3", LONG_MS).value == 3);
	NEED(!has_children());
	return 0;
}

static int with_own_child(void *arg)
{
	pid_t pid = own_child(5);
	int status = 0;

	(void)arg;
	NEED(pid > 0);
	NEED(shell("exit 3", LONG_MS).value == 3);
	NEED(waitpid(-1, &status, 0) == pid && WEXITSTATUS(status) == 5);
	NEED(!has_children());
	return 0;
}

/* Waits for any child all the time, as a program's own thread may. */
static void *wait_for_all(void *strangers)
{
	pid_t known = own_child(5), pid;

	while ((pid = waitpid(-1, NULL, 0)) >= 0 || errno == EINTR)
		if (pid > 0 && pid != known)
			atomic_fetch_add((atomic_int *)strangers, 1);
	return NULL;
}

static int with_waiting_thread(void *arg)
{
	atomic_int strangers = 0;
	pthread_t t;
	int gate[2];
	pid_t stays;

	(void)arg;
	NEED(pipe2(gate, O_CLOEXEC) == 0);
	stays = fork(); /* so that there is a child to wait for all the time */
	if (stays == 0) {
		char c;

		close(gate[1]);
		_exit(read(gate[0], &c, 1) == 0 ? 0 : 1);
	}
	NEED(stays > 0 && pthread_create(&t, NULL, wait_for_all, &strangers) == 0);
	for (int i = 0; i < 20; i++)
		NEED(shell("exit 3", LONG_MS).value == 3);
	close(gate[1]);
	NEED(pthread_join(t, NULL) == 0);
	/* `stays` is the only one that the thread did not make itself. */
	NEED(atomic_load(&strangers) == 1);
	return 0;
}

TEST("helper: a program that hears SIGCHLD, ignores it or waits for its own children does not "
     "notice",
	"[core-dump]")
{
	CHECK_EQ(scratch_child(with_handler, NULL), 0);
	CHECK_EQ(scratch_child(with_signal_ignored, NULL), 0);
	CHECK_EQ(scratch_child(with_own_child, NULL), 0);
	CHECK_EQ(scratch_child(with_waiting_thread, NULL), 0);
}

/* ---- what it inherits --------------------------------------------------------------------- */

static int looked_at(void *arg)
{
	const char *out = arg;
	char path[512];
	char *argv[] = {path, "one", NULL};
	char *text;
	sigset_t set;

	snprintf(path, sizeof(path), "%s", program_path("tests/fake_dump").s);
	setenv("FAKE_DUMP_OUT", out, 1);
	NEED(dup2(1, 0) == 0); /* what it does not read */
	NEED(fcntl(0, F_DUPFD, 3) >= 3 && fcntl(0, F_DUPFD, 700) >= 700); /* not close-on-exec */
	NEED(signal(SIGPIPE, SIG_IGN) != SIG_ERR && signal(SIGCHLD, SIG_IGN) != SIG_ERR);
	sigfillset(&set);
	NEED(sigprocmask(SIG_SETMASK, &set, NULL) == 0);
	NEED(raise(SIGUSR1) == 0); /* stays pending, here */
	NEED(helper_run(argv, LONG_MS).how == HELPER_EXITED);
	text = program_text(out);
	NEED(strstr(text,
		"arg one\nfds 0 1 2\ninput /dev/null\nSigPnd:\t0000000000000000\n"
		"SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\nleader 1\nsession 1\n"
		"end\n"));
	free(text);
	/* And the caller's own mask is as it was. */
	NEED(sigprocmask(SIG_BLOCK, NULL, &set) == 0 && sigismember(&set, SIGUSR1) == 1);
	return 0;
}

/* In a child that gets the path of what the helper writes. */
static void with_fake_helper(int (*body)(void *))
{
	struct scratch s;
	struct scratch_path out;

	if (!program_exists("tests/fake_dump"))
		SKIP("tests/fake_dump");
	REQUIRE(scratch_make(&s));
	out = scratch_path(&s, "out");
	CHECK_EQ(scratch_child(body, out.s), 0);
	scratch_remove(&s);
}

TEST("helper: it has descriptors 0 to 2 and nothing to read, no signal blocked, ignored or "
     "pending, and its own "
     "session",
	"[core-dump]")
{
	with_fake_helper(looked_at);
}

/* As on an old kernel. */
static bool take_calls_away(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_close_range, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pidfd_open, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog filter = {sizeof(code) / sizeof(code[0]), code};

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0) == 0;
}

static int on_old_kernel(void *arg)
{
	NEED(take_calls_away());
	NEED(syscall(SYS_close_range, 900, 901, 0) == -1 && errno == ENOSYS);
	NEED(looked_at(arg) == 0);
	NEED(!has_children());
	/* Who waits is stopped, and does not end by itself. */
	NEED(shell("kill -STOP $PPID; exec sleep 600", 3000).how == HELPER_UNKNOWN);
	NEED(!has_children());
	return 0;
}

TEST("helper: a kernel without close_range and pidfd_open does as well", "[core-dump]")
{
	with_fake_helper(on_old_kernel);
}

/* ---- signals while it runs ---------------------------------------------------------------- */

static struct scratch_path flag;

static void raise_flag(int number)
{
	(void)number;
	(void)open(flag.s, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
}

static int interrupted(void *arg)
{
	struct sigaction act = {.sa_handler = raise_flag};
	char script[PATH_MAX + 128];

	(void)arg;
	snprintf(script, sizeof(script), "while [ ! -e %s ]; do sleep 0.05; done; exit 3", flag.s);
	NEED(sigaction(SIGALRM, &act, NULL) == 0);
	alarm(1);
	NEED(shell(script, LONG_MS).value == 3);
	return 0;
}

TEST("helper: a signal to the calling thread is handled while it runs", "[core-dump]")
{
	struct scratch s;

	REQUIRE(scratch_make(&s));
	flag = scratch_path(&s, "flag");
	CHECK_EQ(scratch_child(interrupted, NULL), 0);
	scratch_remove(&s);
}

static void handlers_run(void)
{
	atomic_fetch_add(&heard, 1);
}

static int no_atfork(void *arg)
{
	(void)arg;
	NEED(pthread_atfork(handlers_run, handlers_run, handlers_run) == 0);
	NEED(shell("exit 3", LONG_MS).value == 3);
	NEED(atomic_load(&heard) == 0);
	return 0;
}

TEST("helper: the program's handlers of pthread_atfork do not run", "[core-dump]")
{
	CHECK_EQ(scratch_child(no_atfork, NULL), 0);
}
