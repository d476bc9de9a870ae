/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nrt_inspect.h - tests of the inspect session: its directory, its files, its begin.
 *
 * Header only; on top of nrt_lib.h.  Sessions write below "output" in the test's scratch directory.
 */
#ifndef NTRACE_TESTS_NRT_INSPECT_H
#define NTRACE_TESTS_NRT_INSPECT_H

#include <glob.h>
#include <sys/stat.h>

#include "proto/neuron_trace.pb-c.h"
#include "tests/unit/nrt_lib.h"
#include "tests/unit/trace_file.h"

#define INSPECT_BASE "output"

static const char *const inspect_files[]
	__attribute__((unused)) = {"trace_info.pb", "ntrace.pb", "cpu_util.pb", "host_mem.pb"};
#define INSPECT_FILES 4u

/* In the child: errors and warnings go to the log, and the directory is the scratch one. */
static inline int inspect_enter(const struct place *p)
{
	setenv("NEURON_RT_LOG_LEVEL", "WARN", 0);
	WANT(enter(p) == 0);
	WANT(dup2(2, 1) == 1); /* warnings go there */
	WANT(chdir(p->scratch.dir) == 0);
	return 0;
}

/* How many directories of sessions there are. */
static inline size_t inspect_leaves(const char *base)
{
	char pattern[PATH_MAX];
	glob_t g;
	size_t n;

	snprintf(pattern, sizeof(pattern), "%s/*_pid_*", base);
	n = glob(pattern, 0, NULL, &g) == 0 ? g.gl_pathc : 0;
	globfree(&g);
	return n;
}

/* The leaf of the number-th session of a process, from 1. */
static inline bool inspect_leaf(
	const char *base, pid_t pid, unsigned number, char *ret, size_t size)
{
	char pattern[PATH_MAX];
	glob_t g;
	bool found;

	if (number > 1)
		snprintf(pattern, sizeof(pattern), "%s/*_pid_%d_%u", base, (int)pid, number);
	else
		snprintf(pattern, sizeof(pattern), "%s/*_pid_%d", base, (int)pid);
	found = glob(pattern, 0, NULL, &g) == 0 && g.gl_pathc == 1;
	if (found)
		snprintf(ret, size, "%s", g.gl_pathv[0]);
	globfree(&g);
	return found;
}

/* How many files in the directory end so. */
static inline int inspect_count(const char *leaf, const char *end)
{
	char pattern[PATH_MAX];
	glob_t g;
	int n;

	snprintf(pattern, sizeof(pattern), "%s/*%s", leaf, end);
	n = glob(pattern, 0, NULL, &g) == 0 ? (int)g.gl_pathc : 0;
	globfree(&g);
	return n;
}

/* The four files are in the leaf, and nothing else but so many of each kind of device profiles. */
static inline int inspect_tree(const char *leaf, int ntffs, int neffs)
{
	for (unsigned i = 0; i < INSPECT_FILES; i++) {
		char path[PATH_MAX];
		struct stat st;

		snprintf(path, sizeof(path), "%s/%s", leaf, inspect_files[i]);
		if (stat(path, &st))
			dprintf(complaint_fd, "no %s\n", path);
		WANT(stat(path, &st) == 0 && S_ISREG(st.st_mode));
	}
	WANT(inspect_count(leaf, ".ntff") == ntffs);
	WANT(inspect_count(leaf, ".neff") == neffs);
	if (scratch_entries(leaf) != (int)INSPECT_FILES + ntffs + neffs)
		dprintf(complaint_fd, "%s has %d entries\n", leaf, scratch_entries(leaf));
	WANT(scratch_entries(leaf) == (int)INSPECT_FILES + ntffs + neffs);
	return 0;
}

/* Bytes of a file in the leaf; -1: there is none. */
static inline long long inspect_bytes(const char *leaf, const char *name)
{
	char path[PATH_MAX];
	struct stat st;

	snprintf(path, sizeof(path), "%s/%s", leaf, name);
	return stat(path, &st) == 0 ? (long long)st.st_size : -1;
}

/* How many events of a type and phase ntrace.pb has; -1: it cannot be read, or is not as every one
 * must be. */
static inline long inspect_events(const char *leaf, uint32_t type, uint32_t phase)
{
	char path[PATH_MAX];
	struct trace_file t;
	size_t open;
	long n = -1;

	snprintf(path, sizeof(path), "%s/ntrace.pb", leaf);
	if (trace_file_load(&t, path) && !*trace_file_fault(&t, &open)) {
		n = 0;
		for (size_t i = 0; i < t.count; i++)
			n += t.events[i].event_type == type && t.events[i].phase == phase;
	}
	trace_file_free(&t);
	return n;
}

/* What trace_info.pb says, to be freed with ntff__ntrace_info__free_unpacked; NULL: it cannot be
 * read. */
static inline Ntff__NtraceInfo *inspect_info(const char *leaf)
{
	_cleanup_free_ char *data = NULL;
	char path[PATH_MAX];
	size_t size = 0;

	snprintf(path, sizeof(path), "%s/trace_info.pb", leaf);
	if (file_read(path, 1u << 24, &data, &size) < 0)
		return NULL;
	return ntff__ntrace_info__unpack(NULL, size, (const uint8_t *)data);
}

/* Begins with what change makes of the defaults with inspection on; the config is gone when it
 * returns. */
static inline NRT_STATUS inspect_begin(void (*change)(nrt_inspect_config_t *config))
{
	nrt_inspect_config_t *config = NULL;
	NRT_STATUS status = lib.nrt_inspect_config_allocate(&config);

	if (status)
		return status;
	(void)lib.nrt_inspect_config_set_enable_inspect(config, true);
	if (change)
		change(config);
	status = lib.nrt_inspect_begin_with_options(config);
	(void)lib.nrt_inspect_config_free(config);
	return status;
}

#define INSPECT_TEST(name, fn, options)       \
	TEST(name, "[nrt][inspect][vdev]")    \
	{                                     \
		if (device_lacks())           \
			SKIP(device_lacks()); \
		with_device(fn, options);     \
	}

#endif
