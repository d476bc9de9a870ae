/* SPDX-License-Identifier: Apache-2.0 */
/*
 * refused.c - see the header.
 */
#include "runtime/record/refused.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/errno_name.h"
#include "vmlinux/ioctl_table.h"

/* The release that a version belongs to, as in the drivers column of the request table; NULL: none that
 * the table was read from. */
static const char *release_of(const char *driver)
{
	static const char *const releases[] = {"2.24", "2.30"};

	for (size_t i = 0; driver && i < sizeof(releases) / sizeof(*releases); i++) {
		size_t n = strlen(releases[i]);

		if (strncmp(driver, releases[i], n) == 0 && (driver[n] == '.' || !driver[n]))
			return releases[i];
	}
	return NULL;
}

static bool is_of_another_version(const char *driver, const struct nev_ioctl *e)
{
	const char *release = release_of(driver);
	const struct ioctl_row *row = ioctl_row_find(e->request);

	if (e->result != -EINVAL && e->result != -ENOTTY)
		return false;
	return row ? release && !ioctl_row_in_driver(row, release)
		   : ioctl_row_of_number(e->request) != NULL;
}

void refused_note(struct refused *r, const char *driver, const struct nev_ioctl *e)
{
	uint32_t i = 0;

	if (!is_of_another_version(driver, e))
		return;
	while (i < r->count && r->rows[i].request != e->request)
		i++;
	if (i == REFUSED_ROWS) {
		r->more_calls++;
		return;
	}
	if (i == r->count) {
		r->rows[i].request = e->request;
		r->count++;
	}
	r->rows[i].result = e->result;
	r->rows[i].calls++;
}

void refused_line(const struct refused *r, uint32_t i, const char *driver, char *ret, size_t size)
{
	uint32_t request = r->rows[i].request;
	const struct ioctl_row *row = ioctl_row_find(request);
	const char *error = errno_name(-r->rows[i].result);
	char who[64];

	if (row)
		snprintf(who, sizeof(who), "%s of driver %s", row->name, row->drivers);
	else
		snprintf(who, sizeof(who), "0x%08x (number %u, %u bytes) of an unknown driver",
			request, request & 0xff, request >> 16 & 0x3fff);
	snprintf(ret, size,
		"what %s would have done: driver %s refused it with %s, %" PRIu64 " time%s", who,
		driver ? driver : "of unknown version", error ? error : "an error",
		r->rows[i].calls, r->rows[i].calls == 1 ? "" : "s");
}
