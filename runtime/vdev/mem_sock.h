/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mem_sock.h - the socket that hands out device memory as file descriptors (vdev_abi.h:
 * mem.sock).
 *
 * One thread serves all connections and never waits for any of them: who sends nonsense, does not
 * read its answer or has too many connections is closed.  Who asks is known from SO_PEERCRED,
 * fixed at connect(2).
 */
#ifndef NTRACE_VDEV_MEM_SOCK_H
#define NTRACE_VDEV_MEM_SOCK_H

#include <pthread.h>

#include "runtime/vdev/device.h"

#define VDEV_SOCK_MAX_CLIENTS 1024u
#define VDEV_SOCK_MAX_PER_PROCESS 64u

struct vdev_sock_client {
	int fd; /* -1: free */
	pid_t tgid;
};

struct vdev_sock {
	struct vdev *vdev;
	int listen_fd, epoll_fd, stop_fd;
	pthread_t thread;
	struct vdev_sock_client *clients;
};

/* Binds `name` in the directory dir_fd and starts the thread; 0 or -errno. */
int vdev_sock_start(struct vdev_sock *sock, struct vdev *vdev, int dir_fd, const char *name);
/* Ends the thread and closes all.  The name in the file system stays. */
void vdev_sock_stop(struct vdev_sock *sock);

#endif
