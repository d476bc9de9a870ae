/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nrt_core_dump.h - the library with a helper of the test's for core dumps, and what the helper has seen.
 *
 * Header only, on top of nrt_lib.h.  The library is the build whose helper is ./neuron-dump; the program stands in the
 * scratch directory, where that is a link to tests/fake_dump.
 */
#ifndef NTRACE_TESTS_NRT_CORE_DUMP_H
#define NTRACE_TESTS_NRT_CORE_DUMP_H

#include <glob.h>

#include "tests/unit/nrt_lib.h"

#define DUMP_TEST(name, fn) DUMP_TEST_ON(name, fn, two_cores)
#define DUMP_TEST_ON(name, fn, options)                                     \
	TEST(name, "[nrt][core-dump][vdev]")                                \
	{                                                                   \
		if (device_lacks())                                         \
			SKIP(device_lacks());                               \
		if (!program_exists("tests/fake_dump"))                     \
			SKIP("tests/fake_dump and tests/dump/libnrt.so.1"); \
		with_device(fn, options);                                   \
	}

#define LOCAL "NEURON_RT_LOCAL_CORE_DUMP_DIRECTORY"
#define S3 "NEURON_RT_S3_CORE_DUMP_PREFIX"
#define GARBAGE_STATUS NRT_UNSUPPORTED_NEFF_VERSION

static inline struct scratch_path dump_place(const struct place *p, const char *name)
{
	return scratch_path(&p->scratch, name);
}

/* Loads the library, the helper being there; local: NULL leaves the variables as they are.  level: of the log. */
static inline int dump_begin(const struct place *p, const char *local, const char *level)
{
	struct scratch_path out = dump_place(p, "out");
	struct program_path helper = program_path("tests/fake_dump");

	library_file = "tests/dump/libnrt.so.1";
	WANT(enter(p) == 0);
	WANT(dup2(2, 1) == 1); /* what is no error is heard, too */
	WANT(chdir(p->scratch.dir) == 0);
	WANT(symlink(helper.s, "neuron-dump") == 0);
	setenv("FAKE_DUMP_OUT", out.s, 1);
	setenv("NEURON_RT_LOG_LEVEL", level, 1);
	if (local)
		setenv(LOCAL, local, 1);
	WANT_STATUS(init(), 0);
	return 0;
}

/* A call that fails, for core 0: two physical ones. */
static inline int fail_to_load(void)
{
	nrt_model_t *model = NULL;

	WANT_STATUS(lib.nrt_load("\177NEFF", 6, 0, -1, &model), GARBAGE_STATUS);
	return 0;
}

static inline int fail_with_helper(const struct place *p, const char *how)
{
	struct scratch_path dir = dump_place(p, "dumps");

	setenv("FAKE_DUMP", how, 1);
	WANT(dump_begin(p, dir.s, "ERROR") == 0);
	return fail_to_load();
}

/* There is one, with the call that failed. */
static inline bool file_has_error(void)
{
	glob_t found;
	char *text;
	bool has;

	if (glob("dumps/*-nrt-pid-*.log", 0, NULL, &found) != 0)
		return false;
	text = program_text(found.gl_pathv[0]);
	has = found.gl_pathc == 1 && text && strstr(text, " Model: ");
	free(text);
	globfree(&found);
	return has;
}

/* How many runs of the helper have ended whose arguments have this; "": of all. */
static inline int dump_runs(const struct place *p, const char *having)
{
	char *text = program_text(dump_place(p, "out").s), *at = text;
	int n = 0;

	for (char *end; (end = strstr(at, "\nend\n")); at = end + 5) {
		end[1] = '\0';
		n += strstr(at, having) != NULL;
	}
	free(text);
	return n;
}

/* The arguments of run k are these (NULL-terminated; "*" is anything), and no more. */
static inline bool dump_argv_is(const struct place *p, int k, const char *const want[])
{
	char *text = program_text(dump_place(p, "out").s), *at = text;
	bool same = true;

	for (; k > 0 && at; k--)
		if ((at = strstr(at, "\nend\n")))
			at += 5;
	if (!at || !*at)
		dprintf(complaint_fd, "no such run\n");
	same = at && *at;
	for (int i = 0; same; i++) {
		size_t len = strcspn(at, "\n");
		bool is = !strncmp(at, "arg ", 4);

		if (!want[i] && !is)
			break;
		same = want[i] && is &&
		       (!strcmp(want[i], "*") ||
			       (strlen(want[i]) == len - 4 && !memcmp(at + 4, want[i], len - 4)));
		if (!same)
			dprintf(complaint_fd, "argument %d: %.*s, wanted %s\n", i, (int)len, at,
				want[i] ? want[i] : "none");
		at += len + 1;
	}
	free(text);
	return same;
}

/* The value behind a flag in run k; "" when there is none.  To be freed. */
static inline char *dump_value(const struct place *p, int k, const char *flag)
{
	char *text = program_text(dump_place(p, "out").s), *at = text, *end, key[64], *value;

	for (; k > 0 && at; k--)
		if ((at = strstr(at, "\nend\n")))
			at += 5;
	if (at && (end = strstr(at, "\nend\n")))
		*end = '\0';
	snprintf(key, sizeof(key), "arg %s\narg ", flag);
	at = at ? strstr(at, key) : NULL;
	value = at ? strndup(at + strlen(key), strcspn(at + strlen(key), "\n")) : strdup("");
	free(text);
	return value;
}

#endif
