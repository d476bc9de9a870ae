// SPDX-License-Identifier: Apache-2.0
/*
 * work.c - a program that uses neuron devices in a way that is known beforehand, to the last event.
 *
 *	work [--expect FILE] LIST [ARGUMENTS]...
 *
 * Lists, run one after the other: basic; dma; user-ring; map; completions (driver 2.30); errors; timeout;
 * flood N [short|long]; threads T N; many-devices D.  It checks every result and every byte that comes back
 * itself, and with --expect writes the events that a tracer must see (expect.h).  The devices are those of
 * the stand-in driver; `basic`, `flood` and `threads` also run over a virtual device below
 * $NTRACE_DEVICE_ROOT, and then have no DMA.
 * Exit status: 0 all as it must be, 1 not (said on standard error), 2 usage.
 */
#include <pthread.h>
#include <sys/wait.h>
#include <time.h>

#include "tests/vm/programs/work_calls.h"
#include "tests/vm/programs/work_rings.h"

#define MAX_THREADS 8 /* one per core: each has its h2t queue for itself */

/* ---- basic -------------------------------------------------------------------------------- */

static void basic_memory(struct expect *x, const struct handle *h)
{
	struct chunk device = allocate(x, h, KIB(64), 0, false),
		     host = allocate(x, h, KIB(64), 0, true);
	uint8_t *out = pages(KIB(64)), *back = pages(KIB(64));

	put_pattern(out, KIB(64), 1);
	buffer_copy(x, h, &device, out, KIB(64), true, 0);
	copy(x, h, &device, &host, KIB(64), 0);
	buffer_copy(x, h, &host, back, KIB(64), false, 0);
	same("bytes that were copied", back, out, KIB(64));
	fill(x, h, &device, 0x5a, 4096, 0);
	buffer_copy(x, h, &device, back, KIB(64), false, 0);
	memset(out, 0x5a, 4096);
	same("bytes that were set", back, out, KIB(64));
	release(x, h, &host);
	release(x, h, &device);
}

static void list_basic(struct expect *x)
{
	struct handle query = open_device(x, 0, true), work;
	struct neuron_compatible_version version = {0};
	struct neuron_device_basic_info basic = {0};
	struct neuron_device_info info = {0};
	struct neuron_crwl_nc_map_ext map = {.nc_count = 1};

	SIMPLE(x, &query, COMPATIBLE_VERSION, &version, 0);
	SIMPLE(x, &query, DEVICE_BASIC_INFO, &basic, 0);
	SIMPLE(x, &query, CRWL_NC_RANGE_MARK_EXT0, &map, 0);
	work = open_device(x, 0, false);
	SIMPLE(x, &work, DEVICE_INFO, &info, 0);
	must("architecture", info.architecture, basic.architecture);
	basic_memory(x, &work);
	SIMPLE(x, &query, CRWL_NC_RANGE_UNMARK_EXT0, &map, 0);
	close_device(x, &work, NULL);
	close_device(x, &query, NULL);
}

/* ---- dma ---------------------------------------------------------------------------------- */

static const uint64_t dma_sizes[] = {1, KIB(4), KIB(64) - 1, KIB(64), KIB(64) + 1, MIB(1)};
#define DMA_SIZES (sizeof(dma_sizes) / sizeof(dma_sizes[0]))

static void one_size(
	struct expect *x, const struct handle *h, const struct chunk c[2], uint64_t size)
{
	uint8_t *out = pages(MIB(1)), *back = pages(MIB(1));

	put_pattern(out, size, (unsigned)size);
	buffer_copy(x, h, &c[0], out, size, true, 0);
	copy(x, h, &c[0], &c[1], size, 0);
	buffer_copy(x, h, &c[1], back, size, false, 0);
	same("copied through a buffer", back, out, size);
	put_pattern(out, size, (unsigned)size + 1);
	zero_copy(x, h, &c[0], out, size, true, 0);
	memset(back, 0, size);
	zero_copy(x, h, &c[0], back, size, false, 0);
	same("copied without one", back, out, size);
	fill(x, h, &c[1], 0x77, size, 0);
	buffer_copy(x, h, &c[1], back, size, false, 0);
	memset(out, 0x77, size);
	same("set", back, out, size);
	munmap(out, MIB(1));
	munmap(back, MIB(1));
}

static void async_copies(struct expect *x, const struct handle *h, const struct chunk c[2])
{
	uint8_t *out = pages(MIB(1)), *back = pages(MIB(1));
	uint32_t first, second;

	put_pattern(out, MIB(1), 9);
	zero_copy(x, h, &c[0], out, MIB(1), true, 0);
	first = copy_async(x, h, &c[0], &c[1], MIB(1), NEURON_WAIT_NONE, 0);
	wait_async(x, h, &c[0], &c[1], first, 0);
	zero_copy(x, h, &c[1], back, MIB(1), false, 0);
	same("copied asynchronously", back, out, MIB(1));
	/* The second copy waits for the first. */
	first = copy_async(x, h, &c[0], &c[1], KIB(64), NEURON_WAIT_NONE, 0);
	second = copy_async(x, h, &c[1], &c[0], KIB(4), (int)first, 0);
	wait_async(x, h, &c[1], &c[0], second, 0);
}

static void program(struct expect *x, const struct handle *h, const struct chunk *c)
{
	uint8_t *out = pages(KIB(64)), *back = pages(KIB(64));
	struct neuron_program_engine_nc64 a = {
		.nc_id = c->nc,
		.dst = address_of(x, h, c),
		.buffer = (uintptr_t)out,
		.size = KIB(8),
	};
	struct event e = request_event(h, "PROGRAM_ENGINE_NC64");

	put_pattern(out, KIB(8), 3);
	e.bytes = KIB(8);
	expect_request(x, e, 0);
	expect_transfer(x, h->device, c->nc, KIB(8), 0);
	must("PROGRAM_ENGINE_NC64", request(h, NEURON_IOCTL_PROGRAM_ENGINE_NC64, &a), 0);
	buffer_copy(x, h, c, back, KIB(8), false, 0);
	same("program", back, out, KIB(8));
}

static void list_dma(struct expect *x)
{
	struct handle h = open_device(x, 0, false);
	/* Core 5: engine 130, queue 1. */
	struct chunk c[2] = {allocate(x, &h, MIB(1), 5, false), allocate(x, &h, MIB(1), 5, false)};

	for (size_t i = 0; i < DMA_SIZES; i++)
		one_size(x, &h, c, dma_sizes[i]);
	async_copies(x, &h, c);
	program(x, &h, &c[0]);
	release(x, &h, &c[0]);
	release(x, &h, &c[1]);
	close_device(x, &h, NULL);
}

/* ---- errors ------------------------------------------------------------------------------- */

/* Sizes that this driver does not know, numbers that no driver does; a request of 2.30. */
#define COPY_OF_48_BYTES 0x80304e17u
#define NUMBER_250 0x40084efau

static void refused(
	struct expect *x, const struct handle *h, const char *name, uint32_t cmd, int result)
{
	uint64_t arg[40] = {0};

	expect_request(x, request_event(h, name), result);
	must(name, request(h, cmd, arg), result);
}

static void wrong_requests(struct expect *x, const struct handle *h, const struct handle *query)
{
	/* The fields of a size that is known from another driver are decoded. */
	struct event e = request_event(h, "MEM_COPY64");
	uint64_t arg[8] = {0};

	e.bytes = e.handle = 0;
	expect_request(x, e, -EINVAL);
	must("MEM_COPY64 of 2.30", request(h, NEURON_IOCTL_MEM_COPY64, arg), -EINVAL);
	e = request_event(h, "MEM_BUF_ZEROCOPY64");
	e.bytes = e.handle = 0;
	e.queue = 0;
	expect_request(x, e, -EINVAL);
	must("MEM_BUF_ZEROCOPY64 of 2.30", request(h, NEURON_IOCTL_MEM_BUF_ZEROCOPY64, arg),
		-EINVAL);
	refused(x, h, "0x80304e17", COPY_OF_48_BYTES, -EINVAL);
	refused(x, h, "0x40084efa", NUMBER_250, -EINVAL);
	refused(x, h, "DMA_QUIESCE_QUEUES", NEURON_IOCTL_DMA_QUIESCE_QUEUES, -ENOTTY);
	refused(x, h, "DRIVER_INFO_SET", NEURON_IOCTL_DRIVER_INFO_SET, -524 /* ENOTSUPP */);
	refused(x, query, "DEVICE_INFO", NEURON_IOCTL_DEVICE_INFO, -EINVAL);
}

static void wrong_arguments(struct expect *x, const struct handle *h, const struct chunk *c)
{
	struct chunk nothing = {.handle = 9999, .host = true}; /* host: no DMA is expected */
	struct neuron_mem_free end = {nothing.handle};
	struct neuron_mem_get_extended_info info = {.mem_handle = nothing.handle};

	expect_request(x, chunk_event(h, "MEM_FREE", &nothing, NO), -EINVAL);
	must("MEM_FREE", request(h, NEURON_IOCTL_MEM_FREE, &end), -EINVAL);
	buffer_copy(x, h, &nothing, &end, sizeof(end), true, -EINVAL);
	/* More than the chunk has. */
	nothing = *c;
	nothing.host = true;
	buffer_copy(x, h, &nothing, pages(KIB(8)), KIB(8), true, -EINVAL);
	/* Positive results, as the driver gives them. */
	expect_request(x,
		chunk_event(h, "MEM_GET_EXTENDED_INFO", &(struct chunk){.handle = 9999}, NO),
		EINVAL);
	must("MEM_GET_EXTENDED_INFO", request(h, NEURON_IOCTL_MEM_GET_EXTENDED_INFO, &info),
		EINVAL);
	expect_request(x, request_event(h, "DMA_QUEUE_RELEASE"), 8);
	must("unreadable argument", request(h, NEURON_IOCTL_DMA_QUEUE_RELEASE, (void *)8), 8);
}

/* A child on the handles it inherited: it is not attached. */
static void not_attached(const struct expect *parent, const struct handle *h,
	const struct handle *query, const struct chunk *c)
{
	struct expect x = *parent;
	struct neuron_mem_free end = {c->handle};
	int status = 0, written[2];
	char nothing;
	pid_t pid;

	must("pipe", pipe2(written, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		/* Not before its events are written down, for which its number is wanted. */
		close(written[1]);
		must("end of the pipe", read(written[0], &nothing, 1), 0);
		_exit(request(h, NEURON_IOCTL_MEM_FREE, &end) == -EACCES ? 0 : 1);
	}
	x.thread = "child";
	x.pid = pid;
	expect_request(&x, chunk_event(h, "MEM_FREE", c, NO), -EACCES);
	expect_file(&x, "flush", query, NO);
	expect_file(&x, "flush", h, NO);
	close(written[0]);
	close(written[1]);
	must("wait", waitpid(pid, &status, 0), pid);
	must("status of the child", status, 0);
}

static void list_errors(struct expect *x)
{
	struct handle query = open_device(x, 0, true), h = open_device(x, 0, false);
	struct chunk c = allocate(x, &h, 4096, 0, false);

	wrong_requests(x, &h, &query);
	wrong_arguments(x, &h, &c);
	not_attached(x, &h, &query, &c);
	release(x, &h, &c);
	close_device(x, &h, NULL);
	close_device(x, &query, NULL);
}

/* ---- timeout ------------------------------------------------------------------------------ */

static void list_timeout(struct expect *x)
{
	struct handle h = open_device(x, 0, false);
	struct chunk c[2] = {
		allocate(x, &h, KIB(64), 2, false), allocate(x, &h, KIB(64), 2, false)};
	uint8_t *buffer = pages(KIB(64));
	const int timeout = timed_out(x);
	uint32_t first;

	set_parameter("timeout_ms", "50");
	set_parameter("never", "1");
	buffer_copy(x, &h, &c[0], buffer, 4096, true, timeout);
	copy(x, &h, &c[0], &c[1], KIB(64), timeout);
	fill(x, &h, &c[0], 1, KIB(64), timeout);
	zero_copy(x, &h, &c[0], buffer, KIB(64), true, timeout);
	first = copy_async(x, &h, &c[0], &c[1], KIB(4), NEURON_WAIT_NONE, timeout);
	wait_async(x, &h, &c[0], &c[1], first, timeout);
	set_parameter("never", "0");
	set_parameter("timeout_ms", "10000");
	copy(x, &h, &c[0], &c[1], KIB(64), 0);
	release(x, &h, &c[0]);
	release(x, &h, &c[1]);
	close_device(x, &h, NULL);
}

/* ---- many calls --------------------------------------------------------------------------- */

static void say_time(const char *what, unsigned long n, const struct timespec *begin)
{
	struct timespec end;
	double ns;

	clock_gettime(CLOCK_MONOTONIC, &end);
	ns = (double)(end.tv_sec - begin->tv_sec) * 1e9 + (double)(end.tv_nsec - begin->tv_nsec);
	printf("%lu %s, %.0f ns each\n", n, what, n ? ns / (double)n : 0.0);
}

/* The shortest record, without arguments; the longest, with six; or one of the DMA path beside that of the call. */
static const struct flood {
	const char *name;
	uint32_t cmd;
	const char *request;
	int64_t engine, result; /* engine NO: it names none */
	bool has_handle, is_ack;
} floods[] = {
	{"short", NEURON_IOCTL_DEVICE_BASIC_INFO, "DEVICE_BASIC_INFO", NO, 0, false, false},
	{"long", NEURON_IOCTL_DMA_QUEUE_INIT, "DMA_QUEUE_INIT", 999, -EINVAL, true, false},
	{"ack", NEURON_IOCTL_DMA_ACK_COMPLETED, "DMA_ACK_COMPLETED", 999, -EINVAL, false, true},
};
#define FLOODS (sizeof(floods) / sizeof(floods[0]))

static void list_flood(struct expect *x, unsigned long n, const struct flood *f)
{
	struct handle h = open_device(x, 0, false);
	struct event e = request_event(&h, f->request);
	/* What comes back, or the number of an engine that there is not. */
	union {
		uint32_t engine;
		struct neuron_device_basic_info info;
		struct neuron_dma_queue_init init;
		struct neuron_dma_ack_completed ack;
	} arg = {0};
	struct timespec begin;

	if (f->engine != NO) {
		arg.engine = (uint32_t)f->engine;
		e.engine = f->engine;
		e.queue = 0;
	}
	if (f->has_handle)
		e.handle = 0;
	for (unsigned long i = 0; i < n; i++) {
		expect_request(x, e, f->result);
		if (f->is_ack)
			expect_ack(x, h.device, (unsigned)f->engine, 0, 0, (int)f->result);
	}
	clock_gettime(CLOCK_MONOTONIC, &begin);
	for (unsigned long i = 0; i < n; i++)
		must("flood", request(&h, f->cmd, &arg), f->result);
	say_time("ioctls", n, &begin);
	close_device(x, &h, NULL);
}

struct worker {
	pthread_t thread;
	struct expect x;
	const struct handle *h;
	struct chunk chunk;
	unsigned long n;
	char name[16];
	char *text;
	size_t text_size;
};

static void *worker_main(void *context)
{
	struct worker *w = context;
	uint8_t *buffer = pages(4096);

	for (unsigned long i = 0; i < w->n; i++)
		buffer_copy(&w->x, w->h, &w->chunk, buffer, 4096, i % 2 == 0, 0);
	return NULL;
}

static void prepare_worker(struct worker *w, const struct expect *x, const struct handle *h,
	unsigned index, unsigned long n)
{
	snprintf(w->name, sizeof(w->name), "thread%u", index);
	w->x = (struct expect){
		.thread = w->name, .pid = x->pid, .dma = x->dma, .is_230 = x->is_230};
	if (x->out)
		w->x.out = open_memstream(&w->text, &w->text_size);
	w->h = h;
	w->n = n;
}

/* Lines of the threads come one thread after the other. */
static void list_threads(struct expect *x, unsigned count, unsigned long n)
{
	static struct worker workers[MAX_THREADS];
	struct handle h = open_device(x, 0, false);
	struct timespec begin;

	for (unsigned i = 0; i < count; i++) {
		prepare_worker(&workers[i], x, &h, i + 1, n);
		workers[i].chunk = allocate(x, &h, 4096, i, false);
	}
	clock_gettime(CLOCK_MONOTONIC, &begin);
	for (unsigned i = 0; i < count; i++)
		must("pthread_create",
			pthread_create(&workers[i].thread, NULL, worker_main, &workers[i]), 0);
	for (unsigned i = 0; i < count; i++)
		pthread_join(workers[i].thread, NULL);
	say_time("copies", count * n, &begin);
	for (unsigned i = 0; i < count; i++) {
		if (workers[i].x.out && fclose(workers[i].x.out) == 0)
			fputs(workers[i].text, x->out);
		release(x, &h, &workers[i].chunk);
	}
	close_device(x, &h, NULL);
}

static void list_many_devices(struct expect *x, unsigned count)
{
	uint8_t *out = pages(KIB(4)), *back = pages(KIB(4));

	for (unsigned d = 0; d < count; d++) {
		struct handle h = open_device(x, (int)d, false);
		struct chunk c = allocate(x, &h, KIB(4), d % 8, false);

		put_pattern(out, KIB(4), d);
		buffer_copy(x, &h, &c, out, KIB(4), true, 0);
		buffer_copy(x, &h, &c, back, KIB(4), false, 0);
		same("bytes of one of many devices", back, out, KIB(4));
		release(x, &h, &c);
		close_device(x, &h, NULL);
	}
}

/* ---- command line ------------------------------------------------------------------------- */

static struct expect main_thread = {.thread = "main"};

static int usage(void)
{
	fprintf(stderr, "usage: work [--expect FILE] LIST...\n"
			"lists: basic, dma, user-ring, map, completions, errors, timeout,\n"
			"       flood N [short|long|ack], threads T N, many-devices D\n");
	return 2;
}

static unsigned long number(char **argv, int i, unsigned long most)
{
	char *end = NULL;
	unsigned long n = argv[i] ? strtoul(argv[i], &end, 10) : 0;

	if (!n || *end || n > most)
		exit(usage());
	return n;
}

static const struct {
	const char *name;
	void (*run)(struct expect *x);
} plain_lists[] = {
	{"basic", list_basic},
	{"dma", list_dma},
	{"user-ring", list_user_ring},
	{"map", list_map},
	{"completions", list_completions},
	{"errors", list_errors},
	{"timeout", list_timeout},
};

static bool driver_is_230(void)
{
	FILE *f = fopen("/sys/module/neuron/version", "re");
	char version[32] = "";

	if (!f)
		return false;
	if (!fgets(version, sizeof(version), f))
		version[0] = 0;
	fclose(f);
	return !strncmp(version, "2.30.", 5);
}

/* argv[0] is a list's name.  Returns how many words it took, 0: there is no such list. */
static int run(struct expect *x, char **argv)
{
	for (size_t i = 0; i < sizeof(plain_lists) / sizeof(plain_lists[0]); i++)
		if (!strcmp(argv[0], plain_lists[i].name)) {
			plain_lists[i].run(x);
			return 1;
		}
	if (!strcmp(argv[0], "flood")) {
		size_t f = 0;
		bool has_word = argv[1] && argv[2];

		while (has_word && f < FLOODS && strcmp(argv[2], floods[f].name) != 0)
			f++;
		has_word &= f < FLOODS;
		list_flood(x, number(argv, 1, 1ul << 30), &floods[has_word ? f : 0]);
		return has_word ? 3 : 2;
	}
	if (!strcmp(argv[0], "threads")) {
		list_threads(x, (unsigned)number(argv, 1, MAX_THREADS), number(argv, 2, 1ul << 30));
		return 3;
	}
	if (!strcmp(argv[0], "many-devices")) {
		list_many_devices(x, (unsigned)number(argv, 1, EXPECT_DEVICES));
		return 2;
	}
	return 0;
}

int main(int argc, char **argv)
{
	int at = 1, words;

	if (argc > 3 && !strcmp(argv[1], "--expect")) {
		main_thread.out = fopen(argv[2], "we");
		if (!main_thread.out)
			fail(argv[2], -errno, 0);
		at = 3;
	}
	if (argc <= at)
		return usage();
	main_thread.pid = getpid();
	main_thread.dma = !getenv("NTRACE_DEVICE_ROOT");
	main_thread.is_230 = main_thread.dma && driver_is_230();
	for (; at < argc; at += words) {
		words = run(&main_thread, argv + at);
		if (!words)
			return usage();
	}
	if (main_thread.out && fclose(main_thread.out))
		fail("expected events", -errno, 0);
	return 0;
}
