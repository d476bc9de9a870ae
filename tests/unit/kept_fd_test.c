/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kept_fd_test.c - a kept descriptor knows itself, and leaves what took its number alone.
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "runtime/base/kept_fd.h"
#include "tests/shim/shim.h"
#include "tests/unit/scratch.h"

TEST("kept_fd: an adopted one moves out of the way of the program's numbers", "[base]")
{
	int fd = open("/dev/null", O_RDONLY);
	struct kept_fd k;

	REQUIRE(fd >= 0);
	REQUIRE_EQ(kept_fd_adopt(&k, fd), 0);
	CHECK(k.fd >= 60);
	CHECK_EQ(fcntl(k.fd, F_GETFD), FD_CLOEXEC);
	CHECK_EQ(fcntl(fd, F_GETFD), -1);
	CHECK(kept_fd_valid(&k));
	kept_fd_close(&k);
	CHECK_EQ(k.fd, -1);
	CHECK(!kept_fd_valid(&k));
	CHECK_EQ(kept_fd_adopt(&k, -1), -EBADF);
	CHECK_EQ(k.fd, -1);
}

TEST("kept_fd: another file at its number is neither used nor closed", "[base]")
{
	int fds[2], number;
	struct kept_fd k;

	REQUIRE_EQ(pipe2(fds, O_CLOEXEC), 0);
	REQUIRE_EQ(kept_fd_adopt(&k, open("/dev/null", O_RDONLY | O_CLOEXEC)), 0);
	number = k.fd;
	CHECK_EQ(dup3(fds[0], number, O_CLOEXEC), number);
	CHECK(!kept_fd_valid(&k));
	kept_fd_close(&k);
	CHECK_EQ(fcntl(number, F_GETFD), FD_CLOEXEC);
	CHECK_EQ(close(number), 0);
	close(fds[0]);
	close(fds[1]);
}

static int without_standard(void *arg)
{
	unsigned mask = *(unsigned *)arg;
	struct standard_fds s;
	int low, high;

	for (int i = 0; i < 3; i++)
		if (mask >> i & 1)
			close(i);
	if (standard_fds_hold(&s) != 0)
		return 1;
	high = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (mask & 1 && dup2(high, 0) != 0) /* the program's own from here on */
		return 2;
	standard_fds_release(&s);
	low = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (high < 3 || (mask & 1 && fcntl(0, F_GETFD) < 0))
		return 3;
	return mask & 6 ? (low < 3 ? 0 : 4) : 0;
}

TEST("kept_fd: while the standard numbers are held nothing gets one that is closed", "[base]")
{
	for (unsigned mask = 0; mask < 8; mask++) {
		test_info("closed: %u", mask);
		CHECK_EQ(scratch_child(without_standard, &mask), 0);
	}
}
