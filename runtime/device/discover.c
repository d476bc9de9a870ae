/* SPDX-License-Identifier: Apache-2.0 */
/*
 * discover.c - which devices there are, and opening them.
 *
 * Nothing is opened to find devices: names below dev/, attributes below sys/.
 */
#include "runtime/device/device.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/env.h"
#include "runtime/base/file.h"
#include "runtime/device/simulate.h"
#include "runtime/log/log.h"

#define TAG "TDRV"
#define OPEN_TRIES 64 /* of an open that signals interrupt */

char *device_read_text(const char *root, const char *path)
{
	char full[PATH_MAX];
	char *text;
	size_t size;
	int n = snprintf(full, sizeof(full), "%s%s", root, path);

	if (n < 0 || (size_t)n >= sizeof(full) || file_read_attribute(full, 4096, &text, &size) < 0)
		return NULL;
	return text;
}

/* ---- cores of a device -------------------------------------------------------------------- */

/* What core_count says; -EINVAL when that is no number of cores, or the errno of reading it. */
static int read_core_count(const char *root, uint32_t index, uint32_t *ret)
{
	_cleanup_free_ char *text = NULL;
	char path[PATH_MAX];
	unsigned long cores;
	size_t size;
	char *end;
	int rc, n = snprintf(path, sizeof(path), "%s/sys/class/neuron_device/neuron%u/core_count",
			root, index);

	rc = n < 0 || (size_t)n >= sizeof(path) ? -ENAMETOOLONG
						: file_read_attribute(path, 64, &text, &size);
	if (rc < 0)
		return rc;
	cores = strtoul(text, &end, 10);
	if (text[0] < '0' || text[0] > '9' || (*end && *end != '\n') || cores == 0 ||
		cores > CORES_MAX_PER_DEVICE)
		return -EINVAL;
	*ret = (uint32_t)cores;
	return 0;
}

/* The cores have a directory each.  Driver 2.24 shows core_count to root alone, but these to all. */
static uint32_t count_core_directories(const char *root, uint32_t index)
{
	char path[PATH_MAX];
	uint32_t cores = 0;

	for (; cores < CORES_MAX_PER_DEVICE; cores++) {
		int n = snprintf(path, sizeof(path),
			"%s/sys/class/neuron_device/neuron%u/neuron_core%u", root, index, cores);

		if (n < 0 || (size_t)n >= sizeof(path) || access(path, F_OK) < 0)
			break;
	}
	return cores;
}

static NRT_STATUS find_core_count(const char *root, uint32_t index, uint32_t *ret)
{
	int rc = read_core_count(root, index, ret);

	if (rc == 0)
		return NRT_SUCCESS;
	*ret = count_core_directories(root, index);
	if (*ret)
		return NRT_SUCCESS;
	static_assert(CORES_MAX_PER_DEVICE == 8, "the text says so");
	log_error(TAG,
		"Cannot read the number of cores of '%s/dev/neuron%u' from "
		"'%s/sys/class/neuron_device/neuron%u/core_count': %s%s",
		root, index, root, index,
		rc == -EINVAL ? "it holds no number from 1 to 8" : strerror(-rc),
		rc == -ENOENT ? ". Is sysfs mounted and the neuron driver loaded?" : "");
	return NRT_INVALID;
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

/* ---- devices ------------------------------------------------------------------------------ */

static NRT_STATUS refuse_real(const char *root, uint32_t index)
{
	log_error(TAG,
		"'%s/dev/neuron%u' is a real device, and this library would disturb what runs on "
		"it. Set " ENV_DEVICE_ROOT " to the directory of a virtual device (ntrace-vdev), "
		"or " ENV_ALLOW_DEVICE "=1 to use it all the same",
		root, index);
	return NRT_INVALID;
}

/* why: errno of looking for them. */
static NRT_STATUS no_device(const char *root, int why)
{
	if (why == ENOTCONN)
		log_error(TAG,
			"The virtual device at '%.400s' has died; start it again (ntrace-vdev)",
			root);
	else if (why == EACCES)
		log_error(TAG, "No neuron device available: uid %u may not look into '%.400s/dev'",
			(unsigned)geteuid(), root);
	else
		log_error(TAG,
			"No neuron device available below '%.400s/dev'. `ntrace-vdev -- CMD` runs "
			"CMD "
			"on a virtual device; " ENV_DEVICE_ROOT " names one that is running",
			root);
	log_error("NRT", "Cannot find Neuron devices. Machines that have them are instances of "
			 "types such as trn2, inf2 or trn1.");
	log_error("NRT", "How devices are found, and which settings choose them: "
			 "docs/environment.md, \"How devices are found\" (installed: in "
			 "share/doc/ntrace)");
	log_error("NRT", "What the vendor's library does, and what is different here: "
			 "docs/conformance.md, \"Discovery and identity\"");
	return NRT_INVALID;
}

/* Has a path that looks like a device another file at it? */
static bool is_odd(const struct stat *st)
{
	return !S_ISCHR(st->st_mode) && !S_ISREG(st->st_mode);
}

static void warn_of_odd(const char *root, uint32_t index, const struct device_topology *t)
{
	log_write(t->present ? LOG_LEVEL_WARN : LOG_LEVEL_ERROR, TAG, __func__,
		"'%s/dev/neuron%u' is not used: it is neither a character device nor a file of a "
		"virtual device",
		root, index);
}

/* Sets the bits of the devices that there are.  0, or the errno that says most about why there are none. */
static int list_devices(const char *root, struct device_topology *t)
{
	uint32_t odd = DEVICE_MAX;
	int why = 0;

	t->is_virtual = true;
	for (uint32_t i = 0; i < DEVICE_MAX; i++) {
		char path[PATH_MAX];
		struct stat st;
		int n = snprintf(path, sizeof(path), "%s/dev/neuron%u", root, i);

		if (n < 0 || (size_t)n >= sizeof(path))
			continue;
		if (stat(path, &st) < 0) {
			if (errno == ENOTCONN || errno == EACCES)
				why = errno;
			continue;
		}
		if (is_odd(&st)) {
			odd = i;
			continue;
		}
		t->present |= 1ull << i;
		if (S_ISCHR(st.st_mode))
			t->is_virtual = false;
	}
	if (odd < DEVICE_MAX)
		warn_of_odd(root, odd, t);
	return why;
}

/* The run of devices that can be used. */
static void find_run(struct device_topology *t)
{
	uint64_t behind;

	t->first_index = (uint32_t)__builtin_ctzll(t->present);
	behind = t->present >> t->first_index;
	t->device_count = ~behind ? (uint32_t)__builtin_ctzll(~behind) : DEVICE_MAX;
}

static void warn_of_gap(const char *root, const struct device_topology *t)
{
	uint32_t next = t->first_index + t->device_count;
	uint64_t behind = next < DEVICE_MAX ? t->present >> next : 0;

	if (behind)
		log_warn(TAG,
			"There is no '%s/dev/neuron%u', but %d devices behind it: they are not "
			"used, for cores are counted without a gap",
			root, next, __builtin_popcountll(behind));
}

NRT_STATUS device_discover(const struct device_place *place, struct device_topology *ret)
{
	struct device_topology t = {0};
	NRT_STATUS status;
	int why;

	if (simulate_wanted(place))
		return simulate_topology(place->fake_instance, ret);
	why = list_devices(place->root, &t);
	if (t.present == 0)
		return no_device(place->root, why);
	find_run(&t);
	if (!t.is_virtual && !place->allow_real)
		return refuse_real(place->root, t.first_index);
	status = find_core_count(place->root, t.first_index, &t.cores_per_device);
	t.arch = read_arch(place->root, t.first_index, t.cores_per_device);
	if (!status)
		*ret = t;
	return status;
}

NRT_STATUS device_find(struct device_system *s)
{
	const struct device_place place = {
		.root = s->root, .allow_real = s->allow_real, .fake_instance = s->fake_instance};
	NRT_STATUS status = device_discover(&place, &s->topology);

	simulate_warn_ignored(&place);
	if (status)
		return status;
	warn_of_gap(s->root, &s->topology);
	s->is_virtual = s->topology.is_virtual;
	return NRT_SUCCESS;
}

/* ---- opening ------------------------------------------------------------------------------ */

/* What an errno of open means for a device, and what to do. */
static const struct {
	int error;
	const char *means;
} open_errors[] = {
	{EACCES, "Give this user access to it: the driver's package has a udev rule that makes "
		 "it 0666"},
	{EPERM, "In a container, pass the device to it: `--device /dev/neuron#`"},
	{ENOENT, "Is /dev/neuron# visible to this process? In a container, pass it: `--device "
		 "/dev/neuron#`"},
	{ENXIO, "The neuron driver does not serve it; is it loaded?"},
	{ENODEV, "The neuron driver does not serve it; is it loaded?"},
	{EBUSY, "The driver lets 16 processes use a device; end one of them"},
	{EINVAL, "The last reset of the device failed; the kernel log has more"},
	{ENFILE, "The machine has as many files open as it may (fs.file-max)"},
	{EINTR, "A signal ended the wait for its reset"},
	{ENOTCONN, "The virtual device has died; start it again (ntrace-vdev)"},
	{ECONNABORTED, "The virtual device has died; start it again (ntrace-vdev)"},
	{EMFILE, "This process has as many files open as it may (ulimit -n)"},
};

static const char *meaning_of(int error)
{
	for (size_t i = 0; i < sizeof(open_errors) / sizeof(open_errors[0]); i++)
		if (open_errors[i].error == error)
			return open_errors[i].means;
	return "The kernel log may have more";
}

void device_say_not_opened(
	enum log_level level, const struct device_system *s, uint32_t index, int error)
{
	char path[PATH_MAX + 32];
	struct stat st;

	(void)snprintf(path, sizeof(path), "%s/dev/neuron%u", s->root, index);
	if ((error == EACCES || error == EPERM) && stat(path, &st) == 0)
		log_write(level, TAG, __func__,
			"Could not open the nd%u: %s. '%s' has mode %04o, owner %u, group %u; this "
			"process has uid %u, gid %u. %s",
			index, strerror(error), path, (unsigned)st.st_mode & 07777u,
			(unsigned)st.st_uid, (unsigned)st.st_gid, (unsigned)geteuid(),
			(unsigned)getegid(), meaning_of(error));
	else
		log_write(level, TAG, __func__, "Could not open the nd%u: %s. '%s': %s", index,
			strerror(error), path, meaning_of(error));
}

/* A signal may come at any time, and a driver that waits for a reset leaves then.  A blocked SIGTERM makes
 * it leave each time, so this does not go on for ever. */
static int open_patiently(const char *path, int flags)
{
	int fd = -1;

	for (int i = 0; i < OPEN_TRIES && fd < 0; i++) {
		fd = open(path, flags | O_CLOEXEC);
		if (fd < 0 && errno != EINTR)
			break;
	}
	return fd;
}

/* Not at a number where the program's output goes, or that the program fills anew. */
static int open_high(const char *path, int flags)
{
	struct standard_fds standard;
	int fd, rc = standard_fds_hold(&standard);

	if (rc < 0) {
		errno = -rc;
		return -1;
	}
	fd = open_patiently(path, flags);
	standard_fds_release(&standard);
	return fd;
}

NRT_STATUS device_open(struct device_system *s, uint32_t index, int flags, int *ret_fd)
{
	_cleanup_close_ int fd = -1;
	char path[PATH_MAX];
	struct stat st;
	int n = snprintf(path, sizeof(path), "%s/dev/neuron%u", s->root, index);

	if (n >= 0 && (size_t)n < sizeof(path))
		fd = open_high(path, flags);
	else
		errno = ENAMETOOLONG;
	s->open_error = fd < 0 || fstat(fd, &st) < 0 ? errno : 0;
	if (s->open_error) {
		device_say_not_opened(s->open_quietly ? LOG_LEVEL_DEBUG : LOG_LEVEL_ERROR, s, index,
			s->open_error);
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
	struct device_system *s, uint32_t index, int flags, struct device_file *ret_file)
{
	struct device_file file = {
		.index = index, .allow_reset = s->allow_reset, .owner = getpid(), .kept.fd = -1};
	NRT_STATUS status = NRT_SUCCESS;
	struct stat st;
	int fd, rc;

	file.simulated = s->topology.simulated;
	if (!file.simulated)
		status = device_open(s, index, flags, &fd);
	if (!status && !file.simulated) {
		file.is_real = fstat(fd, &st) < 0 || S_ISCHR(st.st_mode);
		rc = kept_fd_know(&file.kept, fd);
		if (rc < 0) {
			log_error(TAG, "Could not keep the nd%u open: %s", index, strerror(-rc));
			status = NRT_RESOURCE;
		}
	}
	*ret_file = file;
	return status;
}

void device_close(struct device_file *file)
{
	kept_fd_close(&file->kept);
}
