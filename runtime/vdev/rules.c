/* SPDX-License-Identifier: Apache-2.0 */
/* rules.c - absent, failing and late requests; see rules.h. */
#include "runtime/vdev/rules.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runtime/base/clock.h"
#include "runtime/base/errno_name.h"
#include "vmlinux/ioctl_table.h"

#define MAX_ERRNO 4095u /* of the kernel's own; also 524, which a driver can let out */

static const char *row_name(int row)
{
	return row < VDEV_ROWS	      ? ioctl_rows[row].name
	       : row == VDEV_ROW_OPEN ? "OPEN"
				      : "OPEN_QUERY";
}

/* Row of the name text[0..length), or -1. */
static int find_row(const char *text, size_t length)
{
	for (int i = 0; i < VDEV_RULES; i++)
		if (strlen(row_name(i)) == length && memcmp(row_name(i), text, length) == 0)
			return i;
	return -1;
}

bool vdev_rules_know(const char *text, size_t length)
{
	return find_row(text, length) >= 0;
}

void vdev_rules_names(char *ret, size_t size)
{
	size_t used = 0;

	ret[0] = '\0';
	for (int i = 0; i < VDEV_RULES && used < size; i++)
		used += (size_t)snprintf(
			ret + used, size - used, "%s%s", i ? ", " : "", row_name(i));
}

static bool parse_number(const char *text, uint32_t max, uint32_t *ret)
{
	unsigned long n;
	char *end;

	errno = 0;
	n = strtoul(text, &end, 10);
	*ret = (uint32_t)n;
	return text[0] >= '0' && text[0] <= '9' && !errno && !*end && n >= 1 && n <= max;
}

static bool parse_errno(const char *text, uint32_t *ret)
{
	if (parse_number(text, MAX_ERRNO, ret))
		return true;
	for (uint32_t i = 1; i <= MAX_ERRNO; i++) {
		const char *name = errno_name(i);

		if (name && strcmp(name, text) == 0) {
			*ret = i;
			return true;
		}
	}
	return false;
}

void vdev_rules_for_driver(struct vdev_rules *rules, const char *driver)
{
	for (size_t i = 0; i < VDEV_ROWS; i++)
		if (!ioctl_row_in_driver(&ioctl_rows[i], driver))
			rules->row[i].absent = true;
}

bool vdev_rules_without(struct vdev_rules *rules, const char *list)
{
	struct vdev_rules changed = *rules;

	for (;;) {
		size_t length = strcspn(list, ",");
		int row = find_row(list, length);

		if (row < 0 || row >= VDEV_ROWS) /* every device can be opened */
			return false;
		changed.row[row].absent = true;
		if (!list[length])
			break;
		list += length + 1;
	}
	*rules = changed;
	return true;
}

/* Splits NAME:REST; *ret_rest is NULL when there is no colon. */
static struct vdev_rule *named_rule(
	struct vdev_rules *rules, const char *text, const char **ret_rest)
{
	size_t length = strcspn(text, ":");
	int row = find_row(text, length);

	*ret_rest = text[length] ? text + length + 1 : NULL;
	return row < 0 ? NULL : &rules->row[row];
}

bool vdev_rules_fail(struct vdev_rules *rules, const char *text)
{
	uint32_t error = EIO, nth = 0;
	const char *rest, *colon;
	struct vdev_rule *rule = named_rule(rules, text, &rest);
	char name[32];

	if (!rule || rule->faults == VDEV_MAX_FAULTS)
		return false;
	if (rest) {
		colon = strchr(rest, ':');
		snprintf(name, sizeof(name), "%.*s",
			(int)(colon ? (size_t)(colon - rest) : strlen(rest)), rest);
		if (!parse_errno(name, &error))
			return false;
		if (colon && !parse_number(colon + 1, UINT32_MAX, &nth))
			return false;
	}
	rule->fault[rule->faults++] = (struct vdev_fault){(int)error, nth};
	return true;
}

bool vdev_rules_delay(struct vdev_rules *rules, const char *text)
{
	const char *rest;
	struct vdev_rule *rule = named_rule(rules, text, &rest);
	uint32_t ms;

	if (!rule || !rest || !parse_number(rest, VDEV_MAX_DELAY_MS, &ms))
		return false;
	rule->delay_ms = ms;
	return true;
}

static bool wait_out(uint32_t ms, bool (*ended)(void *context), void *context)
{
	uint64_t end = clock_boot().ns + ms * 1000000ull;

	while (clock_boot().ns < end) {
		struct timespec step = {.tv_nsec = 2000000};

		if (ended(context))
			return false;
		nanosleep(&step, NULL);
	}
	return true;
}

int vdev_rule_obey(
	const struct vdev_rule *rule, uint64_t nth, bool (*ended)(void *context), void *context)
{
	if (rule->absent)
		return -EINVAL;
	if (rule->delay_ms && !wait_out(rule->delay_ms, ended, context))
		return -EINTR;
	for (uint32_t i = rule->faults; i-- > 0;)
		if (!rule->fault[i].nth || rule->fault[i].nth == nth)
			return -rule->fault[i].error;
	return 0;
}
