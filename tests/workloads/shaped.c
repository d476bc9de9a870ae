/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shaped.c - a program whose trace has the counts that traces of real programs were reported to have.
 *
 *	shaped [--shape serving|eager|compiled] [--executions N] [--cores N] [--threads N] [--rate R]
 *	       [--lnc N] [--trace FILE]
 *
 *	serving		20 executions of a model with collectives, scheduled (nrta_execute_schedule)
 *	eager		1,050 executions of many tiny models, most of them another one than before
 *	compiled	one execution of one model
 *
 * Thread t works on core t modulo --cores (1), with models and tensors of its own; there is one per core unless
 * --threads says more.  With one per core the collectives of `serving` go over all of them.  The counts are per
 * thread, and grow with --executions.  --rate: executions per second of a thread (0: one after the other).  --lnc:
 * physical cores of a logical one.  --trace: the library's own capture from where all is loaded to the
 * end, as JSON.  Results are compared; exit status 0: all are right.
 *
 * What differs from the real traces, and why:
 * - nrta_execute_schedule is no type of event here; the library shows async_post_request and nrt_execute.
 * - nrt_profile_add_node_info is none either.
 * - nrt_dma_mem_alloc in `serving`: 642 of the 982 have no tensor.  Here they are of loads: the server gets models for
 *   requests of other sizes ready while it serves, and the capture leaves the events of loads out, as the real trace has
 *   none of them.  Three allocations and two copies a load at LNC 2 (at LNC 1 two and one).  What it was in reality is
 *   not known.
 * - nrt_tensor_free: most of the 4,800 in `serving` are slices, which have no event when they are made and give back no
 *   memory; 120 more are tensors from before the capture.  So 460 nrt_dma_mem_dealloc.
 * - dmem_buf_copyin: an execution has one here, for its binding table.  The rest of those
 *   without a tensor write are made by nrt_tensor_copy from host tensors, those of `eager` and `compiled` by
 *   tensor writes; which calls had them in reality is not known, nor how many reads and frees these two had.
 * - Loads and the tensors of models are made before the capture; a recording of the whole program has them.
 */
#include <inttypes.h>
#include <sched.h>
#include <time.h>

#include <nrt/nrt_async.h>
#include <nrt/nrt_experimental.h>
#include <nrt/nrt_sys_trace.h>

#include "tests/workloads/workload.h"

#define VALUES 256u /* float32 elements of a tensor */
#define BYTES (VALUES * sizeof(float))
#define MAX_MODELS 32u
#define MAX_AT_ONCE 64u /* tensors that one execution allocates */

/* Counts for so many executions; those of a different number are in proportion. */
struct shape {
	const char *name;
	unsigned executions, models;
	const char *steps;    /* of a model, behind a + b = sum */
	unsigned collectives; /* more steps, one each */
	bool scheduled;
	unsigned loads; /* of models that are not executed */
	unsigned switches, writes, reads, copies_in, copies_out, allocates, slices, old_tensors;
};

static const struct shape shapes[] = {
	{"serving", 20, 1, "step TOPSP 2us barrier wait ready 1\n", 18, true, 214, 0, 280, 305, 354,
		80, 340, 4340, 120},
	{"eager", 1050, MAX_MODELS, "", 0, false, 0, 984, 12735, 1050, 0, 0, 5196, 0, 0},
	{"compiled", 1, 1, "step ACT 30us nop\n", 0, false, 0, 0, 13, 1, 0, 0, 6, 0, 0},
};

static struct {
	const struct shape *shape;
	const char *shape_name, *trace_file;
	unsigned executions, cores, threads, rate, lnc;
} options = {.shape_name = "serving", .cores = 1};

struct worker {
	pthread_t thread;
	unsigned number, core, model;
	nrt_model_t *models[MAX_MODELS];
	nrt_tensor_set_t *in, *out;
	nrt_tensor_t *a, *b, *sum;
	nrt_tensor_t *page; /* of the device; first half: writes, second half: copies */
	nrt_tensor_t *upload, *download; /* of the host */
	nrt_tensor_t **old;
	unsigned old_count;
	nrt_model_t **spare; /* loaded on the way, never executed */
	unsigned spare_count;
	bool failed;
};

static pthread_barrier_t loaded, go, done, written; /* where threads and capture meet */

/* How many of `total` fall on execution i, so that each shape.executions have `total`. */
static unsigned share(unsigned total, unsigned i)
{
	uint64_t of = options.shape->executions;

	return (unsigned)((i + 1ull) * total / of - (uint64_t)i * total / of);
}

/* ---- models ------------------------------------------------------------------------------- */

static char *model_text(unsigned number)
{
	const struct shape *s = options.shape;
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	if (!f)
		return NULL;
	fprintf(f,
		"ntrace-model 2\nname %s_%u\ninput a float32 %u\ninput b float32 %u\n"
		"temp t float32 %u\ntemp all float32 %u\noutput sum float32 %u\n"
		"semaphore there\nsemaphore ready\n"
		"step DMA0 2us copy a t post there\n"
		"step PE %uus add t b sum wait there 1 post ready\n%s",
		s->name, number, VALUES, VALUES, VALUES, VALUES, VALUES, 5 + number, s->steps);
	for (unsigned i = 0; i < s->collectives; i++)
		fputs("step TOPSP 1us all_reduce t all\n", f);
	if (!s->collectives)
		fputs("step SP 1us copy t all wait there 1\n", f);
	fclose(f);
	return text;
}

static bool load(struct worker *w, unsigned number)
{
	char *text = model_text(number);
	NRT_STATUS status;

	if (!text)
		return false;
	if (options.threads == options.cores && options.shape->collectives)
		status = nrt_load_collectives(text, strlen(text), (int32_t)w->core, -1, w->core,
			options.cores, &w->models[number]);
	else
		status = nrt_load(text, strlen(text), (int32_t)w->core, -1, &w->models[number]);
	free(text);
	return !failed("nrt_load", status);
}

/* A model without temporary tensors; nobody executes it. */
static bool load_spares(struct worker *w, unsigned i)
{
	static const char text[] = "ntrace-model 2\nname spare\ninput a float32 1\n"
				   "output b float32 1\nstep DMA0 1us copy a b\n";

	for (unsigned k = share(options.shape->loads, i); k; k--)
		if (failed("nrt_load", nrt_load(text, sizeof(text) - 1, (int32_t)w->core, -1,
					       &w->spare[w->spare_count++])))
			return false;
	return true;
}

/* ---- before the capture ------------------------------------------------------------------- */

static bool host_tensor(const struct worker *w, nrt_tensor_t **ret)
{
	return !failed("nrt_tensor_allocate",
		nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_HOST, (int)w->core, BYTES, "host", ret));
}

static bool prepare_spares(struct worker *w)
{
	unsigned count = 0;

	for (unsigned i = 0; i < options.executions; i++)
		count += share(options.shape->loads, i);
	w->spare = calloc(count + 1, sizeof(nrt_model_t *));
	return w->spare != NULL;
}

static bool prepare_old(struct worker *w)
{
	for (unsigned i = 0; i < options.executions; i++)
		w->old_count += share(options.shape->old_tensors, i);
	w->old = calloc(w->old_count + 1, sizeof(*w->old));
	for (unsigned i = 0; w->old && i < w->old_count; i++)
		if (failed("nrt_tensor_allocate", nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE,
							  (int)w->core, BYTES, "old", &w->old[i])))
			return false;
	return w->old != NULL;
}

static bool prepare(struct worker *w)
{
	for (unsigned i = 0; i < options.shape->models; i++)
		if (!load(w, i))
			return false;
	return !failed("nrt_allocate_tensor_set", nrt_allocate_tensor_set(&w->in)) &&
	       !failed("nrt_allocate_tensor_set", nrt_allocate_tensor_set(&w->out)) &&
	       tensor_for(w->in, w->core, "a", BYTES, &w->a) &&
	       tensor_for(w->in, w->core, "b", BYTES, &w->b) &&
	       tensor_for(w->out, w->core, "sum", BYTES, &w->sum) &&
	       tensor_for(w->in, w->core, "page", BYTES, &w->page) && host_tensor(w, &w->upload) &&
	       host_tensor(w, &w->download) && prepare_old(w) && prepare_spares(w);
}

static void clean(struct worker *w)
{
	for (unsigned i = 0; i < options.shape->models; i++)
		if (w->models[i])
			w->failed |= failed("nrt_unload", nrt_unload(w->models[i]));
	nrt_destroy_tensor_set(&w->in);
	nrt_destroy_tensor_set(&w->out);
	nrt_tensor_free(&w->a);
	nrt_tensor_free(&w->b);
	nrt_tensor_free(&w->sum);
	nrt_tensor_free(&w->page);
	nrt_tensor_free(&w->upload);
	nrt_tensor_free(&w->download);
	for (unsigned i = 0; w->old && i < w->old_count; i++)
		nrt_tensor_free(&w->old[i]);
	free(w->old);
	for (unsigned i = 0; i < w->spare_count; i++)
		if (w->spare[i])
			w->failed |= failed("nrt_unload", nrt_unload(w->spare[i]));
	free(w->spare);
}

/* ---- one execution ------------------------------------------------------------------------ */

static float pattern(const struct worker *w, unsigned i, unsigned tensor, unsigned n)
{
	return (float)((n * (tensor + 1) + i * 3 + w->number) % 1021);
}

static void fill(const struct worker *w, unsigned i, unsigned tensor, float values[VALUES])
{
	for (unsigned n = 0; n < VALUES; n++)
		values[n] = pattern(w, i, tensor, n);
}

/* The inputs are the first two writes; the others go to the page, as those of a cache would. */
static bool write_all(struct worker *w, unsigned i)
{
	unsigned count = share(options.shape->writes, i);
	nrt_tensor_t *const to[] = {w->a, w->b, w->page};
	float values[VALUES];

	for (unsigned k = 0; k < count; k++) {
		unsigned tensor = k < 2 ? k : 2;

		fill(w, i, tensor, values);
		if (failed("nrt_tensor_write", nrt_tensor_write(to[tensor], values, 0,
						       tensor < 2 ? BYTES : BYTES / 2)))
			return false;
	}
	return true;
}

static bool compare(
	const struct worker *w, unsigned i, unsigned tensor, const float *got, unsigned n)
{
	for (unsigned k = 0; k < n; k++) {
		float want = tensor == 3 ? pattern(w, i, 0, k) + pattern(w, i, 1, k)
					 : pattern(w, i, tensor, k);

		if (got[k] == want)
			continue;
		fprintf(stderr,
			"execution %u of thread %u: element %u of tensor %u is %g, not %g\n", i,
			w->number, k, tensor, (double)got[k], (double)want);
		return false;
	}
	return true;
}

static bool read_all(struct worker *w, unsigned i)
{
	unsigned count = share(options.shape->reads, i);
	float values[VALUES];

	for (unsigned k = 0; k < count; k++) {
		unsigned n = k ? VALUES / 2 : VALUES;

		if (failed("nrt_tensor_read",
			    nrt_tensor_read(k ? w->page : w->sum, values, 0, n * sizeof(float))) ||
			!compare(w, i, k ? 2 : 3, values, n))
			return false;
	}
	return true;
}

static bool copy_in_all(struct worker *w, unsigned i)
{
	unsigned count = share(options.shape->copies_in, i);

	if (count)
		fill(w, i, 4, nrt_tensor_get_va(w->upload));
	for (unsigned k = 0; k < count; k++)
		if (failed("nrt_tensor_copy",
			    nrt_tensor_copy(w->upload, 0, w->page, BYTES / 2, BYTES / 2)))
			return false;
	return true;
}

static bool copy_out_all(struct worker *w, unsigned i)
{
	unsigned count = share(options.shape->copies_out, i);

	for (unsigned k = 0; k < count; k++)
		if (failed("nrt_tensor_copy",
			    nrt_tensor_copy(w->page, BYTES / 2, w->download, 0, BYTES / 2)) ||
			!compare(w, i, 4, nrt_tensor_get_va(w->download), VALUES / 2))
			return false;
	return true;
}

static bool allocate_all(struct worker *w, unsigned count, nrt_tensor_t **fresh)
{
	for (unsigned k = 0; k < count; k++)
		if (failed("nrt_tensor_allocate",
			    nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, (int)w->core, BYTES,
				    "activation", &fresh[k])))
			return false;
	return true;
}

static bool free_all(struct worker *w, unsigned i, unsigned count, nrt_tensor_t **fresh)
{
	for (unsigned k = 0; k < count; k++)
		nrt_tensor_free(&fresh[k]);
	for (unsigned k = share(options.shape->old_tensors, i); k; k--)
		nrt_tensor_free(&w->old[--w->old_count]);
	for (unsigned k = share(options.shape->slices, i); k; k--) {
		nrt_tensor_t *slice = NULL;

		if (failed("nrt_tensor_allocate_slice",
			    nrt_tensor_allocate_slice(w->page, 4 * k % BYTES, 4, NULL, &slice)))
			return false;
		nrt_tensor_free(&slice);
	}
	return true;
}

/* Scheduled, and waited for: the next one needs the results. */
static bool execute_scheduled(struct worker *w)
{
	NRT_STATUS status, result = NRT_FAILURE;
	nrta_seq_t sequence = 0;
	bool complete = false;

	do /* another thread may have filled the core's queue */
		status = nrta_execute_schedule(
			w->models[w->model], w->in, w->out, 0, &result, &sequence);
	while (status == NRT_QUEUE_FULL && sched_yield() == 0);
	return !failed("nrta_execute_schedule", status) &&
	       !failed("nrt_async_drain_queued_execs",
		       nrt_async_drain_queued_execs((int32_t)w->core)) &&
	       !failed("nrta_is_completed", nrta_is_completed(sequence, &complete)) && complete &&
	       !failed("the execution", result);
}

static bool execute(struct worker *w)
{
	if (options.shape->scheduled)
		return execute_scheduled(w);
	return !failed("nrt_execute", nrt_execute(w->models[w->model], w->in, w->out));
}

static bool one(struct worker *w, unsigned i)
{
	unsigned fresh_count = share(options.shape->allocates, i);
	nrt_tensor_t *fresh[MAX_AT_ONCE] = {NULL};

	if (share(options.shape->switches, i))
		w->model = (w->model + 1) % options.shape->models;
	return load_spares(w, i) && allocate_all(w, fresh_count, fresh) && copy_in_all(w, i) &&
	       write_all(w, i) && execute(w) && read_all(w, i) && copy_out_all(w, i) &&
	       free_all(w, i, fresh_count, fresh);
}

/* ---- threads ------------------------------------------------------------------------------ */

static void wait_for_turn(struct timespec *next)
{
	uint64_t ns;

	if (!options.rate)
		return;
	ns = (uint64_t)next->tv_nsec + 1000000000u / options.rate;
	next->tv_sec += (time_t)(ns / 1000000000u);
	next->tv_nsec = (long)(ns % 1000000000u);
	(void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, next, NULL);
}

static void *work(void *arg)
{
	struct worker *w = arg;
	struct timespec next;

	w->failed = !prepare(w);
	pthread_barrier_wait(&loaded);
	pthread_barrier_wait(&go);
	clock_gettime(CLOCK_MONOTONIC, &next);
	for (unsigned i = 0; i < options.executions && !w->failed; i++) {
		w->failed = !one(w, i);
		wait_for_turn(&next);
	}
	pthread_barrier_wait(&done);
	pthread_barrier_wait(&written);
	clean(w);
	return NULL;
}

/* ---- the capture -------------------------------------------------------------------------- */

static bool leave_out(nrt_sys_trace_config_t *config, const char *type)
{
	return !failed(
		type, nrt_sys_trace_config_set_capture_enabled_for_event_type(config, type, false));
}

static bool capture_start(void)
{
	nrt_sys_trace_config_t *config = NULL;
	bool ok;

	if (!options.trace_file)
		return true;
	ok = !failed("nrt_sys_trace_config_allocate", nrt_sys_trace_config_allocate(&config)) &&
	     leave_out(config, "nrt_load") && leave_out(config, "nrt_load_collectives") &&
	     !failed("nrt_sys_trace_start", nrt_sys_trace_start(config));
	nrt_sys_trace_config_free(config);
	return ok;
}

static bool capture_write(void)
{
	char *events = NULL;
	size_t size = 0;
	FILE *f;
	bool ok;

	if (!options.trace_file)
		return true;
	if (failed("nrt_sys_trace_fetch_events", nrt_sys_trace_fetch_events(&events, &size, NULL)))
		return false;
	f = fopen(options.trace_file, "wx");
	ok = f && fwrite(events, 1, size, f) == size;
	ok = (!f || fclose(f) == 0) && ok;
	nrt_sys_trace_buffer_free(events);
	if (!ok)
		perror(options.trace_file);
	return ok && !failed("nrt_sys_trace_stop", nrt_sys_trace_stop());
}

static bool run(struct worker *workers)
{
	bool ok;

	pthread_barrier_wait(&loaded);
	ok = capture_start();
	pthread_barrier_wait(&go);
	pthread_barrier_wait(&done);
	ok = capture_write() && ok;
	pthread_barrier_wait(&written);
	for (unsigned i = 0; i < options.threads; i++) {
		pthread_join(workers[i].thread, NULL);
		ok = ok && !workers[i].failed;
	}
	printf("shaped: shape=%s threads=%u executions=%u%s\n", options.shape->name,
		options.threads, options.threads * options.executions, ok ? "" : " FAILED");
	return ok;
}

static bool start(struct worker *workers)
{
	pthread_barrier_init(&loaded, NULL, options.threads + 1);
	pthread_barrier_init(&go, NULL, options.threads + 1);
	pthread_barrier_init(&done, NULL, options.threads + 1);
	pthread_barrier_init(&written, NULL, options.threads + 1);
	for (unsigned i = 0; i < options.threads; i++) {
		workers[i] = (struct worker){.number = i, .core = i % options.cores};
		if (pthread_create(&workers[i].thread, NULL, work, &workers[i])) {
			perror("pthread_create");
			exit(1); /* the others wait for it at the barrier */
		}
	}
	return run(workers);
}

static bool read_options(int argc, char **argv)
{
	const struct workload_option rows[] = {TEXT_OPTION("--shape", options.shape_name),
		TEXT_OPTION("--trace", options.trace_file),
		NUMBER_OPTION("--executions", options.executions, 10000000),
		NUMBER_OPTION("--cores", options.cores, 64),
		NUMBER_OPTION("--threads", options.threads, 1024),
		NUMBER_OPTION("--rate", options.rate, 1000000),
		NUMBER_OPTION("--lnc", options.lnc, 2), {.name = NULL}};

	if (!workload_options(argc, argv, rows) || !options.cores)
		return false;
	for (size_t i = 0; i < sizeof(shapes) / sizeof(*shapes); i++)
		if (!strcmp(shapes[i].name, options.shape_name))
			options.shape = &shapes[i];
	if (!options.shape)
		return false;
	if (!options.executions)
		options.executions = options.shape->executions;
	if (!options.threads)
		options.threads = options.cores;
	if (options.lnc)
		setenv("NEURON_LOGICAL_NC_CONFIG", options.lnc == 1 ? "1" : "2", 1);
	workload_name_job();
	return true;
}

int main(int argc, char **argv)
{
	struct worker *workers;
	bool ok;

	if (!read_options(argc, argv)) {
		fputs("usage: shaped [--shape serving|eager|compiled] [--executions N] [--cores "
		      "N]\n"
		      "              [--threads N] [--rate R] [--lnc 1|2] [--trace FILE]\n",
			stderr);
		return 2;
	}
	if (!init_cores(options.cores))
		return 1;
	workers = calloc(options.threads, sizeof(*workers));
	ok = workers && start(workers);
	free(workers);
	nrt_close();
	return ok ? 0 : 1;
}
