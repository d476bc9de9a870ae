/* SPDX-License-Identifier: Apache-2.0 */
/* model_text.c - the one list of them; a load is rare, so it is searched from end to end. */
#include "runtime/exec/model_text.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct model_text *texts; /* under lock, as are all refs */

static struct model_text *find(const void *bytes, size_t size, const uint64_t digest[2])
{
	for (struct model_text *t = texts; t; t = t->next)
		if (t->digest[0] == digest[0] && t->digest[1] == digest[1] && t->size == size &&
			!memcmp(t->bytes, bytes, size))
			return t;
	return NULL;
}

static struct model_text *add(const void *bytes, size_t size, const uint64_t digest[2])
{
	struct model_text *t = malloc(sizeof(*t) + size);

	if (!t)
		return NULL;
	t->refs = 0;
	memcpy(t->digest, digest, sizeof(t->digest));
	t->size = size;
	memcpy(t->bytes, bytes, size);
	t->next = texts;
	texts = t;
	return t;
}

struct model_text *model_text_get(const void *bytes, size_t size, const uint64_t digest[2])
{
	struct model_text *t;

	pthread_mutex_lock(&lock);
	t = find(bytes, size, digest);
	if (!t)
		t = add(bytes, size, digest);
	if (t)
		t->refs++;
	pthread_mutex_unlock(&lock);
	return t;
}

struct model_text *model_text_ref(struct model_text *t)
{
	pthread_mutex_lock(&lock);
	t->refs++;
	pthread_mutex_unlock(&lock);
	return t;
}

void model_text_put(struct model_text *t)
{
	struct model_text **link = &texts;

	if (!t)
		return;
	pthread_mutex_lock(&lock);
	if (--t->refs == 0) {
		while (*link != t)
			link = &(*link)->next;
		*link = t->next;
	} else {
		t = NULL;
	}
	pthread_mutex_unlock(&lock);
	free(t);
}
