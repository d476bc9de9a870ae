/* SPDX-License-Identifier: Apache-2.0 */
/*
 * out_host.c - cpu_util.pb and host_mem.pb: what the host did meanwhile, encoded as it comes.
 *
 * Utilisation is busy/total between two samples of the same CPU, in hundredths of a percent by
 * integer division, so that it is the same number on any machine.
 */
#include <errno.h>
#include <stdlib.h>

#include "proto/delimited.h"
#include "proto/neuron_trace.pb-c.h"
#include "runtime/record/session.h"

/* Large enough for the messages of this file, which hold three numbers. */
#define SMALL_MESSAGE 64

static int write_message(struct session *s, struct stored *to, const ProtobufCMessage *m)
{
	uint8_t text[PB_MAX_VARINT + SMALL_MESSAGE];
	size_t size = protobuf_c_message_get_packed_size(m), prefix;

	if (size > SMALL_MESSAGE)
		return -EMSGSIZE;
	prefix = pb_varint_put(text, size);
	protobuf_c_message_pack(m, text + prefix);
	return stored_append(to, &s->samples, text, prefix + size);
}

/* ---- cpu_util ----------------------------------------------------------------------------- */

/* A counter that runs backward (a CPU that was replaced) counts as standing still. */
static uint64_t growth(uint64_t before, uint64_t after)
{
	return after > before ? after - before : 0;
}

static float percent(uint64_t busy, uint64_t total)
{
	uint64_t hundredths;

	if (total == 0)
		return 0;
	if (busy >= total)
		return 100;
	hundredths = busy <= UINT64_MAX / 10000 ? busy * 10000 / total : busy / (total / 10000 + 1);
	return (float)hundredths / 100.0f;
}

/* Row of a CPU in a sample; samples stand in CPU order. */
static const struct sampler_cpu *find_cpu(
	const struct sampler_cpu *rows, size_t count, uint32_t cpu, size_t *hint)
{
	while (*hint < count && rows[*hint].cpu < cpu)
		(*hint)++;
	return *hint < count && rows[*hint].cpu == cpu ? &rows[*hint] : NULL;
}

static bool anything_passed(
	const struct sampler_cpu *a, size_t a_count, const struct sampler_cpu *b, size_t b_count)
{
	size_t hint = 0;

	for (size_t i = 0; i < b_count; i++) {
		const struct sampler_cpu *before = find_cpu(a, a_count, b[i].cpu, &hint);

		if (before && b[i].total > before->total)
			return true;
	}
	return false;
}

/* Where the messages of the interval from the last sample to this one are counted. */
static struct session_interval *interval_to(struct session *s, uint64_t time)
{
	if (!session_own(s) || !s->interval_count) {
		if (session_grow(&s->intervals, &s->interval_cap, s->interval_count + 1,
			    sizeof(*s->intervals)) < 0)
			return NULL;
		s->intervals[s->interval_count++] = (struct session_interval){
			.from_ns = s->last_cpu_ns, .at = stored_size(&s->cpu)};
	}
	s->intervals[s->interval_count - 1].to_ns = time;
	return &s->intervals[s->interval_count - 1];
}

int session_cpu(struct session *s, uint64_t time, const struct sampler_cpu *b, size_t count)
{
	const struct sampler_cpu *a = s->last_cpus;
	size_t hint = 0;

	if (!a || !anything_passed(a, s->last_cpu_count, b, count))
		return 0;
	struct session_interval *interval = interval_to(s, time);
	if (!interval)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		const struct sampler_cpu *before = find_cpu(a, s->last_cpu_count, b[i].cpu, &hint);
		Ntff__CpuUtil m = NTFF__CPU_UTIL__INIT;

		if (!before)
			continue; /* came up in this interval */
		m.cpu = b[i].cpu;
		m.timestamp = clock_map_real(&s->clock, time);
		m.util =
			percent(growth(before->busy, b[i].busy), growth(before->total, b[i].total));
		int rc = write_message(s, &s->cpu, &m.base);
		if (rc < 0)
			return rc;
		interval->messages++;
	}
	interval->size = stored_size(&s->cpu) - interval->at;
	return 0;
}

bool session_cpu_run(const struct session *s, uint64_t first_ns, uint64_t last_ns, size_t *place,
	uint64_t *ret_at, uint64_t *ret_size, uint64_t *messages)
{
	*ret_size = 0;
	for (; *place < s->interval_count; (*place)++) {
		const struct session_interval *v = &s->intervals[*place];

		if (v->size && v->from_ns <= last_ns && v->to_ns >= first_ns) {
			if (!*ret_size)
				*ret_at = v->at;
			*ret_size += v->size;
			*messages += v->messages;
		} else if (*ret_size) {
			break;
		}
	}
	return *ret_size != 0;
}

/* ---- host_mem ----------------------------------------------------------------------------- */

const struct session_mem *session_mem(const struct session *s, uint32_t pid)
{
	for (size_t i = 0; i < s->mem_count; i++)
		if (s->mems[i].pid == pid)
			return &s->mems[i];
	return NULL;
}

static struct session_mem *mem_of(struct session *s, uint32_t pid)
{
	struct session_mem *m = (struct session_mem *)session_mem(s, pid);

	if (m || session_grow(&s->mems, &s->mem_cap, s->mem_count + 1, sizeof(*s->mems)) < 0)
		return m;
	s->mems[s->mem_count] = (struct session_mem){.pid = pid};
	return &s->mems[s->mem_count++];
}

int session_memory(struct session *s, uint64_t time, uint32_t pid, uint64_t rss_bytes)
{
	struct session_mem *of = mem_of(s, pid);
	Ntff__HostMemUsage m = NTFF__HOST_MEM_USAGE__INIT;

	if (!of)
		return -ENOMEM;
	m.timestamp = clock_map_real(&s->clock, time);
	m.usage = (int64_t)rss_bytes;
	if (of->messages++ == 0)
		of->first_ns = time;
	of->last_ns = time;
	return write_message(s, &of->data, &m.base);
}
