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
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/shim/shim.h"
#include "tests/unit/reserve_fixture.h"

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
		CHECK(virtual_device_reaches(&p.device, "open_handles", 1)); /* ours */
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

#define LNC "NEURON_LOGICAL_NC_CONFIG"
#define NUMBER(n)                    \
	{                            \
		false, 0, n, 0, NULL \
	}
#define NUMBER_OF(n, size)             \
	{                              \
		false, 0, n, size, LNC \
	}
#define RANGE(first, n, size)             \
	{                                 \
		true, first, n, size, LNC \
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
			"Requested:8 Available:4 Logical Core size 2 (this machine has 4)\n"},
		{0x01, NUMBER(8), NRT_FAILURE, 0, 0,
			"Requested:8 Available:3 Logical Core size 2 (this machine has 4)\n"},
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
		{0, NUMBER_OF(1, 4), NRT_INVALID, 0, 0,
			"NEURON_LOGICAL_NC_CONFIG='4' is not 1 or 2\n"},
		{0, NUMBER(5), NRT_INVALID, 0, 0,
			"NEURON_RT_NUM_CORES='5', and this machine has 4 logical cores\n"},
		{0, NUMBER(256), NRT_INVALID, 0, 0,
			"Requested are 256 logical cores of 2 physical ones each, by "
			"NEURON_RT_NUM_CORES; NEURON_RT_VISIBLE_CORES=0-3 takes what can be had of "
			"this machine\n"},
		{0, NUMBER_OF(1, 3), NRT_INVALID, 0, 0, "LNC Size of 3 is not a power of two\n"},
	};

	if (device_lacks())
		SKIP(device_lacks());
	try_rows(one_device, rows, sizeof(rows) / sizeof(rows[0]));
}

TEST("reserve: a default size that does not fit is said with one that does", "[reserve][vdev]")
{
	static const char *const options[] = {"--cores=5", "--devices=2", NULL};
	static const struct row rows[] = {
		{0, NUMBER(0), NRT_INVALID, 0, 0,
			"No size is set, and 2 is the default; NEURON_LOGICAL_NC_CONFIG=1 fits any "
			"number of cores\n"},
		{0, NUMBER_OF(0, 2), NRT_INVALID, 0, 0,
			"NEURON_LOGICAL_NC_CONFIG='2' does not fit this machine; 1 does\n"},
		{0, NUMBER_OF(0, 1), NRT_SUCCESS, 0, 10, NULL},
	};

	if (device_lacks())
		SKIP(device_lacks());
	try_rows(options, rows, sizeof(rows) / sizeof(rows[0]));
}

TEST("reserve: cores beyond the first 32 devices are counted as the variables count them",
	"[reserve][vdev]")
{
	static const char *const options[] = {"--devices=40", "--cores=2", "--memory=1M", NULL};
	static const struct row rows[] = {
		{0, NUMBER(0), NRT_INVALID, 0, 0,
			"Requested are all 40 logical cores of 2 physical ones each, for no number "
			"is set; NEURON_RT_VISIBLE_CORES=0-31 takes what can be had"},
		{0, RANGE(32, 2, 0), NRT_INVALID, 0, 0,
			"Requested are 2 logical cores of 2 physical ones each, by "
			"NEURON_RT_VISIBLE_CORES; NEURON_RT_VISIBLE_CORES=0-31 takes"},
		{0, RANGE(0, 32, 0), NRT_SUCCESS, 0, 64, NULL},
	};

	if (device_lacks())
		SKIP(device_lacks());
	try_rows(options, rows, sizeof(rows) / sizeof(rows[0]));
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
	const struct device_wish beyond = {true, 32, 1, 0, NULL};
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

/* ---- owners that cannot be named -------------------------------------------------------- */

static int says_printed(void *arg)
{
	const struct place *p = arg;

	WANT(enter(p) == 0);
	setenv("NEURON_RT_VISIBLE_CORES", "1", 1);
	WANT_STATUS(init(), NRT_FAILURE);
	WANT(said(p, "The virtual device has printed the owners of core 2 to standard error of "
		     "ntrace-vdev"));
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

static int more_than_simulated(void *arg)
{
	const struct place *p = arg;

	WANT(enter(p) == 0);
	unsetenv("NTRACE_DEVICE_ROOT");
	setenv("NEURON_RT_FAKE_INSTANCE_TYPE", "trn2.3xlarge", 1);
	setenv("NEURON_RT_NUM_CORES", "8", 1);
	WANT_STATUS(init(), NRT_FAILURE);
	WANT(said(p, "Requested:8 Available:4 Logical Core size 2 (this machine has 4)"));
	return 0;
}

static int more_than_there_are(void *arg)
{
	const struct place *p = arg;
	const struct device_wish wish = {.core_count = 4};
	struct device_system *s = NULL;
	char *text;

	WANT(log_to(p));
	WANT_STATUS(reserve(p, &wish, &s), NRT_FAILURE);
	text = program_text(p->log.s);
	WANT(text && strstr(text, "(this machine has 2)") && !strstr(text, "busy"));
	WANT(!strstr(text, "ttached to"));
	free(text);
	device_shut_down(s);
	return 0;
}

TEST("reserve: more cores than the machine has are nobody's fault", "[reserve][vdev]")
{
	if (device_lacks())
		SKIP(device_lacks());
	with_device(more_than_there_are, two_cores);
}

TEST("reserve: in a simulation there are as many cores as the machine has", "[reserve]")
{
	struct place p;

	REQUIRE_LIBRARY();
	REQUIRE(place_open(&p));
	CHECK_EQ(scratch_child(more_than_simulated, &p), 0);
	place_close(&p);
}

/* ---- devices that cannot be opened, and signals -------------------------------------------- */

static int first_is_full(void *arg)
{
	const struct place *p = arg;
	char *all;

	WANT(enter(p) == 0);
	setenv("NEURON_RT_NUM_CORES", "1", 1);
	WANT_STATUS(init(), 0);
	all = program_text(p->log.s);
	WANT(all && !strstr(all, "ERROR"));
	free(all);
	lib.nrt_close();
	return 0;
}

TEST("reserve: a full device is no error while another one has room", "[reserve][vdev]")
{
	static const char *const options[] = {
		"--devices=2", "--cores=2", "--fail=OPEN:EBUSY:1", NULL};

	if (device_lacks())
		SKIP(device_lacks());
	with_device(first_is_full, options);
}

static int all_are_full(void *arg)
{
	const struct place *p = arg;
	char *all;

	WANT(enter(p) == 0);
	setenv("NEURON_RT_NUM_CORES", "1", 1);
	WANT_STATUS(init(), NRT_INVALID);
	all = program_text(p->log.s);
	WANT(all && strstr(all, "Could not open the nd1: Device or resource busy."));
	WANT(!strstr(all, "Could not open the nd0")); /* one line is enough */
	free(all);
	return 0;
}

TEST("reserve: when no device can be opened the last one's error is said", "[reserve][vdev]")
{
	static const char *const options[] = {
		"--devices=2", "--cores=2", "--fail=OPEN:EBUSY", NULL};

	if (device_lacks())
		SKIP(device_lacks());
	with_device(all_are_full, options);
}

static int marks_again(void *arg)
{
	WANT(enter(arg) == 0);
	WANT_STATUS(init(), 0);
	WANT(virtual_device_reaches(&((struct place *)arg)->device, "marked_cores", 4));
	lib.nrt_close();
	return 0;
}

TEST("reserve: a mark that a signal interrupts is made again", "[reserve][vdev]")
{
	static const char *const options[] = {"--cores=4", "--fail=CRWL_NC_RANGE_MARK_EXT0:EINTR:1",
		"--fail=CRWL_NC_RANGE_MARK_EXT0:EINTR:2", NULL};

	if (device_lacks())
		SKIP(device_lacks());
	with_device(marks_again, options);
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
