/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model_format.c - parser of model texts.
 *
 * One pass, a line at a time; each keyword is a row of a table with its number of words and its
 * function.
 */
#include "runtime/exec/model_format.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_LINE 1024u
#define MAX_WORDS 8u
#define MAX_TENSOR_BYTES (1ull << 40)
#define MAX_STEP_PS (3600ull * 1000000000000ull) /* an hour */

struct parser {
	struct model_desc *m;
	struct model_error *error;
	bool versioned;
	bool written[VDEV_MAX_BINDINGS];      /* by a step, or by the program for inputs */
	uint32_t declared[VDEV_MAX_BINDINGS]; /* line */
	char line[MAX_LINE];
	char *words[MAX_WORDS];
	uint32_t word_count;
};

static const struct {
	const char *name;
	uint8_t bytes;
	bool adds; /* the device can add it */
} dtypes[] = {
#define DTYPE(id, number, name, bytes, sum) \
	[NRT_DTYPE_##id] = {name, bytes, VDEV_SUM_##sum != VDEV_SUM_NONE},
#include "runtime/vdev/dtypes.def"
#undef DTYPE
};
#define DTYPE(id, number, name, bytes, sum) \
	static_assert((int)NRT_DTYPE_##id == (number), "number of " name);
#include "runtime/vdev/dtypes.def"
#undef DTYPE
#define DTYPE_COUNT (sizeof(dtypes) / sizeof(dtypes[0]))

static const char *const engines[] = {
	[VDEV_PE] = "PE",
	[VDEV_ACT] = "ACT",
	[VDEV_POOL] = "POOL",
	[VDEV_DVE] = "DVE",
	[VDEV_SP] = "SP",
};
#define ENGINE_COUNT (sizeof(engines) / sizeof(engines[0]))

static const struct {
	const char *name;
	enum vdev_op op;
	uint32_t operands;
} ops[] = {
	{"nop", VDEV_OP_NOP, 0},
	{"copy", VDEV_OP_COPY, 2},
	{"add", VDEV_OP_ADD, 3},
};
#define OP_COUNT (sizeof(ops) / sizeof(ops[0]))

static const struct {
	const char *suffix;
	uint64_t ps;
} units[] = {
	{"ns", 1000ull},
	{"us", 1000000ull},
	{"ms", 1000000000ull},
	{"s", 1000000000000ull},
};
#define UNIT_COUNT (sizeof(units) / sizeof(units[0]))

uint32_t model_dtype_bytes(nrt_dtype_t dtype)
{
	return (size_t)dtype < DTYPE_COUNT ? dtypes[dtype].bytes : 0;
}

__attribute__((format(printf, 2, 3))) static int bad(struct parser *p, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	(void)vsnprintf(p->error->text, sizeof(p->error->text), format, ap);
	va_end(ap);
	return -EINVAL;
}

static const char no_version[] = "the first line must be 'ntrace-model 1'";

/* Refuses a word and lists those that there are; name_at(i) is NULL where a table has a hole. */
static int unknown(struct parser *p, const char *word, const char *what,
	const char *(*name_at)(size_t i), size_t count)
{
	char known[256] = "";
	size_t n = 0;

	for (size_t i = 0; i < count; i++)
		if (name_at(i) && n < sizeof(known))
			n += (size_t)snprintf(
				known + n, sizeof(known) - n, "%s%s", n ? " " : "", name_at(i));
	return bad(p, "'%.64s' is not %s (%s)", word, what, known);
}

static const char *dtype_name(size_t i)
{
	return dtypes[i].name;
}

static const char *engine_name(size_t i)
{
	return engines[i];
}

static const char *op_name(size_t i)
{
	return ops[i].name;
}

/* ---- words -------------------------------------------------------------------------------- */

static int check_name(struct parser *p, const char *name)
{
	size_t len = strlen(name);

	for (size_t i = 0; i < len; i++)
		if (!isalnum((unsigned char)name[i]) && !strchr("_.-", name[i]))
			return bad(p, "'%.64s' is not a name (letters, digits, _ . -)", name);
	if (len >= NRT_TENSOR_NAME_MAX)
		return bad(p, "a name has at most %d bytes", NRT_TENSOR_NAME_MAX - 1);
	return 0;
}

/* Unsigned decimal at *text, at most max; moves *text behind it. */
static bool take_number(const char **text, uint64_t max, uint64_t *ret)
{
	const char *s = *text;
	uint64_t value = 0;

	if (!isdigit((unsigned char)*s))
		return false;
	for (; isdigit((unsigned char)*s); s++) {
		value = value * 10 + (uint64_t)(*s - '0');
		if (value > max)
			return false;
	}
	*text = s;
	*ret = value;
	return true;
}

static int parse_shape(struct parser *p, const char *text, struct model_tensor *t)
{
	const char *at = text;
	uint64_t bytes = model_dtype_bytes(t->dtype);

	t->count = 1;
	for (;;) {
		uint64_t n;

		if (t->ndim == MODEL_MAX_DIMS)
			return bad(p, "more than %u dimensions", MODEL_MAX_DIMS);
		if (!take_number(&at, UINT32_MAX, &n) || n == 0)
			return bad(p, "'%.64s' is not a shape like 1024x16", text);
		t->shape[t->ndim++] = (uint32_t)n;
		if (t->count > MAX_TENSOR_BYTES / n / bytes)
			return bad(p, "shape '%.64s' is too large", text);
		t->count *= n;
		if (*at == '\0')
			break;
		if (*at++ != 'x')
			return bad(p, "'%.64s' is not a shape like 1024x16", text);
	}
	t->bytes = t->count * bytes;
	return 0;
}

static int parse_dtype(struct parser *p, const char *text, nrt_dtype_t *ret)
{
	for (size_t i = 0; i < DTYPE_COUNT; i++)
		if (dtypes[i].name && !strcmp(dtypes[i].name, text)) {
			*ret = (nrt_dtype_t)i;
			return 0;
		}
	return unknown(p, text, "an element type", dtype_name, DTYPE_COUNT);
}

static int parse_duration(struct parser *p, const char *text, uint64_t *ret_ps)
{
	const char *at = text;
	uint64_t n;

	if (take_number(&at, MAX_STEP_PS, &n))
		for (size_t i = 0; i < UNIT_COUNT; i++)
			if (!strcmp(units[i].suffix, at)) {
				if (n > MAX_STEP_PS / units[i].ps)
					return bad(p, "'%.64s' is more than an hour", text);
				*ret_ps = n * units[i].ps;
				return 0;
			}
	return bad(p, "'%.64s' is not a duration (a whole number and ns, us, ms or s)", text);
}

static int find_tensor(const struct model_desc *m, const char *name)
{
	for (uint32_t i = 0; i < m->tensor_count; i++)
		if (!strcmp(m->tensors[i].name, name))
			return (int)i;
	return -ENOENT;
}

/* ---- lines -------------------------------------------------------------------------------- */

static int line_version(struct parser *p)
{
	if (p->versioned)
		return bad(p, "the format is stated twice");
	if (strcmp(p->words[1], "1") != 0)
		return bad(p, "format version '%.64s' is not known; this library reads 1",
			p->words[1]);
	p->versioned = true;
	return 0;
}

static int line_name(struct parser *p)
{
	int rc = check_name(p, p->words[1]);

	if (rc == 0 && p->m->name[0])
		return bad(p, "the model is named twice");
	if (rc == 0)
		strcpy(p->m->name, p->words[1]);
	return rc;
}

static int add_tensor(struct parser *p, enum model_role role)
{
	struct model_tensor *t = &p->m->tensors[p->m->tensor_count];
	int rc = check_name(p, p->words[1]);

	if (rc < 0)
		return rc;
	if (p->m->tensor_count == VDEV_MAX_BINDINGS)
		return bad(p, "more than %u tensors", VDEV_MAX_BINDINGS);
	if (find_tensor(p->m, p->words[1]) >= 0)
		return bad(p, "tensor '%.64s' is declared twice", p->words[1]);
	if (p->m->step_count)
		return bad(p, "tensors are declared before the first step");
	memset(t, 0, sizeof(*t));
	strcpy(t->name, p->words[1]);
	t->role = role;
	rc = parse_dtype(p, p->words[2], &t->dtype);
	if (rc == 0)
		rc = parse_shape(p, p->words[3], t);
	if (rc == 0) {
		p->declared[p->m->tensor_count] = p->error->line;
		p->written[p->m->tensor_count++] = role == MODEL_INPUT;
	}
	return rc;
}

static int line_input(struct parser *p)
{
	return add_tensor(p, MODEL_INPUT);
}

static int line_output(struct parser *p)
{
	return add_tensor(p, MODEL_OUTPUT);
}

static int line_temp(struct parser *p)
{
	return add_tensor(p, MODEL_TEMP);
}

/* Operands stand from word 4 on; the last is written, the others are read. */
static int parse_operands(struct parser *p, uint32_t n, struct vdev_instruction *step)
{
	uint32_t *to[3] = {&step->src0, &step->src1, &step->dst};
	const struct model_tensor *first = NULL;

	for (uint32_t i = 0; i < n; i++) {
		const char *name = p->words[4 + i];
		int index = find_tensor(p->m, name);
		const struct model_tensor *t;
		bool last = i == n - 1;

		if (index < 0)
			return bad(p, "there is no tensor '%.64s'", name);
		t = &p->m->tensors[index];
		if (last && t->role == MODEL_INPUT)
			return bad(p, "'%.64s' is an input and cannot be written", name);
		if (!last && !p->written[index])
			return bad(p, "'%.64s' is read before anything is written to it", name);
		if (first && (first->dtype != t->dtype || first->count != t->count))
			return bad(p, "'%.64s' and '%.64s' differ in type or number of elements",
				first->name, name);
		first = first ? first : t;
		*to[last ? 2 : i] = (uint32_t)index;
		if (last)
			p->written[index] = true;
	}
	if (first) {
		step->dtype = first->dtype;
		step->count = first->count;
	}
	return 0;
}

static int parse_op(struct parser *p, struct vdev_instruction *step)
{
	int rc;

	for (size_t i = 0; i < OP_COUNT; i++) {
		if (strcmp(ops[i].name, p->words[3]) != 0)
			continue;
		if (p->word_count != 4 + ops[i].operands)
			return bad(p, "%s takes %u operands", ops[i].name, ops[i].operands);
		step->op = ops[i].op;
		rc = parse_operands(p, ops[i].operands, step);
		if (rc == 0 && step->op == VDEV_OP_ADD && !dtypes[step->dtype].adds)
			return bad(p, "%s cannot be added", dtypes[step->dtype].name);
		return rc;
	}
	return unknown(p, p->words[3], "an operation", op_name, OP_COUNT);
}

static int line_step(struct parser *p)
{
	struct vdev_instruction step = {.wait = VDEV_NO_SEMAPHORE,
		.post = VDEV_NO_SEMAPHORE,
		.src0 = VDEV_NO_BINDING,
		.src1 = VDEV_NO_BINDING,
		.dst = VDEV_NO_BINDING};
	uint32_t engine = 0;
	int rc;

	while (engine < ENGINE_COUNT && strcmp(engines[engine], p->words[1]) != 0)
		engine++;
	if (engine == ENGINE_COUNT)
		return unknown(p, p->words[1], "an engine", engine_name, ENGINE_COUNT);
	step.unit = (uint8_t)engine;
	if (p->m->step_count == VDEV_MAX_INSTRUCTIONS)
		return bad(p, "more than %u steps", VDEV_MAX_INSTRUCTIONS);
	rc = parse_duration(p, p->words[2], &step.duration_ps);
	if (rc == 0)
		rc = parse_op(p, &step);
	if (rc == 0)
		p->m->steps[p->m->step_count++] = step;
	return rc;
}

static const struct {
	const char *keyword;
	uint32_t min_words, max_words;
	int (*parse)(struct parser *p);
	const char *usage;
} lines[] = {
	{"ntrace-model", 2, 2, line_version, "ntrace-model 1"},
	{"name", 2, 2, line_name, "name NAME"},
	{"input", 4, 4, line_input, "input NAME TYPE SHAPE"},
	{"output", 4, 4, line_output, "output NAME TYPE SHAPE"},
	{"temp", 4, 4, line_temp, "temp NAME TYPE SHAPE"},
	{"step", 4, 7, line_step, "step ENGINE DURATION OPERATION [OPERAND...]"},
};

static int parse_words(struct parser *p)
{
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		if (strcmp(lines[i].keyword, p->words[0]) != 0)
			continue;
		if (p->word_count < lines[i].min_words || p->word_count > lines[i].max_words)
			return bad(p, "expected: %s", lines[i].usage);
		return lines[i].parse(p);
	}
	return bad(p, "'%.64s' is not a keyword", p->words[0]);
}

/* Splits p->line, cut at '#'. */
static int split(struct parser *p)
{
	char *save = NULL, *hash = strchr(p->line, '#');

	if (hash)
		*hash = '\0';
	p->word_count = 0;
	for (char *w = strtok_r(p->line, " \t", &save); w; w = strtok_r(NULL, " \t", &save)) {
		if (p->word_count == MAX_WORDS)
			return bad(p, "too many words");
		p->words[p->word_count++] = w;
	}
	return 0;
}

/* May the line stand before the format is known?  Only blanks, a comment, or what states the format:
 * any other text is told what it is not, before anything in it is found fault with. */
static bool may_be_first(const char *text, size_t len)
{
	static const char word[] = "ntrace-model";
	size_t i = 0;

	while (i < len && strchr(" \t\r", text[i]) && text[i])
		i++;
	if (i == len || text[i] == '#')
		return true;
	len -= i;
	text += i;
	if (len < strlen(word) || memcmp(text, word, strlen(word)) != 0)
		return false;
	return len == strlen(word) || (text[strlen(word)] && strchr(" \t\r#", text[strlen(word)]));
}

static int control_character(struct parser *p, unsigned char c, bool last)
{
	if (c == '\r' && last)
		return bad(p, "Windows line ends (CR LF); a line ends with LF alone");
	return bad(p, "control character 0x%02x", c);
}

static int parse_line(struct parser *p, const char *text, size_t len)
{
	int rc;

	if (!p->versioned && !may_be_first(text, len))
		return bad(p, "%s", no_version);
	if (len >= sizeof(p->line))
		return bad(p, "the line has more than %u bytes", MAX_LINE - 1);
	for (size_t i = 0; i < len; i++)
		if (text[i] != '\t' && ((unsigned char)text[i] < 0x20 || text[i] == 0x7f))
			return control_character(p, (unsigned char)text[i], i == len - 1);
	memcpy(p->line, text, len);
	p->line[len] = '\0';
	rc = split(p);
	return rc == 0 && p->word_count ? parse_words(p) : rc;
}

/* ---- the whole ---------------------------------------------------------------------------- */

/* What is missing is said of the last line, or of where it was promised. */
static int check_whole(struct parser *p)
{
	if (!p->versioned) {
		p->error->line = 0;
		return bad(p, "%s", no_version);
	}
	if (!p->m->name[0])
		return bad(p, "the model has no name");
	if (!p->m->step_count)
		return bad(p, "the model has no step");
	for (uint32_t i = 0; i < p->m->tensor_count; i++)
		if (p->m->tensors[i].role == MODEL_OUTPUT && !p->written[i]) {
			p->error->line = p->declared[i];
			return bad(p, "output '%.64s' is never written", p->m->tensors[i].name);
		}
	return 0;
}

static int parse_text(struct parser *p, const char *text, size_t size)
{
	const char *end = text + size;
	int rc;

	while (text < end) {
		const char *newline = memchr(text, '\n', (size_t)(end - text));
		const char *stop = newline ? newline : end;

		p->error->line++;
		rc = parse_line(p, text, (size_t)(stop - text));
		if (rc < 0)
			return rc;
		text = newline ? newline + 1 : end;
	}
	return check_whole(p);
}

void model_desc_free(struct model_desc *m)
{
	free(m->tensors);
	free(m->steps);
	memset(m, 0, sizeof(*m));
}

int model_parse(const char *text, size_t size, struct model_desc *ret, struct model_error *error)
{
	struct model_desc m = {0};
	struct parser *p;
	int rc = -ENOMEM;

	memset(error, 0, sizeof(*error));
	if (memchr(text, '\0', size < 64 ? size : 64)) {
		(void)snprintf(error->text, sizeof(error->text),
			"not a text; the virtual device runs models of its own format only");
		return -EPROTONOSUPPORT;
	}
	p = calloc(1, sizeof(*p));
	m.tensors = calloc(VDEV_MAX_BINDINGS + 1, sizeof(*m.tensors));
	m.steps = calloc(VDEV_MAX_INSTRUCTIONS, sizeof(*m.steps));
	if (p && m.tensors && m.steps) {
		p->m = &m;
		p->error = error;
		rc = parse_text(p, text, size);
	}
	free(p);
	if (rc < 0) {
		model_desc_free(&m);
		return rc;
	}
	*ret = m;
	return 0;
}
