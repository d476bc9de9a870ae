/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arithmetic.h - what the engines of the virtual device compute, on plain memory.
 *
 * Pure functions.  Integers wrap; 16-bit floats are added in float and rounded to nearest even, which gives
 * the correctly rounded sum.  Operands may lie at any address and may be the same memory.
 */
#ifndef NTRACE_VDEV_ARITHMETIC_H
#define NTRACE_VDEV_ARITHMETIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The runtime's public element types (nrt_dtype): same numbers. */
enum vdev_dtype {
	VDEV_UINT64 = 1,
	VDEV_INT8 = 2,
	VDEV_UINT8 = 3,
	VDEV_INT16 = 4,
	VDEV_UINT16 = 5,
	VDEV_BFLOAT16 = 6,
	VDEV_FLOAT16 = 7,
	VDEV_INT32 = 8,
	VDEV_UINT32 = 9,
	VDEV_FLOAT32 = 10,
	VDEV_FP32R = 11,
	VDEV_INT64 = 12,
	VDEV_FP8_E3 = 13,
	VDEV_FP8_E4 = 14,
	VDEV_FP8_E5 = 15,
};

/* Bytes of an element, 0 for an unknown type. */
size_t vdev_dtype_bytes(uint32_t dtype);
/* Whether vdev_add knows the type. */
bool vdev_can_add(uint32_t dtype);
/* dst[i] = a[i] + b[i], i ascending. */
void vdev_add(uint32_t dtype, void *dst, const void *a, const void *b, uint64_t count);

float vdev_bfloat16_to_float(uint16_t bits);
uint16_t vdev_float_to_bfloat16(float value);
float vdev_float16_to_float(uint16_t bits);
uint16_t vdev_float_to_float16(float value);

#endif
