/* SPDX-License-Identifier: Apache-2.0 */
/*
 * modules.c - reads REC_MODULE and REC_HOOKS frames, whose texts are padded with zeros and may be anything.
 */
#include "runtime/record/modules.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A text of at most `size` bytes; what no name of ours has becomes '?'. */
static void copy_text(char *to, const char *from, size_t size)
{
	size_t n = strnlen(from, size);

	for (size_t i = 0; i < n; i++)
		to[i] = (char)(from[i] >= 0x20 && from[i] < 0x7f ? from[i] : '?');
	to[n] = '\0';
}

/* The steps and, in the same piece of memory, their texts.  NULL: no memory. */
static struct rec_ladder_step *ladder_of(const uint8_t *rows, size_t count)
{
	struct texts {
		char family[17], step[17], result[33];
	} * texts;
	struct rec_ladder_step *ladder;

	if (count > MODULES_STEPS)
		count = MODULES_STEPS;
	ladder = calloc(1, (count + 1) * sizeof(*ladder) + count * sizeof(*texts));
	if (!ladder)
		return NULL;
	texts = (struct texts *)(ladder + count + 1);
	for (size_t i = 0; i < count; i++) {
		struct rec_module_step row;

		memcpy(&row, rows + i * sizeof(row), sizeof(row));
		copy_text(texts[i].family, row.family, sizeof(row.family));
		copy_text(texts[i].step, row.step, sizeof(row.step));
		copy_text(texts[i].result, row.result, sizeof(row.result));
		ladder[i] =
			(struct rec_ladder_step){texts[i].family, texts[i].step, texts[i].result};
	}
	return ladder;
}

int modules_take(struct modules *m, uint64_t time_ns, const uint8_t *payload, size_t size)
{
	struct module_change *c;
	struct rec_module row;

	if (size < sizeof(row))
		return -EBADMSG;
	memcpy(&row, payload, sizeof(row));
	if (m->count == m->cap) {
		size_t cap = m->cap ? 2 * m->cap : 8;
		struct module_change *more = realloc(m->changes, cap * sizeof(*more));

		if (!more)
			return -ENOMEM;
		m->changes = more;
		m->cap = cap;
	}
	c = &m->changes[m->count];
	*c = (struct module_change){.boot_ns = time_ns,
		.generation = row.generation,
		.loaded = row.loaded != 0,
		.calls_unseen_ns = row.calls_unseen_ns,
		.inside_unseen_ns = row.inside_unseen_ns};
	copy_text(c->version, row.version, sizeof(row.version));
	if (c->loaded)
		c->ladder = ladder_of(payload + sizeof(row),
			(size - sizeof(row)) / sizeof(struct rec_module_step));
	if (c->loaded && !c->ladder)
		return -ENOMEM;
	m->count++;
	return 0;
}

/* The names and, in the same piece of memory, the list of them.  NULL: no memory. */
static const char **hooks_of(const uint8_t *text, size_t size)
{
	size_t count = 0, n = 0;
	const char **list;
	char *to;

	for (size_t i = 0; i < size; i++)
		count += !text[i];
	list = calloc(1, (count + 1) * sizeof(*list) + size + 1);
	if (!list)
		return NULL;
	to = (char *)(list + count + 1);
	for (const uint8_t *end; n < count; text = end + 1, n++) {
		end = memchr(text, 0, size);
		copy_text(to, (const char *)text, (size_t)(end - text));
		size -= (size_t)(end - text) + 1;
		list[n] = to;
		to += end - text + 1;
	}
	return list;
}

int modules_take_hooks(struct modules *m, const uint8_t *payload, size_t size)
{
	struct module_change *c = m->count ? &m->changes[m->count - 1] : NULL;
	struct rec_hooks head;

	if (size < sizeof(head))
		return -EBADMSG;
	memcpy(&head, payload, sizeof(head));
	if (!c || !c->loaded || c->generation != head.generation || c->hooks)
		return 0;
	c->hooks = hooks_of(payload + sizeof(head), size - sizeof(head));
	return c->hooks ? 0 : -ENOMEM;
}

bool driver_is_before(const char *version, const char *release)
{
	unsigned v[2], r[2];

	if (!version || sscanf(version, "%4u.%4u", &v[0], &v[1]) != 2 ||
		sscanf(release, "%4u.%4u", &r[0], &r[1]) != 2)
		return false;
	return v[0] < r[0] || (v[0] == r[0] && v[1] < r[1]);
}

const char *modules_driver_at(const struct modules *m, const char *first, uint64_t boot_ns)
{
	size_t i = m->count;

	while (i && m->changes[i - 1].boot_ns > boot_ns)
		i--;
	if (!i)
		return first;
	return m->changes[i - 1].version[0] ? m->changes[i - 1].version : NULL;
}

void modules_free(struct modules *m)
{
	for (size_t i = 0; i < m->count; i++) {
		free(m->changes[i].ladder);
		free(m->changes[i].hooks);
	}
	free(m->changes);
	*m = (struct modules){0};
}
