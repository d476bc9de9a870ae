/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/*
 * bpf_helpers.h - stands in place of libbpf's where a BPF program is compiled for the host: the same
 * words, and each helper that our programs use becomes a call of tests/shim/bpf/bpf_host.h.
 *
 * A helper that is not here is none that a program of ours has used; the compiler will say so.  Maps go
 * by name: the definition in the source says no more than its address does in the kernel.
 */
#ifndef NTRACE_TESTS_BPF_HELPERS_H
#define NTRACE_TESTS_BPF_HELPERS_H

#include "tests/shim/bpf/bpf_host.h"

/* Objects share maps by name, and each has a licence. */
#define SEC(name) __attribute__((section(name), used, weak))

#define __uint(name, val) int(*name)[val]
#define __type(name, val) typeof(val) *name
#define __array(name, val) typeof(val) *name[]
#ifndef __always_inline /* not in line where branches are counted: each would count once per copy */
#define __always_inline inline __attribute__((always_inline))
#endif
#define __noinline __attribute__((noinline))
#define __weak __attribute__((weak))
#define __hidden __attribute__((visibility("hidden")))
#define __ksym __attribute__((weak))
#define barrier() asm volatile("" ::: "memory")
#define barrier_var(var) asm volatile("" : "=r"(var) : "0"(var))
#define offsetof(type, member) __builtin_offsetof(type, member)

/* "&ring"; the other side takes the sign off */
#define BPF_HOST_MAP(map) #map

#define bpf_map_lookup_elem(map, key) bpf_host_map_lookup(BPF_HOST_MAP(map), key)
#define bpf_task_storage_get(map, task, value, flags) \
	bpf_host_task_storage(BPF_HOST_MAP(map), task, flags)
#define bpf_map_update_elem(map, key, value, flags) \
	bpf_host_map_update(BPF_HOST_MAP(map), key, value, flags)
#define bpf_map_delete_elem(map, key) bpf_host_map_delete(BPF_HOST_MAP(map), key)
#define bpf_for_each_map_elem(map, fn, ctx, flags) \
	bpf_host_map_each(BPF_HOST_MAP(map), (void *)(fn), ctx, flags)
#define bpf_ringbuf_reserve(map, size, flags) bpf_host_ring_reserve(BPF_HOST_MAP(map), size, flags)
#define bpf_ringbuf_submit(record, flags) bpf_host_ring_submit(record, flags)
#define bpf_ringbuf_discard(record, flags) bpf_host_ring_discard(record, flags)
#define bpf_ringbuf_query(map, flags) bpf_host_ring_query(BPF_HOST_MAP(map), flags)
#define bpf_probe_read_kernel(to, size, from) \
	bpf_host_read_kernel(to, size, (const void *)(unsigned long)(from))
#define bpf_probe_read_user(to, size, from) \
	bpf_host_read_user(to, size, (const void *)(unsigned long)(from))
#define bpf_ktime_get_boot_ns() bpf_host_clock()
#define bpf_get_smp_processor_id() (bpf_host.cpu)
#define bpf_get_current_pid_tgid() bpf_host_id()
#define bpf_get_current_task_btf() bpf_host_current()
#define bpf_get_current_task() ((unsigned long)bpf_host_current())
#define bpf_get_func_ip(ctx) ((void)(ctx), bpf_host.func_ip)

/* CO-RE: what the host's compiler laid out is the layout of the running kernel. */
#define __builtin_preserve_access_index(x) (x)
#define __builtin_preserve_field_info(x, kind)                        \
	((kind) == BPF_FIELD_EXISTS		? bpf_host_exists(#x) \
		: (kind) == BPF_FIELD_BYTE_SIZE ? (unsigned)sizeof(x) \
						: (unsigned)(unsigned long)&(x))
#define __builtin_preserve_type_info(x, kind) \
	((kind) == BPF_TYPE_SIZE ? (unsigned)sizeof(x) : bpf_host_exists(#x))

#endif
