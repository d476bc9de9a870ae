/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inspect_locked.c - a program with an inspect session (of its environment) that gets SIGTERM whenever it has just taken a
 * lock, or is in the allocator: a session's thread that wanted the same would wait for ever.
 *
 *	inspect_locked [--point N]
 *
 * Without --point it has a handler and gets a signal at every such point of loading, executing, reading and so on; it prints
 * how many, and how often the session's thread wanted what the interrupted thread had (exit status 1: ever).
 * With --point it has none: the N-th point, from 1, ends it (exit status 3: there is no such point).
 *
 * pthread_mutex_lock and the allocator of this program are its own, around the C library's.
 */
#include <dlfcn.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <nrt/nrt_experimental.h>
#include <nrt/nrt_sys_trace.h>

#include "tests/workloads/workload.h"

#define MODEL                                                                \
	"ntrace-model 1\nname adder\ninput a float32 8\ninput b float32 8\n" \
	"output c float32 8\nstep PE 20us add a b c\n"
#define BYTES 32u
#define RUNS 3

#define TAKEN __attribute__((visibility("default"))) /* in place of the C library's */

static int main_tid;
static unsigned wanted_point;	       /* 0: all */
static volatile sig_atomic_t counting; /* the main thread is in a call that counts */
static volatile sig_atomic_t points;
static _Atomic bool in_signal;
static _Atomic unsigned handled, wanted_locks, wanted_memory;

/* ---- points ------------------------------------------------------------------------------- */

static __thread int tid;
static __thread int session_thread; /* 0: not known, 1: it is, -1: it is not */

static bool is_main(void)
{
	if (!tid)
		tid = (int)syscall(SYS_gettid);
	return tid == main_tid;
}

static bool is_session(void)
{
	char name[17] = "";

	if (!session_thread)
		session_thread =
			prctl(PR_GET_NAME, name) == 0 && !strcmp(name, "nrt-inspect") ? 1 : -1;
	return session_thread > 0;
}

static void point(void)
{
	if (!counting || !is_main())
		return;
	counting = 0;
	points++;
	if (!wanted_point || (unsigned)points == wanted_point) {
		atomic_store(&in_signal, true);
		(void)raise(SIGTERM);
		atomic_store(&in_signal, false);
	}
	counting = 1;
}

static void note(int number)
{
	(void)number;
	atomic_fetch_add(&handled, 1);
}

/* ---- what the library calls --------------------------------------------------------------- */

TAKEN int pthread_mutex_lock(pthread_mutex_t *m)
{
	static int (*the_real)(pthread_mutex_t * m);
	int rc;

	if (!the_real)
		the_real = (int (*)(pthread_mutex_t *))dlsym(RTLD_NEXT, "pthread_mutex_lock");

	if (atomic_load(&in_signal) && m->__data.__owner == main_tid && is_session())
		atomic_fetch_add(&wanted_locks, 1);
	rc = the_real(m);
	if (rc == 0)
		point();
	return rc;
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *p, size_t size);
extern void __libc_free(void *p);

static _Atomic bool in_allocator;

/* The allocator's lock. */
static void enter_allocator(void)
{
	if (atomic_load(&in_allocator) && is_session()) {
		atomic_fetch_add(&wanted_memory, 1);
		while (atomic_load(&in_allocator))
			usleep(1000);
	}
	if (!counting || !is_main())
		return;
	atomic_store(&in_allocator, true);
	point();
	atomic_store(&in_allocator, false);
}

TAKEN void *malloc(size_t size)
{
	enter_allocator();
	return __libc_malloc(size);
}

TAKEN void *calloc(size_t count, size_t size)
{
	enter_allocator();
	return __libc_calloc(count, size);
}

TAKEN void *realloc(void *p, size_t size)
{
	enter_allocator();
	return __libc_realloc(p, size);
}

TAKEN void free(void *p)
{
	if (p)
		enter_allocator();
	__libc_free(p);
}
#endif

/* ---- the work ----------------------------------------------------------------------------- */

static bool uses_model(void)
{
	float values[BYTES / sizeof(float)] = {1};
	nrt_tensor_set_t *in = NULL, *out = NULL;
	nrt_tensor_t *a, *b, *c;
	nrt_model_t *model = NULL;

	if (failed("nrt_load", nrt_load(MODEL, strlen(MODEL), 0, -1, &model)) ||
		failed("nrt_allocate_tensor_set", nrt_allocate_tensor_set(&in)) ||
		failed("nrt_allocate_tensor_set", nrt_allocate_tensor_set(&out)) ||
		!tensor_for(in, 0, "a", BYTES, &a) || !tensor_for(in, 0, "b", BYTES, &b) ||
		!tensor_for(out, 0, "c", BYTES, &c))
		return false;
	for (int i = 0; i < RUNS; i++)
		if (failed("nrt_tensor_write", nrt_tensor_write(a, values, 0, BYTES)) ||
			failed("nrt_execute", nrt_execute(model, in, out)) ||
			failed("nrt_tensor_read", nrt_tensor_read(c, values, 0, BYTES)))
			return false;
	nrt_destroy_tensor_set(&in);
	nrt_destroy_tensor_set(&out);
	nrt_tensor_free(&a);
	nrt_tensor_free(&b);
	nrt_tensor_free(&c);
	return !failed("nrt_unload", nrt_unload(model));
}

static bool uses_trace(void)
{
	char *events = NULL;
	size_t size;
	bool bad = failed(
		"nrt_sys_trace_fetch_events", nrt_sys_trace_fetch_events(&events, &size, NULL));

	nrt_sys_trace_buffer_free(events);
	return !bad;
}

static bool start_trace(void)
{
	nrt_sys_trace_config_t *config = NULL;
	bool bad =
		failed("nrt_sys_trace_config_allocate", nrt_sys_trace_config_allocate(&config)) ||
		failed("nrt_sys_trace_start", nrt_sys_trace_start(config));

	nrt_sys_trace_config_free(config);
	return !bad;
}

static bool work(void)
{
	bool good;

	if (!init_cores(1) || !start_trace())
		return false;
	if (!uses_model()) /* what is made once is made: rings, files, names */
		return false;
	counting = 1;
	good = uses_model() && uses_trace();
	counting = 0;
	return good;
}

static const struct workload_option options[] = {
	NUMBER_OPTION("--point", wanted_point, UINT16_MAX),
	{.name = NULL},
};

int main(int argc, char **argv)
{
	if (!workload_options(argc, argv, options))
		return 2;
	main_tid = (int)syscall(SYS_gettid);
	if (!wanted_point)
		signal(SIGTERM, note);
	if (!work())
		return 2;
	nrt_close();
	printf("points %d, handled %u, locks wanted %u, memory wanted %u\n", (int)points,
		atomic_load(&handled), atomic_load(&wanted_locks), atomic_load(&wanted_memory));
	if (wanted_point)
		return 3;
	return atomic_load(&handled) == 0 || atomic_load(&wanted_locks) ||
	       atomic_load(&wanted_memory);
}
