// SPDX-License-Identifier: GPL-2.0-only
/* main.c - the module: its parameters, and devices that come and go with it; see driver.h. */
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "tests/vm/standin/driver.h"
#include "variant.h" /* STANDIN_VERSION; made by the Makefile, so that srcversion differs, too */

struct neuron_device *neuron_devices[MAX_NEURON_DEVICE_COUNT];
int total_neuron_devices;

static uint devices = 1;
module_param(devices, uint, 0444);
MODULE_PARM_DESC(devices, "devices, 1 to 16");
uint delay_us = 20;
module_param(delay_us, uint, 0644);
MODULE_PARM_DESC(delay_us, "from a doorbell until its descriptors are executed");
bool never;
module_param(never, bool, 0644);
MODULE_PARM_DESC(never, "doorbells are taken and nothing is executed");
uint timeout_ms = 10000;
module_param(timeout_ms, uint, 0644);
MODULE_PARM_DESC(timeout_ms, "how long the driver waits for one doorbell");
uint reset_ms = 10;
module_param(reset_ms, uint, 0644);
MODULE_PARM_DESC(reset_ms, "how long a reset takes");
uint hbm_mb = 64;
module_param(hbm_mb, uint, 0644);
MODULE_PARM_DESC(hbm_mb, "device memory of each device, and the largest chunk");
uint nmetric_log_posts;
module_param(nmetric_log_posts, uint, 0644);
MODULE_PARM_DESC(nmetric_log_posts, "with bit 1, metrics that are posted appear as tracepoint");

static int alloc_buffers(struct neuron_device *nd)
{
	int r = mc_alloc_align(nd, MC_LIFESPAN_DEVICE, PAGE_SIZE, 0, MEM_LOC_HOST,
		HBM_ARGUMENTS(0, 0), 0, NEURON_MEMALLOC_TYPE_NCDEV_HOST, &nd->ndma_q_dummy_mc);

	if (r == 0)
		r = mc_alloc_align(nd, MC_LIFESPAN_DEVICE, DMA_SLICE, 0, MEM_LOC_HOST,
			HBM_ARGUMENTS(0, 0), 0, NEURON_MEMALLOC_TYPE_NCDEV_HOST, &nd->memset_mc);
	nd->npdev.bar0 = vzalloc(BAR0_BYTES);
	nd->npdev.bar0_pa = BAR0_BASE;
	nd->npdev.bar0_size = BAR0_BYTES;
	return nd->npdev.bar0 ? r : -ENOMEM;
}

/* Takes away what was made of a device. */
static void destroy(struct neuron_device *nd)
{
	nr_destroy(nd);
#ifdef STANDIN_230
	ndma_h2d_stop_cmpltn_thread(nd);
#endif
	hw_stop(nd);
	ndmar_close(nd);
	nnq_destroy_all(nd);
	mc_free(&nd->ndma_q_dummy_mc);
	mc_free(&nd->memset_mc);
	mpset_destroy(nd);
	vfree(nd->npdev.bar0);
	counts_detach(nd);
	vfree(nd);
}

static struct neuron_device *create(int index)
{
	struct neuron_device *nd = vzalloc(sizeof(*nd));
	int r;

	if (!nd)
		return NULL;
	nd->device_index = index;
	mutex_init(&nd->memset_lock);
	mutex_init(&nd->nq_lock);
	mpset_init(nd);
	ndmar_preinit(nd);
#ifdef STANDIN_230
	ndma_h2d_init_cmpltn_thread(nd);
#endif
	r = counts_attach(nd);
	if (r) {
		vfree(nd);
		return NULL;
	}
	r = alloc_buffers(nd);
	if (r == 0)
		r = hw_start(nd);
	if (r == 0)
		r = nr_create(nd);
	if (r == 0)
		r = ncdev_create(nd);
	if (r == 0)
		return nd;
	destroy(nd);
	return NULL;
}

static void destroy_all(void)
{
	while (total_neuron_devices) {
		struct neuron_device *nd = neuron_devices[--total_neuron_devices];

		ncdev_delete(nd);
		destroy(nd);
	}
}

static int __init neuron_module_init(void)
{
	int r;

	if (!devices || devices > MAX_NEURON_DEVICE_COUNT)
		return -EINVAL;
	r = ncdev_module_init();
	if (r)
		return r;
	while (total_neuron_devices < devices) {
		neuron_devices[total_neuron_devices] = create(total_neuron_devices);
		if (!neuron_devices[total_neuron_devices]) {
			destroy_all();
			ncdev_module_exit();
			return -ENOMEM;
		}
		total_neuron_devices++;
	}
	pr_info("neuron: stand-in, version %s, devices %u\n", STANDIN_VERSION, devices);
	return counts_open();
}

static void __exit neuron_module_exit(void)
{
	counts_close();
	destroy_all();
	ncdev_module_exit();
}

module_init(neuron_module_init);
module_exit(neuron_module_exit);

MODULE_DESCRIPTION("Stand-in for the Neuron driver, for tests of tracers");
MODULE_LICENSE("GPL");
MODULE_VERSION(STANDIN_VERSION);
