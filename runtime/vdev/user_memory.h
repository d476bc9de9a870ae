/* SPDX-License-Identifier: Apache-2.0 */
/*
 * user_memory.h - reads and writes the memory of the process that called an ioctl.
 *
 * FUSE carries only the bytes that a request's number encodes, and the driver's numbers mostly
 * encode the size of a pointer.  So arguments, the pointers in them and the buffers behind those
 * are followed here, with process_vm_readv(2) and process_vm_writev(2), straight between the
 * caller and the given memory. The caller of the ioctl is blocked in it meanwhile, so its address
 * space stays.  Never call with a lock held: a page of the caller may take arbitrarily long to
 * arrive.
 */
#ifndef NTRACE_VDEV_USER_MEMORY_H
#define NTRACE_VDEV_USER_MEMORY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* 0, -EFAULT (some byte is not there or the process is gone) or -EPERM (ptrace access refused; a
 * daemon that is not root meets this under Yama).  On failure a leading part may have been
 * copied. */
int vdev_user_read(pid_t tid, uint64_t address, void *to, uint64_t size);
int vdev_user_write(pid_t tid, uint64_t address, const void *from, uint64_t size);

/* Process of a thread, from /proc; -ESRCH when there is none. */
pid_t vdev_user_tgid(pid_t tid);
/* Is tid a thread of tgid?  Cheaper than vdev_user_tgid. */
bool vdev_user_is_thread(pid_t tgid, pid_t tid);

#endif
