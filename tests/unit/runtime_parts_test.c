/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runtime_parts_test.c - small parts of the runtime that need no device: log lines, settings,
 * opening of device files, notification rings.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "runtime/device/device.h"
#include "runtime/lifecycle/config.h"
#include "runtime/log/log.h"
#include "tests/shim/shim.h"
#include "tests/unit/scratch.h"

TEST("log: a line begins with date, process, thread, level, tag and function", "[log]")
{
	char text[256];
	size_t n = log_prefix(text, sizeof(text), 1729541703169020123ull, 7340, 7341,
		LOG_LEVEL_INFO, "NRT", "nrt_init");

	CHECK_EQ(n, strlen(text));
	CHECK_STR(text, "2024-Oct-21 20:15:03.169020  7340:7341   INFO   NRT:nrt_init"
			"                                 ");
	(void)log_prefix(
		text, sizeof(text), 951782400000000000ull, 1, 1, LOG_LEVEL_ERROR, "TDRV", "f");
	CHECK(!strncmp(text, "2000-Feb-29 00:00:00.000000 ", 28));
	(void)log_prefix(
		text, sizeof(text), 4102444799999999999ull, 1, 1, LOG_LEVEL_WARN, "T", "f");
	CHECK(!strncmp(text, "2099-Dec-31 23:59:59.999999 ", 28));
	CHECK_EQ(log_prefix(text, 5, 0, 1, 1, LOG_LEVEL_WARN, "T", "f"), 4);
	CHECK_STR(text, "1970");
}

TEST("log: levels are found anywhere in a setting, in any case", "[log]")
{
	static const struct {
		const char *text;
		int level;
	} rows[] = {{"ERROR", 1}, {"warn", 2}, {"WARNING", 2}, {" Info ", 3}, {"debug", 4},
		{"TRACE", 5}, {"quiet", 0}, {"disabled", 0}, {"loud", -1}, {"", -1}};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		test_info("'%s'", rows[i].text);
		CHECK_EQ(log_parse_level(rows[i].text), rows[i].level);
	}
}

TEST("config: core lists", "[config]")
{
	static const struct {
		const char *text;
		int rc;
		uint32_t first, count;
	} rows[] = {
		{"0", 0, 0, 1},
		{"3-5", 0, 3, 3},
		{"0-3,4", 0, 0, 5},
		{"5,4,3,4", 0, 3, 3},
		{"510-511", 0, 510, 2},
		{"0,2", -ERANGE, 0, 0},
		{"512", -EINVAL, 0, 0},
		{"99999999999999999999", -EINVAL, 0, 0},
		{"", -EINVAL, 0, 0},
		{"a", -EINVAL, 0, 0},
		{"1,", -EINVAL, 0, 0},
		{",1", -EINVAL, 0, 0},
		{"1-", -EINVAL, 0, 0},
		{"3-1", -EINVAL, 0, 0},
		{"1 2", -EINVAL, 0, 0},
		{"-1", -EINVAL, 0, 0},
		{"0x1", -EINVAL, 0, 0},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint32_t first = 0, count = 0;

		test_info("'%s'", rows[i].text);
		CHECK_EQ(config_parse_cores(rows[i].text, &first, &count), rows[i].rc);
		CHECK_EQ(first, rows[i].first);
		CHECK_EQ(count, rows[i].count);
	}
}

/* What config_read makes of one setting; unset again afterwards. */
static NRT_STATUS read_with(const char *name, const char *value, struct config *ret)
{
	NRT_STATUS status;

	setenv("NEURON_RT_LOG_LEVEL", "QUIET", 1);
	log_configure();
	setenv(name, value, 1);
	status = config_read(ret);
	unsetenv(name);
	unsetenv("NEURON_RT_LOG_LEVEL");
	log_configure();
	return status;
}

TEST("config: nothing is set, and every setting has its initial value", "[config]")
{
	struct config c;

	memset(&c, 0xff, sizeof(c));
	REQUIRE_EQ(read_with("NEURON_RT_EXEC_TIMEOUT", "", &c), NRT_SUCCESS);
	CHECK_STR(c.device_root, "");
	CHECK(!c.allow_device);
	CHECK_EQ(c.visible_cores.count, 0);
	CHECK_EQ(c.core_count, 0);
	CHECK_EQ(c.lnc_size, 0);
	CHECK(c.reset_cores);
	CHECK_EQ(c.exec_timeout_s, 30);
}

TEST("config: a malformed value is an error, and nothing is taken from the rest", "[config]")
{
	static const struct {
		const char *name, *value;
		NRT_STATUS status;
	} rows[] = {
		{"NTRACE_DEVICE_ROOT", "/anything at all", NRT_SUCCESS},
		{"NTRACE_ALLOW_DEVICE", "1", NRT_SUCCESS},
		{"NTRACE_ALLOW_DEVICE", "2", NRT_INVALID},
		{"NTRACE_ALLOW_DEVICE", "yes", NRT_INVALID},
		{"NEURON_RT_VISIBLE_CORES", "2-3", NRT_SUCCESS},
		{"NEURON_RT_VISIBLE_CORES", "2,4", NRT_INVALID},
		{"NEURON_RT_VISIBLE_CORES", "512", NRT_INVALID},
		{"NEURON_RT_NUM_CORES", "512", NRT_SUCCESS},
		{"NEURON_RT_NUM_CORES", "513", NRT_INVALID},
		{"NEURON_RT_NUM_CORES", "-1", NRT_INVALID},
		{"NEURON_LOGICAL_NC_CONFIG", "1", NRT_SUCCESS},
		{"NEURON_LOGICAL_NC_CONFIG", "0", NRT_INVALID},
		{"NEURON_RT_VIRTUAL_CORE_SIZE", "2", NRT_SUCCESS},
		{"NEURON_RT_VIRTUAL_CORE_SIZE", "0", NRT_INVALID},
		{"NEURON_RT_RESET_CORES", "0", NRT_SUCCESS},
		{"NEURON_RT_RESET_CORES", "no", NRT_INVALID},
		{"NEURON_RT_EXEC_TIMEOUT", "86400", NRT_SUCCESS},
		{"NEURON_RT_EXEC_TIMEOUT", "86401", NRT_INVALID},
		{"NEURON_RT_EXEC_TIMEOUT", "0", NRT_INVALID},
		{"NEURON_RT_EXEC_TIMEOUT", "1s", NRT_INVALID},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct config c = {.exec_timeout_s = 77};

		test_info("%s=%s", rows[i].name, rows[i].value);
		CHECK_EQ(read_with(rows[i].name, rows[i].value, &c), rows[i].status);
		CHECK_EQ(c.exec_timeout_s == 77, rows[i].status != NRT_SUCCESS);
	}
}

TEST("config: values arrive in their fields, and a better name wins", "[config]")
{
	struct config c = {.device_root = ""};

	REQUIRE_EQ(read_with("NTRACE_DEVICE_ROOT", "/r", &c), NRT_SUCCESS);
	CHECK(c.device_root[0] == '/');
	REQUIRE_EQ(read_with("NTRACE_ALLOW_DEVICE", "1", &c), NRT_SUCCESS);
	CHECK(c.allow_device);
	REQUIRE_EQ(read_with("NEURON_RT_RESET_CORES", "0", &c), NRT_SUCCESS);
	CHECK(!c.reset_cores);
	REQUIRE_EQ(read_with("NEURON_RT_EXEC_TIMEOUT", "5", &c), NRT_SUCCESS);
	CHECK_EQ(c.exec_timeout_s, 5);
	REQUIRE_EQ(read_with("NEURON_RT_NUM_CORES", "4", &c), NRT_SUCCESS);
	CHECK_EQ(c.core_count, 4);
	setenv("NEURON_RT_NUM_CORES", "many", 1); /* not looked at */
	REQUIRE_EQ(read_with("NEURON_RT_VISIBLE_CORES", "2-4", &c), NRT_SUCCESS);
	unsetenv("NEURON_RT_NUM_CORES");
	CHECK_EQ(c.visible_cores.first, 2);
	CHECK_EQ(c.visible_cores.count, 3);
	CHECK_EQ(c.core_count, 0);
	setenv("NEURON_RT_VIRTUAL_CORE_SIZE", "2", 1);
	CHECK_EQ(read_with("NEURON_LOGICAL_NC_CONFIG", "1", &c), NRT_SUCCESS);
	CHECK_EQ(c.lnc_size, 1);
	unsetenv("NEURON_RT_VIRTUAL_CORE_SIZE");
}

/* ---- opening devices ---------------------------------------------------------------------- */

/* The number that the next descriptor will have. */
static int next_fd(void)
{
	int fd = dup(0);

	(void)close(fd);
	return fd;
}

TEST("device: what was opened is looked at, not what stood at the path before", "[device]")
{
	static struct device_system s;
	struct scratch dir = {""};
	struct scratch_path node;
	int fd = -1, next;

	if (geteuid() != 0)
		SKIP("root, to make a device node");
	REQUIRE(scratch_make(&dir));
	node = scratch_path(&dir, "dev/neuron0");
	snprintf(s.root, sizeof(s.root), "%s", dir.dir);
	CHECK_EQ(mkdir(scratch_path(&dir, "dev").s, 0700), 0);
	setenv("NEURON_RT_LOG_LEVEL", "QUIET", 1);
	log_configure();
	s.allow_real = false;
	s.is_virtual = true; /* as discovery found */

	CHECK_EQ(device_open(&s, 0, O_RDWR, &fd), NRT_INVALID); /* nothing there */
	CHECK_EQ(mknod(node.s, S_IFREG | 0600, 0), 0);
	CHECK_EQ(device_open(&s, 0, O_RDWR, &fd), NRT_SUCCESS);
	CHECK((fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
	CHECK_EQ(close(fd), 0);
	CHECK(s.is_virtual);

	/* A real device takes its place; it is closed again. */
	CHECK_EQ(unlink(node.s), 0);
	CHECK_EQ(mknod(node.s, S_IFCHR | 0600, makedev(1, 3)), 0);
	next = next_fd();
	fd = -1;
	CHECK_EQ(device_open(&s, 0, O_WRONLY, &fd), NRT_INVALID);
	CHECK_EQ(fd, -1);
	CHECK_EQ(next_fd(), next);
	CHECK(s.is_virtual);
	s.allow_real = true;
	CHECK_EQ(device_open(&s, 0, O_WRONLY, &fd), NRT_SUCCESS);
	CHECK(!s.is_virtual);
	CHECK_EQ(close(fd), 0);

	unsetenv("NEURON_RT_LOG_LEVEL");
	log_configure();
	scratch_remove(&dir);
}

/* ---- notification rings ------------------------------------------------------------------- */

#define RECORDS 8u

struct ring_memory {
	_Alignas(8) struct vdev_notification slots[RECORDS];
	uint64_t written;
};

/* What the device does. */
static void write_note(struct ring_memory *m)
{
	struct vdev_notification *slot = &m->slots[m->written % RECORDS];
	bool phase = m->written / RECORDS % 2 == 0;

	*slot = (struct vdev_notification){.launch = (uint16_t)m->written,
		.type_phase = (uint8_t)(VDEV_NOTE_TYPE_EXPLICIT_SP | (phase ? VDEV_NOTE_PHASE : 0)),
		.timestamp_ps = m->written * 1000};
	m->written++;
}

TEST("notify: a reader starts behind what is there, at every fill of the ring", "[notify]")
{
	for (unsigned before = 0; before <= 3 * RECORDS; before++) {
		struct ring_memory m = {.written = 0};
		struct vdev_notification note;
		struct notify_ring r;

		for (unsigned i = 0; i < before; i++)
			write_note(&m);
		test_info("%u records before", before);
		notify_attach(&r, m.slots, sizeof(m.slots));
		CHECK(!notify_next(&r, &note));
		for (unsigned i = 0; i < 2 * RECORDS; i++) {
			write_note(&m);
			REQUIRE(notify_next(&r, &note));
			CHECK_EQ(note.launch, before + i);
			CHECK_EQ(note.timestamp_ps, (before + i) * 1000);
			CHECK(!notify_next(&r, &note));
		}
	}
}
