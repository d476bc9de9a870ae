/* SPDX-License-Identifier: Apache-2.0 */
/*
 * out_host.c - cpu_util.pb and host_mem.pb: what the host did meanwhile.
 *
 * Utilisation is busy/total between two samples of the same CPU, in hundredths of a percent by
 * integer division, so that it is the same number on any machine.
 */
#include <errno.h>
#include <stdlib.h>

#include "proto/delimited.h"
#include "proto/neuron_trace.pb-c.h"
#include "runtime/record/out.h"

/* Large enough for the messages of this file, which hold three numbers. */
#define SMALL_MESSAGE 64

static int write_message(struct outfile *f, const ProtobufCMessage *m)
{
	uint8_t prefix[PB_MAX_VARINT], body[SMALL_MESSAGE];
	size_t size = protobuf_c_message_get_packed_size(m);

	if (size > sizeof(body))
		return -EMSGSIZE;
	outfile_write(f, prefix, pb_varint_put(prefix, size));
	protobuf_c_message_pack(m, body);
	outfile_write(f, body, size);
	return 0;
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

static int write_interval(const struct load *l, const struct load_cpu *from,
	const struct load_cpu *to, struct outfile *f, uint64_t *messages)
{
	const struct sampler_cpu *a = l->cpu_rows + from->first, *b = l->cpu_rows + to->first;
	size_t hint = 0;

	if (!anything_passed(a, from->count, b, to->count))
		return 0;
	for (size_t i = 0; i < to->count; i++) {
		const struct sampler_cpu *before = find_cpu(a, from->count, b[i].cpu, &hint);
		Ntff__CpuUtil m = NTFF__CPU_UTIL__INIT;

		if (!before)
			continue; /* came up in this interval */
		m.cpu = b[i].cpu;
		m.timestamp = clock_map_real(&l->clock, to->time);
		m.util =
			percent(growth(before->busy, b[i].busy), growth(before->total, b[i].total));
		int rc = write_message(f, &m.base);
		if (rc < 0)
			return rc;
		++*messages;
	}
	return 0;
}

int out_cpu_util(const struct load *l, struct outfile *f, uint64_t *ret_messages)
{
	int rc = 0;

	*ret_messages = 0;
	for (size_t i = 1; rc == 0 && i < l->cpu_count; i++)
		rc = write_interval(l, &l->cpus[i - 1], &l->cpus[i], f, ret_messages);
	return rc;
}

/* ---- host_mem ----------------------------------------------------------------------------- */

int out_host_mem(const struct load *l, uint32_t pid, struct outfile *f, uint64_t *ret_messages)
{
	*ret_messages = 0;
	for (size_t i = 0; i < l->mem_count; i++) {
		Ntff__HostMemUsage m = NTFF__HOST_MEM_USAGE__INIT;

		if (l->mems[i].pid != pid)
			continue;
		m.timestamp = clock_map_real(&l->clock, l->mems[i].time);
		m.usage = (int64_t)l->mems[i].rss_bytes;
		int rc = write_message(f, &m.base);
		if (rc < 0)
			return rc;
		++*ret_messages;
	}
	return 0;
}
