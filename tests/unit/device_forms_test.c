/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_forms_test.c - the requests of the driver shim on a virtual device, each in every form that drivers
 * have had.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/device/device.h"
#include "runtime/device/negotiate.h"
#include "runtime/log/log.h"
#include "tests/unit/nrt_lib.h"
#include "vmlinux/ioctl_table.h"
#include "vmlinux/neuron_args.h"

/* Up to the answers of the driver, with messages of this level. */
static int meet_with(const struct place *p, const char *level, struct device_system **ret)
{
	const struct device_place place = {.root = p->device.root};

	setenv("NEURON_RT_LOG_LEVEL", level, 1);
	log_configure();
	WANT_STATUS(device_new(&place, ret), NRT_SUCCESS);
	WANT_STATUS(device_find(*ret), NRT_SUCCESS);
	WANT_STATUS(device_negotiate(*ret), NRT_SUCCESS);
	return 0;
}

static int meet(const struct place *p, struct device_system **ret)
{
	complaint_fd = 2;
	return meet_with(p, "QUIET", ret);
}

static void settle(struct device_system *s, enum device_request what, uint32_t cmd)
{
	atomic_store(&s->forms.settled[what], cmd);
}

static int who_and_where(void *arg)
{
	static const uint32_t boards[] = {NEURON_IOCTL_DEVICE_BASIC_INFO, NEURON_IOCTL_DEVICE_INFO};
	static const uint32_t places[] = {NEURON_IOCTL_DEVICE_BDF_EXT, NEURON_IOCTL_DEVICE_BDF};
	struct device_system *s = NULL;
	struct device_routing routing;
	struct neuron_device_bdf_ext bdf;

	WANT(meet(arg, &s) == 0);
	WANT(s->arch == DEVICE_ARCH_V2 && s->revision == 255);
	WANT(s->driver.major == 2 && s->driver.minor == 24 && s->driver.has_features);
	WANT(s->topology.device_count == 4 && s->topology.present == 0xf);
	WANT(!s->query.is_real && s->query.owner == getpid() && s->query.index == 0);
	for (size_t i = 0; i < 2; i++) {
		uint32_t arch = 0, revision = 0;

		settle(s, REQUEST_BOARD_INFO, boards[i]);
		WANT(device_board_info(s, &arch, &revision) == 0);
		WANT(arch == DEVICE_ARCH_V2 && revision == 255);
	}
	for (uint32_t index = 0; index < 4; index++) {
		struct device_pci_place found[2];
		uint32_t id = 99;

		for (size_t i = 0; i < 2; i++) {
			settle(s, REQUEST_PCI_PLACE, places[i]);
			memset(&found[i], 0xff, sizeof(found[i]));
			WANT(device_pci_place(s, index, &found[i]) == 0);
		}
		bdf = (struct neuron_device_bdf_ext){.nd_index = index};
		WANT(device_ioctl(&s->query, NEURON_IOCTL_DEVICE_BDF_EXT, &bdf) == 0);
		WANT(found[0].domain == bdf.domain && found[0].bus == bdf.bus_number &&
			found[0].slot == bdf.slot && found[0].function == bdf.func);
		WANT(found[1].domain == 0 && found[1].bus == bdf.bus_number &&
			found[1].slot == bdf.slot && found[1].function == bdf.func);
		WANT(device_host_id(s, index, &id) == 0 && id == index);
	}
	WANT(device_host_id(s, 4, &routing.count) == -ENODEV);
	WANT(device_host_id(s, 64, &routing.count) == -ENODEV);
	WANT(device_routing(s, &routing) == 0 && routing.count == 4);
	for (uint32_t i = 0; i < 4; i++)
		WANT(routing.rid[i] == i);
	device_shut_down(s);
	return 0;
}

TEST("device: board, PCI place and routing are the same in the older forms", "[device]")
{
	static const char *const options[] = {
		"--arch=v2", "--devices=4", "--driver-version=2.24.7.0", NULL};

	if (device_lacks())
		SKIP(device_lacks());
	with_device(who_and_where, options);
}

static int memory(void *arg)
{
	static const uint32_t allocs[] = {NEURON_IOCTL_MEM_ALLOC_V2MT64_PA,
		NEURON_IOCTL_MEM_ALLOC_V2MT64, NEURON_IOCTL_MEM_ALLOC_V2MT,
		NEURON_IOCTL_MEM_ALLOC_V2, NEURON_IOCTL_MEM_ALLOC};
	static const uint32_t copies[] = {NEURON_IOCTL_MEM_BUF_COPY64, NEURON_IOCTL_MEM_BUF_COPY};
	struct device_system *s = NULL;
	struct device d = {.index = 0};
	const struct device_core core = {.device = &d, .index = 1};
	struct place *p = arg;

	WANT(meet(p, &s) == 0);
	d.forms = &s->forms;
	WANT_STATUS(device_open_kept(s, 0, O_RDWR, &d.file), NRT_SUCCESS);
	for (size_t i = 0; i < 5; i++)
		for (size_t k = 0; k < 2; k++) {
			char in[100] = "written to the device", out[100] = "";
			uint64_t handle = 0, address = 99;

			settle(s, REQUEST_MEM_ALLOC, allocs[i]);
			settle(s, REQUEST_BUF_COPY, copies[k]);
			WANT(device_mem_alloc(&core, 4096, DEVICE_MEM_TENSORS, &handle, &address) ==
				0);
			WANT(handle != 0 && (i == 0 || address == 0));
			WANT(device_copy_in(&d, handle, 1000, in, sizeof(in)) == 0);
			WANT(device_copy_out(&d, handle, 1000, out, sizeof(out)) == 0);
			WANT(memcmp(in, out, sizeof(in)) == 0);
			WANT(device_copy_in(&d, handle, 4096, in, 1) == -EINVAL);
			WANT(device_mem_free(&d, handle) == 0);
		}
	WANT(virtual_device_stat(&p->device, "ioctl.MEM_ALLOC") == 2);
	WANT(virtual_device_stat(&p->device, "ioctl.MEM_ALLOC_V2MT") == 2);
	WANT(virtual_device_stat(&p->device, "ioctl.MEM_BUF_COPY") == 15);
	device_close(&d.file);
	device_shut_down(s);
	return 0;
}

static int within_memory(void *arg)
{
	static const uint32_t copies[] = {
		NEURON_IOCTL_MEM_COPY64, NEURON_IOCTL_MEM_COPY64_DEPRECATED, NEURON_IOCTL_MEM_COPY};
	static const uint32_t fills[] = {NEURON_IOCTL_MEMSET64, NEURON_IOCTL_MEMSET};
	struct device_system *s = NULL;
	struct device d = {.index = 0};
	const struct device_core core = {.device = &d, .index = 1};
	uint64_t from = 0, to = 0, address;
	struct place *p = arg;

	WANT(meet(p, &s) == 0);
	d.forms = &s->forms;
	WANT_STATUS(device_open_kept(s, 0, O_RDWR, &d.file), NRT_SUCCESS);
	WANT(device_mem_alloc(&core, 4096, DEVICE_MEM_TENSORS, &from, &address) == 0);
	WANT(device_mem_alloc(&core, 4096, DEVICE_MEM_TENSORS, &to, &address) == 0);
	for (size_t i = 0; i < 3; i++)
		for (size_t k = 0; k < 2; k++) {
			char in[] = "0123456789", out[sizeof(in)] = "";

			settle(s, REQUEST_MEM_COPY, copies[i]);
			settle(s, REQUEST_MEM_FILL, fills[k]);
			WANT(device_copy_in(&d, from, 7, in, sizeof(in)) == 0);
			WANT(device_mem_copy(&d, from, 7, to, 4000, sizeof(in)) == 0);
			WANT(device_mem_fill(&d, to, 4002, 3, 'x') == 0);
			WANT(device_mem_copy(&d, to, 4000, to, 4001, 8) == 0);
			WANT(device_copy_out(&d, to, 4000, out, sizeof(out)) == 0);
			WANT(strcmp(out, "001xxx5679") == 0);
			WANT(device_mem_copy(&d, from, 0, to, 4000, 97) == -EINVAL);
			WANT(device_mem_copy(&d, from, 4096, to, 0, 1) == -EINVAL);
			WANT(device_mem_fill(&d, to, 4096, 1, 0) == -EINVAL);
			WANT(device_mem_copy(&d, from, 9999, to, 9999, 0) == 0); /* nothing to do */
			WANT(device_mem_fill(&d, to, 9999, 0, 0) == 0);
		}
	WANT(virtual_device_stat(&p->device, "ioctl.MEM_COPY") == 8);
	WANT(virtual_device_stat(&p->device, "ioctl.MEMSET") == 6);
	device_close(&d.file);
	device_shut_down(s);
	return 0;
}

TEST("device: memory is copied and filled where it is in every form of the requests", "[device]")
{
	if (device_lacks())
		SKIP(device_lacks());
	with_device(within_memory, two_cores);
}

TEST("device: memory is allocated and copied in every form of the requests", "[device]")
{
	if (device_lacks())
		SKIP(device_lacks());
	with_device(memory, two_cores);
}

/* ---- old drivers -------------------------------------------------------------------------- */

static const char *old_is; /* NULL: it is not called old */

static int age(void *arg)
{
	const struct place *p = arg;
	struct device_system *s = NULL;
	char *all;

	WANT(enter(p) == 0);
	WANT(dup2(2, 1) == 1);
	WANT(meet_with(p, "WARN", &s) == 0);
	device_shut_down(s);
	if (old_is)
		return said(p, old_is) ? 0 : 1;
	all = program_text(p->log.s);
	WANT(strcmp(all, "") == 0);
	free(all);
	return 0;
}

TEST("negotiate: a driver that is old but fits is a warning that says in what way", "[device]")
{
	static const struct {
		const char *options[2], *said;
	} rows[] = {
		{{"--driver-version=2.20.1", NULL}, "is old: version 2.20, before 2.24. Please"},
		{{"--without=DRIVER_INFO_GET", NULL}, "version 2.30 without feature flags. Please"},
		{{"--without=DEVICE_BASIC_INFO", NULL},
			"version 2.30 without newer requests. Please"},
	};

	if (device_lacks())
		SKIP(device_lacks());
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		old_is = rows[i].said;
		with_device(age, rows[i].options);
	}
}

TEST("negotiate: drivers 2.24 and 2.30 are not called old", "[device]")
{
	static const char *const options[][2] = {
		{"--driver-version=2.24.0.0", NULL}, {"--driver-version=2.30.2.0", NULL}};

	if (device_lacks())
		SKIP(device_lacks());
	old_is = NULL;
	for (size_t i = 0; i < 2; i++)
		with_device(age, options[i]);
}

/* ---- as if it were real ------------------------------------------------------------------- */

/* Reserves a core of a device that is taken for a real one from then on. */
static int reserve_real(const struct place *p, bool allow_reset, struct device_system **ret)
{
	const struct device_wish wish = {.core_count = 1, .lnc_size = 1};
	struct device_system *s;

	WANT(meet(p, &s) == 0);
	WANT_STATUS(device_reserve(s, &wish), NRT_SUCCESS);
	WANT(s->device_count == 1);
	s->devices[0].file.is_real = s->query.is_real = true;
	s->devices[0].file.allow_reset = s->query.allow_reset = allow_reset;
	*ret = s;
	return 0;
}

static int real_device(void *arg)
{
	struct place *p = arg;
	struct device_system *s;
	uint64_t handle, address;

	WANT(reserve_real(p, false, &s) == 0);
	WANT_STATUS(device_start(s, true), NRT_SUCCESS);
	WANT(virtual_device_stat(&p->device, "ioctl.NC_RESET") == -1);
	WANT(device_mem_alloc(&s->cores[0], 64, DEVICE_MEM_TENSORS, &handle, &address) == -EPERM);
	WANT(device_queue_init(&s->cores[0], 1, 2) == -EPERM);
	WANT(device_queue_start(&s->cores[0], 1) == -EPERM);
	WANT(virtual_device_stat(&p->device, "ioctl.MEM_ALLOC_V2MT64_PA") == -1);
	WANT(device_rings_open(s, &s->cores[0]) == 0);
	device_shut_down(s);
	WANT(virtual_device_reaches(&p->device, "open_handles", 0));
	WANT(virtual_device_reaches(&p->device, "marked_cores", 0));

	WANT(reserve_real(p, true, &s) == 0);
	WANT_STATUS(device_start(s, true), NRT_SUCCESS);
	WANT(virtual_device_stat(&p->device, "ioctl.NC_RESET") == 1);
	WANT(device_mem_alloc(&s->cores[0], 64, DEVICE_MEM_TENSORS, &handle, &address) == 0);
	WANT(device_queue_init(&s->cores[0], handle, handle) == -EPERM); /* a virtual one's */
	WANT(device_queue_ack(&s->cores[0], 1) == -EPERM);
	device_shut_down(s);
	return 0;
}

TEST("device: a real device is brought up without reset, memory and queues unless allowed",
	"[device]")
{
	if (device_lacks())
		SKIP(device_lacks());
	with_device(real_device, two_cores);
}

static int real_device_warns(void *arg)
{
	struct place *p = arg;
	struct device_system *s;

	WANT(enter(p) == 0);
	WANT(reserve_real(p, false, &s) == 0);
	setenv("NEURON_RT_LOG_LEVEL", "WARN", 1);
	log_configure();
	WANT(dup2(2, 1) == 1);
	WANT_STATUS(device_start(s, true), NRT_SUCCESS);
	WANT(said(p, "The cores of the real device nd0 are not reset: NTRACE_ALLOW_RESET=1 allows "
		     "it\n"));
	WANT(device_mem_free(s->cores[0].device, 1) == -EPERM);
	WANT(said(p, "MEM_FREE is not sent to the real device nd0: it allocates, moves or changes "
		     "device memory, whoever uses the device. Set NTRACE_ALLOW_RESET=1 to allow "
		     "it\n"));
	WANT(device_queue_start(&s->cores[0], 1) == -EPERM);
	WANT(said(p, "DMA_QUEUE_COPY_START is never sent to the real device nd0: it is for the "
		     "engine of virtual devices\n"));
	return 0;
}

TEST("device: what a real device is not sent is said, with what allows it", "[device]")
{
	if (device_lacks())
		SKIP(device_lacks());
	with_device(real_device_warns, two_cores);
}
