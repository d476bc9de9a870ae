/* SPDX-License-Identifier: Apache-2.0 */
/* model_refused.h - a model text that the parser must refuse, with the line and the words of its message. */
#ifndef NTRACE_TESTS_MODEL_REFUSED_H
#define NTRACE_TESTS_MODEL_REFUSED_H

#include <errno.h>
#include <string.h>

#include "runtime/exec/model_format.h"
#include "tests/shim/shim.h"

static inline void check_refused(const char *text, uint32_t line, const char *says)
{
	struct model_desc m = {0};
	struct model_error error;

	test_info("model: %s", text);
	CHECK_EQ(model_parse(text, strlen(text), &m, &error), -EINVAL);
	test_info("message: %s", error.text);
	CHECK_EQ(error.line, line);
	CHECK(strstr(error.text, says) != NULL);
}

#endif
