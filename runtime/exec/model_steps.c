/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model_steps.c - the lines of model texts that say what runs: steps and semaphores.
 *
 * Units and operations are tables; version 1 knows the first rows of each.  What is accepted here the device
 * accepts too (vdev_abi.h).
 */
#include "runtime/exec/model_parser.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define MAX_POST 1000000u

static const char *const units[VDEV_UNITS] = {
	[VDEV_PE] = "PE",
	[VDEV_ACT] = "ACT",
	[VDEV_POOL] = "POOL",
	[VDEV_DVE] = "DVE",
	[VDEV_SP] = "SP",
	[VDEV_TOP_SP] = "TOPSP",
	[VDEV_DMA + 0] = "DMA0",
	[VDEV_DMA + 1] = "DMA1",
	[VDEV_DMA + 2] = "DMA2",
	[VDEV_DMA + 3] = "DMA3",
	[VDEV_DMA + 4] = "DMA4",
	[VDEV_DMA + 5] = "DMA5",
	[VDEV_DMA + 6] = "DMA6",
	[VDEV_DMA + 7] = "DMA7",
	[VDEV_DMA + 8] = "DMA8",
	[VDEV_DMA + 9] = "DMA9",
	[VDEV_DMA + 10] = "DMA10",
	[VDEV_DMA + 11] = "DMA11",
	[VDEV_DMA + 12] = "DMA12",
	[VDEV_DMA + 13] = "DMA13",
	[VDEV_DMA + 14] = "DMA14",
	[VDEV_DMA + 15] = "DMA15",
};
#define UNITS_VERSION_1 ((size_t)VDEV_SP + 1)

static const struct {
	const char *name;
	enum vdev_op op;
	uint32_t operands;
	unsigned where, kind;
} ops[] = {
#define OP(id, name, words, where, kind) {name, VDEV_OP_##id, words, where, kind},
#include "runtime/vdev/ops.def"
#undef OP
};
#define OP_COUNT (sizeof(ops) / sizeof(ops[0]))
#define OPS_VERSION_1 3u

static const struct {
	const char *name;
	uint8_t fault;
} faults[] = {
#define FAULT(id, number, name, status, ends, record) {name, VDEV_CORE_FAULT_##id},
#include "runtime/vdev/faults.def"
#undef FAULT
};
#define FAULT_COUNT (sizeof(faults) / sizeof(faults[0]))

static const char *unit_name(size_t i)
{
	return units[i];
}

static const char *op_name(size_t i)
{
	return ops[i].name;
}

static const char *fault_name(size_t i)
{
	return faults[i].name;
}

const char *model_fault_name(uint32_t fault)
{
	for (size_t i = 0; i < FAULT_COUNT; i++)
		if (faults[i].fault == fault)
			return faults[i].name;
	return NULL;
}

static int needs_version_2(struct parser *p, const char *word)
{
	return parser_bad(p, "'%.64s' needs `ntrace-model 2` in the first line", word);
}

/* ---- operands ----------------------------------------------------------------------------- */

/* An operand that is read (the last one is written): with version 1 only after a step that wrote it. */
static int check_use(struct parser *p, int index, bool last)
{
	const struct model_tensor *t = &p->m->tensors[index];

	if (last && t->role == MODEL_INPUT)
		return parser_bad(p, "'%.64s' is an input and cannot be written", t->name);
	if (!last && !p->written[index] && p->m->version == 1)
		return parser_bad(p, "'%.64s' is read before anything is written to it", t->name);
	if (last)
		p->written[index] = true;
	else if (!p->read_at[index])
		p->read_at[index] = p->error->line;
	return 0;
}

/* The other operands are like the first one; a gathering's result is some of it, one behind another. */
static int check_alike(struct parser *p, const struct vdev_instruction *step,
	const struct model_tensor *first, const struct model_tensor *t)
{
	bool gathers = step->op == VDEV_OP_ALL_GATHER;

	if (first->dtype == t->dtype &&
		(gathers ? t->count % first->count == 0 : t->count == first->count))
		return 0;
	if (gathers)
		return parser_bad(p,
			"'%.64s' must have the type of '%.64s' and a multiple of its elements",
			t->name, first->name);
	return parser_bad(p, "'%.64s' and '%.64s' differ in type or number of elements",
		first->name, t->name);
}

/* Operands stand from word 4 on; the last is written, the others are read. */
static int parse_operands(struct parser *p, uint32_t n, struct vdev_instruction *step)
{
	uint32_t *to[3] = {&step->src0, &step->src1, &step->dst};
	const struct model_tensor *first = NULL;

	for (uint32_t i = 0; i < n; i++) {
		const char *name = p->words[4 + i];
		int index = model_find_tensor(p->m, name);
		bool last = i == n - 1;
		int rc;

		if (index < 0)
			return parser_bad(p, "there is no tensor '%.64s'", name);
		rc = check_use(p, index, last);
		if (rc == 0 && first)
			rc = check_alike(p, step, first, &p->m->tensors[index]);
		if (rc < 0)
			return rc;
		first = first ? first : &p->m->tensors[index];
		*to[last ? 2 : i] = (uint32_t)index;
	}
	if (first) {
		step->dtype = (uint8_t)first->dtype;
		step->count = step->whole = first->count;
	}
	if ((step->op == VDEV_OP_ADD || step->op == VDEV_OP_ALL_REDUCE) &&
		!model_dtype_adds(first->dtype))
		return parser_bad(p, "%s cannot be added", model_dtype_name(first->dtype));
	return 0;
}

static int parse_fault(struct parser *p, struct vdev_instruction *step)
{
	for (size_t i = 0; i < FAULT_COUNT; i++)
		if (!strcmp(faults[i].name, p->words[4])) {
			step->fault = faults[i].fault;
			return 0;
		}
	return parser_unknown(p, p->words[4], "a fault", fault_name, FAULT_COUNT);
}

/* ---- semaphores --------------------------------------------------------------------------- */

static int find_semaphore(const struct parser *p, const char *name)
{
	for (uint32_t i = 0; i < p->m->semaphore_count; i++)
		if (!strcmp(p->semaphores[i], name))
			return (int)i;
	return -ENOENT;
}

int parser_semaphore(struct parser *p)
{
	int rc = parser_check_name(p, p->words[1]);

	if (rc < 0)
		return rc;
	if (p->m->semaphore_count == VDEV_MAX_SEMAPHORES)
		return parser_bad(p, "more than %u semaphores", VDEV_MAX_SEMAPHORES);
	if (find_semaphore(p, p->words[1]) >= 0)
		return parser_bad(p, "semaphore '%.64s' is declared twice", p->words[1]);
	strcpy(p->semaphores[p->m->semaphore_count++], p->words[1]);
	return 0;
}

static const char *word(const struct parser *p, uint32_t at)
{
	return at < p->word_count ? p->words[at] : "";
}

/* `KEYWORD SEMAPHORE [VALUE]` at word *at, when it stands there; moves *at behind it. */
static int parse_clause(struct parser *p, const char *keyword, bool needs_value, uint32_t *at,
	uint16_t *ret_semaphore, uint32_t *ret_value)
{
	uint64_t value = 1;
	int index;

	if (strcmp(word(p, *at), keyword) != 0)
		return 0;
	index = find_semaphore(p, word(p, *at + 1));
	if (index < 0)
		return parser_bad(
			p, "%s: there is no semaphore '%.64s'", keyword, word(p, *at + 1));
	*at += 2;
	if (needs_value || *at < p->word_count) {
		if (!parser_count(word(p, *at), needs_value ? UINT32_MAX : MAX_POST, &value))
			return parser_bad(p, "%s: '%.64s' is not a whole number from 1 to %u",
				keyword, word(p, *at), needs_value ? UINT32_MAX : MAX_POST);
		*at += 1;
	}
	*ret_semaphore = (uint16_t)index;
	*ret_value = (uint32_t)value;
	return 0;
}

/* What stands behind the operands, from word `at` on. */
static int parse_clauses(struct parser *p, uint32_t at, struct vdev_instruction *step)
{
	int rc = parse_clause(p, "wait", true, &at, &step->wait, &step->wait_value);

	if (rc == 0)
		rc = parse_clause(p, "post", false, &at, &step->post, &step->post_value);
	if (rc == 0 && at < p->word_count)
		return parser_bad(p,
			"'%.64s' is not understood; behind the operands may stand "
			"wait SEMAPHORE VALUE, then post SEMAPHORE [VALUE]",
			p->words[at]);
	return rc;
}

/* ---- steps -------------------------------------------------------------------------------- */

static bool is_clause(const char *word)
{
	return !strcmp(word, "wait") || !strcmp(word, "post");
}

/* Are there as many words as operation i has operands?  Version 2 may have more behind them. */
static int check_operand_count(struct parser *p, size_t i)
{
	uint32_t want = 4 + ops[i].operands;

	if (p->word_count == want || (p->word_count > want && p->m->version > 1))
		return 0;
	if (p->word_count > want && is_clause(p->words[want]))
		return needs_version_2(p, p->words[want]);
	if (ops[i].op == VDEV_OP_FAULT)
		return parser_bad(p, "which fault?  It stands behind the word: fault NAME");
	return parser_bad(p, "%s takes %u operands", ops[i].name, ops[i].operands);
}

static int parse_op(struct parser *p, struct vdev_instruction *step)
{
	size_t count = p->m->version == 1 ? OPS_VERSION_1 : OP_COUNT, i = 0;
	int rc;

	while (i < OP_COUNT && strcmp(ops[i].name, p->words[3]) != 0)
		i++;
	if (i >= count && i < OP_COUNT)
		return needs_version_2(p, p->words[3]);
	if (i == OP_COUNT)
		return parser_unknown(p, p->words[3], "an operation", op_name, count);
	step->op = (uint8_t)ops[i].op;
	p->m->collectives += (ops[i].kind & VDEV_OP_MEETS) != 0;
	if (!(ops[i].where & vdev_unit_kind(step->unit)))
		return parser_bad(p, "%s is not done by %s", ops[i].name, p->words[1]);
	rc = check_operand_count(p, i);
	if (rc == 0)
		rc = step->op == VDEV_OP_FAULT ? parse_fault(p, step)
					       : parse_operands(p, ops[i].operands, step);
	if (rc == 0)
		rc = parse_clauses(p, 4 + ops[i].operands, step);
	return rc;
}

static int parse_unit(struct parser *p, uint8_t *ret)
{
	size_t count = p->m->version == 1 ? UNITS_VERSION_1 : VDEV_UNITS;

	for (size_t i = 0; i < VDEV_UNITS; i++)
		if (units[i] && !strcmp(units[i], p->words[1])) {
			*ret = (uint8_t)i;
			return i < count ? 0 : needs_version_2(p, p->words[1]);
		}
	return parser_unknown(
		p, p->words[1], p->m->version == 1 ? "an engine" : "a unit", unit_name, count);
}

/* All steps together have a limit, also those of units that work side by side. */
static int parse_duration(struct parser *p, uint64_t *ret_ps)
{
	int rc = parser_duration(p, p->words[2], ret_ps);

	if (rc < 0)
		return rc;
	if (*ret_ps > VDEV_EXEC_MAX_PS - p->duration_ps)
		return parser_bad(
			p, "with '%.64s' the steps are more than an hour together", p->words[2]);
	p->duration_ps += *ret_ps;
	return 0;
}

int parser_step(struct parser *p)
{
	struct vdev_instruction step = {.wait = VDEV_NO_SEMAPHORE,
		.post = VDEV_NO_SEMAPHORE,
		.src0 = VDEV_NO_BINDING,
		.src1 = VDEV_NO_BINDING,
		.dst = VDEV_NO_BINDING};
	int rc = parse_unit(p, &step.unit);

	if (rc < 0)
		return rc;
	if (p->m->step_count == VDEV_MAX_INSTRUCTIONS)
		return parser_bad(p, "more than %u steps", VDEV_MAX_INSTRUCTIONS);
	rc = parse_duration(p, &step.duration_ps);
	if (rc == 0)
		rc = parse_op(p, &step);
	if (rc < 0)
		return rc;
	p->m->lines[p->m->step_count] = p->error->line;
	p->m->steps[p->m->step_count++] = step;
	return 0;
}

/* ---- ranks -------------------------------------------------------------------------------- */

int model_check_ranks(const struct model_desc *m, uint32_t ranks, struct model_error *error)
{
	memset(error, 0, sizeof(*error));
	for (uint32_t i = 0; i < m->step_count; i++) {
		const struct vdev_instruction *step = &m->steps[i];
		const struct model_tensor *dst;

		if (step->op != VDEV_OP_ALL_GATHER)
			continue;
		dst = &m->tensors[step->dst];
		if (dst->count / step->count == ranks)
			continue;
		error->line = m->lines[i];
		(void)snprintf(error->text, sizeof(error->text),
			"'%.64s' has room for %llu ranks, and the model is loaded for %u",
			dst->name, (unsigned long long)(dst->count / step->count), ranks);
		return -EINVAL;
	}
	return 0;
}
