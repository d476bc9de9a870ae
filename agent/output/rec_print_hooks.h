/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rec_print_hooks.h - which ways of hooking a driver were tried and reached, and the hooks that were on it, for rec_print.c.
 */
#ifndef NTRACE_OUTPUT_REC_PRINT_HOOKS_H
#define NTRACE_OUTPUT_REC_PRINT_HOOKS_H

#include <stdio.h>

#include "agent/output/json_out.h"
#include "runtime/record/header.h"

/* Both lists may be NULL: nobody told. */
void rec_print_hooks(FILE *f, const struct rec_ladder_step *ladder, const char *const *hooks);
/* The keys "hooks" and, where it is known, "ladder". */
void rec_json_hooks(
	struct json_out *j, const struct rec_ladder_step *ladder, const char *const *hooks);

#endif
