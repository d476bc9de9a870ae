/* SPDX-License-Identifier: Apache-2.0 */
/*
 * perfetto.c - a trace's processes, hosts and samples as tracks of a Perfetto file.
 *
 * One boot time axis for the whole file: that of the process whose machine booted first, so that none
 * begins before it.  Processes with another offset to realtime come from another boot or machine; they
 * are placed by realtime.
 */
#include "agent/output/perfetto.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/output/perfetto_process.h"
#include "agent/output/state.h"
#include "agent/output/trace_read.h"
#include "runtime/base/file.h"
#include "runtime/record/blind.h"

struct exporter {
	struct pft_writer w;
	struct pft_host **hosts;
	struct pft_process **processes;
	uint32_t host_count, process_count;
	uint64_t events;
	bool has_axis; /* w.offset is set */
	bool device_left;
};

/* ---- small things ------------------------------------------------------------------------------ */

uint32_t pft_counter(struct pft_writer *w, const struct pft_seq *s, uint64_t parent,
	const char *name, const char *unit)
{
	return pft_track(w, s,
		&(struct pft_track){.parent = parent,
			.name = pft_str(name),
			.is_counter = true,
			.unit = unit ? 0 : 3, /* bytes */
			.unit_name = unit});
}

void pft_count(
	struct pft_writer *w, struct pft_seq *s, uint32_t track, uint64_t time, int64_t value)
{
	pft_event(w, PFT_COUNTER, track);
	pft_value(w, value);
	pft_put(w, s, time);
}

/* Appends a pointer to a list that grows by one; 0 or -ENOMEM. */
static int list_add(void ***list, uint32_t *count, void *item)
{
	void **more = realloc(*list, (*count + 1) * sizeof(*more));

	if (!more)
		return -ENOMEM;
	more[(*count)++] = item;
	*list = more;
	return 0;
}

/* ---- hosts ------------------------------------------------------------------------------------- */

#define BESIDE "ntrace-"

/* The host's name in that of a directory, <instance>_pid_<pid> or ntrace-<instance>-<pid>. */
static struct pb_str instance_of(const char *name)
{
	const char *last = NULL;

	if (!strstr(name, "_pid_") && strncmp(name, BESIDE, strlen(BESIDE)) == 0) {
		name += strlen(BESIDE);
		last = strrchr(name, '-');
	}
	for (const char *p = strstr(name, "_pid_"); p; p = strstr(p + 1, "_pid_"))
		last = p;
	return (struct pb_str){name, last ? (uint32_t)(last - name) : (uint32_t)strlen(name)};
}

static void host_free(struct pft_host *h)
{
	pft_seq_free(&h->seq);
	map64_free(&h->cpu_seen);
	free(h->cpu_tracks);
	free(h->name);
	free(h);
}

static struct pft_host *host_new(struct exporter *x, struct pb_str name)
{
	struct pft_host *h = calloc(1, sizeof(*h));
	_cleanup_free_ char *text = NULL;
	struct pft_track t = {0};

	if (h)
		h->name = strndup(name.s, name.len);
	if (h && h->name && asprintf(&text, "host %s", h->name) < 0)
		text = NULL;
	if (!text || list_add((void ***)&x->hosts, &x->host_count, h) < 0) {
		if (h)
			host_free(h);
		return NULL;
	}
	pft_seq_open(&x->w, &h->seq, false);
	t.name = pft_str(text);
	h->track = pft_track(&x->w, &h->seq, &t);
	return h;
}

static struct pft_host *host_get(struct exporter *x, const char *process_name)
{
	struct pb_str name = instance_of(process_name);

	for (uint32_t i = 0; i < x->host_count; i++)
		if (strlen(x->hosts[i]->name) == name.len &&
			!memcmp(x->hosts[i]->name, name.s, name.len))
			return x->hosts[i];
	return host_new(x, name);
}

/* The mean of the samples of one time, when all of them have come. */
static void cpu_mean(struct pft_writer *w, struct pft_host *h)
{
	if (!h->cpu_count)
		return;
	if (!h->mean_track)
		h->mean_track = pft_counter(w, &h->seq, h->track, "CPU mean %", "%");
	pft_event(w, PFT_COUNTER, h->mean_track);
	pft_value_double(w, h->cpu_sum / h->cpu_count);
	pft_put(w, &h->seq, pft_boot(w, h->cpu_time));
	h->cpu_count = 0;
	h->cpu_sum = 0;
}

/* ---- processes --------------------------------------------------------------------------------- */

static void process_release(struct pft_process *p)
{
	pft_lines_free(&p->lines);
	pft_seq_free(&p->seq);
	pft_seq_free(&p->mem_seq);
	pft_seq_free(&p->copies.seq);
	for (uint32_t i = 0; i < p->spare_count; i++)
		pft_seq_free(&p->spares[i].seq);
	free(p->spares);
	free(p->announced);
	free(p->copies.bytes);
	p->spares = NULL;
	p->spare_count = 0;
	p->announced = NULL;
	p->copies.bytes = NULL;
}

/* A second process of a pid (of another host) would be taken for the first: it is shown by name only. */
static bool pid_is_taken(const struct exporter *x, uint32_t pid)
{
	for (uint32_t i = 0; i < x->process_count; i++)
		if (x->processes[i]->pid == pid)
			return true;
	return false;
}

static void open_tracks(struct pft_process *p, const char *name)
{
	struct pft_track t = {.parent = p->host->track,
		.name = pft_str(*name ? name : "trace"),
		.is_process = p->pid != 0,
		.pid = p->pid};

	pft_seq_open(p->w, &p->seq, true);
	p->track = pft_track(p->w, &p->seq, &t);
}

static int on_process(void *ctx, struct feed_process *fp)
{
	struct exporter *x = ctx;
	struct pft_process *p = calloc(1, sizeof(*p));
	bool taken = pid_is_taken(x, fp->pid);

	if (!p || list_add((void ***)&x->processes, &x->process_count, p) < 0) {
		free(p);
		return -ENOMEM;
	}
	if (!x->has_axis)
		x->w.offset = fp->has_offset ? fp->realtime_offset_ns : 0;
	x->has_axis = true;
	p->w = &x->w;
	p->pid = taken || fp->pid > INT32_MAX ? 0 : fp->pid;
	p->flows_per_submit = 2;
	p->host = host_get(x, fp->name);
	if (!p->host)
		return -ENOMEM;
	open_tracks(p, fp->name);
	fp->user = p;
	return x->w.error;
}

static int on_event(void *ctx, struct feed_process *fp, const struct ntrace_event_view *e)
{
	struct exporter *x = ctx;

	x->events++;
	return pft_process_event(fp->user, e);
}

/*
 * Each process of a capture has the same samples: those of a time that came with another process are
 * repetitions.  1: new; 0; -ENOMEM.
 */
static int cpu_is_new(struct pft_host *h, const struct feed_process *fp, uint64_t time)
{
	uint64_t key = time ? time : UINT64_MAX, *found = map64_find(&h->cpu_seen, key);
	int rc;

	if (found)
		return *found == fp->index + 1u;
	rc = map64_put(&h->cpu_seen, key, fp->index + 1u);
	return rc < 0 ? rc : 1;
}

/* Ends the samples of the time before.  Those of an older capture are a sequence of their own. */
static void cpu_next(struct pft_writer *w, struct pft_host *h, uint64_t time)
{
	cpu_mean(w, h);
	if (time < h->cpu_time) {
		pft_seq_free(&h->seq);
		pft_seq_open(w, &h->seq, false);
	}
	h->cpu_time = time;
}

static int on_cpu(void *ctx, struct feed_process *fp, const Ntff__CpuUtil *u)
{
	struct exporter *x = ctx;
	struct pft_host *h = ((struct pft_process *)fp->user)->host;
	char name[32];
	int rc = u->cpu < PFT_CPUS ? cpu_is_new(h, fp, u->timestamp) : 0;

	if (rc <= 0)
		return rc;
	if (u->timestamp != h->cpu_time)
		cpu_next(&x->w, h, u->timestamp);
	h->cpu_sum += (double)u->util;
	h->cpu_count++;
	if (!h->cpu_tracks)
		h->cpu_tracks = calloc(PFT_CPUS, sizeof(*h->cpu_tracks));
	if (!h->cpu_tracks)
		return -ENOMEM;
	if (!h->cpu_tracks[u->cpu]) {
		snprintf(name, sizeof(name), "CPU %u %%", u->cpu);
		h->cpu_tracks[u->cpu] = pft_counter(&x->w, &h->seq, h->track, name, "%");
	}
	pft_event(&x->w, PFT_COUNTER, h->cpu_tracks[u->cpu]);
	pft_value_double(&x->w, (double)u->util);
	pft_put(&x->w, &h->seq, pft_boot(&x->w, u->timestamp));
	return x->w.error;
}

static int on_mem(void *ctx, struct feed_process *fp, const Ntff__HostMemUsage *u)
{
	struct exporter *x = ctx;
	struct pft_process *p = fp->user;

	if (!p->mem_track) {
		pft_seq_open(&x->w, &p->mem_seq, false);
		p->mem_track = pft_counter(&x->w, &p->mem_seq, p->track, "resident memory", NULL);
	}
	pft_count(&x->w, &p->mem_seq, p->mem_track, pft_boot(&x->w, u->timestamp), u->usage);
	return x->w.error;
}

/* ---- losses and the end ------------------------------------------------------------------------ */

static void open_losses(struct pft_process *p)
{
	struct pft_track t = {.parent = p->track, .name = pft_str("losses")};

	if (p->loss_track)
		return;
	p->loss_track = pft_track(p->w, &p->seq, &t);
	p->loss_counter = pft_counter(p->w, &p->seq, p->track, "records lost or broken", "records");
}

void pft_process_loss(struct pft_process *p, uint64_t time)
{
	open_losses(p);
	pft_count(p->w, &p->seq, p->loss_counter, time, (int64_t)++p->losses);
}

static bool has_events(const struct pft_process *p)
{
	return p->seq.last > PFT_ORIGIN_NS;
}

/* An instant on the track of losses, behind the process's events. */
static void say(struct pft_process *p, const char *name, const char *key, struct pb_str value)
{
	open_losses(p);
	pft_event(p->w, PFT_INSTANT, p->loss_track);
	pft_category(p->w, PFT_MARK);
	pft_name(p->w, &p->seq, pft_str(name));
	if (key)
		pft_note(p->w, &p->seq, pft_str(key), value);
	pft_put(p->w, &p->seq, has_events(p) ? p->seq.last : p->w->newest);
}

static void say_number(struct pft_process *p, const char *name, const char *key, uint64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
	say(p, name, key, pft_str(text));
}

/* What has no time of its own stands at the end: lost records by cause, what was blind. */
static int say_info(struct pft_process *p, const Ntff__NtraceInfo *info)
{
	const struct trace_state state = state_of_info(info);
	char fault[STATE_TEXT];

	for (size_t i = 0; i < info->n_ledger; i++) {
		const Ntff__NtraceLedgerRow *r = info->ledger[i];
		_cleanup_free_ char *name = NULL;

		if (strcmp(r->kind, "lost") != 0 || !r->value)
			continue;
		if (asprintf(&name, "lost: %s/%s", r->stage, r->counter) < 0) {
			name = NULL;
			return -ENOMEM;
		}
		say_number(p, name, "records", r->value);
	}
	if (info->open_spans)
		say_number(p, "open spans", "spans", info->open_spans);
	if (state_fault(&state, fault))
		say(p, "damaged or incomplete", "what", pft_str(fault));
	for (size_t i = 0; i < info->n_blind; i++)
		say(p, "blind", "what", pft_str(info->blind[i]));
	return 0;
}

static int keep_info(struct pft_process *p, const Ntff__NtraceInfo *info)
{
	p->late_size = ntff__ntrace_info__get_packed_size(info);
	p->late_info = malloc(p->late_size ? p->late_size : 1);
	if (!p->late_info)
		return -ENOMEM;
	ntff__ntrace_info__pack(info, p->late_info);
	return 0;
}

/* What processes without events have to say stands at the newest time of the others. */
static int say_late(struct exporter *x)
{
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < x->process_count; i++) {
		struct pft_process *p = x->processes[i];
		Ntff__NtraceInfo *info;

		if (!p->late_info)
			continue;
		info = ntff__ntrace_info__unpack(NULL, p->late_size, p->late_info);
		rc = info ? say_info(p, info) : -ENOMEM;
		ntff__ntrace_info__free_unpacked(info, NULL);
		process_release(p);
	}
	return rc;
}

/* Has the recording device profiles that are not shown? */
static bool leaves_device(const Ntff__NtraceInfo *info)
{
	for (size_t i = 0; i < info->n_blind; i++)
		if (!strncmp(info->blind[i], BLIND_NOT_ASKED, strlen(BLIND_NOT_ASKED)))
			return true;
	return false;
}

static int on_end(void *ctx, struct feed_process *fp, const Ntff__NtraceInfo *info)
{
	struct exporter *x = ctx;
	struct pft_process *p = fp->user;
	int rc = 0;

	pft_copies_end(p);
	cpu_mean(&x->w, p->host);
	x->device_left |= info && leaves_device(info);
	if (info && !has_events(p))
		return keep_info(p, info);
	if (info)
		rc = say_info(p, info);
	process_release(p);
	return rc < 0 ? rc : x->w.error;
}

static int by_time(const void *a, const void *b)
{
	const struct pft_step *x = a, *y = b;

	return x->boot != y->boot ? (x->boot < y->boot ? -1 : 1)
				  : (x->offset > y->offset) - (x->offset < y->offset);
}

/* The steps that the processes saw, each once, in order: readers want boot time to go forward. */
static int put_steps(struct exporter *x)
{
	struct pft_step *all = NULL;
	size_t n = 0;

	for (uint32_t i = 0; i < x->process_count; i++) {
		const struct pft_process *p = x->processes[i];
		struct pft_step *more;

		if (!p->step_count)
			continue;
		more = realloc(all, (n + p->step_count) * sizeof(*all));
		if (!more) {
			free(all);
			return -ENOMEM;
		}
		all = more;
		memcpy(all + n, p->steps, p->step_count * sizeof(*all));
		n += p->step_count;
	}
	if (n)
		qsort(all, n, sizeof(*all), by_time);
	for (size_t i = 0; i < n; i++)
		if (i == 0 || by_time(&all[i - 1], &all[i]) != 0)
			pft_clock(&x->w, &x->hosts[0]->seq, all[i].boot, all[i].offset);
	free(all);
	return x->w.error;
}

static void exporter_free(struct exporter *x)
{
	for (uint32_t i = 0; i < x->process_count; i++) {
		process_release(x->processes[i]);
		free(x->processes[i]->steps);
		free(x->processes[i]->late_info);
		free(x->processes[i]);
	}
	for (uint32_t i = 0; i < x->host_count; i++)
		host_free(x->hosts[i]);
	free(x->processes);
	free(x->hosts);
	pft_writer_free(&x->w);
}

/* The lowest offset of several processes is the axis; of one, or of a recording, its own. */
static int find_axis(struct exporter *x, const char *path)
{
	struct trace_set set;
	int rc = trace_set_find(path, &set) == -ENOMEM ? -ENOMEM : 0;

	for (size_t i = 0; rc == 0 && set.count > 1 && i < set.count; i++) {
		_cleanup_free_ char *beside = NULL;
		Ntff__NtraceInfo *info = NULL;
		int64_t offset;
		int found = trace_info_read(set.files[i], &info, &beside);

		rc = found == -ENOMEM ? found : 0;
		if (found < 0)
			continue; /* the feed says so */
		offset = info ? info->realtime_offset_ns : 0;
		if (!x->has_axis || offset < x->w.offset)
			x->w.offset = offset;
		x->has_axis = true;
		if (info)
			ntff__ntrace_info__free_unpacked(info, NULL);
	}
	trace_set_free(&set);
	return rc;
}

int perfetto_export(const char *path, const struct feed_options *options, perfetto_write_fn write,
	void *ctx, struct perfetto_result *ret, bool *ret_write_failed, char **ret_error)
{
	struct exporter x = {.w = {.write = write, .ctx = ctx}};
	const struct feed_sink sink = {&x, on_process, on_event, on_cpu, on_mem, on_end};
	int rc, end = find_axis(&x, path);

	*ret_error = NULL;
	rc = end < 0 ? end : feed_trace(path, options, &sink, ret_error);
	if (rc == 0 || rc == -EBADMSG)
		end = say_late(&x);
	if ((rc == 0 || rc == -EBADMSG) && end == 0)
		end = put_steps(&x);
	pft_flush(&x.w);
	if (end == 0)
		end = x.w.error;
	*ret_write_failed = x.w.error && x.w.error != -ENOMEM;
	*ret = (struct perfetto_result){.events = x.events,
		.bytes = x.w.bytes,
		.packets = x.w.packets,
		.processes = x.process_count,
		.device_left = x.device_left};
	exporter_free(&x);
	return end < 0 ? end : rc;
}
