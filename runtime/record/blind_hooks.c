/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blind_hooks.c - which families of hooks each driver was recorded without, from what was tried on it.
 *
 * A recording's header says what was tried on the driver that was there when it began, and a REC_MODULE what
 * on one that came later.  Each driver stands for itself: hooks that one had say nothing of another's.  A
 * family that is not named there was not tried.
 */
#include "runtime/record/blind_hooks.h"

#include <assert.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "runtime/record/blind.h"

enum kind { CALL, DMA, KINDS };

static const struct {
	const char *name;
	enum kind kind;
	const char *since, *unseen, *untold, *without;
} families[] = {
#define FAMILY(name, kind, since, unseen, untold) \
	{name, kind, since, unseen, untold, "not seen: " unseen},
#include "runtime/record/hook_families.def"
#undef FAMILY
};

#define FAMILIES (sizeof(families) / sizeof(*families))
#define WHY 160u /* three steps as long as a REC_MODULE has them */

/* The longest line: all that can be unseen of the DMA path, the driver, and why. */
enum {
#define FAMILY(name, kind, since, unseen, untold) +((kind) == DMA) * (sizeof(unseen) + 1)
	DMA_UNSEEN = 0
#include "runtime/record/hook_families.def"
#undef FAMILY
};
enum {
#define FAMILY(name, kind, since, unseen, untold) +sizeof(unseen) + 1
	ALL_UNSEEN = 0
#include "runtime/record/hook_families.def"
#undef FAMILY
};
static_assert(DMA_UNSEEN + WHY + 48 < BLIND_BYTES, "a line is cut");

/* A driver that was there, and what was tried on it. */
struct driver {
	const char *version; /* NULL: unknown */
	const struct rec_ladder_step *ladder;
};

static bool is_inside(const struct rec_ladder_step *s)
{
	return !strcmp(s->step, "fentry") || !strcmp(s->step, "kprobe") ||
	       (!strcmp(s->step, "tracepoint") && strcmp(s->family, "ioctl") != 0);
}

static bool is_reached(const struct rec_ladder_step *s)
{
	return !strcmp(s->result, "reached");
}

/* Was it reached on a step inside of the driver?  If not, the steps that were tried and what came of them
 * go into `why`. */
static bool is_hooked(const struct driver *d, const char *family, char why[WHY])
{
	size_t used = 0;

	snprintf(why, WHY, "not hooked");
	for (const struct rec_ladder_step *s = d->ladder; s->family; s++) {
		if (strcmp(s->family, family) != 0 || !is_inside(s))
			continue;
		if (is_reached(s))
			return true;
		if (used < WHY) {
			snprintf(why + used, WHY - used, "%s%s: %s", used ? ", " : "", s->step,
				s->result);
			used = strlen(why);
		}
	}
	return false;
}

static bool is_told_by_tracepoints(const struct driver *d, const char *family)
{
	for (const struct rec_ladder_step *s = d->ladder; s->family; s++)
		if (!strcmp(s->family, family) && !strcmp(s->step, "tracepoint") && is_reached(s))
			return true;
	return false;
}

static bool is_needed(size_t f, const char *version)
{
	return !(families[f].since && driver_is_before(version, families[f].since));
}

static bool is_missed(const struct driver *d, size_t f, char why[WHY])
{
	return !is_hooked(d, families[f].name, why) && is_needed(f, d->version);
}

/* ---- drivers -------------------------------------------------------------------------------- */

/* Was there one when the recording began? */
static bool is_there_at_start(const struct rec_header_info *info)
{
	const struct rec_ladder_step *s = info->ladder;

	if (!s)
		return false;
	for (; s->family; s++) {
		if (is_inside(s))
			return true;
		if (!strcmp(s->family, "driver"))
			return false;
	}
	return info->driver && !info->is_virtual;
}

#define DRIVERS 16u /* more than there are lines to say what each was recorded without */

/* Those of a recording that are told apart by version and by what was tried. */
struct drivers {
	struct driver list[DRIVERS];
	size_t count;
	bool more;
};

static bool is_same(const struct driver *a, const struct driver *b)
{
	const struct rec_ladder_step *x = a->ladder, *y = b->ladder;

	if (!a->version != !b->version || (a->version && strcmp(a->version, b->version) != 0))
		return false;
	while (x->family && y->family && !strcmp(x->family, y->family) &&
		!strcmp(x->step, y->step) && !strcmp(x->result, y->result))
		x++, y++;
	return !x->family && !y->family;
}

static void add_driver(struct drivers *d, struct driver new)
{
	size_t i = 0;

	while (i < d->count && !is_same(&d->list[i], &new))
		i++;
	if (i == DRIVERS)
		d->more = true;
	else if (i == d->count)
		d->list[d->count++] = new;
}

static void find_drivers(const struct session *l, struct drivers *d)
{
	const struct rec_header_info *info = &l->header.info;

	if (is_there_at_start(info))
		add_driver(d, (struct driver){info->driver, info->ladder});
	for (size_t i = 0; i < l->modules.count; i++) {
		const struct module_change *c = &l->modules.changes[i];

		if (c->loaded)
			add_driver(
				d, (struct driver){c->version[0] ? c->version : NULL, c->ladder});
	}
}

/* ---- sentences ------------------------------------------------------------------------------ */

typedef void add_fn(void *ctx, const char *line);

/* One sentence for each reason, with all families of the kind that share it. */
static void say_missed(
	const struct driver *d, enum kind kind, bool name_driver, add_fn *add, void *ctx)
{
	bool said[FAMILIES] = {false};

	for (size_t f = 0; f < FAMILIES; f++) {
		char line[BLIND_BYTES], why[WHY], other[WHY];
		size_t n;

		if (families[f].kind != kind || said[f] || !is_missed(d, f, why))
			continue;
		n = (size_t)snprintf(line, sizeof(line), "%s", families[f].unseen);
		for (size_t g = f + 1; g < FAMILIES; g++) {
			if (families[g].kind != kind || !is_missed(d, g, other) ||
				strcmp(why, other) != 0)
				continue;
			said[g] = true;
			n += (size_t)snprintf(
				line + n, sizeof(line) - n, ", %s", families[g].unseen);
		}
		if (name_driver)
			snprintf(line + n, sizeof(line) - n, " (driver %s; %s)",
				d->version ? d->version : "of unknown version", why);
		else
			snprintf(line + n, sizeof(line) - n, " (%s)", why);
		add(ctx, line);
	}
}

/* Does nothing tell of a driver's own threads? */
static bool is_dma_unseen(const struct drivers *d)
{
	char why[WHY];

	for (size_t i = 0; i < d->count; i++) {
		size_t f = 0;

		while (f < FAMILIES &&
			(families[f].kind != DMA || !is_hooked(&d->list[i], families[f].name, why)))
			f++;
		if (f == FAMILIES)
			return true;
	}
	return !d->count;
}

static bool is_untold(const struct drivers *d, size_t f)
{
	for (size_t i = 0; families[f].untold && i < d->count; i++)
		if (is_told_by_tracepoints(&d->list[i], families[f].name))
			return true;
	return false;
}

/* Is nobody there to stand in for a family while an unused driver is let go? */
static bool is_let_go(const struct drivers *d, const char *family)
{
	for (size_t i = 0; i < d->count; i++)
		for (const struct rec_ladder_step *s = d->list[i].ladder; s->family; s++)
			if (!strcmp(s->step, "idle") && !strcmp(s->family, family))
				return true;
	return false;
}

static void say_let_go(const struct drivers *d, add_fn *add, void *ctx)
{
	static const char begin[] = "from when somebody opens a device that nobody had open until "
				    "hooks are back on the driver: ";
	char line[BLIND_BYTES];
	const char *sep = begin;
	size_t n = 0;

	static_assert(ALL_UNSEEN + sizeof(begin) < BLIND_BYTES, "a line is cut");
	for (size_t f = 0; f < FAMILIES; f++) {
		if (!is_let_go(d, families[f].name))
			continue;
		n += (size_t)snprintf(line + n, sizeof(line) - n, "%s%s", sep, families[f].unseen);
		sep = ", ";
	}
	if (n)
		add(ctx, line);
}

/* Rounded up: it is what was at most. */
static uint64_t in_ms(uint64_t ns)
{
	return ns / 1000000 + (ns % 1000000 != 0);
}

void blind_meanwhile(const struct session *l, add_fn *add, void *ctx)
{
	uint64_t calls_ns = 0, inside_ns = 0;
	char line[BLIND_BYTES];
	bool any = false;

	for (size_t i = 0; i < l->modules.count; i++) {
		const struct module_change *c = &l->modules.changes[i];

		if (!c->loaded)
			continue;
		any = true;
		calls_ns = c->calls_unseen_ns > calls_ns ? c->calls_unseen_ns : calls_ns;
		inside_ns = c->inside_unseen_ns > inside_ns ? c->inside_unseen_ns : inside_ns;
	}
	snprintf(line, sizeof(line),
		"what a driver that was loaded meanwhile did before hooks were on it: calls of at "
		"most %" PRIu64 " ms, what it did inside of at most %" PRIu64 " ms",
		in_ms(calls_ns), in_ms(inside_ns));
	if (any)
		add(ctx, line);
}

void blind_hooks(const struct session *l, add_fn *add, void *ctx)
{
	struct drivers d = {.count = 0};

	find_drivers(l, &d);
	add(ctx, "doorbells rung from user space through mapped registers");
	add(ctx, is_dma_unseen(&d)
			 ? "DMA that devices start by themselves, and the driver's own threads and "
			   "interrupts"
			 : "DMA that devices start by themselves, and the driver's interrupts");
	for (size_t f = 0; f < FAMILIES; f++)
		if (is_untold(&d, f))
			add(ctx, families[f].untold);
	blind_meanwhile(l, add, ctx);
	say_let_go(&d, add, ctx);
	for (size_t i = 0; i < d.count; i++)
		for (unsigned kind = 0; kind < KINDS; kind++)
			say_missed(&d.list[i], (enum kind)kind, d.count > 1, add, ctx);
	if (d.more)
		add(ctx, "what the hooks of still other drivers did not reach");
}

/* ---- for `ntrace check` ---------------------------------------------------------------------- */

static size_t find(const char *family)
{
	size_t f = 0;

	while (f < FAMILIES && strcmp(families[f].name, family) != 0)
		f++;
	return f;
}

const char *blind_family_without(const char *family)
{
	size_t f = find(family);

	return f < FAMILIES ? families[f].without : NULL;
}

const char *blind_family_since(const char *family, const char *version)
{
	size_t f = find(family);

	return f < FAMILIES && !is_needed(f, version) ? families[f].since : NULL;
}
