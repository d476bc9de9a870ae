/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ntff_lists.h - between the parts of the reader of device profiles (ntff_records.h): sorted lists by
 * core.  Nobody else needs it.
 */
#ifndef NTRACE_RECORD_NTFF_LISTS_H
#define NTRACE_RECORD_NTFF_LISTS_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/record/ntff_records.h"

/* Which model: the uuid of its text; where there is none the number, which is that of its name. */
struct ntff_model {
	const char *uuid;
	uint64_t number; /* 0 beside a uuid */
};

/* Of an instruction: sorted by core, model, index and node. */
struct ntff_name {
	struct ntff_model model;
	uint32_t core, index;
	size_t node;
	const Ntff__NtffInstruction *instruction; /* NULL: two nodes are this model */
};

/* Zero-initialise; a list of numbers to be sorted, each once. */
struct ntff_keys {
	uint64_t *list;
	size_t count, cap;
};
int ntff_keys_add(struct ntff_keys *k, uint64_t key); /* 0 or -ENOMEM */
void ntff_keys_sort(struct ntff_keys *k);
void ntff_keys_free(struct ntff_keys *k);

static inline uint64_t ntff_core_key(uint32_t nd_idx, uint32_t nc_idx)
{
	return (uint64_t)nd_idx << 32 | nc_idx;
}

/* The core with these numbers, or NULL. */
struct ntff_core *ntff_core_of(const struct ntff_profile *p, uint32_t nd_idx, uint32_t nc_idx);

/* The graphs of a node; NULL: it has none. */
const Ntff__NdNodeInfo *ntff_node_graphs(const Ntff__NeffNodeInfo *node);

/* In this order, once the cores are known.  0 or -ENOMEM. */
int ntff_list_points(struct ntff_profile *p);
int ntff_list_runs(struct ntff_profile *p);
int ntff_list_names(struct ntff_profile *p);

/* The era in which a time is that was read after last_ps in era `era`; the first one: last_ps 0, era 0. */
uint32_t ntff_era_after(
	const struct ntff_core *core, uint32_t era, uint64_t last_ps, uint64_t device_ps);

#endif
