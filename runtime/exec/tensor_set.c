/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tensor_set.c - sets: names to tensors.  A set holds a reference to each of its tensors.
 */
#include "runtime/exec/tensor.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/lifecycle/runtime.h"
#include "runtime/log/log.h"

#define TAG "NRT"

struct entry {
	char name[NRT_TENSOR_NAME_MAX];
	struct nrt_tensor *tensor;
};

struct tensor_set {
	struct object object;
	pthread_mutex_t lock;
	struct entry *entries;
	size_t count, room;
};

static void set_destroy(struct object *o)
{
	struct tensor_set *set = (struct tensor_set *)o;

	for (size_t i = 0; i < set->count; i++)
		tensor_put(set->entries[i].tensor);
	pthread_mutex_destroy(&set->lock);
	free(set->entries);
	free(set);
}

static struct entry *find(const struct tensor_set *set, const char *name)
{
	for (size_t i = 0; i < set->count; i++)
		if (!strcmp(set->entries[i].name, name))
			return &set->entries[i];
	return NULL;
}

struct nrt_tensor *tensor_set_find(struct tensor_set *set, const char *name)
{
	struct nrt_tensor *t = NULL;
	struct entry *e;

	pthread_mutex_lock(&set->lock);
	e = find(set, name);
	if (e) {
		t = e->tensor;
		object_ref(&t->object);
	}
	pthread_mutex_unlock(&set->lock);
	return t;
}

NRT_STATUS nrt_allocate_tensor_set(nrt_tensor_set_t **result)
{
	NRT_STATUS status = api_enter(__func__);
	struct tensor_set *set = NULL;

	if (status)
		return status;
	if (!result) {
		log_error(TAG, "No place for the set's handle (NULL)");
		status = NRT_INVALID;
	} else {
		set = calloc(1, sizeof(*set));
		status = set ? NRT_SUCCESS : NRT_RESOURCE;
	}
	if (set) {
		pthread_mutex_init(&set->lock, NULL);
		*result = object_publish(&set->object, OBJECT_SET, set_destroy);
	}
	api_leave();
	return status;
}

void nrt_destroy_tensor_set(nrt_tensor_set_t **tensor_set)
{
	struct object *o;

	if (!tensor_set || !*tensor_set || api_enter(__func__))
		return;
	if (object_retire(*tensor_set, OBJECT_SET, &o) == NRT_SUCCESS)
		object_put(o);
	*tensor_set = NULL;
	api_leave();
}

/* Adds the entry, or makes room for a new one.  Takes over the caller's reference. */
static NRT_STATUS put_entry(struct tensor_set *set, const char *name, struct nrt_tensor *t)
{
	struct entry *e = find(set, name);

	if (e) {
		tensor_put(e->tensor);
		e->tensor = t;
		return NRT_SUCCESS;
	}
	if (set->count == set->room) {
		size_t room = set->room ? 2 * set->room : 8;
		struct entry *grown = reallocarray(set->entries, room, sizeof(*grown));

		if (!grown) {
			tensor_put(t);
			return NRT_RESOURCE;
		}
		set->entries = grown;
		set->room = room;
	}
	e = &set->entries[set->count++];
	strcpy(e->name, name); /* the caller has checked its length */
	e->tensor = t;
	return NRT_SUCCESS;
}

static bool good_name(const char *name)
{
	return name && *name && strlen(name) < NRT_TENSOR_NAME_MAX;
}

NRT_STATUS nrt_add_tensor_to_tensor_set(
	nrt_tensor_set_t *tensor_set, const char *tensor_name, nrt_tensor_t *tensor)
{
	NRT_STATUS status = api_enter(__func__);
	struct object *set = NULL, *t = NULL;

	if (status)
		return status;
	if (!good_name(tensor_name)) {
		log_error(TAG, "A tensor needs a name of 1 to %d bytes", NRT_TENSOR_NAME_MAX - 1);
		status = NRT_INVALID;
	}
	if (!status)
		status = object_get(tensor_set, OBJECT_SET, &set);
	if (!status)
		status = object_get(tensor, OBJECT_TENSOR, &t);
	if (!status) {
		struct tensor_set *s = (struct tensor_set *)set;

		pthread_mutex_lock(&s->lock);
		status = put_entry(s, tensor_name, (struct nrt_tensor *)t);
		pthread_mutex_unlock(&s->lock);
	}
	object_put(set);
	api_leave();
	return status;
}

NRT_STATUS nrt_get_tensor_from_tensor_set(
	nrt_tensor_set_t *tensor_set, const char *tensor_name, nrt_tensor_t **tensor)
{
	NRT_STATUS status = api_enter(__func__);
	struct nrt_tensor *t = NULL;
	struct object *set;

	if (status)
		return status;
	if (!tensor_name || !tensor) {
		log_error(TAG, "No %s given (NULL)", tensor_name ? "place for the tensor" : "name");
		status = NRT_INVALID;
	}
	if (!status)
		status = object_get(tensor_set, OBJECT_SET, &set);
	if (!status) {
		t = tensor_set_find((struct tensor_set *)set, tensor_name);
		object_put(set);
		if (!t) {
			log_error(TAG, "There is no tensor '%.256s' in the set", tensor_name);
			status = NRT_INVALID;
		}
	}
	if (t) {
		*tensor = object_handle(&t->object);
		tensor_put(t);
	}
	api_leave();
	return status;
}
