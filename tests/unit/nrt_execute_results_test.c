/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nrt_execute_results_test.c - what executions compute: all types and awkward sizes, split over the physical cores of
 * a logical one, from slices, by units side by side, and by many threads at once.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/vdev/arithmetic.h"
#include "tests/shim/shim.h"
#include "tests/unit/nrt_lib.h"

static const char *lnc_now;

static int up(const struct place *p)
{
	setenv("NEURON_LOGICAL_NC_CONFIG", lnc_now, 1);
	WANT(enter(p) == 0);
	WANT_STATUS(init(), 0);
	return 0;
}

/* ---- types and sizes ---------------------------------------------------------------------- */

static const struct {
	const char *name;
	uint32_t number, bytes;
	bool adds;
} dtypes[] = {
#define DTYPE(id, number, name, bytes, sum) {name, number, bytes, VDEV_SUM_##sum != VDEV_SUM_NONE},
#include "runtime/vdev/dtypes.def"
#undef DTYPE
};

static uint32_t state = 1;

/* Random elements; of floating types finite ones, for which bits a NaN has is not said anywhere. */
static void scramble(uint8_t *to, size_t size, size_t type)
{
	bool floats = strstr(dtypes[type].name, "float") != NULL;

	for (size_t i = 0; i < size; i++) {
		state = state * 1664525u + 1013904223u;
		to[i] = (uint8_t)(state >> 24);
		if (floats && i % dtypes[type].bytes == dtypes[type].bytes - 1)
			to[i] &= 0xbf; /* a bit of the exponent */
	}
}

/* A tensor that is a part of a larger one, at an odd place when `shift` says so. */
static nrt_tensor_t *part_of(size_t size, size_t shift)
{
	nrt_tensor_t *whole = NULL, *part = NULL;

	if (lib.nrt_tensor_allocate(
		    NRT_TENSOR_PLACEMENT_DEVICE, 0, size + 2 * shift, "w", &whole) ||
		lib.nrt_tensor_allocate_slice(whole, shift, size, "p", &part))
		return NULL;
	lib.nrt_tensor_free(&whole); /* the part keeps its memory */
	return part;
}

static int one_size(size_t type, size_t count)
{
	size_t size = count * dtypes[type].bytes;
	uint8_t *a = malloc(size), *b = malloc(size), *want = malloc(size), *got = malloc(size);
	const char *op = dtypes[type].adds ? "add a b c" : "copy a c";
	nrt_tensor_t *ta = part_of(size, 1), *tb = part_of(size, 0), *tc = part_of(size, 3);
	nrt_tensor_set_t *in = NULL, *out = NULL;
	nrt_model_t *m = NULL;
	char text[256];

	snprintf(text, sizeof(text),
		"ntrace-model 2\nname r\ninput a %s %zu\ninput b %s %zu\noutput c %s %zu\n"
		"step DVE 1us %s\n",
		dtypes[type].name, count, dtypes[type].name, count, dtypes[type].name, count, op);
	WANT(a && b && want && got && ta && tb && tc);
	scramble(a, size, type);
	scramble(b, size, type);
	memcpy(want, a, size);
	if (dtypes[type].adds)
		vdev_add(dtypes[type].number, want, a, b, count);
	WANT_STATUS(lib.nrt_load(text, strlen(text), 0, -1, &m), 0);
	WANT_STATUS(lib.nrt_allocate_tensor_set(&in), 0);
	WANT_STATUS(lib.nrt_allocate_tensor_set(&out), 0);
	WANT_STATUS(lib.nrt_add_tensor_to_tensor_set(in, "a", ta), 0);
	WANT_STATUS(lib.nrt_add_tensor_to_tensor_set(in, "b", tb), 0);
	WANT_STATUS(lib.nrt_add_tensor_to_tensor_set(out, "c", tc), 0);
	WANT_STATUS(lib.nrt_tensor_write(ta, a, 0, size), 0);
	WANT_STATUS(lib.nrt_tensor_write(tb, b, 0, size), 0);
	WANT_STATUS(lib.nrt_execute(m, in, out), 0);
	WANT_STATUS(lib.nrt_tensor_check_output_completion(tc, 0, 1), 0);
	WANT_STATUS(lib.nrt_tensor_read(tc, got, 0, size), 0);
	WANT(memcmp(want, got, size) == 0);
	WANT_STATUS(lib.nrt_unload(m), 0);
	lib.nrt_destroy_tensor_set(&in);
	lib.nrt_destroy_tensor_set(&out);
	lib.nrt_tensor_free(&ta);
	lib.nrt_tensor_free(&tb);
	lib.nrt_tensor_free(&tc);
	free(a);
	free(b);
	free(want);
	free(got);
	return 0;
}

static int all_sizes(void *arg)
{
	static const size_t counts[] = {1, 2, 3, 17, 65535, 65536, 65537};

	WANT(up(arg) == 0);
	for (size_t t = 0; t < sizeof(dtypes) / sizeof(dtypes[0]); t++)
		for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
			WANT(one_size(t, counts[i]) == 0);
	lib.nrt_close();
	return 0;
}

static const char *const one_core[] = {"--cores=2", NULL};

TEST("execute: results are right for all types and odd sizes, LNC 1 and 2", "[nrt][execute][vdev]")
{
	static const char *const sizes[] = {"1", "2"};

	if (device_lacks())
		SKIP(device_lacks());
	for (int i = 0; i < 2; i++) {
		lnc_now = sizes[i];
		with_device(all_sizes, one_core);
	}
}

/* ---- a GiB -------------------------------------------------------------------------------- */

/* A sanitizer looks at each byte: there less has to do. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define LARGE (1ull << 24)
#else
#define LARGE (1ull << 30)
#endif

/* At either end and around the middle, where the halves of two physical cores meet. */
static int gigabyte(void *arg)
{
	static const size_t places[] = {0, LARGE / 2 - 3, LARGE - 6};
	nrt_tensor_set_t *in = NULL, *out = NULL;
	nrt_tensor_t *a = NULL, *c = NULL;
	nrt_model_t *m = NULL;
	char text[256], seen[6];

	WANT(up(arg) == 0);
	snprintf(text, sizeof(text),
		"ntrace-model 2\nname large\ninput a uint8 %llu\noutput c uint8 %llu\n"
		"step DVE 1us add a a c\n",
		LARGE, LARGE);
	WANT_STATUS(lib.nrt_load(text, strlen(text), 0, -1, &m), 0);
	WANT_STATUS(lib.nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, 0, LARGE, "a", &a), 0);
	WANT_STATUS(lib.nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, 0, LARGE, "c", &c), 0);
	WANT_STATUS(lib.nrt_allocate_tensor_set(&in), 0);
	WANT_STATUS(lib.nrt_allocate_tensor_set(&out), 0);
	WANT_STATUS(lib.nrt_add_tensor_to_tensor_set(in, "a", a), 0);
	WANT_STATUS(lib.nrt_add_tensor_to_tensor_set(out, "c", c), 0);
	WANT_STATUS(lib.nrt_tensor_memset(a, 0, 7, LARGE), 0);
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
		WANT_STATUS(lib.nrt_tensor_write(a, "\1\2\3\4\5\6", places[i], 6), 0);
	WANT_STATUS(lib.nrt_execute(m, in, out), 0);
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		WANT_STATUS(lib.nrt_tensor_read(c, seen, places[i], 6), 0);
		WANT(memcmp(seen, "\2\4\6\10\12\14", 6) == 0);
	}
	WANT_STATUS(lib.nrt_tensor_read(c, seen, LARGE / 3, 6), 0);
	WANT(memcmp(seen, "\16\16\16\16\16\16", 6) == 0);
	lib.nrt_close();
	return 0;
}

TEST("execute: a sum of 1 GiB is right, LNC 1 and 2", "[nrt][execute][vdev][slow]")
{
	static const char *const sizes[] = {"1", "2"}, *const large[] = {
							       "--cores=2", "--memory=3G", NULL};

	if (device_lacks())
		SKIP(device_lacks());
	for (int i = 0; i < 2; i++) {
		lnc_now = sizes[i];
		with_device(gigabyte, large);
	}
}

/* ---- units -------------------------------------------------------------------------------- */

#define PIPELINE                                                                     \
	"ntrace-model 2\nname pipeline\ninput a float32 8\ninput b float32 8\n"      \
	"temp x float32 8\ntemp y float32 8\noutput c float32 8\nsemaphore loaded\n" \
	"semaphore summed\nstep PE 20us add x y x wait loaded 2 post summed\n"       \
	"step DMA0 5us copy a x post loaded\nstep DMA1 7us copy b y post loaded\n"   \
	"step ACT 30us nop\nstep POOL 3us copy x c wait summed 1\n"

static int pipeline(void *arg)
{
	struct job j;

	WANT(up(arg) == 0);
	WANT(job_open(&j, PIPELINE, 0) == 0);
	for (int i = 0; i < 5; i++)
		WANT(job_run(&j, (float)i, 1.0f) == 0);
	lib.nrt_close();
	return 0;
}

TEST("execute: units go side by side and wait at semaphores", "[nrt][execute][vdev]")
{
	if (device_lacks())
		SKIP(device_lacks());
	lnc_now = "2";
	with_device(pipeline, one_core);
}

/* ---- many threads ------------------------------------------------------------------------- */

#define THREADS 8
#define ROUNDS 40

static void *storm(void *arg)
{
	unsigned number = (unsigned)(uintptr_t)arg;

	for (int i = 0; i < ROUNDS; i++) {
		struct job j;
		bool adds = (number + (unsigned)i) % 2;

		/* Each core is used by several threads, and models come and go. */
		if (job_open(&j, adds ? ADD_MODEL : COPY_MODEL, (int)(number + (unsigned)i) % 8) ||
			job_run(&j, (float)i, adds ? 2.0f : 0.0f) || lib.nrt_unload(j.model))
			return "failed";
		lib.nrt_destroy_tensor_set(&j.in);
		lib.nrt_destroy_tensor_set(&j.out);
		lib.nrt_tensor_free(&j.a);
		lib.nrt_tensor_free(&j.b);
		lib.nrt_tensor_free(&j.c);
	}
	return NULL;
}

static int storms(void *arg)
{
	pthread_t threads[THREADS];
	void *failed;

	WANT(up(arg) == 0);
	for (uintptr_t i = 0; i < THREADS; i++)
		WANT(pthread_create(&threads[i], NULL, storm, (void *)i) == 0);
	for (int i = 0; i < THREADS; i++)
		WANT(pthread_join(threads[i], &failed) == 0 && !failed);
	WANT(virtual_device_stat(&((struct place *)arg)->device, "allocations") >= 0);
	lib.nrt_close();
	return 0;
}

TEST("execute: eight threads load, execute and unload on eight cores", "[nrt][execute][vdev]")
{
	static const char *const options[] = {"--devices=2", "--cores=8", NULL};

	if (device_lacks())
		SKIP(device_lacks());
	lnc_now = "2";
	with_device(storms, options);
}

/* ---- tensors that share bytes ------------------------------------------------------------- */

#define SHARED_BYTES 64 /* of int32 16 */

static int execute_slices(nrt_model_t *m, nrt_tensor_t *whole, uint64_t from, uint64_t to, int want)
{
	nrt_tensor_t *a = NULL, *c = NULL;
	nrt_tensor_set_t *in = NULL, *out = NULL;

	WANT_STATUS(lib.nrt_tensor_allocate_slice(whole, from, SHARED_BYTES, "a", &a), 0);
	WANT_STATUS(lib.nrt_tensor_allocate_slice(whole, to, SHARED_BYTES, "c", &c), 0);
	WANT_STATUS(lib.nrt_allocate_tensor_set(&in), 0);
	WANT_STATUS(lib.nrt_allocate_tensor_set(&out), 0);
	WANT_STATUS(lib.nrt_add_tensor_to_tensor_set(in, "a", a), 0);
	WANT_STATUS(lib.nrt_add_tensor_to_tensor_set(out, "c", c), 0);
	WANT_STATUS(lib.nrt_execute(m, in, out), want);
	lib.nrt_destroy_tensor_set(&in);
	lib.nrt_destroy_tensor_set(&out);
	lib.nrt_tensor_free(&a);
	lib.nrt_tensor_free(&c);
	return 0;
}

static int shared_bytes(void *arg)
{
	static const char text[] = "ntrace-model 2\nname shared\ninput a int32 16\n"
				   "output c int32 16\nstep PE 1us copy a c\n";
	nrt_tensor_t *whole = NULL;
	nrt_model_t *m = NULL;

	WANT(up(arg) == 0);
	WANT_STATUS(lib.nrt_load(text, strlen(text), 0, -1, &m), 0);
	WANT_STATUS(lib.nrt_tensor_allocate(
			    NRT_TENSOR_PLACEMENT_DEVICE, 0, 2 * SHARED_BYTES, "w", &whole),
		0);
	WANT(execute_slices(m, whole, 0, SHARED_BYTES, 0) == 0);
	WANT(execute_slices(m, whole, 4, 4, 0) == 0);
	WANT(execute_slices(m, whole, 0, 4, NRT_EXEC_BAD_INPUT) == 0);
	WANT(execute_slices(m, whole, SHARED_BYTES - 1, 0, NRT_EXEC_BAD_INPUT) == 0);
	WANT(said(arg, "output 'c' overlaps 'a' without being the same bytes"));
	WANT(execute_slices(m, whole, SHARED_BYTES, 0, 0) == 0);
	lib.nrt_close();
	return 0;
}

TEST("execute: an output in a part of an input's bytes is refused", "[nrt][execute][vdev]")
{
	if (device_lacks())
		SKIP(device_lacks());
	for (int i = 1; i <= 2; i++) {
		lnc_now = i == 1 ? "1" : "2";
		with_device(shared_bytes, one_core);
	}
}
