/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ioctl_hooks_test.c - the system-call hooks see the right calls and tell them right.
 */
#include <glob.h>

#include "tests/unit/hooks_bench.h"

TEST("hooks: a ring size that the kernel cannot take is refused with the nearest that it can",
	"[hooks]")
{
	static const struct {
		uint32_t bytes;
		const char *nearest;
	} cases[] = {
		{1, " 4096"},
		{5000, " 4096"},
		{7000, " 8192"},
		{4194305, " 4194304"},
		{6291456, " 4194304"},
		{6291457, " 8388608"},
		{0x80000000u, " 1073741824"},
	};

	if (sysconf(_SC_PAGESIZE) != 4096)
		SKIP("pages of 4096 bytes");
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct ioctl_hooks_options o = {.ring_bytes = cases[i].bytes};
		struct ioctl_hooks *h = NULL;
		char why[256] = "";
		size_t want = strlen(cases[i].nearest);

		test_info("ring of %u bytes: %s", cases[i].bytes, why);
		CHECK_EQ(ioctl_hooks_open(&o, &h, why, sizeof(why)), -EINVAL);
		CHECK(h == NULL);
		CHECK(strlen(why) > want &&
			strcmp(why + strlen(why) - want, cases[i].nearest) == 0);
	}
}

TEST("hooks: without the right to load programs the reason is given and nothing is printed",
	"[hooks]")
{
	int up[2];
	char why[256] = "";
	pid_t pid;

	NEED_HOOKS();
	REQUIRE(pipe2(up, O_CLOEXEC) == 0);
	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		struct ioctl_hooks_options o = {0};
		struct ioctl_hooks *h = NULL;

		/* What a library prints would come out of the pipe before the reason. */
		dup2(up[1], STDOUT_FILENO);
		dup2(up[1], STDERR_FILENO);
		if (setresgid(65534, 65534, 65534) < 0 || setresuid(65534, 65534, 65534) < 0)
			_exit(99);
		if (ioctl_hooks_open(&o, &h, why, sizeof(why)) != -EPERM)
			_exit(98);
		_exit(write(up[1], why, strlen(why)) < 0);
	}
	close(up[1]);
	CHECK(read(up[0], why, sizeof(why) - 1) > 0);
	close(up[0]);
	test_info("%s", why);
	CHECK(strstr(why, " is not permitted: run as root, or with " BPF_PRIVILEGES) != NULL);
	CHECK(strstr(why, "libbpf") == NULL);
	CHECK(strncmp(why, "loading", 7) == 0 || strncmp(why, "opening", 7) == 0);
	REQUIRE(waitpid(pid, &up[0], 0) == pid);
	CHECK_EQ(WEXITSTATUS(up[0]), 0);
}

TEST("hooks: a call gives one record with who, what, arguments and result", "[hooks]")
{
	_cleanup_(cleanup_bench) struct bench *b = NULL;
	uint64_t before = clock_boot().ns, after;
	const struct record *r;
	struct answer a;
	struct sums s;

	NEED_HOOKS();
	b = bench_open((struct ioctl_hooks_options){0}, true);
	REQUIRE(b != NULL);
	a = tell(b, buf_copy);
	after = clock_boot().ns;
	drain_until(b, 1);
	REQUIRE_EQ(b->got.count, 1);
	CHECK(!b->got.damaged);
	r = &b->got.rows[0];
	CHECK_EQ(r->head.hdr.type, NEV_IOCTL_DONE);
	CHECK_EQ(r->head.hdr.cpu, 0);
	CHECK_EQ(r->head.hdr.seq, 0);
	CHECK_EQ(r->head.tgid, b->child);
	CHECK_EQ(r->head.tid, a.tid);
	CHECK_EQ(r->head.fd, a.fd);
	CHECK_EQ(r->head.request, NEURON_IOCTL_MEM_BUF_COPY64);
	CHECK_EQ(r->head.result, -ENOTTY);
	CHECK_EQ(a.error, ENOTTY);
	CHECK_EQ(r->head.device, 0);
	CHECK_EQ(r->head.flags, 0);
	CHECK(r->head.start_ns > before && r->head.hdr.time_ns < after);
	CHECK_EQ(r->head.start_ns + r->head.duration_ns, r->head.hdr.time_ns);
	REQUIRE_EQ(r->head.hdr.nargs, 4);
	CHECK_EQ(r->args[0], 7);
	CHECK_EQ(r->args[1], 4096);
	CHECK_EQ(r->args[2], 64);
	CHECK_EQ(r->args[3], 1);
	s = sums(b);
	CHECK(balanced(&s));
	CHECK_EQ(s.c[NEV_C_ENTERED], 1);
	CHECK_EQ(s.received, 1);
}

TEST("hooks: every request of the table is decoded by its own row", "[hooks]")
{
	_cleanup_(cleanup_bench) struct bench *b = NULL;
	struct order o = {.act = ACT_CALLS, .count = 1};

	NEED_HOOKS();
	b = bench_open((struct ioctl_hooks_options){0}, true);
	REQUIRE(b != NULL);
	for (size_t i = 0; i < sizeof(o.arg); i++)
		o.arg[i] = (uint8_t)(i + 1);
	for (size_t i = 0; i < ioctl_row_count; i++) {
		o.cmd = ioctl_rows[i].cmd;
		tell(b, o);
	}
	drain_until(b, (unsigned)ioctl_row_count);
	REQUIRE_EQ(b->got.count, ioctl_row_count);
	for (size_t i = 0; i < ioctl_row_count; i++) {
		const struct record *r = &b->got.rows[i];
		const struct ioctl_row *row = &ioctl_rows[i];
		unsigned n = ioctl_row_fields(row);

		test_info("row %s", row->name);
		CHECK_EQ(r->head.request, row->cmd);
		CHECK_EQ(r->head.hdr.nargs, ioctl_class(n));
		CHECK_EQ(r->head.flags, 0);
		for (unsigned f = 0; f < NEV_MAX_ARGS; f++) {
			uint64_t want = 0;

			if (f < n && !row->fields[f].is_out)
				memcpy(&want, o.arg + row->fields[f].offset, row->fields[f].width);
			CHECK_EQ(r->args[f], want);
		}
	}
}

TEST("hooks: threads and children of a tracked process are seen, others are not", "[hooks]")
{
	_cleanup_(cleanup_bench) struct bench *b = NULL;
	struct order o = buf_copy;
	struct answer thread, fork;
	int fd;

	NEED_HOOKS();
	b = bench_open((struct ioctl_hooks_options){0}, true);
	REQUIRE(b != NULL);
	fd = open(b->file, O_RDWR | O_CLOEXEC); /* this process is not tracked */
	CHECK(ioctl(fd, buf_copy.cmd, buf_copy.arg) < 0 && errno == ENOTTY);
	o.act = ACT_THREAD;
	thread = tell(b, o);
	o.act = ACT_FORK;
	fork = tell(b, o);
	CHECK(ioctl(fd, buf_copy.cmd, buf_copy.arg) < 0 && errno == ENOTTY);
	close(fd);
	drain_until(b, 2);
	REQUIRE_EQ(b->got.count, 2);
	CHECK(thread.tid != b->child);
	CHECK_EQ(b->got.rows[0].head.tgid, b->child);
	CHECK_EQ(b->got.rows[0].head.tid, thread.tid);
	CHECK_EQ(b->got.rows[1].head.tgid, fork.tid);
	CHECK_EQ(b->got.rows[1].head.tid, fork.tid);
	CHECK_EQ(sums(b).c[NEV_C_ENTERED], 2);
}

TEST("hooks: with all_processes nobody needs to be tracked", "[hooks]")
{
	_cleanup_(cleanup_bench) struct bench *b = NULL;
	int fd;

	NEED_HOOKS();
	b = bench_open((struct ioctl_hooks_options){.all_processes = true}, true);
	REQUIRE(b != NULL);
	fd = open(b->file, O_RDWR | O_CLOEXEC);
	CHECK(ioctl(fd, buf_copy.cmd, buf_copy.arg) < 0);
	close(fd);
	tell(b, buf_copy);
	drain_until(b, 2);
	REQUIRE_EQ(b->got.count, 2);
	CHECK_EQ(b->got.rows[0].head.tgid, getpid());
	CHECK_EQ(b->got.rows[1].head.tgid, b->child);
}

/* The calls may fall into two seconds. */
TEST("hooks: of a process's calls in a second so many are recorded as were asked for", "[hooks]")
{
	_cleanup_(cleanup_bench) struct bench *b = NULL;
	uint64_t recorded;

	NEED_HOOKS();
	b = bench_open((struct ioctl_hooks_options){.rate = 15}, true);
	REQUIRE(b != NULL);
	for (int i = 0; i < 40; i++)
		tell(b, buf_copy);
	recorded = sums(b).c[NEV_C_DONE];
	CHECK(recorded >= 15);
	CHECK(recorded <= 30);
	CHECK_EQ(recorded + sums(b).c[NEV_C_LOST_RATE], 40);
	drain_until(b, (unsigned)recorded);
	CHECK_EQ(b->got.count, recorded);
}

TEST("hooks: only neuron files count; new devices and character devices are followed", "[hooks]")
{
	_cleanup_(cleanup_bench) struct bench *b = NULL;
	struct scratch_path other, chr;

	NEED_HOOKS();
	b = bench_open((struct ioctl_hooks_options){0}, true);
	REQUIRE(b != NULL);
	REQUIRE(make_file(&b->dir, "dev/neuron7") && make_file(&b->dir, "dev/neuron7x") &&
		make_file(&b->dir, "dev/neuro1") && make_file(&b->dir, "dev/neuron"));
	other = scratch_path(&b->dir, "dev/neuron7");
	snprintf(b->file, sizeof(b->file), "%s", other.s);
	tell(b, buf_copy); /* not yet known */
	CHECK_EQ(ioctl_hooks_scan_devices(b->hooks, b->dir.dir), 2);
	tell(b, buf_copy);
	chr = scratch_path(&b->dir, "dev/neuron12");
	REQUIRE(symlink("/dev/null", chr.s) == 0);
	CHECK_EQ(ioctl_hooks_scan_devices(b->hooks, b->dir.dir), 3);
	CHECK_EQ(ioctl_hooks_scan_devices(b->hooks, b->dir.dir), 3);
	CHECK_EQ(ioctl_hooks_device(b->hooks, 0), 0);
	CHECK_EQ(ioctl_hooks_device(b->hooks, 1), 7);
	CHECK_EQ(ioctl_hooks_device(b->hooks, 2), 12);
	snprintf(b->file, sizeof(b->file), "/dev/null");
	tell(b, buf_copy);
	drain_until(b, 2);
	REQUIRE_EQ(b->got.count, 2);
	CHECK_EQ(b->got.rows[0].head.device, 7);
	CHECK_EQ(b->got.rows[1].head.device, 12);
	CHECK(ioctl_hooks_device_is_virtual(b->hooks, 0));
	CHECK(ioctl_hooks_device_is_virtual(b->hooks, 1));
	CHECK(!ioctl_hooks_device_is_virtual(b->hooks, 2));
}

TEST("hooks: a root without devices' directory is an error at first, and later changes nothing",
	"[hooks]")
{
	struct ioctl_hooks_options o = {0};
	struct scratch root = {0};
	struct ioctl_hooks *h = NULL;
	char why[256] = "";

	NEED_HOOKS();
	REQUIRE(scratch_make(&root));
	REQUIRE_EQ(ioctl_hooks_open(&o, &h, why, sizeof(why)), 0);
	CHECK_EQ(ioctl_hooks_scan_devices(h, root.dir), -ENOENT);
	CHECK_EQ(ioctl_hooks_scan_devices(h, root.dir), -ENOENT);
	CHECK(mkdir(scratch_path(&root, "dev").s, 0700) == 0);
	CHECK_EQ(ioctl_hooks_scan_devices(h, root.dir), 0);
	CHECK(make_file(&root, "dev/neuron3"));
	CHECK_EQ(ioctl_hooks_scan_devices(h, root.dir), 1);
	CHECK(unlink(scratch_path(&root, "dev/neuron3").s) == 0);
	CHECK(rmdir(scratch_path(&root, "dev").s) == 0);
	CHECK_EQ(ioctl_hooks_scan_devices(h, root.dir), 1);
	CHECK_EQ(ioctl_hooks_device(h, 0), 3);
	ioctl_hooks_close(h);
	scratch_remove(&root);
}

TEST("hooks: an argument that cannot be read and an unknown request are said so", "[hooks]")
{
	_cleanup_(cleanup_bench) struct bench *b = NULL;
	struct order bad = buf_copy, unknown = buf_copy;
	struct sums s;

	NEED_HOOKS();
	b = bench_open((struct ioctl_hooks_options){0}, true);
	REQUIRE(b != NULL);
	bad.bad_pointer = true;
	unknown.cmd = 0x4e00;
	tell(b, bad);
	tell(b, unknown);
	drain_until(b, 2);
	REQUIRE_EQ(b->got.count, 2);
	CHECK_EQ(b->got.rows[0].head.flags, NEV_F_ARG_FAULT);
	CHECK_EQ(b->got.rows[0].head.hdr.nargs, 4);
	for (int i = 0; i < 4; i++)
		CHECK_EQ(b->got.rows[0].args[i], 0);
	CHECK_EQ(b->got.rows[1].head.flags, NEV_F_UNKNOWN);
	CHECK_EQ(b->got.rows[1].head.hdr.nargs, 0);
	s = sums(b);
	CHECK_EQ(s.c[NEV_C_ARG_FAULT], 1);
	CHECK(balanced(&s));
}

TEST("hooks: the names of what is attached", "[hooks]")
{
	_cleanup_(cleanup_bench) struct bench *b = NULL;
	unsigned n = 0, calls = 0;

	NEED_HOOKS();
	b = bench_open((struct ioctl_hooks_options){0}, true);
	REQUIRE(b != NULL);
	for (const char *const *name = ioctl_hooks_names(b->hooks); *name; name++, n++)
		calls += strncmp(*name, "tracepoint:syscalls:sys_e", 25) == 0;
	CHECK_EQ(n, 5);
	CHECK_EQ(calls, 2);
}

static bool has_run(const struct bpf_cost *cost, const char *program, uint64_t times)
{
	for (unsigned i = 0; i < cost->count; i++)
		if (!strcmp(cost->programs[i].program, program))
			return cost->programs[i].runs >= times &&
			       cost->programs[i].run_ns >= cost->programs[i].runs;
	return false;
}

TEST("hooks: what they cost is measured when it is asked for", "[hooks]")
{
	for (int asked = 0; asked < 2; asked++) {
		_cleanup_(cleanup_bench) struct bench *b = NULL;
		struct order o = buf_copy;
		struct bpf_cost cost = {0};

		NEED_HOOKS();
		b = bench_open(
			(struct ioctl_hooks_options){.ring_bytes = 1u << 20, .cost = asked}, true);
		REQUIRE(b != NULL);
		o.count = 100;
		tell(b, o);
		CHECK_EQ(ioctl_hooks_cost(b->hooks, &cost), asked);
		if (!asked)
			continue;
		CHECK(has_run(&cost, "enter_ioctl", 100));
		CHECK(has_run(&cost, "exit_ioctl", 100));
		/* The ring and its pages at the least. */
		CHECK(cost.map_bytes > 1u << 20);
	}
}

static unsigned occurrences(const char *text, const char *what)
{
	unsigned n = 0;

	for (; (text = strstr(text, what)); text++)
		n++;
	return n;
}

TEST("hooks: BPF sources reserve ring space in one place only and check it", "[bpf]")
{
	glob_t g;

	if (glob("bpf/*.bpf.c", 0, NULL, &g) != 0)
		SKIP("the source tree (run from its top)");
	for (size_t i = 0; i < g.gl_pathc; i++) {
		char *text = NULL;
		const char *at;
		size_t size;

		test_info("%s", g.gl_pathv[i]);
		REQUIRE(file_read(g.gl_pathv[i], 1u << 20, &text, &size) == 0);
		at = strstr(text, "bpf_ringbuf_reserve(");
		CHECK(occurrences(text, "bpf_ringbuf_reserve(") <= 1);
		CHECK_EQ(occurrences(text, "bpf_ringbuf_output("), 0);
		CHECK_EQ(occurrences(text, "bpf_ringbuf_submit("), at != NULL);
		/* What reserves also counts its failure. */
		CHECK(!at || (strstr(at, "if (!e)") && strstr(at, "NEV_C_LOST_RING_FULL")));
		free(text);
	}
	globfree(&g);
}
