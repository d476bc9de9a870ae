/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model_program_test.c - program images: which core of a logical one does what.
 */
#include <stdlib.h>
#include <string.h>

#include "runtime/exec/model_format.h"
#include "tests/shim/shim.h"

static struct vdev_program *image_of(const char *text, const struct model_place *place)
{
	struct model_error error;
	struct model_desc m;
	struct vdev_program *image;
	size_t bytes = 0;

	if (model_parse(text, strlen(text), &m, &error) < 0)
		return NULL;
	image = model_program(&m, place, &bytes);
	CHECK_EQ(bytes, sizeof(*image) + m.step_count * sizeof(struct vdev_instruction));
	model_desc_free(&m);
	return image;
}

static const struct vdev_instruction *steps_of(const struct vdev_program *image)
{
	return (const struct vdev_instruction *)(const void *)(image + 1);
}

#define HEAD                                                                                      \
	"ntrace-model 2\nname n\ninput a int8 7\ntemp g int8 21\noutput c int8 7\noutput h int8 " \
	"21\n"

TEST("program image: cores share the elements of each step, and none is left out", "[model]")
{
	static const char text[] =
		HEAD "step PE 3ns copy a c\nstep TOPSP 5ns all_gather a h\nstep SP 2ns nop\n";
	uint64_t at[2] = {0, 0};

	for (uint32_t part = 0; part < 2; part++) {
		const struct model_place place = {part, 2, 1, 3, 77};
		struct vdev_program *image = image_of(text, &place);

		REQUIRE(image != NULL);
		CHECK_EQ(image->flags, VDEV_PROGRAM_COUNTED);
		CHECK_EQ(image->part, part);
		CHECK_EQ(image->rank, 1);
		CHECK_EQ(image->ranks, 3);
		CHECK_EQ(image->group, 77);
		for (int i = 0; i < 2; i++) {
			CHECK_EQ(steps_of(image)[i].first, at[i]);
			at[i] += steps_of(image)[i].count;
		}
		CHECK_EQ(steps_of(image)[0].duration_ps, 3000);
		CHECK_EQ(steps_of(image)[1].whole, 7);
		free(image);
	}
	CHECK_EQ(at[0], 7);
	CHECK_EQ(at[1], 7);
}

/* The second core would read what the first one gathered, and need not wait for it. */
TEST("program image: where a step reads what was gathered, one core does everything", "[model]")
{
	static const char text[] =
		HEAD "step PE 3ns copy a c\nstep TOPSP 5ns all_gather a g\nstep SP 2ns copy g h\n";

	for (uint32_t part = 0; part < 2; part++) {
		const struct model_place place = {part, 2, 0, 3, 77};
		struct vdev_program *image = image_of(text, &place);

		REQUIRE(image != NULL);
		CHECK_EQ(steps_of(image)[0].count, part ? 0 : 7);
		CHECK_EQ(steps_of(image)[1].count, part ? 0 : 7);
		CHECK_EQ(steps_of(image)[2].count, part ? 0 : 21);
		CHECK_EQ(steps_of(image)[2].first, 0);
		CHECK_EQ(steps_of(image)[2].duration_ps, 2000);
		free(image);
	}
}

TEST("program image: version 1 is serial, and without collectives there are no ranks", "[model]")
{
	const struct model_place place = {0, 1, 0, 1, 77};
	struct vdev_program *image = image_of("ntrace-model 1\nname n\nstep PE 1ns nop\n", &place);

	REQUIRE(image != NULL);
	CHECK_EQ(image->flags, VDEV_PROGRAM_SERIAL);
	CHECK_EQ(image->ranks, 0);
	CHECK_EQ(image->group, 0);
	free(image);
}
