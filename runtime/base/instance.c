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

void instance_read_id(const char *sys, char ret[INSTANCE_ID_BYTES])
{
	char path[4200];
	struct utsname uts = {.nodename = ""};

	(void)snprintf(path, sizeof(path), "%s/devices/virtual/dmi/id/board_asset_tag",
		sys ? sys : "/sys");
	(void)file_read_line(path, ret, INSTANCE_ID_BYTES);
	if (is_instance_id(ret))
		return;
	(void)uname(&uts);
	(void)snprintf(ret, INSTANCE_ID_BYTES, "%.64s", uts.nodename);
	for (char *p = ret; *p; p++)
		if (!isalnum((unsigned char)*p) && *p != '-' && *p != '.')
			*p = '-';
	if (!ret[0] || ret[0] == '.')
		(void)snprintf(ret, INSTANCE_ID_BYTES, "host");
}
