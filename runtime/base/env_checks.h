/* SPDX-License-Identifier: Apache-2.0 */
/*
 * env_checks.h - what can be wrong with an environment variable whose value alone is allowed.
 *
 * One place for the library and for `ntrace env`, which does not know the machine.  Pure.  Any thread.
 */
#ifndef NTRACE_BASE_ENV_CHECKS_H
#define NTRACE_BASE_ENV_CHECKS_H

#include <stdbool.h>
#include <stddef.h>

#include "runtime/base/env_table.h"

/* The text of a variable that has a value; NULL. */
typedef const char *env_lookup_fn(void *context, enum env_id id);

#define ENV_CHECK_BYTES 640u

/* Whether a variable of a good value ends nrt_init all the same; `ret` says why, such as "needs X=1". */
bool env_check(enum env_id id, env_lookup_fn *lookup, void *context, char *ret, size_t size);

/* Is it not even looked at, so that a wrong value does no harm? */
bool env_left_unread(enum env_id id, env_lookup_fn *lookup, void *context);

/* Is it about inspect sessions, while no variable has nrt_init begin one?  That need be no mistake: a program may
 * call nrt_inspect_begin, which goes by it. */
bool env_waits_for_session(enum env_id id, env_lookup_fn *lookup, void *context);

/* The variable that makes this one, which has a value, go unused; NULL. */
const struct env_row *env_overruled_by(enum env_id id, env_lookup_fn *lookup, void *context);

#endif
