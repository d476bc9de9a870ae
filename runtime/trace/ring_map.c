/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ring_map.c - the reader's mappings of another process's control file.
 *
 * The other process may be broken or hostile.  What it wrote is copied before it is looked at;
 * offsets, capacities and lengths must lie within the file as fstat measures it, and nothing may lie where
 * something else does.  In a program that reads its own events the descriptor may be closed by others, and the
 * number come to mean a file of theirs: it is a kept one.
 */
#include "runtime/trace/ring_reader_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static int file_size(const struct kept_fd *file, uint64_t *ret)
{
	struct stat st;

	if (!kept_fd_valid(file))
		return -EBADF;
	if (fstat(file->fd, &st) < 0)
		return -errno;
	*ret = (uint64_t)st.st_size;
	return 0;
}

static bool page_aligned(uint64_t offset)
{
	return offset % (uint64_t)sysconf(_SC_PAGESIZE) == 0;
}

static const void *map_part(int fd, uint64_t offset, uint64_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, (off_t)offset);

	return p == MAP_FAILED ? NULL : p;
}

/* ---- what lies where ---------------------------------------------------------------------- */

/*
 * They stand in order, in an array that is there from the start: a poll allocates nothing, for another thread may be
 * stopped with the allocator's lock in its hand.  To move the rest up costs nothing where the file grows at its end,
 * as a writer makes it, and a second in all at the very worst.
 */

/* The first place that ends behind this offset. */
static uint32_t place_find(const struct ctl_reader *r, uint64_t offset)
{
	uint32_t low = 0, high = r->place_count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (r->places[middle].end <= offset)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* 0; -EPROTO: something is there already. */
static int place_take(struct ctl_reader *r, uint64_t offset, uint64_t bytes)
{
	uint32_t at = place_find(r, offset);
	struct ring_place *place = &r->places[at];

	if (at < r->place_count && place->offset < offset + bytes)
		return -EPROTO;
	memmove(place + 1, place, (r->place_count++ - at) * sizeof(*place));
	*place = (struct ring_place){offset, offset + bytes};
	return 0;
}

/* One that was taken. */
static void place_give_back(struct ctl_reader *r, uint64_t offset)
{
	uint32_t at = place_find(r, offset);
	struct ring_place *place = &r->places[at];

	memmove(place, place + 1, (--r->place_count - at) * sizeof(*place));
}

/* ---- open and close ----------------------------------------------------------------------- */

static int check_control(struct ctl_reader *r, uint64_t size)
{
	uint64_t names;

	if (r->ctl->magic != CTL_MAGIC || r->ctl->version != CTL_VERSION)
		return -EPROTO;
	names = r->ctl->names_offset;
	if (names < CTL_PAGE_BYTES || !page_aligned(names) || names > size ||
		size - names < CTL_NAMES_BYTES)
		return -EPROTO;
	if (place_take(r, names, CTL_NAMES_BYTES) < 0)
		return -EPROTO;
	r->names = map_part(r->file.fd, names, CTL_NAMES_BYTES);
	return r->names ? 0 : -ENOMEM;
}

int ctl_reader_open(int fd, enum ctl_subscriber who, struct ctl_reader **ret_reader)
{
	int seals = fcntl(fd, F_GET_SEALS);
	struct ctl_reader *r;
	struct kept_fd file;
	uint64_t size = 0;
	int rc;

	if (seals < 0 || !(seals & F_SEAL_SHRINK))
		return -EPROTO;
	rc = kept_fd_learn(&file, fd);
	if (rc == 0)
		rc = file_size(&file, &size);
	if (rc < 0)
		return rc;
	if (size < CTL_PAGE_BYTES)
		return -EPROTO;
	r = calloc(1, sizeof(*r));
	if (!r)
		return -ENOMEM;
	r->file = file;
	r->who = who;
	r->ctl = map_part(fd, 0, CTL_PAGE_BYTES);
	rc = r->ctl ? check_control(r, size) : -ENOMEM;
	if (rc < 0) {
		r->file.fd = -1; /* stays the caller's */
		ctl_reader_close(r);
		return rc;
	}
	*ret_reader = r;
	return 0;
}

void ctl_reader_close(struct ctl_reader *r)
{
	if (!r)
		return;
	for (uint32_t i = 0; i < r->ring_count; i++) {
		const struct ring_view *v = &r->rings[i];

		(void)munmap((void *)(uintptr_t)v->head, v->map_bytes[0]);
		for (uint32_t e = 1; e < v->epochs; e++)
			(void)munmap((void *)(uintptr_t)v->slots[e], v->map_bytes[e]);
	}
	if (r->names)
		(void)munmap((void *)(uintptr_t)r->names, CTL_NAMES_BYTES);
	if (r->ctl)
		(void)munmap((void *)(uintptr_t)r->ctl, CTL_PAGE_BYTES);
	kept_fd_close(&r->file);
	free(r);
}

/* ---- rings ------------------------------------------------------------------ */

static bool has_ring(const struct ctl_reader *r, uint32_t nc, uint32_t lane)
{
	for (uint32_t i = 0; i < r->ring_count; i++)
		if (r->rings[i].nc_idx == nc && r->rings[i].lane == lane)
			return true;
	return false;
}

/* Maps a part of the file that belongs to nothing else yet. */
static int map_own(struct ctl_reader *r, uint64_t offset, uint64_t bytes, const void **ret)
{
	uint64_t size;
	int rc = file_size(&r->file, &size);

	if (rc < 0)
		return rc;
	if (!page_aligned(offset) || offset < CTL_PAGE_BYTES || offset > size ||
		size - offset < bytes)
		return -EPROTO;
	rc = place_take(r, offset, bytes);
	if (rc < 0)
		return rc;
	*ret = map_part(r->file.fd, offset, bytes);
	if (!*ret)
		place_give_back(r, offset);
	return *ret ? 0 : -ENOMEM;
}

static int ring_attach(struct ctl_reader *r, const struct ctl_ring *entry, uint64_t offset)
{
	struct ring_view *v = &r->rings[r->ring_count];
	uint32_t capacity = entry->capacity;
	uint32_t nc = entry->nc_idx, lane = entry->lane;
	const void *p;
	int rc;

	if (capacity < 2 || capacity > RING_MAX_CAPACITY || (capacity & (capacity - 1)) ||
		(nc >= TRACE_MAX_NC && nc != TRACE_NC_UNKNOWN) || lane >= CTL_MAX_LANES ||
		(nc == TRACE_NC_UNKNOWN && lane != 0) || has_ring(r, nc, lane))
		return -EPROTO;
	rc = map_own(r, offset, ring_bytes(capacity), &p);
	if (rc < 0)
		return rc;
	memset(v, 0, sizeof(*v));
	v->head = p;
	v->slots[0] = (const struct ring_slot *)(v->head + 1);
	v->offset[0] = offset;
	v->map_bytes[0] = ring_bytes(capacity);
	v->nc_idx = nc;
	v->lane = lane;
	v->capacity = capacity;
	v->epochs = 1;
	r->ring_count++;
	return 0;
}

int ring_map_epochs(struct ctl_reader *r, struct ring_view *v, uint64_t epoch, uint64_t pos)
{
	if (epoch >= RING_SEGMENTS || (uint64_t)v->capacity << epoch > RING_MAX_CAPACITY)
		return -EPROTO;
	while (v->epochs <= epoch) {
		uint32_t e = v->epochs;
		const struct ring_segment *at = &v->head->segments[e];
		uint64_t start = atomic_load_explicit(&at->start, memory_order_relaxed);
		uint64_t offset = atomic_load_explicit(&at->offset, memory_order_relaxed);
		const void *p;
		int rc;

		if (start > pos || start < v->start[e - 1])
			return -EPROTO;
		rc = map_own(r, offset, ring_segment_bytes(v->capacity, e), &p);
		if (rc < 0)
			return rc;
		v->slots[e] = p;
		v->offset[e] = offset;
		v->map_bytes[e] = ring_segment_bytes(v->capacity, e);
		v->start[e] = start;
		v->epochs = e + 1;
	}
	return 0;
}

void ring_map_release(const struct ring_view *v)
{
	(void)madvise((void *)(uintptr_t)v->head, v->map_bytes[0], MADV_DONTNEED);
	for (uint32_t e = 1; e < v->epochs; e++)
		(void)madvise((void *)(uintptr_t)v->slots[e], v->map_bytes[e], MADV_DONTNEED);
}

int ring_map_new(struct ctl_reader *r)
{
	uint32_t count = atomic_load_explicit(&r->ctl->ring_count, memory_order_acquire);

	if (count > CTL_MAX_RINGS)
		return -EPROTO;
	while (r->ring_count < count) {
		const struct ctl_ring *entry = &r->ctl->rings[r->ring_count];
		uint64_t offset = atomic_load_explicit(&entry->offset, memory_order_acquire);
		int rc;

		if (offset == 0)
			return 0;
		rc = ring_attach(r, entry, offset);
		if (rc < 0)
			return rc;
	}
	return 0;
}
