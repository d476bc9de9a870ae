/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bringup.c - from nothing to cores that this process owns, and back.
 *
 * A query handle (opened write-only) negotiates and marks cores; marks live as long as that handle.
 * A working handle per device does the rest.  All of them are kept descriptors.
 */
#include "runtime/device/device.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "runtime/base/env.h"
#include "runtime/log/log.h"
#include "vmlinux/ioctl_table.h"
#include "vmlinux/neuron_args.h"

#define TAG "TDRV"
#define LNC_SIZE 1u /* physical cores per logical core */

/* ---- cores -------------------------------------------------------------------------------- */

static NRT_STATUS check_wish(const struct device_system *s, const struct device_wish *w)
{
	uint32_t per_device = s->topology.cores_per_device;
	uint32_t total = s->topology.device_count * per_device;

	if (w->explicit_cores && w->first_core + w->core_count > total) {
		log_error("NRT",
			"Specified core not accessible! is /dev/neuron%u visible to process?",
			s->topology.first_index + (w->first_core + w->core_count - 1) / per_device);
		return NRT_INVALID;
	}
	if (!w->explicit_cores && s->arch > DEVICE_ARCH_V2 && w->core_count > 1 &&
		w->core_count % per_device) {
		log_error("NRT",
			"`NEURON_RT_NUM_CORES` must request one core, or the whole device "
			"(multiple of %u)",
			per_device);
		return NRT_INVALID;
	}
	if ((w->core_count ? w->core_count : total) > DEVICE_MAX_CORES) {
		log_error(TAG, "maximum supported number of core is %u - received %u cores",
			DEVICE_MAX_CORES, w->core_count ? w->core_count : total);
		return NRT_INVALID;
	}
	return NRT_SUCCESS;
}

static NRT_STATUS cores_not_free(
	const struct device_wish *w, uint32_t count, uint32_t available, int rc)
{
	if (w->explicit_cores)
		log_error("NRT",
			"Logical Neuron Core(s) not available - Requested:lnc%u-lnc%u Available:%u "
			"Logical Core size:%u (cores busy, ret=%d)",
			w->first_core, w->first_core + count - 1, available, LNC_SIZE, rc);
	else
		log_error("NRT",
			"Logical Neuron Core(s) not available - Requested:%u Available:%u Logical "
			"Core size %u",
			count, available, LNC_SIZE);
	return NRT_FAILURE;
}

static NRT_STATUS mark_cores(struct device_system *s, const struct device_wish *w)
{
	uint32_t total = s->topology.device_count * s->topology.cores_per_device;
	uint32_t count = w->core_count ? w->core_count : total;
	uint32_t first = w->explicit_cores ? w->first_core : 0;
	struct neuron_crwl_nc_map_ext arg = {
		.nc_count = count,
		.start_nc_index = first,
		.end_nc_index = w->explicit_cores ? first + count - 1 : total - 1,
	};
	int rc = device_ioctl(&s->query, NEURON_IOCTL_CRWL_NC_RANGE_MARK_EXT0, &arg);

	if (rc < 0)
		return cores_not_free(w, count, arg.max_nc_available, rc);
	for (uint32_t i = 0; i < 512; i++)
		if (arg.bitmap[i / 64] >> (i % 64) & 1) {
			s->first_core = i;
			s->core_count = count;
			return NRT_SUCCESS;
		}
	log_error(TAG, "The driver marked no core");
	return NRT_FAILURE;
}

static void unmark_cores(struct device_system *s)
{
	struct neuron_crwl_nc_map_ext arg = {.nc_count = s->core_count,
		.start_nc_index = s->first_core,
		.end_nc_index = s->first_core + s->core_count - 1};

	if (s->core_count == 0)
		return;
	for (uint32_t i = s->first_core; i < s->first_core + s->core_count && i < 512; i++)
		arg.bitmap[i / 64] |= 1ull << (i % 64);
	/* Closing the handle gives them back as well. */
	(void)device_ioctl(&s->query, NEURON_IOCTL_CRWL_NC_RANGE_UNMARK_EXT0, &arg);
}

/* ---- devices ------------------------------------------------------------------------------ */

static uint32_t memory_bank(uint32_t arch, uint32_t core)
{
	return arch == DEVICE_ARCH_V2 ? core : core / 2;
}

static struct device *find_device(struct device_system *s, uint32_t index)
{
	for (uint32_t i = 0; i < s->device_count; i++)
		if (s->devices[i].index == index)
			return &s->devices[i];
	return NULL;
}

/* A driver that does not answer has none of the newer requests. */
static void ask_features(struct device_system *s)
{
	struct neuron_device_driver_info info = {.size = sizeof(info)};

	if (device_ioctl(&s->query, NEURON_IOCTL_DRIVER_INFO_GET, &info) == 0)
		s->says_address = info.feature_flags1 & NEURON_FEATURE_ALLOC_WITH_PA;
}

/* It stays at its number: a driver takes the close of a duplicate for the end of the process's use. */
static NRT_STATUS open_kept(
	struct device_system *s, uint32_t index, int flags, struct kept_fd *ret_file)
{
	int fd, rc;
	NRT_STATUS status = device_open(s, index, flags, &fd);

	if (status)
		return status;
	rc = kept_fd_know(ret_file, fd);
	if (rc < 0) {
		log_error(TAG, "Could not keep the nd%u open: %s", index, strerror(-rc));
		return NRT_RESOURCE;
	}
	return NRT_SUCCESS;
}

static NRT_STATUS open_working_handle(
	struct device_system *s, uint32_t index, struct device **ret_device)
{
	struct neuron_device_info info = {0};
	struct device *d = &s->devices[s->device_count];
	NRT_STATUS status;
	int rc;

	if (s->device_count == DEVICE_MAX_USED) {
		log_error(TAG, "more than %u devices", DEVICE_MAX_USED);
		return NRT_INVALID;
	}
	d->index = index;
	d->says_address = s->says_address;
	status = open_kept(s, index, O_RDWR, &d->file);
	if (status)
		return status;
	s->device_count++;
	rc = device_ioctl(&d->file, NEURON_IOCTL_DEVICE_INFO, &info);
	if (rc < 0) {
		log_error(TAG, "No information about nd%u: %s", index, strerror(-rc));
		return NRT_INVALID;
	}
	*ret_device = d;
	return NRT_SUCCESS;
}

static NRT_STATUS open_cores(struct device_system *s)
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
		uint32_t index = s->topology.first_index + physical / per_device;
		struct device *d = find_device(s, index);
		NRT_STATUS status = d ? NRT_SUCCESS : open_working_handle(s, index, &d);

		if (status)
			return status;
		core->device = d;
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
		log_error(TAG, "Reset of nd%u failed: %s", d->index, strerror(-rc));
		return NRT_HW_ERROR;
	}
	return NRT_SUCCESS;
}

/* ---- all of it ---------------------------------------------------------------------------- */

static NRT_STATUS bring_up(struct device_system *s, const struct device_wish *w)
{
	NRT_STATUS status = device_discover(s->root, s->allow_real, &s->topology);

	if (status)
		return status;
	s->is_virtual = s->topology.is_virtual;
	status = open_kept(s, s->topology.first_index, O_WRONLY, &s->query);
	if (status)
		return status;
	status = device_negotiate(s->root, &s->query, &s->arch);
	if (!status)
		ask_features(s);
	if (!status)
		status = check_wish(s, w);
	if (!status)
		status = mark_cores(s, w);
	if (!status)
		status = open_cores(s);
	for (uint32_t i = 0; i < s->device_count && !status && w->reset; i++)
		status = reset_device(s, &s->devices[i]);
	if (!status)
		device_link(s);
	return status;
}

NRT_STATUS device_bring_up(const struct device_wish *wish, struct device_system **ret)
{
	struct device_system *s = calloc(1, sizeof(*s));
	NRT_STATUS status;

	if (!s)
		return NRT_RESOURCE;
	s->query.fd = s->link.fd = -1;
	s->allow_real = wish->allow_real;
	if ((size_t)snprintf(s->root, sizeof(s->root), "%s", wish->root) >= sizeof(s->root)) {
		log_error(TAG, ENV_DEVICE_ROOT " is too long");
		free(s);
		return NRT_INVALID;
	}
	status = bring_up(s, wish);
	if (status) {
		device_shut_down(s);
		return status;
	}
	log_info("NRT", "Instance info:: device count:%u cores per device:%u architecture:V%u%s",
		s->topology.device_count, s->topology.cores_per_device, s->arch,
		s->is_virtual ? " VIRTUAL" : "");
	log_info("NRT", "LNC info: first lnc %u last lnc %u first pnc %u last pnc %u",
		s->first_core, s->first_core + s->core_count - 1, s->first_core,
		s->first_core + s->core_count - 1);
	*ret = s;
	return NRT_SUCCESS;
}

void device_shut_down(struct device_system *s)
{
	if (!s)
		return;
	for (uint32_t i = 0; s->cores && i < s->core_count; i++) {
		if (s->cores[i].notes.memory)
			(void)munmap(s->cores[i].notes.memory, s->cores[i].notes.bytes);
		pthread_mutex_destroy(&s->cores[i].lock);
	}
	unmark_cores(s);
	for (uint32_t i = 0; i < s->device_count; i++)
		kept_fd_close(&s->devices[i].file);
	kept_fd_close(&s->query);
	kept_fd_close(&s->link);
	free(s->cores);
	free(s);
}
