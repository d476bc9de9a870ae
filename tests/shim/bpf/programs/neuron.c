/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/*
 * neuron.c - the driver's structures that programs read, as vmlinux/neuron.h names their members.
 */
#include "vmlinux/vmlinux.h"
#include "vmlinux/neuron.h"

#include "tests/shim/bpf/bpf_host.h"

void *bpf_host_neuron_device(int index)
{
	struct neuron_device *nd = bpf_host_alloc(sizeof(*nd));

	nd->device_index = index;
	return nd;
}

void *bpf_host_ncdev(void *device)
{
	struct ncdev *nc = bpf_host_alloc(sizeof(*nc));

	nc->ndev = device;
	return nc;
}

void *bpf_host_mem_chunk(int is_host, unsigned core)
{
	struct mem_chunk *mc = bpf_host_alloc(sizeof(*mc));

	mc->mem_location = is_host ? NEURON_MEM_HOST : NEURON_MEM_DEVICE;
	mc->nc_id = core;
	return mc;
}

void *bpf_host_ndma_eng(void *device, unsigned id)
{
	struct ndma_eng *eng = bpf_host_alloc(sizeof(*eng));

	eng->nd = device;
	eng->eng_id = id;
	return eng;
}

void *bpf_host_udma(void *eng)
{
	return &((struct ndma_eng *)eng)->udma;
}

void *bpf_host_ndma_ring(unsigned queue)
{
	struct ndma_ring *ring = bpf_host_alloc(sizeof(*ring));

	ring->qid = queue;
	return ring;
}

void *bpf_host_zc_context(int pid)
{
	struct ndma_h2t_zcdma_context___v230 *context = bpf_host_alloc(sizeof(*context));

	context->pid = pid;
	return context;
}

void *bpf_host_vma(unsigned long start, unsigned long end, unsigned long page_offset)
{
	struct vm_area_struct *vma = bpf_host_alloc(sizeof(*vma));

	vma->vm_start = start;
	vma->vm_end = end;
	vma->vm_pgoff = page_offset;
	return vma;
}
