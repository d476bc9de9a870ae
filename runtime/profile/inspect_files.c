/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inspect_files.c - see inspect_files.h.
 *
 * A profile and its models find each other by the hash in their names, as in the vendor's
 * documents; the number is the upper half of the digest that makes a model's uuid.
 */
#include "runtime/profile/inspect_files.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/file.h"
#include "runtime/exec/model_text.h"
#include "runtime/log/log.h"
#include "runtime/profile/inspect_dir.h"
#include "runtime/profile/serialize.h"
#include "runtime/record/recording.h"

#define TAG "NRT"

void inspect_files_name(
	char ret[INSPECT_FILE_BYTES], const uint64_t digest[2], uint32_t nc, uint32_t number)
{
	char suffix[16] = "";

	if (number > 1)
		(void)snprintf(suffix, sizeof(suffix), "_%" PRIu32, number);
	(void)snprintf(ret, INSPECT_FILE_BYTES, "%" PRIu64 "_instid_0_vnc_%" PRIu32 "%s.ntff",
		digest[0], nc, suffix);
}

static void name_model(char ret[INSPECT_FILE_BYTES], const struct model_text *t)
{
	(void)snprintf(ret, INSPECT_FILE_BYTES, "neff_%" PRIu64 ".neff", t->digest[0]);
}

/* NULL: no memory. */
static char *path_of(const struct inspect_files *f, const char *name)
{
	char *path;

	return asprintf(&path, "%s/%s", f->dir->work, name) < 0 ? NULL : path;
}

/* ---- models ------------------------------------------------------------------------------- */

static bool has_model(const struct inspect_files *f, const struct model_text *t)
{
	for (uint32_t i = 0; i < f->count; i++)
		if (!memcmp(f->models[i], t->digest, sizeof(t->digest)))
			return true;
	return false;
}

static bool make_room(struct inspect_files *f)
{
	uint32_t room = f->room ? 2 * f->room : 16;
	void *models;

	if (f->count < f->room)
		return true;
	models = realloc(f->models, room * sizeof(f->models[0]));
	if (!models)
		return false;
	f->models = models;
	f->room = room;
	return true;
}

static int store_model(const struct model_text *t, const char *path)
{
	struct outfile out;
	int rc = outfile_open(&out, path);

	if (rc < 0)
		return rc;
	outfile_write(&out, t->bytes, t->size);
	return outfile_commit(&out);
}

/* ---- one file more ------------------------------------------------------------------------ */

void inspect_files_unwritten(struct inspect_files *f, const char *name)
{
	f->unwritten++;
	if (f->added)
		(void)f->added(f->ctx, name, REC_FILE_UNWRITTEN, 0);
}

/* It lies where it is written. */
static void add(struct inspect_files *f, const char *call, const char *name, const char *type,
	uint64_t bytes)
{
	const char *const names[] = {name};

	if (inspect_dir_keep(call, f->dir, names, 1) < 0)
		inspect_files_unwritten(f, name);
	else if (f->added)
		(void)f->added(f->ctx, name, type, bytes);
}

static void put_model(struct inspect_files *f, const char *call, const struct model_text *t)
{
	char name[INSPECT_FILE_BYTES];
	_cleanup_free_ char *path = NULL;
	int rc;

	if (has_model(f, t))
		return;
	name_model(name, t);
	path = path_of(f, name);
	rc = path && make_room(f) ? inspect_dir_check(f->dir) : -ENOMEM;
	if (rc == 0)
		rc = store_model(t, path);
	if (rc < 0) {
		log_write(LOG_LEVEL_ERROR, TAG, call,
			"Cannot write the model file %s/%s: %s; profiles of this model have none "
			"beside them",
			f->dir->work, name, strerror(-rc));
		inspect_files_unwritten(f, name);
		return;
	}
	memcpy(f->models[f->count++], t->digest, sizeof(t->digest));
	add(f, call, name, "neff", t->size);
}

static void put_profile(
	struct inspect_files *f, const char *call, struct profile *p, const char *name)
{
	_cleanup_free_ char *path = path_of(f, name);
	uint64_t bytes = 0;
	int rc = path ? inspect_dir_check(f->dir) : -ENOMEM;

	if (rc == 0)
		rc = profile_store(p, path, &bytes);
	if (rc < 0) {
		(void)profile_say_refused(call, path ? path : name, rc);
		inspect_files_unwritten(f, name);
		return;
	}
	if (p->info.partial)
		log_write(LOG_LEVEL_WARN, TAG, call,
			"The device profile %s is not whole; it says what it lacks", name);
	add(f, call, name, "ntff", bytes);
}

void inspect_files_put(
	struct inspect_files *f, const char *call, struct profile *p, const char *name)
{
	put_profile(f, call, p, name);
	for (uint32_t i = 0; i < p->node_count; i++)
		put_model(f, call, p->nodes[i]->text);
}

void inspect_files_done(struct inspect_files *f)
{
	free(f->models);
	*f = (struct inspect_files){0};
}
