/* SPDX-License-Identifier: Apache-2.0 */
/*
 * load_index.c - what is loaded, put in order: newest counters, names by id, records by process.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/file.h"
#include "runtime/base/utf8.h"
#include "runtime/record/load_internal.h"

#define EVENT_TYPE_LIMIT 1000u /* numbers from here on are kernel spans in ntrace.pb */

/* ---- counters ----------------------------------------------------------------------------- */

static int compare_counters(const void *a, const void *b)
{
	const struct load_counter *x = a, *y = b;

	if (x->source != y->source)
		return x->source < y->source ? -1 : 1;
	if (x->id != y->id)
		return x->id < y->id ? -1 : 1;
	if (x->sub != y->sub)
		return x->sub < y->sub ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

/* Keeps the newest value of each counter. */
static void keep_newest(struct load *l)
{
	size_t kept = 0;

	if (l->counter_count == 0)
		return;
	qsort(l->counters, l->counter_count, sizeof(*l->counters), compare_counters);
	for (size_t i = 0; i < l->counter_count; i++) {
		const struct load_counter *c = &l->counters[i];

		if (kept && l->counters[kept - 1].source == c->source &&
			l->counters[kept - 1].id == c->id && l->counters[kept - 1].sub == c->sub)
			kept--;
		l->counters[kept++] = *c;
	}
	l->counter_count = kept;
}

int load_counter(struct loader *ld, uint32_t source, const struct rec_counter *c)
{
	struct load *l = ld->l;
	int rc = 0;

	if (l->counter_count == ld->counter_cap) {
		keep_newest(l);
		if (l->counter_count >= ld->counter_cap / 2)
			rc = load_grow(&l->counters, &ld->counter_cap, ld->counter_cap + 1,
				sizeof(*l->counters));
	}
	if (rc < 0)
		return rc;
	l->counters[l->counter_count++] = (struct load_counter){.source = source,
		.id = c->id,
		.sub = c->sub,
		.order = ld->counter_order++,
		.value = c->value};
	return 0;
}

/* ---- names -------------------------------------------------------------------------------- */

int load_add_name(struct loader *ld, uint32_t source, uint64_t id, const char *text, size_t len)
{
	const unsigned char *p = (const unsigned char *)text;
	struct load *l = ld->l;
	size_t used = 0, max = len < LOAD_MAX_NAME ? len : LOAD_MAX_NAME;
	int rc = load_grow(&l->names, &ld->name_cap, l->name_count + 1, sizeof(*l->names));

	if (rc == 0)
		rc = load_grow(&l->name_text, &ld->name_bytes_cap, l->name_bytes + max + 1, 1);
	if (rc < 0)
		return rc;
	for (size_t i = 0; i < len;) {
		size_t n = p[i] ? utf8_length(p + i, len - i) : 0;
		size_t out = n ? n : 1;

		if (used + out > max)
			break;
		if (n)
			memcpy(l->name_text + l->name_bytes + used, p + i, n);
		else
			l->name_text[l->name_bytes + used] = '?';
		used += out;
		i += out;
	}
	l->names[l->name_count++] = (struct load_name){
		.id = id, .source = source, .len = (uint32_t)used, .offset = l->name_bytes};
	l->name_bytes += used;
	l->name_text[l->name_bytes++] = '\0';
	return 0;
}

static int compare_name_keys(const struct load_name *x, const struct load_name *y)
{
	if (x->source != y->source)
		return x->source < y->source ? -1 : 1;
	return x->id < y->id ? -1 : x->id > y->id;
}

static int compare_names(const void *a, const void *b)
{
	const struct load_name *x = a, *y = b;
	int c = compare_name_keys(x, y);

	return c ? c : x->offset < y->offset ? -1 : x->offset > y->offset;
}

static void sort_names(struct load *l)
{
	size_t kept = 0;

	if (l->name_count == 0)
		return;
	qsort(l->names, l->name_count, sizeof(*l->names), compare_names);
	for (size_t i = 0; i < l->name_count; i++)
		if (!kept || compare_name_keys(&l->names[kept - 1], &l->names[i]))
			l->names[kept++] = l->names[i];
	l->name_count = kept;
}

const char *load_name(const struct load *l, uint32_t source, uint64_t id, uint32_t *ret_len)
{
	struct load_name key = {.id = id, .source = source};
	size_t lo = 0, hi = l->name_count;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		int c = compare_name_keys(&l->names[mid], &key);

		if (c == 0) {
			*ret_len = l->names[mid].len;
			return l->name_text + l->names[mid].offset;
		}
		if (c < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	*ret_len = 0;
	return "";
}

/* ---- what is possible --------------------------------------------------------------------- */

static bool record_valid(const struct load *l, const struct trace_record *r)
{
	return clock_map_valid(&l->clock, r->timestamp_ns) && r->phase <= TRACE_INSTANT &&
	       r->trace_type < EVENT_TYPE_LIMIT && r->thread_id <= UINT32_MAX &&
	       (r->nc_idx < TRACE_MAX_NC || r->nc_idx == TRACE_NC_UNKNOWN) && r->tracking_id != 0 &&
	       !(r->tracking_id & (ID_KERNEL | ID_MARKER));
}

static bool call_valid(const struct load *l, const struct load_call *c)
{
	return c->end >= c->start && clock_map_valid(&l->clock, c->start) &&
	       clock_map_valid(&l->clock, c->end);
}

static void drop_invalid(struct load *l)
{
	size_t kept = 0;

	l->read += l->record_count + l->call_count;
	l->read_done += l->record_count;
	for (size_t i = 0; i < l->call_count; i++)
		l->read_calls += l->calls[i].done;
	l->read_done += l->read_calls;
	for (size_t i = 0; i < l->record_count; i++)
		if (record_valid(l, &l->records[i].r))
			l->records[kept++] = l->records[i];
	l->invalid += l->record_count - kept;
	l->record_count = kept;
	kept = 0;
	for (size_t i = 0; i < l->call_count; i++)
		if (call_valid(l, &l->calls[i]))
			l->calls[kept++] = l->calls[i];
	l->invalid += l->call_count - kept;
	l->call_count = kept;
}

/* ---- gaps in the kernel's sequence numbers -------------------------------------------------- */

struct cpu_sequence {
	uint64_t count;
	uint64_t expected; /* numbers up to the highest seen */
};

/* Each CPU counts its records from 0, those that found no room too.  32 bits wrap; neighbours are
 * never 2^31 apart. */
static int count_gaps(struct load *l)
{
	_cleanup_free_ struct cpu_sequence *cpus = calloc(1u << 16, sizeof(*cpus));

	if (!cpus)
		return -ENOMEM;
	for (size_t i = 0; i < l->call_count; i++) {
		const struct load_call *c = &l->calls[i];
		struct cpu_sequence *s = &cpus[c->cpu];

		if (c->cpu == NEV_CPU_READER)
			continue;
		int32_t ahead = (int32_t)(c->seq - (uint32_t)s->expected);
		s->count++;
		if (ahead >= 0)
			s->expected += (uint64_t)ahead + 1;
	}
	for (size_t i = 0; i < 1u << 16; i++)
		if (cpus[i].expected > cpus[i].count)
			l->seq_gaps += cpus[i].expected - cpus[i].count;
	return 0;
}

/* ---- processes ---------------------------------------------------------------------------- */

static uint32_t source_pid(const struct load *l, uint32_t source)
{
	for (size_t i = 0; i < l->source_count; i++)
		if (l->sources[i].source == source)
			return l->sources[i].pid;
	return 0;
}

static int compare_u32(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

/* Adds a pid unless it is the one before; the list is made unique later. */
static int note_pid(uint32_t **pids, size_t *count, size_t *cap, uint32_t pid)
{
	int rc;

	if (*count && (*pids)[*count - 1] == pid)
		return 0;
	rc = load_grow(pids, cap, *count + 1, sizeof(**pids));
	if (rc == 0)
		(*pids)[(*count)++] = pid;
	return rc;
}

static int list_processes(struct load *l)
{
	_cleanup_free_ uint32_t *pids = NULL;
	size_t count = 0, cap = 0;
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < l->record_count; i++)
		if (i == 0 || l->records[i].source != l->records[i - 1].source)
			rc = note_pid(&pids, &count, &cap, source_pid(l, l->records[i].source));
	for (size_t i = 0; rc == 0 && i < l->call_count; i++)
		rc = note_pid(&pids, &count, &cap, l->calls[i].tgid);
	if (rc < 0 || count == 0)
		return rc;
	qsort(pids, count, sizeof(*pids), compare_u32);
	l->processes = calloc(count, sizeof(*l->processes));
	if (!l->processes)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		if (i == 0 || pids[i] != pids[i - 1])
			l->processes[l->process_count++].pid = pids[i];
	return 0;
}

static uint32_t find_process(const struct load *l, uint32_t pid)
{
	size_t lo = 0, hi = l->process_count;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (l->processes[mid].pid < pid)
			lo = mid + 1;
		else
			hi = mid;
	}
	return (uint32_t)lo;
}

static void count_by_process(struct load *l)
{
	uint32_t p = 0;

	for (size_t i = 0; i < l->record_count; i++) {
		struct load_record *r = &l->records[i];

		if (i == 0 || r->source != l->records[i - 1].source)
			p = find_process(l, source_pid(l, r->source));
		r->process = p;
		l->processes[p].record_count++;
	}
	for (size_t i = 0; i < l->call_count; i++) {
		struct load_call *c = &l->calls[i];

		if (i == 0 || c->tgid != l->calls[i - 1].tgid)
			p = find_process(l, c->tgid);
		c->process = p;
		l->processes[p].call_count++;
	}
}

static int split_by_process(struct load *l)
{
	for (size_t i = 0; i < l->process_count; i++) {
		struct load_process *p = &l->processes[i];

		p->records = calloc(p->record_count + 1, sizeof(*p->records));
		p->calls = calloc(p->call_count + 1, sizeof(*p->calls));
		if (!p->records || !p->calls)
			return -ENOMEM;
		p->record_count = p->call_count = 0;
	}
	for (uint32_t i = 0; i < l->record_count; i++) {
		struct load_process *p = &l->processes[l->records[i].process];

		p->records[p->record_count++] = i;
	}
	for (uint32_t i = 0; i < l->call_count; i++) {
		struct load_process *p = &l->processes[l->calls[i].process];

		p->calls[p->call_count++] = i;
	}
	return 0;
}

/* How many runtimes wrote under each pid; exec and the reuse of pids make more than one. */
static int count_sources(struct load *l)
{
	_cleanup_free_ uint8_t *seen = calloc(1, 1u << 16);
	uint32_t last = LOAD_NONE;

	if (!seen)
		return -ENOMEM;
	for (size_t i = 0; i < l->record_count; i++) {
		uint32_t source = l->records[i].source;

		if (source == last || seen[source])
			continue;
		last = source;
		seen[source] = 1;
		l->processes[l->records[i].process].source_count++;
	}
	return 0;
}

int load_index(struct loader *ld)
{
	struct load *l = ld->l;
	int rc;

	keep_newest(l);
	sort_names(l);
	rc = count_gaps(l);
	drop_invalid(l);
	if (rc == 0)
		rc = list_processes(l);
	if (rc < 0)
		return rc;
	count_by_process(l);
	rc = split_by_process(l);
	return rc < 0 ? rc : count_sources(l);
}
