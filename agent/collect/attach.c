/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attach.c - from a pid to its control file.
 *
 * Every step may meet a process that changes meanwhile, or that lies: a link of /proc is opened with O_PATH first,
 * which runs no code of whatever it leads to, then compared with the mapping and with a memfd of our own (all of
 * them live on one file system that nobody can mount), and only then opened for reading and writing.
 */
#include "agent/collect/attach.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "agent/collect/threads.h"
#include "runtime/base/env.h"
#include "runtime/base/file.h"
#include "runtime/trace/ring.h"

#define MEMFD_LINK "/memfd:" CTL_NAME " (deleted)"
#define MAX_FILES \
	16u /* control files of a process: its own, and those that it reads or has inherited */
#define ENVIRON_BYTES (8u << 20)
#define LIBNRT_BYTES (32 << 20) /* ours has a few, with what sanitizers add */
#define HEAD_LOOKS 200
#define HEAD_WORDS 3 /* of struct ctl: magic, version, pid */

struct mapped {
	uint64_t start, end, ino;
	dev_t dev;
};

struct maps {
	struct mapped files[MAX_FILES];
	unsigned count;
	struct mapped libnrt; /* ino 0: it is not loaded */
	char libnrt_path[PATH_MAX];
};

/* ---- /proc/PID/maps ----------------------------------------------------------------------- */

static void note_control(struct maps *m, const struct mapped *file)
{
	for (unsigned i = 0; i < m->count; i++)
		if (m->files[i].ino == file->ino && m->files[i].dev == file->dev)
			return;
	if (m->count < MAX_FILES)
		m->files[m->count++] = *file;
}

static void note_line(struct maps *m, char *line)
{
	unsigned int major_number, minor_number;
	struct mapped file = {0};
	uint64_t offset;
	int path_at = 0;

	line[strcspn(line, "\n")] = '\0';
	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %" SCNx64 " %x:%x %" SCNu64 " %n",
		    &file.start, &file.end, &offset, &major_number, &minor_number, &file.ino,
		    &path_at) < 6 ||
		!path_at || file.ino == 0)
		return;
	const char *path = line + path_at, *name = strrchr(path, '/');
	file.dev = makedev(major_number, minor_number);
	if (!strcmp(path, MEMFD_LINK) && offset == 0)
		note_control(m, &file);
	else if (name && !strncmp(name, "/libnrt.so", 10) && !m->libnrt.ino) {
		m->libnrt = file;
		snprintf(m->libnrt_path, sizeof(m->libnrt_path), "%s", path);
	}
}

/* The kernel says here, at the latest, whether we may look at the process. */
static int read_maps(pid_t pid, struct maps *ret, int *ret_fd)
{
	char path[64], *line = NULL;
	size_t room = 0;
	FILE *f;

	memset(ret, 0, sizeof(*ret));
	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	f = fopen(path, "re");
	if (!f)
		return -errno;
	errno = 0;
	while (getline(&line, &room, f) >= 0)
		note_line(ret, line);
	int rc = ferror(f) && errno ? -errno : 0;
	*ret_fd = rc < 0 ? -1 : fcntl(fileno(f), F_DUPFD_CLOEXEC, 3);
	free(line);
	fclose(f);
	return rc;
}

bool attach_memory_is_gone(int maps)
{
	char byte;

	return pread(maps, &byte, 1, 0) == 0;
}

/* ---- opening ------------------------------------------------------------------------------ */

static bool is_file(int fd, const struct mapped *file)
{
	struct statx st;

	return statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_INO, &st) == 0 &&
	       makedev(st.stx_dev_major, st.stx_dev_minor) == file->dev && st.stx_ino == file->ino;
}

/* Does the mapped file lie where memfds do? */
static bool is_memfd(const struct mapped *file)
{
	_cleanup_close_ int own = memfd_create("ntrace-attach", MFD_CLOEXEC);
	struct stat st;

	return own >= 0 && fstat(own, &st) == 0 && st.st_dev == file->dev;
}

/* Opens what the link leads to if it is that file.  -ENOENT: it is another one; -errno. */
static int open_link(const char *path, const struct mapped *file, int flags)
{
	_cleanup_close_ int at = open(path, O_PATH | O_CLOEXEC);
	char again[64];

	if (at < 0)
		return -errno;
	if (!is_file(at, file))
		return -ENOENT;
	snprintf(again, sizeof(again), "/proc/self/fd/%d", at);
	int fd = open(again, flags | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* Among the descriptors of the process.  -ENOENT: it has closed it. */
static int open_by_fd(pid_t pid, const struct mapped *file)
{
	char path[64 + NAME_MAX], link[sizeof(MEMFD_LINK) + 1];
	const struct dirent *e;
	int fd = -ENOENT;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	DIR *dir = opendir(path);
	if (!dir)
		return -errno;
	while (fd < 0 && (e = readdir(dir))) {
		if (!isdigit((unsigned char)e->d_name[0]))
			continue;
		ssize_t n = readlinkat(dirfd(dir), e->d_name, link, sizeof(link));
		if (n != (ssize_t)strlen(MEMFD_LINK) || memcmp(link, MEMFD_LINK, (size_t)n))
			continue;
		snprintf(path, sizeof(path), "/proc/%d/fd/%s", (int)pid, e->d_name);
		fd = open_link(path, file, O_RDWR);
	}
	closedir(dir);
	return fd;
}

static int open_control(pid_t pid, const struct mapped *file)
{
	char path[128];
	int fd;

	if (!is_memfd(file))
		return -EPROTO;
	fd = open_by_fd(pid, file);
	if (fd != -ENOENT)
		return fd;
	snprintf(path, sizeof(path), "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, (int)pid,
		file->start, file->end);
	return open_link(path, file, O_RDWR);
}

/* ---- what it is --------------------------------------------------------------------------- */

__attribute__((format(printf, 5, 6))) static int say(
	char *why, size_t why_size, pid_t pid, int error, const char *format, ...)
{
	int n = snprintf(why, why_size, "process %d ", (int)pid);
	va_list ap;

	va_start(ap, format);
	if (n > 0 && (size_t)n < why_size)
		vsnprintf(why + n, why_size - (size_t)n, format, ap);
	va_end(ap);
	return error;
}

static int may_not(pid_t pid, char *why, size_t size)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	if (stat(path, &st) < 0)
		return say(why, size, pid, -ESRCH, "has ended");
	if (st.st_uid != geteuid())
		return say(why, size, pid, -EPERM,
			"belongs to uid %u: attach as that user or as root", st.st_uid);
	return say(why, size, pid, -EPERM,
		"does not let its user look at it (it may have changed its privileges): attach as "
		"root");
}

/*
 * Does the name stand in the file?  It is the process's, which may cut it off meanwhile, or have made it as large as
 * it likes: so it is read and not mapped, and no further than constants of ours lie.  1, 0, or -errno.
 */
static int names_control(int fd)
{
	enum { OVERLAP = sizeof(CTL_NAME) - 1 };
	char piece[OVERLAP + 65536];
	size_t kept = 0;
	ssize_t n;

	for (off_t at = 0; at < LIBNRT_BYTES; at += n) {
		n = pread(fd, piece + kept, sizeof(piece) - kept, at);
		if (n <= 0)
			return n < 0 ? -errno : 0;
		if (memmem(piece, kept + (size_t)n, CTL_NAME, sizeof(CTL_NAME)))
			return 1;
		size_t all = kept + (size_t)n;
		kept = all < OVERLAP ? all : OVERLAP;
		memmove(piece, piece + all - kept, kept);
	}
	return 0;
}

/* Does the file with our runtime's code stand behind this mapping?  1, 0, or -errno. */
static int has_our_name(pid_t pid, const struct maps *m)
{
	char path[PATH_MAX + 64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d/root%s", (int)pid, m->libnrt_path);
	_cleanup_close_ int fd = open_link(path, &m->libnrt, O_RDONLY | O_NONBLOCK);
	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return -EINVAL;
	return names_control(fd);
}

/* There is no control file. */
static int without_control(
	const struct attach_target *t, const struct maps *m, char *why, size_t size)
{
	if (!m->libnrt.ino)
		return say(why, size, t->pid, -ENODEV,
			"has no Neuron runtime (libnrt) loaded, which attach needs; `ntrace record "
			"-a -- sleep 60` "
			"records the driver calls of all processes for a minute");
	if (has_our_name(t->pid, m) == 1)
		return say(why, size, t->pid, -EAGAIN,
			"has not initialised its Neuron runtime yet: attach after its nrt_init, or "
			"start it with `ntrace record`");
	return 0;
}

/* The magic number is written last, a moment after the file is mapped. */
static void read_head(int memfd, uint32_t head[HEAD_WORDS])
{
	const struct timespec moment = {.tv_nsec = 1000000};
	ssize_t n = 0;

	for (int i = 0; i < HEAD_LOOKS && (n != HEAD_WORDS * sizeof(*head) || !head[0]); i++) {
		if (i)
			nanosleep(&moment, NULL);
		memset(head, 0, HEAD_WORDS * sizeof(*head));
		n = pread(memfd, head, HEAD_WORDS * sizeof(*head), 0);
	}
}

/* Is this the process's own?  0; -ENOENT: another's. */
static int check_own(const struct attach_target *t, char *why, size_t size)
{
	uint32_t head[HEAD_WORDS], own;
	char path[64];
	unsigned levels;

	read_head(t->memfd, head);
	if (head[0] != CTL_MAGIC)
		return say(why, size, t->pid, -EPROTO,
			"has a control file that is not one of a Neuron runtime of ours");
	if (head[1] != CTL_VERSION)
		return say(why, size, t->pid, -EPROTONOSUPPORT,
			"has a Neuron runtime of another version of ntrace (control area %u; this "
			"ntrace reads %u): use the ntrace that came with its libnrt",
			head[1], CTL_VERSION);
	snprintf(path, sizeof(path), "/proc/%d/status", (int)t->pid);
	own = threads_innermost_id(path, &levels);
	if (own && head[2] != own)
		return say(why, size, t->pid, -ECHILD,
			"is a fork of the process (pid %u there) whose Neuron runtime it shares, "
			"and "
			"traces nothing itself: attach to that one",
			head[2]);
	return 0;
}

static int explain_open(pid_t pid, int error, char *why, size_t size)
{
	switch (error) {
	case -EPROTO:
		return say(why, size, pid, error, "has a control file that is not a memfd");
	case -ENOENT:
	case -EPERM:
	case -EACCES:
		return say(why, size, pid, -EPERM, ATTACH_CLOSED);
	default:
		return say(why, size, pid, error, "has a control file that cannot be opened: %s",
			strerror(-error));
	}
}

/* Takes the first that is the process's own; says of the last what was wrong with it. */
static int open_own(struct attach_target *t, const struct maps *m, char *why, size_t size)
{
	int rc = -ENODEV;

	for (unsigned i = 0; i < m->count; i++) {
		t->memfd = open_control(t->pid, &m->files[i]);
		if (t->memfd < 0) {
			rc = explain_open(t->pid, t->memfd, why, size);
			t->memfd = -1;
			continue;
		}
		rc = check_own(t, why, size);
		if (rc == 0)
			return 0;
		cleanup_close(&t->memfd);
	}
	return rc;
}

int attach_find(pid_t pid, struct attach_target *ret, char *why, size_t why_size)
{
	struct maps *m;
	int rc;

	*ret = ATTACH_NONE;
	ret->pid = pid;
	ret->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (ret->pidfd < 0)
		return errno == ESRCH ? say(why, why_size, pid, -ESRCH,
						"does not exist (in the pid namespace of ntrace)")
				      : say(why, why_size, pid, -EINVAL, "cannot be watched: %s%s",
						strerror(errno),
						errno == EINVAL || errno == ENOENT
							? " (is it a thread? give its process)"
							: "");
	m = malloc(sizeof(*m));
	if (!m)
		return say(why, why_size, pid, -ENOMEM, "cannot be looked at: out of memory");
	rc = read_maps(pid, m, &ret->maps);
	if (rc == -EACCES || rc == -EPERM)
		rc = may_not(pid, why, why_size);
	else if (rc < 0)
		rc = say(why, why_size, pid, -ESRCH, "has ended, or /proc does not show it");
	else if (m->count)
		rc = open_own(ret, m, why, why_size);
	else
		rc = without_control(ret, m, why, why_size);
	free(m);
	return rc;
}

/* ---- its devices -------------------------------------------------------------------------- */

static bool same_mounts(pid_t pid)
{
	char path[64], ours[64] = "", theirs[64] = "";

	snprintf(path, sizeof(path), "/proc/%d/ns/mnt", (int)pid);
	return readlink("/proc/self/ns/mnt", ours, sizeof(ours) - 1) > 0 &&
	       readlink(path, theirs, sizeof(theirs) - 1) > 0 && !strcmp(ours, theirs);
}

int attach_device_root(pid_t pid, char **ret)
{
	static const char name[] = ENV_DEVICE_ROOT "=";
	_cleanup_free_ char *text = NULL;
	char path[64];
	size_t size;
	int n;

	*ret = NULL;
	snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
	int rc = file_read(path, ENVIRON_BYTES, &text, &size);
	if (rc < 0)
		return rc == -ENOMEM ? rc : 0;
	for (const char *p = text; p < text + size; p += strlen(p) + 1) {
		if (strncmp(p, name, sizeof(name) - 1))
			continue;
		if (p[sizeof(name) - 1] != '/' || same_mounts(pid))
			n = asprintf(ret, "%s", p + sizeof(name) - 1);
		else
			n = asprintf(ret, "/proc/%d/root%s", (int)pid, p + sizeof(name) - 1);
		if (n < 0)
			*ret = NULL;
		return n < 0 ? -ENOMEM : 0;
	}
	return 0;
}

void attach_target_close(struct attach_target *t)
{
	cleanup_close(&t->maps);
	cleanup_close(&t->memfd);
	cleanup_close(&t->pidfd);
}
