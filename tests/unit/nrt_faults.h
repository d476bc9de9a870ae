/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nrt_faults.h - tests in which an allocation of the library, or a call to the system, fails.
 *
 * tests/faults.so makes them fail; it must come before the C library.  So a hidden test does the
 * work (faults_work), in a process of its own, which the test proper starts on a virtual device
 * (faults_run). Header only, on top of nrt_lib.h.
 */
#ifndef NTRACE_TESTS_NRT_FAULTS_H
#define NTRACE_TESTS_NRT_FAULTS_H

#include <limits.h>

#include "runtime/base/file.h"
#include "tests/unit/nrt_lib.h"

struct faults {
	void (*arm)(unsigned long n, bool and_all_behind);
	bool (*happened)(void);
};

/* The body of the hidden test. */
static inline void faults_work(int (*work)(const struct place *p, const struct faults *f))
{
	struct place p;
	struct faults f;

	void *arm = dlsym(RTLD_DEFAULT, "faults_arm");
	void *happened = dlsym(RTLD_DEFAULT, "faults_happened");
	const char *root = getenv("NTRACE_DEVICE_ROOT");

	REQUIRE(arm && happened && root && place_open(&p));
	memcpy(&f.arm, &arm, sizeof(arm));
	memcpy(&f.happened, &happened, sizeof(happened));
	snprintf(p.device.root, sizeof(p.device.root), "%s", root);
	p.device.pid = getpid(); /* there is one, which is not ours to end */
	CHECK_EQ(work(&p, &f), 0);
	p.device.pid = 0;
	place_close(&p);
}

/* Runs the hidden test with this tag, on a device with these options; kind: "NTRACE_FAULT=alloc:0", or file. */
static inline void faults_run_on(const char *tag, const char *kind, const char *const options[])
{
	char unit[PATH_MAX] = "", preload[600], asan[PATH_MAX];
	char *argv[] = {"/usr/bin/env", (char *)kind, "NTRACE_FAULT_PROGRAM=unit",
		(char *)program_asan_options(asan, sizeof(asan)), preload, NULL, unit, (char *)tag,
		NULL};
	struct place p;

#ifdef __SANITIZE_THREAD__
	SKIP("a build without ThreadSanitizer, which allows no library before it");
#endif
	if (device_lacks())
		SKIP(device_lacks());
	if (!program_exists("tests/faults.so"))
		SKIP("tests/faults.so");
	REQUIRE(readlink("/proc/self/exe", unit, sizeof(unit) - 1) > 0);
	snprintf(preload, sizeof(preload), "LD_PRELOAD=%s", program_path("tests/faults.so").s);
	REQUIRE(place_open(&p));
	REQUIRE(virtual_device_start(&p.device, p.scratch.dir, options));
	argv[5] = p.device.env;
	CHECK_EQ(program_run(argv, p.log.s, NULL), 0);
	_cleanup_free_ char *said_text = program_text(p.log.s);
	test_info("%s", said_text);
	CHECK(strstr(said_text, "1 passed, 0 failed, 0 skipped"));
	place_close(&p);
}

/* The same for allocations, on two cores. */
static inline void faults_run(const char *tag)
{
	faults_run_on(tag, "NTRACE_FAULT=alloc:0", two_cores);
}

#endif
