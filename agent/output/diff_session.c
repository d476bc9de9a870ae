/* SPDX-License-Identifier: Apache-2.0 */
/*
 * diff_session.c - what two inspect sessions were asked to record: events that one of them has and
 * the other was not to have are no finding by themselves.
 *
 * Compared is what decides on the contents.  Numbers and places of a session (id, directory,
 * layout), versions, and the variables, which say the same once more, are not.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/output/diff.h"
#include "proto/neuron_trace.pb-c.h"
#include "runtime/base/file.h"

static const char *const settings[] = {"enabled", "on_fail", "arch", "logical_cores",
	"logical_nc_size", "period_ms", "device_profile", "device_cores", "event_cores",
	"activities", "event_types_off"};

/* A list, separated by blanks. */
static char *joined(char *const *texts, size_t count)
{
	_cleanup_free_ char *all = NULL;
	size_t size;
	FILE *f = open_memstream(&all, &size);
	char *ret;

	if (!f)
		return NULL;
	for (size_t i = 0; i < count; i++)
		fprintf(f, "%s%s", i ? " " : "", texts[i]);
	if (fclose(f) != 0)
		return NULL;
	ret = all;
	all = NULL;
	return ret;
}

/* The field's value, to be freed; NULL: no memory. */
static char *value_of(const Ntff__NtraceSession *s, const ProtobufCFieldDescriptor *field)
{
	const char *at = (const char *)s + field->offset;
	char *text = NULL;
	int64_t number;
	char *one, *const *many;
	size_t count;

	if (field->label == PROTOBUF_C_LABEL_REPEATED) {
		memcpy(&many, at, sizeof(many));
		memcpy(&count, (const char *)s + field->quantifier_offset, sizeof(count));
		return joined(many, count);
	}
	if (field->type == PROTOBUF_C_TYPE_STRING) {
		memcpy(&one, at, sizeof(one));
		return strdup(one);
	}
	memcpy(&number, at, sizeof(number));
	return asprintf(&text, "%" PRId64, number) < 0 ? NULL : text;
}

/* Takes the values. */
static int add(struct diff *d, const char *name, char *a, char *b)
{
	struct diff_setting *more = realloc(d->settings, (d->setting_count + 1) * sizeof(*more));

	if (!more) {
		free(a);
		free(b);
		return -ENOMEM;
	}
	d->settings = more;
	more[d->setting_count++] = (struct diff_setting){name, {a, b}};
	return 0;
}

int diff_sessions(
	struct diff *d, const struct Ntff__NtraceSession *a, const struct Ntff__NtraceSession *b)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < sizeof(settings) / sizeof(settings[0]); i++) {
		const ProtobufCFieldDescriptor *field =
			protobuf_c_message_descriptor_get_field_by_name(
				&ntff__ntrace_session__descriptor, settings[i]);
		char *of_a = value_of(a, field), *of_b = value_of(b, field);

		if (of_a && of_b && strcmp(of_a, of_b) != 0) {
			rc = add(d, settings[i], of_a, of_b);
			continue;
		}
		rc = of_a && of_b ? 0 : -ENOMEM;
		free(of_a);
		free(of_b);
	}
	return rc;
}
