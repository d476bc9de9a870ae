/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nrt_init_steps_test.c - nrt_init ends in any of its steps: what it returns and says, and that nothing is
 * left.
 *
 * Steps fail through init_set_probe, one after the other and at random; where a cause from outside can be
 * made, with the cause.
 */
#include <inttypes.h>
#include <time.h>

#include "tests/shim/shim.h"
#include "tests/unit/nrt_init_fixture.h"

static const char *fail_at;

static NRT_STATUS fail_there(const char *step)
{
	return fail_at && !strcmp(step, fail_at) ? NRT_RESOURCE : NRT_SUCCESS;
}

/* ---- messages ---------------------------------------------------------------------------- */

static int messages(void *arg)
{
	static const char *const texts[] = {
		"Neuron Runtime 2.31.24.0 built on Mar 25 2026",
		"Found neuron driver: 2.",
		"Instance info:: device count:1 cores per device:2 architecture:TRN",
		"LNC info: first lnc 0 last lnc ",
		"Framework: PyTorch, version '2.9?x', adapter ''",
		"Reset triggered for nd ",
		"API:OUT: (ret=0)",
	};
	struct place *p = arg;
	char *all;
	const char *at;

	WANT(enter_linked(p, "DEBUG") == 0);
	WANT_STATUS(lib.nrt_init(NRT_FRAMEWORK_TYPE_PYTORCH, "2.9\nx", NULL), 0);
	at = all = program_text(p->log.s);
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		const char *next = strstr(at, texts[i]);

		if (!next)
			dprintf(complaint_fd, "not said, or not in this order: %s\n", texts[i]);
		WANT(next != NULL);
		at = next;
	}
	free(all);
	lib.nrt_close();
	return 0;
}

TEST("nrt init: what it says on the way, in its order", "[nrt][vdev]")
{
	NEED_VDEV();
	with_device(messages, fixture_device);
}

static int long_versions(void *arg)
{
	struct place *p = arg;
	char text[200];

	memset(text, 'v', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	WANT(enter_linked(p, "INFO") == 0);
	WANT_STATUS(lib.nrt_init((nrt_framework_type_t)77, text, text), 0);
	WANT(strlen(runtime_get()->fw_version) == RUNTIME_VERSION_BYTES - 1);
	WANT(strlen(runtime_get()->fal_version) == RUNTIME_VERSION_BYTES - 1);
	WANT(said(p, "Framework type 77 is not known"));
	lib.nrt_close();
	WANT_STATUS(init(), 0);
	WANT(said(p, "Framework: no framework, version '', adapter ''"));
	lib.nrt_close();
	WANT_STATUS(lib.nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, text, NULL), 0);
	WANT(said(p, "The framework version is cut to 63 bytes"));
	lib.nrt_close();
	return 0;
}

TEST("nrt init: a framework's versions are kept as far as they fit", "[nrt][vdev]")
{
	NEED_VDEV();
	with_device(long_versions, fixture_device);
}

/* ---- each step fails ---------------------------------------------------------------------- */

/* nrt_init that fails there, and afterwards nothing is different. */
static int fails_cleanly(struct place *p, const char *step)
{
	struct belongings before = belongings_now(), after;

	fail_at = step;
	init_set_probe(fail_there);
	WANT_STATUS(init(), NRT_RESOURCE);
	init_set_probe(NULL);
	after = belongings_now();
	WANT(belongings_equal(&before, &after));
	WANT(state_now() == STATE_START);
	WANT(cores_are_free(p));
	return 0;
}

static int each_step_fails(void *arg)
{
	struct place *p = arg;
	char text[128];

	WANT(enter_linked(p, NULL) == 0);
	WANT_STATUS(init(), 0); /* what is made once and kept: the control file of traces */
	lib.nrt_close();
	for (size_t n = 0; init_step_name(n); n++) {
		WANT(fails_cleanly(p, init_step_name(n)) == 0);
		snprintf(text, sizeof(text), "Failure: status %d in nrt_init(), step '%s'\n",
			NRT_RESOURCE, init_step_name(n));
		WANT(said(p, text));
		WANT_STATUS(init(), 0);
		WANT(!cores_are_free(p));
		lib.nrt_close();
		WANT(cores_are_free(p));
	}
	WANT(leaks() == 0);
	return 0;
}

TEST("nrt init: each step fails in turn; nothing is left and the next nrt_init works",
	"[nrt][vdev]")
{
	NEED_VDEV();
	with_device(each_step_fails, fixture_device);
}

static int first_init_fails(void *arg)
{
	for (size_t n = 0; init_step_name(n); n++) {
		struct belongings before, after;

		before = belongings_now();
		fail_at = init_step_name(n);
		init_set_probe(fail_there);
		WANT_STATUS(init(), NRT_RESOURCE);
		after = belongings_now();
		if (!strcmp(fail_at, "ready program"))
			break; /* past tracing, which keeps its file */
		WANT(belongings_equal(&before, &after));
	}
	WANT(cores_are_free(arg));
	return 0;
}

static int first_init_fails_linked(void *arg)
{
	WANT(enter_linked(arg, "QUIET") == 0);
	return first_init_fails(arg);
}

TEST("nrt init: the first one of a process fails in each step and leaves nothing", "[nrt][vdev]")
{
	NEED_VDEV();
	with_device(first_init_fails_linked, fixture_device);
}

/* ---- many times --------------------------------------------------------------------------- */

static uint64_t seed;

static uint64_t next_random(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

static int random_failures(void *arg)
{
	struct place *p = arg;
	struct belongings before, after;
	size_t steps = 0;

	WANT(enter_linked(p, "QUIET") == 0);
	while (init_step_name(steps))
		steps++;
	WANT_STATUS(init(), 0);
	lib.nrt_close();
	before = belongings_now();
	init_set_probe(fail_there);
	for (int n = 0; n < 200; n++) {
		fail_at = init_step_name(next_random() % (steps + steps / 4)); /* or none: NULL */
		WANT_STATUS(init(), fail_at ? NRT_RESOURCE : NRT_SUCCESS);
		lib.nrt_close();
	}
	after = belongings_now();
	WANT(belongings_equal(&before, &after));
	WANT(cores_are_free(p));
	WANT(leaks() == 0);
	return 0;
}

TEST("nrt init: 200 times with a failure at random leave nothing", "[nrt][vdev]")
{
	const char *given = getenv("NTRACE_TEST_SEED");

	NEED_VDEV();
	seed = given ? strtoull(given, NULL, 0) : (uint64_t)time(NULL) * 2 + 1;
	printf("nrt init: random failures with NTRACE_TEST_SEED=0x%" PRIx64 "\n", seed);
	with_device(random_failures, fixture_device);
}
