/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nrt_topology_test.c - the public calls about the machine, on virtual and simulated ones.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/shim/shim.h"
#include "tests/unit/nrt_lib.h"

/* ---- the instance ------------------------------------------------------------------------- */

static int instance(void *arg)
{
	struct place *p = arg;
	nrt_instance_info_t info, again;
	struct {
		nrt_instance_info_t info;
		char more[8];
	} room;
	char *text;

	WANT(enter(p) == 0);
	setenv("NEURON_RT_LOG_LEVEL", "WARN", 1);
	WANT(dup2(2, 1) == 1);
	WANT_STATUS(lib.nrt_get_instance_info(&info, sizeof(info)), NRT_UNINITIALIZED);
	WANT_STATUS(init(), 0);
	memset(&info, 0xff, sizeof(info));
	WANT_STATUS(lib.nrt_get_instance_info(&info, sizeof(info)), 0);
	WANT(info.family == NRT_INSTANCE_TRN1 && info.size == NRT_INSTANCE_SIZE_32XL);
	WANT(strcmp(info.arch_name, "trn1") == 0);
	WANT(strcmp(info.device_revision, "A") == 0);

	/* As much as there is room for. */
	memset(&again, 0xff, sizeof(again));
	WANT_STATUS(lib.nrt_get_instance_info(&again, 4), 0);
	WANT(again.family == info.family && again.size == 0xffffffffu);
	WANT_STATUS(lib.nrt_get_instance_info(&again, 0), 0);
	memset(&room, 0xee, sizeof(room));
	WANT_STATUS(lib.nrt_get_instance_info(&room.info, sizeof(room)), 0);
	WANT(memcmp(&room.info, &info, 32) == 0 && (unsigned char)room.more[0] == 0xee);
	WANT(said(p, "Not all fields will be returned, info size is: 40, copy size is: 32\n"));
	WANT_STATUS(lib.nrt_get_instance_info(&room.info, sizeof(room)), 0);
	text = program_text(p->log.s);
	WANT(text && !strstr(text, "Not all fields")); /* once per process */
	free(text);
	WANT_STATUS(lib.nrt_get_instance_info(NULL, 32), NRT_INVALID);
	WANT(said(
		p, "NRT:nrt_get_instance_info                    No place for the answer (NULL)"));

	/* The process keeps its answer, whatever it comes up on. */
	lib.nrt_close();
	setenv("NTRACE_DEVICE_ROOT", "", 1);
	setenv("NEURON_RT_FAKE_INSTANCE_TYPE", "inf2.xlarge", 1);
	WANT_STATUS(init(), 0);
	WANT_STATUS(lib.nrt_get_instance_info(&again, sizeof(again)), 0);
	WANT(memcmp(&again, &info, sizeof(info)) == 0);
	lib.nrt_close();
	return 0;
}

TEST("nrt_get_instance_info: as many bytes as asked for, at most 32, the same for ever", "[nrt]")
{
	static const char *const options[] = {"--arch=v2", "--devices=16", "--memory=16M", NULL};

	if (device_lacks())
		SKIP(device_lacks());
	with_device(instance, options);
}

static int fake_instance(void *arg)
{
	struct place *p = arg;
	nrt_instance_info_t info;
	int devices[16];

	WANT(enter(p) == 0);
	setenv("NTRACE_DEVICE_ROOT", "", 1);
	setenv("NEURON_RT_FAKE_INSTANCE_TYPE", "trn1n.32xlarge", 1);
	WANT_STATUS(init(), 0);
	WANT_STATUS(lib.nrt_get_instance_info(&info, sizeof(info)), 0);
	WANT(info.family == NRT_INSTANCE_TRN1N && info.size == NRT_INSTANCE_SIZE_32XL);
	WANT(lib.nec_get_device_count(devices, 16) == 16 && devices[15] == 15);
	/* Nobody but the type says how it is wired: its order, map[perm[i]] = i. */
	WANT(lib.nec_mla_idx_to_rid(0, 4) == 1 && lib.nec_mla_idx_to_rid(0, 10) == 15);
	WANT(lib.nec_rid_to_mla_idx(0, 15) == 10);
	lib.nrt_close();
	return 0;
}

TEST("simulation: the instance is the one that was asked for, wired as its family", "[nrt]")
{
	struct place p;

	REQUIRE_LIBRARY();
	REQUIRE(place_open(&p));
	CHECK_EQ(scratch_child(fake_instance, &p), 0);
	place_close(&p);
}

/* ---- devices ------------------------------------------------------------------------------ */

static int devices(void *arg)
{
	struct place *p = arg;
	int numbers[4] = {-7, -7, -7, -7};
	uint32_t id, map[64], count, size = 0, domain, bus[3];
	uint8_t slot, function;

	WANT(enter(p) == 0);
	WANT(lib.nec_get_device_count(numbers, 4) == -1);
	WANT(lib.nec_get_device_pci_bdf(0, &domain, bus, &slot, &function) == -1);
	WANT_STATUS(lib.nec_get_virtual_core_size(&size), NRT_UNINITIALIZED);
	setenv("NEURON_LOGICAL_NC_CONFIG", "1", 1);
	setenv("NEURON_RT_NUM_CORES", "1", 1); /* one device of three */
	WANT_STATUS(init(), 0);

	WANT(lib.nec_get_device_count(numbers, 4) == 3);
	WANT(numbers[0] == 0 && numbers[1] == 1 && numbers[2] == 2 && numbers[3] == -7);
	numbers[1] = -7;
	WANT(lib.nec_get_device_count(numbers, 1) == 3 && numbers[1] == -7);
	WANT(lib.nec_get_device_count(NULL, 0) == 3);
	WANT(lib.nec_get_device_count(NULL, 1) == -1);

	for (int i = 0; i < 3; i++) {
		WANT_STATUS(lib.nrt_host_device_id_get(i, &id), 0);
		WANT(id == (uint32_t)i);
		WANT(lib.nec_get_device_pci_bdf(i, &domain, &bus[i], &slot, &function) == 0);
	}
	WANT(bus[0] != bus[1] && bus[1] != bus[2]);
	WANT_STATUS(lib.nrt_host_device_id_get(3, &id), NRT_INVALID);
	WANT(said(p, "No host number of device 3: there is none with this number, this "
		     "machine has 3, from 0"));
	WANT_STATUS(lib.nrt_host_device_id_get(-1, &id), NRT_INVALID);
	WANT_STATUS(lib.nrt_host_device_id_get(0, NULL), NRT_INVALID);
	WANT(lib.nec_get_device_pci_bdf(3, &domain, bus, &slot, &function) == -1);
	WANT(said(p, "No PCI place of device 3: there is none with this number"));
	WANT(lib.nec_get_device_pci_bdf(-1, &domain, bus, &slot, &function) == -1);
	WANT(lib.nec_get_device_pci_bdf(0, NULL, bus, &slot, &function) == -1);

	count = 64;
	WANT_STATUS(lib.nrt_host_device_id_rid_map_get(&count, map), 0);
	WANT(count == 3);
	for (int i = 0; i < 3; i++) {
		WANT(lib.nec_mla_idx_to_rid(0, i) == (int)map[i]);
		WANT(lib.nec_rid_to_mla_idx(0, (int)map[i]) == i);
		WANT(lib.nec_is_mla_available(0, i));
	}
	map[1] = 77;
	count = 1;
	WANT_STATUS(lib.nrt_host_device_id_rid_map_get(&count, map), 0);
	WANT(count == 1 && map[1] == 77);
	WANT_STATUS(lib.nrt_host_device_id_rid_map_get(NULL, map), NRT_INVALID);
	WANT(lib.nec_mla_idx_to_rid(0, 3) == -1 && lib.nec_mla_idx_to_rid(0, -1) == -1);
	WANT(lib.nec_mla_idx_to_rid(3, 0) == -1);
	WANT(said(p, "No routing ids of device 3: there is none with this number"));
	WANT(lib.nec_rid_to_mla_idx(-1, 0) == -1);
	WANT(lib.nec_rid_to_mla_idx(0, 63) == -1 && lib.nec_rid_to_mla_idx(0, -1) == -1);
	WANT(!lib.nec_is_mla_available(0, 3) && !lib.nec_is_mla_available(3, 0));
	WANT(!lib.nec_is_mla_available(-1, 0));

	WANT_STATUS(lib.nec_get_virtual_core_size(&size), 0);
	WANT(size == 1);
	WANT_STATUS(lib.nec_get_virtual_core_size(NULL), NRT_INVALID);
	lib.nrt_close();
	WANT(virtual_device_reaches(&p->device, "open_handles", 0));
	return 0;
}

TEST("nrt: devices, their PCI places, host numbers and routing ids", "[nrt]")
{
	static const char *const options[] = {"--devices=3", "--memory=16M", NULL};

	if (device_lacks())
		SKIP(device_lacks());
	with_device(devices, options);
}
