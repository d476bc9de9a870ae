/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/*
 * bpf_host.c - maps, ring buffer, memory and clock for BPF programs compiled for the host.
 *
 * A hash is a list: the tests have few entries, and each one freed is one that the sanitizers watch.  A
 * ring counts as the kernel's does: 8 bytes of head per record, all rounded up to 8, one byte of the ring
 * never used, and space comes back in the order in which it was given.
 */
#include "tests/shim/bpf/bpf_host.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAPS_MAX 16
#define RING_HEAD 8u

struct bpf_host bpf_host;

struct entry {
	struct entry *next;
	void *key, *value;
};

enum fate { FATE_RESERVED, FATE_SUBMITTED, FATE_DISCARDED };

struct record {
	struct record *next;
	struct map *ring;
	void *bytes;
	unsigned long size;
	enum fate fate;
};

struct map {
	char name[32];
	enum bpf_map_type type;
	uint32_t key_size, value_size, max_entries;
	struct entry *entries; /* of a hash, newest first */
	unsigned count;
	uint8_t *values;		/* of an array */
	struct record *oldest, *newest; /* of a ring: not yet taken */
	struct record *taken;		/* what the reader looks at */
	unsigned long used;
};

static struct map maps[MAPS_MAX];
static unsigned map_count;

struct range {
	unsigned long long from;
	const void *bytes;
	unsigned long size;
};

static struct range user[32], faults[8];
static unsigned user_count, fault_count;

static void **allocated;
static unsigned allocated_count;

static struct {
	char map[32];
	enum bpf_host_op op;
	int error;
	unsigned nth, times;
} failing;

static void die(const char *what, const char *name)
{
	fprintf(stderr, "bpf_host: %s: %s\n", what, name);
	abort();
}

static void *zeroed(size_t size)
{
	void *p = calloc(1, size ? size : 1);

	if (!p)
		die("out of memory", "calloc");
	return p;
}

void *bpf_host_alloc(unsigned long size)
{
	allocated = realloc(allocated, (allocated_count + 1) * sizeof(*allocated));
	if (!allocated)
		die("out of memory", "realloc");
	return allocated[allocated_count++] = zeroed(size);
}

/* ---- maps --------------------------------------------------------------------------------- */

static struct map *map_find(const char *name)
{
	for (unsigned i = 0; i < map_count; i++)
		if (strcmp(maps[i].name, name) == 0)
			return &maps[i];
	return NULL;
}

/* The programs' side says "&name". */
static struct map *map_named(const char *name)
{
	struct map *m = map_find(name + (*name == '&'));

	if (!m)
		die("no such map", name);
	return m;
}

static bool is_hash(const struct map *m)
{
	return m->type == BPF_MAP_TYPE_HASH || m->type == BPF_MAP_TYPE_LRU_HASH;
}

/* Of the current task, by its number. */
static bool is_storage(const struct map *m)
{
	return m->type == BPF_MAP_TYPE_TASK_STORAGE;
}

static bool is_array(const struct map *m)
{
	return m->type == BPF_MAP_TYPE_ARRAY;
}

static int map_add(const struct bpf_map *of)
{
	struct map *m = map_find(bpf_map__name(of));
	struct map new = {
		.type = (enum bpf_map_type)bpf_map__type(of),
		.key_size = bpf_map__key_size(of),
		.value_size = bpf_map__value_size(of),
		.max_entries = bpf_map__max_entries(of),
	};

	if (bpf_map__is_internal(of))
		return 0; /* global variables: those of the host's object are used */
	if (m)
		return m->type == new.type && m->key_size == new.key_size &&
				       m->value_size == new.value_size
			       ? 0
			       : -EINVAL;
	if (map_count == MAPS_MAX)
		return -ENOSPC;
	if (!is_hash(&new) && !is_array(&new) && !is_storage(&new) &&
		new.type != BPF_MAP_TYPE_RINGBUF)
		return -EOPNOTSUPP;
	snprintf(new.name, sizeof(new.name), "%s", bpf_map__name(of));
	maps[map_count++] = new;
	return 0;
}

int bpf_host_add(const void *elf, unsigned long size)
{
	struct bpf_object *object = bpf_object__open_mem(elf, size, NULL);
	struct bpf_map *m;
	int r = 0;

	if (!object)
		return -errno;
	bpf_object__for_each_map(m, object) if (!r) r = map_add(m);
	bpf_object__close(object);
	return r;
}

int bpf_host_size(const char *name, unsigned max_entries)
{
	struct map *m = map_find(name);

	if (!m)
		return -ENOENT;
	if (m->values || m->entries || m->used)
		return -EBUSY;
	m->max_entries = max_entries;
	return 0;
}

/* Whether the test wants this operation to fail. */
static bool fails(const struct map *m, enum bpf_host_op op)
{
	if (!failing.times || failing.op != op || strcmp(failing.map, m->name) != 0)
		return false;
	if (failing.nth > 1) {
		failing.nth--;
		return false;
	}
	failing.times--;
	return true;
}

void bpf_host_fail(const char *map, enum bpf_host_op op, int error, unsigned nth, unsigned times)
{
	snprintf(failing.map, sizeof(failing.map), "%s", map_named(map)->name);
	failing.op = op;
	failing.error = error;
	failing.nth = nth;
	failing.times = times;
}

static struct entry **hash_slot(struct map *m, const void *key)
{
	struct entry **at = &m->entries;

	while (*at && memcmp((*at)->key, key, m->key_size) != 0)
		at = &(*at)->next;
	return at;
}

static void *array_slot(struct map *m, const void *key)
{
	uint32_t i;

	memcpy(&i, key, sizeof(i));
	if (i >= m->max_entries)
		return NULL;
	if (!m->values)
		m->values = zeroed((size_t)m->max_entries * m->value_size);
	return m->values + (size_t)i * m->value_size;
}

static void *lookup(struct map *m, const void *key)
{
	struct entry *e;

	if (is_array(m))
		return array_slot(m, key);
	if (!is_hash(m))
		die("a look-up in what is no table", m->name);
	e = *hash_slot(m, key);
	return e ? e->value : NULL;
}

static void *copy_of(const void *bytes, size_t size)
{
	return memcpy(zeroed(size), bytes, size);
}

static int array_update(struct map *m, const void *key, const void *value, unsigned long long flags)
{
	void *slot = array_slot(m, key);

	if (!slot)
		return -E2BIG;
	if (flags == BPF_NOEXIST)
		return -EEXIST;
	memcpy(slot, value, m->value_size);
	return 0;
}

static void free_entry(struct entry *e)
{
	free(e->key);
	free(e->value);
	free(e);
}

static int delete (struct map *m, const void *key)
{
	struct entry **at, *e;

	if (!is_hash(m))
		return -EINVAL;
	at = hash_slot(m, key);
	e = *at;
	if (!e)
		return -ENOENT;
	*at = e->next;
	m->count--;
	free_entry(e);
	return 0;
}

static int update(struct map *m, const void *key, const void *value, unsigned long long flags)
{
	struct entry **at;

	if (flags > BPF_EXIST)
		return -EINVAL;
	if (is_array(m))
		return array_update(m, key, value, flags);
	if (!is_hash(m))
		die("an update of what is no table", m->name);
	at = hash_slot(m, key);
	if (*at) {
		if (flags == BPF_NOEXIST)
			return -EEXIST;
		/* The kernel puts a new element in; who holds the old one holds what is gone. */
		free((*at)->value);
		(*at)->value = copy_of(value, m->value_size);
		return 0;
	}
	if (flags == BPF_EXIST)
		return -ENOENT;
	if (m->count == m->max_entries) {
		if (m->type != BPF_MAP_TYPE_LRU_HASH)
			return -E2BIG;
		/* About the oldest goes: here the one that was put in first. */
		(void)delete (m, m->entries->key);
		at = hash_slot(m, key);
	}
	m->count++;
	*at = zeroed(sizeof(**at));
	(*at)->key = copy_of(key, m->key_size);
	(*at)->value = copy_of(value, m->value_size);
	return 0;
}

int bpf_host_update(const char *map, const void *key, const void *value, unsigned long long flags)
{
	return update(map_named(map), key, value, flags);
}

int bpf_host_delete(const char *map, const void *key)
{
	return delete (map_named(map), key);
}

void *bpf_host_lookup(const char *map, const void *key)
{
	return lookup(map_named(map), key);
}

unsigned bpf_host_count(const char *map)
{
	return map_named(map)->count;
}

void *bpf_host_map_lookup(const char *map, const void *key)
{
	struct map *m = map_named(map);

	return fails(m, BPF_HOST_LOOKUP) ? NULL : lookup(m, key);
}

/* `make` 1: and make it, all zero. */
void *bpf_host_task_storage(const char *map, void *task, unsigned long long make)
{
	struct map *m = map_named(map);
	struct entry **at;

	if (!task || !is_storage(m))
		die("no storage of a task", map);
	if (fails(m, BPF_HOST_LOOKUP))
		return NULL;
	at = hash_slot(m, &bpf_host.tid);
	if (!*at && make) {
		m->count++;
		*at = zeroed(sizeof(**at));
		(*at)->key = copy_of(&bpf_host.tid, m->key_size);
		(*at)->value = zeroed(m->value_size);
	}
	return *at ? (*at)->value : NULL;
}

long bpf_host_map_update(
	const char *map, const void *key, const void *value, unsigned long long flags)
{
	struct map *m = map_named(map);

	return fails(m, BPF_HOST_UPDATE) ? failing.error : update(m, key, value, flags);
}

long bpf_host_map_delete(const char *map, const void *key)
{
	struct map *m = map_named(map);

	return fails(m, BPF_HOST_DELETE) ? failing.error : delete (m, key);
}

long bpf_host_map_each(const char *map,
	long (*fn)(void *map, const void *key, void *value, void *ctx), void *ctx,
	unsigned long long flags)
{
	struct map *m = map_named(map);
	long n = 0;

	if (flags || !is_hash(m))
		return -EINVAL;
	if (fails(m, BPF_HOST_WALK))
		return failing.error;
	for (struct entry *e = m->entries, *next; e; e = next) {
		next = e->next;
		n++;
		if (fn(m, e->key, e->value, ctx))
			break;
	}
	return n;
}

/* ---- ring buffer -------------------------------------------------------------------------- */

static unsigned long space_of(unsigned long size)
{
	return (size + RING_HEAD + 7u) & ~7ul;
}

static struct map *ring_named(const char *name)
{
	struct map *m = map_named(name);

	if (m->type != BPF_MAP_TYPE_RINGBUF)
		die("no ring", name);
	return m;
}

void *bpf_host_ring_reserve(const char *map, unsigned long long size, unsigned long long flags)
{
	struct map *m = ring_named(map);
	struct record *r;

	if (flags || m->used + space_of(size) > m->max_entries - 1)
		return NULL;
	r = zeroed(sizeof(*r));
	r->ring = m;
	r->size = size;
	r->bytes = malloc(size); /* not zeroed, as the kernel's is not */
	if (!r->bytes)
		die("out of memory", map);
	memset(r->bytes, 0xa5, size);
	if (m->newest)
		m->newest->next = r;
	else
		m->oldest = r;
	m->newest = r;
	m->used += space_of(size);
	return r->bytes;
}

static void settle(const void *bytes, enum fate fate)
{
	for (unsigned i = 0; i < map_count; i++)
		for (struct record *r = maps[i].oldest; r; r = r->next)
			if (r->bytes == bytes) {
				if (r->fate != FATE_RESERVED)
					die("a record was given back twice", maps[i].name);
				r->fate = fate;
				return;
			}
	die("not a record", "submit or discard");
}

void bpf_host_ring_submit(void *record, unsigned long long flags)
{
	(void)flags;
	settle(record, FATE_SUBMITTED);
}

void bpf_host_ring_discard(void *record, unsigned long long flags)
{
	(void)flags;
	settle(record, FATE_DISCARDED);
}

unsigned long long bpf_host_ring_query(const char *map, unsigned long long flags)
{
	struct map *m = ring_named(map);

	return flags == BPF_RB_AVAIL_DATA  ? m->used
	       : flags == BPF_RB_RING_SIZE ? m->max_entries
					   : 0;
}

static void free_record(struct record *r)
{
	if (r)
		free(r->bytes);
	free(r);
}

const void *bpf_host_ring_take(const char *map, unsigned long *ret_size)
{
	struct map *m = ring_named(map);

	free_record(m->taken);
	m->taken = NULL;
	while (m->oldest && m->oldest->fate != FATE_RESERVED) {
		struct record *r = m->oldest;

		m->oldest = r->next;
		if (!m->oldest)
			m->newest = NULL;
		m->used -= space_of(r->size);
		if (r->fate == FATE_SUBMITTED) {
			m->taken = r;
			*ret_size = r->size;
			return r->bytes;
		}
		free_record(r);
	}
	return NULL;
}

unsigned long bpf_host_ring_used(const char *map)
{
	return ring_named(map)->used;
}

/* ---- memory, task and clock --------------------------------------------------------------- */

void bpf_host_user_map(unsigned long long address, const void *bytes, unsigned long size)
{
	bpf_host_user_unmap(address);
	if (user_count == sizeof(user) / sizeof(user[0]))
		die("too many mappings", "bpf_host_user_map");
	user[user_count++] = (struct range){address, bytes, size};
}

void bpf_host_user_unmap(unsigned long long address)
{
	for (unsigned i = 0; i < user_count; i++)
		if (user[i].from == address) {
			user[i] = user[--user_count];
			return;
		}
}

void bpf_host_kernel_fault(const void *from, unsigned long size)
{
	if (fault_count == sizeof(faults) / sizeof(faults[0]))
		die("too many ranges", "bpf_host_kernel_fault");
	faults[fault_count++] = (struct range){(uintptr_t)from, NULL, size};
}

static void run_once(void (**what)(void))
{
	void (*fn)(void) = *what;

	*what = NULL;
	if (fn)
		fn();
}

/* Like the kernel's: a read that faults leaves zeroes. */
long bpf_host_read_kernel(void *to, unsigned size, const void *from)
{
	uintptr_t at = (uintptr_t)from;
	bool bad = at < 4096;

	for (unsigned i = 0; i < fault_count; i++)
		bad |= at + size > faults[i].from && at < faults[i].from + faults[i].size;
	if (bad) {
		memset(to, 0, size);
		return -EFAULT;
	}
	memcpy(to, from, size);
	return 0;
}

long bpf_host_read_user(void *to, unsigned size, const void *from)
{
	unsigned long long at = (uintptr_t)from;

	for (unsigned i = 0; i < user_count; i++) {
		const struct range *r = &user[i];

		if (at < r->from || at - r->from > r->size || size > r->size - (at - r->from))
			continue;
		memcpy(to, (const uint8_t *)r->bytes + (at - r->from), size);
		run_once(&bpf_host.at_read);
		return 0;
	}
	memset(to, 0, size);
	return -EFAULT;
}

unsigned long long bpf_host_clock(void)
{
	unsigned long long now = bpf_host.boot_ns;

	bpf_host.boot_ns += bpf_host.tick_ns;
	run_once(&bpf_host.at_clock);
	return now;
}

unsigned long long bpf_host_id(void)
{
	return (unsigned long long)bpf_host.tgid << 32 | bpf_host.tid;
}

void *bpf_host_current(void)
{
	if (!bpf_host.task)
		die("the current task was asked for", "the test has set none");
	return bpf_host.task;
}

unsigned bpf_host_exists(const char *what)
{
	const char *at = bpf_host.absent;

	while (at && *at) {
		size_t n = strcspn(at, " ");
		char word[64];

		snprintf(word, sizeof(word), "%.*s", (int)n, at);
		if (n && strstr(what, word))
			return 0;
		at += n + strspn(at + n, " ");
	}
	return 1;
}

/* ---- reset -------------------------------------------------------------------------------- */

static unsigned map_free(struct map *m)
{
	unsigned reserved = 0;

	for (struct entry *e = m->entries, *next; e; e = next) {
		next = e->next;
		free_entry(e);
	}
	for (struct record *r = m->oldest, *next; r; r = next) {
		next = r->next;
		reserved += r->fate == FATE_RESERVED;
		free_record(r);
	}
	free_record(m->taken);
	free(m->values);
	*m = (struct map){0};
	return reserved;
}

unsigned bpf_host_reset(void)
{
	unsigned reserved = 0;

	while (map_count)
		reserved += map_free(&maps[--map_count]);
	while (allocated_count)
		free(allocated[--allocated_count]);
	free(allocated);
	allocated = NULL;
	user_count = fault_count = 0;
	failing.times = 0;
	bpf_host = (struct bpf_host){.boot_ns = 1000000000ull, .tick_ns = 1000};
	return reserved;
}
