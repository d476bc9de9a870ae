/* SPDX-License-Identifier: Apache-2.0 */
/* request.c - dispatch of ioctls; see request.h. */
#include "runtime/vdev/request.h"

#include <asm/ioctl.h>
#include <errno.h>
#include <string.h>

#include "runtime/vdev/user_memory.h"

/* So many may wait in requests at once; above that answer -EBUSY, so that opens, closes and
 * statistics always find a thread (fuse_tree.c has more than this). */
#define MAX_RUNNING 960

static const struct vdev_request *const tables[] = {
	vdev_requests_info,
	vdev_requests_memory,
	vdev_requests_core,
	vdev_requests_queue,
	vdev_requests_process,
	vdev_requests_machine,
};

static vdev_request_fn find_answer(uint32_t cmd)
{
	for (size_t t = 0; t < sizeof(tables) / sizeof(tables[0]); t++)
		for (const struct vdev_request *r = tables[t]; r->answer; r++)
			if (r->cmd == cmd)
				return r->answer;
	return NULL;
}

int vdev_answer_nothing(struct vdev_call *call, void *arg)
{
	(void)call;
	(void)arg;
	return 0;
}

/* The driver keys on the caller's tgid; a forked child on an inherited handle is a stranger. */
static pid_t caller_tgid(const struct vdev_ioctl *io)
{
	if (vdev_user_is_thread(io->handle->opener, io->tid))
		return io->handle->opener;
	return vdev_user_tgid(io->tid);
}

static int fetch(const struct vdev_ioctl *io, const struct ioctl_row *row, void *arg)
{
	if (io->in && io->in_size >= row->arg_size) {
		memcpy(arg, io->in, row->arg_size);
		return 0;
	}
	return vdev_user_read(io->tid, io->arg, arg, row->arg_size);
}

static int put_back(struct vdev_ioctl *io, const struct ioctl_row *row, const void *arg)
{
	if (_IOC_DIR(io->cmd) & _IOC_READ && _IOC_SIZE(io->cmd) == row->arg_size) {
		memcpy(io->reply, arg, row->arg_size);
		io->reply_size = row->arg_size;
		return 0;
	}
	return vdev_user_write(io->tid, io->arg, arg, row->arg_size);
}

static int answer(struct vdev *vdev, struct vdev_ioctl *io, const struct ioctl_row *row)
{
	uint64_t arg[VDEV_ARG_MAX / sizeof(uint64_t)] = {0};
	struct vdev_call call = {
		.vdev = vdev,
		.device = io->handle->device,
		.row = row,
		.tid = io->tid,
		.address = io->arg,
		.interrupted = io->interrupted,
		.context = io->context,
	};
	vdev_request_fn fn = find_answer(row->cmd);
	int result, r;

	if (io->handle->query && !(row->flags & IOCTL_F_MISC))
		return -EINVAL;
	call.tgid = caller_tgid(io);
	if (call.tgid <= 0)
		return -ESRCH;
	if (row->flags & IOCTL_F_ATTACH_CHECK && !vdev_attached(call.device, call.tgid))
		return -EACCES;
	if (!fn || row->arg_size > VDEV_ARG_MAX)
		return -EINVAL;
	r = fetch(io, row, arg);
	if (r < 0)
		return r;
	result = fn(&call, arg);
	if (!call.write_back)
		return result;
	r = put_back(io, row, arg);
	return r < 0 ? r : result;
}

struct waiting {
	const struct vdev *vdev;
	const struct vdev_ioctl *io;
};

/* A signal to the caller, or the end of the device. */
static bool ended(void *context)
{
	const struct waiting *w = context;

	return atomic_load(&w->vdev->stopping) ||
	       (w->io->interrupted && w->io->interrupted(w->io->context));
}

static int handle(struct vdev *vdev, struct vdev_ioctl *io, const struct ioctl_row *row)
{
	size_t i = (size_t)(row - ioctl_rows);
	uint64_t nth = atomic_fetch_add(&vdev->counters.by_request[i], 1) + 1;
	int r = -EBUSY;

	if (atomic_fetch_add(&vdev->requests_running, 1) < MAX_RUNNING) {
		r = vdev_rule_obey(&vdev->config.rules.row[i], nth, ended,
			&(struct waiting){.vdev = vdev, .io = io});
		if (r == 0)
			r = answer(vdev, io, row);
	}
	atomic_fetch_sub(&vdev->requests_running, 1);
	return r;
}

void vdev_ioctl(struct vdev *vdev, struct vdev_ioctl *io)
{
	struct vdev_counters *counters = &vdev->counters;
	const struct ioctl_row *row = ioctl_row_find(io->cmd);

	io->reply_size = 0;
	atomic_fetch_add(&counters->ioctls, 1);
	if (row) {
		io->result = handle(vdev, io, row);
	} else {
		atomic_fetch_add(&counters->unknown_ioctls, 1);
		io->result = -EINVAL;
	}
	if (io->result < 0)
		atomic_fetch_add(&counters->ioctl_errors, 1);
}
