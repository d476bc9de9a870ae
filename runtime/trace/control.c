/* SPDX-License-Identifier: Apache-2.0 */
/*
 * control.c - the control memfd, as its owner writes it.
 *
 * Memory is allocated with fallocate, so that a full memory limit is an error here and not a
 * SIGBUS later, and mapped with MAP_POPULATE, so that the first lap of a ring costs what the others do.
 */
#include "runtime/trace/control.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- the file ----------------------------------------------------------------------------- */

/* Grows the file by `bytes` and maps the new part.  NULL with *ret_rc set on failure. */
static void *grow(struct control *c, uint64_t bytes, int *ret_rc)
{
	void *p;

	if (!kept_fd_valid(&c->file)) {
		*ret_rc = -EBADF;
		return NULL;
	}
	if (fallocate(c->file.fd, 0, (off_t)c->file_bytes, (off_t)bytes) < 0) {
		*ret_rc = -errno;
		return NULL;
	}
	p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, c->file.fd,
		(off_t)c->file_bytes);
	if (p == MAP_FAILED) {
		*ret_rc = -errno;
		return NULL;
	}
	c->file_bytes += bytes;
	*ret_rc = 0;
	return p;
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
	if (fcntl(c->file.fd, F_ADD_SEALS, F_SEAL_SHRINK) < 0)
		rc = -errno;
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

void control_destroy(struct control *c)
{
	for (uint32_t i = 0; i <= TRACE_MAX_NC; i++)
		if (atomic_load(&c->ready[i]))
			(void)munmap(c->writers[i].head, ring_bytes(c->writers[i].capacity));
	if (c->names)
		(void)munmap(c->names, CTL_NAMES_BYTES);
	if (c->ctl)
		(void)munmap(c->ctl, CTL_PAGE_BYTES);
	kept_fd_close(&c->file);
	memset(c, 0, sizeof(*c));
	c->file.fd = -1;
}

int control_add_ring(struct control *c, uint32_t index, uint32_t capacity)
{
	struct ring_writer *w = &c->writers[index];
	uint64_t offset = c->file_bytes;
	struct ctl_ring *entry;
	uint32_t n;
	int rc;

	if (atomic_load(&c->ready[index]))
		return 0;
	w->head = grow(c, ring_bytes(capacity), &rc);
	if (rc < 0)
		return rc;
	w->slots = (struct ring_slot *)(w->head + 1);
	w->capacity = capacity;
	w->track_bits = (uint64_t)index << 50;

	n = atomic_load(&c->ctl->ring_count);
	entry = &c->ctl->rings[n];
	entry->nc_idx = index == TRACE_MAX_NC ? TRACE_NC_UNKNOWN : index;
	entry->lane = 0;
	entry->capacity = capacity;
	atomic_store_explicit(&entry->offset, offset, memory_order_release);
	atomic_store_explicit(&c->ctl->ring_count, n + 1, memory_order_release);
	atomic_store_explicit(&c->ready[index], 1, memory_order_release);
	return 0;
}

int control_add_name(struct control *c, uint64_t id, const char *text, uint32_t len)
{
	uint64_t used = atomic_load(&c->ctl->names_used);
	uint64_t whole = sizeof(struct ctl_name) + ((uint64_t)len + 7) / 8 * 8;
	struct ctl_name head = {.id = id, .len = len};

	if (whole > CTL_NAMES_BYTES - used) {
		atomic_fetch_add(&c->ctl->names_lost, 1);
		return -ENOSPC;
	}
	memcpy(c->names + used, &head, sizeof(head));
	memcpy(c->names + used + sizeof(head), text, len);
	atomic_store_explicit(&c->ctl->names_used, used + whole, memory_order_release);
	return 0;
}
