/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_negotiate_test.c - which drivers fit which runtime, and what kind of machine it is.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#include "runtime/base/file.h"
#include "runtime/base/instance.h"
#include "runtime/device/identity.h"
#include "runtime/device/negotiate.h"
#include "tests/shim/shim.h"
#include "tests/unit/scratch.h"

/* ---- negotiation -------------------------------------------------------------------------- */

TEST("negotiate: a driver fits when its range holds both ids of the architecture", "[device]")
{
	/* The rule again, from the numbers alone. */
	for (uint32_t arch = 0; arch <= 5; arch++)
		for (uint32_t min = 0; min <= 20; min++)
			for (uint32_t max = min; max <= 20; max++) {
				uint32_t low = arch == 2 ? 6 : 10, high = arch == 2 ? 6 : 11,
					 id = 99;
				enum negotiate_verdict got = negotiate_range(arch, min, max, &id);

				test_info("arch %u, range %u - %u", arch, min, max);
				if (arch < 2 || arch > 4) {
					CHECK_EQ(got, NEGOTIATE_ARCH);
				} else if (low < min) {
					CHECK_EQ(got, NEGOTIATE_RUNTIME_OLD);
					CHECK_EQ(id, low);
				} else if (max < high) {
					CHECK_EQ(got, NEGOTIATE_DRIVER_OLD);
					CHECK_EQ(id, high);
				} else {
					CHECK_EQ(got, NEGOTIATE_OK);
				}
			}
}

TEST("negotiate: the ranges of drivers 2.24 and 2.30 fit", "[device]")
{
	uint32_t id;

	CHECK_EQ(negotiate_range(DEVICE_ARCH_V2, 5, 7, &id), NEGOTIATE_OK);
	CHECK_EQ(negotiate_range(DEVICE_ARCH_V3, 10, 11, &id), NEGOTIATE_OK);
	CHECK_EQ(negotiate_range(DEVICE_ARCH_V4, 10, 11, &id), NEGOTIATE_OK);
	CHECK_EQ(negotiate_range(DEVICE_ARCH_V1, 2, 7, &id), NEGOTIATE_ARCH);
}

TEST("negotiate: a version is two numbers at least", "[device]")
{
	static const struct {
		const char *text;
		bool ok;
		uint32_t major, minor;
	} rows[] = {{"2.24.7.0\n", true, 2, 24}, {"2.30.2.0-abc", true, 2, 30}, {"2.1", true, 2, 1},
		{"1.9", true, 1, 9}, {"0.0", true, 0, 0}, {"65535.65535", true, 65535, 65535},
		{"", false, 0, 0}, {"\n", false, 0, 0}, {"2", false, 0, 0}, {"2.", false, 0, 0},
		{".24", false, 0, 0}, {"two.one", false, 0, 0}, {" 2.24", false, 0, 0},
		{"-2.24", false, 0, 0}, {"2.-4", false, 0, 0}, {"2,24", false, 0, 0},
		{"65536.0", false, 0, 0}, {"99999999999999999999999.1", false, 0, 0},
		{"2.99999999999999999999999", false, 0, 0}, {"0x2.24", false, 0, 0}};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint32_t major = 0, minor = 0;

		test_info("'%s'", rows[i].text);
		CHECK_EQ(negotiate_parse_version(rows[i].text, &major, &minor), rows[i].ok);
		CHECK_EQ(major, rows[i].major);
		CHECK_EQ(minor, rows[i].minor);
	}
}

/* ---- instance types ----------------------------------------------------------------------- */

TEST("identity: family and size are what stands around the point", "[device]")
{
	static const struct {
		const char *type;
		uint32_t family, size;
	} rows[] = {{"inf1.xlarge", 1, 0}, {"inf1.24xlarge", 1, 5}, {"trn1.2xlarge", 2, 1},
		{"trn1.32xlarge", 2, 6}, {"trn1n.32xlarge", 3, 6}, {"inf2.xlarge", 4, 0},
		{"inf2.8xlarge", 4, 4}, {"inf2.24xlarge", 4, 5}, {"inf2.48xlarge", 4, 7},
		{"trn2.3xlarge", 5, 8}, {"trn2.48xlarge", 5, 7}, {"trn2n.48xlarge", 6, 7},
		{"inf2e.48xlarge", 7, 7}, {"trn2p.48xlarge", 8, 7}, {"trn2u.48xlarge", 9, 7},
		{"trn2e.48xlarge", 10, 7}, {"trn2eu.48xlarge", 11, 7}, {"trn2u-ac.24xlarge", 13, 5},
		{"trn3.48xlarge", 14, 7}, {"inf1.6xlarge", 1, 3}, {"trn2.4xlarge", 5, 2},
		{"EPIC-TGH7", 5, 9}, {"EPIC-TGH7-x.48xlarge", 5, 7}, {"trn2", 5, 9},
		{"trn2.", 5, 9}, {"trn2.metal", 5, 9}, {"trn3p.48xlarge", 0, 7}, {"t3.large", 0, 9},
		{"TRN2.48xlarge", 0, 7}, {"trn2.48xlarge.x", 5, 9}, {"", 0, 9},
		{".48xlarge", 0, 7}};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint32_t family = 77, size = 77;

		test_info("'%s'", rows[i].type);
		identity_parse(rows[i].type, &family, &size);
		CHECK_EQ(family, rows[i].family);
		CHECK_EQ(size, rows[i].size);
	}
}

TEST("identity: an instance type has devices, cores and an architecture", "[device]")
{
	static const struct {
		const char *type;
		uint32_t devices, cores, arch;
	} rows[] = {{"inf2.xlarge", 1, 2, 2}, {"inf2.8xlarge", 1, 2, 2}, {"inf2.24xlarge", 6, 2, 2},
		{"inf2.48xlarge", 12, 2, 2}, {"trn1.2xlarge", 1, 2, 2}, {"trn1.32xlarge", 16, 2, 2},
		{"trn1n.32xlarge", 16, 2, 2}, {"trn2.3xlarge", 1, 8, 3},
		{"trn2.48xlarge", 16, 8, 3}, {"trn2u.48xlarge", 16, 8, 3}};
	static const char *const unknown[] = {"", "trn2", "trn2.48", "trn2.48xlarge ", "m5.large"};
	uint32_t devices = 0, cores = 0, arch = 0;
	char known[512];

	instance_list_types(known, sizeof(known));
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		test_info("%s", rows[i].type);
		REQUIRE_EQ(identity_shape(rows[i].type, &devices, &cores, &arch), 0);
		CHECK_EQ(devices, rows[i].devices);
		CHECK_EQ(cores, rows[i].cores);
		CHECK_EQ(arch, rows[i].arch);
		CHECK(strstr(known, rows[i].type) != NULL);
	}
	for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++)
		CHECK_EQ(identity_shape(unknown[i], &devices, &cores, &arch), -ENOENT);
	instance_list_types(known, 8);
	CHECK_STR(known, "trn1.2x");
}

TEST("identity: a revision is a letter; what is no silicon is the first one", "[device]")
{
	static const struct {
		uint32_t arch, revision;
		const char *text;
	} rows[] = {{2, 0, "A"}, {3, 1, "B"}, {3, 25, "Z"}, {3, 26, "26"}, {2, 0xef, "239"},
		{2, 0xf0, "A"}, {3, 0xff, "A"}, {4, 0, "pre"}, {4, 0xff, "pre"}, {4, 1, "B"}};
	char text[8];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		identity_revision(rows[i].arch, rows[i].revision, text);
		CHECK_STR(text, rows[i].text);
	}
}

TEST("identity: without the driver's map a family is wired in its known order", "[device]")
{
	/* map[order[i]] = i */
	static const uint32_t order[16] = {0, 4, 1, 5, 3, 7, 2, 6, 12, 8, 13, 9, 15, 11, 14, 10};
	static const uint32_t torus[] = {2, 3, 7};
	uint32_t rid[64];

	for (size_t f = 0; f < 3; f++) {
		memset(rid, 0xff, sizeof(rid));
		REQUIRE_EQ(identity_routing(torus[f], rid), 16);
		for (uint32_t i = 0; i < 16; i++)
			CHECK_EQ(rid[order[i]], i);
	}
	REQUIRE_EQ(identity_routing(4, rid), 12);
	for (uint32_t i = 0; i < 12; i++)
		CHECK_EQ(rid[i], i);
	REQUIRE_EQ(identity_routing(1, rid), 1);
	CHECK_EQ(rid[0], 0);
	CHECK_EQ(identity_routing(5, rid), 0);
}

/* ---- this machine ------------------------------------------------------------------------- */

static bool put(const struct scratch *s, const char *path, const char *text)
{
	struct scratch_path full = scratch_path(s, path), parent = full;
	FILE *f;

	*strrchr(parent.s, '/') = '\0';
	if (file_mkdirs(parent.s, NULL) < 0)
		return false;
	f = fopen(full.s, "we");
	return f && fputs(text, f) >= 0 && fclose(f) == 0;
}

TEST("identity: DMI says the type; a virtual device is of its generation", "[device]")
{
	static struct device_system s;
	struct scratch dir;
	struct identity id;

	REQUIRE(scratch_make(&dir));
	memset(&s, 0, sizeof(s));
	(void)snprintf(s.root, sizeof(s.root), "%s", dir.dir);
	s.arch = DEVICE_ARCH_V3;
	s.revision = 255;
	s.topology.device_count = 16;
	s.topology.cores_per_device = 8;
	identity_read(&s, &id);
	CHECK_EQ(id.family, 0);
	CHECK_EQ(id.size, 9);
	CHECK_STR(id.type, "");
	CHECK_STR(id.arch_name, "trn2");
	CHECK_STR(id.revision, "A");

	REQUIRE(put(
		&dir, "sys/class/neuron_device/neuron0/info/architecture/instance_type", "Trn2"));
	identity_read(&s, &id); /* a real one: DMI alone */
	CHECK_EQ(id.family, 0);
	s.is_virtual = true;
	identity_read(&s, &id);
	CHECK_STR(id.type, "trn2.48xlarge");
	CHECK_EQ(id.family, 5);
	CHECK_EQ(id.size, 7);
	s.topology.device_count = 3; /* no such machine */
	identity_read(&s, &id);
	CHECK_EQ(id.family, 5);
	CHECK_EQ(id.size, 9);

	REQUIRE(put(&dir, "sys/devices/virtual/dmi/id/product_name", "inf2.8xlarge\n"));
	identity_read(&s, &id);
	CHECK_STR(id.type, "inf2.8xlarge");
	CHECK_EQ(id.family, 4);
	CHECK_STR(id.arch_name, "inf2");
	REQUIRE(put(&dir, "sys/class/dmi/id/product_name", "trn2u.48xlarge\n"));
	identity_read(&s, &id);
	CHECK_EQ(id.family, 9);

	s.arch = DEVICE_ARCH_V4; /* its types are not all known */
	s.is_virtual = false;
	REQUIRE(put(&dir, "sys/class/dmi/id/product_name", "trn3s.48xlarge\n"));
	identity_read(&s, &id);
	CHECK_EQ(id.family, 14);
	CHECK_EQ(id.size, 7);
	CHECK_STR(id.revision, "pre");
	REQUIRE(put(&dir, "sys/class/dmi/id/product_name", "something\n"));
	identity_read(&s, &id);
	CHECK_EQ(id.family, 14);
	CHECK_EQ(id.size, 1);
	scratch_remove(&dir);
}

TEST("instance: the id is the board's, else the node's name, and fit for a directory", "[device]")
{
	char id[INSTANCE_ID_BYTES];
	struct scratch dir;
	struct utsname uts;

	REQUIRE(scratch_make(&dir));
	REQUIRE(uname(&uts) == 0);
	instance_read_id(NULL, dir.dir, id);
	CHECK(strlen(id) > 0 && strspn(id, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
					   "0123456789-.") == strlen(id));
	CHECK(strcmp(id, uts.nodename) == 0 || strpbrk(uts.nodename, "_()") || !uts.nodename[0]);
	REQUIRE(put(&dir, "devices/virtual/dmi/id/board_asset_tag", "i-0123456789abcdef0\n"));
	instance_read_id(NULL, dir.dir, id);
	CHECK_STR(id, "i-0123456789abcdef0");
	REQUIRE(put(&dir, "devices/virtual/dmi/id/board_asset_tag", "Not Specified\n"));
	instance_read_id(NULL, dir.dir, id);
	CHECK(strncmp(id, "i-", 2) != 0);
	/* A virtual device may bring an id; "i-virtual" is none. */
	REQUIRE(put(&dir, "devices/virtual/dmi/id/board_asset_tag", "i-0123456789abcdef0\n"));
	REQUIRE(put(&dir, "sys/class/dmi/id/board_asset_tag", "i-virtual\n"));
	instance_read_id(dir.dir, dir.dir, id);
	CHECK_STR(id, "i-0123456789abcdef0");
	REQUIRE(put(&dir, "sys/class/dmi/id/board_asset_tag", "i-00000000000000001\n"));
	instance_read_id(dir.dir, dir.dir, id);
	CHECK_STR(id, "i-00000000000000001");
	scratch_remove(&dir);
}
