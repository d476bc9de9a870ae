/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model_units_test.c - version 2 of the model format: units side by side, semaphores, collectives, faults; and
 * the models that would never end.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/exec/model_format.h"
#include "tests/shim/shim.h"
#include "tests/unit/model_refused.h"

#define HEAD                                                                            \
	"ntrace-model 2\nname n\ninput a int32 4\noutput c int32 4\ntemp g int32 4x4\n" \
	"semaphore s\nsemaphore t\n"
#define DONE "step PE 1ns copy a c\n"

TEST("model 2: units, semaphores, collectives and faults", "[model]")
{
	static const char text[] = HEAD "step DMA3 5us copy a c post s\n"
					"step ACT 20us add a c c wait s 3 post t 7\n"
					"step TOPSP 2us all_gather a g post s 2\n"
					"step TOPSP 1us all_reduce a c wait t 7\n"
					"step TOPSP 0us barrier\n"
					"step SP 1us fault dma-abort\n"
					"step DMA15 1ns nop wait t 1\n";
	struct model_desc m = {0};
	struct model_error error = {0};

	test_info("%s", error.text);
	REQUIRE_EQ(model_parse(text, strlen(text), &m, &error), 0);
	REQUIRE_EQ(m.step_count, 7);
	CHECK_EQ(m.version, 2);
	CHECK_EQ(m.semaphore_count, 2);
	CHECK_EQ(m.collectives, 3);
	CHECK_EQ(m.steps[0].unit, VDEV_DMA + 3);
	CHECK_EQ(m.steps[0].wait, VDEV_NO_SEMAPHORE);
	CHECK_EQ(m.steps[0].post, 0);
	CHECK_EQ(m.steps[0].post_value, 1);
	CHECK_EQ(m.steps[1].wait, 0);
	CHECK_EQ(m.steps[1].wait_value, 3);
	CHECK_EQ(m.steps[1].post, 1);
	CHECK_EQ(m.steps[1].post_value, 7);
	CHECK_EQ(m.steps[2].unit, VDEV_TOP_SP);
	CHECK_EQ(m.steps[2].op, VDEV_OP_ALL_GATHER);
	CHECK_EQ(m.steps[2].count, 4);
	CHECK_EQ(m.steps[2].whole, 4);
	CHECK_EQ(m.steps[3].op, VDEV_OP_ALL_REDUCE);
	CHECK_EQ(m.steps[3].post, VDEV_NO_SEMAPHORE);
	CHECK_EQ(m.steps[4].op, VDEV_OP_BARRIER);
	CHECK_EQ(m.steps[4].dst, VDEV_NO_BINDING);
	CHECK_EQ(m.steps[5].op, VDEV_OP_FAULT);
	CHECK_EQ(m.steps[5].fault, VDEV_CORE_FAULT_DMA_ABORT);
	CHECK_EQ(m.steps[6].unit, VDEV_DMA + 15);
	CHECK_EQ(m.lines[0], 8);
	CHECK_EQ(m.lines[6], 14);
	CHECK_EQ(model_check_ranks(&m, 4, &error), 0);
	CHECK_EQ(model_check_ranks(&m, 2, &error), -EINVAL);
	CHECK_EQ(error.line, 10);
	CHECK_STR(error.text, "'g' has room for 4 ranks, and the model is loaded for 2");
	model_desc_free(&m);
}

TEST("model 2: what a unit reads may be written further down", "[model]")
{
	static const char text[] = HEAD "step PE 1ns copy g g wait s 1\n"
					"step PE 1ns copy a c\n"
					"step DMA0 1ns nop post s\n";
	static const char never[] = HEAD DONE "temp u int32 4\n";
	static const char unwritten[] = "ntrace-model 2\nname n\ntemp t int8 1\noutput c int8 1\n"
					"step PE 1ns copy t c\n";
	struct model_desc m = {0};
	struct model_error error;

	CHECK_EQ(model_parse(text, strlen(text), &m, &error), 0);
	model_desc_free(&m);
	CHECK_EQ(model_parse(never, strlen(never), &m, &error), -EINVAL);
	CHECK(strstr(error.text, "before the first step") != NULL);
	CHECK_EQ(model_parse(unwritten, strlen(unwritten), &m, &error), -EINVAL);
	CHECK_EQ(error.line, 5);
	CHECK_STR(error.text, "'t' is read, and no step writes it");
}

TEST("model 2: what is wrong is refused with its line and a reason", "[model]")
{
	static const struct {
		const char *text;
		unsigned line;
		const char *says; /* part of the message */
	} rows[] = {
		{"ntrace-model 2\nsemaphore a/b\n", 2, "'a/b' is not a name"},
		{"ntrace-model 2\nsemaphore\n", 2, "expected: semaphore NAME"},
		{HEAD "semaphore s\n", 8, "semaphore 's' is declared twice"},
		{HEAD "step DMA16 1ns nop\n", 8, "'DMA16' is not a unit (PE ACT POOL DVE SP TOPSP"},
		{HEAD "step dma0 1ns nop\n", 8, "'dma0' is not a unit"},
		{HEAD "step PE 1ns mul a c\n", 8,
			"(nop copy add barrier all_gather all_reduce fault)"},
		{HEAD "step DMA0 1ns add a a c\n", 8, "add is not done by DMA0"},
		{HEAD "step PE 1ns barrier\n", 8, "barrier is not done by PE"},
		{HEAD "step DMA1 1ns all_reduce a c\n", 8, "all_reduce is not done by DMA1"},
		{HEAD "step DMA1 1ns fault memory\n", 8, "fault is not done by DMA1"},
		{HEAD "step PE 1ns fault\n", 8, "which fault?"},
		{HEAD "step PE 1ns fault fire\n", 8, "'fire' is not a fault (numerical hardware "},
		{HEAD "step TOPSP 1ns all_gather g c\n", 8, "'c' must have the type of 'g'"},
		{HEAD "step TOPSP 1ns all_reduce a g\n", 8, "differ in type or number"},
		{HEAD "step TOPSP 1ns all_reduce c a\n", 8, "'a' is an input"},
		{"ntrace-model 2\nname n\ninput a fp32r 4\noutput c fp32r 4\n"
		 "step TOPSP 1ns all_reduce a c\n",
			5, "fp32r cannot be added"},
		{HEAD "step PE 1ns nop wait x 1\n", 8, "wait: there is no semaphore 'x'"},
		{HEAD "step PE 1ns nop wait\n", 8, "wait: there is no semaphore ''"},
		{HEAD "step PE 1ns nop wait s\n", 8, "wait: '' is not a whole number"},
		{HEAD "step PE 1ns nop wait s 0\n", 8, "wait: '0' is not a whole number"},
		{HEAD "step PE 1ns nop wait s 4294967296\n", 8, "is not a whole number"},
		{HEAD "step PE 1ns nop post s 1000001\n", 8,
			"post: '1000001' is not a whole number from 1 to 1000000"},
		{HEAD "step PE 1ns nop post s 1 wait s 1\n", 8, "'wait' is not understood"},
		{HEAD "step PE 1ns copy a c a\n", 8, "'a' is not understood; behind the operands"},
		{HEAD "step PE 1ns copy a\n", 8, "copy takes 2 operands"},
		{HEAD "step PE 1ns\n", 8,
			"expected: step UNIT DURATION OPERATION [OPERAND...] [wait"},
		/* never satisfied */
		{HEAD DONE "step ACT 1ns nop post s 2\nstep SP 1ns nop wait s 3\n", 10,
			"waits for 3 at 's', and all posts add up to 2"},
		{HEAD DONE "step ACT 1ns nop wait t 1\n", 9, "all posts add up to 0"},
		/* enough posts, and none that comes */
		{HEAD DONE "step ACT 1ns nop wait s 1 post s\n", 9,
			"waits for ever: it needs 's' at 1, and the steps that can run bring it to "
			"0"},
		{HEAD DONE "step ACT 1ns nop wait s 1 post t\nstep SP 1ns nop wait t 1 post s\n", 9,
			"waits for ever"},
		{HEAD DONE "step SP 1ns nop post s\nstep ACT 1ns nop wait s 2\nstep ACT 1ns nop "
			   "post s\n",
			10, "needs 's' at 2, and the steps that can run bring it to 1"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		check_refused(rows[i].text, rows[i].line, rows[i].says);
}

/* Rings of units that hand each other a token, in the worst order for whoever looks for the end. */
TEST("model 2: a long chain of waits across all units comes to its end", "[model]")
{
	static const char *const units[] = {
		"PE", "ACT", "POOL", "DVE", "SP", "TOPSP", "DMA0", "DMA15"};
	const unsigned steps = VDEV_MAX_INSTRUCTIONS;
	char *text = malloc(steps * 64);
	struct model_desc m = {0};
	struct model_error error;
	size_t n;

	REQUIRE(text != NULL);
	n = (size_t)sprintf(text, "ntrace-model 2\nname n\nsemaphore s\n");
	for (unsigned i = 0; i < steps; i++)
		n += (size_t)sprintf(text + n,
			i ? "step %s 1ns nop wait s %u post s\n" : "step %s 1ns nop post s\n",
			units[7 - i % 8], i);
	CHECK_EQ(model_parse(text, n, &m, &error), 0);
	CHECK_EQ(m.step_count, steps);
	model_desc_free(&m);
	free(text);
}

TEST("model 2: limits of semaphores", "[model]")
{
	char *text = malloc(1 << 16);

	REQUIRE(text != NULL);
	for (unsigned over = 0; over <= 1; over++) {
		size_t n = (size_t)sprintf(text, "ntrace-model 2\nname n\nstep PE 1ns nop\n");
		struct model_desc m = {0};
		struct model_error error;

		for (unsigned i = 0; i < VDEV_MAX_SEMAPHORES + over; i++)
			n += (size_t)sprintf(text + n, "semaphore s%u\n", i);
		CHECK_EQ(model_parse(text, n, &m, &error), over ? -EINVAL : 0);
		if (!over)
			model_desc_free(&m);
		else
			CHECK_STR(error.text, "more than 256 semaphores");
	}
	free(text);
}
