/* SPDX-License-Identifier: Apache-2.0 */
/* memory_table.c - the list of allocations and their sums; see memory_table.h. */
#include "runtime/exec/memory_table.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "runtime/device/cores.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* Under the lock: */
static struct memory_entry *entries;
static struct memory_core_sums cores[CORES_MAX];
static uint64_t process_usage[MEMORY_USAGE_COUNT], process_total;

static void grow(struct memory_sum *s, uint64_t size)
{
	s->now += size;
	if (s->now > s->peak)
		s->peak = s->now;
}

static struct memory_process_sums sums_of(enum memory_usage usage)
{
	return (struct memory_process_sums){process_usage[usage], process_total};
}

struct memory_process_sums memory_table_add(struct memory_entry *e)
{
	struct memory_process_sums sums;

	pthread_mutex_lock(&lock);
	e->next = entries;
	e->link = &entries;
	if (e->next)
		e->next->link = &e->next;
	entries = e;
	grow(&cores[e->nc].usage[e->usage], e->size);
	grow(&cores[e->nc].total, e->size);
	process_usage[e->usage] += e->size;
	process_total += e->size;
	sums = sums_of(e->usage);
	pthread_mutex_unlock(&lock);
	return sums;
}

struct memory_process_sums memory_table_remove(struct memory_entry *e)
{
	struct memory_process_sums sums;

	pthread_mutex_lock(&lock);
	*e->link = e->next;
	if (e->next)
		e->next->link = e->link;
	cores[e->nc].usage[e->usage].now -= e->size;
	cores[e->nc].total.now -= e->size;
	process_usage[e->usage] -= e->size;
	process_total -= e->size;
	sums = sums_of(e->usage);
	pthread_mutex_unlock(&lock);
	return sums;
}

struct memory_process_sums memory_table_sums(enum memory_usage usage)
{
	struct memory_process_sums sums;

	pthread_mutex_lock(&lock);
	sums = sums_of(usage);
	pthread_mutex_unlock(&lock);
	return sums;
}

void memory_table_name(struct memory_entry *e, const char *name)
{
	pthread_mutex_lock(&lock);
	(void)snprintf(e->name, sizeof(e->name), "%s", name ? name : "");
	pthread_mutex_unlock(&lock);
}

void memory_table_core(uint32_t nc, struct memory_core_sums *ret)
{
	memset(ret, 0, sizeof(*ret));
	if (nc >= CORES_MAX)
		return;
	pthread_mutex_lock(&lock);
	*ret = cores[nc];
	pthread_mutex_unlock(&lock);
}

static void reset_peaks(struct memory_core_sums *c)
{
	for (uint32_t u = 0; u < MEMORY_USAGE_COUNT; u++)
		c->usage[u].peak = c->usage[u].now;
	c->total.peak = c->total.now;
}

void memory_table_reset_peaks(void)
{
	pthread_mutex_lock(&lock);
	for (uint32_t nc = 0; nc < CORES_MAX; nc++)
		reset_peaks(&cores[nc]);
	pthread_mutex_unlock(&lock);
}

void memory_table_each(uint32_t device, uint32_t hbm,
	void (*fn)(void *arg, const struct memory_entry *e), void *arg)
{
	pthread_mutex_lock(&lock);
	for (const struct memory_entry *e = entries; e; e = e->next)
		if (e->device == device && e->hbm == hbm)
			fn(arg, e);
	pthread_mutex_unlock(&lock);
}
