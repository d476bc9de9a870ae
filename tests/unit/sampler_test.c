/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sampler_test.c - texts of /proc/stat of several kernels and machines, and this machine's own.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/base/sampler.h"
#include "tests/shim/shim.h"

static const struct {
	const char *what, *text;
	int max, want;
	struct sampler_cpu rows[3];
} stats[] = {
	{"two cpus; the sum row is left out; guest is not counted twice",
		"cpu  110 22 33 440 55 6 7 8 9 1\n"
		"cpu0 100 20 30 400 50 5 6 7 90 10\n"
		"cpu1 10 2 3 40 5 1 1 1 0 0\n"
		"intr 12345 0 0\n"
		"ctxt 99\n",
		3, 2, {{0, 0, 168, 618}, {1, 0, 18, 63}}},
	{"offline cpus leave holes", "cpu 1 1 1 1\ncpu2 1 0 0 1 0 0 0 0\ncpu7 2 0 0 2 0 0 0 0\n", 3,
		2, {{2, 0, 1, 2}, {7, 0, 2, 4}}},
	{"four columns of an old kernel", "cpu0 1 2 3 4\n", 3, 1, {{0, 0, 6, 10}}},
	{"no more rows than there is room", "cpu0 1 0 0 0\ncpu1 1 0 0 0\ncpu2 1 0 0 0\n", 2, 2,
		{{0, 0, 1, 1}, {1, 0, 1, 1}}},
	{"last line without a newline", "cpu0 1 2 3 4 5 6 7 8", 3, 1, {{0, 0, 27, 36}}},
	{"a row that is cut counts not at all", "cpu0 1 2 3\ncpu1 1 1 1 1\n", 3, 1, {{1, 0, 3, 4}}},
	{"a cut row does not borrow from the next line", "cpu0 1 2 3 \n4 5 6 7\n", 3, 0, {{0}}},
	{"words that begin like a row", "cpufreq 1 2 3 4\ncpu\ncpux 1 2 3 4\n", 3, 0, {{0}}},
	{"nothing", "", 3, 0, {{0}}},
};

TEST("sampler: rows of /proc/stat", "[base]")
{
	for (size_t i = 0; i < sizeof(stats) / sizeof(stats[0]); i++) {
		struct sampler_cpu rows[4];
		int n;

		memset(rows, 0x5a, sizeof(rows));
		n = sampler_parse_stat(stats[i].text, rows, stats[i].max);
		test_info("%s", stats[i].what);
		REQUIRE_EQ(n, stats[i].want);
		CHECK(memcmp(rows, stats[i].rows, (size_t)n * sizeof(rows[0])) == 0);
		CHECK_EQ(rows[stats[i].max].cpu, 0x5a5a5a5a);
	}
}

TEST("sampler: this machine's cpus, each once and in order, never running backwards", "[base]")
{
	struct sampler_cpu *a = calloc(SAMPLER_MAX_CPUS, sizeof(*a));
	struct sampler_cpu *b = calloc(SAMPLER_MAX_CPUS, sizeof(*b));
	int n, m;

	REQUIRE(a && b);
	n = sampler_cpus(a, SAMPLER_MAX_CPUS);
	m = sampler_cpus(b, SAMPLER_MAX_CPUS);
	CHECK_EQ(n, sysconf(_SC_NPROCESSORS_ONLN));
	REQUIRE_EQ(n, m);
	for (int i = 0; i < n; i++) {
		CHECK(i == 0 || a[i].cpu > a[i - 1].cpu);
		CHECK_EQ(a[i].cpu, b[i].cpu);
		CHECK(a[i].busy <= a[i].total);
		CHECK(a[i].busy <= b[i].busy);
	}
	CHECK(a[0].total > 0);
	free(a);
	free(b);
}

TEST("sampler: resident bytes rise by what a process touches", "[base]")
{
	const size_t size = 32u << 20, slack = 8u << 20;
	uint64_t before = 0, mapped = 0, touched = 0;
	char *p;

	REQUIRE_EQ(sampler_rss(getpid(), &before), 0);
	p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	REQUIRE(p != MAP_FAILED);
	CHECK_EQ(sampler_rss(getpid(), &mapped), 0);
	memset(p, 1, size);
	CHECK_EQ(sampler_rss(getpid(), &touched), 0);
	munmap(p, size);
	CHECK(before > 0);
	CHECK(mapped < before + slack); /* the first field, total size, would rise here */
	CHECK(touched >= mapped + size - slack);
}

TEST("sampler: a process that is gone is an error and leaves the value", "[base]")
{
	uint64_t bytes = 77;
	pid_t pid = fork();
	int err;

	if (pid == 0)
		_exit(0);
	REQUIRE(pid > 0);
	REQUIRE_EQ(waitpid(pid, NULL, 0), pid);
	err = sampler_rss(pid, &bytes);
	CHECK((err == -ENOENT || err == -ESRCH));
	CHECK_EQ(bytes, 77);
}
