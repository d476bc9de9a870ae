/* SPDX-License-Identifier: Apache-2.0 */
/*
 * storm.c - a program that uses the runtime as no good program does, and looks at every answer.
 *
 *	storm [--mode handles|tensors|churn|late] [--rounds N] [--threads N] [--cores N] [--late-ms N]
 *	      [--seed N]
 *
 *	handles	threads that write, read, copy and free tensors which others free at the same time, and give what
 *		never was a tensor: each call works or says NRT_INVALID_HANDLE (NULL: NRT_INVALID)
 *	tensors	each thread allocates, slices, copies, reads and frees at random; contents are right, and
 *		in the end no memory is in use that was not before
 *	churn	threads execute a model of each core, which another thread unloads and loads again: each
 *		execution is right or says NRT_INVALID_HANDLE
 *	late	a sum over all cores, of which one, in turn, comes later: it is right everywhere, and nobody is
 *		done before the last one came
 *
 * Without --mode all of them, one after the other.  Exit status 0: all answers are right.
 */
#include <stdatomic.h>
#include <time.h>

#include "tests/workloads/workload.h"

#define VALUES 64u
#define BYTES (VALUES * sizeof(float))
#define SLOTS 32u
#define MAX_CORES 64u

static struct {
	unsigned rounds, threads, cores, late_ms, seed;
	const char *mode;
} options = {.rounds = 200, .threads = 8, .late_ms = 5, .seed = 1};

struct worker {
	pthread_t thread;
	unsigned number, core;
	uint64_t random;
	bool (*round)(struct worker *w, unsigned round);
	bool failed;
	uint64_t worked; /* calls that went well */
	/* what it keeps from round to round */
	nrt_model_t *model;
	nrt_tensor_set_t *in, *out;
	nrt_tensor_t *a, *c;
	nrt_tensor_t *own[SLOTS];
	unsigned mark[SLOTS];
};

static unsigned draw(struct worker *w, unsigned below)
{
	w->random ^= w->random << 13;
	w->random ^= w->random >> 7;
	w->random ^= w->random << 17;
	return (unsigned)((w->random >> 33) % below);
}

static bool complain(const struct worker *w, unsigned round, const char *what, NRT_STATUS status)
{
	fprintf(stderr, "round %u of thread %u on core %u: %s (status %d)\n", round, w->number,
		w->core, what, (int)status);
	return false;
}

/* Worked, or refused as the handle of something that is gone.  A handle that is gone may have become that of
 * another core's: `foreign` is what the call says then. */
static bool works_or_gone(
	struct worker *w, unsigned round, const char *what, NRT_STATUS status, NRT_STATUS foreign)
{
	if (status == NRT_SUCCESS)
		w->worked++;
	else if (status != NRT_INVALID_HANDLE && status != foreign)
		return complain(w, round, what, status);
	return true;
}

static void fill(float values[VALUES], unsigned mark)
{
	for (unsigned n = 0; n < VALUES; n++)
		values[n] = (float)(mark % 65536 + n);
}

static bool filled(
	const float values[VALUES], unsigned count, unsigned first, unsigned mark, unsigned times)
{
	for (unsigned n = 0; n < count; n++)
		if (values[n] != (float)times * (float)(mark % 65536 + first + n))
			return false;
	return true;
}

static NRT_STATUS allocate(const struct worker *w, nrt_tensor_t **ret)
{
	return nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, (int)w->core, BYTES, "storm", ret);
}

/* ---- handles ------------------------------------------------------------------------------ */

static _Atomic(nrt_tensor_t *) shared[MAX_CORES][SLOTS];

static bool replace_shared(struct worker *w, unsigned round, unsigned slot)
{
	nrt_tensor_t *fresh = NULL, *old;
	NRT_STATUS status = allocate(w, &fresh);

	if (status)
		return complain(w, round, "nrt_tensor_allocate", status);
	old = atomic_exchange(&shared[w->core][slot], fresh);
	if (old) {
		nrt_tensor_t *again = old;

		nrt_tensor_free(&old);
		nrt_tensor_free(&again); /* nobody's any more, or another's new one */
	}
	return true;
}

static bool use_shared(struct worker *w, unsigned round, unsigned slot)
{
	nrt_tensor_t *t = atomic_load(&shared[w->core][slot]);
	nrt_tensor_t *other = atomic_load(&shared[w->core][draw(w, SLOTS)]);
	float values[VALUES];

	if (!t || !other)
		return true;
	fill(values, round);
	return works_or_gone(w, round, "nrt_tensor_write", nrt_tensor_write(t, values, 0, BYTES),
		       NRT_SUCCESS) &&
	       works_or_gone(w, round, "nrt_tensor_read", nrt_tensor_read(t, values, 0, BYTES),
		       NRT_SUCCESS) &&
	       works_or_gone(w, round, "nrt_tensor_copy",
		       nrt_tensor_copy(t, 0, other, BYTES / 2, BYTES / 2), NRT_INVALID) &&
	       works_or_gone(w, round, "nrt_tensor_memset", nrt_tensor_memset(t, 0, 1, BYTES),
		       NRT_SUCCESS);
}

/* What was never a tensor. */
static bool use_foreign(struct worker *w, unsigned round)
{
	void *const foreign[] = {w, &options, (void *)(uintptr_t)16, w->in, (void *)-1};
	void *t = foreign[draw(w, sizeof(foreign) / sizeof(*foreign))];
	float values[VALUES] = {0};
	NRT_STATUS status = nrt_tensor_write(t, values, 0, BYTES);

	if (status != NRT_INVALID_HANDLE)
		return complain(w, round, "a write to what is no tensor", status);
	status = nrt_tensor_read(NULL, values, 0, BYTES);
	if (status != NRT_INVALID)
		return complain(w, round, "a read of NULL", status);
	status = nrt_execute(t, w->in, w->in);
	if (status != NRT_INVALID_HANDLE)
		return complain(w, round, "an execution of what is no model", status);
	if (nrt_tensor_get_size(t) != 0)
		return complain(w, round, "what is no tensor has a size", NRT_SUCCESS);
	return true;
}

static bool handles_round(struct worker *w, unsigned round)
{
	unsigned slot = draw(w, SLOTS);

	if (!w->in && failed("nrt_allocate_tensor_set", nrt_allocate_tensor_set(&w->in)))
		return false;
	return replace_shared(w, round, slot) && use_shared(w, round, draw(w, SLOTS)) &&
	       use_foreign(w, round);
}

static bool handles_end(void)
{
	for (unsigned core = 0; core < MAX_CORES; core++)
		for (unsigned i = 0; i < SLOTS; i++) {
			nrt_tensor_t *t = atomic_exchange(&shared[core][i], NULL);

			nrt_tensor_free(&t);
		}
	return true;
}

/* ---- tensors ------------------------------------------------------------------------------ */

static size_t used_before[MAX_CORES];

static size_t used(unsigned core)
{
	nrt_vnc_memory_stats_t stats = {0};
	size_t size = 0;

	return failed("nrt_get_vnc_memory_stats",
		       nrt_get_vnc_memory_stats(core, &stats, sizeof(stats), &size))
		       ? 0
		       : stats.bytes_used;
}

static bool tensors_begin(void)
{
	for (unsigned core = 0; core < options.cores; core++)
		used_before[core] = used(core);
	return true;
}

static bool tensors_end(void)
{
	bool ok = true;

	for (unsigned core = 0; core < options.cores; core++) {
		size_t now = used(core);

		if (now == used_before[core])
			continue;
		fprintf(stderr, "core %u: %zu bytes are in use, and before %zu\n", core, now,
			used_before[core]);
		ok = false;
	}
	return ok;
}

static bool renew_own(struct worker *w, unsigned round, unsigned slot)
{
	float values[VALUES];
	NRT_STATUS status;

	nrt_tensor_free(&w->own[slot]);
	status = allocate(w, &w->own[slot]);
	if (status)
		return complain(w, round, "nrt_tensor_allocate", status);
	w->mark[slot] = draw(w, 60000);
	fill(values, w->mark[slot]);
	status = nrt_tensor_write(w->own[slot], values, 0, BYTES);
	return !status || complain(w, round, "nrt_tensor_write", status);
}

/* Half of one tensor, read through a slice that lives longer than its source's handle. */
static bool read_slice(struct worker *w, unsigned round, unsigned slot)
{
	nrt_tensor_t *slice = NULL;
	float values[VALUES] = {0};
	NRT_STATUS status =
		nrt_tensor_allocate_slice(w->own[slot], BYTES / 2, BYTES / 2, NULL, &slice);

	if (status)
		return complain(w, round, "nrt_tensor_allocate_slice", status);
	if (draw(w, 4) == 0)
		nrt_tensor_free(&w->own[slot]);
	status = nrt_tensor_read(slice, values, 0, BYTES / 2);
	nrt_tensor_free(&slice);
	if (status || !filled(values, VALUES / 2, VALUES / 2, w->mark[slot], 1))
		return complain(w, round, "a slice is not as its tensor", status);
	return true;
}

static bool copy_own(struct worker *w, unsigned round, unsigned from, unsigned to)
{
	float values[VALUES] = {0};
	NRT_STATUS status = nrt_tensor_copy(w->own[from], 0, w->own[to], 0, BYTES);

	if (status)
		return complain(w, round, "nrt_tensor_copy", status);
	w->mark[to] = w->mark[from];
	status = nrt_tensor_read(w->own[to], values, 0, BYTES);
	if (status || !filled(values, VALUES, 0, w->mark[from], 1))
		return complain(w, round, "a copy is not as its source", status);
	return true;
}

static bool tensors_round(struct worker *w, unsigned round)
{
	unsigned slot = draw(w, SLOTS), other = draw(w, SLOTS);

	w->worked++;
	if (!w->own[slot] || draw(w, 2) == 0)
		return renew_own(w, round, slot);
	if (w->own[other] && draw(w, 2) == 0)
		return copy_own(w, round, slot, other);
	return read_slice(w, round, slot);
}

/* ---- models ------------------------------------------------------------------------------- */

static bool work_tensors(struct worker *w)
{
	return !failed("nrt_allocate_tensor_set", nrt_allocate_tensor_set(&w->in)) &&
	       !failed("nrt_allocate_tensor_set", nrt_allocate_tensor_set(&w->out)) &&
	       tensor_for(w->in, w->core, "a", BYTES, &w->a) &&
	       tensor_for(w->out, w->core, "c", BYTES, &w->c);
}

static bool read_result(struct worker *w, unsigned round, unsigned mark, unsigned times)
{
	float values[VALUES] = {0};
	NRT_STATUS status = nrt_tensor_read(w->c, values, 0, BYTES);

	if (status || !filled(values, VALUES, 0, mark, times))
		return complain(w, round, "a result is wrong", status);
	return true;
}

static bool write_input(struct worker *w, unsigned round, unsigned mark)
{
	float values[VALUES];
	NRT_STATUS status;

	fill(values, mark);
	status = nrt_tensor_write(w->a, values, 0, BYTES);
	return !status || complain(w, round, "nrt_tensor_write", status);
}

/* ---- churn -------------------------------------------------------------------------------- */

static const char doubler[] =
	"ntrace-model 2\nname doubler\ninput a float32 64\noutput c float32 64\n"
	"step PE 3us add a a c\nstep SP 5us nop\n";
static _Atomic(nrt_model_t *) models[MAX_CORES];

static bool renew_model(struct worker *w, unsigned round)
{
	nrt_model_t *fresh = NULL, *old;
	NRT_STATUS status = nrt_load(doubler, strlen(doubler), (int32_t)w->core, -1, &fresh);

	if (status)
		return complain(w, round, "nrt_load", status);
	old = atomic_exchange(&models[w->core], fresh);
	if (!old)
		return true;
	status = nrt_unload(old);
	return !status || complain(w, round, "nrt_unload", status);
}

static bool churn_round(struct worker *w, unsigned round)
{
	nrt_model_t *model = atomic_load(&models[w->core]);
	NRT_STATUS status;

	if (!w->in && !work_tensors(w))
		return false;
	if (!model || w->number < options.cores) /* the first of each core */
		return renew_model(w, round);
	if (!write_input(w, round, round))
		return false;
	status = nrt_execute(model, w->in, w->out);
	return works_or_gone(w, round, "nrt_execute", status, NRT_EXEC_BAD_INPUT) &&
	       (status || read_result(w, round, round, 2));
}

static bool churn_end(void)
{
	bool ok = true;

	for (unsigned core = 0; core < MAX_CORES; core++) {
		nrt_model_t *m = atomic_exchange(&models[core], NULL);

		ok = (!m || !failed("nrt_unload", nrt_unload(m))) && ok;
	}
	return ok;
}

/* ---- late --------------------------------------------------------------------------------- */

static const char reducer[] =
	"ntrace-model 2\nname reducer\ninput a float32 64\noutput c float32 64\n"
	"step TOPSP 2us all_reduce a c\n";
static _Atomic unsigned rounds_begun[MAX_CORES]; /* by each rank */

static bool join_others(struct worker *w)
{
	return work_tensors(w) &&
	       !failed("nrt_load_collectives",
		       nrt_load_collectives(reducer, strlen(reducer), (int32_t)w->core, -1,
			       w->number, options.cores, &w->model));
}

static bool late_round(struct worker *w, unsigned round)
{
	const struct timespec late = {
		options.late_ms / 1000, (long)(options.late_ms % 1000) * 1000000};
	NRT_STATUS status;

	if (!write_input(w, round, round))
		return false;
	if (round % options.cores == w->number)
		(void)nanosleep(&late, NULL);
	atomic_store(&rounds_begun[w->number], round + 1);
	status = nrt_execute(w->model, w->in, w->out);
	if (status)
		return complain(w, round, "nrt_execute", status);
	for (unsigned rank = 0; rank < options.cores; rank++)
		if (atomic_load(&rounds_begun[rank]) <= round)
			return complain(w, round, "done before the last one came", status);
	w->worked++;
	return read_result(w, round, round, options.cores);
}

/* ---- threads ------------------------------------------------------------------------------ */

static const struct mode {
	const char *name;
	bool (*begin)(void);
	bool (*prepare)(struct worker *w); /* all are prepared before the first round */
	bool (*round)(struct worker *w, unsigned round);
	bool (*end)(void);
	unsigned least_per_core; /* threads */
	bool one_per_core;
} modes[] = {
	{"handles", NULL, NULL, handles_round, handles_end, 0, false},
	{"tensors", tensors_begin, NULL, tensors_round, tensors_end, 0, false},
	{"churn", NULL, NULL, churn_round, churn_end, 2, false},
	{"late", NULL, join_others, late_round, NULL, 1, true},
};

static pthread_barrier_t prepared;
static atomic_bool some_failed;

static void clean(struct worker *w)
{
	if (w->model)
		w->failed |= failed("nrt_unload", nrt_unload(w->model));
	nrt_destroy_tensor_set(&w->in);
	nrt_destroy_tensor_set(&w->out);
	nrt_tensor_free(&w->a);
	nrt_tensor_free(&w->c);
	for (unsigned i = 0; i < SLOTS; i++)
		nrt_tensor_free(&w->own[i]);
}

static void *work(void *arg)
{
	struct worker *w = arg;

	pthread_barrier_wait(&prepared);
	for (unsigned i = 0; i < options.rounds && !w->failed && !atomic_load(&some_failed); i++)
		w->failed = !w->round(w, i);
	if (w->failed)
		atomic_store(&some_failed, true);
	clean(w);
	return NULL;
}

static bool run_threads(const struct mode *m, struct worker *workers, unsigned n)
{
	uint64_t worked = 0;
	bool ok = !m->begin || m->begin();

	pthread_barrier_init(&prepared, NULL, n);
	for (unsigned i = 0; i < n; i++) {
		struct worker *w = &workers[i];

		*w = (struct worker){.number = i,
			.core = i % options.cores,
			.random = (options.seed + 1ull) * 0x9e3779b97f4a7c15u + i,
			.round = m->round};
		w->failed = m->prepare && !m->prepare(w);
		if (pthread_create(&w->thread, NULL, work, w)) {
			perror("pthread_create");
			exit(1); /* the others wait for it at the barrier */
		}
	}
	for (unsigned i = 0; i < n; i++) {
		pthread_join(workers[i].thread, NULL);
		ok = ok && !workers[i].failed;
		worked += workers[i].worked;
	}
	pthread_barrier_destroy(&prepared);
	ok = (!m->end || m->end()) && ok;
	printf("storm: mode=%s threads=%u%s%s\n", m->name, n, worked ? " worked" : "",
		ok ? "" : " FAILED");
	return ok;
}

static bool run(const struct mode *m)
{
	unsigned least = options.cores * m->least_per_core;
	unsigned n = m->one_per_core || options.threads < least ? least : options.threads;
	struct worker *workers = calloc(n, sizeof(*workers));
	bool ok = workers && run_threads(m, workers, n);

	free(workers);
	return ok;
}

static bool run_modes(void)
{
	bool ok = true, any = false;

	for (size_t i = 0; i < sizeof(modes) / sizeof(*modes); i++) {
		if (options.mode && strcmp(options.mode, modes[i].name) != 0)
			continue;
		any = true;
		ok = run(&modes[i]) && ok;
	}
	if (!any)
		fprintf(stderr, "storm: there is no mode '%s'\n", options.mode);
	return ok && any;
}

int main(int argc, char **argv)
{
	const struct workload_option rows[] = {TEXT_OPTION("--mode", options.mode),
		NUMBER_OPTION("--rounds", options.rounds, 100000000),
		NUMBER_OPTION("--threads", options.threads, 1024),
		NUMBER_OPTION("--cores", options.cores, MAX_CORES),
		NUMBER_OPTION("--late-ms", options.late_ms, 60000),
		NUMBER_OPTION("--seed", options.seed, 1000000000), {.name = NULL}};
	uint32_t visible = 0;
	bool ok;

	if (!workload_options(argc, argv, rows) || !options.threads) {
		fputs("usage: storm [--mode handles|tensors|churn|late] [--rounds N] [--threads "
		      "N]\n"
		      "             [--cores N] [--late-ms N] [--seed N]\n",
			stderr);
		return 2;
	}
	workload_name_job();
	if (!init_cores(options.cores) || nrt_get_visible_vnc_count(&visible))
		return 1;
	if (!options.cores)
		options.cores = visible < MAX_CORES ? visible : MAX_CORES;
	ok = run_modes();
	nrt_close();
	return ok ? 0 : 1;
}
