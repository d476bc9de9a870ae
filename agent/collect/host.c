/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host.c - see host.h.
 */
#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "agent/collect/host.h"
#include "runtime/base/file.h"

/* First line of a small file, at most size - 1 bytes; "" when there is none. */
static void read_line(const char *path, char *buf, size_t size)
{
	_cleanup_free_ char *text = NULL;
	size_t len = 0;

	buf[0] = 0;
	if (file_read(path, 4096, &text, &len) < 0)
		return;
	text[strcspn(text, "\n")] = 0;
	snprintf(buf, size, "%s", text);
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
	read_line(path, h->instance_id, sizeof(h->instance_id));
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
	read_line(path, h->driver, sizeof(h->driver));
}
