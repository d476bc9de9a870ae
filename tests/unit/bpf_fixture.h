/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bpf_fixture.h - what tests of the BPF programs need that are compiled for the host: the maps as the loader
 * makes them, a task with a neuron device open, and the records that come out.  Header only.
 */
#ifndef NTRACE_TESTS_BPF_FIXTURE_H
#define NTRACE_TESTS_BPF_FIXTURE_H

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/collect/ioctl_parts.h"
#include "bpf/ioctl.skel.h"
#include "bpf/neuron_event.h"
#include "tests/shim/bpf/bpf_host.h"
#include "tests/shim/shim.h"
#include "vmlinux/ioctl_table.h"

/* Contexts, as vmlinux/vmlinux.h names their members. */
struct bpf_sys_enter {
	long id;
	unsigned long args[6];
};
struct bpf_sys_exit {
	long id;
	long ret;
};

/* Programs and settings of ioctl.bpf.c. */
int enter_ioctl(struct bpf_sys_enter *ctx);
int exit_ioctl(struct bpf_sys_exit *ctx);
int follow_fork(unsigned long long *ctx);
int follow_exit(unsigned long long *ctx);
int follow_free(unsigned long long *ctx);
int follow_free(unsigned long long *ctx);
int walk_inflight(void *ctx);
extern volatile bool bpf_host_all_processes;
extern volatile uint64_t bpf_host_known_numbers[4];
extern volatile uint32_t bpf_host_rate_ceiling; /* calls of a process per window; 0: all */

/* Of the driver's level. */
struct bpf_regs {
	unsigned long di, si, dx, cx, r8, r9, ax, sp;
};

#define BPF_TEST_CPUS 4u
#define BPF_TEST_TGID 6881u
#define BPF_TEST_FD 5u
#define BPF_TEST_DEVICE 3u

/* The virtual device's file: found by file system and inode. */
static const struct bpf_host_file bpf_test_node = {
	.mode = S_IFREG | 0600, .sdev = 0x2d, .ino = 42, .flags = 2};

static inline bool bpf_test_requests(void)
{
	for (size_t i = 0; i < ioctl_row_count; i++) {
		struct nev_request q = ioctl_request(&ioctl_rows[i]);

		if (bpf_host_update("requests", &ioctl_rows[i].cmd, &q, 1))
			return false;
	}
	return true;
}

static inline bool bpf_test_device(const struct nev_file_key *key, uint32_t device)
{
	return bpf_host_update("devices", key, &device, 0) == 0;
}

static inline bool bpf_test_track(uint32_t tgid)
{
	uint32_t one = 1;

	return bpf_host_update("tracked", &tgid, &one, 0) == 0;
}

/* Maps as ioctl_hooks.c sizes and fills them, and process BPF_TEST_TGID, tracked, with the device open
 * on BPF_TEST_FD.  Each test that opens closes. */
static inline bool bpf_test_open(uint32_t ring_bytes, uint32_t inflight_limit)
{
	const struct nev_file_key key = {.ino = bpf_test_node.ino, .dev = bpf_test_node.sdev};
	size_t size;
	const void *elf = ioctl_bpf__elf_bytes(&size);

	bpf_host_reset();
	bpf_host_all_processes = false;
	bpf_host_rate_ceiling = 0;
	ioctl_numbers((uint64_t *)bpf_host_known_numbers);
	if (bpf_host_add(elf, size) || bpf_host_size("ring", ring_bytes) ||
		bpf_host_size("inflight", inflight_limit) ||
		bpf_host_size("requests", (unsigned)ioctl_row_count) ||
		bpf_host_size("cpus", BPF_TEST_CPUS))
		return false;
	bpf_host.tgid = bpf_host.tid = BPF_TEST_TGID;
	bpf_host.task = bpf_host_task_new(BPF_TEST_TGID, BPF_TEST_TGID, 16);
	bpf_host_task_file(bpf_host.task, BPF_TEST_FD, &bpf_test_node);
	return bpf_test_requests() && bpf_test_device(&key, BPF_TEST_DEVICE) &&
	       bpf_test_track(BPF_TEST_TGID);
}

/* Every record was given back. */
static inline void bpf_test_close(void)
{
	CHECK_EQ(bpf_host_reset(), 0);
}

static inline uint64_t bpf_test_counter(enum nev_counter c)
{
	uint64_t sum = 0;

	for (uint32_t cpu = 0; cpu < BPF_TEST_CPUS; cpu++)
		sum += ((const struct nev_cpu *)bpf_host_lookup("cpus", &cpu))->counters[c];
	return sum;
}

/* Calls that are open. */
static inline unsigned bpf_test_open_calls(void)
{
	uint32_t zero = 0;
	struct nev_walk *w = bpf_host_lookup("walk", &zero);

	w->before_ns = 0;
	return walk_inflight(NULL) ? UINT32_MAX : w->open;
}

/* The counters' identity, with nothing on its way in. */
static inline bool bpf_test_balanced(void)
{
	static const enum nev_counter left[] = {NEV_CALL_LEFT};
	uint64_t out = 0;

	for (uint32_t cpu = 0; cpu < BPF_TEST_CPUS; cpu++)
		for (unsigned e = 0; e < NEV_ENTERING_MAX; e++)
			if (((const struct nev_cpu *)bpf_host_lookup("cpus", &cpu))->entering_ns[e])
				return false;
	for (size_t i = 0; i < sizeof(left) / sizeof(left[0]); i++)
		out += bpf_test_counter(left[i]);
	return bpf_test_counter(NEV_C_ENTERED) == out + bpf_test_open_calls();
}

/* The next record of the ring; it must be whole.  NULL: none. */
static inline const struct nev_ioctl *bpf_test_take(void)
{
	unsigned long size = 0;
	const struct nev_ioctl *e = bpf_host_ring_take("ring", &size);

	if (e && size != sizeof(*e) + e->hdr.nargs * sizeof(e->args[0])) {
		CHECK_EQ(size, sizeof(*e) + e->hdr.nargs * sizeof(e->args[0]));
		return NULL;
	}
	return e;
}

/* Another thread of the process runs. */
static inline void bpf_test_become(uint32_t tid)
{
	bpf_host.tid = tid;
}

static inline void bpf_test_enter(unsigned fd, uint32_t request, uint64_t address)
{
	struct bpf_sys_enter ctx = {16, {fd, request, address}};

	CHECK_EQ(enter_ioctl(&ctx), 0);
}

static inline void bpf_test_exit(long result)
{
	struct bpf_sys_exit ctx = {16, result};

	CHECK_EQ(exit_ioctl(&ctx), 0);
}

#endif
