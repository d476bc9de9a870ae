/* SPDX-License-Identifier: Apache-2.0 */
/*
 * request_info.c - requests that say what the device is and what drives it: versions,
 * registers, messages.
 *
 * Revision 255 is what the driver calls "qemu": no silicon.  feature_flags1 has only bits of what
 * this device really does.
 */
#include "runtime/vdev/request.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "runtime/vdev/user_memory.h"
#include "runtime/vdev/vdev_abi.h"
#include "vmlinux/neuron_args.h"

#define REVISION_QEMU 255u
/* No address of anything: user space adds register offsets to it and hands the sum back. */
#define BAR_ADDRESS(bar) (0x7e0000000000ull + 0x10000000000ull * (bar))
#define MAX_BAR_WORDS 65536u
#define ENOTSUPP_DRIVER 524 /* the kernel's own ENOTSUPP; the driver lets it out */

static int device_info(struct vdev_call *call, void *arg)
{
	const struct vdev_config *config = &call->vdev->config;
	const struct vdev_arch *arch = vdev_arch_of(call->vdev);
	struct neuron_device_info *a = arg;

	*a = (struct neuron_device_info){.architecture = arch->number, .revision = REVISION_QEMU};
	a->connected_device_count = vdev_neighbours(config->instance->family, config->devices,
		call->device->index, a->connected_devices);
	for (unsigned i = 0; i < 2; i++) {
		a->bar_address[i] = BAR_ADDRESS(i);
		a->bar_size[i] = arch->bar_bytes[i];
	}
	call->write_back = true;
	return 0;
}

static int device_basic_info(struct vdev_call *call, void *arg)
{
	struct neuron_device_basic_info *a = arg;

	a->architecture = vdev_arch_of(call->vdev)->number;
	a->revision = REVISION_QEMU;
	call->write_back = true;
	return 0;
}

static int compatible_version(struct vdev_call *call, void *arg)
{
	struct neuron_compatible_version *a = arg;

	a->max = call->vdev->config.compat_max;
	a->min = call->vdev->config.compat_min;
	call->write_back = true;
	return 0;
}

/* A feature is there with its request. */
static uint64_t features(const struct vdev *vdev)
{
	static const struct {
		uint64_t bit;
		unsigned row;
	} table[] = {
		{NEURON_FEATURE_BIG_CORE_MAPS, VDEV_ROW_CRWL_NC_RANGE_MARK_EXT0},
		{NEURON_FEATURE_ALLOC_TYPE, VDEV_ROW_MEM_ALLOC_V2MT},
		{NEURON_FEATURE_HBM_SCRUB, VDEV_ROW_HBM_SCRUB_START},
		{NEURON_FEATURE_ALLOC64, VDEV_ROW_MEM_ALLOC_V2MT64},
		{NEURON_FEATURE_ALLOC_WITH_PA, VDEV_ROW_MEM_ALLOC_V2MT64_PA},
	};
	uint64_t bits = 0;

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (!vdev->config.rules.row[table[i].row].absent)
			bits |= table[i].bit;
	return bits;
}

static int driver_info_get(struct vdev_call *call, void *arg)
{
	struct neuron_device_driver_info *a = arg;

	*a = (struct neuron_device_driver_info){
		.architecture = vdev_arch_of(call->vdev)->number,
		.revision = REVISION_QEMU,
		.version = 0,
		.size = sizeof(*a),
		.feature_flags1 = features(call->vdev),
	};
	call->write_back = true;
	return 0;
}

static int driver_info_set(struct vdev_call *call, void *arg)
{
	(void)call;
	(void)arg;
	return -ENOTSUPP_DRIVER;
}

/* ---- registers --------------------------------------------------------------------------- */

/* The 64-bit register that has a word at this address of BAR 0; false when there is none. */
static bool wide_register(const struct vdev_call *call, uint64_t address, uint64_t *ret)
{
	address &= ~4ull;
	if (address == VDEV_BAR_MEMORY) {
		*ret = call->vdev->config.memory_bytes;
		return true;
	}
	for (unsigned c = 0; c < call->vdev->config.cores; c++) {
		if (address == VDEV_BAR_CLOCK(c)) {
			*ret = vdev_core_clock_ps(&call->device->cores[c]);
			return true;
		}
	}
	return false;
}

/* User space may pass the address that DEVICE_INFO gave plus an offset, or the offset alone. */
static uint64_t bar_offset(uint64_t address)
{
	return address >= BAR_ADDRESS(0) ? address - BAR_ADDRESS(0) : address;
}

/* A register of a ring. */
struct ring_register {
	uint64_t area; /* READ, DROPPED, END */
	struct vdev_core *core;
	uint64_t number;
};
enum { AREA_READ, AREA_DROPPED, AREA_END, AREAS };

static bool ring_register(const struct vdev_call *call, uint64_t address, struct ring_register *ret)
{
	uint64_t at = bar_offset(address) - VDEV_BAR_RING_READ(0, 0);
	uint64_t stride = VDEV_BAR_RING_READ(1, 0) - VDEV_BAR_RING_READ(0, 0);
	uint64_t area = VDEV_BAR_RING_DROPPED(0, 0) - VDEV_BAR_RING_READ(0, 0);

	if (bar_offset(address) < VDEV_BAR_RING_READ(0, 0) ||
		at / stride >= call->vdev->config.cores || at % 4)
		return false;
	ret->core = &call->device->cores[at / stride];
	ret->area = at % stride / area;
	ret->number = at % area / 4;
	return ret->area < AREAS && vdev_rings_find(&ret->core->rings, ret->number);
}

static uint32_t read_ring(const struct vdev_call *call, const struct ring_register *r)
{
	const struct vdev_ring *ring = vdev_rings_find(&r->core->rings, r->number);
	uint64_t value;

	if (call->vdev->config.no_ring_head || r->area == AREA_END)
		return 0;
	pthread_mutex_lock(&r->core->lock);
	value = r->area == AREA_READ ? ring->written : ring->drops;
	pthread_mutex_unlock(&r->core->lock);
	return (uint32_t)value;
}

static uint32_t register_word(const struct vdev_call *call, uint64_t address)
{
	struct ring_register ring;
	uint64_t value;

	if (ring_register(call, address, &ring))
		return read_ring(call, &ring);
	address = bar_offset(address);
	if (!wide_register(call, address, &value))
		return 0;
	return (uint32_t)(address & 4 ? value >> 32 : value);
}

/* Both words of a register from one reading; the second address need not be given. */
static int read_wide(const struct vdev_call *call, const struct neuron_bar_rw *a, uint64_t address)
{
	uint64_t value;

	address = bar_offset(address);
	if (address & 4 || !wide_register(call, address, &value))
		return -ENOENT;
	return vdev_user_write(call->tid, a->data, &value, sizeof(value));
}

static int read_registers(const struct vdev_call *call, const struct neuron_bar_rw *a)
{
	for (uint32_t done = 0, n; done < a->count; done += n) {
		uint64_t address[64];
		uint32_t data[64];
		int r;

		n = a->count - done < 64 ? a->count - done : 64;
		r = vdev_user_read(call->tid, a->address + 8ull * done, address, 8ull * n);
		if (r < 0)
			return r;
		for (uint32_t i = 0; i < n; i++)
			data[i] = register_word(call, address[i]);
		r = vdev_user_write(call->tid, a->data + 4ull * done, data, 4ull * n);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Device memory is not mapped in a BAR here. */
static int read_zeros(const struct vdev_call *call, const struct neuron_bar_rw *a)
{
	static const uint8_t zeros[4096];
	uint64_t size = 4ull * a->count;

	for (uint64_t done = 0, n; done < size; done += n) {
		int r;

		n = size - done < sizeof(zeros) ? size - done : sizeof(zeros);
		r = vdev_user_write(call->tid, a->data + done, zeros, n);
		if (r < 0)
			return r;
	}
	return 0;
}

static int bar_read(struct vdev_call *call, void *arg)
{
	const struct neuron_bar_rw *a = arg;
	uint64_t address;
	int r;

	if (a->count > MAX_BAR_WORDS)
		return -EINVAL;
	if (a->count == 0)
		return 0;
	r = vdev_user_read(call->tid, a->address, &address, sizeof(address));
	if (r < 0)
		return r;
	if (a->bar != 0)
		return read_zeros(call, a);
	if (a->count == 2) {
		r = read_wide(call, a, address);
		if (r != -ENOENT)
			return r;
	}
	return read_registers(call, a);
}

/* What a reader of a ring has written; any other register ignores what is written. */
static void write_register(const struct vdev_call *call, uint64_t address, uint32_t word)
{
	struct ring_register r;

	if (!ring_register(call, address, &r))
		return;
	if (r.area == AREA_END)
		vdev_end_ring(call->device, r.core->index, r.number);
	if (r.area != AREA_READ)
		return;
	pthread_mutex_lock(&r.core->lock);
	vdev_ring_read(vdev_rings_find(&r.core->rings, r.number), word);
	pthread_mutex_unlock(&r.core->lock);
}

static int bar_write(struct vdev_call *call, void *arg)
{
	const struct neuron_bar_rw *a = arg;

	if (a->count > MAX_BAR_WORDS)
		return -EINVAL;
	for (uint32_t done = 0, n; a->bar == 0 && done < a->count; done += n) {
		uint64_t address[64];
		uint32_t data[64];
		int r;

		n = a->count - done < 64 ? a->count - done : 64;
		r = vdev_user_read(call->tid, a->address + 8ull * done, address, 8ull * n);
		if (r == 0)
			r = vdev_user_read(call->tid, a->data + 4ull * done, data, 4ull * n);
		if (r < 0)
			return r;
		for (uint32_t i = 0; i < n; i++)
			write_register(call, address[i], data[i]);
	}
	return 0;
}

/* ---- messages --------------------------------------------------------------------------- */

static int post_metric(struct vdev_call *call, void *arg)
{
	const struct neuron_post_metric *a = arg;
	uint8_t data[512];

	return vdev_user_read(call->tid, a->data, data,
		a->data_size < sizeof(data) ? a->data_size : sizeof(data));
}

/* At most 512 bytes, the last one 0.  What the driver puts into the kernel log goes to stderr, where it
 * must not drive a terminal. */
static int print_message(struct vdev_call *call, void *arg)
{
	const struct neuron_printk *a = arg;
	char text[512];
	int r;

	if (a->size > sizeof(text))
		return -EFAULT;
	r = vdev_user_read(call->tid, a->buffer, text, a->size);
	if (r < 0)
		return r;
	if (a->size == 0 || text[a->size - 1])
		return -EBADMSG;
	for (char *c = text; *c; c++)
		if (!isprint((unsigned char)*c))
			*c = '?';
	fprintf(stderr, "ntrace-vdev: %s\n", text);
	return 0;
}

const struct vdev_request vdev_requests_info[] = {
	{NEURON_IOCTL_DEVICE_INFO, device_info},
	{NEURON_IOCTL_DEVICE_BASIC_INFO, device_basic_info},
	{NEURON_IOCTL_COMPATIBLE_VERSION, compatible_version},
	{NEURON_IOCTL_DRIVER_INFO_GET, driver_info_get},
	{NEURON_IOCTL_DRIVER_INFO_SET, driver_info_set},
	{NEURON_IOCTL_DEVICE_INIT, vdev_answer_nothing},
	{NEURON_IOCTL_DEVICE_RELEASE, vdev_answer_nothing},
	{NEURON_IOCTL_BAR_READ, bar_read},
	{NEURON_IOCTL_BAR_WRITE, bar_write},
	{NEURON_IOCTL_POST_METRIC, post_metric},
	{NEURON_IOCTL_PRINTK, print_message},
	{0, NULL},
};
