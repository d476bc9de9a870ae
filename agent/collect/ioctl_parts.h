/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ioctl_parts.h - the handle of the system-call level hooks, for ioctl_hooks.c, ioctl_drain.c and their tests
 * alone.
 */
#ifndef NTRACE_COLLECT_IOCTL_PARTS_H
#define NTRACE_COLLECT_IOCTL_PARTS_H

#include "agent/collect/bpf_support.h"
#include "agent/collect/ioctl_hooks.h"
#include "vmlinux/ioctl_table.h"

#define IOCTL_BATCH_BYTES (64u << 10)
#define IOCTL_MAX_LINKS 4

struct known_device {
	uint16_t index;
	bool is_virtual;
};

struct ioctl_hooks {
	struct ioctl_bpf *skel;
	struct bpf_link *links[IOCTL_MAX_LINKS];
	const char *names[IOCTL_MAX_LINKS + 1];
	unsigned link_count;
	struct rec_ladder_step ladder[IOCTL_MAX_LINKS + 1];
	unsigned step_count;

	struct bpf_ring ring;
	struct nev_cpu *cpus;
	size_t cpus_bytes;
	unsigned cpu_count;
	struct nev_walk *walk;
	size_t walk_bytes;

	struct known_device devices[NEV_MAX_DEVICES];
	int device_count;
	bool scanned;

	uint64_t watermark_ns;
	uint64_t received;
	uint32_t start_seq;

	uint8_t batch[IOCTL_BATCH_BYTES] __attribute__((aligned(8)));
	size_t batch_used;
};

/* What the programs are told of a request: how its fields are cut out of its argument structure. */
struct nev_request ioctl_request(const struct ioctl_row *row);

/* Detaches the newest hooks until `keep` are left: the entry comes first. */
void ioctl_hooks_detach(struct ioctl_hooks *h, unsigned keep);

#endif
