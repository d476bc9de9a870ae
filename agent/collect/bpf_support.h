/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bpf_support.h - what every loader of BPF programs needs: libbpf's messages, tracepoint numbers,
 * and a view of the ring buffer and of mapped arrays.
 *
 * The ring is read here and not through libbpf because the reader must know how far it has come: a
 * record that is reserved but not yet submitted hides all behind it, and then no watermark may
 * pass.
 *
 * Any thread; an object belongs to one.  Never prints.
 */
#ifndef NTRACE_COLLECT_BPF_SUPPORT_H
#define NTRACE_COLLECT_BPF_SUPPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/record/recording.h"

struct bpf_link;
struct bpf_object;
struct bpf_program;

/* Where the kernel's own type information lies. */
#define BPF_KERNEL_BTF "/sys/kernel/btf/vmlinux"

/* What our hooks take besides being root.  Without CAP_SYS_ADMIN, CAP_BPF and CAP_PERFMON do where
 * tracefs is mounted; its files are root's in any case. */
#define BPF_PRIVILEGES "CAP_SYS_ADMIN and CAP_DAC_READ_SEARCH"

#define BPF_LOCKDOWN "/sys/kernel/security/lockdown"
/* Does the kernel's lockdown keep BPF programs from reading its memory?  False also where that cannot be read. */
bool bpf_is_locked_down(void);

/* Are all kprobes switched off (debugfs, kprobes/enabled)?  They can be put on all the same, and see nothing.  False
 * also where that cannot be read.  sys: in place of "/sys"; NULL: that. */
bool bpf_kprobes_are_off(const char *sys);

/* From now on libbpf's warnings go into a buffer of the calling thread and nowhere else.  Empties
 * the buffer. */
void bpf_log_capture(void);
/* The last line that libbpf wrote on this thread since bpf_log_capture; "" if there was none. */
const char *bpf_log_last(void);

/* A descriptor of the root of a tracefs, without leaving a mount: a detached one, or the mounted
 * one where the kernel has no fsopen.  *ret_detached (may be NULL) says which.  The caller closes
 * it. -errno if there is none. */
int tracefs_open(bool *ret_detached);
/* Number of tracepoint category:name, or -errno (-ENOENT: the kernel does not have it). */
int tracepoint_id(int tracefs_fd, const char *category, const char *name);
/* Attaches a program to tracepoint category:name.  0 and the link, which the caller destroys, or
 * -errno. */
int tracepoint_attach(int tracefs_fd, const char *category, const char *name,
	struct bpf_program *prog, struct bpf_link **ret);

#define BPF_COST_PROGRAMS 128u /* twice what there are */

/* What loaded programs have cost since the kernel was asked to measure, and what their maps take.  A program that
 * was loaded several times has one row. */
struct bpf_cost {
	struct rec_hook_cost programs[BPF_COST_PROGRAMS];
	unsigned count;
	uint64_t map_bytes;
};
/* Adds to the row of the program of that name; a new one when there is none. */
void bpf_cost_add(struct bpf_cost *sum, const struct rec_hook_cost *program);
/* Adds that of all programs of an object, of a map. */
void bpf_cost_of_programs(const struct bpf_object *object, struct bpf_cost *sum);
void bpf_cost_of_map(int map_fd, struct bpf_cost *sum);

/* How often the kernel skipped programs of an object because they, or (kprobes) any such program, ran on that CPU
 * already: since it was loaded, over all places that a program hangs on. */
uint64_t bpf_missed_of_programs(const struct bpf_object *object);
/* How often it skipped one place of a kprobe before any program could run: more threads are inside of the
 * function than it keeps returns for (10, or 2 for each CPU if that is more), or it was met inside of another
 * kprobe.  Ends with the link. */
uint64_t bpf_missed_of_kprobe(const struct bpf_link *link);
/* Does this kernel count that, and skips of programs on kprobes and tracepoints?  Since 6.7; those of fentry, fexit
 * and raw tracepoints count everywhere. */
bool bpf_counts_missed(void);
/* Is the running kernel of this version or a later one? */
bool bpf_kernel_is(int major, int minor);

/* Returns when every program that was running on any CPU has ended.  For programs that have been
 * detached: what they write is then complete.  0 or -errno. */
int bpf_programs_wait(void);

/* ---- mapped arrays and the ring buffer ---------------------------------------------------- */

/* Maps the values of a BPF_F_MMAPABLE array for reading and writing; *ret_size is what to give to
 * munmap.  NULL and errno on failure. */
void *bpf_array_map(int map_fd, uint32_t entries, uint32_t value_size, size_t *ret_size);

/* One reader.  Zeroed = not open. */
struct bpf_ring {
	uint64_t *consumer;	  /* page that the reader writes */
	const uint64_t *producer; /* page of the kernel, and the data twice behind it */
	const uint8_t *data;
	size_t size;
	uint64_t pos; /* how far the reader is; published by bpf_ring_release */
};

int bpf_ring_open(struct bpf_ring *r, int map_fd, size_t size);
void bpf_ring_close(struct bpf_ring *r);
/* Position behind the newest reserved record. */
uint64_t bpf_ring_end(const struct bpf_ring *r);
/* How many records lie between the reader and the end, those still being written among them. */
uint64_t bpf_ring_unread(const struct bpf_ring *r);
/* The next record before `end`: true and the record, which stays until bpf_ring_release; false when
 * there is none or when it is still being written (then r->pos < end). */
bool bpf_ring_next(struct bpf_ring *r, uint64_t end, const void **ret_record, size_t *ret_size);
/* Gives everything read so far back to the kernel. */
void bpf_ring_release(struct bpf_ring *r);

#endif
