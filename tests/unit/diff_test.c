/* SPDX-License-Identifier: Apache-2.0 */
/*
 * diff_test.c - two traces are the same when they mean the same, and any other change is seen and named.
 */
#include "agent/output/canon.h"
#include "tests/shim/shim.h"
#include "tests/unit/diff_fixture.h"

TEST("diff: a trace whose times, ids, threads and objects are named otherwise is the same",
	"[diff]")
{
	struct trace a, b;

	make_trace(&a);
	make_trace(&b);
	for (size_t i = 0; i < b.count; i++) {
		struct ntrace_event_view *e = &b.e[i];

		e->timestamp += 86400000000000u;
		e->thread_id = e->thread_id == 100 ? 7 : 100;
		e->id = e->tracking_id = e->id * 3 + 1000;
		e->parent_id = e->parent_id ? e->parent_id * 3 + 1000 : 0;
		set_attr(e, "model_id", "77");
		set_attr(e, "mem_handle", "123");
		set_attr(e, "handle", "123");
		set_attr(e, "address", "0x222000");
		set_attr(e, "link.id", "1033");
		set_attr(e, "cpu_timestamp_ns", "1700086400000000094");
	}
	set_attr(&b.e[5], "tensor_id", "40");
	set_attr(&b.e[11], "tensor_id", "30");
	set_attr(&b.e[8], "nc_timestamp_ns", "105000");
	set_attr(&b.e[RUN_STOP], "nc_timestamp_ns", "105010");

	struct answer r = compare_traces(&a, &b, &exact);
	CHECK_EQ(r.rc, 0);
	CHECK_STR(r.fields, "");
	CHECK(r.same);
	CHECK_EQ(r.d.events[0], a.count);
	CHECK_EQ(r.d.events[1], a.count);
	diff_free(&r.d);
}

TEST("diff: the order of attributes within an event means nothing", "[diff]")
{
	struct trace a, b;

	make_trace(&a);
	make_trace(&b);
	struct pb_attr *attrs = b.e[COPY_STOP].attrs, first = attrs[0];
	attrs[0] = attrs[2];
	attrs[2] = first;
	struct answer r = compare_traces(&a, &b, &exact);
	CHECK(r.same);
	diff_free(&r.d);
}

/* ---- every change is seen ------------------------------------------------------------------ */

static void later(struct trace *t)
{
	t->e[COPY_STOP].timestamp++;
}
static void longer(struct trace *t)
{
	t->e[COPY_STOP].duration++;
}
static void third_thread(struct trace *t)
{
	t->e[COPY_STOP].thread_id = 300;
}
static void another_id(struct trace *t)
{
	t->e[COPY_STOP].id = 4711;
}
static void id_of_another(struct trace *t)
{
	t->e[COPY_STOP].tracking_id = 12;
}
static void no_parent(struct trace *t)
{
	t->e[COPY_STOP].parent_id = 0;
}
static void other_parent(struct trace *t)
{
	t->e[COPY_STOP].parent_id = 11;
}
static void other_status(struct trace *t)
{
	t->e[COPY_STOP].status = 9;
}
static void other_core(struct trace *t)
{
	t->e[COPY_STOP].nc_idx = 1;
}
static void other_device(struct trace *t)
{
	t->e[COPY_STOP].nd_idx = 1;
}
static void other_type(struct trace *t)
{
	t->e[COPY_STOP].event_type = 1001;
}
static void other_hint(struct trace *t)
{
	t->e[COPY_STOP].hint = str("MEM_FREE");
}
static void other_data(struct trace *t)
{
	t->e[COPY_STOP].data = UINT64_MAX;
}
static void other_field_15(struct trace *t)
{
	t->e[COPY_STOP].type = 1;
}
static void instant(struct trace *t)
{
	t->e[COPY_STOP].phase = PHASE_INSTANT;
}
static void unknown_phase(struct trace *t)
{
	t->e[COPY_STOP].phase = 99;
}
static void with_sequence(struct trace *t)
{
	t->e[COPY_STOP].has_nrta_seq_id = true;
}
static void other_value(struct trace *t)
{
	set_attr(&t->e[COPY_STOP], "result", "0");
}
static void other_handle(struct trace *t)
{
	set_attr(&t->e[COPY_STOP], "handle", "6");
}
static void handle_is_text(struct trace *t)
{
	set_attr(&t->e[COPY_STOP], "handle", "5x");
}
static void other_key(struct trace *t)
{
	t->e[COPY_STOP].attrs[2].key = str("zesult");
}
static void one_more(struct trace *t)
{
	attr(t, &t->e[COPY_STOP], "errno", "EIO");
}
static void one_less(struct trace *t)
{
	t->e[COPY_STOP].attr_count--;
}
static void unknown_field(struct trace *t)
{
	t->e[COPY_STOP].unknown = (struct pb_str){"\xa0\x06\x01", 3};
}

/* Is every one of these variations of one event found at that event, with this field named? */
static const struct {
	const char *name;
	void (*vary)(struct trace *t);
	const char *fields;
	bool time; /* does not matter to a comparison of structure */
} variations[] = {
	{"later", later, "timestamp", true},
	{"longer", longer, "duration", true},
	{"a third thread", third_thread, "thread", false},
	{"an id that nobody has", another_id, "id", false},
	{"the id of another", id_of_another, "tracking_id", false},
	{"no parent", no_parent, "parent_id", false},
	{"another parent", other_parent, "parent_id", false},
	{"another status", other_status, "status", false},
	{"another core", other_core, "nc_idx", false},
	{"another device", other_device, "nd_idx", false},
	{"another type", other_type, "event_type", false},
	{"another hint", other_hint, "hint", false},
	{"other data", other_data, "data", false},
	{"another field 15", other_field_15, "type", false},
	{"an instant", instant, "phase", false},
	{"an unknown phase", unknown_phase, "phase", false},
	{"a sequence number", with_sequence, "nrta_seq_id", false},
	{"another value", other_value, "result", false},
	{"another handle than before", other_handle, "handle", false},
	{"a handle that is no number", handle_is_text, "handle", false},
	{"another key", other_key, "result zesult", false},
	{"one attribute more", one_more, "errno", false},
	{"one attribute less", one_less, "result", false},
	{"an unknown field", unknown_field, "unknown_fields", false},
};

TEST("diff: any change of an event is found there, and the field is named", "[diff]")
{
	for (size_t i = 0; i < sizeof(variations) / sizeof(*variations); i++) {
		struct trace a, b;

		make_trace(&a);
		make_trace(&b);
		variations[i].vary(&b);
		for (unsigned turn = 0; turn < 2; turn++) {
			struct answer r = compare_traces(turn ? &b : &a, turn ? &a : &b, &exact);

			test_info("%s, turn %u", variations[i].name, turn);
			CHECK_EQ(r.rc, 0);
			CHECK(!r.same);
			CHECK_EQ(r.d.first[0].index, COPY_STOP + 1);
			CHECK_EQ(r.d.first[1].index, COPY_STOP + 1);
			if (turn == 0)
				CHECK_STR(r.fields, variations[i].fields);
			diff_free(&r.d);
		}
	}
}

TEST("diff: without times, changes of time alone do not count and others do", "[diff]")
{
	for (size_t i = 0; i < sizeof(variations) / sizeof(*variations); i++) {
		struct trace a, b;

		make_trace(&a);
		make_trace(&b);
		variations[i].vary(&b);
		struct answer r = compare_traces(&a, &b, &structure);
		test_info("%s", variations[i].name);
		CHECK_EQ(r.rc, 0);
		CHECK_EQ(r.same, variations[i].time);
		diff_free(&r.d);
	}
}

/* ---- structure ----------------------------------------------------------------------------- */

static void swap(struct trace *t, size_t i, size_t k)
{
	struct ntrace_event_view e = t->e[i];

	t->e[i] = t->e[k];
	t->e[k] = e;
}

static const struct {
	const char *name;
	size_t i, k;
	bool same;
} swaps[] = {
	{"two threads", EXECUTE_STOP, 5, true},
	{"two threads at stops", 6, 7, true},
	{"within a thread", COPY_STOP, EXECUTE_STOP, false},
	{"the device and the thread that collected its run", RUN_STOP, 12, true},
	{"the device's side with itself", 8, RUN_STOP, false},
};

TEST("diff: without times, order counts within a thread and within a core only", "[diff]")
{
	for (size_t i = 0; i < sizeof(swaps) / sizeof(*swaps); i++) {
		struct trace a, b;

		make_trace(&a);
		make_trace(&b);
		swap(&b, swaps[i].i, swaps[i].k);
		test_info("%s", swaps[i].name);
		struct answer r = compare_traces(&a, &b, &structure);
		CHECK_EQ(r.rc, 0);
		CHECK_STR(r.fields[0] ? "differs" : "same", swaps[i].same ? "same" : "differs");
		CHECK_EQ(r.same, swaps[i].same);
		diff_free(&r.d);
		r = compare_traces(&a, &b, &exact);
		CHECK(!r.same);
		diff_free(&r.d);
	}
}

TEST("diff: without times, readings of clocks have no part", "[diff]")
{
	struct trace a, b;

	make_trace(&a);
	make_trace(&b);
	put(&b, 130, 100, TRACE_TIMESTAMP_SYNC, PHASE_INSTANT, 99);
	put(&b, 131, 0, 0, PHASE_INSTANT, 1ull << 62 | 1)->hint = str("clock_step");
	put(&b, 132, 100, 0, PHASE_START, 1ull << 63 | 9)->hint = str("BAR_READ");
	put(&b, 133, 100, 0, PHASE_STOP, 1ull << 63 | 9)->hint = str("BAR_READ");
	attr(&a, &a.e[EXECUTE_STOP], "driver.ioctls", "3");
	attr(&b, &b.e[EXECUTE_STOP], "driver.ioctls", "4");
	struct answer r = compare_traces(&a, &b, &structure);
	CHECK(r.same);
	CHECK_EQ(r.d.events[0], a.count - 1);
	diff_free(&r.d);
	r = compare_traces(&a, &b, &exact);
	CHECK(!r.same);
	diff_free(&r.d);
}

/* Threads that start at once, each on its core: `order` is which of them come first. */
static void make_racing(struct trace *t, const uint32_t order[3], uint32_t first_thread)
{
	memset(t, 0, sizeof(*t));
	put(t, 0, first_thread, TRACE_TENSOR_READ, PHASE_INSTANT, 1);
	for (unsigned i = 0; i < 3; i++) {
		uint32_t thread = first_thread + 1 + i, core = order[i];

		put(t, 10 + i, thread, TRACE_EXECUTE_API, PHASE_START, 2 + core)->nc_idx = core;
		put(t, 20 + i, thread, TRACE_EXECUTE_API, PHASE_STOP, 2 + core)->nc_idx = core;
		if (core == 2)
			put(t, 30, thread, TRACE_TENSOR_READ, PHASE_INSTANT, 9)->nc_idx = core;
	}
}

TEST("diff: without times, threads are paired by what they do", "[diff]")
{
	struct trace a, b;

	make_racing(&a, (const uint32_t[]){0, 1, 2}, 100);
	make_racing(&b, (const uint32_t[]){2, 0, 1}, 500);
	struct answer r = compare_traces(&a, &b, &structure);
	CHECK_STR(r.fields, "");
	CHECK(r.same);
	diff_free(&r.d);
	b.e[b.count - 1].nc_idx = 5; /* one that has no like any more is known by its first core */
	r = compare_traces(&a, &b, &structure);
	CHECK(!r.same);
	CHECK_STR(r.fields, "nc_idx");
	diff_free(&r.d);
	r = compare_traces(&a, &b, &exact);
	CHECK(!r.same);
	diff_free(&r.d);
}

TEST("diff: of several threads that differ, the first event counts", "[diff]")
{
	struct trace a, b;

	make_trace(&a);
	make_trace(&b);
	b.e[LAST].status = 5; /* thread 100 */
	b.e[7].status = 5;    /* thread 200, earlier in A and, with what follows there, last in B */
	b.e[b.count++] = b.e[7];
	b.e[b.count++] = b.e[11];
	memmove(&b.e[11], &b.e[12], (b.count - 12) * sizeof(*b.e));
	memmove(&b.e[7], &b.e[8], (b.count - 8) * sizeof(*b.e));
	b.count -= 2;
	struct answer r = compare_traces(&a, &b, &structure);
	CHECK_EQ(r.d.first[0].index, 8);
	CHECK_STR(r.d.first[0].name, "nrt_tensor_read");
	CHECK_STR(r.fields, "status");
	diff_free(&r.d);
	r = compare_traces(&b, &a, &structure); /* now it is the one that is met later */
	CHECK_EQ(r.d.first[0].index, LAST - 1);
	CHECK_EQ(r.d.first[1].index, LAST + 1);
	CHECK_STR(r.d.first[0].name, "nrt_execute");
	diff_free(&r.d);
}

/* ---- ends ---------------------------------------------------------------------------------- */

TEST("diff: a trace that goes on after the other's end differs from there", "[diff]")
{
	const struct diff_options *modes[] = {&exact, &structure};

	for (unsigned m = 0; m < 4; m++) {
		struct trace a, b;
		unsigned shorter = m / 2;

		make_trace(&a);
		make_trace(&b);
		(shorter ? &b : &a)->count -= 2;
		struct answer r = compare_traces(&a, &b, modes[m % 2]);
		test_info("mode %u, shorter %u", m % 2, shorter);
		CHECK_EQ(r.rc, 0);
		CHECK(!r.same);
		CHECK(!r.d.first[shorter].present);
		CHECK(r.d.first[!shorter].present);
		CHECK_EQ(r.d.first[!shorter].index, LAST);
		diff_free(&r.d);
	}
}

TEST("diff: an empty trace is the same as an empty one only", "[diff]")
{
	struct trace a, none = {.count = 0};

	make_trace(&a);
	struct answer r = compare_traces(&none, &none, &exact);
	CHECK(r.same);
	diff_free(&r.d);
	r = compare_traces(&none, &a, &exact);
	CHECK(!r.same);
	CHECK_EQ(r.d.first[1].index, 1);
	diff_free(&r.d);
}

TEST("canon: ids are remembered up to a limit, the last ones exactly", "[diff]")
{
	static struct canon_event made;
	static struct trace t;
	struct canon c;
	uint64_t last = CANON_MEMORY + 100;

	canon_init(&c, false);
	t.count = 0;
	struct ntrace_event_view *e = put(&t, 0, 100, TRACE_EXECUTE_API, PHASE_START, 1);
	for (uint64_t id = 1; id <= last; id++) {
		e->id = e->tracking_id = id * 1000003;
		REQUIRE_EQ(canon_make(&c, e, &made), 0);
	}
	CHECK_EQ(c.ids[CANON_SPAN].numbers.count, CANON_MEMORY);
	/* The oldest that is still known, then one that is not. */
	for (uint64_t id = 101; id >= 100; id--) {
		e->id = e->tracking_id = id * 1000003;
		REQUIRE_EQ(canon_make(&c, e, &made), 0);
		for (uint32_t i = 0; i < made.count; i++)
			if (made.fields[i].key.len == 2 && !memcmp(made.fields[i].key.s, "id", 2))
				CHECK_EQ(made.fields[i].lo, id == 101 ? 101 : last + 1);
	}
	canon_free(&c);
}
