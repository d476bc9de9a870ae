/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inspect_spool_fault_test.c - a session's thread while memory is short: what it does for a signal handler allocates
 * nothing, and a begin or an end for which an allocation fails leaves nothing behind that it should not.
 *
 * The preload library of tests/shim/faults.c must come before the C library, so the work is done by hidden tests in a process
 * of their own, which the tests proper start.
 */
#include <dlfcn.h>
#include <limits.h>
#include <sys/resource.h>

#include "runtime/base/file.h"
#include "runtime/profile/inspect_config.h"
#include "runtime/profile/inspect_feed.h"
#include "runtime/profile/inspect_spool.h"
#include "runtime/record/header.h"
#include "runtime/record/merge.h"
#include "runtime/trace/trace.h"
#include "tests/shim/shim.h"
#include "tests/unit/inspect_spool_dir.h"
#include "tests/unit/programs.h"
#include "tests/unit/scratch.h"

static struct {
	void (*arm)(unsigned long n, bool and_all_behind);
	bool (*happened)(void);
} faults;

static bool find_faults(void)
{
	void *arm = dlsym(RTLD_DEFAULT, "faults_arm");
	void *happened = dlsym(RTLD_DEFAULT, "faults_happened");

	memcpy(&faults.arm, &arm, sizeof(arm));
	memcpy(&faults.happened, &happened, sizeof(happened));
	return arm && happened;
}

/* Runs the hidden test with this tag; kind: alloc or file. */
static void run_hidden_with(const char *tag, const char *kind)
{
	char unit[PATH_MAX] = "", preload[600], fault[40];
	struct scratch s;
	char *argv[] = {"/usr/bin/env", fault, "NTRACE_FAULT_PROGRAM=unit",
		"ASAN_OPTIONS=verify_asan_link_order=0:detect_leaks=1", preload, unit, (char *)tag,
		NULL};

#ifdef __SANITIZE_THREAD__
	SKIP("a build without ThreadSanitizer, which allows no library before it");
#endif
	if (!program_exists("tests/faults.so"))
		SKIP("tests/faults.so");
	REQUIRE(readlink("/proc/self/exe", unit, sizeof(unit) - 1) > 0);
	REQUIRE(scratch_make(&s));
	snprintf(preload, sizeof(preload), "LD_PRELOAD=%s", program_path("tests/faults.so").s);
	snprintf(fault, sizeof(fault), "NTRACE_FAULT=%s:0", kind);
	CHECK_EQ(program_run(argv, scratch_path(&s, "log").s, NULL), 0);
	_cleanup_free_ char *said = program_text(scratch_path(&s, "log").s);
	test_info("%s", said);
	CHECK(said && strstr(said, "1 passed, 0 failed, 0 skipped"));
	scratch_remove(&s);
}

static void run_hidden(const char *tag)
{
	run_hidden_with(tag, "alloc");
}

static void emit(uint32_t nc, unsigned spans)
{
	for (unsigned i = 0; i < spans; i++) {
		struct trace_span s = trace_start(nc, TRACE_EXECUTE_API, NULL, 0);

		trace_stop(&s, 0, NULL, 0);
	}
}

/* ---- the flush ---------------------------------------------------------------------------- */

/* The name of the recording is `rec` in the scratch directory. */
static int open_feed(const struct scratch *s, struct inspect_feed **ret)
{
	const struct rec_session session = {.session_id = 1};
	const struct rec_header_info info = {.producer = "test", .session = &session};
	struct scratch_path path = scratch_path(s, "rec");
	struct nrt_sys_trace_config events;
	struct inspect_feed_wish wish = {.path = path.s,
		.events = &events,
		.cpu_util = true,
		.host_memory = true,
		.period_ms = 10};
	_cleanup_free_ char *header = NULL;
	int rc = rec_header_text(&info, &header);

	sys_trace_config_defaults(&events);
	wish.header = header;
	return rc < 0 ? rc : inspect_feed_open(&wish, ret);
}

/* ended: does it say that nothing is missing behind its end? */
static uint64_t merged(const struct scratch *s, bool *ret_ended)
{
	struct merge_result m;
	char *text = NULL;
	int rc = merge_recording(
		scratch_path(s, "rec").s, NULL, &(struct merge_options){.leaf = true}, &m, &text);
	uint64_t events = rc == 0 && m.output_count ? m.outputs[0].events : 0;

	*ret_ended = rc == 0 && m.ended;
	merge_result_free(&m);
	free(text);
	return events;
}

static uint64_t merged_events(const struct scratch *s)
{
	bool ended;

	return merged(s, &ended);
}

TEST("inspect spool: flush without allocations", "[.spool_flush]")
{
	struct inspect_feed *f;
	struct kept_fd lock;
	struct scratch s;
	uint64_t lost;

	REQUIRE(find_faults() && scratch_make(&s));
	for (uint32_t nc = 0; nc < 60; nc++)
		trace_core_touch(nc);
	REQUIRE_EQ(open_feed(&s, &f), 0);
	emit(0, 100);
	REQUIRE_EQ(inspect_feed_tick(f), 0);
	/* Rings that the reader has not seen, names, more than a block. */
	for (uint32_t nc = 60; nc < 90; nc++)
		trace_core_touch(nc);
	for (uint32_t nc = 0; nc < 90; nc++)
		emit(nc, 400);
	(void)trace_intern("a name that is new");
	for (int round = 0; round < 3; round++) {
		faults.arm(1, true);
		int rc = inspect_feed_flush(f) < 0 ? -1 : 0;
		if (rc == 0)
			rc = inspect_feed_file(f, "file.ntff", "ntff", 12);
		bool happened = faults.happened();
		faults.arm(0, false);
		CHECK_EQ(rc, 0);
		CHECK(!happened);
		emit(7, 1000);
	}
	/* All but the last 1,000 are with the kernel already. */
	CHECK_EQ(merged_events(&s), 2 * (100 + 90 * 400 + 2 * 1000));
	CHECK_EQ(inspect_feed_end(f, REC_END_ASKED, &lock, &lost), 0);
	kept_fd_close(&lock);
	CHECK_EQ(lost, 0);
	CHECK_EQ(merged_events(&s), 2 * (100 + 90 * 400 + 3 * 1000));
	scratch_remove(&s);
}

TEST("inspect spool: what a signal handler waits for allocates nothing, whatever there is to write",
	"[inspect][spool]")
{
	run_hidden("[.spool_flush]");
}

/* ---- the end of what is recorded ---------------------------------------------------------- */

#define LAST_SPANS 100

/* A recording with events of a ring that its end sees first; the n-th call of the end fails. */
static void end_with_fault(const struct scratch *s, uint32_t nc, unsigned long n,
	bool and_all_behind, bool *ret_hit, int *ret_rc)
{
	struct inspect_feed *f;
	struct kept_fd lock = {.fd = -1};
	uint64_t lost;

	REQUIRE_EQ(open_feed(s, &f), 0);
	REQUIRE_EQ(inspect_feed_tick(f), 0);
	trace_core_touch(nc);
	emit(nc, LAST_SPANS);
	faults.arm(n, and_all_behind);
	*ret_rc = inspect_feed_end(f, REC_END_ASKED, &lock, &lost);
	*ret_hit = faults.happened();
	faults.arm(0, false);
	kept_fd_close(&lock);
}

TEST("inspect spool: an end without memory", "[.spool_end_memory]")
{
	struct scratch s;
	bool ended, hit = false;
	int rc = -1;

	REQUIRE(find_faults() && scratch_make(&s));
	end_with_fault(&s, 0, 1, true, &hit, &rc);
	CHECK(hit && rc == 0);
	CHECK_EQ(merged(&s, &ended), 2 * LAST_SPANS);
	CHECK(ended);
	scratch_remove(&s);
}

TEST("inspect spool: a session that ends when no memory is left has all that was recorded, and is "
     "said to be whole",
	"[inspect][spool]")
{
	run_hidden("[.spool_end_memory]");
}

TEST("inspect spool: an end with calls to the system that fail", "[.spool_end_calls]")
{
	bool hit = true;

	REQUIRE(find_faults());
	for (uint32_t n = 1; hit && n < TRACE_MAX_NC / 2; n++) {
		for (int behind = 0; behind < 2; behind++) {
			struct scratch s;
			uint64_t events;
			bool ended;
			int rc = -1;

			REQUIRE(scratch_make(&s));
			end_with_fault(&s, 2 * n + (uint32_t)behind, n, behind, &hit, &rc);
			events = merged(&s, &ended);
			test_info("call %u%s: %d, %llu events, %s", n, behind ? "+" : "", rc,
				(unsigned long long)events, ended ? "ended" : "not ended");
			CHECK(events == 2 * LAST_SPANS || (!ended && rc < 0));
			CHECK(hit || (rc == 0 && ended && events == 2 * LAST_SPANS));
			scratch_remove(&s);
		}
	}
	CHECK(!hit);
}

TEST("inspect spool: a session that could not read its last events is not said to be whole",
	"[inspect][spool]")
{
	run_hidden_with("[.spool_end_calls]", "file");
}

/* No address is left for a ring that the reader has not seen. */
static int end_without_addresses(void *arg)
{
	struct rlimit before, none = {.rlim_cur = 1};
	struct inspect_feed *f;
	struct kept_fd lock = {.fd = -1};
	uint64_t lost;
	bool ended;
	int rc;

	if (getrlimit(RLIMIT_AS, &before) || open_feed(arg, &f) || inspect_feed_tick(f))
		return 1;
	none.rlim_max = before.rlim_max;
	trace_core_touch(1);
	emit(1, LAST_SPANS);
	if (setrlimit(RLIMIT_AS, &none))
		return 2;
	rc = inspect_feed_end(f, REC_END_ASKED, &lock, &lost);
	(void)setrlimit(RLIMIT_AS, &before);
	kept_fd_close(&lock);
	return rc == -ENOMEM && merged(arg, &ended) == 0 && !ended ? 0 : 3;
}

TEST("inspect spool: a session whose last rings could not be mapped is not said to be whole",
	"[inspect][spool]")
{
	struct scratch s;

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
	SKIP("a build without sanitizers, which need addresses themselves");
#endif
	REQUIRE(scratch_make(&s));
	CHECK_EQ(scratch_child(end_without_addresses, &s), 0);
	scratch_remove(&s);
}

/* ---- begin and end ------------------------------------------------------------------------ */

#define MOST_ALLOCATIONS 3000ul

static int descriptors(void)
{
	return scratch_entries("/proc/self/fd");
}

/* Is all gone but, after an end that failed, the recording? */
static bool is_clean(const struct scratch *s, bool may_keep)
{
	int n = scratch_entries(s->dir);

	if (may_keep && access(scratch_path(s, "recording").s, F_OK) == 0)
		n--;
	return n == 0 && !trace_on();
}

static void remove_files(const struct scratch *s)
{
	static const char *const names[] = {
		"ntrace.pb", "trace_info.pb", "cpu_util.pb", "host_mem.pb"};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		unlink(scratch_path(s, names[i]).s);
}

TEST("inspect spool: allocations that fail", "[.spool_faults]")
{
	struct scratch s;
	struct nrt_sys_trace_config events;
	struct inspect_dir dir;
	const struct inspect_info info = {.session_id = 1, .activities = INSPECT_ALL};
	const struct inspect_spool_wish wish = {.dir = &dir,
		.events = &events,
		.cpu_util = true,
		.host_memory = true,
		.info = &info};
	bool more = true, failed_end = false, failed_begin = false;
	int before = 0;

	REQUIRE(find_faults() && scratch_make(&s));
	REQUIRE(spool_dir_open(&dir, s.dir));
	sys_trace_config_defaults(&events);
	trace_core_touch(0);
	for (unsigned long n = 1; more && n < MOST_ALLOCATIONS; n++) {
		struct inspect_spool *spool = NULL;
		struct inspect_outcome o = {.error = 0};

		faults.arm(n, false);
		int rc = inspect_spool_open(&wish, &spool);
		if (rc == 0)
			emit(0, 10);
		if (rc == 0 && inspect_spool_add_file(spool, "a.ntff", "ntff", 1) < 0)
			CHECK(faults.happened());
		if (rc == 0)
			(void)inspect_spool_finish(spool, REC_END_ASKED, &o);
		more = faults.happened();
		faults.arm(0, false);
		failed_begin |= rc < 0;
		failed_end |= rc == 0 && o.error < 0;
		CHECK(more || (rc == 0 && o.error == 0));
		CHECK(rc == 0 || !spool);
		remove_files(&s);
		CHECK(is_clean(&s, o.error < 0));
		if (o.error < 0)
			scratch_remove_tree(scratch_path(&s, "recording").s);
		if (n == 5)
			before = descriptors();
	}
	CHECK(!more && failed_begin && failed_end);
	CHECK_EQ(descriptors(), before);
	spool_dir_close(&dir);
	scratch_remove(&s);
}

TEST("inspect spool: an allocation that fails leaves no session, or one whose recording stays",
	"[inspect][spool]")
{
	run_hidden("[.spool_faults]");
}
