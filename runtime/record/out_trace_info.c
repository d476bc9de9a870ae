/* SPDX-License-Identifier: Apache-2.0 */
/*
 * out_trace_info.c - trace_info.pb: one bare ntrace_info that says what the other files are.
 *
 * The message is put together from arrays on the heap that point into what is loaded; nothing of it
 * outlives the call.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/neuron_trace.pb-c.h"
#include "runtime/base/file.h"
#include "runtime/record/blind.h"
#include "runtime/record/out.h"

#define DATA_VERSION 2

/* Elements and the pointers to them that protobuf-c wants; freed together. */
struct parts {
	Ntff__NtraceDataFile *files;
	Ntff__NtraceDataFile **file_list;
	Ntff__NtraceLedgerRow *rows;
	Ntff__NtraceLedgerRow **row_list;
	Ntff__NtraceClockStep *steps;
	Ntff__NtraceClockStep **step_list;
	Ntff__NtraceDeviceClock *clocks;
	Ntff__NtraceDeviceClock **clock_list;
	Ntff__InternedDataDb__IdMapEntry *names;
	Ntff__InternedDataDb__IdMapEntry **name_list;
	Ntff__InternedDataDb db, *db_list[1];
	Ntff__NtraceDamage damage;
	Ntff__NtraceSession session;
	Ntff__NtraceOff *offs;
	Ntff__NtraceOff **off_list;
	struct failures_text texts[FAILURES_TEXTS];
	char *error_list[FAILURES_TEXTS][FAILURES_ERRORS];
	Ntff__NtraceFailure failures[FAILURES_TEXTS], *failure_list[FAILURES_TEXTS];
	char lines[BLIND_LINES][BLIND_BYTES];
	char *line_list[BLIND_LINES];
};

static void parts_free(struct parts *p)
{
	free(p->files);
	free(p->file_list);
	free(p->rows);
	free(p->row_list);
	free(p->steps);
	free(p->step_list);
	free(p->clocks);
	free(p->clock_list);
	free(p->names);
	free(p->name_list);
	free(p->offs);
	free(p->off_list);
}

static char *text(const char *s)
{
	return (char *)(s ? s : "");
}

#define ALLOCATE(array, list, count)                          \
	(((array) = calloc((count) + 1, sizeof(*(array)))) && \
		((list) = calloc((count) + 1, sizeof(*(list)))))

static void add_file(Ntff__NtraceInfo *m, struct parts *p, const struct out_profile *f)
{
	Ntff__NtraceDataFile *to = &p->files[m->n_collected_profiles];

	ntff__ntrace_data_file__init(to);
	to->name = text(f->name);
	to->type = text(f->type);
	to->message_count = f->messages;
	to->bytes = f->bytes;
	p->file_list[m->n_collected_profiles++] = to;
}

/* The other three, then what a session has left beside them. */
static int add_files(Ntff__NtraceInfo *m, struct parts *p, const struct session *s,
	const struct out_profile *f, size_t n)
{
	if (!ALLOCATE(p->files, p->file_list, n + s->file_count))
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		add_file(m, p, &f[i]);
	for (size_t i = 0; i < s->file_count; i++)
		add_file(m, p,
			&(struct out_profile){.name = s->files[i].name,
				.type = s->files[i].type,
				.bytes = s->files[i].bytes});
	m->collected_profiles = p->file_list;
	return 0;
}

static size_t length(const char *const *list)
{
	size_t n = 0;

	while (list && list[n])
		n++;
	return n;
}

static int add_off(Ntff__NtraceSession *to, struct parts *p, const struct rec_session_off *off)
{
	size_t n = 0;

	while (off && off[n].what)
		n++;
	if (!ALLOCATE(p->offs, p->off_list, n))
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		ntff__ntrace_off__init(&p->offs[i]);
		p->offs[i].what = text(off[i].what);
		p->offs[i].why = text(off[i].why);
		p->off_list[i] = &p->offs[i];
	}
	to->n_off = n;
	to->off = p->off_list;
	return 0;
}

static int add_session(Ntff__NtraceInfo *m, struct parts *p, const struct session *l)
{
	const struct rec_session *s = session_own(l);
	Ntff__NtraceSession *to = &p->session;

	if (!s)
		return 0;
	ntff__ntrace_session__init(to);
#define COPY_NUMBER(member) to->member = s->member
#define COPY_TEXT(member) to->member = text(s->member)
#define COPY_LIST(member) (to->n_##member = length(s->member), to->member = (char **)s->member)
#define SESSION_MEMBER(kind, name) COPY_##kind(name);
#include "runtime/record/session_members.def"
#undef SESSION_MEMBER
	to->driver = text(l->header.info.driver);
	m->session = to;
	m->session_id = (uint64_t)s->session_id;
	m->arch = (uint32_t)s->arch;
	m->logical_nc_size = (uint32_t)s->logical_nc_size;
	return add_off(to, p, s->off);
}

/* Has a row nothing to say?  Without device profiles theirs are none; without hooks on the DMA path, or before there
 * were any, neither are those; so with what --rate and --hook-cost count, and with what only hooks inside of the driver
 * have. */
static bool row_is_none(const struct session *s, const struct ledger *g, uint32_t id)
{
	const char *stage = rec_counter_info(id)->stage;

	if (!strcmp(stage, "device"))
		return !s->profiles.asked;
	if (!strcmp(stage, "dma"))
		return !s->read_dma && !g->value[REC_C_DMA_MADE];
	return (!strcmp(stage, "hooks") || id == REC_C_KERNEL_RATE ||
		       id == REC_C_KERNEL_UNCOUNTED || id == REC_C_KERNEL_SWITCH_FAILED ||
		       id == REC_C_KERNEL_KPROBES_OFF_NS) &&
	       !g->value[id];
}

static int add_ledger(
	Ntff__NtraceInfo *m, struct parts *p, const struct ledger *g, const struct session *s)
{
	size_t n = 0;

	if (!ALLOCATE(p->rows, p->row_list, (size_t)REC_COUNTER_MAX))
		return -ENOMEM;
	for (uint32_t id = 1; id < REC_COUNTER_MAX; id++) {
		const struct rec_counter_info *info = rec_counter_info(id);
		Ntff__NtraceLedgerRow *r = &p->rows[n];

		if (row_is_none(s, g, id))
			continue;
		ntff__ntrace_ledger_row__init(r);
		r->stage = text(info->stage);
		r->counter = text(info->name);
		r->kind = text(rec_counter_kind_name(info->kind));
		r->value = g->value[id];
		p->row_list[n++] = r;
	}
	m->n_ledger = n;
	m->ledger = p->row_list;
	return 0;
}

static int add_steps(Ntff__NtraceInfo *m, struct parts *p, const struct clock_map *c)
{
	size_t n = 0;

	m->realtime_offset_ns = c->offset;
	if (!ALLOCATE(p->steps, p->step_list, c->step_count))
		return -ENOMEM;
	for (size_t i = 0; i < c->step_count; i++) {
		m->suspended_ns += c->steps[i].suspended_ns;
		if (c->steps[i].suspended_ns)
			continue;
		ntff__ntrace_clock_step__init(&p->steps[n]);
		p->steps[n].boot_ns = c->steps[i].boot_ns;
		p->steps[n].old_offset_ns = c->steps[i].old_offset;
		p->steps[n].new_offset_ns = c->steps[i].new_offset;
		p->step_list[n] = &p->steps[n];
		n++;
	}
	m->n_clock_steps = n;
	m->clock_steps = p->step_list;
	return 0;
}

static bool of_process(const struct session *l, uint32_t source, uint32_t pid)
{
	return l->sources[source].pid == pid; /* 0 when it is not known */
}

static int compare_clocks(const void *a, const void *b)
{
	const struct session_clock *x = *(const struct session_clock *const *)a;
	const struct session_clock *y = *(const struct session_clock *const *)b;

	if (x->source != y->source)
		return x->source < y->source ? -1 : 1;
	if (x->core != y->core)
		return x->core < y->core ? -1 : 1;
	return x->of_device < y->of_device ? -1 : x->of_device > y->of_device;
}

/* Clocks of the cores that this process's runtimes used. */
static int add_clocks(Ntff__NtraceInfo *m, struct parts *p, const struct session *l, uint32_t pid)
{
	size_t n = 0;

	if (!ALLOCATE(p->clocks, p->clock_list, l->device_clock_count))
		return -ENOMEM;
	_cleanup_free_ const struct session_clock **own =
		calloc(l->device_clock_count + 1, sizeof(*own));
	if (!own)
		return -ENOMEM;
	for (size_t i = 0; i < l->device_clock_count; i++)
		if (of_process(l, l->device_clocks[i].source, pid))
			own[n++] = &l->device_clocks[i];
	qsort(own, n, sizeof(*own), compare_clocks);
	for (size_t i = 0; i < n; i++) {
		const struct device_clock *c = &own[i]->clock;
		Ntff__NtraceDeviceClock *to = &p->clocks[i];

		ntff__ntrace_device_clock__init(to);
		to->nc_idx = own[i]->core ? own[i]->core - 1u : UINT32_MAX;
		to->of_device = own[i]->of_device;
		to->points = c->total;
		to->resets = c->resets;
		to->drift_ppb = device_clock_drift(c);
		to->residual_ns = c->residual;
		to->bound_ns = c->bound;
		p->clock_list[i] = to;
	}
	m->n_device_clocks = n;
	m->device_clocks = p->clock_list;
	return 0;
}

static int compare_entries(const void *a, const void *b)
{
	const Ntff__InternedDataDb__IdMapEntry *x = *(Ntff__InternedDataDb__IdMapEntry *const *)a;
	const Ntff__InternedDataDb__IdMapEntry *y = *(Ntff__InternedDataDb__IdMapEntry *const *)b;

	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return x < y ? -1 : x > y; /* elements of one array, in the order of the recording */
}

/* Names of this process's runtimes; of an id that two of them use differently, the first. */
static int add_names(Ntff__NtraceInfo *m, struct parts *p, const struct session *l, uint32_t pid)
{
	size_t n = 0, kept = 0;

	if (!ALLOCATE(p->names, p->name_list, l->name_count))
		return -ENOMEM;
	for (size_t i = 0; i < l->name_count; i++) {
		if (!of_process(l, l->names[i].source, pid))
			continue;
		ntff__interned_data_db__id_map_entry__init(&p->names[n]);
		p->names[n].key = l->names[i].id;
		p->names[n].value = l->name_text + l->names[i].offset;
		p->name_list[n] = &p->names[n];
		n++;
	}
	if (n == 0)
		return 0;
	qsort(p->name_list, n, sizeof(*p->name_list), compare_entries);
	for (size_t i = 0; i < n; i++)
		if (!kept || p->name_list[kept - 1]->key != p->name_list[i]->key)
			p->name_list[kept++] = p->name_list[i];
	ntff__interned_data_db__init(&p->db);
	p->db.n_id_map = kept;
	p->db.id_map = p->name_list;
	p->db_list[0] = &p->db;
	m->n_interned_data = 1;
	m->interned_data = p->db_list;
	return 0;
}

static void add_blind(
	Ntff__NtraceInfo *m, struct parts *p, const struct session *s, uint64_t device_runs)
{
	m->n_blind = blind_lines(s, device_runs, p->lines);
	for (size_t i = 0; i < m->n_blind; i++)
		p->line_list[i] = p->lines[i];
	m->blind = p->line_list;
}

static void add_failures(Ntff__NtraceInfo *m, struct parts *p, const struct session *s,
	const struct process *process)
{
	m->n_failures = failures_tell(
		&process->failures, process->pid, session_end(s), s->end_ns, p->texts);
	for (size_t i = 0; i < m->n_failures; i++) {
		Ntff__NtraceFailure *to = p->failure_list[i] = &p->failures[i];

		ntff__ntrace_failure__init(to);
		to->what = p->texts[i].what;
		to->n_driver_errors = p->texts[i].error_count;
		to->driver_errors = p->error_list[i];
		for (size_t k = 0; k < to->n_driver_errors; k++)
			to->driver_errors[k] = p->texts[i].errors[k];
	}
	m->failures = p->failure_list;
}

/* Whether the recording is all that there was. */
static void add_state(Ntff__NtraceInfo *m, struct parts *p, const struct session *l)
{
	m->begin_ns = clock_map_real(&l->clock, l->clock.begin);
	m->cut = l->header.info.is_cut;
	m->ended = l->ended;
	if (l->has_end)
		m->end = text(merge_end_name(l->end.reason));
	if (!rec_damaged(&l->damage))
		return;
	ntff__ntrace_damage__init(&p->damage);
	p->damage.skipped_bytes = l->damage.skipped_bytes;
	p->damage.cut_bytes = l->damage.cut_bytes;
	p->damage.places = l->damage.bad_frames;
	m->damage = &p->damage;
}

static void add_header(Ntff__NtraceInfo *m, const struct session *l)
{
	const struct rec_header_info *h = &l->header.info;

	m->producer = text(h->producer);
	m->instance_id = text(h->instance_id);
	m->host = text(h->host);
	m->kernel = text(h->kernel);
	m->virtual_device = l->is_virtual;
	m->simulated = l->is_simulated;
	m->attached = l->has_header && h->attached;
	m->hooks = (char **)h->hooks;
	while (h->hooks && h->hooks[m->n_hooks])
		m->n_hooks++;
}

const char *merge_kernel_events_name(unsigned kernel_events)
{
	static const char *const names[] = {
		[MERGE_KERNEL_HINT] = "hint",
		[MERGE_KERNEL_EXTENDED] = "extended",
		[MERGE_KERNEL_OFF] = "off",
	};

	return kernel_events < sizeof(names) / sizeof(*names) ? names[kernel_events] : NULL;
}

const char *merge_end_name(unsigned reason)
{
	static const char *const names[] = {
		[REC_END_COMMAND] = "command",
		[REC_END_ASKED] = "asked",
		[REC_END_NO_SPACE] = "no_space",
		[REC_END_FAILED] = "failed",
	};

	return reason < sizeof(names) / sizeof(*names) ? names[reason] : NULL;
}

static int append_info(const Ntff__NtraceInfo *m, struct pb_buf *to)
{
	int rc = pb_buf_reserve(to, ntff__ntrace_info__get_packed_size(m));

	if (rc == 0)
		to->len += ntff__ntrace_info__pack(m, to->data + to->len);
	return rc;
}

int out_trace_info(const struct session *s, const struct process *process,
	enum merge_kernel_events kernel_events, const struct ledger *g,
	const struct out_profile *profiles, size_t profile_count, struct pb_buf *to)
{
	Ntff__NtraceInfo m = NTFF__NTRACE_INFO__INIT;
	struct parts p = {0};
	int rc;

	m.pid = process->pid;
	m.data_version = DATA_VERSION;
	m.open_spans = process->open_spans;
	m.kernel_events = text(merge_kernel_events_name(kernel_events));
	m.agent_cpu_ns = g->value[REC_C_AGENT_CPU_NS];
	m.bytes_recorded = g->value[REC_C_AGENT_BYTES];
	add_header(&m, s);
	add_state(&m, &p, s);
	add_blind(&m, &p, s, process->device_runs - process->device.runs);
	add_failures(&m, &p, s, process);
	rc = add_files(&m, &p, s, profiles, profile_count);
	if (rc == 0)
		rc = add_session(&m, &p, s);
	if (rc == 0)
		rc = add_ledger(&m, &p, g, s);
	if (rc == 0)
		rc = add_steps(&m, &p, &s->clock);
	if (rc == 0)
		rc = add_clocks(&m, &p, s, process->pid);
	if (rc == 0)
		rc = add_names(&m, &p, s, process->pid);
	if (rc == 0)
		rc = append_info(&m, to);
	parts_free(&p);
	return rc;
}
