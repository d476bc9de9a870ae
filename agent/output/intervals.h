/* SPDX-License-Identifier: Apache-2.0 */
/*
 * intervals.h - unions and intersections of times in which something ran.
 *
 * A set keeps disjoint half-open intervals.  They come in the order of their ends, as the STOPs of a
 * trace do, and what overlaps or touches is joined at once, so a set holds 16 bytes per gap and not per
 * span.  In another order they are only joined by intervals_finish.
 */
#ifndef NTRACE_OUTPUT_INTERVALS_H
#define NTRACE_OUTPUT_INTERVALS_H

#include <stddef.h>
#include <stdint.h>

struct ran {
	uint64_t from, to;
};

/* Zero-initialise; intervals_free at the end. */
struct intervals {
	struct ran *list;
	size_t n, cap;
};

/* Adds [from, to); an empty one is nothing.  0 or -ENOMEM. */
int intervals_add(struct intervals *s, uint64_t from, uint64_t to);
/* Sorts and joins; needed before the functions below. */
void intervals_finish(struct intervals *s);
void intervals_free(struct intervals *s);

/* Sum of the lengths. */
uint64_t intervals_total(const struct intervals *s);
/* Adds all of b to a; needs intervals_finish then.  0 or -ENOMEM. */
int intervals_append(struct intervals *a, const struct intervals *b);
/* Adds all of b to a, which is finished then.  0 or -ENOMEM. */
int intervals_join(struct intervals *a, const struct intervals *b);
/* Keeps of a what is in b too.  0 or -ENOMEM. */
int intervals_common(struct intervals *a, const struct intervals *b);

#endif
