/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/*
 * maps.h - the maps that all BPF objects of ntrace share, and what every program asks them.
 *
 * They belong to ioctl.bpf.c, which is loaded first; an object loaded after it gets the same maps by
 * name (bpf_map__reuse_fd), so that there is one ring, one set of counters and one process filter.
 */
#ifndef NTRACE_BPF_MAPS_H
#define NTRACE_BPF_MAPS_H

#include "vmlinux/vmlinux.h"
#include <bpf/bpf_helpers.h>

#include "bpf/neuron_event.h"

/* Set by the loader before the programs are verified. */
const volatile bool all_processes = false;
/* Calls of a process in NEV_RATE_WINDOW_NS that are recorded; 0: all. */
const volatile __u32 rate_ceiling = 0;
/* A bit per number (_IOC_NR) that the request table has. */
const volatile __u64 known_numbers[4] = {};

/* Sizes that stand as 1, and that of the ring, are set by the loader. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} ring SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u32); /* tid */
	__type(value, struct nev_inflight);
} inflight SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u32); /* the full command number */
	__type(value, struct nev_request);
} requests SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, __u32);   /* tgid */
	__type(value, __u32); /* enum nev_tracked */
} tracked SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, __u32); /* tgid */
	__type(value, struct nev_rate);
} rates SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* possible CPUs */
	__type(key, __u32);
	__type(value, struct nev_cpu);
} cpus SEC(".maps");

static __always_inline struct nev_cpu *this_cpu(void)
{
	__u32 cpu = bpf_get_smp_processor_id();

	return bpf_map_lookup_elem(&cpus, &cpu);
}

/* Keeps the order of stores that the reader watches from another CPU.  x86 shows the stores of a CPU
 * in the order of its program, so only the compiler must be held; elsewhere this would have to be a
 * store with release semantics. */
#define store(where, value) (*(volatile typeof(where) *)&(where) = (value))

static __always_inline bool wanted(__u32 tgid)
{
	return all_processes || bpf_map_lookup_elem(&tracked, &tgid);
}

#endif
