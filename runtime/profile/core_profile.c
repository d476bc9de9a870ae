/* SPDX-License-Identifier: Apache-2.0 */
/* core_profile.c - a cursor for a core, and the profile of all behind it. */
#include "runtime/profile/core_profile.h"

NRT_STATUS core_profile_begin(struct core_profile *c, uint32_t nc)
{
	if (c->tried)
		return NRT_SUCCESS;
	c->tried = true;
	return profile_subscribe(nc, &c->cursor);
}

/* Has the core done anything, or may it have? */
static bool is_used(const struct profile_harvest *h)
{
	if (h->partial || h->data.run_count)
		return true;
	for (uint32_t i = 0; i < h->data.row_count; i++) {
		const struct collector_row *row = &h->data.rows[i];

		if (row->count || row->lost || row->dropped)
			return true;
	}
	return false;
}

NRT_STATUS core_profile_take(
	const char *call, struct core_profile *c, uint32_t nc, uint64_t id, struct profile **ret)
{
	const struct profile_wish wish = {.nc = nc, .id = id, .session = true};

	*ret = NULL;
	if (!c->cursor)
		return NRT_SUCCESS;
	profile_harvest(&c->harvest, c->cursor, nc);
	return is_used(&c->harvest) ? profile_build(call, &wish, &c->harvest, ret) : NRT_SUCCESS;
}

void core_profile_drop(struct core_profile *c, uint32_t nc)
{
	profile_harvest_drop(&c->harvest);
	profile_unsubscribe(nc, &c->cursor);
	c->tried = false;
}
