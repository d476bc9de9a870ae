/* SPDX-License-Identifier: Apache-2.0 */
/*
 * same_trace.c - a recording is known by the moment at which it begins, in both clocks; a trace by its
 * recording and its pid.
 */
#include "agent/output/same_trace.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/file.h"

/* What tells a trace from others, and what is in it. */
struct identity {
	uint64_t begin_ns; /* 0: not known */
	int64_t offset_ns;
	uint32_t pid;
	bool ended, is_session;
	const char *file;
	uint64_t events, bytes;
	char kernel_events[16];
};

struct identities {
	struct identity *list;
	size_t n;
};

static struct identity identity_of(const Ntff__NtraceInfo *info, const char *file)
{
	struct identity i = {.begin_ns = info->begin_ns,
		.offset_ns = info->realtime_offset_ns,
		.pid = info->pid,
		.ended = info->ended,
		.is_session = info->session != NULL,
		.file = file};

	snprintf(i.kernel_events, sizeof(i.kernel_events), "%s", info->kernel_events);
	for (size_t k = 0; k < info->n_collected_profiles; k++) {
		const Ntff__NtraceDataFile *f = info->collected_profiles[k];

		if (strcmp(f->type, "ntrace") != 0)
			continue;
		i.events = f->message_count;
		i.bytes = f->bytes;
	}
	return i;
}

static int cannot_read(const char *path, int error, char **ret_text)
{
	if (asprintf(ret_text, "cannot read %s: %s", path, strerror(-error)) < 0)
		*ret_text = NULL;
	return error;
}

/* Takes what a trace_info.pb tells; nothing when it is damaged, which its readers say.  0 or -errno. */
static int read_one(const char *file, struct identities *to, char **ret_text)
{
	_cleanup_free_ char *path = NULL;
	Ntff__NtraceInfo *info = NULL;
	int rc = trace_info_read(file, &info, &path);

	if (info && info->begin_ns)
		to->list[to->n++] = identity_of(info, file);
	if (info)
		ntff__ntrace_info__free_unpacked(info, NULL);
	if (rc == 0 || rc == -EBADMSG)
		return 0;
	return path ? cannot_read(path, rc, ret_text) : rc;
}

/* Those of a set that are known.  0 or -errno. */
static int read_all(const struct trace_set *set, struct identities *ret, char **ret_text)
{
	int rc;

	*ret = (struct identities){.list = calloc(set->count + 1, sizeof(*ret->list))};
	rc = ret->list ? 0 : -ENOMEM;
	for (size_t i = 0; rc == 0 && i < set->count; i++)
		rc = read_one(set->files[i], ret, ret_text);
	return rc;
}

#define ORDER(x, y) (((x) > (y)) - ((x) < (y)))

static int compare(const void *a, const void *b)
{
	const struct identity *x = a, *y = b;
	int rc = ORDER(x->begin_ns, y->begin_ns);

	if (!rc)
		rc = ORDER(x->offset_ns, y->offset_ns);
	return rc ? rc : ORDER(x->pid, y->pid);
}

/* Bytes of a file's path that are its directory's. */
static int directory(const char *file)
{
	const char *slash = strrchr(file, '/');

	return slash ? (int)(slash - file) : 0;
}

/* Two files of one recording. */
static int say_twice(const struct identity *x, const struct identity *y, char **ret_text)
{
	const char *a = x->file, *b = y->file;

	if (strcmp(a, b) > 0) {
		a = b;
		b = x->file;
	}
	if (asprintf(ret_text,
		    "%.*s and %.*s are process %u of the same recording, merged twice; "
		    "remove one, or name the one that is meant",
		    directory(a), a, directory(b), b, x->pid) >= 0)
		return -ENOTUNIQ;
	*ret_text = NULL;
	return -ENOMEM;
}

/* Is it a recorder's of a process with inspect sessions?  The merge names its directory so. */
static bool is_beside_session(const struct identity *i)
{
	int end = directory(i->file), at = end;

	while (at && i->file[at - 1] != '/')
		at--;
	return !i->is_session && !strncmp(i->file + at, "ntrace-", strlen("ntrace-"));
}

static int say_both(const struct identity *recorded, const struct identity *own, char **ret_text)
{
	if (asprintf(ret_text,
		    "%.*s is what a recorder has of process %u, %.*s its inspect session: together "
		    "all would count "
		    "twice; name one of them, or the recording",
		    directory(recorded->file), recorded->file, own->pid, directory(own->file),
		    own->file) >= 0)
		return -ENOTUNIQ;
	*ret_text = NULL;
	return -ENOMEM;
}

static int find_twice(const struct identities *all, char **ret_text)
{
	for (size_t i = 1; i < all->n; i++)
		if (compare(&all->list[i - 1], &all->list[i]) == 0)
			return say_twice(&all->list[i - 1], &all->list[i], ret_text);
	return 0;
}

static int compare_pids(const void *a, const void *b)
{
	const struct identity *x = a, *y = b;
	int rc = ORDER(x->pid, y->pid);

	return rc ? rc : ORDER(is_beside_session(y), is_beside_session(x));
}

static int find_both(const struct identities *all, char **ret_text)
{
	const struct identity *recorded = NULL;

	for (size_t i = 0; i < all->n; i++) {
		const struct identity *k = &all->list[i];

		if (is_beside_session(k))
			recorded = k;
		else if (k->is_session && recorded && recorded->pid == k->pid)
			return say_both(recorded, k, ret_text);
	}
	return 0;
}

int same_trace_twice(const struct trace_set *set, char **ret_text)
{
	struct identities all;
	int rc;

	*ret_text = NULL;
	if (set->count < 2)
		return 0;
	rc = read_all(set, &all, ret_text);
	if (rc == 0) {
		qsort(all.list, all.n, sizeof(*all.list), compare);
		rc = find_twice(&all, ret_text);
	}
	if (rc == 0) {
		qsort(all.list, all.n, sizeof(*all.list), compare_pids);
		rc = find_both(&all, ret_text);
	}
	free(all.list);
	return rc;
}

/* ---- a merge that was made already ---------------------------------------------------------- */

static const struct identity *find(const struct identities *all, const struct merge_result *m,
	const struct merge_output *o, const char *kernel_events)
{
	for (size_t i = 0; i < all->n; i++) {
		const struct identity *k = &all->list[i];

		if (k->begin_ns == m->begin_ns && k->pid == o->pid && k->events == o->events &&
			k->bytes == o->bytes && k->ended == m->ended &&
			!strcmp(k->kernel_events, kernel_events))
			return k;
	}
	return NULL;
}

/* 1 when all processes have theirs. */
static int look_up(const struct identities *all, const struct merge_result *m, const char *out,
	const char *kernel_events, char **ret_where)
{
	const struct identity *one = NULL;
	int rc;

	for (uint32_t i = 0; i < m->output_count; i++) {
		one = find(all, m, &m->outputs[i], kernel_events);
		if (!one)
			return 0;
	}
	if (!one)
		return 0;
	rc = m->output_count == 1
		     ? asprintf(ret_where, "%.*s", directory(one->file), one->file)
		     : asprintf(ret_where, "%s, one directory for each of %u processes", out,
			       m->output_count);
	if (rc < 0)
		*ret_where = NULL;
	return rc < 0 ? -ENOMEM : 1;
}

int same_trace_merged(const char *rec_path, const char *out, const struct merge_options *options,
	struct merge_result *ret_result, char **ret_text)
{
	struct trace_set set;
	struct identities all = {0};
	int rc = trace_set_find(out, &set);

	*ret_text = NULL;
	memset(ret_result, 0, sizeof(*ret_result));
	if (rc == 0)
		rc = read_all(&set, &all, ret_text);
	else if (rc == -ENODATA || rc == -ENOENT)
		rc = 0;
	else
		cannot_read(out, rc, ret_text);
	if (rc == 0 && all.n) {
		rc = merge_recording(rec_path, NULL, options, ret_result, ret_text);
		if (rc == 0)
			rc = look_up(&all, ret_result, out,
				merge_kernel_events_name(options->kernel_events), ret_text);
	}
	free(all.list);
	trace_set_free(&set);
	return rc;
}
