/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file.c - files that are whole or not there, and directories that are new.
 *
 * The one hard step is to give a finished file its name without replacing another: renameat2 with
 * RENAME_NOREPLACE where the file system has it, else link (which never replaces) and unlink.
 * A crash between the two leaves the whole file under both names.
 */
#include "runtime/base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/quiet_signal.h"

#define OUTFILE_BUFFER (64u << 10)
#define UNIQUE_TRIES 1000000

void cleanup_free(void *p)
{
	free(*(void **)p);
}

void cleanup_close(int *fd)
{
	int saved = errno;

	if (*fd >= 0)
		close(*fd);
	*fd = -1;
	errno = saved;
}

int file_write_all(int fd, const void *data, size_t size)
{
	const char *p = data;

	while (size) {
		ssize_t n = write(fd, p, size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		p += n;
		size -= (size_t)n;
	}
	return 0;
}

static int read_to_end(int fd, size_t max, char **ret_data, size_t *ret_size)
{
	_cleanup_free_ char *data = NULL;
	size_t size = 0, cap = 0;

	/* Files of /proc have no size to ask for: read to the end. */
	for (;;) {
		ssize_t n;

		if (size + 1 >= cap) { /* room for a byte and the NUL */
			size_t more = cap ? cap * 2 : 4096;
			char *grown = realloc(data, more);

			if (!grown)
				return -ENOMEM;
			data = grown;
			cap = more;
		}
		n = read(fd, data + size, cap - size - 1);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		size += (size_t)n;
		if (size > max)
			return -EFBIG;
	}
	data[size] = '\0';
	*ret_data = data;
	*ret_size = size;
	data = NULL;
	return 0;
}

int file_read(const char *path, size_t max, char **ret_data, size_t *ret_size)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);

	return fd < 0 ? -errno : read_to_end(fd, max, ret_data, ret_size);
}

int file_read_attribute(const char *path, size_t max, char **ret_data, size_t *ret_size)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	return S_ISREG(st.st_mode) ? read_to_end(fd, max, ret_data, ret_size) : -EINVAL;
}

int file_read_line(const char *path, char *ret, size_t size)
{
	_cleanup_free_ char *text = NULL;
	size_t length;
	int r;

	if (!size)
		return -EINVAL;
	ret[0] = '\0';
	r = file_read_attribute(path, 4096, &text, &length);
	if (r)
		return r;
	text[strcspn(text, "\n")] = '\0';
	snprintf(ret, size, "%s", text);
	return 0;
}

/* ---- directories ---------------------------------------------------------------------------- */

static bool parse_id(const char *text, uint32_t *ret)
{
	unsigned long v;
	char *end;

	if (!text || *text < '0' || *text > '9')
		return false;
	errno = 0;
	v = strtoul(text, &end, 10);
	if (errno || *end || v >= UINT32_MAX) /* -1 means "leave as it is" to chown */
		return false;
	*ret = (uint32_t)v;
	return true;
}

struct invoker {
	bool known;
	uint32_t uid, gid;
};

static struct invoker fixed;
static pthread_once_t fixed_once = PTHREAD_ONCE_INIT;
static atomic_bool is_fixed;

static struct invoker find_invoker(void)
{
	struct invoker i;

	i.known = parse_id(secure_getenv("SUDO_UID"), &i.uid) &&
		  parse_id(secure_getenv("SUDO_GID"), &i.gid);
	return i;
}

static void fix_invoker(void)
{
	fixed = find_invoker();
	atomic_store(&is_fixed, true);
}

void file_invoker_fix(void)
{
	pthread_once(&fixed_once, fix_invoker);
}

void file_chown_invoker(int fd)
{
	int saved = errno;
	struct invoker i;

	if (geteuid() != 0)
		return;
	i = atomic_load(&is_fixed) ? fixed : find_invoker();
	/* A file that could not be given away is still a good file: errors are of no interest. */
	if (i.known && fchown(fd, i.uid, i.gid) < 0)
		errno = saved;
}

/* Makes one directory.  0, -EEXIST or -errno. */
static int make_directory(const char *path)
{
	_cleanup_close_ int fd = -1;

	if (mkdir(path, 0777) < 0)
		return -errno;
	/* By descriptor, and no link followed: it must be what was made here that changes its
	 * owner. */
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0)
		file_chown_invoker(fd);
	return 0;
}

static bool is_directory(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

void file_mkdirs_undo(const char *path, unsigned made)
{
	_cleanup_free_ char *part = strdup(path);
	size_t len = part ? strlen(part) : 0;

	while (made-- > 0 && len > 0) {
		while (len > 1 && part[len - 1] == '/')
			len--;
		part[len] = '\0';
		if (rmdir(part) < 0)
			return;
		while (len > 0 && part[len - 1] != '/')
			len--;
	}
}

int file_mkdirs(const char *path, unsigned *ret_made)
{
	_cleanup_free_ char *part = strdup(path);
	unsigned made = 0;
	char *p;

	if (ret_made)
		*ret_made = 0;
	if (!part)
		return -ENOMEM;
	if (!*part)
		return -ENOENT;
	for (p = part;; *p = '/') {
		bool last;
		int err;

		p += strspn(p, "/");
		p += strcspn(p, "/");
		last = !*p;
		*p = '\0';
		err = make_directory(part);
		made += err == 0;
		/* An existing one may also answer EROFS or EACCES. */
		if (err && !is_directory(part)) {
			file_mkdirs_undo(dirname(part), made);
			return err == -EEXIST ? -ENOTDIR : err;
		}
		if (last) {
			if (ret_made)
				*ret_made = made;
			return 0;
		}
	}
}

int file_mkdir_unique(const char *base, char **ret_path)
{
	size_t len = strlen(base);

	while (len > 1 && base[len - 1] == '/')
		len--;
	if (len > INT_MAX)
		return -ENAMETOOLONG;
	/* mkdir decides who was first, so two processes never get the same directory. */
	for (int n = 1; n <= UNIQUE_TRIES; n++) {
		_cleanup_free_ char *path = NULL;
		int err = n == 1 ? asprintf(&path, "%.*s", (int)len, base)
				 : asprintf(&path, "%.*s_%d", (int)len, base, n);

		if (err < 0) {
			path = NULL;
			return -ENOMEM;
		}
		err = make_directory(path);
		if (err == -EEXIST)
			continue;
		if (err)
			return err;
		*ret_path = path;
		path = NULL;
		return 0;
	}
	return -EEXIST;
}

/* ---- outfile -------------------------------------------------------------------------------- */

/* A name in the directory of path that no other process and no other thread uses. */
static char *temporary_name(const char *path)
{
	static atomic_uint counter;
	const char *slash = strrchr(path, '/');
	int dir = slash ? (int)(slash + 1 - path) : 0;
	char *name;

	if (asprintf(&name, "%.*s" OUTFILE_TEMPORARY "%d-%u", dir, path, (int)getpid(),
		    atomic_fetch_add(&counter, 1)) < 0)
		return NULL;
	return name;
}

/* Creates the temporary file; a leftover of an earlier process with the same pid is passed over. */
static int open_temporary(struct outfile *f)
{
	for (;;) {
		int err;

		f->tmp_path = temporary_name(f->path);
		if (!f->tmp_path)
			return -ENOMEM;
		f->fd = open(f->tmp_path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
		if (f->fd >= 0)
			return 0;
		err = -errno;
		free(f->tmp_path); /* not ours to remove */
		f->tmp_path = NULL;
		if (err != -EEXIST)
			return err;
	}
}

int outfile_open(struct outfile *f, const char *path)
{
	struct stat st;
	int err;

	*f = (struct outfile){.fd = -1};
	if (strlen(path) > INT_MAX)
		return -ENAMETOOLONG;
	if (lstat(path, &st) == 0)
		return -EEXIST;
	f->path = strdup(path);
	f->buf = malloc(OUTFILE_BUFFER);
	err = f->path && f->buf ? open_temporary(f) : -ENOMEM;
	if (err) {
		outfile_abort(f);
		return err;
	}
	file_chown_invoker(f->fd);
	return 0;
}

/* A file may be written in somebody else's program: a limit of its size is an error there, and no signal. */
static void write_through(struct outfile *f, const void *data, size_t size)
{
	struct quiet_signal limit;

	if (f->error)
		return;
	quiet_signal_begin(&limit, SIGXFSZ);
	f->error = file_write_all(f->fd, data, size);
	quiet_signal_end(&limit, f->error == -EFBIG);
}

static void flush_buffer(struct outfile *f)
{
	if (f->used)
		write_through(f, f->buf, f->used);
	f->used = 0;
}

void outfile_write(struct outfile *f, const void *data, size_t size)
{
	if (f->error || size == 0)
		return;
	f->bytes += size;
	if (size > OUTFILE_BUFFER - f->used)
		flush_buffer(f);
	if (size >= OUTFILE_BUFFER) {
		write_through(f, data, size);
		return;
	}
	memcpy(f->buf + f->used, data, size);
	f->used += size;
}

void outfile_pause(struct outfile *f)
{
	flush_buffer(f);
	if (f->fd >= 0 && close(f->fd) < 0 && !f->error && errno != EINTR)
		f->error = -errno;
	f->fd = -1;
}

int outfile_resume(struct outfile *f)
{
	f->fd = open(f->tmp_path, O_WRONLY | O_APPEND | O_CLOEXEC);
	if (f->fd < 0 && !f->error)
		f->error = -errno;
	return f->error;
}

int file_rename(const char *from, const char *to)
{
	struct stat st;

	if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0)
		return 0;
	if (errno != EINVAL && errno != ENOSYS)
		return -errno;
	if (link(from, to) == 0) {
		unlink(from);
		return 0;
	}
	/* A directory has no second name; as another's it replaces an empty one at most. */
	if (errno != EPERM || lstat(to, &st) == 0)
		return errno == EPERM ? -EEXIST : -errno;
	return rename(from, to) < 0 ? -errno : 0;
}

/* Frees what the struct holds; the temporary file is no longer its business. */
static void release(struct outfile *f)
{
	free(f->path);
	free(f->tmp_path);
	free(f->buf);
	f->path = f->tmp_path = NULL;
	f->buf = NULL;
	f->fd = -1;
	f->used = 0;
}

int outfile_commit(struct outfile *f)
{
	int err;

	if (!f->tmp_path) /* not open */
		return f->error ? f->error : -EBADF;
	flush_buffer(f);
	/* The name must not outlive the content when power fails; some file systems cannot sync. */
	if (!f->error && fsync(f->fd) < 0 && errno != EINVAL && errno != ENOSYS)
		f->error = -errno;
	if (close(f->fd) < 0 && !f->error && errno != EINTR)
		f->error = -errno;
	f->fd = -1;
	if (!f->error)
		f->error = file_rename(f->tmp_path, f->path);
	err = f->error;
	if (err)
		outfile_abort(f);
	else
		release(f);
	return err;
}

void outfile_abort(struct outfile *f)
{
	if (f->tmp_path) { /* a zeroed struct has fd 0, which is not ours */
		if (f->fd >= 0)
			close(f->fd);
		unlink(f->tmp_path);
	}
	release(f);
}
