/* SPDX-License-Identifier: Apache-2.0 */
/*
 * object.c - the table of live handles.
 */
#include "runtime/exec/object.h"

#include <pthread.h>
#include <stddef.h>

#include "runtime/log/log.h"

#define BUCKETS 1024u

/* Handles are FIRST, FIRST + STEP and so on: in the gap between the addresses of programs and of the kernel. */
#define FIRST 0x0100000000000010ull
#define STEP 16u

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct object *buckets[BUCKETS];
static uintptr_t next_handle = FIRST; /* under lock */

static struct object **bucket_of(uintptr_t handle)
{
	uint64_t h = (uint64_t)handle * 0x9e3779b97f4a7c15ull;

	return &buckets[h >> 54];
}

/* The link that points to the object, or NULL.  Under the lock. */
static struct object **find(const void *handle, enum object_kind kind)
{
	struct object **link = bucket_of((uintptr_t)handle);

	while (*link && (*link)->handle != (uintptr_t)handle)
		link = &(*link)->next;
	return *link && (*link)->kind == kind ? link : NULL;
}

void *object_publish(struct object *o, enum object_kind kind, void (*destroy)(struct object *o))
{
	struct object **link;

	o->kind = kind;
	o->destroy = destroy;
	atomic_store(&o->refs, 1);
	pthread_mutex_lock(&lock);
	o->handle = next_handle;
	next_handle += STEP;
	link = bucket_of(o->handle);
	o->next = *link;
	*link = o;
	pthread_mutex_unlock(&lock);
	return object_handle(o);
}

static NRT_STATUS refuse(const char *call, const void *handle, enum object_kind kind)
{
	static const char *const names[] = {
		[OBJECT_TENSOR] = "tensor", [OBJECT_SET] = "tensor set", [OBJECT_MODEL] = "model"};

	if (!handle) {
		log_write(LOG_LEVEL_ERROR, "NRT", call, "No %s given (NULL)", names[kind]);
		return NRT_INVALID;
	}
	log_write(LOG_LEVEL_ERROR, "NRT", call, "%p is not a %s", handle, names[kind]);
	return NRT_INVALID_HANDLE;
}

NRT_STATUS object_get_for(
	const char *call, const void *handle, enum object_kind kind, struct object **ret)
{
	struct object **link;

	if (!handle)
		return refuse(call, handle, kind);
	pthread_mutex_lock(&lock);
	link = find(handle, kind);
	if (link) {
		object_ref(*link);
		*ret = *link;
	}
	pthread_mutex_unlock(&lock);
	return link ? NRT_SUCCESS : refuse(call, handle, kind);
}

void object_ref(struct object *o)
{
	atomic_fetch_add_explicit(&o->refs, 1, memory_order_relaxed);
}

void object_put(struct object *o)
{
	if (o && atomic_fetch_sub_explicit(&o->refs, 1, memory_order_acq_rel) == 1)
		o->destroy(o);
}

NRT_STATUS object_retire_for(
	const char *call, const void *handle, enum object_kind kind, struct object **ret)
{
	struct object **link;

	if (!handle)
		return refuse(call, handle, kind);
	pthread_mutex_lock(&lock);
	link = find(handle, kind);
	if (link) {
		*ret = *link;
		*link = (*link)->next;
	}
	pthread_mutex_unlock(&lock);
	return link ? NRT_SUCCESS : refuse(call, handle, kind);
}

/* Takes any object of the kind out; NULL when there is none. */
static struct object *take_one(enum object_kind kind)
{
	struct object *found = NULL;

	pthread_mutex_lock(&lock);
	for (uint32_t i = 0; i < BUCKETS && !found; i++)
		for (struct object **link = &buckets[i]; *link && !found;) {
			if ((*link)->kind == kind) {
				found = *link;
				*link = found->next;
			} else {
				link = &(*link)->next;
			}
		}
	pthread_mutex_unlock(&lock);
	return found;
}

void object_retire_all(enum object_kind kind)
{
	struct object *o;

	while ((o = take_one(kind)) != NULL)
		object_put(o);
}
