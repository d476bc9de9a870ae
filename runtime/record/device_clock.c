/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_clock.c - the map's arithmetic.
 *
 * A point and the largest drift give a cone: where the host's time may be when the device shows some other
 * time.  The truth lies in every cone, so in what they have in common.
 */
#include "runtime/record/device_clock.h"

#define PPB 1000000000u
#define ROUNDING_NS 2u /* both readings are cut to whole ns */

__extension__ typedef __int128 wide;
__extension__ typedef unsigned __int128 unsigned_wide;

static uint64_t saturate(wide v)
{
	return v < 0 ? 0 : v > (wide)UINT64_MAX ? UINT64_MAX : (uint64_t)v;
}

static uint64_t distance(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

/* How much two clocks may drift apart over a time. */
static wide drifted(uint64_t over, uint32_t ppb)
{
	return (wide)(((unsigned_wide)over * ppb + PPB - 1) / PPB);
}

static wide radius(const struct device_clock *c, const struct device_point *p, uint64_t over)
{
	return (wide)p->bound + ROUNDING_NS + drifted(over, c->drift_limit);
}

static const struct device_point *newest(const struct device_clock *c)
{
	return &c->points[c->count - 1];
}

/* ---- asking ------------------------------------------------------------------------------- */

void device_clock_interval(
	const struct device_clock *c, uint64_t nc, uint64_t *ret_low, uint64_t *ret_high)
{
	wide low = 0, high = UINT64_MAX;

	for (uint32_t i = 0; i < c->count; i++) {
		const struct device_point *p = &c->points[i];
		wide middle = (wide)p->host + ((wide)nc - (wide)p->nc);
		wide r = radius(c, p, distance(nc, p->nc));

		low = middle - r > low ? middle - r : low;
		high = middle + r < high ? middle + r : high;
	}
	/* Points that contradict each other: the truth is near where they meet. */
	*ret_low = saturate(low < high ? low : high);
	*ret_high = saturate(low < high ? high : low);
}

uint64_t device_clock_bound(const struct device_clock *c, uint64_t nc, uint64_t host)
{
	uint64_t low, high, below, above;

	device_clock_interval(c, nc, &low, &high);
	below = distance(host, low);
	above = distance(host, high);
	return below > above ? below : above;
}

uint64_t device_clock_radius(const struct device_clock *c, uint64_t nc)
{
	return saturate(radius(c, newest(c), distance(nc, newest(c)->nc)));
}

uint64_t device_clock_radius_at(const struct device_clock *c, uint64_t host)
{
	return saturate(radius(c, newest(c), distance(host, newest(c)->host)));
}

/* On the line through two points; rounds towards `a`. */
static wide on_line(const struct device_point *a, const struct device_point *b, uint64_t nc)
{
	unsigned_wide over = distance(nc, a->nc);
	unsigned_wide moved = over * distance(b->host, a->host) / (b->nc - a->nc);
	bool back = (nc < a->nc) != (b->host < a->host);

	/* Nothing that is of use goes so far. */
	if (moved > UINT64_MAX)
		moved = UINT64_MAX;
	return back ? (wide)a->host - (wide)moved : (wide)a->host + (wide)moved;
}

uint64_t device_clock_host(const struct device_clock *c, uint64_t nc)
{
	const struct device_point *last = newest(c), *first = &c->points[0];
	uint64_t low, high, host;
	wide v;

	if (c->count == 1) {
		v = (wide)first->host + ((wide)nc - (wide)first->nc);
	} else if (nc >= last->nc || nc <= first->nc) {
		/* All points together say best how it goes on. */
		v = on_line(first, last, nc);
	} else {
		uint32_t i = c->count - 1;

		while (c->points[i - 1].nc > nc)
			i--;
		v = on_line(&c->points[i - 1], &c->points[i], nc);
	}
	host = saturate(v);
	device_clock_interval(c, nc, &low, &high);
	return host < low ? low : host > high ? high : host;
}

/* How far apart the clocks are at one point, seen from another, and how well that is known. */
static wide apart(const struct device_point *a, const struct device_point *b, wide *ret_error)
{
	*ret_error = (wide)a->bound + (wide)b->bound + ROUNDING_NS;
	return ((wide)b->host - (wide)a->host) - ((wide)b->nc - (wide)a->nc);
}

int64_t device_clock_drift(const struct device_clock *c)
{
	const struct device_point *last = newest(c);
	wide error, ns = apart(&c->first, last, &error), ppb;

	if (ns <= error && -ns <= error)
		return 0;
	ppb = ns * (wide)PPB / (wide)(last->nc - c->first.nc);
	return ppb > INT64_MAX ? INT64_MAX : ppb < INT64_MIN ? INT64_MIN : (int64_t)ppb;
}

/* ---- points ------------------------------------------------------------------------------- */

static void push(struct device_clock *c, const struct device_point *p)
{
	if (c->count == 0) {
		c->first = *p;
		c->drift_limit = DEVICE_DRIFT_PPB;
	}
	if (c->count == DEVICE_POINTS) {
		for (uint32_t i = 1; i < c->count; i++)
			c->points[i - 1] = c->points[i];
		c->count--;
	}
	c->points[c->count++] = *p;
	c->total++;
}

/* Takes a point that is newer than all before; their clock is the same. */
static void extend(struct device_clock *c, const struct device_point *p, wide drift, wide error)
{
	uint64_t over = p->nc - newest(c)->nc, residual;

	if (drift > error + drifted(over, c->drift_limit)) {
		wide ppb = (drift + error) * (wide)PPB / (wide)over + 1;

		c->drift_limit = ppb < DEVICE_RESET_PPB ? (uint32_t)ppb : DEVICE_RESET_PPB;
	}
	residual = distance(device_clock_host(c, p->nc), p->host);
	if (residual > c->residual)
		c->residual = residual;
	push(c, p);
}

bool device_clock_breaks(const struct device_point *a, const struct device_point *b)
{
	wide error, drift = apart(a, b, &error);

	drift = drift < 0 ? -drift : drift;
	return drift > error + drifted(distance(b->nc, a->nc), DEVICE_RESET_PPB);
}

void device_clock_add(struct device_clock *c, const struct device_point *p)
{
	wide drift, error;

	if (c->count == 0) {
		push(c, p);
		return;
	}
	if (device_clock_breaks(newest(c), p)) {
		c->count = 0;
		c->resets++;
		push(c, p);
	} else if (p->nc > newest(c)->nc) {
		drift = apart(newest(c), p, &error);
		extend(c, p, drift < 0 ? -drift : drift, error);
	}
}
