/* SPDX-License-Identifier: Apache-2.0 */
/*
 * btf_check_test.c - on every kernel and driver whose type information is kept in tests/btf/, the loader finds what our
 * BPF programs read; and the check that says so can say no.
 */
#include <errno.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>

#include "tests/btf/check.h"
#include "tests/shim/shim.h"

#define KERNEL "tests/btf/linux-6.1.btf"

/* All objects on one machine; how much of them was found. */
static unsigned check_machine(const char *kernel, const char *driver)
{
	const char *const paths[] = {kernel, driver, NULL};
	unsigned found = 0;
	const void *bytes;
	const char *name;
	size_t size;

	for (unsigned i = 0; (name = btf_check_object(i, &bytes, &size)); i++) {
		struct btf_verdict v = {0};
		char *report = NULL;
		size_t length = 0;
		FILE *f = open_memstream(&report, &length);
		int r = btf_check(bytes, size, paths, f, false, &v);

		fclose(f);
		test_info("%s, %s, %s: %s", name, kernel, driver ? driver : "no driver", report);
		CHECK_EQ(r, 0);
		CHECK_EQ(v.missing, 0);
		CHECK_EQ(v.other, 0);
		CHECK_EQ(v.found + v.guarded, v.wanted);
		CHECK(v.wanted > 10);
		found += v.found;
		free(report);
	}
	return found;
}

TEST("btf: kept kernels and drivers have all that the programs read", "[bpf][btf]")
{
	glob_t kernels, drivers;
	unsigned alone;

	if (glob("tests/btf/linux-*.btf", 0, NULL, &kernels) != 0)
		SKIP("the source tree (run from its top)");
	REQUIRE(glob("tests/btf/neuron-*.btf", 0, NULL, &drivers) == 0);
	CHECK(kernels.gl_pathc >= 3);
	CHECK(drivers.gl_pathc >= 2);
	for (size_t i = 0; i < kernels.gl_pathc; i++)
		check_machine(kernels.gl_pathv[i], NULL);
	alone = check_machine(KERNEL, NULL);
	for (size_t i = 0; i < drivers.gl_pathc; i++)
		CHECK(check_machine(KERNEL, drivers.gl_pathv[i]) > alone);
	globfree(&kernels);
	globfree(&drivers);
}

TEST("btf: what a machine lacks is said, and told from what the programs ask for", "[bpf][btf]")
{
	/* A driver alone has no system calls. */
	const char *const paths[] = {"tests/btf/neuron-2.24.btf", NULL};
	struct btf_verdict v = {0};
	char *report = NULL;
	size_t length = 0, size;
	const void *bytes;
	FILE *f;

	REQUIRE(btf_check_object(0, &bytes, &size) != NULL);
	f = open_memstream(&report, &length);
	if (btf_check(bytes, size, paths, f, false, &v) == -ENOENT) {
		fclose(f);
		free(report);
		SKIP("the source tree (run from its top)");
	}
	fclose(f);
	CHECK(v.missing > 0);
	CHECK(strstr(report, "MISSING  trace_event_raw_sys_enter.args.[]\n") != NULL);
	CHECK(strstr(report, "task_struct") == NULL);
	free(report);
}

TEST("btf: files that are none are refused", "[bpf][btf]")
{
	static const char *const none[][2] = {
		{"/dev/null", NULL}, {"Makefile", NULL}, {NULL, NULL}};
	struct btf_verdict v;
	const void *bytes;
	size_t size;

	REQUIRE(btf_check_object(0, &bytes, &size) != NULL);
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		CHECK(btf_check(bytes, size, none[i], NULL, false, &v) < 0);
}
