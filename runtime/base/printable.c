/* SPDX-License-Identifier: Apache-2.0 */
/*
 * printable.c - see printable.h; one character at a time.
 */
#include "runtime/base/printable.h"

#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/utf8.h"

#define LONGEST 8 /* of one character as it is shown */

/* Would a terminal do something else than to show it? */
static bool is_control(uint32_t c)
{
	return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x2028 || c == 0x2029 || c == 0x200e ||
	       c == 0x200f || (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
}

/* The number of a character of n bytes that is sound. */
static uint32_t decode(const uint8_t *p, size_t n)
{
	uint32_t c = n == 1 ? *p : *p & (0x7fu >> n);

	for (size_t i = 1; i < n; i++)
		c = c << 6 | (p[i] & 0x3f);
	return c;
}

/* How the first character of a text is shown; returns how many bytes it took. */
static size_t show(const char *s, size_t len, char text[LONGEST])
{
	const uint8_t *p = (const uint8_t *)s;
	size_t n = utf8_length(p, len);
	uint32_t c = n ? decode(p, n) : 0;

	if (n == 0)
		snprintf(text, LONGEST, "\\x%02x", *p);
	else if (c == '\n' || c == '\t')
		snprintf(text, LONGEST, "\\%c", c == '\n' ? 'n' : 't');
	else if (is_control(c))
		snprintf(text, LONGEST, c < 0x80 ? "\\x%02x" : "\\u%04x", (unsigned)c);
	else
		snprintf(text, LONGEST, "%.*s", (int)n, s);
	return n ? n : 1;
}

const char *printable_into(const char *s, size_t len, char *buf, size_t size)
{
	char text[LONGEST];
	size_t used = 0;

	buf[0] = '\0';
	for (size_t at = 0; at < len;) {
		at += show(s + at, len - at, text);
		if (used + strlen(text) + sizeof("...") > size) {
			memcpy(buf + used, "...", sizeof("..."));
			break;
		}
		memcpy(buf + used, text, strlen(text) + 1);
		used += strlen(text);
	}
	return buf;
}

const char *printable(const char *s, size_t len, char buf[PRINTABLE_BYTES])
{
	return printable_into(s, len, buf, PRINTABLE_BYTES);
}

void printable_put(FILE *f, const char *s, size_t len)
{
	char text[LONGEST];

	for (size_t at = 0; at < len;) {
		at += show(s + at, len - at, text);
		fputs(text, f);
	}
}
