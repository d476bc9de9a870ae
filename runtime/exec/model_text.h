/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model_text.h - the bytes of loaded models, for the model files that stand beside device profiles.
 *
 * They are kept as long as the model is loaded, or a profile needs them, and once: a model that is loaded on all cores has one
 * copy.  Any thread.
 */
#ifndef NTRACE_EXEC_MODEL_TEXT_H
#define NTRACE_EXEC_MODEL_TEXT_H

#include <stddef.h>
#include <stdint.h>

struct model_text {
	struct model_text *next; /* model_text.c's own, as refs */
	uint32_t refs;
	uint64_t digest[2];
	size_t size;
	char bytes[];
};

/* A copy of the bytes, or the one that there is, with a reference; digest: of these bytes.  NULL: no memory. */
struct model_text *model_text_get(const void *bytes, size_t size, const uint64_t digest[2]);

struct model_text *model_text_ref(struct model_text *t);
/* NULL is harmless. */
void model_text_put(struct model_text *t);

#endif
