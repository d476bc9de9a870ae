/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mapped.c - see mapped.h.
 */
#include "runtime/base/mapped.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>

int mapped_open(struct mapped *m, int fd)
{
	struct stat st;
	void *p;

	*m = (struct mapped){0};
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -ESPIPE;
	if (st.st_size == 0)
		return 0;
	p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (p == MAP_FAILED)
		return -errno;
	*m = (struct mapped){p, (size_t)st.st_size};
	return 0;
}

void mapped_close(struct mapped *m)
{
	if (m->data)
		munmap((void *)(uintptr_t)m->data, m->size);
	*m = (struct mapped){0};
}
