/* SPDX-License-Identifier: Apache-2.0 */
/*
 * instance.c - asks DMI, then uname, what this machine is called.
 */
#include "runtime/base/instance.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "runtime/base/file.h"

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

static bool read_board(const char *above, const char *path, char ret[INSTANCE_ID_BYTES])
{
	char full[4200];

	(void)snprintf(full, sizeof(full), "%s%s", above, path);
	(void)file_read_line(full, ret, INSTANCE_ID_BYTES);
	return is_instance_id(ret);
}

void instance_read_id(const char *device_root, const char *sys, char ret[INSTANCE_ID_BYTES])
{
	struct utsname uts = {.nodename = ""};

	if (device_root && device_root[0] &&
		read_board(device_root, "/sys/class/dmi/id/board_asset_tag", ret))
		return;
	if (read_board(sys ? sys : "/sys", "/devices/virtual/dmi/id/board_asset_tag", ret))
		return;
	(void)uname(&uts);
	(void)snprintf(ret, INSTANCE_ID_BYTES, "%.64s", uts.nodename);
	for (char *p = ret; *p; p++)
		if (!isalnum((unsigned char)*p) && *p != '-' && *p != '.')
			*p = '-';
	if (!ret[0] || ret[0] == '.')
		(void)snprintf(ret, INSTANCE_ID_BYTES, "host");
}
