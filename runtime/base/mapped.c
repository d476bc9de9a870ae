/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mapped.c - see mapped.h.
 *
 * A page behind the end of the file raises SIGBUS in whoever reads it.  The handler puts zeros there, to the end of
 * the mapping, and the read goes on.  It finds the mapping in a list that only grows: a guard is never freed
 * but used again, so the handler needs no lock.
 */
#include "runtime/base/mapped.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct mapped_guard {
	_Atomic uintptr_t begin, end; /* end 0: free */
	_Atomic bool cut;
	struct mapped_guard *next;
};

static struct mapped_guard *_Atomic guards;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* who puts a guard there */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct sigaction before;
static uintptr_t page;

/* ---- the handler -------------------------------------------------------------------------- */

static struct mapped_guard *guard_of(uintptr_t at)
{
	struct mapped_guard *g = atomic_load(&guards);

	while (g && (at < atomic_load(&g->begin) || at >= atomic_load(&g->end)))
		g = g->next;
	return g;
}

static void on_bus_error(int number, siginfo_t *info, void *context)
{
	uintptr_t at = (uintptr_t)info->si_addr & ~(page - 1);
	struct mapped_guard *g = info->si_code > 0 ? guard_of(at) : NULL;
	int saved = errno;

	if (g && mmap((void *)at, atomic_load(&g->end) - at, PROT_READ,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED)
		atomic_store(&g->cut, true);
	else if (before.sa_flags & SA_SIGINFO)
		before.sa_sigaction(number, info, context);
	else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN)
		before.sa_handler(number);
	else if (sigaction(SIGBUS, &before, NULL) == 0 && info->si_code <= 0)
		(void)raise(number); /* a fault comes again by itself */
	errno = saved;
}

static void install(void)
{
	struct sigaction a = {.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO | SA_RESTART};

	page = (uintptr_t)sysconf(_SC_PAGESIZE);
	(void)sigaction(SIGBUS, NULL, &before);
	(void)sigaction(SIGBUS, &a, NULL);
}

/* ---- guards ------------------------------------------------------------------------------- */

static struct mapped_guard *guard_new(const void *memory, size_t size)
{
	uintptr_t begin = (uintptr_t)memory;
	struct mapped_guard *g;

	pthread_once(&once, install);
	pthread_mutex_lock(&lock);
	g = atomic_load(&guards);
	while (g && atomic_load(&g->end))
		g = g->next;
	if (!g) {
		g = calloc(1, sizeof(*g));
		if (g) {
			g->next = atomic_load(&guards);
			atomic_store(&guards, g);
		}
	}
	if (g) {
		atomic_store(&g->cut, false);
		atomic_store(&g->begin, begin);
		atomic_store(&g->end, (begin + size + page - 1) & ~(page - 1));
	}
	pthread_mutex_unlock(&lock);
	return g;
}

/* ---- mappings ----------------------------------------------------------------------------- */

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
	*m = (struct mapped){p, (size_t)st.st_size, guard_new(p, (size_t)st.st_size)};
	if (m->guard)
		return 0;
	mapped_close(m);
	return -ENOMEM;
}

void mapped_close(struct mapped *m)
{
	if (m->guard)
		atomic_store(&m->guard->end, 0);
	if (m->data)
		munmap((void *)(uintptr_t)m->data, m->size);
	*m = (struct mapped){0};
}

bool mapped_cut(const struct mapped *m)
{
	return m->guard && atomic_load(&m->guard->cut);
}
