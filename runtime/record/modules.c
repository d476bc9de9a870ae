/* SPDX-License-Identifier: Apache-2.0 */
/*
 * modules.c - see the header.
 */
#include "runtime/record/modules.h"

#include <errno.h>
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

static void take_ladder(struct modules *m, const uint8_t *rows, size_t count)
{
	if (count > MODULES_STEPS)
		count = MODULES_STEPS;
	for (size_t i = 0; i < count; i++) {
		struct rec_module_step row;

		memcpy(&row, rows + i * sizeof(row), sizeof(row));
		copy_text(m->texts[i].family, row.family, sizeof(row.family));
		copy_text(m->texts[i].step, row.step, sizeof(row.step));
		copy_text(m->texts[i].result, row.result, sizeof(row.result));
		m->ladder[i] = (struct rec_ladder_step){
			m->texts[i].family, m->texts[i].step, m->texts[i].result};
	}
	m->ladder[count] = (struct rec_ladder_step){0};
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
	c = &m->changes[m->count++];
	*c = (struct module_change){
		.boot_ns = time_ns, .generation = row.generation, .loaded = row.loaded != 0};
	copy_text(c->version, row.version, sizeof(row.version));
	if (c->loaded)
		take_ladder(m, payload + sizeof(row),
			(size - sizeof(row)) / sizeof(struct rec_module_step));
	return 0;
}

void modules_free(struct modules *m)
{
	free(m->changes);
	*m = (struct modules){0};
}
