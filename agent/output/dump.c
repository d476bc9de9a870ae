/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dump.c - one line per message: JSON by the message's descriptor, or text for a timeline.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "agent/output/dump.h"
#include "agent/output/message_json.h"
#include "proto/delimited.h"
#include "proto/event_codec.h"
#include "proto/message.h"
#include "proto/neuron_trace.pb-c.h"
#include "proto/ntff_file.h"
#include "runtime/base/printable.h"
#include "runtime/trace/event_registry.h"

#define NTFF_SUFFIX ".ntff"
#define SNIFF_BYTES ((size_t)64 << 10)
#define MAX_BARE ((size_t)1 << 30)

struct kind_row {
	enum dump_kind kind;
	const char *name;
	const ProtobufCMessageDescriptor *descriptor; /* NULL: more than messages */
	bool delimited;
};

static const struct kind_row kinds[] = {
	{DUMP_NTFF, "ntff", NULL, false},
	{DUMP_NTRACE, "ntrace", &ntff__ntrace_event__descriptor, true},
	{DUMP_CPU_UTIL, "cpu_util", &ntff__cpu_util__descriptor, true},
	{DUMP_HOST_MEM, "host_mem", &ntff__host_mem_usage__descriptor, true},
	{DUMP_TRACE_INFO, "trace_info", &ntff__ntrace_info__descriptor, false},
};

static const struct kind_row *kind_find(enum dump_kind kind)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (kinds[i].kind == kind)
			return &kinds[i];
	return NULL;
}

enum dump_kind dump_kind_by_name(const char *name)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (!strcmp(kinds[i].name, name))
			return kinds[i].kind;
	return DUMP_UNKNOWN;
}

/* Does the file begin with a message of this kind that has no unknown field?  -ENOMEM. */
static int parses_as(const struct kind_row *k, const uint8_t *data, size_t size)
{
	const uint8_t *msg = data;
	size_t len = size, pos = 0;

	if (!k->descriptor)
		return ntff_is_ours(data, size);
	if (k->delimited && pb_delimited_next(data, size, &pos, &msg, &len) != 1)
		return false;
	ProtobufCMessage *m;
	int rc = pb_message_unpack(k->descriptor, msg, len, &m);
	if (rc < 0)
		return rc == -ENOMEM ? rc : false;
	bool fits = m->n_unknown_fields == 0 && len > 0;
	protobuf_c_message_free_unpacked(m, NULL);
	return fits;
}

const char *dump_kind_name(enum dump_kind kind)
{
	const struct kind_row *k = kind_find(kind);

	return k ? k->name : "unknown";
}

enum dump_kind dump_sniff_content(const uint8_t *data, size_t size)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		int rc = parses_as(&kinds[i], data, size);

		if (rc)
			return rc < 0 ? DUMP_NO_MEMORY : kinds[i].kind;
	}
	return DUMP_UNKNOWN;
}

int dump_sniff_file(struct trace_read *r, enum dump_kind *ret)
{
	static const size_t sizes[] = {SNIFF_BYTES, TRACE_READ_MAX_RECORD};

	*ret = DUMP_UNKNOWN;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes) && *ret == DUMP_UNKNOWN; i++) {
		const uint8_t *data;
		size_t size;
		int rc = trace_read_peek(r, sizes[i], &data, &size);

		if (rc < 0)
			return rc;
		*ret = dump_sniff_content(data, size);
		if (*ret == DUMP_NO_MEMORY)
			return -ENOMEM;
		if (*ret == DUMP_TRACE_INFO && !r->eof)
			*ret = DUMP_UNKNOWN; /* a message may parse up to a place inside it */
	}
	return 0;
}

enum dump_kind dump_kind_by_path(const char *path)
{
	const char *base = strrchr(path, '/');

	base = base ? base + 1 : path;
	if (strlen(base) > strlen(NTFF_SUFFIX) &&
		!strcmp(base + strlen(base) - strlen(NTFF_SUFFIX), NTFF_SUFFIX))
		return DUMP_NTFF;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		size_t len = strlen(kinds[i].name);
		if (!strncmp(base, kinds[i].name, len) && !strcmp(base + len, ".pb"))
			return kinds[i].kind;
	}
	return DUMP_UNKNOWN;
}

/* ---- names -------------------------------------------------------------------------------- */

static const char *event_name(const Ntff__NtraceEvent *e)
{
	const struct trace_event_info *info = trace_event_info(e->event_type);

	if (e->hint && *e->hint)
		return e->hint;
	return info ? info->name : "?";
}

static void print_json(FILE *f, const ProtobufCMessage *m)
{
	struct json_out j = {.f = f};

	jout_begin(&j, '{');
	if (m->descriptor == &ntff__ntrace_event__descriptor) {
		const char *name = event_name((const Ntff__NtraceEvent *)m);
		jout_key(&j, "name");
		jout_string(&j, name, strlen(name));
	}
	message_json_members(&j, m);
	jout_end(&j, '}');
	fputc('\n', f);
}

/* ---- text --------------------------------------------------------------------------------- */

struct text_state {
	uint64_t first; /* timestamp of the first event */
	bool any;
};

static bool attribute_is(const Ntff__NtraceEvent *e, const char *key, const char *value)
{
	for (size_t i = 0; i < e->n_attributes; i++)
		if (!strcmp(e->attributes[i]->key, key))
			return !strcmp(e->attributes[i]->value, value);
	return false;
}

/* Driver calls and marks of the merge carry their name themselves. */
static bool is_driver_call(const Ntff__NtraceEvent *e)
{
	return e->hint && *e->hint && (e->event_type == 0 || e->event_type >= TRACE_TYPE_COUNT);
}

static const char *const phase_marks[] = {"?", ">", "<", "."};

/* Where it happened: nc3 of the process, or nd1/nc0 of the driver; ? when unknown. */
static void place_text(const Ntff__NtraceEvent *e, char buf[32])
{
	char core[16] = "?";
	size_t len = 0;

	if (!attribute_is(e, "nc", "unknown"))
		snprintf(core, sizeof(core), "%" PRIu32, e->nc_idx);
	if (is_driver_call(e))
		len = (size_t)snprintf(buf, 32, "nd%" PRIu32 "/", e->nd_idx);
	snprintf(buf + len, 32 - len, "nc%s", core);
}

static void print_attribute(FILE *f, const char *key, const char *value)
{
	fputc(' ', f);
	printable_put(f, key, strlen(key));
	fputc('=', f);
	printable_put(f, value, strlen(value));
}

static void print_event_text(FILE *f, struct text_state *s, const Ntff__NtraceEvent *e)
{
	unsigned phase = e->phase >= 0 && e->phase <= 3 ? (unsigned)e->phase : 0;
	char place[32];

	if (!s->any) {
		s->first = e->timestamp;
		s->any = true;
		fprintf(f,
			"# seconds since the first event, thread, core (nd: the driver's), > "
			"start  "
			"< stop  . instant\n"
			"# the first event is at %" PRIu64
			" (epoch ns; `rec cut` takes such times, "
			"or seconds since the recording's start)\n",
			e->timestamp);
	}
	uint64_t t = e->timestamp - s->first;
	place_text(e, place);
	fprintf(f, "%6" PRIu64 ".%09" PRIu64 "  %7" PRIu32 "  %-7s %s %-24s", t / 1000000000,
		t % 1000000000, e->thread_id, place, phase_marks[phase], PRINTABLE(event_name(e)));
	if (phase == PHASE_STOP)
		fprintf(f, " %10" PRIu64 " ns", e->duration);
	if (phase == PHASE_START && !is_driver_call(e))
		fprintf(f, " id=%" PRIu64, e->id);
	if (e->status)
		fprintf(f, " status=%" PRIu32, e->status);
	for (size_t i = 0; i < e->n_attributes; i++)
		if (strcmp(e->attributes[i]->key, "nc") != 0)
			print_attribute(f, e->attributes[i]->key, e->attributes[i]->value);
	fputc('\n', f);
}

static int print_message(
	FILE *f, const struct kind_row *k, struct text_state *text, const uint8_t *msg, size_t len)
{
	ProtobufCMessage *m;
	int rc = pb_message_unpack(k->descriptor, msg, len, &m);

	if (rc < 0)
		return rc;
	if (text && k->kind == DUMP_NTRACE)
		print_event_text(f, text, (const Ntff__NtraceEvent *)m);
	else
		print_json(f, m);
	protobuf_c_message_free_unpacked(m, NULL);
	return 0;
}

int dump_print(FILE *f, enum dump_kind kind, enum dump_format format, const uint8_t *data,
	size_t size, size_t *ret_at)
{
	const struct kind_row *k = kind_find(kind);
	struct text_state text = {0};
	size_t pos = 0;

	if (!k || !k->descriptor)
		return -EINVAL;
	for (;;) {
		const uint8_t *msg = data;
		size_t len = size;
		*ret_at = pos;
		int rc = k->delimited ? pb_delimited_next(data, size, &pos, &msg, &len) : pos == 0;
		if (rc <= 0)
			return rc;
		rc = print_message(f, k, format == DUMP_TEXT ? &text : NULL, msg, len);
		if (rc < 0 || !k->delimited)
			return rc;
	}
}

/* One message is all of the file. */
static int print_bare(FILE *f, const struct kind_row *k, struct trace_read *r)
{
	const uint8_t *data;
	size_t size;
	int rc = trace_read_peek(r, MAX_BARE, &data, &size);

	if (rc < 0)
		return rc;
	return size >= MAX_BARE ? -EFBIG : print_message(f, k, NULL, data, size);
}

int dump_file(FILE *f, enum dump_kind kind, enum dump_format format, struct trace_read *r,
	uint64_t *ret_at)
{
	const struct kind_row *k = kind_find(kind);
	struct text_state text = {0};
	const uint8_t *msg;
	size_t len;
	int rc;

	if (!k || !k->descriptor)
		return -EINVAL;
	*ret_at = trace_read_offset(r);
	if (!k->delimited)
		return print_bare(f, k, r);
	while ((rc = trace_read_record(r, &msg, &len)) > 0) {
		rc = print_message(f, k, format == DUMP_TEXT ? &text : NULL, msg, len);
		if (rc < 0)
			break;
		trace_read_skip(r);
	}
	*ret_at = trace_read_offset(r);
	return rc;
}
