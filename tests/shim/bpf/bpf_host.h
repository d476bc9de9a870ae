/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/*
 * bpf_host.h - the kernel that our BPF programs meet when they are compiled for the host.
 *
 * A program of bpf/ is compiled a second time by the host's compiler (the wrappers in programs/ beside this
 * file), where its helper calls come here.  The maps are those that the BPF object itself declares, with
 * their limits and error codes; the clock, the CPU, the current task, the user's memory and the faults
 * are what the test says.  So a program can be driven call by call through every branch, and the
 * sanitizers see each byte that it touches: every value of a hash and every record of the ring is an
 * allocation of its own.
 *
 * What differs from the kernel: one thread, programs run within one another only where the test says so
 * (bpf_host.at_clock, at_read), and a wild pointer of
 * the kernel's kills the test (bpf_host_kernel_fault says which addresses fault instead).  Wrong use of a
 * map or of the ring ends the test program with a line that says what was wrong.
 *
 * The programs' side has no system headers, so this header has plain types only.
 */
#ifndef NTRACE_TESTS_BPF_HOST_H
#define NTRACE_TESTS_BPF_HOST_H

/* ---- what the test sets ------------------------------------------------------------------- */

/* Answers of the helpers.  Set freely between and within calls. */
struct bpf_host {
	unsigned long long boot_ns; /* what the clock shows when it is read next */
	unsigned long long tick_ns; /* what each reading of it adds */
	unsigned cpu;
	unsigned tgid, tid; /* of the current task */
	void *task;	    /* the current task, of bpf_host_task_new; NULL: none of ours */
	/* CO-RE: a part of each member, type or enumerator that the running kernel lacks, separated by
	 * spaces ("___v230 gone_member"); NULL: it lacks none. */
	const char *absent;
	unsigned long long func_ip; /* bpf_get_func_ip */
	/* What runs once when a program has next read the clock, or the user's memory: another task that
	 * preempts it there.  It puts back what it sets. */
	void (*at_clock)(void), (*at_read)(void);
};
extern struct bpf_host bpf_host;

/* Forgets everything: maps, user memory, faults, tasks; sets bpf_host to a CPU 0 and a clock that
 * starts at 1 s and adds 1 us each time.  Returns the records that were reserved and neither
 * submitted nor discarded. */
unsigned bpf_host_reset(void);

/* Makes the maps that a BPF object declares (its bytes, as the skeleton has them).  A map that is there
 * already is shared, and must be declared alike.  0 or -errno. */
int bpf_host_add(const void *elf, unsigned long size);

/* The loader's choice of a size, before the map is used.  0, -2 (no such map), -16 (it is in use). */
int bpf_host_size(const char *map, unsigned max_entries);

/* A map, as user space has it.  -errno as the system call gives them. */
int bpf_host_update(const char *map, const void *key, const void *value, unsigned long long flags);
int bpf_host_delete(const char *map, const void *key);
void *bpf_host_lookup(const char *map, const void *key);
unsigned bpf_host_count(const char *map);

enum bpf_host_op { BPF_HOST_LOOKUP, BPF_HOST_UPDATE, BPF_HOST_DELETE, BPF_HOST_WALK };

/* From the `nth` such operation of a program on the map on (1: the next one), `times` of them fail: a
 * look-up finds nothing, the others answer `error`.  One such order at a time. */
void bpf_host_fail(const char *map, enum bpf_host_op op, int error, unsigned nth, unsigned times);

/* The oldest record of a ring that was submitted and not taken; NULL if there is none.  It stays until
 * the next call; discarded ones are passed over. */
const void *bpf_host_ring_take(const char *map, unsigned long *ret_size);
/* Bytes of the ring in use, heads included. */
unsigned long bpf_host_ring_used(const char *map);

/* From `address` on the user has these bytes, which stay the caller's.  What is not mapped faults, and
 * so does a read that crosses the end of its mapping. */
void bpf_host_user_map(unsigned long long address, const void *bytes, unsigned long size);
void bpf_host_user_unmap(unsigned long long address);

/* Reads of these addresses of the kernel fault (the first page always does). */
void bpf_host_kernel_fault(const void *from, unsigned long size);

/* An open file of a task. */
struct bpf_host_file {
	unsigned mode; /* S_IFCHR | ... */
	unsigned rdev; /* major << 20 | minor, of a device */
	unsigned sdev; /* the same of its file system */
	unsigned long ino;
	unsigned flags;	    /* f_flags */
	void *private_data; /* of the driver */
};
/* A task with room for so many descriptors, all closed.  Owned here; gone with bpf_host_reset. */
void *bpf_host_task_new(unsigned tgid, unsigned tid, unsigned max_fds);
/* Opens a descriptor; the struct file, which is owned here.  NULL file: closes it. */
void *bpf_host_task_file(void *task, unsigned fd, const struct bpf_host_file *file);
/* Its table of descriptors, for bpf_host_kernel_fault. */
void *bpf_host_task_table(void *task);
/* Threads of the task's process that have not begun to exit. */
void bpf_host_task_live(void *task, int threads);
/* The task is a thread of the kernel's, or is not. */
void bpf_host_task_kthread(void *task, int is);
/* The inode of an open file. */
void *bpf_host_file_inode(void *file);
/* A task without a table of files, as a thread that is ending has it. */
void bpf_host_task_no_files(void *task);

/* Structures of the driver and of the kernel, owned here, gone with bpf_host_reset. */
void *bpf_host_neuron_device(int index);
void *bpf_host_ncdev(void *device); /* what file->private_data is; device may be NULL */
void *bpf_host_mem_chunk(int is_host, unsigned core);
void *bpf_host_ndma_eng(void *device, unsigned id);
void *bpf_host_udma(void *eng); /* the one inside of it */
void *bpf_host_ndma_ring(unsigned queue);
/* A context of zero copy of driver 2.30, which is for a process. */
void *bpf_host_zc_context(int pid);
void *bpf_host_vma(unsigned long start, unsigned long end, unsigned long page_offset);

/* Memory that is gone with bpf_host_reset; zeroed. */
void *bpf_host_alloc(unsigned long size);

/* ---- what the programs call --------------------------------------------------------------- */

void *bpf_host_map_lookup(const char *map, const void *key);
void *bpf_host_task_storage(const char *map, void *task, unsigned long long make);
long bpf_host_map_update(
	const char *map, const void *key, const void *value, unsigned long long flags);
long bpf_host_map_delete(const char *map, const void *key);
long bpf_host_map_each(const char *map,
	long (*fn)(void *map, const void *key, void *value, void *ctx), void *ctx,
	unsigned long long flags);
void *bpf_host_ring_reserve(const char *map, unsigned long long size, unsigned long long flags);
void bpf_host_ring_submit(void *record, unsigned long long flags);
void bpf_host_ring_discard(void *record, unsigned long long flags);
unsigned long long bpf_host_ring_query(const char *map, unsigned long long flags);
long bpf_host_read_kernel(void *to, unsigned size, const void *from);
long bpf_host_read_user(void *to, unsigned size, const void *from);
unsigned long long bpf_host_clock(void);
unsigned long long bpf_host_id(void);
void *bpf_host_current(void);
unsigned bpf_host_exists(const char *what);

#endif
