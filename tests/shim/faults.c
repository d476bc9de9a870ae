/* SPDX-License-Identifier: Apache-2.0 */
/*
 * faults.c - a preload library that makes the N-th allocation or the N-th call to the system fail.
 *
 *   NTRACE_FAULT=alloc:N          the N-th malloc, calloc, realloc, ... returns NULL
 *   NTRACE_FAULT=file:N[:ERRNO]   the N-th open, read, write, rename, mmap, ... fails, with what is
 *                                 usual for it or with this number
 *   a + behind N                  all calls from the N-th on
 *   NTRACE_FAULT_PROGRAM=NAME     only in a program of this name (default: ntrace), and not in what
 *                                 it starts
 *   NTRACE_FAULT_LOG=FILE         gets a line `failed NAME` when it happened, and `alloc N` and
 *                                 `file N` at exit: how many calls there were
 *   NTRACE_FAULT_TRACE=1          shows on standard error where it happened
 *
 * A program that finds the symbol faults_arm chooses the call itself, with NTRACE_FAULT=alloc:0 or file:0.
 *
 * Calls that take away (close, unlink, rmdir, munmap, free) never fail.  Calls that libc makes
 * within itself, such as the write of fflush, do not come by here.  Under AddressSanitizer
 * verify_asan_link_order=0 is needed; what it asks of a thread that begins (pthread_getattr_np) never fails, for it
 * gives up then.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

enum kind { ALLOC, FILES, KINDS };

static atomic_ulong calls[KINDS];
static enum kind chosen = KINDS;
static unsigned long at; /* 0: never */
static bool from_there_on, trace;
static int error_wanted;
static pid_t active;		  /* the process that counts; 0: none yet */
static _Thread_local bool exempt; /* nothing that this thread calls is counted */
static char log_path[4096];

static long (*real_syscall)(long, ...);

static void *find(const char *name)
{
	return dlsym(RTLD_NEXT, name);
}

/* ---- what fails --------------------------------------------------------------------------- */

/* A line in the log; nothing here allocates. */
static void say(const char *what, const char *text)
{
	char line[128];
	int n = snprintf(line, sizeof(line), "%s %s\n", what, text);
	long fd;

	if (!*log_path)
		return;
	fd = real_syscall(
		SYS_openat, AT_FDCWD, log_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (fd < 0)
		return;
	real_syscall(SYS_write, (int)fd, line, (size_t)n);
	real_syscall(SYS_close, (int)fd);
}

static void show_where(void)
{
	void *frames[32];

	backtrace_symbols_fd(frames, backtrace(frames, 32), STDERR_FILENO);
}

/* Counts the call; shall it fail?  Then errno is set. */
static bool fails(enum kind kind, const char *name, int error)
{
	unsigned long n;

	if (!active || exempt || active != getpid())
		return false;
	n = atomic_fetch_add(&calls[kind], 1) + 1;
	if (kind != chosen || n < at || (n > at && !from_there_on))
		return false;
	exempt = true;
	say("failed", name);
	if (trace)
		show_where();
	exempt = false;
	errno = error_wanted ? error_wanted : error;
	return true;
}

EXPORT void faults_arm(unsigned long n, bool and_all_behind);
EXPORT bool faults_happened(void);

/* The n-th call of the chosen kind from now on fails, perhaps all behind it as well; 0 = none. */
void faults_arm(unsigned long n, bool and_all_behind)
{
	atomic_store(&calls[chosen], 0);
	from_there_on = and_all_behind;
	at = n ? n : ULONG_MAX;
}

/* Has one failed since? */
bool faults_happened(void)
{
	return atomic_load(&calls[chosen]) >= at;
}

/* ---- memory ------------------------------------------------------------------------------- */

/* dlsym may allocate while the real functions are being looked up. */
static char early[8192];
static size_t early_used;
static bool looking;

static void *early_alloc(size_t size)
{
	void *p = early + early_used;

	early_used += (size + 15) & ~(size_t)15;
	return early_used <= sizeof(early) ? p : NULL;
}

static struct {
	void *(*malloc)(size_t);
	void *(*calloc)(size_t, size_t);
	void *(*realloc)(void *, size_t);
	void *(*aligned_alloc)(size_t, size_t);
	int (*posix_memalign)(void **, size_t, size_t);
	void (*free)(void *);
} real;

static bool ready(void)
{
	if (real.free)
		return true;
	if (looking)
		return false;
	looking = true;
	real.malloc = find("malloc");
	real.calloc = find("calloc");
	real.realloc = find("realloc");
	real.aligned_alloc = find("aligned_alloc");
	real.posix_memalign = find("posix_memalign");
	real_syscall = find("syscall");
	real.free = find("free");
	looking = false;
	return true;
}

EXPORT void *malloc(size_t size)
{
	if (!ready())
		return early_alloc(size);
	return fails(ALLOC, "malloc", ENOMEM) ? NULL : real.malloc(size);
}

EXPORT void *calloc(size_t n, size_t size)
{
	if (!ready())
		return early_alloc(n * size); /* never used before */
	return fails(ALLOC, "calloc", ENOMEM) ? NULL : real.calloc(n, size);
}

EXPORT void *realloc(void *p, size_t size)
{
	if (!ready())
		return NULL;
	return fails(ALLOC, "realloc", ENOMEM) ? NULL : real.realloc(p, size);
}

EXPORT void *aligned_alloc(size_t alignment, size_t size)
{
	if (!ready() || fails(ALLOC, "aligned_alloc", ENOMEM))
		return NULL;
	return real.aligned_alloc(alignment, size);
}

EXPORT int posix_memalign(void **ret, size_t alignment, size_t size)
{
	if (!ready() || fails(ALLOC, "posix_memalign", ENOMEM))
		return ENOMEM;
	return real.posix_memalign(ret, alignment, size);
}

EXPORT void free(void *p)
{
	if ((char *)p >= early && (char *)p < early + sizeof(early))
		return;
	if (ready())
		real.free(p);
}

/* ---- the system --------------------------------------------------------------------------- */

/* A function that is looked up at its first call and fails with `failure` and an error. */
#define CALL(type, name, failure, error, params, args)                     \
	EXPORT type name params                                            \
	{                                                                  \
		static type(*next) params;                                 \
		if (!next)                                                 \
			next = find(#name);                                \
		return fails(FILES, #name, error) ? (failure) : next args; \
	}

CALL(ssize_t, read, -1, EIO, (int fd, void *p, size_t n), (fd, p, n))
CALL(ssize_t, pread, -1, EIO, (int fd, void *p, size_t n, off_t o), (fd, p, n, o))
CALL(ssize_t, write, -1, ENOSPC, (int fd, const void *p, size_t n), (fd, p, n))
CALL(ssize_t, pwrite, -1, ENOSPC, (int fd, const void *p, size_t n, off_t o), (fd, p, n, o))
CALL(ssize_t, writev, -1, ENOSPC, (int fd, const struct iovec *v, int n), (fd, v, n))
CALL(int, fsync, -1, EIO, (int fd), (fd))
CALL(int, fdatasync, -1, EIO, (int fd), (fd))
CALL(int, ftruncate, -1, ENOSPC, (int fd, off_t n), (fd, n))
CALL(int, fallocate, -1, ENOSPC, (int fd, int mode, off_t o, off_t n), (fd, mode, o, n))
CALL(int, mkdir, -1, ENOSPC, (const char *path, mode_t mode), (path, mode))
CALL(int, mkdirat, -1, ENOSPC, (int dir, const char *path, mode_t mode), (dir, path, mode))
CALL(int, rename, -1, EIO, (const char *from, const char *to), (from, to))
CALL(int, renameat2, -1, EIO, (int a, const char *from, int b, const char *to, unsigned flags),
	(a, from, b, to, flags))
CALL(int, link, -1, EIO, (const char *from, const char *to), (from, to))
CALL(int, linkat, -1, EIO, (int a, const char *from, int b, const char *to, int flags),
	(a, from, b, to, flags))
CALL(int, mkostemp, -1, EMFILE, (char *path, int flags), (path, flags))
CALL(int, memfd_create, -1, EMFILE, (const char *name, unsigned flags), (name, flags))
CALL(void *, mmap, MAP_FAILED, ENOMEM, (void *p, size_t n, int prot, int flags, int fd, off_t o),
	(p, n, prot, flags, fd, o))
CALL(int, stat, -1, EIO, (const char *path, struct stat *st), (path, st))
CALL(int, lstat, -1, EIO, (const char *path, struct stat *st), (path, st))
CALL(int, fstat, -1, EIO, (int fd, struct stat *st), (fd, st))
CALL(int, fstatat, -1, EIO, (int fd, const char *path, struct stat *st, int flags),
	(fd, path, st, flags))
CALL(off_t, lseek, -1, EIO, (int fd, off_t o, int whence), (fd, o, whence))
CALL(FILE *, fopen, NULL, EMFILE, (const char *path, const char *mode), (path, mode))
CALL(DIR *, opendir, NULL, EMFILE, (const char *path), (path))
CALL(DIR *, fdopendir, NULL, ENOMEM, (int fd), (fd))
CALL(int, pipe2, -1, EMFILE, (int fds[2], int flags), (fds, flags))
CALL(int, socket, -1, EMFILE, (int domain, int type, int protocol), (domain, type, protocol))
CALL(int, bind, -1, EADDRINUSE, (int fd, const struct sockaddr *a, socklen_t n), (fd, a, n))
CALL(int, listen, -1, EADDRINUSE, (int fd, int n), (fd, n))
CALL(int, epoll_create1, -1, EMFILE, (int flags), (flags))
CALL(int, epoll_ctl, -1, ENOSPC, (int e, int op, int fd, struct epoll_event *v), (e, op, fd, v))
CALL(int, timerfd_create, -1, EMFILE, (int clock, int flags), (clock, flags))
CALL(int, signalfd, -1, EMFILE, (int fd, const sigset_t *mask, int flags), (fd, mask, flags))
CALL(pid_t, fork, -1, EAGAIN, (void), ())

/* The mode is passed on whether it is there or not, as libc takes it. */
EXPORT int open(const char *path, int flags, ...)
{
	static int (*next)(const char *, int, ...);
	va_list ap;

	if (!next)
		next = find("open");
	va_start(ap, flags);
	mode_t mode = va_arg(ap, mode_t);
	va_end(ap);
	return fails(FILES, "open", EMFILE) ? -1 : next(path, flags, mode);
}

EXPORT int openat(int dir, const char *path, int flags, ...)
{
	static int (*next)(int, const char *, int, ...);
	va_list ap;

	if (!next)
		next = find("openat");
	va_start(ap, flags);
	mode_t mode = va_arg(ap, mode_t);
	va_end(ap);
	return fails(FILES, "openat", EMFILE) ? -1 : next(dir, path, flags, mode);
}

/* Only the commands that make a descriptor. */
EXPORT int fcntl(int fd, int command, ...)
{
	static int (*next)(int, int, ...);
	va_list ap;

	if (!next)
		next = find("fcntl");
	va_start(ap, command);
	long arg = va_arg(ap, long);
	va_end(ap);
	if ((command == F_DUPFD || command == F_DUPFD_CLOEXEC) && fails(FILES, "fcntl", EMFILE))
		return -1;
	return next(fd, command, arg);
}

EXPORT int pthread_getattr_np(pthread_t thread, pthread_attr_t *attr)
{
	static int (*next)(pthread_t, pthread_attr_t *);
	int rc;

	if (!next)
		next = find("pthread_getattr_np");
	exempt = true;
	rc = next(thread, attr);
	exempt = false;
	return rc;
}

/* Calls that the kernel cannot refuse, so nobody can handle it: a wake-up that is lost would be a fault of ours. */
static bool cannot_fail(long number, long operation)
{
	return number == SYS_gettid ||
	       (number == SYS_futex && (operation & FUTEX_CMD_MASK) == FUTEX_WAKE);
}

/* bpf(2), perf_event_open(2), pidfd_open(2): what has no function of its own. */
EXPORT long syscall(long number, ...)
{
	va_list ap;
	long a[6];

	ready();
	va_start(ap, number);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(ap, long);
	va_end(ap);
	if (!cannot_fail(number, a[1]) && fails(FILES, "syscall", ENOMEM))
		return -1;
	return real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* ---- start and end ------------------------------------------------------------------------ */

/* "alloc:N", "file:N", "file:N:ERRNO", a + behind each. */
static void parse(const char *text)
{
	const char *colon = strchr(text, ':');
	char *end;

	if (!colon)
		return;
	chosen = !strncmp(text, "alloc:", 6) ? ALLOC : FILES;
	at = strtoul(colon + 1, &end, 10);
	if (*end == ':')
		error_wanted = (int)strtol(end + 1, &end, 10);
	from_there_on = *end == '+';
}

__attribute__((constructor)) static void start(void)
{
	const char *fault = getenv("NTRACE_FAULT"), *log = getenv("NTRACE_FAULT_LOG");
	const char *program = getenv("NTRACE_FAULT_PROGRAM");

	if (!fault || strcmp(program_invocation_short_name, program ? program : "ntrace") != 0)
		return;
	ready();
	snprintf(log_path, sizeof(log_path), "%s", log ? log : "");
	if (getenv("NTRACE_FAULT_TRACE")) {
		trace = true;
		void *frame[1];
		backtrace(frame, 1); /* loads libgcc now */
	}
	parse(fault);
	unsetenv("LD_PRELOAD");
	active = getpid();
}

__attribute__((destructor)) static void end(void)
{
	char n[32];

	if (!active || active != getpid())
		return;
	active = 0;
	snprintf(n, sizeof(n), "%lu", atomic_load(&calls[ALLOC]));
	say("alloc", n);
	snprintf(n, sizeof(n), "%lu", atomic_load(&calls[FILES]));
	say("file", n);
}
