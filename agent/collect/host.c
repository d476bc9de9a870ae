/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host.c - asks uname, DMI and sysfs who and where this host is.
 */
#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/collect/host.h"
#include "runtime/base/file.h"

int host_device_number(const char *name)
{
	char *end;
	unsigned long n;

	if (strncmp(name, "neuron", 6) != 0 || !isdigit((unsigned char)name[6]))
		return -1;
	n = strtoul(name + 6, &end, 10);
	return *end || n > UINT16_MAX ? -1 : (int)n;
}

/* The id becomes a directory name. */
static bool is_instance_id(const char *s)
{
	if (strncmp(s, "i-", 2) || strlen(s) < 10)
		return false;
	for (s += 2; *s; s++)
		if (!isxdigit((unsigned char)*s))
			return false;
	return true;
}

void host_read(struct host *h, const char *device_root, const char *sys_root)
{
	char path[4200];

	memset(h, 0, sizeof(*h));
	uname(&h->uts);
	snprintf(path, sizeof(path), "%s/devices/virtual/dmi/id/board_asset_tag",
		sys_root ? sys_root : "/sys");
	(void)file_read_line(path, h->instance_id, sizeof(h->instance_id));
	if (!is_instance_id(h->instance_id)) {
		snprintf(h->instance_id, sizeof(h->instance_id), "%.64s", h->uts.nodename);
		for (char *p = h->instance_id; *p; p++)
			if (!isalnum((unsigned char)*p) && *p != '-' && *p != '.')
				*p = '-';
		if (!h->instance_id[0] || h->instance_id[0] == '.')
			snprintf(h->instance_id, sizeof(h->instance_id), "host");
	}
	if (device_root)
		snprintf(path, sizeof(path), "%s/sys/module/neuron/version", device_root);
	else
		snprintf(path, sizeof(path), "%s/module/neuron/version",
			sys_root ? sys_root : "/sys");
	(void)file_read_line(path, h->driver, sizeof(h->driver));
}
