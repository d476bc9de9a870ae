/* SPDX-License-Identifier: Apache-2.0 */
/*
 * diff_info.c - the losses that two trace_info.pb tell of.
 *
 * Of the ledger, what was lost and what was noted is compared.  What came in, went out and was received
 * shows in the counts of events, and what recording itself cost is no loss.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/output/diff.h"
#include "agent/output/trace_read.h"
#include "proto/neuron_trace.pb-c.h"
#include "runtime/base/file.h"

#define MAX_ROWS 10000u /* of a ledger, which has some dozens; each is compared with all */

struct infos {
	Ntff__NtraceInfo *of[2];
};

static void infos_free(struct infos *i)
{
	for (unsigned s = 0; s < 2; s++)
		if (i->of[s])
			ntff__ntrace_info__free_unpacked(i->of[s], NULL);
}

static bool counts(const Ntff__NtraceLedgerRow *r, bool structure)
{
	size_t len = strlen(r->counter);

	if (structure && len > 3 && !strcmp(r->counter + len - 3, "_ns"))
		return false;
	if (!strcmp(r->kind, "note"))
		return strcmp(r->stage, "agent") != 0 && strcmp(r->counter, "received") != 0;
	return !strcmp(r->kind, "lost");
}

static bool same_counter(const Ntff__NtraceLedgerRow *a, const Ntff__NtraceLedgerRow *b)
{
	return !strcmp(a->stage, b->stage) && !strcmp(a->counter, b->counter);
}

/* A file of ours has one row of a counter, another may have several. */
static uint64_t sum_of(const Ntff__NtraceInfo *m, const Ntff__NtraceLedgerRow *like)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < m->n_ledger; i++)
		if (same_counter(m->ledger[i], like))
			sum += m->ledger[i]->value;
	return sum;
}

/* Is the counter one that counts in the first n rows? */
static bool is_among(
	const Ntff__NtraceInfo *m, size_t n, const Ntff__NtraceLedgerRow *like, bool structure)
{
	for (size_t i = 0; i < n; i++)
		if (same_counter(m->ledger[i], like) && counts(m->ledger[i], structure))
			return true;
	return false;
}

static int add_loss(struct diff *d, const Ntff__NtraceLedgerRow *r, uint64_t a, uint64_t b)
{
	struct diff_loss *more = realloc(d->losses, (d->loss_count + 1) * sizeof(*more));

	if (!more)
		return -ENOMEM;
	d->losses = more;
	more += d->loss_count++;
	*more = (struct diff_loss){strdup(r->stage), strdup(r->counter), {a, b}};
	return more->stage && more->counter ? 0 : -ENOMEM;
}

/* A row that only one side has (another version wrote it) stands against 0. */
static int compare_ledgers(struct diff *d, const struct infos *m, bool structure)
{
	int rc = 0;

	for (unsigned s = 0; s < 2; s++) {
		for (size_t i = 0; rc == 0 && i < m->of[s]->n_ledger; i++) {
			const Ntff__NtraceLedgerRow *r = m->of[s]->ledger[i];
			uint64_t value[2];

			if (!counts(r, structure) || is_among(m->of[s], i, r, structure) ||
				(s && is_among(m->of[0], m->of[0]->n_ledger, r, structure)))
				continue;
			value[0] = sum_of(m->of[0], r);
			value[1] = sum_of(m->of[1], r);
			if (value[0] != value[1])
				rc = add_loss(d, r, value[0], value[1]);
		}
	}
	return rc;
}

/* Were all messages read that the file had?  One that ends between two shows nothing of it itself. */
static bool is_whole(const struct diff_side *side, uint64_t events, const Ntff__NtraceInfo *info)
{
	char text[TRACE_TEXT];
	struct stat st;

	return stat(side->file, &st) < 0 ||
	       trace_info_agrees(info, side->file, events, (uint64_t)st.st_size, text);
}

int diff_read_info(const struct diff_side side[2], const struct diff_options *options,
	struct diff *d, struct diff_fault *fault)
{
	_cleanup_(infos_free) struct infos m = {{NULL, NULL}};
	int rc = 0;

	if (side[0].alone || side[1].alone)
		return 0;
	for (unsigned s = 0; s < 2; s++) {
		_cleanup_free_ char *path = NULL;

		rc = trace_info_read(side[s].file, &m.of[s], &path);
		if (rc == 0 && m.of[s] && m.of[s]->n_ledger > MAX_ROWS)
			rc = -EBADMSG;
		if (rc == 0 && !is_whole(&side[s], d->in_file[s], m.of[s])) {
			rc = -EBADMSG;
			free(path);
			path = strdup(side[s].file);
		}
		if (rc < 0) {
			fault->path = path;
			path = NULL;
			return rc;
		}
		d->has_info[s] = m.of[s] != NULL;
		if (m.of[s])
			d->ended[s] = m.of[s]->ended;
	}
	d->info_missing = d->has_info[0] != d->has_info[1];
	if (!m.of[0] || !m.of[1]) {
		d->ended[0] = d->ended[1] = true;
		return 0;
	}
	if (m.of[0]->session && m.of[1]->session)
		rc = diff_sessions(d, m.of[0]->session, m.of[1]->session);
	return rc < 0 ? rc
		      : compare_ledgers(d, &m, options->ignore_times || options->tolerance > 0);
}
