/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rec_print.h - the summary of a recording as text or as one JSON object.
 */
#ifndef NTRACE_OUTPUT_REC_PRINT_H
#define NTRACE_OUTPUT_REC_PRINT_H

#include <stdio.h>

#include "runtime/record/rec_summary.h"

void rec_print_text(FILE *f, const struct rec_summary *s);
void rec_print_json(FILE *f, const struct rec_summary *s);

/* One line on what was skipped or cut off; nothing when all is whole. */
void rec_print_damage(FILE *f, const struct rec_damage *d);

#endif
