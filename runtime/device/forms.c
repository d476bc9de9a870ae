/* SPDX-License-Identifier: Apache-2.0 */
/*
 * forms.c - searching for the form of a request that the driver knows.
 */
#include "runtime/device/forms.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>

#include "vmlinux/ioctl_table.h"
#include "vmlinux/neuron_args.h"

static const struct {
	enum device_request what;
	uint32_t cmd;
	uint64_t feature;
} rows[] = {
#define FORM(what, request, feature) {REQUEST_##what, NEURON_IOCTL_##request, feature},
#include "runtime/device/forms.def"
#undef FORM
};

#define ROWS (sizeof(rows) / sizeof(rows[0]))
_Static_assert(ROWS <= 64, "struct device_forms has a bit per row");

void forms_deny(struct device_forms *f, bool has_features, uint64_t features)
{
	f->denied = 0;
	for (size_t i = 0; i < ROWS; i++)
		if (rows[i].feature && !(has_features && features & rows[i].feature))
			f->denied |= 1ull << i;
}

bool forms_is_unknown(int rc)
{
	return rc == -EINVAL || rc == -ENOTTY;
}

int forms_send(struct device_forms *f, enum device_request what, forms_send_fn send, void *arg)
{
	uint32_t cmd = atomic_load_explicit(&f->settled[what], memory_order_relaxed);
	int rc = -EINVAL;

	if (cmd)
		return send(cmd, arg);
	for (size_t i = 0; i < ROWS; i++) {
		if (rows[i].what != what || f->denied & 1ull << i)
			continue;
		rc = send(rows[i].cmd, arg);
		if (rc == 0)
			atomic_store_explicit(&f->settled[what], rows[i].cmd, memory_order_relaxed);
		if (!forms_is_unknown(rc))
			break;
	}
	return rc;
}

static uint32_t newest(enum device_request what)
{
	size_t i = 0;

	while (rows[i].what != what)
		i++;
	return rows[i].cmd;
}

bool forms_old(const struct device_forms *f)
{
	for (unsigned what = 0; what < REQUEST_COUNT; what++) {
		uint32_t cmd = atomic_load_explicit(&f->settled[what], memory_order_relaxed);

		if (cmd && cmd != newest((enum device_request)what))
			return true;
	}
	return false;
}
