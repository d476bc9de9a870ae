/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config.c - parsing of settings.  A malformed value fails nrt_init instead of being taken for
 * something else.
 */
#include "runtime/lifecycle/config.h"

#include <ctype.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/env.h"
#include "runtime/log/log.h"

#define TAG "NRT"

static NRT_STATUS worse(NRT_STATUS a, NRT_STATUS b)
{
	return a > b ? a : b;
}

/* Unsigned decimal of at most `max`; the whole text. */
static int parse_uint(const char *text, uint32_t max, uint32_t *ret)
{
	char *end;
	unsigned long value;

	if (!isdigit((unsigned char)text[0]))
		return -EINVAL;
	errno = 0;
	value = strtoul(text, &end, 10);
	if (errno || *end || value > max)
		return -EINVAL;
	*ret = (uint32_t)value;
	return 0;
}

/* ---- core lists --------------------------------------------------------------------------- */

/* "N" or "A-B" at *text; moves *text behind it. */
static int parse_item(const char **text, bool *cores)
{
	unsigned long low, high;
	char *end;

	if (!isdigit((unsigned char)**text))
		return -EINVAL;
	errno = 0;
	low = high = strtoul(*text, &end, 10);
	if (*end == '-') {
		if (!isdigit((unsigned char)end[1]))
			return -EINVAL;
		high = strtoul(end + 1, &end, 10);
	}
	if (errno || high < low || high >= CONFIG_MAX_CORES)
		return -EINVAL;
	for (unsigned long i = low; i <= high; i++)
		cores[i] = true;
	*text = end;
	return 0;
}

int config_parse_cores(const char *text, uint32_t *ret_first, uint32_t *ret_count)
{
	bool cores[CONFIG_MAX_CORES] = {false};
	uint32_t first = 0, end;
	int rc;

	for (;;) {
		rc = parse_item(&text, cores);
		if (rc < 0)
			return rc;
		if (*text == '\0')
			break;
		if (*text++ != ',')
			return -EINVAL;
	}
	while (!cores[first])
		first++;
	for (end = first; end < CONFIG_MAX_CORES && cores[end]; end++)
		;
	for (uint32_t i = end; i < CONFIG_MAX_CORES; i++)
		if (cores[i])
			return -ERANGE;
	*ret_first = first;
	*ret_count = end - first;
	return 0;
}

/* ---- the table ---------------------------------------------------------------------------- */

enum kind { TEXT, FLAG, NUMBER, CORES };

struct setting {
	const char *name;
	enum kind kind;
	uint32_t min, max;
	const char *before;
	size_t offset;
};

static const struct setting settings[] = {
#define ENV(field, name, kind, min, max, initial, before, text) \
	{name, kind, min, max, before, offsetof(struct config, field)},
#define ENV_OTHER(name, values, initial, text)
#include "runtime/lifecycle/env.def"
#undef ENV
#undef ENV_OTHER
};

/* NULL when it is unset or empty. */
static const char *text_of(const char *name)
{
	const char *text = getenv(name);

	return text && *text ? text : NULL;
}

static NRT_STATUS read_text(const struct setting *s, const char *text, void *field)
{
	(void)s;
	*(const char **)field = text;
	return NRT_SUCCESS;
}

static NRT_STATUS read_number(const struct setting *s, const char *text, void *field)
{
	uint32_t got;

	if (parse_uint(text, s->max, &got) < 0 || got < s->min) {
		log_error(TAG, "%s='%s' is not a number from %u to %u", s->name, text, s->min,
			s->max);
		return NRT_INVALID;
	}
	*(uint32_t *)field = got;
	return NRT_SUCCESS;
}

static NRT_STATUS read_flag(const struct setting *s, const char *text, void *field)
{
	uint32_t number = 0;
	NRT_STATUS status = read_number(s, text, &number);

	if (!status)
		*(bool *)field = number != 0;
	return status;
}

static NRT_STATUS read_cores(const struct setting *s, const char *text, void *field)
{
	struct config_cores *cores = field;
	int rc = config_parse_cores(text, &cores->first, &cores->count);

	if (rc == -ERANGE)
		log_error(TAG, "Logical Neuron cores are not contiguous");
	else if (rc < 0)
		log_error(TAG, "%s='%s' is not a list like 0-3,4 of cores below %u", s->name, text,
			CONFIG_MAX_CORES);
	return rc < 0 ? NRT_INVALID : NRT_SUCCESS;
}

static NRT_STATUS (*const readers[])(const struct setting *, const char *, void *) = {
	[TEXT] = read_text, [FLAG] = read_flag, [NUMBER] = read_number, [CORES] = read_cores};

static NRT_STATUS read_setting(const struct setting *s, struct config *c)
{
	const char *text = text_of(s->name);

	if (!text)
		return NRT_SUCCESS;
	if (s->before && text_of(s->before)) {
		log_warn(TAG, "Using %s to allocate Logical Neuron Cores and not %s", s->before,
			s->name);
		return NRT_SUCCESS;
	}
	return readers[s->kind](s, text, (char *)c + s->offset);
}

NRT_STATUS config_read(struct config *ret)
{
	struct config c = {
#define INITIAL_TEXT(initial) (initial)
#define INITIAL_FLAG(initial) (initial)
#define INITIAL_NUMBER(initial) (initial)
#define INITIAL_CORES(initial) \
	{                      \
		0, 0           \
	}
#define ENV(field, name, kind, min, max, initial, before, text) .field = INITIAL_##kind(initial),
#define ENV_OTHER(name, values, initial, text)
#include "runtime/lifecycle/env.def"
#undef ENV
#undef ENV_OTHER
	};
	NRT_STATUS status = NRT_SUCCESS;

	for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++)
		status = worse(status, read_setting(&settings[i], &c));
	if (!c.lnc_size)
		c.lnc_size = c.virtual_size;
	if (status == NRT_SUCCESS)
		*ret = c;
	return status;
}
