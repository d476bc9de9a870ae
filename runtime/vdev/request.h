/* SPDX-License-Identifier: Apache-2.0 */
/*
 * request.h - one ioctl on a device, from the caller's argument to the answer.
 *
 * vdev_ioctl() finds the request by its full number, obeys its rule (rules.h), checks handle and
 * caller as the driver does,
 * fetches the argument structure from the caller, calls the one function that answers this
 * request, and puts the structure back where the request has outputs.  It knows nothing of FUSE.
 *
 * Answers to FUSE: the kernel copies as many bytes into the caller's argument as the answer
 * holds.  It holds them only when the number encodes reading the whole structure; else outputs go
 * there by vdev_user_write() and the answer is empty, so nothing is overwritten (kernel 6.18:
 * measured; the code has been so since FUSE learned ioctl).
 */
#ifndef NTRACE_VDEV_REQUEST_H
#define NTRACE_VDEV_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/vdev/device.h"
#include "vmlinux/ioctl_table.h"

#define VDEV_ARG_MAX 280u /* largest argument of a request that is implemented */

/* An open file of a device. */
struct vdev_handle {
	struct vdev_device *device;
	pid_t opener;	     /* tgid */
	bool query;	     /* opened write-only */
	atomic_bool flushed; /* closed at least once by the opener */
};

struct vdev_call {
	struct vdev *vdev;
	struct vdev_device *device;
	const struct ioctl_row *row;
	pid_t tid, tgid;
	uint64_t address; /* of the argument in the caller */
	bool write_back;  /* set by the answering function: the argument has outputs */
	bool (*interrupted)(void *context);
	void *context;
};

struct vdev_ioctl {
	const struct vdev_handle *handle;
	pid_t tid;
	uint32_t cmd;
	uint64_t arg;	/* the caller's address */
	const void *in; /* bytes that the kernel already fetched, or NULL */
	size_t in_size;
	bool (*interrupted)(void *context); /* may be NULL */
	void *context;

	/* answer */
	int result;
	size_t reply_size;
	uint8_t reply[VDEV_ARG_MAX];
};

void vdev_ioctl(struct vdev *vdev, struct vdev_ioctl *io);

/* The rest is for the answering functions.  They get the argument in a zero-padded buffer of
 * VDEV_ARG_MAX bytes, return what ioctl(2) shall give (0, -errno, rarely a positive number), and
 * follow the user pointers in it. */
typedef int (*vdev_request_fn)(struct vdev_call *call, void *arg);

struct vdev_request {
	uint32_t cmd;
	vdev_request_fn answer;
};

/* For what is accepted and changes nothing here. */
int vdev_answer_nothing(struct vdev_call *call, void *arg);

/* One table per file; ended by answer NULL. */
extern const struct vdev_request vdev_requests_info[];
extern const struct vdev_request vdev_requests_memory[];
extern const struct vdev_request vdev_requests_core[];
extern const struct vdev_request vdev_requests_queue[];
extern const struct vdev_request vdev_requests_process[];
extern const struct vdev_request vdev_requests_machine[];

#endif
