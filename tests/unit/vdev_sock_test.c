/* SPDX-License-Identifier: Apache-2.0 */
/* vdev_sock_test.c - mem.sock of ntrace-vdev: who gets device memory, and who cannot disturb it. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/base/file.h"
#include "tests/shim/shim.h"
#include "tests/unit/vdev_harness.h"

#define _run_ _cleanup_(vdev_run_end)

static int ask_as_stranger(void *arg)
{
	const struct vdev_run *run = arg;
	int sock = vdev_connect(run), fd;
	uint64_t size;

	if (sock < 0 || vdev_ask(sock, 0, 1, &size) != -EACCES)
		return 1;
	fd = vdev_open(run, 0, O_RDWR); /* attached, but not the owner */
	if (fd < 0 || vdev_ask(sock, 0, 1, &size) != -EINVAL)
		return 2;
	return 0;
}

TEST("vdev: mem.sock gives an owner its memory, and nobody else", "[vdev]")
{
	NEED_VDEV();
	_run_ struct vdev_run run = {0};
	_cleanup_close_ int fd = -1;
	_cleanup_close_ int sock = -1;
	_cleanup_close_ int memory = -1;
	uint64_t handle, size = 0;
	char *map, text[6] = "";

	REQUIRE(vdev_run_start(&run, NULL));
	fd = vdev_open(&run, 0, O_RDWR);
	REQUIRE(fd >= 0);
	REQUIRE_EQ(vdev_alloc(fd, 5000, &handle), 0);
	sock = vdev_connect(&run);
	REQUIRE(sock >= 0);
	memory = vdev_ask(sock, 0, handle, &size);
	REQUIRE(memory >= 0);
	CHECK_EQ(size, 5000);
	map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
	REQUIRE(map != MAP_FAILED);
	/* The same bytes from both sides. */
	CHECK_EQ(vdev_write(fd, handle, 100, "hello", 6), 0);
	CHECK_STR(map + 100, "hello");
	strcpy(map + 200, "world");
	CHECK_EQ(vdev_read(fd, handle, 200, text, 6), 0);
	CHECK_STR(text, "world");
	/* It cannot be pulled from under the device. */
	CHECK(ftruncate(memory, 0) < 0 && errno == EPERM);
	munmap(map, size);

	CHECK_EQ(vdev_ask(sock, 0, handle + 1, &size), -EINVAL);
	CHECK_EQ(vdev_ask(sock, 1, handle, &size), -ENODEV);
	CHECK_EQ(vdev_in_child(ask_as_stranger, &run), 0);
}

TEST("vdev: mem.sock outlives nonsense, silence and crowds", "[vdev]")
{
	NEED_VDEV();
	_run_ struct vdev_run run = {0};
	_cleanup_close_ int fd = -1;
	int crowd[100], sock, refused = 0;
	uint64_t handle, size;
	char nonsense[4096] = {1}, byte;

	REQUIRE(vdev_run_start(&run, NULL));
	fd = vdev_open(&run, 0, O_RDWR);
	REQUIRE(fd >= 0);
	REQUIRE_EQ(vdev_alloc(fd, 4096, &handle), 0);
	for (size_t n = 0; n <= sizeof(nonsense); n = n ? 4 * n : 1) {
		sock = vdev_connect(&run);
		REQUIRE(sock >= 0);
		if (n == sizeof(struct vdev_mem_request))
			n++;
		CHECK(send(sock, nonsense, n, MSG_NOSIGNAL) == (ssize_t)n);
		CHECK_EQ(recv(sock, &byte, 1, 0), 0); /* closed */
		close(sock);
	}
	/* One that asks and never reads; answers pile up until it is closed. */
	sock = vdev_connect(&run);
	for (int i = 0; i < 10000; i++) {
		struct vdev_mem_request request = {.mem_handle = handle};

		if (send(sock, &request, sizeof(request), MSG_NOSIGNAL | MSG_DONTWAIT) < 0 &&
			errno != EAGAIN)
			break;
	}
	close(sock);
	for (int i = 0; i < 100; i++)
		crowd[i] = vdev_connect(&run);
	for (int i = 0; i < 100; i++) {
		int got = crowd[i] < 0 ? crowd[i] : vdev_ask(crowd[i], 0, handle, &size);

		refused += got < 0;
		if (got >= 0)
			close(got);
	}
	CHECK_EQ(refused, 100 - 64);
	for (int i = 0; i < 100; i++)
		if (crowd[i] >= 0)
			close(crowd[i]);
	/* After them it still works: the places of the closed ones come free when they are seen. */
	for (int i = 0; i < 100; i++) {
		sock = vdev_connect(&run);
		size = 0;
		int got = vdev_ask(sock, 0, handle, &size);

		close(sock);
		if (got < 0)
			continue;
		close(got);
		break;
	}
	CHECK_EQ(size, 4096);
}
