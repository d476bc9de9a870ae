/* SPDX-License-Identifier: Apache-2.0 */
/*
 * path_template_fuzz.c - names of core dumps.
 *
 * An input is: two bytes for the bound (0 to 4096), six values of a length byte and that many bytes, the text.  The
 * model is another way to say the same: the whole expansion, and of that what fits.
 */
#include <stdbool.h>
#include <string.h>

#include "runtime/lifecycle/path_template.h"
#include "tests/fuzz/fuzz.h"

#define BEYOND 16

struct input {
	const uint8_t *at, *end;
};

static uint8_t take(struct input *in)
{
	return in->at < in->end ? *in->at++ : 0;
}

static void take_value(struct input *in, char *to, size_t bytes)
{
	size_t len = take(in) % bytes;

	for (size_t i = 0; i < len; i++) {
		to[i] = (char)take(in);
		if (!to[i])
			to[i] = 'x';
	}
	to[len] = '\0';
}

static const char *value_of(char letter, const struct path_variables *v)
{
	switch (letter) {
	case 'p':
		return v->pid;
	case 't':
		return v->tid;
	case 'l':
		return v->log_id;
	case 'c':
		return v->cluster_id;
	case 'd':
		return v->datetime;
	case 'i':
		return v->instance_id;
	default:
		return NULL;
	}
}

/* The whole of it, to be freed. */
static char *expand(const char *text, const struct path_variables *v)
{
	char *all = calloc(1, strlen(text) * sizeof(*v) + 1);

	FUZZ_REQUIRE(all);
	for (char *to = all; *text; text++) {
		const char *value = *text == '%' ? value_of(text[1], v) : NULL;

		if (value) {
			to = stpcpy(to, value);
			text++;
		} else {
			*to++ = *text;
		}
	}
	return all;
}

static void check(const char *text, size_t size, const struct path_variables *v)
{
	char *all = expand(text, v), *got = malloc(size + BEYOND);
	size_t want = strlen(all), len;

	FUZZ_REQUIRE(got);
	if (size == 0)
		want = 0;
	else if (want > size - 1)
		want = size - 1;
	memset(got, 0x5a, size + BEYOND);
	len = path_template(got, size, text, v);
	FUZZ_REQUIRE(len == want);
	FUZZ_REQUIRE(size == 0 || got[len] == '\0');
	FUZZ_REQUIRE(memcmp(got, all, size ? len : 0) == 0);
	for (size_t i = size; i < size + BEYOND; i++)
		FUZZ_REQUIRE(got[i] == 0x5a);
	free(got);
	free(all);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, data + size};
	struct path_variables v = {0};
	size_t bound = take(&in);
	char *text;

	bound = (bound | (size_t)take(&in) << 8) % (PATH_TEMPLATE_DIR_BYTES + 1);
	take_value(&in, v.pid, sizeof(v.pid));
	take_value(&in, v.tid, sizeof(v.tid));
	take_value(&in, v.log_id, sizeof(v.log_id));
	take_value(&in, v.cluster_id, sizeof(v.cluster_id));
	take_value(&in, v.datetime, sizeof(v.datetime));
	take_value(&in, v.instance_id, sizeof(v.instance_id));
	text = strndup((const char *)in.at, (size_t)(in.end - in.at)); /* to the first NUL */
	FUZZ_REQUIRE(text);
	check(text, bound, &v);
	free(text);
	return 0;
}
