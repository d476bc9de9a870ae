/* SPDX-License-Identifier: Apache-2.0 */
/*
 * request_info.c - what board it is and where it sits: requests of which older drivers have another form
 * or none.
 */
#include "runtime/device/device.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>

#include "vmlinux/ioctl_table.h"
#include "vmlinux/neuron_args.h"

/* A device of this process, or NULL. */
static const struct device *device_of(const struct device_system *s, uint32_t index)
{
	for (uint32_t i = 0; i < s->device_count; i++)
		if (s->devices[i].index == index)
			return &s->devices[i];
	return NULL;
}

/* Sends what a query handle may not, on the working handle that there is or on one for this request alone.
 * (Closing a working handle costs no marks.) */
static int ask_device(struct device_system *s, uint32_t index, uint32_t cmd, void *arg)
{
	const struct device *d = device_of(s, index);
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
		rc = ask_device(c->s, c->s->query.index, cmd, &info);
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
		rc = ask_device(c->s, c->index, cmd, &older);
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
	int rc = ask_device(s, index, NEURON_IOCTL_HOST_DEVICE_ID, &id);

	if (rc == -EINVAL || rc == -ENOTTY) /* older than the request */
		rc = 0;
	if (rc == 0)
		*ret_id = id;
	return rc;
}
