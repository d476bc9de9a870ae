/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fake_agent.h - the agent's end of the announcement, for tests of the runtime.
 *
 * Header only.  agent_listen sets $NTRACE_SOCKET and starts a thread that takes one hello; join it
 * before looking at the results.
 */
#ifndef NTRACE_TESTS_FAKE_AGENT_H
#define NTRACE_TESTS_FAKE_AGENT_H

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "runtime/trace/announce.h"

static uint32_t agent_ring_capacity = 2048; /* records of a ring that it asks for */

struct agent {
	int listener, peer, control_fd;
	struct announce_msg hello;
	uint32_t answer; /* 0 = none */
	pthread_t thread;
};

static inline void *agent_accept(void *arg)
{
	struct agent *a = arg;
	struct announce_msg answer = {
		.magic = ANNOUNCE_MAGIC, .kind = a->answer, .ring_capacity = agent_ring_capacity};
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec iov = {&a->hello, sizeof(a->hello)};
	struct msghdr hdr = {.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes)};
	struct cmsghdr *cmsg;

	a->control_fd = -1;
	a->peer = accept4(a->listener, NULL, NULL, SOCK_CLOEXEC);
	if (a->peer < 0 || recvmsg(a->peer, &hdr, MSG_CMSG_CLOEXEC) < 0)
		return NULL;
	cmsg = CMSG_FIRSTHDR(&hdr);
	if (cmsg && cmsg->cmsg_type == SCM_RIGHTS)
		memcpy(&a->control_fd, CMSG_DATA(cmsg), sizeof(int));
	if (a->answer)
		(void)send(a->peer, &answer, sizeof(answer), MSG_NOSIGNAL);
	return NULL;
}

/* Listens at a name of this process and puts it into the environment. */
static inline int agent_listen(struct agent *a, uint32_t answer)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	char name[64];
	int len = snprintf(name, sizeof(name), "@ntrace-fake-agent-%d", (int)getpid());

	memset(a, 0, sizeof(*a));
	a->answer = answer;
	memcpy(addr.sun_path + 1, name + 1, (size_t)len - 1);
	a->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (a->listener < 0 ||
		bind(a->listener, (struct sockaddr *)&addr,
			(socklen_t)(offsetof(struct sockaddr_un, sun_path) + (size_t)len)) < 0 ||
		listen(a->listener, 4) < 0)
		return -errno;
	setenv(ANNOUNCE_ENV, name, 1);
	return -pthread_create(&a->thread, NULL, agent_accept, a);
}

#endif
