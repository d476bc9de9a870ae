/* SPDX-License-Identifier: Apache-2.0 */
/*
 * env_table.h - the environment variables of env.def: what they are called, what a value may be, what a
 * misspelt name was meant to be.
 *
 * Pure: reads no environment, keeps nothing, says nothing.  Any thread.
 */
#ifndef NTRACE_BASE_ENV_TABLE_H
#define NTRACE_BASE_ENV_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum env_kind {
	ENV_TEXT,
	ENV_FLAG,
	ENV_TRUTH,
	ENV_NUMBER,
	ENV_CORE_SIZE,
	ENV_CLAMPED,
	ENV_POWER,
	ENV_MULTIPLE,
	ENV_CORES,
	ENV_CORE_SET,
	ENV_SIZES,
	ENV_WORD,
	ENV_SEARCHED,
};

enum env_use { ENV_USED, ENV_ACCEPTED, ENV_REMOVED };

enum env_group {
	ENV_OURS,
	ENV_CORE_CHOICE,
	ENV_LOG,
	ENV_INSPECT,
	ENV_DUMP,
	ENV_EXEC,
	ENV_LOAD,
	ENV_MEMORY,
	ENV_NUMERICS,
	ENV_DMA,
	ENV_COLLECTIVES,
};

enum env_id {
#define ENV(name, ...) ENV_ID_##name,
#include "runtime/base/env.def"
#undef ENV
	ENV_COUNT,
};

/* A variable; the columns of env.def. */
struct env_row {
	const char *name;
	enum env_group group;
	enum env_kind kind;
	int64_t min, max;
	const char *detail;
	const char *initial;
	enum env_use use;
	const char *text;
};

#define ENV_MAX_CORES 512u
#define ENV_MAX_SIZES 16u

/* What a text says; the members of the row's kind, the others are 0. */
struct env_value {
	int64_t number;			    /* also FLAG and TRUTH; WORD: what it stands for */
	uint64_t cores[ENV_MAX_CORES / 64]; /* CORES, CORE_SET: a bit each */
	uint32_t first, count;		    /* CORES: the run; CORE_SET: the lowest, how many */
	uint32_t sizes[ENV_MAX_SIZES];	    /* SIZES: `count` of them */
	uint64_t ignored;		    /* SIZES: how many more were given */
};

/* The row of an id below ENV_COUNT. */
const struct env_row *env_row(enum env_id id);

/* The row of the variable with this name; NULL. */
const struct env_row *env_find(const char *name, size_t len);

/* Is there a value?  Not in NULL, nor in an empty text of any kind but TEXT. */
bool env_has_value(const struct env_row *row, const char *text);

/* The word of a row of kind WORD that stands for the number; "": none.  At least 1 byte. */
void env_word(const struct env_row *row, int64_t number, char *buf, size_t size);

/* Reads a text.  0; -EINVAL: it is not allowed; -ERANGE: CORES that are no neighbours.  *ret is written on
 * success only. */
int env_parse(const struct env_row *row, const char *text, struct env_value *ret);

/* The number of a text; of the row's initial value when there is none, or it is not allowed. */
int64_t env_number(enum env_id id, const char *text);

/* What is allowed, such as "a number from 1 to 86400 (seconds)"; at most size bytes with the NUL.  Returns
 * buf. */
const char *env_allowed(const struct env_row *row, char *buf, size_t size);
#define ENV_ALLOWED_BYTES 160u

/* Is the name of a "NAME=VALUE" one of NEURON_* or NTRACE_*?  These are shown to who helps, no others. */
bool env_is_ours(const char *text);

/* The variable that a NEURON_* or NTRACE_* name outside the table was probably meant to be: at most two
 * letters are wrong, missing, too many or exchanged (one in a short name), or only the prefix is another.  NULL:
 * none is near, the name is in the table, or it is nobody's. */
const struct env_row *env_meant(const char *name, size_t len);

/* The heading of a group. */
const char *env_group_title(enum env_group group);

/* "used", "accepted" or "removed". */
const char *env_use_name(enum env_use use);

#endif
