/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nrt_config_test.c - settings as a program meets them: nrt_init of the built library with good and bad
 * values of each kind, on a virtual device.
 */
#include "tests/unit/nrt_lib.h"

static int each_kind(void *arg)
{
	static const struct {
		const char *name, *bad, *allowed, *good;
	} rows[] = {
		{"NTRACE_ALLOW_RESET", "yes", "0 or 1", "1"},
		{"NEURON_RT_VISIBLE_CORES", "0-",
			"a list like 0-3,4 of neighbouring cores up to 511", "0"},
		{"NEURON_RT_VISIBLE_CORES", "0,2",
			"a list like 0-3,4 of neighbouring cores up to 511", "0,0"},
		{"NEURON_RT_NUM_CORES", "-1", "a number from 0 to 4294967295", "1"},
		{"NEURON_RT_EXEC_TIMEOUT", "86401", "a number from 1 to 86400 (seconds)", "86400"},
		{"NEURON_RT_VALIDATE_HASH", "maybe", "0, 1, TRUE or FALSE", "TRUE"},
		{"NEURON_RT_INSPECT_SYS_TRACE_MAX_EVENTS_PER_NC", "99999999999999999999",
			"a number (events), which is brought into 1024 to 1048576", "1"},
		{"NEURON_RT_DEBUG_STREAM_BUFFER_SIZE", "1000",
			"a power of two from 1 to 2147483648 (events)", "1024"},
		{"NEURON_RT_DBG_DMA_PACKETIZATION_SIZE", "1048576",
			"a number from 0 to 1048575 (bytes)", "1048575"},
		{"NEURON_SCRATCHPAD_PAGE_SIZE", "4096", "a multiple of 512 up to 3584 (MB)",
			"3584"},
		{"NEURON_RT_INSPECT_EVENT_FILTER_NC", "256", "a list like 0-3,5 of cores up to 255",
			"0"},
		{"NEURON_RT_DBG_CC_DMA_PACKET_SIZE", "512;512",
			"a list like 512,4096 of up to 16 32-bit numbers", "1-17"},
		{"NEURON_RT_INSPECT_DEVICE_PROFILE", "always", "one of 0 1 model session",
			"session"},
		{"NEURON_LOGICAL_NC_CONFIG", "two", "1 or 2", "1"},
	};
	struct place *p = arg;
	char text[512];

	WANT(enter(p) == 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		WANT(setenv(rows[i].name, rows[i].bad, 1) == 0);
		WANT_STATUS(init(), NRT_INVALID);
		(void)snprintf(text, sizeof(text), "%s='%s' is not %s\n", rows[i].name, rows[i].bad,
			rows[i].allowed);
		WANT(said(p, text));
		WANT(setenv(rows[i].name, rows[i].good, 1) == 0);
		WANT_STATUS(init(), NRT_SUCCESS);
		lib.nrt_close();
		WANT(setenv(rows[i].name, "", 1) == 0);
		WANT_STATUS(init(), NRT_SUCCESS);
		lib.nrt_close();
		WANT(unsetenv(rows[i].name) == 0);
	}
	return 0;
}

TEST("nrt_init: a bad value of any kind is NRT_INVALID and said, a good one and none are not",
	"[nrt][config]")
{
	const char *lacks = device_lacks();

	if (lacks)
		SKIP(lacks);
	with_device(each_kind, two_cores);
}

static int warnings(void *arg)
{
	struct place *p = arg;

	WANT(enter(p) == 0);
	WANT(dup2(2, 1) == 1); /* warnings go to stdout */
	setenv("NEURON_RT_LOG_LEVEL", "WARN", 1);
	setenv("NEURON_RT_INSPEC_ENABLE", "1", 1);
	setenv("NEURON_RT_INSPECT_START_OFFSET_NSEC", "soon", 1);
	setenv("NEURON_RT_VISIBLE_CORES", "0", 1);
	setenv("NEURON_RT_NUM_CORES", "2", 1);
	WANT_STATUS(init(), NRT_SUCCESS);
	lib.nrt_close();
	WANT(said(p, "NEURON_RT_INSPEC_ENABLE is not a variable of this library; did you mean "
		     "NEURON_RT_INSPECT_ENABLE?\n"));
	WANT_STATUS(init(), NRT_SUCCESS);
	lib.nrt_close();
	WANT(said(p, "NEURON_RT_INSPECT_START_OFFSET_NSEC has no effect any more"));
	WANT_STATUS(init(), NRT_SUCCESS);
	lib.nrt_close();
	WANT(said(p, "Using NEURON_RT_VISIBLE_CORES to allocate Logical Neuron Cores"));
	return 0;
}

TEST("nrt_init: misspelt and removed variables are said and do no harm", "[nrt][config]")
{
	const char *lacks = device_lacks();

	if (lacks)
		SKIP(lacks);
	with_device(warnings, two_cores);
}
