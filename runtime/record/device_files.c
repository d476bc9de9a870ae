/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_files.c - looks for frames of types DEVICE_PROFILE and FILE and for the files that they name.
 *
 * The frames stand at the end of a recording, the files must be there at its beginning.  So the frames are
 * looked for beforehand, in the blocks that the footer has them in.
 */
#include "runtime/record/device_files.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "runtime/base/file.h"
#include "runtime/record/device_sum.h"

#define MAX_FILES 65536u
#define WANTED_TYPES (1u << REC_PROCESS | 1u << REC_DEVICE_PROFILE | 1u << REC_FILE)
#define MAX_RINGS 65536u /* of a file; each takes a thousand bytes while the merge runs */

/* ---- frames ------------------------------------------------------------------------------- */

/* Runs of blocks with frames of the types, by the footer. */
struct wanted {
	const struct rec_index *entries;
	uint32_t count, at;
};

static bool is_wanted(void *ctx, uint32_t segment, uint64_t offset)
{
	struct wanted *w = ctx;
	const struct rec_index *e;

	/* The entry that the block is in: the last one that does not begin behind it. */
	while (w->at + 1 < w->count && (w->entries[w->at + 1].segment < segment ||
					       (w->entries[w->at + 1].segment == segment &&
						       w->entries[w->at + 1].offset <= offset)))
		w->at++;
	e = w->count ? &w->entries[w->at] : NULL;
	return e && e->types & WANTED_TYPES;
}

static int add_named(struct device_files *d, const struct device_file *f)
{
	int rc = session_grow(&d->named, &d->named_cap, d->named_count + 1, sizeof(*d->named));

	if (rc == 0)
		d->named[d->named_count++] = *f;
	return rc;
}

static int take_profile(struct device_files *d, const struct rec_frame *f, const uint8_t *payload)
{
	struct device_file file = {0};

	if (f->size < sizeof(file.frame) || d->named_count == MAX_FILES)
		return 0;
	memcpy(&file.frame, payload, sizeof(file.frame));
	if (file.frame.index == REC_DEVICE_PROFILE_NONE)
		return 0;
	snprintf(file.name, sizeof(file.name), REC_DEVICE_PROFILE_FORMAT, file.frame.index);
	return add_named(d, &file);
}

/* A session's file, a name in one directory.  Each once. */
static int take_file(struct device_files *d, const struct rec_frame *f, const uint8_t *payload)
{
	struct device_file file = {.is_beside = true};
	struct rec_file head;
	size_t len;
	uint64_t key;

	if (f->size <= sizeof(head) || d->named_count == MAX_FILES)
		return 0;
	memcpy(&head, payload, sizeof(head));
	len = f->size - sizeof(head);
	payload += sizeof(head);
	if (strncmp(head.type, "ntff", sizeof(head.type)) != 0 || len >= sizeof(file.name) ||
		memchr(payload, '/', len) || memchr(payload, '\0', len))
		return 0;
	memcpy(file.name, payload, len);
	key = XXH3_64bits_withSeed(payload, len, d->names.seed) | 1;
	if (map64_find(&d->names, key))
		return 0;
	file.frame = (struct rec_device_profile){
		.index = (uint32_t)d->named_count, .pid = d->pid, .bytes = head.bytes};
	int rc = map64_put(&d->names, key, 1);
	return rc < 0 ? rc : add_named(d, &file);
}

static int take_frame(struct device_files *d, const struct rec_frame *f, const uint8_t *payload)
{
	struct rec_process p;

	switch (f->type) {
	case REC_PROCESS:
		if (f->source < REC_SOURCE_RUNTIME0 || d->pid || f->size < sizeof(p))
			return 0;
		memcpy(&p, payload, sizeof(p));
		d->pid = p.pid;
		return 0;
	case REC_DEVICE_PROFILE:
		return take_profile(d, f, payload);
	case REC_FILE:
		return take_file(d, f, payload);
	default:
		return 0;
	}
}

static int find_frames(struct device_files *d, struct rec_reader *reader)
{
	const struct rec_footer_counter *counters;
	struct rec_block *block = NULL;
	struct rec_footer footer;
	struct wanted wanted = {0};
	const struct rec_frame *f;
	const uint8_t *payload;
	size_t size;
	int rc = rec_reader_footer(reader, &block, &payload, &size);

	if (rc == 0 && rec_footer_parse(payload, size, &footer, &counters, &wanted.entries) == 0)
		wanted.count = footer.entries;
	rec_reader_rewind(reader);
	if (wanted.count)
		rec_reader_set_filter(reader, is_wanted, &wanted);
	while ((rc = rec_reader_next(reader, &f, &payload)) > 0) {
		rc = take_frame(d, f, payload);
		if (rc < 0)
			break;
	}
	rec_reader_set_filter(reader, NULL, NULL);
	rec_reader_rewind(reader);
	rec_block_unref(block);
	return rc < 0 ? rc : 0;
}

/* ---- files -------------------------------------------------------------------------------- */

const uint8_t *device_files_passed(const uint8_t *from, const uint8_t *to)
{
	const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t begin = ((uintptr_t)from + page - 1) & ~(page - 1);
	uintptr_t end = (uintptr_t)to & ~(page - 1);

	if (begin >= end)
		return from;
	madvise((void *)begin, end - begin, MADV_DONTNEED); /* if it cannot, the pages stay */
	return (const uint8_t *)end;
}

static const struct {
	int error;
	const char *text;
} faults[] = {
	{-ENOENT, "missing"},
	{-EMSGSIZE, "damaged: it has another size than when it was recorded"},
	{-EBADMSG, "damaged: it has another checksum than when it was recorded"},
	{-EINVAL, "no regular file"},
};

static const char *fault_of(int error)
{
	for (size_t i = 0; i < sizeof(faults) / sizeof(*faults); i++)
		if (faults[i].error == error)
			return faults[i].text;
	return "it cannot be read";
}

/* Is a file that has no checksum as long as it was? */
static int verify_beside(int dir_fd, const struct device_file *f)
{
	_cleanup_close_ int fd = device_sum_open(dir_fd, f->name);
	struct stat st;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	return (uint64_t)st.st_size == f->frame.bytes ? 0 : -EMSGSIZE;
}

/* Opens what a frame names.  0 or -errno, as device_sum_verify. */
static int map_in(int dir_fd, struct device_file *f)
{
	int rc = f->is_beside ? verify_beside(dir_fd, f) : device_sum_verify(dir_fd, &f->frame);
	_cleanup_close_ int fd = -1;

	if (rc == 0)
		rc = fd = device_sum_open(dir_fd, f->name);
	if (rc < 0)
		return rc;
	rc = mapped_open(&f->map, fd);
	if (rc == 0 && (!f->map.size || f->map.size != f->frame.bytes))
		rc = -EMSGSIZE;
	return rc == -ESPIPE ? -EINVAL : rc;
}

static int map_file(int dir_fd, struct device_file *f)
{
	_cleanup_close_ int above = -1;

	if (!f->is_beside)
		return map_in(dir_fd, f);
	above = openat(dir_fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
	return above < 0 ? -errno : map_in(above, f);
}

/* Says in the session what is wrong with a profile, and how many bytes of it are not looked at. */
static void note(struct session *s, const struct device_file *f, uint64_t bytes, const char *what)
{
	struct session_profiles *to = &s->profiles;
	unsigned place = to->bad < SESSION_BAD_PROFILES ? (unsigned)to->bad : SESSION_BAD_PROFILES;

	if (place < SESSION_BAD_PROFILES)
		snprintf(to->why[place], sizeof(to->why[place]),
			"device profile of pid %" PRIu32 " (%.60s): %s", f->frame.pid, f->name,
			what);
	to->bad++;
	to->bad_bytes += bytes;
}

/* Reads what was mapped; *ret_wrong: what of it cannot be used, NULL nothing. */
static int read_file(struct device_file *f, const char **ret_wrong)
{
	struct ntff_profile *p = &f->profile;
	int rc = ntff_profile_open(p, f->map.data, f->map.size);

	device_files_passed(f->map.data, f->map.data + f->map.size);
	if (mapped_cut(&f->map)) {
		*ret_wrong = "damaged: it became shorter while it was read";
		return -EBADMSG;
	}
	*ret_wrong = rc < 0 && !p->file.damage ? "damaged" : p->file.damage;
	if (rc == 0 && !*ret_wrong && p->flaw_count)
		*ret_wrong = p->flaws[0].what;
	if (rc < 0 || p->stream_count <= MAX_RINGS)
		return rc;
	*ret_wrong = "damaged: it has more rings than any core";
	return -EBADMSG;
}

static int open_file(struct device_file *f, int dir_fd, struct session *s)
{
	int rc = map_file(dir_fd, f);
	const char *wrong = rc < 0 ? fault_of(rc) : NULL;

	if (rc == 0)
		rc = read_file(f, &wrong);
	if (rc == -ENOMEM)
		return rc;
	if (wrong)
		note(s, f, rc < 0 ? f->frame.bytes : 0, wrong);
	return rc;
}

static void close_file(struct device_file *f)
{
	ntff_profile_close(&f->profile);
	mapped_close(&f->map);
}

static int compare(const void *a, const void *b)
{
	const struct device_file *x = a, *y = b;

	return (x->frame.index > y->frame.index) - (x->frame.index < y->frame.index);
}

int device_files_open(struct device_files *d, struct rec_reader *reader, struct session *session)
{
	int rc;

	d->names.seed = session->seed;
	rc = find_frames(d, reader);
	session->profiles.asked = true;
	if (rc < 0 || !d->named_count)
		return rc;
	d->list = calloc(d->named_count, sizeof(*d->list));
	if (!d->list)
		return -ENOMEM;
	qsort(d->named, d->named_count, sizeof(*d->named), compare);
	for (size_t i = 0; i < d->named_count; i++) {
		struct device_file *f = &d->list[d->count];

		if (i && d->named[i].frame.index == d->named[i - 1].frame.index)
			continue; /* one file, one process */
		*f = d->named[i];
		session->profiles.found++;
		rc = open_file(f, rec_reader_dir(reader), session);
		if (rc == 0)
			d->count++;
		else
			close_file(f);
		if (rc == -ENOMEM)
			return rc;
	}
	return 0;
}

const struct device_file *device_files_cut(const struct device_files *d)
{
	for (size_t i = 0; i < d->count; i++)
		if (mapped_cut(&d->list[i].map))
			return &d->list[i];
	return NULL;
}

void device_files_free(struct device_files *d)
{
	for (size_t i = 0; i < d->count; i++)
		close_file(&d->list[i]);
	free(d->list);
	free(d->named);
	map64_free(&d->names);
	*d = (struct device_files){0};
}
