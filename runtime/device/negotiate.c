/* SPDX-License-Identifier: Apache-2.0 */
/*
 * negotiate.c - whether the driver fits this runtime, and what it can do.
 *
 * The runtime has two compatibility ids per architecture, the driver a range: the lower id must not be
 * below the range, the higher one not above it.
 */
#include "runtime/device/negotiate.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/file.h"
#include "runtime/base/instance.h"
#include "runtime/device/identity.h"
#include "runtime/device/simulate.h"
#include "runtime/log/log.h"
#include "vmlinux/ioctl_table.h"
#include "vmlinux/neuron_args.h"

#define TAG "TDRV"
#define OLDEST_MAJOR 2u /* driver 2.24: the oldest whose requests vmlinux/ioctl_table.def knows */
#define OLDEST_MINOR 24u

/* Compatibility ids of a runtime of version 2.31, per architecture. */
static const struct {
	uint32_t arch, low, high;
} compatible[] = {
	{DEVICE_ARCH_V2, 6, 6},
	{DEVICE_ARCH_V3, 10, 11},
	{DEVICE_ARCH_V4, 10, 11},
};

/* ---- pure --------------------------------------------------------------------------------- */

enum negotiate_verdict negotiate_range(uint32_t arch, uint32_t min, uint32_t max, uint32_t *ret_id)
{
	for (size_t i = 0; i < sizeof(compatible) / sizeof(compatible[0]); i++) {
		if (compatible[i].arch != arch)
			continue;
		*ret_id = compatible[i].low;
		if (compatible[i].low < min)
			return NEGOTIATE_RUNTIME_OLD;
		*ret_id = compatible[i].high;
		return compatible[i].high > max ? NEGOTIATE_DRIVER_OLD : NEGOTIATE_OK;
	}
	*ret_id = 0;
	return NEGOTIATE_ARCH;
}

static bool parse_part(const char **text, uint32_t *ret)
{
	char *end;
	unsigned long n;

	if (!isdigit((unsigned char)**text))
		return false;
	n = strtoul(*text, &end, 10);
	if (n > UINT16_MAX)
		return false;
	*ret = (uint32_t)n;
	*text = end;
	return true;
}

bool negotiate_parse_version(const char *text, uint32_t *ret_major, uint32_t *ret_minor)
{
	uint32_t major, minor;

	if (!parse_part(&text, &major) || *text++ != '.' || !parse_part(&text, &minor))
		return false;
	*ret_major = major;
	*ret_minor = minor;
	return true;
}

/* ---- a driver that is only just good enough ----------------------------------------------- */

static bool is_before(const struct device_driver *d, uint32_t major, uint32_t minor)
{
	return d->major < major || (d->major == major && d->minor < minor);
}

static void check_age(const struct device_system *s)
{
	const struct device_driver *d = &s->driver;
	char what[64];

	if (is_before(d, OLDEST_MAJOR, OLDEST_MINOR))
		(void)snprintf(what, sizeof(what), ", before %u.%u", OLDEST_MAJOR, OLDEST_MINOR);
	else if (!d->has_features || forms_old(&s->forms))
		(void)snprintf(what, sizeof(what), " without %s",
			d->has_features ? "newer requests" : "feature flags");
	else
		return;
	log_warn("NRT",
		"The Neuron driver is old: version %u.%u%s. Please upgrade aws-neuronx-dkms",
		d->major, d->minor, what);
}

/* ---- the driver --------------------------------------------------------------------------- */

static NRT_STATUS check_version_text(const char *root, struct device_driver *ret)
{
	_cleanup_free_ char *text = device_read_text(root, "/sys/module/neuron/version");

	if (!text || !negotiate_parse_version(text, &ret->major, &ret->minor)) {
		log_error("NRT", "Unable to determine Neuron Driver version. Please check "
				 "aws-neuron-dkms package is installed.");
		return NRT_INVALID;
	}
	log_info("NRT", "Found neuron driver: %u.%u", ret->major, ret->minor);
	if (ret->major <= 1) {
		log_error("NRT", "Neuron Runtime 2.x requires Neuron driver(aws-neuron-dkms) "
				 "version 2.1 or above.");
		return NRT_INVALID;
	}
	return NRT_SUCCESS;
}

static void say_incompatible(
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
}

static NRT_STATUS read_range(const struct device_system *s, struct neuron_compatible_version *ret)
{
	struct neuron_compatible_version range = {0};
	int rc = device_ioctl(&s->query, NEURON_IOCTL_COMPATIBLE_VERSION, &range);

	if (rc < 0) {
		log_error("NRT", "Unable to read compatible Driver version.");
		log_error("NRT", "Please check /dev/neuron# is accessible. If you're using "
				 "containers, please "
				 "ensure Neuron Devices are passed to the container by specifying "
				 "`--device /dev/neuron#`.");
		log_error(TAG, "nd%u answered: %s", s->query.index, device_strerror(rc));
		return NRT_INVALID;
	}
	*ret = range;
	return NRT_SUCCESS;
}

static NRT_STATUS check_range(
	const struct device_system *s, const struct neuron_compatible_version *range)
{
	static const char *const packages[] = {
		[NEGOTIATE_RUNTIME_OLD] = "aws-neuronx-runtime-lib and aws-neuronx-collectives",
		[NEGOTIATE_DRIVER_OLD] = "aws-neuronx-dkms",
	};
	enum negotiate_verdict verdict;
	uint32_t id;

	verdict = negotiate_range(s->arch, range->min, range->max, &id);
	if (verdict == NEGOTIATE_OK)
		return NRT_SUCCESS;
	if (verdict == NEGOTIATE_ARCH)
		log_error(TAG,
			"Architecture %u is not supported, only 2 (Trn1, Inf2), 3 (Trn2) and 4 "
			"(Trn3)",
			s->arch);
	else
		say_incompatible(id, range, packages[verdict]);
	return NRT_INVALID;
}

/* A driver that does not answer has none of the newer requests. */
static void ask_features(struct device_system *s)
{
	struct neuron_device_driver_info info = {.size = sizeof(info)};

	if (device_ioctl(&s->query, NEURON_IOCTL_DRIVER_INFO_GET, &info) == 0) {
		s->driver.has_features = true;
		s->driver.features = info.feature_flags1;
	}
	forms_deny(&s->forms, s->driver.has_features, s->driver.features);
}

static void say_machine(const struct device_system *s)
{
	char id[INSTANCE_ID_BYTES];
	struct identity what;

	instance_read_id(s->root, NULL, id);
	identity_read(s, &what);
	log_info(TAG, "Instance ID: %s, type %s, %s revision %s", id,
		what.type[0] ? what.type : "unknown", what.arch_name, what.revision);
}

NRT_STATUS device_negotiate(struct device_system *s)
{
	struct neuron_compatible_version range;
	NRT_STATUS status;
	int rc;

	if (s->topology.simulated) {
		simulate_negotiate(s);
		say_machine(s);
		return NRT_SUCCESS;
	}
	status = device_open_kept(s, s->topology.first_index, O_WRONLY, &s->query);
	if (!status)
		status = check_version_text(s->root, &s->driver);
	if (!status)
		status = read_range(s, &range);
	if (status)
		return status;
	ask_features(s);
	rc = device_board_info(s, &s->arch, &s->revision);
	if (rc < 0) {
		log_error(TAG, "Failed to identify hw platform");
		log_error(TAG, "nd%u answered: %s", s->query.index, device_strerror(rc));
		return NRT_INVALID;
	}
	status = check_range(s, &range);
	if (status)
		return status;
	check_age(s);
	say_machine(s);
	return NRT_SUCCESS;
}
