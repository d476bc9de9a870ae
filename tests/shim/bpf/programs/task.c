/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/*
 * task.c - tasks and their open files, in the structures of vmlinux/vmlinux.h.
 */
#include "vmlinux/vmlinux.h"

#include "tests/shim/bpf/bpf_host.h"

void *bpf_host_task_new(unsigned tgid, unsigned tid, unsigned max_fds)
{
	struct task_struct *task = bpf_host_alloc(sizeof(*task));

	task->pid = tid;
	task->tgid = tgid;
	task->signal = bpf_host_alloc(sizeof(*task->signal));
	task->signal->live.counter = 1;
	task->files = bpf_host_alloc(sizeof(*task->files));
	task->files->fdt = bpf_host_alloc(sizeof(*task->files->fdt));
	task->files->fdt->max_fds = max_fds;
	task->files->fdt->fd = bpf_host_alloc(max_fds * sizeof(*task->files->fdt->fd));
	return task;
}

void *bpf_host_task_file(void *task, unsigned fd, const struct bpf_host_file *of)
{
	struct fdtable *table = ((struct task_struct *)task)->files->fdt;
	struct inode *inode;
	struct file *file;

	if (!of)
		return table->fd[fd] = NULL;
	inode = bpf_host_alloc(sizeof(*inode));
	inode->i_sb = bpf_host_alloc(sizeof(*inode->i_sb));
	inode->i_sb->s_dev = of->sdev;
	inode->i_mode = of->mode;
	inode->i_rdev = of->rdev;
	inode->i_ino = of->ino;
	file = bpf_host_alloc(sizeof(*file));
	file->f_inode = inode;
	file->f_flags = of->flags;
	file->private_data = of->private_data;
	return table->fd[fd] = file;
}

void *bpf_host_file_inode(void *file)
{
	return ((struct file *)file)->f_inode;
}

void *bpf_host_task_table(void *task)
{
	return ((struct task_struct *)task)->files->fdt->fd;
}

void bpf_host_task_live(void *task, int threads)
{
	((struct task_struct *)task)->signal->live.counter = threads;
}

void bpf_host_task_kthread(void *task, int is)
{
	((struct task_struct *)task)->flags = is ? PF_KTHREAD : 0;
}

void bpf_host_task_no_files(void *task)
{
	((struct task_struct *)task)->files = NULL;
}
