/* SPDX-License-Identifier: Apache-2.0 */
/*
 * profile_build_test.c - which records are a model's, against a device that knows; clocks that begin anew; files that are
 * larger than what is to spare.
 */
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "runtime/profile/serialize.h"
#include "tests/shim/shim.h"
#include "tests/unit/nrt_init_fixture.h"
#include "tests/unit/nrt_profile.h"

/* ---- cutting ------------------------------------------------------------------------------ */

#define MAX_WINDOWS 40u
#define MAX_RECORDS 4000u

static uint64_t draw(uint64_t *state, uint64_t below)
{
	*state = *state * 6364136223846793005ull + 1442695040888963407ull;
	return (*state >> 33) % below;
}

/* What a device did: runs one after another on a clock that is reset now and then, and a ring that has some records
 * in runs and some between them. */
struct history {
	struct ntff_window windows[MAX_WINDOWS];
	uint32_t window_count;
	struct notification records[MAX_RECORDS];
	bool wanted[MAX_RECORDS]; /* of each record */
	uint32_t count;
};

static void put(struct history *h, uint64_t ps, bool wanted)
{
	if (h->count == MAX_RECORDS)
		return;
	h->records[h->count] = (struct notification){.id = (uint16_t)h->count, .timestamp_ps = ps};
	h->wanted[h->count++] = wanted;
}

/* A ring that is never silent in a run shows every reset.  What is written between two runs is not there before a reset:
 * its time alone would not tell it from a run that comes later. */
static void make_history(struct history *h, uint64_t seed)
{
	uint64_t state = seed, now_ps = 1 + draw(&state, 1000000);
	bool between = false;

	h->window_count = h->count = 0;
	while (h->window_count < 1 + seed % MAX_WINDOWS) {
		struct ntff_window *w = &h->windows[h->window_count++];

		if (draw(&state, 6) == 0 && !between)
			now_ps = draw(&state, now_ps); /* a reset */
		w->wanted = draw(&state, 2);
		w->start_ps = now_ps;
		put(h, now_ps, w->wanted);
		for (uint64_t n = draw(&state, 40); n; n--) {
			now_ps += draw(&state, 3) * 100;
			put(h, now_ps, w->wanted);
		}
		w->end_ps = now_ps;
		now_ps += 1 + draw(&state, 1000);
		between = draw(&state, 3) == 0;
		if (between)
			put(h, now_ps, false);
		now_ps += 1 + draw(&state, 1000);
	}
}

/* The ring in spans of uneven sizes. */
static struct collector_row row_of(
	struct history *h, struct collector_span spans[64], uint64_t seed)
{
	struct collector_row row = {.spans = spans, .count = h->count};
	uint64_t state = seed;

	for (uint32_t at = 0; at < h->count; row.span_count++) {
		uint32_t left = h->count - at;
		uint32_t n = row.span_count == 63 ? left : 1 + (uint32_t)draw(&state, left);

		spans[row.span_count] =
			(struct collector_span){.records = &h->records[at], .count = n};
		at += n;
	}
	return row;
}

static void check_cut(struct history *h, uint64_t seed)
{
	static struct iovec pieces[MAX_RECORDS];
	struct collector_span spans[64];
	const struct collector_row row = row_of(h, spans, seed);
	uint64_t records, again, total = 0;
	uint32_t n = ntff_cut(&row, h->windows, h->window_count, NULL, &again), at = 0;

	REQUIRE_EQ(ntff_cut(&row, h->windows, h->window_count, pieces, &records), n);
	CHECK_EQ(records, again);
	for (uint32_t i = 0; i < n; i++) {
		const struct notification *r = pieces[i].iov_base;

		for (size_t k = 0; k < pieces[i].iov_len / sizeof(*r); k++, total++) {
			while (at < h->count && !h->wanted[at])
				at++;
			REQUIRE(at < h->count);
			REQUIRE(&r[k] == &h->records[at++]);
		}
	}
	while (at < h->count && !h->wanted[at])
		at++;
	CHECK_EQ(at, h->count);
	CHECK_EQ(total, records);
}

TEST("profile build: a model's records are those of its runs, also over resets of the clock",
	"[profile]")
{
	static struct history h;

	for (uint64_t seed = 1; seed <= 3000; seed++) {
		make_history(&h, seed);
		test_info("seed %llu", (unsigned long long)seed);
		check_cut(&h, seed);
	}
}

TEST("profile build: without runs no record is a model's", "[profile]")
{
	const struct notification records[3] = {{.timestamp_ps = 1}, {.timestamp_ps = 5}, {0}};
	struct collector_span span = {.records = records, .count = 3};
	struct collector_row row = {.spans = &span, .span_count = 1, .count = 3};
	const struct ntff_window open = {.start_ps = 5, .end_ps = UINT64_MAX, .wanted = true};
	uint64_t n;

	CHECK_EQ(ntff_cut(&row, NULL, 0, NULL, &n), 0);
	CHECK_EQ(n, 0);
	CHECK_EQ(ntff_cut(&row, &open, 1, NULL, &n), 1); /* a run without an end */
	CHECK_EQ(n, 1);
}

/* ---- what the collector would have given --------------------------------------------------- */

static struct collector_row ring(
	enum notification_kind kind, struct collector_span *spans, uint32_t span_count)
{
	const struct notification_type *t = notification_type(0);
	struct collector_row row = {
		.kind = kind, .spans = spans, .span_count = span_count, .ring_bytes = 4096};

	for (unsigned i = 0; t && t->kind != kind; i++)
		t = notification_type(i);
	row.trace_type = t ? t->trace : 0;
	row.block_type = t ? t->block : 0;
	for (uint32_t i = 0; i < span_count; i++)
		row.count += spans[i].count;
	return row;
}

static struct nrt_model *loaded(const char *text)
{
	nrt_model_t *handle;
	struct object *o;

	if (lib.nrt_load(text, strlen(text), 0, -1, &handle) ||
		object_get_for("test", handle, OBJECT_MODEL, &o))
		return NULL;
	return (struct nrt_model *)o;
}

/* Writes a profile of the data, which stays the caller's. */
static int write_profile(const struct collector_data *data, struct nrt_model *m, bool session)
{
	struct profile_harvest harvest = {.data = *data, .taken = true};
	struct profile_wish wish = {.id = m->id, .session = session, .model = m->number};
	struct profile *p = NULL;

	wish.node = profile_node_of(m);
	WANT(wish.node != NULL);
	WANT_STATUS(profile_build("test", &wish, &harvest, &p), 0);
	WANT(harvest.data.row_count == 0); /* taken over */
	profile_node_put(wish.node);
	WANT_STATUS(profile_write("test", p, "file"), 0);
	p->data = (struct collector_data){0};
	profile_free(p);
	return 0;
}

/* ---- a clock that begins anew -------------------------------------------------------------- */

#define S 1000000000ull /* ns */

/* The device's clock is 50 ppm fast; at the second run it began anew at 1 s. */
static uint64_t device_ps(int era, uint64_t boot_ns)
{
	uint64_t since = boot_ns - (era ? 1000 * S : 100 * S);

	return (era ? 1000 * S : 500000 * S) + since * 1000 + since / 20;
}

static struct collector_sync sync_at(int era, uint64_t boot_ns)
{
	return (struct collector_sync){
		.device_ps = device_ps(era, boot_ns), .boot_ns = boot_ns, .bound_ns = 1000};
}

static struct collector_run run_at(struct nrt_model *m, int era, uint64_t from_ns, uint64_t to_ns)
{
	return (struct collector_run){.exec_id = (uint32_t)era + 1,
		.model_id = m->id,
		.model_number = m->number,
		.model_name = "adder",
		.start_ps = device_ps(era, from_ns),
		.end_ps = device_ps(era, to_ns),
		.started = true,
		.ended = true,
		.host_start_ns = from_ns - 1000,
		.host_end_ns = to_ns + 1000};
}

static void put_pair(struct notification *to, int era, uint64_t from_ns, uint64_t to_ns)
{
	to[0] = (struct notification){.type_phase = NOTE_TYPE_INST_START(0u),
		.subtype = NOTE_START,
		.timestamp_ps = device_ps(era, from_ns)};
	to[1] = (struct notification){.type_phase = NOTE_TYPE_INST_END(0u),
		.subtype = NOTE_END,
		.timestamp_ps = device_ps(era, to_ns)};
}

static int check_two_runs(const uint64_t from_ns[2], const uint64_t to_ns[2])
{
	struct ntff n;
	struct ntff_cursor c;
	struct ntff_item item;
	uint64_t boot, bound;

	WANT(ntff_load(&n, "file") == 0);
	WANT(n.profile.stream_count == 1 && n.info->n_execution_timeline == 2);
	ntff_cursor_open(&c, &n.profile, &n.profile.streams[0]);
	for (int i = 0; i < 2; i++) {
		WANT(ntff_cursor_next(&c, &item) == 1 && item.what == NTFF_INSTRUCTION);
		WANT(item.start_ps == device_ps(i, from_ns[i]));
		WANT(ntff_host_ns(&c, item.era, item.start_ps, &boot, &bound));
		WANT(llabs((int64_t)(boot - from_ns[i])) <= (int64_t)bound && bound < S / 1000);
		WANT(ntff_host_ns(&c, item.era, item.end_ps, &boot, &bound));
		WANT(llabs((int64_t)(boot - to_ns[i])) <= (int64_t)bound && bound < S / 1000);
	}
	WANT(ntff_cursor_next(&c, &item) == 0);
	ntff_cursor_close(&c);
	WANT(!ntff_graph(&n, "adder", 0)->timestamp_info); /* two points do not say it */
	ntff_done(&n);
	return 0;
}

static int clock_anew(void *arg)
{
	static const uint64_t from_ns[2] = {102 * S, 1002 * S}, to_ns[2] = {103 * S, 1003 * S};
	struct place *p = arg;
	struct notification records[4];
	struct collector_span span = {.records = records, .count = 4};
	struct nrt_model *m;

	WANT(enter_linked(p, NULL) == 0);
	WANT_STATUS(init(), 0);
	WANT(chdir(p->scratch.dir) == 0);
	m = loaded(ADD_MODEL);
	WANT(m != NULL);
	struct collector_row row = ring(NOTIFICATION_TRACE, &span, 1);
	struct collector_run runs[2] = {
		run_at(m, 0, from_ns[0], to_ns[0]), run_at(m, 1, from_ns[1], to_ns[1])};
	struct collector_sync syncs[5] = {sync_at(0, 101 * S), sync_at(0, 103 * S + S / 2),
		sync_at(1, 1001 * S), sync_at(1, 1004 * S), sync_at(1, 1005 * S)};
	const struct collector_data data = {.rows = &row,
		.row_count = 1,
		.runs = runs,
		.run_count = 2,
		.syncs = syncs,
		.sync_count = 5,
		.boot_ns_begin = 101 * S,
		.boot_ns_end = 1005 * S};

	for (int i = 0; i < 2; i++)
		put_pair(&records[2 * i], i, from_ns[i], to_ns[i]);
	WANT(write_profile(&data, m, false) == 0);
	WANT(check_two_runs(from_ns, to_ns) == 0);
	object_put(&m->object);
	lib.nrt_close();
	return 0;
}

TEST("profile build: times are within the bound on both sides of a clock that begins anew",
	"[nrt][profile][vdev]")
{
	NEED_VDEV();
	with_device(clock_anew, fixture_device);
}

/* ---- what is missing ------------------------------------------------------------------------ */

struct loss {
	uint64_t lost;
	bool at_least;
	const char *why;
};

static const struct {
	const char *what;
	struct collector_row row;
	struct loss losses[4]; /* a NULL ends them */
} causes[] = {
	{"nothing", {0}, {{0}}},
	{"a full ring", {.lost = 7}, {{7, false, "the ring was full"}}},
	{"one without numbers", {.lost = 7, .doubtful = true}, {{7, true, "the ring was full"}}},
	{"only doubt", {.doubtful = true}, {{0, true, "the device does not count its records"}}},
	{"another ring", {.lost = 9, .replaced = 9, .was_replaced = true},
		{{9, true, "the device has replaced the ring"}}},
	{"both", {.lost = 9, .replaced = 4, .was_replaced = true},
		{{5, false, "the ring was full"}, {4, true, "the device has replaced the ring"}}},
	{"no answer", {.unasked = true}, {{0, true, "the device did not answer"}}},
	{"the limit", {.dropped = 3},
		{{3, false, "more than NTRACE_PROFILE_MAX_MB, or no memory"}}},
	{"all of it",
		{.lost = 9, .replaced = 4, .was_replaced = true, .unasked = true, .dropped = 3},
		{{5, false, "the ring was full"}, {4, true, "the device has replaced the ring"},
			{0, true, "the device did not answer"},
			{3, false, "more than NTRACE_PROFILE_MAX_MB, or no memory"}}},
};

static int check_losses(const struct loss *want)
{
	struct ntff n;
	size_t count = 0;

	WANT(ntff_load(&n, "file") == 0);
	for (; count < 4 && want[count].why; count++) {
		const Ntff__NtffLoss *l;

		WANT(n.info->n_losses > count);
		l = n.info->losses[count];
		WANT(l->lost == want[count].lost && l->at_least == want[count].at_least);
		WANT(!strcmp(l->why, want[count].why));
		WANT(l->trace_type == NTFF__NOTIFICATION_TRACE_TYPE__NOTIFICATION_INSTRUCTION);
		WANT(l->engine_index == 3 && l->nc_idx == 1);
	}
	WANT(n.info->n_losses == count && n.info->partial == (count > 0));
	ntff_done(&n);
	return unlink("file");
}

static int losses(void *arg)
{
	struct place *p = arg;
	struct nrt_model *m;

	WANT(enter_linked(p, NULL) == 0);
	WANT_STATUS(init(), 0);
	WANT(chdir(p->scratch.dir) == 0);
	m = loaded(ADD_MODEL);
	WANT(m != NULL);
	for (size_t i = 0; i < sizeof(causes) / sizeof(causes[0]); i++) {
		struct collector_row row = causes[i].row;
		const struct collector_data data = {.rows = &row, .row_count = 1};

		row.engine = 3;
		row.nc_idx = 1;
		if (write_profile(&data, m, true) || check_losses(causes[i].losses)) {
			dprintf(complaint_fd, "%s\n", causes[i].what);
			return 1;
		}
	}
	object_put(&m->object);
	lib.nrt_close();
	return 0;
}

TEST("profile build: what is missing is told by its cause", "[nrt][profile][vdev]")
{
	NEED_VDEV();
	with_device(losses, fixture_device);
}

static int check_partial(const struct collector_data *data, struct nrt_model *m, bool partial)
{
	struct ntff n;

	WANT(write_profile(data, m, true) == 0);
	WANT(ntff_load(&n, "file") == 0);
	WANT(n.info->partial == partial);
	ntff_done(&n);
	return unlink("file");
}

static int cut_off(void *arg)
{
	struct notification note = {.type_phase = NOTE_TYPE_EXPLICIT_SP, .subtype = NOTE_START};
	struct place *p = arg;
	struct collector_row row = {0};
	struct collector_run run;
	struct collector_data data = {.rows = &row, .row_count = 1, .runs = &run, .run_count = 1};
	struct nrt_model *m;

	WANT(enter_linked(p, NULL) == 0);
	WANT_STATUS(init(), 0);
	WANT(chdir(p->scratch.dir) == 0);
	m = loaded(ADD_MODEL);
	WANT(m != NULL);
	run = run_at(m, 0, 102 * S, 103 * S);
	data.boot_ns_begin = run.host_start_ns;
	WANT(check_partial(&data, m, false) == 0);
	data.boot_ns_begin++;
	WANT(check_partial(&data, m, true) == 0);
	data.boot_ns_begin--;
	row = (struct collector_row){.kind = NOTIFICATION_INFER_STATUS,
		.count = 1,
		.span_count = 1,
		.spans = &(struct collector_span){&note, 1, NULL}};
	WANT(check_partial(&data, m, true) == 0);
	note.subtype = NOTE_END;
	WANT(check_partial(&data, m, false) == 0);
	row = (struct collector_row){0};
	data.run_count = 0;
	WANT(check_partial(&data, m, false) == 0);
	data.runs_dropped = 1;
	WANT(check_partial(&data, m, true) == 0);
	object_put(&m->object);
	lib.nrt_close();
	return 0;
}

TEST("profile build: without the beginning or the end of a run, or without the run, it is partial",
	"[nrt][profile][vdev]")
{
	NEED_VDEV();
	with_device(cut_off, fixture_device);
}

/* ---- much of it --------------------------------------------------------------------------- */

#define SPANS 640u
#define SPAN_RECORDS 16384u /* 160 MiB in all, of one piece of memory */

static long peak_kib(void)
{
	struct rusage usage;

	return getrusage(RUSAGE_SELF, &usage) == 0 ? usage.ru_maxrss : -1;
}

static int large(void *arg)
{
	struct place *p = arg;
	struct notification *records = calloc(SPAN_RECORDS, sizeof(*records));
	struct collector_span *spans = calloc(SPANS, sizeof(*spans));
	struct nrt_model *m;
	struct stat st;
	long before;

	WANT(records && spans);
	WANT(enter_linked(p, NULL) == 0);
	WANT_STATUS(init(), 0);
	WANT(chdir(p->scratch.dir) == 0);
	m = loaded(ADD_MODEL);
	WANT(m != NULL);
	for (uint32_t i = 0; i < SPAN_RECORDS; i++)
		records[i].timestamp_ps = i;
	for (uint32_t i = 0; i < SPANS; i++)
		spans[i] = (struct collector_span){.records = records, .count = SPAN_RECORDS};
	struct collector_row row = ring(NOTIFICATION_TRACE, spans, SPANS);
	const struct collector_data data = {.rows = &row, .row_count = 1};

	before = peak_kib();
	WANT(write_profile(&data, m, true) == 0);
	WANT(stat("file", &st) == 0 && st.st_size > (off_t)SPANS * SPAN_RECORDS * 16);
	WANT(peak_kib() - before < 32 * 1024);
	object_put(&m->object);
	lib.nrt_close();
	free(spans);
	free(records);
	return 0;
}

TEST("profile build: 160 MiB of records go to the file without being copied",
	"[nrt][profile][vdev][slow]")
{
	NEED_VDEV();
	with_device(large, fixture_device);
}
