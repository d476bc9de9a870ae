/* SPDX-License-Identifier: Apache-2.0 */
/*
 * marks.c - the two forms of the mark requests; see marks.h.
 */
#include "runtime/device/marks.h"

#include <errno.h>
#include <string.h>

#include "runtime/device/forms.h"
#include "vmlinux/ioctl_table.h"
#include "vmlinux/neuron_args.h"

#define INTERRUPTIONS 16 /* of one request */

static int take_new(struct marks *m, struct neuron_crwl_nc_map_ext *arg)
{
	return m->send(m->context, NEURON_IOCTL_CRWL_NC_RANGE_MARK_EXT0, arg);
}

static int take_old(struct marks *m, struct neuron_crwl_nc_map_ext *arg)
{
	struct neuron_crwl_nc_map old = {
		.nc_count = arg->nc_count,
		.start_nc_index = arg->start_nc_index,
		.end_nc_index = arg->end_nc_index < MARKS_OLD_CORES ? arg->end_nc_index
								    : MARKS_OLD_CORES - 1,
	};
	int rc;

	if (arg->start_nc_index >= MARKS_OLD_CORES ||
		arg->nc_count > MARKS_OLD_CORES - arg->start_nc_index)
		return -EDOM;
	rc = m->send(m->context, NEURON_IOCTL_CRWL_NC_RANGE_MARK, &old);
	arg->max_nc_available = old.max_nc_available;
	memset(arg->bitmap, 0, sizeof(arg->bitmap));
	arg->bitmap[0] = old.bitmap;
	return rc;
}

/* The driver says EINVAL of a request that it does not know, and of a range that it does not have. */
static int take(struct marks *m, struct neuron_crwl_nc_map_ext *arg)
{
	int rc = m->old_form ? -ENOTTY : take_new(m, arg);
	int old;

	if (!forms_is_unknown(rc))
		return rc;
	old = take_old(m, arg);
	if (forms_is_unknown(old))
		return m->old_form ? old : rc;
	m->old_form = true;
	return old;
}

/* A signal may have ended the wait for a request that was done all the same, and a second one would find this
 * process's own marks.  So they are given back first; those of others stay. */
static int take_patiently(struct marks *m, struct neuron_crwl_nc_map_ext *arg)
{
	const struct core_map mine =
		core_map_range(arg->start_nc_index, arg->end_nc_index - arg->start_nc_index + 1);
	int rc = take(m, arg);

	for (int i = 0; i < INTERRUPTIONS && rc == -EINTR; i++) {
		(void)marks_give(m, &mine);
		rc = take(m, arg);
	}
	return rc;
}

int marks_take(struct marks *m, uint32_t count, uint32_t first, uint32_t last, struct core_map *ret,
	uint32_t *ret_free)
{
	struct neuron_crwl_nc_map_ext arg = {
		.nc_count = count, .start_nc_index = first, .end_nc_index = last};
	struct core_map want;
	int rc = take_patiently(m, &arg);

	*ret_free = arg.max_nc_available;
	if (rc < 0)
		return rc;
	*ret = core_map_from_words(arg.bitmap, sizeof(arg.bitmap) / sizeof(arg.bitmap[0]));
	want = core_map_range(core_map_first(ret), count);
	return count && core_map_first(ret) < CORES_MAX && core_map_equal(ret, &want) ? 0 : -EPROTO;
}

int marks_give(struct marks *m, const struct core_map *map)
{
	struct neuron_crwl_nc_map_ext arg = {.nc_count = 0};
	struct neuron_crwl_nc_map old = {.bitmap = map->words[0]};

	if (m->old_form)
		return m->send(m->context, NEURON_IOCTL_CRWL_NC_RANGE_UNMARK, &old);
	memcpy(arg.bitmap, map->words, sizeof(map->words));
	return m->send(m->context, NEURON_IOCTL_CRWL_NC_RANGE_UNMARK_EXT0, &arg);
}
