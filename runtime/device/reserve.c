/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reserve.c - which NeuronCores this process gets, and marking them as its own.
 *
 * A reservation is a window of neighbouring physical cores that begins at a multiple of the LNC size.
 * An explicit request has one window.  Otherwise the windows are tried from the lowest core on,
 * each with a request for exactly its cores.  The driver could search itself, and the vendor's
 * library lets it; but its search goes on two cores behind a blocked one, so it passes over
 * windows that are free, and it knows nothing of logical cores, so it finds windows that cannot be
 * used.
 *
 * Before a window is marked, working handles of its devices are opened: the driver does not tell who
 * owns a mark, but it tells who is attached to a device, and so an owner is always found there.
 * Handles of devices that were tried in vain are closed again.
 *
 * Marks are made through s->query.  They are given back through it too, before any handle is closed: the
 * close of a query handle drops all marks of the process, and a process that ends with a working
 * handle alone leaves them.
 */
#include "runtime/device/device.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "runtime/device/owners.h"
#include "runtime/log/log.h"

/* The names that stand in these lines with every version of the runtime. */
#define say(level, ...) log_write(level, "NRT", "nrt_allocate_neuron_cores", __VA_ARGS__)
#define error(...) say(LOG_LEVEL_ERROR, __VA_ARGS__)

/* ---- LNC size ----------------------------------------------------------------------------- */

static void say_size(
	enum cores_fault fault, uint32_t size, uint32_t per_device, const char *variable)
{
	if (fault == CORES_SIZE_TOO_LARGE)
		error("Only LNC Size of 2 is supported, or 1, and not %u, on this instance", size);
	else if (fault == CORES_SIZE_NOT_DIVISOR)
		error("LNC Size of %u does not divide the %u cores of a device: "
		      "(nc_per_device %% out) == 0 does not hold",
			size, per_device);
	else
		error("LNC Size of %u is not a power of two", size);
	if (!variable)
		error("No size is set, and %u is the default; NEURON_LOGICAL_NC_CONFIG=1 fits any "
		      "number of cores",
			size);
	else if (fault == CORES_SIZE_NOT_DIVISOR)
		error("%s='%u' does not fit this machine; 1 does", variable, size);
	else
		error("%s='%u' is not 1 or 2", variable, size);
	error("Failed to parse vnc config");
}

NRT_STATUS device_choose_size(const struct device_wish *wish, uint32_t arch,
	uint32_t cores_per_device, uint32_t *ret_size)
{
	uint32_t size = cores_default_size(arch, cores_per_device);
	enum cores_fault fault;

	if (wish->lnc_size && arch <= DEVICE_ARCH_V2) {
		if (wish->lnc_size != size)
			say(LOG_LEVEL_WARN,
				"LNC Size of %u is not used: this instance has no other than 1",
				wish->lnc_size);
	} else if (wish->lnc_size) {
		size = wish->lnc_size;
	}
	fault = cores_check_size(size, cores_per_device);
	if (fault) {
		say_size(fault, size, cores_per_device, wish->lnc_variable);
		return NRT_INVALID;
	}
	*ret_size = size;
	return NRT_SUCCESS;
}

/* ---- what cannot be ----------------------------------------------------------------------- */

static uint32_t device_of(const struct device_system *s, uint64_t physical)
{
	return s->topology.first_index + (uint32_t)(physical / s->topology.cores_per_device);
}

/* More than a process can have: in the unit of the variables, and what would do. */
static void say_limit(const struct device_system *s, const struct device_wish *wish,
	const struct cores_windows *w)
{
	uint32_t count = wish->core_count ? wish->core_count : device_logical_total(s);

	error("Requested are %s%u logical cores of %u physical ones each, %s; "
	      "NEURON_RT_VISIBLE_CORES=0-%u takes what can be had of this machine",
		wish->core_count ? "" : "all ", count, s->lnc_size,
		wish->explicit_cores ? "by NEURON_RT_VISIBLE_CORES"
		: wish->core_count   ? "by NEURON_RT_NUM_CORES"
				     : "for no number is set",
		cores_logical(w->reach, s->lnc_size) - 1);
}

static void say_fault(const struct device_system *s, enum cores_fault fault,
	const struct device_wish *wish, const struct cores_windows *w)
{
	uint64_t last = (uint64_t)w->first + w->count - 1;

	if (fault == CORES_NO_DEVICE)
		error("Specified core not accessible! is /dev/neuron%u visible to process?",
			device_of(s, last));
	else if (fault == CORES_NOT_WHOLE)
		error("`NEURON_RT_NUM_CORES` must request one core, or the whole device "
		      "(multiple of %u)",
			cores_logical(s->topology.cores_per_device, s->lnc_size));
	else if (fault == CORES_TOO_MANY)
		log_error("TDRV", "maximum supported number of core is %u - received %u cores",
			CORES_MAX, w->count);
	else
		log_error("TDRV",
			"maximum supported number of devices is %u - what is requested reaches "
			"beyond the first %u of the %u devices of this machine",
			CORES_MAX_DEVICES, CORES_MAX_DEVICES, s->topology.device_count);
	if (fault == CORES_TOO_MANY || fault == CORES_TOO_MANY_DEVICES)
		say_limit(s, wish, w);
	if (fault == CORES_NOT_WHOLE && wish->core_count > device_logical_total(s))
		error("NEURON_RT_NUM_CORES='%u', and this machine has %u logical cores",
			wish->core_count, device_logical_total(s));
}

/* ---- windows ------------------------------------------------------------------------------ */

struct search {
	struct device_system *s;
	const struct cores_windows *windows;
	uint32_t free;	     /* longest run that the driver saw */
	uint64_t not_opened; /* devices, counted from the first */
	NRT_STATUS status;   /* of the last of them, */
	uint32_t last_index; /* which it is, */
	int error;	     /* and why, 0 when that has been said */
};

static uint32_t last_of(const struct search *search, uint32_t first)
{
	return first + search->windows->count - 1;
}

/* Opens the devices of a window, and closes those that are not in it.  False when one cannot be
 * opened, which is in the log. */
static bool attach_window(struct search *search, uint32_t first)
{
	struct device_system *s = search->s;
	uint32_t low = device_of(s, first), high = device_of(s, last_of(search, first));

	device_detach_others(s, low, high);
	for (uint32_t index = low; index <= high; index++) {
		uint64_t bit = 1ull << (index - s->topology.first_index);
		struct device *d;
		NRT_STATUS status;

		if (search->not_opened & bit)
			return false;
		s->open_error = 0;
		status = device_attach(s, index, &d);
		if (status) {
			search->status = status;
			search->last_index = index;
			search->error = s->open_error;
			search->not_opened |= bit;
			return false;
		}
	}
	return true;
}

/* Marks the window that begins at first: 0, -EBUSY, -ENODEV (a device could not be opened), or another
 * error of the driver. */
static int take_window(struct search *search, uint32_t first)
{
	struct device_system *s = search->s;
	uint32_t count = search->windows->count;
	struct core_map map;
	uint32_t longest = 0;
	int rc;

	if (!attach_window(search, first))
		return -ENODEV;
	rc = marks_take(&s->marks, count, first, last_of(search, first), &map, &longest);
	if (longest > search->free)
		search->free = longest;
	if (rc == 0) {
		s->first_core = first;
		s->core_count = count;
	}
	return rc;
}

/* The windows at multiples of the step, and `shift` behind them.  A device that cannot be opened (16
 * processes are the most) takes its windows with it, not the rest. */
static int take_any(struct search *search, uint32_t shift)
{
	const struct cores_windows *w = search->windows;
	int rc = -EBUSY;

	search->s->open_quietly = true; /* no failure while another window can be had */
	for (int64_t first = w->first + shift; first <= w->last; first += w->step) {
		rc = take_window(search, (uint32_t)first);
		if (rc != -EBUSY && rc != -ENODEV)
			break;
	}
	search->s->open_quietly = false;
	if (rc != -EBUSY && rc != -ENODEV)
		return rc;
	return search->not_opened ? -ENODEV : -EBUSY;
}

/* ---- nothing is free ---------------------------------------------------------------------- */

/* There may be room that does not begin at a multiple of the LNC size: says where, and how it can be
 * had.  False when there is none. */
static bool say_misaligned(struct search *search)
{
	struct device_system *s = search->s;
	uint32_t size = s->lnc_size;

	if (size == 1 || take_any(search, 1) != 0)
		return false;
	error("Cannot start process with LNC Size of %u. The free cores begin at core %u, which "
	      "is not a multiple of it. NEURON_LOGICAL_NC_CONFIG=1 "
	      "NEURON_RT_VISIBLE_CORES=%u-%u takes them as they are",
		size, s->first_core, s->first_core, s->first_core + s->core_count - 1);
	device_unreserve(s);
	return true;
}

/* None where more is asked for than the machine has, whoever else is there. */
static bool has_windows(const struct cores_windows *w)
{
	return w->last >= w->first;
}

static void say_not_available(const struct search *search, const struct device_wish *wish, int rc)
{
	const struct cores_windows *w = search->windows;
	uint32_t size = search->s->lnc_size;
	uint32_t count = cores_logical(w->count, size);
	uint32_t available = cores_logical(search->free, size);
	char why[128];

	if (!has_windows(w))
		(void)snprintf(
			why, sizeof(why), "this machine has %u", device_logical_total(search->s));
	else if (rc == -EBUSY)
		(void)snprintf(why, sizeof(why), "cores busy, ret=%d", rc);
	else if (rc == -EDOM)
		(void)snprintf(why, sizeof(why),
			"this driver marks the first %u cores alone, ret=%d", MARKS_OLD_CORES, rc);
	else
		(void)snprintf(why, sizeof(why), "%s, ret=%d", device_strerror(rc), rc);
	if (wish->explicit_cores)
		error("Logical Neuron Core(s) not available - Requested:lnc%u-lnc%u Available:%u "
		      "Logical Core size:%u (%s)",
			wish->first_core, wish->first_core + count - 1, available, size, why);
	else
		error("Logical Neuron Core(s) not available - Requested:%u Available:%u Logical "
		      "Core size %u (%s)",
			count, available, size, why);
}

/* A core that is not there makes no window; how many are free is what the message needs. */
static void ask_free(struct search *search)
{
	struct device_system *s = search->s;
	const struct cores_windows *w = search->windows;
	struct core_map map;
	uint32_t longest = 0;

	if (has_windows(w))
		return;
	if (s->topology.simulated) {
		search->free = w->reach;
		return;
	}
	/* More than the machine has, so nothing is marked. */
	if (marks_take(&s->marks, w->count, 0, w->reach - 1, &map, &longest) != 0)
		search->free = longest;
}

static NRT_STATUS refuse(struct search *search, const struct device_wish *wish, int rc)
{
	struct device_system *s = search->s;
	const struct cores_windows *w = search->windows;
	uint32_t last = wish->explicit_cores ? (uint32_t)w->first + w->count - 1 : w->reach - 1;

	if (rc == -ENODEV && search->error)
		device_say_not_opened(LOG_LEVEL_ERROR, s, search->last_index, search->error);
	if (rc == -ENODEV)
		return search->status;
	if (rc == -EBUSY && say_misaligned(search))
		return NRT_INVALID;
	if (rc == -EBUSY)
		ask_free(search);
	say_not_available(search, wish, rc);
	if (rc == -EBUSY && has_windows(w)) {
		owners_say(s, device_of(s, (uint32_t)w->first), device_of(s, last));
		if (wish->explicit_cores)
			owners_print(s, (uint32_t)w->first);
	}
	return NRT_FAILURE;
}

/* ---- all of it ---------------------------------------------------------------------------- */

static int send_query(void *context, uint32_t cmd, void *arg)
{
	const struct device_system *s = context;

	return device_ioctl(&s->query, cmd, arg);
}

void device_unreserve(struct device_system *s)
{
	struct core_map map = core_map_range(s->first_core, s->core_count);

	if (s->core_count == 0)
		return;
	/* Closing the handle gives them back as well. */
	(void)marks_give(&s->marks, &map);
	s->core_count = 0;
}

NRT_STATUS device_reserve(struct device_system *s, const struct device_wish *wish)
{
	struct cores_machine machine = device_machine(&s->topology, s->arch, 0);
	const struct cores_request request = {
		.is_range = wish->explicit_cores,
		.first = wish->first_core,
		.count = wish->core_count,
	};
	struct cores_windows windows;
	struct search search = {.s = s, .windows = &windows};
	enum cores_fault fault;
	NRT_STATUS status =
		device_choose_size(wish, machine.arch, machine.per_device, &s->lnc_size);
	int rc;

	if (status)
		return status;
	machine.size = s->lnc_size;
	fault = cores_choose(&machine, &request, &windows);
	if (fault) {
		say_fault(s, fault, wish, &windows);
		return NRT_INVALID;
	}
	s->marks = (struct marks){.send = send_query, .context = s};
	rc = take_any(&search, 0);
	return rc == 0 ? NRT_SUCCESS : refuse(&search, wish, rc);
}
