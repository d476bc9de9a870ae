/* SPDX-License-Identifier: Apache-2.0 */
/*
 * request.c - the one ioctl(2) of the library, and the requests that programs run with, one function each.
 *
 * Requests that say what the driver and the device are stand in request_info.c.
 */
#include "runtime/device/device.h"

#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "runtime/base/env.h"
#include "runtime/device/guards.h"
#include "runtime/device/simulate.h"
#include "runtime/log/log.h"
#include "runtime/vdev/vdev_abi.h"
#include "vmlinux/ioctl_table.h"
#include "vmlinux/neuron_args.h"

#define GOOD_BOUND_NS 50000u /* a clock reading that took longer was interrupted */
#define TAG "TDRV"
#define PIECE_BYTES (1ull << 30) /* of a transfer: the driver counts in 32 bits */

/* ---- the door ----------------------------------------------------------------------------- */

static int refuse(
	const struct device_file *file, uint32_t cmd, const void *arg, enum guard_answer answer)
{
	struct guard_rule rule = {.request = "an unknown request"};

	(void)guard_rule(cmd, &rule);
	if (answer == GUARD_CHILD)
		log_error(TAG,
			"%s is not sent to nd%u: process %d opened it, this is a child of it",
			rule.request, file->index, (int)file->owner);
	else if (answer == GUARD_HAZARD)
		log_error(TAG, "%s is never sent to the real device nd%u: it %s", rule.request,
			file->index, guard_hazard(cmd, arg));
	else
		log_error(TAG,
			"%s is not sent to the real device nd%u: it %s, whoever uses the device. "
			"Set " ENV_ALLOW_RESET "=1 to allow it",
			rule.request, file->index, rule.does);
	return -EPERM;
}

int device_ioctl_by(device_ioctl_fn call, const struct device_file *file, uint32_t cmd, void *arg)
{
	enum guard_answer answer = guard_check(file, getpid(), cmd, arg);
	struct guard_rule rule = {0};
	int rc;

	if (answer != GUARD_PASS)
		return refuse(file, cmd, arg, answer);
	if (file->simulated)
		return simulate_request(cmd, arg);
	(void)guard_rule(cmd, &rule);
	do {
		if (!kept_fd_valid(&file->kept))
			return -EBADF;
		rc = call(file->kept.fd, cmd, arg);
	} while (rc < 0 && errno == EINTR && rule.again);
	if (rc < 0)
		return -errno;
	return rc > 0 ? -EFAULT : 0;
}

static int call_ioctl(int fd, uint32_t cmd, void *arg)
{
	return ioctl(fd, cmd, arg);
}

int device_ioctl(const struct device_file *file, uint32_t cmd, void *arg)
{
	return device_ioctl_by(call_ioctl, file, cmd, arg);
}

const char *device_strerror(int rc)
{
	/* The first two are what FUSE says of a device that ended. */
	if (rc == -ENOTCONN || rc == -ECONNABORTED || rc == -ENODEV)
		return "the device is gone";
	return strerror(-rc);
}

static uint64_t address_of(const void *p)
{
	return (uint64_t)(uintptr_t)p;
}

/* ---- memory ------------------------------------------------------------------------------- */

struct alloc_call {
	const struct device_core *core;
	uint64_t size, handle, address;
	enum device_mem_type type;
};

/* V2MT, V2MT64 and V2MT64_PA begin alike. */
static int send_mem_alloc(uint32_t cmd, void *arg)
{
	struct alloc_call *c = arg;
	const struct device_core *core = c->core;
	struct neuron_mem_alloc_v2mt newer = {.size = c->size,
		.dram_channel = core->hbm,
		.nc_id = core->index,
		.mem_type = c->type,
		.mem_handle = address_of(&c->handle)};
	struct neuron_mem_alloc_v2 older = {.size = c->size,
		.dram_channel = core->hbm,
		.nc_id = core->index,
		.mem_handle = newer.mem_handle};
	struct neuron_mem_alloc oldest = {.size = c->size,
		.dram_channel = core->hbm,
		.nc_id = core->index,
		.mem_handle = newer.mem_handle};
	int rc;

	if (cmd == NEURON_IOCTL_MEM_ALLOC_V2)
		return device_ioctl(&core->device->file, cmd, &older);
	if (cmd == NEURON_IOCTL_MEM_ALLOC)
		return device_ioctl(&core->device->file, cmd, &oldest);
	rc = device_ioctl(&core->device->file, cmd, &newer);
	c->address = newer.pa;
	return rc;
}

int device_mem_alloc(const struct device_core *core, uint64_t size, enum device_mem_type type,
	uint64_t *ret_handle, uint64_t *ret_address)
{
	struct alloc_call call = {.core = core, .size = size, .type = type};
	int rc = forms_send(core->device->forms, REQUEST_MEM_ALLOC, send_mem_alloc, &call);

	if (rc == 0) {
		*ret_handle = call.handle;
		*ret_address = call.address;
	}
	return rc;
}

int device_mem_free(const struct device *device, uint64_t handle)
{
	struct neuron_mem_free arg = {.mem_handle = handle};

	return device_ioctl(&device->file, NEURON_IOCTL_MEM_FREE, &arg);
}

uint64_t device_copy_piece(uint32_t cmd, uint64_t offset, uint64_t size)
{
	if (cmd == NEURON_IOCTL_MEM_BUF_COPY && offset > UINT32_MAX)
		return 0;
	return size < PIECE_BYTES ? size : PIECE_BYTES;
}

struct copy_call {
	const struct device *device;
	uint64_t handle, offset, buffer, size, done;
	bool to_device;
};

/* One piece; done says how long it was. */
static int send_buf_copy(uint32_t cmd, void *arg)
{
	struct copy_call *c = arg;
	uint64_t piece = device_copy_piece(cmd, c->offset, c->size);
	struct neuron_mem_buf_copy64 newer = {.mem_handle = c->handle,
		.buffer = c->buffer,
		.size = piece,
		.offset = c->offset,
		.copy_to_mem_handle = c->to_device};
	struct neuron_mem_buf_copy older = {.mem_handle = c->handle,
		.buffer = c->buffer,
		.size = (uint32_t)piece,
		.offset = (uint32_t)c->offset,
		.copy_to_mem_handle = c->to_device};

	if (piece == 0 && c->size)
		return -EFBIG;
	c->done = piece;
	return device_ioctl(&c->device->file, cmd,
		cmd == NEURON_IOCTL_MEM_BUF_COPY ? (void *)&older : (void *)&newer);
}

static int buf_copy(struct copy_call call)
{
	int rc;

	do {
		rc = forms_send(call.device->forms, REQUEST_BUF_COPY, send_buf_copy, &call);
		call.offset += call.done;
		call.buffer += call.done;
		call.size -= call.done;
	} while (rc == 0 && call.size);
	return rc;
}

int device_copy_in(const struct device *device, uint64_t handle, uint64_t offset, const void *from,
	uint64_t size)
{
	return buf_copy(
		(struct copy_call){device, handle, offset, address_of(from), size, 0, true});
}

int device_copy_out(
	const struct device *device, uint64_t handle, uint64_t offset, void *to, uint64_t size)
{
	return buf_copy((struct copy_call){device, handle, offset, address_of(to), size, 0, false});
}

struct mem_copy_call {
	const struct device *device;
	uint64_t from, from_offset, to, to_offset, size;
};

/* MEM_COPY64_DEPRECATED is the beginning of MEM_COPY64. */
static int send_mem_copy(uint32_t cmd, void *arg)
{
	const struct mem_copy_call *c = arg;
	struct neuron_mem_copy64 newer = {.src_mem_handle = c->from,
		.dst_mem_handle = c->to,
		.size = c->size,
		.src_offset = c->from_offset,
		.dst_offset = c->to_offset};
	struct neuron_mem_copy older = {.src_mem_handle = c->from,
		.dst_mem_handle = c->to,
		.size = (uint32_t)c->size,
		.src_offset = (uint32_t)c->from_offset,
		.dst_offset = (uint32_t)c->to_offset};

	if (cmd != NEURON_IOCTL_MEM_COPY)
		return device_ioctl(&c->device->file, cmd, &newer);
	if (c->from_offset > UINT32_MAX || c->to_offset > UINT32_MAX)
		return -EFBIG;
	return device_ioctl(&c->device->file, cmd, &older);
}

int device_mem_copy(const struct device *device, uint64_t from, uint64_t from_offset, uint64_t to,
	uint64_t to_offset, uint64_t size)
{
	/* Pieces go in the order in which none overwrites what a later one reads. */
	bool backwards = from == to && from_offset < to_offset;
	uint64_t done = 0;
	int rc = 0;

	while (rc == 0 && done < size) {
		uint64_t piece = size - done < PIECE_BYTES ? size - done : PIECE_BYTES;
		uint64_t at = backwards ? size - done - piece : done;
		struct mem_copy_call call = {
			device, from, from_offset + at, to, to_offset + at, piece};

		rc = forms_send(device->forms, REQUEST_MEM_COPY, send_mem_copy, &call);
		done += piece;
	}
	return rc;
}

struct mem_fill_call {
	const struct device *device;
	uint64_t handle, offset, size;
	uint8_t byte;
};

static int send_mem_fill(uint32_t cmd, void *arg)
{
	const struct mem_fill_call *c = arg;
	struct neuron_memset64 newer = {
		.mem_handle = c->handle, .offset = c->offset, .value = c->byte, .size = c->size};
	struct neuron_memset older = {.mem_handle = c->handle,
		.offset = c->offset,
		.value = c->byte,
		.size = (uint32_t)c->size};

	return device_ioctl(&c->device->file, cmd,
		cmd == NEURON_IOCTL_MEMSET ? (void *)&older : (void *)&newer);
}

int device_mem_fill(
	const struct device *device, uint64_t handle, uint64_t offset, uint64_t size, uint8_t byte)
{
	int rc = 0;

	for (uint64_t done = 0; rc == 0 && done < size; done += PIECE_BYTES) {
		struct mem_fill_call call = {device, handle, offset + done,
			size - done < PIECE_BYTES ? size - done : PIECE_BYTES, byte};

		rc = forms_send(device->forms, REQUEST_MEM_FILL, send_mem_fill, &call);
	}
	return rc;
}

/* ---- registers, clocks ---------------------------------------------------------------------- */

/* A 64-bit register of a virtual device: on silicon there is another one in its place. */
static int read_register(const struct device *device, uint64_t address, uint64_t *ret)
{
	uint64_t addresses[2] = {address, address + 4};
	uint32_t words[2] = {0, 0};
	struct neuron_bar_rw arg = {
		.bar = 0,
		.address = address_of(addresses),
		.data = address_of(words),
		.count = 2,
	};
	int rc = -ENOTSUP;

	if (!device->file.is_real)
		rc = device_ioctl(&device->file, NEURON_IOCTL_BAR_READ, &arg);
	if (rc == 0)
		*ret = words[0] | (uint64_t)words[1] << 32;
	return rc;
}

int device_read_clock(const struct device_core *core, struct device_sync *ret)
{
	struct boot_ns before = clock_boot(), after;
	uint64_t half, ps;
	int rc = read_register(core->device, VDEV_BAR_CLOCK(core->index), &ps);

	after = clock_boot();
	half = (after.ns - before.ns) / 2;
	if (rc < 0)
		return rc;
	ret->clock.ps = ps;
	ret->host.ns = before.ns + half;
	ret->bound_ns = after.ns - ret->host.ns;
	return 0;
}

int device_read_clock_well(const struct device_core *core, struct device_sync *ret)
{
	int rc = device_read_clock(core, ret);

	for (int i = 0; rc == 0 && i < 2 && ret->bound_ns > GOOD_BOUND_NS; i++) {
		struct device_sync again;

		rc = device_read_clock(core, &again);
		if (rc == 0 && again.bound_ns < ret->bound_ns)
			*ret = again;
	}
	return rc;
}

int device_memory_bytes(const struct device_core *core, uint32_t arch, uint64_t *ret)
{
	static const uint64_t gib_of_bank[] = {
		[DEVICE_ARCH_V2] = 16, [DEVICE_ARCH_V3] = 24, [DEVICE_ARCH_V4] = 36};

	if (!core->device->file.is_real)
		return read_register(core->device, VDEV_BAR_MEMORY, ret);
	if (arch >= sizeof(gib_of_bank) / sizeof(gib_of_bank[0]) || !gib_of_bank[arch])
		return -ENOTSUP;
	*ret = gib_of_bank[arch] << 30;
	return 0;
}
