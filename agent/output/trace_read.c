/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace_read.c - a window over the file that moves along; it grows only for a record that does not
 * fit, and only as far as the file really goes on.
 */
#include "agent/output/trace_read.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/delimited.h"
#include "proto/message.h"
#include "runtime/base/file.h"

#define WINDOW_BYTES (256u << 10)
#define MAX_INFO ((size_t)256 << 20)

int trace_read_open(struct trace_read *r, const char *path)
{
	return trace_read_open_until(r, path, NULL);
}

static bool cancelled(const struct trace_read *r)
{
	return r->cancel && *r->cancel;
}

int trace_read_open_until(
	struct trace_read *r, const char *path, const volatile sig_atomic_t *cancel)
{
	*r = (struct trace_read){.cancel = cancel};
	do
		r->fd = open(path, O_RDONLY | O_CLOEXEC);
	while (r->fd < 0 && errno == EINTR && !cancelled(r));
	if (r->fd >= 0)
		return 0;
	return cancelled(r) ? -ECANCELED : -errno;
}

void trace_read_close(struct trace_read *r)
{
	if (r->fd >= 0)
		close(r->fd);
	free(r->buf);
	*r = (struct trace_read){.fd = -1};
}

uint64_t trace_read_offset(const struct trace_read *r)
{
	return r->base + r->at;
}

/* Reads more behind what is there; 0 or -errno, r->eof at the end of the file. */
static int fill(struct trace_read *r)
{
	ssize_t n;

	if (r->at) {
		memmove(r->buf, r->buf + r->at, r->have - r->at);
		r->base += r->at;
		r->have -= r->at;
		r->at = 0;
	}
	if (r->have == r->cap) {
		size_t cap = r->cap ? r->cap * 2 : WINDOW_BYTES;
		uint8_t *buf = realloc(r->buf, cap);

		if (!buf)
			return -ENOMEM;
		r->buf = buf;
		r->cap = cap;
	}
	do
		n = read(r->fd, r->buf + r->have, r->cap - r->have);
	while (n < 0 && errno == EINTR && !cancelled(r));
	if (n < 0)
		return cancelled(r) ? -ECANCELED : -errno;
	r->eof = n == 0;
	r->have += (size_t)n;
	return 0;
}

/* Is the record at r->at wholly in the window?  1 and its size with the prefix; 0; -EBADMSG. */
static int record_size(const struct trace_read *r, size_t *ret_size)
{
	size_t left = r->have - r->at, n;
	uint64_t len = 0;

	if (left == 0)
		return 0; /* there may be no window yet */
	n = pb_varint_get(r->buf + r->at, r->buf + r->have, &len);
	if (n == 0)
		return left >= PB_MAX_VARINT ? -EBADMSG : 0;
	if (len > TRACE_READ_MAX_RECORD)
		return -EBADMSG;
	*ret_size = n + (size_t)len;
	return *ret_size <= left;
}

int trace_read_record(struct trace_read *r, const uint8_t **ret_msg, size_t *ret_len)
{
	size_t pos;
	int rc;

	while ((rc = record_size(r, &r->size)) == 0) {
		if (r->eof)
			return r->at == r->have ? 0 : -EBADMSG;
		rc = fill(r);
		if (rc < 0)
			return rc;
	}
	if (rc < 0)
		return rc;
	pos = r->at;
	return pb_delimited_next(r->buf, r->at + r->size, &pos, ret_msg, ret_len) == 1 ? 1
										       : -EBADMSG;
}

void trace_read_skip(struct trace_read *r)
{
	r->at += r->size;
	r->count++;
}

int trace_read_next(struct trace_read *r, struct ntrace_event_view *e)
{
	const uint8_t *msg;
	size_t len, at;
	int rc = trace_read_record(r, &msg, &len);

	if (rc <= 0)
		return rc;
	if (ntrace_event_parse(msg, len, e, &at) < 0)
		return -EBADMSG;
	trace_read_skip(r);
	return 1;
}

int trace_read_peek(struct trace_read *r, size_t size, const uint8_t **ret_data, size_t *ret_size)
{
	while (!r->eof && r->have - r->at < size) {
		int rc = fill(r);

		if (rc < 0)
			return rc;
	}
	*ret_data = r->buf + r->at;
	*ret_size = r->have - r->at;
	return 0;
}

int trace_read_rest(struct trace_read *r, uint64_t *ret_size)
{
	while (!r->eof) {
		r->at = r->have;
		int rc = fill(r);

		if (rc < 0)
			return rc;
	}
	*ret_size = r->base + r->have;
	return 0;
}

int trace_info_read(const char *trace, Ntff__NtraceInfo **ret_info, char **ret_path)
{
	const char *slash = strrchr(trace, '/');
	_cleanup_free_ char *data = NULL;
	ProtobufCMessage *m;
	size_t size;
	int rc;

	*ret_info = NULL;
	if (asprintf(ret_path, "%.*strace_info.pb", slash ? (int)(slash - trace + 1) : 0, trace) <
		0) {
		*ret_path = NULL;
		return -ENOMEM;
	}
	rc = file_read(*ret_path, MAX_INFO, &data, &size);
	if (rc < 0)
		return rc == -ENOENT ? 0 : rc;
	rc = pb_message_unpack(&ntff__ntrace_info__descriptor, (const uint8_t *)data, size, &m);
	*ret_info = (Ntff__NtraceInfo *)m;
	return rc;
}

bool trace_info_agrees(const Ntff__NtraceInfo *info, const char *path, uint64_t messages,
	uint64_t bytes, char text[TRACE_TEXT])
{
	const char *slash = strrchr(path, '/');
	const Ntff__NtraceDataFile *told = NULL;

	for (size_t i = 0; info && !told && i < info->n_collected_profiles; i++)
		if (!strcmp(info->collected_profiles[i]->name, slash ? slash + 1 : path))
			told = info->collected_profiles[i];
	*text = '\0';
	if (told && (told->message_count != messages || told->bytes != bytes))
		snprintf(text, TRACE_TEXT,
			"has %" PRIu64 " messages in %" PRIu64
			" bytes, but trace_info.pb tells of %" PRIu64 " in %" PRIu64,
			messages, bytes, told->message_count, told->bytes);
	return !*text;
}

/* ---- which traces there are ----------------------------------------------------------------- */

void trace_set_free(struct trace_set *s)
{
	for (size_t i = 0; i < s->count; i++)
		free(s->files[i]);
	free(s->files);
	*s = (struct trace_set){0};
}

static int add_file(struct trace_set *s, char *path)
{
	char **files = path ? realloc(s->files, (s->count + 1) * sizeof(*files)) : NULL;

	if (!files) {
		free(path);
		return -ENOMEM;
	}
	files[s->count++] = path;
	s->files = files;
	return 0;
}

static char *join(const char *dir, const char *name)
{
	size_t len = strlen(dir);
	char *path = NULL;

	while (len && dir[len - 1] == '/')
		len--;
	return asprintf(&path, "%.*s/%s%sntrace.pb", (int)len, dir, name, *name ? "/" : "") < 0
		       ? NULL
		       : path;
}

/* Adds dir/name/ntrace.pb if it is there. */
static int add_if_there(struct trace_set *s, const char *dir, const char *name)
{
	char *path = join(dir, name);

	if (path && access(path, F_OK) < 0) {
		free(path);
		return 0;
	}
	return add_file(s, path);
}

static int is_visible(const struct dirent *d)
{
	return d->d_name[0] != '.';
}

#define LEAF_DIGITS 17 /* those of a time; the ns since the epoch have more */

/* Is it named by the time at which an inspect session began: 20261130_133337_553, 1796045617851584882, perhaps with
 * _2 behind it? */
static int is_leaf(const struct dirent *d)
{
	size_t digits = 0, len = strspn(d->d_name, "0123456789_");

	for (size_t i = 0; i < len; i++)
		digits += d->d_name[i] != '_';
	return !d->d_name[len] && digits >= LEAF_DIGITS;
}

typedef int (*wanted_fn)(const struct dirent *d);

/* Adds those of the subdirectories that are wanted.  0 or -errno. */
static int add_below(struct trace_set *s, const char *dir, wanted_fn wanted)
{
	struct dirent **list;
	int n = scandir(dir, &list, wanted, versionsort), rc = 0;

	if (n < 0)
		return -errno;
	for (int i = 0; i < n; i++) {
		if (rc == 0)
			rc = add_if_there(s, dir, list[i]->d_name);
		free(list[i]);
	}
	free(list);
	return rc;
}

/* Adds what lies in dir/name or, of sessions in layouts with a time, one below that. */
static int add_at(struct trace_set *s, const char *dir, const char *name)
{
	_cleanup_free_ char *inner = NULL;
	size_t before = s->count;
	int rc = add_if_there(s, dir, name);

	if (rc < 0 || s->count > before)
		return rc;
	if (asprintf(&inner, "%s/%s", dir, name) < 0) {
		inner = NULL;
		return -ENOMEM;
	}
	rc = add_below(s, inner, is_leaf);
	return rc == -ENOMEM ? rc : 0; /* it need not be a directory */
}

int trace_set_find(const char *path, struct trace_set *ret)
{
	struct dirent **list;
	struct stat st;
	int n, rc;

	*ret = (struct trace_set){0};
	if (stat(path, &st) < 0)
		return -errno;
	if (!S_ISDIR(st.st_mode)) {
		ret->is_file = true;
		return add_file(ret, strdup(path));
	}
	rc = add_if_there(ret, path, "");
	if (rc < 0 || ret->count)
		return rc;
	n = scandir(path, &list, is_visible, versionsort);
	if (n < 0)
		return -errno;
	for (int i = 0; i < n; i++) {
		if (rc == 0)
			rc = add_at(ret, path, list[i]->d_name);
		free(list[i]);
	}
	free(list);
	return rc < 0 || ret->count ? rc : -ENODATA;
}
