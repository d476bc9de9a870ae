/* SPDX-License-Identifier: Apache-2.0 */
/*
 * serialize.c - a profile as a file; see serialize.h, and proto/ntff_file.h for what is in it.
 */
#include "runtime/profile/serialize.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "proto/ntff_file.h"
#include "runtime/base/file.h"
#include "runtime/log/log.h"

#define TAG "NRT"

/* ---- what went wrong ---------------------------------------------------------------------- */

NRT_STATUS profile_say_refused(const char *call, const char *path, int rc)
{
	static const struct {
		int error;
		NRT_STATUS status;
		const char *advice;
	} known[] = {
		{EEXIST, NRT_INVALID, "a file that exists is never replaced; give another name"},
		{ENOENT, NRT_INVALID, "its directory must exist; make it first"},
		{ENOTDIR, NRT_INVALID, "give a file in a directory"},
		{EISDIR, NRT_INVALID, "give a file in a directory"},
		{ENAMETOOLONG, NRT_INVALID, "give a shorter name"},
		{ELOOP, NRT_INVALID, "give another name"},
		{EACCES, NRT_FAILURE, "write elsewhere"},
		{EROFS, NRT_FAILURE, "write elsewhere"},
		{ENOSPC, NRT_FAILURE, "make room, or write elsewhere"},
		{EDQUOT, NRT_FAILURE, "make room, or write elsewhere"},
		{EFBIG, NRT_FAILURE, "raise the limit of file sizes, or profile for less long"},
		{ENOMEM, NRT_RESOURCE, "free memory"},
	};
	NRT_STATUS status = NRT_FAILURE;
	const char *advice = "write elsewhere";

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (known[i].error == -rc) {
			status = known[i].status;
			advice = known[i].advice;
		}
	log_write(LOG_LEVEL_ERROR, TAG, call, "Cannot write the profile '%.300s': %s; %s", path,
		strerror(-rc), advice);
	return status;
}

/* ---- the name ----------------------------------------------------------------------------- */

/* 0, or -errno of what a file of this name would meet. */
static int look_at(const char *path)
{
	const char *slash = strrchr(path, '/');
	_cleanup_free_ char *dir = slash ? strndup(path, (size_t)(slash + 1 - path)) : strdup(".");
	struct stat st;

	if (!dir)
		return -ENOMEM;
	if (slash && !slash[1])
		return -EISDIR;
	if (stat(dir, &st) < 0)
		return -errno;
	if (lstat(path, &st) == 0)
		return -EEXIST;
	return errno == ENOENT ? 0 : -errno;
}

NRT_STATUS profile_check_path(const char *call, const char *path)
{
	int rc;

	if (!path || !*path) {
		log_write(LOG_LEVEL_ERROR, TAG, call, "No file name given (%s)",
			path ? "empty" : "NULL");
		return NRT_INVALID;
	}
	rc = look_at(path);
	return rc < 0 ? profile_say_refused(call, path, rc) : NRT_SUCCESS;
}

/* ---- the file ----------------------------------------------------------------------------- */

/* Offsets take more bytes the larger they are, and the message stands before what they point to; so until they hold. */
static size_t settle(struct profile *p, uint64_t *ret_at, uint64_t *ret_blobs)
{
	uint64_t at = ntff_blobs_offset(0), need;
	size_t size;

	for (;;) {
		*ret_blobs = profile_lay_out(p, at);
		size = protobuf_c_message_get_packed_size(&p->info.base);
		need = ntff_blobs_offset(size);
		if (need <= at)
			break;
		at = need;
	}
	*ret_at = at;
	return size;
}

static void write_zeros(struct outfile *f, uint64_t count)
{
	static const uint8_t zeros[64];

	for (; count; count -= count < sizeof(zeros) ? count : sizeof(zeros))
		outfile_write(f, zeros, count < sizeof(zeros) ? count : sizeof(zeros));
}

static void write_blobs(struct outfile *f, const struct profile *p)
{
	for (uint32_t i = 0; i < p->blob_count; i++) {
		const struct ntff_blob *b = &p->blobs[i];

		for (uint32_t k = 0; k < b->piece_count; k++)
			outfile_write(f, b->pieces[k].iov_base, b->pieces[k].iov_len);
		write_zeros(f, ntff_align(b->size) - b->size);
	}
}

int profile_store(struct profile *p, const char *path, uint64_t *ret_bytes)
{
	uint8_t header[NTFF_HEADER_BYTES];
	uint64_t at, blobs;
	size_t size = settle(p, &at, &blobs);
	_cleanup_free_ uint8_t *message = malloc(size ? size : 1);
	struct outfile f;
	int rc;

	if (!message)
		return -ENOMEM;
	protobuf_c_message_pack(&p->info.base, message);
	if (ntff_header_encode(header, message, size, at, blobs, p->info.producer) < 0)
		return -EFBIG; /* of too many runs */
	rc = outfile_open(&f, path);
	if (rc < 0)
		return rc;
	outfile_write(&f, header, sizeof(header));
	outfile_write(&f, message, size);
	write_zeros(&f, at - sizeof(header) - size);
	write_blobs(&f, p);
	if (ret_bytes)
		*ret_bytes = f.bytes;
	return outfile_commit(&f);
}

NRT_STATUS profile_write(const char *call, struct profile *p, const char *path)
{
	int rc = profile_store(p, path, NULL);

	return rc < 0 ? profile_say_refused(call, path, rc) : NRT_SUCCESS;
}
