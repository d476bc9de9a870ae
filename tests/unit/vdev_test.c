/* SPDX-License-Identifier: Apache-2.0 */
/* vdev_test.c - the built ntrace-vdev under raw ioctl clients: requests, handles, processes,
 * memory. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/base/file.h"
#include "tests/shim/shim.h"
#include "tests/unit/vdev_harness.h"
#include "vmlinux/ioctl_table.h"
#include "vmlinux/neuron_args.h"

#define _run_ _cleanup_(vdev_run_end)
#define BAD_POINTER ((void *)8)

/* ---- what it says it is ------------------------------------------------------------------ */

TEST("vdev: identity requests of both generations", "[vdev]")
{
	NEED_VDEV();
	static const struct {
		const char *arch;
		unsigned number, min, max, devices, neighbours, last_routing;
	} rows[] = {{"v2", 2, 5, 7, 1, 0, 0}, {"v3", 3, 10, 11, 16, 4, 5}};

	for (size_t i = 0; i < 2; i++) {
		_run_ struct vdev_run run = {0};
		_cleanup_close_ int fd = -1;
		struct neuron_device_info info;
		struct neuron_device_basic_info basic;
		struct neuron_compatible_version version;
		struct neuron_device_driver_info driver;
		struct neuron_device_bdf_ext bdf = {.nd_index = rows[i].devices - 1};
		struct neuron_host_device_id_to_rid_map map;
		uint32_t id[2] = {77, 0xabcd};
		char devices[8];

		snprintf(devices, sizeof(devices), "%u", rows[i].devices);
		REQUIRE(vdev_run_start(&run,
			(const char *[]){"--arch", rows[i].arch, "--devices", devices, NULL}));
		fd = vdev_open(&run, 0, O_RDWR);
		REQUIRE(fd >= 0);
		REQUIRE_EQ(vdev_call(fd, NEURON_IOCTL_DEVICE_INFO, &info), 0);
		CHECK_EQ(info.architecture, rows[i].number);
		CHECK_EQ(info.connected_device_count, rows[i].neighbours);
		if (rows[i].neighbours) {
			CHECK_EQ(info.connected_devices[0], 12);
			CHECK_EQ(info.connected_devices[1], 1);
			CHECK_EQ(info.connected_devices[2], 3);
			CHECK_EQ(info.connected_devices[3], 4);
		}
		CHECK(info.bar_size[0] >= 1u << 30);
		REQUIRE_EQ(vdev_call(fd, NEURON_IOCTL_DEVICE_BASIC_INFO, &basic), 0);
		CHECK_EQ(basic.architecture, rows[i].number);
		REQUIRE_EQ(vdev_call(fd, NEURON_IOCTL_COMPATIBLE_VERSION, &version), 0);
		CHECK_EQ(version.max, rows[i].max);
		CHECK_EQ(version.min, rows[i].min);
		REQUIRE_EQ(vdev_call(fd, NEURON_IOCTL_DRIVER_INFO_GET, &driver), 0);
		CHECK_EQ(driver.size, sizeof(driver));
		CHECK_EQ(vdev_call(fd, NEURON_IOCTL_DRIVER_INFO_SET, &driver), -524);
		REQUIRE_EQ(vdev_call(fd, NEURON_IOCTL_DEVICE_BDF_EXT, &bdf), 0);
		bdf.nd_index++;
		CHECK_EQ(vdev_call(fd, NEURON_IOCTL_DEVICE_BDF_EXT, &bdf), -EINVAL);
		/* Four bytes are the answer; what stands behind them stays. */
		REQUIRE_EQ(vdev_call(fd, NEURON_IOCTL_HOST_DEVICE_ID, id), 0);
		CHECK_EQ(id[0], 0);
		CHECK_EQ(id[1], 0xabcd);
		REQUIRE_EQ(vdev_call(fd, NEURON_IOCTL_HOST_DEVICE_ID_TO_RID_MAP, &map), 0);
		CHECK_EQ(map.count, rows[i].devices);
		CHECK_EQ(map.host_did_to_rid_map[rows[i].devices - 1], rows[i].last_routing);
	}
}

static char *read_attribute(const struct vdev_run *run, const char *path)
{
	char full[160], *text = NULL;
	size_t size;

	snprintf(full, sizeof(full), "%s/%s", run->root, path);
	return file_read(full, 4096, &text, &size) < 0 ? strdup("(missing)") : text;
}

TEST("vdev: discovery attributes read as the driver's sysfs", "[vdev]")
{
	NEED_VDEV();
	static const struct {
		const char *path, *text;
	} rows[] = {
		{"sys/module/neuron/version", "2.30.2.0\n"},
		{"sys/class/neuron_device/neuron1/core_count", "4"},
		{"sys/class/neuron_device/neuron1/connected_devices", "\n"},
		{"sys/class/neuron_device/neuron0/info/architecture/arch_type", "NDv3\n"},
		{"sys/class/neuron_device/neuron0/info/architecture/instance_type", "Trn2\n"},
		{"sys/class/neuron_device/neuron0/info/architecture/device_name", "Trainium2\n"},
		{"sys/class/neuron_device/neuron0/neuron_core3/info/architecture/arch_type",
			"NCv3\n"},
		{"sys/class/neuron_device/neuron2/core_count", "(missing)"},
		{"sys/class/neuron_device/neuron0/neuron_core4/info/architecture/arch_type",
			"(missing)"},
	};
	_run_ struct vdev_run run = {0};
	char path[96];

	REQUIRE(vdev_run_start(&run, (const char *[]){"--devices", "2", "--cores", "4",
					     "--driver-version", "2.30.2.0", NULL}));
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		_cleanup_free_ char *text = read_attribute(&run, rows[i].path);

		test_info("%s", rows[i].path);
		CHECK_STR(text, rows[i].text);
	}
	/* Nothing can be made or removed in it. */
	snprintf(path, sizeof(path), "%s/dev/new", run.root);
	CHECK(open(path, O_CREAT | O_RDWR, 0600) < 0 && errno == EPERM);
	snprintf(path, sizeof(path), "%s/dev/neuron0", run.root);
	CHECK(unlink(path) < 0 && errno == EPERM);
}

/* ---- refusals ---------------------------------------------------------------------------- */

TEST("vdev: what the driver refuses is refused", "[vdev]")
{
	NEED_VDEV();
	static const struct {
		const char *what;
		unsigned long cmd;
		int result;
	} rows[] = {
		{"unknown number of the driver's type", 0x80084ef0u, -EINVAL},
		{"known number with another size", 0x80184e18u, -EINVAL},
		{"another type", 0x80087410u, -EINVAL},
		{"zero copy", NEURON_IOCTL_MEM_BUF_ZEROCOPY64, -EINVAL},
		{"queue information", NEURON_IOCTL_NOTIFICATIONS_QUEUE_INFO, -EPERM},
		{"quiesce", NEURON_IOCTL_DMA_QUIESCE_QUEUES, -ENOTTY},
		{"semaphores", NEURON_IOCTL_SEMAPHORE_READ, -EINVAL},
	};
	_run_ struct vdev_run run = {0};
	_cleanup_close_ int fd = -1;
	uint8_t arg[512] = {0};

	REQUIRE(vdev_run_start(&run, NULL));
	fd = vdev_open(&run, 0, O_RDWR);
	REQUIRE(fd >= 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		test_info("%s", rows[i].what);
		CHECK_EQ(vdev_call(fd, rows[i].cmd, arg), rows[i].result);
	}
	CHECK_EQ(vdev_stat(&run, "ioctls_total"), sizeof(rows) / sizeof(rows[0]));
	CHECK_EQ(vdev_stat(&run, "ioctl_errors"), sizeof(rows) / sizeof(rows[0]));
	CHECK_EQ(vdev_stat(&run, "ioctl.UNKNOWN"), 3);
	CHECK_EQ(vdev_stat(&run, "ioctl.SEMAPHORE_READ"), 1);
	CHECK_EQ(vdev_stat(&run, "open_handles"), 1);
	/* It is no file to read, write or map. */
	CHECK(read(fd, arg, 1) < 0 && errno == EINVAL);
	CHECK(write(fd, arg, 1) < 0 && errno == EINVAL);
	CHECK(mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED);
	CHECK_EQ(vdev_open(&run, 1, O_RDWR), -ENOENT);
}

TEST("vdev: bad pointers give EFAULT, wherever they are", "[vdev]")
{
	NEED_VDEV();
	_run_ struct vdev_run run = {0};
	_cleanup_close_ int fd = -1;
	uint64_t handle;
	uint32_t word;

	REQUIRE(vdev_run_start(&run, NULL));
	fd = vdev_open(&run, 0, O_RDWR);
	REQUIRE(fd >= 0);
	REQUIRE_EQ(vdev_alloc(fd, 8192, &handle), 0);
	/* the argument itself: all reading, all writing, both */
	CHECK_EQ(vdev_call(fd, NEURON_IOCTL_MEM_FREE, BAD_POINTER), -EFAULT);
	CHECK_EQ(vdev_call(fd, NEURON_IOCTL_COMPATIBLE_VERSION, BAD_POINTER), -EFAULT);
	CHECK_EQ(vdev_call(fd, NEURON_IOCTL_MEM_BUF_COPY64, BAD_POINTER), -EFAULT);
	CHECK_EQ(vdev_call(fd, NEURON_IOCTL_DEVICE_INFO, BAD_POINTER), -EFAULT);
	/* pointers in it */
	struct neuron_mem_alloc alloc = {.size = 4096, .mem_handle = 8};
	struct neuron_mem_get_info info = {.mem_handle = handle, .mmap_offset = 8, .pa = 8};
	struct neuron_bar_rw bar = {.address = 8, .data = (uintptr_t)&word, .count = 1};
	struct neuron_post_metric metric = {.data = 8, .data_size = 64};
	struct neuron_printk message = {.buffer = 8, .size = 64};

	CHECK_EQ(vdev_call(fd, NEURON_IOCTL_MEM_ALLOC, &alloc), -EFAULT);
	CHECK_EQ(vdev_stat(&run, "allocations"), 1); /* nothing leaked */
	CHECK_EQ(vdev_call(fd, NEURON_IOCTL_MEM_GET_INFO, &info), -EFAULT);
	CHECK_EQ(vdev_call(fd, NEURON_IOCTL_BAR_READ, &bar), -EFAULT);
	CHECK_EQ(vdev_call(fd, NEURON_IOCTL_POST_METRIC, &metric), -EFAULT);
	CHECK_EQ(vdev_call(fd, NEURON_IOCTL_PRINTK, &message), -EFAULT);
	CHECK_EQ(vdev_write(fd, handle, 0, BAD_POINTER, 100), -EFAULT);
	CHECK_EQ(vdev_read(fd, handle, 0, BAD_POINTER, 100), -EFAULT);
	/* a buffer whose second page is missing */
	uint8_t *pages =
		mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	REQUIRE(pages != MAP_FAILED);
	munmap(pages + 4096, 4096);
	CHECK_EQ(vdev_write(fd, handle, 0, pages, 8192), -EFAULT);
	CHECK_EQ(vdev_write(fd, handle, 0, pages, 4096), 0);
	munmap(pages, 4096);
	CHECK_EQ(vdev_write(fd, handle, 0, BAD_POINTER, 0), 0); /* no byte, no fault */
	CHECK_EQ(vdev_stat(&run, "bytes_to_device"), 4096);
}

TEST("vdev: a write-only handle answers only what the driver's query handle answers", "[vdev]")
{
	NEED_VDEV();
	_run_ struct vdev_run run = {0};
	_cleanup_close_ int fd = -1;
	struct neuron_device_basic_info basic;
	uint8_t arg[264] = {0};
	uint64_t handle;

	REQUIRE(vdev_run_start(&run, NULL));
	fd = vdev_open(&run, 0, O_WRONLY);
	REQUIRE(fd >= 0);
	CHECK_EQ(vdev_call(fd, NEURON_IOCTL_DEVICE_BASIC_INFO, &basic), 0);
	CHECK_EQ(vdev_call(fd, NEURON_IOCTL_DRIVER_INFO_GET, arg), 0);
	CHECK_EQ(vdev_call(fd, NEURON_IOCTL_DEVICE_INFO, arg), -EINVAL);
	CHECK_EQ(vdev_call(fd, NEURON_IOCTL_NC_RESET, arg), -EINVAL);
	CHECK_EQ(vdev_alloc(fd, 4096, &handle), -EINVAL);
	CHECK_EQ(vdev_call(fd, NEURON_IOCTL_MEM_FREE, arg), -EINVAL);
	/* It attaches nobody: */
	CHECK_EQ(vdev_call(fd, NEURON_IOCTL_DRIVER_INFO_SET, arg), -EACCES);
}

/* ---- processes --------------------------------------------------------------------------- */

struct inherited {
	int fd;
	uint64_t handle;
};

static int child_on_inherited_handle(void *arg)
{
	const struct inherited *in = arg;
	struct neuron_mem_free free_arg = {.mem_handle = in->handle};
	struct neuron_mem_alloc old = {.size = 4096, .mem_handle = (uintptr_t)&old.size};
	struct neuron_device_info info;
	uint64_t handle;
	char byte = 0;

	if (vdev_call(in->fd, NEURON_IOCTL_MEM_FREE, &free_arg) != -EACCES ||
		vdev_call(in->fd, NEURON_IOCTL_MEM_ALLOC, &old) != -EACCES)
		return 1;
	if (vdev_alloc(in->fd, 4096, &handle) != -EACCES) /* the driver would BUG() */
		return 2;
	if (vdev_read(in->fd, in->handle, 0, &byte, 1) != -EINVAL)
		return 3;
	if (vdev_call(in->fd, NEURON_IOCTL_DEVICE_INFO, &info) != 0)
		return 4;
	close(in->fd); /* not the parent's close */
	return 0;
}

TEST("vdev: a forked child is a stranger on the inherited handle", "[vdev]")
{
	NEED_VDEV();
	_run_ struct vdev_run run = {0};
	struct inherited in = {-1, 0};

	REQUIRE(vdev_run_start(&run, NULL));
	in.fd = vdev_open(&run, 0, O_RDWR);
	REQUIRE(in.fd >= 0);
	REQUIRE_EQ(vdev_alloc(in.fd, 4096, &in.handle), 0);
	CHECK_EQ(vdev_in_child(child_on_inherited_handle, &in), 0);
	CHECK_EQ(vdev_stat(&run, "allocations"), 1);
	CHECK_EQ(vdev_write(in.fd, in.handle, 0, "x", 1), 0);
	close(in.fd);
	CHECK(vdev_stat_settles(&run, "allocations", 0));
}

static int child_with_own_handle(void *arg)
{
	const struct vdev_run *run = arg;
	int fd = vdev_open(run, 0, O_RDWR);
	struct neuron_mem_free free_arg = {.mem_handle = 1};
	uint64_t handle = 0;
	char byte;

	/* Handle 1 is the parent's. */
	if (vdev_read(fd, 1, 0, &byte, 1) != -EINVAL ||
		vdev_call(fd, NEURON_IOCTL_MEM_FREE, &free_arg) != -EINVAL)
		return 1;
	if (vdev_alloc(fd, 4096, &handle) != 0 || handle != 2)
		return 2;
	raise(SIGKILL);
	return 3;
}

TEST("vdev: memory belongs to its process and goes with it, also by kill -9", "[vdev]")
{
	NEED_VDEV();
	_run_ struct vdev_run run = {0};
	_cleanup_close_ int fd = -1;
	uint64_t handle = 0;

	REQUIRE(vdev_run_start(&run, NULL));
	fd = vdev_open(&run, 0, O_RDWR);
	REQUIRE(fd >= 0);
	REQUIRE_EQ(vdev_alloc(fd, 4096, &handle), 0);
	CHECK_EQ(handle, 1);
	CHECK_EQ(vdev_in_child(child_with_own_handle, &run), 128 + SIGKILL);
	CHECK_EQ(vdev_stat(&run, "allocations"), 1);
	CHECK_EQ(vdev_stat(&run, "allocated_bytes"), 4096);
}

TEST("vdev: the last close of a process releases, an earlier one does not", "[vdev]")
{
	NEED_VDEV();
	_run_ struct vdev_run run = {0};
	uint64_t handle = 0;
	int first, second;

	REQUIRE(vdev_run_start(&run, NULL));
	first = vdev_open(&run, 0, O_RDWR);
	second = vdev_open(&run, 0, O_RDWR);
	REQUIRE(first >= 0 && second >= 0);
	REQUIRE_EQ(vdev_alloc(first, 4096, &handle), 0);
	close(first);
	CHECK_EQ(vdev_write(second, handle, 0, "x", 1), 0);
	close(second);
	CHECK(vdev_stat_settles(&run, "allocations", 0));
}

struct holder {
	const struct vdev_run *run;
	int ready, go; /* pipes: the child's writing, the child's reading end */
};

static int hold_device(void *arg)
{
	const struct holder *h = arg;
	int fd = vdev_open(h->run, 0, O_RDWR);
	char byte;

	byte = fd < 0 ? (char)-fd : 0;
	if (write(h->ready, &byte, 1) != 1 || read(h->go, &byte, 1) < 0)
		return 1;
	return 0;
}

TEST("vdev: sixteen processes may attach, the seventeenth gets EBUSY", "[vdev]")
{
	NEED_VDEV();
	_run_ struct vdev_run run = {0};
	int ready[2], go[2], opened = 0, fd;
	pid_t pids[16];

	REQUIRE(vdev_run_start(&run, NULL));
	REQUIRE(pipe(ready) == 0 && pipe(go) == 0);
	for (int i = 0; i < 16; i++) {
		pids[i] = fork();
		if (pids[i] == 0) {
			close(go[1]);
			_exit(hold_device(&(struct holder){&run, ready[1], go[0]}));
		}
	}
	for (int i = 0; i < 16; i++) {
		char byte = 1;

		opened += read(ready[0], &byte, 1) == 1 && byte == 0;
	}
	CHECK_EQ(opened, 16);
	CHECK_EQ(vdev_open(&run, 0, O_RDWR), -EBUSY);
	fd = vdev_open(&run, 0, O_WRONLY); /* a query handle takes no place */
	CHECK(fd >= 0);
	close(fd);
	close(go[1]);
	for (int i = 0; i < 16; i++)
		waitpid(pids[i], NULL, 0);
	fd = vdev_open(&run, 0, O_RDWR);
	CHECK(fd >= 0);
	close(fd);
	close(go[0]);
	close(ready[0]);
	close(ready[1]);
}

/* ---- memory ------------------------------------------------------------------------------ */

TEST("vdev: all forms of allocation, numbered from 1, up to the device's memory", "[vdev]")
{
	NEED_VDEV();
	_run_ struct vdev_run run = {0};
	_cleanup_close_ int fd = -1;
	uint64_t h[6] = {0}, offset, pa;

	REQUIRE(vdev_run_start(&run, (const char *[]){"--memory", "1M", NULL}));
	fd = vdev_open(&run, 0, O_RDWR);
	REQUIRE(fd >= 0);
	struct neuron_mem_alloc old = {.size = 100, .mem_handle = (uintptr_t)&h[0]};
	struct neuron_mem_alloc_v2 v2 = {
		.size = 100, .align = 8192, .mem_handle = (uintptr_t)&h[1]};
	struct neuron_mem_alloc_v2mt mt = {
		.size = 100, .align = 65536, .dram_channel = 1, .mem_handle = (uintptr_t)&h[2]};
	struct neuron_mem_get_extended_info ext = {.mem_handle = 3};
	struct neuron_mem_get_info info = {
		.mem_handle = 4, .mmap_offset = (uintptr_t)&offset, .pa = (uintptr_t)&pa};
	struct neuron_mem_get_pa get_pa = {.mem_handle = 3, .pa = (uintptr_t)&pa};
	struct neuron_mem_free free_arg = {.mem_handle = 2};

	CHECK_EQ(vdev_call(fd, NEURON_IOCTL_MEM_ALLOC, &old), 0);
	CHECK_EQ(vdev_call(fd, NEURON_IOCTL_MEM_ALLOC_V2, &v2), 0);
	CHECK_EQ(vdev_call(fd, NEURON_IOCTL_MEM_ALLOC_V2MT, &mt), 0);
	mt.mem_handle = (uintptr_t)&h[3];
	mt.host_memory = 1;
	CHECK_EQ(vdev_call(fd, NEURON_IOCTL_MEM_ALLOC_V2MT64, &mt), 0);
	mt.mem_handle = (uintptr_t)&h[4];
	mt.host_memory = 0;
	CHECK_EQ(vdev_call(fd, NEURON_IOCTL_MEM_ALLOC_V2MT64_PA, &mt), 0);
	for (unsigned i = 0; i < 5; i++)
		CHECK_EQ(h[i], i + 1);
	CHECK_EQ(mt.pa % 65536, 0);
	CHECK_EQ(mt.pa >> 38, 1); /* second HBM of v3 */
	CHECK_EQ(mt.mem_handle, (uintptr_t)&h[4]);

	CHECK_EQ(vdev_call(fd, NEURON_IOCTL_MEM_GET_EXTENDED_INFO, &ext), 0);
	CHECK_EQ(ext.size, 100);
	CHECK_EQ(ext.pid, getpid());
	CHECK_EQ(ext.host_memory, 0);
	CHECK_EQ(vdev_call(fd, NEURON_IOCTL_MEM_GET_PA, &get_pa), 0);
	CHECK_EQ(pa, ext.pa);
	CHECK_EQ(vdev_call(fd, NEURON_IOCTL_MEM_GET_INFO, &info), 0);
	CHECK(pa & 0x400000000000ull); /* the host bit */
	CHECK_EQ(offset, pa);
	ext.mem_handle = 99;
	CHECK_EQ(vdev_call(fd, NEURON_IOCTL_MEM_GET_EXTENDED_INFO, &ext), EINVAL); /* positive */

	CHECK_EQ(vdev_alloc(fd, (1 << 20) - 5 * 4096, &h[5]), 0);
	CHECK_EQ(vdev_alloc(fd, 1, &h[5]), -ENOMEM);
	CHECK_EQ(vdev_call(fd, NEURON_IOCTL_MEM_FREE, &free_arg), 0);
	CHECK_EQ(vdev_call(fd, NEURON_IOCTL_MEM_FREE, &free_arg), -EINVAL);
	CHECK_EQ(vdev_alloc(fd, 1, &h[5]), 0);
	CHECK_EQ(h[5], 2); /* the free number is used again */
	CHECK_EQ(vdev_alloc(fd, 0, &h[5]), -EINVAL);
	CHECK_EQ(vdev_alloc(fd, UINT64_MAX, &h[5]), -ENOMEM);
	v2.align = 3000;
	CHECK_EQ(vdev_call(fd, NEURON_IOCTL_MEM_ALLOC_V2, &v2), -EINVAL);
}

static void fill_pattern(uint8_t *data, size_t size, unsigned seed)
{
	for (size_t i = 0; i < size; i++)
		data[i] = (uint8_t)(i * 31 + (i >> 8) + seed);
}

static int copy_old(int fd, uint64_t handle, uint32_t offset, void *data, uint32_t size, bool to)
{
	struct neuron_mem_buf_copy arg = {
		.mem_handle = handle,
		.buffer = (uintptr_t)data,
		.size = size,
		.offset = offset,
		.copy_to_mem_handle = to,
	};

	return vdev_call(fd, NEURON_IOCTL_MEM_BUF_COPY, &arg);
}

TEST("vdev: buffers of any size go in and out unchanged, by the old and the 64-bit form", "[vdev]")
{
	NEED_VDEV();
	static const uint32_t sizes[] = {0, 1, 3, 4095, 4097, 65535, 65536, 65537, 16u << 20};
	static const uint32_t offset = 5;
	_run_ struct vdev_run run = {0};
	_cleanup_close_ int fd = -1;
	_cleanup_free_ uint8_t *in = malloc(16 << 20);
	_cleanup_free_ uint8_t *out = malloc((16 << 20) + 1);
	uint64_t handle, total = 0;

	REQUIRE(in && out);
	REQUIRE(vdev_run_start(&run, NULL));
	fd = vdev_open(&run, 0, O_RDWR);
	REQUIRE(fd >= 0);
	REQUIRE_EQ(vdev_alloc(fd, (16 << 20) + offset, &handle), 0);
	for (unsigned i = 0; i < 2 * sizeof(sizes) / sizeof(sizes[0]); i++) {
		uint32_t size = sizes[i / 2];
		bool old = i % 2;

		test_info("size %u, %s", size, old ? "old" : "64");
		fill_pattern(in, size, i);
		memset(out, 0xee, size + 1);
		CHECK_EQ(old ? copy_old(fd, handle, offset, in, size, true)
			     : vdev_write(fd, handle, offset, in, size),
			0);
		CHECK_EQ(old ? copy_old(fd, handle, offset, out, size, false)
			     : vdev_read(fd, handle, offset, out, size),
			0);
		CHECK(memcmp(in, out, size) == 0);
		CHECK_EQ(out[size], 0xee);
		total += size;
	}
	CHECK_EQ(vdev_stat(&run, "bytes_to_device"), total);
	CHECK_EQ(vdev_stat(&run, "bytes_from_device"), total);
	CHECK_EQ(vdev_stat(&run, "ioctl.MEM_BUF_COPY"), 2 * sizeof(sizes) / sizeof(sizes[0]));
	CHECK_EQ(vdev_stat(&run, "ioctl.MEM_BUF_COPY64"), 2 * sizeof(sizes) / sizeof(sizes[0]));
	CHECK_EQ(vdev_stat(&run, "ioctl_errors"), 0);
	/* one byte too far, and numbers that wrap */
	CHECK_EQ(vdev_write(fd, handle, 0, in, (16 << 20) + offset + 1), -EINVAL);
	CHECK_EQ(vdev_write(fd, handle, offset + 1, in, 16 << 20), -EINVAL);
	CHECK_EQ(vdev_write(fd, handle, UINT64_MAX, in, 2), -EINVAL);
	CHECK_EQ(vdev_write(fd, handle, 1, in, UINT64_MAX), -EINVAL);
	CHECK_EQ(vdev_write(fd, handle + 1, 0, in, 1), -EINVAL);
	CHECK_EQ(vdev_write(fd, 0, 0, in, 1), -EINVAL);
}

TEST("vdev: copies between memories and fills, in all their forms", "[vdev]")
{
	NEED_VDEV();
	_run_ struct vdev_run run = {0};
	_cleanup_close_ int fd = -1;
	uint8_t data[256], got[256];
	uint64_t a, b;

	REQUIRE(vdev_run_start(&run, NULL));
	fd = vdev_open(&run, 0, O_RDWR);
	REQUIRE(fd >= 0);
	REQUIRE(vdev_alloc(fd, 256, &a) == 0 && vdev_alloc(fd, 256, &b) == 0);
	fill_pattern(data, sizeof(data), 1);
	REQUIRE_EQ(vdev_write(fd, a, 0, data, sizeof(data)), 0);
	struct neuron_mem_copy copy = {a, b, 100, 10, 20, 0};
	struct neuron_mem_copy64 copy64 = {
		.src_mem_handle = a, .dst_mem_handle = b, .size = 50, .src_offset = 3};
	struct neuron_memset set = {.mem_handle = b, .offset = 200, .value = 0x5a, .size = 8};
	struct neuron_memset64 set64 = {.mem_handle = b, .offset = 250, .value = 0xa5, .size = 6};

	CHECK_EQ(vdev_call(fd, NEURON_IOCTL_MEM_COPY, &copy), 0);
	REQUIRE_EQ(vdev_read(fd, b, 0, got, sizeof(got)), 0);
	CHECK(memcmp(got + 20, data + 10, 100) == 0);
	CHECK(got[19] == 0 && got[120] == 0);
	CHECK_EQ(vdev_call(fd, NEURON_IOCTL_MEM_COPY64_DEPRECATED, &copy64), 0);
	copy64.src_offset = 200;
	copy64.dst_offset = 150;
	CHECK_EQ(vdev_call(fd, NEURON_IOCTL_MEM_COPY64, &copy64), 0);
	CHECK_EQ(vdev_call(fd, NEURON_IOCTL_MEMSET, &set), 0);
	CHECK_EQ(vdev_call(fd, NEURON_IOCTL_MEMSET64, &set64), 0);
	REQUIRE_EQ(vdev_read(fd, b, 0, got, sizeof(got)), 0);
	CHECK(memcmp(got, data + 3, 50) == 0);
	CHECK(memcmp(got + 150, data + 200, 50) == 0);
	CHECK(got[200] == 0x5a && got[207] == 0x5a && got[208] == 0);
	CHECK(got[249] == 0 && got[250] == 0xa5 && got[255] == 0xa5);
	copy.size = 300;
	CHECK_EQ(vdev_call(fd, NEURON_IOCTL_MEM_COPY, &copy), -EINVAL);
	copy64.sequence_num = 1; /* would want a completion entry */
	CHECK_EQ(vdev_call(fd, NEURON_IOCTL_MEM_COPY64, &copy64), -EINVAL);
	set64.size = 7;
	CHECK_EQ(vdev_call(fd, NEURON_IOCTL_MEMSET64, &set64), -EINVAL);
}
