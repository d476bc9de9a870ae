/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hook_families_test.c - what stands under `blind` is told of the families that the recorder has, all and no others.
 */
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "runtime/record/blind.h"
#include "runtime/record/blind_hooks.h"
#include "tests/shim/shim.h"

/* Both tables as text: the levels and objects of one, the kinds of the other. */
static const struct {
	const char *family, *level, *object;
} hooks[] = {
#define WITH_LAYOUT(n)
#define OR_ONE_LESS(n)
#define HOOK(family, level, object, program, target, nargs) {family, #level, #object},
#include "agent/collect/hooks.def"
#undef HOOK
};

static const struct {
	const char *name, *kind, *untold;
} families[] = {
#define FAMILY(name, kind, since, unseen, untold) {name, #kind, untold},
#include "runtime/record/hook_families.def"
#undef FAMILY
};

#define HOOKS (sizeof(hooks) / sizeof(*hooks))
#define FAMILIES (sizeof(families) / sizeof(*families))

static size_t family_of(const char *name)
{
	size_t f = 0;

	while (f < FAMILIES && strcmp(families[f].name, name) != 0)
		f++;
	return f;
}

TEST("hook families: every family of hooks is one, of its object's kind", "[merge][driver]")
{
	for (size_t i = 0; i < HOOKS; i++) {
		size_t f = family_of(hooks[i].family);

		test_info("family %s", hooks[i].family);
		REQUIRE(f < FAMILIES);
		CHECK_STR(families[f].kind, strcmp(hooks[i].object, "dma") == 0 ? "DMA" : "CALL");
	}
}

TEST("hook families: each has hooks, and says what its tracepoints do not tell if it has them",
	"[merge][driver]")
{
	for (size_t f = 0; f < FAMILIES; f++) {
		bool hooked = false, traced = false;

		for (size_t i = 0; i < HOOKS; i++) {
			if (strcmp(hooks[i].family, families[f].name) != 0)
				continue;
			hooked = true;
			traced |= !strcmp(hooks[i].level, "tracepoint");
		}
		test_info("family %s", families[f].name);
		CHECK(hooked);
		CHECK_EQ(families[f].untold != NULL, traced);
		CHECK_EQ(family_of(families[f].name), f); /* once */
	}
}

TEST("hook families: what a driver does from a release on, an earlier one has no need of",
	"[merge][driver]")
{
	CHECK_STR(blind_family_since("owner", "2.24.7.0"), "2.28");
	CHECK(blind_family_since("owner", "2.28.0.0") == NULL);
	CHECK(blind_family_since("owner", "") == NULL); /* nobody knows */
	CHECK(blind_family_since("doorbell", "2.24.7.0") == NULL);
	CHECK(blind_family_since("bogus", "2.24.7.0") == NULL);
	CHECK_STR(blind_family_without("doorbell"), "not seen: doorbells of the driver");
	CHECK_STR(blind_family_without("completion"), "not seen: " BLIND_NO_COMPLETIONS);
	CHECK(blind_family_without("bogus") == NULL);
}
