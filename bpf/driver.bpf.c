// SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0)
/*
 * driver.bpf.c - the driver's file operations: ioctl, open, flush, release, mmap, entry and return.
 *
 * Each operation has four programs: fentry and fexit, which need the module's BTF, and kprobe and
 * kretprobe, which take their arguments from registers.  The prototypes are the kernel's own (struct
 * file_operations).  Which pair is attached decides the loader (agent/collect/hooks.def); the way of a
 * call is that of ioctl_path.h, whichever it is.
 *
 * Here a file is known for the driver's by being here, so nothing is looked up as on the system-call
 * level; what is not known here is the descriptor.
 */
#include "vmlinux/vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#include "bpf/ioctl_path.h"
#include "vmlinux/neuron.h"

char LICENSE[] SEC("license") = "GPL";

/* N of neuronN.  The driver's own structure says it where its layout is known; the minor number of the
 * node is the same number, and all there is before the driver has opened the file. */
static __always_inline __u32 device_of(const struct file *file, const struct inode *inode)
{
	if (bpf_core_type_exists(struct ncdev) && bpf_core_type_exists(struct neuron_device)) {
		const struct ncdev *nc = BPF_CORE_READ(file, private_data);
		const struct neuron_device *nd = nc ? BPF_CORE_READ(nc, ndev) : NULL;

		if (nd)
			return BPF_CORE_READ(nd, device_index);
	}
	return BPF_CORE_READ(inode, i_rdev) & MINOR_MASK;
}

/* As the driver itself tells the kinds of handles apart. */
static __always_inline __u16 kind_of(const struct file *file)
{
	return BPF_CORE_READ(file, f_flags) & O_WRONLY ? NEV_F_QUERY : NEV_F_WORK;
}

static __always_inline int begin_ioctl(
	const struct file *file, __u32 request, const void *arg, enum nev_via via)
{
	__u64 id = bpf_get_current_pid_tgid();
	struct nev_inflight in = {.tgid = id >> 32,
		.tid = (__u32)id,
		.request = request,
		.fd = NEV_FD_UNKNOWN,
		.via = via};

	if (!wanted(in.tgid))
		return 0;
	in.device = device_of(file, BPF_CORE_READ(file, f_inode));
	in.flags = kind_of(file);
	begin(&in, arg, entering_of(NEV_ENTERING_IOCTL, via), via);
	return 0;
}

/* op: one of file_ops.def. */
static __always_inline int begin_op(
	const struct file *file, const struct inode *inode, const __u32 op, enum nev_via via)
{
	__u64 id = bpf_get_current_pid_tgid();
	struct nev_inflight in = {.tgid = id >> 32,
		.tid = (__u32)id,
		.request = NEV_OP_REQUEST(op),
		.fd = NEV_FD_UNKNOWN,
		.via = via};

	if (!wanted(in.tgid))
		return 0;
	in.device = device_of(file, inode);
	in.flags = kind_of(file);
	begin(&in, NULL, entering_of(op, via), via);
	return 0;
}

static __always_inline int begin_mmap(
	const struct file *file, const struct vm_area_struct *vma, enum nev_via via)
{
	__u64 id = bpf_get_current_pid_tgid(), start = BPF_CORE_READ(vma, vm_start);
	struct nev_inflight in = {.tgid = id >> 32,
		.tid = (__u32)id,
		.request = NEV_OP_REQUEST(NEV_OP_MMAP),
		.fd = NEV_FD_UNKNOWN,
		.via = via,
		.nargs = 2};

	if (!wanted(in.tgid))
		return 0;
	in.device = device_of(file, BPF_CORE_READ(file, f_inode));
	in.flags = kind_of(file);
	in.args[0] = (__u64)BPF_CORE_READ(vma, vm_pgoff) << PAGE_SHIFT;
	in.args[1] = BPF_CORE_READ(vma, vm_end) - start;
	begin(&in, NULL, entering_of(NEV_OP_MMAP, via), via);
	return 0;
}

/* What a driver's operation answers to the kernel and what the caller then gets differ in one number: "no such
 * request" (ENOIOCTLCMD) becomes ENOTTY. */
static __always_inline int end(__s32 result, enum nev_via via)
{
	if (result == -515)
		result = -25;
	leave((__u32)bpf_get_current_pid_tgid(), result, via);
	return 0;
}

/* ---- fentry and fexit --------------------------------------------------------------------- */

SEC("fentry/ncdev_ioctl")
int BPF_PROG(ioctl_fentry, struct file *file, unsigned int request, unsigned long arg)
{
	return begin_ioctl(file, request, (const void *)arg, NEV_VIA_FENTRY);
}

SEC("fexit/ncdev_ioctl")
int BPF_PROG(ioctl_fexit, struct file *file, unsigned int request, unsigned long arg, long result)
{
	return end(result, NEV_VIA_FENTRY);
}

SEC("fentry/ncdev_open")
int BPF_PROG(open_fentry, struct inode *inode, struct file *file)
{
	return begin_op(file, inode, NEV_OP_OPEN, NEV_VIA_FENTRY);
}

SEC("fexit/ncdev_open")
int BPF_PROG(open_fexit, struct inode *inode, struct file *file, int result)
{
	return end(result, NEV_VIA_FENTRY);
}

SEC("fentry/ncdev_flush")
int BPF_PROG(flush_fentry, struct file *file, void *owner)
{
	return begin_op(file, BPF_CORE_READ(file, f_inode), NEV_OP_FLUSH, NEV_VIA_FENTRY);
}

SEC("fexit/ncdev_flush")
int BPF_PROG(flush_fexit, struct file *file, void *owner, int result)
{
	return end(result, NEV_VIA_FENTRY);
}

SEC("fentry/ncdev_release")
int BPF_PROG(release_fentry, struct inode *inode, struct file *file)
{
	return begin_op(file, inode, NEV_OP_RELEASE, NEV_VIA_FENTRY);
}

SEC("fexit/ncdev_release")
int BPF_PROG(release_fexit, struct inode *inode, struct file *file, int result)
{
	return end(result, NEV_VIA_FENTRY);
}

SEC("fentry/ncdev_mmap")
int BPF_PROG(mmap_fentry, struct file *file, struct vm_area_struct *vma)
{
	return begin_mmap(file, vma, NEV_VIA_FENTRY);
}

SEC("fexit/ncdev_mmap")
int BPF_PROG(mmap_fexit, struct file *file, struct vm_area_struct *vma, int result)
{
	return end(result, NEV_VIA_FENTRY);
}

/* ---- kprobe and kretprobe: arguments in di, si, dx ---------------------------------------- */

SEC("kprobe/ncdev_ioctl")
int ioctl_kprobe(struct pt_regs *ctx)
{
	return begin_ioctl((const void *)ctx->di, ctx->si, (const void *)ctx->dx, NEV_VIA_KPROBE);
}

SEC("kprobe/ncdev_open")
int open_kprobe(struct pt_regs *ctx)
{
	return begin_op((const void *)ctx->si, (const void *)ctx->di, NEV_OP_OPEN, NEV_VIA_KPROBE);
}

SEC("kprobe/ncdev_flush")
int flush_kprobe(struct pt_regs *ctx)
{
	const struct file *file = (const void *)ctx->di;

	return begin_op(file, BPF_CORE_READ(file, f_inode), NEV_OP_FLUSH, NEV_VIA_KPROBE);
}

SEC("kprobe/ncdev_release")
int release_kprobe(struct pt_regs *ctx)
{
	return begin_op(
		(const void *)ctx->si, (const void *)ctx->di, NEV_OP_RELEASE, NEV_VIA_KPROBE);
}

SEC("kprobe/ncdev_mmap")
int mmap_kprobe(struct pt_regs *ctx)
{
	return begin_mmap((const void *)ctx->di, (const void *)ctx->si, NEV_VIA_KPROBE);
}

/* Any of the five: the thread has one call open. */
SEC("kretprobe/ncdev_ioctl")
int file_kret(struct pt_regs *ctx)
{
	return end(ctx->ax, NEV_VIA_KPROBE);
}
