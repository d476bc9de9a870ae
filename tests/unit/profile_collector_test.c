/* SPDX-License-Identifier: Apache-2.0 */
/* profile_collector_test.c - the collector on a virtual device: what its subscribers get of executions, and when; what
 * is left when they have gone. */
#include <dirent.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include "runtime/exec/memory_table.h"
#include "tests/unit/collector_fixture.h"

#define UNITS_MODEL                                                                    \
	"ntrace-model 2\nname units\nsemaphore loaded\nsemaphore summed\n"             \
	"step DMA3  5us nop post loaded\nstep PE 20us nop wait loaded 1 post summed\n" \
	"step ACT   15us nop wait loaded 1\nstep TOPSP 8us barrier wait summed 1\n"    \
	"step SP 1us fault error\n"

static uint64_t count_all(const struct collector_data *d)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < d->row_count; i++)
		n += d->rows[i].count;
	return n;
}

static bool is_silent_of(const struct place *p, const char *text)
{
	char *all = program_text(p->log.s);
	bool silent = all && !strstr(all, text);

	free(all);
	return silent;
}

/* ---- one execution ------------------------------------------------------------------------ */

static const struct {
	enum notification_kind kind;
	uint32_t engine, count;
} units_rows[] = {
	{NOTIFICATION_TRACE, 0, 2},
	{NOTIFICATION_TRACE, 1, 2},
	{NOTIFICATION_TRACE, 2, 0},
	{NOTIFICATION_TRACE, 4, 2},
	{NOTIFICATION_INFER_STATUS, 4, 2},
	{NOTIFICATION_EVENT, 0, 1},
	{NOTIFICATION_EVENT, 1, 0},
	{NOTIFICATION_ERROR, 0, 1},
	{NOTIFICATION_DMA, 3, 2},
	{NOTIFICATION_DMA, 0, 0},
	{NOTIFICATION_THROTTLE, 0, 0},
	{NOTIFICATION_TOPSP_TRACE, 0, 0},
	{NOTIFICATION_EXPLICIT_CC, 0, 2},
};

static int check_rows(const struct collector_data *d, uint32_t part)
{
	for (size_t i = 0; i < sizeof(units_rows) / sizeof(units_rows[0]); i++) {
		const struct collector_row *r =
			row_of(d, part, units_rows[i].kind, units_rows[i].engine);

		WANT(r != NULL);
		if (r->count != units_rows[i].count)
			dprintf(complaint_fd, "part %u, kind %d, engine %u: %llu\n", part,
				units_rows[i].kind, units_rows[i].engine,
				(unsigned long long)r->count);
		WANT(r->count == units_rows[i].count);
		WANT(r->lost == 0 && !r->lost_at_least && r->dropped == 0);
		WANT(r->nd_idx == 0 && r->nc_idx == part);
	}
	return 0;
}

/* Device times of a run of UNITS_MODEL, from its start on. */
static int check_times(const struct collector_data *d, uint32_t part)
{
	const struct collector_run *run = &d->runs[part];
	uint64_t start = run->start_ps;

	WANT(run->part == part && run->nc_idx == part && run->started && run->ended);
	WANT(run->status == NRT_EXEC_COMPLETED_WITH_ERR && run->end_ps - start == 33000000);
	WANT(strcmp(run->model_name, "units") == 0 && run->model_number == 1);
	WANT(run->host_start_ns < run->host_end_ns);
	WANT(record_at(row_of(d, part, NOTIFICATION_DMA, 3), 0).timestamp_ps == start);
	WANT(record_at(row_of(d, part, NOTIFICATION_DMA, 3), 1).timestamp_ps == start + 5000000);
	WANT(record_at(row_of(d, part, NOTIFICATION_TRACE, 0), 0).timestamp_ps == start + 5000000);
	WANT(record_at(row_of(d, part, NOTIFICATION_TRACE, 0), 1).timestamp_ps == start + 25000000);
	WANT(record_at(row_of(d, part, NOTIFICATION_INFER_STATUS, 4), 0).timestamp_ps == start);
	WANT(record_at(row_of(d, part, NOTIFICATION_INFER_STATUS, 4), 1).timestamp_ps ==
		run->end_ps);
	return 0;
}

/* At the subscription, of the execution, at the reading. */
static int check_syncs(const struct collector_data *d, uint32_t exec_id)
{
	const uint32_t want[] = {exec_id, exec_id, 0, 0};

	WANT(d->sync_count == 4);
	for (uint32_t i = 0; i < 4; i++) {
		const struct collector_sync *s = &d->syncs[i];

		WANT(s->exec_id == want[i] && s->part == i % 2 && s->nc_idx == i % 2);
		WANT(s->device_ps && s->boot_ns >= d->boot_ns_begin && s->real_offset_ns > 0);
	}
	return 0;
}

static int one_execution(void *arg)
{
	struct collector_cursor *c = NULL;
	struct collector_data d;
	struct bare b;

	WANT(enter_linked(arg, NULL) == 0);
	WANT_STATUS(init(), 0);
	WANT(bare_load(&b, UNITS_MODEL, 0) == 0);
	WANT_STATUS(run(&b), NRT_EXEC_COMPLETED_WITH_ERR); /* nobody's */
	WANT_STATUS(subscribe(0, &c), 0);
	WANT_STATUS(run(&b), NRT_EXEC_COMPLETED_WITH_ERR);
	WANT_STATUS(get(c, &d), 0);
	WANT(d.row_count == 2 * NOTIFICATION_RINGS && d.run_count == 2);
	for (uint32_t p = 0; p < 2; p++) {
		WANT(check_rows(&d, p) == 0);
		WANT(check_times(&d, p) == 0);
	}
	WANT(check_syncs(&d, d.runs[0].exec_id) == 0);
	WANT(d.boot_ns_begin < d.boot_ns_end);
	collector_data_free(&d);
	WANT(d.row_count == 0 && d.rows == NULL);
	WANT_STATUS(get(c, &d), 0); /* nothing since */
	WANT(count_all(&d) == 0 && d.run_count == 0);
	collector_data_free(&d);
	unsubscribe(c);
	lib.nrt_close();
	return leaks();
}

TEST("collector: of an execution each ring's records, the runs and sync points are there, once",
	"[collector][vdev]")
{
	if (device_lacks())
		SKIP(device_lacks());
	with_device(one_execution, two_cores);
}

static int order_of_rows(void *arg)
{
	static const enum notification_kind order[] = {NOTIFICATION_TRACE,
		NOTIFICATION_INFER_STATUS, NOTIFICATION_EVENT, NOTIFICATION_ERROR, NOTIFICATION_DMA,
		NOTIFICATION_THROTTLE, NOTIFICATION_TOPSP_TRACE, NOTIFICATION_TOPSP_ERROR,
		NOTIFICATION_TOPSP_EVENT, NOTIFICATION_EXPLICIT_CC};
	struct collector_cursor *c = NULL;
	struct collector_data d;
	uint32_t at = 0;

	WANT(enter_linked(arg, NULL) == 0);
	WANT_STATUS(init(), 0);
	WANT_STATUS(subscribe(1, &c), 0);
	WANT_STATUS(get(c, &d), 0);
	for (uint32_t part = 0; part < 2; part++)
		for (size_t k = 0; k < sizeof(order) / sizeof(order[0]); k++)
			for (uint32_t n = 0; at < d.row_count && d.rows[at].kind == order[k] &&
					     d.rows[at].part == part;
				n++, at++)
				WANT(d.rows[at].engine == n || k == 1);
	WANT(at == d.row_count);
	WANT(d.rows[0].nc_idx == 2);
	collector_data_free(&d);
	unsubscribe(c);
	WANT(subscribe(2, &c) == NRT_INVALID);
	WANT(subscribe(UINT32_MAX, &c) == NRT_INVALID);
	lib.nrt_close();
	return leaks();
}

TEST("collector: rows come in the order of collection, for each physical core", "[collector][vdev]")
{
	if (device_lacks())
		SKIP(device_lacks());
	with_device(order_of_rows, two_cores);
}

/* ---- subscribers -------------------------------------------------------------------------- */

#define PE_MODEL "ntrace-model 2\nname pe\nstep PE 1us nop\n"

/* Records of PE since its place. */
static int pe_records(struct collector_cursor *c)
{
	struct collector_data d;
	int n;

	if (get(c, &d))
		return -1;
	n = (int)row_of(&d, 0, NOTIFICATION_TRACE, 0)->count;
	collector_data_free(&d);
	return n;
}

static int several_subscribers(void *arg)
{
	struct collector_cursor *first = NULL, *second = NULL, *other = NULL;
	struct bare b;

	WANT(enter_linked(arg, NULL) == 0);
	WANT_STATUS(init(), 0);
	WANT(bare_load(&b, PE_MODEL, 0) == 0);
	WANT_STATUS(subscribe(0, &first), 0);
	WANT_STATUS(subscribe(1, &other), 0);
	WANT_STATUS(run(&b), 0);
	WANT_STATUS(subscribe(0, &second), 0);
	WANT_STATUS(run(&b), 0);
	WANT(pe_records(first) == 4);
	WANT(pe_records(second) == 2);
	WANT(pe_records(other) == 0);
	WANT_STATUS(run(&b), 0);
	unsubscribe(first);
	WANT_STATUS(run(&b), 0);
	WANT(pe_records(second) == 4);
	WANT_STATUS(run(&b), 0);
	WANT_STATUS(api_enter("skip"), 0);
	collector_skip(second);
	api_leave();
	WANT_STATUS(run(&b), 0);
	WANT(pe_records(second) == 2);
	unsubscribe(second);
	unsubscribe(other);
	unsubscribe(NULL);
	lib.nrt_close();
	return leaks();
}

TEST("collector: each subscriber of a core gets what came since its own place", "[collector][vdev]")
{
	if (device_lacks())
		SKIP(device_lacks());
	with_device(several_subscribers, two_cores);
}

/* Is there a thread that takes no signal at all? */
static int deaf_threads(void)
{
	DIR *tasks = opendir("/proc/self/task");
	const struct dirent *e;
	char line[256], path[300];
	int deaf = 0;

	while (tasks && (e = readdir(tasks))) {
		FILE *f;

		snprintf(path, sizeof(path), "/proc/self/task/%s/status", e->d_name);
		f = *e->d_name == '.' ? NULL : fopen(path, "r");
		while (f && fgets(line, sizeof(line), f))
			deaf += strncmp(line, "SigBlk:\tffffff", 14) == 0;
		if (f)
			fclose(f);
	}
	if (tasks)
		closedir(tasks);
	return deaf;
}

static int leaves_nothing(void *arg)
{
	const struct place *p = arg;
	struct collector_cursor *c = NULL, *second = NULL;
	struct memory_core_sums sums;
	struct belongings before, after;
	long long allocated;
	int deaf;

	WANT(enter_linked(arg, NULL) == 0);
	WANT_STATUS(init(), 0);
	before = belongings_now();
	allocated = virtual_device_stat(&p->device, "allocated_bytes");
	deaf = deaf_threads();
	for (int i = 0; i < 3; i++) {
		WANT_STATUS(subscribe(0, &c), 0);
		WANT_STATUS(subscribe(0, &second), 0);
		WANT(scratch_entries("/proc/self/task") == before.threads + 1);
		WANT(deaf_threads() == deaf + 1);
		memory_table_core(0, &sums);
		WANT(sums.usage[MEMORY_NOTIFICATION].now > 0);
		WANT((long long)sums.usage[MEMORY_NOTIFICATION].now ==
			virtual_device_stat(&p->device, "allocated_bytes") - allocated);
		unsubscribe(c);
		unsubscribe(second);
		after = belongings_now();
		WANT(belongings_equal(&before, &after));
		memory_table_core(0, &sums);
		WANT(sums.usage[MEMORY_NOTIFICATION].now == 0);
		WANT(virtual_device_stat(&p->device, "allocated_bytes") == allocated);
	}
	WANT_STATUS(subscribe(1, &c), 0);
	lib.nrt_close(); /* with a subscriber */
	collector_unsubscribe(c);
	return leaks();
}

TEST("collector: with the last subscriber of a core its rings, memory and thread go",
	"[collector][vdev]")
{
	if (device_lacks())
		SKIP(device_lacks());
	with_device(leaves_nothing, two_cores);
}

static int without_room(void *arg)
{
	struct collector_cursor *c = NULL;
	struct belongings before, after;
	struct collector_data d;

	WANT(enter_linked(arg, "WARN") == 0);
	setenv("NEURON_RT_PROFILE_BUF_DMA_MB", "3", 1);
	WANT_STATUS(init(), 0);
	before = belongings_now();
	WANT_STATUS(subscribe(0, &c), 0); /* 2 x 16 rings of 4 MiB are more than there is */
	WANT(said(arg, "the device has no room"));
	WANT_STATUS(get(c, &d), 0);
	WANT(row_of(&d, 0, NOTIFICATION_DMA, 0)->ring_bytes == 1u << 20);
	WANT(row_of(&d, 1, NOTIFICATION_DMA, 15)->ring_bytes == 1u << 20);
	collector_data_free(&d);
	unsubscribe(c);
	after = belongings_now();
	WANT(belongings_equal(&before, &after));
	lib.nrt_close();
	return leaks();
}

TEST("collector: a device without room for rings gives smaller ones", "[collector][vdev]")
{
	static const char *const options[] = {"--cores=2", "--memory=64M", NULL};

	if (device_lacks())
		SKIP(device_lacks());
	with_device(without_room, options);
}

/* Unless a variable says otherwise. */
static uint32_t sizes_now; /* how often they are halved */

static int default_sizes(void *arg)
{
	struct collector_cursor *c = NULL;
	struct collector_data d;

	WANT(enter_linked(arg, "WARN") == 0);
	WANT_STATUS(init(), 0);
	WANT_STATUS(subscribe(0, &c), 0);
	WANT(is_silent_of(arg, "the device has no room"));
	WANT_STATUS(get(c, &d), 0);
	for (uint32_t i = 0; i < d.row_count; i++) {
		const struct collector_row *row = &d.rows[i];
		bool large = row->kind == NOTIFICATION_TRACE;

		if (row->ring_bytes) /* not the executor's */
			WANT(row->ring_bytes == (large ? 8u << 20 : 1u << 20) >> sizes_now);
	}
	WANT(row_of(&d, 0, NOTIFICATION_TRACE, 4)->ring_bytes > 0);
	WANT(row_of(&d, 1, NOTIFICATION_TOPSP_EVENT, 0)->ring_bytes > 0);
	collector_data_free(&d);
	unsubscribe(c);
	lib.nrt_close();
	return leaks();
}

/* 5 rings of 8 MiB and 25 of 1 MiB are 65 MiB for each of the two cores. */
TEST("collector: rings without a setting take 8 and 1 MiB, on a small device at most a third "
     "of it",
	"[collector][vdev]")
{
	static const struct {
		const char *memory;
		uint32_t halved;
	} rows[] = {{"--memory=1G", 0}, {"--memory=390M", 0}, {"--memory=387M", 1},
		{"--memory=64M", 3}};

	if (device_lacks())
		SKIP(device_lacks());
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *const options[] = {"--cores=2", rows[i].memory, NULL};

		test_info("%s", rows[i].memory);
		sizes_now = rows[i].halved;
		with_device(default_sizes, options);
	}
}

/* What the program needs goes before: rings become smaller until it has it. */
static int gives_room(void *arg)
{
	nrt_tensor_t *tensors[64];
	struct collector_cursor *c = NULL;
	struct collector_data d;
	struct bare b;
	const struct collector_row *row;
	uint64_t whole;
	unsigned n = 0;

	WANT(enter_linked(arg, "WARN") == 0);
	WANT_STATUS(init(), 0);
	WANT_STATUS(subscribe(0, &c), 0);
	WANT(bare_load(&b, "ntrace-model 2\nname one\nstep PE 5us nop\n", 0) == 0);
	WANT_STATUS(run(&b), 0);
	WANT_STATUS(get(c, &d), 0);
	row = row_of(&d, 0, NOTIFICATION_TRACE, 0);
	whole = row->ring_bytes;
	WANT(row->count > 0 && !row->given_back);
	collector_data_free(&d);
	while (n < 64 && lib.nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, 0, 1 << 20, "t",
				 &tensors[n]) == NRT_SUCCESS)
		n++;
	test_info("%u tensors", n);
	WANT(n >= 61);
	WANT(said(arg, "the program needs the device's memory"));
	WANT_STATUS(run(&b), 0);
	WANT_STATUS(get(c, &d), 0);
	row = row_of(&d, 0, NOTIFICATION_TRACE, 0);
	WANT(row->ring_bytes < whole && row->given_back);
	collector_data_free(&d);
	while (n)
		lib.nrt_tensor_free(&tensors[--n]);
	unsubscribe(c);
	lib.nrt_close();
	return leaks();
}

TEST("collector: when the program finds no room, rings are given back", "[collector][vdev]")
{
	static const char *const options[] = {"--cores=2", "--memory=64M", NULL};

	if (device_lacks())
		SKIP(device_lacks());
	with_device(gives_room, options);
}

static int device_says_no(void *arg)
{
	struct collector_cursor *c = NULL;
	struct belongings before, after;

	WANT(enter_linked(arg, NULL) == 0);
	WANT_STATUS(init(), 0);
	before = belongings_now();
	WANT_STATUS(subscribe(0, &c), NRT_HW_ERROR); /* the tenth ring */
	WANT(said(arg, "Profile ring"));
	after = belongings_now();
	WANT(belongings_equal(&before, &after));
	WANT_STATUS(subscribe(0, &c), 0);
	unsubscribe(c);
	lib.nrt_close();
	return leaks();
}

TEST("collector: when a ring cannot be had the subscription fails and leaves nothing",
	"[collector][vdev]")
{
	static const char *const options[] = {
		"--cores=2", "--fail=NOTIFICATIONS_INIT_WITH_REALLOC_V2:EIO:10", NULL};

	if (device_lacks())
		SKIP(device_lacks());
	with_device(device_says_no, options);
}

/* ---- rings that are there ----------------------------------------------------------------- */

/* Ends without a word, with its rings full of records. */
static int dies_subscribed(void *arg)
{
	struct collector_cursor *c = NULL;
	struct bare b;

	WANT(enter_linked(arg, NULL) == 0);
	WANT_STATUS(init(), 0);
	WANT(bare_load(&b, PE_MODEL, 0) == 0);
	WANT_STATUS(subscribe(0, &c), 0);
	for (int i = 0; i < 5; i++)
		WANT_STATUS(run(&b), 0);
	return 0;
}

static int comes_after(void *arg)
{
	struct collector_cursor *c = NULL;
	struct bare b;

	setenv("NEURON_RT_RESET_CORES", "0", 1);
	WANT(scratch_child(dies_subscribed, arg) == 0);
	WANT(enter_linked(arg, NULL) == 0);
	WANT_STATUS(init(), 0);
	WANT(bare_load(&b, PE_MODEL, 0) == 0);
	for (int i = 0; i < 2; i++) {
		WANT_STATUS(subscribe(0, &c), 0);
		WANT(pe_records(c) == 0);
		WANT_STATUS(run(&b), 0);
		WANT(pe_records(c) == 2);
		unsubscribe(c);
	}
	lib.nrt_close();
	return leaks();
}

TEST("collector: rings of a process that died are replaced, or taken over where they are",
	"[collector][vdev]")
{
	static const char *const taken_over[] = {
		"--cores=4", "--without=NOTIFICATIONS_INIT_WITH_REALLOC_V2", NULL};

	if (device_lacks())
		SKIP(device_lacks());
	with_device(comes_after, two_cores);
	with_device(comes_after, taken_over);
}

/* Somebody else makes the ring of PE anew; what is written there is nobody's. */
static int replace_ring(void)
{
	const struct device_system *s = runtime_get()->devices;
	const struct notification_type *t = notification_type(0);
	const struct device_ring_key key = {t->device, t->type, 0};
	void *memory;

	WANT(device_profile_ring_open(s, &s->cores[0], &key, 65536, &memory) == 0);
	return munmap(memory, 65536);
}

static int replaced(void *arg)
{
	const struct collector_row *row;
	struct collector_cursor *c = NULL;
	struct collector_data d;
	struct bare b;

	WANT(enter_linked(arg, "WARN") == 0);
	WANT_STATUS(init(), 0);
	WANT(bare_load(&b, PE_MODEL, 0) == 0);
	WANT_STATUS(subscribe(0, &c), 0);
	for (int i = 0; i < 5; i++)
		WANT_STATUS(run(&b), 0);
	WANT(pe_records(c) == 10);
	WANT(replace_ring() == 0);
	WANT_STATUS(run(&b), 0);
	WANT_STATUS(get(c, &d), 0);
	row = row_of(&d, 0, NOTIFICATION_TRACE, 0);
	WANT(row->count == 0 && row->lost == 2 && row->replaced == 2 && row->lost_at_least);
	WANT(row->was_replaced && !row->unasked && !row->doubtful);
	WANT(!row_of(&d, 0, NOTIFICATION_TRACE, 1)->was_replaced && d.unasked == 0);
	WANT(said(arg, "of 1 rings at least 2 notifications are lost"));
	collector_data_free(&d);
	WANT_STATUS(run(&b), 0); /* to the one that we have now */
	WANT(pe_records(c) == 2);
	unsubscribe(c);
	lib.nrt_close();
	return leaks();
}

TEST("collector: what goes to a ring that is not ours any more is lost, and we have another one",
	"[collector][vdev]")
{
	if (device_lacks())
		SKIP(device_lacks());
	with_device(replaced, two_cores);
}

static int mute(void *arg)
{
	struct collector_cursor *c = NULL;
	struct collector_data d;
	struct bare b;

	WANT(enter_linked(arg, "WARN") == 0);
	WANT_STATUS(init(), 0);
	WANT(bare_load(&b, PE_MODEL, 0) == 0);
	WANT_STATUS(subscribe(0, &c), 0);
	WANT_STATUS(run(&b), 0);
	WANT_STATUS(get(c, &d), 0);
	WANT(d.unasked == -EIO);
	for (uint32_t i = 0; i < d.row_count; i++) {
		const struct collector_row *row = &d.rows[i];

		WANT(row->lost == 0 && row->lost_at_least == row->unasked);
		WANT(row->unasked == (row->ring_bytes > 0));
		WANT(!row->was_replaced && !row->doubtful);
	}
	WANT(row_of(&d, 0, NOTIFICATION_TRACE, 0)->count == 2);
	WANT(is_silent_of(arg, "notifications are lost"));
	collector_data_free(&d);
	unsubscribe(c);
	lib.nrt_close();
	return leaks();
}

TEST("collector: of a device that does not answer there is what is in the rings, and its error",
	"[collector][vdev]")
{
	static const char *const options[] = {"--cores=2", "--fail=BAR_READ:EIO", NULL};

	if (device_lacks())
		SKIP(device_lacks());
	with_device(mute, options);
}

/* ---- threads ------------------------------------------------------------------------------ */

static _Atomic bool done;
static _Atomic int wrong;

static void *subscribe_often(void *arg)
{
	uint32_t vnc = *(const uint32_t *)arg;

	while (!atomic_load(&done)) {
		struct collector_cursor *c = NULL;
		struct collector_data d = {0};

		if (subscribe(vnc, &c)) {
			atomic_fetch_add(&wrong, 1);
			break;
		}
		for (int i = 0; i < 3; i++) {
			if (get(c, &d))
				atomic_fetch_add(&wrong, 1);
			if (i < 2)
				collector_data_free(&d);
		}
		unsubscribe(c);
		collector_data_free(&d);
	}
	return NULL;
}

static int side_by_side(void *arg)
{
	static const uint32_t vncs[] = {0, 1, 0};
	pthread_t threads[3];
	struct collector_cursor *steady = NULL;
	struct bare b[2];

	WANT(enter_linked(arg, NULL) == 0);
	WANT_STATUS(init(), 0);
	for (int i = 0; i < 2; i++)
		WANT(bare_load(&b[i], PE_MODEL, i) == 0);
	WANT_STATUS(subscribe(1, &steady), 0);
	for (int i = 0; i < 3; i++)
		WANT(pthread_create(&threads[i], NULL, subscribe_often, (void *)&vncs[i]) == 0);
	for (int i = 0; i < 200; i++)
		for (int n = 0; n < 2; n++)
			WANT_STATUS(run(&b[n]), 0);
	atomic_store(&done, true);
	for (int i = 0; i < 3; i++)
		WANT(pthread_join(threads[i], NULL) == 0);
	WANT(atomic_load(&wrong) == 0);
	WANT(pe_records(steady) == 400);
	unsubscribe(steady);
	lib.nrt_close();
	return leaks();
}

TEST("collector: subscribers come and go while cores run, and the others lose nothing",
	"[collector][vdev]")
{
	if (device_lacks())
		SKIP(device_lacks());
	with_device(side_by_side, two_cores);
}
