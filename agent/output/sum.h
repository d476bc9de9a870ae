/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sum.h - sums of what stands in files: they stay at the largest number instead of starting again.
 */
#ifndef NTRACE_OUTPUT_SUM_H
#define NTRACE_OUTPUT_SUM_H

#include <stdint.h>

static inline void sum_add(uint64_t *sum, uint64_t more)
{
	if (__builtin_add_overflow(*sum, more, sum))
		*sum = UINT64_MAX;
}

#endif
