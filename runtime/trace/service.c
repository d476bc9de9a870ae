/* SPDX-License-Identifier: Apache-2.0 */
/*
 * service.c - the connection to an agent, and the thread that watches it and tends the rings.
 *
 * The thread exists so that the death of an agent is noticed, and rings grow, without
 * any check on the event path.  It runs while an agent is connected or anybody subscribes.  All signals are blocked in it, so the program's handlers never run
 * there.  nrt_close ends the thread but keeps the connection: the rings stay the same, and an agent that
 * saw a second hello for them would read them twice.
 */
#include "runtime/trace/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "runtime/base/file.h"
#include "runtime/trace/announce.h"
#include "runtime/trace/control.h"

static struct {
	pthread_mutex_t lock; /* start, stop; not held by the thread */
	struct kept_fd sock;  /* the thread's while it runs */
	struct kept_fd wake_read, wake_write;
	pthread_t thread;
	bool running;
} service = {.lock = PTHREAD_MUTEX_INITIALIZER,
	.sock = {.fd = -1},
	.wake_read = {.fd = -1},
	.wake_write = {.fd = -1}};

/* ---- talking to the agent ----------------------------------------------------------------- */

/* What is left until then, as a socket's timeout.  False when it has passed. */
static bool time_left(uint64_t end, struct timeval *ret)
{
	uint64_t now = clock_boot().ns;

	if (now >= end)
		return false;
	/* Rounded up, for 0 means no limit. */
	ret->tv_sec = (time_t)((end - now) / 1000000000ull);
	ret->tv_usec = (suseconds_t)((end - now) % 1000000000ull / 1000);
	if (ret->tv_usec < 999999)
		ret->tv_usec++;
	return true;
}

/* Where the agent's queue of connections is full, connect waits for room: not for ever. */
static int connect_until(int fd, const struct sockaddr_un *addr, socklen_t len, uint64_t end)
{
	struct timeval left;

	while (time_left(end, &left)) {
		if (setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &left, sizeof(left)) < 0)
			return -errno;
		if (connect(fd, (const struct sockaddr *)addr, len) == 0)
			return 0;
		if (errno != EINTR && errno != EAGAIN)
			return -errno;
	}
	return -ETIMEDOUT;
}

/* The connected socket, or -errno.  What is sent on it later waits no longer than connecting could. */
static int connect_to(const char *name, uint64_t end)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	size_t len = strlen(name);
	int fd, rc;

	if (len == 0 || len >= sizeof(addr.sun_path))
		return -ENAMETOOLONG;
	memcpy(addr.sun_path, name, len);
	if (name[0] == '@')
		addr.sun_path[0] = '\0';
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	rc = connect_until(
		fd, &addr, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len), end);
	if (rc < 0) {
		(void)close(fd);
		return rc;
	}
	return fd;
}

static int send_hello(int sock, int control_fd, uint32_t flags)
{
	struct announce_msg msg = {.magic = ANNOUNCE_MAGIC, .kind = ANNOUNCE_HELLO, .flags = flags};
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec iov = {&msg, sizeof(msg)};
	struct msghdr hdr = {.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes)};
	struct cmsghdr *cmsg;

	memset(&control, 0, sizeof(control));
	cmsg = CMSG_FIRSTHDR(&hdr);
	cmsg->cmsg_level = SOL_SOCKET;
	cmsg->cmsg_type = SCM_RIGHTS;
	cmsg->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(cmsg), &control_fd, sizeof(int));
	if (sendmsg(sock, &hdr, MSG_NOSIGNAL) < 0)
		return errno == EAGAIN ? -ETIMEDOUT : -errno;
	return 0;
}

/* One message.  Its kind, 0 at the end of the connection, -EPROTO, -errno. */
static int receive(int sock, struct announce_msg *msg)
{
	ssize_t n = recv(sock, msg, sizeof(*msg), MSG_DONTWAIT);

	if (n < 0)
		return errno == ECONNRESET ? 0 : -errno;
	if (n == 0)
		return 0;
	if (n != (ssize_t)sizeof(*msg) || msg->magic != ANNOUNCE_MAGIC)
		return -EPROTO;
	return (int)msg->kind;
}

/* Does what the message says.  1 = go on, 0 = the connection is over, -errno = so it is. */
static int obey(int kind, const struct announce_msg *msg)
{
	int rc;

	switch (kind) {
	case ANNOUNCE_ENABLE:
		rc = trace_set_subscriber(CTL_SUB_AGENT, NULL, msg->ring_capacity);
		return rc < 0 ? rc : 1;
	case ANNOUNCE_DISABLE:
		trace_unsubscribe(CTL_SUB_AGENT);
		return 1;
	case -EAGAIN:
	case -EINTR:
		return 1;
	default: /* REFUSE, end, anything else */
		trace_unsubscribe(CTL_SUB_AGENT);
		return kind < 0 ? kind : 0;
	}
}

/* Waits for the answer to the hello. */
static int await_answer(int sock, uint64_t end)
{
	for (;;) {
		struct pollfd p = {.fd = sock, .events = POLLIN};
		uint64_t now = clock_boot().ns;
		struct announce_msg msg;
		int n;

		if (now >= end)
			return -ETIMEDOUT;
		n = poll(&p, 1, (int)((end - now) / 1000000ull) + 1);
		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0) {
			int kind = receive(sock, &msg);

			if (kind != -EAGAIN && kind != -EINTR)
				return obey(kind, &msg);
		}
	}
}

/* Connects, says hello, waits, all within ANNOUNCE_TIMEOUT_MS.  The result of trace_service_start. */
static int announce(const char *name, uint32_t flags)
{
	_cleanup_close_ int control_fd = trace_control_fd();
	uint64_t end = clock_boot().ns + ANNOUNCE_TIMEOUT_MS * 1000000ull;
	int sock, rc;

	if (control_fd < 0)
		return control_fd;
	sock = connect_to(name, end);
	if (sock < 0)
		return sock;
	rc = kept_fd_adopt(&service.sock, sock);
	if (rc == 0)
		rc = send_hello(service.sock.fd, control_fd, flags);
	if (rc == 0)
		rc = await_answer(service.sock.fd, end);
	if (rc <= 0)
		kept_fd_close(&service.sock);
	return rc;
}

/* ---- the thread --------------------------------------------------------------------------- */

/* What came from the agent.  The program may have closed our descriptor; never read from another's file. */
static void hear_agent(void)
{
	struct announce_msg msg;
	bool ours = kept_fd_valid(&service.sock);

	if (!ours)
		trace_unsubscribe(CTL_SUB_AGENT);
	if (!ours || obey(receive(service.sock.fd, &msg), &msg) <= 0)
		kept_fd_close(&service.sock);
}

/* Takes the bytes that only wake.  False: the thread is to end, or cannot be told to any more. */
static bool keep_running(short revents)
{
	char bytes[64];

	if (revents & POLLIN)
		return kept_fd_valid(&service.wake_read) &&
		       read(service.wake_read.fd, bytes, sizeof(bytes)) >= 0;
	return revents == 0;
}

static void *watch(void *arg)
{
	(void)arg;
	for (;;) {
		struct pollfd p[2] = {{.fd = service.sock.fd, .events = POLLIN},
			{.fd = service.wake_read.fd, .events = POLLIN}};
		int ms = trace_tend();
		int n = poll(p, 2, ms ? ms : -1);

		if (n < 0 && errno != EINTR) {
			trace_unsubscribe(CTL_SUB_AGENT);
			return NULL;
		}
		if (n <= 0)
			continue;
		if (!keep_running(p[1].revents))
			return NULL;
		if (p[0].revents)
			hear_agent();
	}
}

static int spawn(void)
{
	sigset_t all, old;
	int pipe_fds[2], rc;

	if (pipe2(pipe_fds, O_CLOEXEC | O_NONBLOCK) < 0)
		return -errno;
	rc = kept_fd_adopt(&service.wake_read, pipe_fds[0]);
	if (rc < 0) {
		(void)close(pipe_fds[1]);
		return rc;
	}
	rc = kept_fd_adopt(&service.wake_write, pipe_fds[1]);
	if (rc == 0) {
		sigfillset(&all);
		pthread_sigmask(SIG_SETMASK, &all, &old);
		rc = -pthread_create(&service.thread, NULL, watch, NULL);
		pthread_sigmask(SIG_SETMASK, &old, NULL);
	}
	if (rc < 0) {
		kept_fd_close(&service.wake_read);
		kept_fd_close(&service.wake_write);
		return rc;
	}
	service.running = true;
	return 0;
}

static void end_thread(void)
{
	if (!service.running)
		return;
	/* Closing the only writing end wakes the thread like a byte would. */
	kept_fd_close(&service.wake_write);
	pthread_join(service.thread, NULL);
	kept_fd_close(&service.wake_read);
	service.running = false;
}

int trace_service_start(uint32_t flags)
{
	const char *name = getenv(ANNOUNCE_ENV);
	int rc = 1;

	pthread_mutex_lock(&service.lock);
	/* Without an agent the thread may run for others; the socket is its own until it ends. */
	end_thread();
	if (!kept_fd_valid(&service.sock))
		rc = name && *name ? announce(name, flags) : 0;
	if ((rc > 0 || trace_on()) && spawn() < 0 && rc > 0) {
		trace_unsubscribe(CTL_SUB_AGENT);
		kept_fd_close(&service.sock);
		rc = -EAGAIN;
	}
	pthread_mutex_unlock(&service.lock);
	return rc;
}

void trace_service_need(void)
{
	pthread_mutex_lock(&service.lock);
	if (!service.running)
		(void)spawn();
	else if (kept_fd_valid(&service.wake_read) && kept_fd_valid(&service.wake_write))
		(void)!write(service.wake_write.fd, "", 1);
	pthread_mutex_unlock(&service.lock);
}

void trace_service_stop(void)
{
	pthread_mutex_lock(&service.lock);
	end_thread();
	pthread_mutex_unlock(&service.lock);
}

void trace_service_forget(void)
{
	kept_fd_close(&service.sock);
	kept_fd_close(&service.wake_read);
	kept_fd_close(&service.wake_write);
	service.running = false;
}
