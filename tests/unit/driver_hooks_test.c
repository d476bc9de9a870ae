/* SPDX-License-Identifier: Apache-2.0 */
/*
 * driver_hooks_test.c - the ladder inside of the driver where no driver is, or one that is made up: what is
 * said of each step, and that a driver which comes, goes or changes is followed.
 *
 * That the steps work where there is a driver is the business of tests/vm.
 */
#include "agent/collect/driver_hooks.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/collect/ioctl_hooks.h"
#include "agent/recorder.h"
#include "runtime/base/file.h"
#include "tests/shim/shim.h"
#include "tests/unit/hooks_bench.h"
#include "tests/unit/scratch.h"

struct fake {
	struct scratch dir;
	struct scratch_path sys;
};

static bool fake_make(struct fake *f)
{
	if (!scratch_make(&f->dir))
		return false;
	f->sys = scratch_path(&f->dir, "sys");
	return file_mkdirs(f->sys.s, NULL) == 0;
}

static void cleanup_fake(struct fake *f)
{
	scratch_remove(&f->dir);
}

static bool put(const struct fake *f, const char *name, const char *text)
{
	FILE *file = fopen(scratch_path(&f->dir, name).s, "we");

	return file && fputs(text, file) >= 0 && fclose(file) == 0;
}

/* Loads a made-up driver. */
static bool load(const struct fake *f, const char *version, const char *state)
{
	return file_mkdirs(scratch_path(&f->dir, "sys/module/neuron").s, NULL) == 0 &&
	       put(f, "sys/module/neuron/version", version) &&
	       put(f, "sys/module/neuron/srcversion", "0123456789ABCDEF") &&
	       put(f, "sys/module/neuron/refcnt", "3\n") &&
	       put(f, "sys/module/neuron/initstate", state);
}

/* Its directory stays somewhere: the next one must not get its inode number, which sysfs does not give again. */
static void unload(const struct fake *f)
{
	static unsigned gone;
	char path[64];

	snprintf(path, sizeof(path), "sys/gone.%u", gone++);
	CHECK_EQ(
		rename(scratch_path(&f->dir, "sys/module/neuron").s, scratch_path(&f->dir, path).s),
		0);
}

static const char *result_of(const struct driver_hooks *h, const char *family, const char *step)
{
	for (const struct rec_ladder_step *s = driver_hooks_ladder(h); s->family; s++)
		if (!strcmp(s->family, family) && !strcmp(s->step, step))
			return s->result;
	return "not tried";
}

TEST("driver module: what /sys says of it, and when it is another one", "[driver]")
{
	_cleanup_(cleanup_fake) struct fake f = {0};
	struct driver_module m, again;

	REQUIRE(fake_make(&f));
	driver_module_read(f.sys.s, &m);
	CHECK(!m.present);
	CHECK(driver_module_unchanged(f.sys.s, &m));
	CHECK_EQ(driver_module_refcount(f.sys.s), -ENOENT);

	REQUIRE(load(&f, "2.24.7.0\n", "coming\n"));
	CHECK(driver_module_unchanged(f.sys.s, &m)); /* not ready: as good as none */
	REQUIRE(put(&f, "sys/module/neuron/initstate", "live\n"));
	CHECK(!driver_module_unchanged(f.sys.s, &m));
	driver_module_read(f.sys.s, &m);
	CHECK(m.present);
	CHECK(!m.has_btf);
	CHECK_STR(m.version, "2.24.7.0");
	CHECK_STR(m.srcversion, "0123456789ABCDEF");
	CHECK(m.is_known);
	CHECK_EQ(driver_module_refcount(f.sys.s), 3);
	CHECK(driver_module_unchanged(f.sys.s, &m));
	/* As the times of sysfs do when its caches are dropped. */
	CHECK_EQ(chmod(scratch_path(&f.dir, "sys/module/neuron").s, 0700), 0);
	CHECK(driver_module_unchanged(f.sys.s, &m));

	REQUIRE(put(&f, "sys/module/neuron/initstate", "going\n"));
	CHECK(!driver_module_unchanged(f.sys.s, &m));
	unload(&f);
	CHECK(!driver_module_unchanged(f.sys.s, &m));
	REQUIRE(load(&f, "2.30.2.0\n", "live\n"));
	CHECK(!driver_module_unchanged(f.sys.s, &m)); /* loaded anew between two looks */
	driver_module_read(f.sys.s, &again);
	CHECK(again.is_known);
	CHECK(again.identity != m.identity);
}

TEST("driver module: prototypes are known of the versions that were read, and of no other",
	"[driver]")
{
	static const struct {
		const char *version;
		bool is_known;
	} cases[] = {
		{"2.24.7.0\n", true},
		{"2.24.7.1\n", false},
		{"2.24.7\n", false},
		{"2.24.99\n", false},
		{"2.30.2.0\n", true},
		{"2.30.0.0\n", false},
		{"2.240.1.0\n", false},
		{"2.27.4.0\n", false},
		{"12.24.1\n", false},
		{"", false},
	};
	_cleanup_(cleanup_fake) struct fake f = {0};
	struct driver_module m;

	REQUIRE(fake_make(&f));
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		REQUIRE(load(&f, cases[i].version, "live\n"));
		driver_module_read(f.sys.s, &m);
		test_info("version %s", cases[i].version);
		CHECK(m.present);
		CHECK_EQ(m.is_known, cases[i].is_known);
	}
}

TEST("driver hooks: each level has a name, and no other word is one", "[driver]")
{
	for (unsigned l = 0; l < HOOK_LEVELS; l++)
		CHECK_EQ(hook_level_of(hook_level_name((enum hook_level)l)), l);
	CHECK_EQ(hook_level_of("auto"), HOOK_LEVELS);
	CHECK_EQ(hook_level_of(""), HOOK_LEVELS);
	CHECK(hook_level_name(HOOK_LEVELS) == NULL);
}

TEST("driver hooks: without a driver nothing is hooked, and a level that was asked for is an error",
	"[driver]")
{
	static const char *const inside[] = {"fentry", "kprobe", "tracepoint"};
	_cleanup_(cleanup_fake) struct fake f = {0};
	struct driver_hooks *h = NULL;
	struct driver_hooks_options o = {0};
	char why[256] = "";

	REQUIRE(fake_make(&f));
	o.sys = f.sys.s;
	REQUIRE_EQ(driver_hooks_open(&o, &h, why, sizeof(why)), 0);
	CHECK_EQ(driver_hooks_generation(h), 0);
	CHECK(*driver_hooks_names(h) == NULL);
	CHECK_EQ(driver_hooks_level(h, "ioctl"), HOOK_LEVELS);
	CHECK_STR(result_of(h, "driver", "module"), "not loaded");
	CHECK_EQ(driver_hooks_follow(h), 0);
	driver_hooks_close(h);

	o.force = "syscall";
	REQUIRE_EQ(driver_hooks_open(&o, &h, why, sizeof(why)), 0);
	driver_hooks_close(h);
	for (size_t i = 0; i < sizeof(inside) / sizeof(*inside); i++) {
		h = NULL;
		o.force = inside[i];
		CHECK_EQ(driver_hooks_open(&o, &h, why, sizeof(why)), -ENOENT);
		CHECK(h == NULL);
		test_info("why: %s", why);
		CHECK(strstr(why, inside[i]) && strstr(why, "module neuron is not loaded"));
	}
	o.force = "uprobe";
	CHECK_EQ(driver_hooks_open(&o, &h, why, sizeof(why)), -EINVAL);
	CHECK(strstr(why, "'uprobe'") && strstr(why, "kprobe"));
}

TEST("driver hooks: a driver without type information, or of a version that nobody read, is said "
     "so",
	"[driver]")
{
	_cleanup_(cleanup_fake) struct fake f = {0};
	struct driver_hooks_options o = {0};
	struct driver_hooks *h = NULL;
	char why[256] = "";

	NEED_HOOKS();
	REQUIRE(fake_make(&f));
	REQUIRE(load(&f, "2.27.4.0\n", "live\n"));
	o.sys = f.sys.s;
	REQUIRE_EQ(driver_hooks_open(&o, &h, why, sizeof(why)), 0);
	CHECK_EQ(driver_hooks_generation(h), 1);
	CHECK_STR(result_of(h, "ioctl", "fentry"), "no BTF");
	CHECK_STR(result_of(h, "ioctl", "kprobe"), "unknown prototype");
	CHECK_STR(result_of(h, "file", "kprobe"), "unknown prototype");
	CHECK_EQ(driver_hooks_level(h, "file"), HOOK_LEVELS);
	CHECK(*driver_hooks_names(h) == NULL);
	driver_hooks_close(h);

	/* The prototype is known; that the function is not there the kernel says. */
	REQUIRE(load(&f, "2.24.7.0\n", "live\n"));
	REQUIRE_EQ(driver_hooks_open(&o, &h, why, sizeof(why)), 0);
	test_info("kprobe: %s", result_of(h, "ioctl", "kprobe"));
	CHECK(result_of(h, "ioctl", "kprobe")[0] == 'E');
	CHECK_EQ(driver_hooks_level(h, "ioctl"), HOOK_LEVELS);
	driver_hooks_close(h);

	h = NULL;
	o.force = "fentry";
	CHECK_EQ(driver_hooks_open(&o, &h, why, sizeof(why)), -ENOENT);
	test_info("why: %s", why);
	CHECK(h == NULL);
	CHECK(strstr(why, "fentry") && strstr(why, "2.24.7.0") && strstr(why, "no BTF"));
}

TEST("driver hooks: kprobes that are switched off are not used, and the next step is tried",
	"[driver]")
{
	static const struct {
		const char *enabled; /* NULL: debugfs is not there */
		bool off;
	} cases[] = {{NULL, false}, {"1\n", false}, {"0\n", true}, {"", false}, {"01\n", false}};
	_cleanup_(cleanup_fake) struct fake f = {0};
	struct driver_hooks_options o = {0};
	struct driver_hooks *h = NULL;
	char why[256] = "";

	NEED_HOOKS();
	REQUIRE(fake_make(&f));
	REQUIRE(load(&f, "2.24.7.0\n", "live\n"));
	REQUIRE_EQ(file_mkdirs(scratch_path(&f.dir, "sys/kernel/debug/kprobes").s, NULL), 0);
	o.sys = f.sys.s;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		if (cases[i].enabled)
			REQUIRE(put(&f, "sys/kernel/debug/kprobes/enabled", cases[i].enabled));
		REQUIRE_EQ(driver_hooks_open(&o, &h, why, sizeof(why)), 0);
		test_info("enabled '%s': %s", cases[i].enabled ? cases[i].enabled : "-",
			result_of(h, "queue", "kprobe"));
		CHECK_EQ(!strcmp(result_of(h, "queue", "kprobe"), "kprobes are off"), cases[i].off);
		CHECK_EQ(!strcmp(result_of(h, "ioctl", "kprobe"), "kprobes are off"), cases[i].off);
		CHECK(strcmp(result_of(h, "queue", "tracepoint"), "not tried") != 0);
		CHECK_EQ(driver_hooks_kprobes_off_ns(h), 0); /* nothing relies on them */
		driver_hooks_close(h);
	}

	/* What can never be comes first. */
	REQUIRE(put(&f, "sys/kernel/debug/kprobes/enabled", "0\n"));
	REQUIRE_EQ(driver_hooks_open(&o, &h, why, sizeof(why)), 0);
	CHECK_STR(result_of(h, "doorbell", "kprobe"), "no BTF");
	driver_hooks_close(h);

	h = NULL;
	o.force = "kprobe";
	CHECK_EQ(driver_hooks_open(&o, &h, why, sizeof(why)), -ENOENT);
	test_info("why: %s", why);
	CHECK(h == NULL);
	CHECK(strstr(why, "kprobes are off") != NULL);
}

TEST("driver hooks: a driver that comes, goes and comes again as another is followed", "[driver]")
{
	_cleanup_(cleanup_fake) struct fake f = {0};
	struct driver_hooks_options o = {0};
	struct driver_hooks *h = NULL;
	char why[256] = "";

	NEED_HOOKS();
	REQUIRE(fake_make(&f));
	o.sys = f.sys.s;
	REQUIRE_EQ(driver_hooks_open(&o, &h, why, sizeof(why)), 0);
	REQUIRE(load(&f, "2.24.7.0\n", "live\n"));
	CHECK_EQ(driver_hooks_follow(h), 1);
	CHECK_EQ(driver_hooks_generation(h), 1);
	CHECK_STR(driver_hooks_module(h)->version, "2.24.7.0");
	CHECK_STR(result_of(h, "ioctl", "fentry"), "no BTF");
	CHECK_EQ(driver_hooks_follow(h), 0);
	unload(&f);
	CHECK_EQ(driver_hooks_follow(h), 1);
	CHECK_EQ(driver_hooks_generation(h), 1);
	CHECK(!driver_hooks_module(h)->present);
	CHECK_STR(result_of(h, "driver", "module"), "not loaded");
	REQUIRE(load(&f, "2.30.2.0\n", "live\n"));
	CHECK_EQ(driver_hooks_follow(h), 1);
	CHECK_EQ(driver_hooks_generation(h), 2);
	CHECK_STR(driver_hooks_module(h)->version, "2.30.2.0");
	driver_hooks_close(h);
}

TEST("driver hooks: the system call stays hooked while the driver's own hooks are not to be had",
	"[driver][hooks]")
{
	_cleanup_(cleanup_fake) struct fake f = {0};
	struct ioctl_hooks_options o = {0};
	struct ioctl_hooks *h = NULL;
	const struct rec_ladder_step *last;
	char why[256] = "";

	NEED_HOOKS();
	REQUIRE(fake_make(&f));
	o.sys = f.sys.s;
	REQUIRE_EQ(ioctl_hooks_open(&o, &h, why, sizeof(why)), 0);
	REQUIRE(load(&f, "2.24.7.0\n", "live\n"));
	CHECK_EQ(ioctl_hooks_follow(h), 1);
	CHECK_EQ(ioctl_hooks_follow(h), 0);
	CHECK_EQ(ioctl_hooks_generation(h), 1);
	CHECK_STR(ioctl_hooks_ladder(h)->family, "process");
	for (last = ioctl_hooks_ladder(h); last[1].family; last++)
		;
	CHECK_STR(last->family, "ioctl");
	CHECK_STR(last->step, "syscall");
	CHECK_STR(last->result, "reached");
	ioctl_hooks_close(h);

	h = NULL;
	o.level = "kprobe";
	CHECK_EQ(ioctl_hooks_open(&o, &h, why, sizeof(why)), -ENOENT);
	CHECK(h == NULL);
	CHECK(strstr(why, "kprobe"));
}

TEST("driver hooks: families that are left out are said so, and a word that is none is found",
	"[driver]")
{
	_cleanup_(cleanup_fake) struct fake f = {0};
	struct driver_hooks_options o = {.off = "file,doorbell"};
	struct driver_hooks *h = NULL;
	char why[256] = "";
	unsigned n, commas = 0;
	size_t length = 0;
	const char *unknown;

	NEED_HOOKS();
	REQUIRE(fake_make(&f));
	REQUIRE(load(&f, "2.24.7.0\n", "live\n"));
	o.sys = f.sys.s;
	REQUIRE_EQ(driver_hooks_open(&o, &h, why, sizeof(why)), 0);
	CHECK_STR(result_of(h, "file", "fentry"), "off");
	CHECK_STR(result_of(h, "doorbell", "kprobe"), "off");
	CHECK_STR(result_of(h, "ioctl", "fentry"), "no BTF");

	/* What --help names is all there is. */
	for (n = 0; driver_hooks_family(h, n); n++)
		CHECK(strstr(", " DRIVER_FAMILIES ",", driver_hooks_family(h, n)) != NULL);
	for (const char *at = DRIVER_FAMILIES; (at = strstr(at, ", ")); at += 2)
		commas++;
	CHECK_EQ(commas + 1, n);
	driver_hooks_close(h);

	CHECK(driver_hooks_unknown_family("file,doorbell,user-ring", &length) == NULL);
	CHECK(driver_hooks_unknown_family("", &length) == NULL);
	unknown = driver_hooks_unknown_family("file,door,queue", &length);
	CHECK(unknown && length == 4 && strncmp(unknown, "door", 4) == 0);
}
