/* SPDX-License-Identifier: Apache-2.0 */
/*
 * env_table.c - reads and describes values of environment variables, by kind.
 *
 * Numbers are decimal digits and nothing else, with a minus sign where negative ones are allowed.
 * The vendor's readers may also take blanks and a plus sign in front; here they are a mistake.
 */
#include "runtime/base/env_table.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "runtime/base/near_name.h"

static const struct env_row rows[] = {
#define ENV(name, group, kind, min, max, detail, initial, use, text) \
	{#name, ENV_##group, ENV_##kind, min, max, detail, initial, ENV_##use, text},
#include "runtime/base/env.def"
#undef ENV
};

static const char *const group_titles[] = {
	[ENV_OURS] = "Of this library alone",
	[ENV_CORE_CHOICE] = "Devices and cores",
	[ENV_LOG] = "Messages",
	[ENV_INSPECT] = "Inspection and profiles",
	[ENV_DUMP] = "Dumps after a failure",
	[ENV_EXEC] = "Execution",
	[ENV_LOAD] = "Loading of models",
	[ENV_MEMORY] = "Memory",
	[ENV_NUMERICS] = "Numerics",
	[ENV_DMA] = "Transfers and their descriptors",
	[ENV_COLLECTIVES] = "Collectives",
};

static const char *const use_names[] = {
	[ENV_USED] = "used", [ENV_ACCEPTED] = "accepted", [ENV_REMOVED] = "removed"};

const struct env_row *env_row(enum env_id id)
{
	return &rows[id];
}

const char *env_group_title(enum env_group group)
{
	return group_titles[group];
}

const char *env_use_name(enum env_use use)
{
	return use_names[use];
}

const struct env_row *env_find(const char *name, size_t len)
{
	for (size_t i = 0; i < ENV_COUNT; i++)
		if (!strncmp(rows[i].name, name, len) && !rows[i].name[len])
			return &rows[i];
	return NULL;
}

bool env_has_value(const struct env_row *row, const char *text)
{
	return text && (*text || row->kind == ENV_TEXT);
}

int64_t env_number(enum env_id id, const char *text)
{
	const struct env_row *row = env_row(id);
	struct env_value v = {.number = 0};

	if (!env_has_value(row, text) || env_parse(row, text, &v) < 0)
		(void)env_parse(row, row->initial, &v);
	return v.number;
}

/* ---- numbers ------------------------------------------------------------------------------ */

/* Decimal digits at *text, after a minus sign perhaps; moves *text behind them. */
static int take_number(const char **text, int64_t *ret)
{
	const char *digits = *text + (**text == '-');
	char *end;

	if (!isdigit((unsigned char)*digits))
		return -EINVAL;
	errno = 0;
	*ret = strtoll(*text, &end, 10);
	*text = end;
	return errno ? -EINVAL : 0;
}

/* All of the text. */
static int whole_number(const char *text, int64_t *ret)
{
	int rc = take_number(&text, ret);

	return rc < 0 || *text ? -EINVAL : 0;
}

static int parse_number(const struct env_row *row, const char *text, struct env_value *v)
{
	int rc = whole_number(text, &v->number);

	return rc < 0 || v->number < row->min || v->number > row->max ? -EINVAL : 0;
}

static int parse_clamped(const struct env_row *row, const char *text, struct env_value *v)
{
	int rc = whole_number(text, &v->number);

	if (rc < 0 || v->number < 0 || v->number > UINT32_MAX)
		return -EINVAL;
	if (v->number < row->min)
		v->number = row->min;
	if (v->number > row->max)
		v->number = row->max;
	return 0;
}

static int parse_power(const struct env_row *row, const char *text, struct env_value *v)
{
	int rc = parse_number(row, text, v);

	return rc < 0 || (v->number & (v->number - 1)) ? -EINVAL : 0;
}

static int parse_multiple(const struct env_row *row, const char *text, struct env_value *v)
{
	int rc = parse_number(row, text, v);

	return rc < 0 || v->number % row->min ? -EINVAL : 0;
}

/* ---- words -------------------------------------------------------------------------------- */

static int parse_text(const struct env_row *row, const char *text, struct env_value *v)
{
	(void)v;
	return row->max && strlen(text) > (uint64_t)row->max ? -EINVAL : 0;
}

/* The next word of "NAME=1 OTHER ..." at *list: its text and length without "=1", and the number; moves
 * *list behind it.  False at the end. */
static bool next_word(const char **list, const char **word, int *len, int64_t *number)
{
	size_t all;

	*list += strspn(*list, " ");
	all = strcspn(*list, " ");
	*word = *list;
	*len = (int)strcspn(*list, " =");
	*number = (*word)[*len] == '=' ? strtoll(*word + *len + 1, NULL, 10) : 0;
	*list += all;
	return all != 0;
}

static int parse_word(const struct env_row *row, const char *text, struct env_value *v)
{
	const char *list = row->detail, *word;
	int len;

	while (next_word(&list, &word, &len, &v->number))
		if (!strncasecmp(word, text, (size_t)len) && !text[len])
			return 0;
	return -EINVAL;
}

static int parse_searched(const struct env_row *row, const char *text, struct env_value *v)
{
	const char *list = row->detail, *word;
	char one[32];
	int len;

	while (next_word(&list, &word, &len, &v->number)) {
		(void)snprintf(one, sizeof(one), "%.*s", len, word);
		if (strcasestr(text, one))
			return 0;
	}
	return -EINVAL;
}

static int parse_truth(const struct env_row *row, const char *text, struct env_value *v)
{
	if (!strcasecmp(text, "TRUE") || !strcasecmp(text, "FALSE")) {
		v->number = strcasecmp(text, "TRUE") == 0;
		return 0;
	}
	return parse_number(row, text, v);
}

/* ---- lists -------------------------------------------------------------------------------- */

typedef void (*add_fn)(const struct env_row *row, struct env_value *v, uint32_t low, uint32_t high);

/* "N" or "A-B" at *text, none above max; moves *text behind it. */
static int parse_item(const char **text, int64_t max, uint32_t *ret_low, uint32_t *ret_high)
{
	int64_t low, high;

	if (**text == '-' || take_number(text, &low) < 0)
		return -EINVAL;
	high = low;
	if (**text == '-') {
		++*text;
		if (**text == '-' || take_number(text, &high) < 0)
			return -EINVAL;
	}
	if (high < low || high > max)
		return -EINVAL;
	*ret_low = (uint32_t)low;
	*ret_high = (uint32_t)high;
	return 0;
}

static int parse_list(
	const struct env_row *row, const char *text, int64_t max, struct env_value *v, add_fn add)
{
	uint32_t low, high;

	for (;;) {
		if (parse_item(&text, max, &low, &high) < 0)
			return -EINVAL;
		add(row, v, low, high);
		if (*text == '\0')
			return 0;
		if (*text++ != ',')
			return -EINVAL;
	}
}

static void add_cores(const struct env_row *row, struct env_value *v, uint32_t low, uint32_t high)
{
	(void)row;
	for (uint32_t i = low; i <= high; i++)
		v->cores[i / 64] |= 1ull << (i % 64);
}

static void add_sizes(const struct env_row *row, struct env_value *v, uint32_t low, uint32_t high)
{
	uint64_t here = (uint64_t)high - low + 1, taken = 0;

	while (v->count < (uint32_t)row->max && taken < here)
		v->sizes[v->count++] = (uint32_t)(low + taken++);
	v->ignored += here - taken;
}

static int parse_core_set(const struct env_row *row, const char *text, struct env_value *v)
{
	int rc = parse_list(row, text, row->max, v, add_cores);

	if (rc < 0)
		return rc;
	while (!(v->cores[v->first / 64] >> (v->first % 64) & 1))
		v->first++;
	for (size_t i = 0; i < ENV_MAX_CORES / 64; i++)
		v->count += (uint32_t)__builtin_popcountll(v->cores[i]);
	return 0;
}

static int parse_cores(const struct env_row *row, const char *text, struct env_value *v)
{
	int rc = parse_core_set(row, text, v);

	if (rc < 0)
		return rc;
	for (uint32_t i = v->first; i < v->first + v->count; i++)
		if (!(v->cores[i / 64] >> (i % 64) & 1))
			return -ERANGE;
	return 0;
}

static int parse_sizes(const struct env_row *row, const char *text, struct env_value *v)
{
	return parse_list(row, text, UINT32_MAX, v, add_sizes);
}

/* ---- what is allowed ---------------------------------------------------------------------- */

static void say_text(const struct env_row *row, char *buf, size_t size)
{
	if (row->max)
		(void)snprintf(buf, size, "a text of at most %" PRId64 " bytes", row->max);
	else
		(void)snprintf(buf, size, "a text");
}

static void say_flag(const struct env_row *row, char *buf, size_t size)
{
	(void)snprintf(buf, size, row->kind == ENV_TRUTH ? "0, 1, TRUE or FALSE" : "0 or 1");
}

/* " (seconds)", or nothing. */
#define UNIT "%s%s%s"
#define UNIT_OF(row) *(row)->detail ? " (" : "", (row)->detail, *(row)->detail ? ")" : ""

static void say_number(const struct env_row *row, char *buf, size_t size)
{
	(void)snprintf(buf, size, "a number from %" PRId64 " to %" PRId64 UNIT, row->min, row->max,
		UNIT_OF(row));
}

static void say_core_size(const struct env_row *row, char *buf, size_t size)
{
	(void)row;
	(void)snprintf(buf, size, "1 or 2");
}

static void say_clamped(const struct env_row *row, char *buf, size_t size)
{
	(void)snprintf(buf, size, "a number" UNIT ", which is brought into %" PRId64 " to %" PRId64,
		UNIT_OF(row), row->min, row->max);
}

static void say_power(const struct env_row *row, char *buf, size_t size)
{
	(void)snprintf(buf, size, "a power of two from %" PRId64 " to %" PRId64 UNIT, row->min,
		row->max, UNIT_OF(row));
}

static void say_multiple(const struct env_row *row, char *buf, size_t size)
{
	(void)snprintf(buf, size, "a multiple of %" PRId64 " up to %" PRId64 UNIT, row->min,
		row->max, UNIT_OF(row));
}

static void say_cores(const struct env_row *row, char *buf, size_t size)
{
	(void)snprintf(buf, size,
		row->kind == ENV_CORES ? "a list like 0-3,4 of neighbouring cores up to %" PRId64
				       : "a list like 0-3,5 of cores up to %" PRId64,
		row->max);
}

static void say_sizes(const struct env_row *row, char *buf, size_t size)
{
	(void)snprintf(
		buf, size, "a list like 512,4096 of up to %" PRId64 " 32-bit numbers", row->max);
}

static void say_words(const struct env_row *row, char *buf, size_t size)
{
	const char *list = row->detail, *word;
	size_t used = (size_t)snprintf(
		buf, size, "%s", row->kind == ENV_WORD ? "one of" : "a text with one of");
	int64_t number;
	int len;

	while (used < size && next_word(&list, &word, &len, &number))
		used += (size_t)snprintf(buf + used, size - used, " %.*s", len, word);
}

void env_word(const struct env_row *row, int64_t number, char *buf, size_t size)
{
	const char *list = row->detail, *word;
	int64_t stands_for;
	int len;

	*buf = '\0';
	while (next_word(&list, &word, &len, &stands_for))
		if (stands_for == number) {
			(void)snprintf(buf, size, "%.*s", len, word);
			return;
		}
}

/* ---- kinds -------------------------------------------------------------------------------- */

static const struct {
	int (*parse)(const struct env_row *row, const char *text, struct env_value *v);
	void (*say)(const struct env_row *row, char *buf, size_t size);
} kinds[] = {
	[ENV_TEXT] = {parse_text, say_text},
	[ENV_FLAG] = {parse_number, say_flag},
	[ENV_TRUTH] = {parse_truth, say_flag},
	[ENV_NUMBER] = {parse_number, say_number},
	[ENV_CORE_SIZE] = {parse_number, say_core_size},
	[ENV_CLAMPED] = {parse_clamped, say_clamped},
	[ENV_POWER] = {parse_power, say_power},
	[ENV_MULTIPLE] = {parse_multiple, say_multiple},
	[ENV_CORES] = {parse_cores, say_cores},
	[ENV_CORE_SET] = {parse_core_set, say_cores},
	[ENV_SIZES] = {parse_sizes, say_sizes},
	[ENV_WORD] = {parse_word, say_words},
	[ENV_SEARCHED] = {parse_searched, say_words},
};

int env_parse(const struct env_row *row, const char *text, struct env_value *ret)
{
	struct env_value v = {.number = 0};
	int rc = kinds[row->kind].parse(row, text, &v);

	if (rc == 0)
		*ret = v;
	return rc;
}

const char *env_allowed(const struct env_row *row, char *buf, size_t size)
{
	kinds[row->kind].say(row, buf, size);
	return buf;
}

/* ---- misspelt names ----------------------------------------------------------------------- */

/* What stands behind NEURON_RT_, NEURON_ or NTRACE_; NULL when nothing of that kind is in front. */
static const char *stem(const char *name, size_t len)
{
	static const char *const prefixes[] = {"NEURON_RT_", "NEURON_", "NTRACE_"};

	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
		size_t n = strlen(prefixes[i]);

		if (len > n && !memcmp(name, prefixes[i], n))
			return name + n;
	}
	return NULL;
}

bool env_is_ours(const char *text)
{
	return stem(text, strcspn(text, "=")) != NULL;
}

const struct env_row *env_meant(const char *name, size_t len)
{
	const char *own = stem(name, len);
	size_t own_len = own ? len - (size_t)(own - name) : 0;
	const struct env_row *nearest = NULL;
	/* Of the part that tells it from others. */
	unsigned bound = near_name_bound(own_len);

	if (!own || len > NEAR_NAME_LONGEST || env_find(name, len))
		return NULL;
	for (size_t i = 0; i < ENV_COUNT; i++) {
		size_t n = strlen(rows[i].name);
		const char *other = stem(rows[i].name, n);
		bool only_prefix =
			other && strlen(other) == own_len && !memcmp(other, own, own_len);
		unsigned d = only_prefix ? 0 : near_name_distance(name, len, rows[i].name, n);

		if (d < bound) {
			bound = d;
			nearest = &rows[i];
		}
	}
	return nearest;
}
