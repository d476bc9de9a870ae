/* SPDX-License-Identifier: Apache-2.0 */
/*
 * negotiate.c - whether the driver fits this runtime, and what it can do.
 *
 * The runtime has two compatibility ids per architecture, the driver a range: the lower id must not be
 * below the range, the higher one not above it.
 */
#include "runtime/device/device.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/file.h"
#include "runtime/log/log.h"
#include "vmlinux/ioctl_table.h"
#include "vmlinux/neuron_args.h"

#define TAG "TDRV"

/* Compatibility ids of a runtime of version 2.31, per architecture. */
static const struct {
	uint32_t arch, low, high;
} compatible[] = {
	{DEVICE_ARCH_V2, 6, 6},
	{DEVICE_ARCH_V3, 10, 11},
	{DEVICE_ARCH_V4, 10, 11},
};

static NRT_STATUS check_version_text(const char *root)
{
	_cleanup_free_ char *text = device_read_text(root, "/sys/module/neuron/version");
	unsigned major, minor;

	if (!text || sscanf(text, "%u.%u", &major, &minor) != 2) {
		log_error("NRT", "Unable to determine Neuron Driver version. Please check "
				 "aws-neuron-dkms package is installed.");
		return NRT_INVALID;
	}
	log_info("NRT", "Found neuron driver: %u.%u", major, minor);
	if (major <= 1) {
		log_error("NRT", "Neuron Runtime 2.x requires Neuron driver(aws-neuron-dkms) "
				 "version 2.1 or above.");
		return NRT_INVALID;
	}
	return NRT_SUCCESS;
}

static NRT_STATUS incompatible(
	uint32_t id, const struct neuron_compatible_version *range, const char *package)
{
	log_error("NRT",
		"This Neuron Runtime (compatibility id: %u) is not compatible with the installed "
		"aws-neuron-dkms package.",
		id);
	if (range->min == range->max)
		log_error("NRT", "Installed aws-neuron-dkms supports Runtime compatibility id: %u.",
			range->min);
	else
		log_error("NRT",
			"Installed aws-neuron-dkms supports Runtime compatibility id range: %u - "
			"%u.",
			range->min, range->max);
	log_error("NRT",
		"Please make sure to upgrade to latest %s; for detailed installation instructions "
		"visit Neuron documentation.",
		package);
	return NRT_INVALID;
}

static NRT_STATUS negotiate(const char *root, const struct kept_fd *query, uint32_t *ret_arch)
{
	struct neuron_compatible_version range = {0};
	struct neuron_device_basic_info info = {0};
	NRT_STATUS status = check_version_text(root);

	if (status)
		return status;
	if (device_ioctl(query, NEURON_IOCTL_COMPATIBLE_VERSION, &range) < 0) {
		log_error("NRT", "Unable to read compatible Driver version.");
		log_error("NRT", "Please check /dev/neuron# is accessible. If you're using "
				 "containers, please "
				 "ensure Neuron Devices are passed to the container by specifying "
				 "`--device /dev/neuron#`.");
		return NRT_INVALID;
	}
	if (device_ioctl(query, NEURON_IOCTL_DEVICE_BASIC_INFO, &info) < 0) {
		log_error(TAG, "Failed to identify hw platform");
		return NRT_INVALID;
	}
	for (size_t i = 0; i < sizeof(compatible) / sizeof(compatible[0]); i++) {
		if (compatible[i].arch != info.architecture)
			continue;
		if (compatible[i].low < range.min)
			return incompatible(compatible[i].low, &range,
				"aws-neuronx-runtime-lib and aws-neuronx-collectives");
		if (compatible[i].high > range.max)
			return incompatible(compatible[i].high, &range, "aws-neuronx-dkms");
		*ret_arch = info.architecture;
		return NRT_SUCCESS;
	}
	log_error(TAG, "Architecture %u is not supported", info.architecture);
	return NRT_INVALID;
}

/* A driver that does not answer has none of the newer requests. */
static void ask_features(struct device_system *s)
{
	struct neuron_device_driver_info info = {.size = sizeof(info)};

	if (device_ioctl(&s->query, NEURON_IOCTL_DRIVER_INFO_GET, &info) == 0)
		s->says_address = info.feature_flags1 & NEURON_FEATURE_ALLOC_WITH_PA;
}

NRT_STATUS device_negotiate(struct device_system *s)
{
	NRT_STATUS status = device_open_kept(s, s->topology.first_index, O_WRONLY, &s->query);

	if (!status)
		status = negotiate(s->root, &s->query, &s->arch);
	if (!status)
		ask_features(s);
	return status;
}
