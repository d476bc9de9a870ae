/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arithmetic.h - what the engines of the virtual device compute, on plain memory.
 *
 * Pure functions.  Integers wrap; 16-bit floats are added in float and rounded to nearest even,
 * which gives the correctly rounded sum.  Operands may lie at any address and may be the same
 * memory.
 */
#ifndef NTRACE_VDEV_ARITHMETIC_H
#define NTRACE_VDEV_ARITHMETIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* dtype is an nrt_dtype_t of nrt.h, from a program image and so any number.  Bytes of an element,
 * 0 for an unknown type. */
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
