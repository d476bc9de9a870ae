/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ntff_build.h - a profile: the message of an .ntff file and the blobs behind it, made of what the collector has.
 *
 * Records are not copied: the profile keeps the collector's memory until it is freed, and a file is written from
 * there.  A profile belongs to one thread at a time.
 */
#ifndef NTRACE_PROFILE_NTFF_BUILD_H
#define NTRACE_PROFILE_NTFF_BUILD_H

#include <sys/uio.h>

#include "proto/ntff.pb-c.h"
#include "runtime/profile/collector.h"
#include "runtime/profile/profile.h"

/* What will stand behind the message, in one piece. */
struct ntff_blob {
	const struct iovec *pieces;
	uint32_t piece_count;
	uint64_t size;
	uint64_t *offset; /* member of the message that says where it is in the file */
};

struct arena_block;

struct profile {
	Ntff__NtffInfo info;
	struct ntff_blob *blobs;
	uint32_t blob_count;
	/* who has the memory: */
	struct arena_block *blocks;
	struct collector_data data;
	struct profile_node **nodes; /* with references; in the order of their first runs */
	uint32_t node_count;
	struct profile_node **run_nodes; /* of each run; NULL: not wanted, or none */
};

/* What was read for a profile that is not built yet; zero-initialise. */
struct profile_harvest {
	struct collector_data data;
	bool taken;   /* it has been read; also when it could not be */
	bool partial; /* it could not, or not whole: the device did not answer */
};

/* Reads, once: nothing when that has been done.  A reading that fails is a warning, and gives what there is: without
 * memory an empty profile. */
void profile_harvest(struct profile_harvest *h, struct collector_cursor *cursor, uint32_t nc);
void profile_harvest_drop(struct profile_harvest *h);

/* What is to be in it. */
struct profile_wish {
	uint32_t nc;		   /* logical core */
	uint64_t id;		   /* of the session, or of the model as in events */
	bool session;		   /* all records, as a session's; else as those of a model: */
	uint64_t model;		   /* only the records of runs of this load (nrt_model.number), */
	uint32_t exec;		   /* and, when it is not 0, of this execution */
	struct profile_node *node; /* that is in it also when it has not run; NULL: none */
};

/* While nrt_close is kept out (profile_enter).  Takes what was harvested, on success only.  NRT_RESOURCE: no memory, said in the
 * name of `call`. */
NRT_STATUS profile_build(const char *call, const struct profile_wish *wish,
	struct profile_harvest *harvest, struct profile **ret);
/* Sets the offsets of all blobs, the first being at `at`; their size together. */
uint64_t profile_lay_out(struct profile *p, uint64_t at);
/* NULL is harmless. */
void profile_free(struct profile *p);

/* ---- shared by the files of the builder ------------------------------------------------------- */

/* Zeroed memory that lives as long as the profile; NULL: there is none. */
void *profile_take(struct profile *p, size_t count, size_t size);
/* count new messages, as a list for a repeated member; NULL: no memory. */
void *profile_messages(struct profile *p, const ProtobufCMessageDescriptor *type, size_t count);
/* Room for so many more blobs, of which profile_add_blob takes one. */
bool profile_more_blobs(struct profile *p, uint32_t count);
void profile_add_blob(
	struct profile *p, const struct iovec *pieces, uint32_t count, uint64_t *offset);

/* ntff_node.c: what each node has, with its programs' blobs. */
bool profile_add_nodes(struct profile *p);
/* The graph of a node on a physical core; NULL: none. */
Ntff__SubgraphInfo *profile_graph(
	struct profile *p, const struct profile_node *n, uint32_t nd_idx, uint32_t nc_idx);

/* ntff_cut.c: from when to when a program ran on a core. */
struct ntff_window {
	uint64_t start_ps, end_ps;
	bool wanted;
};
/* Those records of the row that lie in wanted windows, which are in the order in which they were; writes their
 * pieces to `to`, which may be NULL, and gives their number.  A clock that goes back was reset between two. */
uint32_t ntff_cut(const struct collector_row *row, const struct ntff_window *windows,
	uint32_t count, struct iovec *to, uint64_t *ret_records);

#endif
