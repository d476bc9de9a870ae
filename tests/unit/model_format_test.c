/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model_format_test.c - the model format: what it accepts, and with which words it refuses the rest.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/exec/model_format.h"
#include "runtime/vdev/arithmetic.h"
#include "tests/shim/shim.h"
#include "tests/unit/model_refused.h"

static const char example[] = "# an example\n"
			      "\n"
			      "ntrace-model 1\n"
			      "name add_vectors\n"
			      "input  a float32 1024x16\n"
			      "input\tb\tfloat32 16384   # other shape, same number\n"
			      "temp   t float32 1024x16\n"
			      "output c float32 2x8x1024\n"
			      "step PE   20us add a b t  # t = a + b\n"
			      "step ACT  5ns  copy t c\n"
			      "step POOL 100ms nop\n"
			      "step SP   1s add c t c";

TEST("model: the example of the manual parses", "[model]")
{
	struct model_desc m = {0};
	struct model_error error;

	REQUIRE_EQ(model_parse(example, strlen(example), &m, &error), 0);
	CHECK_STR(m.name, "add_vectors");
	REQUIRE_EQ(m.tensor_count, 4);
	REQUIRE_EQ(m.step_count, 4);
	CHECK_STR(m.tensors[1].name, "b");
	CHECK_EQ(m.tensors[1].dtype, NRT_DTYPE_FLOAT32);
	CHECK_EQ(m.tensors[1].bytes, 65536);
	CHECK_EQ(m.tensors[2].role, MODEL_TEMP);
	CHECK_EQ(m.tensors[3].ndim, 3);
	CHECK_EQ(m.tensors[3].shape[2], 1024);
	CHECK_EQ(m.steps[0].unit, VDEV_PE);
	CHECK_EQ(m.steps[0].op, VDEV_OP_ADD);
	CHECK_EQ(m.steps[0].src0, 0);
	CHECK_EQ(m.steps[0].src1, 1);
	CHECK_EQ(m.steps[0].dst, 2);
	CHECK_EQ(m.steps[0].count, 16384);
	CHECK_EQ(m.steps[0].dtype, NRT_DTYPE_FLOAT32);
	CHECK_EQ(m.steps[0].duration_ps, 20000000);
	CHECK_EQ(m.steps[1].src1, VDEV_NO_BINDING);
	CHECK_EQ(m.steps[1].dst, 3);
	CHECK_EQ(m.steps[1].duration_ps, 5000);
	CHECK_EQ(m.steps[2].dst, VDEV_NO_BINDING);
	CHECK_EQ(m.steps[2].duration_ps, 100000000000);
	CHECK_EQ(m.steps[3].duration_ps, 1000000000000);
	model_desc_free(&m);
	CHECK(m.tensors == NULL);
}

TEST("model: every element type has its width", "[model]")
{
	static const struct {
		const char *name;
		nrt_dtype_t dtype;
		unsigned bytes;
	} rows[] = {{"uint64", NRT_DTYPE_UINT64, 8}, {"int8", NRT_DTYPE_INT8, 1},
		{"uint8", NRT_DTYPE_UINT8, 1}, {"int16", NRT_DTYPE_INT16, 2},
		{"uint16", NRT_DTYPE_UINT16, 2}, {"bfloat16", NRT_DTYPE_BFLOAT16, 2},
		{"float16", NRT_DTYPE_FLOAT16, 2}, {"int32", NRT_DTYPE_INT32, 4},
		{"uint32", NRT_DTYPE_UINT32, 4}, {"float32", NRT_DTYPE_FLOAT32, 4},
		{"fp32r", NRT_DTYPE_FP32R, 4}, {"int64", NRT_DTYPE_INT64, 8},
		{"fp8_e3", NRT_DTYPE_FP8_E3, 1}, {"fp8_e4", NRT_DTYPE_FP8_E4, 1},
		{"fp8_e5", NRT_DTYPE_FP8_E5, 1}};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct model_desc m = {0};
		struct model_error error;
		char text[128];

		snprintf(text, sizeof(text),
			"ntrace-model 1\nname n\ninput a %s 3\noutput b %s 3\nstep PE 1ns copy a "
			"b\n",
			rows[i].name, rows[i].name);
		test_info("%s", text);
		REQUIRE_EQ(model_parse(text, strlen(text), &m, &error), 0);
		CHECK_EQ(m.tensors[0].dtype, rows[i].dtype);
		CHECK_EQ(m.tensors[0].bytes, 3 * rows[i].bytes);
		CHECK_EQ(model_dtype_bytes(rows[i].dtype), rows[i].bytes);
		model_desc_free(&m);
	}
	CHECK_EQ(model_dtype_bytes(NRT_DTYPE_UNKNOWN), 0);
}

/* Without the table that both are made from: a model that parses is one that the device runs. */
TEST("model: parser and device know the same element types and add the same", "[model][vdev]")
{
	static const char *const names[] = {"uint64", "int8", "uint8", "int16", "uint16",
		"bfloat16", "float16", "int32", "uint32", "float32", "fp32r", "int64", "fp8_e3",
		"fp8_e4", "fp8_e5"};
	unsigned adding = 0;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct model_desc m = {0};
		struct model_error error;
		char text[128];
		bool adds;

		snprintf(text, sizeof(text),
			"ntrace-model 1\nname n\ninput a %s 3\noutput b %s 3\nstep PE 1ns add a a "
			"b\n",
			names[i], names[i]);
		test_info("%s", text);
		adds = model_parse(text, strlen(text), &m, &error) == 0;
		CHECK_EQ(vdev_can_add((uint32_t)i + 1), adds);
		CHECK_EQ(adds, !strstr("fp32r fp8_e3 fp8_e4 fp8_e5", names[i]));
		adding += adds;
		model_desc_free(&m);
	}
	CHECK_EQ(adding, 11);
	for (uint32_t dtype = 0; dtype < 300; dtype++)
		CHECK_EQ(model_dtype_bytes((nrt_dtype_t)dtype), vdev_dtype_bytes(dtype));
}

#define HEAD "ntrace-model 1\nname n\ninput a int32 4\noutput c int32 4\n"

TEST("model: what is wrong is refused with its line and a reason", "[model]")
{
	static const struct {
		const char *text;
		unsigned line;
		const char *says; /* part of the message */
	} rows[] = {
		{"", 0, "the first line must be 'ntrace-model 1'"},
		{"# only a comment\n", 0, "the first line must be"},
		{"name n\n", 1, "the first line must be"},
		{"# a comment\n\n\t\nname n\n", 4, "the first line must be"},
		{"\x7f"
		 "ELF\x02\x01",
			1, "the first line must be"},
		{"#!/bin/sh\r\necho\r\n", 1, "Windows line ends"},
		{"a b c d e f g h i j k\n", 1, "the first line must be"},
		{"{\"name\": 1}\r\n", 1, "the first line must be"},
		{"ntrace-models 1\n", 1, "the first line must be"},
		{"ntrace-mode", 1, "the first line must be"},
		{"ntrace-model\0011\n", 1, "the first line must be"},
		{"ntrace-model 1\r\n", 1, "Windows line ends"},
		{"\r\nntrace-model 1\r\n", 1, "Windows line ends"},
		{"ntrace-model 3\n", 1, "version '3' is not known; this library reads 1 and 2"},
		{"ntrace-model 01x\n", 1, "version '01x' is not known"},
		{"ntrace-model\n", 1, "expected: ntrace-model 1"},
		{"ntrace-model 1\nntrace-model 1\n", 2, "stated twice"},
		{"ntrace-model 1\nname n\nname m\n", 3, "named twice"},
		{"ntrace-model 1\nname a/b\n", 2, "'a/b' is not a name"},
		{"ntrace-model 1\nname a b\n", 2, "expected: name NAME"},
		{"ntrace-model 1\nstep PE 1ns nop\n", 2, "has no name"},
		{"ntrace-model 1\nname n\n", 2, "has no step"},
		{HEAD "step PE 1ns nop\n", 4, "output 'c' is never written"},
		{"ntrace-model 1\nname n\ninput a float 4\n", 3,
			"'float' is not an element type (uint64 int8 uint8 int16 uint16 bfloat16 "
			"float16 int32 uint32 float32 fp32r int64 fp8_e3 fp8_e4 fp8_e5)"},
		{"ntrace-model 1\nname n\ninput a int8 4x\n", 3, "'4x' is not a shape"},
		{"ntrace-model 1\nname n\ninput a int8 0\n", 3, "'0' is not a shape"},
		{"ntrace-model 1\nname n\ninput a int8 -4\n", 3, "'-4' is not a shape"},
		{"ntrace-model 1\nname n\ninput a int8 4X4\n", 3, "is not a shape"},
		{"ntrace-model 1\nname n\ninput a int8 4294967296\n", 3, "is not a shape"},
		{"ntrace-model 1\nname n\ninput a int64 4294967295x4294967295\n", 3, "too large"},
		{"ntrace-model 1\nname n\ninput a int8 1x1x1x1x1x1x1x1x1\n", 3, "dimensions"},
		{"ntrace-model 1\nname n\ninput a int8 4\ninput a int8 4\n", 4, "declared twice"},
		{"ntrace-model 1\nname n\ninput a int8\n", 3, "expected: input NAME TYPE SHAPE"},
		{HEAD "step XX 1ns nop\n", 5, "'XX' is not an engine (PE ACT POOL DVE SP)"},
		{HEAD "step PE 1 nop\n", 5, "'1' is not a duration"},
		{HEAD "step PE 1.5us nop\n", 5, "is not a duration"},
		{HEAD "step PE us nop\n", 5, "is not a duration"},
		{HEAD "step PE 3601s nop\n", 5, "more than an hour"},
		{HEAD "step PE 3599s nop\nstep PE 1s nop\nstep PE 1ns nop\n", 7,
			"with '1ns' the steps are more than an hour together"},
		{HEAD "step PE 1801s nop\nstep ACT 1801s nop\n", 6, "more than an hour together"},
		{HEAD "step PE 99999999999999999999ns nop\n", 5, "is not a duration"},
		{HEAD "step PE 1ns mul a a c\n", 5, "'mul' is not an operation (nop copy add)"},
		{HEAD "step PE 1ns add a c\n", 5, "add takes 3 operands"},
		{HEAD "step PE 1ns nop a\n", 5, "nop takes 0 operands"},
		{HEAD "step PE 1ns copy a z\n", 5, "there is no tensor 'z'"},
		{HEAD "step PE 1ns copy c c\n", 5, "'c' is read before"},
		{HEAD "step PE 1ns copy a a\n", 5, "'a' is an input"},
		{HEAD "step PE 1ns copy a c\ninput b int8 1\n", 6, "before the first step"},
		{HEAD "temp t int32 5\nstep PE 1ns copy a t\n", 6, "differ in type or number"},
		{HEAD "temp t uint32 4\nstep PE 1ns copy a t\n", 6, "differ in type or number"},
		{"ntrace-model 1\nname n\ninput a fp8_e3 4\noutput c fp8_e3 4\n"
		 "step PE 1ns add a a c\n",
			5, "fp8_e3 cannot be added"},
		{HEAD "stop PE 1ns nop\n", 5, "'stop' is not a keyword"},
		{HEAD "step PE 1ns add a a c d e\n", 5, "add takes 3 operands"},
		{HEAD "step PE 1ns\n", 5, "expected: step ENGINE"},
		{"ntrace-model 1\nname a b c d e f g h i j k l m n o p\n", 2, "too many words"},
		{HEAD "step DMA0 1ns nop\n", 5, "'DMA0' needs `ntrace-model 2` in the first line"},
		{HEAD "step TOPSP 1ns nop\n", 5, "'TOPSP' needs `ntrace-model 2`"},
		{HEAD "step SP 1ns barrier\n", 5, "'barrier' needs `ntrace-model 2`"},
		{HEAD "step SP 1ns fault numerical\n", 5, "'fault' needs `ntrace-model 2`"},
		{HEAD "step SP 1ns nop post s\n", 5, "'post' needs `ntrace-model 2`"},
		{HEAD "step SP 1ns add a a c wait s 1\n", 5, "'wait' needs `ntrace-model 2`"},
		{HEAD "step SP 1ns add a a c wait s 1 post s 2\n", 5, "'wait' needs `ntrace-"},
		{HEAD "semaphore s\n", 5, "'semaphore' is not a keyword of version 1"},
		{HEAD "step PE 1ns nop\r\n", 5, "Windows line ends"},
		{HEAD "step PE\r1ns nop\n", 5, "control character 0x0d"},
		{HEAD "step PE 1ns nop\033\n", 5, "control character 0x1b"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		check_refused(rows[i].text, rows[i].line, rows[i].says);
}

TEST("model: bytes that are no text are another format", "[model]")
{
	struct model_desc m = {0};
	struct model_error error;

	CHECK_EQ(model_parse("NEFF\0\1\2", 7, &m, &error), -EPROTONOSUPPORT);
	CHECK_EQ(model_parse("\x1f\x8b\x08", 3, &m, &error), -EINVAL);
}

/* The limits of the device, met exactly and exceeded by one. */
TEST("model: limits", "[model]")
{
	char *text = malloc(1 << 20);
	struct model_desc m = {0};
	struct model_error error;

	REQUIRE(text != NULL);
	for (unsigned over = 0; over <= 1; over++) {
		size_t n = (size_t)sprintf(text, "ntrace-model 1\nname n\n");

		for (unsigned i = 0; i < VDEV_MAX_BINDINGS + over; i++)
			n += (size_t)sprintf(text + n, "input i%u int8 1\n", i);
		n += (size_t)sprintf(text + n, "step PE 1ns nop\n");
		CHECK_EQ(model_parse(text, n, &m, &error), over ? -EINVAL : 0);
		if (!over)
			model_desc_free(&m);
		else
			CHECK_STR(error.text, "more than 256 tensors");
		n = (size_t)sprintf(text, "ntrace-model 1\nname n\n");
		for (unsigned i = 0; i < VDEV_MAX_INSTRUCTIONS + over; i++)
			n += (size_t)sprintf(text + n, "step PE 1ns nop\n");
		CHECK_EQ(model_parse(text, n, &m, &error), over ? -EINVAL : 0);
		if (!over)
			model_desc_free(&m);
		else
			CHECK_STR(error.text, "more than 4096 steps");
		n = (size_t)sprintf(text, "ntrace-model 1\nname %0*d\nstep PE 1ns nop\n",
			(int)(NRT_TENSOR_NAME_MAX - 1 + over), 7);
		CHECK_EQ(model_parse(text, n, &m, &error), over ? -EINVAL : 0);
		if (!over)
			model_desc_free(&m);
		else
			CHECK_STR(error.text, "a name has at most 255 bytes");
		n = (size_t)sprintf(text, "#%0*d\nntrace-model 1\nname n\nstep PE 1ns nop",
			(int)(1022 + over), 7);
		CHECK_EQ(model_parse(text, n, &m, &error), over ? -EINVAL : 0);
		if (!over)
			model_desc_free(&m);
		else
			CHECK_STR(error.text, "the line has more than 1023 bytes");
	}
	free(text);
}

/* Each prefix of a good model, in memory of exactly its size: nothing is read behind it. */
TEST("model: a cut text never makes the parser read beyond it", "[model]")
{
	size_t good = 0;

	for (size_t size = 0; size <= strlen(example); size++) {
		char *copy = malloc(size + 1);
		struct model_desc m = {0};
		struct model_error error;

		REQUIRE(copy != NULL);
		memcpy(copy + 1, example, size);
		if (model_parse(copy + 1, size, &m, &error) == 0) {
			good++;
			model_desc_free(&m);
		}
		free(copy);
	}
	CHECK(good > 1 && good < strlen(example) / 2);
}
