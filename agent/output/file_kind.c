/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file_kind.c - tries the kinds in turn on the first bytes of a file.
 */
#include "agent/output/file_kind.h"

#include <string.h>
#include <sys/stat.h>

#include "agent/output/dump.h"
#include "agent/output/trace_read.h"
#include "proto/delimited.h"
#include "proto/message.h"
#include "proto/ntff_file.h"
#include "runtime/record/recording.h"

#define SNIFF_BYTES ((size_t)64 << 10)
#define PERFETTO_PACKET 0x0a /* field 1 with a length */
#define INFO_PRODUCER 9u     /* ntrace_info.producer */
#define INFO_OURS "ntrace "  /* how that begins */
#define MODEL_START "ntrace-model "

static const enum file_kind of_dump[] = {
	[DUMP_UNKNOWN] = FILE_UNTOLD,
	[DUMP_NTRACE] = FILE_NTRACE,
	[DUMP_CPU_UTIL] = FILE_CPU_UTIL,
	[DUMP_HOST_MEM] = FILE_HOST_MEM,
	[DUMP_TRACE_INFO] = FILE_TRACE_INFO,
	[DUMP_NTFF] = FILE_NTFF,
};

/* A packet, and behind it another one or the end. */
static bool is_perfetto(const struct trace_read *r, const uint8_t *data, size_t size)
{
	uint64_t len = 0;
	size_t n;

	if (size < 2 || data[0] != PERFETTO_PACKET)
		return false;
	n = pb_varint_get(data + 1, data + size, &len);
	if (n == 0 || len == 0 || len > size - 1 - n)
		return false;
	len += 1 + n;
	return len == size ? r->eof : data[len] == PERFETTO_PACKET;
}

/* Is the first record an event, if perhaps one with fields of somebody else?  All have a time; a record
 * without any field is what zeros look like. */
static bool is_event(struct trace_read *r)
{
	struct ntrace_event_view e;

	return trace_read_next(r, &e) == 1 && e.timestamp != 0;
}

static bool has_suffix(const char *path, const char *suffix)
{
	size_t len = strlen(path), end = strlen(suffix);

	return len > end && !strcmp(path + len - end, suffix);
}

static bool is_model(const uint8_t *data, size_t size)
{
	return size >= strlen(MODEL_START) && !memcmp(data, MODEL_START, strlen(MODEL_START));
}

/* Named like a trace_info.pb and a message as a whole, but ours say who wrote them. */
static bool is_foreign_info(
	const struct trace_read *r, const char *path, const uint8_t *data, size_t size)
{
	const char *base = strrchr(path, '/');
	const uint8_t *end = data + size, *p = data;
	struct pb_field f;

	if (!r->eof || strcmp(base ? base + 1 : path, "trace_info.pb") != 0)
		return false;
	while (p < end) {
		p = pb_field_get(p, end, &f);
		if (!p || (f.number == INFO_PRODUCER && f.len >= strlen(INFO_OURS) &&
				  !memcmp(f.bytes, INFO_OURS, strlen(INFO_OURS))))
			return false;
	}
	return true;
}

/* What nobody but its name, or not much more, says. */
static enum file_kind by_name(
	const struct trace_read *r, const char *path, const uint8_t *data, size_t size)
{
	if (is_model(data, size))
		return FILE_MODEL;
	if (has_suffix(path, ".neff"))
		return FILE_NEFF;
	if (is_foreign_info(r, path, data, size))
		return FILE_INFO_FOREIGN;
	return has_suffix(path, ".pb") ? FILE_UNTOLD : FILE_FOREIGN;
}

static enum file_kind sniff(struct trace_read *r, const char *path, enum file_kind wanted)
{
	enum dump_kind kind = DUMP_UNKNOWN;
	const uint8_t *data;
	size_t size;

	if (trace_read_peek(r, SNIFF_BYTES, &data, &size) < 0 || size == 0)
		return FILE_UNTOLD;
	bool perfetto = is_perfetto(r, data, size);
	if (has_suffix(path, ".ntff") && !ntff_is_ours(data, size))
		return FILE_NTFF_FOREIGN; /* of its header nothing is known: it may look like anything */
	if (size >= sizeof(REC_MAGIC) && !memcmp(data, REC_MAGIC, sizeof(REC_MAGIC)))
		return FILE_SEGMENT;
	if (perfetto && wanted == FILE_PERFETTO)
		return FILE_PERFETTO;
	if (dump_sniff_file(r, &kind) < 0)
		return FILE_UNTOLD;
	/* Packets all have field 1, which a trace_info.pb may have, too. */
	if (kind != DUMP_UNKNOWN && !(perfetto && kind == DUMP_TRACE_INFO))
		return of_dump[kind];
	if (perfetto)
		return FILE_PERFETTO;
	if (is_event(r))
		return FILE_NTRACE;
	if (trace_read_peek(r, SNIFF_BYTES, &data, &size) < 0)
		return FILE_UNTOLD;
	return by_name(r, path, data, size);
}

enum file_kind file_kind_of(const char *path, enum file_kind wanted)
{
	enum file_kind kind = FILE_UNTOLD;
	struct trace_read r;
	struct stat st;

	/* A pipe would lose what is read of it here. */
	if (stat(path, &st) < 0 || !S_ISREG(st.st_mode))
		return FILE_UNTOLD;
	if (trace_read_open(&r, path) == 0)
		kind = sniff(&r, path, wanted);
	trace_read_close(&r);
	return kind;
}

const char *file_kind_text(enum file_kind kind)
{
	static const char *const texts[] = {
		[FILE_UNTOLD] = "",
		[FILE_NTRACE] = "an ntrace.pb",
		[FILE_CPU_UTIL] = "a cpu_util.pb",
		[FILE_HOST_MEM] = "a host_mem.pb",
		[FILE_TRACE_INFO] = "a trace_info.pb",
		[FILE_PERFETTO] = "a Perfetto file",
		[FILE_SEGMENT] = "a segment of a recording",
		[FILE_NTFF] = "a device profile (.ntff)",
		[FILE_NTFF_FOREIGN] = "an .ntff that ntrace did not write",
		[FILE_INFO_FOREIGN] = "a trace_info.pb that ntrace did not write",
		[FILE_NEFF] = "by its name a NEFF, a model of the vendor's",
		[FILE_MODEL] = "a model for ntrace's libnrt",
		[FILE_FOREIGN] = "no file of ntrace's",
	};

	return texts[kind];
}
