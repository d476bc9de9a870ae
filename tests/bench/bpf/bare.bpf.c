// SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0)
/*
 * bare.bpf.c - what any tracer of a system call does, and no more: the peer of tests/bench/ioctl_overhead.c.
 *
 * One pair of programs stamps entry and return of one process and puts 56 bytes into a ring; the other
 * pair does nothing.
 */
#include "vmlinux/vmlinux.h"
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "GPL";

/* Set by the loader before the programs are verified. */
const volatile __u32 traced_tgid = 0;

struct started {
	__u64 start_ns;
	__u64 fd;
	__u64 request;
};

struct bare_record {
	__u64 time_ns;
	__u64 start_ns;
	__u64 duration_ns;
	__u64 id;
	__u64 fd;
	__u64 request;
	__s64 result;
};

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 64 << 20);
} bare_ring SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, __u32); /* tid */
	__type(value, struct started);
} starts SEC(".maps");

SEC("tracepoint/syscalls/sys_enter_ioctl")
int bare_enter(struct trace_event_raw_sys_enter *ctx)
{
	__u64 id = bpf_get_current_pid_tgid();
	__u32 tid = (__u32)id;
	struct started s = {.fd = ctx->args[0], .request = ctx->args[1]};

	if (id >> 32 != traced_tgid)
		return 0;
	s.start_ns = bpf_ktime_get_boot_ns();
	bpf_map_update_elem(&starts, &tid, &s, BPF_ANY);
	return 0;
}

SEC("tracepoint/syscalls/sys_exit_ioctl")
int bare_exit(struct trace_event_raw_sys_exit *ctx)
{
	__u64 id = bpf_get_current_pid_tgid();
	__u32 tid = (__u32)id;
	const struct started *s = bpf_map_lookup_elem(&starts, &tid);
	struct bare_record *r;

	if (!s)
		return 0;
	r = bpf_ringbuf_reserve(&bare_ring, sizeof(*r), 0);
	if (r) {
		r->time_ns = bpf_ktime_get_boot_ns();
		r->start_ns = s->start_ns;
		r->duration_ns = r->time_ns - s->start_ns;
		r->id = id;
		r->fd = s->fd;
		r->request = s->request;
		r->result = ctx->ret;
		bpf_ringbuf_submit(r, BPF_RB_NO_WAKEUP);
	}
	bpf_map_delete_elem(&starts, &tid);
	return 0;
}

SEC("tracepoint/syscalls/sys_enter_ioctl")
int empty_enter(void *ctx)
{
	return 0;
}

SEC("tracepoint/syscalls/sys_exit_ioctl")
int empty_exit(void *ctx)
{
	return 0;
}
