/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ring_hostile_test.c - control files that no honest process writes: each is refused, none is
 * followed.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/trace/ring.h"
#include "tests/shim/shim.h"

enum fault {
	FAULT_NONE,
	FAULT_MAGIC,
	FAULT_VERSION,
	FAULT_UNSEALED,
	FAULT_SHORT,
	FAULT_NAMES_FAR,
	FAULT_NAMES_WRAP,
	FAULT_NAMES_ODD,
	FAULT_AT_OPEN, /* all above are refused by open, all below by poll */
	FAULT_RING_FAR,
	FAULT_RING_WRAP,
	FAULT_RING_UNALIGNED,
	FAULT_RING_IN_CONTROL,
	FAULT_CAPACITY_ODD,
	FAULT_CAPACITY_HUGE,
	FAULT_CAPACITY_ZERO,
	FAULT_CORE,
	FAULT_RING_COUNT,
	FAULT_NAME_LEN,
	FAULT_NAMES_USED,
	FAULT_NAMES_CUT,
	FAULT_COUNT,
};

static void break_file(struct ctl *ctl, enum fault fault)
{
	struct ctl_ring *ring = &ctl->rings[0];
	struct ctl_name *name = (struct ctl_name *)((char *)ctl + ctl->names_offset);

	switch (fault) {
	case FAULT_MAGIC:
		ctl->magic ^= 1;
		break;
	case FAULT_VERSION:
		ctl->version++;
		break;
	case FAULT_NAMES_FAR:
		ctl->names_offset = 1ull << 40;
		break;
	case FAULT_NAMES_WRAP:
		ctl->names_offset = UINT64_MAX - 4095;
		break;
	case FAULT_NAMES_ODD:
		ctl->names_offset = CTL_PAGE_BYTES + 1;
		break;
	case FAULT_RING_FAR:
		ring->offset = 1ull << 40;
		break;
	case FAULT_RING_WRAP:
		ring->offset = UINT64_MAX - 4095;
		break;
	case FAULT_RING_UNALIGNED:
		ring->offset += 8;
		break;
	case FAULT_RING_IN_CONTROL:
		ring->offset = 4096;
		break;
	case FAULT_CAPACITY_ODD:
		ring->capacity = 63;
		break;
	case FAULT_CAPACITY_HUGE:
		ring->capacity = 1u << 31;
		break;
	case FAULT_CAPACITY_ZERO:
		ring->capacity = 0;
		break;
	case FAULT_CORE:
		ring->nc_idx = TRACE_MAX_NC;
		break;
	case FAULT_RING_COUNT:
		ctl->ring_count = CTL_MAX_RINGS + 1;
		break;
	case FAULT_NAME_LEN:
		name->len = UINT32_MAX;
		break;
	case FAULT_NAMES_USED:
		ctl->names_used = CTL_NAMES_BYTES + 8;
		break;
	case FAULT_NAMES_CUT:
		ctl->names_used = 8;
		break;
	default:
		break;
	}
}

/* A well-formed file with a ring and a name, then the fault. */
static int hostile_file(enum fault fault)
{
	uint64_t bytes = CTL_PAGE_BYTES + CTL_NAMES_BYTES + ring_bytes(64);
	int fd = memfd_create("hostile", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct ctl *ctl;

	if (fd < 0 || ftruncate(fd, (off_t)bytes) < 0)
		return -1;
	ctl = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (ctl == MAP_FAILED)
		return -1;
	ctl->magic = CTL_MAGIC;
	ctl->version = CTL_VERSION;
	ctl->names_offset = CTL_PAGE_BYTES;
	ctl->names_used = 24;
	*(struct ctl_name *)((char *)ctl + CTL_PAGE_BYTES) = (struct ctl_name){.id = 1, .len = 4};
	ctl->rings[0] = (struct ctl_ring){
		.offset = CTL_PAGE_BYTES + CTL_NAMES_BYTES, .nc_idx = 0, .capacity = 64};
	ctl->ring_count = 1;
	break_file(ctl, fault);
	(void)munmap(ctl, bytes);
	if (fault == FAULT_SHORT && ftruncate(fd, CTL_PAGE_BYTES) < 0)
		return -1;
	if (fault != FAULT_UNSEALED && fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) < 0)
		return -1;
	return fd;
}

TEST("ring: a hostile or damaged control file is refused", "[ring]")
{
	for (int fault = FAULT_NONE; fault < FAULT_COUNT; fault++) {
		struct ctl_reader *r = NULL;
		int fd, rc;

		if (fault == FAULT_AT_OPEN)
			continue;
		test_info("fault %d", fault);
		fd = hostile_file((enum fault)fault);
		REQUIRE(fd >= 0);
		rc = ctl_reader_open(fd, &r);
		if (fault != FAULT_NONE && fault < FAULT_AT_OPEN) {
			CHECK_EQ(rc, -EPROTO);
			CHECK_EQ(close(fd), 0); /* it stayed ours */
			continue;
		}
		REQUIRE_EQ(rc, 0);
		rc = (int)ctl_reader_poll(r, false, 1, NULL, NULL, NULL);
		CHECK_EQ(rc, fault == FAULT_NONE ? 0 : -EPROTO);
		rc = (int)ctl_reader_poll(r, true, 2, NULL, NULL, NULL);
		CHECK_EQ(rc, fault == FAULT_NONE ? 0 : -EPROTO);
		ctl_reader_close(r);
	}
}

TEST("ring: what is no memfd is refused", "[ring]")
{
	struct ctl_reader *r;
	int fds[2], fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	REQUIRE(fd >= 0);
	CHECK_EQ(ctl_reader_open(fd, &r), -EPROTO);
	CHECK_EQ(close(fd), 0);
	REQUIRE_EQ(pipe(fds), 0);
	CHECK_EQ(ctl_reader_open(fds[0], &r), -EPROTO);
	close(fds[0]);
	close(fds[1]);
	CHECK_EQ(ctl_reader_open(-1, &r), -EPROTO);
}
