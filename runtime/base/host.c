/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host.c - asks uname and sysfs who and where this host is, and tells it by name.
 */
#include <ctype.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/file.h"
#include "runtime/base/host.h"
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
	bool is_virtual = device_root && device_root[0];
	char path[4200];

	memset(h, 0, sizeof(*h));
	uname(&h->uts);
	snprintf(h->kernel, sizeof(h->kernel), "%s %s %s", h->uts.sysname, h->uts.release,
		h->uts.machine);
	instance_read_id(device_root, sys_root, h->instance_id);
	if (is_virtual)
		snprintf(path, sizeof(path), "%s/sys/module/neuron/version", device_root);
	else
		snprintf(path, sizeof(path), "%s/module/neuron/version",
			sys_root ? sys_root : "/sys");
	(void)file_read_line(path, h->driver, sizeof(h->driver));
}

static const struct {
	const char *name;
	size_t offset;
} facts[HOST_FACTS] = {
	[HOST_INSTANCE] = {"Instance ID", offsetof(struct host, instance_id)},
	[HOST_KERNEL] = {"Kernel", offsetof(struct host, kernel)},
	[HOST_NODE] = {"Nodename", offsetof(struct host, uts.nodename)},
	[HOST_DRIVER] = {"Driver version", offsetof(struct host, driver)},
};

const char *host_fact_name(enum host_fact which)
{
	return facts[which].name;
}

const char *host_fact(const struct host *h, enum host_fact which)
{
	const char *text = (const char *)h + facts[which].offset;

	return *text ? text : "unknown";
}
