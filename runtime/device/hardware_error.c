/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hardware_error.c - the line of an error of the hardware.
 *
 * Form, names and action are those of AWS's guide to troubleshooting and of its detector of broken
 * nodes; which status has which name is inferred.  There is no line for a memory error that can be
 * repaired and for collectives that hang: what is to be done about them is not public, and a
 * machine should not be replaced by mistake.
 */
#include "runtime/device/hardware_error.h"

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "runtime/base/file.h"
#include "runtime/base/instance.h"
#include "runtime/device/guards.h"
#include "vmlinux/ioctl_table.h"
#include "vmlinux/neuron_args.h"

#define TAG "TDRV"
#define PRINTK_BYTES 512u /* the driver takes no more, NUL included */
#define SERIAL_BYTES 64u

static const struct {
	NRT_STATUS status;
	const char *name;
} errors[] = {
	{NRT_EXEC_HW_ERR_HBM_UE, "HBM_UNCORRECTABLE_ERROR"},
	{NRT_EXEC_HW_ERR_NC_UE, "NC_UNCORRECTABLE_ERROR"},
	{NRT_EXEC_HW_ERR_DMA_ABORT, "DMA_ERROR"},
};

static const char *error_name(NRT_STATUS status)
{
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
		if (errors[i].status == status)
			return errors[i].name;
	return NULL;
}

static void read_serial(const struct device_system *s, uint32_t index, char ret[SERIAL_BYTES])
{
	_cleanup_free_ char *text = NULL;
	char path[96];

	(void)snprintf(
		path, sizeof(path), "/sys/class/neuron_device/neuron%u/info/serial_number", index);
	text = device_read_text(s->root, path);
	if (text)
		text[strcspn(text, "\n")] = '\0';
	(void)snprintf(
		ret, SERIAL_BYTES, "%.*s", (int)SERIAL_BYTES - 1, text && *text ? text : "unknown");
}

void device_tell_hardware_error(
	const struct device_system *s, const struct device_core *core, NRT_STATUS status)
{
	const char *name = error_name(status);
	char line[PRINTK_BYTES], id[INSTANCE_ID_BYTES], serial[SERIAL_BYTES];
	struct neuron_printk arg = {.buffer = (uintptr_t)line};
	struct utsname host;
	int rc;

	if (!name || guard_check(&s->query, getpid(), NEURON_IOCTL_PRINTK, &arg) != GUARD_PASS)
		return;
	instance_read_id(s->root, NULL, id);
	read_serial(s, core->device->index, serial);
	if (uname(&host) < 0)
		host.nodename[0] = '\0';
	arg.size = 1 + (uint32_t)snprintf(line, sizeof(line),
			       "NEURON_HW_ERR=%s instance-id=%s hostname=%.128s nd-id=%u nc-id=%u "
			       "serial-num=%s action=TERMINATE_INSTANCE",
			       name, id, host.nodename, core->device->index, core->index, serial);
	rc = device_ioctl(&s->query, NEURON_IOCTL_PRINTK, &arg);
	if (rc < 0)
		log_warn(TAG, "The kernel log could not be told of %s: %s", name,
			device_strerror(rc));
}
