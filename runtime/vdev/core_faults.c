/* SPDX-License-Identifier: Apache-2.0 */
/* core_faults.c - faults of cores on demand; see core_faults.h. */
#include "runtime/vdev/core_faults.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <nrt/nrt_status.h>

#include "runtime/vdev/vdev_abi.h"

static const struct vdev_core_fault_row rows[VDEV_CORE_FAULT_NUMBERS] = {
#define FAULT(id, number, name, status, ends, record) \
	[number] = {name, status, VDEV_FAULT_##ends, NOTE_TYPE_##record},
#include "runtime/vdev/faults.def"
#undef FAULT
};

const struct vdev_core_fault_row *vdev_core_fault_find(uint32_t fault)
{
	return fault < VDEV_CORE_FAULT_NUMBERS && rows[fault].name ? &rows[fault] : NULL;
}

void vdev_core_fault_names(char *ret, size_t size)
{
	size_t used = 0;

	ret[0] = '\0';
	for (uint32_t i = 0; i < VDEV_CORE_FAULT_NUMBERS && used < size; i++)
		if (rows[i].name)
			used += (size_t)snprintf(
				ret + used, size - used, "%s%s", used ? ", " : "", rows[i].name);
}

/* Reads a number that ends at the end of the text or at `stop`. */
static bool read_number(const char **text, char stop, uint64_t max, uint64_t *ret)
{
	char *end;

	errno = 0;
	*ret = strtoull(*text, &end, 10);
	if (**text < '0' || **text > '9' || errno || *ret > max || (*end && *end != stop))
		return false;
	*text = end;
	return true;
}

static bool read_core(const char **text, struct vdev_core_fault_rule *rule)
{
	uint64_t core = 0;

	rule->each_core = **text == '*';
	if (rule->each_core)
		(*text)++;
	else if (!read_number(text, ':', UINT32_MAX, &core))
		return false;
	rule->core = (uint32_t)core;
	return !**text || **text == ':';
}

static uint8_t find_name(const char *text, size_t length)
{
	for (uint8_t i = 0; i < VDEV_CORE_FAULT_NUMBERS; i++)
		if (rows[i].name && strlen(rows[i].name) == length &&
			memcmp(rows[i].name, text, length) == 0)
			return i;
	return VDEV_CORE_FAULT_NONE;
}

bool vdev_core_faults_add(struct vdev_core_faults *faults, const char *text)
{
	size_t length = strcspn(text, ":");
	struct vdev_core_fault_rule rule = {.fault = find_name(text, length), .each_core = true};

	text += length;
	if (rule.fault == VDEV_CORE_FAULT_NONE || faults->count == VDEV_CORE_FAULT_RULES)
		return false;
	if (*text == ':') {
		text++;
		if (!read_core(&text, &rule))
			return false;
	}
	if (*text == ':') {
		text++;
		if (!read_number(&text, '\0', UINT64_MAX, &rule.nth) || rule.nth == 0)
			return false;
	}
	faults->rule[faults->count++] = rule;
	return true;
}

uint8_t vdev_core_faults_of(const struct vdev_core_faults *faults, uint32_t core, uint64_t nth)
{
	for (uint32_t i = faults->count; i-- > 0;) {
		const struct vdev_core_fault_rule *r = &faults->rule[i];

		if ((r->each_core || r->core == core) && (!r->nth || r->nth == nth))
			return r->fault;
	}
	return VDEV_CORE_FAULT_NONE;
}
