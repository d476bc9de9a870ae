/* SPDX-License-Identifier: Apache-2.0 */
/*
 * perfetto_fixture.h - makes small traces, exports them and reads the Perfetto file back with protobuf-c.
 *
 * A test writes an ntrace.pb of a few events; clocks and interned texts of what comes out are resolved,
 * and the checker looks at the whole.
 */
#ifndef NTRACE_TESTS_PERFETTO_FIXTURE_H
#define NTRACE_TESTS_PERFETTO_FIXTURE_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "agent/output/perfetto.h"
#include "agent/output/perfetto_verify.h"
#include "proto/perfetto_subset.pb-c.h"
#include "runtime/base/file.h"
#include "runtime/trace/event_registry.h"
#include "tests/shim/shim.h"
#include "tests/unit/scratch.h"

#define BOOT 1000000000u
#define OFFSET 1790000000000000000

/* ---- making a trace ---------------------------------------------------------------------------- */

/* An event: time in ns after BOOT, and attributes as `key=value key=value`,
 * among them the fields `@status` and `@seq` (nrta_seq_id). */
struct row {
	uint32_t phase, type;
	uint64_t id, time;
	uint32_t thread;
	const char *attrs, *hint;
	uint64_t duration;
	uint32_t core;
};
#define ROW(phase_, type_, id_, time_, ...)                                                     \
	{                                                                                       \
		.phase = (phase_), .type = (type_), .id = (id_), .time = (time_), .thread = 10, \
		.attrs = __VA_ARGS__                                                            \
	}
#define START_(...) ROW(PHASE_START, __VA_ARGS__)
#define STOP_(...) ROW(PHASE_STOP, __VA_ARGS__)

static inline void add_attrs(struct ntrace_event_view *e, const char *p)
{
	while (p && *p) {
		size_t key = strcspn(p, "="), value = strcspn(p + key + 1, " ");

		if (!strncmp(p, "@status", key)) {
			e->status = (uint32_t)atoi(p + key + 1);
		} else if (!strncmp(p, "@seq", key)) {
			e->has_nrta_seq_id = true;
			e->nrta_seq_id = (uint32_t)atoi(p + key + 1);
		} else {
			ntrace_event_attr(e, (struct pb_str){p, (uint32_t)key},
				(struct pb_str){p + key + 1, (uint32_t)value});
		}
		p += key + 1 + value;
		p += *p == ' ';
	}
}

static inline bool put_file(const char *dir, const char *name, const void *data, size_t size)
{
	char path[PATH_MAX + 64];
	struct outfile f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	if (outfile_open(&f, path) < 0)
		return false;
	outfile_write(&f, data, size);
	return outfile_commit(&f) == 0;
}

static inline bool put_info(const char *dir, uint32_t pid, int64_t offset)
{
	Ntff__NtraceInfo info = NTFF__NTRACE_INFO__INIT;
	Ntff__NtraceLedgerRow row = NTFF__NTRACE_LEDGER_ROW__INIT, *rows = &row;
	char *blind = "what was not seen";
	uint8_t buf[512];

	row.stage = "kernel";
	row.counter = "ring_full";
	row.kind = "lost";
	row.value = 12;
	info.pid = pid;
	info.realtime_offset_ns = offset;
	info.ledger = &rows;
	info.n_ledger = 1;
	info.blind = &blind;
	info.n_blind = 1;
	info.ended = true;
	return put_file(dir, "trace_info.pb", buf, ntff__ntrace_info__pack(&info, buf));
}

/* Writes <scratch>/<name>/ntrace.pb and its trace_info.pb with an offset to realtime. */
static inline bool put_trace_at(struct scratch *s, const char *name, uint32_t pid, int64_t offset,
	const struct row *rows, size_t count)
{
	struct scratch_path dir = scratch_path(s, name);
	struct ntrace_event_view *e = calloc(1, sizeof(*e));
	struct pb_buf b = {0};
	bool ok = e && mkdir(dir.s, 0777) == 0;

	for (size_t i = 0; ok && i < count; i++) {
		*e = (struct ntrace_event_view){.timestamp = BOOT + OFFSET + rows[i].time,
			.event_type = rows[i].type,
			.phase = rows[i].phase,
			.id = rows[i].id,
			.tracking_id = rows[i].id,
			.thread_id = rows[i].thread,
			.duration = rows[i].duration,
			.nc_idx = rows[i].core};
		if (rows[i].hint)
			e->hint = (struct pb_str){rows[i].hint, (uint32_t)strlen(rows[i].hint)};
		add_attrs(e, rows[i].attrs);
		ok = ntrace_event_append(&b, e) == 0;
	}
	ok = ok && put_file(dir.s, "ntrace.pb", b.data, b.len) && put_info(dir.s, pid, offset);
	pb_buf_free(&b);
	free(e);
	return ok;
}

static inline bool put_trace(
	struct scratch *s, const char *name, uint32_t pid, const struct row *rows, size_t count)
{
	return put_trace_at(s, name, pid, OFFSET, rows, count);
}

/* ---- reading the file -------------------------------------------------------------------------- */

#define MAX_SEEN 16384
#define MAX_TRACKS 256
#define MAX_IIDS 8192
#define MAX_SEQUENCES 80

struct seen {
	int type;
	uint64_t track, time, flow, end_flow;
	unsigned flows;
	const char *name, *category;
	int64_t value;
	char notes[400]; /* key=value in order, by kind: u, i, p, b, s */
};

/* An exported file, its events in the order in which they stand there. */
struct exported {
	struct pb_buf bytes;
	Perfetto__Protos__Trace *trace;
	struct seen seen[MAX_SEEN];
	unsigned count;
	Perfetto__Protos__TrackDescriptor *tracks[MAX_TRACKS];
	unsigned track_count;
	const char *texts[MAX_SEQUENCES][4][MAX_IIDS]; /* by sequence, table, number */
	uint64_t clocks[MAX_SEQUENCES];		       /* clock 64 of sequences */
	uint64_t realtime_at[8], boot_at[8];
	unsigned snapshots;
	int rc;
	bool write_failed;
	struct pfv_result verified;
	struct perfetto_result result;
};

static inline int keep(void *ctx, const void *data, size_t size)
{
	return pb_buf_append(ctx, data, size);
}

static inline void hear(void *ctx, const struct pfv_finding *f)
{
	(void)ctx;
	test_info("%s: %s", pfv_kind_name(f->kind), f->text);
}

static inline void read_interned(struct exported *x, uint32_t s, Perfetto__Protos__InternedData *d)
{
	for (size_t i = 0; d && i < d->n_event_categories; i++)
		x->texts[s][0][d->event_categories[i]->iid] = d->event_categories[i]->name;
	for (size_t i = 0; d && i < d->n_event_names; i++)
		x->texts[s][1][d->event_names[i]->iid] = d->event_names[i]->name;
	for (size_t i = 0; d && i < d->n_debug_annotation_names; i++)
		x->texts[s][2][d->debug_annotation_names[i]->iid] =
			d->debug_annotation_names[i]->name;
	for (size_t i = 0; d && i < d->n_debug_annotation_string_values; i++) {
		Perfetto__Protos__InternedString *t = d->debug_annotation_string_values[i];
		char *text = strndup(t->str.len ? (const char *)t->str.data : "", t->str.len);

		x->texts[s][3][t->iid] = text; /* freed by exported_free */
	}
}

static inline void read_note(
	struct exported *x, struct seen *e, uint32_t s, const Perfetto__Protos__DebugAnnotation *a)
{
	size_t n = strlen(e->notes);
	char *to = e->notes + n;
	size_t left = sizeof(e->notes) - n;
	const char *key = a->has_name_iid ? x->texts[s][2][a->name_iid] : a->name;

	if (a->has_uint_value)
		snprintf(to, left, "%s=u%llu ", key, (unsigned long long)a->uint_value);
	else if (a->has_int_value)
		snprintf(to, left, "%s=i%lld ", key, (long long)a->int_value);
	else if (a->has_pointer_value)
		snprintf(to, left, "%s=p%llx ", key, (unsigned long long)a->pointer_value);
	else if (a->has_bool_value)
		snprintf(to, left, "%s=b%d ", key, a->bool_value);
	else
		snprintf(to, left, "%s=s%s ", key,
			a->has_string_value_iid ? x->texts[s][3][a->string_value_iid]
						: a->string_value);
}

static inline void read_event(struct exported *x, const Perfetto__Protos__TracePacket *p)
{
	const Perfetto__Protos__TrackEvent *t = p->track_event;
	uint32_t s = p->trusted_packet_sequence_id;
	struct seen *e = &x->seen[x->count++];

	if (x->clocks[s])
		e->time = x->clocks[s] += p->timestamp;
	else
		e->time = p->timestamp;
	e->time -= BOOT;
	e->type = (int)t->type;
	e->track = t->track_uuid;
	e->name = t->has_name_iid ? x->texts[s][1][t->name_iid] : t->name;
	e->category = t->n_category_iids ? x->texts[s][0][t->category_iids[0]] : "";
	e->value = t->counter_value;
	e->flows = (unsigned)t->n_flow_ids;
	e->flow = t->n_flow_ids ? t->flow_ids[0] : 0;
	e->end_flow = t->n_terminating_flow_ids ? t->terminating_flow_ids[0] : 0;
	for (size_t i = 0; i < t->n_debug_annotations; i++)
		read_note(x, e, s, t->debug_annotations[i]);
}

static inline void read_snapshot(struct exported *x, const Perfetto__Protos__TracePacket *p)
{
	for (size_t i = 0; i < p->clock_snapshot->n_clocks; i++) {
		const Perfetto__Protos__ClockSnapshot__Clock *c = p->clock_snapshot->clocks[i];

		if (c->clock_id == 64)
			x->clocks[p->trusted_packet_sequence_id] = c->timestamp;
		else if (c->clock_id == 1)
			x->realtime_at[x->snapshots] = c->timestamp;
		else if (c->clock_id == 6)
			x->boot_at[x->snapshots] = c->timestamp;
	}
	x->snapshots++;
}

static inline bool read_packets(struct exported *x)
{
	for (size_t i = 0; i < x->trace->n_packet; i++) {
		const Perfetto__Protos__TracePacket *p = x->trace->packet[i];

		if (p->trusted_packet_sequence_id >= MAX_SEQUENCES)
			return false;
		read_interned(x, p->trusted_packet_sequence_id, p->interned_data);
		if (p->clock_snapshot && x->snapshots < 8)
			read_snapshot(x, p);
		if (p->track_descriptor && x->track_count < MAX_TRACKS)
			x->tracks[x->track_count++] = p->track_descriptor;
		if (p->track_event && x->count < MAX_SEEN)
			read_event(x, p);
	}
	return true;
}

static inline void exported_free(struct exported *x)
{
	for (unsigned s = 0; s < MAX_SEQUENCES; s++)
		for (unsigned i = 0; i < MAX_IIDS; i++)
			free((char *)x->texts[s][3][i]);
	if (x->trace)
		perfetto__protos__trace__free_unpacked(x->trace, NULL);
	pb_buf_free(&x->bytes);
	free(x);
}

static inline int check(struct exported *x)
{
	_cleanup_close_ int fd = memfd_create("trace", MFD_CLOEXEC);

	if (fd < 0 || file_write_all(fd, x->bytes.data, x->bytes.len) < 0 ||
		lseek(fd, 0, SEEK_SET) < 0)
		return -1;
	return perfetto_verify(fd, hear, NULL, &x->verified);
}

/* Exports a path; NULL when that fails or the file is not sound. */
static inline struct exported *export_path(const char *path)
{
	struct exported *x = calloc(1, sizeof(*x));
	struct feed_options options = {0};
	_cleanup_free_ char *error = NULL;

	if (!x)
		return NULL;
	x->rc = perfetto_export(
		path, &options, keep, &x->bytes, &x->result, &x->write_failed, &error);
	if (x->rc == 0 && check(x) == 0 && x->verified.findings == 0)
		x->trace = perfetto__protos__trace__unpack(NULL, x->bytes.len, x->bytes.data);
	if (x->trace && read_packets(x) && x->result.bytes == x->bytes.len)
		return x;
	test_info("export: %d, %s", x->rc, error ? error : "not sound");
	exported_free(x);
	return NULL;
}

static inline struct exported *export_rows(const struct row *rows, size_t count)
{
	struct exported *x = NULL;
	struct scratch s;

	if (!scratch_make(&s))
		return NULL;
	if (put_trace(&s, "i-1_pid_7", 7, rows, count))
		x = export_path(s.dir);
	scratch_remove(&s);
	return x;
}
#define EXPORT(rows) export_rows(rows, sizeof(rows) / sizeof((rows)[0]))

static inline const Perfetto__Protos__TrackDescriptor *track(
	const struct exported *x, uint64_t uuid)
{
	for (unsigned i = 0; i < x->track_count; i++)
		if (x->tracks[i]->uuid == uuid)
			return x->tracks[i];
	return NULL;
}

static inline const char *track_name(const struct exported *x, uint64_t uuid)
{
	const Perfetto__Protos__TrackDescriptor *t = track(x, uuid);

	return !t	    ? "none"
	       : t->thread  ? t->thread->thread_name
	       : t->process ? t->process->process_name
			    : t->name;
}

/* The events of a track as text: `<` and `>` for begin and end, `!` instant, with time and name. */
static inline const char *story(const struct exported *x, const char *name)
{
	static char text[2][1000];
	static unsigned next;
	char *to = text[next++ % 2];
	size_t n = 0;

	to[0] = '\0';
	for (unsigned i = 0; i < x->count && n < 900; i++) {
		const struct seen *e = &x->seen[i];

		if (strcmp(track_name(x, e->track), name) != 0)
			continue;
		if (e->type == 4)
			n += (size_t)snprintf(to + n, 1000 - n, "%llu=%lld ",
				(unsigned long long)e->time, (long long)e->value);
		else
			n += (size_t)snprintf(to + n, 1000 - n, "%c%llu%s%s ", " <>!"[e->type],
				(unsigned long long)e -> time, e -> type == 2 ? "" : ":",
				e->type == 2 ? "" : e->name);
	}
	return to;
}

/* The n-th event with this name. */
static inline const struct seen *named(const struct exported *x, const char *name, unsigned n)
{
	static const struct seen none = {.name = "", .category = ""};

	for (unsigned i = 0; i < x->count; i++)
		if (x->seen[i].name && !strcmp(x->seen[i].name, name) && n-- == 0)
			return &x->seen[i];
	return &none;
}

#endif
