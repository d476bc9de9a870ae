/* SPDX-License-Identifier: Apache-2.0 */
/*
 * control.c - the control memfd, as its owner writes it.
 *
 * Memory is allocated with fallocate, so that a full memory limit is an error here and not a
 * SIGBUS later, and mapped with MAP_POPULATE, so that the first lap of a ring costs what the others do.
 * A limit of file sizes (RLIMIT_FSIZE) counts for memfds as well, and its signal would end the program.
 *
 * What can fail for lack of room is not tried again: each try takes pages from others before it gives up.
 */
#include "runtime/trace/control.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/base/quiet_signal.h"

#define BUSY_MS 1 /* between looks, while events come into a ring that can grow */
#define IDLE_MS 10
#define MANY_EVENTS 1000u /* to know their rate by */
#define MANY_NS 10000u	  /* per event; with fewer a lane of one's own saves nothing */
#define RATE_NS 10000000u /* over which the rate is measured at least when they are not so many */
#define SAMPLE 64u	  /* newest records that are looked at */
#define SAMPLE_SHARE 8u	  /* of them, by one thread: it gets a lane */

/* ---- the file ----------------------------------------------------------------------------- */

static uint32_t epoch_of(const struct ring_writer *w)
{
	return atomic_load(&w->epoch);
}

static int allocate(int fd, uint64_t offset, uint64_t bytes)
{
	struct quiet_signal limit;
	int rc;

	quiet_signal_begin(&limit, SIGXFSZ);
	rc = fallocate(fd, 0, (off_t)offset, (off_t)bytes) < 0 ? -errno : 0;
	quiet_signal_end(&limit, rc == -EFBIG);
	return rc;
}

/* Grows the file by `bytes` and maps the new part.  NULL with *ret_rc set on failure. */
static void *grow(struct control *c, uint64_t bytes, int *ret_rc)
{
	void *p;

	if (!kept_fd_valid(&c->file)) {
		*ret_rc = -EBADF;
		return NULL;
	}
	*ret_rc = allocate(c->file.fd, c->file_bytes, bytes);
	if (*ret_rc < 0)
		return NULL;
	p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, c->file.fd,
		(off_t)c->file_bytes);
	if (p == MAP_FAILED) {
		*ret_rc = -errno;
		return NULL;
	}
	c->file_bytes += bytes;
	return p;
}

/* Nobody else may open it to write, or add a seal that would end its growth. */
static int protect(int fd)
{
	if (fchmod(fd, 0600) < 0 || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_SEAL) < 0)
		return -errno;
	return 0;
}

int control_create(struct control *c)
{
	int fd, rc;

	memset(c, 0, sizeof(*c));
	c->file.fd = -1;
	fd = memfd_create(CTL_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return -errno;
	rc = kept_fd_adopt(&c->file, fd);
	if (rc < 0)
		return rc;
	rc = protect(c->file.fd);
	if (rc == 0)
		c->ctl = grow(c, CTL_PAGE_BYTES, &rc);
	if (rc == 0)
		c->names = grow(c, CTL_NAMES_BYTES, &rc);
	if (rc < 0) {
		control_destroy(c);
		return rc;
	}
	c->ctl->version = CTL_VERSION;
	c->ctl->pid = (uint32_t)getpid();
	c->ctl->names_offset = CTL_PAGE_BYTES;
	c->ctl->magic = CTL_MAGIC;
	return 0;
}

static void ring_unmap(const struct ring_writer *w)
{
	for (uint32_t e = 1; e < RING_SEGMENTS; e++)
		if (w->slots[e])
			(void)munmap(w->slots[e], ring_segment_bytes(w->capacity, e));
	(void)munmap(w->head, ring_bytes(w->capacity));
}

void control_destroy(struct control *c)
{
	for (uint32_t i = 0; i <= TRACE_MAX_NC; i++)
		for (uint32_t lane = 0; lane < CTL_MAX_LANES; lane++)
			if (c->writers[i][lane].head)
				ring_unmap(&c->writers[i][lane]);
	if (c->names)
		(void)munmap(c->names, CTL_NAMES_BYTES);
	if (c->ctl)
		(void)munmap(c->ctl, CTL_PAGE_BYTES);
	kept_fd_close(&c->file);
	memset(c, 0, sizeof(*c));
	c->file.fd = -1;
}

int control_open_reading(const struct control *c)
{
	char path[48]; /* not by the main thread, which may have ended */
	int fd;

	if (!kept_fd_valid(&c->file))
		return -EBADF;
	snprintf(path, sizeof(path), "/proc/thread-self/fd/%d", c->file.fd);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* ---- rings ---------------------------------------------------------------------------------- */

static int add_lane(struct control *c, uint32_t index, uint32_t lane, uint32_t capacity)
{
	struct ring_writer *w = &c->writers[index][lane];
	struct ctl_ring *entry = &c->ctl->rings[c->ring_count];
	uint64_t offset = c->file_bytes;
	int rc;

	if (w->head)
		return 0;
	w->head = grow(c, ring_bytes(capacity), &rc);
	if (rc < 0)
		return rc;
	w->slots[0] = (struct ring_slot *)(w->head + 1);
	w->capacity = capacity;
	w->lane_bits = (uint64_t)lane << TRACK_LANE_SHIFT;
	w->core_bits = (uint64_t)index << TRACK_CORE_SHIFT;
	c->records[index] += capacity;

	entry->nc_idx = index == TRACE_MAX_NC ? TRACE_NC_UNKNOWN : index;
	entry->lane = lane;
	entry->capacity = capacity;
	atomic_store_explicit(&entry->offset, offset, memory_order_release);
	atomic_store_explicit(&c->ctl->ring_count, ++c->ring_count, memory_order_release);
	return 0;
}

int control_add_ring(struct control *c, uint32_t index, uint32_t capacity)
{
	int rc = 0;

	if (!atomic_load(&c->ready[index])) {
		rc = add_lane(c, index, 0, capacity);
		if (rc == 0)
			atomic_store_explicit(&c->ready[index], 1, memory_order_release);
	}
	return rc;
}

static bool lives(uint32_t tid)
{
	return syscall(SYS_tgkill, getpid(), tid, 0) == 0 || errno != ESRCH;
}

/* What a lane of one thread begins with: all of them take no more than the first. */
static uint32_t lane_capacity(const struct control *c, uint32_t index)
{
	uint32_t first = c->writers[index][0].capacity, part = first / CTL_MAX_LANES;
	uint32_t least = first < RING_MIN_CAPACITY ? first : RING_MIN_CAPACITY;

	return part > least ? part : least;
}

int control_own_lane(struct control *c, uint32_t index, uint32_t tid)
{
	uint32_t lane = control_lane(tid);
	uint64_t owner = atomic_load(&c->owner[index][lane]);
	int rc;

	/* Readers tell events of no core by the core alone. */
	if (index == TRACE_MAX_NC)
		return -ERANGE;
	if (owner && ((uint32_t)owner == tid || lives((uint32_t)owner)))
		return (uint32_t)owner == tid ? 0 : -EBUSY;
	rc = add_lane(c, index, lane, lane_capacity(c, index));
	/* Unless a new thread with the old one's id has just taken what that one was offered. */
	if (rc == 0 && !atomic_compare_exchange_strong(&c->owner[index][lane], &owner, tid))
		rc = -EBUSY;
	return rc;
}

int control_grow_ring(struct control *c, uint32_t index, uint32_t lane)
{
	struct ring_writer *w = &c->writers[index][lane];
	struct control_watch *watch = &c->watch[index][lane];
	uint32_t epoch = epoch_of(w) + 1;
	int rc = 0;

	if (epoch >= RING_SEGMENTS)
		return -ERANGE;
	if (atomic_load(&w->next_epoch))
		return -EBUSY; /* the thread has not emitted since */
	if (!watch->segment) {
		watch->segment_offset = c->file_bytes;
		watch->segment = grow(c, ring_segment_bytes(w->capacity, epoch), &rc);
		if (rc == 0)
			c->records[index] += (uint64_t)w->capacity << (epoch - 1);
	}
	if (rc == 0 && lane)
		ring_double_later(w, watch->segment, watch->segment_offset);
	else if (rc == 0)
		rc = ring_double(w, watch->segment, watch->segment_offset);
	if (rc == 0)
		watch->segment = NULL;
	return rc;
}

/* Gives those threads a lane that wrote a good part of the newest records. */
static void spread(struct control *c, uint32_t index)
{
	uint32_t tids[SAMPLE / SAMPLE_SHARE] = {0}, counts[SAMPLE / SAMPLE_SHARE] = {0}, known = 0;

	for (uint32_t n = 1; n <= SAMPLE; n++) {
		uint32_t tid = ring_recent_thread(&c->writers[index][0], n), i = 0;

		while (i < known && tids[i] != tid)
			i++;
		if (i == known && known < SAMPLE / SAMPLE_SHARE) {
			tids[known] = tid;
			counts[known++] = 0;
		}
		if (tid && i < known && ++counts[i] == SAMPLE_SHARE)
			(void)control_own_lane(c, index, tid); /* no: it stays where it is */
	}
}

/* Do so many events come that a lane of one's own saves something? */
static bool are_many(struct control_watch *watch, uint64_t head, uint64_t now_ns)
{
	uint64_t came = head - watch->rate_head, ns = now_ns - watch->rate_ns;
	bool many = came >= MANY_EVENTS && came >= ns / MANY_NS;

	if (many || ns >= RATE_NS) {
		watch->rate_head = head;
		watch->rate_ns = now_ns;
	}
	return many;
}

/* One ring.  Returns ms until the next look. */
static int tend_ring(
	struct control *c, uint32_t index, uint32_t lane, uint32_t wish, uint64_t now_ns)
{
	struct ring_writer *w = &c->writers[index][lane];
	struct control_watch *watch = &c->watch[index][lane];
	uint64_t head = atomic_load(&w->head->head) & RING_POS_MASK;
	uint64_t came = head - watch->head, holds = (uint64_t)w->capacity << epoch_of(w);
	bool can_grow = holds < wish && epoch_of(w) + 1 < RING_SEGMENTS && !c->grow_error &&
			(watch->segment || c->records[index] + holds <= 2 * (uint64_t)wish);

	watch->head = head;
	if (can_grow && head >= holds / 2) {
		int rc = control_grow_ring(c, index, lane);

		if (rc == 0)
			can_grow = 2 * holds < wish;
		else if (rc != -EBUSY)
			c->grow_error = rc;
	}
	if (lane == 0 && index != TRACE_MAX_NC && are_many(watch, head, now_ns))
		spread(c, index);
	return can_grow && came ? BUSY_MS : IDLE_MS;
}

int control_tend(struct control *c, const uint32_t wishes[TRACE_MAX_NC + 1], uint64_t now_ns)
{
	int next = IDLE_MS;

	for (uint32_t i = 0; i <= TRACE_MAX_NC; i++)
		for (uint32_t lane = 0; lane < CTL_MAX_LANES && c->writers[i][0].head; lane++) {
			int ms = next;

			if (c->writers[i][lane].head)
				ms = tend_ring(c, i, lane, wishes[i], now_ns);
			if (ms < next)
				next = ms;
		}
	return next;
}

/* ---- the agent ------------------------------------------------------------------------------ */

int control_agent_lives(const struct control *c)
{
	struct flock lock = {.l_type = F_WRLCK, .l_start = CTL_AGENT_BYTE, .l_len = 1};

	if (!kept_fd_valid(&c->file))
		return -EBADF;
	if (fcntl(c->file.fd, F_GETLK, &lock) < 0)
		return -errno;
	return lock.l_type != F_UNLCK;
}

/* The link of /proc/self/map_files that covers an address.  Neighbours of one file are one mapping. */
static int open_mapping(const void *address)
{
	uintptr_t at = (uintptr_t)address, start, end;
	DIR *dir = opendir("/proc/self/map_files");
	int fd = -EBADF;

	for (struct dirent *e; dir && fd < 0 && (e = readdir(dir));)
		if (sscanf(e->d_name, "%" SCNxPTR "-%" SCNxPTR, &start, &end) == 2 && start <= at &&
			at < end)
			fd = openat(dirfd(dir), e->d_name, O_RDWR | O_CLOEXEC);
	if (dir)
		(void)closedir(dir);
	return fd;
}

int control_reopen(struct control *c)
{
	struct kept_fd again, was = c->file;
	int fd, rc;

	if (kept_fd_valid(&c->file))
		return 0;
	fd = open_mapping(c->ctl);
	rc = fd < 0 ? -EBADF : kept_fd_adopt(&again, fd);
	if (rc < 0)
		return -EBADF;
	if (again.ino != was.ino || again.dev_major != was.dev_major ||
		again.dev_minor != was.dev_minor) {
		kept_fd_close(&again);
		return -EBADF;
	}
	c->file = again;
	if (c->grow_error == -EBADF)
		c->grow_error = 0;
	return 0;
}

/* ---- names ---------------------------------------------------------------------------------- */

int control_add_name(struct control *c, uint64_t id, const char *text, uint32_t len)
{
	uint64_t used = c->names_used;
	uint64_t whole = sizeof(struct ctl_name) + ((uint64_t)len + 7) / 8 * 8;
	struct ctl_name head = {.id = id, .len = len};

	if (whole > CTL_NAMES_BYTES - used) {
		atomic_fetch_add(&c->ctl->names_lost, 1);
		return -ENOSPC;
	}
	memcpy(c->names + used, &head, sizeof(head));
	memcpy(c->names + used + sizeof(head), text, len);
	c->names_used += whole;
	atomic_store_explicit(&c->ctl->names_used, c->names_used, memory_order_release);
	return 0;
}
