/* SPDX-License-Identifier: Apache-2.0 */
/*
 * discover.c - which devices there are, and opening them.
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

#define TAG "TDRV"

char *device_read_text(const char *root, const char *path)
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
	text = device_read_text(root, path);
	if (text)
		cores = strtoul(text, NULL, 10);
	return cores <= 8 ? (uint32_t)cores : 0;
}

/* "NCv3".  Where that cannot be read: the second architecture has two cores, the later ones eight. */
static uint32_t read_arch(const char *root, uint32_t index, uint32_t cores)
{
	_cleanup_free_ char *text = NULL;
	uint32_t arch;
	char path[96];

	(void)snprintf(path, sizeof(path),
		"/sys/class/neuron_device/neuron%u/neuron_core0/info/architecture/arch_type",
		index);
	text = device_read_text(root, path);
	if (text && sscanf(text, "NCv%u", &arch) == 1)
		return arch;
	return cores <= 2 ? DEVICE_ARCH_V2 : DEVICE_ARCH_V3;
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
	t.arch = read_arch(root, t.first_index, t.cores_per_device);
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

NRT_STATUS device_open_kept(
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

NRT_STATUS device_find(struct device_system *s)
{
	NRT_STATUS status = device_discover(s->root, s->allow_real, &s->topology);

	if (!status)
		s->is_virtual = s->topology.is_virtual;
	return status;
}
