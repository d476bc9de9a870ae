/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pfcheck_flow.c - the checker's rules about flows.
 */
#include <errno.h>
#include <stdlib.h>

#include "agent/output/pfcheck.h"

void pfv_flow(struct pfv_check *c, uint64_t id, bool terminates, uint64_t at)
{
	if (c->flow_count == c->flow_room) {
		size_t room = c->flow_room ? 2 * c->flow_room : 8;
		struct pfv_flow *more = realloc(c->event_flows, room * sizeof(*more));

		if (!more) {
			c->error = -ENOMEM;
			return;
		}
		c->event_flows = more;
		c->flow_room = room;
	}
	c->event_flows[c->flow_count++] = (struct pfv_flow){id, at, terminates};
}

static void check_flow(struct pfv_check *c, const struct pfv_flow *f, bool has_time, uint64_t time)
{
	uint64_t *end = map64_find(&c->flows, f->id), *unbegun = map64_find(&c->unbegun, f->id);
	uint64_t value = has_time ? time << 1 | 1 : UINT64_MAX;
	int rc = 0;

	if (end && *end && (f->terminates || (has_time && *end >> 1 < time)))
		pfv_say(c, PFV_FLOW_REUSED, f->at, "flow %llu was terminated",
			(unsigned long long)f->id);
	else if (!end || f->terminates)
		rc = map64_put(&c->flows, f->id, f->terminates ? value : 0);
	if (rc == 0 && f->terminates && !end)
		rc = map64_put(&c->unbegun, f->id, f->at);
	else if (!f->terminates && unbegun)
		map64_remove(&c->unbegun, f->id);
	c->error = c->error ? c->error : rc;
}

/* Those passed on first: what is terminated too has a begin then. */
static int by_id(const void *a, const void *b)
{
	const struct pfv_flow *x = a, *y = b;

	if (x->id != y->id)
		return x->id < y->id ? -1 : 1;
	if (x->terminates != y->terminates)
		return x->terminates ? 1 : -1;
	return x->at != y->at ? (x->at < y->at ? -1 : 1) : 0;
}

void pfv_flows_named(struct pfv_check *c, bool has_time, uint64_t time)
{
	struct pfv_flow *f = c->event_flows;

	if (c->flow_count > 1)
		qsort(f, c->flow_count, sizeof(*f), by_id);
	for (size_t i = 0; i < c->flow_count; i++)
		if (f[i].id == 0)
			pfv_say(c, PFV_FLOW_ZERO, f[i].at, "flow 0");
		else if (i && f[i].id == f[i - 1].id)
			pfv_say(c, PFV_FLOW_TWICE, f[i].at, "flow %llu",
				(unsigned long long)f[i].id);
		else
			check_flow(c, &f[i], has_time, time);
	c->flow_count = 0;
}

void pfv_flows_end(struct pfv_check *c)
{
	for (size_t i = 0; c->unbegun.bits && i <= map64_mask(&c->unbegun); i++)
		if (c->unbegun.entries[i].key)
			pfv_say(c, PFV_FLOW_UNBEGUN, c->unbegun.entries[i].value, "flow %llu",
				(unsigned long long)c->unbegun.entries[i].key);
}
