/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nrt_guard_test.c - what every exported call says when it cannot do its work: before nrt_init, in the
 * child of a fork, and when it has no meaning here.
 *
 * Calls are made by name with ten arguments, each a pointer to memory of its own; the calling
 * convention takes them for whatever the call's parameters are, and what a call wrote is seen.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/shim/shim.h"
#include "tests/unit/nrt_lib.h"

enum returns { STATUS, INT, SIZE, POINTER, BOOL, NOTHING };
enum state { GUARDED, ANYTIME };

static const struct call {
	const char *name;
	enum returns returns;
	enum state state;
	size_t offset; /* in lib */
} calls[] = {
#define NRT_CALL(name, node, returns, state) \
	{#name, returns, state, offsetof(__typeof__(lib), name)},
#include "tests/unit/nrt_calls.def"
#undef NRT_CALL
};
#define CALLS (sizeof(calls) / sizeof(calls[0]))

/* The calls without a meaning here. */
static const struct absent {
	const char *name, *why;
} unsupported[] = {
#define CALL(returned, name, parameters, result, why) {#name, "unsupported here: " why},
#define CALL_VOID(name, parameters, why) {#name, "unsupported here: " why},
#define CALL_BY_HAND(name, why)
#include "runtime/lifecycle/unsupported.def"
#undef CALL
#undef CALL_VOID
#undef CALL_BY_HAND
};
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* ---- calling ------------------------------------------------------------------------------ */

#define ARGUMENTS 10
#define ARGUMENT_BYTES 512
#define FILL 0x5a

typedef long (*any_call)(long, long, long, long, long, long, long, long, long, long);

static char memory[ARGUMENTS][ARGUMENT_BYTES];

/* Does the call return this status, or its type's failure, and write nothing? */
static int expect(const struct call *c, long status)
{
	any_call call;
	long p[ARGUMENTS], got, want = c->returns == STATUS ? status : c->returns == INT ? -1 : 0;
	char *bytes = &memory[0][0];

	memcpy(&call, (const char *)&lib + c->offset, sizeof(call));
	memset(memory, FILL, sizeof(memory));
	for (int i = 0; i < ARGUMENTS; i++) {
		memory[i][ARGUMENT_BYTES - 1] = '\0'; /* it may be a text */
		p[i] = (long)memory[i];
	}
	got = call(p[0], p[1], p[2], p[3], p[4], p[5], p[6], p[7], p[8], p[9]);
	if (c->returns == STATUS || c->returns == INT)
		got = (int32_t)got;
	else if (c->returns == BOOL)
		got = (uint8_t)got;
	else if (c->returns == NOTHING)
		got = 0;
	if (got != want)
		dprintf(complaint_fd, "%s gave %ld, not %ld\n", c->name, got, want);
	WANT(got == want);
	for (size_t i = 0; i < sizeof(memory); i++)
		if (bytes[i] != (i % ARGUMENT_BYTES == ARGUMENT_BYTES - 1 ? 0 : FILL)) {
			dprintf(complaint_fd, "%s wrote to argument %zu\n", c->name,
				i / ARGUMENT_BYTES);
			return 1;
		}
	return 0;
}

/* Is a line of the log "LEVEL NRT:name   text"?  Empties the log. */
static bool said_by(const struct place *p, const char *level, const char *name, const char *text)
{
	char line[300];

	snprintf(line, sizeof(line), " %5s   NRT:%-40s %s\n", level, name, text);
	return said(p, line);
}

static bool silent(void)
{
	return lseek(2, 0, SEEK_END) == 0;
}

static const struct call *call_named(const char *name)
{
	for (size_t i = 0; i < CALLS; i++)
		if (!strcmp(calls[i].name, name))
			return &calls[i];
	return NULL;
}

/* Every guarded call is refused with this status and message. */
static int all_refused(const struct place *p, long status, const char *level, const char *text)
{
	int n = 0;

	for (size_t i = 0; i < CALLS; i++) {
		if (calls[i].state != GUARDED)
			continue;
		WANT(expect(&calls[i], status) == 0);
		WANT(said_by(p, level, calls[i].name, text));
		n++;
	}
	WANT(n > 90);
	return 0;
}

/* ---- states ------------------------------------------------------------------------------- */

static int uninitialised(void *arg)
{
	struct place *p = arg;

	WANT(enter(p) == 0);
	WANT(all_refused(p, NRT_UNINITIALIZED, "ERROR", "NRT uninitialized") == 0);
	lib.nrt_close();
	WANT_STATUS(lib.nrt_free_model_tensor_info(NULL), NRT_SUCCESS);
	lib.nrt_sys_trace_buffer_free(NULL);
	WANT(silent());
	return 0;
}

TEST("nrt: before nrt_init every guarded call says NRT uninitialized and writes nothing", "[nrt]")
{
	struct place p;

	REQUIRE_LIBRARY();
	REQUIRE(place_open(&p));
	CHECK_EQ(scratch_child(uninitialised, &p), 0);
	place_close(&p);
}

/* An empty line ends a block of errors. */
static int refused_in_blocks(void *arg)
{
	struct place *p = arg;

	setenv("NEURON_RT_LOG_COALESCING_ENABLED", "1", 1);
	WANT(enter(p) == 0);
	WANT(all_refused(p, NRT_UNINITIALIZED, "ERROR", "NRT uninitialized\n") == 0);
	return 0;
}

TEST("nrt: where errors are held every guarded call has a block of its own", "[nrt][log]")
{
	struct place p;

	REQUIRE_LIBRARY();
	REQUIRE(place_open(&p));
	CHECK_EQ(scratch_child(refused_in_blocks, &p), 0);
	place_close(&p);
}

static int in_the_child(void *arg)
{
	return all_refused(
		arg, NRT_FAILURE, "ERROR", "Incompatible runtime state: NRT_STATE_CHILD");
}

static int forked(void *arg)
{
	WANT(enter(arg) == 0);
	WANT_STATUS(init(), 0);
	WANT(scratch_child(in_the_child, arg) == 0);
	lib.nrt_close();
	return 0;
}

TEST("nrt: in the child of a fork every guarded call names the state and writes nothing", "[nrt]")
{
	if (device_lacks())
		SKIP(device_lacks());
	with_device(forked, two_cores);
}

static void *execute_for_an_hour(void *arg)
{
	nrt_tensor_set_t *set = NULL;
	nrt_model_t *model = NULL;

	(void)arg;
	if (lib.nrt_load(HOUR_MODEL, strlen(HOUR_MODEL), 0, 1, &model) == 0 &&
		lib.nrt_allocate_tensor_set(&set) == 0)
		(void)lib.nrt_execute(model, set, set);
	return NULL;
}

static void *close_runtime(void *arg)
{
	lib.nrt_close();
	return arg;
}

static bool executes(void *arg)
{
	return virtual_device_stat(&((struct place *)arg)->device, "launches") > 0;
}

static bool closes(void *arg)
{
	(void)arg;
	return lib.nrt_unload(NULL) == NRT_CLOSED;
}

/* nrt_close waits for an execution that does not end; the process ends with both. */
static int while_closing(void *arg)
{
	pthread_t execution, closing;

	setenv("NEURON_RT_LOG_LEVEL", "WARN", 1);
	setenv("NEURON_RT_EXEC_TIMEOUT", "7200", 1);
	WANT(enter(arg) == 0);
	WANT(dup2(2, 1) == 1); /* warnings go there */
	WANT_STATUS(init(), 0);
	WANT(pthread_create(&execution, NULL, execute_for_an_hour, NULL) == 0);
	WANT(program_until(executes, arg, 20));
	WANT(pthread_create(&closing, NULL, close_runtime, NULL) == 0);
	WANT(program_until(closes, NULL, 20));
	return all_refused(arg, NRT_CLOSED, "WARN", "NRT already closed");
}

TEST("nrt: while nrt_close runs every guarded call says NRT already closed and writes nothing",
	"[nrt]")
{
	if (device_lacks())
		SKIP(device_lacks());
	with_device(while_closing, two_cores);
}

/* ---- calls without a body ----------------------------------------------------------------- */

/* Each gives NRT_INVALID, or its failure, and warns the first time. */
static int all_absent(const struct place *p, const struct absent *rows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct call *c = call_named(rows[i].name);

		WANT(c && c->state == GUARDED);
		WANT(expect(c, NRT_INVALID) == 0);
		WANT(said_by(p, "WARN", rows[i].name, rows[i].why));
		WANT(expect(c, NRT_INVALID) == 0);
		WANT(silent());
	}
	return 0;
}

static int absent_calls(void *arg)
{
	int err = 7;
	char text[12] = "untouched";

	setenv("NEURON_RT_LOG_LEVEL", "WARN", 1);
	WANT(enter(arg) == 0);
	WANT(dup2(2, 1) == 1); /* warnings go there */
	WANT_STATUS(init(), 0);
	WANT(ftruncate(2, 0) == 0 && lseek(2, 0, SEEK_SET) == 0);
	WANT(all_absent(arg, unsupported, COUNT(unsupported)) == 0);
	WANT(lib.nrt_get_libnccl_net(NULL, NULL, 0) == NULL);
	WANT(said_by(arg, "WARN", "nrt_get_libnccl_net",
		"unsupported here: there is no network plug-in"));
	WANT(lib.nrt_get_libnccl_net(&err, text, sizeof(text)) == NULL);
	WANT(err == NRT_INVALID && !strcmp(text, "unsupported"));
	WANT(silent());
	lib.nrt_close();
	WANT_STATUS(init(), 0); /* once per process, not per nrt_init */
	WANT(expect(call_named("nrt_set_pool_eng_ucode"), NRT_INVALID) == 0);
	WANT(silent());
	lib.nrt_close();
	return 0;
}

TEST("nrt: calls without a body give NRT_INVALID and warn once what is missing", "[nrt]")
{
	if (device_lacks())
		SKIP(device_lacks());
	with_device(absent_calls, two_cores);
}

/* All others have a body. */
TEST("nrt: how many calls have no meaning here is known", "[nrt]")
{
	CHECK_EQ(COUNT(unsupported) + 1, 33); /* nrt_get_libnccl_net's is written by hand */
}
