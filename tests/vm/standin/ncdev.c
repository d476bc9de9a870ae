// SPDX-License-Identifier: GPL-2.0-only
/*
 * ncdev.c - /dev/neuronN: opening, closing, requests, mapping.
 *
 * A handle opened write-only is a query handle: it takes the few requests that are also allowed there,
 * belongs to no process and waits for nothing.  Every other handle is a working one: it attaches the
 * caller's process to the device (at most 16), until the process has closed as often as it opened.
 * Closing any query handle ends all core marks of the process.
 */
#include <linux/delay.h>
#include <linux/module.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/version.h>

#include "tests/vm/standin/requests.h"

static dev_t first_devt;
static struct class *class;

static struct neuron_device *device_of(const struct file *file)
{
	return ((struct ncdev *)file->private_data)->ndev;
}

static bool is_query(const struct file *file)
{
	return (file->f_flags & O_ACCMODE) == O_WRONLY;
}

/* ---- processes ---------------------------------------------------------------------------- */

static struct neuron_attached_process *find_pid(struct neuron_device *nd, pid_t pid)
{
	for (int i = 0; i < NEURON_MAX_PROCESS_PER_DEVICE; i++)
		if (nd->attached_processes[i].pid == pid)
			return &nd->attached_processes[i];
	return NULL;
}

struct neuron_attached_process *npid_of_caller(struct neuron_device *nd)
{
	return find_pid(nd, task_tgid_nr(current));
}

static int attach(struct neuron_device *nd)
{
	struct neuron_attached_process *p = npid_of_caller(nd);

	if (!p)
		p = find_pid(nd, 0);
	if (!p)
		return -EBUSY;
	if (!p->open_count++) {
		p->pid = task_tgid_nr(current);
		memset(p->memory_used, 0, sizeof(p->memory_used));
	}
	return 0;
}

static void detach(struct neuron_device *nd)
{
	struct neuron_attached_process *p = npid_of_caller(nd);

	if (!p || --p->open_count)
		return;
	ndmar_handle_process_exit(nd, p->pid);
	usleep_range(10000, 11000);
	mpset_free_expired_mc(&nd->mpset, p->pid);
	p->pid = 0;
}

/* ---- file operations ---------------------------------------------------------------------- */

static int wait_until_ready(const struct neuron_device *nd)
{
	while (READ_ONCE(nd->device_state) == NEURON_DEVICE_STATE_RESET) {
		if (signal_pending(current))
			return -EINTR;
		msleep(1);
	}
	return nd->device_state == NEURON_DEVICE_STATE_READY ? 0 : -EINVAL;
}

static int KEPT ncdev_open(struct inode *inode, struct file *filp)
{
	struct ncdev *dev = container_of(inode->i_cdev, struct ncdev, cdev);
	struct neuron_device *nd = dev->ndev;
	int r = 0;

	filp->private_data = dev;
	count_call(nd, FN_ncdev_open, 0);
	if (!is_query(filp))
		r = wait_until_ready(nd);
	mutex_lock(&dev->ncdev_lock);
	if (r == 0 && !is_query(filp))
		r = attach(nd);
	if (r == 0)
		dev->open_count++;
	mutex_unlock(&dev->ncdev_lock);
	return count_result(nd, FN_ncdev_open, r);
}

/* On every close(2), and when a process ends. */
static int KEPT ncdev_flush(struct file *filp, fl_owner_t id)
{
	struct ncdev *dev = filp->private_data;

	count_call(dev->ndev, FN_ncdev_flush, 0);
	mutex_lock(&dev->ncdev_lock);
	if (is_query(filp))
		ncrwl_release_all(task_tgid_nr(current));
	else
		detach(dev->ndev);
	mutex_unlock(&dev->ncdev_lock);
	return 0;
}

static int KEPT ncdev_release(struct inode *inode, struct file *filp)
{
	struct ncdev *dev = filp->private_data;

	count_call(dev->ndev, FN_ncdev_release, 0);
	mutex_lock(&dev->ncdev_lock);
	dev->open_count--;
	mutex_unlock(&dev->ncdev_lock);
	return 0;
}

static int KEPT ncdev_mmap(struct file *filp, struct vm_area_struct *vma)
{
	struct neuron_device *nd = device_of(filp);

	count_call(nd, FN_ncdev_mmap, vma->vm_end - vma->vm_start);
	return count_result(nd, FN_ncdev_mmap, nmmap_mem(nd, vma));
}

/* ---- requests ----------------------------------------------------------------------------- */

static const struct request *const tables[] = {
	requests_device,
	requests_core,
	requests_memory,
	requests_queue,
#ifdef STANDIN_230
	requests_230,
#endif
};

static const struct request *find_request(unsigned int cmd)
{
	for (int t = 0; t < ARRAY_SIZE(tables); t++)
		for (const struct request *q = tables[t]; q->answer; q++)
			if (q->cmd == cmd)
				return q;
	return NULL;
}

long answer_nothing(struct neuron_device *nd, const struct request *q, void *arg, void __user *user)
{
	return 0;
}

long put_back(const struct request *q, const void *arg, void __user *user)
{
	return copy_to_user(user, arg, q->size);
}

static long answer(struct neuron_device *nd, const struct request *q, void __user *user)
{
	u64 small[36] = {}; /* enough for all but one */
	void *arg = q->size > sizeof(small) ? kmalloc(q->size, GFP_KERNEL) : small;
	long r;

	if (!arg)
		return -ENOMEM;
	/* What stays uncopied is the result, a positive number. */
	r = copy_from_user(arg, user, q->size);
	if (r == 0)
		r = q->answer(nd, q, arg, user);
	if (arg != small)
		kfree(arg);
	return r;
}

/* Requests for any handle, and those that nobody knows.  The driver's is `inline`: no tracer gets at it. */
static noinline notrace long ncdev_misc_ioctl(
	struct file *filp, unsigned int cmd, unsigned long param)
{
	const struct request *q = find_request(cmd);

	if (q && q->flags & IOCTL_F_MISC)
		return answer(device_of(filp), q, (void __user *)param);
	pr_err_ratelimited(
		"neuron: nd%d: request 0x%x is unknown\n", device_of(filp)->device_index, cmd);
	return -EINVAL;
}

static long dispatch(struct file *filp, unsigned int cmd, unsigned long param)
{
	const struct request *q = find_request(cmd);

	if (is_query(filp) || !q || q->flags & IOCTL_F_MISC)
		return ncdev_misc_ioctl(filp, cmd, param);
	if (q->flags & IOCTL_F_ATTACH_CHECK && !npid_of_caller(device_of(filp)))
		return -EACCES;
	return answer(device_of(filp), q, (void __user *)param);
}

static long KEPT ncdev_ioctl(struct file *filp, unsigned int cmd, unsigned long param)
{
	struct neuron_device *nd = device_of(filp);

	count_call(nd, FN_ncdev_ioctl, 0);
	return count_result(nd, FN_ncdev_ioctl, dispatch(filp, cmd, param));
}

static const struct file_operations ncdev_fops = {
	.owner = THIS_MODULE,
	.open = ncdev_open,
	.flush = ncdev_flush,
	.release = ncdev_release,
	.unlocked_ioctl = ncdev_ioctl,
	.mmap = ncdev_mmap,
};

/* ---- nodes -------------------------------------------------------------------------------- */

static ssize_t core_count_show(struct device *dev, struct device_attribute *a, char *text)
{
	return sprintf(text, "%d", MAX_NC_PER_DEVICE);
}
static DEVICE_ATTR(core_count, 0400, core_count_show, NULL);

static ssize_t connected_devices_show(struct device *dev, struct device_attribute *a, char *text)
{
	return sprintf(text, "\n");
}
static DEVICE_ATTR(connected_devices, 0400, connected_devices_show, NULL);

static struct attribute *node_attrs[] = {
	&dev_attr_core_count.attr,
	&dev_attr_connected_devices.attr,
	NULL,
};
ATTRIBUTE_GROUPS(node);

int ncdev_create(struct neuron_device *nd)
{
	struct ncdev *dev = &nd->ncdev_store;
	dev_t devt = first_devt + nd->device_index;
	int r;

	nd->ncdev = dev;
	dev->ndev = nd;
	dev->minor = nd->device_index;
	mutex_init(&dev->ncdev_lock);
	cdev_init(&dev->cdev, &ncdev_fops);
	dev->cdev.owner = THIS_MODULE;
	r = cdev_add(&dev->cdev, devt, 1);
	if (r)
		return r;
	dev->device = device_create_with_groups(
		class, NULL, devt, nd, node_groups, "neuron%d", nd->device_index);
	if (!IS_ERR(dev->device))
		return 0;
	cdev_del(&dev->cdev);
	return PTR_ERR(dev->device);
}

void ncdev_delete(struct neuron_device *nd)
{
	device_destroy(class, first_devt + nd->device_index);
	cdev_del(&nd->ncdev_store.cdev);
}

int ncdev_module_init(void)
{
	int r = alloc_chrdev_region(&first_devt, 0, MAX_NEURON_DEVICE_COUNT, "neuron");

	if (r)
		return r;
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 4, 0)
	class = class_create("neuron_device");
#else
	class = class_create(THIS_MODULE, "neuron_device");
#endif
	if (!IS_ERR(class))
		return 0;
	unregister_chrdev_region(first_devt, MAX_NEURON_DEVICE_COUNT);
	return PTR_ERR(class);
}

void ncdev_module_exit(void)
{
	class_destroy(class);
	unregister_chrdev_region(first_devt, MAX_NEURON_DEVICE_COUNT);
}
