/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz.h - what the fuzz targets share.
 *
 * A target is one file <name>_fuzz.c with LLVMFuzzerTestOneInput.  `make fuzz` links it with libFuzzer
 * (clang), `make test` with replay_main.c, which runs the inputs in corpus/<name>/ once.  A target
 * finds faults by the sanitizers, and by FUZZ_REQUIRE: what must be true whatever the bytes.
 */
#ifndef NTRACE_TESTS_FUZZ_H
#define NTRACE_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/unit/scratch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FUZZ_REQUIRE(x)                                                                   \
	do {                                                                              \
		if (!(x)) {                                                               \
			fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #x); \
			abort();                                                          \
		}                                                                         \
	} while (0)

static struct scratch fuzz_scratch_;

static inline void fuzz_scratch_end_(void)
{
	scratch_remove(&fuzz_scratch_);
}

/* A directory of the target's own in memory, made at the first call and removed at exit. */
static inline const struct scratch *fuzz_scratch(void)
{
	if (!*fuzz_scratch_.dir) {
		setenv("TMPDIR", "/dev/shm", 0);
		FUZZ_REQUIRE(scratch_make(&fuzz_scratch_));
		atexit(fuzz_scratch_end_);
	}
	return &fuzz_scratch_;
}

/* Puts a file with these bytes into the directory, in place of one that was there. */
static inline struct scratch_path fuzz_file(const char *name, const void *data, size_t size)
{
	struct scratch_path path = scratch_path(fuzz_scratch(), name);
	FILE *f = fopen(path.s, "w");

	FUZZ_REQUIRE(f && fwrite(data, 1, size, f) == size && fclose(f) == 0);
	return path;
}

/* A stream that takes everything and keeps nothing. */
static inline FILE *fuzz_sink(void)
{
	static FILE *sink;

	if (!sink)
		sink = fopen("/dev/null", "w");
	FUZZ_REQUIRE(sink);
	return sink;
}

#endif
