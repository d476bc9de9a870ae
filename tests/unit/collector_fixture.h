/* SPDX-License-Identifier: Apache-2.0 */
/*
 * collector_fixture.h - the collector in tests: models without tensors, subscribers, rows of what they got.
 *
 * Header only, for the runtime that is linked into the tests: the calls of collector.h stand between the doors of the
 * library's state.
 */
#ifndef NTRACE_TESTS_COLLECTOR_FIXTURE_H
#define NTRACE_TESTS_COLLECTOR_FIXTURE_H

#include "runtime/profile/collector.h"
#include "tests/unit/nrt_init_fixture.h"

/* A model that needs no tensors, and the library open for calls of the collector. */
struct bare {
	nrt_model_t *model;
	nrt_tensor_set_t *none;
};

static inline int bare_load(struct bare *b, const char *text, int vnc)
{
	WANT_STATUS(lib.nrt_load(text, strlen(text), vnc, -1, &b->model), 0);
	WANT_STATUS(lib.nrt_allocate_tensor_set(&b->none), 0);
	return 0;
}

static inline NRT_STATUS run(const struct bare *b)
{
	return lib.nrt_execute(b->model, b->none, b->none);
}

static inline NRT_STATUS subscribe(uint32_t vnc, struct collector_cursor **ret)
{
	NRT_STATUS status = api_enter(__func__);

	if (status)
		return status;
	status = collector_subscribe(vnc, ret);
	api_leave();
	return status;
}

static inline void unsubscribe(struct collector_cursor *c)
{
	if (api_enter(__func__))
		return;
	collector_unsubscribe(c);
	api_leave();
}

static inline NRT_STATUS get(struct collector_cursor *c, struct collector_data *ret)
{
	NRT_STATUS status = api_enter(__func__);

	if (status)
		return status;
	status = collector_read(c, ret);
	api_leave();
	return status;
}

static inline const struct collector_row *row_of(
	const struct collector_data *d, uint32_t part, enum notification_kind kind, uint32_t engine)
{
	for (uint32_t i = 0; i < d->row_count; i++)
		if (d->rows[i].part == part && d->rows[i].kind == kind &&
			d->rows[i].engine == engine)
			return &d->rows[i];
	return NULL;
}

static inline struct notification record_at(const struct collector_row *row, uint32_t index)
{
	struct notification *all = calloc(row->count + 1, sizeof(*all)), found;

	collector_row_copy(row, all);
	found = all[index];
	free(all);
	return found;
}

#endif
