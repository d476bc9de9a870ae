/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exec_trace_file.c - the file of nrt_trace_stop: one bare ntrace_info with the records as its
 * events.
 *
 * The events are the long part and are written one by one; what stands before and behind them, in
 * the order of the fields' numbers, is packed by protobuf-c.  Two messages one behind the other are
 * one that has the fields of both.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/event_codec.h"
#include "proto/neuron_trace.pb-c.h"
#include "runtime/base/file.h"
#include "runtime/profile/exec_trace.h"

#define DATA_VERSION 2
#define EVENTS_TAG 0x32 /* field 6, with a length */

static const struct type {
	struct pb_str name;
	enum ntrace_event_phase phase;
} types[EXEC_TRACE_TYPES] = {
#define TYPE(id, phase, origin) {{#id, sizeof(#id) - 1}, PHASE_##phase},
#include "runtime/profile/exec_trace_types.def"
#undef TYPE
};

/* By time; of one time, as they came. */
static int compare(const void *a, const void *b)
{
	const struct exec_trace_record *x = a, *y = b;

	if (x->boot_ns != y->boot_ns)
		return x->boot_ns < y->boot_ns ? -1 : 1;
	return (int32_t)(x->number - y->number) < 0 ? -1 : x->number != y->number;
}

/* The number of the kind is in `type`, not in event_type, whose numbers are those of the system
 * trace. */
static int append(struct pb_buf *b, const struct exec_trace_record *r, int64_t offset_ns)
{
	static const struct pb_str name_key = {"name", 4};
	struct ntrace_event_view e = {.timestamp = r->boot_ns + (uint64_t)offset_ns,
		.data = r->data,
		.nd_idx = r->nd,
		.nc_idx = r->nc,
		.thread_id = r->thread,
		.status = r->status,
		.phase = types[r->type].phase,
		.type = r->type,
		.hint = {r->hint ? r->hint : "", r->hint ? (uint32_t)strlen(r->hint) : 0}};

	(void)ntrace_event_attr(&e, name_key, types[r->type].name);
	return ntrace_event_append(b, &e);
}

static int put_events(struct outfile *f, const struct exec_trace_content *c)
{
	static const uint8_t tag = EVENTS_TAG;
	struct pb_buf b = {0};
	int rc = 0;

	for (size_t i = 0; i < c->count && rc == 0; i++) {
		b.len = 0;
		rc = append(&b, &c->records[i], c->offset_ns);
		outfile_write(f, &tag, sizeof(tag));
		outfile_write(f, b.data, b.len);
	}
	pb_buf_free(&b);
	return rc;
}

static int put_info(struct outfile *f, const Ntff__NtraceInfo *m)
{
	size_t size = ntff__ntrace_info__get_packed_size(m);
	_cleanup_free_ uint8_t *bytes = malloc(size ? size : 1);

	if (!bytes)
		return -ENOMEM;
	outfile_write(f, bytes, ntff__ntrace_info__pack(m, bytes));
	return 0;
}

static int put_head(struct outfile *f, const struct exec_trace_about *about)
{
	Ntff__NtraceInfo m = NTFF__NTRACE_INFO__INIT;

	m.arch = about->arch;
	m.pid = (uint32_t)getpid();
	m.data_version = DATA_VERSION;
	m.logical_nc_size = about->lnc_size;
	return put_info(f, &m);
}

/* What follows the events; the ledger is the place for what is lost. */
static int put_tail(
	struct outfile *f, const struct exec_trace_content *c, const struct exec_trace_about *about)
{
	const struct row {
		const char *counter, *kind;
		uint64_t value;
	} rows[] = {
		{"records", "in", c->added},
		{"written", "out", c->count},
		{"overwritten", "lost", c->overwritten},
		{"no_memory", "lost", c->no_memory},
		{"stopping", "lost", c->stopping},
	};
	enum { ROWS = sizeof(rows) / sizeof(rows[0]) };
	Ntff__NtraceLedgerRow ledger[ROWS], *list[ROWS];
	Ntff__NtraceInfo m = NTFF__NTRACE_INFO__INIT;

	for (size_t i = 0; i < ROWS; i++) {
		list[i] = &ledger[i];
		ntff__ntrace_ledger_row__init(&ledger[i]);
		ledger[i].stage = "exec_trace";
		ledger[i].counter = (char *)rows[i].counter;
		ledger[i].kind = (char *)rows[i].kind;
		ledger[i].value = rows[i].value;
	}
	m.producer = "libnrt (ntrace " NTRACE_VERSION ")";
	m.virtual_device = about->is_virtual || about->is_simulated;
	m.simulated = about->is_simulated;
	m.n_ledger = ROWS;
	m.ledger = list;
	m.realtime_offset_ns = c->offset_ns;
	m.ended = true;
	m.begin_ns = c->begin_ns + (uint64_t)c->offset_ns;
	return put_info(f, &m);
}

int exec_trace_write(
	const char *path, struct exec_trace_content *c, const struct exec_trace_about *about)
{
	struct outfile f;
	int rc;

	qsort(c->records, c->count, sizeof(*c->records), compare);
	rc = outfile_open(&f, path);
	if (rc < 0)
		return rc;
	rc = put_head(&f, about);
	if (rc == 0)
		rc = put_events(&f, c);
	if (rc == 0)
		rc = put_tail(&f, c, about);
	if (rc == 0)
		return outfile_commit(&f);
	outfile_abort(&f);
	return rc;
}
