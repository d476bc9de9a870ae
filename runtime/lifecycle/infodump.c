/* SPDX-License-Identifier: Apache-2.0 */
/*
 * infodump.c - writes the support bundle, line by line.
 *
 * A line of the log has 1024 bytes.  A value that is longer goes on in further lines, NAME+=REST, as a shell would
 * take them: who helps must be able to trust that nothing is left out.
 */
#include "runtime/lifecycle/infodump.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/env.h"
#include "runtime/base/env_table.h"
#include "runtime/base/host.h"
#include "runtime/base/printable.h"
#include "runtime/base/status_name.h"
#include "runtime/base/utf8.h"
#include "runtime/device/device.h"
#include "runtime/lifecycle/version.h"

#define TAG "NRT"
#define FUNC "nrt_infodump"
#define CORES_OF_LINE 64u
#define NAME_BYTES 128u	 /* of a variable, and */
#define VALUE_BYTES 640u /* of a piece of a value, as shown: both fit into a line behind its head */

/* The severest level of what has been written; none is as severe as this one. */
static _Atomic int written = LOG_LEVEL_TRACE + 1;

/* What a core dump gives away has no environment in it. */
#define SAY(level, ...) log_write_unkept((level), TAG, FUNC, __VA_ARGS__)

/* One thread alone gets true for a level. */
static bool is_worse(enum log_level level)
{
	int before = atomic_load(&written);

	while ((int)level < before)
		if (atomic_compare_exchange_weak(&written, &before, (int)level))
			return true;
	return false;
}

/* ---- lines -------------------------------------------------------------------------------- */

/* What of the vendor's library this one does not have. */
static void say_versions(enum log_level level)
{
	static const char *const absent[] = {"Embedded FW", "CCOM", "NCFW"};

	SAY(level, "NRT version: %s (%s)", VERSION_TEXT, VERSION_BUILD);
	for (size_t i = 0; i < sizeof(absent) / sizeof(absent[0]); i++)
		SAY(level, "%s version: none (ntrace)", absent[i]);
}

static void say_host(enum log_level level, const struct device_system *devices)
{
	struct host host;

	host_read(&host, devices ? devices->root : getenv(ENV_DEVICE_ROOT), NULL);
	for (int i = 0; i < HOST_FACTS; i++) {
		SAY(level, "%s: %s", host_fact_name(i), PRINTABLE(host_fact(&host, i)));
		/* Where it stands at the vendor's.  There is no network here, and so no cluster. */
		if (i == HOST_INSTANCE)
			SAY(level, "Cluster ID: none");
	}
}

/* Cores of a line, all of the same form. */
static void say_some_cores(enum log_level level, uint32_t first, uint32_t count)
{
	char list[CORES_OF_LINE * sizeof("4294967295, ")] = "none";
	size_t used = 0;

	for (uint32_t i = 0; i < count; i++)
		used += (size_t)snprintf(
			list + used, sizeof(list) - used, "%s%u", i ? ", " : "", first + i);
	SAY(level, "Visible cores: %s", list);
}

static void say_cores(enum log_level level, int lnc, const struct device_system *d)
{
	uint32_t count = d && d->lnc_size ? device_logical_count(d) : 0, told = 0;
	uint32_t first = count ? cores_logical(d->first_core, d->lnc_size) : 0;

	if (lnc >= 0)
		SAY(level, "LNC: %d", lnc);
	do {
		uint32_t n = count - told < CORES_OF_LINE ? count - told : CORES_OF_LINE;

		say_some_cores(level, first + told, n);
		told += n;
	} while (told < count);
}

/* How many bytes of a text are shown in less than size bytes; more than 0 of any text. */
static size_t piece(const char *text, size_t size)
{
	size_t left = strlen(text), len = left < size / 8 ? left : size / 8;

	/* A character is shown as at most 8 bytes; most are shown as they are. */
	while (len < left) {
		size_t more = len + 64 < left ? len + 64 : left;
		char shown[VALUE_BYTES];

		if (strlen(printable_into(text, more, shown, sizeof(shown))) + 8 >= size)
			break;
		len = more;
	}
	return utf8_cut(text, left, len);
}

static void say_variable(enum log_level level, const char *text)
{
	size_t name_len = strcspn(text, "=");
	const char *value = text + name_len + (text[name_len] == '='), *sign = "=";
	char name[NAME_BYTES], shown[VALUE_BYTES];

	printable_into(text, name_len, name, sizeof(name));
	do {
		size_t len = piece(value, sizeof(shown));

		SAY(level, "%s%s%s", name, sign, printable_into(value, len, shown, sizeof(shown)));
		value += len;
		sign = "+=";
	} while (*value);
}

static void say_environment(enum log_level level)
{
	char **e = environ;

	while (e && *e && !env_is_ours(*e))
		e++;
	/* Nothing behind the colon could be a line that got lost. */
	SAY(level, "Environment:%s", e && *e ? "" : " none");
	for (; e && *e; e++)
		if (env_is_ours(*e))
			say_variable(level, *e);
}

void infodump(enum log_level level, int lnc, NRT_STATUS status, const char *call,
	const struct device_system *devices)
{
	if (!is_worse(level))
		return;
	SAY(level, "Neuron runtime information - please include in any support request:");
	SAY(level, "------------->8------------[ cut here ]------------>8-------------");
	say_versions(level);
	say_host(level, devices);
	if (status)
		SAY(level, "Failure: %s in %s()", status_name(status), call);
	say_cores(level, lnc, devices);
	say_environment(level);
	SAY(level, "-------------8<-----------[ cut to here ]-----------8<------------");
}
