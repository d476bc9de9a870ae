/* SPDX-License-Identifier: Apache-2.0 */
/*
 * discover.c - which devices there are, opening them, and whether their driver fits.
 */
#include "runtime/device/device.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "runtime/base/env.h"
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

/* Reads a small text file below root; NULL when there is none.  The caller frees it. */
static char *read_text(const char *root, const char *path)
{
	char full[PATH_MAX];
	char *text;
	size_t size;
	int n = snprintf(full, sizeof(full), "%s%s", root, path);

	if (n < 0 || (size_t)n >= sizeof(full) || file_read(full, 4096, &text, &size) < 0)
		return NULL;
	return text;
}

static uint32_t read_core_count(const char *root, uint32_t index)
{
	_cleanup_free_ char *text = NULL;
	char path[80];
	unsigned long cores = 0;

	(void)snprintf(path, sizeof(path), "/sys/class/neuron_device/neuron%u/core_count", index);
	text = read_text(root, path);
	if (text)
		cores = strtoul(text, NULL, 10);
	return cores <= 8 ? (uint32_t)cores : 0;
}

static NRT_STATUS refuse_real(const char *root, uint32_t index)
{
	log_error(TAG,
		"'%s/dev/neuron%u' is a real device, and this library would disturb what runs on "
		"it. Set " ENV_DEVICE_ROOT " to the directory of a virtual device (ntrace-vdev), "
		"or " ENV_ALLOW_DEVICE "=1 to use it all the same",
		root, index);
	return NRT_INVALID;
}

/* dead: a file system is mounted at root that nobody serves any more. */
static NRT_STATUS no_device(const char *root, bool dead)
{
	if (dead)
		log_error(TAG, "The virtual device at '%s' has died; start it again (ntrace-vdev)",
			root);
	else
		log_error(TAG,
			"No neuron device available below '%s/dev'. `ntrace-vdev -- CMD` runs CMD "
			"on a virtual device; " ENV_DEVICE_ROOT " names one that is running",
			root);
	return NRT_INVALID;
}

NRT_STATUS device_discover(const char *root, bool allow_real, struct device_topology *ret)
{
	struct device_topology t = {.is_virtual = true};
	bool dead = false;

	for (uint32_t i = 0; i < DEVICE_MAX; i++) {
		char path[PATH_MAX];
		struct stat st;
		int n = snprintf(path, sizeof(path), "%s/dev/neuron%u", root, i);

		if (n < 0 || (size_t)n >= sizeof(path))
			continue;
		if (stat(path, &st) < 0) {
			dead |= errno == ENOTCONN;
			continue;
		}
		if (t.device_count++ == 0)
			t.first_index = i;
		if (S_ISCHR(st.st_mode))
			t.is_virtual = false;
	}
	if (t.device_count == 0)
		return no_device(root, dead);
	if (!t.is_virtual && !allow_real)
		return refuse_real(root, t.first_index);
	t.cores_per_device = read_core_count(root, t.first_index);
	if (t.cores_per_device == 0) {
		log_error(TAG, "Cannot read the number of cores of '%s/dev/neuron%u'", root,
			t.first_index);
		return NRT_INVALID;
	}
	*ret = t;
	return NRT_SUCCESS;
}

NRT_STATUS device_open(struct device_system *s, uint32_t index, int flags, int *ret_fd)
{
	_cleanup_close_ int fd = -1;
	char path[PATH_MAX];
	struct stat st;
	int n = snprintf(path, sizeof(path), "%s/dev/neuron%u", s->root, index);

	if (n >= 0 && (size_t)n < sizeof(path))
		fd = open(path, flags | O_CLOEXEC);
	else
		errno = ENAMETOOLONG;
	if (fd < 0 || fstat(fd, &st) < 0) {
		log_error(TAG, "Could not open the nd%u: %s", index, strerror(errno));
		return NRT_INVALID;
	}
	/* Another file may stand at the path than the one that was looked at before. */
	if (S_ISCHR(st.st_mode)) {
		if (!s->allow_real)
			return refuse_real(s->root, index);
		s->is_virtual = false;
	}
	*ret_fd = fd;
	fd = -1;
	return NRT_SUCCESS;
}

static NRT_STATUS check_version_text(const char *root)
{
	_cleanup_free_ char *text = read_text(root, "/sys/module/neuron/version");
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

NRT_STATUS device_negotiate(const char *root, const struct kept_fd *query, uint32_t *ret_arch)
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
