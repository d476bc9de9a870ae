/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rec_print_hooks.c - see the header.
 */
#include "agent/output/rec_print_hooks.h"

#include <string.h>

#include "runtime/base/printable.h"

#define MAX_HOOK 200u
#define MAX_STEP 60u

static void plain(FILE *f, const char *text, size_t max)
{
	printable_put(f, text, strnlen(text, max));
}

void rec_print_hooks(FILE *f, const struct rec_ladder_step *ladder, const char *const *hooks)
{
	for (; hooks && *hooks; hooks++) {
		fprintf(f, "hook        ");
		plain(f, *hooks, MAX_HOOK);
		fputc('\n', f);
	}
	for (; ladder && ladder->family; ladder++) {
		fprintf(f, "ladder      ");
		plain(f, ladder->family, MAX_STEP);
		fprintf(f, ": ");
		plain(f, ladder->step, MAX_STEP);
		fputc(' ', f);
		plain(f, ladder->result, MAX_STEP);
		fputc('\n', f);
	}
}

static void key_string(struct json_out *j, const char *key, const char *text)
{
	jout_key(j, key);
	jout_string(j, text, strlen(text));
}

void rec_json_hooks(
	struct json_out *j, const struct rec_ladder_step *ladder, const char *const *hooks)
{
	jout_key(j, "hooks");
	jout_begin(j, '[');
	for (; hooks && *hooks; hooks++)
		jout_string(j, *hooks, strlen(*hooks));
	jout_end(j, ']');
	if (!ladder)
		return;
	jout_key(j, "ladder");
	jout_begin(j, '[');
	for (; ladder->family; ladder++) {
		jout_begin(j, '{');
		key_string(j, "family", ladder->family);
		key_string(j, "step", ladder->step);
		key_string(j, "result", ladder->result);
		jout_end(j, '}');
	}
	jout_end(j, ']');
}
