/* SPDX-License-Identifier: Apache-2.0 */
/*
 * summary_info.c - what trace_info.pb adds: losses, what was blind, what recording cost.
 *
 * The stages of the ledger before the merge are those of the whole capture and stand in the file of each
 * of its processes, so they count once per capture; so do impossible records, which belong to no process.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "agent/output/report.h"
#include "agent/output/sum.h"
#include "agent/output/summary.h"
#include "runtime/record/blind.h"
#include "runtime/record/ledger.h"

static bool is(const Ntff__NtraceLedgerRow *r, const char *stage, const char *counter)
{
	return !strcmp(r->stage, stage) && !strcmp(r->counter, counter);
}

/* Is something missing because of it? */
static bool is_loss(const Ntff__NtraceLedgerRow *r)
{
	uint32_t id = rec_counter_find(r->stage, r->counter);

	return id ? report_is_loss(id) : !strcmp(r->kind, "lost");
}

/* Worth a remark: what was done to events, not what recording cost or received. */
static bool is_note(const Ntff__NtraceLedgerRow *r)
{
	return !strcmp(r->kind, "note") && strcmp(r->stage, "agent") &&
	       strcmp(r->counter, "received");
}

static int add_row(struct summary *s, struct summary_row **rows, size_t *count,
	const Ntff__NtraceLedgerRow *r, bool largest)
{
	uint64_t stage = XXH3_64bits_withSeed(r->stage, strlen(r->stage), rows == &s->lost);
	uint64_t key = XXH3_64bits_withSeed(r->counter, strlen(r->counter), stage) | 1;
	const uint64_t *place = map64_find(&s->row_index, key);
	struct summary_row *row;
	int rc;

	if (place) {
		row = &(*rows)[*place];
		if (!largest)
			sum_add(&row->value, r->value);
		else if (r->value > row->value)
			row->value = r->value;
		return 0;
	}
	rc = summary_grow(rows, *count, sizeof(**rows));
	if (rc < 0)
		return rc;
	row = &(*rows)[*count];
	*row = (struct summary_row){strdup(r->stage), strdup(r->counter), r->value};
	rc = map64_put(&s->row_index, key, (*count)++);
	return row->stage && row->counter ? rc : -ENOMEM;
}

static int take_row(struct summary *s, const Ntff__NtraceLedgerRow *r, bool known_capture)
{
	bool own = !strcmp(r->stage, "merge") && !is(r, "merge", "invalid");
	size_t len = strlen(r->counter);
	bool largest = len > 7 && !strcmp(r->counter + len - 7, "_max_ns");

	if (r->value == 0 || (known_capture && !own))
		return 0;
	if (is(r, "runtime", "overwritten"))
		sum_add(&s->overwritten, r->value);
	if (is_loss(r)) {
		sum_add(&s->lost_total, r->value);
		return add_row(s, &s->lost, &s->lost_count, r, false);
	}
	return is_note(r) ? add_row(s, &s->noted, &s->noted_count, r, largest) : 0;
}

/* A row of the ledger's stage that is the recording. */
static uint64_t row(const Ntff__NtraceInfo *info, const char *stage, const char *counter)
{
	for (size_t i = 0; i < info->n_ledger; i++)
		if (is(info->ledger[i], stage, counter))
			return info->ledger[i]->value;
	return 0;
}

/* Why the first execution on a core need not be in the trace. */
static const char *first_unknown(const Ntff__NtraceInfo *info)
{
	if (info->cut)
		return "the trace is a cut";
	if (info->attached)
		return "ntrace was attached to a program that ran already";
	if (row(info, "runtime", "overwritten"))
		return "the ring overwrote events";
	return info->damage ? "the recording is damaged" : NULL;
}

/* May units have done more than the trace tells? */
static bool units_at_least(const Ntff__NtraceInfo *info)
{
	for (size_t i = 0; i < info->n_ledger; i++)
		if (!strcmp(info->ledger[i]->stage, "device") && is_loss(info->ledger[i]) &&
			info->ledger[i]->value)
			return true;
	for (size_t i = 0; i < info->n_blind; i++) {
		enum blind_why why;

		if (blind_runs(info->blind[i], &why) && why == BLIND_NO_RECORDS)
			return true;
	}
	return false;
}

/* Finds or makes the capture that a process is a part of. */
static int find_capture(struct summary *s, const Ntff__NtraceInfo *info,
	struct summary_capture **ret, bool *ret_known)
{
	int rc;

	for (size_t i = 0; i < s->capture_count; i++) {
		struct summary_capture *c = *ret = &s->captures[i];

		*ret_known = c->begin_ns == info->begin_ns &&
			     c->offset_ns == info->realtime_offset_ns &&
			     c->cpu_ns == info->agent_cpu_ns && c->bytes == info->bytes_recorded;
		if (*ret_known)
			return 0;
	}
	rc = summary_grow(&s->captures, s->capture_count, sizeof(*s->captures));
	if (rc < 0)
		return rc;
	*ret = &s->captures[s->capture_count++];
	**ret = (struct summary_capture){.begin_ns = info->begin_ns,
		.offset_ns = info->realtime_offset_ns,
		.cpu_ns = info->agent_cpu_ns,
		.bytes = info->bytes_recorded,
		.state = state_of_info(info),
		.session = info->session != NULL,
		.cut = info->cut,
		.left_out = row(info, "recording", "cut_out")};
	(*ret)->records = (*ret)->left_out + row(info, "recording", "read");
	return 0;
}

/* The runs of all processes stand in one line for each reason. */
static int set_runs(struct summary *s, uint64_t more, enum blind_why why)
{
	char line[BLIND_BYTES];

	for (size_t i = 0; i < s->blind_count; i++) {
		enum blind_why this;
		uint64_t runs = blind_runs(s->blind[i], &this);

		if (!runs || this != why)
			continue;
		free(s->blind[i]);
		sum_add(&runs, more);
		blind_runs_line(runs, why, line);
		s->blind[i] = strdup(line);
		return s->blind[i] ? 1 : -ENOMEM;
	}
	return 0;
}

static int add_blind(struct summary *s, const char *line)
{
	enum blind_why why;
	uint64_t runs = blind_runs(line, &why), key = XXH3_64bits(line, strlen(line)) | 1;
	int rc = runs ? set_runs(s, runs, why) : 0;

	if (rc || map64_find(&s->blind_index, key))
		return rc < 0 ? rc : 0;
	rc = map64_put(&s->blind_index, key, 1);
	if (rc == 0)
		rc = summary_grow(&s->blind, s->blind_count, sizeof(*s->blind));
	if (rc < 0)
		return rc;
	s->blind[s->blind_count] = strdup(line);
	return s->blind[s->blind_count++] ? 0 : -ENOMEM;
}

static int add_failure(struct summary *s, size_t process, const Ntff__NtraceFailure *from)
{
	struct summary_failure *f;
	int rc = summary_grow(&s->failures, s->failure_count, sizeof(*s->failures));

	if (rc < 0)
		return rc;
	f = &s->failures[s->failure_count++];
	*f = (struct summary_failure){.process = process,
		.what = strdup(from->what),
		.errors = calloc(from->n_driver_errors + 1, sizeof(*f->errors))};
	if (!f->what || !f->errors)
		return -ENOMEM;
	for (size_t i = 0; i < from->n_driver_errors; i++) {
		f->errors[f->error_count] = strdup(from->driver_errors[i]);
		if (!f->errors[f->error_count++])
			return -ENOMEM;
	}
	return 0;
}

int summary_take_info(struct summary *s, size_t process, const Ntff__NtraceInfo *info)
{
	struct summary_process *p = &s->processes[process];
	struct summary_capture *c;
	bool known = false;
	int rc;

	map64_free(&p->open); /* its last event is behind us */
	map64_free(&p->begun);
	if (!info) {
		s->without_info++;
		return 0;
	}
	p->has_info = true;
	p->ended = info->ended;
	p->no_driver_calls =
		!strcmp(info->kernel_events, merge_kernel_events_name(MERGE_KERNEL_OFF));
	p->first_unknown = first_unknown(info);
	p->units_at_least = units_at_least(info);
	s->is_virtual |= info->virtual_device;
	s->is_simulated |= info->simulated;
	if (info->logical_nc_size > s->logical_size)
		s->logical_size = info->logical_nc_size;
	rc = find_capture(s, info, &c, &known);
	if (rc == 0)
		c->events += p->events.total;
	for (size_t i = 0; rc == 0 && i < info->n_ledger; i++)
		rc = take_row(s, info->ledger[i], known);
	for (size_t i = 0; rc == 0 && i < info->n_blind; i++)
		rc = add_blind(s, info->blind[i]);
	for (size_t i = 0; rc == 0 && i < info->n_failures; i++)
		rc = add_failure(s, process, info->failures[i]);
	return rc;
}
