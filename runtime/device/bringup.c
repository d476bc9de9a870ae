/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bringup.c - the devices that this process works with, its cores, and giving all back.
 *
 * A query handle (opened write-only) negotiates and marks cores; marks live as long as that handle.
 * A working handle per device does the rest; reserve.c says when it is opened.  All of them are
 * kept descriptors.
 */
#include "runtime/device/device.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/env.h"
#include "runtime/base/file.h"
#include "runtime/device/guards.h"
#include "runtime/log/log.h"
#include "vmlinux/ioctl_table.h"
#include "vmlinux/neuron_args.h"

#define TAG "TDRV"
#define ROOT_ROOM 128u /* for the paths below it */

/* ---- devices ------------------------------------------------------------------------------ */

static uint32_t memory_bank(uint32_t arch, uint32_t core)
{
	return arch == DEVICE_ARCH_V2 ? core : core / 2;
}

struct device *device_attached(struct device_system *s, uint32_t index)
{
	for (uint32_t i = 0; i < s->device_count; i++)
		if (s->devices[i].index == index)
			return &s->devices[i];
	return NULL;
}

static NRT_STATUS open_working_handle(
	struct device_system *s, uint32_t index, struct device **ret_device)
{
	struct neuron_device_info info = {0};
	struct device *d = &s->devices[s->device_count];
	NRT_STATUS status;
	int rc;

	if (s->device_count == CORES_MAX_DEVICES) {
		log_error(TAG, "more than %u devices", CORES_MAX_DEVICES);
		return NRT_INVALID;
	}
	*d = (struct device){.index = index, .forms = &s->forms};
	status = device_open_kept(s, index, O_RDWR, &d->file);
	if (status)
		return status;
	s->device_count++;
	rc = device_ioctl(&d->file, NEURON_IOCTL_DEVICE_INFO, &info);
	if (rc < 0) {
		log_error(TAG, "No information about nd%u: %s", index, device_strerror(rc));
		return NRT_INVALID;
	}
	*ret_device = d;
	return NRT_SUCCESS;
}

NRT_STATUS device_attach(struct device_system *s, uint32_t index, struct device **ret_device)
{
	*ret_device = device_attached(s, index);
	return *ret_device ? NRT_SUCCESS : open_working_handle(s, index, ret_device);
}

void device_detach_others(struct device_system *s, uint32_t first, uint32_t last)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < s->device_count; i++) {
		if (s->devices[i].index >= first && s->devices[i].index <= last)
			s->devices[kept++] = s->devices[i];
		else
			device_close(&s->devices[i].file);
	}
	s->device_count = kept;
}

static NRT_STATUS know_cores(struct device_system *s)
{
	uint32_t per_device = s->topology.cores_per_device;

	s->cores = calloc(s->core_count, sizeof(*s->cores));
	if (!s->cores)
		return NRT_RESOURCE;
	for (uint32_t i = 0; i < s->core_count; i++)
		pthread_mutex_init(&s->cores[i].lock, NULL);
	for (uint32_t i = 0; i < s->core_count; i++) {
		struct device_core *core = &s->cores[i];
		uint32_t physical = s->first_core + i;
		NRT_STATUS status = device_attach(
			s, s->topology.first_index + physical / per_device, &core->device);

		if (status)
			return status;
		core->index = physical % per_device;
		core->hbm = memory_bank(s->arch, core->index);
	}
	return NRT_SUCCESS;
}

static NRT_STATUS reset_device(const struct device_system *s, const struct device *d)
{
	struct neuron_device_reset reset = {0};
	struct neuron_device_ready ready = {0};
	int rc;

	for (uint32_t i = 0; i < s->core_count; i++)
		if (s->cores[i].device == d)
			reset.nc_map |= 1u << s->cores[i].index;
	log_debug(TAG, "Reset triggered for nd %u nc_map 0x%x", d->index, reset.nc_map);
	rc = device_ioctl(&d->file, NEURON_IOCTL_NC_RESET, &reset);
	ready.request_id = reset.request_id;
	if (rc == 0)
		rc = device_ioctl(&d->file, NEURON_IOCTL_NC_RESET_READY, &ready);
	if (rc == 0 && ready.result != 0)
		rc = -EIO;
	if (rc < 0) {
		log_error(TAG, "Reset of nd%u failed: %s", d->index, device_strerror(rc));
		return NRT_HW_ERROR;
	}
	return NRT_SUCCESS;
}

/* There is nothing to reset in a simulation; a real device may be in use. */
static bool may_reset(const struct device_file *file)
{
	if (file->simulated)
		return false;
	if (guard_check(file, file->owner, NEURON_IOCTL_NC_RESET, NULL) == GUARD_PASS)
		return true;
	log_warn(TAG,
		"The cores of the real device nd%u are not reset: " ENV_ALLOW_RESET "=1 allows it",
		file->index);
	return false;
}

/* ---- all of it ---------------------------------------------------------------------------- */

/* The root is used again later, and the program may be in another directory then.  No links are resolved: that
 * would ask the virtual device, which may have died. */
static bool keep_root(struct device_system *s, const char *root)
{
	_cleanup_free_ char *here = root[0] && root[0] != '/' ? getcwd(NULL, 0) : NULL;
	int n = snprintf(
		s->root, sizeof(s->root), "%s%s%s", here ? here : "", here ? "/" : "", root);

	if (n >= 0 && (size_t)n < sizeof(s->root) - ROOT_ROOM)
		return true;
	log_error(TAG, ENV_DEVICE_ROOT " is too long: %d bytes, and %d are allowed ('%.64s...')", n,
		(int)(sizeof(s->root) - ROOT_ROOM - 1), s->root);
	return false;
}

NRT_STATUS device_new(const struct device_place *place, struct device_system **ret)
{
	struct device_system *s = calloc(1, sizeof(*s));

	if (!s)
		return NRT_RESOURCE;
	s->query.kept.fd = s->link.fd = -1;
	s->allow_real = place->allow_real;
	s->allow_reset = place->allow_reset;
	(void)snprintf(s->fake_instance, sizeof(s->fake_instance), "%s",
		place->fake_instance ? place->fake_instance : "");
	if (!keep_root(s, place->root)) {
		free(s);
		return NRT_INVALID;
	}
	*ret = s;
	return NRT_SUCCESS;
}

NRT_STATUS device_start(struct device_system *s, bool reset)
{
	NRT_STATUS status = know_cores(s);

	for (uint32_t i = 0; i < s->device_count && !status && reset; i++)
		if (may_reset(&s->devices[i].file))
			status = reset_device(s, &s->devices[i]);
	if (!status && !s->topology.simulated)
		device_link(s);
	return status;
}

void device_shut_down(struct device_system *s)
{
	if (!s)
		return;
	for (uint32_t i = 0; s->cores && i < s->core_count; i++) {
		device_rings_close(&s->cores[i]);
		pthread_mutex_destroy(&s->cores[i].lock);
	}
	device_unreserve(s);
	for (uint32_t i = 0; i < s->device_count; i++)
		device_close(&s->devices[i].file);
	device_close(&s->query);
	kept_fd_close(&s->link);
	free(s->cores);
	free(s);
}
