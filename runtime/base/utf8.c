/* SPDX-License-Identifier: Apache-2.0 */
/*
 * utf8.c - the forms of RFC 3629, a row each.
 */
#include "runtime/base/utf8.h"

#include <stdint.h>

static const struct {
	uint8_t mask, lead;
	uint8_t length;
	uint32_t least; /* code points below have a shorter form */
} forms[] = {
	{0x80, 0x00, 1, 0x0},
	{0xe0, 0xc0, 2, 0x80},
	{0xf0, 0xe0, 3, 0x800},
	{0xf8, 0xf0, 4, 0x10000},
};

size_t utf8_length(const void *text, size_t left)
{
	const uint8_t *s = text;
	size_t form = 0;
	uint32_t cp;

	if (left == 0)
		return 0;
	while (form < 4 && (s[0] & forms[form].mask) != forms[form].lead)
		form++;
	if (form == 4 || forms[form].length > left)
		return 0;
	cp = s[0] & (uint8_t)~forms[form].mask;
	for (size_t i = 1; i < forms[form].length; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		cp = cp << 6 | (s[i] & 0x3f);
	}
	if (cp < forms[form].least || cp > 0x10ffff || (cp >= 0xd800 && cp <= 0xdfff))
		return 0;
	return forms[form].length;
}

size_t utf8_cut(const void *text, size_t len, size_t most)
{
	const uint8_t *s = text;

	if (len <= most)
		return len;
	for (size_t back = 1; back < 4 && back <= most; back++)
		if (utf8_length(s + most - back, len - most + back) > back)
			return most - back;
	return most;
}
