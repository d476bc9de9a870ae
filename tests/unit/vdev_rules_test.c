/* SPDX-License-Identifier: Apache-2.0 */
/* vdev_rules_test.c - requests that a virtual device does not know, lets fail, or answers late. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/base/file.h"
#include "runtime/vdev/rules.h"
#include "tests/shim/shim.h"
#include "tests/unit/vdev_harness.h"
#include "vmlinux/ioctl_table.h"
#include "vmlinux/neuron_args.h"

#define _run_ _cleanup_(vdev_run_end)
#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

/* ---- texts ------------------------------------------------------------------------------- */

TEST("vdev rules: a failure is a name, an error by name or number, and which one", "[vdev]")
{
	static const struct {
		const char *text;
		int error; /* 0: refused */
		unsigned nth;
	} rows[] = {
		{"NC_RESET", EIO, 0},
		{"NC_RESET:EBUSY", EBUSY, 0},
		{"NC_RESET:22", 22, 0},
		{"NC_RESET:524:3", 524, 3},
		{"NC_RESET:ENOMEM:1", ENOMEM, 1},
		{"NC_RESET:", 0, 0},
		{"NC_RESET:EBUSY:", 0, 0},
		{"NC_RESET:EBUSY:0", 0, 0},
		{"NC_RESET:EBUSY:x", 0, 0},
		{"NC_RESET:0", 0, 0},
		{"NC_RESET:-5", 0, 0},
		{"NC_RESET:ENOSUCHERROR", 0, 0},
		{"NC_RESET:EAVERYLONGNAMETHATNOERRORCANHAVE", 0, 0},
		{"NC_RESE", 0, 0},
		{"nc_reset", 0, 0},
		{"", 0, 0},
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct vdev_rules rules = {0};

		test_info("'%s'", rows[i].text);
		CHECK_EQ(vdev_rules_fail(&rules, rows[i].text), rows[i].error != 0);
		CHECK_EQ(rules.row[VDEV_ROW_NC_RESET].faults, rows[i].error != 0);
		CHECK_EQ(rules.row[VDEV_ROW_NC_RESET].fault[0].error, rows[i].error);
		CHECK_EQ(rules.row[VDEV_ROW_NC_RESET].fault[0].nth, rows[i].nth);
	}
}

static bool never_ends(void *context)
{
	(void)context;
	return false;
}

TEST("vdev rules: all failures of one request hold, a later one before an earlier", "[vdev]")
{
	static const char *const texts[] = {
		"NC_RESET:EIO:1", "NC_RESET:EBUSY:3", "NC_RESET:ENOMEM:3"};
	static const int expected[] = {-EIO, 0, -ENOMEM, 0};
	struct vdev_rules rules = {0};
	const struct vdev_rule *rule = &rules.row[VDEV_ROW_NC_RESET];

	for (size_t i = 0; i < COUNT(texts); i++)
		REQUIRE(vdev_rules_fail(&rules, texts[i]));
	for (size_t i = 0; i < COUNT(expected); i++)
		CHECK_EQ(vdev_rule_obey(rule, i + 1, never_ends, NULL), expected[i]);
	while (rule->faults < VDEV_MAX_FAULTS)
		REQUIRE(vdev_rules_fail(&rules, "NC_RESET:EPERM"));
	CHECK(!vdev_rules_fail(&rules, "NC_RESET:EPERM:7"));
	CHECK_EQ(vdev_rule_obey(rule, 1, never_ends, NULL), -EPERM);
}

TEST("vdev rules: a delay has a number of milliseconds, at most an hour", "[vdev]")
{
	static const struct {
		const char *text;
		unsigned ms; /* 0: refused */
	} rows[] = {{"NC_RESET:1", 1}, {"NC_RESET:3600000", 3600000}, {"NC_RESET:3600001", 0},
		{"NC_RESET:0", 0}, {"NC_RESET", 0}, {"NC_RESET:", 0}, {"NC_RESET:1s", 0},
		{"RESET:1", 0}};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct vdev_rules rules = {0};

		test_info("'%s'", rows[i].text);
		CHECK_EQ(vdev_rules_delay(&rules, rows[i].text), rows[i].ms != 0);
		CHECK_EQ(rules.row[VDEV_ROW_NC_RESET].delay_ms, rows[i].ms);
	}
}

TEST("vdev rules: a list of absent requests holds whole or not at all", "[vdev]")
{
	struct vdev_rules rules = {0};

	CHECK(!vdev_rules_without(&rules, "NC_RESET,NO_SUCH_REQUEST"));
	CHECK(!vdev_rules_without(&rules, "NC_RESET,"));
	CHECK(!vdev_rules_without(&rules, ""));
	CHECK(!rules.row[VDEV_ROW_NC_RESET].absent);
	CHECK(vdev_rules_without(&rules, "NC_RESET,BAR_READ"));
	CHECK(rules.row[VDEV_ROW_NC_RESET].absent);
	CHECK(rules.row[VDEV_ROW_BAR_READ].absent);
	CHECK(!rules.row[VDEV_ROW_BAR_WRITE].absent);
}

/* ---- on a device ------------------------------------------------------------------------- */

TEST("vdev rules: a device without a request answers by the older ones", "[vdev]")
{
	NEED_VDEV();
	_run_ struct vdev_run run = {0};
	_cleanup_close_ int fd = -1;
	struct neuron_crwl_nc_map old = {.nc_count = 1, .end_nc_index = 7};
	struct neuron_crwl_nc_map_ext map = {.nc_count = 1, .end_nc_index = 7};
	struct neuron_device_driver_info driver;
	struct neuron_device_info info;
	uint64_t arg[8];

	REQUIRE(vdev_run_start(
		&run, (const char *[]){"--without", "CRWL_NC_RANGE_MARK_EXT0,DEVICE_BASIC_INFO",
			      "--without", "MEM_ALLOC_V2MT64", NULL}));
	fd = vdev_open(&run, 0, O_RDWR);
	REQUIRE(fd >= 0);
	CHECK_EQ(vdev_call(fd, NEURON_IOCTL_CRWL_NC_RANGE_MARK_EXT0, &map), -EINVAL);
	CHECK_EQ(vdev_call(fd, NEURON_IOCTL_DEVICE_BASIC_INFO, arg), -EINVAL);
	CHECK_EQ(vdev_call(fd, NEURON_IOCTL_CRWL_NC_RANGE_MARK, &old), 0);
	CHECK_EQ(vdev_call(fd, NEURON_IOCTL_DEVICE_INFO, &info), 0);
	/* and says so */
	REQUIRE_EQ(vdev_call(fd, NEURON_IOCTL_DRIVER_INFO_GET, &driver), 0);
	CHECK_EQ(driver.feature_flags1 & NEURON_FEATURE_BIG_CORE_MAPS, 0);
	CHECK_EQ(driver.feature_flags1 & NEURON_FEATURE_ALLOC64, 0);
	CHECK(driver.feature_flags1 & NEURON_FEATURE_ALLOC_TYPE);
	CHECK_EQ(vdev_stat(&run, "ioctl.CRWL_NC_RANGE_MARK_EXT0"), 1);
}

TEST("vdev rules: requests fail always, or only the one that is meant", "[vdev]")
{
	NEED_VDEV();
	_run_ struct vdev_run run = {0};
	_cleanup_close_ int fd = -1, query = -1;
	uint64_t arg[16] = {0};

	REQUIRE(vdev_run_start(
		&run, (const char *[]){"--fail", "DEVICE_BASIC_INFO:ENODEV", "--fail",
			      "COMPATIBLE_VERSION:EFAULT:2", "--fail", "NC_RESET", NULL}));
	fd = vdev_open(&run, 0, O_RDWR);
	query = vdev_open(&run, 0, O_WRONLY);
	REQUIRE(fd >= 0 && query >= 0);
	for (int i = 1; i <= 3; i++) {
		CHECK_EQ(vdev_call(query, NEURON_IOCTL_DEVICE_BASIC_INFO, arg), -ENODEV);
		CHECK_EQ(vdev_call(query, NEURON_IOCTL_COMPATIBLE_VERSION, arg),
			i == 2 ? -EFAULT : 0);
	}
	CHECK_EQ(vdev_call(fd, NEURON_IOCTL_NC_RESET, arg), -EIO);
	CHECK_EQ(vdev_stat(&run, "ioctl.DEVICE_BASIC_INFO"), 3);
	CHECK_EQ(vdev_stat(&run, "ioctl_errors"), 5);
}

TEST("vdev rules: an open fails like a request, by the kind of handle", "[vdev]")
{
	NEED_VDEV();
	_run_ struct vdev_run run = {0};
	int fd;

	REQUIRE(vdev_run_start(&run, (const char *[]){"--fail", "OPEN:EBUSY:2", "--fail",
					     "OPEN_QUERY:EACCES", "--delay", "OPEN:1", NULL}));
	fd = vdev_open(&run, 0, O_RDWR);
	CHECK(fd >= 0);
	CHECK_EQ(vdev_open(&run, 0, O_RDWR), -EBUSY);
	CHECK_EQ(vdev_open(&run, 0, O_WRONLY), -EACCES);
	CHECK_EQ(vdev_stat(&run, "opens"), 2);
	CHECK_EQ(vdev_stat(&run, "query_opens"), 1);
	CHECK_EQ(vdev_stat(&run, "open_handles"), 1);
	close(fd);
}

static int open_query(void *arg)
{
	return vdev_open(arg, 0, O_WRONLY) < 0;
}

TEST("vdev rules: a delayed open ends with its caller", "[vdev]")
{
	NEED_VDEV();
	_run_ struct vdev_run run = {0};
	pid_t pid;

	REQUIRE(vdev_run_start(&run, (const char *[]){"--delay", "OPEN_QUERY:3600000", NULL}));
	pid = fork();
	if (pid == 0)
		_exit(open_query(&run));
	REQUIRE(vdev_wait_stat(&run, "query_opens", 1));
	kill(pid, SIGKILL);
	CHECK_EQ(waitpid(pid, NULL, 0), pid);
	CHECK_EQ(vdev_run_stop(&run, SIGTERM), 0);
}

static int reset_and_wait(void *arg)
{
	struct neuron_device_reset reset = {.nc_map = 1};

	return vdev_call(vdev_open(arg, 0, O_RDWR), NEURON_IOCTL_NC_RESET, &reset) ? 1 : 0;
}

static pid_t in_reset(struct vdev_run *run, long long count)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(reset_and_wait(run));
	return vdev_wait_stat(run, "ioctl.NC_RESET", count) ? pid : -1;
}

TEST("vdev rules: a delayed request ends with its caller, and with the device", "[vdev]")
{
	NEED_VDEV();
	_run_ struct vdev_run run = {0};
	struct {
		struct neuron_apps_info head;
		struct neuron_app_info apps[2];
	} apps = {.head = {.capacity = 2}};
	pid_t pid;
	int status = 0, fd;

	REQUIRE(vdev_run_start(&run, (const char *[]){"--delay", "NC_RESET:3600000", NULL}));
	pid = in_reset(&run, 1);
	REQUIRE(pid > 0);
	kill(pid, SIGKILL);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK(WIFSIGNALED(status));
	fd = vdev_open(&run, 0, O_RDWR);
	CHECK_EQ(vdev_call(fd, NEURON_IOCTL_DEVICE_GET_ALL_APPS_INFO, &apps), 0);
	CHECK_EQ(apps.head.size, 1); /* it is not attached any more */
	close(fd);
	/* Others are served meanwhile. */
	pid = in_reset(&run, 2);
	REQUIRE(pid > 0);
	fd = vdev_open(&run, 0, O_RDWR);
	CHECK(fd >= 0);
	close(fd);
	CHECK_EQ(vdev_run_stop(&run, SIGTERM), 0);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 1);
}

TEST("vdev rules: a delay is waited before the request has any effect", "[vdev]")
{
	NEED_VDEV();
	_run_ struct vdev_run run = {0};
	_cleanup_close_ int fd = -1;
	struct neuron_crwl_nc_map_ext map = {.nc_count = 1, .end_nc_index = 7};
	pid_t pid;

	REQUIRE(vdev_run_start(&run, (const char *[]){"--delay", "NC_RESET:1", "--delay",
					     "CRWL_NC_RANGE_MARK_EXT0:3600000", NULL}));
	CHECK_EQ(vdev_in_child(reset_and_wait, &run), 0); /* late, but answered */
	pid = fork();
	if (pid == 0)
		_exit(vdev_call(vdev_open(&run, 0, O_WRONLY), NEURON_IOCTL_CRWL_NC_RANGE_MARK_EXT0,
			      &map) != 0);
	REQUIRE(vdev_wait_stat(&run, "ioctl.CRWL_NC_RANGE_MARK_EXT0", 1));
	CHECK_EQ(vdev_stat(&run, "marked_cores"), 0);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	CHECK_EQ(vdev_stat(&run, "marked_cores"), 0);
}
