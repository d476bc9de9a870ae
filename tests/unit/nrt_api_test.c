/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nrt_api_test.c - the public interface of libnrt.so.1: states, statuses, messages, arithmetic.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "tests/shim/shim.h"
#include "tests/unit/nrt_lib.h"

/* ---- without a device --------------------------------------------------------------------- */

static int no_device(void *arg)
{
	struct place *p = arg;
	uint32_t n = 77;

	WANT(enter(p) == 0);
	WANT_STATUS(init(), NRT_INVALID);
	WANT(said(p, "No neuron device available"));
	WANT_STATUS(lib.nrt_unload(NULL), NRT_UNINITIALIZED); /* the state is as before */
	WANT_STATUS(init(), NRT_INVALID);
	WANT_STATUS(lib.nrt_get_total_vnc_count(&n), NRT_INVALID);
	WANT_STATUS(lib.nrt_get_visible_nc_count(&n), NRT_INVALID);
	WANT(n == 77);
	WANT_STATUS(lib.nrt_get_total_nc_count(NULL), NRT_INVALID);
	WANT(said(p, "No place for the answer"));
	WANT_STATUS(lib.nrt_get_visible_vnc_count(NULL), NRT_INVALID);
	WANT(said(p, "No place for the answer"));
	return 0;
}

TEST("nrt: without a device nrt_init fails and may be tried again", "[nrt]")
{
	struct place p;

	REQUIRE_LIBRARY();
	REQUIRE(place_open(&p));
	CHECK_EQ(scratch_child(no_device, &p), 0);
	place_close(&p);
}

static bool make_node(const struct place *p, mode_t mode, const char *cores)
{
	struct scratch_path dev = scratch_path(&p->scratch, "dev");
	struct scratch_path node = scratch_path(&p->scratch, "dev/neuron0");
	struct scratch_path attributes =
		scratch_path(&p->scratch, "sys/class/neuron_device/neuron0");
	struct scratch_path count =
		scratch_path(&p->scratch, "sys/class/neuron_device/neuron0/core_count");
	char command[PATH_MAX + 16];
	FILE *f;

	snprintf(command, sizeof(command), "mkdir -p %s", attributes.s);
	if (mkdir(dev.s, 0700) < 0 || system(command) != 0 ||
		mknod(node.s, mode | 0600, makedev(1, 3)) < 0)
		return false;
	f = fopen(count.s, "w");
	if (!f)
		return false;
	fputs(cores, f);
	return fclose(f) == 0;
}

static int real_device(void *arg)
{
	struct place *p = arg;

	WANT(enter(p) == 0);
	WANT_STATUS(init(), NRT_INVALID);
	WANT(said(p, "is a real device"));
	WANT_STATUS(init(), NRT_INVALID);
	WANT(said(p, "NTRACE_ALLOW_DEVICE=1"));
	setenv("NTRACE_ALLOW_DEVICE", "1", 1);
	WANT_STATUS(init(), NRT_INVALID); /* it goes further: there is no driver behind it */
	WANT(said(p, "Unable to determine Neuron Driver version"));
	return 0;
}

TEST("nrt: a real device is refused unless it is allowed", "[nrt]")
{
	struct place p;

	REQUIRE_LIBRARY();
	if (geteuid() != 0)
		SKIP("root, to make a device node");
	REQUIRE(place_open(&p));
	REQUIRE(make_node(&p, S_IFCHR, "2"));
	CHECK_EQ(scratch_child(real_device, &p), 0);
	place_close(&p);
}

static int counts(void *arg)
{
	static const struct {
		const char *visible, *number, *size;
		NRT_STATUS status;
		uint32_t count, total;
		const char *says;
	} rows[] = {
		{NULL, NULL, NULL, NRT_SUCCESS, 4, 4, NULL},
		{NULL, NULL, "1", NRT_SUCCESS, 8, 8, NULL},
		{NULL, NULL, "2", NRT_SUCCESS, 4, 4, NULL},
		{"2-4", NULL, "1", NRT_SUCCESS, 3, 8, NULL},
		{"2-4", NULL, NULL, NRT_SUCCESS, 3, 4, NULL},
		{NULL, "1", NULL, NRT_SUCCESS, 1, 4, NULL},
		{"0,1", "1", NULL, NRT_SUCCESS, 2, 4, NULL},
		{NULL, NULL, "4", NRT_INVALID, 0, 0, "Only LNC Size of 2 is supported"},
		{NULL, NULL, "3", NRT_INVALID, 0, 0, "Failed to parse vnc config"},
		{"0,2", NULL, NULL, NRT_INVALID, 0, 0, "Logical Neuron cores are not contiguous"},
		{"zero", NULL, NULL, NRT_INVALID, 0, 0, "NEURON_RT_VISIBLE_CORES='zero'"},
		{NULL, "many", NULL, NRT_INVALID, 0, 0, "NEURON_RT_NUM_CORES='many'"},
		{NULL, "-1", NULL, NRT_INVALID, 0, 0, "NEURON_RT_NUM_CORES='-1'"},
	};
	struct place *p = arg;

	WANT(enter(p) == 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint32_t total = 0, visible = 0, old = 0;

		unsetenv("NEURON_RT_VISIBLE_CORES");
		unsetenv("NEURON_RT_NUM_CORES");
		unsetenv("NEURON_LOGICAL_NC_CONFIG");
		if (rows[i].size)
			setenv("NEURON_LOGICAL_NC_CONFIG", rows[i].size, 1);
		if (rows[i].visible)
			setenv("NEURON_RT_VISIBLE_CORES", rows[i].visible, 1);
		if (rows[i].number)
			setenv("NEURON_RT_NUM_CORES", rows[i].number, 1);
		WANT_STATUS(lib.nrt_get_visible_vnc_count(&visible), rows[i].status);
		WANT(visible == rows[i].count);
		WANT_STATUS(lib.nrt_get_visible_nc_count(&old), rows[i].status);
		WANT(old == visible);
		if (rows[i].says)
			WANT(said(p, rows[i].says));
		WANT_STATUS(lib.nrt_get_total_vnc_count(&total), rows[i].status);
		WANT(total == rows[i].total);
		WANT_STATUS(rows[i].status ? init() : NRT_SUCCESS, rows[i].status);
	}
	return 0;
}

TEST("nrt: core counts before nrt_init come from files and environment", "[nrt]")
{
	struct place p;

	REQUIRE_LIBRARY();
	REQUIRE(place_open(&p));
	REQUIRE(make_node(&p, S_IFREG, "8\n"));
	CHECK_EQ(scratch_child(counts, &p), 0);
	place_close(&p);
}

static int version(void *arg)
{
	struct {
		nrt_version_t v;
		char behind[8];
	} room;

	WANT(enter(arg) == 0);
	WANT_STATUS(lib.nrt_get_version(NULL, 224), NRT_INVALID);
	WANT(said(arg, "NRT:nrt_get_version                          No place for the answer"));
	WANT_STATUS(lib.nrt_get_version(&room.v, 159), NRT_FAILURE);
	WANT(said(arg, "Size is < 160"));
	memset(&room, 'x', sizeof(room));
	WANT_STATUS(lib.nrt_get_version(&room.v, 160), NRT_SUCCESS);
	WANT(room.v.rt_major == 2 && room.v.rt_minor == 31 && room.v.rt_patch == 24);
	WANT(!strncmp(room.v.rt_detail, "libnrt version 2.31.24.0", 24));
	WANT(room.v.git_hash[0] == 'x');
	WANT_STATUS(lib.nrt_get_version(&room.v, sizeof(room)), NRT_SUCCESS);
	WANT(room.v.git_hash[0] == 'n' && room.behind[0] == 'x');
	return 0;
}

TEST("nrt: the version fills what the caller has, and no more", "[nrt]")
{
	struct place p;

	REQUIRE_LIBRARY();
	REQUIRE(place_open(&p));
	CHECK_EQ(scratch_child(version, &p), 0);
	place_close(&p);
}

/* ---- with a virtual device ---------------------------------------------------------------- */

static int whole_life(void *arg)
{
	struct place *p = arg;
	struct job adder, copier;
	nrt_tensor_t *again = NULL, *host = NULL;
	uint32_t n = 0;
	float part[2] = {0, 0}, back[2];

	WANT(enter(p) == 0);
	for (int round = 0; round < 2; round++) {
		WANT_STATUS(init(), 0);
		WANT_STATUS(init(), 0); /* nothing happens */
		WANT_STATUS(lib.nrt_get_visible_vnc_count(&n), 0);
		WANT(n == 2);
		WANT(job_open(&adder, ADD_MODEL, 1) == 0);
		WANT(job_open(&copier, COPY_MODEL, 1) == 0);
		WANT(job_run(&adder, 0.5f, 2.0f) == 0);
		WANT(job_run(&copier, 0.25f, 0.0f) == 0); /* another model on the same core */
		WANT(job_run(&adder, 1.5f, 2.0f) == 0);
		WANT_STATUS(lib.nrt_get_model_vnc_count(adder.model, &n), 0);
		WANT(n == 1);
		WANT(lib.nrt_tensor_get_size(adder.a) == 32);
		WANT_STATUS(lib.nrt_get_tensor_from_tensor_set(adder.in, "b", &again), 0);
		WANT(again == adder.b);
		/* A set keeps its tensors' memory. */
		lib.nrt_tensor_free(&adder.b);
		WANT(adder.b == NULL);
		WANT_STATUS(lib.nrt_tensor_read(again, part, 0, 8), NRT_INVALID_HANDLE);
		WANT_STATUS(lib.nrt_execute(adder.model, adder.in, adder.out), 0);
		WANT_STATUS(
			lib.nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_HOST, 0, 100, "h", &host), 0);
		part[0] = 3;
		WANT_STATUS(lib.nrt_tensor_write(host, part, 92, 8), 0);
		WANT_STATUS(lib.nrt_tensor_read(host, back, 92, 8), 0);
		WANT(back[0] == 3);
		WANT_STATUS(lib.nrt_unload(copier.model), 0);
		WANT_STATUS(lib.nrt_unload(copier.model), NRT_INVALID_HANDLE);
		lib.nrt_close(); /* with everything else still there */
		WANT_STATUS(lib.nrt_tensor_write(adder.a, part, 0, 8), NRT_UNINITIALIZED);
		lib.nrt_tensor_free(&adder.a); /* says so, does no harm */
	}
	return 0;
}

TEST("nrt: load, execute, read, close, and all of it again", "[nrt][vdev]")
{
	if (device_lacks())
		SKIP(device_lacks());
	with_device(whole_life, two_cores);
}

static const struct {
	nrt_tensor_placement_t placement;
	int core;
	size_t size;
	const char *says;
} no_tensors[] = {
	{NRT_TENSOR_PLACEMENT_DEVICE, 2, 8, "there is no core 2; this process has 2, from 0\n"},
	{NRT_TENSOR_PLACEMENT_DEVICE, -1, 8, "there is no core -1; this process has 2, from 0\n"},
	{NRT_TENSOR_PLACEMENT_HOST, 9, 8, "there is no core 9; this process has 2, from 0\n"},
	{NRT_TENSOR_PLACEMENT_DEVICE, 0, 0, "Cannot allocate a tensor of 0 bytes\n"},
	{NRT_TENSOR_PLACEMENT_VIRTUAL, 0, 8, "placement VIRTUAL (2) is not supported\n"},
	{(nrt_tensor_placement_t)5, 0, 8, "there is no placement 5\n"},
};

static int bad_arguments(void *arg)
{
	struct place *p = arg;
	struct job j;
	nrt_tensor_t *t = NULL;
	nrt_tensor_set_t *set = NULL;
	nrt_model_t *m = NULL;
	char name[300], bytes[64];
	int local = 0;

	WANT(enter(p) == 0);
	WANT_STATUS(init(), 0);
	WANT(job_open(&j, ADD_MODEL, 0) == 0);
	for (size_t i = 0; i < sizeof(no_tensors) / sizeof(no_tensors[0]); i++) {
		WANT_STATUS(lib.nrt_tensor_allocate(no_tensors[i].placement, no_tensors[i].core,
				    no_tensors[i].size, "", &t),
			NRT_INVALID);
		WANT(said(p, no_tensors[i].says));
	}
	WANT_STATUS(
		lib.nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, 0, 8, "", NULL), NRT_INVALID);
	WANT(said(p, "No place for the tensor's handle"));
	WANT(t == NULL);
	WANT_STATUS(lib.nrt_tensor_write(NULL, bytes, 0, 1), NRT_INVALID);
	WANT(said(p, "nrt_tensor_write                         No tensor given (NULL)"));
	WANT_STATUS(lib.nrt_tensor_write((nrt_tensor_t *)&local, bytes, 0, 1), NRT_INVALID_HANDLE);
	WANT_STATUS(lib.nrt_tensor_write((nrt_tensor_t *)j.model, bytes, 0, 1), NRT_INVALID_HANDLE);
	WANT(said(p, "is not a tensor"));
	WANT_STATUS(lib.nrt_tensor_write(j.a, NULL, 0, 1), NRT_INVALID);
	WANT(said(p, "No buffer given"));
	WANT_STATUS(lib.nrt_tensor_write(j.a, bytes, 0, 33), NRT_INVALID);
	WANT_STATUS(lib.nrt_tensor_write(j.a, bytes, 32, 1), NRT_INVALID);
	WANT_STATUS(lib.nrt_tensor_read(j.a, bytes, SIZE_MAX, 2), NRT_INVALID);
	WANT(said(p, "tensor 'a' has 32 bytes"));
	WANT_STATUS(lib.nrt_tensor_write(j.a, bytes, 32, 0), 0);
	WANT_STATUS(lib.nrt_tensor_write(j.a, NULL, 0, SIZE_MAX), NRT_INVALID);
	WANT_STATUS(lib.nrt_add_tensor_to_tensor_set(j.in, "", j.a), NRT_INVALID);
	WANT(said(p, "a name of 1 to 255 bytes"));
	WANT_STATUS(lib.nrt_add_tensor_to_tensor_set(j.in, NULL, j.a), NRT_INVALID);
	memset(name, 'n', sizeof(name));
	name[256] = '\0';
	WANT_STATUS(lib.nrt_add_tensor_to_tensor_set(j.in, name, j.a), NRT_INVALID);
	name[255] = '\0';
	WANT_STATUS(lib.nrt_add_tensor_to_tensor_set(j.in, name, j.a), 0);
	WANT_STATUS(lib.nrt_add_tensor_to_tensor_set(NULL, "a", j.a), NRT_INVALID);
	WANT_STATUS(lib.nrt_add_tensor_to_tensor_set(&local, "a", j.a), NRT_INVALID_HANDLE);
	WANT_STATUS(lib.nrt_get_tensor_from_tensor_set(j.in, "z", &t), NRT_INVALID);
	WANT(said(p, "There is no tensor 'z' in the set"));
	WANT_STATUS(lib.nrt_get_tensor_from_tensor_set(j.in, NULL, &t), NRT_INVALID);
	WANT(said(p, "No name given"));
	WANT_STATUS(lib.nrt_get_model_vnc_count(j.model, NULL), NRT_INVALID);
	WANT(said(p, "nrt_get_model_vnc_count                  No place for the answer"));
	WANT_STATUS(lib.nrt_get_model_tensor_info(j.model, NULL), NRT_INVALID);
	WANT(said(p, "No place for the answer"));
	WANT_STATUS(lib.nrt_allocate_tensor_set(NULL), NRT_INVALID);
	WANT(said(p, "No place for the set's handle"));
	lib.nrt_tensor_free(NULL);
	lib.nrt_tensor_free(&t);
	lib.nrt_destroy_tensor_set(NULL);
	lib.nrt_destroy_tensor_set(&set);
	set = &local;
	lib.nrt_destroy_tensor_set(&set);
	WANT(said(p, "is not a tensor set"));
	WANT_STATUS(lib.nrt_load(NULL, 1, 0, 1, &m), NRT_INVALID);
	WANT(said(p, "Model: no bytes given"));
	WANT_STATUS(lib.nrt_load("x", 0, 0, 1, &m), NRT_INVALID);
	WANT(said(p, "Model: empty (0 bytes)"));
	WANT_STATUS(lib.nrt_load("x", 1, 0, 1, NULL), NRT_INVALID);
	WANT(said(p, "no place for its handle"));
	WANT_STATUS(lib.nrt_load(ADD_MODEL, strlen(ADD_MODEL), 0, 2, &m), NRT_INVALID);
	WANT(said(p, "Model: for one core, not for 2"));
	WANT_STATUS(lib.nrt_load(ADD_MODEL, strlen(ADD_MODEL), -2, 1, &m), NRT_INVALID);
	WANT(said(p, "There is no core -2; this process has 2"));
	WANT_STATUS(lib.nrt_load(ADD_MODEL, strlen(ADD_MODEL), 5, 1, &m), NRT_INVALID);
	WANT(said(p, "There is no core 5; this process has 2"));
	WANT_STATUS(lib.nrt_load("ntrace-model 1\nnam x\n", 21, 0, 1, &m), NRT_INVALID);
	WANT(said(p, "Model, line 2: 'nam' is not a keyword"));
	WANT_STATUS(lib.nrt_load("NEFF\0\0", 6, 0, 1, &m), NRT_UNSUPPORTED_NEFF_VERSION);
	WANT_STATUS(lib.nrt_unload(NULL), NRT_INVALID);
	WANT(said(p, "No model given"));
	WANT_STATUS(lib.nrt_unload((nrt_model_t *)j.a), NRT_INVALID_HANDLE);
	WANT(said(p, "is not a model"));
	WANT(m == NULL);
	lib.nrt_close();
	return 0;
}

TEST("nrt: what is not acceptable is refused, never a crash", "[nrt][vdev]")
{
	if (device_lacks())
		SKIP(device_lacks());
	with_device(bad_arguments, two_cores);
}

static int bad_executions(void *arg)
{
	struct place *p = arg;
	nrt_tensor_t *small = NULL, *host = NULL;
	struct job j;

	WANT(enter(p) == 0);
	WANT_STATUS(init(), 0);
	WANT(job_open(&j, ADD_MODEL, 0) == 0);
	WANT_STATUS(lib.nrt_execute(NULL, j.in, j.out), NRT_INVALID);
	WANT_STATUS(lib.nrt_execute(j.model, NULL, j.out), NRT_INVALID);
	WANT_STATUS(lib.nrt_execute(j.model, j.in, j.model), NRT_INVALID_HANDLE);
	WANT_STATUS(lib.nrt_execute(j.model, j.out, j.out), NRT_EXEC_BAD_INPUT);
	WANT(said(p, "Model 'adder': no tensor 'a' in the input set"));
	WANT_STATUS(lib.nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, 0, 31, "", &small), 0);
	WANT_STATUS(lib.nrt_add_tensor_to_tensor_set(j.in, "b", small), 0);
	WANT_STATUS(lib.nrt_execute(j.model, j.in, j.out), NRT_EXEC_BAD_INPUT);
	WANT(said(p, "tensor 'b' has 31 bytes, not 32"));
	WANT_STATUS(lib.nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_HOST, 0, 32, "", &host), 0);
	WANT_STATUS(lib.nrt_add_tensor_to_tensor_set(j.in, "b", host), 0);
	WANT_STATUS(lib.nrt_execute(j.model, j.in, j.out), NRT_EXEC_BAD_INPUT);
	WANT(said(p, "tensor 'b' is not on the model's device"));
	WANT_STATUS(lib.nrt_add_tensor_to_tensor_set(j.in, "b", j.b), 0);
	WANT(job_run(&j, 1.0f, 2.0f) == 0); /* none of it left a trace */
	lib.nrt_close();
	return 0;
}

TEST("nrt: tensors that do not fit are refused before anything runs", "[nrt][vdev]")
{
	if (device_lacks())
		SKIP(device_lacks());
	with_device(bad_executions, two_cores);
}

static bool has_launched(void *device)
{
	return virtual_device_stat(device, "launches") > 0;
}

#define MANY_FDS 2048

/* A program that closes all descriptors and opens its own at the same numbers. */
static int closes_everything(void *arg)
{
	const struct rlimit limit = {MANY_FDS + 1, MANY_FDS + 1};
	struct place *p = arg;
	nrt_tensor_t *t = NULL;
	int null;

	WANT(setrlimit(RLIMIT_NOFILE, &limit) == 0);
	WANT(enter(p) == 0);
	WANT_STATUS(init(), 0);
	complaint_fd = dup2(complaint_fd, MANY_FDS);
	WANT(complaint_fd == MANY_FDS);
	for (int fd = 3; fd < MANY_FDS; fd++)
		(void)close(fd);
	WANT_STATUS(lib.nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, 0, 32, "a", &t) != 0, 1);
	while ((null = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0 && null < MANY_FDS - 1)
		;
	WANT_STATUS(lib.nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, 0, 32, "a", &t) != 0, 1);
	lib.nrt_close();
	for (int fd = 3; fd < MANY_FDS; fd++)
		WANT(fcntl(fd, F_GETFD) >= 0);
	return 0;
}

TEST("nrt: descriptors that the program put in place of ours stay open", "[nrt][vdev]")
{
	if (device_lacks())
		SKIP(device_lacks());
	with_device(closes_everything, two_cores);
}

static int timeout(void *arg)
{
	struct place *p = arg;
	nrt_model_t *slow = NULL;
	nrt_tensor_set_t *set = NULL;

	WANT(enter(p) == 0);
	setenv("NEURON_RT_EXEC_TIMEOUT", "1", 1);
	WANT_STATUS(init(), 0);
	WANT_STATUS(lib.nrt_load(SLOW_MODEL, strlen(SLOW_MODEL), 0, 1, &slow), 0);
	WANT_STATUS(lib.nrt_allocate_tensor_set(&set), 0);
	WANT_STATUS(lib.nrt_execute(slow, set, set), NRT_TIMEOUT);
	WANT(said(p, "no end within 1 s"));
	lib.nrt_close();
	return 0;
}

TEST("nrt: an execution that does not end in time is given up", "[nrt][vdev]")
{
	if (device_lacks())
		SKIP(device_lacks());
	with_device(timeout, two_cores);
}

static int goes_away(void *arg)
{
	struct place *p = arg;
	nrt_model_t *slow = NULL, *again = NULL;
	nrt_tensor_set_t *set = NULL;
	nrt_tensor_t *t = NULL;
	struct timespec begin, end;

	WANT(enter(p) == 0);
	WANT_STATUS(init(), 0);
	WANT_STATUS(lib.nrt_load(HOUR_MODEL, strlen(HOUR_MODEL), 0, 1, &slow), 0);
	WANT_STATUS(lib.nrt_allocate_tensor_set(&set), 0);
	clock_gettime(CLOCK_MONOTONIC, &begin);
	WANT_STATUS(lib.nrt_execute(slow, set, set), NRT_HW_ERROR);
	clock_gettime(CLOCK_MONOTONIC, &end);
	WANT(end.tv_sec - begin.tv_sec < 15); /* the test's start of the device's end included */
	WANT(said(p, " on nc 0: the device is gone")); /* perhaps before the start was answered */
	WANT_STATUS(
		lib.nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, 0, 8, "", &t), NRT_HW_ERROR);
	WANT(said(p, "Memory allocation failed on nd0 nc0: the device is gone"));
	WANT_STATUS(lib.nrt_load(SLOW_MODEL, strlen(SLOW_MODEL), 0, 1, &again), NRT_HW_ERROR);
	WANT(said(p, "the device is gone"));
	lib.nrt_close();
	return 0;
}

struct child {
	pthread_t thread;
	struct place *place;
	int result;
};

static void *run_goes_away(void *arg)
{
	struct child *c = arg;

	c->result = scratch_child(goes_away, c->place);
	return NULL;
}

TEST("nrt: a device that goes away in mid-run is an error at once", "[nrt][vdev]")
{
	static const int signals[] = {SIGTERM, SIGKILL};

	if (device_lacks())
		SKIP(device_lacks());
	for (size_t i = 0; i < 2; i++) {
		struct place p;
		struct child c = {.place = &p, .result = -1};

		REQUIRE(place_open(&p));
		REQUIRE(virtual_device_start(&p.device, p.scratch.dir, two_cores));
		REQUIRE(pthread_create(&c.thread, NULL, run_goes_away, &c) == 0);
		CHECK(program_until(has_launched, &p.device, 20));
		kill(p.device.pid, signals[i]);
		CHECK_EQ(program_wait(p.device.pid), signals[i] == SIGKILL ? 128 + SIGKILL : 0);
		pthread_join(c.thread, NULL);
		CHECK_EQ(c.result, 0);
		if (signals[i] == SIGKILL) { /* a new one removes the mount that it left */
			struct program_path program = program_path("bin/ntrace-vdev");
			char *argv[] = {
				program.s, "-q", "--root", p.device.root, "--", "true", NULL};

			CHECK_EQ(program_run(argv, p.device.log, NULL), 0);
		}
		p.device.pid = 0;
		place_close(&p);
	}
}

static int full(void *arg)
{
	struct place *p = arg;
	nrt_tensor_t *t[64] = {NULL};
	NRT_STATUS status = NRT_SUCCESS;
	int n = 0;

	WANT(enter(p) == 0);
	WANT_STATUS(init(), 0);
	while (n < 64 && status == NRT_SUCCESS)
		status = lib.nrt_tensor_allocate(
			NRT_TENSOR_PLACEMENT_DEVICE, 0, 1 << 20, "", &t[n++]);
	WANT_STATUS(status, NRT_RESOURCE);
	WANT(n > 1 && t[n - 1] == NULL);
	lib.nrt_tensor_free(&t[0]);
	WANT_STATUS(lib.nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, 0, 1 << 20, "", &t[0]), 0);
	lib.nrt_close();
	return 0;
}

TEST("nrt: a full device is NRT_RESOURCE, and freeing helps", "[nrt][vdev]")
{
	if (device_lacks())
		SKIP(device_lacks());
	with_device(full, small_memory);
}

/* ---- other processes ---------------------------------------------------------------------- */

static int second_process(void *arg)
{
	struct place *p = arg;

	WANT(enter(p) == 0);
	WANT_STATUS(init(), NRT_FAILURE);
	WANT(said(p, "Logical Neuron Core(s) not available"));
	setenv("NEURON_RT_VISIBLE_CORES", "0", 1);
	WANT_STATUS(init(), NRT_FAILURE);
	WANT(said(p, "Requested:lnc0-lnc0"));
	setenv("NEURON_RT_VISIBLE_CORES", "7", 1);
	WANT_STATUS(init(), NRT_INVALID);
	WANT(said(p, "Specified core not accessible! is /dev/neuron3 visible to process?"));
	setenv("NEURON_RT_VISIBLE_CORES", "1", 1);
	WANT_STATUS(init(), 0);
	lib.nrt_close();
	return 0;
}

static int one_core(void *arg)
{
	struct place *p = arg;
	uint32_t n = 0;
	struct job j;

	WANT(enter(p) == 0);
	setenv("NEURON_RT_NUM_CORES", "1", 1);
	WANT_STATUS(init(), 0);
	WANT_STATUS(lib.nrt_get_visible_vnc_count(&n), 0);
	WANT(n == 1);
	WANT_STATUS(lib.nrt_get_total_vnc_count(&n), 0);
	WANT(n == 2);
	WANT(job_open(&j, COPY_MODEL, 0) == 0);
	WANT(job_run(&j, 1.0f, 0.0f) == 0);
	lib.nrt_close();
	return 0;
}

TEST("nrt: NEURON_RT_NUM_CORES takes so many and no more", "[nrt][vdev]")
{
	if (device_lacks())
		SKIP(device_lacks());
	with_device(one_core, two_cores);
}

TEST("nrt: cores of another process are not to be had", "[nrt][vdev]")
{
	char *argv[] = {NULL, "--executions=1000000", NULL};
	struct program_path workload = program_path("workloads/inference");
	struct place p;
	pid_t pid;

	if (device_lacks())
		SKIP(device_lacks());
	if (!program_exists("workloads/inference"))
		SKIP("workloads/inference");
	REQUIRE(place_open(&p));
	REQUIRE(virtual_device_start(&p.device, p.scratch.dir, two_cores));
	argv[0] = workload.s;
	setenv("NEURON_RT_VISIBLE_CORES", "0", 1);
	pid = program_start(argv, scratch_path(&p.scratch, "workload.log").s, p.device.env);
	unsetenv("NEURON_RT_VISIBLE_CORES");
	REQUIRE(pid > 0);
	CHECK(program_until(has_launched, &p.device, 20)); /* so it has its core */
	CHECK_EQ(scratch_child(second_process, &p), 0);
	(void)kill(pid, SIGKILL);
	CHECK_EQ(program_wait(pid), 128 + SIGKILL);
	place_close(&p);
}

static int forked(void *arg)
{
	struct place *p = arg;
	uint32_t n = 0;

	WANT_STATUS(lib.nrt_unload(NULL), NRT_FAILURE);
	WANT(said(p, "Incompatible runtime state: NRT_STATE_CHILD"));
	WANT_STATUS(init(), NRT_FAILURE);
	WANT_STATUS(lib.nrt_get_visible_vnc_count(&n), 0);
	WANT(n == 2);
	lib.nrt_close();
	return 0;
}

static int forks(void *arg)
{
	struct place *p = arg;
	struct job j;

	WANT(enter(p) == 0);
	WANT_STATUS(init(), 0);
	WANT(scratch_child(forked, p) == 0);
	WANT(job_open(&j, ADD_MODEL, 0) == 0);
	WANT(job_run(&j, 1.0f, 2.0f) == 0); /* the parent goes on */
	lib.nrt_close();
	return 0;
}

TEST("nrt: the child of a fork is refused, its parent goes on", "[nrt][vdev]")
{
	if (device_lacks())
		SKIP(device_lacks());
	with_device(forks, two_cores);
}
