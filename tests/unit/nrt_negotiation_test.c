/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nrt_negotiation_test.c - nrt_init on virtual devices with drivers of all kinds: too old, too new, without
 * some requests, failing in one.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/shim/shim.h"
#include "tests/unit/nrt_lib.h"

static const char *expected[4]; /* what the library says, in this order, up to NULL */

/* All of it, and in which order. */
static bool said_in_order(const struct place *p)
{
	char *all = program_text(p->log.s), *at = all;
	bool ok = all != NULL;

	for (size_t i = 0; ok && i < 4 && expected[i]; i++) {
		at = strstr(at, expected[i]);
		if (!at)
			dprintf(complaint_fd, "not said: %s\nbut: %s\n", expected[i], all);
		ok = at != NULL;
	}
	free(all);
	return ok;
}

static int refused(void *arg)
{
	struct place *p = arg;

	WANT(enter(p) == 0);
	WANT_STATUS(init(), NRT_INVALID);
	WANT(said_in_order(p));
	WANT_STATUS(lib.nrt_unload(NULL), NRT_UNINITIALIZED);
	WANT(virtual_device_reaches(&p->device, "open_handles", 0));
	return 0;
}

TEST("negotiate: the message names id, range and package", "[nrt]")
{
	static const struct {
		const char *arch, *compat, *id, *range, *package;
	} rows[] = {
		{"--arch=v2", "--compat=7-9", "(compatibility id: 6)", "id range: 7 - 9.\n",
			"latest aws-neuronx-runtime-lib and aws-neuronx-collectives; for detailed "
			"installation instructions visit Neuron documentation.\n"},
		{"--arch=v2", "--compat=5-5", "(compatibility id: 6)",
			"Runtime compatibility id: 5.\n", "latest aws-neuronx-dkms; for"},
		{"--arch=v3", "--compat=11-11", "(compatibility id: 10)",
			"Runtime compatibility id: 11.\n",
			"latest aws-neuronx-runtime-lib and aws-neuronx-collectives; for"},
		{"--arch=v3", "--compat=5-10", "(compatibility id: 11)", "id range: 5 - 10.\n",
			"latest aws-neuronx-dkms; for"},
		{"--arch=v4", "--compat=12-13", "(compatibility id: 10)", "id range: 12 - 13.\n",
			"latest aws-neuronx-runtime-lib and aws-neuronx-collectives; for"},
	};

	if (device_lacks())
		SKIP(device_lacks());
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *const options[] = {rows[i].arch, rows[i].compat, NULL};

		test_info("%s %s", rows[i].arch, rows[i].compat);
		expected[0] = "This Neuron Runtime ";
		expected[1] = rows[i].id;
		expected[2] = rows[i].range;
		expected[3] = rows[i].package;
		with_device(refused, options);
	}
}

TEST("negotiate: a driver that refuses to say its range is told with two lines", "[nrt]")
{
	static const char *const options[][2] = {
		{"--fail=COMPATIBLE_VERSION", NULL}, {"--without=COMPATIBLE_VERSION", NULL}};

	if (device_lacks())
		SKIP(device_lacks());
	memset(expected, 0, sizeof(expected));
	expected[0] = "Unable to read compatible Driver version.\n";
	expected[1] = "Please check /dev/neuron# is accessible. If you're using containers, please "
		      "ensure "
		      "Neuron Devices are passed to the container by specifying `--device "
		      "/dev/neuron#`.\n";
	expected[2] = "nd0 answered: In"; /* Input/output error, or Invalid argument */
	for (size_t i = 0; i < 2; i++)
		with_device(refused, options[i]);
}

TEST("negotiate: a board that cannot be identified ends nrt_init", "[nrt]")
{
	static const char *const options[][2] = {{"--fail=DEVICE_BASIC_INFO", NULL},
		{"--without=DEVICE_BASIC_INFO,DEVICE_INFO", NULL}};

	if (device_lacks())
		SKIP(device_lacks());
	memset(expected, 0, sizeof(expected));
	expected[0] = "Failed to identify hw platform\n";
	expected[1] = "nd0 answered: In"; /* Input/output error, or Invalid argument */
	for (size_t i = 0; i < 2; i++)
		with_device(refused, options[i]);
}

/* ---- drivers that fit --------------------------------------------------------------------- */

static int works(void *arg)
{
	struct place *p = arg;
	struct job job;

	WANT(enter(p) == 0);
	setenv("NEURON_RT_LOG_LEVEL", "WARN", 1);
	WANT(dup2(2, 1) == 1);
	setenv("NEURON_RT_NUM_CORES", "1", 1);
	WANT_STATUS(init(), 0);
	if (expected[0])
		WANT(said_in_order(p));
	WANT(job_open(&job, ADD_MODEL, 0) == 0);
	WANT(job_run(&job, 1, 2) == 0);
	lib.nrt_close();
	WANT(virtual_device_reaches(&p->device, "open_handles", 0));
	return 0;
}

TEST("nrt_init: models run on drivers 2.24 and 2.30 of each generation", "[nrt]")
{
	static const char *const options[][3] = {{"--arch=v2", "--driver=2.24", NULL},
		{"--arch=v2", "--driver=2.30", NULL}, {"--arch=v3", "--driver=2.24", NULL},
		{"--arch=v3", "--driver=2.30", NULL}, {"--arch=v4", "--driver=2.30", NULL}};

	if (device_lacks())
		SKIP(device_lacks());
	memset(expected, 0, sizeof(expected));
	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
		test_info("%s %s", options[i][0], options[i][1]);
		with_device(works, options[i]);
	}
}

TEST("nrt_init: models run on a driver without the newer requests, with a warning", "[nrt]")
{
	static const char *const options[][4] = {
		{"--arch=v3", "--without=DRIVER_INFO_GET", "--driver=2.24", NULL},
		{"--arch=v3", "--driver=2.24",
			"--without=DEVICE_BASIC_INFO,DEVICE_BDF_EXT,HOST_DEVICE_ID_TO_RID_MAP,"
			"DRIVER_INFO_GET,MEM_ALLOC_V2MT64,MEM_ALLOC_V2MT,MEM_ALLOC_V2,"
			"MEM_BUF_COPY64,CRWL_NC_RANGE_MARK_EXT0,CRWL_NC_RANGE_UNMARK_EXT0",
			NULL},
		{"--arch=v2", "--driver=2.24",
			"--without=DRIVER_INFO_GET,MEM_ALLOC_V2MT64,MEM_ALLOC_V2MT,MEM_BUF_COPY64",
			NULL},
	};

	if (device_lacks())
		SKIP(device_lacks());
	memset(expected, 0, sizeof(expected));
	expected[0] =
		"The Neuron driver is old: version 2.24 without feature flags. Please upgrade";
	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
		test_info("%s", options[i][2]);
		with_device(works, options[i]);
	}
}
