/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blind_hooks.c - see the header.
 *
 * A recording's header says what was tried when it began, and a REC_MODULE what was tried on a driver that
 * came later; a family counts as reached when either says so.  A family that neither names, the recorder
 * did not know.
 */
#include "runtime/record/blind_hooks.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { CALL, DMA };

static const struct {
	const char *name;
	int kind;
	const char *unseen, *untold;
} families[] = {
#define FAMILY(name, kind, unseen, untold) {name, kind, unseen, untold},
#include "runtime/record/hook_families.def"
#undef FAMILY
};

#define FAMILIES (sizeof(families) / sizeof(*families))
#define LINE 160u

static bool is_inside(const struct rec_ladder_step *s)
{
	return !strcmp(s->step, "fentry") || !strcmp(s->step, "kprobe") ||
	       (!strcmp(s->step, "tracepoint") && strcmp(s->family, "ioctl") != 0);
}

/* The steps of a family that are inside of the driver: was one reached, were there any?  The reasons of the
 * others go into `why`, at most size bytes. */
static bool reached(const struct rec_ladder_step *ladder, const char *family, bool *ret_tried,
	char *why, size_t size)
{
	size_t used = strlen(why);

	for (const struct rec_ladder_step *s = ladder; s && s->family; s++) {
		if (strcmp(s->family, family) != 0 || !is_inside(s))
			continue;
		*ret_tried = true;
		if (!strcmp(s->result, "reached"))
			return true;
		if (used < size) {
			(void)snprintf(why + used, size - used, "%s%s: %s", used ? ", " : "",
				s->step, s->result);
			used = strlen(why);
		}
	}
	return false;
}

static bool has_driver(const struct session *l)
{
	const struct rec_ladder_step *s = l->header.info.ladder;

	for (; s && s->family; s++)
		if (is_inside(s))
			return true;
	return l->modules.count > 0;
}

static bool loaded_meanwhile(const struct session *l)
{
	bool loaded = false;

	for (size_t i = 0; i < l->modules.count; i++)
		loaded |= l->modules.changes[i].loaded;
	return loaded;
}

struct gap {
	char what[LINE], why[LINE]; /* of the families of a kind that were not reached */
	unsigned missing, total;
};

static void look(const struct session *l, size_t f, struct gap *g)
{
	bool tried = false;
	char why[64] = "";
	size_t used = strlen(g->what);

	g->total++;
	if (reached(l->header.info.ladder, families[f].name, &tried, why, sizeof(why)) ||
		reached(l->modules.ladder, families[f].name, &tried, why, sizeof(why)))
		return;
	g->missing++;
	(void)snprintf(g->what + used, sizeof(g->what) - used, "%s%s", used ? ", " : "",
		families[f].unseen);
	if (!g->why[0])
		(void)snprintf(g->why, sizeof(g->why), "%s", tried ? why : "not hooked");
}

static bool rows_of(const struct rec_ladder_step *s, const char *family)
{
	for (; s && s->family; s++)
		if (!strcmp(s->family, family) && is_inside(s))
			return true;
	return false;
}

static bool reached_at(const struct rec_ladder_step *s, const char *family, const char *step)
{
	for (; s && s->family; s++)
		if (!strcmp(s->family, family) && !strcmp(s->step, step) &&
			!strcmp(s->result, "reached"))
			return true;
	return false;
}

void blind_hooks(const struct session *l, void (*add)(void *ctx, const char *line), void *ctx)
{
	struct gap gaps[] = {[CALL] = {{0}, {0}, 0, 0}, [DMA] = {{0}, {0}, 0, 0}};
	bool known = has_driver(l), dma_known = false;
	char line[2 * LINE + 8];

	for (size_t f = 0; f < FAMILIES; f++) {
		dma_known |= families[f].kind == DMA &&
			     (rows_of(l->header.info.ladder, families[f].name) ||
				     rows_of(l->modules.ladder, families[f].name));
		look(l, f, &gaps[families[f].kind]);
	}
	add(ctx, "doorbells rung from user space through mapped registers");
	if (!dma_known || gaps[DMA].missing == gaps[DMA].total)
		add(ctx, "DMA that devices start by themselves, and the driver's own threads and "
			 "interrupts");
	else
		add(ctx, "DMA that devices start by themselves, and the driver's interrupts");
	for (size_t f = 0; f < FAMILIES; f++)
		if (families[f].untold &&
			(reached_at(l->header.info.ladder, families[f].name, "tracepoint") ||
				reached_at(l->modules.ladder, families[f].name, "tracepoint")))
			add(ctx, families[f].untold);
	if (loaded_meanwhile(l))
		add(ctx, "what a driver that was loaded meanwhile did inside before hooks were on "
			 "it");
	for (size_t k = 0; known && k < sizeof(gaps) / sizeof(*gaps); k++) {
		if (!gaps[k].missing || (k == DMA && !dma_known))
			continue;
		(void)snprintf(line, sizeof(line), "%s (%s)", gaps[k].what, gaps[k].why);
		add(ctx, line);
	}
}
