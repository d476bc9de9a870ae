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
		core_name(line, name, sizeof(name));
		if (lane)
			snprintf(name + strlen(name), sizeof(name) - strlen(name), ", at once %u",
				lane + 1);
		if (line->kind == PFT_LINE_PHYSICAL)
			t.parent = core_track(p, line->number);
	}
	t.name = pft_str(name);
	l->track = pft_track(p->w, &p->seq, &t);
	return l->track;
}
