/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_out.c - puts commas, quotes and escapes where JSON wants them.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "agent/output/json_out.h"
#include "runtime/base/utf8.h"

static void separate(struct json_out *j)
{
	if (j->comma)
		fputc(',', j->f);
	j->comma = true;
}

void jout_begin(struct json_out *j, char bracket)
{
	separate(j);
	fputc(bracket, j->f);
	j->comma = false;
}

void jout_end(struct json_out *j, char bracket)
{
	fputc(bracket, j->f);
	j->comma = true;
}

static void quoted(FILE *f, const char *s, size_t len)
{
	const unsigned char *p = (const unsigned char *)s, *end = p + len;

	fputc('"', f);
	while (p < end) {
		size_t n = utf8_length(p, (size_t)(end - p));
		if (n == 0) {
			fputs("\\ufffd", f);
			n = 1;
		} else if (n == 1 && (*p < 0x20 || *p == 0x7f)) {
			fprintf(f, "\\u%04x", *p);
		} else {
			if (*p == '"' || *p == '\\')
				fputc('\\', f);
			fwrite(p, 1, n, f);
		}
		p += n;
	}
	fputc('"', f);
}

void jout_key(struct json_out *j, const char *key)
{
	separate(j);
	quoted(j->f, key, strlen(key));
	fputc(':', j->f);
	j->comma = false;
}

void jout_string(struct json_out *j, const char *s, size_t len)
{
	separate(j);
	quoted(j->f, s, len);
}

void jout_unsigned(struct json_out *j, uint64_t v)
{
	separate(j);
	fprintf(j->f, "%" PRIu64, v);
}

void jout_signed(struct json_out *j, int64_t v)
{
	separate(j);
	fprintf(j->f, "%" PRId64, v);
}

void jout_double(struct json_out *j, double v)
{
	separate(j);
	if (isfinite(v))
		fprintf(j->f, "%.9g", v);
	else
		fputs("null", j->f);
}

void jout_bool(struct json_out *j, bool v)
{
	separate(j);
	fputs(v ? "true" : "false", j->f);
}

void jout_key_text(struct json_out *j, const char *key, const char *v)
{
	jout_key(j, key);
	jout_string(j, v, strlen(v));
}

void jout_key_unsigned(struct json_out *j, const char *key, uint64_t v)
{
	jout_key(j, key);
	jout_unsigned(j, v);
}

void jout_key_bool(struct json_out *j, const char *key, bool v)
{
	jout_key(j, key);
	jout_bool(j, v);
}
