/* SPDX-License-Identifier: Apache-2.0 */
/*
 * info.c - version and core counts: the calls that are legal in any state.
 *
 * Before nrt_init the counts come from the environment and from the device files.  In the child of a
 * fork the visible count stays what the parent had.
 */
#include "runtime/lifecycle/runtime.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "runtime/lifecycle/info.h"
#include "runtime/lifecycle/version.h"
#include "runtime/log/log.h"

#define TAG "NRT"
#define VERSION_MIN_SIZE 160u /* up to the git hash */
#define VERSION_HASH_SIZE 200u

static_assert(VERSION_MIN_SIZE + sizeof(VERSION_BUILD) <= VERSION_HASH_SIZE + 1,
	"the shortest place for a hash holds it with its end");

/* Cores this process has, 0 outside of nrt_init and nrt_close.  Survives a fork. */
static _Atomic uint32_t visible_cores;
static _Atomic uint32_t total_cores;

void info_set_cores(uint32_t visible, uint32_t total)
{
	atomic_store(&visible_cores, visible);
	atomic_store(&total_cores, total);
}

NRT_STATUS nrt_get_version(nrt_version_t *ver, size_t size)
{
	nrt_version_t v = {.rt_major = VERSION_MAJOR,
		.rt_minor = VERSION_MINOR,
		.rt_patch = VERSION_PATCH,
		.rt_maintenance = VERSION_MAINTENANCE,
		.git_hash = VERSION_BUILD};

	if (!ver)
		return runtime_no_place(__func__);
	if (size < VERSION_MIN_SIZE) {
		log_error(TAG, "Size is < %u", VERSION_MIN_SIZE);
		return NRT_FAILURE;
	}
	(void)snprintf(v.rt_detail, sizeof(v.rt_detail),
		"libnrt version " VERSION_TEXT " (ntrace %s)", NTRACE_VERSION);
	if (size <= VERSION_HASH_SIZE)
		size = VERSION_MIN_SIZE;
	memcpy(ver, &v, size < sizeof(v) ? size : sizeof(v));
	return NRT_SUCCESS;
}

/* What the environment and the device files say. */
static NRT_STATUS look_up(uint32_t *ret_visible, uint32_t *ret_total)
{
	struct cores_machine machine;
	struct device_topology t = {0};
	struct config_discovery d;
	struct config c;
	uint32_t size = 0;
	NRT_STATUS status = config_read_discovery(&d);

	if (!status)
		status = config_peek(&c);
	if (!status)
		status = device_discover(&(struct device_place){.root = d.root,
						 .allow_real = d.allow_device,
						 .fake_instance = d.fake_instance},
			&t);
	if (!status)
		status = device_choose_size(&(struct device_wish){.lnc_size = c.lnc_size,
						    .lnc_variable = c.lnc_variable},
			t.arch, t.cores_per_device, &size);
	if (status)
		return status;
	machine = device_machine(&t, t.arch, size);
	*ret_total = cores_total_logical(&machine);
	*ret_visible = *ret_total;
	if (c.visible_cores.count || c.core_count)
		*ret_visible = c.visible_cores.count ? c.visible_cores.count : c.core_count;
	return NRT_SUCCESS;
}

NRT_STATUS nrt_get_total_vnc_count(uint32_t *vnc_count)
{
	uint32_t visible, total = atomic_load(&total_cores);
	NRT_STATUS status = NRT_SUCCESS;

	if (!vnc_count)
		return runtime_no_place(__func__);
	if (total == 0)
		status = look_up(&visible, &total);
	if (!status)
		*vnc_count = total;
	return status;
}

NRT_STATUS nrt_get_total_nc_count(uint32_t *nc_count)
{
	return nrt_get_total_vnc_count(nc_count);
}

NRT_STATUS nrt_get_visible_vnc_count(uint32_t *vnc_count)
{
	uint32_t visible = atomic_load(&visible_cores), total;
	NRT_STATUS status = NRT_SUCCESS;

	if (!vnc_count)
		return runtime_no_place(__func__);
	if (visible == 0)
		status = look_up(&visible, &total);
	if (!status)
		*vnc_count = visible;
	return status;
}

NRT_STATUS nrt_get_visible_nc_count(uint32_t *nc_count)
{
	return nrt_get_visible_vnc_count(nc_count);
}
