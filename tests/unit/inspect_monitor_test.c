/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inspect_monitor_test.c - samples of CPUs and memory: their values, their period, and that they are as many as it takes.
 */
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "proto/delimited.h"
#include "proto/neuron_trace.pb-c.h"
#include "runtime/base/kept_fd.h"
#include "runtime/profile/inspect_config.h"
#include "runtime/profile/inspect_feed.h"
#include "runtime/profile/inspect_spool.h"
#include "runtime/record/stored.h"
#include "tests/shim/shim.h"
#include "tests/unit/inspect_spool_dir.h"
#include "tests/unit/programs.h"
#include "tests/unit/recording_fixture.h"

#define MS 1000000ull
#define SECOND (1000 * MS)
#define MAX_SAMPLES 4096

/* ---- what a recording has ----------------------------------------------------------------- */

struct samples {
	struct {
		uint64_t ns, rss;
	} mem[MAX_SAMPLES];
	size_t mems, cpus;
	struct sampler_cpu first, last; /* of the first CPU */
	int64_t period_ms;		/* as the header says */
};

static void take_sample(struct samples *s, const struct rec_frame *f, const uint8_t *payload)
{
	struct rec_mem m;
	struct rec_header h;

	if (f->type == REC_HEADER && rec_header_parse((const char *)payload, f->size, &h) == 0) {
		s->period_ms = h.info.session ? h.info.session->period_ms : 0;
		rec_header_free(&h);
	}
	if (f->type == REC_MEM && s->mems < MAX_SAMPLES) {
		memcpy(&m, payload, sizeof(m));
		s->mem[s->mems].ns = f->time_ns;
		s->mem[s->mems++].rss = m.rss_bytes;
	}
	if (f->type == REC_CPU && f->size >= sizeof(s->last)) {
		memcpy(&s->last, payload, sizeof(s->last));
		if (s->cpus++ == 0)
			s->first = s->last;
	}
}

/* Of a recording that may still be in work. */
static bool read_samples(const char *path, struct samples *ret)
{
	const struct rec_frame *f;
	const uint8_t *payload;
	struct rec_reader *r;

	memset(ret, 0, sizeof(*ret));
	if (rec_reader_open(path, &r) < 0)
		return false;
	while (rec_reader_next(r, &f, &payload) > 0)
		take_sample(ret, f, payload);
	rec_reader_close(r);
	return true;
}

/* ---- the feed, tick by tick ----------------------------------------------------------------- */

#define PERIOD_MS 200u
#define TICKS 10u

static void sleep_until(uint64_t boot_ns)
{
	const struct timespec t = {
		.tv_sec = (time_t)(boot_ns / SECOND), .tv_nsec = (long)(boot_ns % SECOND)};

	while (clock_nanosleep(CLOCK_BOOTTIME, TIMER_ABSTIME, &t, NULL))
		;
}

TEST("inspect monitor: a sample that came late makes none of the next ones later",
	"[inspect][spool]")
{
	const struct inspect_feed_wish wish = {
		.path = "rec", .header = "{}", .host_memory = true, .period_ms = PERIOD_MS};
	struct {
		uint64_t before, after;
	} at[TICKS];
	uint64_t open_before, open_after, lost;
	struct inspect_feed_wish w = wish;
	struct kept_fd lock = {.fd = -1};
	struct scratch s;
	struct scratch_path path;
	struct samples *got = calloc(1, sizeof(*got));
	struct inspect_feed *f;

	REQUIRE(got && scratch_make(&s));
	path = scratch_path(&s, "rec");
	w.path = path.s;
	open_before = clock_boot().ns;
	REQUIRE_EQ(inspect_feed_open(&w, &f), 0);
	open_after = clock_boot().ns;
	/* Late in one period, early in the next one. */
	for (unsigned i = 0; i < TICKS; i++) {
		sleep_until(open_after + (10 * (i + 1) + (i % 2 ? 3 : 7)) * PERIOD_MS * MS / 10);
		at[i].before = clock_boot().ns;
		CHECK_EQ(inspect_feed_tick(f), 0);
		at[i].after = clock_boot().ns;
	}
	CHECK_EQ(inspect_feed_end(f, REC_END_ASKED, &lock, &lost), 0);
	kept_fd_close(&lock);
	REQUIRE(read_samples(path.s, got));
	/* The first tick in a period, whichever it was on a busy machine, has a sample. */
	for (unsigned i = 0; i < TICKS; i++) {
		uint64_t in = (at[i].before - open_after) / (PERIOD_MS * MS), since;
		bool found = false;

		since = i ? (at[i - 1].after - open_before) / (PERIOD_MS * MS) : 0;
		for (size_t k = 0; k < got->mems; k++)
			found |= got->mem[k].ns >= at[i].before && got->mem[k].ns <= at[i].after;
		test_info("tick %u in period %llu, the one before in %llu", i,
			(unsigned long long)in, (unsigned long long)since);
		CHECK(found || in <= since);
	}
	CHECK(got->mems <= TICKS + 2);
	free(got);
	scratch_remove(&s);
}

/* ---- a session ------------------------------------------------------------------------------ */

struct monitor {
	struct scratch scratch;
	struct inspect_dir dir;
	struct inspect_info info;
	struct inspect_spool *spool;
	struct samples *got;
	size_t want; /* samples */
	uint64_t since_ns;
};

/* period: NTRACE_INSPECT_PERIOD_MS, NULL: not set. */
static void monitor_open(struct monitor *m, const char *period)
{
	const struct inspect_spool_wish wish = {
		.dir = &m->dir, .cpu_util = true, .host_memory = true, .info = &m->info};

	memset(m, 0, sizeof(*m));
	m->got = calloc(1, sizeof(*m->got));
	REQUIRE(m->got && scratch_make(&m->scratch));
	REQUIRE(spool_dir_open(&m->dir, m->scratch.dir));
	m->info = (struct inspect_info){.enabled = true,
		.device_profile = "off",
		.activities = INSPECT_HOST_MEMORY | INSPECT_CPU_UTIL};
	unsetenv("NTRACE_INSPECT_PERIOD_MS");
	if (period)
		setenv("NTRACE_INSPECT_PERIOD_MS", period, 1);
	setenv("NTRACE_KEEP_RECORDING", "1", 1);
	REQUIRE_EQ(inspect_spool_open(&wish, &m->spool), 0);
	unsetenv("NTRACE_INSPECT_PERIOD_MS");
	unsetenv("NTRACE_KEEP_RECORDING");
}

static bool has_samples(void *arg)
{
	struct monitor *m = arg;

	return read_samples(m->scratch.dir, m->got) && m->got->mems >= m->want;
}

static bool wait_samples(struct monitor *m, size_t more)
{
	m->want = m->got->mems + more;
	return program_until(has_samples, m, 60);
}

/* Samples come to the disk many at once, and one may have been on its way: the one before the newest must be later. */
static bool has_sample_since(void *arg)
{
	struct monitor *m = arg;

	m->want = 2;
	return has_samples(m) && m->got->mem[m->got->mems - 2].ns >= m->since_ns;
}

static bool wait_sample_since_now(struct monitor *m)
{
	m->since_ns = clock_boot().ns;
	return program_until(has_sample_since, m, 60);
}

static void monitor_close(struct monitor *m)
{
	spool_dir_close(&m->dir);
	free(m->got);
	scratch_remove(&m->scratch);
}

TEST("inspect monitor: NTRACE_INSPECT_PERIOD_MS is the time between samples, a second without it",
	"[inspect][spool]")
{
	static const struct {
		const char *variable;
		uint64_t ms;
		size_t samples;
	} rows[] = {{"10", 10, 50}, {"300", 300, 4}, {NULL, 1000, 3}};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint64_t before = clock_boot().ns, after;
		struct inspect_outcome outcome;
		struct monitor m;

		monitor_open(&m, rows[i].variable);
		CHECK(wait_samples(&m, rows[i].samples));
		CHECK_EQ(inspect_spool_finish(m.spool, REC_END_ASKED, &outcome), 0);
		after = clock_boot().ns;
		REQUIRE(read_samples(m.scratch.dir, m.got));
		CHECK_EQ(m.got->period_ms, rows[i].ms);
		CHECK_EQ(m.got->cpus, m.got->mems);
		/* One at each end, and in between never more than the time had periods. */
		CHECK(m.got->mems <= (after - before) / (rows[i].ms * MS) + 2);
		for (size_t k = 0; k + 1 < m.got->mems; k++)
			CHECK(m.got->mem[k].ns >= before + k * rows[i].ms * MS);
		monitor_close(&m);
	}
}

#define TOUCHED (64ull << 20)
#define ROUGHLY (16ull << 20)

static bool is_near(uint64_t a, uint64_t b)
{
	return a < b + ROUGHLY && b < a + ROUGHLY;
}

/* The second field of statm is pages. */
static uint64_t resident(void)
{
	unsigned long long size, pages = 0;
	FILE *f = fopen("/proc/self/statm", "re");

	if (f && fscanf(f, "%llu %llu", &size, &pages) != 2)
		pages = 0;
	if (f)
		fclose(f);
	return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* Ticks of the first CPU that /proc/stat names: all of its first eight columns, and those but idle and iowait. */
static struct sampler_cpu first_cpu(void)
{
	struct sampler_cpu c = {0};
	unsigned long long v[8] = {0};
	FILE *f = fopen("/proc/stat", "re");
	unsigned cpu = 0;

	if (f && fscanf(f, "%*[^\n] cpu%u %llu %llu %llu %llu %llu %llu %llu %llu", &cpu, &v[0],
			 &v[1], &v[2], &v[3], &v[4], &v[5], &v[6], &v[7]) == 9) {
		c.cpu = cpu;
		for (unsigned i = 0; i < 8; i++)
			c.total += v[i];
		c.busy = c.total - v[3] - v[4];
	}
	if (f)
		fclose(f);
	return c;
}

TEST("inspect monitor: samples are what /proc says at their time", "[inspect][spool]")
{
	struct sampler_cpu before = first_cpu(), after;
	struct inspect_outcome outcome;
	uint64_t small, large;
	struct monitor m;
	char *memory;

	monitor_open(&m, "10");
	small = resident();
	REQUIRE(small > 0);
	CHECK(wait_sample_since_now(&m));
	CHECK(is_near(m.got->mem[m.got->mems - 1].rss, small));
	memory = mmap(NULL, TOUCHED, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	REQUIRE(memory != MAP_FAILED);
	large = resident();
	CHECK(large >= small + TOUCHED / 2);
	CHECK(wait_sample_since_now(&m));
	CHECK(is_near(m.got->mem[m.got->mems - 1].rss, large));
	CHECK_EQ(inspect_spool_finish(m.spool, REC_END_ASKED, &outcome), 0);
	munmap(memory, TOUCHED);
	after = first_cpu();
	REQUIRE(read_samples(m.scratch.dir, m.got));
	CHECK_EQ(m.got->first.cpu, before.cpu);
	CHECK(m.got->first.total >= before.total && m.got->first.busy >= before.busy);
	CHECK(m.got->last.total > m.got->first.total);
	CHECK(m.got->last.total <= after.total && m.got->last.busy <= after.busy);
	CHECK(after.total > 0);
	monitor_close(&m);
}

/* ---- many samples --------------------------------------------------------------------------- */

#define CPUS 32u
#define SAMPLES 12000u

static void put_many(struct fixture *fx)
{
	struct rec_mem mem = {.pid = FX_PID};
	struct sampler_cpu rows[CPUS];

	for (uint64_t k = 0; k < SAMPLES; k++) {
		for (uint32_t i = 0; i < CPUS; i++)
			rows[i] = (struct sampler_cpu){
				.cpu = i, .busy = k * (k + i) / 2, .total = 20000 * k};
		mem.rss_bytes = 4096 * k;
		rec_writer_frame_at(fx->w, REC_CPU, REC_SOURCE_RECORDER, FX_BOOT + k * SECOND, rows,
			sizeof(rows), NULL, 0);
		rec_writer_frame_at(fx->w, REC_MEM, REC_SOURCE_RECORDER, FX_BOOT + k * SECOND, &mem,
			sizeof(mem), NULL, 0);
	}
}

/* Interval and CPU of the n-th message follow from its number. */
static uint64_t count_right(const uint8_t *data, size_t size)
{
	size_t pos = 0, len;
	const uint8_t *msg;
	uint64_t n = 0;

	for (; pb_delimited_next(data, size, &pos, &msg, &len) == 1; n++) {
		uint64_t k = 1 + n / CPUS, i = n % CPUS;
		uint64_t busy = k * (k + i) / 2 - (k - 1) * (k - 1 + i) / 2;
		Ntff__CpuUtil *u = ntff__cpu_util__unpack(NULL, len, msg);
		bool right = u && u->cpu == i && u->timestamp == FX_EPOCH + k * SECOND &&
			     u->util == (float)(busy * 10000 / 20000) / 100.0f;

		if (u)
			ntff__cpu_util__free_unpacked(u, NULL);
		if (!right)
			break;
	}
	return pos == size ? n : 0;
}

TEST("inspect monitor: samples do not end at 10,000, and those of a long session take no more "
     "memory",
	"[inspect][spool][merge]")
{
	static const struct rec_session session = {.session_id = 1, .enabled = 1};
	const struct rec_header_info info = {.producer = "test", .session = &session};

	/* A program that recorded itself, and one that a recorder watched. */
	for (unsigned own = 0; own <= 1; own++) {
		struct merge_options how = {.leaf = own};
		_cleanup_free_ char *data = NULL, *text = NULL;
		struct merge_result m;
		struct fixture fx;
		size_t size = 0;

		REQUIRE(own ? fx_open_bare(&fx) : fx_open(&fx));
		if (own) {
			fx_header(&fx, &info);
			fx_clock(&fx, 100, 0);
			fx_process(&fx, FX_SOURCE, FX_PID);
		}
		fx_span(&fx, TRACE_EXECUTE_API, 1, FX_PID, 1000, 2000);
		fx_records(&fx, FX_SOURCE);
		put_many(&fx);
		fx_end_with(&fx, REC_END_ASKED);
		fx_close_writer(&fx);
		REQUIRE_EQ(
			merge_recording(fx_path(&fx, REC_DIR).s, fx.dir.dir, &how, &m, &text), 0);
		REQUIRE_EQ(m.output_count, 1);
		CHECK_EQ(m.outputs[0].cpu_samples, (SAMPLES - 1) * CPUS);
		CHECK_EQ(m.outputs[0].mem_samples, SAMPLES);
		_cleanup_free_ char *path = NULL;
		REQUIRE(asprintf(&path, "%s/cpu_util.pb", m.outputs[0].dir) > 0);
		REQUIRE_EQ(file_read(path, 1u << 26, &data, &size), 0);
		CHECK_EQ(count_right((const uint8_t *)data, size), (SAMPLES - 1) * CPUS);
		/* What did not fit waited elsewhere. */
		CHECK(size > 2 * STORED_MEMORY);
		CHECK(m.samples_spilled + STORED_MEMORY >= size);
		merge_result_free(&m);
		fx_free(&fx);
	}
}
