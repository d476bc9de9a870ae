/* SPDX-License-Identifier: Apache-2.0 */
/*
 * perfetto_intern.h - texts that have numbers, counted from 1 in the order in which they come.
 */
#ifndef NTRACE_OUTPUT_PERFETTO_INTERN_H
#define NTRACE_OUTPUT_PERFETTO_INTERN_H

#include <stdint.h>

#include "proto/event_codec.h"

/* A text that has a number; `aux` is the user's, 0 at first. */
struct pft_text {
	uint64_t hash;
	char *text;
	uint32_t len;
	uint32_t iid;
	uint32_t aux;
};

/* Zero-initialise; pft_intern_free at the end. */
struct pft_intern {
	struct pft_text *entries; /* open addressing; iid 0 is free */
	struct pb_str *texts;	  /* by number - 1; as many as half the entries */
	uint32_t count;
	unsigned bits;
};

/* The entry of a text, valid until the next is added; NULL: it has none.  *ret_hash is for adding it. */
struct pft_text *pft_intern_find(
	const struct pft_intern *t, struct pb_str text, uint64_t *ret_hash);
/* Adds a text that is not there.  NULL: no memory. */
struct pft_text *pft_intern_add(struct pft_intern *t, uint64_t hash, struct pb_str text);
/* The text of a number, "?" for one that there is not. */
struct pb_str pft_intern_text(const struct pft_intern *t, uint32_t iid);
void pft_intern_free(struct pft_intern *t);

#endif
