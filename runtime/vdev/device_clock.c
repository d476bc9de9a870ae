/* SPDX-License-Identifier: Apache-2.0 */
/* device_clock.c - clocks of NeuronCores; see device_clock.h. */
#include "runtime/vdev/device_clock.h"

#define PS_PER_SECOND 1000000000000ull
#define PPB 1000000000ll

/* Equal on every machine.  The constants and shifts are those of splitmix64. */
static uint64_t mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15ull;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

static uint64_t draw(uint64_t seed, uint64_t a, uint64_t b, uint64_t c)
{
	return mix(mix(mix(mix(seed) ^ a) ^ b) ^ c);
}

/* Up to a quarter of `whole`. */
static int64_t share(uint64_t seed, unsigned core, uint64_t what, int64_t whole)
{
	int64_t quarter = (whole < 0 ? -whole : whole) / 4;
	int64_t part = (int64_t)(draw(seed, core, what, 0) % (uint64_t)(quarter + 1));

	return whole < 0 ? -part : part;
}

void vdev_clock_init(
	struct vdev_clock *clock, const struct vdev_timing *timing, unsigned core, uint64_t boot_ns)
{
	int64_t offset = (int64_t)timing->offset_ns, drift = timing->drift_ppm * 1000;

	*clock = (struct vdev_clock){
		.zero_ns = boot_ns,
		.start_ps = core * PS_PER_SECOND +
			    (uint64_t)(offset + share(timing->seed, core, 1, offset)) * 1000u,
		.rate_ppb = drift + share(timing->seed, core, 2, drift),
		.steps = timing->steps,
		.still = timing->steps,
	};
}

static uint64_t to_device(const struct vdev_clock *clock, uint64_t ps)
{
	return (uint64_t)((__int128)ps * (PPB + clock->rate_ppb) / PPB);
}

static uint64_t to_boot(const struct vdev_clock *clock, uint64_t ps)
{
	__int128 rate = PPB + clock->rate_ppb;

	return (uint64_t)(((__int128)ps * PPB + rate - 1) / rate);
}

uint64_t vdev_clock_at(const struct vdev_clock *clock, uint64_t boot_ns)
{
	uint64_t ps;

	if (clock->still)
		return clock->start_ps;
	ps = clock->start_ps + to_device(clock, (boot_ns - clock->zero_ns) * 1000u);
	return clock->steps && ps > clock->limit_ps ? clock->limit_ps : ps;
}

uint64_t vdev_clock_to_boot_ps(const struct vdev_clock *clock, uint64_t device_ps)
{
	return clock->zero_ns * 1000u + to_boot(clock, device_ps - clock->start_ps);
}

uint64_t vdev_clock_from_boot_ps(const struct vdev_clock *clock, uint64_t boot_ps)
{
	return clock->start_ps + to_device(clock, boot_ps - clock->zero_ns * 1000u);
}

uint64_t vdev_clock_go(struct vdev_clock *clock, uint64_t boot_ns)
{
	if (!clock->steps)
		return vdev_clock_at(clock, boot_ns);
	clock->start_ps += VDEV_STEP_GAP_PS;
	clock->limit_ps = clock->start_ps;
	clock->zero_ns = boot_ns;
	clock->still = false;
	return clock->start_ps;
}

void vdev_clock_let(struct vdev_clock *clock, uint64_t device_ps)
{
	if (device_ps > clock->limit_ps)
		clock->limit_ps = device_ps;
}

void vdev_clock_stand(struct vdev_clock *clock, uint64_t device_ps)
{
	if (!clock->steps)
		return;
	clock->start_ps = device_ps;
	clock->still = true;
}

uint64_t vdev_jitter(const struct vdev_timing *timing, unsigned core, uint64_t launch,
	uint32_t instruction, uint64_t duration_ps)
{
	int64_t wide = (int64_t)timing->jitter_ppm, ppm;

	if (!wide)
		return duration_ps;
	ppm = (int64_t)(draw(timing->seed, core, launch, instruction) % (uint64_t)(2 * wide + 1)) -
	      wide;
	return (uint64_t)((__int128)duration_ps * (1000000 + ppm) / 1000000);
}
