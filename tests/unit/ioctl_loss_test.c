/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ioctl_loss_test.c - the system-call hooks when something goes wrong: rings that are full, calls that
 * do not end, processes that die.  Nothing may be lost without being counted, no record may come after
 * a watermark that excluded it, and nothing may stay in the kernel.
 */
#include <bpf/bpf.h>
#include <glob.h>

#include "tests/unit/hooks_bench.h"

TEST("hooks: a full ring loses records, counts each and leaves gaps of that size", "[hooks]")
{
	_cleanup_(cleanup_bench) struct bench *b = NULL;
	struct order o = buf_copy;
	unsigned done;
	struct sums s;

	NEED_HOOKS();
	b = bench_open((struct ioctl_hooks_options){.ring_bytes = 4096}, true);
	REQUIRE(b != NULL);
	o.count = 1000;
	tell(b, o); /* nobody drains meanwhile */
	s = sums(b);
	CHECK_EQ(s.c[NEV_C_ENTERED], 1000);
	/* 96 bytes each with its head: as many as fit, and no fewer. */
	CHECK_EQ(s.c[NEV_C_DONE], 4096 / 96);
	CHECK_EQ(s.c[NEV_C_DONE] + s.c[NEV_C_LOST_RING_FULL], 1000);
	CHECK(balanced(&s));
	done = (unsigned)s.c[NEV_C_DONE];
	CHECK_EQ(ioctl_hooks_left(b->hooks), done);
	drain_until(b, done);
	CHECK_EQ(ioctl_hooks_left(b->hooks), 0);
	CHECK_EQ(b->got.count, done);
	/* One more record shows the gap. */
	tell(b, buf_copy);
	drain_until(b, done + 1);
	REQUIRE_EQ(b->got.count, done + 1);
	for (unsigned i = 0; i < done; i++)
		CHECK_EQ(b->got.rows[i].head.hdr.seq, i);
	CHECK_EQ(b->got.rows[done].head.hdr.seq - b->got.rows[done - 1].head.hdr.seq - 1,
		s.c[NEV_C_LOST_RING_FULL]);
	CHECK_EQ(sums(b).received, done + 1);
}

TEST("hooks: a call open for long is announced once and its end still comes", "[hooks]")
{
	_cleanup_(cleanup_bench) struct bench *b = NULL;
	struct order o = {.act = ACT_OPEN_CALL};
	uint64_t watermark = 0;
	const struct record *r;
	struct answer a;
	struct sums s;

	NEED_HOOKS();
	b = bench_open((struct ioctl_hooks_options){0}, false);
	REQUIRE(b != NULL);
	a = tell(b, o);
	if (a.error == ENOSYS || a.error == EPERM)
		SKIP("userfaultfd");
	REQUIRE_EQ(a.error, 0);
	drain_until(b, 1);
	REQUIRE_EQ(b->got.count, 1);
	r = &b->got.rows[0];
	CHECK_EQ(r->head.hdr.type, NEV_IOCTL_START);
	CHECK_EQ(r->head.hdr.cpu, NEV_CPU_READER);
	CHECK_EQ(r->head.hdr.seq, 0);
	CHECK_EQ(r->head.tgid, b->child);
	CHECK_EQ(r->head.tid, a.tid);
	CHECK_EQ(r->head.request, FIONREAD);
	CHECK_EQ(r->head.duration_ns, 0);
	CHECK(r->head.hdr.time_ns - r->head.start_ns >= 100000000ull);
	/* It is not announced again, and does not hold the watermark back. */
	for (int i = 0; i < 5; i++)
		CHECK_EQ(ioctl_hooks_drain(b->hooks, receive, &b->got, &watermark), 0);
	CHECK(watermark >= r->head.hdr.time_ns);
	CHECK(clock_boot().ns - watermark < 200000000ull);
	s = sums(b);
	CHECK_EQ(s.open, 1);
	CHECK(balanced(&s));
	/* Killed in the middle of the call: the kernel ends it, and that is seen. */
	kill(b->child, SIGKILL);
	drain_until(b, 2);
	REQUIRE_EQ(b->got.count, 2);
	CHECK_EQ(b->got.rows[1].head.hdr.type, NEV_IOCTL_DONE);
	CHECK_EQ(b->got.rows[1].head.start_ns, b->got.rows[0].head.start_ns);
	CHECK(b->got.rows[1].head.result < 0);
	s = sums(b);
	CHECK_EQ(s.open, 0);
	CHECK(balanced(&s));
	CHECK_EQ(ioctl_hooks_drain(b->hooks, receive, &b->got, &watermark), 0);
	CHECK(watermark > b->got.rows[1].head.hdr.time_ns);
}

TEST("hooks: calls that find no room among the open ones are counted", "[hooks]")
{
	_cleanup_(cleanup_bench) struct bench *b = NULL;
	struct order o = {.act = ACT_OPEN_CALL}, more = buf_copy;
	struct answer a;
	struct sums s;

	NEED_HOOKS();
	b = bench_open((struct ioctl_hooks_options){.inflight_limit = 1}, false);
	REQUIRE(b != NULL);
	a = tell(b, o);
	if (a.error == ENOSYS || a.error == EPERM)
		SKIP("userfaultfd");
	REQUIRE_EQ(a.error, 0);
	more.count = 10;
	tell(b, more);
	s = sums(b);
	CHECK_EQ(s.c[NEV_C_ENTERED], 11);
	CHECK_EQ(s.c[NEV_C_LOST_INFLIGHT_FULL], 10);
	CHECK_EQ(s.open, 1);
	CHECK(balanced(&s));
}

TEST("hooks: calls beyond the ceiling of a process are counted, and the others are there",
	"[hooks]")
{
	_cleanup_(cleanup_bench) struct bench *b = NULL;
	struct order o = buf_copy;
	struct sums s;

	NEED_HOOKS();
	b = bench_open((struct ioctl_hooks_options){.rate = 100}, true); /* one per 10 ms */
	REQUIRE(b != NULL);
	o.count = 2000;
	tell(b, o);
	s = sums(b);
	CHECK_EQ(s.c[NEV_C_ENTERED], 2000);
	CHECK(s.c[NEV_C_LOST_RATE] > 0);
	CHECK(s.c[NEV_C_DONE] > 0);
	CHECK_EQ(s.c[NEV_C_DONE] + s.c[NEV_C_LOST_RATE], 2000);
	CHECK(balanced(&s));
}

/* File descriptor of this process's BPF map with that name; -1 if there is none. */
static int map_named(const char *name)
{
	for (int fd = 0; fd < 1024; fd++) {
		struct bpf_map_info info = {0};
		uint32_t size = sizeof(info);
		char link[32], target[64];
		ssize_t n;

		snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
		n = readlink(link, target, sizeof(target) - 1);
		if (n <= 0 || strncmp(target, "anon_inode:bpf-map", 18) != 0)
			continue;
		if (bpf_obj_get_info_by_fd(fd, &info, &size) == 0 && strcmp(info.name, name) == 0)
			return fd;
	}
	return -1;
}

TEST("hooks: a return that was never seen is found when the thread calls again or ends", "[hooks]")
{
	_cleanup_(cleanup_bench) struct bench *b = NULL;
	struct nev_inflight stale = {.start_ns = 1};
	char neuron[PATH_MAX];
	uint32_t tid;
	struct sums s;
	int map;

	NEED_HOOKS();
	b = bench_open((struct ioctl_hooks_options){0}, true);
	REQUIRE(b != NULL);
	map = map_named("inflight");
	REQUIRE(map >= 0);
	tid = (uint32_t)b->child;
	REQUIRE(bpf_map_update_elem(map, &tid, &stale, BPF_ANY) == 0);
	CHECK_EQ(sums(b).open, 1);
	tell(b, buf_copy);
	drain_until(b, 1);
	REQUIRE_EQ(b->got.count, 1);
	CHECK(b->got.rows[0].head.start_ns > 1);
	s = sums(b);
	CHECK_EQ(s.c[NEV_C_LOST_EXIT], 1);
	CHECK_EQ(s.open, 0);
	/* A call on another file ends no call on a device. */
	REQUIRE(bpf_map_update_elem(map, &tid, &stale, BPF_ANY) == 0);
	memcpy(neuron, b->file, sizeof(neuron));
	snprintf(b->file, sizeof(b->file), "/dev/null");
	tell(b, buf_copy);
	memcpy(b->file, neuron, sizeof(b->file));
	tell(b, buf_copy);
	drain_until(b, 2);
	REQUIRE_EQ(b->got.count, 2);
	CHECK(b->got.rows[1].head.start_ns > 1);
	CHECK_EQ(b->got.rows[1].head.device, 0);
	s = sums(b);
	CHECK_EQ(s.c[NEV_C_LOST_EXIT], 2);
	CHECK_EQ(s.c[NEV_C_ENTERED], 2);
	CHECK_EQ(s.c[NEV_C_DONE], 2);
	CHECK_EQ(s.open, 0);
	REQUIRE(bpf_map_update_elem(map, &tid, &stale, BPF_ANY) == 0);
	tell(b, (struct order){.act = ACT_QUIT});
	waitpid(b->child, NULL, 0);
	b->child = 0;
	s = sums(b);
	CHECK_EQ(s.c[NEV_C_LOST_EXIT], 3);
	CHECK_EQ(s.open, 0);
}

/* The kernel frees a process some time after it was waited for; its files are closed by then. */
static bool is_forgotten(int map, uint32_t tgid)
{
	uint32_t value;

	for (int i = 0; i < 1000; i++) {
		if (bpf_map_lookup_elem(map, &tgid, &value) == -ENOENT)
			return true;
		bpf_programs_wait();
	}
	return false;
}

TEST("hooks: a process that has ended is forgotten, with its last thread and no earlier", "[hooks]")
{
	_cleanup_(cleanup_bench) struct bench *b = NULL;
	struct order o = buf_copy;
	uint32_t tgid, value;
	int map;

	NEED_HOOKS();
	b = bench_open((struct ioctl_hooks_options){0}, true);
	REQUIRE(b != NULL);
	map = map_named("tracked");
	REQUIRE(map >= 0);
	o.act = ACT_THREAD;
	tell(b, o); /* a thread has come and gone */
	tell(b, buf_copy);
	drain_until(b, 2);
	CHECK_EQ(b->got.count, 2);
	tgid = (uint32_t)b->child;
	CHECK(bpf_map_lookup_elem(map, &tgid, &value) == 0);
	o.act = ACT_FORK;
	tgid = (uint32_t)tell(b, o).tid;
	CHECK(is_forgotten(map, tgid));
	tgid = (uint32_t)b->child;
	tell(b, (struct order){.act = ACT_QUIT});
	waitpid(b->child, NULL, 0);
	b->child = 0;
	CHECK(is_forgotten(map, tgid));
	CHECK_EQ(ioctl_hooks_tracked(b->hooks), 0);
}

TEST("hooks: no record comes that is older than a watermark given before", "[hooks]")
{
	_cleanup_(cleanup_bench) struct bench *b = NULL;
	struct order o = buf_copy;
	uint64_t watermark = 0, before, total = 0, first;
	unsigned late = 0, moved = 0;
	struct sums s;

	NEED_HOOKS();
	b = bench_open((struct ioctl_hooks_options){0}, false);
	REQUIRE(b != NULL);
	o.act = ACT_SPIN;
	first = clock_boot().ns;
	tell(b, o);
	for (int drains = 0; drains < 300 || total < 20000; drains++) {
		b->got.count = 0;
		before = watermark;
		REQUIRE(ioctl_hooks_drain(b->hooks, receive, &b->got, &watermark) >= 0);
		for (unsigned i = 0; i < b->got.count; i++)
			late += b->got.rows[i].head.start_ns < before;
		moved += watermark > before;
		total += b->got.count;
		REQUIRE(clock_boot().ns - first < 30000000000ull);
	}
	CHECK_EQ(late, 0);
	CHECK(moved > 100);
	o.act = ACT_STOP_SPIN;
	tell(b, o);
	REQUIRE(ioctl_hooks_drain(b->hooks, receive, &b->got, &watermark) >= 0);
	CHECK(watermark > first);
	s = sums(b);
	CHECK(balanced(&s));
	CHECK_EQ(s.open, 0);
	CHECK_EQ(s.received, s.c[NEV_C_DONE]);
}

TEST("hooks: stopped amid calls, the books balance to the last one and stay so", "[hooks][slow]")
{
	struct order o = buf_copy;
	unsigned balances = 0, emptied = 0, quiet = 0;

	NEED_HOOKS();
	o.act = ACT_SPIN;
	for (int round = 0; round < 50; round++) {
		_cleanup_(cleanup_bench) struct bench *b = NULL;
		uint64_t watermark;
		struct sums s, later;

		b = bench_open((struct ioctl_hooks_options){0}, false);
		REQUIRE(b != NULL);
		tell(b, o);
		drain_until(b, 100);
		REQUIRE(b->got.count >= 100);
		REQUIRE_EQ(ioctl_hooks_stop(b->hooks, receive, &b->got, &watermark), 0);
		s = sums(b); /* the spinners spin on */
		balances += balanced(&s) && s.received == s.c[NEV_C_DONE];
		emptied += ioctl_hooks_left(b->hooks) == 0;
		o.act = ACT_CALLS;
		tell(b, o); /* seen by nobody */
		o.act = ACT_SPIN;
		REQUIRE_EQ(ioctl_hooks_stop(b->hooks, receive, &b->got, &watermark), 0);
		later = sums(b);
		quiet += memcmp(&s, &later, sizeof(s)) == 0;
	}
	CHECK_EQ(balances, 50);
	CHECK_EQ(emptied, 50);
	CHECK_EQ(quiet, 50);
}

TEST("hooks: a call that is open when the hooks stop stays an open one", "[hooks]")
{
	_cleanup_(cleanup_bench) struct bench *b = NULL;
	uint64_t watermark;
	struct answer a;
	struct sums s;

	NEED_HOOKS();
	b = bench_open((struct ioctl_hooks_options){0}, false);
	REQUIRE(b != NULL);
	a = tell(b, (struct order){.act = ACT_OPEN_CALL});
	if (a.error == ENOSYS || a.error == EPERM)
		SKIP("userfaultfd");
	REQUIRE_EQ(a.error, 0);
	REQUIRE_EQ(ioctl_hooks_stop(b->hooks, receive, &b->got, &watermark), 0);
	kill(b->child, SIGKILL);
	REQUIRE(waitpid(b->child, NULL, 0) == b->child);
	b->child = 0;
	s = sums(b);
	CHECK_EQ(s.open, 1);
	CHECK_EQ(s.c[NEV_C_ENTERED], 1);
	CHECK(balanced(&s));
}

static int refuse(void *ctx, const void *records, size_t size)
{
	(void)records;
	*(size_t *)ctx += size;
	return -ENOSPC;
}

TEST("hooks: a callback that fails stops the drain with its own answer", "[hooks]")
{
	_cleanup_(cleanup_bench) struct bench *b = NULL;
	size_t seen = 0;
	uint64_t watermark;

	NEED_HOOKS();
	b = bench_open((struct ioctl_hooks_options){0}, true);
	REQUIRE(b != NULL);
	tell(b, buf_copy);
	CHECK_EQ(ioctl_hooks_drain(b->hooks, refuse, &seen, &watermark), -ENOSPC);
	CHECK_EQ(seen, sizeof(struct nev_ioctl) + 4 * sizeof(uint64_t));
}

/* Ids of the BPF programs that process `pid` holds; returns how many. */
static int programs_of(pid_t pid, uint32_t *ids, int max)
{
	char pattern[64], line[128];
	int n = 0;
	glob_t g;

	snprintf(pattern, sizeof(pattern), "/proc/%d/fdinfo/*", pid);
	if (glob(pattern, 0, NULL, &g) != 0)
		return 0;
	for (size_t i = 0; i < g.gl_pathc; i++) {
		FILE *f = fopen(g.gl_pathv[i], "re");

		while (f && n < max && fgets(line, sizeof(line), f))
			if (sscanf(line, "prog_id: %u", &ids[n]) == 1)
				n++;
		if (f)
			fclose(f);
	}
	globfree(&g);
	return n;
}

TEST("hooks: nothing stays in the kernel when the process is killed", "[hooks]")
{
	uint32_t ids[64];
	int up[2], count, left;
	uint64_t end;
	pid_t pid;
	char c;

	NEED_HOOKS();
	REQUIRE(pipe2(up, O_CLOEXEC) == 0);
	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		struct ioctl_hooks_options o = {0};
		struct ioctl_hooks *h;
		char why[64];

		if (ioctl_hooks_open(&o, &h, why, sizeof(why)) < 0 || write(up[1], "!", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	close(up[1]);
	CHECK(read(up[0], &c, 1) == 1);
	close(up[0]);
	count = programs_of(pid, ids, 64);
	CHECK(count >= 5);
	kill(pid, SIGKILL);
	REQUIRE(waitpid(pid, NULL, 0) == pid);
	/* Programs go when the kernel has waited for their last user. */
	end = clock_boot().ns + 10000000000ull;
	do {
		left = 0;
		for (int i = 0; i < count; i++) {
			int fd = bpf_prog_get_fd_by_id(ids[i]);

			left += fd >= 0;
			if (fd >= 0)
				close(fd);
		}
		if (left)
			poll(NULL, 0, 10);
	} while (left && clock_boot().ns < end);
	CHECK_EQ(left, 0);
}

TEST("hooks: no mount is left behind", "[hooks]")
{
	_cleanup_(cleanup_bench) struct bench *b = NULL;
	char *before, *after;
	size_t size;

	NEED_HOOKS();
	REQUIRE(file_read("/proc/self/mountinfo", 1u << 20, &before, &size) == 0);
	b = bench_open((struct ioctl_hooks_options){0}, true);
	REQUIRE(b != NULL);
	REQUIRE(file_read("/proc/self/mountinfo", 1u << 20, &after, &size) == 0);
	CHECK(strstr(after, "tracefs") == NULL || strstr(before, "tracefs") != NULL);
	CHECK(strstr(after, " bpf ") == NULL || strstr(before, " bpf ") != NULL);
	free(before);
	free(after);
}
