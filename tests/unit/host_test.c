/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_test.c - names of devices, and the identity of the machine from a made-up /sys.
 */
#include "runtime/base/host.h"

#include <string.h>
#include <sys/stat.h>

#include "runtime/base/file.h"
#include "tests/shim/shim.h"
#include "tests/unit/scratch.h"

TEST("host: a device's number stands in its name and nothing else does", "[host]")
{
	static const struct {
		const char *name;
		int number;
	} cases[] = {{"neuron0", 0}, {"neuron15", 15}, {"neuron007", 7}, {"neuron65535", 65535},
		{"neuron65536", -1}, {"neuron99999999999999999999999", -1}, {"neuron", -1},
		{"neuron2x", -1}, {"neuron-1", -1}, {"neuron+1", -1}, {"neuron 1", -1},
		{"neuro1", -1}, {"xneuron1", -1}, {"Neuron1", -1}, {"", -1}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		test_info("%s", cases[i].name);
		CHECK_EQ(host_device_number(cases[i].name), cases[i].number);
	}
}

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

TEST("host: the id is the board's where that is one, and the driver that of the device", "[host]")
{
	struct scratch s;
	struct host h;

	REQUIRE(scratch_make(&s));
	host_read(&h, NULL, s.dir);
	CHECK(h.instance_id[0] != '\0' && strncmp(h.instance_id, "i-", 2) != 0);
	CHECK(strchr(h.instance_id, '/') == NULL);
	CHECK_STR(h.driver, "");
	REQUIRE(put(&s, "devices/virtual/dmi/id/board_asset_tag", "i-0123456789abcdef0\n"));
	REQUIRE(put(&s, "module/neuron/version", "2.30.2.0\n"));
	REQUIRE(put(&s, "sys/module/neuron/version", "9.9\n"));
	host_read(&h, NULL, s.dir);
	CHECK_STR(h.instance_id, "i-0123456789abcdef0");
	CHECK_STR(h.driver, "2.30.2.0");
	host_read(&h, s.dir, s.dir); /* a virtual device brings its own */
	CHECK_STR(h.driver, "9.9");
	REQUIRE(put(&s, "devices/virtual/dmi/id/board_asset_tag", "i-../../../etc\n"));
	host_read(&h, NULL, s.dir);
	CHECK(strchr(h.instance_id, '/') == NULL);
	scratch_remove(&s);
}
