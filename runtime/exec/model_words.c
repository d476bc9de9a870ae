/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model_words.c - single words of model texts: names, shapes, element types, durations; and how one is refused.
 */
#include "runtime/exec/model_parser.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define MAX_TENSOR_BYTES (1ull << 40)

static const struct {
	const char *name;
	uint8_t bytes;
	bool adds; /* the device can add it */
} dtypes[] = {
#define DTYPE(id, number, name, bytes, sum) \
	[NRT_DTYPE_##id] = {name, bytes, VDEV_SUM_##sum != VDEV_SUM_NONE},
#include "runtime/vdev/dtypes.def"
#undef DTYPE
};
#define DTYPE(id, number, name, bytes, sum) \
	static_assert((int)NRT_DTYPE_##id == (number), "number of " name);
#include "runtime/vdev/dtypes.def"
#undef DTYPE
#define DTYPE_COUNT (sizeof(dtypes) / sizeof(dtypes[0]))

static const struct {
	const char *suffix;
	uint64_t ps;
} time_units[] = {
	{"ns", 1000ull},
	{"us", 1000000ull},
	{"ms", 1000000000ull},
	{"s", 1000000000000ull},
};
#define TIME_UNIT_COUNT (sizeof(time_units) / sizeof(time_units[0]))

uint32_t model_dtype_bytes(nrt_dtype_t dtype)
{
	return (size_t)dtype < DTYPE_COUNT ? dtypes[dtype].bytes : 0;
}

bool model_dtype_adds(nrt_dtype_t dtype)
{
	return (size_t)dtype < DTYPE_COUNT && dtypes[dtype].adds;
}

const char *model_dtype_name(nrt_dtype_t dtype)
{
	return (size_t)dtype < DTYPE_COUNT ? dtypes[dtype].name : NULL;
}

int model_find_tensor(const struct model_desc *m, const char *name)
{
	for (uint32_t i = 0; i < m->tensor_count; i++)
		if (!strcmp(m->tensors[i].name, name))
			return (int)i;
	return -ENOENT;
}

/* ---- refusals ----------------------------------------------------------------------------- */

int parser_bad(struct parser *p, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	(void)vsnprintf(p->error->text, sizeof(p->error->text), format, ap);
	va_end(ap);
	return -EINVAL;
}

int parser_unknown(struct parser *p, const char *word, const char *what,
	const char *(*name_at)(size_t i), size_t count)
{
	char known[256] = "";
	size_t n = 0;

	for (size_t i = 0; i < count; i++)
		if (name_at(i) && n < sizeof(known))
			n += (size_t)snprintf(
				known + n, sizeof(known) - n, "%s%s", n ? " " : "", name_at(i));
	return parser_bad(p, "'%.64s' is not %s (%s)", word, what, known);
}

static const char *dtype_name(size_t i)
{
	return dtypes[i].name;
}

/* ---- words -------------------------------------------------------------------------------- */

int parser_check_name(struct parser *p, const char *name)
{
	size_t len = strlen(name);

	for (size_t i = 0; i < len; i++)
		if (!isalnum((unsigned char)name[i]) && !strchr("_.-", name[i]))
			return parser_bad(
				p, "'%.64s' is not a name (letters, digits, _ . -)", name);
	if (len >= NRT_TENSOR_NAME_MAX)
		return parser_bad(p, "a name has at most %d bytes", NRT_TENSOR_NAME_MAX - 1);
	return 0;
}

/* Unsigned decimal at *text, at most max; moves *text behind it. */
static bool take_number(const char **text, uint64_t max, uint64_t *ret)
{
	const char *s = *text;
	uint64_t value = 0;

	if (!isdigit((unsigned char)*s))
		return false;
	for (; isdigit((unsigned char)*s); s++) {
		value = value * 10 + (uint64_t)(*s - '0');
		if (value > max)
			return false;
	}
	*text = s;
	*ret = value;
	return true;
}

bool parser_count(const char *text, uint64_t max, uint64_t *ret)
{
	return take_number(&text, max, ret) && *text == '\0' && *ret > 0;
}

int parser_shape(struct parser *p, const char *text, struct model_tensor *t)
{
	const char *at = text;
	uint64_t bytes = model_dtype_bytes(t->dtype);

	t->count = 1;
	for (;;) {
		uint64_t n;

		if (t->ndim == MODEL_MAX_DIMS)
			return parser_bad(p, "more than %u dimensions", MODEL_MAX_DIMS);
		if (!take_number(&at, UINT32_MAX, &n) || n == 0)
			return parser_bad(p, "'%.64s' is not a shape like 1024x16", text);
		t->shape[t->ndim++] = (uint32_t)n;
		if (t->count > MAX_TENSOR_BYTES / n / bytes)
			return parser_bad(p, "shape '%.64s' is too large", text);
		t->count *= n;
		if (*at == '\0')
			break;
		if (*at++ != 'x')
			return parser_bad(p, "'%.64s' is not a shape like 1024x16", text);
	}
	t->bytes = t->count * bytes;
	return 0;
}

int parser_dtype(struct parser *p, const char *text, nrt_dtype_t *ret)
{
	for (size_t i = 0; i < DTYPE_COUNT; i++)
		if (dtypes[i].name && !strcmp(dtypes[i].name, text)) {
			*ret = (nrt_dtype_t)i;
			return 0;
		}
	return parser_unknown(p, text, "an element type", dtype_name, DTYPE_COUNT);
}

int parser_duration(struct parser *p, const char *text, uint64_t *ret_ps)
{
	const char *at = text;
	uint64_t n;

	if (take_number(&at, VDEV_EXEC_MAX_PS, &n))
		for (size_t i = 0; i < TIME_UNIT_COUNT; i++)
			if (!strcmp(time_units[i].suffix, at)) {
				if (n > VDEV_EXEC_MAX_PS / time_units[i].ps)
					return parser_bad(p, "'%.64s' is more than an hour", text);
				*ret_ps = n * time_units[i].ps;
				return 0;
			}
	return parser_bad(
		p, "'%.64s' is not a duration (a whole number and ns, us, ms or s)", text);
}
