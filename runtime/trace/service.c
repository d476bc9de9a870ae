/* SPDX-License-Identifier: Apache-2.0 */
/*
 * service.c - the connection to an agent, and the thread that watches it, serves the mailbox and tends the rings.
 *
 * The thread exists so that agents are heard, their death is noticed, and rings grow, without
 * any check on the event path.  It sleeps on the bell of the control page (attach.h): for ever while nobody
 * subscribes, else until it is to look at the rings, and at the connection with them.  All signals are blocked in
 * it, so the program's handlers never run there.  nrt_close ends the thread but keeps the connection: the rings
 * stay the same, and an agent that saw a second hello for them would read them twice.
 */
#include "runtime/trace/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "runtime/base/file.h"
#include "runtime/base/last_thread.h"
#include "runtime/trace/announce.h"
#include "runtime/trace/attach.h"
#include "runtime/trace/control.h"

#define STACK_BYTES (256u << 10) /* a program may lock all its memory */
#define SOCKET_MS 100		 /* between looks at a connection while nobody subscribes */
#define UNKNOWN_USER 65534u	 /* what the kernel calls those without a number here */

static struct {
	pthread_mutex_t lock; /* start, stop; not held by the thread */
	struct kept_fd sock;  /* the thread's while it runs */
	pthread_t thread;
	bool enabled; /* on the socket's word; as sock */
	bool running;
	_Atomic bool ending; /* the thread is to end */
} service = {.lock = PTHREAD_MUTEX_INITIALIZER, .sock = {.fd = -1}};

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

/* Does the number of unknown users mean one, or are there users whom this user namespace does not know? */
static bool all_users_known(void)
{
	unsigned long long first, mapped_to, count;
	char line[128];

	return file_read_line("/proc/self/uid_map", line, sizeof(line)) == 0 &&
	       sscanf(line, "%llu %llu %llu", &first, &mapped_to, &count) == 3 && first == 0 &&
	       count >= UINT32_MAX;
}

/* Whoever has the agent's name may be another user: only the own one and root get the events.  The root of the
 * machine is an unknown user in a container that has users of its own. */
static int check_peer(int sock)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	if (getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
		return -errno;
	if (peer.uid == 0 || peer.uid == geteuid() ||
		(peer.uid == UNKNOWN_USER && !all_users_known()))
		return 0;
	return -EPERM;
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

/* No more on the socket's word; what the mailbox said stays. */
static void disable(void)
{
	if (service.enabled)
		trace_unsubscribe(CTL_SUB_AGENT);
	service.enabled = false;
}

/* Does what the message says.  1 = go on, 0 = the connection is over, -errno = so it is. */
static int obey(int kind, const struct announce_msg *msg)
{
	int rc;

	switch (kind) {
	case ANNOUNCE_ENABLE:
		attach_forget();
		rc = trace_set_subscriber(CTL_SUB_AGENT, NULL, msg->ring_capacity);
		service.enabled |= rc == 0;
		return rc < 0 ? rc : 1;
	case ANNOUNCE_DISABLE:
		disable();
		return 1;
	case -EAGAIN:
	case -EINTR:
		return 1;
	default: /* REFUSE, end, anything else */
		disable();
		return kind < 0 ? kind : 0;
	}
}

/* Waits until there is something to receive.  0, -ETIMEDOUT, -errno. */
static int await_word(int sock, uint64_t end)
{
	for (;;) {
		struct pollfd p = {.fd = sock, .events = POLLIN};
		uint64_t now = clock_boot().ns;
		int n;

		if (now >= end)
			return -ETIMEDOUT;
		n = poll(&p, 1, (int)((end - now) / 1000000ull) + 1);
		if (n > 0)
			return 0;
		if (n < 0 && errno != EINTR)
			return -errno;
	}
}

/* Waits for the answer to the hello. */
static int await_answer(int sock, uint64_t end)
{
	struct announce_msg msg;
	int rc;

	while ((rc = await_word(sock, end)) == 0) {
		int kind = receive(sock, &msg);

		if (kind != -EAGAIN && kind != -EINTR)
			return obey(kind, &msg);
	}
	return rc;
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
		rc = check_peer(service.sock.fd);
	if (rc == 0)
		rc = send_hello(service.sock.fd, control_fd, flags);
	if (rc == 0)
		rc = await_answer(service.sock.fd, end);
	if (rc <= 0)
		kept_fd_close(&service.sock);
	return rc;
}

/* Takes sock.  0 or -errno. */
static int tell(int sock, const struct announce_msg *msg, uint64_t end)
{
	struct kept_fd kept = {.fd = -1};
	int rc = kept_fd_adopt(&kept, sock);

	if (rc == 0)
		rc = check_peer(kept.fd);
	if (rc == 0 && send(kept.fd, msg, sizeof(*msg), MSG_NOSIGNAL) != (ssize_t)sizeof(*msg))
		rc = -errno;
	if (rc == 0)
		(void)await_word(kept.fd, end);
	kept_fd_close(&kept);
	return rc;
}

/* A connection that is there already is of another nrt_init, and stays. */
int trace_service_failed(uint32_t status)
{
	const struct announce_msg msg = {
		.magic = ANNOUNCE_MAGIC, .kind = ANNOUNCE_FAILED, .flags = status};
	uint64_t end = clock_boot().ns + ANNOUNCE_TIMEOUT_MS * 1000000ull;
	const char *name = getenv(ANNOUNCE_ENV);
	int fd;

	if (!name || !*name)
		return 0;
	fd = connect_to(name, end);
	if (fd == -ECONNREFUSED || fd == -ENOENT) /* it has gone */
		return 0;
	return fd < 0 ? fd : tell(fd, &msg, end);
}

/* ---- the thread --------------------------------------------------------------------------- */

/* Is there something to hear? */
static bool agent_speaks(void)
{
	struct pollfd p = {.fd = service.sock.fd, .events = POLLIN};

	return service.sock.fd >= 0 && poll(&p, 1, 0) > 0;
}

/* What came from the agent.  The program may have closed our descriptor; never read from another's file. */
static void hear_agent(void)
{
	struct announce_msg msg;
	bool ours = kept_fd_valid(&service.sock);

	if (!ours)
		disable();
	if (!ours || obey(receive(service.sock.fd, &msg), &msg) <= 0)
		kept_fd_close(&service.sock);
}

static void *serve(void *arg)
{
	struct ctl *ctl = arg;
	int ms = 0;

	last_thread_rests();
	while (!atomic_load(&service.ending)) {
		/* Whoever rings from here on is heard in the next round. */
		uint32_t seen = atomic_load(&ctl->mail.bell);

		if (agent_speaks())
			hear_agent();
		attach_serve(ctl);
		ms = trace_tend();
		if (ms == 0)
			ms = service.sock.fd >= 0 ? SOCKET_MS : -1;
		if (!atomic_load(&service.ending))
			attach_sleep(&ctl->mail.bell, seen, ms);
	}
	last_thread_works();
	return NULL;
}

static int make_thread(struct ctl *ctl)
{
	sigset_t all, old;
	pthread_attr_t attr;
	int rc;

	pthread_attr_init(&attr);
	(void)pthread_attr_setstacksize(&attr, STACK_BYTES);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	rc = -pthread_create(&service.thread, &attr, serve, ctl);
	/* Thread-local memory of the program may need more. */
	if (rc < 0)
		rc = -pthread_create(&service.thread, NULL, serve, ctl);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	return rc;
}

static int spawn(void)
{
	struct ctl *ctl = trace_ctl();
	int rc;

	if (!ctl)
		return -EBADF;
	atomic_store(&service.ending, false);
	rc = make_thread(ctl);
	if (rc == 0)
		attach_set(&ctl->mail.serving, 1);
	service.running = rc == 0;
	return rc;
}

static void end_thread(void)
{
	struct ctl *ctl = trace_ctl();

	if (!service.running || !ctl)
		return;
	atomic_store(&ctl->mail.serving, 0);
	atomic_store(&service.ending, true);
	attach_ring(&ctl->mail.bell);
	pthread_join(service.thread, NULL);
	service.running = false;
}

int trace_service_start(uint32_t flags)
{
	const char *name = getenv(ANNOUNCE_ENV);
	struct ctl *ctl = trace_ctl();
	int rc = 1, spawned;

	if (!ctl)
		return -EBADF;
	pthread_mutex_lock(&service.lock);
	/* Without an agent the thread may run for others; the socket is its own until it ends. */
	end_thread();
	atomic_store(&ctl->mail.flags, flags);
	if (!kept_fd_valid(&service.sock))
		rc = name && *name ? announce(name, flags) : 0;
	spawned = spawn();
	if (spawned < 0 && rc > 0) {
		disable();
		kept_fd_close(&service.sock);
	}
	if (spawned < 0 && rc >= 0)
		rc = spawned;
	pthread_mutex_unlock(&service.lock);
	return rc;
}

void trace_service_need(void)
{
	struct ctl *ctl = trace_ctl();

	if (!ctl)
		return;
	pthread_mutex_lock(&service.lock);
	if (service.running)
		attach_ring(&ctl->mail.bell);
	else
		(void)spawn();
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
	service.running = service.enabled = false;
	attach_forget();
}
