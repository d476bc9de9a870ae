/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reserve_test.c - which cores a process gets on a virtual device, and what it says when it gets none.
 *
 * The test's process occupies cores through a query handle of its own; a child reserves with the runtime's
 * device functions, and its messages go to a file.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/device/device.h"
#include "tests/shim/shim.h"
#include "tests/unit/nrt_lib.h"
#include "vmlinux/ioctl_table.h"
#include "vmlinux/neuron_args.h"

static const char *const one_device[] = {"--cores=8", NULL};

/* ---- occupying ---------------------------------------------------------------------------- */

static int open_query(const struct place *p)
{
	char path[700];

	snprintf(path, sizeof(path), "%s/dev/neuron0", p->device.root);
	return open(path, O_WRONLY | O_CLOEXEC);
}

/* Marks each core of the mask; 0 or -errno of the first that was not free. */
static int occupy(int fd, uint64_t mask)
{
	for (uint32_t i = 0; i < 64; i++) {
		struct neuron_crwl_nc_map_ext arg = {
			.nc_count = 1, .start_nc_index = i, .end_nc_index = i};

		if (mask >> i & 1 && ioctl(fd, NEURON_IOCTL_CRWL_NC_RANGE_MARK_EXT0, &arg) < 0)
			return -errno;
	}
	return 0;
}

static bool all_free(const struct place *p, uint64_t mask)
{
	int fd = open_query(p);
	int rc = occupy(fd, mask);

	close(fd); /* which drops the marks */
	return rc == 0;
}

/* ---- reserving ---------------------------------------------------------------------------- */

/* Sends this process's messages to the place's log. */
static bool log_to(const struct place *p)
{
	int log = open(p->log.s, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	complaint_fd = fcntl(2, F_DUPFD_CLOEXEC, 100);
	return log >= 0 && complaint_fd >= 0 && dup2(log, 2) == 2;
}

static NRT_STATUS reserve(
	const struct place *p, const struct device_wish *wish, struct device_system **ret)
{
	const struct device_place at = {.root = p->device.root};
	NRT_STATUS status = device_new(&at, ret);

	if (!status)
		status = device_find(*ret);
	if (!status)
		status = device_negotiate(*ret);
	return status ? status : device_reserve(*ret, wish);
}

struct row {
	uint64_t occupied;
	struct device_wish wish;
	NRT_STATUS status;
	uint32_t first, count; /* physical, of a success */
	const char *says;
};

struct
try {
	const struct place *place;
	const struct row *row;
};

static int try_row(void *arg)
{
	const struct try *t = arg;
	struct device_system *s = NULL;

	WANT(log_to(t->place));
	WANT_STATUS(reserve(t->place, &t->row->wish, &s), t->row->status);
	if (t->row->says)
		WANT(said(t->place, t->row->says));
	if (!t->row->status) {
		WANT(s->first_core == t->row->first);
		WANT(s->core_count == t->row->count);
		/* A device is open when one of its cores is this process's. */
		WANT(s->device_count ==
			(s->first_core + s->core_count - 1) / s->topology.cores_per_device -
				s->first_core / s->topology.cores_per_device + 1);
	}
	device_shut_down(s);
	return 0;
}

static void try_rows(const char *const options[], const struct row *rows, size_t count)
{
	struct place p;

	REQUIRE(place_open(&p));
	if (!virtual_device_start(&p.device, p.scratch.dir, options)) {
		CHECK(!"the virtual device starts");
		count = 0;
	}
	for (size_t i = 0; i < count; i++) {
		int fd = open_query(&p);

		test_info("row %zu", i);
		CHECK_EQ(occupy(fd, rows[i].occupied), 0);
		CHECK_EQ(scratch_child(try_row, &(struct try){&p, &rows[i]}), 0);
		CHECK_EQ(virtual_device_stat(&p.device, "open_handles"), 1); /* ours */
		close(fd);
		CHECK(all_free(&p, 0xff));
	}
	place_close(&p);
}

/* Runs fn in a child while the cores of the mask are occupied; all cores must be free afterwards. */
static void with_occupied(
	int (*fn)(void *), const char *const options[], uint64_t mask, uint64_t all)
{
	struct place p;
	int fd;

	if (device_lacks())
		SKIP(device_lacks());
	REQUIRE(place_open(&p));
	REQUIRE(virtual_device_start(&p.device, p.scratch.dir, options));
	fd = open_query(&p);
	CHECK_EQ(occupy(fd, mask), 0);
	CHECK_EQ(scratch_child(fn, &p), 0);
	close(fd);
	CHECK(all_free(&p, all));
	place_close(&p);
}

#define NUMBER(n)              \
	{                      \
		false, 0, n, 0 \
	}
#define NUMBER_OF(n, size)        \
	{                         \
		false, 0, n, size \
	}
#define RANGE(first, n, size)        \
	{                            \
		true, first, n, size \
	}

TEST("reserve: the first window that is free and begins a logical core is taken", "[reserve][vdev]")
{
	static const struct row rows[] = {
		{0, NUMBER(0), NRT_SUCCESS, 0, 8, NULL},
		{0, NUMBER(1), NRT_SUCCESS, 0, 2, NULL},
		{0x01, NUMBER(1), NRT_SUCCESS, 2, 2, NULL},
		{0x02, NUMBER(1), NRT_SUCCESS, 2, 2, NULL},
		{0x3f, NUMBER(1), NRT_SUCCESS, 6, 2, NULL},
		{0x09, NUMBER(1), NRT_SUCCESS, 4, 2, NULL}, /* 1 and 2 are no logical core */
		{0xf2, NUMBER(1), NRT_SUCCESS, 2, 2, NULL}, /* the driver's search passes over it */
		{0x7f, NUMBER_OF(1, 1), NRT_SUCCESS, 7, 1, NULL},
		{0x0f, RANGE(2, 2, 2), NRT_SUCCESS, 4, 4, NULL},
		{0x04, RANGE(3, 3, 1), NRT_SUCCESS, 3, 3, NULL},
		{0x80, RANGE(0, 3, 0), NRT_SUCCESS, 0, 6, NULL},
	};

	if (device_lacks())
		SKIP(device_lacks());
	try_rows(one_device, rows, sizeof(rows) / sizeof(rows[0]));
}

TEST("reserve: cores that are busy are said as the vendor says it", "[reserve][vdev]")
{
	static const struct row rows[] = {
		{0x01, NUMBER(0), NRT_FAILURE, 0, 0,
			"NRT:nrt_allocate_neuron_cores                Logical Neuron Core(s) not "
			"available - Requested:4 Available:3 Logical Core size 2 (cores busy, "
			"ret=-16)\n"},
		{0xff, NUMBER(1), NRT_FAILURE, 0, 0,
			"Logical Neuron Core(s) not available - Requested:1 Available:0 Logical "
			"Core size 2 (cores busy, ret=-16)\n"},
		{0x55, NUMBER_OF(8, 1), NRT_FAILURE, 0, 0,
			"Requested:8 Available:1 Logical Core size 1 (cores busy, ret=-16)\n"},
		{0, NUMBER(8), NRT_FAILURE, 0, 0,
			"Requested:8 Available:4 Logical Core size 2 (cores busy, ret=-16)\n"},
		{0x10, RANGE(1, 3, 2), NRT_FAILURE, 0, 0,
			"Logical Neuron Core(s) not available - Requested:lnc1-lnc3 Available:1 "
			"Logical Core size:2 (cores busy, ret=-16)\n"},
	};

	if (device_lacks())
		SKIP(device_lacks());
	try_rows(one_device, rows, sizeof(rows) / sizeof(rows[0]));
}

TEST("reserve: what cannot be is said before the driver is asked", "[reserve][vdev]")
{
	static const struct row rows[] = {
		{0, RANGE(3, 2, 2), NRT_INVALID, 0, 0,
			"Specified core not accessible! is /dev/neuron1 visible to process?\n"},
		{0, RANGE(20, 1, 1), NRT_INVALID, 0, 0, "is /dev/neuron2 visible"},
		{0, NUMBER(2), NRT_INVALID, 0, 0,
			"`NEURON_RT_NUM_CORES` must request one core, or the whole device "
			"(multiple of 4)\n"},
		{0, NUMBER_OF(2, 1), NRT_INVALID, 0, 0, "(multiple of 8)\n"},
		{0, NUMBER(256), NRT_INVALID, 0, 0,
			"maximum supported number of core is 256 - received 512 cores\n"},
		{0, NUMBER_OF(1, 4), NRT_INVALID, 0, 0, "Only LNC Size of 2 is supported"},
		{0, NUMBER_OF(1, 4), NRT_INVALID, 0, 0, "Failed to parse vnc config\n"},
		{0, NUMBER_OF(1, 3), NRT_INVALID, 0, 0, "LNC Size of 3 is not a power of two\n"},
	};

	if (device_lacks())
		SKIP(device_lacks());
	try_rows(one_device, rows, sizeof(rows) / sizeof(rows[0]));
}

TEST("reserve: on V2 the LNC size is 1, and any number of cores can be asked for",
	"[reserve][vdev]")
{
	static const char *const options[] = {"--arch=v2", "--devices=4", NULL};
	static const struct row rows[] = {
		{0, NUMBER(0), NRT_SUCCESS, 0, 8, NULL},
		{0, NUMBER_OF(3, 2), NRT_SUCCESS, 0, 3, NULL},
		{0x05, NUMBER(3), NRT_SUCCESS, 3, 3, NULL},
		{0x10, NUMBER(4), NRT_SUCCESS, 0, 4, NULL},
		{0x20, RANGE(1, 4, 0), NRT_SUCCESS, 1, 4, NULL},
	};

	if (device_lacks())
		SKIP(device_lacks());
	try_rows(options, rows, sizeof(rows) / sizeof(rows[0]));
}

TEST("reserve: windows of whole devices may lie across devices", "[reserve][vdev]")
{
	static const char *const options[] = {"--cores=4", "--devices=3", NULL};
	static const struct row rows[] = {
		{0x01, NUMBER(2), NRT_SUCCESS, 2, 4, NULL},
		{0x08, NUMBER(4), NRT_SUCCESS, 4, 8, NULL},
		{0, NUMBER(6), NRT_SUCCESS, 0, 12, NULL},
		{0x0f, RANGE(3, 2, 2), NRT_SUCCESS, 6, 4, NULL},
	};

	if (device_lacks())
		SKIP(device_lacks());
	try_rows(options, rows, sizeof(rows) / sizeof(rows[0]));
}

/* ---- misaligned --------------------------------------------------------------------------- */

static int follow_suggestion(void *arg)
{
	const struct place *p = arg;
	uint32_t n = 0;

	WANT(enter(p) == 0);
	setenv("NEURON_RT_NUM_CORES", "1", 1);
	WANT_STATUS(init(), NRT_INVALID);
	WANT(said(p, "Cannot start process with LNC Size of 2."));
	WANT_STATUS(init(), NRT_INVALID);
	WANT(said(p, "NEURON_LOGICAL_NC_CONFIG=1 NEURON_RT_VISIBLE_CORES=1-2 takes"));
	unsetenv("NEURON_RT_NUM_CORES");
	setenv("NEURON_LOGICAL_NC_CONFIG", "1", 1);
	setenv("NEURON_RT_VISIBLE_CORES", "1-2", 1);
	WANT_STATUS(init(), 0);
	WANT_STATUS(lib.nrt_get_visible_vnc_count(&n), 0);
	WANT(n == 2);
	lib.nrt_close();
	return 0;
}

TEST("reserve: free cores that begin no logical core, and how they can be had", "[reserve][vdev]")
{
	with_occupied(follow_suggestion, one_device, 0x99, 0xff);
}

/* ---- handles ------------------------------------------------------------------------------ */

/* Open files of this process whose path ends with `name`, write-only ones or others. */
static int count_handles(const char *name, bool query)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	for (struct dirent *e; d && (e = readdir(d));) {
		char link[300], path[700] = "";
		int fd = atoi(e->d_name);
		size_t length, tail = strlen(name);

		snprintf(link, sizeof(link), "/proc/self/fd/%s", e->d_name);
		if (readlink(link, path, sizeof(path) - 1) < 0)
			continue;
		length = strlen(path);
		if (length > tail && !strcmp(path + length - tail, name))
			n += ((fcntl(fd, F_GETFL) & O_ACCMODE) == O_WRONLY) == query;
	}
	if (d)
		closedir(d);
	return n;
}

static int handles(void *arg)
{
	const struct place *p = arg;
	const struct device_wish wish = {.core_count = 1};
	struct device_system *s = NULL;

	WANT(log_to(p));
	WANT(count_handles("/dev/neuron0", true) == 1); /* the test's */
	WANT_STATUS(reserve(p, &wish, &s), 0);
	WANT(s->first_core == 8);
	WANT(count_handles("/dev/neuron0", true) == 2);
	WANT(count_handles("/dev/neuron0", false) == 0);
	WANT(count_handles("/dev/neuron1", true) == 0);
	WANT(count_handles("/dev/neuron1", false) == 1);
	WANT(count_handles("/dev/neuron2", false) == 0);
	device_shut_down(s);
	WANT(count_handles("/dev/neuron0", true) == 1);
	WANT(count_handles("/dev/neuron1", false) == 0);
	return 0;
}

TEST("reserve: one query handle, and working handles for the devices of the window alone",
	"[reserve][vdev]")
{
	static const char *const options[] = {"--cores=8", "--devices=3", NULL};

	with_occupied(handles, options, 0xff, 0xffffff);
}

static int old_form(void *arg)
{
	const struct place *p = arg;
	const struct device_wish one = {.core_count = 1};
	const struct device_wish beyond = {true, 32, 1, 0};
	struct device_system *s = NULL, *t = NULL;

	WANT(log_to(p));
	WANT_STATUS(reserve(p, &one, &s), 0);
	WANT(s->marks.old_form && s->first_core == 0);
	device_unreserve(s);
	WANT_STATUS(device_reserve(s, &one), 0); /* so they were given back */
	WANT(s->first_core == 0);
	device_shut_down(s);
	WANT_STATUS(reserve(p, &beyond, &t), NRT_FAILURE);
	WANT(said(p, "this driver marks the first 64 cores alone"));
	device_shut_down(t);
	return 0;
}

TEST("reserve: a driver of the older form marks the first 64 cores", "[reserve][vdev]")
{
	static const char *const options[] = {"--devices=9", "--without",
		"CRWL_NC_RANGE_MARK_EXT0,CRWL_NC_RANGE_UNMARK_EXT0", NULL};

	if (device_lacks())
		SKIP(device_lacks());
	with_device(old_form, options);
}

/* ---- two processes ------------------------------------------------------------------------ */

#define ROUNDS 100
#define MAX_RIVALS 8

struct rivals {
	const struct place *place;
	int go[2];   /* closed: both start */
	int done[2]; /* closed: the winner ends */
	int say[2];  /* each says how it went, with its pid */
};

struct outcome {
	int32_t pid;
	int32_t status;
	uint32_t first; /* core that it got */
};

static void rival_log(const struct place *p, int32_t pid, char *path, size_t size)
{
	snprintf(path, size, "%s/rival.%d", p->scratch.dir, pid);
}

static void rival(struct rivals *r, const struct device_wish *wish)
{
	struct outcome o = {.pid = (int32_t)getpid()};
	struct device_system *s = NULL;
	char path[1200], byte;
	int log;

	close(r->go[1]);
	close(r->done[1]);
	close(r->say[0]);
	rival_log(r->place, o.pid, path, sizeof(path));
	log = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	if (log < 0 || dup2(log, 2) < 0)
		_exit(1);
	(void)!read(r->go[0], &byte, 1);
	o.status = (int32_t)reserve(r->place, wish, &s);
	o.first = s ? s->first_core : 0;
	(void)!write(r->say[1], &o, sizeof(o));
	(void)!read(r->done[0], &byte, 1);
	device_shut_down(s);
	_exit(0);
}

static pid_t rival_start(struct rivals *r, const struct device_wish *wish)
{
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid == 0)
		rival(r, wish);
	return pid;
}

/* The loser's log names the winner, by the number and by what it runs. */
static bool names(const struct place *p, const struct outcome *loser, const struct outcome *winner)
{
	char path[1200], want[64];
	char *text;
	bool found;

	rival_log(p, loser->pid, path, sizeof(path));
	snprintf(want, sizeof(want), "Attached to nd0: %d (unit)", winner->pid);
	text = program_text(path);
	found = text && strstr(text, want);
	if (!found)
		test_info("not said: %s; but: %s", want, text ? text : "");
	free(text);
	return found;
}

/* Starts n rivals at the same moment and lets them end when all have said how it went.  False when that
 * could not be done, or one of them died. */
static bool race(
	const struct place *p, const struct device_wish *wish, struct outcome *o, unsigned n)
{
	struct rivals r = {.place = p};
	pid_t pids[MAX_RIVALS];
	bool good = true;

	if (pipe(r.go) < 0 || pipe(r.done) < 0 || pipe(r.say) < 0)
		return false;
	for (unsigned i = 0; i < n; i++)
		pids[i] = rival_start(&r, wish);
	close(r.go[1]);
	close(r.say[1]);
	for (unsigned i = 0; i < n; i++)
		good &= read(r.say[0], &o[i], sizeof(o[i])) == sizeof(o[i]);
	close(r.done[1]);
	for (unsigned i = 0; i < n; i++)
		good &= program_wait(pids[i]) == 0;
	close(r.go[0]);
	close(r.done[0]);
	close(r.say[0]);
	return good;
}

/* False: the round did not go as it must. */
static bool round_of(const struct place *p, const struct device_wish *wish)
{
	struct outcome o[2];
	int winner;

	if (!race(p, wish, o, 2))
		return false;
	test_info("statuses %d and %d", o[0].status, o[1].status);
	winner = o[0].status ? 1 : 0;
	return o[winner].status == NRT_SUCCESS && o[!winner].status == NRT_FAILURE &&
	       names(p, &o[!winner], &o[winner]);
}

static void compete(const struct device_wish *wish)
{
	struct place p;
	int good = 0;

	if (device_lacks())
		SKIP(device_lacks());
	REQUIRE(place_open(&p));
	REQUIRE(virtual_device_start(&p.device, p.scratch.dir, one_device));
	while (good < ROUNDS && round_of(&p, wish))
		good++;
	CHECK_EQ(good, ROUNDS);
	CHECK(all_free(&p, 0xff));
	CHECK_EQ(virtual_device_stat(&p.device, "open_handles"), 0);
	place_close(&p);
}

TEST("reserve: of two processes that want the same cores one wins, and the other names it",
	"[reserve][vdev]")
{
	compete(&(struct device_wish){true, 1, 2, 2});
}

TEST("reserve: of two processes that want all cores one wins, and the other names it",
	"[reserve][vdev]")
{
	compete(&(struct device_wish){.core_count = 0});
}

TEST("reserve: as many processes as there are cores get one each", "[reserve][vdev]")
{
	static const char *const options[] = {"--cores=8", "--devices=2", NULL};
	const struct device_wish wish = {.core_count = 1};
	struct outcome o[MAX_RIVALS];
	struct place p;

	if (device_lacks())
		SKIP(device_lacks());
	REQUIRE(place_open(&p));
	REQUIRE(virtual_device_start(&p.device, p.scratch.dir, options));
	for (int round = 0; round < 20; round++) {
		uint64_t got = 0;

		CHECK(race(&p, &wish, o, MAX_RIVALS));
		for (int i = 0; i < MAX_RIVALS; i++) {
			CHECK_EQ(o[i].status, NRT_SUCCESS);
			got |= 1ull << o[i].first;
		}
		CHECK_EQ(got, 0x5555); /* slot 0 of each */
	}
	place_close(&p);
}

static int says_printed(void *arg)
{
	const struct place *p = arg;

	WANT(enter(p) == 0);
	setenv("NEURON_RT_VISIBLE_CORES", "1", 1);
	WANT_STATUS(init(), NRT_FAILURE);
	WANT(said(p, "The driver has printed the owners of core 2 to the kernel log"));
	/* Marks without anybody who is attached. */
	WANT_STATUS(init(), NRT_FAILURE);
	WANT(said(p, "No other process is attached to nd0"));
	return 0;
}

TEST("reserve: marks whose owner cannot be named, and the driver that prints it", "[reserve][vdev]")
{
	with_occupied(says_printed, two_cores, 0x0f, 0x0f);
}

/* A container: the child counts processes from 1. */
static int in_container(void *arg)
{
	const struct try *t = arg;

	return unshare(CLONE_NEWPID) < 0 ? 77 : scratch_child(try_row, (void *)t);
}

TEST("reserve: in a container owners have the host's numbers, and no wrong names",
	"[reserve][vdev]")
{
	char dev[700], want[64];
	struct row row = {0, NUMBER(0), NRT_FAILURE, 0, 0, want};
	int query, working, rc;
	struct place p;

	if (device_lacks())
		SKIP(device_lacks());
	REQUIRE(place_open(&p));
	REQUIRE(virtual_device_start(&p.device, p.scratch.dir, one_device));
	snprintf(dev, sizeof(dev), "%s/dev/neuron0", p.device.root);
	working = open(dev, O_RDWR | O_CLOEXEC);
	query = open_query(&p);
	CHECK_EQ(occupy(query, 1), 0);
	/* The next is the loser itself. */
	snprintf(want, sizeof(want), "Attached to nd0: %d, ", (int)getpid());
	rc = scratch_child(in_container, &(struct try){&p, &row});
	close(query);
	close(working);
	place_close(&p);
	if (rc == 77)
		SKIP("pid namespaces");
	CHECK_EQ(rc, 0);
}

/* ---- running ------------------------------------------------------------------------------ */

static int every_core(void *arg)
{
	const struct place *p = arg;
	struct job jobs[4];
	nrt_model_t *model = NULL;
	uint32_t n = 0;

	WANT(enter(p) == 0);
	WANT_STATUS(init(), 0);
	WANT_STATUS(lib.nrt_get_visible_vnc_count(&n), 0);
	WANT(n == 4);
	for (int vnc = 0; vnc < 4; vnc++)
		WANT(job_open(&jobs[vnc], ADD_MODEL, vnc) == 0);
	for (int vnc = 0; vnc < 4; vnc++)
		WANT(job_run(&jobs[vnc], (float)vnc, 2.0f) == 0);
	WANT_STATUS(lib.nrt_load(COPY_MODEL, strlen(COPY_MODEL), 4, -1, &model), NRT_INVALID);
	WANT(said(p, "There is no core 4; this process has 4"));
	lib.nrt_close();
	return 0;
}

TEST("nrt: models run on each logical core of two physical ones", "[reserve][nrt][vdev]")
{
	if (device_lacks())
		SKIP(device_lacks());
	with_device(every_core, one_device);
}
