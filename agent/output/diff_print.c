/* SPDX-License-Identifier: Apache-2.0 */
/*
 * diff_print.c - the report on two traces, for people and as JSON.  Only what differs is in it.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "agent/output/canon.h"
#include "agent/output/diff.h"
#include "agent/output/json_out.h"
#include "agent/output/summary_text.h"
#include "runtime/base/file.h"
#include "runtime/base/printable.h"

static const char sides[2] = {'A', 'B'};

/* The value on the other side, NULL when it has none.  Keys of an event are unique but in a file that
 * nobody should have written; then the first counts. */
static const char *value_of(const struct diff_event *e, const char *key)
{
	for (size_t i = 0; i < e->count; i++)
		if (!strcmp(e->values[i].key, key))
			return e->values[i].value;
	return NULL;
}

typedef void (*field_fn)(void *context, const char *key, const char *a, const char *b);

/* Calls fn for each field of the two events that differs; a side without the field is NULL. */
static void each_field(const struct diff_event e[2], field_fn fn, void *context)
{
	for (size_t i = 0; i < e[0].count; i++) {
		const struct diff_value *v = &e[0].values[i];
		const char *b = value_of(&e[1], v->key);

		if (!b || strcmp(v->value, b) != 0)
			fn(context, v->key, v->value, b);
	}
	for (size_t i = 0; i < e[1].count; i++)
		if (!value_of(&e[0], e[1].values[i].key))
			fn(context, e[1].values[i].key, NULL, e[1].values[i].value);
}

/* ---- text ---------------------------------------------------------------------------------- */

/* Prints a heading before the first row below it. */
struct section {
	FILE *f;
	const char *title;
	bool begun;
};

static FILE *row(struct section *s)
{
	if (!s->begun)
		fprintf(s->f, "%s\n", s->title);
	s->begun = true;
	fputs("  ", s->f);
	return s->f;
}

static void text_counts(FILE *f, const struct diff *d)
{
	struct section s = {f, "number of events:", false};

	for (size_t i = 0; i < d->name_count; i++) {
		const struct diff_name *n = &d->names[i];

		for (unsigned p = 0; p < DIFF_PHASES; p++)
			if (diff_counts_differ(n, p))
				fprintf(row(&s), "%-28s %-8s A %10" PRIu64 "  B %10" PRIu64 "\n",
					PRINTABLE(n->name), canon_phase(p), n->count[0][p],
					n->count[1][p]);
	}
}

static void text_open(FILE *f, const struct diff *d)
{
	struct section s = {f, "spans without an end:", false};

	for (size_t i = 0; i < d->name_count; i++)
		if (diff_open_differ(&d->names[i]))
			fprintf(row(&s), "%-28s          A %10" PRIu64 "  B %10" PRIu64 "\n",
				PRINTABLE(d->names[i].name), d->names[i].open[0],
				d->names[i].open[1]);
}

/* The largest difference between two values of the distributions. */
static uint64_t change(const struct diff_name *n)
{
	struct duration_stats a = duration_stats(&n->durations[0]);
	struct duration_stats b = duration_stats(&n->durations[1]);
	uint64_t most = 0;

	for (int i = 0; i < STAT_COUNT; i++) {
		uint64_t apart = a.ns[i] > b.ns[i] ? a.ns[i] - b.ns[i] : b.ns[i] - a.ns[i];

		if (a.has[i] && b.has[i] && apart > most)
			most = apart;
	}
	return most;
}

struct changed {
	const struct diff_name *name;
	uint64_t by;
};

/* By how much, then in order of appearance. */
static int compare_changed(const void *a, const void *b)
{
	const struct changed *x = a, *y = b;

	if (x->by != y->by)
		return x->by < y->by ? 1 : -1;
	return (x->name > y->name) - (x->name < y->name);
}

/* The names whose durations differ, the largest change first; to be freed, NULL: no memory or none. */
static struct changed *changed_durations(
	const struct diff *d, const struct diff_options *options, size_t *ret_count)
{
	struct changed *list = calloc(d->name_count + 1, sizeof(*list));

	*ret_count = 0;
	for (size_t i = 0; list && i < d->name_count; i++)
		if (diff_durations_differ(&d->names[i], options))
			list[(*ret_count)++] = (struct changed){&d->names[i], change(&d->names[i])};
	if (list)
		qsort(list, *ret_count, sizeof(*list), compare_changed);
	return list;
}

static void text_stats(FILE *f, const struct durations *of)
{
	struct duration_stats st = duration_stats(of);
	char buf[SUMMARY_TEXT];

	fprintf(f, "  n %" PRIu64, st.n);
	for (int j = 0; j < STAT_COUNT; j++)
		fprintf(f, "  %s %s", duration_stat_name(j),
			st.has[j] ? summary_ns_text(st.ns[j], buf) : "-");
	fputc('\n', f);
}

static void text_durations(FILE *f, const struct diff *d, const struct diff_options *options)
{
	struct section s = {f, "durations, the largest change first:", false};
	size_t count;
	_cleanup_free_ struct changed *list = changed_durations(d, options, &count);

	for (size_t i = 0; i < count; i++)
		for (unsigned k = 0; k < 2; k++) {
			fprintf(row(&s), "%-28s %c", k ? "" : PRINTABLE(list[i].name->name),
				sides[k]);
			text_stats(f, &list[i].name->durations[k]);
		}
}

static void text_losses(FILE *f, const struct diff_side side[2], const struct diff *d)
{
	struct section s = {f, "losses:", false};

	for (size_t i = 0; i < d->loss_count; i++)
		fprintf(row(&s), "%-11s %-25s A %10" PRIu64 "  B %10" PRIu64 "\n",
			PRINTABLE(d->losses[i].stage), PRINTABLE(d->losses[i].counter),
			d->losses[i].value[0], d->losses[i].value[1]);
	for (unsigned k = 0; k < 2; k++) {
		if (!d->ended[k] && d->ended[!k])
			fprintf(row(&s),
				"the recorder of %c did not stop in order, that of %c did\n",
				sides[k], sides[!k]);
		if (d->info_missing && !d->has_info[k])
			fprintf(row(&s), "%c has no trace_info.pb beside %s\n", sides[k],
				PRINTABLE(side[k].file));
	}
	if (!d->has_info[0] && !d->has_info[1])
		fprintf(f, "losses were not compared: %s\n",
			side[0].alone || side[1].alone ? "a side is a single file"
						       : "neither side has a trace_info.pb");
}

static void text_settings(FILE *f, const struct diff *d)
{
	struct section s = {f, "settings of the sessions:", false};

	for (size_t i = 0; i < d->setting_count; i++) {
		fprintf(row(&s), "%-16s A %s", d->settings[i].name,
			PRINTABLE(d->settings[i].value[0]));
		fprintf(f, "  B %s\n", PRINTABLE(d->settings[i].value[1]));
	}
}

static void text_field(void *context, const char *key, const char *a, const char *b)
{
	fprintf(context, "    %s: A %s, B %s\n", PRINTABLE(key),
		!a   ? "without"
		: *a ? PRINTABLE(a)
		     : "\"\"",
		!b   ? "without"
		: *b ? PRINTABLE(b)
		     : "\"\"");
}

static void text_first(FILE *f, const struct diff *d)
{
	if (!d->differs)
		return;
	fprintf(f, "first difference:\n");
	for (unsigned k = 0; k < 2; k++) {
		const struct diff_event *e = &d->first[k];

		if (!e->present) {
			fprintf(f, "  %c ends before it\n", sides[k]);
			continue;
		}
		fprintf(f, "  %c event %" PRIu64 ": %s %s", sides[k], e->index, PRINTABLE(e->name),
			e->phase);
		for (size_t i = 0; i < e->count; i++)
			if (e->values[i].shown && strcmp(e->values[i].key, "phase") != 0)
				fprintf(f, " %s=%s", PRINTABLE(e->values[i].key),
					PRINTABLE(e->values[i].value));
		fputc('\n', f);
	}
	if (d->first[0].present && d->first[1].present)
		each_field(d->first, text_field, f);
}

void diff_print_text(FILE *f, const struct diff_side side[2], const struct diff *d,
	const struct diff_options *options)
{
	for (unsigned k = 0; k < 2; k++)
		fprintf(f, "%c: %s, %" PRIu64 " events%s\n", sides[k], PRINTABLE(side[k].file),
			d->events[k],
			options->ignore_times || options->tolerance > 0
				? ", readings of clocks not counted"
				: "");
	text_counts(f, d);
	text_open(f, d);
	text_durations(f, d, options);
	text_losses(f, side, d);
	text_settings(f, d);
	text_first(f, d);
	fprintf(f, "%s\n", diff_same(d, options) ? "same" : "different");
}

/* ---- JSON ---------------------------------------------------------------------------------- */

static void key_string(struct json_out *j, const char *key, const char *value)
{
	jout_key(j, key);
	jout_string(j, value, strlen(value));
}

static void key_pair(struct json_out *j, uint64_t a, uint64_t b)
{
	jout_key(j, "a");
	jout_unsigned(j, a);
	jout_key(j, "b");
	jout_unsigned(j, b);
}

static void json_counts(struct json_out *j, const struct diff *d)
{
	jout_key(j, "counts");
	jout_begin(j, '[');
	for (size_t i = 0; i < d->name_count; i++) {
		const struct diff_name *n = &d->names[i];

		for (unsigned p = 0; p < DIFF_PHASES; p++) {
			if (!diff_counts_differ(n, p))
				continue;
			jout_begin(j, '{');
			key_string(j, "name", n->name);
			key_string(j, "source", n->driver ? "driver" : "runtime");
			key_string(j, "phase", canon_phase(p));
			key_pair(j, n->count[0][p], n->count[1][p]);
			jout_end(j, '}');
		}
	}
	jout_end(j, ']');
}

static void json_open(struct json_out *j, const struct diff *d)
{
	jout_key(j, "open_spans");
	jout_begin(j, '[');
	for (size_t i = 0; i < d->name_count; i++) {
		if (!diff_open_differ(&d->names[i]))
			continue;
		jout_begin(j, '{');
		key_string(j, "name", d->names[i].name);
		key_pair(j, d->names[i].open[0], d->names[i].open[1]);
		jout_end(j, '}');
	}
	jout_end(j, ']');
}

static void json_stats(struct json_out *j, const struct durations *of)
{
	jout_begin(j, '{');
	durations_json(j, of);
	jout_end(j, '}');
}

static void json_durations(
	struct json_out *j, const struct diff *d, const struct diff_options *options)
{
	jout_key(j, "durations");
	jout_begin(j, '[');
	for (size_t i = 0; i < d->name_count; i++) {
		const struct diff_name *n = &d->names[i];

		if (!diff_durations_differ(n, options))
			continue;
		jout_begin(j, '{');
		key_string(j, "name", n->name);
		jout_key(j, "a");
		json_stats(j, &n->durations[0]);
		jout_key(j, "b");
		json_stats(j, &n->durations[1]);
		jout_end(j, '}');
	}
	jout_end(j, ']');
}

static void json_losses(struct json_out *j, const struct diff *d)
{
	jout_key(j, "losses_compared");
	jout_bool(j, d->has_info[0] && d->has_info[1]);
	jout_key(j, "losses");
	jout_begin(j, '[');
	for (size_t i = 0; i < d->loss_count; i++) {
		jout_begin(j, '{');
		key_string(j, "stage", d->losses[i].stage);
		key_string(j, "counter", d->losses[i].counter);
		key_pair(j, d->losses[i].value[0], d->losses[i].value[1]);
		jout_end(j, '}');
	}
	jout_end(j, ']');
	if (d->info_missing)
		key_string(j, "trace_info_missing", d->has_info[0] ? "b" : "a");
	if (d->ended[0] != d->ended[1])
		key_string(j, "not_ended", d->ended[0] ? "b" : "a");
}

static void json_settings(struct json_out *j, const struct diff *d)
{
	jout_key(j, "settings");
	jout_begin(j, '[');
	for (size_t i = 0; i < d->setting_count; i++) {
		jout_begin(j, '{');
		key_string(j, "name", d->settings[i].name);
		key_string(j, "a", d->settings[i].value[0]);
		key_string(j, "b", d->settings[i].value[1]);
		jout_end(j, '}');
	}
	jout_end(j, ']');
}

static void json_field(void *context, const char *key, const char *a, const char *b)
{
	struct json_out *j = context;

	jout_begin(j, '{');
	key_string(j, "field", key);
	if (a)
		key_string(j, "a", a);
	if (b)
		key_string(j, "b", b);
	jout_end(j, '}');
}

static void json_event(struct json_out *j, const struct diff_event *e)
{
	jout_begin(j, '{');
	jout_key(j, "index");
	jout_unsigned(j, e->index);
	key_string(j, "name", e->name);
	key_string(j, "phase", e->phase);
	jout_key(j, "values");
	jout_begin(j, '{');
	for (size_t i = 0; i < e->count; i++)
		if (e->values[i].shown && strcmp(e->values[i].key, "phase") != 0)
			key_string(j, e->values[i].key, e->values[i].value);
	jout_end(j, '}');
	jout_end(j, '}');
}

static void json_first(struct json_out *j, const struct diff *d)
{
	if (!d->differs)
		return;
	jout_key(j, "first_difference");
	jout_begin(j, '{');
	for (unsigned k = 0; k < 2; k++) {
		if (!d->first[k].present)
			continue;
		jout_key(j, k ? "b" : "a");
		json_event(j, &d->first[k]);
	}
	jout_key(j, "fields");
	jout_begin(j, '[');
	if (d->first[0].present && d->first[1].present)
		each_field(d->first, json_field, j);
	jout_end(j, ']');
	jout_end(j, '}');
}

void diff_print_json(struct json_out *j, const struct diff_side side[2], const struct diff *d,
	const struct diff_options *options)
{
	jout_begin(j, '{');
	jout_key(j, "same");
	jout_bool(j, diff_same(d, options));
	key_string(j, "a", side[0].file);
	key_string(j, "b", side[1].file);
	jout_key(j, "events");
	jout_begin(j, '{');
	key_pair(j, d->events[0], d->events[1]);
	jout_end(j, '}');
	json_counts(j, d);
	json_open(j, d);
	json_durations(j, d, options);
	json_losses(j, d);
	if (d->setting_count)
		json_settings(j, d);
	json_first(j, d);
	jout_end(j, '}');
}
