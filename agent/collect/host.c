/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host.c - asks uname and sysfs who and where this host is.
 */
#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/collect/host.h"
#include "runtime/base/file.h"
#include "runtime/base/instance.h"

int host_device_number(const char *name)
{
	char *end;
	unsigned long n;

	if (strncmp(name, "neuron", 6) != 0 || !isdigit((unsigned char)name[6]))
		return -1;
	n = strtoul(name + 6, &end, 10);
	return *end || n > UINT16_MAX ? -1 : (int)n;
}

unsigned host_device_count(const char *root)
{
	char path[4200];
	unsigned n = 0;

	for (unsigned i = 0; i < 64; i++) {
		snprintf(path, sizeof(path), "%s/dev/neuron%u", root ? root : "", i);
		n += access(path, F_OK) == 0;
	}
	return n;
}

void host_read(struct host *h, const char *device_root, const char *sys_root)
{
	char path[4200];

	memset(h, 0, sizeof(*h));
	uname(&h->uts);
	instance_read_id(device_root, sys_root, h->instance_id);
	if (device_root)
		snprintf(path, sizeof(path), "%s/sys/module/neuron/version", device_root);
	else
		snprintf(path, sizeof(path), "%s/module/neuron/version",
			sys_root ? sys_root : "/sys");
	(void)file_read_line(path, h->driver, sizeof(h->driver));
}
