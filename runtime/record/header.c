/* SPDX-License-Identifier: Apache-2.0 */
/*
 * header.c - the recording's header to JSON and back (jansson, sorted keys).
 *
 * 64-bit hashes are written as hexadecimal text: JSON numbers above 2^53 do not survive every
 * reader.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "runtime/base/file.h"
#include "runtime/base/utf8.h"
#include "runtime/record/header_parts.h"
#include "runtime/record/recording.h"
#include "runtime/trace/event_registry.h"
#include "vmlinux/ioctl_table.h"

#define FORMAT_NAME "ntrace-recording"
#define MAX_HOOKS 256
#define MAX_STEPS 256

/* Texts of the top level: key and place. */
static const struct {
	const char *key;
	size_t offset;
} texts[] = {
	{"producer", offsetof(struct rec_header_info, producer)},
	{"instance_id", offsetof(struct rec_header_info, instance_id)},
	{"host", offsetof(struct rec_header_info, host)},
	{"kernel", offsetof(struct rec_header_info, kernel)},
	{"machine", offsetof(struct rec_header_info, machine)},
	{"driver", offsetof(struct rec_header_info, driver)},
};

#define TEXT_COUNT (sizeof(texts) / sizeof(*texts))

static inline const char **text_at(struct rec_header_info *info, size_t i)
{
	return (const char **)(void *)((char *)info + texts[i].offset);
}

const char *rec_header_text_at(const struct rec_header_info *info, size_t i, const char **ret_value)
{
	struct rec_header_info copy = *info;

	if (i >= TEXT_COUNT)
		return NULL;
	*ret_value = *text_at(&copy, i);
	return texts[i].key;
}

uint64_t rec_ioctl_table_hash(void)
{
	uint64_t hash = 0;

	for (size_t i = 0; i < ioctl_row_count; i++) {
		const struct ioctl_row *r = &ioctl_rows[i];
		/* How a result is read says nothing of what was recorded. */
		const uint16_t flags = r->flags & (uint16_t)~IOCTL_F_HANDS_ON;

		hash = XXH3_64bits_withSeed(r->name, strlen(r->name) + 1, hash);
		hash = XXH3_64bits_withSeed(&r->cmd, sizeof(r->cmd), hash);
		hash = XXH3_64bits_withSeed(&flags, sizeof(flags), hash);
		for (unsigned k = 0; k < ioctl_row_fields(r); k++) {
			const char *attribute =
				ioctl_role_attribute((enum ioctl_role)r->fields[k].role);
			uint16_t shape[2] = {r->fields[k].width, r->fields[k].offset};

			hash = XXH3_64bits_withSeed(attribute, strlen(attribute) + 1, hash);
			hash = XXH3_64bits_withSeed(shape, sizeof(shape), hash);
		}
	}
	return hash;
}

bool rec_ioctl_table_reads(uint64_t hash)
{
	/* Of tables to which rows, and fields behind those of a row, have been added since. */
	static const uint64_t earlier[] = {
		0x60e3471f36c6971full, /* without what the driver gives back (OUT) */
	};

	for (size_t i = 0; i < sizeof(earlier) / sizeof(*earlier); i++)
		if (hash == earlier[i])
			return true;
	return hash == rec_ioctl_table_hash();
}

/* ---- jansson with little memory ------------------------------------------------------------ */

/* When a buffer cannot grow, jansson 2.14 goes on without some of the characters, and gives another
 * text or a syntax error, reading and writing: what it made with little memory is not what was there.
 * So it must read the same twice, and read what it wrote.  A syntax error has a text; a lack of memory
 * has none. */
static int load(const char *text, size_t size, json_t **ret)
{
	json_error_t error;
	json_t *again, *root = json_loadb(text, size, 0, NULL);
	int rc = 0;

	again = json_loadb(text, size, 0, &error);
	if (!root && !again)
		rc = *error.text ? -EBADMSG : -ENOMEM;
	else if (!root || !again || !json_equal(root, again))
		rc = -ENOMEM;
	else if (!json_is_object(root))
		rc = -EBADMSG;
	json_decref(again);
	if (rc == 0)
		*ret = root;
	else
		json_decref(root);
	return rc;
}

/* The text of root, to be freed; NULL when memory is short. */
static char *dump(const json_t *root)
{
	char *text = json_dumps(root, JSON_SORT_KEYS | JSON_COMPACT);
	json_t *back = NULL;

	if (text && load(text, strlen(text), &back) == 0 && json_equal(root, back)) {
		json_decref(back);
		return text;
	}
	json_decref(back);
	free(text);
	return NULL;
}

/* ---- writing ------------------------------------------------------------------------------ */

static bool is_utf8(const char *text)
{
	size_t left = strlen(text), n;

	for (; left; text += n, left -= n) {
		n = utf8_length(text, left);
		if (n == 0)
			return false;
	}
	return true;
}

json_t *header_text(const char *text)
{
	if (is_utf8(text))
		return json_string(text);
	_cleanup_free_ char *copy = strdup(text);
	if (!copy)
		return NULL;
	for (char *p = copy; *p; p++)
		if ((unsigned char)*p >= 0x80)
			*p = '?';
	return json_string(copy);
}

static json_t *hash_value(uint64_t hash)
{
	char text[20];

	snprintf(text, sizeof(text), "0x%016" PRIx64, hash);
	return json_string(text);
}

bool header_set(json_t *object, const char *key, json_t *value)
{
	return json_object_set_new(object, key, value) == 0;
}

json_t *header_list(const char *const *list)
{
	json_t *array = json_array();

	for (; array && list && *list; list++) {
		if (json_array_append_new(array, header_text(*list)) < 0) {
			json_decref(array);
			return NULL;
		}
	}
	return array;
}

static json_t *step_value(const struct rec_ladder_step *s)
{
	json_t *step = json_object();

	if (header_set(step, "family", header_text(s->family)) &&
		header_set(step, "step", header_text(s->step)) &&
		header_set(step, "result", header_text(s->result)))
		return step;
	json_decref(step);
	return NULL;
}

static json_t *ladder_value(const struct rec_ladder_step *s)
{
	json_t *array = json_array();

	for (; array && s->family; s++) {
		if (json_array_append_new(array, step_value(s)) < 0) {
			json_decref(array);
			return NULL;
		}
	}
	return array;
}

static json_t *config_value(const struct rec_header_info *info)
{
	json_t *config = json_object();
	bool ok = header_set(config, "all_processes", json_boolean(info->all_processes));

	if (info->attached)
		ok = ok && header_set(config, "attached", json_true());
	if (info->kernel_ring_bytes)
		ok = ok &&
		     header_set(config, "kernel_ring_bytes", json_integer(info->kernel_ring_bytes));
	if (info->ring_capacity)
		ok = ok && header_set(config, "ring_capacity", json_integer(info->ring_capacity));
	if (ok)
		return config;
	json_decref(config);
	return NULL;
}

static bool fill(json_t *root, const struct rec_header_info *info)
{
	struct rec_header_info copy = *info;
	bool ok = header_set(root, "format", json_string(FORMAT_NAME)) &&
		  header_set(root, "version", json_integer(REC_FORMAT_VERSION));

	for (size_t i = 0; ok && i < TEXT_COUNT; i++)
		if (*text_at(&copy, i))
			ok = header_set(root, texts[i].key, header_text(*text_at(&copy, i)));
	if (ok && info->ladder)
		ok = header_set(root, "ladder", ladder_value(info->ladder));
	return ok && header_set(root, "hooks", header_list(info->hooks)) &&
	       header_set(root, "is_virtual", json_boolean(info->is_virtual)) &&
	       (!info->is_cut || header_set(root, "cut", json_true())) &&
	       (!info->session || header_set(root, "session", header_session(info->session))) &&
	       header_set(root, "config", config_value(info)) &&
	       header_set(root, "registry_hash",
		       hash_value(info->registry_hash ? info->registry_hash
						      : trace_registry_hash())) &&
	       header_set(root, "ioctl_hash",
		       hash_value(info->ioctl_hash ? info->ioctl_hash : rec_ioctl_table_hash()));
}

int rec_header_text(const struct rec_header_info *info, char **ret_text)
{
	json_t *root = json_object();
	char *text = NULL;

	if (root && fill(root, info))
		text = dump(root);
	json_decref(root);
	if (!text)
		return -ENOMEM;
	*ret_text = text;
	return 0;
}

/* ---- reading ------------------------------------------------------------------------------ */

static uint32_t get_u32(const json_t *object, const char *key)
{
	json_int_t v = json_integer_value(json_object_get(object, key));

	return v > 0 && v <= UINT32_MAX ? (uint32_t)v : 0;
}

static uint64_t get_hash(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));
	uint64_t v = 0;

	if (!text || strncmp(text, "0x", 2) || strlen(text) != 18)
		return 0;
	for (const char *p = text + 2; *p; p++) {
		unsigned digit = *p >= '0' && *p <= '9'	  ? (unsigned)(*p - '0')
				 : *p >= 'a' && *p <= 'f' ? (unsigned)(*p - 'a') + 10
							  : 16;
		if (digit > 15)
			return 0;
		v = v << 4 | digit;
	}
	return v;
}

const char **header_get_list(const json_t *array, size_t most)
{
	size_t n = json_array_size(array), used = 0;
	const char **list;

	if (n > most)
		n = most;
	list = calloc(n + 1, sizeof(*list));
	for (size_t i = 0; list && i < n; i++) {
		const char *text = json_string_value(json_array_get(array, i));
		if (text)
			list[used++] = text;
	}
	return list;
}

static int get_hooks(const json_t *root, struct rec_header *h)
{
	h->hooks = header_get_list(json_object_get(root, "hooks"), MAX_HOOKS);
	h->info.hooks = h->hooks;
	return h->hooks ? 0 : -ENOMEM;
}

/* Steps that are not whole are left out. */
static int get_ladder(const json_t *root, struct rec_header *h)
{
	const json_t *array = json_object_get(root, "ladder");
	size_t n = json_array_size(array), used = 0;

	if (!json_is_array(array))
		return 0;
	if (n > MAX_STEPS)
		n = MAX_STEPS;
	h->ladder = calloc(n + 1, sizeof(*h->ladder));
	if (!h->ladder)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		const json_t *o = json_array_get(array, i);
		struct rec_ladder_step s = {
			.family = json_string_value(json_object_get(o, "family")),
			.step = json_string_value(json_object_get(o, "step")),
			.result = json_string_value(json_object_get(o, "result")),
		};
		if (s.family && s.step && s.result)
			h->ladder[used++] = s;
	}
	h->info.ladder = h->ladder;
	return 0;
}

int rec_header_parse(const char *text, size_t size, struct rec_header *ret)
{
	const json_t *config;
	json_t *root;
	int rc;

	memset(ret, 0, sizeof(*ret));
	rc = load(text, size, &root);
	if (rc < 0)
		return rc;
	ret->json = root;
	for (size_t i = 0; i < TEXT_COUNT; i++)
		*text_at(&ret->info, i) = json_string_value(json_object_get(root, texts[i].key));
	ret->info.is_virtual = json_is_true(json_object_get(root, "is_virtual"));
	ret->info.is_cut = json_is_true(json_object_get(root, "cut"));
	ret->info.registry_hash = get_hash(root, "registry_hash");
	ret->info.ioctl_hash = get_hash(root, "ioctl_hash");
	config = json_object_get(root, "config");
	ret->info.attached = json_is_true(json_object_get(config, "attached"));
	ret->info.all_processes = json_is_true(json_object_get(config, "all_processes"));
	ret->info.kernel_ring_bytes = get_u32(config, "kernel_ring_bytes");
	ret->info.ring_capacity = get_u32(config, "ring_capacity");
	if (get_hooks(root, ret) < 0 || get_ladder(root, ret) < 0 ||
		header_get_session(json_object_get(root, "session"), ret) < 0) {
		rec_header_free(ret);
		return -ENOMEM;
	}
	return 0;
}

int rec_header_cut(const char *text, size_t size, char **ret_text)
{
	json_t *root;
	int rc = load(text, size, &root);

	if (rc < 0)
		return rc;
	*ret_text = header_set(root, "version", json_integer(REC_FORMAT_VERSION)) &&
				    header_set(root, "cut", json_true())
			    ? dump(root)
			    : NULL;
	json_decref(root);
	return *ret_text ? 0 : -ENOMEM;
}

void rec_header_free(struct rec_header *h)
{
	json_decref(h->json);
	free(h->hooks);
	free(h->ladder);
	header_free_session(h);
	memset(h, 0, sizeof(*h));
}
