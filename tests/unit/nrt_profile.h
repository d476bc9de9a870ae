/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nrt_profile.h - tests of device profiles: reading back the .ntff files that the library wrote.
 *
 * Header only; on top of nrt_lib.h.
 */
#ifndef NTRACE_TESTS_NRT_PROFILE_H
#define NTRACE_TESTS_NRT_PROFILE_H

#include "proto/notification.h"
#include "runtime/base/file.h"
#include "runtime/record/ntff_records.h"
#include "tests/unit/nrt_lib.h"

/* A file that was read; whole and without a flaw. */
struct ntff {
	char *data;
	size_t size;
	struct ntff_profile profile;
	const Ntff__NtffInfo *info;
};

static inline void ntff_done(struct ntff *n)
{
	ntff_profile_close(&n->profile);
	free(n->data);
	*n = (struct ntff){0};
}

static inline int ntff_load(struct ntff *n, const char *path)
{
	*n = (struct ntff){0};
	WANT(file_read(path, SIZE_MAX / 2, &n->data, &n->size) == 0);
	WANT(ntff_profile_open(&n->profile, n->data, n->size) == 0);
	if (n->profile.file.damage || n->profile.flaw_count)
		dprintf(complaint_fd, "%s: %s, %s\n", path,
			n->profile.file.damage ? n->profile.file.damage : "whole",
			n->profile.flaw_count ? n->profile.flaws[0].what : "no flaw");
	WANT(!n->profile.file.damage && !n->profile.flaw_count);
	n->info = n->profile.info;
	return 0;
}

/* The graph of the model with this name on its part-th core; NULL. */
static inline const Ntff__SubgraphInfo *ntff_graph(
	const struct ntff *n, const char *model, uint32_t part)
{
	for (size_t i = 0; i < n->info->n_neff_nodes; i++) {
		const Ntff__NeffNodeInfo *node = n->info->neff_nodes[i];

		if (!strcmp(node->name, model) && part < node->nd_node->n_graphs)
			return node->nd_node->graphs[part];
	}
	return NULL;
}

/* How many runs of the model there are in the timeline, on all cores together; NULL: of all models. */
static inline size_t ntff_runs(const struct ntff *n, const char *model)
{
	size_t count = 0;

	for (size_t i = 0; i < n->info->n_execution_timeline; i++)
		count += !model || !strcmp(n->info->execution_timeline[i]->model_name, model);
	return count;
}

/* How many items of this kind there are in all streams. */
static inline long ntff_count(const struct ntff *n, enum ntff_what what)
{
	long count = 0;

	for (uint32_t i = 0; i < n->profile.stream_count; i++) {
		struct ntff_cursor c;
		struct ntff_item item;
		int rc;

		ntff_cursor_open(&c, &n->profile, &n->profile.streams[i]);
		while ((rc = ntff_cursor_next(&c, &item)) > 0)
			count += item.what == what;
		ntff_cursor_close(&c);
		if (rc < 0)
			return rc;
	}
	return count;
}

/* The same in the file at path; -1 when it cannot be read. */
static inline long ntff_count_in(const char *path, enum ntff_what what)
{
	struct ntff n;
	long count = ntff_load(&n, path) == 0 ? ntff_count(&n, what) : -1;

	ntff_done(&n);
	return count;
}

/* In the child: the library is up, its errors and warnings in the log, and the directory is the scratch one. */
static inline int profile_enter_test(struct place *p)
{
	setenv("NEURON_RT_LOG_LEVEL", "WARN", 1);
	WANT(enter(p) == 0);
	WANT(dup2(2, 1) == 1); /* warnings go there */
	WANT_STATUS(init(), 0);
	WANT(chdir(p->scratch.dir) == 0);
	return 0;
}

#define PROFILE_TEST(name, fn, options)       \
	TEST(name, "[nrt][profile][vdev]")    \
	{                                     \
		if (device_lacks())           \
			SKIP(device_lacks()); \
		with_device(fn, options);     \
	}

#endif
