// SPDX-License-Identifier: GPL-2.0-only
/*
 * counts.c - calls, bytes and errors of each function per device, in debugfs neuron_standin/counts.
 *
 * One line per function that ran: device, name, calls, errors, bytes.  Writing anything begins anew.
 * The numbers are the truth that a trace is compared with, so they are exact: atomic, and counted in the
 * function itself.
 */
#include <linux/debugfs.h>
#include <linux/seq_file.h>
#include <linux/slab.h>

#include "tests/vm/standin/driver.h"

struct neuron_counts {
	struct {
		atomic64_t calls, errors, bytes;
	} of[FN_MAX];
};

static const char *const names[FN_MAX] = {
#define COUNTED(name) [FN_##name] = #name,
#include "tests/vm/standin/counts.def"
#undef COUNTED
};

static struct dentry *directory;

void count_call(struct neuron_device *nd, enum standin_function fn, u64 bytes)
{
	atomic64_inc(&nd->counts->of[fn].calls);
	atomic64_add(bytes, &nd->counts->of[fn].bytes);
}

long count_result(struct neuron_device *nd, enum standin_function fn, long r)
{
	if (r)
		atomic64_inc(&nd->counts->of[fn].errors);
	return r;
}

int counts_attach(struct neuron_device *nd)
{
	nd->counts = kzalloc(sizeof(*nd->counts), GFP_KERNEL);
	return nd->counts ? 0 : -ENOMEM;
}

void counts_detach(struct neuron_device *nd)
{
	kfree(nd->counts);
	nd->counts = NULL;
}

static int show(struct seq_file *s, void *unused)
{
	for (int i = 0; i < total_neuron_devices; i++) {
		struct neuron_counts *c = neuron_devices[i]->counts;

		for (int fn = 0; fn < FN_MAX; fn++)
			if (atomic64_read(&c->of[fn].calls))
				seq_printf(s, "%d %s %lld %lld %lld\n", i, names[fn],
					atomic64_read(&c->of[fn].calls),
					atomic64_read(&c->of[fn].errors),
					atomic64_read(&c->of[fn].bytes));
	}
	return 0;
}

static int counts_file_open(struct inode *inode, struct file *file)
{
	return single_open(file, show, NULL);
}

static ssize_t counts_file_write(
	struct file *file, const char __user *text, size_t size, loff_t *at)
{
	for (int i = 0; i < total_neuron_devices; i++) {
		struct neuron_counts *c = neuron_devices[i]->counts;

		for (int fn = 0; fn < FN_MAX; fn++) {
			atomic64_set(&c->of[fn].calls, 0);
			atomic64_set(&c->of[fn].errors, 0);
			atomic64_set(&c->of[fn].bytes, 0);
		}
	}
	return size;
}

static const struct file_operations counts_fops = {
	.owner = THIS_MODULE,
	.open = counts_file_open,
	.read = seq_read,
	.write = counts_file_write,
	.llseek = seq_lseek,
	.release = single_release,
};

int counts_open(void)
{
	directory = debugfs_create_dir("neuron_standin", NULL);
	if (IS_ERR(directory))
		return 0; /* a kernel without debugfs: everything else works */
	debugfs_create_file("counts", 0644, directory, NULL, &counts_fops);
	return 0;
}

void counts_close(void)
{
	debugfs_remove_recursive(directory);
}
