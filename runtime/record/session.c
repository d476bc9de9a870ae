/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session.c - frames without events: one function per frame type.
 *
 * Payload sizes are checked here and nowhere else for these types.
 */
#include "runtime/record/session.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#define FIRST_CAPACITY 64u

int session_grow(void *array, size_t *cap, size_t need, size_t element)
{
	void **a = array;
	size_t more = *cap ? *cap : FIRST_CAPACITY;
	void *p;

	if (need <= *cap)
		return 0;
	while (more < need)
		more *= 2;
	p = realloc(*a, more * element);
	if (!p)
		return -ENOMEM;
	*a = p;
	*cap = more;
	return 0;
}

int session_init(struct session *s)
{
	memset(s, 0, sizeof(*s));
	s->sources = calloc(SESSION_SOURCES, sizeof(*s->sources));
	if (!s->sources)
		return -ENOMEM;
	for (uint32_t i = REC_SOURCE_RUNTIME0; i < SESSION_SOURCES; i++)
		s->sources[i].ordinal = (uint16_t)(i - REC_SOURCE_RUNTIME0);
	return 0;
}

void session_free(struct session *s)
{
	rec_header_free(&s->header);
	clock_map_free(&s->clock);
	for (size_t i = 0; i < s->mem_count; i++)
		stored_free(&s->mems[i].data);
	free(s->mems);
	for (size_t i = 0; i < s->file_count; i++)
		free(s->files[i].name);
	free(s->files);
	modules_free(&s->modules);
	free(s->intervals);
	free(s->device_clocks);
	free(s->names);
	free(s->name_text);
	free(s->counters);
	free(s->sources);
	free(s->last_cpus);
	stored_free(&s->cpu);
	map64_free(&s->name_index);
	map64_free(&s->counter_index);
	map64_free(&s->runtimes);
	map64_free(&s->inspected);
	memset(s, 0, sizeof(*s));
}

int session_invalid(struct session *s)
{
	s->invalid++;
	s->read++;
	return 0;
}

size_t session_rows(struct session *s, size_t bytes, size_t row)
{
	if (bytes % row)
		session_invalid(s);
	return bytes / row;
}

/* ---- names -------------------------------------------------------------------------------- */

/* Length of the valid UTF-8 sequence at p, 0 when there is none.  NUL is not accepted. */
static size_t utf8_length(const unsigned char *p, size_t left)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	size_t n = p[0] < 0x80 ? 1 : p[0] < 0xc2 ? 0 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
	uint32_t c;

	if (n == 0 || n > left || p[0] == 0 || p[0] > 0xf4)
		return 0;
	if (n == 1)
		return 1;
	c = p[0] & (0x7fu >> n);
	for (size_t i = 1; i < n; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (p[i] & 0x3f);
	}
	return c < least[n] || (c >= 0xd800 && c < 0xe000) || c > 0x10ffff ? 0 : n;
}

uint64_t session_key(const struct session *s, uint64_t a, uint64_t b)
{
	uint64_t pair[2] = {a, b};

	return XXH3_64bits_withSeed(pair, sizeof(pair), s->seed) | 1;
}

/* Key of the entry in the index, of which the value is the place + 1; keys that collide move on. */
static uint64_t name_key(const struct session *s, uint32_t source, uint64_t id, uint64_t *ret_place)
{
	for (uint64_t key = session_key(s, id, source);; key += 2) {
		const uint64_t *place = map64_find(&s->name_index, key);

		*ret_place = place ? *place : 0;
		if (!place ||
			(s->names[*place - 1].id == id && s->names[*place - 1].source == source))
			return key;
	}
}

static size_t copy_utf8(char *to, const char *text, size_t len, size_t max)
{
	const unsigned char *p = (const unsigned char *)text;
	size_t used = 0;

	for (size_t i = 0; i < len;) {
		size_t n = utf8_length(p + i, len - i), out = n ? n : 1;

		if (used + out > max)
			break;
		if (n)
			memcpy(to + used, p + i, n);
		else
			to[used] = '?';
		used += out;
		i += out;
	}
	to[used] = '\0';
	return used;
}

/* Of names that were said several times the first counts. */
static int add_name(struct session *s, uint32_t source, uint64_t id, const char *text, size_t len,
	uint64_t from)
{
	size_t max = len < SESSION_MAX_NAME ? len : SESSION_MAX_NAME, used;
	uint64_t place, key = name_key(s, source, id, &place);
	int rc;

	if (place)
		return 0;
	rc = session_grow(&s->names, &s->name_cap, s->name_count + 1, sizeof(*s->names));
	if (rc == 0)
		rc = session_grow(&s->name_text, &s->name_bytes_cap, s->name_bytes + max + 1, 1);
	if (rc == 0)
		rc = map64_put(&s->name_index, key, s->name_count + 1);
	if (rc < 0)
		return rc;
	used = copy_utf8(s->name_text + s->name_bytes, text, len, max);
	s->names[s->name_count++] = (struct session_name){.id = id,
		.source = source,
		.len = (uint32_t)used,
		.offset = s->name_bytes,
		.from = from};
	s->name_bytes += used + 1;
	return 0;
}

const char *session_name(
	const struct session *s, uint16_t source, uint64_t id, uint64_t time, uint32_t *ret_len)
{
	const struct session_name *n;
	uint64_t place;

	name_key(s, source, id, &place);
	n = place ? &s->names[place - 1] : NULL;
	if (!n || time < n->from) {
		*ret_len = 0;
		return "";
	}
	*ret_len = n->len;
	return s->name_text + n->offset;
}

/* ---- one function per frame type ---------------------------------------------------------- */

static int take_header(struct session *s, const struct rec_frame *f, const uint8_t *payload)
{
	struct rec_header h;
	int rc;

	if (s->has_header)
		return 0;
	rc = rec_header_parse((const char *)payload, f->size, &h);
	if (rc == -ENOMEM)
		return rc;
	if (rc < 0)
		return session_invalid(s);
	s->header = h;
	s->has_header = true;
	s->is_virtual |= h.info.is_virtual;
	return 0;
}

static int take_clock(struct session *s, const struct rec_frame *f, const uint8_t *payload)
{
	struct clock_snapshot c;

	if (f->size < sizeof(c))
		return session_invalid(s);
	memcpy(&c, payload, sizeof(c));
	return clock_map_add(&s->clock, &c);
}

static int take_device(struct session *s, const struct rec_frame *f, const uint8_t *payload)
{
	struct rec_device d;

	if (f->size < sizeof(d))
		return session_invalid(s);
	memcpy(&d, payload, sizeof(d));
	s->is_virtual |= d.is_virtual != 0;
	return 0;
}

/* Numbers the runtimes under a pid in the order in which they announce themselves. */
static int number_runtime(struct session *s, struct session_source *source, uint32_t pid)
{
	const uint64_t *known = map64_find(&s->runtimes, (uint64_t)pid + 1);
	uint64_t before = known ? *known : 0;

	source->ordinal = (uint16_t)before;
	return map64_put(&s->runtimes, (uint64_t)pid + 1, before + 1);
}

/* The source keeps its own number when it does not say which process it is: no other has that. */
static int take_process(struct session *s, const struct rec_frame *f, const uint8_t *payload)
{
	struct session_source *source = &s->sources[f->source];
	bool runtime = f->source >= REC_SOURCE_RUNTIME0;
	struct rec_process p;

	if (f->size < sizeof(p))
		return session_invalid(s);
	memcpy(&p, payload, sizeof(p));
	s->is_virtual |= p.is_virtual != 0;
	s->is_simulated |= p.is_virtual == REC_SIMULATED;
	s->has_runtime |= runtime;
	if (source->settled || p.pid == 0)
		return 0;
	source->settled = true;
	source->pid = p.pid;
	return runtime ? number_runtime(s, source, p.pid) : 0;
}

uint32_t session_settle(struct session *s, uint16_t source)
{
	struct session_source *of = &s->sources[source];

	s->unnamed += of->pid == 0;
	of->settled = true;
	return of->pid;
}

/* A source that has not said which process it is has no files under its name. */
static int note_inspected(struct session *s, uint16_t source)
{
	uint32_t pid = s->sources[source].pid;

	return pid ? map64_put(&s->inspected, (uint64_t)pid + 1, 1) : 0;
}

bool session_inspected(const struct session *s, uint32_t pid)
{
	return map64_find(&s->inspected, (uint64_t)pid + 1) != NULL;
}

static int take_counter(struct session *s, uint16_t source, const struct rec_counter *c)
{
	uint64_t key = session_key(s, (uint64_t)c->sub << 32 | c->id, source);
	const uint64_t *place;
	int rc;

	for (; (place = map64_find(&s->counter_index, key)); key += 2) {
		struct session_counter *known = &s->counters[*place];

		if (known->source == source && known->id == c->id && known->sub == c->sub) {
			known->value = c->value;
			return 0;
		}
	}
	rc = session_grow(
		&s->counters, &s->counter_cap, s->counter_count + 1, sizeof(*s->counters));
	if (rc == 0)
		rc = map64_put(&s->counter_index, key, s->counter_count);
	if (rc < 0)
		return rc;
	s->counters[s->counter_count++] = (struct session_counter){
		.source = source, .id = c->id, .sub = c->sub, .value = c->value};
	return 0;
}

static int take_counters(struct session *s, const struct rec_frame *f, const uint8_t *payload)
{
	for (size_t n = session_rows(s, f->size, sizeof(struct rec_counter)); n > 0; n--) {
		struct rec_counter c;
		int rc;

		memcpy(&c, payload, sizeof(c));
		payload += sizeof(c);
		if (c.id == REC_COUNTER_NONE || c.id >= REC_COUNTER_RECORDED_END)
			continue; /* of a newer recorder; its stages cannot be checked here */
		rc = take_counter(s, f->source, &c);
		if (rc == 0 && c.id == REC_C_SESSIONS && c.value)
			rc = note_inspected(s, f->source);
		if (rc < 0)
			return rc;
	}
	return 0;
}

static int take_cpu(struct session *s, const struct rec_frame *f, const uint8_t *payload)
{
	size_t count = session_rows(s, f->size, sizeof(struct sampler_cpu));
	struct sampler_cpu *rows = malloc((count + 1) * sizeof(*rows));
	int rc;

	if (!rows)
		return -ENOMEM;
	if (count)
		memcpy(rows, payload, count * sizeof(*rows));
	rc = session_cpu(s, f->time_ns, rows, count);
	free(s->last_cpus);
	s->last_cpus = rows;
	s->last_cpu_count = count;
	s->last_cpu_ns = f->time_ns;
	return rc;
}

static int take_mem(struct session *s, const struct rec_frame *f, const uint8_t *payload)
{
	struct rec_mem m;

	if (f->size < sizeof(m))
		return session_invalid(s);
	memcpy(&m, payload, sizeof(m));
	return session_memory(s, f->time_ns, m.pid, m.rss_bytes);
}

int session_take_name(
	struct session *s, const struct rec_frame *f, const uint8_t *payload, uint64_t from)
{
	struct rec_name n;

	if (f->size < sizeof(n))
		return session_invalid(s);
	memcpy(&n, payload, sizeof(n));
	return add_name(
		s, f->source, n.id, (const char *)payload + sizeof(n), f->size - sizeof(n), from);
}

/* Those with rows were found before this pass. */
static int take_profile(struct session *s, const struct rec_frame *f, const uint8_t *payload)
{
	struct session_profiles *to = &s->profiles;
	struct rec_device_profile p;

	if (f->size < sizeof(p))
		return session_invalid(s);
	memcpy(&p, payload, sizeof(p));
	if (p.index != REC_DEVICE_PROFILE_NONE) {
		to->named++;
		return 0;
	}
	if (to->absent < SESSION_BAD_PROFILES)
		to->absent_pids[to->absent] = p.pid;
	to->absent++;
	return 0;
}

static int take_lost(struct session_lost *to, const char *name, size_t len)
{
	if (to->count++ == 0)
		copy_utf8(to->first, name, len, sizeof(to->first) - 1);
	return 0;
}

static int take_file(struct session *s, const struct rec_frame *f, const uint8_t *payload)
{
	struct session_file *to;
	struct rec_file file;
	size_t len;
	int rc;

	if (f->size < sizeof(file))
		return session_invalid(s);
	memcpy(&file, payload, sizeof(file));
	len = f->size - sizeof(file);
	if (len > SESSION_MAX_NAME)
		len = SESSION_MAX_NAME;
	if (!strncmp(file.type, REC_FILE_LOST, sizeof(file.type)))
		return take_lost(&s->lost_files, (const char *)payload + sizeof(file), len);
	if (!strncmp(file.type, REC_FILE_UNWRITTEN, sizeof(file.type)))
		return take_lost(&s->unwritten_files, (const char *)payload + sizeof(file), len);
	rc = session_grow(&s->files, &s->file_cap, s->file_count + 1, sizeof(*s->files));
	if (rc < 0)
		return rc;
	to = &s->files[s->file_count];
	*to = (struct session_file){.name = malloc(len + 1), .bytes = file.bytes};
	if (!to->name)
		return -ENOMEM;
	copy_utf8(to->name, (const char *)payload + sizeof(file), len, len);
	copy_utf8(to->type, file.type, strnlen(file.type, sizeof(file.type)), sizeof(file.type));
	s->file_count++;
	return 0;
}

bool session_has_file(const struct session *s, const char *type)
{
	for (size_t i = 0; i < s->file_count; i++)
		if (!strcmp(s->files[i].type, type))
			return true;
	return false;
}

static int take_end(struct session *s, const struct rec_frame *f, const uint8_t *payload)
{
	if (f->size < sizeof(s->end))
		return session_invalid(s);
	memcpy(&s->end, payload, sizeof(s->end));
	s->end_ns = f->time_ns;
	s->has_end = true;
	s->ended = rec_end_in_order(&s->end);
	return 0;
}

static int take_module(struct session *s, const struct rec_frame *f, const uint8_t *payload)
{
	int rc = modules_take(&s->modules, f->time_ns, payload, f->size);

	return rc == -EBADMSG ? session_invalid(s) : rc;
}

static int (*const takers[])(struct session *, const struct rec_frame *, const uint8_t *) = {
	[REC_HEADER] = take_header,
	[REC_CLOCK] = take_clock,
	[REC_DEVICE] = take_device,
	[REC_PROCESS] = take_process,
	[REC_COUNTERS] = take_counters,
	[REC_CPU] = take_cpu,
	[REC_MEM] = take_mem,
	[REC_END] = take_end,
	[REC_DEVICE_PROFILE] = take_profile,
	[REC_FILE] = take_file,
	[REC_MODULE] = take_module,
};

int session_frame(struct session *s, const struct rec_frame *f, const uint8_t *payload)
{
	if (f->type >= sizeof(takers) / sizeof(*takers) || !takers[f->type])
		return 0;
	return takers[f->type](s, f, payload);
}
