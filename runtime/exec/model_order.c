/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model_order.c - does a model come to its end?
 *
 * Posts only ever add, so it does not matter in which order units go on: what can go on at some time can go on
 * later too.  It is therefore enough to let each unit go as far as it can, again and again, without any time; if
 * a step is left then, it is never reached on the device either.
 */
#include "runtime/exec/model_parser.h"

struct order {
	const struct model_desc *m;
	uint64_t posted[VDEV_MAX_SEMAPHORES];
	uint32_t at[VDEV_UNITS]; /* first step of the unit that has not run; step_count = none */
};

/* The first step of a unit from `from` on. */
static uint32_t next_of(const struct model_desc *m, unsigned unit, uint32_t from)
{
	while (from < m->step_count && m->steps[from].unit != unit)
		from++;
	return from;
}

static bool may_run(const struct order *o, const struct vdev_instruction *step)
{
	return step->wait == VDEV_NO_SEMAPHORE || o->posted[step->wait] >= step->wait_value;
}

/* Lets a unit go as far as it can; did it go at all? */
static bool advance(struct order *o, unsigned unit)
{
	uint32_t from = o->at[unit];

	while (o->at[unit] < o->m->step_count) {
		const struct vdev_instruction *step = &o->m->steps[o->at[unit]];

		if (!may_run(o, step))
			break;
		if (step->post != VDEV_NO_SEMAPHORE)
			o->posted[step->post] += step->post_value;
		o->at[unit] = next_of(o->m, unit, o->at[unit] + 1);
	}
	return o->at[unit] != from;
}

/* A wait for more than all posts together, wherever it stands. */
static int check_sums(struct parser *p)
{
	const struct model_desc *m = p->m;
	uint64_t posts[VDEV_MAX_SEMAPHORES] = {0};

	for (uint32_t i = 0; i < m->step_count; i++)
		if (m->steps[i].post != VDEV_NO_SEMAPHORE)
			posts[m->steps[i].post] += m->steps[i].post_value;
	for (uint32_t i = 0; i < m->step_count; i++) {
		const struct vdev_instruction *step = &m->steps[i];

		if (step->wait == VDEV_NO_SEMAPHORE || posts[step->wait] >= step->wait_value)
			continue;
		p->error->line = m->lines[i];
		return parser_bad(p,
			"the step waits for %u at '%.64s', and all posts add up to %llu",
			step->wait_value, p->semaphores[step->wait],
			(unsigned long long)posts[step->wait]);
	}
	return 0;
}

int parser_check_order(struct parser *p)
{
	struct order o = {.m = p->m};
	uint32_t stuck = p->m->step_count;
	bool went = true;
	int rc = check_sums(p);

	if (rc < 0)
		return rc;
	for (unsigned unit = 0; unit < VDEV_UNITS; unit++)
		o.at[unit] = next_of(p->m, unit, 0);
	while (went) {
		went = false;
		for (unsigned unit = 0; unit < VDEV_UNITS; unit++)
			went |= advance(&o, unit);
	}
	for (unsigned unit = 0; unit < VDEV_UNITS; unit++)
		stuck = o.at[unit] < stuck ? o.at[unit] : stuck;
	if (stuck == p->m->step_count)
		return 0;
	p->error->line = p->m->lines[stuck];
	return parser_bad(p,
		"the step waits for ever: it needs '%.64s' at %u, and the steps that can run bring "
		"it to %llu",
		p->semaphores[p->m->steps[stuck].wait], p->m->steps[stuck].wait_value,
		(unsigned long long)o.posted[p->m->steps[stuck].wait]);
}
