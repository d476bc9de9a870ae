/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reserve.c - which NeuronCores this process gets, and marking them as its own.
 *
 * Marks are advice that all runtimes keep.  They are made through the query handle and live as
 * long as it is open.
 */
#include "runtime/device/device.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "runtime/log/log.h"
#include "vmlinux/ioctl_table.h"
#include "vmlinux/neuron_args.h"

#define TAG "TDRV"
#define LNC_SIZE 1u /* physical cores per logical core */

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

void device_unreserve(struct device_system *s)
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

NRT_STATUS device_reserve(struct device_system *s, const struct device_wish *wish)
{
	NRT_STATUS status = check_wish(s, wish);

	return status ? status : mark_cores(s, wish);
}
