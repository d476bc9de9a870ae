/* SPDX-License-Identifier: Apache-2.0 */
/* vdev_shape_test.c - what machines a virtual device can be: instance types, generations, drivers,
 * and what its options make of it. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/file.h"
#include "runtime/vdev/options.h"
#include "runtime/vdev/shapes.h"
#include "tests/shim/shim.h"
#include "tests/unit/vdev_harness.h"
#include "vmlinux/ioctl_table.h"
#include "vmlinux/neuron_args.h"

#define _run_ _cleanup_(vdev_run_end)
#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

/* ---- topology, without a device ---------------------------------------------------------- */

static const struct vdev_family *family_of(const char *type)
{
	return vdev_instance_find(type)->family;
}

TEST("vdev shapes: neighbours are those of the driver's tables", "[vdev]")
{
	static const struct {
		const char *type;
		unsigned devices, index, count;
		uint32_t neighbours[VDEV_MAX_NEIGHBOURS];
	} rows[] = {
		{"trn1.32xlarge", 16, 8, 4, {4, 11, 12, 9}},
		{"trn1.32xlarge", 16, 7, 4, {3, 6, 11, 4}},
		{"trn1.32xlarge", 16, 15, 4, {11, 14, 3, 12}},
		{"trn1.2xlarge", 1, 0, 0, {0}},
		{"inf2.48xlarge", 12, 0, 2, {11, 1}},
		{"inf2.48xlarge", 12, 11, 2, {10, 0}},
		{"inf2.24xlarge", 6, 0, 1, {1}},
		{"inf2.24xlarge", 6, 5, 1, {4}},
		{"inf2.24xlarge", 6, 2, 2, {1, 3}},
		{"inf2.xlarge", 1, 0, 0, {0}},
		{"trn2.48xlarge", 16, 0, 4, {12, 1, 3, 4}},
		{"trn2.48xlarge", 32, 16, 4, {28, 17, 19, 20}},
		{"trn2.3xlarge", 1, 0, 0, {0}},
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		uint32_t got[VDEV_MAX_NEIGHBOURS] = {0};

		test_info("%s, %u of %u", rows[i].type, rows[i].index, rows[i].devices);
		CHECK_EQ(vdev_neighbours(
				 family_of(rows[i].type), rows[i].devices, rows[i].index, got),
			rows[i].count);
		for (unsigned n = 0; n < rows[i].count; n++)
			CHECK_EQ(got[n], rows[i].neighbours[n]);
	}
}

TEST("vdev shapes: routing ids are permuted on a full machine of Trn1 or Trn2", "[vdev]")
{
	static const struct {
		const char *type;
		unsigned devices, device, routing;
	} rows[] = {
		{"trn1.32xlarge", 16, 4, 1},
		{"trn1.32xlarge", 16, 10, 15},
		{"trn2.48xlarge", 16, 15, 5},
		{"trn2.48xlarge", 16, 10, 15},
		{"inf2.48xlarge", 12, 7, 7},
		{"trn2.3xlarge", 1, 0, 0},
		{"trn1.2xlarge", 3, 2, 2},
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		uint32_t ids[64] = {0};

		test_info("%s", rows[i].type);
		vdev_routing_ids(family_of(rows[i].type), rows[i].devices, ids);
		CHECK_EQ(ids[rows[i].device], rows[i].routing);
	}
}

TEST("vdev shapes: the map of logical cores has each core of 16 devices once", "[vdev]")
{
	static const unsigned known[][3] = {/* entry, device, core */
		{0, 0, 4}, {4, 0, 2}, {7, 0, 1}, {8, 1, 2}, {32, 4, 0}, {36, 4, 6}, {40, 5, 6},
		{96, 12, 0}, {127, 15, 3}};
	bool seen[16][8] = {{false}};

	for (unsigned entry = 0; entry < VDEV_NC_MAP_ENTRIES; entry++) {
		uint32_t device, core;

		vdev_physical_core(entry, &device, &core);
		REQUIRE(device < 16 && core < 8);
		CHECK(!seen[device][core]);
		seen[device][core] = true;
	}
	for (size_t i = 0; i < COUNT(known); i++) {
		uint32_t device, core;

		test_info("entry %u", known[i][0]);
		vdev_physical_core(known[i][0], &device, &core);
		CHECK_EQ(device, known[i][1]);
		CHECK_EQ(core, known[i][2]);
	}
}

/* ---- options, without a device ----------------------------------------------------------- */

static int key_of(const char *name)
{
	for (const struct argp_option *o = vdev_option_table; o->name || o->doc; o++)
		if (o->name && strcmp(o->name, name) == 0)
			return o->key;
	return 0;
}

/* Sets name, value, name, value, ..., NULL. */
static const char *choose(struct vdev_choice *choice, const char *const *words)
{
	*choice = (struct vdev_choice){0};
	for (; *words; words += 2) {
		const char *want = vdev_options_set(choice, key_of(words[0]), words[1]);

		if (want)
			return want;
	}
	return vdev_options_resolve(choice);
}

TEST("vdev shapes: options make the machine that they name", "[vdev]")
{
	static const struct {
		const char *words[5];
		unsigned arch, devices, cores;
		const char *type, *name;
	} rows[] = {
		{{NULL}, 3, 1, 8, "trn2.3xlarge", "Trn2"},
		{{"arch", "v2", NULL}, 2, 1, 2, "trn1.2xlarge", "Trn1"},
		{{"arch", "v2", "devices", "16", NULL}, 2, 16, 2, "trn1.32xlarge", "Trn1"},
		{{"arch", "v2", "devices", "6", NULL}, 2, 6, 2, "trn1.2xlarge", "Trn1"},
		{{"arch", "v4", "devices", "16", NULL}, 4, 16, 8, "trn3.48xlarge", "Trn3"},
		{{"devices", "16", NULL}, 3, 16, 8, "trn2.48xlarge", "Trn2"},
		{{"instance", "inf2.xlarge", NULL}, 2, 1, 2, "inf2.xlarge", "Inf2"},
		{{"instance", "inf2.24xlarge", NULL}, 2, 6, 2, "inf2.24xlarge", "Inf2"},
		{{"instance", "inf2.48xlarge", NULL}, 2, 12, 2, "inf2.48xlarge", "Inf2"},
		{{"instance", "trn1.2xlarge", NULL}, 2, 1, 2, "trn1.2xlarge", "Trn1"},
		{{"instance", "trn1.32xlarge", NULL}, 2, 16, 2, "trn1.32xlarge", "Trn1"},
		{{"instance", "trn2.3xlarge", NULL}, 3, 1, 8, "trn2.3xlarge", "Trn2"},
		{{"instance", "trn2.48xlarge", NULL}, 3, 16, 8, "trn2.48xlarge", "Trn2"},
		{{"instance", "trn3.3xlarge", NULL}, 4, 1, 8, "trn3.3xlarge", "Trn3"},
		{{"instance", "trn3.48xlarge", NULL}, 4, 16, 8, "trn3.48xlarge", "Trn3"},
		{{"instance", "trn2.48xlarge", "devices", "2", NULL}, 3, 2, 8, "trn2.48xlarge",
			"Trn2"},
		{{"instance", "trn2.48xlarge", "cores", "4", NULL}, 3, 16, 4, "trn2.48xlarge",
			"Trn2"},
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct vdev_choice choice;
		const struct vdev_config *c = &choice.options.config;

		test_info("row %zu, %s", i, rows[i].type);
		REQUIRE(!choose(&choice, rows[i].words));
		CHECK_EQ(c->instance->family->arch->number, rows[i].arch);
		CHECK_EQ(c->devices, rows[i].devices);
		CHECK_EQ(c->cores, rows[i].cores);
		CHECK_STR(c->instance->type, rows[i].type);
		CHECK_STR(c->instance->family->instance_type, rows[i].name);
	}
}

TEST("vdev shapes: options that contradict each other are told", "[vdev]")
{
	static const struct {
		const char *words[5], *why;
	} rows[] = {
		{{"arch", "v2", "instance", "trn2.48xlarge", NULL},
			"--arch: trn2.48xlarge is a v3"},
		{{"driver", "2.24", "arch", "v4", NULL}, "--driver: 2.24 does not know v4"},
		{{"driver", "2.24", "instance", "trn3.3xlarge", NULL},
			"--driver: 2.24 does not know v4"},
		{{"compat", "11-10", NULL},
			"a range such as 10-11, of numbers from 1 to 4294967295"},
		{{"compat", "5", NULL}, "a range such as 10-11, of numbers from 1 to 4294967295"},
		{{"driver", "2.31", NULL}, "one of 2.24, 2.30"},
		{{"fault", "memory:8", NULL},
			"--fault: there is no core 8, the machine has 8 cores"},
		{{"devices", "2", "fault", "memory:15", NULL}, "fine"},
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct vdev_choice choice;
		const char *why = choose(&choice, rows[i].words);

		CHECK_STR(why ? why : "fine", rows[i].why);
	}
}

TEST("vdev shapes: memory sizes are read with their unit, and not beyond 64G", "[vdev]")
{
	static const struct {
		const char *text;
		uint64_t bytes; /* 0: refused */
	} rows[] = {{"1", 1}, {"4096", 4096}, {"2K", 2048}, {"3M", 3u << 20}, {"64G", 64ull << 30},
		{"65G", 0}, {"68719476737", 0}, {"0", 0}, {"0K", 0}, {"K", 0}, {"1T", 0},
		{"1KK", 0}, {"-1", 0}, {"", 0}, {" 1", 0}, {"99999999999999999999K", 0}};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct vdev_choice choice;
		const char *words[] = {"memory", rows[i].text, NULL};

		test_info("'%s'", rows[i].text);
		CHECK_EQ(!choose(&choice, words), rows[i].bytes != 0);
		if (rows[i].bytes)
			CHECK_EQ(choice.options.config.memory_bytes, rows[i].bytes);
	}
}

/* ---- on a device ------------------------------------------------------------------------- */

static void check_text(const struct vdev_run *run, const char *path, const char *want)
{
	_cleanup_free_ char *text = NULL;
	char full[160];
	size_t size;

	snprintf(full, sizeof(full), "%s/sys/%s", run->root, path);
	test_info("%s", path);
	if (file_read(full, 4096, &text, &size) < 0)
		text = strdup("(missing)");
	CHECK_STR(text, want);
}

TEST("vdev shapes: an Inf2 of six devices shows itself in sysfs and by its requests", "[vdev]")
{
	NEED_VDEV();
	_run_ struct vdev_run run = {0};
	_cleanup_close_ int fd = -1;
	struct neuron_device_info info;
	struct neuron_compatible_version version;

	REQUIRE(vdev_run_start(&run, (const char *[]){"--instance", "inf2.24xlarge",
					     "--instance-id", "i-0123456789abcdef0", NULL}));
	check_text(&run, "class/dmi/id/product_name", "inf2.24xlarge\n");
	check_text(&run, "class/dmi/id/board_asset_tag", "i-0123456789abcdef0\n");
	check_text(&run, "module/neuron/version", "2.30.2.0\n");
	check_text(&run, "class/neuron_device/neuron0/info/architecture/arch_type", "NDv3\n");
	check_text(&run, "class/neuron_device/neuron0/info/architecture/instance_type", "Inf2\n");
	check_text(
		&run, "class/neuron_device/neuron0/info/architecture/device_name", "Inferentia2\n");
	check_text(&run, "class/neuron_device/neuron5/neuron_core1/info/architecture/arch_type",
		"NCv2\n");
	check_text(&run, "class/neuron_device/neuron0/connected_devices", "1\n");
	check_text(&run, "class/neuron_device/neuron3/connected_devices", "2, 4\n");
	check_text(&run, "class/neuron_device/neuron6/core_count", "(missing)");
	fd = vdev_open(&run, 5, O_RDWR);
	REQUIRE(fd >= 0);
	REQUIRE_EQ(vdev_call(fd, NEURON_IOCTL_DEVICE_INFO, &info), 0);
	CHECK_EQ(info.architecture, 2);
	CHECK_EQ(info.connected_device_count, 1);
	CHECK_EQ(info.connected_devices[0], 4);
	REQUIRE_EQ(vdev_call(fd, NEURON_IOCTL_COMPATIBLE_VERSION, &version), 0);
	CHECK_EQ(version.min, 5);
	CHECK_EQ(version.max, 7);
}

TEST("vdev shapes: core_count is for root alone with driver 2.24, for all with 2.30", "[vdev]")
{
	static const struct {
		const char *driver;
		unsigned mode;
	} rows[] = {{"2.24", 0400}, {"2.30", 0444}};

	NEED_VDEV();
	for (size_t i = 0; i < 2; i++) {
		_run_ struct vdev_run run = {0};
		char path[700];
		struct stat st;

		REQUIRE(vdev_run_start(&run, (const char *[]){"--driver", rows[i].driver, NULL}));
		snprintf(path, sizeof(path), "%s/sys/class/neuron_device/neuron0/core_count",
			run.root);
		REQUIRE_EQ(stat(path, &st), 0);
		CHECK_EQ(st.st_mode & 07777, rows[i].mode);
		snprintf(path, sizeof(path), "%s/sys/class/neuron_device/neuron0/connected_devices",
			run.root);
		REQUIRE_EQ(stat(path, &st), 0);
		CHECK_EQ(st.st_mode & 07777, 0444);
	}
}

TEST("vdev shapes: a Trn3 differs from a Trn2 by number and names", "[vdev]")
{
	NEED_VDEV();
	_run_ struct vdev_run run = {0};
	_cleanup_close_ int fd = -1;
	struct neuron_device_basic_info basic;
	struct neuron_compatible_version version;

	REQUIRE(vdev_run_start(&run, (const char *[]){"--arch", "v4", "--compat", "12-13", NULL}));
	check_text(&run, "class/dmi/id/product_name", "trn3.3xlarge\n");
	check_text(&run, "class/dmi/id/board_asset_tag", "i-virtual\n");
	check_text(&run, "class/neuron_device/neuron0/info/architecture/arch_type", "NDv4\n");
	check_text(
		&run, "class/neuron_device/neuron0/info/architecture/device_name", "Trainium3\n");
	check_text(&run, "class/neuron_device/neuron0/core_count", "8");
	fd = vdev_open(&run, 0, O_WRONLY);
	REQUIRE(fd >= 0);
	REQUIRE_EQ(vdev_call(fd, NEURON_IOCTL_DEVICE_BASIC_INFO, &basic), 0);
	CHECK_EQ(basic.architecture, 4);
	REQUIRE_EQ(vdev_call(fd, NEURON_IOCTL_COMPATIBLE_VERSION, &version), 0);
	CHECK_EQ(version.min, 12);
	CHECK_EQ(version.max, 13);
}

TEST("vdev shapes: a driver knows its own requests and no newer ones", "[vdev]")
{
	NEED_VDEV();
	static const struct {
		const char *driver, *version;
		int result;
		uint64_t features;
	} rows[] = {
		{"2.24", "2.24.7.0\n", -EINVAL, 0x78},
		{"2.30", "2.30.2.0\n", 0, 0x478},
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		_run_ struct vdev_run run = {0};
		_cleanup_close_ int fd = -1;
		struct neuron_device_driver_info info;
		struct neuron_mem_copy64 copy = {.size = 16};
		uint64_t handle = 0, on = 1;
		struct neuron_mem_alloc_v2mt alloc = {
			.size = 4096, .mem_handle = (uintptr_t)&handle};

		test_info("driver %s", rows[i].driver);
		REQUIRE(vdev_run_start(&run, (const char *[]){"--driver", rows[i].driver, NULL}));
		check_text(&run, "module/neuron/version", rows[i].version);
		fd = vdev_open(&run, 0, O_RDWR);
		REQUIRE(fd >= 0);
		REQUIRE_EQ(vdev_call(fd, NEURON_IOCTL_DRIVER_INFO_GET, &info), 0);
		CHECK_EQ(info.feature_flags1, rows[i].features);
		CHECK_EQ(vdev_call(fd, NEURON_IOCTL_MEM_ALLOC_V2MT64, &alloc), 0);
		copy.src_mem_handle = copy.dst_mem_handle = handle;
		CHECK_EQ(vdev_call(fd, NEURON_IOCTL_MEM_COPY64_DEPRECATED, &copy), 0);
		CHECK_EQ(vdev_call(fd, NEURON_IOCTL_MEM_COPY64, &copy), rows[i].result);
		CHECK_EQ(vdev_call(fd, NEURON_IOCTL_MEM_ALLOC_V2MT64_PA, &alloc), rows[i].result);
		CHECK_EQ(vdev_call(fd, NEURON_IOCTL_THROTTLING_NOTIFICATIONS, &on), rows[i].result);
	}
}

TEST("vdev shapes: every request of a driver is known to it, every other is absent", "[vdev]")
{
	static const char *const drivers[] = {"2.24", "2.30"};

	for (size_t d = 0; d < COUNT(drivers); d++) {
		static struct vdev_rules rules;
		unsigned absent = 0;

		rules = (struct vdev_rules){0};
		vdev_rules_for_driver(&rules, drivers[d]);
		for (size_t i = 0; i < ioctl_row_count; i++) {
			test_info("%s in %s", ioctl_rows[i].name, drivers[d]);
			CHECK_EQ(rules.row[i].absent, !strstr(ioctl_rows[i].drivers, drivers[d]));
			absent += rules.row[i].absent;
		}
		CHECK(absent > 0 && absent < ioctl_row_count / 2);
	}
}
