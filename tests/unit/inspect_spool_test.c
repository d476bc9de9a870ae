/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inspect_spool_test.c - the thread of an inspect session: what happens is in the files, however the session ends.
 *
 * Events are one state per process, so each session is in a child, which returns 0 or the number of the line that was not
 * satisfied (modulo 251, plus 1); the files are looked at afterwards.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proto/neuron_trace.pb-c.h"
#include "runtime/profile/inspect_config.h"
#include "runtime/profile/inspect_end.h"
#include "runtime/profile/inspect_spool.h"
#include "runtime/record/ledger.h"
#include "runtime/record/merge.h"
#include "runtime/trace/payload.h"
#include "runtime/trace/trace.h"
#include "tests/shim/shim.h"
#include "tests/unit/inspect_spool_dir.h"
#include "tests/unit/programs.h"
#include "tests/unit/scratch.h"
#include "tests/unit/trace_file.h"

#define WANT(x)                                                                         \
	do {                                                                            \
		if (!(x)) {                                                             \
			fprintf(stderr, "inspect_spool_test.c:%d: %s\n", __LINE__, #x); \
			return __LINE__ % 251 + 1;                                      \
		}                                                                       \
	} while (0)

/* ---- a session ---------------------------------------------------------------------------- */

struct told {
	_Atomic uint64_t spans;	      /* whole, so far */
	_Atomic uint64_t before_kill; /* of them, at the last moment that counts */
	_Atomic int ready;
};

struct place {
	struct scratch scratch;
	struct told *told; /* shared with children */
	struct inspect_dir dir;
	struct nrt_sys_trace_config events;
	struct inspect_info info;
	struct inspect_spool_wish wish;
	struct inspect_spool *spool;
	Ntff__NtraceInfo *trace_info;
	struct trace_file trace;
};

static bool place_open(struct place *p)
{
	memset(p, 0, sizeof(*p));
	if (!scratch_make(&p->scratch))
		return false;
	p->told = mmap(
		NULL, sizeof(*p->told), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	sys_trace_config_defaults(&p->events);
	p->info = (struct inspect_info){.session_id = 7,
		.enabled = true,
		.device_profile = "off",
		.device_profile_wanted = "off",
		.activities = INSPECT_SYSTEM_PROFILE | INSPECT_HOST_MEMORY | INSPECT_CPU_UTIL,
		.layout = "flat",
		.arch = 2,
		.logical_cores = 4,
		.logical_nc_size = 1,
		.instance_id = "i-0123456789",
		.runtime = "2.31.24.0",
		.is_virtual = 1};
	p->wish = (struct inspect_spool_wish){.dir = &p->dir,
		.events = &p->events,
		.cpu_util = true,
		.host_memory = true,
		.period_ms = 20,
		.info = &p->info};
	return p->told != MAP_FAILED && spool_dir_open(&p->dir, p->scratch.dir);
}

static void place_close(struct place *p)
{
	if (p->trace_info)
		ntff__ntrace_info__free_unpacked(p->trace_info, NULL);
	trace_file_free(&p->trace);
	munmap(p->told, sizeof(*p->told));
	spool_dir_close(&p->dir);
	scratch_remove(&p->scratch);
}

static void nap(unsigned ms)
{
	const struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};

	nanosleep(&t, NULL);
}

static void emit(struct place *p, unsigned spans)
{
	for (unsigned i = 0; i < spans; i++) {
		struct trace_span s = trace_start(i % 4, TRACE_EXECUTE_API, NULL, 0);

		trace_stop(&s, 0, NULL, 0);
		p->told->spans++;
	}
}

static void touch_cores(void)
{
	for (uint32_t nc = 0; nc < 4; nc++)
		trace_core_touch(nc);
}

static int begin(struct place *p)
{
	touch_cores();
	return inspect_spool_open(&p->wish, &p->spool);
}

static int finish(struct place *p, struct inspect_outcome *ret)
{
	int rc = inspect_spool_finish(p->spool, REC_END_ASKED, ret);

	p->spool = NULL;
	return rc;
}

/* ---- the files ---------------------------------------------------------------------------- */

static bool has(const struct place *p, const char *name)
{
	return access(scratch_path(&p->scratch, name).s, F_OK) == 0;
}

static long long size_of(const struct place *p, const char *name)
{
	struct stat st;

	return stat(scratch_path(&p->scratch, name).s, &st) < 0 ? -1 : st.st_size;
}

static bool read_files(struct place *p)
{
	_cleanup_free_ char *data = NULL;
	size_t size;

	if (file_read(scratch_path(&p->scratch, "trace_info.pb").s, 1u << 24, &data, &size) < 0)
		return false;
	p->trace_info = ntff__ntrace_info__unpack(NULL, size, (const uint8_t *)data);
	return p->trace_info &&
	       trace_file_load(&p->trace, scratch_path(&p->scratch, "ntrace.pb").s) &&
	       !*trace_file_fault(&p->trace, &(size_t){0});
}

static uint64_t ledger_row(const struct place *p, const char *stage, const char *counter)
{
	for (size_t i = 0; i < p->trace_info->n_ledger; i++)
		if (!strcmp(p->trace_info->ledger[i]->stage, stage) &&
			!strcmp(p->trace_info->ledger[i]->counter, counter))
			return p->trace_info->ledger[i]->value;
	return UINT64_MAX;
}

static const char *why_off(const struct place *p, const char *what)
{
	const Ntff__NtraceSession *s = p->trace_info->session;

	for (size_t i = 0; s && i < s->n_off; i++)
		if (!strcmp(s->off[i]->what, what))
			return s->off[i]->why;
	return "";
}

static bool is_blind_to(const struct place *p, const char *text)
{
	for (size_t i = 0; i < p->trace_info->n_blind; i++)
		if (strstr(p->trace_info->blind[i], text))
			return true;
	return false;
}

/* Names in the directory that are no file of a session. */
static int strange_names(const struct place *p)
{
	static const char *const known[] = {
		"ntrace.pb", "trace_info.pb", "cpu_util.pb", "host_mem.pb"};
	int n = scratch_entries(p->scratch.dir);

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		n -= has(p, known[i]);
	return n;
}

/* Runs `ntrace salvage` on the directory; its exit status. */
static int salvage(const struct place *p)
{
	struct program_path ntrace = program_path("bin/ntrace");
	struct scratch_path log = scratch_path(&p->scratch, "log");
	char *argv[] = {ntrace.s, "salvage", (char *)p->scratch.dir, NULL};
	int status = program_run(argv, log.s, NULL);
	_cleanup_free_ char *said = program_text(log.s);

	test_info("%s", said);
	unlink(log.s);
	return status;
}

/* ---- in order ----------------------------------------------------------------------------- */

static int whole_session(void *arg)
{
	struct place *p = arg;
	struct inspect_outcome o;

	WANT(begin(p) == 0);
	emit(p, 1000);
	nap(70);
	emit(p, 500);
	WANT(finish(p, &o) == 0);
	WANT(o.error == 0 && !o.is_kept && o.events == 3000 && o.lost == 0 && o.samples > 2);
	WANT(!trace_on());
	return 0;
}

TEST("inspect spool: a session leaves four files in its directory, and nothing else",
	"[inspect][spool]")
{
	struct place p;

	REQUIRE(place_open(&p));
	CHECK_EQ(scratch_child(whole_session, &p), 0);
	REQUIRE(read_files(&p));
	CHECK_EQ(p.trace.count, 3000);
	CHECK_EQ(strange_names(&p), 0);
	CHECK(size_of(&p, "cpu_util.pb") > 0);
	CHECK(size_of(&p, "host_mem.pb") > 0);
	const Ntff__NtraceInfo *i = p.trace_info;
	CHECK(i->ended && i->virtual_device && i->session);
	CHECK_STR(i->end, "asked");
	CHECK_EQ(i->session_id, 7);
	CHECK_EQ(i->arch, 2);
	CHECK_EQ(i->logical_nc_size, 1);
	CHECK_EQ(i->data_version, 2);
	CHECK_EQ(i->n_collected_profiles, 3);
	CHECK_EQ(ledger_row(&p, "runtime", "emitted"), 3000);
	CHECK_EQ(ledger_row(&p, "runtime", "delivered"), 3000);
	CHECK(ledger_row(&p, "agent", "cpu_ns") > 0);
	CHECK(is_blind_to(&p, "the program recorded itself"));
	CHECK(!is_blind_to(&p, "hook was active"));
	CHECK_STR(i->session->event_cores, "0-3");
	CHECK_STR(i->session->device_cores, "none");
	CHECK_STR(i->session->directory, p.scratch.dir);
	CHECK_STR(i->session->layout, "flat");
	CHECK_EQ(i->session->period_ms, 20);
	REQUIRE_EQ(i->session->n_activities, 3);
	CHECK_STR(i->session->activities[0], "system_profile");
	CHECK_STR(i->session->activities[2], "cpu_util");
	CHECK_EQ(i->session->n_off, 0);
	place_close(&p);
}

static int nothing_on(void *arg)
{
	static const struct rec_session_off off[] = {
		{"system_profile", "for a reason"}, {"cpu_util", "another"}, {NULL, NULL}};
	struct place *p = arg;
	struct inspect_outcome o;

	p->wish.events = NULL;
	p->wish.cpu_util = p->wish.host_memory = false;
	p->info.activities = 0;
	p->info.off = off;
	WANT(begin(p) == 0);
	WANT(!trace_on());
	nap(50);
	WANT(finish(p, &o) == 0);
	WANT(o.events == 0 && o.samples == 0);
	return 0;
}

TEST("inspect spool: what is off leaves an empty file, and trace_info says why", "[inspect][spool]")
{
	struct place p;

	REQUIRE(place_open(&p));
	CHECK_EQ(scratch_child(nothing_on, &p), 0);
	REQUIRE(read_files(&p));
	CHECK_EQ(strange_names(&p), 0);
	CHECK_EQ(size_of(&p, "cpu_util.pb"), 0);
	CHECK_EQ(size_of(&p, "host_mem.pb"), 0);
	CHECK_EQ(size_of(&p, "ntrace.pb"), 0);
	CHECK_STR(why_off(&p, "system_profile"), "for a reason");
	CHECK_STR(why_off(&p, "cpu_util"), "another");
	place_close(&p);
}

static int only_samples(void *arg)
{
	struct place *p = arg;
	struct inspect_outcome o;

	p->wish.events = NULL;
	p->wish.host_memory = false;
	p->wish.period_ms = 10;
	WANT(begin(p) == 0);
	nap(300);
	WANT(finish(p, &o) == 0);
	WANT(o.samples >= 2);
	return 0;
}

TEST("inspect spool: the CPUs are sampled also where nothing else is", "[inspect][spool]")
{
	struct place p;

	REQUIRE(place_open(&p));
	CHECK_EQ(scratch_child(only_samples, &p), 0);
	REQUIRE(read_files(&p));
	CHECK(size_of(&p, "cpu_util.pb") > 0);
	CHECK_EQ(size_of(&p, "host_mem.pb"), 0);
	place_close(&p);
}

static int filtered(void *arg)
{
	struct place *p = arg;
	struct inspect_outcome o;

	memset(p->events.nc, 0, sizeof(p->events.nc));
	p->events.nc[1] = p->events.nc[3] = true;
	p->events.type[TRACE_GENERIC] = false;
	WANT(begin(p) == 0);
	emit(p, 400);
	trace_instant(1, TRACE_GENERIC, NULL, 0);
	WANT(finish(p, &o) == 0);
	WANT(o.events == 400);
	return 0;
}

TEST("inspect spool: only the types and cores that are wanted come in", "[inspect][spool]")
{
	struct place p;

	REQUIRE(place_open(&p));
	CHECK_EQ(scratch_child(filtered, &p), 0);
	REQUIRE(read_files(&p));
	for (size_t i = 0; i < p.trace.count; i++)
		CHECK(p.trace.events[i].nc_idx % 2 == 1);
	CHECK_STR(p.trace_info->session->event_cores, "1,3");
	REQUIRE_EQ(p.trace_info->session->n_event_types_off, 1);
	CHECK_STR(p.trace_info->session->event_types_off[0], trace_event_info(TRACE_GENERIC)->name);
	place_close(&p);
}

static int beside_others(void *arg)
{
	struct place *p = arg;
	struct inspect_outcome o;
	struct ctl_reader *api;

	touch_cores();
	WANT(trace_reader_open(CTL_SUB_API, &api) == 0);
	WANT(trace_subscribe(CTL_SUB_API, NULL, 0) == 0);
	emit(p, 100); /* before the session: not its */
	WANT(begin(p) == 0);
	emit(p, 100);
	WANT(finish(p, &o) == 0);
	emit(p, 100);
	WANT(o.events == 200 && o.lost == 0);
	WANT(ctl_reader_poll(api, false, clock_boot().ns, NULL, NULL, NULL) == 600);
	ctl_reader_close(api);
	return 0;
}

TEST("inspect spool: another subscriber gets all of his, and the ledger balances",
	"[inspect][spool]")
{
	struct place p;

	REQUIRE(place_open(&p));
	CHECK_EQ(scratch_child(beside_others, &p), 0);
	REQUIRE(read_files(&p));
	CHECK_EQ(ledger_row(&p, "runtime", "emitted"),
		ledger_row(&p, "runtime", "delivered") + ledger_row(&p, "runtime", "filtered") +
			ledger_row(&p, "runtime", "unread"));
	CHECK_EQ(ledger_row(&p, "runtime", "delivered"), 200);
	place_close(&p);
}

/* ---- files of others ---------------------------------------------------------------------- */

static void *add_many(void *arg)
{
	struct inspect_spool *s = arg;

	for (int i = 0; i < 100; i++)
		if (inspect_spool_add_file(s, "one_of_many.ntff", "ntff", 1) < 0)
			return arg;
	return NULL;
}

static int with_files(void *arg)
{
	struct place *p = arg;
	pthread_t threads[4];
	struct inspect_outcome o;
	void *failed;

	WANT(begin(p) == 0);
	WANT(inspect_spool_add_file(p->spool, "a.ntff", "ntff", 4711) == 0);
	WANT(inspect_spool_add_file(p->spool, "b.neff", "neff", 12) == 0);
	for (int i = 0; i < 4; i++)
		WANT(pthread_create(&threads[i], NULL, add_many, p->spool) == 0);
	for (int i = 0; i < 4; i++)
		WANT(pthread_join(threads[i], &failed) == 0 && !failed);
	WANT(finish(p, &o) == 0);
	return 0;
}

TEST("inspect spool: each file that is added becomes a row", "[inspect][spool]")
{
	struct place p;

	REQUIRE(place_open(&p));
	CHECK_EQ(scratch_child(with_files, &p), 0);
	REQUIRE(read_files(&p));
	REQUIRE_EQ(p.trace_info->n_collected_profiles, 405);
	const Ntff__NtraceDataFile *a = p.trace_info->collected_profiles[3];
	CHECK_STR(a->name, "a.ntff");
	CHECK_STR(a->type, "ntff");
	CHECK_EQ(a->bytes, 4711);
	CHECK_STR(p.trace_info->collected_profiles[4]->name, "b.neff");
	place_close(&p);
}

/* ---- taking back -------------------------------------------------------------------------- */

static int dropped(void *arg)
{
	struct place *p = arg;

	WANT(begin(p) == 0);
	emit(p, 100);
	inspect_spool_drop(p->spool);
	WANT(!trace_on());
	WANT(begin(p) == 0); /* nothing is in its way */
	inspect_spool_drop(p->spool);
	inspect_spool_drop(NULL);
	return 0;
}

TEST("inspect spool: a session that is taken back leaves nothing", "[inspect][spool]")
{
	struct place p;

	REQUIRE(place_open(&p));
	CHECK_EQ(scratch_child(dropped, &p), 0);
	CHECK_EQ(scratch_entries(p.scratch.dir), 0);
	place_close(&p);
}

static int nowhere(void *arg)
{
	struct place *p = arg;

	p->dir.work = "/nonexistent/directory";
	WANT(begin(p) == -ENOENT);
	WANT(!trace_on());
	return 0;
}

TEST("inspect spool: where nothing can be written no session begins", "[inspect][spool]")
{
	struct place p;

	REQUIRE(place_open(&p));
	CHECK_EQ(scratch_child(nowhere, &p), 0);
	CHECK_EQ(scratch_entries(p.scratch.dir), 0);
	place_close(&p);
}

static int into_null(void *arg)
{
	struct place *p = arg;
	struct inspect_outcome o;

	p->dir.is_null = true;
	p->dir.work = NULL;
	WANT(begin(p) == 0);
	WANT(!trace_on());
	WANT(inspect_spool_add_file(p->spool, "a.ntff", "ntff", 1) == 0);
	nap(30);
	WANT(finish(p, &o) == 0);
	WANT(o.error == 0 && o.events == 0);
	return 0;
}

TEST("inspect spool: with /dev/null as the directory nothing is written", "[inspect][spool]")
{
	struct place p;

	REQUIRE(place_open(&p));
	CHECK_EQ(scratch_child(into_null, &p), 0);
	CHECK_EQ(scratch_entries(p.scratch.dir), 0);
	place_close(&p);
}

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

/* ---- signals ------------------------------------------------------------------------------ */

static struct place *of_signal;
static volatile sig_atomic_t heard;

static void on_signal(int number)
{
	struct merge_result m;
	char *text = NULL;

	/* What came before the signal is on its way to the disk. */
	if (merge_recording(scratch_path(&of_signal->scratch, "recording").s, NULL,
		    &(struct merge_options){.leaf = true}, &m, &text) == 0 &&
		m.output_count == 1 && m.outputs[0].events == 2 * of_signal->told->spans)
		heard = number;
	merge_result_free(&m);
	free(text);
}

static int flushed(void *arg)
{
	struct place *p = of_signal = arg;
	struct inspect_outcome o;

	WANT(signal(SIGTERM, on_signal) != SIG_ERR);
	WANT(inspect_end_open() == 0);
	inspect_end_hold();
	WANT(begin(p) == 0);
	inspect_end_arm(getpid());
	inspect_end_release();
	for (int i = 0; i < 20; i++) {
		emit(p, 500);
		heard = 0;
		raise(SIGTERM);
		WANT(heard == SIGTERM);
	}
	inspect_end_hold();
	inspect_end_disarm();
	WANT(finish(p, &o) == 0);
	inspect_end_release();
	WANT(o.events == 20 * 1000 && o.lost == 0);
	return 0;
}

TEST("inspect spool: before the program's own handler runs, all events are handed to the kernel",
	"[inspect][spool]")
{
	struct place p;

#ifdef __SANITIZE_THREAD__
	SKIP("a build without ThreadSanitizer, which objects to a handler that reads the "
	     "recording");
#endif
	REQUIRE(place_open(&p));
	CHECK_EQ(scratch_child(flushed, &p), 0);
	place_close(&p);
}

static void ask(void *ctx, bool finish)
{
	struct place *p = ctx;
	struct inspect_outcome o;

	if (finish)
		p->told->ready = inspect_spool_finish(p->spool, REC_END_ASKED, &o) == 0;
}

static int terminated(void *arg)
{
	struct place *p = arg;

	p->wish.asked = ask;
	p->wish.ctx = p;
	WANT(signal(SIGTERM, SIG_DFL) != SIG_ERR); /* the runner has a handler */
	WANT(inspect_end_open() == 0);
	inspect_end_hold();
	WANT(begin(p) == 0);
	inspect_end_arm(getpid());
	inspect_end_release();
	emit(p, 700);
	raise(SIGTERM);
	return 1;
}

TEST("inspect spool: a signal that ends the program ends the session in its thread before",
	"[inspect][spool]")
{
	struct place p;
	int status = 0;
	pid_t pid;

	REQUIRE(place_open(&p));
	fflush(NULL);
	pid = fork();
	if (pid == 0)
		_exit(terminated(&p));
	REQUIRE_EQ(waitpid(pid, &status, 0), pid);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
	CHECK(p.told->ready);
	REQUIRE(read_files(&p));
	CHECK_EQ(p.trace.count, 1400);
	CHECK(p.trace_info->ended);
	CHECK_EQ(strange_names(&p), 0);
	place_close(&p);
}

/* ---- a recording that is kept ------------------------------------------------------------- */

static int keeps(void *arg)
{
	struct place *p = arg;
	struct inspect_outcome o;

	setenv("NTRACE_KEEP_RECORDING", "1", 1);
	WANT(begin(p) == 0);
	emit(p, 300);
	nap(50);
	WANT(finish(p, &o) == 0 && o.is_kept);
	return 0;
}

static bool same_file(const struct place *p, const char *a, const char *b)
{
	_cleanup_free_ char *x = NULL, *y = NULL;
	size_t x_size, y_size;

	return file_read(scratch_path(&p->scratch, a).s, 1u << 24, &x, &x_size) == 0 &&
	       file_read(scratch_path(&p->scratch, b).s, 1u << 24, &y, &y_size) == 0 &&
	       x_size == y_size && !memcmp(x, y, x_size);
}

TEST("inspect spool: the recording that was kept gives the same bytes again", "[inspect][spool]")
{
	static const char *const names[] = {
		"ntrace.pb", "trace_info.pb", "cpu_util.pb", "host_mem.pb"};
	struct merge_result m;
	struct place p;
	char *text = NULL, again[64];

	REQUIRE(place_open(&p));
	CHECK_EQ(scratch_child(keeps, &p), 0);
	struct scratch_path to = scratch_path(&p.scratch, "again");
	REQUIRE_EQ(merge_recording(scratch_path(&p.scratch, "recording").s, to.s,
			   &(struct merge_options){0}, &m, &text),
		0);
	REQUIRE_EQ(m.output_count, 1);
	CHECK(m.balanced);
	const char *leaf = strrchr(m.outputs[0].dir, '/') + 1;
	for (size_t i = 0; i < 4; i++) {
		snprintf(again, sizeof(again), "again/%s/%s", leaf, names[i]);
		CHECK(same_file(&p, names[i], again));
	}
	merge_result_free(&m);
	place_close(&p);
}
