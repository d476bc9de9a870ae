/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * requests.h - how ncdev.c finds the answer to a request.
 *
 * Numbers, sizes and flags are those of vmlinux/ioctl_table.def; a request that stands in no table here
 * is one that the driver does not know.  An answer gets the argument structure already copied from the
 * caller.  What it could not copy back it returns as a positive number, as the driver does.
 */
#ifndef STANDIN_REQUESTS_H
#define STANDIN_REQUESTS_H

#include "tests/vm/standin/driver.h"
#include "vmlinux/ioctl_table.h"
#include "vmlinux/neuron_args.h"

struct request {
	u32 cmd;
	u32 size;  /* of the argument structure */
	u32 flags; /* IOCTL_F_... */
	long (*answer)(
		struct neuron_device *nd, const struct request *q, void *arg, void __user *user);
};

/* Sizes and flags by name. */
enum {
#define IOCTL(name, cmd, arg_size, flags, drivers, ...) \
	ARG_##name = (arg_size), FLAGS_##name = (flags),
#include "vmlinux/ioctl_table.def"
#undef IOCTL
};
#define REQUEST(name, fn)                                         \
	{                                                         \
		NEURON_IOCTL_##name, ARG_##name, FLAGS_##name, fn \
	}

extern const struct request requests_device[], requests_core[], requests_memory[], requests_queue[],
	requests_230[];

long answer_nothing(
	struct neuron_device *nd, const struct request *q, void *arg, void __user *user);
/* An allocation with a memory type; and whether a chunk has these bytes. */
long mem_allocate(struct neuron_device *nd, const struct neuron_mem_alloc_v2mt *wish);
bool mem_within(const struct mem_chunk *mc, u64 offset, u64 size);
/* The argument structure back to the caller; what could not be copied, or 0. */
long put_back(const struct request *q, const void *arg, void __user *user);

#endif
