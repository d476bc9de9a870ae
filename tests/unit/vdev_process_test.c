/* SPDX-License-Identifier: Apache-2.0 */
/* vdev_process_test.c - what a virtual device says of processes and of the machine: who is
 * attached, who has marked cores, datastores, pods, the map of cores, and the scrub of an HBM. */
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
#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

/* ---- a second process, kept until it is let go ------------------------------------------- */

struct other {
	pid_t pid;
	int go; /* closed: it ends */
	int ready;
};

static bool other_start(struct other *o, int (*fn)(void *), void *arg)
{
	int ready[2], go[2];
	char byte = 1;

	if (pipe2(ready, O_CLOEXEC) < 0 || pipe2(go, O_CLOEXEC) < 0)
		return false;
	o->pid = fork();
	if (o->pid == 0) {
		close(go[1]);
		byte = (char)fn(arg);
		if (write(ready[1], &byte, 1) != 1)
			_exit(1);
		_exit(read(go[0], &byte, 1) != 0);
	}
	close(ready[1]);
	close(go[0]);
	o->ready = ready[0];
	o->go = go[1];
	return read(o->ready, &byte, 1) == 1 && byte == 0;
}

static void other_end(struct other *o)
{
	close(o->go);
	close(o->ready);
	waitpid(o->pid, NULL, 0);
}

/* ---- who is attached --------------------------------------------------------------------- */

struct apps {
	struct neuron_apps_info head;
	struct neuron_app_info apps[NEURON_MAX_PROCESSES];
};

static int attach_and_allocate(void *arg)
{
	int fd = vdev_open(arg, 0, O_RDWR);
	uint64_t handle = 0;
	struct neuron_mem_alloc_v2mt host = {
		.size = 8192, .host_memory = 1, .mem_handle = (uintptr_t)&handle};

	return fd < 0 || vdev_alloc(fd, 12345, &handle) != 0 ||
	       vdev_call(fd, NEURON_IOCTL_MEM_ALLOC_V2MT64, &host) != 0;
}

TEST("vdev: the attached processes are listed, with their memory when that is asked for", "[vdev]")
{
	NEED_VDEV();
	_run_ struct vdev_run run = {0};
	_cleanup_close_ int fd = -1, query = -1;
	static struct apps got;
	struct other other;

	REQUIRE(vdev_run_start(&run, NULL));
	fd = vdev_open(&run, 0, O_RDWR);
	query = vdev_open(&run, 0, O_WRONLY);
	REQUIRE(fd >= 0 && query >= 0);
	REQUIRE(other_start(&other, attach_and_allocate, &run));
	got = (struct apps){.head = {.capacity = 16}};
	REQUIRE_EQ(vdev_call(fd, NEURON_IOCTL_DEVICE_GET_ALL_APPS_INFO, &got), 0);
	REQUIRE_EQ(got.head.size, 2);
	CHECK_EQ(got.apps[0].pid, getpid());
	CHECK_EQ(got.apps[1].pid, other.pid);
	CHECK_EQ(got.apps[1].device_mem_size, 0); /* not asked for */
	CHECK_EQ(got.apps[1].nc_lock_map, 0);
	got = (struct apps){.head = {.capacity = 16, .flags = NEURON_APPS_MEMORY}};
	REQUIRE_EQ(vdev_call(fd, NEURON_IOCTL_DEVICE_GET_ALL_APPS_INFO, &got), 0);
	CHECK_EQ(got.apps[0].device_mem_size, 0);
	CHECK_EQ(got.apps[1].device_mem_size, 12345);
	CHECK_EQ(got.apps[1].host_mem_size, 8192);
	/* No more than there is room for, and nothing behind it. */
	memset(&got, 0x55, sizeof(got));
	got.head.capacity = 1;
	REQUIRE_EQ(vdev_call(fd, NEURON_IOCTL_DEVICE_GET_ALL_APPS_INFO, &got), 0);
	CHECK_EQ(got.head.size, 1);
	CHECK_EQ(got.apps[1].pid, 0x55555555);
	CHECK_EQ(vdev_call(query, NEURON_IOCTL_DEVICE_GET_ALL_APPS_INFO, &got), -EINVAL);
	other_end(&other);
	got.head.capacity = 16;
	REQUIRE_EQ(vdev_call(fd, NEURON_IOCTL_DEVICE_GET_ALL_APPS_INFO, &got), 0);
	CHECK_EQ(got.head.size, 1);
}

/* ---- who has marked ---------------------------------------------------------------------- */

static int mark_two(void *arg)
{
	struct neuron_crwl_nc_map_ext map = {.nc_count = 2, .start_nc_index = 3, .end_nc_index = 4};
	/* of the second device */
	return vdev_call(vdev_open(arg, 1, O_RDWR), NEURON_IOCTL_CRWL_NC_RANGE_MARK_EXT0, &map) !=
	       0;
}

/* Starts a device whose stderr goes to a file. */
static bool start_with_log(struct vdev_run *run, const char *const *args, int log)
{
	int saved = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
	bool started;

	dup2(log, STDERR_FILENO);
	started = vdev_run_start(run, args);
	dup2(saved, STDERR_FILENO);
	close(saved);
	return started;
}

TEST("vdev: owners of marks are counted in stats and named in the log on demand", "[vdev]")
{
	NEED_VDEV();
	_run_ struct vdev_run run = {0};
	_cleanup_close_ int query = -1, log = memfd_create("log", MFD_CLOEXEC);
	struct neuron_nc_pid_state_dump dump = {.size = sizeof(dump), .nc_id = 11};
	struct other other;
	char text[256] = "", want[256];

	REQUIRE(start_with_log(&run, (const char *[]){"--devices", "2", NULL}, log));
	CHECK_EQ(vdev_stat(&run, "marked_cores"), 0);
	REQUIRE(other_start(&other, mark_two, &run));
	CHECK_EQ(vdev_stat(&run, "marked_cores"), 2);
	CHECK_EQ(vdev_stat(&run, "mark.11"), other.pid);
	CHECK_EQ(vdev_stat(&run, "mark.12"), other.pid);
	CHECK_EQ(vdev_stat(&run, "mark.13"), -1);
	query = vdev_open(&run, 0, O_WRONLY); /* the core is one of the machine */
	REQUIRE(query >= 0);
	CHECK_EQ(vdev_call(query, NEURON_IOCTL_NC_PID_STATE_DUMP, &dump), 0);
	other_end(&other);
	CHECK_EQ(vdev_call(query, NEURON_IOCTL_NC_PID_STATE_DUMP, &dump), 0);
	dump.nc_id = 10; /* nobody's: nothing is said */
	CHECK_EQ(vdev_call(query, NEURON_IOCTL_NC_PID_STATE_DUMP, &dump), 0);
	dump.nc_id = 512;
	CHECK_EQ(vdev_call(query, NEURON_IOCTL_NC_PID_STATE_DUMP, &dump), -ENOENT);
	CHECK_EQ(vdev_stat(&run, "ioctl.NC_PID_STATE_DUMP"), 4);
	snprintf(want, sizeof(want),
		"ntrace-vdev: core 11 is marked by process %d, which runs\n"
		"ntrace-vdev: core 11 is marked by process %d, which has ended\n",
		other.pid, other.pid);
	CHECK(pread(log, text, sizeof(text) - 1, 0) > 0);
	CHECK_STR(text, want);
}

TEST("vdev: a message for the kernel log is a string of at most 512 bytes", "[vdev]")
{
	NEED_VDEV();
	static char text[600];
	static const struct {
		unsigned size;
		char last;
		int result;
	} rows[] = {
		{512, 0, 0}, {1, 0, 0}, {513, 0, -EFAULT}, {512, 'x', -EBADMSG}, {0, 0, -EBADMSG}};
	_run_ struct vdev_run run = {0};
	_cleanup_close_ int query = -1;

	REQUIRE(vdev_run_start(&run, NULL));
	query = vdev_open(&run, 0, O_WRONLY);
	REQUIRE(query >= 0);
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct neuron_printk arg = {.buffer = (uintptr_t)text, .size = rows[i].size};

		test_info("%u bytes", rows[i].size);
		memset(text, 'x', sizeof(text));
		if (rows[i].size)
			text[rows[i].size - 1] = rows[i].last;
		CHECK_EQ(vdev_call(query, NEURON_IOCTL_PRINTK, &arg), rows[i].result);
	}
}

/* ---- datastore --------------------------------------------------------------------------- */

struct reader {
	const struct vdev_run *run;
	pid_t writer;
};

/* Reads the datastore of another process; it cannot be mapped for writing. */
static int read_datastore(void *arg)
{
	const struct reader *in = arg;
	int fd = vdev_open(in->run, 0, O_RDWR), sock, memory;
	struct neuron_ds_info info = {.pid = in->writer}, unknown = {.pid = 1};
	uint64_t size = 0;
	const uint64_t *map;

	if (vdev_call(fd, NEURON_IOCTL_ACQUIRE_NEURON_DS, &unknown) != -ENOENT)
		return 1;
	if (vdev_call(fd, NEURON_IOCTL_ACQUIRE_NEURON_DS, &info) != 0)
		return 2;
	sock = vdev_connect(in->run);
	memory = vdev_ask(sock, 0, info.mmap_offset, &size);
	if (memory < 0 || size != NEURON_DS_BYTES || info.size != NEURON_DS_BYTES)
		return 3;
	if (mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0) != MAP_FAILED)
		return 4;
	map = mmap(NULL, size, PROT_READ, MAP_SHARED, memory, 0);
	if (map == MAP_FAILED || map[7] != 77)
		return 5;
	/* Not the reader's to give up. */
	return vdev_call(fd, NEURON_IOCTL_RELEASE_NEURON_DS, &info) != 0 ? 6 : 0;
}

TEST("vdev: a process shares its datastore, which others can only read", "[vdev]")
{
	NEED_VDEV();
	_run_ struct vdev_run run = {0};
	_cleanup_close_ int fd = -1, sock = -1;
	struct neuron_ds_info info = {0}, again = {0};
	struct reader reader = {.run = &run, .writer = getpid()};
	uint64_t *map, size;

	REQUIRE(vdev_run_start(&run, NULL));
	fd = vdev_open(&run, 0, O_RDWR);
	sock = vdev_connect(&run);
	REQUIRE(fd >= 0 && sock >= 0);
	REQUIRE_EQ(vdev_call(fd, NEURON_IOCTL_ACQUIRE_NEURON_DS, &info), 0);
	CHECK_EQ(info.size, NEURON_DS_BYTES);
	map = vdev_map(&run, 0, info.mmap_offset, &size);
	REQUIRE(map);
	map[7] = 77;
	REQUIRE_EQ(vdev_call(fd, NEURON_IOCTL_ACQUIRE_NEURON_DS, &again), 0);
	CHECK_EQ(again.mmap_offset, info.mmap_offset);
	CHECK_EQ(vdev_in_child(read_datastore, &reader), 0);
	/* It takes no handle and counts as no allocation. */
	CHECK_EQ(vdev_stat(&run, "allocations"), 0);
	again.pid = 0;
	CHECK_EQ(vdev_call(fd, NEURON_IOCTL_RELEASE_NEURON_DS, &again), 0);
	CHECK_EQ(vdev_ask(sock, 0, info.mmap_offset, &size), -EINVAL);
	again.pid = getpid();
	CHECK_EQ(vdev_call(fd, NEURON_IOCTL_ACQUIRE_NEURON_DS, &again), -ENOENT);
	/* A new one begins with zeros. */
	munmap(map, NEURON_DS_BYTES);
	again.pid = 0;
	REQUIRE_EQ(vdev_call(fd, NEURON_IOCTL_ACQUIRE_NEURON_DS, &again), 0);
	map = vdev_map(&run, 0, again.mmap_offset, &size);
	REQUIRE(map);
	CHECK_EQ(map[7], 0);
	munmap(map, NEURON_DS_BYTES);
}

static int acquire(void *arg)
{
	struct neuron_ds_info info = {0};

	return vdev_call(vdev_open(arg, 0, O_RDWR), NEURON_IOCTL_ACQUIRE_NEURON_DS, &info) != 0;
}

TEST("vdev: a datastore goes with its process", "[vdev]")
{
	NEED_VDEV();
	_run_ struct vdev_run run = {0};
	_cleanup_close_ int fd = -1;
	struct neuron_ds_info info = {0};
	struct other other;

	REQUIRE(vdev_run_start(&run, NULL));
	fd = vdev_open(&run, 0, O_RDWR);
	REQUIRE(fd >= 0);
	REQUIRE(other_start(&other, acquire, &run));
	info.pid = other.pid;
	CHECK_EQ(vdev_call(fd, NEURON_IOCTL_ACQUIRE_NEURON_DS, &info), 0);
	other_end(&other);
	CHECK_EQ(vdev_call(fd, NEURON_IOCTL_ACQUIRE_NEURON_DS, &info), -ENOENT);
}

/* ---- the machine ------------------------------------------------------------------------- */

TEST("vdev: pods are answered as on a machine outside an UltraServer", "[vdev]")
{
	NEED_VDEV();
	static const char *const archs[] = {"v2", "v3"};

	for (size_t i = 0; i < COUNT(archs); i++) {
		_run_ struct vdev_run run = {0};
		_cleanup_close_ int query = -1;
		struct neuron_pod_info info = {.sz = 260, .pod_type = 9, .pod_sz = 9};
		struct neuron_pod_status status = {.sz = 268, .mode = 9},
					 status2 = {.sz = 276, .mode = 9};
		struct neuron_pod_ctrl ctrl = {.sz = 16, .state = 9},
				       ctrl2 = {.sz = 20, .state = 9};

		REQUIRE(vdev_run_start(&run, (const char *[]){"--arch", archs[i], NULL}));
		query = vdev_open(&run, 0, O_WRONLY);
		REQUIRE(query >= 0);
		REQUIRE_EQ(vdev_call(query, NEURON_IOCTL_POD_INFO, &info), 0);
		CHECK_EQ(info.sz, 260);
		CHECK_EQ(info.pod_type, 0);
		CHECK_EQ(info.pod_sz, 0);
		REQUIRE_EQ(vdev_call(query, NEURON_IOCTL_POD_STATUS, &status), 0);
		CHECK_EQ(status.state, NEURON_POD_SINGLE_NODE);
		CHECK_EQ(status.node_id, -1);
		CHECK_EQ(status.mode, 9); /* behind the old form */
		REQUIRE_EQ(vdev_call(query, NEURON_IOCTL_POD_STATUS_V2, &status2), 0);
		CHECK_EQ(status2.state, NEURON_POD_SINGLE_NODE);
		CHECK_EQ(status2.mode, 0);
		CHECK_EQ(vdev_call(query, NEURON_IOCTL_POD_CTRL, &ctrl), 0);
		CHECK_EQ(vdev_call(query, NEURON_IOCTL_POD_CTRL_V2, &ctrl2), 0);
		CHECK_EQ(ctrl2.state, i == 0 ? NEURON_POD_SINGLE_NODE : 9);
		/* The size in the structure must be that of the form. */
		CHECK_EQ(vdev_call(query, NEURON_IOCTL_POD_STATUS_V2, &status), -EINVAL);
		CHECK_EQ(vdev_call(query, NEURON_IOCTL_POD_CTRL, &ctrl2), -EINVAL);
		info.sz = 0;
		CHECK_EQ(vdev_call(query, NEURON_IOCTL_POD_INFO, &info), -EINVAL);
	}
}

TEST("vdev: the map of logical cores, by generation, driver and version of the map", "[vdev]")
{
	NEED_VDEV();
	static const struct {
		const char *arch, *driver;
		int version0, version1;
	} rows[] = {
		{"v2", "2.24", -524, -524},
		{"v3", "2.24", 0, -EINVAL},
		{"v3", "2.30", 0, 0},
		{"v4", "2.30", 0, -EINVAL},
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		_run_ struct vdev_run run = {0};
		_cleanup_close_ int query = -1;
		struct {
			uint32_t count;
			struct neuron_nc_map_entry entries[129];
		} map = {0};
		struct neuron_get_nc_map arg = {.map = (uintptr_t)&map, .max_map_entries = 128};

		test_info("%s, %s", rows[i].arch, rows[i].driver);
		REQUIRE(vdev_run_start(&run, (const char *[]){"--arch", rows[i].arch, "--driver",
						     rows[i].driver, NULL}));
		query = vdev_open(&run, 0, O_WRONLY);
		REQUIRE(query >= 0);
		CHECK_EQ(vdev_call(query, NEURON_IOCTL_GET_LOGICAL_TO_PHYSICAL_NC_MAP, &arg),
			rows[i].version0);
		if (rows[i].version0 == 0) {
			CHECK_EQ(map.count, 128);
			CHECK_EQ(map.entries[0].device_nc_idx, 4);
			CHECK_EQ(map.entries[127].device_id, 15);
			CHECK_EQ(map.entries[128].device_id, 0);
			arg.max_map_entries = 129;
			CHECK_EQ(
				vdev_call(query, NEURON_IOCTL_GET_LOGICAL_TO_PHYSICAL_NC_MAP, &arg),
				-EINVAL);
			arg.max_map_entries = 3;
			CHECK_EQ(
				vdev_call(query, NEURON_IOCTL_GET_LOGICAL_TO_PHYSICAL_NC_MAP, &arg),
				0);
			CHECK_EQ(map.count, 3);
		}
		arg.mapping_version = 1;
		CHECK_EQ(vdev_call(query, NEURON_IOCTL_GET_LOGICAL_TO_PHYSICAL_NC_MAP, &arg),
			rows[i].version1);
	}
}

/* ---- scrub ------------------------------------------------------------------------------- */

static uint64_t allocate_in(int fd, uint32_t hbm, bool host)
{
	uint64_t handle = 0;
	struct neuron_mem_alloc_v2mt arg = {.size = 5000,
		.host_memory = host,
		.dram_channel = hbm,
		.mem_handle = (uintptr_t)&handle};

	return vdev_call(fd, NEURON_IOCTL_MEM_ALLOC_V2MT64, &arg) == 0 ? handle : 0;
}

static uint32_t word_of(int fd, uint64_t handle, uint64_t offset)
{
	uint32_t word = 1;

	return vdev_read(fd, handle, offset, &word, sizeof(word)) == 0 ? word : 1;
}

TEST("vdev: a scrub overwrites the memory of one HBM", "[vdev]")
{
	NEED_VDEV();
	_run_ struct vdev_run run = {0};
	_cleanup_close_ int fd = -1, query = -1;
	struct neuron_hbm_scrub_start start = {.hbm_index = 2, .init_val = 0xdecafbad};
	struct neuron_hbm_scrub_wait wait = {.hbm_index = 2};
	uint64_t in, out, host;

	REQUIRE(vdev_run_start(&run, NULL));
	fd = vdev_open(&run, 0, O_RDWR);
	query = vdev_open(&run, 0, O_WRONLY);
	REQUIRE(fd >= 0 && query >= 0);
	in = allocate_in(fd, 2, false);
	out = allocate_in(fd, 1, false);
	host = allocate_in(fd, 2, true);
	REQUIRE(in && out && host);
	CHECK_EQ(vdev_call(fd, NEURON_IOCTL_HBM_SCRUB_WAIT, &wait), -EPERM); /* not started */
	CHECK_EQ(vdev_call(fd, NEURON_IOCTL_HBM_SCRUB_START, &start), 0);
	CHECK_EQ(vdev_call(fd, NEURON_IOCTL_HBM_SCRUB_WAIT, &wait), 0);
	CHECK_EQ(vdev_call(fd, NEURON_IOCTL_HBM_SCRUB_WAIT, &wait), -EPERM);
	CHECK_EQ(word_of(fd, in, 0), 0xdecafbad);
	CHECK_EQ(word_of(fd, in, 4996), 0xdecafbad);
	CHECK_EQ(word_of(fd, out, 0), 0);
	CHECK_EQ(word_of(fd, host, 0), 0);
	start.hbm_index = wait.hbm_index = 4;
	CHECK_EQ(vdev_call(fd, NEURON_IOCTL_HBM_SCRUB_START, &start), -EPERM);
	CHECK_EQ(vdev_call(fd, NEURON_IOCTL_HBM_SCRUB_WAIT, &wait), -EPERM);
	CHECK_EQ(vdev_call(query, NEURON_IOCTL_HBM_SCRUB_START, &start), -EINVAL);
}
