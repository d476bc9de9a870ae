/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model_plan.h - when each step of a model text begins and ends, reckoned from the text alone: what a profile of it
 * must say.
 *
 * Header only.  Knows nothing of the runtime's parser nor of the device's scheduler: it goes through time,
 * ends what ends then, and begins what can.  Texts are those of tests, and right.
 */
#ifndef NTRACE_TESTS_MODEL_PLAN_H
#define NTRACE_TESTS_MODEL_PLAN_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define PLAN_MAX_STEPS 512u
#define PLAN_MAX_SEMAPHORES 16u
#define PLAN_UNITS 22u /* five engines, TOPSP, sixteen DMA queues */

struct plan_step {
	unsigned unit; /* 0 to 4 engines, 5 TOPSP, 6 on DMA queues */
	uint64_t duration_ps;
	int wait, post; /* semaphore, -1 none */
	uint64_t wait_value, post_value;
	bool begun, ended;
	uint64_t start_ps, end_ps;
};

struct plan {
	bool serial; /* version 1 */
	unsigned count, semaphores;
	struct plan_step steps[PLAN_MAX_STEPS];
	char names[PLAN_MAX_SEMAPHORES][32];
	uint64_t value[PLAN_MAX_SEMAPHORES];
	uint64_t end_ps; /* of the whole run */
};

/* ---- the text ----------------------------------------------------------------------------- */

static inline unsigned plan_unit_(const char *word)
{
	static const char *const names[] = {"PE", "ACT", "POOL", "DVE", "SP", "TOPSP"};

	for (unsigned i = 0; i < 6; i++)
		if (!strcmp(names[i], word))
			return i;
	return 6 + (unsigned)atoi(word + strlen("DMA"));
}

static inline uint64_t plan_duration_(const char *word)
{
	char *unit;
	uint64_t n = strtoull(word, &unit, 10);

	return n * (!strcmp(unit, "ns")		 ? 1000ull
			   : !strcmp(unit, "us") ? 1000000ull
			   : !strcmp(unit, "ms") ? 1000000000ull
						 : 1000000000000ull);
}

static inline int plan_semaphore_(const struct plan *p, const char *name)
{
	for (unsigned i = 0; i < p->semaphores; i++)
		if (!strcmp(p->names[i], name))
			return (int)i;
	return -1;
}

static inline void plan_line_(struct plan *p, char *line)
{
	char *rest = NULL, *words[16] = {NULL};
	unsigned n = 0;
	struct plan_step *s;

	line[strcspn(line, "#")] = '\0';
	for (char *w = strtok_r(line, " \t", &rest); w && n < 15; w = strtok_r(NULL, " \t", &rest))
		words[n++] = w;
	if (n == 2 && !strcmp(words[0], "ntrace-model"))
		p->serial = !strcmp(words[1], "1");
	if (n == 2 && !strcmp(words[0], "semaphore"))
		strncpy(p->names[p->semaphores++], words[1], sizeof(p->names[0]) - 1);
	if (n < 4 || strcmp(words[0], "step") != 0)
		return;
	s = &p->steps[p->count++];
	*s = (struct plan_step){.unit = plan_unit_(words[1]),
		.duration_ps = plan_duration_(words[2]),
		.wait = -1,
		.post = -1,
		.post_value = 1};
	for (unsigned i = 4; i < n; i++) {
		if (!strcmp(words[i], "wait")) {
			s->wait = plan_semaphore_(p, words[i + 1]);
			s->wait_value = strtoull(words[i + 2], NULL, 10);
		} else if (!strcmp(words[i], "post")) {
			s->post = plan_semaphore_(p, words[i + 1]);
			if (words[i + 2] && words[i + 2][0] >= '0' && words[i + 2][0] <= '9')
				s->post_value = strtoull(words[i + 2], NULL, 10);
		}
	}
}

/* The steps of a text, with the durations that it gives them. */
static inline void plan_read(struct plan *p, const char *text)
{
	char *copy = strdup(text), *rest = NULL;

	memset(p, 0, sizeof(*p));
	for (char *line = strtok_r(copy, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
		plan_line_(p, line);
	free(copy);
}

/* ---- time --------------------------------------------------------------------------------- */

static inline bool plan_can_begin_(const struct plan *p, unsigned i)
{
	const struct plan_step *s = &p->steps[i];

	for (unsigned k = 0; k < i; k++)
		if (!p->steps[k].ended && (p->serial || p->steps[k].unit == s->unit))
			return false;
	return !s->begun && (s->wait < 0 || p->value[s->wait] >= s->wait_value);
}

/* Ends what ends at this time; a step without a duration ends where it begins. */
static inline bool plan_end_(struct plan *p, uint64_t now_ps)
{
	bool any = false;

	for (unsigned i = 0; i < p->count; i++) {
		struct plan_step *s = &p->steps[i];

		if (!s->begun || s->ended || s->end_ps != now_ps)
			continue;
		s->ended = any = true;
		if (s->post >= 0)
			p->value[s->post] += s->post_value;
	}
	return any;
}

static inline bool plan_begin_(struct plan *p, uint64_t now_ps)
{
	bool any = false;

	for (unsigned i = 0; i < p->count; i++) {
		struct plan_step *s = &p->steps[i];

		if (!plan_can_begin_(p, i))
			continue;
		s->begun = any = true;
		s->start_ps = now_ps;
		s->end_ps = now_ps + s->duration_ps;
	}
	return any;
}

/* When each step begins and ends, counted from the start of the run. */
static inline void plan_reckon(struct plan *p)
{
	uint64_t now_ps = 0;

	memset(p->value, 0, sizeof(p->value));
	for (unsigned i = 0; i < p->count; i++)
		p->steps[i].begun = p->steps[i].ended = false;
	while (now_ps != UINT64_MAX) {
		p->end_ps = now_ps;
		do
			(void)plan_end_(p, now_ps);
		while (plan_begin_(p, now_ps));
		now_ps = UINT64_MAX;
		for (unsigned i = 0; i < p->count; i++)
			if (p->steps[i].begun && !p->steps[i].ended && p->steps[i].end_ps < now_ps)
				now_ps = p->steps[i].end_ps;
	}
}

#endif
