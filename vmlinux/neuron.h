/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/*
 * neuron.h - what our BPF programs know of the Neuron kernel driver, and no more.
 *
 * Written by hand, as vmlinux.h is: each structure names only the members that a program of ours reads,
 * and the loader looks their offsets up in the BTF of the loaded module.  A structure or member that
 * changed between releases has one flavour per layout, named for the first release that has it;
 * bpf_core_field_exists() tells which is there.  Enumerators that stand here are values of the driver.
 */
#ifndef NTRACE_NEURON_H
#define NTRACE_NEURON_H

#include "vmlinux/vmlinux.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

/* An enumeration there: libbpf finds no member of another kind of type. */
enum mem_location {
	NEURON_MEM_HOST = 1,
	NEURON_MEM_DEVICE = 2,
};

struct neuron_device {
	int device_index; /* N of neuronN */
};

struct ncdev {
	struct neuron_device *ndev; /* NULL when the device is gone */
};

struct udma {
	__u32 rev_id;
};

struct ndma_eng {
	struct neuron_device *nd;
	__u32 eng_id;
	struct udma udma; /* container_of() leads back: the offset is the loader's too */
};

struct ndma_ring {
	__u32 qid;
};

struct mem_chunk {
	__u32 nc_id;
	enum mem_location mem_location;
};

/* From 2.28 each ring has a queue of zero-copy contexts, which a thread of the driver may issue and
 * complete.  What the wait for one polls (completion_ptr) would name it too, but is not known at its doorbell by any
 * hook of earlier drivers; that a ring completes in order is true of all. */
struct ndma_h2t_zcdma_context___v230 {
	int pid; /* the owner's tgid, initial namespace */
};

#pragma clang attribute pop

#endif
