/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inspect_spool_test.c - the thread of an inspect session: what happens is in the files, however the session ends.
 */
#include <errno.h>
#include <pthread.h>
#include <unistd.h>

#include "proto/neuron_trace.pb-c.h"
#include "runtime/profile/inspect_spool.h"
#include "runtime/record/merge.h"
#include "runtime/trace/trace.h"
#include "tests/shim/shim.h"
#include "tests/unit/inspect_spool_session.h"
#include "tests/unit/scratch.h"

/* ---- in order ----------------------------------------------------------------------------- */

static int whole_session(void *arg)
{
	struct place *p = arg;
	struct inspect_outcome o;

	WANT(begin(p) == 0);
	emit(p, 1000);
	nap(70);
	emit(p, 500);
	WANT(finish(p, &o) == 0);
	WANT(o.error == 0 && !o.is_kept && o.events == 3000 && o.lost == 0 && o.samples > 2);
	WANT(!trace_on());
	return 0;
}

TEST("inspect spool: a session leaves four files in its directory, and nothing else",
	"[inspect][spool]")
{
	struct place p;

	REQUIRE(place_open(&p));
	CHECK_EQ(scratch_child(whole_session, &p), 0);
	REQUIRE(read_files(&p));
	CHECK_EQ(p.trace.count, 3000);
	CHECK_EQ(strange_names(&p), 0);
	CHECK(size_of(&p, "cpu_util.pb") > 0);
	CHECK(size_of(&p, "host_mem.pb") > 0);
	const Ntff__NtraceInfo *i = p.trace_info;
	CHECK(i->ended && i->virtual_device && i->session);
	CHECK_STR(i->end, "asked");
	CHECK_EQ(i->session_id, 7);
	CHECK_EQ(i->arch, 2);
	CHECK_EQ(i->logical_nc_size, 1);
	CHECK_EQ(i->data_version, 2);
	CHECK_EQ(i->n_collected_profiles, 3);
	CHECK_EQ(ledger_row(&p, "runtime", "emitted"), 3000);
	CHECK_EQ(ledger_row(&p, "runtime", "delivered"), 3000);
	CHECK(ledger_row(&p, "agent", "cpu_ns") > 0);
	CHECK(is_blind_to(&p, "the program recorded itself"));
	CHECK(!is_blind_to(&p, "hook was active"));
	CHECK_STR(i->session->event_cores, "0-3");
	CHECK_STR(i->session->device_cores, "none");
	CHECK_STR(i->session->directory, p.scratch.dir);
	CHECK_STR(i->session->layout, "flat");
	CHECK_EQ(i->session->period_ms, 20);
	REQUIRE_EQ(i->session->n_activities, 3);
	CHECK_STR(i->session->activities[0], "system_profile");
	CHECK_STR(i->session->activities[2], "cpu_util");
	CHECK_EQ(i->session->n_off, 0);
	place_close(&p);
}

static int nothing_on(void *arg)
{
	static const struct rec_session_off off[] = {
		{"system_profile", "for a reason"}, {"cpu_util", "another"}, {NULL, NULL}};
	struct place *p = arg;
	struct inspect_outcome o;

	p->wish.events = NULL;
	p->wish.cpu_util = p->wish.host_memory = false;
	p->info.activities = 0;
	p->info.off = off;
	WANT(begin(p) == 0);
	WANT(!trace_on());
	nap(50);
	WANT(finish(p, &o) == 0);
	WANT(o.events == 0 && o.samples == 0);
	return 0;
}

TEST("inspect spool: what is off leaves an empty file, and trace_info says why", "[inspect][spool]")
{
	struct place p;

	REQUIRE(place_open(&p));
	CHECK_EQ(scratch_child(nothing_on, &p), 0);
	REQUIRE(read_files(&p));
	CHECK_EQ(strange_names(&p), 0);
	CHECK_EQ(size_of(&p, "cpu_util.pb"), 0);
	CHECK_EQ(size_of(&p, "host_mem.pb"), 0);
	CHECK_EQ(size_of(&p, "ntrace.pb"), 0);
	CHECK_STR(why_off(&p, "system_profile"), "for a reason");
	CHECK_STR(why_off(&p, "cpu_util"), "another");
	place_close(&p);
}

static int only_samples(void *arg)
{
	struct place *p = arg;
	struct inspect_outcome o;

	p->wish.events = NULL;
	p->wish.host_memory = false;
	p->wish.period_ms = 10;
	WANT(begin(p) == 0);
	nap(300);
	WANT(finish(p, &o) == 0);
	WANT(o.samples >= 2);
	return 0;
}

TEST("inspect spool: the CPUs are sampled also where nothing else is", "[inspect][spool]")
{
	struct place p;

	REQUIRE(place_open(&p));
	CHECK_EQ(scratch_child(only_samples, &p), 0);
	REQUIRE(read_files(&p));
	CHECK(size_of(&p, "cpu_util.pb") > 0);
	CHECK_EQ(size_of(&p, "host_mem.pb"), 0);
	place_close(&p);
}

static int filtered(void *arg)
{
	struct place *p = arg;
	struct inspect_outcome o;

	memset(p->events.nc, 0, sizeof(p->events.nc));
	p->events.nc[1] = p->events.nc[3] = true;
	p->events.type[TRACE_GENERIC] = false;
	WANT(begin(p) == 0);
	emit(p, 400);
	trace_instant(1, TRACE_GENERIC, NULL, 0);
	WANT(finish(p, &o) == 0);
	WANT(o.events == 400);
	return 0;
}

TEST("inspect spool: only the types and cores that are wanted come in", "[inspect][spool]")
{
	struct place p;

	REQUIRE(place_open(&p));
	CHECK_EQ(scratch_child(filtered, &p), 0);
	REQUIRE(read_files(&p));
	for (size_t i = 0; i < p.trace.count; i++)
		CHECK(p.trace.events[i].nc_idx % 2 == 1);
	CHECK_STR(p.trace_info->session->event_cores, "1,3");
	REQUIRE_EQ(p.trace_info->session->n_event_types_off, 1);
	CHECK_STR(p.trace_info->session->event_types_off[0], trace_event_info(TRACE_GENERIC)->name);
	place_close(&p);
}

static int beside_others(void *arg)
{
	struct place *p = arg;
	struct inspect_outcome o;
	struct ctl_reader *api;

	touch_cores();
	WANT(trace_reader_open(CTL_SUB_API, &api) == 0);
	WANT(trace_subscribe(CTL_SUB_API, NULL, 0) == 0);
	emit(p, 100); /* before the session: not its */
	WANT(begin(p) == 0);
	emit(p, 100);
	WANT(finish(p, &o) == 0);
	emit(p, 100);
	WANT(o.events == 200 && o.lost == 0);
	WANT(ctl_reader_poll(api, false, clock_boot().ns, NULL, NULL, NULL) == 600);
	ctl_reader_close(api);
	return 0;
}

TEST("inspect spool: another subscriber gets all of his, and the ledger balances",
	"[inspect][spool]")
{
	struct place p;

	REQUIRE(place_open(&p));
	CHECK_EQ(scratch_child(beside_others, &p), 0);
	REQUIRE(read_files(&p));
	CHECK_EQ(ledger_row(&p, "runtime", "emitted"),
		ledger_row(&p, "runtime", "delivered") + ledger_row(&p, "runtime", "filtered") +
			ledger_row(&p, "runtime", "unread"));
	CHECK_EQ(ledger_row(&p, "runtime", "delivered"), 200);
	place_close(&p);
}

/* ---- files of others ---------------------------------------------------------------------- */

static void *add_many(void *arg)
{
	struct inspect_spool *s = arg;

	for (int i = 0; i < 100; i++)
		if (inspect_spool_add_file(s, "one_of_many.ntff", "ntff", 1) < 0)
			return arg;
	return NULL;
}

static int with_files(void *arg)
{
	struct place *p = arg;
	pthread_t threads[4];
	struct inspect_outcome o;
	void *failed;

	WANT(begin(p) == 0);
	WANT(inspect_spool_add_file(p->spool, "a.ntff", "ntff", 4711) == 0);
	WANT(inspect_spool_add_file(p->spool, "b.neff", "neff", 12) == 0);
	for (int i = 0; i < 4; i++)
		WANT(pthread_create(&threads[i], NULL, add_many, p->spool) == 0);
	for (int i = 0; i < 4; i++)
		WANT(pthread_join(threads[i], &failed) == 0 && !failed);
	WANT(finish(p, &o) == 0);
	return 0;
}

TEST("inspect spool: each file that is added becomes a row", "[inspect][spool]")
{
	struct place p;

	REQUIRE(place_open(&p));
	CHECK_EQ(scratch_child(with_files, &p), 0);
	REQUIRE(read_files(&p));
	REQUIRE_EQ(p.trace_info->n_collected_profiles, 405);
	const Ntff__NtraceDataFile *a = p.trace_info->collected_profiles[3];
	CHECK_STR(a->name, "a.ntff");
	CHECK_STR(a->type, "ntff");
	CHECK_EQ(a->bytes, 4711);
	CHECK_STR(p.trace_info->collected_profiles[4]->name, "b.neff");
	place_close(&p);
}

/* ---- taking back -------------------------------------------------------------------------- */

static int dropped(void *arg)
{
	struct place *p = arg;

	WANT(begin(p) == 0);
	emit(p, 100);
	inspect_spool_drop(p->spool);
	WANT(!trace_on());
	WANT(begin(p) == 0); /* nothing is in its way */
	inspect_spool_drop(p->spool);
	inspect_spool_drop(NULL);
	return 0;
}

TEST("inspect spool: a session that is taken back leaves nothing", "[inspect][spool]")
{
	struct place p;

	REQUIRE(place_open(&p));
	CHECK_EQ(scratch_child(dropped, &p), 0);
	CHECK_EQ(scratch_entries(p.scratch.dir), 0);
	place_close(&p);
}

static int nowhere(void *arg)
{
	struct place *p = arg;

	p->dir.work = "/nonexistent/directory";
	WANT(begin(p) == -ENOENT);
	WANT(!trace_on());
	return 0;
}

TEST("inspect spool: where nothing can be written no session begins", "[inspect][spool]")
{
	struct place p;

	REQUIRE(place_open(&p));
	CHECK_EQ(scratch_child(nowhere, &p), 0);
	CHECK_EQ(scratch_entries(p.scratch.dir), 0);
	place_close(&p);
}

static int into_null(void *arg)
{
	struct place *p = arg;
	struct inspect_outcome o;

	p->dir.is_null = true;
	p->dir.work = NULL;
	WANT(begin(p) == 0);
	WANT(!trace_on());
	WANT(inspect_spool_add_file(p->spool, "a.ntff", "ntff", 1) == 0);
	nap(30);
	WANT(finish(p, &o) == 0);
	WANT(o.error == 0 && o.events == 0);
	return 0;
}

TEST("inspect spool: with /dev/null as the directory nothing is written", "[inspect][spool]")
{
	struct place p;

	REQUIRE(place_open(&p));
	CHECK_EQ(scratch_child(into_null, &p), 0);
	CHECK_EQ(scratch_entries(p.scratch.dir), 0);
	place_close(&p);
}

/* ---- a recording that is kept ------------------------------------------------------------- */

static int keeps(void *arg)
{
	struct place *p = arg;
	struct inspect_outcome o;

	setenv("NTRACE_KEEP_RECORDING", "1", 1);
	WANT(begin(p) == 0);
	emit(p, 300);
	nap(50);
	WANT(finish(p, &o) == 0 && o.is_kept);
	return 0;
}

static bool same_file(const struct place *p, const char *a, const char *b)
{
	_cleanup_free_ char *x = NULL, *y = NULL;
	size_t x_size, y_size;

	return file_read(scratch_path(&p->scratch, a).s, 1u << 24, &x, &x_size) == 0 &&
	       file_read(scratch_path(&p->scratch, b).s, 1u << 24, &y, &y_size) == 0 &&
	       x_size == y_size && !memcmp(x, y, x_size);
}

TEST("inspect spool: the recording that was kept gives the same bytes again", "[inspect][spool]")
{
	static const char *const names[] = {
		"ntrace.pb", "trace_info.pb", "cpu_util.pb", "host_mem.pb"};
	struct merge_result m;
	struct place p;
	char *text = NULL, again[64];

	REQUIRE(place_open(&p));
	CHECK_EQ(scratch_child(keeps, &p), 0);
	struct scratch_path to = scratch_path(&p.scratch, "again");
	REQUIRE_EQ(merge_recording(scratch_path(&p.scratch, "recording").s, to.s,
			   &(struct merge_options){0}, &m, &text),
		0);
	REQUIRE_EQ(m.output_count, 1);
	CHECK(m.balanced);
	const char *leaf = strrchr(m.outputs[0].dir, '/') + 1;
	for (size_t i = 0; i < 4; i++) {
		snprintf(again, sizeof(again), "again/%s/%s", leaf, names[i]);
		CHECK(same_file(&p, names[i], again));
	}
	merge_result_free(&m);
	place_close(&p);
}
