/* SPDX-License-Identifier: Apache-2.0 */
/*
 * owners.c - naming the processes that have the cores; see owners.h.
 *
 * The driver counts processes as the host does.  A process in a container has another number there than it
 * knows; it sees that by not finding itself among those that are attached.
 */
#include "runtime/device/owners.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/file.h"
#include "runtime/device/device.h"
#include "runtime/log/log.h"
#include "vmlinux/ioctl_table.h"
#include "vmlinux/neuron_args.h"

#define TAG "NRT"
#define MAX_NAMED 24u
#define OWNER_LINES 0x80u /* the vendor's limit for what is printed of a core */

struct owners {
	int32_t pids[MAX_NAMED];
	uint32_t count;
	uint32_t more;	/* beyond MAX_NAMED */
	bool seen_self; /* the driver counts processes as this one does */
};

static void add(struct owners *o, int32_t pid)
{
	if (pid == (int32_t)getpid())
		o->seen_self = true;
	if (pid <= 0 || pid == (int32_t)getpid())
		return;
	for (uint32_t i = 0; i < o->count; i++)
		if (o->pids[i] == pid)
			return;
	if (o->count < MAX_NAMED)
		o->pids[o->count++] = pid;
	else
		o->more++;
}

struct answer {
	struct neuron_apps_info head;
	struct neuron_app_info apps[NEURON_MAX_PROCESSES];
};

static uint32_t count_of(const struct answer *a)
{
	return a->head.size < NEURON_MAX_PROCESSES ? a->head.size : NEURON_MAX_PROCESSES;
}

/* 0 or -errno. */
static int ask_device(struct device_system *s, uint32_t index, struct owners *o)
{
	struct answer answer = {.head = {.capacity = NEURON_MAX_PROCESSES}}; /* pids alone */
	int rc = device_ask(s, index, NEURON_IOCTL_DEVICE_GET_ALL_APPS_INFO, &answer);

	for (uint32_t i = 0; rc == 0 && i < count_of(&answer); i++)
		add(o, answer.apps[i].pid);
	return rc;
}

/* " 1234 (python3)"; the number alone where the process cannot be seen, or would be another one. */
static void append(char *text, size_t size, int32_t pid, bool may_look)
{
	size_t at = strlen(text);
	char path[32], name[32];

	(void)snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	if (may_look && file_read_line(path, name, sizeof(name)) == 0)
		(void)snprintf(text + at, size - at, "%s %d (%s)", at ? "," : "", pid, name);
	else
		(void)snprintf(text + at, size - at, "%s %d", at ? "," : "", pid);
}

static void say_them(const struct owners *o, const char *devices)
{
	char text[MAX_NAMED * 48] = "";
	char rest[32] = "";

	for (uint32_t i = 0; i < o->count; i++)
		append(text, sizeof(text), o->pids[i], o->seen_self);
	if (o->more)
		(void)snprintf(rest, sizeof(rest), " and %u more", o->more);
	log_error(TAG, "Attached to %s:%s%s%s", devices, text, rest,
		o->seen_self ? "" : " (as the host counts processes; this process is among them)");
}

/* Whether there is anybody but this process, which is attached while it asks. */
static bool has_others(const struct owners *o)
{
	return o->seen_self ? o->count > 0 : o->count + o->more > 1;
}

void owners_say(struct device_system *s, uint32_t first, uint32_t last)
{
	struct owners o = {.count = 0};
	char devices[32];
	int rc = 0;

	if (s->topology.simulated) /* its cores are this process's alone */
		return;
	for (uint32_t index = first; index <= last; index++) {
		int one = ask_device(s, index, &o);

		rc = rc ? rc : one;
	}
	(void)snprintf(devices, sizeof(devices), first == last ? "nd%u" : "nd%u-nd%u", first, last);
	if (has_others(&o))
		say_them(&o, devices);
	else if (rc < 0)
		log_error(TAG, "Who is attached to %s cannot be told: %s", devices,
			device_strerror(rc));
	else
		log_error(TAG,
			"No other process is attached to %s: one has ended just now, or has left "
			"its marks behind, which go when the driver is loaded anew",
			devices);
}

void owners_print(const struct device_system *s, uint32_t core)
{
	struct neuron_nc_pid_state_dump arg = {
		.size = sizeof(arg),
		.nc_id = core,
		.filter_log_owner = 1,
		.log_dump_limit = OWNER_LINES,
	};

	if (device_ioctl(&s->query, NEURON_IOCTL_NC_PID_STATE_DUMP, &arg) == 0)
		log_error(TAG, "The %s has printed the owners of core %u to %s",
			s->is_virtual ? "virtual device" : "driver", core,
			s->is_virtual ? "standard error of ntrace-vdev" : "the kernel log");
}

int owners_memory(const struct device *device, struct owners_user *ret, uint32_t max)
{
	struct answer answer = {
		.head = {.capacity = NEURON_MAX_PROCESSES, .flags = NEURON_APPS_MEMORY}};
	int rc = device_ioctl(&device->file, NEURON_IOCTL_DEVICE_GET_ALL_APPS_INFO, &answer);
	uint32_t n = count_of(&answer) < max ? count_of(&answer) : max;

	if (rc < 0)
		return rc;
	for (uint32_t i = 0; i < n; i++)
		ret[i] = (struct owners_user){answer.apps[i].pid, answer.apps[i].device_mem_size};
	return (int)n;
}
