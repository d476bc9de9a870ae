/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nrt_discovery_test.c - nrt_init on machines that are made of files: what is found, what is refused, and what
 * is said about it; and simulated machines.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "runtime/base/file.h"
#include "tests/shim/shim.h"
#include "tests/unit/nrt_lib.h"

#define NOBODY 65534u

static bool put(const struct place *p, const char *path, const char *text)
{
	struct scratch_path full = scratch_path(&p->scratch, path), parent = full;
	FILE *f;

	*strrchr(parent.s, '/') = '\0';
	if (file_mkdirs(parent.s, NULL) < 0)
		return false;
	f = fopen(full.s, "we");
	return f && fputs(text, f) >= 0 && fclose(f) == 0;
}

/* A device that is an empty file, with its number of cores. */
static bool put_device(const struct place *p, unsigned index, const char *cores)
{
	char name[64], count[96];

	snprintf(name, sizeof(name), "dev/neuron%u", index);
	snprintf(count, sizeof(count), "sys/class/neuron_device/neuron%u/core_count", index);
	return put(p, name, "") && put(p, count, cores);
}

static int nothing_there(void *arg)
{
	struct place *p = arg;

	WANT(enter(p) == 0);
	WANT_STATUS(init(), NRT_INVALID);
	WANT(said(p, "TDRV:no_device                                No neuron device available"));
	WANT_STATUS(init(), NRT_INVALID);
	WANT(said(p, "NRT:no_device                                Cannot find Neuron devices."));
	WANT_STATUS(init(), NRT_INVALID);
	WANT(said(p, "inf2 or trn1."));
	WANT_STATUS(init(), NRT_INVALID);
	WANT(said(p, "docs/environment.md"));
	WANT_STATUS(init(), NRT_INVALID);
	WANT(said(p, "docs/conformance.md"));
	return 0;
}

TEST("nrt_init: no device is said with what to do and where to read", "[nrt]")
{
	struct place p;

	REQUIRE_LIBRARY();
	REQUIRE(place_open(&p));
	CHECK_EQ(scratch_child(nothing_there, &p), 0);
	place_close(&p);
}

static int misspelt(void *arg)
{
	static const char *const rows[][2] = {
		{"NTRACE_DEVICE_ROT", "NTRACE_DEVICE_ROOT"},
		{"NTRACE_ALLOW_DEVICES", "NTRACE_ALLOW_DEVICE"},
		{"NEURON_RT_FAKE_INSTANCE_TYP", "NEURON_RT_FAKE_INSTANCE_TYPE"},
	};
	struct place *p = arg;
	char text[160], *all;

	WANT(enter(p) == 0);
	for (size_t i = 0; i < 3; i++) {
		WANT(setenv(rows[i][0], "1", 1) == 0);
		WANT_STATUS(init(), NRT_INVALID);
		snprintf(text, sizeof(text),
			"%s is not a variable of this library; did you mean %s?\n", rows[i][0],
			rows[i][1]);
		WANT(said(p, text));
		WANT(unsetenv(rows[i][0]) == 0);
	}
	WANT(setenv("NEURON_RT_NUM_CORE", "1", 1) == 0); /* not why there is no device */
	WANT_STATUS(init(), NRT_INVALID);
	all = program_text(p->log.s);
	WANT(all && !strstr(all, "did you mean"));
	free(all);
	return 0;
}

TEST("nrt_init: without a device a misspelt name of what chooses it is an error", "[nrt]")
{
	struct place p;

	REQUIRE_LIBRARY();
	REQUIRE(place_open(&p));
	CHECK_EQ(scratch_child(misspelt, &p), 0);
	place_close(&p);
}

static int many_devices(void *arg)
{
	struct place *p = arg;
	uint32_t n = 0;

	WANT(enter(p) == 0);
	setenv("NEURON_LOGICAL_NC_CONFIG", "1", 1);
	WANT_STATUS(lib.nrt_get_total_nc_count(&n), NRT_SUCCESS);
	WANT(n == 64 * 8); /* neuron64 is not looked for */
	return 0;
}

TEST("discovery: up to 64 devices are found", "[nrt]")
{
	struct place p;

	REQUIRE_LIBRARY();
	REQUIRE(place_open(&p));
	for (unsigned i = 0; i < 66; i++)
		REQUIRE(put_device(&p, i, "8"));
	CHECK_EQ(scratch_child(many_devices, &p), 0);
	place_close(&p);
}

static int gap(void *arg)
{
	struct place *p = arg;
	uint32_t n = 0;

	WANT(enter(p) == 0);
	setenv("NEURON_LOGICAL_NC_CONFIG", "1", 1);
	setenv("NEURON_RT_LOG_LEVEL", "WARN", 1);
	WANT(dup2(2, 1) == 1); /* warnings go to stdout */
	WANT_STATUS(lib.nrt_get_total_nc_count(&n), NRT_SUCCESS);
	WANT(n == 2 * 4);
	WANT_STATUS(init(), NRT_INVALID); /* there is no driver */
	WANT(said(p, "There is no '"));
	WANT_STATUS(init(), NRT_INVALID);
	WANT(said(p, "/dev/neuron6', but 2 devices behind it: they are not used"));
	return 0;
}

TEST("discovery: devices behind a gap in the numbers are not used, and that is said", "[nrt]")
{
	static const unsigned there[] = {4, 5, 7, 9};
	struct place p;

	REQUIRE_LIBRARY();
	REQUIRE(place_open(&p));
	for (size_t i = 0; i < 4; i++)
		REQUIRE(put_device(&p, there[i], "4\n"));
	CHECK_EQ(scratch_child(gap, &p), 0);
	place_close(&p);
}

static int pipes_for_devices(void *arg)
{
	struct place *p = arg;
	struct scratch_path node = scratch_path(&p->scratch, "dev/neuron0");

	WANT(enter(p) == 0);
	alarm(60); /* opening a FIFO waits for the other side */
	WANT(unlink(node.s) == 0 && mkfifo(node.s, 0600) == 0);
	WANT_STATUS(init(), NRT_INVALID);
	WANT(said(
		p, "/dev/neuron0' is not used: it is neither a character device nor a file of a"));
	WANT(unlink(node.s) == 0 && mkdir(node.s, 0700) == 0);
	WANT_STATUS(init(), NRT_INVALID);
	WANT(said(p, "/dev/neuron0' is not used"));
	WANT(rmdir(node.s) == 0);
	return 0;
}

TEST("discovery: a FIFO or a directory with the name of a device is none", "[nrt]")
{
	struct place p;

	REQUIRE_LIBRARY();
	REQUIRE(place_open(&p));
	REQUIRE(put_device(&p, 0, "8"));
	CHECK_EQ(scratch_child(pipes_for_devices, &p), 0);
	place_close(&p);
}

static int pipes_for_attributes(void *arg)
{
	static const char *const paths[] = {"sys/class/neuron_device/neuron0/core_count",
		"sys/module/neuron/version", "sys/class/dmi/id/product_name",
		"sys/class/dmi/id/board_asset_tag"};
	struct place *p = arg;
	uint32_t n = 0;

	WANT(enter(p) == 0);
	alarm(60);
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		struct scratch_path node = scratch_path(&p->scratch, paths[i]);

		WANT(put(p, paths[i], "") && unlink(node.s) == 0 && mkfifo(node.s, 0600) == 0);
	}
	WANT_STATUS(lib.nrt_get_total_nc_count(&n), NRT_INVALID);
	WANT_STATUS(init(), NRT_INVALID);
	WANT(said(p, "/core_count': it holds no number from 1 to 8"));
	return 0;
}

TEST("discovery: an attribute that is a FIFO is not waited for", "[nrt]")
{
	struct place p;

	REQUIRE_LIBRARY();
	REQUIRE(place_open(&p));
	REQUIRE(put_device(&p, 0, "8"));
	CHECK_EQ(scratch_child(pipes_for_attributes, &p), 0);
	place_close(&p);
}

static int elsewhere(void *arg)
{
	struct place *p = arg;
	struct job j;

	WANT(enter(p) == 0);
	WANT(chdir(p->device.root) == 0 && chdir("..") == 0);
	setenv("NTRACE_DEVICE_ROOT", strrchr(p->device.root, '/') + 1, 1);
	WANT_STATUS(init(), 0);
	WANT(chdir("/") == 0);
	WANT(job_open(&j, ADD_MODEL, 0) == 0 && job_run(&j, 0, 2) == 0);
	lib.nrt_close();
	WANT_STATUS(init(), NRT_INVALID); /* from here it is another place */
	WANT(said(p, "No neuron device available below '//"));
	return 0;
}

TEST("nrt_init: a relative root is meant from where the program was then", "[nrt][vdev]")
{
	if (device_lacks())
		SKIP(device_lacks());
	with_device(elsewhere, two_cores);
}

static int too_long(void *arg)
{
	static char root[5000];

	WANT(enter(arg) == 0);
	memset(root, 'a', sizeof(root) - 1);
	root[0] = '/';
	setenv("NTRACE_DEVICE_ROOT", root, 1);
	WANT_STATUS(init(), NRT_INVALID);
	WANT(said(arg, "aaa' is not a text of at most 3967 bytes\n"));
	root[3967] = '\0'; /* as long as can be, and then relative as well */
	setenv("NTRACE_DEVICE_ROOT", root, 1);
	WANT_STATUS(init(), NRT_INVALID);
	WANT(said(arg, "`ntrace-vdev -- CMD` runs CMD on a virtual device"));
	setenv("NTRACE_DEVICE_ROOT", root + 1, 1);
	WANT(chdir(((struct place *)arg)->scratch.dir) == 0);
	WANT_STATUS(init(), NRT_INVALID);
	WANT(said(arg, " bytes, and 3967 are allowed"));
	return 0;
}

TEST("nrt_init: a root that is too long is told how long it may be", "[nrt]")
{
	struct place p;

	REQUIRE_LIBRARY();
	REQUIRE(place_open(&p));
	CHECK_EQ(scratch_child(too_long, &p), 0);
	place_close(&p);
}

/* ---- sysfs -------------------------------------------------------------------------------- */

static int bad_count(void *arg)
{
	static const char *const texts[] = {"", "many", "0", "9", "-1", "8x",
		"99999999999999999999", " 8", "+8", "-18446744073709551608"};
	struct place *p = arg;
	uint32_t n = 0;

	WANT(enter(p) == 0);
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		WANT(put_device(p, 0, texts[i]));
		WANT_STATUS(init(), NRT_INVALID);
		WANT(said(p, "/core_count': it holds no number from 1 to 8"));
	}
	WANT(unlink(scratch_path(&p->scratch, "sys/class/neuron_device/neuron0/core_count").s) ==
		0);
	WANT_STATUS(init(), NRT_INVALID);
	WANT(said(p, "/core_count': No such file or directory. Is sysfs mounted"));
	WANT(mkdir(scratch_path(&p->scratch, "sys/class/neuron_device/neuron0/neuron_core0").s,
		     0700) == 0);
	WANT(mkdir(scratch_path(&p->scratch, "sys/class/neuron_device/neuron0/neuron_core1").s,
		     0700) == 0);
	WANT_STATUS(lib.nrt_get_total_nc_count(&n), NRT_SUCCESS);
	WANT(n == 2);
	return 0;
}

TEST("discovery: a core count that cannot be read is said, unless the cores can be counted",
	"[nrt]")
{
	struct place p;

	REQUIRE_LIBRARY();
	REQUIRE(place_open(&p));
	CHECK_EQ(scratch_child(bad_count, &p), 0);
	place_close(&p);
}

/* Who can still read what the library said. */
static int become_nobody(const struct place *p)
{
	WANT(chmod(p->log.s, 0644) == 0);
	WANT(setresgid(NOBODY, NOBODY, NOBODY) == 0 && setresuid(NOBODY, NOBODY, NOBODY) == 0);
	return 0;
}

static int as_nobody(void *arg)
{
	struct place *p = arg;
	uint32_t n = 0;

	WANT(enter(p) == 0);
	WANT(become_nobody(p) == 0);
	/* core_count is root's; the directories of the cores are everybody's. */
	WANT_STATUS(lib.nrt_get_total_nc_count(&n), NRT_SUCCESS);
	WANT(n == 1);
	WANT_STATUS(init(), NRT_INVALID);
	WANT(said(p, "/dev/neuron0' has mode 0600, owner 0, group 0; this process has uid 65534, "
		     "gid 65534. Give this user access to it"));
	WANT_STATUS(init(), NRT_INVALID);
	WANT(said(p, "Could not open the nd0: Permission denied. '"));
	return 0;
}

TEST("device: no permission names the device, its mode and owner, and who asked", "[nrt]")
{
	struct place p;

	REQUIRE_LIBRARY();
	if (geteuid() != 0)
		SKIP("root, to become somebody else");
	REQUIRE(place_open(&p));
	REQUIRE(put_device(&p, 0, "1"));
	REQUIRE(mkdir(scratch_path(&p.scratch, "sys/class/neuron_device/neuron0/neuron_core0").s,
			0755) == 0);
	REQUIRE(chmod(scratch_path(&p.scratch, "dev/neuron0").s, 0600) == 0);
	REQUIRE(chmod(scratch_path(&p.scratch, "sys/class/neuron_device/neuron0/core_count").s,
			0400) == 0);
	REQUIRE(chmod(p.scratch.dir, 0755) == 0);
	CHECK_EQ(scratch_child(as_nobody, &p), 0);
	place_close(&p);
}

static int not_searchable(void *arg)
{
	struct place *p = arg;

	WANT(enter(p) == 0);
	WANT(become_nobody(p) == 0);
	WANT_STATUS(init(), NRT_INVALID);
	WANT(said(p, "No neuron device available: uid 65534 may not look into '"));
	return 0;
}

TEST("discovery: a directory that may not be searched is not an empty one", "[nrt]")
{
	struct place p;

	REQUIRE_LIBRARY();
	if (geteuid() != 0)
		SKIP("root, to become somebody else");
	REQUIRE(place_open(&p));
	REQUIRE(put_device(&p, 0, "1"));
	REQUIRE(chmod(scratch_path(&p.scratch, "dev").s, 0700) == 0);
	REQUIRE(chmod(p.scratch.dir, 0755) == 0);
	CHECK_EQ(scratch_child(not_searchable, &p), 0);
	place_close(&p);
}

/* ---- negotiation -------------------------------------------------------------------------- */

static int bad_versions(void *arg)
{
	static const struct {
		const char *text, *says;
	} rows[] = {
		{"", "Unable to determine Neuron Driver version. Please check aws-neuron-dkms "
		     "package "
		     "is installed."},
		{"new\n", "Unable to determine Neuron Driver version."},
		{"2\n", "Unable to determine Neuron Driver version."},
		{"1.16.7\n",
			"Neuron Runtime 2.x requires Neuron driver(aws-neuron-dkms) version 2.1 or "
			"above."},
		{"0.9\n", "Neuron Runtime 2.x requires"},
		{"2.24.7.0\n", "Unable to read compatible Driver version."},
		{"2.24.7.0\n",
			"Please check /dev/neuron# is accessible. If you're using containers, "
			"please ensure Neuron Devices are passed to the container by specifying "
			"`--device /dev/neuron#`."},
	};
	struct place *p = arg;

	WANT(enter(p) == 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		WANT(put(p, "sys/module/neuron/version", rows[i].text));
		WANT_STATUS(init(), NRT_INVALID);
		WANT(said(p, rows[i].says));
	}
	WANT(put(p, "sys/module/neuron/version", "2.30.2.0\n"));
	setenv("NEURON_RT_LOG_LEVEL", "INFO", 1);
	WANT(dup2(2, 1) == 1);
	WANT_STATUS(init(), NRT_INVALID);
	WANT(said(p, "Found neuron driver: 2.30\n"));
	return 0;
}

TEST("nrt_init: a driver without a usable version or without an answer is said", "[nrt]")
{
	struct place p;

	REQUIRE_LIBRARY();
	REQUIRE(place_open(&p));
	REQUIRE(put_device(&p, 0, "8"));
	CHECK_EQ(scratch_child(bad_versions, &p), 0);
	place_close(&p);
}

/* ---- simulation --------------------------------------------------------------------------- */

static int simulated(void *arg)
{
	static const struct {
		const char *type;
		uint32_t cores;
	} rows[] = {{"inf2.xlarge", 2}, {"inf2.48xlarge", 24}, {"trn1.32xlarge", 32}};
	struct place *p = arg;
	char bytes[16] = "", *text;
	nrt_tensor_t *t = NULL;
	nrt_model_t *m = NULL;
	uint32_t n = 0;

	WANT(enter(p) == 0);
	setenv("NTRACE_DEVICE_ROOT", "", 1);
	setenv("NEURON_RT_LOG_LEVEL", "WARN", 1);
	WANT(dup2(2, 1) == 1);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		setenv("NEURON_RT_FAKE_INSTANCE_TYPE", rows[i].type, 1);
		WANT_STATUS(lib.nrt_get_total_nc_count(&n), NRT_SUCCESS);
		WANT(n == rows[i].cores);
		WANT_STATUS(init(), NRT_SUCCESS);
		WANT(said(p, "SIMULATED "));
		WANT_STATUS(lib.nrt_get_visible_nc_count(&n), NRT_SUCCESS);
		WANT(n == rows[i].cores);
		WANT_STATUS(lib.nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_HOST, 0, 16, "h", &t), 0);
		WANT_STATUS(lib.nrt_tensor_write(t, "fifteen letters", 0, 16), 0);
		WANT_STATUS(lib.nrt_tensor_read(t, bytes, 0, 16), 0);
		WANT(strcmp(bytes, "fifteen letters") == 0);
		lib.nrt_tensor_free(&t);
		WANT_STATUS(lib.nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, 0, 16, "d", &t),
			NRT_INVALID);
		WANT(said(p, "No device memory, only host tensors in a simulation"));
		WANT_STATUS(lib.nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, 1, 16, "d", &t),
			NRT_INVALID);
		WANT_STATUS(lib.nrt_load("ntrace-model 1\n", 15, 0, -1, &m), NRT_INVALID);
		text = program_text(p->log.s);
		WANT(text && !strstr(text, "No device memory")); /* once */
		free(text);
		WANT(said(p, "No model can be loaded in a simulation"));
		lib.nrt_close();
	}
	return 0;
}

TEST("simulation: a type has its cores, host tensors work, the rest says what runs it", "[nrt]")
{
	struct place p;

	REQUIRE_LIBRARY();
	REQUIRE(place_open(&p));
	CHECK_EQ(scratch_child(simulated, &p), 0);
	place_close(&p);
}

static int unknown_type(void *arg)
{
	struct place *p = arg;
	uint32_t n;

	WANT(enter(p) == 0);
	setenv("NTRACE_DEVICE_ROOT", "", 1);
	setenv("NEURON_RT_FAKE_INSTANCE_TYPE", "trn2.5xlarge", 1);
	WANT_STATUS(init(), NRT_INVALID);
	WANT(said(p, "NEURON_RT_FAKE_INSTANCE_TYPE='trn2.5xlarge' is not an instance type that is "
		     "known; these are: trn1.2xlarge, "));
	WANT_STATUS(lib.nrt_get_total_nc_count(&n), NRT_INVALID);
	/* With a device root it is not looked at. */
	setenv("NTRACE_DEVICE_ROOT", p->scratch.dir, 1);
	setenv("NEURON_RT_LOG_LEVEL", "WARN", 1);
	WANT(dup2(2, 1) == 1);
	WANT_STATUS(init(), NRT_INVALID);
	WANT(said(p,
		"NEURON_RT_FAKE_INSTANCE_TYPE='trn2.5xlarge' is not used: NTRACE_DEVICE_ROOT='"));
	WANT_STATUS(init(), NRT_INVALID);
	WANT(said(p, "No neuron device available"));
	return 0;
}

TEST("simulation: an unknown type is an error that lists the known; a device root wins", "[nrt]")
{
	struct place p;

	REQUIRE_LIBRARY();
	REQUIRE(place_open(&p));
	CHECK_EQ(scratch_child(unknown_type, &p), 0);
	place_close(&p);
}

/* ---- real devices ------------------------------------------------------------------------- */

static int character_device(void *arg)
{
	struct place *p = arg;

	WANT(enter(p) == 0);
	WANT_STATUS(init(), NRT_INVALID);
	WANT(said(p, "is a real device"));
	setenv("NTRACE_ALLOW_RESET", "1", 1); /* does not stand in for the other */
	WANT_STATUS(init(), NRT_INVALID);
	WANT(said(p, "is a real device"));
	unsetenv("NTRACE_ALLOW_RESET");
	setenv("NTRACE_ALLOW_DEVICE", "1", 1);
	WANT_STATUS(init(), NRT_INVALID); /* versions are asked; there is no driver behind it */
	WANT(said(p, "Unable to read compatible Driver version."));
	return 0;
}

TEST("nrt_init: permission to reset does not permit a real device", "[nrt]")
{
	struct place p;

	REQUIRE_LIBRARY();
	if (geteuid() != 0)
		SKIP("root, to make a device node");
	REQUIRE(place_open(&p));
	REQUIRE(put_device(&p, 0, "8"));
	REQUIRE(put(&p, "sys/module/neuron/version", "2.24.7.0\n"));
	REQUIRE(unlink(scratch_path(&p.scratch, "dev/neuron0").s) == 0);
	REQUIRE(mknod(scratch_path(&p.scratch, "dev/neuron0").s, S_IFCHR | 0600, makedev(1, 3)) ==
		0);
	CHECK_EQ(scratch_child(character_device, &p), 0);
	place_close(&p);
}
