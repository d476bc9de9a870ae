/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inspect_leaf.h - what an inspect session has left below its base, for tests of how it ended.
 *
 * Header only.  Meant for a child (nrt_lib.h): complaints go to its complaint_fd.
 */
#ifndef NTRACE_TESTS_INSPECT_LEAF_H
#define NTRACE_TESTS_INSPECT_LEAF_H

#include <dirent.h>
#include <sys/stat.h>

#include "runtime/trace/event_registry.h"
#include "tests/unit/nrt_lib.h"
#include "tests/unit/trace_file.h"

static const char *const leaf_files[]
	__attribute__((unused)) = {"trace_info.pb", "ntrace.pb", "cpu_util.pb", "host_mem.pb"};
#define LEAF_FILES 4

static inline struct scratch_path scratch_in(const char *dir, const char *name)
{
	struct scratch_path p;

	snprintf(p.s, sizeof(p.s), "%s/%s", dir, name);
	return p;
}

static inline bool leaf_has(const char *leaf, const char *name)
{
	return access(scratch_in(leaf, name).s, F_OK) == 0;
}

/* The only directory below the base, also a hidden one (on-fail's scratch); false: there is none, or several. */
static inline bool leaf_find(const char *base, char *ret, size_t size)
{
	DIR *d = opendir(base);
	int found = 0;

	for (struct dirent *e; d && (e = readdir(d));)
		if (strstr(e->d_name, "_pid_")) {
			snprintf(ret, size, "%s/%s", base, e->d_name);
			found++;
		}
	if (d)
		closedir(d);
	return found == 1;
}

/* Has it all of the session's files, so many more of device profiles, and nothing else? */
static inline bool leaf_is_whole(const char *leaf, int profiles)
{
	for (int i = 0; i < LEAF_FILES; i++)
		if (!leaf_has(leaf, leaf_files[i])) {
			dprintf(complaint_fd, "%s is not in %s\n", leaf_files[i], leaf);
			return false;
		}
	if (scratch_entries(leaf) != LEAF_FILES + profiles)
		dprintf(complaint_fd, "there are %d entries in %s\n", scratch_entries(leaf), leaf);
	return scratch_entries(leaf) == LEAF_FILES + profiles;
}

/* `ntrace salvage LEAF`; its exit status. */
static inline int leaf_salvage(const char *leaf, const char *log)
{
	char program[512];
	char *argv[] = {program, "salvage", (char *)leaf, NULL};

	snprintf(program, sizeof(program), "%s", program_path("bin/ntrace").s);
	return program_run(argv, log, NULL);
}

/* Salvages what is not there yet.  0; what salvage says when that is none of "whole" and "something is missing". */
static inline int leaf_complete(const char *leaf, const char *log)
{
	int rc;

	if (!leaf_has(leaf, "recording"))
		return 0;
	rc = leaf_salvage(leaf, log);
	scratch_remove_tree(scratch_in(leaf, "recording").s);
	return rc == 4 ? 0 : rc;
}

/* Executions that are whole in its ntrace.pb, a valid one; -1. */
static inline long leaf_executions(const char *leaf)
{
	struct trace_file t;
	char path[1400];
	size_t open = 0;
	long count = 0;

	snprintf(path, sizeof(path), "%s/ntrace.pb", leaf);
	if (!trace_file_load(&t, path) || *trace_file_fault(&t, &open)) {
		dprintf(complaint_fd, "%s: %s\n", path, t.data ? trace_file_fault(&t, &open) : "");
		trace_file_free(&t);
		return -1;
	}
	for (size_t i = 0; i < t.count; i++)
		count += t.events[i].event_type == TRACE_EXECUTE_API &&
			 t.events[i].phase == PHASE_STOP && t.events[i].hint.len == 0;
	trace_file_free(&t);
	return count;
}

#endif
