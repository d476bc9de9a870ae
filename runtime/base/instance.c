/* SPDX-License-Identifier: Apache-2.0 */
/*
 * instance.c - asks DMI, then uname, what this machine is called; lists types.
 */
#include "runtime/base/instance.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "runtime/base/file.h"

bool instance_is_id(const char *s)
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
	return instance_is_id(ret);
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

/* ---- types -------------------------------------------------------------------------------- */

static const char *const types[] = {
#define INSTANCE_FAMILY(word, number, arch, arch_name)
#define INSTANCE_SIZE(word, number)
#define INSTANCE(type, devices, cores, product) type,
#include "runtime/base/instances.def"
#undef INSTANCE_FAMILY
#undef INSTANCE_SIZE
#undef INSTANCE
};

bool instance_type_known(const char *type)
{
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (strcmp(types[i], type) == 0)
			return true;
	return false;
}

void instance_list_types(char *ret, size_t size)
{
	size_t used = 0;

	ret[0] = '\0';
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]) && used < size; i++)
		used += (size_t)snprintf(ret + used, size - used, "%s%s", i ? ", " : "", types[i]);
}
