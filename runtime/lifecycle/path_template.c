/* SPDX-License-Identifier: Apache-2.0 */
/*
 * path_template.c - see path_template.h.
 */
#include "runtime/lifecycle/path_template.h"

#include <string.h>

#define TOKEN(letter, field)                                        \
	{                                                           \
		letter, offsetof(struct path_variables, field),     \
			sizeof(((struct path_variables *)0)->field) \
	}
static const struct token {
	char letter;
	size_t offset, bytes;
} tokens[] = {
	TOKEN('p', pid),
	TOKEN('t', tid),
	TOKEN('l', log_id),
	TOKEN('c', cluster_id),
	TOKEN('d', datetime),
	TOKEN('i', instance_id),
};

/* What the text begins with: the value of a token, or a character.  *ret_used: how much of the text it is. */
static const char *piece(
	const char *text, const struct path_variables *v, size_t *ret_len, size_t *ret_used)
{
	for (size_t i = 0; *text == '%' && i < sizeof(tokens) / sizeof(tokens[0]); i++)
		if (text[1] == tokens[i].letter) {
			const char *value = (const char *)v + tokens[i].offset;

			*ret_len = strnlen(value, tokens[i].bytes);
			*ret_used = 2;
			return value;
		}
	*ret_len = *ret_used = 1;
	return text;
}

size_t path_template(char *ret, size_t size, const char *text, const struct path_variables *v)
{
	size_t done = 0, len, used;

	if (size == 0)
		return 0;
	for (; text && *text && done < size - 1; text += used) {
		const char *from = piece(text, v, &len, &used);

		len = len < size - 1 - done ? len : size - 1 - done;
		memcpy(ret + done, from, len);
		done += len;
	}
	ret[done] = '\0';
	return done;
}
