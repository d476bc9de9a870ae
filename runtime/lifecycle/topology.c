/* SPDX-License-Identifier: Apache-2.0 */
/*
 * topology.c - public calls about the machine: its type, its devices, where they sit and how they are wired.
 *
 * What a collectives library calls mla_idx is taken for the number of a device, and a routing id for what
 * the driver's map has at that number (both inferred from the names).
 */
#include "runtime/lifecycle/runtime.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <nrt/nec.h>

#include "runtime/device/identity.h"
#include "runtime/log/log.h"

#define TAG "NRT"

/* Enters, and sees to it that the caller gave a place for each answer.  NRT_SUCCESS: it must leave. */
static NRT_STATUS enter(const char *call, bool has_places)
{
	NRT_STATUS status = api_enter(call);

	if (status || has_places)
		return status;
	status = runtime_no_place(call);
	api_leave();
	return status;
}

static bool is_device(const struct device_system *s, int number)
{
	return number >= (int)s->topology.first_index &&
	       number < (int)(s->topology.first_index + s->topology.device_count);
}

/* What became of a question about a device, said when it has no answer. */
static NRT_STATUS status_of(
	const struct device_system *s, int rc, const char *call, const char *what, int device)
{
	const struct device_topology *t = &s->topology;

	if (rc == 0)
		return NRT_SUCCESS;
	if (is_device(s, device))
		log_write(LOG_LEVEL_ERROR, TAG, call, "%s of nd%d: %s", what, device,
			device_strerror(rc));
	else
		log_write(LOG_LEVEL_ERROR, TAG, call,
			"%s of device %d: there is none with this number, this machine has %u, "
			"from %u",
			what, device, t->device_count, t->first_index);
	return rc == -ENODEV ? NRT_INVALID : NRT_FAILURE;
}

/* ---- the instance ------------------------------------------------------------------------- */

/* Looked up once per process: programs may keep what they got. */
static _Atomic(const nrt_instance_info_t *) instance;

static const nrt_instance_info_t *get_instance(void)
{
	const nrt_instance_info_t *known = atomic_load(&instance);
	nrt_instance_info_t *found;
	struct identity id;

	if (known)
		return known;
	found = calloc(1, sizeof(*found));
	if (!found)
		return NULL;
	identity_read(runtime_get()->devices, &id);
	found->family = id.family;
	found->size = id.size;
	static_assert(sizeof(found->arch_name) == sizeof(id.arch_name), "arch_name");
	static_assert(sizeof(found->device_revision) == sizeof(id.revision), "revision");
	memcpy(found->arch_name, id.arch_name, sizeof(id.arch_name));
	memcpy(found->device_revision, id.revision, sizeof(id.revision));
	if (atomic_compare_exchange_strong(&instance, &known, found))
		return found;
	free(found); /* another thread was first */
	return known;
}

NRT_STATUS nrt_get_instance_info(nrt_instance_info_t *info, size_t instance_info_len)
{
	static atomic_bool said;
	NRT_STATUS status = enter(__func__, info != NULL);
	size_t copy = instance_info_len < sizeof(*info) ? instance_info_len : sizeof(*info);
	const nrt_instance_info_t *known;

	if (status)
		return status;
	if (copy < instance_info_len && !atomic_exchange(&said, true))
		log_warn(TAG,
			"Not all fields will be returned, info size is: %zu, copy size is: %zu",
			instance_info_len, copy);
	known = get_instance();
	if (known)
		memcpy(info, known, copy);
	api_leave();
	return known ? NRT_SUCCESS : NRT_RESOURCE;
}

/* ---- devices ------------------------------------------------------------------------------ */

NRT_STATUS nrt_host_device_id_get(int neuron_dev, uint32_t *host_device_id)
{
	NRT_STATUS status = enter(__func__, host_device_id != NULL);
	struct device_system *s = runtime_get()->devices;
	int rc;

	if (status)
		return status;
	rc = is_device(s, neuron_dev) ? device_host_id(s, (uint32_t)neuron_dev, host_device_id)
				      : -ENODEV;
	status = status_of(s, rc, __func__, "No host number", neuron_dev);
	api_leave();
	return status;
}

NRT_STATUS nrt_host_device_id_rid_map_get(uint32_t *count, uint32_t *host_did_to_rid_map)
{
	NRT_STATUS status = enter(__func__, count && host_did_to_rid_map);
	struct device_system *s = runtime_get()->devices;
	struct device_routing routing;

	if (status)
		return status;
	status = status_of(s, device_routing(s, &routing), __func__, "No routing ids",
		(int)s->topology.first_index);
	if (!status) {
		*count = *count < routing.count ? *count : routing.count;
		memcpy(host_did_to_rid_map, routing.rid, *count * sizeof(routing.rid[0]));
	}
	api_leave();
	return status;
}

int nec_get_device_count(int *available_devices_array, uint32_t array_size)
{
	const struct device_topology *t;
	int count;

	if (enter(__func__, available_devices_array || array_size == 0))
		return -1;
	t = &runtime_get()->devices->topology;
	count = (int)t->device_count;
	for (uint32_t i = 0; i < t->device_count && i < array_size; i++)
		available_devices_array[i] = (int)(t->first_index + i);
	api_leave();
	return count;
}

int nec_get_device_pci_bdf(
	int neuron_dev, uint32_t *domain, uint32_t *bus_num, uint8_t *pci_slot, uint8_t *dev_func)
{
	struct device_pci_place place = {0};
	struct device_system *s;
	int rc = -ENODEV;

	if (enter(__func__, domain && bus_num && pci_slot && dev_func))
		return -1;
	s = runtime_get()->devices;
	if (is_device(s, neuron_dev))
		rc = device_pci_place(s, (uint32_t)neuron_dev, &place);
	if (!status_of(s, rc, __func__, "No PCI place", neuron_dev)) {
		*domain = place.domain;
		*bus_num = place.bus;
		*pci_slot = place.slot;
		*dev_func = place.function;
	}
	api_leave();
	return rc ? -1 : 0;
}

NRT_STATUS nec_get_virtual_core_size(uint32_t *virtual_core_size)
{
	NRT_STATUS status = enter(__func__, virtual_core_size != NULL);

	if (status)
		return status;
	*virtual_core_size = runtime_get()->devices->lnc_size;
	api_leave();
	return NRT_SUCCESS;
}

/* ---- routing ------------------------------------------------------------------------------ */

bool nec_is_mla_available(int local_nec_dev_id, int mla_idx)
{
	const struct device_system *s;
	bool available;

	if (enter(__func__, true))
		return false;
	s = runtime_get()->devices;
	available = is_device(s, local_nec_dev_id) && is_device(s, mla_idx);
	api_leave();
	return available;
}

/* The routing ids, for a device of this process.  The caller, when it gets true, must leave. */
static bool enter_routing(const char *call, int device, struct device_routing *ret)
{
	const struct device_system *s;

	if (enter(call, true))
		return false;
	s = runtime_get()->devices;
	if (!status_of(s, is_device(s, device) ? device_routing(s, ret) : -ENODEV, call,
		    "No routing ids", device))
		return true;
	api_leave();
	return false;
}

int nec_mla_idx_to_rid(int local_nec_dev_id, int mla_idx)
{
	struct device_routing routing;
	int rid = -1;

	if (!enter_routing(__func__, local_nec_dev_id, &routing))
		return -1;
	if (mla_idx >= 0 && (uint32_t)mla_idx < routing.count)
		rid = (int)routing.rid[mla_idx];
	api_leave();
	return rid;
}

int nec_rid_to_mla_idx(int local_nec_dev_id, int rid)
{
	struct device_routing routing;
	int mla_idx = -1;

	if (!enter_routing(__func__, local_nec_dev_id, &routing))
		return -1;
	for (uint32_t i = 0; i < routing.count && mla_idx < 0; i++)
		if (rid >= 0 && routing.rid[i] == (uint32_t)rid)
			mla_idx = (int)i;
	api_leave();
	return mla_idx;
}
