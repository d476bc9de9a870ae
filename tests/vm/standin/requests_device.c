// SPDX-License-Identifier: GPL-2.0-only
/* requests_device.c - requests on what the device is, its registers and its messages; see requests.h. */
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "tests/vm/standin/requests.h"
#include "tests/vm/standin/trace.h"

#define ARCH_V3 3
#define REVISION 1
#ifdef STANDIN_230
#define FEATURES 0x1fffull
#else
#define FEATURES 0xffull
#endif

typedef struct neuron_device device;
typedef const struct request request;

static long device_info(device *nd, request *q, void *arg, void __user *user)
{
	struct neuron_device_info *a = arg;

	*a = (struct neuron_device_info){
		.architecture = ARCH_V3,
		.revision = REVISION,
		.bar_address = {BAR0_BASE},
		.bar_size = {BAR0_BYTES},
	};
	for (int i = 0; i < total_neuron_devices && a->connected_device_count < 4; i++)
		if (i != nd->device_index)
			a->connected_devices[a->connected_device_count++] = i;
	return put_back(q, a, user);
}

static long basic_info(device *nd, request *q, void *arg, void __user *user)
{
	struct neuron_device_basic_info a = {ARCH_V3, REVISION};

	return put_back(q, &a, user);
}

static long compatible_version(device *nd, request *q, void *arg, void __user *user)
{
	struct neuron_compatible_version a = {.max = 11, .min = 10};

	return put_back(q, &a, user);
}

static long driver_info(device *nd, request *q, void *arg, void __user *user)
{
	struct neuron_device_driver_info a = {
		.architecture = ARCH_V3,
		.revision = REVISION,
		.size = sizeof(a),
		.feature_flags1 = FEATURES,
	};

	return q->cmd == NEURON_IOCTL_DRIVER_INFO_GET ? put_back(q, &a, user) : -ENOTSUPP;
}

static long device_bdf(device *nd, request *q, void *arg, void __user *user)
{
	struct neuron_device_bdf a = {.bus_number = 1 + nd->device_index};

	return put_back(q, &a, user);
}

static long device_bdf_ext(device *nd, request *q, void *arg, void __user *user)
{
	struct neuron_device_bdf_ext *a = arg;

	if (a->nd_index >= total_neuron_devices)
		return -EINVAL;
	a->bus_number = 1 + a->nd_index;
	return put_back(q, a, user);
}

static long host_device_id(device *nd, request *q, void *arg, void __user *user)
{
	u32 id = nd->device_index;

	return put_back(q, &id, user);
}

static long rid_map(device *nd, request *q, void *arg, void __user *user)
{
	struct neuron_host_device_id_to_rid_map *a = arg;

	memset(a, 0, sizeof(*a));
	a->count = total_neuron_devices;
	for (int i = 0; i < total_neuron_devices; i++)
		a->host_did_to_rid_map[i] = i;
	return put_back(q, a, user);
}

static long app_pid(device *nd, request *q, void *arg, void __user *user)
{
	s32 pid = nd->attached_processes[0].pid;

	return put_back(q, &pid, user);
}

static long byte_one(device *nd, request *q, void *arg, void __user *user)
{
	u8 one = 1;

	return put_back(q, &one, user);
}

/* ---- registers ---------------------------------------------------------------------------- */

static long copy_words(void *words, u64 at, u32 bytes, bool to_user)
{
	void __user *user = (void __user *)at;

	return to_user ? copy_to_user(user, words, bytes) : copy_from_user(words, user, bytes);
}

static u32 *register_at(device *nd, u64 address)
{
	u64 offset = address - BAR0_BASE;

	return offset <= BAR0_BYTES - sizeof(u32) && offset % sizeof(u32) == 0
		       ? (u32 *)((char *)nd->npdev.bar0 + offset)
		       : NULL;
}

static long access_words(device *nd, bool read, u32 count, const u64 *address, u32 *data)
{
	for (u32 i = 0; i < count; i++) {
		u32 *at = register_at(nd, address[i]);

		if (!at)
			return -EINVAL;
		if (read) {
			data[i] = reg_read32(at);
			trace_bar_read(nd, 0, address[i] - BAR0_BASE, data[i]);
		} else {
			reg_write32(at, data[i]);
			trace_bar_write(nd, 0, address[i] - BAR0_BASE, data[i]);
		}
	}
	return 0;
}

/* One address per word. */
static long bar_rw(device *nd, request *q, void *arg, void __user *user)
{
	const struct neuron_bar_rw *a = arg;
	bool read = q->cmd == NEURON_IOCTL_BAR_READ;
	u64 *address;
	u32 *data;
	long r;

	if (a->bar || !a->count || a->count > 1024)
		return -EINVAL;
	address = kcalloc(a->count, sizeof(*address) + sizeof(*data), GFP_KERNEL);
	if (!address)
		return -ENOMEM;
	data = (u32 *)(address + a->count);
	r = copy_words(address, a->address, a->count * sizeof(*address), false);
	if (r == 0 && !read)
		r = copy_words(data, a->data, a->count * sizeof(*data), false);
	if (r == 0)
		r = access_words(nd, read, a->count, address, data);
	if (r == 0 && read)
		r = copy_words(data, a->data, a->count * sizeof(*data), true);
	kfree(address);
	return r;
}

/* ---- messages ----------------------------------------------------------------------------- */

static long post_metric(device *nd, request *q, void *arg, void __user *user)
{
	const struct neuron_post_metric *a = arg;
	u32 data[32];
	long r;

	if (!a->data_size || a->data_size > sizeof(data))
		return -EINVAL;
	r = copy_words(data, a->data, a->data_size, false);
	return r ? r : fw_io_post_metric(nd, data, a->data_size);
}

static long print(device *nd, request *q, void *arg, void __user *user)
{
	const struct neuron_printk *a = arg;
	char text[128] = "";
	long r = copy_words(text, a->buffer, min_t(u32, a->size, sizeof(text) - 1), false);

	if (r == 0)
		pr_info("neuron: nd%d: %s\n", nd->device_index, text);
	return r;
}

const struct request requests_device[] = {
	REQUEST(DEVICE_INFO, device_info),
	REQUEST(DEVICE_INIT, answer_nothing),
	REQUEST(DEVICE_RELEASE, answer_nothing),
	REQUEST(DEVICE_RESET_STATUS, byte_one),
	REQUEST(DEVICE_APP_PID, app_pid),
	REQUEST(DEVICE_BASIC_INFO, basic_info),
	REQUEST(COMPATIBLE_VERSION, compatible_version),
	REQUEST(DRIVER_INFO_GET, driver_info),
	REQUEST(DRIVER_INFO_SET, driver_info),
	REQUEST(DEVICE_BDF, device_bdf),
	REQUEST(DEVICE_BDF_EXT, device_bdf_ext),
	REQUEST(HOST_DEVICE_ID, host_device_id),
	REQUEST(HOST_DEVICE_ID_TO_RID_MAP, rid_map),
	REQUEST(BAR_READ, bar_rw),
	REQUEST(BAR_WRITE, bar_rw),
	REQUEST(POST_METRIC, post_metric),
	REQUEST(PRINTK, print),
	{},
};
