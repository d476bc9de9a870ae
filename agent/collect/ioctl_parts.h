/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ioctl_parts.h - the handle of the hooks in the kernel, for ioctl_hooks.c, ioctl_drain.c and their tests
 * alone.
 */
#ifndef NTRACE_COLLECT_IOCTL_PARTS_H
#define NTRACE_COLLECT_IOCTL_PARTS_H

#include "agent/collect/bpf_support.h"
#include "agent/collect/driver_hooks.h"
#include "agent/collect/ioctl_hooks.h"
#include "vmlinux/ioctl_table.h"

#define IOCTL_BATCH_BYTES (64u << 10)
#define IOCTL_MAX_LINKS 3 /* of the process filter */
#define IOCTL_MAX_NAMES 128
#define IOCTL_MAX_STEPS 64

struct known_device {
	uint16_t index;
	bool is_virtual;
};

/* Records on their way to whoever takes them. */
struct ioctl_batch {
	uint8_t data[IOCTL_BATCH_BYTES] __attribute__((aligned(8)));
	size_t used;
};

struct ioctl_hooks {
	struct ioctl_bpf *skel;
	bool all_processes;
	uint32_t rate_ceiling; /* calls of a process in a window; 0: all */
	int stats_fd;	       /* the kernel measures programs as long as it is open; -1 */
	struct bpf_link *filter[IOCTL_MAX_LINKS];
	unsigned filter_count;
	struct bpf_link *enter, *exit; /* of the ioctl system call; NULL: detached */
	struct driver_hooks *driver;   /* NULL: without hooks */
	bool driver_has_ioctl; /* so the system-call level leaves the driver's files alone */
	uint64_t looked_ns;    /* when the driver was last looked for and was the same */
	struct ioctl_hooks_unseen unseen;
	int syscall_error;
	uint64_t uncounted; /* hooks on the system call whose skips are not counted */
	bool overlap, stopped;
	const char *names[IOCTL_MAX_NAMES + 1];
	struct rec_ladder_step ladder[IOCTL_MAX_STEPS + 1];

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
	uint64_t received, dma_received;
	uint32_t start_seq;

	struct ioctl_batch calls, dma;
	ioctl_hooks_fn on_dma; /* NULL: nobody wants them */
	void *dma_ctx;
};

/* ---- ioctl_attach.c ----------------------------------------------------------------------- */

/* Attaches filter, driver's hooks and system call.  0 or -errno, and then what failed, or NULL when why
 * says it. */
int ioctl_hooks_attach(struct ioctl_hooks *h, const struct ioctl_hooks_options *o,
	const char **ret_what, char *why, size_t why_size);
/* Attaches or detaches the system call as the devices want it.  0 or -errno. */
int ioctl_hooks_settle(struct ioctl_hooks *h);
/* Writes names and ladder anew; those of a handle without hooks. */
void ioctl_hooks_list(struct ioctl_hooks *h);
void ioctl_hooks_list_none(struct ioctl_hooks *h, int error);
/* Detaches the entries of calls; with `all` the rest too. */
void ioctl_hooks_detach(struct ioctl_hooks *h, bool all);
/* ---- ioctl_drain.c ------------------------------------------------------------------------ */

/* Has h->walk tell of the open calls, announcing those older than before_ns. */
int ioctl_hooks_walk(const struct ioctl_hooks *h, uint64_t before_ns);

/* ---- ioctl_hooks.c ------------------------------------------------------------------------ */

/* What the programs are told of a request: how its fields are cut out of its argument structure. */
struct nev_request ioctl_request(const struct ioctl_row *row);

#endif
