/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probe_test.c - the table of `ntrace check` says what is there, on made-up machines and on this one.
 */
#include "agent/collect/probe.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/collect/bpf_support.h"
#include "runtime/base/file.h"
#include "tests/shim/shim.h"
#include "tests/unit/scratch.h"

/* A /sys and a /dev below a private directory. */
struct machine {
	struct scratch dir;
	struct scratch_path sys, dev;
};

static bool put(const struct machine *m, const char *path, const char *text)
{
	struct scratch_path full = scratch_path(&m->dir, path), parent = full;
	FILE *f;

	*strrchr(parent.s, '/') = '\0';
	if (file_mkdirs(parent.s, NULL) < 0)
		return false;
	f = fopen(full.s, "we");
	return f && fputs(text, f) >= 0 && fclose(f) == 0;
}

static bool machine_make(struct machine *m)
{
	if (!scratch_make(&m->dir))
		return false;
	m->sys = scratch_path(&m->dir, "sys");
	m->dev = scratch_path(&m->dir, "dev");
	return put(m, "sys/empty", "") && put(m, "dev/empty", "");
}

static void cleanup_machine(struct machine *m)
{
	scratch_remove(&m->dir);
}

static int probe(const struct machine *m, struct probe_row *rows)
{
	return probe_run(
		&(struct probe_paths){.sys = m->sys.s, .dev = m->dev.s}, rows, PROBE_MAX_ROWS);
}

static const struct probe_row *row_named(const struct probe_row *rows, int n, const char *name)
{
	static const struct probe_row none = {.name = "none", .detail = "no such row", .state = -1};

	for (int i = 0; i < n; i++)
		if (strcmp(rows[i].name, name) == 0)
			return &rows[i];
	return &none;
}

TEST("probe: a bare machine lacks everything, and each row says what follows", "[probe]")
{
	_cleanup_(cleanup_machine) struct machine m = {0};
	struct probe_row rows[PROBE_MAX_ROWS];
	int n;

	REQUIRE(machine_make(&m));
	n = probe(&m, rows);
	CHECK_EQ(n, 13);
	for (int i = 0; i < n; i++) {
		test_info("row %s", rows[i].name);
		CHECK(rows[i].detail[0] != '\0' && !strchr(rows[i].detail, '\n'));
		CHECK(rows[i].consequence && *rows[i].consequence);
	}
	CHECK_EQ(row_named(rows, n, "kernel BTF")->state, PROBE_MISSING);
	CHECK_EQ(row_named(rows, n, "BPF programs")->state, PROBE_MISSING);
	CHECK(strstr(row_named(rows, n, "BPF programs")->detail, "not tried") != NULL);
	CHECK_EQ(row_named(rows, n, "system-call hooks")->state, PROBE_MISSING);
	CHECK_EQ(row_named(rows, n, "process hooks")->state, PROBE_MISSING);
	CHECK_EQ(row_named(rows, n, "FUSE")->state, PROBE_MISSING);
	CHECK_EQ(row_named(rows, n, "neuron devices")->state, PROBE_MISSING);
	CHECK_STR(row_named(rows, n, "neuron devices")->detail, "0 devices");
	CHECK_EQ(row_named(rows, n, "neuron driver")->state, PROBE_MISSING);
	CHECK_EQ(row_named(rows, n, "lockdown")->state, PROBE_OK);
	CHECK(!probe_can_record(rows, n));
}

TEST("probe: fewer rows than there are can be asked for", "[probe]")
{
	_cleanup_(cleanup_machine) struct machine m = {0};
	struct probe_row rows[3];

	memset(rows, 0, sizeof(rows));
	REQUIRE(machine_make(&m));
	CHECK_EQ(probe_run(&(struct probe_paths){.sys = m.sys.s, .dev = m.dev.s}, rows, 2), 2);
	CHECK_STR(rows[0].name, "kernel");
	CHECK_STR(rows[2].name, "");
}

TEST("probe: the word in brackets is the lockdown mode", "[probe]")
{
	static const struct {
		const char *text;
		enum probe_state state;
		const char *detail;
	} cases[] = {
		{"[none] integrity confidentiality\n", PROBE_OK, "mode none"},
		{"none [integrity] confidentiality\n", PROBE_OK, "mode integrity"},
		{"none integrity [confidentiality]\n", PROBE_DENIED, "mode confidentiality"},
		{"something else\n", PROBE_MISSING, "not understood: something else"},
		{"[none", PROBE_MISSING, "not understood: [none"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		_cleanup_(cleanup_machine) struct machine m = {0};
		struct probe_row rows[PROBE_MAX_ROWS];
		const struct probe_row *row;

		REQUIRE(machine_make(&m));
		REQUIRE(put(&m, "sys/kernel/security/lockdown", cases[i].text));
		row = row_named(rows, probe(&m, rows), "lockdown");
		CHECK_STR(row->detail, cases[i].detail);
		CHECK_EQ(row->state, cases[i].state);
	}
}

TEST("probe: devices are character devices named neuronN", "[probe]")
{
	_cleanup_(cleanup_machine) struct machine m = {0};
	struct probe_row rows[PROBE_MAX_ROWS];
	const struct probe_row *row;
	int n;

	REQUIRE(machine_make(&m));
	REQUIRE(put(&m, "dev/neuron1", "")); /* an ordinary file */
	REQUIRE(symlink("/dev/null", scratch_path(&m.dir, "dev/neuron").s) == 0);
	REQUIRE(symlink("/dev/null", scratch_path(&m.dir, "dev/neuron2x").s) == 0);
	REQUIRE(symlink("/dev/null", scratch_path(&m.dir, "dev/neuron0").s) == 0);
	REQUIRE(put(&m, "sys/module/neuron/version", "2.30.2.0\n"));
	n = probe(&m, rows);
	row = row_named(rows, n, "neuron devices");
	CHECK_EQ(row->state, PROBE_OK);
	CHECK_STR(row->detail, "1 device");
	CHECK_EQ(row_named(rows, n, "neuron driver")->state, PROBE_OK);
	CHECK_STR(row_named(rows, n, "neuron driver")->detail, "2.30.2.0");
	REQUIRE(symlink("/dev/null", scratch_path(&m.dir, "dev/neuron11").s) == 0);
	CHECK_STR(row_named(rows, probe(&m, rows), "neuron devices")->detail, "2 devices");
}

TEST("probe: only required rows keep a recording from working", "[probe]")
{
	struct probe_row rows[] = {
		{.name = "a", .state = PROBE_OK, .required = true},
		{.name = "b", .state = PROBE_MISSING},
	};

	CHECK(probe_can_record(rows, 2));
	rows[0].state = PROBE_DENIED;
	CHECK(!probe_can_record(rows, 2));
	CHECK_STR(probe_state_name(PROBE_OK), "ok");
	CHECK_STR(probe_state_name(PROBE_MISSING), "missing");
	CHECK_STR(probe_state_name(PROBE_DENIED), "denied");
}

TEST("probe: as root on a kernel with BTF the hooks attach", "[probe]")
{
	struct probe_row rows[PROBE_MAX_ROWS];
	int n;

	if (geteuid() != 0)
		SKIP("root (BPF programs)");
	if (access(BPF_KERNEL_BTF, R_OK) < 0)
		SKIP("kernel BTF (" BPF_KERNEL_BTF ")");
	n = probe_run(&(struct probe_paths){0}, rows, PROBE_MAX_ROWS);
	for (int i = 0; i < n; i++) {
		test_info("row %s: %s", rows[i].name, rows[i].detail);
		CHECK(!rows[i].required || rows[i].state == PROBE_OK);
	}
	CHECK(probe_can_record(rows, n));
}

TEST("probe: a family that a driver has no need of is not missing, another says what is not seen",
	"[probe]")
{
	static const struct {
		const char *version;
		enum probe_state state;
		const char *detail;
	} cases[] = {
		{"2.24.7.0", PROBE_OK, "not needed: drivers do that from 2.28 on"},
		{"2.30.2.0", PROBE_MISSING, "none ("},
		{"", PROBE_MISSING, "none ("}, /* nobody knows */
	};

	if (geteuid() != 0)
		SKIP("root (BPF programs)");
	if (access(BPF_KERNEL_BTF, R_OK) < 0)
		SKIP("kernel BTF (" BPF_KERNEL_BTF ")");
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		_cleanup_(cleanup_machine) struct machine m = {0};
		struct probe_row rows[PROBE_MAX_ROWS];
		const struct probe_row *row;
		int n;

		REQUIRE(machine_make(&m));
		REQUIRE(put(&m, "sys/kernel/btf/vmlinux", ""));
		REQUIRE(put(&m, "sys/module/neuron/version", cases[i].version));
		n = probe(&m, rows);
		row = row_named(rows, n, "driver hooks: owner");
		test_info("%s: %s", cases[i].version, row->detail);
		CHECK_EQ(row->state, cases[i].state);
		CHECK(strncmp(row->detail, cases[i].detail, strlen(cases[i].detail)) == 0);
		row = row_named(rows, n, "driver hooks: completion");
		CHECK_EQ(row->state, PROBE_MISSING);
		CHECK_STR(row->consequence, "not seen: completions and timeouts of its copies");
		CHECK(!row->required);
	}
}

TEST("probe: a level of hooks that is asked for must be there", "[probe]")
{
	static const struct {
		const char *level, *version;
		enum probe_state state;
		const char *detail;
	} cases[] = {
		{"kprobe", NULL, PROBE_MISSING, "module neuron is not loaded; level auto waits"},
		{"fentry", "2.24.7.0", PROBE_MISSING, "not possible with driver 2.24.7.0: no BTF"},
		{"syscall", NULL, PROBE_OK, "syscall (NTRACE_HOOKS)"},
		{"auto", NULL, -1, "no such row"},
	};

	if (geteuid() != 0)
		SKIP("root (BPF programs)");
	if (access(BPF_KERNEL_BTF, R_OK) < 0)
		SKIP("kernel BTF (" BPF_KERNEL_BTF ")");
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		_cleanup_(cleanup_machine) struct machine m = {0};
		struct probe_row rows[PROBE_MAX_ROWS];
		const struct probe_row *row;
		int n;

		REQUIRE(machine_make(&m));
		REQUIRE(put(&m, "sys/kernel/btf/vmlinux", ""));
		if (cases[i].version)
			REQUIRE(put(&m, "sys/module/neuron/version", cases[i].version));
		n = probe_run(
			&(struct probe_paths){
				.sys = m.sys.s, .dev = m.dev.s, .hooks = cases[i].level},
			rows, PROBE_MAX_ROWS);
		row = row_named(rows, n, "level of hooks");
		test_info("%s: %s", cases[i].level, row->detail);
		CHECK_EQ(row->state, cases[i].state);
		CHECK(strstr(row->detail, cases[i].detail) != NULL);
		CHECK_EQ(probe_can_record(rows, n), cases[i].state != PROBE_MISSING);
	}
}

static int probe_as_nobody(void *arg)
{
	struct probe_row *rows = arg;
	int n;

	if (setresgid(65534, 65534, 65534) < 0 || setresuid(65534, 65534, 65534) < 0)
		return 99;
	n = probe_run(&(struct probe_paths){0}, rows, PROBE_MAX_ROWS);
	if (probe_can_record(rows, n))
		return 1;
	if (!strstr(row_named(rows, n, "BPF programs")->detail, "run as root, or with CAP_"))
		return 2;
	return row_named(rows, n, "BPF programs")->state == PROBE_DENIED ? 0 : 3;
}

/* Another user with these capabilities and no others: 0 if a recording is possible, 1 if not. */
static int probe_with(void *arg)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {{0}};
	struct probe_row rows[PROBE_MAX_ROWS];

	data[0].effective = data[0].permitted = *(const uint32_t *)arg;
	if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) < 0 || setresgid(65534, 65534, 65534) < 0 ||
		setresuid(65534, 65534, 65534) < 0 || syscall(SYS_capset, &head, data) < 0)
		return 99;
	return probe_can_record(rows, probe_run(&(struct probe_paths){0}, rows, PROBE_MAX_ROWS))
		       ? 0
		       : 1;
}

/* What BPF_PRIVILEGES says. */
TEST("probe: two capabilities do in place of being root, and neither alone", "[probe]")
{
	static const struct {
		uint32_t caps;
		int status;
	} cases[] = {
		{1u << CAP_SYS_ADMIN | 1u << CAP_DAC_READ_SEARCH, 0},
		{1u << CAP_SYS_ADMIN, 1},
		{1u << CAP_DAC_READ_SEARCH, 1},
	};

	if (geteuid() != 0)
		SKIP("root (to become somebody else)");
	if (access(BPF_KERNEL_BTF, R_OK) < 0)
		SKIP("kernel BTF (" BPF_KERNEL_BTF ")");
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint32_t caps = cases[i].caps;

		test_info("capabilities %#x", caps);
		CHECK_EQ(scratch_child(probe_with, &caps), cases[i].status);
	}
}

TEST("probe: another user is denied what only root may do", "[probe]")
{
	struct probe_row rows[PROBE_MAX_ROWS];

	if (geteuid() != 0)
		SKIP("root (to become somebody else)");
	if (access(BPF_KERNEL_BTF, R_OK) < 0)
		SKIP("kernel BTF (" BPF_KERNEL_BTF ")");
	CHECK_EQ(scratch_child(probe_as_nobody, rows), 0);
}
