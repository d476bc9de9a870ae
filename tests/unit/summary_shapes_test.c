/* SPDX-License-Identifier: Apache-2.0 */
/*
 * summary_shapes_test.c - recordings with the counts of real captures: the summary prints them.
 *
 * Run A is a serving capture of 20 executions at two physical cores per logical core, E a compiled model
 * with one execution.  Only counts of them are public; times are made up.
 */
#include <inttypes.h>

#include "tests/shim/shim.h"
#include "tests/unit/summary_fixture.h"

struct shape_row {
	enum trace_type type;
	unsigned n;
};

struct shape {
	unsigned executions;
	struct shape_row rows[24]; /* all names that it has */
	bool own_executions;	   /* executions are spans of nrt_execute */
};

/* Types that stand inside of an execution. */
static bool in_execution(enum trace_type type)
{
	return type == TRACE_EXECUTE_API || type == TRACE_MODEL_SUBMIT || type == TRACE_EXEC_PRE ||
	       type == TRACE_EXEC_WAIT || type == TRACE_EXEC_POST || type == TRACE_DEVICE_EXEC ||
	       type == TRACE_CC_EXEC || type == TRACE_CC_EXEC_BARRIER;
}

static unsigned count_of(const struct shape *shape, enum trace_type type)
{
	for (const struct shape_row *r = shape->rows; r->n; r++)
		if (r->type == type)
			return r->n;
	return 0;
}

static void flush_when_many(struct fixture *fx)
{
	if (fx->count > 150)
		fx_records(fx, FX_SOURCE);
}

/* One execution from `at` on: what it has of each type, in order. */
static void put_execution(
	struct fixture *fx, const struct shape *shape, uint64_t exec, uint64_t at, uint64_t *id)
{
	unsigned collectives = count_of(shape, TRACE_CC_EXEC) / shape->executions;

	if (shape->own_executions)
		fx_plain(fx, TRACE_EXECUTE_API, ++*id, at, at + 99000, 77);
	fx_plain(fx, TRACE_MODEL_SUBMIT, ++*id, at + 100, at + 200, 77);
	if (count_of(shape, TRACE_EXEC_PRE)) {
		fx_plain(fx, TRACE_EXEC_PRE, ++*id, at + 300, at + 400, exec);
		fx_plain(fx, TRACE_EXEC_WAIT, ++*id, at + 500, at + 98000, exec);
		fx_plain(fx, TRACE_EXEC_POST, ++*id, at + 98100, at + 98200, exec);
	}
	fx_run(fx, 0, 0, ++*id, at + 1000, at + 81000);
	fx_run(fx, 0, 1, ++*id, at + 2000, at + 82000);
	for (unsigned i = 0; i < collectives; i++)
		fx_plain(fx, TRACE_CC_EXEC, ++*id, at + 3000 + 2000 * i, at + 3500 + 2000 * i, 0);
	if (count_of(shape, TRACE_CC_EXEC_BARRIER))
		fx_plain(fx, TRACE_CC_EXEC_BARRIER, ++*id, at + 2100, at + 2900, 0);
	fx_records(fx, FX_SOURCE);
}

static bool write_shape(struct fixture *fx, const struct shape *shape)
{
	uint64_t at = 1000, id = 1000;

	if (!fx_open(fx))
		return false;
	for (const struct shape_row *r = shape->rows; r->n; r++)
		for (unsigned i = 0; !in_execution(r->type) && i < r->n; i++) {
			fx_plain(fx, r->type, ++id, at, at + 50 + i % 7, 0);
			at += 100;
			flush_when_many(fx);
		}
	if (fx->count)
		fx_records(fx, FX_SOURCE);
	for (unsigned i = 0; i < shape->executions; i++)
		put_execution(fx, shape, i + 1, at + 100000 * i, &id);
	return true;
}

/* Is there a line of the text with this name and count? */
static bool prints(const char *text, const char *name, unsigned n)
{
	char line[128];

	snprintf(line, sizeof(line), "\n  %-34s %8u ", name, n);
	return strstr(text, line) != NULL;
}

static void check_shape(const struct shape *shape, unsigned spans)
{
	struct fixture fx;
	struct summary s;

	REQUIRE(write_shape(&fx, shape));
	REQUIRE_EQ(sum(&fx, &s), 0);
	char *text = sum_print(&s, summary_print_text);
	REQUIRE(text != NULL);
	CHECK_EQ(s.events.stops, spans);
	CHECK_EQ(s.events.total, 2 * spans);
	for (const struct shape_row *r = shape->rows; r->n; r++) {
		const char *name = trace_event_info(r->type)->name;

		test_info("%s", name);
		CHECK_EQ(sum_name(&s, name)->events.stops, r->n);
		CHECK(prints(text, name, r->n));
	}
	REQUIRE_EQ(s.core_count, 1);
	CHECK_EQ(s.cores[0].logical_size, 2);
	CHECK_EQ(s.cores[0].sum_ns, (uint64_t)shape->executions * 160000);
	CHECK_EQ(s.cores[0].busy_ns, (uint64_t)shape->executions * 81000);
	CHECK_EQ(s.cores[0].all_busy_ns, (uint64_t)shape->executions * 79000);
	CHECK(s.cores[0].busy_ns < summary_length(&s.window));
	CHECK(summary_length(&s.window) < 1000000000); /* no epoch */
	free(text);
	summary_free(&s);
	fx_free(&fx);
}

TEST("summary: a capture shaped like run A prints its counts", "[summary]")
{
	static const struct shape a = {20,
		{{TRACE_EXECUTE_API, 20}, {TRACE_MODEL_SUBMIT, 20}, {TRACE_DEVICE_EXEC, 40},
			{TRACE_EXEC_PRE, 20}, {TRACE_EXEC_WAIT, 20}, {TRACE_EXEC_POST, 20},
			{TRACE_CC_EXEC, 720}, {TRACE_CC_EXEC_BARRIER, 20},
			{TRACE_TENSOR_WRITE, 280}, {TRACE_TENSOR_READ, 305},
			{TRACE_TENSOR_ALLOC, 340}, {TRACE_TENSOR_FREE, 4800},
			{TRACE_DMEM_BUF_COPYIN, 1082}, {TRACE_DMEM_BUF_COPYOUT, 385},
			{TRACE_DMA_MEM_ALLOC, 982}, {TRACE_DMA_MEM_DEALLOC, 460},
			{TRACE_CONSUME_ERROR_NOTIFICATIONS, 40}, {TRACE_CONSUME_POOL_STDIO, 40},
			{TRACE_CONSUME_TOPSP_CC_NOTIFICATIONS, 20}, {TRACE_GENERIC, 20}, {0, 0}},
		true};

	check_shape(&a, 9634); /* the total of the real one */
}

TEST("summary: a capture shaped like run E prints its counts", "[summary]")
{
	static const struct shape e = {1,
		{{TRACE_MODEL_SUBMIT, 1}, {TRACE_DEVICE_EXEC, 2}, {TRACE_DMEM_BUF_COPYIN, 14},
			{TRACE_DMA_MEM_ALLOC, 6}, {0, 0}},
		false};

	check_shape(&e, 23);
}
