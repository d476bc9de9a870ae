/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ring_hostile_test.c - control files that no honest process writes: each is refused, none is
 * followed.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "runtime/trace/ring.h"
#include "tests/shim/shim.h"
#include "tests/unit/scratch.h"

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
	FAULT_LANE_TWICE,
	FAULT_NO_CORE_LANE,
	FAULT_RINGS_OVERLAP,
	FAULT_RING_IN_NAMES,
	FAULT_EMITTED_NOTHING,
	FAULT_EMITTED_FAR,
	FAULT_HEAD_HUGE,
	FAULT_DROPPED_MORE,
	FAULT_DROPPED_DELIVERED,
	FAULT_NO_RING_HUGE,
	FAULT_NO_RING_MORE,
	FAULT_RING_COUNT,
	FAULT_NAME_LEN,
	FAULT_NAMES_USED,
	FAULT_NAMES_CUT,
	FAULT_COUNT,
};

/* Ten events that were never written, then the fault. */
static void break_counters(struct ctl *ctl, enum fault fault)
{
	struct ring_head *head = (struct ring_head *)((char *)ctl + ctl->rings[0].offset);
	struct ring_slot *slots = (struct ring_slot *)(head + 1);

	head->head = head->emitted = 10;
	switch (fault) {
	case FAULT_EMITTED_NOTHING:
		head->emitted = 0;
		break;
	case FAULT_EMITTED_FAR:
		head->emitted = 1ull << 40;
		break;
	case FAULT_HEAD_HUGE:
		head->head = head->emitted = UINT64_MAX;
		break;
	case FAULT_DROPPED_MORE:
		head->slot_busy = 5000;
		break;
	case FAULT_DROPPED_DELIVERED:
		head->slot_busy = 10;
		slots[0].stamp = 2;
		slots[0].wanted = UINT64_MAX;
		break;
	case FAULT_NO_RING_HUGE:
		ctl->no_ring = ctl->emitted_no_ring = UINT64_MAX;
		break;
	case FAULT_NO_RING_MORE:
		ctl->no_ring = 1;
		break;
	default:
		break;
	}
}

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
	case FAULT_LANE_TWICE:
		ring[1].lane = 0;
		break;
	case FAULT_NO_CORE_LANE:
		ring[1].nc_idx = TRACE_NC_UNKNOWN;
		break;
	case FAULT_RINGS_OVERLAP:
		ring[1].offset = ring->offset + 4096;
		break;
	case FAULT_RING_IN_NAMES:
		ring->offset = CTL_PAGE_BYTES + CTL_NAMES_BYTES - 4096;
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
		if (fault >= FAULT_EMITTED_NOTHING && fault <= FAULT_NO_RING_MORE)
			break_counters(ctl, fault);
		break;
	}
}

/* A well-formed file with two rings of a core and a name, then the fault. */
static int hostile_file(enum fault fault)
{
	uint64_t bytes = CTL_PAGE_BYTES + CTL_NAMES_BYTES + 2 * ring_bytes(64);
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
	ctl->rings[1] = ctl->rings[0];
	ctl->rings[1].offset += ring_bytes(64);
	ctl->rings[1].lane = 1;
	ctl->ring_count = 2;
	break_file(ctl, fault);
	(void)munmap(ctl, bytes);
	if (fault == FAULT_SHORT && ftruncate(fd, CTL_PAGE_BYTES) < 0)
		return -1;
	if (fault != FAULT_UNSEALED && fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) < 0)
		return -1;
	return fd;
}

/* Whatever the counters said: nothing but what was delivered, by the first ring, stands in the rows. */
static void check_rows(const struct ctl_reader *r, uint64_t delivered)
{
	for (uint32_t i = 0; i < ctl_reader_rings(r); i++) {
		struct ring_counters want = {0}, c;
		uint32_t nc, lane;

		ctl_reader_counters(r, i, &nc, &lane, &c);
		if (nc != TRACE_NC_UNKNOWN) {
			CHECK_EQ(nc, 0);
			CHECK_EQ(lane, i); /* two rings of a core are two rows */
		}
		if (i == 0)
			want.emitted = want.delivered = delivered;
		CHECK(memcmp(&c, &want, sizeof(c)) == 0);
	}
}

/* A sparse file with these rings, whose heads claim every slot. */
static int sparse_file(const uint32_t *capacities, uint32_t count)
{
	uint64_t bytes = CTL_PAGE_BYTES + CTL_NAMES_BYTES;
	int fd = memfd_create("hostile", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct ctl *ctl;

	if (fd < 0 || ftruncate(fd, 1ll << 31) < 0 || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) < 0)
		return -1;
	ctl = mmap(NULL, 1ull << 31, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
	if (ctl == MAP_FAILED)
		return -1;
	ctl->magic = CTL_MAGIC;
	ctl->version = CTL_VERSION;
	ctl->names_offset = CTL_PAGE_BYTES;
	for (uint32_t i = 0; i < count; i++) {
		struct ring_head *head = (struct ring_head *)((char *)ctl + bytes);

		head->head = head->emitted = capacities[i];
		ctl->rings[i] =
			(struct ctl_ring){.offset = bytes, .nc_idx = i, .capacity = capacities[i]};
		bytes += ring_bytes(capacities[i]);
	}
	ctl->ring_count = count;
	(void)munmap(ctl, 1ull << 31);
	return fd;
}

TEST("ring: one poll passes a bounded number of positions, the next begins behind them", "[ring]")
{
	static const uint32_t capacities[] = {1u << 20, 64}, too_large[] = {1u << 23};
	struct ctl_reader *r = NULL;
	struct ring_counters c;
	uint32_t nc, lane;

	REQUIRE_EQ(ctl_reader_open(sparse_file(capacities, 2), CTL_SUB_AGENT, &r), 0);
	for (int round = 0; round < 2; round++) {
		CHECK_EQ(ctl_reader_poll(r, true, 1, NULL, NULL, NULL), 0);
		ctl_reader_counters(r, 0, &nc, &lane, &c);
		CHECK_EQ(c.abandoned, 1u << 20);
		ctl_reader_counters(r, 1, &nc, &lane, &c);
		CHECK_EQ(c.unread, round ? 0 : 64);
		CHECK_EQ(c.abandoned, round ? 64 : 0);
		CHECK_EQ(c.emitted, 64);
	}
	ctl_reader_close(r);
	/* A ring larger than a writer makes, though the file has room for it. */
	REQUIRE_EQ(ctl_reader_open(sparse_file(too_large, 1), CTL_SUB_AGENT, &r), 0);
	CHECK_EQ(ctl_reader_poll(r, true, 1, NULL, NULL, NULL), -EPROTO);
	ctl_reader_close(r);
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
		rc = ctl_reader_open(fd, CTL_SUB_AGENT, &r);
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
		CHECK_EQ(ctl_reader_failed(r), fault != FAULT_NONE);
		check_rows(r, fault == FAULT_DROPPED_DELIVERED);
		ctl_reader_close(r);
	}
}

TEST("ring: what is no memfd is refused", "[ring]")
{
	struct ctl_reader *r;
	int fds[2], fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	REQUIRE(fd >= 0);
	CHECK_EQ(ctl_reader_open(fd, CTL_SUB_AGENT, &r), -EPROTO);
	CHECK_EQ(close(fd), 0);
	REQUIRE_EQ(pipe(fds), 0);
	CHECK_EQ(ctl_reader_open(fds[0], CTL_SUB_AGENT, &r), -EPROTO);
	close(fds[0]);
	close(fds[1]);
	CHECK_EQ(ctl_reader_open(-1, CTL_SUB_AGENT, &r), -EPROTO);
}

/* Mappings are few here, as they are in a process that has very many. */
static int short_of_memory(void *arg)
{
	const uint32_t capacities[] = {1024, 1 << 16};
	struct ctl_reader *r = NULL;
	struct rlimit before, few;
	long rc;
	int fd = sparse_file(capacities, 2);

	(void)arg;
	if (ctl_reader_open(fd, CTL_SUB_AGENT, &r) < 0 || getrlimit(RLIMIT_AS, &before) < 0)
		return 1;
	few = (struct rlimit){1, before.rlim_max};
	if (setrlimit(RLIMIT_AS, &few) < 0)
		return 2;
	rc = ctl_reader_poll(r, false, 1, NULL, NULL, NULL);
	if (setrlimit(RLIMIT_AS, &before) < 0 || rc != -ENOMEM || ctl_reader_failed(r))
		return 3;
	if (ctl_reader_poll(r, true, 2, NULL, NULL, NULL) != 0 || ctl_reader_failed(r))
		return 4;
	ctl_reader_close(r);
	return ctl_reader_open(fd, CTL_SUB_AGENT, &r) == 0 ? 5 : 0; /* closed with the reader */
}

TEST("ring: a reader that is short of memory reads on when there is some", "[ring]")
{
	CHECK_EQ(scratch_child(short_of_memory, NULL), 0);
}
