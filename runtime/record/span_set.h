/* SPDX-License-Identifier: Apache-2.0 */
/*
 * span_set.h - spans by key while a recording is read: which have begun, which have ended.
 *
 * Memory is that of the spans that are in the set.  Pointers are valid until the next span_set_at.
 */
#ifndef NTRACE_RECORD_SPAN_SET_H
#define NTRACE_RECORD_SPAN_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct span_key {
	uint64_t who; /* source of a runtime; SPAN_KERNEL and the thread id */
	uint64_t id;  /* tracking id; start of the call */
};

#define SPAN_KERNEL (1ull << 32)

struct span {
	struct span_key key;
	uint64_t start, stop;		  /* ns */
	uint32_t start_block, stop_block; /* for the user's own purpose */
	bool used, has_start, has_stop;
};

struct span_set {
	struct span *slots;
	size_t mask, count;
};

/* The span of this key, made if it is not there; NULL when memory is short. */
struct span *span_set_at(struct span_set *s, struct span_key key);
/* The span, or NULL. */
const struct span *span_set_find(const struct span_set *s, struct span_key key);
void span_set_remove(struct span_set *s, struct span *span);
void span_set_free(struct span_set *s);

#endif
