/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nrt_inspect_ends_test.c - the table of ends: what an inspect session leaves when its program ends in some way, or what it
 * writes to is taken away.
 *
 * Each row runs the workload inspect_ends.  What it left is made whole with `ntrace salvage` where
 * its files are not there, and is compared with what the program told of itself.  Before its end the
 * program rests for more than 100 ms: of a session that was killed all must be there that
 * was done before, and its recording shows that nothing waited for longer (inspect_prompt.h).
 * Signals come where files can be made, not in the middle of malloc: other moments are the matter of
 * nrt_inspect_storm_test.c.
 */
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>

#include "tests/shim/shim.h"
#include "tests/unit/inspect_leaf.h"
#include "tests/unit/inspect_prompt.h"
#include "tests/workloads/inspect_ends.h"

#define EXECUTIONS 100
#define PAUSE_US 5000
#define NAPS "40" /* of 10 ms: a recording is on the disk after 10, on a busy machine later */

enum left {
	FILES,	 /* the files, with everything */
	SPOOL,	 /* a recording, with what was done before the rest */
	FLUSHED, /* a recording, with everything */
	FULL,	 /* what there was room for */
	NOTHING, /* no session */
};

struct end {
	const char *name, *way;
	int signal; /* which the test sends */
	int status; /* as a shell has it */
	enum left left;
	const char *said;
	void (*before)(const char *base);    /* before the program runs */
	void (*meanwhile)(const char *base); /* when it has executed, and before it does again */
	int stage;			/* in which the signal comes; 0: when it has executed */
	bool (*when)(const char *base); /* and what must be so */
	const char *device;		/* NEURON_RT_INSPECT_DEVICE_PROFILE */
	int profiles;			/* files of device profiles */
	bool failures_only;
	bool without; /* no session */
};

/* ---- what is taken away ------------------------------------------------------------------- */

static void small_disk(const char *base, const char *how)
{
	if (mount("none", base, "tmpfs", 0, how) < 0)
		dprintf(complaint_fd, "tmpfs on %s: %s\n", base, strerror(errno));
}

static void disk_before(const char *base)
{
	small_disk(base, "size=2m");
}

static void fill(const char *base)
{
	static const char zeros[4096];
	char path[1024];
	int fd;

	snprintf(path, sizeof(path), "%s/filler", base);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	while (write(fd, zeros, sizeof(zeros)) > 0)
		;
	close(fd);
}

static void inodes_before(const char *base)
{
	small_disk(base, "size=8m,nr_inodes=32");
}

static void take_inodes(const char *base)
{
	char path[1024];

	for (int i = 0, fd = 0; fd >= 0; i++) {
		snprintf(path, sizeof(path), "%s/taken-%d", base, i);
		fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
		if (fd >= 0)
			close(fd);
	}
}

static void no_inodes_before(const char *base)
{
	inodes_before(base);
	take_inodes(base);
}

static void read_only(const char *base)
{
	small_disk(base, "size=1m");
	(void)mount("none", base, NULL, MS_REMOUNT | MS_RDONLY, NULL);
}

static void remove_leaf(const char *base)
{
	char leaf[1200];

	if (leaf_find(base, leaf, sizeof(leaf)))
		scratch_remove_tree(leaf);
}

/* Is there a file that is being made, or all of them? */
static bool is_merging(const char *base)
{
	char leaf[1200];
	bool found = false;
	DIR *d = leaf_find(base, leaf, sizeof(leaf)) ? opendir(leaf) : NULL;

	for (struct dirent *e; d && !found && (e = readdir(d));)
		found = !strncmp(e->d_name, OUTFILE_TEMPORARY, strlen(OUTFILE_TEMPORARY)) ||
			!strcmp(e->d_name, "trace_info.pb");
	if (d)
		closedir(d);
	return found;
}

/* ---- the table ---------------------------------------------------------------------------- */

static const struct end ends[] = {
	{.name = "return from main", .way = "return"},
	{.name = "nrt_close", .way = "close"},
	{.name = "nrt_inspect_stop", .way = "stop"},
	{.name = "exit", .way = "exit", .status = 3},
	{.name = "nrt_close in atexit", .way = "atexit"},
	{.name = "executions in a destructor", .way = "late"},
	{.name = "_exit", .way = "_exit", .status = 4, .left = SPOOL},
	{.name = "exec", .way = "exec", .status = 6, .left = SPOOL},
	{.name = "abort", .way = "abort", .status = 128 + SIGABRT, .left = SPOOL},
	{.name = "SIGSEGV", .way = "segv", .status = 128 + SIGSEGV, .left = SPOOL},
	{.name = "SIGKILL",
		.way = "working",
		.signal = SIGKILL,
		.status = 128 + SIGKILL,
		.left = SPOOL},
	{.name = "SIGINT",
		.way = "idle",
		.signal = SIGINT,
		.status = 128 + SIGINT,
		.said = "Interrupt signal (2) received. Finishing saving"},
	{.name = "SIGTERM",
		.way = "idle",
		.signal = SIGTERM,
		.status = 128 + SIGTERM,
		.said = "Interrupt signal (15) received. Finishing saving"},
	{.name = "SIGTERM during stop",
		.way = "stop-wait",
		.signal = SIGTERM,
		.status = 128 + SIGTERM,
		.stage = ENDS_STOPPING},
	{.name = "SIGTERM with a handler that ends the program in order",
		.way = "told",
		.signal = SIGTERM,
		.status = 7,
		.said = "Interrupt signal (15) received. Saving profiling data so far"},
	{.name = "exit in the handler of SIGTERM",
		.way = "exit-in-handler",
		.signal = SIGTERM,
		.status = 5},
	{.name = "exit in the handler of SIGTERM, which comes during stop",
		.way = "exit-in-handler-in-stop",
		.signal = SIGTERM,
		.status = 5,
		.stage = ENDS_STOPPING,
		.when = is_merging},
	{.name = "_exit in the handler of SIGTERM",
		.way = "_exit-in-handler",
		.signal = SIGTERM,
		.status = 8,
		.left = FLUSHED,
		.said = "Saving profiling data so far"},
	{.name = "SIGTERM in the middle of a call",
		.way = "inside",
		.signal = SIGTERM,
		.status = 128 + SIGTERM,
		.stage = ENDS_INSIDE},
	{.name = "the main thread ends, then the others", .way = "headless"},
	{.name = "the main thread ends, and the library has work", .way = "headless-scheduled"},
	{.name = "the main thread ends, and there is no session",
		.way = "headless",
		.left = NOTHING,
		.without = true},
	{.name = "SIGTERM when the main thread has ended",
		.way = "headless-idle",
		.signal = SIGTERM,
		.status = 128 + SIGTERM,
		.stage = ENDS_HEADLESS},
	{.name = "SIGTERM with a profile of the core",
		.way = "idle",
		.signal = SIGTERM,
		.status = 128 + SIGTERM,
		.device = "session",
		.profiles = 2},
	{.name = "exit with a profile of an execution",
		.way = "exit",
		.status = 3,
		.device = "model",
		.profiles = 2},
	{.name = "SIGTERM without a failure",
		.way = "idle",
		.signal = SIGTERM,
		.status = 128 + SIGTERM,
		.left = NOTHING,
		.failures_only = true},
	{.name = "disk full",
		.way = "return",
		.left = FULL,
		.said = "No space left on device",
		.before = disk_before,
		.meanwhile = fill},
	{.name = "rights given up", .way = "humble", .left = FLUSHED, .said = "Permission denied"},
	{.name = "directory removed",
		.way = "return",
		.left = NOTHING,
		.said = "ERROR",
		.meanwhile = remove_leaf},
	{.name = "no inode left at begin",
		.way = "return",
		.left = NOTHING,
		.said = "No space left on device",
		.before = no_inodes_before},
	{.name = "no inode left at stop",
		.way = "return",
		.left = FULL,
		.said = "No space left on device",
		.before = inodes_before,
		.meanwhile = take_inodes},
	{.name = "base that cannot be written to",
		.way = "return",
		.left = NOTHING,
		.said = "Read-only file system",
		.before = read_only},
};
#define ENDS (sizeof(ends) / sizeof(ends[0]))

/* ---- one row ------------------------------------------------------------------------------ */

struct attempt {
	struct scratch_path base, page_path, log;
	struct ends_page *page;
	pid_t pid;
};

static int attempt_open(struct attempt *a, const struct place *p, size_t number)
{
	char name[32];
	int fd;

	snprintf(name, sizeof(name), "base-%zu", number);
	a->base = scratch_path(&p->scratch, name);
	snprintf(name, sizeof(name), "page-%zu", number);
	a->page_path = scratch_path(&p->scratch, name);
	snprintf(name, sizeof(name), "log-%zu", number);
	a->log = scratch_path(&p->scratch, name);
	WANT(mkdir(a->base.s, 0700) == 0);
	fd = open(a->page_path.s, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	WANT(fd >= 0 && ftruncate(fd, sizeof(*a->page)) == 0);
	a->page = mmap(NULL, sizeof(*a->page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	WANT(a->page != MAP_FAILED);
	return 0;
}

static void attempt_start(struct attempt *a, const struct end *e)
{
	char program[512], executions[16], pause[16];
	char *argv[] = {program, "--end", (char *)e->way, "--page", a->page_path.s, "--executions",
		executions, "--pause-us", pause, "--rest", NAPS, "--wait", e->meanwhile ? "1" : "0",
		NULL};

	snprintf(program, sizeof(program), "%s", program_path("workloads/inspect_ends").s);
	snprintf(executions, sizeof(executions), "%d", EXECUTIONS);
	snprintf(pause, sizeof(pause), "%d", PAUSE_US);
	setenv("NEURON_RT_INSPECT_OUTPUT_DIR", a->base.s, 1);
	setenv("NEURON_RT_INSPECT_ENABLE", e->failures_only || e->without ? "0" : "1", 1);
	setenv("NEURON_RT_INSPECT_ON_FAIL", e->failures_only ? "1" : "0", 1);
	setenv("NEURON_RT_INSPECT_DEVICE_PROFILE", e->device ? e->device : "0", 1);
	a->pid = program_start(argv, a->log.s, NULL);
}

struct stage_wish {
	struct attempt *a;
	unsigned stage;
	bool (*when)(const char *base);
};

static bool has_stage(void *arg)
{
	const struct stage_wish *w = arg;
	siginfo_t gone = {0};

	return atomic_load(&w->a->page->stage) >= w->stage ||
	       waitid(P_PID, (id_t)w->a->pid, &gone, WEXITED | WNOHANG | WNOWAIT) < 0 ||
	       gone.si_pid != 0;
}

/* The program sleeps: inside of the call that it said is next. */
static bool is_inside(void *arg)
{
	const struct attempt *a = arg;
	char path[64], *text, *name_end;
	bool sleeps;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)a->pid);
	text = program_text(path);
	name_end = text ? strrchr(text, ')') : NULL;
	sleeps = name_end && (name_end[2] == 'S' || name_end[2] == 'Z');
	free(text);
	return sleeps;
}

static bool is_so(void *arg)
{
	const struct stage_wish *w = arg;

	return w->when(w->a->base.s);
}

/* How many executions must be there. */
static long wanted(const struct attempt *a, enum left left)
{
	bool all = left == FILES || left == FLUSHED;

	return (long)atomic_load(all ? &a->page->count : &a->page->safe);
}

static int take_away(struct attempt *a, const struct end *e)
{
	WANT(program_until(has_stage,
		&(struct stage_wish){a, e->stage ? (unsigned)e->stage : ENDS_READY, e->when}, 60));
	if (e->meanwhile) {
		e->meanwhile(a->base.s);
		atomic_store(&a->page->stage, ENDS_GOES_ON);
	}
	WANT(atomic_load(&a->page->stage) >= ENDS_READY);
	WANT(e->stage != ENDS_INSIDE || program_until(is_inside, a, 60));
	WANT(!e->when || program_until(is_so, &(struct stage_wish){.a = a, .when = e->when}, 60));
	if (e->signal)
		kill(a->pid, e->signal);
	return 0;
}

/* What stood in the way is gone. */
static void make_room(const char *base)
{
	char command[1200];

	snprintf(command, sizeof(command), "exec rm -f %s/filler %s/taken-*", base, base);
	(void)!system(command);
}

static int left_files(const struct attempt *a, const struct end *e)
{
	char leaf[1200];
	long count, least = wanted(a, e->left);

	make_room(a->base.s);
	WANT(leaf_find(a->base.s, leaf, sizeof(leaf)));
	WANT(e->left != FILES || !leaf_has(leaf, "recording"));
	WANT(e->left != SPOOL || recording_is_prompt(leaf));
	WANT(leaf_complete(leaf, a->log.s) == 0);
	WANT(leaf_is_whole(leaf, e->profiles));
	count = leaf_executions(leaf);
	if (count < least || least < EXECUTIONS)
		dprintf(complaint_fd, "%ld executions, and %ld are wanted\n", count, least);
	WANT(count >= least && least >= EXECUTIONS);
	return 0;
}

static int is_said(const struct attempt *a, const struct end *e)
{
	char *text = program_text(a->log.s);
	bool found = !e->said || (text && strstr(text, e->said));

	if (!found)
		dprintf(complaint_fd, "not said: %s\nbut: %s\n", e->said, text ? text : "");
	free(text);
	WANT(found);
	return 0;
}

static int look_at(struct attempt *a, const struct end *e)
{
	int status;

	attempt_start(a, e);
	WANT(take_away(a, e) == 0);
	status = program_wait(a->pid);
	if (status != e->status)
		dprintf(complaint_fd, "ended with %d\n", status);
	WANT(status == e->status);
	WANT(is_said(a, e) == 0);
	WANT((!e->failures_only && !e->without) || scratch_entries(a->base.s) <= 0);
	return e->left == NOTHING ? 0 : left_files(a, e);
}

static int one_end(const struct place *p, size_t number)
{
	const struct end *e = &ends[number];
	struct attempt a;
	int rc;

	WANT(attempt_open(&a, p, number) == 0);
	if (e->before)
		e->before(a.base.s);
	rc = look_at(&a, e);
	if (rc)
		dprintf(complaint_fd, "that was: %s; its log: %s\n", e->name, a.log.s);
	munmap(a.page, sizeof(*a.page));
	return rc;
}

/* ThreadSanitizer objects to exit in the handler of a signal, and has a thread of its own, which is not the library's. */
static bool can_end(const struct end *e)
{
#ifdef __SANITIZE_THREAD__
	return strncmp(e->way, "exit-in-handler", strlen("exit-in-handler")) != 0 &&
	       strncmp(e->way, "headless", strlen("headless")) != 0;
#else
	(void)e;
	return true;
#endif
}

/* The file systems that rows need are gone with this child. */
static int all_ends(void *arg)
{
	const char *only = getenv("NTRACE_TEST_END");
	int rc = 0;

	complaint_fd = 2;
	WANT(unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
	setenv("NTRACE_DEVICE_ROOT", ((struct place *)arg)->device.root, 1);
	setenv("NEURON_RT_EXEC_TIMEOUT", "7200", 1);
	setenv("NEURON_RT_LOG_LEVEL", "INFO", 1);
	for (size_t i = 0; i < ENDS; i++)
		if (can_end(&ends[i]) && (!only || strstr(ends[i].name, only)))
			rc |= one_end(arg, i);
	return rc;
}

TEST("inspect ends: whatever way a program ends in, its session leaves files, or a recording that "
     "salvage makes them from",
	"[nrt][inspect][inspect-ends][vdev][slow]")
{
	if (device_lacks())
		SKIP(device_lacks());
	with_device(all_ends, two_cores);
}
