/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model_parser.h - what the files of the model parser share; nobody else includes it.
 *
 * model_format.c reads lines, model_words.c single words, model_steps.c the lines of steps and semaphores;
 * model_order.c looks at all steps together.  Functions return 0, or -EINVAL with p->error filled; its line is
 * the one that is being read.
 */
#ifndef NTRACE_EXEC_MODEL_PARSER_H
#define NTRACE_EXEC_MODEL_PARSER_H

#include <stdbool.h>

#include "runtime/exec/model_format.h"

#define MODEL_MAX_LINE 1024u
#define MODEL_MAX_WORDS 16u

struct parser {
	struct model_desc *m;
	struct model_error *error;
	bool written[VDEV_MAX_BINDINGS];      /* by a step, or by the program for inputs */
	uint32_t declared[VDEV_MAX_BINDINGS]; /* line */
	uint32_t read_at[VDEV_MAX_BINDINGS];  /* line of the first step that reads it, 0 = none */
	uint64_t duration_ps;		      /* of all steps so far */
	char semaphores[VDEV_MAX_SEMAPHORES][NRT_TENSOR_NAME_MAX];
	char line[MODEL_MAX_LINE];
	char *words[MODEL_MAX_WORDS];
	uint32_t word_count;
};

/* ---- model_words.c ------------------------------------------------------------------------- */

__attribute__((format(printf, 2, 3))) int parser_bad(struct parser *p, const char *format, ...);

/* Refuses a word and lists those that there are; name_at(i) is NULL where a table has a hole. */
int parser_unknown(struct parser *p, const char *word, const char *what,
	const char *(*name_at)(size_t i), size_t count);

int parser_check_name(struct parser *p, const char *name);
int parser_shape(struct parser *p, const char *text, struct model_tensor *t);
int parser_dtype(struct parser *p, const char *text, nrt_dtype_t *ret);
int parser_duration(struct parser *p, const char *text, uint64_t *ret_ps);
/* A whole number from 1 to max, and nothing else. */
bool parser_count(const char *text, uint64_t max, uint64_t *ret);

/* Can the device add it? */
bool model_dtype_adds(nrt_dtype_t dtype);
/* Its name, NULL for an unknown one. */
const char *model_dtype_name(nrt_dtype_t dtype);

/* Index of the tensor with this name, or -ENOENT. */
int model_find_tensor(const struct model_desc *m, const char *name);

/* ---- model_steps.c, model_order.c ----------------------------------------------------------- */

int parser_step(struct parser *p);
int parser_semaphore(struct parser *p);

/* Do all steps run to the end whatever their durations are? */
int parser_check_order(struct parser *p);

#endif
