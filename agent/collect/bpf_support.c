/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bpf_support.c - libbpf's messages, tracepoint numbers without a mount, ring buffer and mapped
 * arrays.  See the header.
 */
#include "agent/collect/bpf_support.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "runtime/base/file.h"

#ifndef TRACEFS_MAGIC
#define TRACEFS_MAGIC 0x74726163
#endif

/* ---- messages ----------------------------------------------------------------------------- */

static _Thread_local char log_line[256];

/* Keeps the last line.  A verifier log comes as one message of many lines; its last ones say why.
 */
static int keep_line(enum libbpf_print_level level, const char *format, va_list args)
{
	char text[1024], *line, *end;

	if (level != LIBBPF_WARN)
		return 0;
	vsnprintf(text, sizeof(text), format, args);
	end = text + strlen(text);
	while (end > text && (end[-1] == '\n' || end[-1] == ' '))
		*--end = '\0';
	line = strrchr(text, '\n');
	line = line ? line + 1 : text;
	if (strncmp(line, "libbpf: ", 8) == 0)
		line += 8;
	/* The closing line of every failure says less than the one before it. */
	if (*line == '\0' || strncmp(line, "failed to load object", 21) == 0)
		return 0;
	snprintf(log_line, sizeof(log_line), "%.*s", (int)sizeof(log_line) - 1, line);
	return 0;
}

bool bpf_is_locked_down(void)
{
	char line[128];

	return file_read_line(BPF_LOCKDOWN, line, sizeof(line)) == 0 &&
	       strstr(line, "[confidentiality]");
}

bool bpf_kprobes_are_off(const char *sys)
{
	char path[PATH_MAX], line[8];

	snprintf(path, sizeof(path), "%s/kernel/debug/kprobes/enabled", sys ? sys : "/sys");
	return file_read_line(path, line, sizeof(line)) == 0 && strcmp(line, "0") == 0;
}

void bpf_log_capture(void)
{
	log_line[0] = '\0';
	libbpf_set_print(keep_line);
}

const char *bpf_log_last(void)
{
	return log_line;
}

/* ---- tracepoints -------------------------------------------------------------------------- */

/* A tracefs that hangs nowhere: it goes away with its descriptor. */
static int tracefs_detached(void)
{
	_cleanup_close_ int fs = fsopen("tracefs", FSOPEN_CLOEXEC);
	int fd;

	if (fs < 0)
		return -errno;
	if (fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return -errno;
	fd = fsmount(fs, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
	return fd < 0 ? -errno : fd;
}

static int tracefs_mounted(const char *path)
{
	struct statfs st;
	int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	if (fstatfs(fd, &st) == 0 && st.f_type == TRACEFS_MAGIC)
		return fd;
	close(fd);
	return -ENOENT;
}

int tracefs_open(bool *ret_detached)
{
	static const char *const places[] = {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"};
	int fd = tracefs_detached(), first = fd;

	if (ret_detached)
		*ret_detached = fd >= 0;
	for (size_t i = 0; fd < 0 && i < sizeof(places) / sizeof(places[0]); i++)
		fd = tracefs_mounted(places[i]);
	return fd >= 0 ? fd : first;
}

int tracepoint_id(int tracefs_fd, const char *category, const char *name)
{
	char path[160], text[32];
	_cleanup_close_ int fd = -1;
	ssize_t n;

	snprintf(path, sizeof(path), "events/%s/%s/id", category, name);
	fd = openat(tracefs_fd, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = read(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return n < 0 ? -errno : -EIO;
	text[n] = '\0';
	return atoi(text);
}

/* A perf event on the tracepoint. */
static int tracepoint_open(int id)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_TRACEPOINT,
		.size = sizeof(attr),
		.config = (uint64_t)id,
		.sample_period = 1,
		.wakeup_events = 1,
	};
	/* The CPU is a formality: a program on a tracepoint runs wherever the tracepoint is hit. */
	long fd = syscall(SYS_perf_event_open, &attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : (int)fd;
}

int tracepoint_attach(int tracefs_fd, const char *category, const char *name,
	struct bpf_program *prog, struct bpf_link **ret)
{
	int id = tracepoint_id(tracefs_fd, category, name), fd;

	if (id < 0)
		return id;
	fd = tracepoint_open(id);
	if (fd < 0)
		return fd;
	*ret = bpf_program__attach_perf_event(prog, fd); /* the link owns fd */
	if (!*ret) {
		int error = -errno;

		close(fd);
		return error;
	}
	return 0;
}

/* The kernel promises this wait for one thing only: when a map inside a map is replaced, programs
 * that still use the old one have ended before the call returns. */
int bpf_programs_wait(void)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts);
	_cleanup_close_ int inner = bpf_map_create(
		BPF_MAP_TYPE_ARRAY, "ntrace_wait", sizeof(uint32_t), sizeof(uint32_t), 1, NULL);
	_cleanup_close_ int outer = -1;
	uint32_t zero = 0;

	if (inner < 0)
		return inner;
	opts.inner_map_fd = (uint32_t)inner;
	outer = bpf_map_create(BPF_MAP_TYPE_ARRAY_OF_MAPS, "ntrace_wait", sizeof(uint32_t),
		sizeof(uint32_t), 1, &opts);
	return outer < 0 ? outer : bpf_map_update_elem(outer, &zero, &inner, BPF_ANY);
}

/* ---- cost ---------------------------------------------------------------------------------- */

void bpf_cost_add(struct bpf_cost *sum, const struct rec_hook_cost *program)
{
	unsigned i = 0;

	while (i < sum->count &&
		memcmp(sum->programs[i].program, program->program, sizeof(program->program)) != 0)
		i++;
	if (i == BPF_COST_PROGRAMS)
		return;
	if (i == sum->count) {
		sum->programs[sum->count++] = *program;
		return;
	}
	sum->programs[i].runs += program->runs;
	sum->programs[i].run_ns += program->run_ns;
}

void bpf_cost_of_programs(const struct bpf_object *object, struct bpf_cost *sum)
{
	struct bpf_program *prog;

	bpf_object__for_each_program(prog, object)
	{
		struct bpf_prog_info info = {0};
		uint32_t size = sizeof(info);
		int fd = bpf_program__fd(prog);

		if (fd < 0 || bpf_obj_get_info_by_fd(fd, &info, &size) < 0)
			continue;
		struct rec_hook_cost row = {.runs = info.run_cnt, .run_ns = info.run_time_ns};

		snprintf(row.program, sizeof(row.program), "%s", bpf_program__name(prog));
		bpf_cost_add(sum, &row);
	}
}

void bpf_cost_of_map(int map_fd, struct bpf_cost *sum)
{
	unsigned long long bytes = 0;
	char path[64], line[128];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", map_fd);
	f = map_fd >= 0 ? fopen(path, "re") : NULL;
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "memlock: %llu", &bytes) == 1)
			break;
	if (f)
		fclose(f);
	sum->map_bytes += bytes;
}

/* ---- skipped -------------------------------------------------------------------------------- */

/* What the kernel tells of a link that is a kprobe, in words of 8 bytes: headers older than 6.7 do not have all of
 * it. */
enum { KPROBE_MISSED = 6 };

bool bpf_kernel_is(int major, int minor)
{
	int has_major = 0, has_minor = 0;
	struct utsname u;

	uname(&u);
	if (sscanf(u.release, "%d.%d", &has_major, &has_minor) != 2)
		return false;
	return has_major > major || (has_major == major && has_minor >= minor);
}

bool bpf_counts_missed(void)
{
	return bpf_kernel_is(6, 7);
}

uint64_t bpf_missed_of_programs(const struct bpf_object *object)
{
	struct bpf_program *prog;
	uint64_t missed = 0;

	bpf_object__for_each_program(prog, object)
	{
		struct bpf_prog_info info = {0};
		uint32_t size = sizeof(info);
		int fd = bpf_program__fd(prog);

		if (fd >= 0 && bpf_obj_get_info_by_fd(fd, &info, &size) == 0)
			missed += info.recursion_misses;
	}
	return missed;
}

uint64_t bpf_missed_of_kprobe(const struct bpf_link *link)
{
	uint64_t info[KPROBE_MISSED + 1] = {0};
	uint32_t size = sizeof(info);

	if (!bpf_counts_missed() || bpf_obj_get_info_by_fd(bpf_link__fd(link), info, &size) < 0)
		return 0;
	return info[KPROBE_MISSED];
}

/* ---- mapped memory ------------------------------------------------------------------------ */

static size_t page_size(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

void *bpf_array_map(int map_fd, uint32_t entries, uint32_t value_size, size_t *ret_size)
{
	size_t size = (size_t)entries * ((value_size + 7u) & ~7u);
	void *p;

	size = (size + page_size() - 1) & ~(page_size() - 1);
	p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, map_fd, 0);
	if (p == MAP_FAILED)
		return NULL;
	*ret_size = size;
	return p;
}

int bpf_ring_open(struct bpf_ring *r, int map_fd, size_t size)
{
	size_t page = page_size();
	void *c, *p;

	c = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, map_fd, 0);
	if (c == MAP_FAILED)
		return -errno;
	p = mmap(NULL, page + 2 * size, PROT_READ, MAP_SHARED, map_fd, (off_t)page);
	if (p == MAP_FAILED) {
		int error = -errno;

		munmap(c, page);
		return error;
	}
	*r = (struct bpf_ring){
		.consumer = c, .producer = p, .data = (const uint8_t *)p + page, .size = size};
	r->pos = __atomic_load_n(r->consumer, __ATOMIC_ACQUIRE);
	return 0;
}

void bpf_ring_close(struct bpf_ring *r)
{
	if (!r->consumer)
		return;
	munmap(r->consumer, page_size());
	munmap((void *)r->producer, page_size() + 2 * r->size);
	*r = (struct bpf_ring){0};
}

uint64_t bpf_ring_end(const struct bpf_ring *r)
{
	return __atomic_load_n(r->producer, __ATOMIC_ACQUIRE);
}

bool bpf_ring_next(struct bpf_ring *r, uint64_t end, const void **ret_record, size_t *ret_size)
{
	while (r->pos < end) {
		const uint8_t *at = r->data + (r->pos & (r->size - 1));
		uint32_t head = __atomic_load_n((const uint32_t *)at, __ATOMIC_ACQUIRE);
		uint32_t length = head & ~(BPF_RINGBUF_BUSY_BIT | BPF_RINGBUF_DISCARD_BIT);

		if (head & BPF_RINGBUF_BUSY_BIT)
			return false;
		r->pos += (length + BPF_RINGBUF_HDR_SZ + 7u) & ~7u;
		if (head & BPF_RINGBUF_DISCARD_BIT)
			continue;
		*ret_record = at + BPF_RINGBUF_HDR_SZ;
		*ret_size = length;
		return true;
	}
	return false;
}

uint64_t bpf_ring_unread(const struct bpf_ring *r)
{
	uint64_t end = bpf_ring_end(r), n = 0;

	for (uint64_t pos = r->pos; pos < end;) {
		const void *at = r->data + (pos & (r->size - 1));
		uint32_t head = __atomic_load_n((const uint32_t *)at, __ATOMIC_ACQUIRE);
		uint32_t length = head & ~(BPF_RINGBUF_BUSY_BIT | BPF_RINGBUF_DISCARD_BIT);

		n += !(head & BPF_RINGBUF_DISCARD_BIT);
		pos += (length + BPF_RINGBUF_HDR_SZ + 7u) & ~7u;
	}
	return n;
}

void bpf_ring_release(struct bpf_ring *r)
{
	__atomic_store_n(r->consumer, r->pos, __ATOMIC_RELEASE);
}
