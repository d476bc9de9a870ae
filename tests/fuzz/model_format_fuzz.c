/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model_format_fuzz.c - texts of models for the virtual device.
 *
 * Beyond not crashing: a refusal says why on which line, and what is accepted keeps the device's
 * limits (runtime/vdev/vdev_abi.h).
 */
#include <errno.h>

#include "runtime/exec/model_format.h"
#include "tests/fuzz/fuzz.h"

static bool ends(const char *text, size_t size)
{
	return memchr(text, 0, size) != NULL;
}

static void check(const struct model_desc *m)
{
	FUZZ_REQUIRE(ends(m->name, sizeof(m->name)));
	FUZZ_REQUIRE(
		m->tensor_count <= VDEV_MAX_BINDINGS && m->step_count <= VDEV_MAX_INSTRUCTIONS);
	for (uint32_t i = 0; i < m->tensor_count; i++) {
		const struct model_tensor *t = &m->tensors[i];
		uint64_t count = 1;

		FUZZ_REQUIRE(ends(t->name, sizeof(t->name)) && *t->name);
		FUZZ_REQUIRE(t->ndim >= 1 && t->ndim <= MODEL_MAX_DIMS);
		for (uint32_t k = 0; k < t->ndim; k++)
			FUZZ_REQUIRE(!__builtin_mul_overflow(count, t->shape[k], &count));
		FUZZ_REQUIRE(count == t->count && count > 0);
		FUZZ_REQUIRE(t->bytes == count * model_dtype_bytes(t->dtype));
	}
}

static void check_steps(const struct model_desc *m)
{
	FUZZ_REQUIRE(m->version == 1 || m->version == 2);
	FUZZ_REQUIRE(m->semaphore_count <= VDEV_MAX_SEMAPHORES);
	for (uint32_t i = 0; i < m->step_count; i++) {
		const struct vdev_instruction *s = &m->steps[i];
		bool engine = s->unit <= VDEV_SP, top_sp = s->unit == VDEV_TOP_SP;

		FUZZ_REQUIRE(engine || (m->version == 2 && s->unit < VDEV_UNITS &&
					       (top_sp || s->unit >= VDEV_DMA)));
		FUZZ_REQUIRE(s->op <= VDEV_OP_COPY || engine || top_sp);
		FUZZ_REQUIRE(s->op < VDEV_OP_BARRIER || s->op == VDEV_OP_FAULT || top_sp);
		FUZZ_REQUIRE(s->wait == VDEV_NO_SEMAPHORE || s->wait < m->semaphore_count);
		FUZZ_REQUIRE(s->post == VDEV_NO_SEMAPHORE || s->post < m->semaphore_count);
		FUZZ_REQUIRE(s->dst == VDEV_NO_BINDING || s->dst < m->tensor_count);
		if (s->dst != VDEV_NO_BINDING)
			FUZZ_REQUIRE(s->count <= m->tensors[s->dst].count &&
				     s->count <= m->tensors[s->src0].count);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct model_desc m;
	struct model_error error = {0};
	int rc = model_parse((const char *)data, size, &m, &error);

	if (rc == 0) {
		check(&m);
		check_steps(&m);
		(void)model_check_ranks(&m, 2, &error);
		model_desc_free(&m);
		return 0;
	}
	FUZZ_REQUIRE(rc == -EINVAL || rc == -EPROTONOSUPPORT);
	FUZZ_REQUIRE(ends(error.text, sizeof(error.text)) && *error.text);
	return 0;
}
