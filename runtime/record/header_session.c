/* SPDX-License-Identifier: Apache-2.0 */
/*
 * header_session.c - the header's part about an inspect session, from one table of members.
 */
#include <errno.h>
#include <stdlib.h>

#include "runtime/record/header_parts.h"

#define MAX_LIST 1024u

static const struct {
	const char *key;
	enum rec_session_kind kind;
	size_t offset;
} members[] = {
#define SESSION_MEMBER(kind, name) {#name, SESSION_##kind, offsetof(struct rec_session, name)},
#include "runtime/record/session_members.def"
#undef SESSION_MEMBER
};

#define MEMBERS (sizeof(members) / sizeof(*members))

bool rec_session_value(const struct rec_session *s, size_t i, struct rec_session_value *ret)
{
	const void *at;

	if (i >= MEMBERS)
		return false;
	at = (const char *)s + members[i].offset;
	*ret = (struct rec_session_value){.key = members[i].key, .kind = members[i].kind};
	if (ret->kind == SESSION_NUMBER)
		ret->number = *(const int64_t *)at;
	else if (ret->kind == SESSION_TEXT)
		ret->text = *(const char *const *)at;
	else
		ret->list = *(const char *const *const *)at;
	return true;
}

/* Adds a member unless it is not known.  False: memory is short. */
static bool add_member(json_t *object, const struct rec_session_value *v)
{
	if (v->number)
		return header_set(object, v->key, json_integer(v->number));
	if (v->text)
		return header_set(object, v->key, header_text(v->text));
	return !v->list || header_set(object, v->key, header_list(v->list));
}

static json_t *off_value(const struct rec_session_off *off)
{
	json_t *array = json_array();

	for (; array && off && off->what; off++) {
		json_t *row = json_object();

		if (header_set(row, "what", header_text(off->what)) &&
			header_set(row, "why", header_text(off->why ? off->why : "")) &&
			json_array_append(array, row) == 0) {
			json_decref(row);
			continue;
		}
		json_decref(row);
		json_decref(array);
		return NULL;
	}
	return array;
}

json_t *header_session(const struct rec_session *s)
{
	json_t *object = json_object();
	bool ok = header_set(object, "off", off_value(s->off));
	struct rec_session_value v;

	for (size_t i = 0; ok && rec_session_value(s, i, &v); i++)
		ok = add_member(object, &v);
	if (ok)
		return object;
	json_decref(object);
	return NULL;
}

/* ---- reading ------------------------------------------------------------------------------ */

static int get_member(const json_t *json, struct rec_session *s, size_t i)
{
	const json_t *value = json_object_get(json, members[i].key);
	void *at = (char *)s + members[i].offset;
	const char **list;

	if (members[i].kind == SESSION_NUMBER) {
		*(int64_t *)at = json_integer_value(value);
	} else if (members[i].kind == SESSION_TEXT) {
		*(const char **)at = json_string_value(value);
	} else if (json_is_array(value)) {
		list = header_get_list(value, MAX_LIST);
		if (!list)
			return -ENOMEM;
		*(const char *const **)at = list;
	}
	return 0;
}

/* Rows that are not whole are left out. */
static int get_off(const json_t *array, struct rec_session *s)
{
	size_t n = json_array_size(array), used = 0;
	struct rec_session_off *off;

	if (n > MAX_LIST)
		n = MAX_LIST;
	off = calloc(n + 1, sizeof(*off));
	if (!off)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		const json_t *o = json_array_get(array, i);
		struct rec_session_off row = {
			.what = json_string_value(json_object_get(o, "what")),
			.why = json_string_value(json_object_get(o, "why")),
		};
		if (row.what && row.why)
			off[used++] = row;
	}
	s->off = off;
	return 0;
}

int header_get_session(const json_t *json, struct rec_header *h)
{
	int rc = 0;

	if (!json_is_object(json))
		return 0;
	h->info.session = h->session = calloc(1, sizeof(*h->session));
	if (!h->session)
		return -ENOMEM;
	for (size_t i = 0; rc == 0 && i < MEMBERS; i++)
		rc = get_member(json, h->session, i);
	return rc < 0 ? rc : get_off(json_object_get(json, "off"), h->session);
}

void header_free_session(struct rec_header *h)
{
	if (!h->session)
		return;
	for (size_t i = 0; i < MEMBERS; i++)
		if (members[i].kind == SESSION_LIST)
			free(*(void **)(void *)((char *)h->session + members[i].offset));
	free((void *)(uintptr_t)h->session->off);
	free(h->session);
	h->session = NULL;
}
