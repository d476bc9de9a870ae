/* SPDX-License-Identifier: Apache-2.0 */
/*
 * state.c - what a recording's end and its damage mean for the trace that was made of it.
 *
 * A recorder that is killed has handed its last block to the kernel at most 100 ms before.  Bytes behind
 * the last whole block say that this was not so, or that the file was cut: then nothing is known of what
 * was behind.
 */
#include "agent/output/state.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "agent/output/report.h"

struct trace_state state_of_merge(const struct merge_result *m)
{
	return (struct trace_state){.in_work = m->in_work,
		.ended = m->ended,
		.session = m->is_session,
		.cut = m->is_cut,
		.end = m->end,
		.damage = m->damage};
}

struct trace_state state_of_info(const Ntff__NtraceInfo *info)
{
	struct trace_state s = {
		.ended = info->ended, .session = info->session != NULL, .cut = info->cut};

	for (unsigned i = 0; merge_end_name(i); i++)
		if (!strcmp(info->end, merge_end_name(i)))
			s.end.reason = i;
	if (info->damage)
		s.damage = (struct rec_damage){.skipped_bytes = info->damage->skipped_bytes,
			.cut_bytes = info->damage->cut_bytes,
			.bad_frames = info->damage->places};
	return s;
}

/* A block that a writer has just begun is no damage. */
static bool is_damaged(const struct trace_state *s)
{
	return s->damage.skipped_bytes || s->damage.bad_frames ||
	       (s->damage.cut_bytes && !s->in_work);
}

static const char *ending(uint64_t n)
{
	return n == 1 ? "" : "s";
}

/* Adds to a text that is long enough. */
static void add(char text[STATE_TEXT], const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void add(char text[STATE_TEXT], const char *format, ...)
{
	size_t n = strlen(text);
	va_list ap;

	if (n)
		n += (size_t)snprintf(text + n, STATE_TEXT - n, ", ");
	va_start(ap, format);
	vsnprintf(text + n, STATE_TEXT - n, format, ap);
	va_end(ap);
}

static void add_missing(const struct rec_odd_segments *missing, char text[STATE_TEXT])
{
	uint32_t first = missing->first;

	if (missing->count == 1)
		add(text, "segment %" PRIu32 " is missing", first);
	else if (missing->count)
		add(text, "segments %" PRIu32 " to %" PRIu32 " are missing", first,
			first + missing->count - 1);
}

/* What the first of several is, the others are too. */
static void add_more(const struct rec_odd_segments *odd, const char *what, char text[STATE_TEXT])
{
	if (odd->count > 1)
		add(text, "%" PRIu32 " more %s %s", odd->count - 1, odd->count == 2 ? "is" : "are",
			what);
}

static void add_segments(const struct rec_damage *d, char text[STATE_TEXT])
{
	add_missing(&d->missing, text);
	if (d->misplaced.count)
		add(text, REC_SEGMENT_FORMAT " is segment %" PRIu32, d->misplaced.first,
			d->misplaced_is);
	add_more(&d->misplaced, "misplaced", text);
	if (d->no_file.count)
		add(text, REC_SEGMENT_FORMAT " is not a file", d->no_file.first);
	add_more(&d->no_file, "none", text);
}

void state_damage(const struct rec_damage *d, char text[STATE_TEXT])
{
	text[0] = '\0';
	if (d->skipped_bytes)
		add(text, "%" PRIu64 " byte%s skipped in %" PRIu64 " place%s", d->skipped_bytes,
			ending(d->skipped_bytes), d->bad_frames, ending(d->bad_frames));
	add_segments(d, text);
	if (!*text && d->bad_frames)
		add(text, "something is missing in %" PRIu64 " place%s", d->bad_frames,
			ending(d->bad_frames));
	if (d->cut_bytes)
		add(text, "%" PRIu64 " byte%s of a block that is cut off at the end", d->cut_bytes,
			ending(d->cut_bytes));
}

bool state_fault(const struct trace_state *s, char text[STATE_TEXT])
{
	const char *end = s->in_work  ? "it is still being written"
			  : !s->ended ? report_end(&s->end, s->session)
				      : NULL;
	char damage[STATE_TEXT] = "";

	if (is_damaged(s))
		state_damage(&s->damage, damage);
	snprintf(text, STATE_TEXT, "%s%s%s%.400s", end ? end : "", end && *damage ? "; " : "",
		*damage ? "damage: " : "", damage);
	return *text;
}

const char *state_unknown(const struct trace_state *s)
{
	if (s->in_work)
		return "unknown, it is still being written; so far ";
	if (s->ended)
		return "";
	if (!rec_end_in_order(&s->end))
		return s->session ? "unknown, everything since the session stopped; before that "
				  : "unknown, everything since the recorder stopped; before that ";
	if (s->damage.cut_bytes)
		return "unknown, the file is cut off; before that ";
	if (s->cut)
		return "unknown, what was cut has no end; before that ";
	if (s->session)
		return "unknown, at most the last 100 ms before the program ended; before that ";
	return "unknown, at most the last 100 ms if the recorder was killed; before that ";
}
