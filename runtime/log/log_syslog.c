/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log_syslog.c - datagrams for the syslog of this machine, by a socket of our own.
 *
 * syslog(3) takes a lock that a fork may leave locked, and its name and facility are the program's to
 * choose.  No time is sent: the daemon puts its own in front, in its own time zone.  The address
 * goes with every datagram, so a daemon that begins again is found again.
 */
#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "runtime/base/kept_fd.h"
#include "runtime/base/put_number.h"
#include "runtime/log/log_sinks.h"

#ifndef LOG_SYSLOG_PATH
#define LOG_SYSLOG_PATH "/dev/log"
#endif
#define FACILITY_USER 8u
#define NAME "nrt"

/* Severities of RFC 5424; it has none for TRACE. */
static const unsigned char severities[] = {
	[LOG_LEVEL_ERROR] = 3,
	[LOG_LEVEL_WARN] = 4,
	[LOG_LEVEL_INFO] = 6,
	[LOG_LEVEL_DEBUG] = 7,
	[LOG_LEVEL_TRACE] = 7,
};

static const char *_Atomic path = LOG_SYSLOG_PATH;

/* The socket of the process.  It is made once; where the program has closed it, or while another thread makes it, a
 * message has a socket of its own. */
enum { NONE, BEING_MADE, MADE };
static _Atomic int state = NONE;
static struct kept_fd kept = {.fd = -1};

void log_set_syslog(const char *to)
{
	atomic_store(&path, to ? to : LOG_SYSLOG_PATH);
}

const char *log_syslog_path(void)
{
	return atomic_load(&path);
}

static int open_socket(struct kept_fd *ret)
{
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	return fd < 0 ? -errno : kept_fd_adopt(ret, fd);
}

/* The socket to send by; *own is one that the caller closes. */
static int take_socket(struct kept_fd *own)
{
	int none = NONE;

	own->fd = -1;
	if (atomic_load_explicit(&state, memory_order_acquire) == MADE && kept_fd_valid(&kept))
		return kept.fd;
	if (atomic_compare_exchange_strong(&state, &none, BEING_MADE)) {
		int rc = open_socket(&kept);

		atomic_store_explicit(&state, rc < 0 ? NONE : MADE, memory_order_release);
		return rc < 0 ? rc : kept.fd;
	}
	none = open_socket(own);
	return none < 0 ? none : own->fd;
}

static size_t put_head(char *to, enum log_level level)
{
	char *p = to;

	*p++ = '<';
	p = (char *)put_decimal((uint8_t *)p, FACILITY_USER | severities[level]);
	p = stpcpy(p, ">" NAME "[");
	p = (char *)put_decimal((uint8_t *)p, (uint64_t)getpid());
	p = stpcpy(p, "]: ");
	return (size_t)(p - to);
}

int log_to_syslog(enum log_level level, const char *text, size_t len)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	const char *where = atomic_load(&path);
	char head[64];
	struct iovec parts[] = {{head, put_head(head, level)}, {(void *)(uintptr_t)text, len}};
	struct msghdr message = {
		.msg_name = &to, .msg_namelen = sizeof(to), .msg_iov = parts, .msg_iovlen = 2};
	struct kept_fd own;
	int fd, rc;

	if (strlen(where) >= sizeof(to.sun_path))
		return -ENAMETOOLONG;
	memcpy(to.sun_path, where, strlen(where) + 1);
	fd = take_socket(&own);
	if (fd < 0)
		return fd;
	rc = sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;
	kept_fd_close(&own);
	return rc;
}
