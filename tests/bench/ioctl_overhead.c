/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ioctl_overhead.c - what the system-call hooks add to one ioctl, and what others add who look at the same.
 *
 *	ioctl_overhead            our hooks alone: by number of fields, on another file, of another process
 *	ioctl_overhead --peers    beside a bare BPF program, empty programs, bpftrace and perf trace
 *
 * With NTRACE_DEVICE_ROOT the calls go to the virtual device that lies there; else to an ordinary file that the
 * hooks take for a device, as they would a virtual one, and the kernel answers ENOTTY, so that the call is as short
 * as can be.
 *
 * Every figure is the median of pairs, each of which measures the same calls without and with the watcher, one
 * after the other; the watchers of a table take turns within a round, so that all meet the same machine.  A
 * leg of a pair is the quickest of several batches, in which nobody came between.
 */
#include "tests/bench/watchers.h"

#include "vmlinux/ioctl_table.h"

#define BATCHES 9
#define ROUNDS 9
#define PEER_ROUNDS 20
#define CANNOT_RUN 77 /* exit code for tests/bench/run.sh: something is lacking here */

static char dir[] = "/dev/shm/ntrace-bench-XXXXXX";

static const struct {
	const char *name;
	unsigned long cmd;
} requests[] = {
	{"no fields", NEURON_IOCTL_DEVICE_INFO},
	{"2 fields", NEURON_IOCTL_DMA_ENG_SET_STATE},
	{"4 fields", NEURON_IOCTL_MEM_BUF_COPY64},
	{"6 fields", NEURON_IOCTL_MEM_COPY64},
};

#define REQUESTS (sizeof(requests) / sizeof(requests[0]))
#define FOUR_FIELDS 2

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *v, int n)
{
	qsort(v, (size_t)n, sizeof(*v), by_value);
	return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

/* ---- what is called ----------------------------------------------------------------------- */

struct called {
	int fd; /* -1: getppid */
	unsigned long cmd;
	int per_batch;
};

static double batch(const struct called *c)
{
	/* No handle of anything: who looks at it refuses. */
	uint64_t arg[8] = {~0ull, 2, 3, 4, 5, 6, 7, 8}, start = clock_boot().ns;

	if (c->fd < 0)
		for (int i = 0; i < c->per_batch; i++)
			(void)getppid();
	else
		for (int i = 0; i < c->per_batch; i++)
			(void)ioctl(c->fd, c->cmd, arg);
	return (double)(clock_boot().ns - start) / c->per_batch;
}

/* The quickest of its batches: what the calls take when nobody comes between. */
static double leg(const struct called *c)
{
	double best = batch(c);

	for (int i = 1; i < BATCHES; i++) {
		double v = batch(c);

		best = v < best ? v : best;
	}
	return best;
}

/* ---- tables ------------------------------------------------------------------------------- */

struct watcher {
	const char *name;
	int (*start)(void);
	void (*stop)(void);
	const char *tool; /* must be in the PATH; NULL: needs none */
};

struct row {
	const struct watcher *watcher;
	struct called called;
	double plain[PEER_ROUNDS], added[PEER_ROUNDS];
	bool lacking;
	double median_plain, median_added;
};

static int measure_pair(struct row *r, int round)
{
	double with;

	r->plain[round] = leg(&r->called);
	if (r->watcher->start())
		return CANNOT_RUN;
	with = leg(&r->called);
	r->watcher->stop();
	r->added[round] = with - r->plain[round];
	return 0;
}

static int measure(struct row *rows, size_t count, int rounds)
{
	for (size_t i = 0; i < count; i++)
		rows[i].lacking = rows[i].watcher->tool && !in_path(rows[i].watcher->tool);
	for (int round = 0; round < rounds; round++)
		for (size_t i = 0; i < count; i++) {
			int r = rows[i].lacking ? 0 : measure_pair(&rows[i], round);

			if (r)
				return r;
		}
	for (size_t i = 0; i < count; i++) {
		rows[i].median_plain = median(rows[i].plain, rounds);
		rows[i].median_added = median(rows[i].added, rounds);
	}
	return 0;
}

static void print_row(const struct row *r, const char *what)
{
	if (r->lacking)
		printf("%-14s %-36s not measured: %s is not installed\n", r->watcher->name, what,
			r->watcher->tool);
	else
		printf("%-14s %-36s %7.0f ns without, %+.0f ns\n", r->watcher->name, what,
			r->median_plain, r->median_added);
}

static const struct watcher hooks = {"ntrace", hooks_start, hooks_stop, NULL};
static const struct watcher elsewhere = {"ntrace", hooks_start_elsewhere, hooks_stop, NULL};
static const struct watcher bare_pair = {"bare program", bare_start, bare_stop, NULL};
static const struct watcher empty_pair = {"empty programs", empty_start, bare_stop, NULL};
static const struct watcher by_bpftrace = {"bpftrace", bpftrace_start, tool_stop, "bpftrace"};
static const struct watcher by_perf = {"perf trace", perf_start, tool_stop, "perf"};

/* ---- our hooks alone ---------------------------------------------------------------------- */

static int hooks_alone(int other_fd)
{
	struct row rows[REQUESTS + 2];
	char what[64];
	int r;

	for (size_t i = 0; i < REQUESTS; i++)
		rows[i] = (struct row){
			.watcher = &hooks, .called = {watched->fd, requests[i].cmd, 5000}};
	rows[REQUESTS] = (struct row){
		.watcher = &hooks, .called = {other_fd, requests[FOUR_FIELDS].cmd, 5000}};
	rows[REQUESTS + 1] = (struct row){
		.watcher = &elsewhere, .called = {watched->fd, requests[FOUR_FIELDS].cmd, 5000}};
	r = measure(rows, REQUESTS + 2, ROUNDS);
	for (size_t i = 0; i < REQUESTS && !r; i++) {
		snprintf(what, sizeof(what), "ioctl on a device, %s", requests[i].name);
		print_row(&rows[i], what);
	}
	if (r)
		return r;
	print_row(&rows[REQUESTS], "ioctl on another file");
	print_row(&rows[REQUESTS + 1], "ioctl of an untraced process");
	return 0;
}

/* ---- beside others ------------------------------------------------------------------------ */

enum { OURS, BARE, BPFTRACE, PERF, UNTRACED, UNTRACED_EMPTY, PPID, PPID_EMPTY, PEER_ROWS };

static void judge(const char *what, double value, const char *unit, double limit)
{
	printf("%-52s %7.2f%s, wanted at most %.2f: %s\n", what, value, unit, limit,
		value <= limit ? "reached" : "NOT REACHED");
}

static int beside_others(int other_fd, bool is_virtual)
{
	int calls = is_virtual ? 200 : 2000;
	const struct called traced = {watched->fd, watched->cmd, calls};
	const struct called unrelated = {other_fd, requests[FOUR_FIELDS].cmd, 5000};
	const struct called ppid = {-1, 0, 5000};
	static struct row rows[PEER_ROWS];
	int r;

	rows[OURS] = (struct row){.watcher = &hooks, .called = traced};
	rows[BARE] = (struct row){.watcher = &bare_pair, .called = traced};
	rows[BPFTRACE] = (struct row){.watcher = &by_bpftrace, .called = traced};
	rows[PERF] = (struct row){.watcher = &by_perf, .called = traced};
	rows[UNTRACED] = (struct row){.watcher = &elsewhere, .called = unrelated};
	rows[UNTRACED_EMPTY] = (struct row){.watcher = &empty_pair, .called = unrelated};
	rows[PPID] = (struct row){.watcher = &elsewhere, .called = ppid};
	rows[PPID_EMPTY] = (struct row){.watcher = &empty_pair, .called = ppid};
	r = measure(rows, PEER_ROWS, PEER_ROUNDS);
	if (r)
		return r;
	for (int i = OURS; i <= PERF; i++)
		print_row(&rows[i], "traced ioctl, 4 fields");
	print_row(&rows[UNTRACED], "unrelated ioctl, another process");
	print_row(&rows[UNTRACED_EMPTY], "unrelated ioctl, another process");
	print_row(&rows[PPID], "getppid, another process");
	print_row(&rows[PPID_EMPTY], "getppid, another process");
	if (is_virtual) {
		printf("(a round trip to the device varies by more than any of these add: no "
		       "verdict)\n");
		return 0;
	}
	judge("traced ioctl, against the bare program",
		rows[OURS].median_added / rows[BARE].median_added, "", 1.5);
	if (!rows[BPFTRACE].lacking)
		judge("traced ioctl, against bpftrace",
			rows[OURS].median_added / rows[BPFTRACE].median_added, "", 0.1);
	if (!rows[PERF].lacking)
		judge("traced ioctl, against perf trace",
			rows[OURS].median_added / rows[PERF].median_added, "", 0.1);
	judge("unrelated ioctl, beyond empty programs",
		rows[UNTRACED].median_added - rows[UNTRACED_EMPTY].median_added, " ns", 60);
	return 0;
}

/* ---- files -------------------------------------------------------------------------------- */

static int open_below(const char *root, const char *name)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/%s", root, name);
	return open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
}

static int run(bool peers)
{
	const char *root = getenv("NTRACE_DEVICE_ROOT");
	bool is_virtual = root && *root;
	struct target t = {.cmd = requests[FOUR_FIELDS].cmd, .root = is_virtual ? root : dir};
	int other = open_below(dir, "other");
	char output[64];

	snprintf(output, sizeof(output), "%s/output", dir);
	t.output = output;
	t.fd = open_below(t.root, "dev/neuron0");
	if (t.fd < 0 || other < 0) {
		fprintf(stderr, "ioctl_overhead: %s\n", strerror(errno));
		return CANNOT_RUN;
	}
	watched = &t;
	printf("calls go to %s\n", is_virtual ? "a virtual device" : "an ordinary file (ENOTTY)");
	return peers ? beside_others(other, is_virtual) : hooks_alone(other);
}

int main(int argc, char **argv)
{
	static const char *const names[] = {"dev/neuron0", "other", "output", "dev"};
	char path[64];
	int status;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (!mkdtemp(dir)) {
		fprintf(stderr, "ioctl_overhead: %s: %s\n", dir, strerror(errno));
		return CANNOT_RUN;
	}
	snprintf(path, sizeof(path), "%s/dev", dir);
	mkdir(path, 0700);
	status = run(argc > 1 && strcmp(argv[1], "--peers") == 0);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
		remove(path);
	}
	rmdir(dir);
	return status;
}
