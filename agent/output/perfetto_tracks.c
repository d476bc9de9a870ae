/* SPDX-License-Identifier: Apache-2.0 */
/*
 * perfetto_tracks.c - tracks of threads and cores, which are made when something is shown on them.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "agent/output/perfetto_process.h"

/* The core itself, whether or not anything else was shown on it. */
static uint64_t core_track(struct pft_process *p, uint32_t core)
{
	struct pft_line *line = pft_line_get(&p->lines, PFT_LINE_CORE, core, 0);

	if (!line) {
		p->w->error = -ENOMEM;
		return 0;
	}
	return pft_line_track(p, line, 0);
}

/* ---- units -------------------------------------------------------------------------------- */

static const char *const units[] = {"unit", "pe", "act", "pool", "dve", "sp", "topsp"};

#define UNITS (sizeof(units) / sizeof(*units))
#define FIRST_DMA 16u /* the numbers of DMA queues */
#define DMA_QUEUES ((1u << PFT_UNIT_BITS) - FIRST_DMA)

uint32_t pft_unit(struct pb_str name)
{
	uint32_t queue = 0;

	for (uint32_t i = 1; i < UNITS; i++)
		if (strlen(units[i]) == name.len && !memcmp(units[i], name.s, name.len))
			return i;
	if (name.len < 4 || name.len > 6 || memcmp(name.s, "dma", 3) != 0)
		return 0;
	for (uint32_t i = 3; i < name.len; i++) {
		if (name.s[i] < '0' || name.s[i] > '9')
			return 0;
		queue = 10 * queue + (uint32_t)(name.s[i] - '0');
	}
	return queue < DMA_QUEUES ? FIRST_DMA + queue : 0;
}

static void unit_name(const struct pft_line *line, char *name, size_t size)
{
	uint32_t unit = line->physical & ((1u << PFT_UNIT_BITS) - 1);

	if (unit >= FIRST_DMA)
		snprintf(name, size, "dma%u", unit - FIRST_DMA);
	else
		snprintf(name, size, "%s", units[unit < UNITS ? unit : 0]);
}

/* The physical core of a unit, whether or not a run was shown on it. */
static uint64_t physical_track(struct pft_process *p, const struct pft_line *unit)
{
	struct pft_line *line = pft_line_get(
		&p->lines, PFT_LINE_PHYSICAL, unit->number, unit->physical >> PFT_UNIT_BITS);

	if (!line) {
		p->w->error = -ENOMEM;
		return 0;
	}
	return pft_line_track(p, line, 0);
}

static void core_name(const struct pft_line *line, char *name, size_t size)
{
	if (line->number == UINT32_MAX)
		snprintf(name, size, "NeuronCore unknown");
	else
		snprintf(name, size, "NeuronCore %u", line->number);
	if (line->kind == PFT_LINE_PHYSICAL)
		snprintf(name + strlen(name), size - strlen(name), ", physical core %u",
			line->physical);
}

static void queue_name(const struct pft_line *line, char *name, size_t size)
{
	if (line->physical == PFT_NO_QUEUE)
		snprintf(name, size, "neuron%u DMA, asynchronous copies", line->number >> 16);
	else
		snprintf(name, size, "neuron%u DMA engine %u queue %u", line->number >> 16,
			line->number & 0xffff, line->physical);
}

uint32_t pft_line_track(struct pft_process *p, struct pft_line *line, uint32_t lane)
{
	struct pft_lane *l = pft_lane_get(line, lane);
	struct pft_track t = {.parent = p->track, .tid = line->number, .pid = p->pid};
	char name[80];

	if (!l) {
		p->w->error = -ENOMEM;
		return 0;
	}
	if (l->track)
		return l->track;
	if (line->kind == PFT_LINE_THREAD) {
		snprintf(name, sizeof(name), "thread %u", line->number);
		t.is_thread = p->pid != 0 && line->number != 0;
	} else {
		if (line->kind == PFT_LINE_UNIT)
			unit_name(line, name, sizeof(name));
		else if (line->kind == PFT_LINE_QUEUE)
			queue_name(line, name, sizeof(name));
		else
			core_name(line, name, sizeof(name));
		if (lane)
			snprintf(name + strlen(name), sizeof(name) - strlen(name), ", at once %u",
				lane + 1);
		if (line->kind == PFT_LINE_PHYSICAL)
			t.parent = core_track(p, line->number);
		if (line->kind == PFT_LINE_UNIT)
			t.parent = physical_track(p, line);
	}
	t.name = pft_str(name);
	l->track = pft_track(p->w, &p->seq, &t);
	return l->track;
}
