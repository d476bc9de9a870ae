/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model_format.c - parser of model texts.
 *
 * One pass, a line at a time; each keyword is a row of a table with its number of words and its
 * function.
 */
#include "runtime/exec/model_format.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/exec/model_parser.h"

static const char no_version[] = "the first line must be 'ntrace-model 1' or 'ntrace-model 2'";

/* ---- lines -------------------------------------------------------------------------------- */

static int line_version(struct parser *p)
{
	uint64_t version;

	if (p->m->version)
		return parser_bad(p, "the format is stated twice");
	if (!parser_count(p->words[1], 2, &version))
		return parser_bad(p,
			"format version '%.64s' is not known; this library reads 1 and 2",
			p->words[1]);
	p->m->version = (uint32_t)version;
	return 0;
}

static int line_name(struct parser *p)
{
	int rc = parser_check_name(p, p->words[1]);

	if (rc == 0 && p->m->name[0])
		return parser_bad(p, "the model is named twice");
	if (rc == 0)
		strcpy(p->m->name, p->words[1]);
	return rc;
}

static int add_tensor(struct parser *p, enum model_role role)
{
	struct model_tensor *t = &p->m->tensors[p->m->tensor_count];
	int rc = parser_check_name(p, p->words[1]);

	if (rc < 0)
		return rc;
	if (p->m->tensor_count == VDEV_MAX_BINDINGS)
		return parser_bad(p, "more than %u tensors", VDEV_MAX_BINDINGS);
	if (model_find_tensor(p->m, p->words[1]) >= 0)
		return parser_bad(p, "tensor '%.64s' is declared twice", p->words[1]);
	if (p->m->step_count)
		return parser_bad(p, "tensors are declared before the first step");
	memset(t, 0, sizeof(*t));
	strcpy(t->name, p->words[1]);
	t->role = role;
	rc = parser_dtype(p, p->words[2], &t->dtype);
	if (rc == 0)
		rc = parser_shape(p, p->words[3], t);
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

static const struct {
	const char *keyword;
	uint32_t version; /* that has it, 0 = each */
	uint32_t min_words, max_words;
	int (*parse)(struct parser *p);
	const char *usage;
} lines[] = {
	{"ntrace-model", 0, 2, 2, line_version, "ntrace-model 1 (or 2)"},
	{"name", 0, 2, 2, line_name, "name NAME"},
	{"input", 0, 4, 4, line_input, "input NAME TYPE SHAPE"},
	{"output", 0, 4, 4, line_output, "output NAME TYPE SHAPE"},
	{"temp", 0, 4, 4, line_temp, "temp NAME TYPE SHAPE"},
	{"step", 1, 4, 13, parser_step, "step ENGINE DURATION OPERATION [OPERAND...]"},
	{"semaphore", 2, 2, 2, parser_semaphore, "semaphore NAME"},
	{"step", 2, 4, 13, parser_step,
		"step UNIT DURATION OPERATION [OPERAND...] [wait SEMAPHORE VALUE] "
		"[post SEMAPHORE [VALUE]]"},
};

static int parse_words(struct parser *p)
{
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		if (strcmp(lines[i].keyword, p->words[0]) != 0 ||
			(lines[i].version && lines[i].version != p->m->version))
			continue;
		if (p->word_count < lines[i].min_words || p->word_count > lines[i].max_words)
			return parser_bad(p, "expected: %s", lines[i].usage);
		return lines[i].parse(p);
	}
	return parser_bad(p, "'%.64s' is not a keyword of version %u", p->words[0], p->m->version);
}

/* Splits p->line, cut at '#'. */
static int split(struct parser *p)
{
	char *save = NULL, *hash = strchr(p->line, '#');

	if (hash)
		*hash = '\0';
	p->word_count = 0;
	for (char *w = strtok_r(p->line, " \t", &save); w; w = strtok_r(NULL, " \t", &save)) {
		if (p->word_count == MODEL_MAX_WORDS)
			return parser_bad(p, "too many words");
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
		return parser_bad(p, "Windows line ends (CR LF); a line ends with LF alone");
	return parser_bad(p, "control character 0x%02x", c);
}

static int parse_line(struct parser *p, const char *text, size_t len)
{
	int rc;

	if (!p->m->version && !may_be_first(text, len))
		return parser_bad(p, "%s", no_version);
	if (len >= sizeof(p->line))
		return parser_bad(p, "the line has more than %u bytes", MODEL_MAX_LINE - 1);
	for (size_t i = 0; i < len; i++)
		if (text[i] != '\t' && ((unsigned char)text[i] < 0x20 || text[i] == 0x7f))
			return control_character(p, (unsigned char)text[i], i == len - 1);
	memcpy(p->line, text, len);
	p->line[len] = '\0';
	rc = split(p);
	return rc == 0 && p->word_count ? parse_words(p) : rc;
}

/* ---- the whole ---------------------------------------------------------------------------- */

/* Each output, and with units side by side whatever a step reads, is written somewhere. */
static int check_written(struct parser *p)
{
	for (uint32_t i = 0; i < p->m->tensor_count; i++) {
		const struct model_tensor *t = &p->m->tensors[i];

		if (p->written[i])
			continue;
		if (t->role == MODEL_OUTPUT) {
			p->error->line = p->declared[i];
			return parser_bad(p, "output '%.64s' is never written", t->name);
		}
		if (p->read_at[i]) {
			p->error->line = p->read_at[i];
			return parser_bad(p, "'%.64s' is read, and no step writes it", t->name);
		}
	}
	return 0;
}

/* What is missing is said of the last line, or of where it was promised. */
static int check_whole(struct parser *p)
{
	int rc;

	if (!p->m->version) {
		p->error->line = 0;
		return parser_bad(p, "%s", no_version);
	}
	if (!p->m->name[0])
		return parser_bad(p, "the model has no name");
	if (!p->m->step_count)
		return parser_bad(p, "the model has no step");
	rc = check_written(p);
	return rc < 0 ? rc : parser_check_order(p);
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
	free(m->lines);
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
	m.lines = calloc(VDEV_MAX_INSTRUCTIONS, sizeof(*m.lines));
	if (p && m.tensors && m.steps && m.lines) {
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
