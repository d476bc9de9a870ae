/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nrt_init_machines_test.c - the same bring-up on every machine there is, and on devices whose requests
 * fail or hang.
 *
 * Product, number of devices and driver are options of ntrace-vdev; so are the requests that fail (--fail)
 * or are not answered (--delay).
 */
#include <errno.h>
#include <signal.h>

#include "tests/shim/shim.h"
#include "tests/unit/nrt_init_fixture.h"

/* ---- machines ----------------------------------------------------------------------------- */

static const struct product {
	const char *instance, *driver; /* the oldest driver that knows it */
	uint32_t arch, cores, lnc_size;
} products[] = {
	{"inf2.xlarge", "2.24", DEVICE_ARCH_V2, 2, 1},
	{"trn1.2xlarge", "2.24", DEVICE_ARCH_V2, 2, 1},
	{"trn2.3xlarge", "2.24", DEVICE_ARCH_V3, 8, 2},
	{"trn3.3xlarge", "2.30", DEVICE_ARCH_V4, 8, 2},
};

struct machine {
	struct place place;
	const struct product *product;
	uint32_t devices;
};

static int counts_are(const struct machine *m)
{
	uint32_t want = m->devices * m->product->cores / m->product->lnc_size, total, visible;

	WANT_STATUS(lib.nrt_get_total_vnc_count(&total), 0);
	WANT_STATUS(lib.nrt_get_visible_vnc_count(&visible), 0);
	if (total != want || visible != want)
		dprintf(complaint_fd, "%u and %u cores, not %u\n", total, visible, want);
	WANT(total == want && visible == want);
	return 0;
}

static int bring_up_machine(void *arg)
{
	struct machine *m = arg;
	const struct virtual_device *v = &m->place.device;
	char text[128];

	WANT(enter_linked(&m->place, "INFO") == 0);
	WANT(counts_are(m) == 0);
	for (int round = 0; round < 2; round++) {
		WANT_STATUS(init(), 0);
		WANT(counts_are(m) == 0);
		WANT(runtime_get()->devices->arch == m->product->arch);
		WANT(runtime_get()->devices->device_count == m->devices);
		WANT(virtual_device_stat(v, "marked_cores") == m->devices * m->product->cores);
		lib.nrt_close();
		WANT(virtual_device_reaches(v, "marked_cores", 0));
		snprintf(text, sizeof(text),
			"Instance info:: device count:%u cores per device:%u architecture:TRN",
			m->devices, m->product->cores);
		WANT(said(&m->place, text));
	}
	WANT(counts_are(m) == 0);
	return 0;
}

static void try_machine(const struct product *product, uint32_t devices, const char *driver)
{
	char instance[64], count[32], version[32];
	const char *const options[] = {instance, count, version, "--memory=16M", NULL};
	struct machine m;

	snprintf(instance, sizeof(instance), "--instance=%s", product->instance);
	snprintf(count, sizeof(count), "--devices=%u", devices);
	snprintf(version, sizeof(version), "--driver=%s", driver);
	test_info("%s %s %s", instance, count, version);
	REQUIRE(place_open(&m.place));
	m.product = product;
	m.devices = devices;
	if (virtual_device_start(&m.place.device, m.place.scratch.dir, options))
		CHECK_EQ(scratch_child(bring_up_machine, &m), 0);
	else
		CHECK(!"the virtual device starts");
	place_close(&m.place);
}

TEST("nrt machines: Inf2, Trn1, Trn2 and Trn3 of 1 and 16 devices come up with drivers 2.24 and "
     "2.30",
	"[nrt][vdev]")
{
	static const char *const drivers[] = {"2.24", "2.30"};
	static const uint32_t devices[] = {1, 16};

	NEED_VDEV();
	for (size_t p = 0; p < sizeof(products) / sizeof(products[0]); p++)
		for (size_t d = 0; d < 2; d++)
			for (size_t v = 0; v < 2; v++)
				if (strcmp(drivers[v], products[p].driver) >= 0)
					try_machine(&products[p], devices[d], drivers[v]);
}

/* ---- requests that fail ------------------------------------------------------------------- */

static const struct failure {
	const char *option;
	NRT_STATUS status;
	const char *said;
} failures[] = {
	{"--fail=COMPATIBLE_VERSION:EIO:1", NRT_INVALID,
		"Unable to read compatible Driver version."},
	{"--compat=12-14", NRT_INVALID, "is not compatible with the installed"},
	{"--driver-version=1.9", NRT_INVALID, "version 2.1 or above"},
	{"--driver-version=none", NRT_INVALID, "Unable to determine Neuron Driver version"},
	{"--fail=CRWL_NC_RANGE_MARK_EXT0:EBUSY:1", NRT_FAILURE,
		"Logical Neuron Core(s) not available"},
	{"--fail=DEVICE_INFO:EIO:1", NRT_INVALID, "Failure: status 2 in nrt_init()"},
	{"--fail=NC_RESET:EIO:1", NRT_HW_ERROR, "Failed to initialize devices, error:6"},
	{"--fail=NC_RESET_READY:EIO:1", NRT_HW_ERROR, "Failed to initialize devices, error:6"},
	{"--reset-fails", NRT_HW_ERROR, "Reset of nd0 failed: Input/output error"},
};

struct failing {
	struct place place;
	const struct failure *failure;
};

static int init_meets(void *arg)
{
	struct failing *f = arg;
	struct belongings before, after;

	WANT(enter_linked(&f->place, NULL) == 0);
	before = belongings_now();
	WANT_STATUS(init(), f->failure->status);
	WANT(said(&f->place, f->failure->said));
	after = belongings_now();
	WANT(belongings_equal(&before, &after));
	WANT(state_now() == STATE_START);
	WANT(virtual_device_reaches(&f->place.device, "marked_cores", 0));
	WANT(virtual_device_reaches(&f->place.device, "open_handles", 0));
	if (strstr(f->failure->option, ":1")) { /* it was the first request only */
		WANT_STATUS(init(), 0);
		lib.nrt_close();
		WANT(virtual_device_reaches(&f->place.device, "marked_cores", 0));
	}
	WANT(leaks() == 0);
	return 0;
}

TEST("nrt machines: a request of bring-up fails, and nrt_init says which and leaves nothing",
	"[nrt][vdev]")
{
	NEED_VDEV();
	for (size_t i = 0; i < sizeof(failures) / sizeof(failures[0]); i++) {
		const char *const options[] = {"--arch=v2", "--cores=2", failures[i].option, NULL};
		struct failing f = {.failure = &failures[i]};

		test_info("%s", failures[i].option);
		REQUIRE(place_open(&f.place));
		if (virtual_device_start(&f.place.device, f.place.scratch.dir, options))
			CHECK_EQ(scratch_child(init_meets, &f), 0);
		else
			CHECK(!"the virtual device starts");
		place_close(&f.place);
	}
}

/* ---- requests that hang ------------------------------------------------------------------- */

struct hanging {
	struct place place;
	char stat[80];
};

static int init_hangs(void *arg)
{
	struct hanging *h = arg;

	WANT(enter_linked(&h->place, "QUIET") == 0);
	(void)init();
	return 0;
}

static bool request_came(void *arg)
{
	const struct hanging *h = arg;

	return virtual_device_stat(&h->place.device, h->stat) > 0;
}

static void kill_in(struct hanging *h)
{
	pid_t pid;
	int status = 0;

	fflush(NULL);
	pid = fork();
	if (pid == 0)
		_exit(init_hangs(h));
	REQUIRE(pid > 0);
	CHECK(program_until(request_came, h, 20));
	kill(pid, SIGKILL);
	CHECK(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status));
	CHECK(virtual_device_reaches(&h->place.device, "marked_cores", 0));
	CHECK(virtual_device_reaches(&h->place.device, "open_handles", 0));
}

TEST("nrt machines: SIGKILL while a request of nrt_init is not answered leaves nothing",
	"[nrt][vdev]")
{
	static const char *const requests[] = {"COMPATIBLE_VERSION", "CRWL_NC_RANGE_MARK_EXT0",
		"DEVICE_INFO", "NC_RESET", "NC_RESET_READY"};

	NEED_VDEV();
	for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
		char delay[80];
		const char *const options[] = {"--arch=v2", "--cores=2", delay, NULL};
		struct hanging h;

		snprintf(delay, sizeof(delay), "--delay=%s:600000", requests[i]);
		test_info("%s", delay);
		REQUIRE(place_open(&h.place));
		snprintf(h.stat, sizeof(h.stat), "ioctl.%s", requests[i]);
		if (virtual_device_start(&h.place.device, h.place.scratch.dir, options))
			kill_in(&h);
		else
			CHECK(!"the virtual device starts");
		place_close(&h.place);
	}
}
