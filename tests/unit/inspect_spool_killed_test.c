/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inspect_spool_killed_test.c - what is salvaged of an inspect session that was killed or left half a set of files.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/profile/inspect_spool.h"
#include "tests/shim/shim.h"
#include "tests/unit/inspect_spool_session.h"
#include "tests/unit/scratch.h"

/* ---- killed ------------------------------------------------------------------------------- */

/* Emits until it is killed. */
static int endless(void *arg)
{
	struct place *p = arg;

	WANT(begin(p) == 0);
	WANT(inspect_spool_add_file(p->spool, "first.ntff", "ntff", 3) == 0);
	for (;;) {
		emit(p, 10);
		p->told->ready = p->told->spans > 300;
		nap(2);
	}
	return 0;
}

/* Starts it, and kills it when more than 100 ms of it are to be there. */
static void run_and_kill(struct place *p, int (*fn)(void *))
{
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid == 0)
		_exit(fn(p));
	while (!p->told->ready)
		nap(1);
	p->told->before_kill = p->told->spans;
	nap(250);
	kill(pid, SIGKILL);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}

TEST("inspect spool: of a session that is killed all but the last 100 ms is salvaged, into its "
     "directory",
	"[inspect][spool]")
{
	struct place p;

	REQUIRE(place_open(&p));
	run_and_kill(&p, endless);
	CHECK(has(&p, "recording") && !has(&p, "ntrace.pb"));
	CHECK_EQ(salvage(&p), 0);
	REQUIRE(read_files(&p));
	CHECK(p.trace.count >= 2 * p.told->before_kill);
	CHECK(!p.trace_info->ended);
	CHECK(is_blind_to(&p, "the last 100 ms"));
	REQUIRE_EQ(p.trace_info->n_collected_profiles, 4);
	CHECK_STR(p.trace_info->collected_profiles[3]->name, "first.ntff");
	CHECK_EQ(salvage(&p), 0); /* again: nothing to do */
	CHECK_EQ(scratch_entries(p.scratch.dir), 5);
	place_close(&p);
}

/* A child that outlives the session's process. */
static int forks(void *arg)
{
	struct place *p = arg;
	pid_t pid;

	WANT(begin(p) == 0);
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, 0);
		nap(3000);
		_exit(0);
	}
	for (;;) {
		emit(p, 10);
		p->told->ready = p->told->spans > 300;
		nap(2);
	}
	return 0;
}

TEST("inspect spool: a child that lives on does not keep a session from being salvaged",
	"[inspect][spool]")
{
	struct place p;

	REQUIRE(place_open(&p));
	run_and_kill(&p, forks);
	CHECK_EQ(salvage(&p), 0);
	REQUIRE(read_files(&p));
	CHECK(p.trace.count >= 2 * p.told->before_kill);
	place_close(&p);
}

static int armed_and_killed(void *arg)
{
	struct place *p = arg;
	static const bool nc[TRACE_MAX_NC] = {true, true};

	p->info.device_profile = p->info.device_profile_wanted = "session";
	p->info.nc = nc;
	return endless(arg);
}

TEST("inspect spool: salvage says that device profiles are missing", "[inspect][spool]")
{
	struct place p;

	REQUIRE(place_open(&p));
	run_and_kill(&p, armed_and_killed);
	CHECK_EQ(salvage(&p), 0);
	REQUIRE(read_files(&p));
	CHECK_STR(p.trace_info->session->device_cores, "0-1");
	CHECK(is_blind_to(&p, "device profiles (NTFF) that were not written"));
	place_close(&p);
}

/* ---- what else salvage finds -------------------------------------------------------------- */

static void write_file(const struct place *p, const char *name, const char *data, size_t size)
{
	int fd = open(scratch_path(&p->scratch, name).s, O_WRONLY | O_CREAT | O_EXCL, 0600);

	CHECK(fd >= 0 && file_write_all(fd, data, size) == 0);
	close(fd);
}

static int live(void *arg)
{
	struct place *p = arg;

	WANT(begin(p) == 0);
	emit(p, 100);
	nap(150);
	WANT(salvage(p) == 4);
	WANT(!has(p, "ntrace.pb"));
	inspect_spool_drop(p->spool);
	return 0;
}

TEST("inspect spool: a session that is alive is not salvaged", "[inspect][spool]")
{
	struct place p;

	REQUIRE(place_open(&p));
	CHECK_EQ(scratch_child(live, &p), 0);
	place_close(&p);
}

/* The process died between two renames, or while it wrote. */
TEST("inspect spool: half a set of files is completed, and temporary ones are removed",
	"[inspect][spool]")
{
	_cleanup_free_ char *events = NULL;
	struct place p;
	char name[64];
	size_t size;

	REQUIRE(place_open(&p));
	run_and_kill(&p, endless);
	CHECK_EQ(salvage(&p), 0);
	REQUIRE(read_files(&p));
	REQUIRE(file_read(scratch_path(&p.scratch, "ntrace.pb").s, 1u << 24, &events, &size) == 0);
	unlink(scratch_path(&p.scratch, "trace_info.pb").s);
	unlink(scratch_path(&p.scratch, "host_mem.pb").s);
	snprintf(name, sizeof(name), ".ntrace-tmp-%u-3", p.trace_info->pid);
	write_file(&p, name, "half", 4);
	write_file(&p, ".ntrace-tmp-of-another", "his", 3);
	CHECK_EQ(salvage(&p), 0);
	CHECK(!has(&p, name) && has(&p, ".ntrace-tmp-of-another"));
	CHECK(has(&p, "trace_info.pb") && has(&p, "host_mem.pb"));
	/* What is not the session's is not touched. */
	unlink(scratch_path(&p.scratch, "trace_info.pb").s);
	unlink(scratch_path(&p.scratch, "ntrace.pb").s);
	write_file(&p, "ntrace.pb", events, size - 1);
	CHECK_EQ(salvage(&p), 3);
	CHECK_EQ(size_of(&p, "ntrace.pb"), (long long)size - 1);
	CHECK(!has(&p, "trace_info.pb"));
	place_close(&p);
}
