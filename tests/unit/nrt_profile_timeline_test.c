/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nrt_profile_timeline_test.c - the timeline in an .ntff is what the model's text asks for: each step to the
 * picosecond in the device's time, and within the stated bound in the host's.
 *
 * What is asked for is reckoned from the text by the test (model_plan.h).
 */
#include <inttypes.h>
#include <pthread.h>
#include <sys/ioctl.h>

#include "runtime/base/clock.h"
#include "runtime/record/ntff_lists.h"
#include "runtime/vdev/device_clock.h"
#include "tests/shim/shim.h"
#include "tests/unit/model_plan.h"
#include "tests/unit/nrt_profile.h"
#include "vmlinux/ioctl_table.h"
#include "vmlinux/neuron_args.h"

#define RUNS 4

/* ---- texts -------------------------------------------------------------------------------- */

/* Engines that wait for each other, DMA queues beside them, uneven durations. */
static const char pipeline[] =
	"ntrace-model 2\nname pipeline\ninput a float32 8\noutput c float32 8\n"
	"temp t float32 8\ntemp u float32 8\n"
	"semaphore loaded\nsemaphore summed\nsemaphore free\n"
	"step DMA0 7us copy a t post loaded\n"
	"step DMA3 3333ns nop post free 2\n"
	"step DMA0 1us nop post loaded 3\n"
	"step PE 20us add t t u wait loaded 1 post summed\n"
	"step PE 1ns nop wait loaded 4\n"
	"step ACT 15us nop wait free 2 post summed 2\n"
	"step ACT 2us nop\n"
	"step POOL 5us nop wait summed 3 post free\n"
	"step DVE 40us nop\n"
	"step DVE 999ns nop wait free 3\n"
	"step SP 11us copy u c wait summed 3\n"
	"step DMA15 1us nop wait summed 3\n";

static const char serial[] =
	"ntrace-model 1\nname serial\ninput a float32 8\noutput c float32 8\ntemp t float32 8\n"
	"step PE 20us copy a t\nstep ACT 5us nop\nstep SP 1ns nop\nstep PE 3us add t t c\n"
	"step DVE 17us nop\n";

static const char group[] =
	"ntrace-model 2\nname group\ninput a float32 8\noutput c float32 8\nsemaphore s\n"
	"semaphore t\n"
	"step DMA0 2us nop post s\n"
	"step PE 9us nop post t\n"
	"step TOPSP 1us barrier wait s 1\n"
	"step TOPSP 8us all_reduce a c wait t 1 post s\n"
	"step ACT 4us nop wait s 2\n"
	"step TOPSP 5us all_reduce a c\n";

static const char *const texts[] = {pipeline, serial, group};
#define TEXTS (sizeof(texts) / sizeof(texts[0]))

/* Many short steps on all engines, each waiting for one of another engine. */
static const char *long_text(void)
{
	static char text[64 * PLAN_MAX_STEPS];
	static const char *const units[] = {"PE", "ACT", "POOL", "DVE", "SP", "DMA1", "DMA2"};
	size_t at = (size_t)snprintf(text, sizeof(text),
		"ntrace-model 2\nname long\ninput a float32 8\noutput c float32 8\nsemaphore s\n"
		"step DMA7 1us copy a c\n");

	for (unsigned i = 1; i < PLAN_MAX_STEPS; i++) {
		char wait[32] = "";

		if (i > 7)
			snprintf(wait, sizeof(wait), "wait s %u", i - 7);
		at += (size_t)snprintf(text + at, sizeof(text) - at, "step %s %uns nop %s post s\n",
			units[i * 5 % 7], 100 + i * 7919 % 1000, wait);
	}
	return text;
}

/* ---- the device's time -------------------------------------------------------------------- */

static unsigned unit_of(const struct ntff_item *item)
{
	return item->what == NTFF_TRANSFER     ? 6 + item->engine
	       : item->what == NTFF_COLLECTIVE ? 5
					       : item->engine;
}

static int check_item(const struct plan *plan, const struct ntff_item *item, uint64_t start_ps,
	unsigned seen[PLAN_MAX_STEPS])
{
	const struct plan_step *s = &plan->steps[item->id];

	WANT(item->id < plan->count);
	if (item->what == NTFF_SEMAPHORE) {
		WANT(item->start_ps == start_ps + s->end_ps && (int)item->custom == s->post);
		seen[item->id] += 100;
		return 0;
	}
	if (item->start_ps != start_ps + s->start_ps || item->end_ps != start_ps + s->end_ps)
		dprintf(complaint_fd,
			"step %u: %" PRIu64 " to %" PRIu64 ", not %" PRIu64 " to %" PRIu64 "\n",
			item->id, item->start_ps - start_ps, item->end_ps - start_ps, s->start_ps,
			s->end_ps);
	WANT(item->span && item->start_ps == start_ps + s->start_ps);
	WANT(item->end_ps == start_ps + s->end_ps && unit_of(item) == s->unit);
	seen[item->id]++;
	return 0;
}

static bool is_step(const struct ntff_item *item)
{
	return item->what == NTFF_INSTRUCTION || item->what == NTFF_TRANSFER ||
	       item->what == NTFF_COLLECTIVE || item->what == NTFF_SEMAPHORE;
}

/* Each step once, and the semaphores that engines post. */
static int check_seen(const struct plan *plan, const unsigned seen[PLAN_MAX_STEPS])
{
	for (unsigned i = 0; i < plan->count; i++) {
		const struct plan_step *s = &plan->steps[i];

		if (seen[i] != (s->post >= 0 && s->unit < 5 ? 101u : 1u))
			dprintf(complaint_fd, "step %u: seen %u\n", i, seen[i]);
		WANT(seen[i] == (s->post >= 0 && s->unit < 5 ? 101u : 1u));
	}
	return 0;
}

static int check_run(struct ntff *n, const struct ntff_core *core, const Ntff__ExecutionInfo *run,
	const struct plan *plan)
{
	unsigned seen[PLAN_MAX_STEPS] = {0};

	WANT(run->started && run->ended && run->end_ps - run->start_ps == plan->end_ps);
	for (uint32_t i = 0; i < core->stream_count; i++) {
		struct ntff_cursor c;
		struct ntff_item item;
		int rc;

		ntff_cursor_open(&c, &n->profile, &n->profile.streams[core->first_stream + i]);
		while ((rc = ntff_cursor_next(&c, &item)) > 0)
			if (is_step(&item) && item.start_ps >= run->start_ps &&
				item.end_ps <= run->end_ps)
				WANT(check_item(plan, &item, run->start_ps, seen) == 0);
		WANT(rc == 0 && c.no_start == 0 && c.no_end == 0);
		ntff_cursor_close(&c);
	}
	return check_seen(plan, seen);
}

/* Durations with the jitter of the nth launch of a core of the machine. */
static void add_jitter(
	struct plan *plan, const struct vdev_timing *timing, unsigned core, uint64_t nth)
{
	for (unsigned i = 0; i < plan->count; i++)
		plan->steps[i].duration_ps =
			vdev_jitter(timing, core, nth, i, plan->steps[i].duration_ps);
}

/* Of each DMA queue so many packets as the text has steps of it, and how long the last run took. */
static int check_graph(const struct ntff *n, const Ntff__SubgraphInfo *g, const struct plan *plan)
{
	const struct ntff_core *core = ntff_core_of(&n->profile, g->nd_idx, g->nc_idx);
	unsigned queues = 0;

	WANT(core && core->run_count > 0);
	WANT(g->exec_duration == core->runs[core->run_count - 1]->end_ps -
					 core->runs[core->run_count - 1]->start_ps);
	for (unsigned queue = 0; queue < VDEV_DMA_QUEUES; queue++) {
		unsigned steps = 0;

		for (unsigned i = 0; i < plan->count; i++)
			steps += plan->steps[i].unit == 6 + queue;
		if (!steps)
			continue;
		WANT(queues < g->n_dma_queue_usage);
		WANT(g->dma_queue_usage[queues]->engine_index == queue);
		WANT(g->dma_queue_usage[queues]->n_desc_block_info == 1);
		WANT(g->dma_queue_usage[queues]->desc_block_info[0]->packet_count == steps);
		queues++;
	}
	WANT(g->n_dma_queue_usage == queues);
	return 0;
}

static int check_graphs(const struct ntff *n, const char *text, uint32_t parts)
{
	static struct plan plan;

	plan_read(&plan, text);
	WANT(n->info->n_neff_nodes == 1 && n->info->neff_nodes[0]->nd_node->n_graphs == parts);
	for (uint32_t i = 0; i < parts; i++)
		WANT(check_graph(n, n->info->neff_nodes[0]->nd_node->graphs[i], &plan) == 0);
	return 0;
}

/* first: which launch of its core the first run was. */
static int check_timeline(const char *path, const char *text, const struct vdev_timing *timing,
	uint64_t first, uint32_t cores)
{
	static struct plan plan;
	struct ntff n;

	WANT(ntff_load(&n, path) == 0);
	WANT(n.profile.core_count == cores);
	WANT(check_graphs(&n, text, cores) == 0);
	for (uint32_t c = 0; c < cores; c++) {
		const struct ntff_core *core = &n.profile.cores[c];

		WANT(core->run_count == RUNS);
		for (uint32_t r = 0; r < RUNS; r++) {
			plan_read(&plan, text);
			add_jitter(&plan, timing, core->nc_idx, first + r);
			plan_reckon(&plan);
			WANT(check_run(&n, core, core->runs[r], &plan) == 0);
		}
	}
	ntff_done(&n);
	return 0;
}

static const struct vdev_timing *timing_now;
static const char *const *texts_now;
static size_t text_count_now;
static uint32_t parts_now;

static int profile_runs(const char *text, const char *path)
{
	struct job j;

	WANT(job_open(&j, text, 0) == 0);
	WANT_STATUS(lib.nrt_profile_start(j.model, path), 0);
	for (int i = 0; i < RUNS; i++)
		WANT_STATUS(lib.nrt_execute(j.model, j.in, j.out), 0);
	WANT_STATUS(lib.nrt_profile_stop(path), 0);
	WANT_STATUS(lib.nrt_unload(j.model), 0);
	return 0;
}

static int timelines(void *arg)
{
	WANT(profile_enter_test(arg) == 0);
	for (size_t i = 0; i < text_count_now; i++) {
		char path[32];

		snprintf(path, sizeof(path), "%zu.ntff", i);
		WANT(profile_runs(texts_now[i], path) == 0);
		WANT(check_timeline(path, texts_now[i], timing_now, i * RUNS + 1, parts_now) == 0);
	}
	lib.nrt_close();
	return 0;
}

static void check_texts(const char *const *list, size_t count, const struct vdev_timing *timing,
	uint32_t parts, const char *const options[])
{
	timing_now = timing;
	texts_now = list;
	text_count_now = count;
	parts_now = parts;
	with_device(timelines, options);
}

TEST("profile timeline: every step is where the text has it, to the picosecond",
	"[nrt][profile][vdev]")
{
	static const struct vdev_timing seeds[] = {{.seed = 1}, {.seed = 77}};

	if (device_lacks())
		SKIP(device_lacks());
	check_texts(texts, TEXTS, &seeds[0], 2,
		(const char *const[]){"--cores=2", "--jitter=0", "--seed=1", NULL});
	check_texts(texts, TEXTS, &seeds[1], 1,
		(const char *const[]){"--arch=v2", "--cores=1", "--seed=77",
			"--clock-offset=123456789", "--switch=30", NULL});
}

TEST("profile timeline: hundreds of steps on seven units, to the picosecond",
	"[nrt][profile][vdev]")
{
	static const struct vdev_timing plain;
	const char *text = long_text();

	if (device_lacks())
		SKIP(device_lacks());
	check_texts(&text, 1, &plain, 2, (const char *const[]){"--cores=2", NULL});
}

TEST("profile timeline: durations with jitter are those of the device's seed",
	"[nrt][profile][vdev]")
{
	static const struct vdev_timing timing = {.seed = 5, .jitter_ppm = 200000};

	if (device_lacks())
		SKIP(device_lacks());
	check_texts(texts, 2, &timing, 2,
		(const char *const[]){"--cores=2", "--seed=5", "--jitter=200000", NULL});
}

TEST("profile timeline: a clock that counts steps alone gives the same timeline",
	"[nrt][profile][vdev]")
{
	static const struct vdev_timing timing;

	if (device_lacks())
		SKIP(device_lacks());
	check_texts(texts, TEXTS, &timing, 2,
		(const char *const[]){"--cores=2", "--device-time=steps", NULL});
}

/* ---- the host's time ---------------------------------------------------------------------- */

/* Both clocks at one moment, read beside the library. */
struct reading {
	uint64_t ps, boot_ns, bound_ns;
};

#define TIGHT_NS 8000 /* half of a request of a device that has nothing else to do takes less */

/* The tightest of many; of more when the machine has other work. */
static int read_clock(const struct place *p, struct reading *ret)
{
	struct virtual_device v = p->device;
	uint64_t address[2] = {VDEV_BAR_CLOCK(0), VDEV_BAR_CLOCK(0) + 4};
	char path[700];
	int fd;

	snprintf(path, sizeof(path), "%s/dev/neuron0", v.root);
	fd = open(path, O_RDWR | O_CLOEXEC);
	WANT(fd >= 0);
	*ret = (struct reading){.bound_ns = UINT64_MAX};
	for (int i = 0; i < 300 || (i < 20000 && ret->bound_ns > TIGHT_NS); i++) {
		uint64_t ps, before = clock_boot().ns, after;
		struct neuron_bar_rw request = {
			.address = (uintptr_t)address, .data = (uintptr_t)&ps, .count = 2};

		WANT(ioctl(fd, NEURON_IOCTL_BAR_READ, &request) == 0);
		after = clock_boot().ns;
		if ((after - before + 1) / 2 < ret->bound_ns)
			*ret = (struct reading){
				ps, before + (after - before) / 2, (after - before + 1) / 2};
	}
	close(fd);
	return 0;
}

/* The device's clock is a straight line through two readings; so where it was is known to the worse of both. */
static int check_host_time(const struct reading *a, const struct reading *b, struct ntff_cursor *c,
	const struct ntff_item *item, uint64_t ps, uint64_t limit)
{
	uint64_t boot, bound, known = a->bound_ns > b->bound_ns ? a->bound_ns : b->bound_ns;
	int64_t truth = (int64_t)a->boot_ns +
			(int64_t)((__int128)(int64_t)(ps - a->ps) *
				  (int64_t)(b->boot_ns - a->boot_ns) / (int64_t)(b->ps - a->ps));

	WANT(a->ps < ps && ps < b->ps);
	WANT(ntff_host_ns(c, item->era, ps, &boot, &bound));
	if ((uint64_t)llabs(truth - (int64_t)boot) > bound + known + 1)
		dprintf(complaint_fd, "%" PRId64 " ns off, bound %" PRIu64 " and %" PRIu64 "\n",
			truth - (int64_t)boot, bound, known);
	WANT((uint64_t)llabs(truth - (int64_t)boot) <= bound + known + 1);
	if (bound > limit)
		dprintf(complaint_fd, "bound %" PRIu64 ", limit %" PRIu64 "\n", bound, limit);
	WANT(bound <= limit);
	return 0;
}

/* What a bound may be at most: that of the worst point to each side, and 200 ppm of the profile's length. */
static uint64_t bound_limit(const struct ntff *n)
{
	uint64_t first = UINT64_MAX, last = 0, worst = 0;

	for (size_t i = 0; i < n->info->n_sync_points; i++) {
		const Ntff__NtffSyncPoint *s = n->info->sync_points[i];

		first = s->boot_ns < first ? s->boot_ns : first;
		last = s->boot_ns > last ? s->boot_ns : last;
		worst = s->bound_ns > worst ? s->bound_ns : worst;
	}
	return 2 * worst + (last - first) / 5000;
}

/* By two readings beside the profile.  The seed makes 98.9 ppm of 80: bounds are for clocks within 100. */
static int check_drift(const struct reading *a, const struct reading *b, int sign)
{
	int64_t host = (int64_t)(b->boot_ns - a->boot_ns) * 1000;
	int64_t ppb = (int64_t)((__int128)((int64_t)(b->ps - a->ps) - host) * 1000000000 / host);
	int64_t unsure = (int64_t)(a->bound_ns + b->bound_ns) * 1000000000 / (host / 1000);

	if (ppb * sign < 98500 - unsure || ppb * sign > 99300 + unsure)
		dprintf(complaint_fd, "the clock drifts by %" PRId64 " ppb\n", ppb);
	WANT(ppb * sign >= 98500 - unsure && ppb * sign <= 99300 + unsure && unsure < 50000);
	return 0;
}

static int check_host_times(const struct ntff *n, const struct reading *a, const struct reading *b)
{
	uint64_t limit = bound_limit(n);
	long checked = 0;

	for (uint32_t i = 0; i < n->profile.stream_count; i++) {
		struct ntff_cursor c;
		struct ntff_item item;

		ntff_cursor_open(&c, &n->profile, &n->profile.streams[i]);
		while (ntff_cursor_next(&c, &item) > 0) {
			WANT(check_host_time(a, b, &c, &item, item.start_ps, limit) == 0);
			WANT(check_host_time(a, b, &c, &item, item.end_ps, limit) == 0);
			checked++;
		}
		ntff_cursor_close(&c);
	}
	WANT(checked >= 8);
	return 0;
}

static int sign_now; /* of the drift */

static int host_times(void *arg)
{
	static const char slow[] = "ntrace-model 1\nname slow\nstep PE 300ms nop\n"
				   "step ACT 1us nop\nstep SP 500ms nop\n";
	struct place *p = arg;
	struct reading before, after;
	struct job j;
	struct ntff n;

	WANT(profile_enter_test(p) == 0);
	WANT(job_open(&j, slow, 0) == 0);
	WANT(read_clock(p, &before) == 0);
	WANT_STATUS(lib.nrt_profile_start(j.model, "file"), 0);
	for (int i = 0; i < 2; i++)
		WANT_STATUS(lib.nrt_execute(j.model, j.in, j.out), 0);
	WANT_STATUS(lib.nrt_profile_stop("file"), 0);
	WANT(read_clock(p, &after) == 0);
	WANT(ntff_load(&n, "file") == 0);
	WANT(check_drift(&before, &after, sign_now) == 0);
	WANT(check_host_times(&n, &before, &after) == 0);
	ntff_done(&n);
	lib.nrt_close();
	return 0;
}

TEST("profile timeline: the host's time is within the bound when the device's clock is 100 ppm "
     "fast",
	"[nrt][profile][vdev]")
{
	if (device_lacks())
		SKIP(device_lacks());
	sign_now = 1;
	with_device(host_times, (const char *const[]){"--arch=v2", "--cores=1", "--clock-drift=80",
					"--seed=23", NULL});
}

TEST("profile timeline: the host's time is within the bound when the device's clock is 100 ppm "
     "slow",
	"[nrt][profile][vdev]")
{
	if (device_lacks())
		SKIP(device_lacks());
	sign_now = -1;
	with_device(host_times, (const char *const[]){"--arch=v2", "--cores=1", "--clock-drift=-80",
					"--seed=23", NULL});
}

/* ---- two ranks ---------------------------------------------------------------------------- */

struct rank {
	struct job j;
	int core;
	pthread_t thread;
	int failed;
};

static int rank_open(struct rank *r, int core)
{
	r->core = core;
	WANT(job_open(&r->j, COPY_MODEL, core) == 0); /* its tensors */
	WANT_STATUS(lib.nrt_load_collectives(
			    group, strlen(group), core, -1, (uint32_t)core, 2, &r->j.model),
		0);
	return 0;
}

static void *rank_main(void *arg)
{
	struct rank *r = arg;

	for (int i = 0; i < RUNS; i++)
		r->failed |= lib.nrt_execute(r->j.model, r->j.in, r->j.out) != 0;
	return NULL;
}

static int check_communicator(const char *path, uint32_t rank)
{
	struct ntff n;

	WANT(ntff_load(&n, path) == 0);
	for (uint32_t part = 0; part < 2; part++) {
		const Ntff__SubgraphInfo *g = ntff_graph(&n, "group", part);

		WANT(g && g->n_comm_info == 1);
		WANT(g->comm_info[0]->rank == rank && g->comm_info[0]->rank_n == 2);
		WANT(g->comm_info[0]->local_rank_n == 2 && g->comm_info[0]->node_n == 1);
	}
	ntff_done(&n);
	return 0;
}

/* Clocks that count steps: both arrive at the same time of their runs, so the text alone says when. */
static int two_ranks(void *arg)
{
	static const struct vdev_timing timing;
	struct rank ranks[2] = {{.core = 0}, {.core = 1}};

	setenv("NEURON_RT_ROOT_COMM_ID", "127.0.0.1:4711", 1);
	WANT(profile_enter_test(arg) == 0);
	for (int i = 0; i < 2; i++) {
		WANT(rank_open(&ranks[i], i) == 0);
		WANT_STATUS(lib.nrt_profile_start(ranks[i].j.model, i ? "1.ntff" : "0.ntff"), 0);
	}
	for (int i = 0; i < 2; i++)
		WANT(pthread_create(&ranks[i].thread, NULL, rank_main, &ranks[i]) == 0);
	for (int i = 0; i < 2; i++)
		WANT(pthread_join(ranks[i].thread, NULL) == 0 && !ranks[i].failed);
	for (int i = 0; i < 2; i++) {
		WANT_STATUS(lib.nrt_profile_stop(i ? "1.ntff" : "0.ntff"), 0);
		WANT(check_timeline(i ? "1.ntff" : "0.ntff", group, &timing, 1, 2) == 0);
		WANT(check_communicator(i ? "1.ntff" : "0.ntff", (uint32_t)i) == 0);
	}
	lib.nrt_close();
	return 0;
}

PROFILE_TEST("profile timeline: collectives of two ranks on four cores, to the picosecond",
	two_ranks, ((const char *const[]){"--cores=4", "--device-time=steps", NULL}))
