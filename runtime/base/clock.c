/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clock.c - readings of the host's clocks.
 *
 * A snapshot wants all clocks at one moment and can only read them one after the other.  The two
 * BOOTTIME readings around them bound the error; an interrupt in between makes the bracket wide, so
 * several are taken and the tightest is kept.
 */
#include "runtime/base/clock.h"

#include <errno.h>
#include <stddef.h>
#include <time.h>
#ifdef __x86_64__
#include <x86intrin.h>
#endif

#define BRACKETS 8

int clock_check(const char **ret_name)
{
	static const struct {
		clockid_t id;
		const char *name;
	} clocks[] = {
		{CLOCK_BOOTTIME, "CLOCK_BOOTTIME"},
		{CLOCK_REALTIME, "CLOCK_REALTIME"},
		{CLOCK_MONOTONIC, "CLOCK_MONOTONIC"},
		{CLOCK_MONOTONIC_RAW, "CLOCK_MONOTONIC_RAW"},
	};

	for (size_t i = 0; i < sizeof(clocks) / sizeof(*clocks); i++) {
		struct timespec ts;

		if (clock_gettime(clocks[i].id, &ts) == 0)
			continue;
		*ret_name = clocks[i].name;
		return -errno;
	}
	return 0;
}

static uint64_t read_clock(clockid_t id)
{
	struct timespec ts = {0};

	clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static uint64_t read_tsc(void)
{
#ifdef __x86_64__
	return __rdtsc();
#else
	return 0;
#endif
}

struct boot_ns clock_boot(void)
{
	return (struct boot_ns){read_clock(CLOCK_BOOTTIME)};
}

static struct clock_snapshot take_bracket(void)
{
	struct clock_snapshot s;

	s.boot_before = read_clock(CLOCK_BOOTTIME);
	s.realtime = read_clock(CLOCK_REALTIME);
	s.monotonic = read_clock(CLOCK_MONOTONIC);
	s.monotonic_raw = read_clock(CLOCK_MONOTONIC_RAW);
	s.tsc = read_tsc();
	s.boot_after = read_clock(CLOCK_BOOTTIME);
	return s;
}

struct timespec clock_in_ms(clockid_t id, unsigned ms)
{
	struct timespec t;

	clock_gettime(id, &t);
	t.tv_sec += ms / 1000;
	t.tv_nsec += ms % 1000 * 1000000L;
	if (t.tv_nsec >= 1000000000L) {
		t.tv_nsec -= 1000000000L;
		t.tv_sec++;
	}
	return t;
}

struct clock_snapshot clock_snapshot_take(void)
{
	struct clock_snapshot best = take_bracket();

	for (int i = 1; i < BRACKETS; i++) {
		struct clock_snapshot s = take_bracket();

		if (s.boot_after - s.boot_before < best.boot_after - best.boot_before)
			best = s;
	}
	return best;
}
