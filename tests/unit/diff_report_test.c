/* SPDX-License-Identifier: Apache-2.0 */
/*
 * diff_report_test.c - what a comparison counts: events, open spans, durations, losses; and how the
 * files are found and read.
 */
#include <sys/stat.h>

#include "agent/output/trace_read.h"
#include "proto/neuron_trace.pb-c.h"
#include "runtime/base/file.h"
#include "tests/shim/shim.h"
#include "tests/unit/diff_fixture.h"

static const struct diff_name *find_name(const struct diff *d, const char *name)
{
	for (size_t i = 0; i < d->name_count; i++)
		if (!strcmp(d->names[i].name, name))
			return &d->names[i];
	return NULL;
}

TEST("diff: events are counted by name and phase, and spans without an end", "[diff]")
{
	struct trace a, b;

	make_trace(&a);
	make_trace(&b);
	b.count--;
	struct answer r = compare_traces(&a, &b, &exact);
	const struct diff_name *n = find_name(&r.d, "nrt_execute");
	REQUIRE(n != NULL);
	CHECK_EQ(n->count[0][PHASE_STOP], 2);
	CHECK_EQ(n->count[1][PHASE_STOP], 1);
	CHECK(diff_counts_differ(n, PHASE_STOP));
	CHECK(!diff_counts_differ(n, PHASE_START));
	CHECK_EQ(n->open[0], 0);
	CHECK_EQ(n->open[1], 1);
	CHECK(diff_open_differ(n));
	n = find_name(&r.d, "nrt_tensor_write");
	REQUIRE(n != NULL);
	CHECK_EQ(n->open[0], 1);
	CHECK(!diff_open_differ(n));
	n = find_name(&r.d, "MEM_BUF_COPY64");
	REQUIRE(n != NULL);
	CHECK(n->driver);
	CHECK(!find_name(&r.d, "nrt_tensor_read")->driver);
	diff_free(&r.d);
}

/* ---- durations ----------------------------------------------------------------------------- */

static const struct {
	size_t n;
	long long p50, p90, p99; /* of the durations 1..n; -1: withheld */
} stats[] = {
	{1, -1, -1, -1},
	{2, 1, -1, -1},
	{9, 5, -1, -1},
	{10, 5, 9, -1},
	{99, 50, 90, -1},
	{100, 50, 90, 99},
	{101, 51, 91, 100},
	{1000, 500, 900, 990},
};

TEST("diff: percentiles are exact, by nearest rank, and withheld when there is too little",
	"[diff]")
{
	uint64_t ns[1000];

	for (size_t i = 0; i < 1000; i++)
		ns[i] = i + 1;
	for (size_t i = 0; i < sizeof(stats) / sizeof(*stats); i++) {
		struct durations d = {ns, stats[i].n, 1000};
		struct duration_stats s = duration_stats(&d);

		test_info("n %zu", stats[i].n);
		CHECK_EQ(s.n, stats[i].n);
		CHECK_EQ(s.ns[STAT_MIN], 1);
		CHECK_EQ(s.ns[STAT_MAX], stats[i].n);
		CHECK_EQ(s.has[STAT_P50] ? (long long)s.ns[STAT_P50] : -1, stats[i].p50);
		CHECK_EQ(s.has[STAT_P90] ? (long long)s.ns[STAT_P90] : -1, stats[i].p90);
		CHECK_EQ(s.has[STAT_P99] ? (long long)s.ns[STAT_P99] : -1, stats[i].p99);
	}
	struct durations none = {0};
	CHECK(!duration_stats(&none).has[STAT_MIN]);
}

TEST("diff: durations may deviate by the tolerance and no more", "[diff]")
{
	static const struct {
		uint64_t b; /* against 40 in A */
		double tolerance;
		bool same;
	} rows[] = {{40, 0.1, true}, {44, 0.1, true}, {45, 0.1, false}, {36, 0.1, true},
		{35, 0.1, false}, {80, 1, true}, {81, 1, false}, {41, 0.001, false}};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct diff_options options = {false, rows[i].tolerance};
		struct trace a, b;

		make_trace(&a);
		make_trace(&b);
		a.e[LAST].duration = 40;
		b.e[EXECUTE_STOP].duration = b.e[LAST].duration = rows[i].b;
		test_info("%llu against 40, tolerance %g", (unsigned long long)rows[i].b,
			rows[i].tolerance);
		struct answer r = compare_traces(&a, &b, &options);
		CHECK_EQ(r.same, rows[i].same);
		CHECK(!r.d.differs);
		diff_free(&r.d);
		r = compare_traces(&a, &b, &structure);
		CHECK(r.same);
		diff_free(&r.d);
	}
}

/* ---- losses -------------------------------------------------------------------------------- */

struct ledger_text {
	const char *stage, *counter, *kind;
	uint64_t value;
};

static bool write_info(const char *path, const struct ledger_text *rows, size_t n, bool ended)
{
	Ntff__NtraceInfo m = NTFF__NTRACE_INFO__INIT;
	Ntff__NtraceLedgerRow row[8], *list[8];
	uint8_t buf[1024];

	for (size_t i = 0; i < n; i++) {
		ntff__ntrace_ledger_row__init(&row[i]);
		row[i].stage = (char *)rows[i].stage;
		row[i].counter = (char *)rows[i].counter;
		row[i].kind = (char *)rows[i].kind;
		row[i].value = rows[i].value;
		list[i] = &row[i];
	}
	m.n_ledger = n;
	m.ledger = list;
	m.ended = ended;
	m.data_version = 2;
	return write_file(path, buf, ntff__ntrace_info__pack(&m, buf));
}

static const struct {
	const char *name;
	struct ledger_text row;
	bool same, same_structure;
} ledger_changes[] = {
	{"lost", {"kernel", "ring_full", "lost", 3}, false, false},
	{"noted", {"merge", "clamped", "note", 1}, false, false},
	{"noted time", {"merge", "clamped_ns", "note", 1}, false, true},
	{"came in", {"kernel", "entered", "in", 9}, true, true},
	{"cost", {"agent", "cpu_ns", "note", 9}, true, true},
};

TEST("diff: of durations that differ, the largest change is printed first", "[diff]")
{
	struct diff_side side[2] = {{"a", true}, {"b", true}};
	_cleanup_free_ char *text = NULL;
	struct trace a, b;
	size_t size;

	make_trace(&a);
	make_trace(&b);
	b.e[COPY_STOP].duration += 5; /* MEM_BUF_COPY64, before the other */
	b.e[7].duration += 700;	      /* of the tensor that is read */
	struct answer r = compare_traces(&a, &b, &exact);
	FILE *f = open_memstream(&text, &size);
	REQUIRE(r.rc == 0 && f);
	diff_print_text(f, side, &r.d, &exact);
	REQUIRE(fclose(f) == 0);
	const char *large = strstr(text, "  nrt_tensor_read "),
		   *small = strstr(text, "  MEM_BUF_COPY64 ");
	CHECK(large && small && large < small);
	diff_free(&r.d);
}

/* Directories a and b, each with the same trace. */
static bool make_pair(struct scratch *s, struct scratch_path *ret_a, struct scratch_path *ret_b)
{
	struct trace t;

	if (!scratch_make(s))
		return false;
	make_trace(&t);
	*ret_a = scratch_path(s, "a/ntrace.pb");
	*ret_b = scratch_path(s, "b/ntrace.pb");
	return mkdir(scratch_path(s, "a").s, 0755) == 0 &&
	       mkdir(scratch_path(s, "b").s, 0755) == 0 && write_trace(&t, ret_a->s) &&
	       write_trace(&t, ret_b->s);
}

TEST("diff: rows of the ledger that tell of losses are compared", "[diff]")
{
	struct scratch s;
	struct scratch_path a, b;

	REQUIRE(make_pair(&s, &a, &b));
	for (size_t i = 0; i < sizeof(ledger_changes) / sizeof(*ledger_changes); i++) {
		struct ledger_text zero = ledger_changes[i].row;

		zero.value = 0;
		for (unsigned absent = 0; absent < 2; absent++) { /* the row is 0, or not there */
			CHECK(write_info(
				scratch_path(&s, "a/trace_info.pb").s, &zero, !absent, true));
			CHECK(write_info(scratch_path(&s, "b/trace_info.pb").s,
				&ledger_changes[i].row, 1, true));
			test_info("%s, absent %u", ledger_changes[i].name, absent);
			struct answer r = compare_paths(a.s, b.s, false, &exact);
			CHECK_EQ(r.rc, 0);
			CHECK_EQ(r.same, ledger_changes[i].same);
			CHECK_EQ(r.d.loss_count, !ledger_changes[i].same);
			if (r.d.loss_count) {
				CHECK_EQ(r.d.losses[0].value[0], 0);
				CHECK_EQ(r.d.losses[0].value[1],
					zero.value + ledger_changes[i].row.value);
			}
			diff_free(&r.d);
			r = compare_paths(a.s, b.s, false, &structure);
			CHECK_EQ(r.same, ledger_changes[i].same_structure);
			diff_free(&r.d);
			r = compare_paths(b.s, a.s, true, &exact);
			CHECK(r.same);
			diff_free(&r.d);
		}
	}
	scratch_remove(&s);
}

static bool write_session(const char *path, int64_t period, const char *cores, char *activity)
{
	Ntff__NtraceInfo m = NTFF__NTRACE_INFO__INIT;
	Ntff__NtraceSession session = NTFF__NTRACE_SESSION__INIT;
	uint8_t buf[1024];

	session.session_id = period; /* no setting */
	session.period_ms = period;
	session.event_cores = (char *)cores;
	session.n_activities = 1;
	session.activities = &activity;
	m.session = &session;
	m.ended = true;
	m.data_version = 2;
	return write_file(path, buf, ntff__ntrace_info__pack(&m, buf));
}

TEST("diff: what two sessions were asked to record is compared", "[diff]")
{
	static const struct {
		int64_t period;
		const char *cores;
		char *activity;
		size_t differ;
		const char *text;
	} others[] = {
		{10, "0-1", "cpu_util", 0, NULL},
		{20, "0-1", "cpu_util", 1, "period_ms        A 10  B 20\n"},
		{10, "0", "cpu_util", 1, "event_cores      A 0-1  B 0\n"},
		{20, "0-1", "host_memory", 2, "activities       A cpu_util  B host_memory\n"},
	};
	struct scratch s;
	struct scratch_path a, b;

	REQUIRE(make_pair(&s, &a, &b));
	const struct diff_side side[2] = {{a.s, false}, {b.s, false}};
	CHECK(write_session(scratch_path(&s, "a/trace_info.pb").s, 10, "0-1", "cpu_util"));
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
		_cleanup_free_ char *text = NULL;
		size_t size;

		CHECK(write_session(scratch_path(&s, "b/trace_info.pb").s, others[i].period,
			others[i].cores, others[i].activity));
		struct answer r = compare_paths(a.s, b.s, false, &exact);
		FILE *f = open_memstream(&text, &size);
		REQUIRE(r.rc == 0 && f);
		diff_print_text(f, side, &r.d, &exact);
		REQUIRE(fclose(f) == 0);
		test_info("%s", text);
		CHECK_EQ(r.d.setting_count, others[i].differ);
		CHECK_EQ(r.same, !others[i].differ);
		CHECK(!others[i].text || strstr(text, others[i].text));
		diff_free(&r.d);
	}
	/* Of a recorder there are none. */
	CHECK(write_info(scratch_path(&s, "b/trace_info.pb").s, NULL, 0, true));
	struct answer r = compare_paths(a.s, b.s, false, &exact);
	CHECK(r.rc == 0 && r.same);
	diff_free(&r.d);
	scratch_remove(&s);
}

TEST("diff: a recorder that died, a missing and a damaged trace_info.pb are told", "[diff]")
{
	struct scratch s;
	struct scratch_path a, b;

	REQUIRE(make_pair(&s, &a, &b));
	struct scratch_path info = scratch_path(&s, "b/trace_info.pb");

	struct answer r = compare_paths(a.s, b.s, false, &exact);
	CHECK(r.same); /* neither has one */
	diff_free(&r.d);
	CHECK(write_info(info.s, NULL, 0, true));
	r = compare_paths(a.s, b.s, false, &exact);
	CHECK(!r.same);
	CHECK(r.d.info_missing);
	diff_free(&r.d);
	CHECK(write_info(scratch_path(&s, "a/trace_info.pb").s, NULL, 0, false));
	r = compare_paths(a.s, b.s, false, &exact);
	CHECK(!r.same);
	CHECK(!r.d.ended[0] && r.d.ended[1]);
	diff_free(&r.d);
	CHECK(write_file(info.s, "\x0a\xff", 2));
	r = compare_paths(a.s, b.s, false, &exact);
	CHECK_EQ(r.rc, -EBADMSG);
	diff_free(&r.d);
	scratch_remove(&s);
}

/* ---- damage -------------------------------------------------------------------------------- */

TEST("diff: a trace cut anywhere but between records is damaged, and flips do no harm", "[diff]")
{
	_cleanup_free_ char *data = NULL;
	size_t size = 0, whole = 0;
	struct scratch s;
	struct trace t;

	REQUIRE(scratch_make(&s));
	make_trace(&t);
	struct scratch_path a = scratch_path(&s, "a"), b = scratch_path(&s, "b");
	REQUIRE(write_trace(&t, a.s));
	REQUIRE_EQ(file_read(a.s, 1 << 20, &data, &size), 0);
	for (size_t cut = 0; cut < size; cut++) {
		REQUIRE(write_file(b.s, data, cut));
		struct answer r = compare_paths(a.s, b.s, true, &exact);
		CHECK(r.rc == 0 || r.rc == -EBADMSG);
		CHECK(!r.same);
		if (r.rc == 0)
			CHECK_EQ(r.d.events[1], whole++);
		else
			CHECK(r.fault_at <= cut);
		diff_free(&r.d);
	}
	CHECK_EQ(whole, t.count);
	for (size_t bit = 0; bit < size * 8; bit++) {
		data[bit / 8] = (char)(data[bit / 8] ^ 1 << bit % 8);
		REQUIRE(write_file(b.s, data, size));
		struct answer r = compare_paths(a.s, b.s, true, bit % 2 ? &exact : &structure);
		CHECK(r.rc == 0 || r.rc == -EBADMSG);
		diff_free(&r.d);
		data[bit / 8] = (char)(data[bit / 8] ^ 1 << bit % 8);
	}
	scratch_remove(&s);
}

/* ---- reading ------------------------------------------------------------------------------- */

TEST("trace_read: records of any size come as they were written", "[diff]")
{
	static const size_t sizes[] = {0, 1, 300000, 5, 262144, 262140, 1000000, 2};
	static struct ntrace_event_view e, got;
	struct pb_buf b = {0};
	struct trace_read r;
	struct scratch s;

	REQUIRE(scratch_make(&s));
	_cleanup_free_ char *text = calloc(1, 1000001);
	REQUIRE(text != NULL);
	memset(text, 'x', 1000000);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		e.hint = (struct pb_str){text, (uint32_t)sizes[i]};
		e.unknown = (struct pb_str){"", 0};
		e.timestamp = i + 1;
		CHECK_EQ(ntrace_event_append(&b, &e), 0);
	}
	struct scratch_path path = scratch_path(&s, "x");
	CHECK(write_file(path.s, b.data, b.len));
	REQUIRE_EQ(trace_read_open(&r, path.s), 0);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		CHECK_EQ(trace_read_next(&r, &got), 1);
		CHECK_EQ(got.hint.len, sizes[i]);
		CHECK_EQ(got.timestamp, i + 1);
		CHECK(!sizes[i] || (got.hint.s[0] == 'x' && got.hint.s[sizes[i] - 1] == 'x'));
	}
	CHECK_EQ(trace_read_offset(&r), b.len);
	CHECK_EQ(trace_read_next(&r, &got), 0);
	trace_read_close(&r);
	pb_buf_free(&b);
	scratch_remove(&s);
}

TEST("trace_read: a length beyond the limit or the file is damage, without memory for it", "[diff]")
{
	static const struct {
		const char *bytes;
		size_t size;
	} rows[] = {{"\xff\xff\xff\xff\x07", 5}, {"\xff\xff\xff\x0f", 4}, {"\x80", 1},
		{"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 10}};
	static struct ntrace_event_view e;
	struct scratch s;

	REQUIRE(scratch_make(&s));
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct scratch_path path = scratch_path(&s, "x");
		struct trace_read r;

		CHECK(write_file(path.s, rows[i].bytes, rows[i].size));
		REQUIRE_EQ(trace_read_open(&r, path.s), 0);
		CHECK_EQ(trace_read_next(&r, &e), -EBADMSG);
		CHECK_EQ(trace_read_offset(&r), 0);
		CHECK(r.cap <= 1u << 20);
		trace_read_close(&r);
	}
	scratch_remove(&s);
}

TEST("trace_set: the traces of a directory stand in order of their numbers", "[diff]")
{
	static const char *const dirs[] = {
		"h_pid_1000", "h_pid_999", "h_pid_20", "h_pid_20_2", "recording", ".hidden"};
	static const char *const want[] = {"h_pid_20", "h_pid_20_2", "h_pid_999", "h_pid_1000"};
	struct trace_set set;
	struct scratch s;

	REQUIRE(scratch_make(&s));
	CHECK_EQ(trace_set_find(s.dir, &set), -ENODATA);
	trace_set_free(&set);
	for (size_t i = 0; i < sizeof(dirs) / sizeof(*dirs); i++) {
		char name[64];

		mkdir(scratch_path(&s, dirs[i]).s, 0755);
		snprintf(name, sizeof(name), "%s/ntrace.pb", dirs[i]);
		if (strcmp(dirs[i], "recording") != 0)
			CHECK(write_file(scratch_path(&s, name).s, "", 0));
	}
	REQUIRE_EQ(trace_set_find(s.dir, &set), 0);
	CHECK_EQ(set.count, 4);
	CHECK(!set.is_file);
	for (size_t i = 0; i < 4 && i < set.count; i++)
		CHECK(strstr(set.files[i], want[i]) &&
			!strncmp(
				strstr(set.files[i], want[i]) + strlen(want[i]), "/ntrace.pb", 11));
	trace_set_free(&set);
	REQUIRE_EQ(trace_set_find(scratch_path(&s, "h_pid_999").s, &set), 0);
	CHECK_EQ(set.count, 1);
	CHECK(!set.is_file);
	trace_set_free(&set);
	REQUIRE_EQ(trace_set_find(scratch_path(&s, "h_pid_999/ntrace.pb").s, &set), 0);
	CHECK(set.is_file);
	trace_set_free(&set);
	CHECK_EQ(trace_set_find(scratch_path(&s, "none").s, &set), -ENOENT);
	trace_set_free(&set);
	scratch_remove(&s);
}

TEST("trace_set: sessions in layouts with a time are found from the base, and nothing else so deep",
	"[diff]")
{
	static const char *const leaves[] = {"h_pid_7/20261130_133337_553",
		"h_pid_7/20261130_133337_553_2", "h-8/1796045617851584882", "h_pid_9/2026",
		"h_pid_9/a20261130_133337_553", "h_pid_9/20261130_133337_553/20261130_133337_554"};
	struct trace_set set;
	struct scratch s;

	REQUIRE(scratch_make(&s));
	for (size_t i = 0; i < sizeof(leaves) / sizeof(*leaves); i++) {
		char name[96];

		snprintf(name, sizeof(name), "%s/ntrace.pb", leaves[i]);
		for (char *at = name; (at = strchr(at, '/')); *at++ = '/') {
			*at = '\0';
			mkdir(scratch_path(&s, name).s, 0755);
		}
		CHECK(write_file(scratch_path(&s, name).s, "", 0));
	}
	REQUIRE_EQ(trace_set_find(s.dir, &set), 0);
	REQUIRE_EQ(set.count, 3);
	CHECK(strstr(set.files[0], "h-8/1796045617851584882/ntrace.pb"));
	CHECK(strstr(set.files[1], "h_pid_7/20261130_133337_553/ntrace.pb"));
	CHECK(strstr(set.files[2], "h_pid_7/20261130_133337_553_2/ntrace.pb"));
	trace_set_free(&set);
	scratch_remove_tree(s.dir);
}
