/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inspect_device_fixture.h - device profiles of a session in tests: a directory, begin and end as
 * the controller makes them, and what stands in the directory afterwards.
 *
 * Header only, for the runtime that is linked into the tests.
 */
#ifndef NTRACE_TESTS_INSPECT_DEVICE_FIXTURE_H
#define NTRACE_TESTS_INSPECT_DEVICE_FIXTURE_H

#include <inttypes.h>
#include <xxhash.h>

#include "runtime/profile/inspect_device.h"
#include "runtime/profile/inspect_dir.h"
#include "tests/unit/nrt_init_fixture.h"
#include "tests/unit/nrt_profile.h"

struct inspected {
	struct inspect_dir *dir;
	unsigned ntffs, neffs; /* that were reported */
	uint64_t bytes;	       /* of all of them together */
};

static inline int inspected_added(void *ctx, const char *name, const char *type, uint64_t bytes)
{
	struct inspected *s = ctx;
	char path[600];
	struct stat st;

	snprintf(path, sizeof(path), "%s/%s", s->dir->path, name);
	if (stat(path, &st) < 0 ? errno == ENOENT : (uint64_t)st.st_size != bytes)
		return -1; /* and is not counted */
	s->ntffs += !strcmp(type, "ntff");
	s->neffs += !strcmp(type, "neff");
	s->bytes += bytes;
	return 0;
}

static inline NRT_STATUS inspected_open(struct inspected *s, bool on_fail)
{
	const struct inspect_dir_wish dir = {.base = "base",
		.instance_id = "i-0123456789abcdef0",
		.time_ns = 1,
		.on_fail = on_fail};

	*s = (struct inspected){0};
	return inspect_dir_open(__func__, &dir, &s->dir);
}

/* In the directory that there is. */
static inline NRT_STATUS inspected_start(struct inspected *s, struct inspect_device_wish w)
{
	NRT_STATUS status = api_enter(__func__);

	if (status)
		return status;
	w.dir = s->dir;
	if (!w.added) {
		w.added = inspected_added;
		w.ctx = s;
	}
	status = inspect_device_begin(&w);
	api_leave();
	return status;
}

static inline NRT_STATUS inspected_begin_with(struct inspected *s, struct inspect_device_wish w)
{
	NRT_STATUS status = inspected_open(s, !w.enabled);

	return status ? status : inspected_start(s, w);
}

static inline NRT_STATUS inspected_begin(
	struct inspected *s, nrt_inspect_device_profile_mode_t mode, bool on_fail)
{
	return inspected_begin_with(
		s, (struct inspect_device_wish){
			   .mode = mode, .enabled = mode != 0, .on_fail = on_fail});
}

/* dir stays until inspected_done. */
static inline int inspected_end(void)
{
	WANT_STATUS(api_enter(__func__), 0);
	(void)inspect_device_end(__func__, true);
	api_leave();
	return 0;
}

/* Takes the files away, too. */
static inline void inspected_done(struct inspected *s)
{
	inspect_dir_close(s->dir);
	s->dir = NULL;
	scratch_remove_tree("base");
}

/* How many files and directories there are, but . and .. */
static inline int inspected_entries(const struct inspected *s)
{
	return scratch_entries(s->dir->path);
}

static inline struct scratch_path inspected_path(const struct inspected *s, const char *name)
{
	struct scratch_path p;

	snprintf(p.s, sizeof(p.s), "%s/%s", s->dir->path, name);
	return p;
}

static inline uint64_t hash_of(const char *text)
{
	return XXH3_128bits(text, strlen(text)).high64;
}

static inline struct scratch_path session_file(const struct inspected *s, int nc, int number)
{
	char name[80];

	snprintf(name, sizeof(name), "profile_nc_%d_session_%d.ntff", nc, number);
	return inspected_path(s, name);
}

/* suffix: "", "_2", ... */
static inline struct scratch_path run_file(
	const struct inspected *s, const char *text, int nc, const char *suffix)
{
	char name[80];

	snprintf(name, sizeof(name), "%" PRIu64 "_instid_0_vnc_%d%s.ntff", hash_of(text), nc,
		suffix);
	return inspected_path(s, name);
}

/* Is the model's file there, byte for byte? */
static inline bool has_model_file(const struct inspected *s, const char *text)
{
	char name[80];
	_cleanup_free_ char *data = NULL;
	size_t size;

	snprintf(name, sizeof(name), "neff_%" PRIu64 ".neff", hash_of(text));
	return file_read(inspected_path(s, name).s, SIZE_MAX / 2, &data, &size) == 0 &&
	       size == strlen(text) && !memcmp(data, text, size);
}

/* So many runs on physical cores in the profile; -1 when it is none, or does not name the model. */
static inline int runs_in(const char *path, const char *model)
{
	struct ntff n;
	int runs = -1;

	if (ntff_load(&n, path) == 0 && (!model || ntff_graph(&n, model, 0)))
		runs = (int)ntff_runs(&n, model);
	ntff_done(&n);
	return runs;
}

static inline int inspected_enter(const struct place *p)
{
	WANT(enter_linked(p, "INFO") == 0);
	WANT_STATUS(init(), 0);
	WANT(chdir(p->scratch.dir) == 0);
	return 0;
}

#define INSPECT_TEST(name, fn, options)           \
	TEST(name, "[nrt][inspect_device][vdev]") \
	{                                         \
		if (device_lacks())               \
			SKIP(device_lacks());     \
		with_device(fn, options);         \
	}

#endif
