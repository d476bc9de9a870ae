/* SPDX-License-Identifier: Apache-2.0 */
/*
 * refused.c - the requests that were refused, by the rows that ioctl_table.def has for other drivers.
 */
#include "runtime/record/refused.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/errno_name.h"
#include "vmlinux/ioctl_table.h"

static bool is_of_another_version(const char *driver, const struct nev_ioctl *e)
{
	const char *release = ioctl_release_of(driver);
	const struct ioctl_row *row = ioctl_row_find(e->request);

	return row ? release && !ioctl_row_in_driver(row, release)
		   : ioctl_row_of_number(e->request) != NULL;
}

static bool is_row(const struct refused_row *r, const char *driver, const struct nev_ioctl *e)
{
	return r->request == e->request && !strcmp(r->driver, driver);
}

void refused_note(
	struct refused *r, const struct modules *m, const char *first, const struct nev_ioctl *e)
{
	struct refused_row row = {.request = e->request};
	const char *driver;
	uint32_t i = 0;

	if (e->result != -EINVAL && e->result != -ENOTTY)
		return;
	driver = modules_driver_at(m, first, e->start_ns);
	if (!is_of_another_version(driver, e))
		return;
	snprintf(row.driver, sizeof(row.driver), "%s", driver ? driver : "of unknown version");
	while (i < r->count && !is_row(&r->rows[i], row.driver, e))
		i++;
	if (i == REFUSED_ROWS) {
		r->more_calls++;
		return;
	}
	if (i == r->count)
		r->rows[r->count++] = row;
	r->rows[i].result = e->result;
	r->rows[i].calls++;
}

static unsigned size_of(uint32_t request)
{
	return request >> 16 & 0x3fff;
}

/* Of a request whose number is known with other sizes alone. */
static void say_unknown(uint32_t request, char *ret, size_t size)
{
	size_t used = (size_t)snprintf(ret, size, "0x%08x (number %u, %u bytes; known are", request,
		request & 0xff, size_of(request));
	unsigned last = 0;

	for (size_t i = 0; i < ioctl_row_count && used < size; i++) {
		unsigned bytes = size_of(ioctl_rows[i].cmd);

		if ((ioctl_rows[i].cmd & 0xffff) != (request & 0xffff) || bytes == last)
			continue;
		used += (size_t)snprintf(ret + used, size - used, "%s %u", last ? "," : "", bytes);
		last = bytes;
	}
	if (used < size)
		snprintf(ret + used, size - used, ") of an unknown driver");
}

void refused_line(const struct refused_row *r, char *ret, size_t size)
{
	uint32_t request = r->request;
	const struct ioctl_row *row = ioctl_row_find(request);
	const char *error = errno_name(-r->result);
	char who[128];

	if (row)
		snprintf(who, sizeof(who), "%s of driver %s", row->name, row->drivers);
	else
		say_unknown(request, who, sizeof(who));
	snprintf(ret, size,
		"what %s would have done: driver %s refused it with %s, %" PRIu64 " time%s", who,
		r->driver, error ? error : "an error", r->calls, r->calls == 1 ? "" : "s");
}
