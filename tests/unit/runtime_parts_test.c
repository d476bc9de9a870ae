/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runtime_parts_test.c - small parts of the runtime that need no device: log lines,
 * opening of device files, notification rings.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "runtime/device/device.h"
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

/* What log_write writes to a stderr that is a file; with the end of the line, without its prefix. */
static char *logged(const char *text)
{
	static char line[2048];
	int saved = dup(2), file = memfd_create("log", MFD_CLOEXEC);
	ssize_t n;

	CHECK(saved >= 0 && file >= 0 && dup2(file, 2) == 2);
	log_write(LOG_LEVEL_ERROR, "NRT", "f", "%s", text);
	n = pread(file, line, sizeof(line) - 1, 0);
	CHECK_EQ(dup2(saved, 2), 2);
	close(saved);
	close(file);
	line[n > 0 ? n : 0] = '\0';
	return n > 41 && strstr(line, " NRT:") ? strstr(line, " NRT:") + 5 + 41 : line;
}

TEST("log: control characters of what others have named reach no terminal", "[log]")
{
	log_configure();
	CHECK_STR(logged("plain, and \u00e4\u6f22"), "plain, and \u00e4\u6f22\n");
	CHECK_STR(logged("a\033[2Jb\rc\nd\te\x7f"), "a?[2Jb?c?d?e?\n");
	CHECK_STR(logged("a\xc2\x9b"
			 "2Jb"),
		"a??2Jb\n"); /* CSI in UTF-8 */
	CHECK_STR(logged("a\x9b"
			 "2J\xff"),
		"a?2J?\n");
}

static int to_a_broken_pipe(void *arg)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) < 0 || dup2(fds[1], 2) != 2)
		return 1;
	close(fds[0]);
	signal(SIGPIPE, SIG_DFL);
	log_write(LOG_LEVEL_ERROR, "NRT", "f", "nobody reads this");
	(void)arg;
	return 0; /* still here */
}

TEST("log: a pipe that nobody reads does not end the program", "[log]")
{
	log_configure();
	CHECK_EQ(scratch_child(to_a_broken_pipe, NULL), 0);
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
	_Alignas(8) struct notification slots[RECORDS];
	uint64_t written;
};

/* What the device does. */
static void write_note(struct ring_memory *m)
{
	struct notification *slot = &m->slots[m->written % RECORDS];
	bool phase = m->written / RECORDS % 2 == 0;

	*slot = (struct notification){.id = (uint16_t)m->written,
		.type_phase = (uint8_t)(NOTE_TYPE_EXPLICIT_SP | (phase ? NOTE_PHASE : 0)),
		.timestamp_ps = m->written * 1000};
	m->written++;
}

TEST("notify: a reader starts behind what is there, at every fill of the ring", "[notify]")
{
	for (unsigned before = 0; before <= 3 * RECORDS; before++) {
		struct ring_memory m = {.written = 0};
		struct notification note;
		struct notify_ring r;

		for (unsigned i = 0; i < before; i++)
			write_note(&m);
		test_info("%u records before", before);
		notify_attach(&r, m.slots, sizeof(m.slots));
		CHECK(!notify_next(&r, &note));
		for (unsigned i = 0; i < 2 * RECORDS; i++) {
			write_note(&m);
			REQUIRE(notify_next(&r, &note));
			CHECK_EQ(note.id, before + i);
			CHECK_EQ(note.timestamp_ps, (before + i) * 1000);
			CHECK(!notify_next(&r, &note));
		}
	}
}

TEST("notify: of a ring that nothing was written to, no more than its ends become memory",
	"[notify]")
{
	const size_t bytes = 1 << 20, page = (size_t)sysconf(_SC_PAGESIZE);
	int fd = memfd_create("ring", MFD_CLOEXEC);
	struct notify_ring r;
	struct stat st;
	void *memory;

	REQUIRE(fd >= 0 && ftruncate(fd, (off_t)bytes) == 0);
	memory = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0);
	REQUIRE(memory != MAP_FAILED);
	notify_attach(&r, memory, bytes);
	CHECK(r.from_start);
	REQUIRE(fstat(fd, &st) == 0);
	CHECK((uint64_t)st.st_blocks * 512 <= 2 * page);
	munmap(memory, bytes);
	close(fd);
}

TEST("notify: a reader that the device has lapped has a doubt, and goes on from the place it is "
     "told",
	"[notify]")
{
	struct ring_memory m = {.written = 0};
	struct notification note;
	struct notify_ring r;

	notify_attach(&r, m.slots, sizeof(m.slots));
	for (unsigned i = 0; i < RECORDS + 1; i++) /* one more than there is room for */
		write_note(&m);
	CHECK(!notify_next(&r, &note));
	CHECK(r.doubt);
	notify_place(&r, m.written);
	CHECK(!notify_next(&r, &note));
	CHECK(!r.doubt);
	for (unsigned i = 0; i < 3 * RECORDS; i++) {
		write_note(&m);
		REQUIRE(notify_next(&r, &note));
		CHECK_EQ(note.id, RECORDS + 1 + i);
		CHECK(!notify_next(&r, &note));
		CHECK(!r.doubt);
	}
	/* A bit of the device's says that records are gone, where the phase does not. */
	write_note(&m);
	m.slots[(m.written - 1) % RECORDS].type_phase |= NOTE_HW_OVERFLOW;
	CHECK(notify_next(&r, &note));
	CHECK(r.doubt);
}
