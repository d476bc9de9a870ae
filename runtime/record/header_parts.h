/* SPDX-License-Identifier: Apache-2.0 */
/*
 * header_parts.h - what header.c and header_session.c share: values of JSON.
 */
#ifndef NTRACE_RECORD_HEADER_PARTS_H
#define NTRACE_RECORD_HEADER_PARTS_H

#include <jansson.h>
#include <stdbool.h>

#include "runtime/record/header.h"

/* A text of which bytes that are not UTF-8 become '?'; NULL when memory is short. */
json_t *header_text(const char *text);
/* Sets key and takes the reference; a NULL value is a lack of memory. */
bool header_set(json_t *object, const char *key, json_t *value);
/* An array of texts, of which list ends with NULL; list NULL: an empty one.  NULL when memory is short. */
json_t *header_list(const char *const *list);
/* The texts of an array, to be freed, at most `most`; what is none is left out.  NULL when memory is short. */
const char **header_get_list(const json_t *array, size_t most);

/* The value of the key `session`, NULL when memory is short. */
json_t *header_session(const struct rec_session *s);
/* Reads it; what it points to lies in json or is in h.  0 or -ENOMEM. */
int header_get_session(const json_t *json, struct rec_header *h);
void header_free_session(struct rec_header *h);

#endif
