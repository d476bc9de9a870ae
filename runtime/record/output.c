/* SPDX-License-Identifier: Apache-2.0 */
/*
 * output.c - directories and files of the processes.
 *
 * ntrace.pb of every process is open while the merge runs; the other three files are written when it is
 * done.  Of many processes only some keep their descriptor, the rest open theirs again to write.
 * Processes stand for themselves: those that were committed before a failure stay.
 */
#include "runtime/record/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/file.h"
#include "runtime/record/out.h"

#define MAX_INSTANCE 64
#define MAX_OPEN 128u /* descriptors */

static const struct {
	const char *name, *type;
} file_names[MERGE_FILES] = {
	[MERGE_NTRACE] = {"ntrace.pb", "ntrace"},
	[MERGE_CPU_UTIL] = {"cpu_util.pb", "cpu_util"},
	[MERGE_HOST_MEM] = {"host_mem.pb", "host_mem"},
	[MERGE_TRACE_INFO] = {"trace_info.pb", "trace_info"},
};

const char *merge_file_name(enum merge_file which)
{
	return file_names[which].name;
}

struct file_set {
	struct file_set *next; /* of those whose ntrace.pb has a descriptor */
	char *dir;
	bool beside; /* named for a process that has a session of its own */
	char *path[MERGE_FILES];
	struct outfile file[MERGE_FILES];
	unsigned opened, committed;
	void *taker; /* instead of all that: the sink's own, or */
	int null_fd;
	uint64_t bytes[MERGE_FILES];
	int error;
};

int output_fail(struct output *o, int error, const char *format, ...)
{
	va_list ap;

	if (*o->ret_error)
		return error;
	va_start(ap, format);
	if (vasprintf(o->ret_error, format, ap) < 0)
		*o->ret_error = NULL;
	va_end(ap);
	return error;
}

int output_make_dir(struct output *o)
{
	struct stat st;
	int rc;

	if (!o->dir || o->leaf || (lstat(o->dir, &st) == 0 && S_ISDIR(st.st_mode)))
		return 0;
	rc = file_mkdirs(o->dir, &o->made);
	if (rc < 0)
		return output_fail(o, rc, "cannot create %s: %s", o->dir, strerror(-rc));
	return 0;
}

void output_end(struct output *o)
{
	if (o->dir)
		file_mkdirs_undo(o->dir, o->made); /* as far as they are empty */
}

/* The instance becomes part of a path and comes from a file: only harmless characters stay. */
static void instance_name(const struct session *session, char name[MAX_INSTANCE + 1])
{
	const char *s = session->header.info.instance_id;
	size_t n = 0;

	for (; s && *s && n < MAX_INSTANCE; s++) {
		bool plain = (*s >= 'a' && *s <= 'z') || (*s >= 'A' && *s <= 'Z') ||
			     (*s >= '0' && *s <= '9') || *s == '-' || *s == '_' ||
			     (*s == '.' && n > 0);
		name[n++] = plain ? *s : '_';
	}
	name[n] = '\0';
	if (n == 0)
		snprintf(name, MAX_INSTANCE + 1, "unknown");
}

/* A process that has inspected itself has a directory `*_pid_*` already, where this one may come to lie; there is
 * to be one. */
static void process_name(
	const struct output *o, const struct process *p, bool beside, char name[MAX_INSTANCE + 32])
{
	char instance[MAX_INSTANCE + 1];

	instance_name(o->session, instance);
	snprintf(name, MAX_INSTANCE + 32, beside ? "ntrace-%s-%u" : "%s_pid_%u", instance, p->pid);
}

/* ---- the temporary file ----------------------------------------------------------------- */

/* An unlinked file in a directory; -errno. */
static int open_unlinked(const char *dir)
{
	_cleanup_free_ char *path = NULL;
	int fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	if (fd >= 0)
		return fd;
	if (errno != EOPNOTSUPP && errno != EISDIR && errno != ENOSYS && errno != EINVAL)
		return -errno;
	if (asprintf(&path, "%s/.ntrace-tmp-XXXXXX", dir) < 0) {
		path = NULL;
		return -ENOMEM;
	}
	fd = mkostemp(path, O_CLOEXEC);
	if (fd < 0)
		return -errno;
	unlink(path);
	return fd;
}

int output_temporary(void *ctx)
{
	struct output *o = ctx;
	const char *dir = o->dir ? o->dir : P_tmpdir;
	int rc = output_make_dir(o);

	if (rc == 0)
		rc = open_unlinked(dir);
	if (rc < 0)
		output_fail(o, rc, "cannot make a temporary file below %s: %s", dir, strerror(-rc));
	return rc;
}

/* ---- descriptors -------------------------------------------------------------------------- */

static void unlink_set(struct output *o, struct file_set *s)
{
	for (struct file_set **at = &o->first; *at; at = &(*at)->next)
		if (*at == s) {
			*at = s->next;
			o->files_open--;
			return;
		}
}

/* Makes sure that ntrace.pb has its descriptor; another gives its own up when there are many. */
static int need_descriptor(struct output *o, struct file_set *s)
{
	struct outfile *f = &s->file[MERGE_NTRACE];

	for (struct file_set *i = o->first; i; i = i->next)
		if (i == s)
			return 0;
	if (o->files_open >= MAX_OPEN) {
		struct file_set *last = o->first;

		while (last->next)
			last = last->next;
		outfile_pause(&last->file[MERGE_NTRACE]);
		unlink_set(o, last);
	}
	s->next = o->first;
	o->first = s;
	o->files_open++;
	return f->fd < 0 ? outfile_resume(f) : 0;
}

/* ---- a process's files -------------------------------------------------------------------- */

static int open_file(struct output *o, struct file_set *s, enum merge_file which)
{
	int rc;

	if (!o->dir)
		return 0;
	if (asprintf(&s->path[which], "%s/%s", s->dir, file_names[which].name) < 0) {
		s->path[which] = NULL;
		return output_fail(o, -ENOMEM, "out of memory");
	}
	rc = outfile_open(&s->file[which], s->path[which]);
	if (rc < 0)
		return output_fail(o, rc, "cannot create %s: %s", s->path[which], strerror(-rc));
	s->opened++;
	return 0;
}

static int open_elsewhere(struct output *o, struct process *p, struct file_set *s, const char *name)
{
	if (o->sink)
		return o->error = o->sink->open(
			       o->sink->ctx, p->pid, name, o->session->clock.offset, &s->taker);
	s->null_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
	return s->null_fd < 0 ? -errno : 0;
}

/* Nothing is made: whoever has removed the directory of a session meanwhile does not want it. */
static int open_leaf(struct output *o, struct file_set *s)
{
	if (!session_own(o->session))
		return output_fail(o, -EINVAL, "it is not the recording of a session");
	if (o->leaf_used)
		return output_fail(
			o, -EINVAL, "it has several processes, but a session has one alone");
	o->leaf_used = true;
	s->dir = strdup(o->dir);
	return s->dir ? 0 : output_fail(o, -ENOMEM, "out of memory");
}

static int make_directory(struct output *o, struct file_set *s, const char *name)
{
	_cleanup_free_ char *base = NULL;
	int rc = output_make_dir(o);

	if (rc < 0)
		return rc;
	if (asprintf(&base, "%s/%s", o->dir, name) < 0) {
		base = NULL;
		return output_fail(o, -ENOMEM, "out of memory");
	}
	rc = file_mkdir_unique(base, &s->dir);
	return rc < 0 ? output_fail(o, rc, "cannot create %s: %s", base, strerror(-rc)) : 0;
}

int output_open(struct output *o, struct process *p)
{
	char name[MAX_INSTANCE + 32];
	struct file_set *s = p->files = calloc(1, sizeof(*s));
	int rc;

	if (!s)
		return output_fail(o, -ENOMEM, "out of memory");
	s->null_fd = -1;
	s->beside = session_inspected(o->session, p->pid);
	process_name(o, p, s->beside, name);
	if (!o->dir)
		return open_elsewhere(o, p, s, name);
	rc = o->leaf ? open_leaf(o, s) : make_directory(o, s, name);
	if (rc == 0)
		rc = open_file(o, s, MERGE_NTRACE);
	return rc < 0 ? rc : need_descriptor(o, s);
}

/* Hands bytes of a file on to where they go; s->error after that. */
static void put(struct output *o, struct file_set *s, enum merge_file which, const struct pb_buf *b)
{
	if (!s->error && o->dir && which == MERGE_NTRACE)
		s->error = need_descriptor(o, s);
	if (!s->error)
		s->error = o->error;
	if (s->error)
		return;
	s->bytes[which] += b->len;
	if (o->dir)
		outfile_write(&s->file[which], b->data, b->len);
	else if (o->sink)
		s->error = o->error =
			o->sink->write(o->sink->ctx, s->taker, which, b->data, b->len);
	else
		s->error = file_write_all(s->null_fd, b->data, b->len);
}

void output_flush(void *ctx, struct process *p)
{
	put(ctx, p->files, MERGE_NTRACE, &p->buf);
	p->buf.len = 0;
}

/* A file that is written out of what was stored. */
struct stored_to {
	struct output *output;
	struct file_set *set;
	enum merge_file which;
};

static int put_piece(void *ctx, const uint8_t *data, size_t size)
{
	const struct stored_to *to = ctx;

	put(to->output, to->set, to->which, &(struct pb_buf){.data = (uint8_t *)data, .len = size});
	return to->set->error;
}

static void put_stored(struct stored_to *to, const struct stored *from, uint64_t at, uint64_t size)
{
	int rc = to->set->error ? 0 : stored_give(from, at, size, put_piece, to);

	if (rc < 0)
		to->set->error = rc;
}

/* CPU samples of the time in which the process was seen: by its records and by memory samples; all that it took itself.
 * The number of messages. */
static uint64_t put_cpus(struct output *o, const struct process *p, const struct session_mem *mem)
{
	uint64_t first = p->first_seen ? p->first_seen : UINT64_MAX, last = p->last_seen;
	struct stored_to to = {o, p->files, MERGE_CPU_UTIL};
	uint64_t messages = 0, at, size;
	size_t place = 0;

	if (mem && mem->first_ns < first)
		first = mem->first_ns;
	if (mem && mem->last_ns > last)
		last = mem->last_ns;
	if (session_own(o->session)) {
		first = 0;
		last = UINT64_MAX;
	}
	put(o, p->files, MERGE_CPU_UTIL, &(struct pb_buf){0}); /* the file is there in any case */
	while (session_cpu_run(o->session, first, last, &place, &at, &size, &messages))
		put_stored(&to, &o->session->cpu, at, size);
	return messages;
}

static void put_memory(struct output *o, struct file_set *s, const struct session_mem *mem)
{
	struct stored_to to = {o, s, MERGE_HOST_MEM};

	put(o, s, MERGE_HOST_MEM, &(struct pb_buf){0});
	if (mem)
		put_stored(&to, &mem->data, 0, stored_size(&mem->data));
}

static int write_rest(
	struct output *o, struct process *p, const struct ledger *g, uint64_t *ret_cpu_messages)
{
	const struct session_mem *mem = session_mem(o->session, p->pid);
	struct file_set *s = p->files;
	struct out_profile profiles[MERGE_TRACE_INFO];
	uint64_t messages[] = {p->events, 0, mem ? mem->messages : 0};
	_cleanup_(pb_buf_free) struct pb_buf info = {0};
	int rc = 0;

	for (unsigned i = MERGE_CPU_UTIL; rc == 0 && i < MERGE_FILES; i++)
		rc = open_file(o, s, (enum merge_file)i);
	if (rc < 0)
		return rc;
	messages[MERGE_CPU_UTIL] = *ret_cpu_messages = put_cpus(o, p, mem);
	put_memory(o, s, mem);
	for (unsigned i = 0; i < MERGE_TRACE_INFO; i++)
		profiles[i] = (struct out_profile){
			file_names[i].name, file_names[i].type, messages[i], s->bytes[i]};
	rc = out_trace_info(o->session, p, o->kernel_events, g, profiles, MERGE_TRACE_INFO, &info);
	if (rc == 0)
		put(o, s, MERGE_TRACE_INFO, &info);
	return rc < 0 ? rc : s->error;
}

static int commit_files(struct output *o, struct file_set *s)
{
	for (unsigned i = 0; o->dir && i < MERGE_FILES; i++) {
		int rc = outfile_commit(&s->file[i]);
		if (rc < 0)
			return output_fail(o, rc, "cannot write %s: %s", s->path[i], strerror(-rc));
		s->committed++;
	}
	return 0;
}

/* The process has begun its session when there were files already: another name for the directory. */
static int rename_dir(struct output *o, struct process *p, struct file_set *s)
{
	_cleanup_free_ char *base = NULL, *to = NULL;
	char name[MAX_INSTANCE + 32];
	int rc;

	if (!o->dir || o->leaf || s->beside || !session_inspected(o->session, p->pid))
		return 0;
	process_name(o, p, true, name);
	if (asprintf(&base, "%s/%s", o->dir, name) < 0) {
		base = NULL;
		return output_fail(o, -ENOMEM, "out of memory");
	}
	rc = file_mkdir_unique(base, &to);
	if (rc == 0 && rename(s->dir, to) < 0) { /* an empty directory gives way */
		rc = -errno;
		(void)rmdir(to);
	}
	if (rc < 0)
		return output_fail(
			o, rc, "cannot rename %s to %s: %s", s->dir, base, strerror(-rc));
	free(s->dir);
	s->dir = to;
	to = NULL;
	return 0;
}

static void free_set(struct output *o, struct process *p)
{
	struct file_set *s = p->files;

	unlink_set(o, s);
	for (unsigned i = 0; i < MERGE_FILES; i++)
		free(s->path[i]);
	free(s->dir);
	cleanup_close(&s->null_fd);
	free(s);
	p->files = NULL;
}

int output_commit(
	struct output *o, struct process *p, const struct ledger *g, struct merge_output *ret)
{
	const struct session_mem *mem = session_mem(o->session, p->pid);
	struct file_set *s = p->files;
	uint64_t cpu_messages = 0;
	int rc;

	output_flush(o, p);
	rc = s->error;
	if (rc == 0)
		rc = write_rest(o, p, g, &cpu_messages);
	if (rc < 0 && !o->sink)
		output_fail(o, rc, "cannot write below %s: %s", o->dir ? s->dir : "/dev/null",
			strerror(-rc));
	if (rc == 0)
		rc = commit_files(o, s);
	if (rc == 0)
		rc = rename_dir(o, p, s);
	if (rc < 0)
		return rc;
	*ret = (struct merge_output){
		.pid = p->pid,
		.dir = s->dir,
		.events = p->events,
		.bytes = s->bytes[MERGE_NTRACE],
		.cpu_samples = cpu_messages,
		.mem_samples = mem ? mem->messages : 0,
		.spans = p->spans,
		.open_spans = p->open_spans,
		.kernel_spans = p->kernel_spans,
		.device_spans = p->device.spans,
	};
	s->dir = NULL;
	free_set(o, p);
	return 0;
}

void output_discard(struct output *o, struct process *p)
{
	struct file_set *s = p->files;

	if (!s)
		return;
	for (unsigned i = 0; i < s->opened; i++)
		outfile_abort(&s->file[i]);
	for (unsigned i = 0; i < s->committed; i++)
		unlink(s->path[i]);
	if (s->dir && !o->leaf)
		rmdir(s->dir); /* made by this run; fails if anything else is in it */
	free_set(o, p);
}
