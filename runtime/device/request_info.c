/* SPDX-License-Identifier: Apache-2.0 */
/*
 * request_info.c - what board it is and where it sits: requests of which older drivers have another form
 * or none.
 */
#include "runtime/device/device.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>

#include "runtime/device/identity.h"
#include "vmlinux/ioctl_table.h"
#include "vmlinux/neuron_args.h"

/* (Closing a working handle costs no marks.) */
int device_ask(struct device_system *s, uint32_t index, uint32_t cmd, void *arg)
{
	const struct device *d = device_attached(s, index);
	struct device_file file;
	int rc;

	if (d)
		return device_ioctl(&d->file, cmd, arg);
	if (device_open_kept(s, index, O_RDONLY, &file))
		return -ENODEV;
	rc = device_ioctl(&file, cmd, arg);
	device_close(&file);
	return rc;
}

/* ---- board and place ---------------------------------------------------------------------- */

struct board_call {
	struct device_system *s;
	uint32_t arch, revision;
};

static int send_board_info(uint32_t cmd, void *arg)
{
	struct board_call *c = arg;
	struct neuron_device_basic_info basic = {0};
	struct neuron_device_info info = {0};
	int rc;

	if (cmd == NEURON_IOCTL_DEVICE_BASIC_INFO) {
		rc = device_ioctl(&c->s->query, cmd, &basic);
		c->arch = basic.architecture;
		c->revision = basic.revision;
	} else {
		rc = device_ask(c->s, c->s->query.index, cmd, &info);
		c->arch = info.architecture;
		c->revision = info.revision;
	}
	return rc;
}

int device_board_info(struct device_system *s, uint32_t *ret_arch, uint32_t *ret_revision)
{
	struct board_call call = {.s = s};
	int rc = forms_send(&s->forms, REQUEST_BOARD_INFO, send_board_info, &call);

	if (rc == 0) {
		*ret_arch = call.arch;
		*ret_revision = call.revision;
	}
	return rc;
}

struct place_call {
	struct device_system *s;
	uint32_t index;
	struct device_pci_place place;
};

static int send_pci_place(uint32_t cmd, void *arg)
{
	struct place_call *c = arg;
	struct neuron_device_bdf_ext newer = {.nd_index = c->index};
	struct neuron_device_bdf older = {0};
	int rc;

	if (cmd == NEURON_IOCTL_DEVICE_BDF_EXT) {
		rc = device_ioctl(&c->s->query, cmd, &newer);
		c->place = (struct device_pci_place){
			newer.domain, newer.bus_number, newer.slot, newer.func};
	} else {
		rc = device_ask(c->s, c->index, cmd, &older);
		c->place = (struct device_pci_place){0, older.bus_number, older.slot, older.func};
	}
	return rc;
}

int device_pci_place(struct device_system *s, uint32_t index, struct device_pci_place *ret)
{
	struct place_call call = {.s = s, .index = index};
	int rc = forms_send(&s->forms, REQUEST_PCI_PLACE, send_pci_place, &call);

	if (rc == 0)
		*ret = call.place;
	return rc;
}

int device_host_id(struct device_system *s, uint32_t index, uint32_t *ret_id)
{
	uint32_t id = index;
	int rc = 0;

	if (index >= DEVICE_MAX || !(s->topology.present & 1ull << index))
		return -ENODEV;
	if (!s->topology.simulated)
		rc = device_ask(s, index, NEURON_IOCTL_HOST_DEVICE_ID, &id);
	if (forms_is_unknown(rc)) {
		id = index;
		rc = 0;
	}
	if (rc == 0)
		*ret_id = id;
	return rc;
}

/* Where nobody says how a machine is wired, each device has its own number (ours). */
static void routing_without_driver(const struct device_system *s, struct device_routing *ret)
{
	struct identity id;

	identity_read(s, &id);
	ret->count = identity_routing(id.family, ret->rid);
	if (ret->count)
		return;
	ret->count = 64 - (uint32_t)__builtin_clzll(s->topology.present);
	for (uint32_t i = 0; i < ret->count; i++)
		ret->rid[i] = i;
}

int device_routing(const struct device_system *s, struct device_routing *ret)
{
	struct neuron_host_device_id_to_rid_map map = {0};
	struct device_routing r = {0};
	int rc = -ENOTTY;

	if (!s->topology.simulated)
		rc = device_ioctl(&s->query, NEURON_IOCTL_HOST_DEVICE_ID_TO_RID_MAP, &map);
	if (rc < 0 && !forms_is_unknown(rc))
		return rc;
	if (rc == 0 && map.count > DEVICE_MAX)
		return -EPROTO;
	if (rc == 0) {
		r.count = map.count;
		memcpy(r.rid, map.host_did_to_rid_map, map.count * sizeof(r.rid[0]));
	} else {
		routing_without_driver(s, &r);
	}
	*ret = r;
	return 0;
}
