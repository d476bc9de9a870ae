/* SPDX-License-Identifier: Apache-2.0 */
/* mapped_test.c - files as memory, also those that become shorter while they are read. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/base/file.h"
#include "runtime/base/mapped.h"
#include "tests/shim/shim.h"

/* A file in memory of so many pages of ones. */
static int make(size_t pages)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	_cleanup_free_ char *ones = malloc(page);
	int fd = memfd_create("mapped", MFD_CLOEXEC);

	if (!ones || fd < 0)
		return -1;
	memset(ones, 1, page);
	while (pages--)
		if (file_write_all(fd, ones, page) < 0)
			return -1;
	return fd;
}

TEST("mapped: what a file has no more reads as zeros, and is told", "[base]")
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct mapped m, other;
	int fd = make(4), whole = make(4);

	REQUIRE(fd >= 0 && whole >= 0);
	REQUIRE_EQ(mapped_open(&other, whole), 0);
	for (unsigned round = 0; round < 2; round++) { /* a guard that is used again */
		REQUIRE(ftruncate(fd, (off_t)(4 * page)) == 0);
		REQUIRE_EQ(mapped_open(&m, fd), 0);
		CHECK_EQ(m.size, 4 * page);
		CHECK_EQ(m.data[page - 1], 1);
		CHECK(!mapped_cut(&m));
		REQUIRE(ftruncate(fd, (off_t)page) == 0);
		CHECK(!mapped_cut(&m));
		CHECK_EQ(m.data[2 * page], 0);
		CHECK_EQ(m.data[4 * page - 1], 0);
		CHECK(mapped_cut(&m));
		CHECK_EQ(m.data[0], 1);
		CHECK(!mapped_cut(&other));
		mapped_close(&m);
		CHECK(!mapped_cut(&m));
	}
	CHECK_EQ(other.data[3 * page], 1);
	mapped_close(&other);
	close(fd);
	close(whole);
}

static int read_elsewhere(void)
{
	struct mapped m;
	volatile const uint8_t *cut;
	int fd = make(2);

	if (fd < 0 || mapped_open(&m, fd) < 0 || ftruncate(fd, 0))
		return 2;
	cut = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
	return cut[0] ? 3 : 4;
}

TEST("mapped: an error of the bus elsewhere ends the process as before", "[base]")
{
	int status = 0;
	pid_t pid;

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
	SKIP("a build without a sanitizer, which reports the error as a finding of its own");
#endif
	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		(void)dup2(open("/dev/null", O_WRONLY), STDERR_FILENO); /* what a sanitizer says */
		_exit(read_elsewhere());
	}
	REQUIRE(pid > 0 && waitpid(pid, &status, 0) == pid);
	CHECK(WIFSIGNALED(status) ? WTERMSIG(status) == SIGBUS || WTERMSIG(status) == SIGABRT
				  : WEXITSTATUS(status) == 1);
}

TEST("mapped: an empty file has no data, and what is no file is refused", "[base]")
{
	struct mapped m;
	int fd = make(0), ends[2];

	REQUIRE(fd >= 0 && pipe(ends) == 0);
	CHECK_EQ(mapped_open(&m, fd), 0);
	CHECK(!m.data && m.size == 0 && !mapped_cut(&m));
	mapped_close(&m);
	CHECK_EQ(mapped_open(&m, ends[0]), -ESPIPE);
	close(fd);
	close(ends[0]);
	close(ends[1]);
}
