/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clock.h - clocks with their domain in the type.
 *
 * Everything captured carries BOOTTIME or a device clock; epoch time appears only at output.  A
 * number of one clock cannot be passed where another is wanted: convert by name.
 */
#ifndef NTRACE_BASE_CLOCK_H
#define NTRACE_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

struct boot_ns {
	uint64_t ns; /* CLOCK_BOOTTIME */
};
struct real_ns {
	uint64_t ns; /* CLOCK_REALTIME, ns since the epoch */
};
struct device_ps {
	uint64_t ps; /* clock of one NeuronCore, picoseconds from its own zero */
};

/* One bracketed reading of all host clocks: two BOOTTIME readings around the others.  The error of
 * each difference to BOOTTIME is at most (boot_after - boot_before). */
struct clock_snapshot {
	uint64_t boot_before;
	uint64_t realtime;
	uint64_t monotonic;
	uint64_t monotonic_raw;
	uint64_t tsc; /* 0 where the machine has none */
	uint64_t boot_after;
};

/* Can all clocks be read?  0, or -errno and the name of the one that cannot.  Whoever starts something
 * that will stamp times asks this first and refuses to start: another clock in place of the right one
 * would be wrong without anybody noticing. */
int clock_check(const char **ret_name);

/* Needs clock_check to have passed; cannot fail then.  0 when the clock cannot be read. */
struct boot_ns clock_boot(void);

/* The time of clock `id` that is ms milliseconds from now. */
struct timespec clock_in_ms(clockid_t id, unsigned ms);

/* Takes the tightest of a few brackets. */
struct clock_snapshot clock_snapshot_take(void);

/* Middle of the bracket, and REALTIME - BOOTTIME at that moment. */
static inline int64_t clock_snapshot_offset(const struct clock_snapshot *s)
{
	return (int64_t)(s->realtime - (s->boot_before + (s->boot_after - s->boot_before) / 2));
}

#endif
