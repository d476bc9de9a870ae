/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_profiles_test.c - device profiles as files of a recording: how the recorder takes them in, and copies that
 * do not fit.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "agent/collect/profiles.h"
#include "runtime/base/profile_dir.h"
#include "runtime/record/device_sum.h"
#include "runtime/record/rec_cut.h"
#include "runtime/record/rec_summary.h"
#include "tests/shim/shim.h"
#include "tests/unit/recording_fixture.h"

#define LARGE ((size_t)3 << 20) /* more than is read at once */

static bool put_file(const char *dir, const char *name, size_t size)
{
	char path[PATH_MAX];
	_cleanup_free_ char *bytes = malloc(size + 1);
	_cleanup_close_ int fd = -1;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	for (size_t i = 0; bytes && i < size; i++)
		bytes[i] = (char)(i * 7 + i / 1000);
	return bytes && fd >= 0 && file_write_all(fd, bytes, size) == 0;
}

/* A recording with profiles of these sizes, of pids 1, 2, ...; begun and not ended. */
static bool make(struct fixture *fx, const size_t *sizes, int count)
{
	struct profiles p;

	if (!fx_open(fx) || profiles_open(&p, fx_path(fx, REC_DIR).s) < 0)
		return false;
	for (int i = 0; i < count; i++) {
		char name[64];

		snprintf(name, sizeof(name), PROFILE_FILE_FORMAT, i + 1, 0u, (uint64_t)0);
		if (!put_file(p.dir, name, sizes[i]))
			return false;
	}
	return profiles_collect(&p, fx_path(fx, REC_DIR).s, fx->w) == 0 && !p.dir;
}

static void end(struct fixture *fx)
{
	struct rec_end e = {0};

	fx_frame(fx, REC_END, REC_SOURCE_RECORDER, &e, sizeof(e));
	CHECK_EQ(rec_writer_close(fx->w), 0);
	fx->w = NULL;
}

TEST("device profiles: of any size they are files of the recording with size and checksum",
	"[record]")
{
	static const size_t sizes[] = {0, 1, LARGE, LARGE + 1};
	struct rec_summary s;
	struct fixture fx;

	REQUIRE(make(&fx, sizes, 4));
	end(&fx);
	CHECK(access(fx_path(&fx, REC_DIR "/" PROFILES_DIR).s, F_OK) < 0);
	CHECK_EQ(rec_summary_make(fx.dir.dir, &s), 0);
	CHECK_EQ(s.profile_count, 4);
	for (uint32_t i = 0; i < 4 && i < s.profile_count; i++) {
		CHECK_EQ(s.profiles[i].frame.index, i);
		CHECK_EQ(s.profiles[i].frame.pid, i + 1);
		CHECK_EQ(s.profiles[i].frame.bytes, sizes[i]);
		CHECK(!summary_profile_fault(&s.profiles[i]));
	}
	CHECK(s.profile_count == 4 && s.profiles[2].frame.check != s.profiles[3].frame.check);
	CHECK(s.ended && !s.behind_end);
	rec_summary_free(&s);
	scratch_remove(&fx.dir);
}

TEST("device profiles: none is no frame, and the directory must be the recorder's own", "[record]")
{
	struct rec_summary s;
	struct profiles p;
	struct fixture fx;

	REQUIRE(make(&fx, NULL, 0));
	REQUIRE_EQ(profiles_open(&p, fx_path(&fx, REC_DIR).s), 0);
	struct profiles second;
	CHECK_EQ(profiles_open(&second, fx_path(&fx, REC_DIR).s), -EEXIST);
	CHECK(!second.dir);
	profiles_close(&second);
	CHECK(put_file(p.dir, "1_nc_0_session_0.ntff", 9));
	profiles_close(&p); /* a recording that failed */
	end(&fx);
	CHECK_EQ(scratch_entries(fx_path(&fx, REC_DIR).s), 1);
	CHECK_EQ(rec_summary_make(fx.dir.dir, &s), 0);
	CHECK_EQ(s.types[REC_DEVICE_PROFILE].frames, 0);
	rec_summary_free(&s);
	scratch_remove(&fx.dir);
}

TEST("device profiles: without their directory the recording is whole", "[record]")
{
	struct rec_summary s;
	struct profiles p;
	struct fixture fx;

	REQUIRE(make(&fx, NULL, 0));
	REQUIRE_EQ(profiles_open(&p, fx_path(&fx, REC_DIR).s), 0);
	REQUIRE(rmdir(p.dir) == 0);
	CHECK_EQ(profiles_collect(&p, fx_path(&fx, REC_DIR).s, fx.w), 0);
	CHECK_EQ(p.failed, 1);
	CHECK_EQ(p.error, -ENOENT);
	CHECK(!p.dir);
	end(&fx);
	CHECK_EQ(rec_summary_make(fx.dir.dir, &s), 0);
	CHECK(s.ended);
	CHECK_EQ(s.types[REC_DEVICE_PROFILE].frames, 0);
	rec_summary_free(&s);
	scratch_remove(&fx.dir);
}

TEST("device profiles: a cut without room for one leaves nothing", "[record]")
{
	static const size_t sizes[] = {10, LARGE};
	struct rec_cut_options options = {0};
	struct rec_cut_result r;
	struct rlimit limit, small;
	struct fixture fx;

	REQUIRE(make(&fx, sizes, 2));
	end(&fx);
	REQUIRE(mkdir(fx_path(&fx, "cut").s, 0700) == 0);
	REQUIRE(getrlimit(RLIMIT_FSIZE, &limit) == 0);
	small = (struct rlimit){LARGE - 1, limit.rlim_max};
	void (*old)(int) = signal(SIGXFSZ, SIG_IGN);
	REQUIRE(setrlimit(RLIMIT_FSIZE, &small) == 0);
	int rc = rec_cut(fx.dir.dir, fx_path(&fx, "cut/" REC_DIR).s, &options, &r);
	REQUIRE(setrlimit(RLIMIT_FSIZE, &limit) == 0);
	signal(SIGXFSZ, old);
	CHECK_EQ(rc, -EFBIG);
	CHECK_EQ(scratch_entries(fx_path(&fx, "cut").s), 0);
	CHECK_EQ(rec_cut(fx.dir.dir, fx_path(&fx, "cut/" REC_DIR).s, &options, &r), 0);
	CHECK_EQ(r.profiles_kept, 2);
	CHECK_EQ(scratch_entries(fx_path(&fx, "cut/" REC_DIR).s), 3);
	scratch_remove(&fx.dir);
}
