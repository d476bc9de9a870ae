/* SPDX-License-Identifier: Apache-2.0 */
/*
 * load.c - frames to typed arrays: one function per frame type, one array per kind of record.
 *
 * Payload sizes are checked here and nowhere else.  A payload that is too short for its type, or
 * that ends inside a record, has lost what does not fit: that is counted as one invalid record.
 * What belongs together is put together at the end (load_index.c).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/record/load_internal.h"

#define FIRST_CAPACITY 64u

int load_grow(void *array, size_t *cap, size_t need, size_t element)
{
	void **a = array;
	size_t more = *cap ? *cap : FIRST_CAPACITY;
	void *p;

	if (need <= *cap)
		return 0;
	if (need >= LOAD_NONE)
		return -EFBIG;
	while (more < need)
		more *= 2;
	p = realloc(*a, more * element);
	if (!p)
		return -ENOMEM;
	*a = p;
	*cap = more;
	return 0;
}

static int invalid(struct loader *ld)
{
	ld->l->invalid++;
	ld->l->read++;
	return 0;
}

/* ---- one function per frame type ---------------------------------------------------------- */

static int take_header(struct loader *ld, const struct rec_frame *f, const uint8_t *payload)
{
	struct rec_header h;
	int rc;

	if (ld->l->has_header)
		return 0;
	rc = rec_header_parse((const char *)payload, f->size, &h);
	if (rc == -ENOMEM)
		return rc;
	if (rc < 0)
		return invalid(ld);
	ld->l->header = h;
	ld->l->has_header = true;
	return 0;
}

static int take_clock(struct loader *ld, const struct rec_frame *f, const uint8_t *payload)
{
	struct load *l = ld->l;
	int rc;

	if (f->size < sizeof(struct clock_snapshot))
		return invalid(ld);
	rc = load_grow(&l->clocks, &ld->clock_cap, l->clock_count + 1, sizeof(*l->clocks));
	if (rc < 0)
		return rc;
	memcpy(&l->clocks[l->clock_count++], payload, sizeof(*l->clocks));
	return 0;
}

static int take_device(struct loader *ld, const struct rec_frame *f, const uint8_t *payload)
{
	struct rec_device d;

	if (f->size < sizeof(d))
		return invalid(ld);
	memcpy(&d, payload, sizeof(d));
	ld->l->is_virtual |= d.is_virtual != 0;
	return 0;
}

static int take_process(struct loader *ld, const struct rec_frame *f, const uint8_t *payload)
{
	struct load *l = ld->l;
	struct rec_process p;
	int rc;

	if (f->size < sizeof(p))
		return invalid(ld);
	memcpy(&p, payload, sizeof(p));
	l->is_virtual |= p.is_virtual != 0;
	for (size_t i = 0; i < l->source_count; i++)
		if (l->sources[i].source == f->source)
			return 0;
	rc = load_grow(&l->sources, &ld->source_cap, l->source_count + 1, sizeof(*l->sources));
	if (rc < 0)
		return rc;
	l->sources[l->source_count++] = (struct load_source){f->source, p.pid};
	return 0;
}

static int add_call(struct loader *ld, const struct nev_ioctl *e, const uint8_t *args)
{
	struct load *l = ld->l;
	struct load_call *c;
	int rc = load_grow(&l->calls, &ld->call_cap, l->call_count + 1, sizeof(*l->calls));

	if (rc < 0)
		return rc;
	c = &l->calls[l->call_count++];
	*c = (struct load_call){
		.start = e->start_ns,
		.end = e->start_ns + e->duration_ns,
		.tgid = e->tgid,
		.tid = e->tid,
		.request = e->request,
		.result = e->result,
		.seq = e->hdr.seq,
		.cpu = e->hdr.cpu,
		.device = e->device,
		.flags = e->flags,
		.nargs = e->hdr.nargs,
		.done = e->hdr.type == NEV_IOCTL_DONE,
	};
	memcpy(c->args, args, (size_t)e->hdr.nargs * sizeof(c->args[0]));
	if (!c->done)
		c->end = c->start;
	return 0;
}

static int take_kernel(struct loader *ld, const struct rec_frame *f, const uint8_t *payload)
{
	const uint8_t *p = payload, *end = payload + f->size;

	while (p < end) {
		struct nev_ioctl e;
		size_t size;

		if ((size_t)(end - p) < sizeof(e))
			return invalid(ld);
		memcpy(&e, p, sizeof(e));
		size = sizeof(e) + (size_t)e.hdr.nargs * sizeof(uint64_t);
		if (e.hdr.nargs > NEV_MAX_ARGS || (size_t)(end - p) < size ||
			(e.hdr.type != NEV_IOCTL_DONE && e.hdr.type != NEV_IOCTL_START))
			return invalid(ld); /* where the next one begins is not known */
		int rc = add_call(ld, &e, p + sizeof(e));
		if (rc < 0)
			return rc;
		p += size;
	}
	return 0;
}

static int take_runtime(struct loader *ld, const struct rec_frame *f, const uint8_t *payload)
{
	struct load *l = ld->l;
	size_t body, count;
	int rc;

	if (f->size < sizeof(struct rec_runtime))
		return invalid(ld);
	body = f->size - sizeof(struct rec_runtime);
	count = body / sizeof(struct trace_record);
	rc = load_grow(&l->records, &ld->record_cap, l->record_count + count, sizeof(*l->records));
	if (rc < 0)
		return rc;
	payload += sizeof(struct rec_runtime);
	for (size_t i = 0; i < count; i++, payload += sizeof(struct trace_record)) {
		struct load_record *r = &l->records[l->record_count++];

		memcpy(&r->r, payload, sizeof(r->r));
		r->source = f->source;
		r->process = LOAD_NONE;
	}
	return body % sizeof(struct trace_record) ? invalid(ld) : 0;
}

static int take_counters(struct loader *ld, const struct rec_frame *f, const uint8_t *payload)
{
	for (size_t n = f->size / sizeof(struct rec_counter); n > 0; n--) {
		struct rec_counter c;
		int rc;

		memcpy(&c, payload, sizeof(c));
		payload += sizeof(c);
		if (c.id == REC_COUNTER_NONE || c.id >= REC_COUNTER_RECORDED_END)
			continue; /* of a newer recorder; its stages cannot be checked here */
		rc = load_counter(ld, f->source, &c);
		if (rc < 0)
			return rc;
	}
	return 0;
}

static int take_cpu(struct loader *ld, const struct rec_frame *f, const uint8_t *payload)
{
	struct load *l = ld->l;
	size_t count = f->size / sizeof(struct sampler_cpu);
	int rc = load_grow(&l->cpus, &ld->cpu_cap, l->cpu_count + 1, sizeof(*l->cpus));

	if (rc == 0)
		rc = load_grow(&l->cpu_rows, &ld->cpu_row_cap, l->cpu_row_count + count,
			sizeof(*l->cpu_rows));
	if (rc < 0)
		return rc;
	l->cpus[l->cpu_count++] =
		(struct load_cpu){.time = f->time_ns, .first = l->cpu_row_count, .count = count};
	if (count)
		memcpy(&l->cpu_rows[l->cpu_row_count], payload, count * sizeof(*l->cpu_rows));
	l->cpu_row_count += count;
	return 0;
}

static int take_mem(struct loader *ld, const struct rec_frame *f, const uint8_t *payload)
{
	struct load *l = ld->l;
	struct rec_mem m;
	int rc;

	if (f->size < sizeof(m))
		return invalid(ld);
	memcpy(&m, payload, sizeof(m));
	rc = load_grow(&l->mems, &ld->mem_cap, l->mem_count + 1, sizeof(*l->mems));
	if (rc < 0)
		return rc;
	l->mems[l->mem_count++] = (struct load_mem){f->time_ns, m.pid, m.rss_bytes};
	return 0;
}

static int take_name(struct loader *ld, const struct rec_frame *f, const uint8_t *payload)
{
	struct rec_name n;

	if (f->size < sizeof(n))
		return invalid(ld);
	memcpy(&n, payload, sizeof(n));
	return load_add_name(
		ld, f->source, n.id, (const char *)payload + sizeof(n), f->size - sizeof(n));
}

static int take_end(struct loader *ld, const struct rec_frame *f, const uint8_t *payload)
{
	if (f->size < sizeof(ld->l->end))
		return invalid(ld);
	memcpy(&ld->l->end, payload, sizeof(ld->l->end));
	ld->l->ended = true;
	return 0;
}

static int (*const takers[])(struct loader *, const struct rec_frame *, const uint8_t *) = {
	[REC_HEADER] = take_header,
	[REC_CLOCK] = take_clock,
	[REC_DEVICE] = take_device,
	[REC_PROCESS] = take_process,
	[REC_KERNEL] = take_kernel,
	[REC_RUNTIME] = take_runtime,
	[REC_WATERMARK] = NULL, /* everything is in memory before it is ordered */
	[REC_COUNTERS] = take_counters,
	[REC_CPU] = take_cpu,
	[REC_MEM] = take_mem,
	[REC_NAME] = take_name,
	[REC_END] = take_end,
};

/* ---- all frames --------------------------------------------------------------------------- */

static int load_frames(struct loader *ld, const char *path)
{
	struct rec_reader *reader;
	const struct rec_frame *f;
	const uint8_t *payload;
	int rc = rec_reader_open(path, &reader);

	if (rc < 0)
		return rc;
	while ((rc = rec_reader_next(reader, &f, &payload)) > 0) {
		if (f->type < sizeof(takers) / sizeof(*takers) && takers[f->type])
			rc = takers[f->type](ld, f, payload);
		if (rc < 0)
			break;
	}
	ld->l->damage = rec_reader_damage(reader);
	rec_reader_close(reader);
	return rc;
}

int load_recording(const char *path, struct load *ret)
{
	struct loader ld = {.l = ret};
	int rc;

	memset(ret, 0, sizeof(*ret));
	rc = load_frames(&ld, path);
	if (rc == 0)
		rc = clock_map_init(&ret->clock, ret->clocks, ret->clock_count);
	if (rc == 0)
		rc = load_index(&ld);
	ret->is_virtual |= ret->header.info.is_virtual;
	return rc;
}

void load_free(struct load *l)
{
	rec_header_free(&l->header);
	clock_map_free(&l->clock);
	for (size_t i = 0; i < l->process_count; i++) {
		free(l->processes[i].records);
		free(l->processes[i].calls);
	}
	free(l->processes);
	free(l->records);
	free(l->calls);
	free(l->names);
	free(l->name_text);
	free(l->cpus);
	free(l->cpu_rows);
	free(l->mems);
	free(l->counters);
	free(l->sources);
	free(l->clocks);
	memset(l, 0, sizeof(*l));
}
