/* SPDX-License-Identifier: Apache-2.0 */
/* arithmetic.c - element types, their conversions and sums; see arithmetic.h. */
#include "runtime/vdev/arithmetic.h"

#include <string.h>

#include <nrt/nrt.h>

#include "runtime/vdev/vdev_abi.h"

static uint32_t float_bits(float value)
{
	uint32_t bits;

	memcpy(&bits, &value, sizeof(bits));
	return bits;
}

static float bits_float(uint32_t bits)
{
	float value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}

/* Drops the low `drop` bits, rounding to nearest, ties to even.  A carry into the exponent is
 * right. */
static uint32_t round_bits(uint32_t bits, unsigned drop)
{
	uint32_t half = 1u << (drop - 1);
	uint32_t odd = bits >> drop & 1;

	return (bits + half - 1 + odd) >> drop;
}

float vdev_bfloat16_to_float(uint16_t bits)
{
	return bits_float((uint32_t)bits << 16);
}

uint16_t vdev_float_to_bfloat16(float value)
{
	uint32_t bits = float_bits(value);

	if ((bits & 0x7fffffffu) > 0x7f800000u) /* NaN: keep it one after the cut */
		return (uint16_t)(bits >> 16 | 0x40u);
	return (uint16_t)round_bits(bits, 16);
}

float vdev_float16_to_float(uint16_t bits)
{
	uint32_t sign = (uint32_t)(bits & 0x8000u) << 16;
	uint32_t exponent = bits >> 10 & 0x1fu;
	uint32_t fraction = bits & 0x3ffu;

	if (exponent == 0x1f)
		return bits_float(sign | 0x7f800000u | fraction << 13);
	if (exponent)
		return bits_float(sign | (exponent + 112) << 23 | fraction << 13);
	/* Subnormal: fraction units of 2^-24, exact in float. */
	return bits_float(sign | float_bits((float)fraction * 0x1p-24f));
}

uint16_t vdev_float_to_float16(float value)
{
	uint32_t bits = float_bits(value);
	uint32_t sign = bits >> 16 & 0x8000u;
	uint32_t magnitude = bits & 0x7fffffffu;

	if (magnitude > 0x7f800000u)
		return (uint16_t)(sign | 0x7e00u);
	if (magnitude >= 0x477ff000u) /* 65520 and more round to infinity */
		return (uint16_t)(sign | 0x7c00u);
	if (magnitude >= 0x38800000u) /* 2^-14: normal in float16 */
		return (uint16_t)(sign | round_bits(magnitude - (112u << 23), 13));
	if (magnitude <= 0x33000000u) /* 2^-25 and less round to zero */
		return (uint16_t)sign;
	return (uint16_t)(sign |
			  round_bits((magnitude & 0x7fffffu) | 0x800000u, 126 - (magnitude >> 23)));
}

/* Loads and stores go through memcpy: bindings may start at any byte. */
#define DEFINE_ADD(name, type, wide, to_wide, to_type)                                           \
	static void add_##name(uint8_t *dst, const uint8_t *a, const uint8_t *b, uint64_t count) \
	{                                                                                        \
		for (uint64_t i = 0; i < count; i++) {                                           \
			type x, y, sum;                                                          \
			memcpy(&x, a + i * sizeof(type), sizeof(type));                          \
			memcpy(&y, b + i * sizeof(type), sizeof(type));                          \
			sum = to_type((wide)(to_wide(x) + to_wide(y)));                          \
			memcpy(dst + i * sizeof(type), &sum, sizeof(type));                      \
		}                                                                                \
	}
#define TO_U8(x) ((uint8_t)(x))
#define TO_U16(x) ((uint16_t)(x))
#define SAME(x) (x)
DEFINE_ADD(8, uint8_t, uint32_t, SAME, TO_U8)
DEFINE_ADD(16, uint16_t, uint32_t, SAME, TO_U16)
DEFINE_ADD(32, uint32_t, uint32_t, SAME, SAME)
DEFINE_ADD(64, uint64_t, uint64_t, SAME, SAME)
DEFINE_ADD(float32, float, float, SAME, SAME)
DEFINE_ADD(bfloat16, uint16_t, float, vdev_bfloat16_to_float, vdev_float_to_bfloat16)
DEFINE_ADD(float16, uint16_t, float, vdev_float16_to_float, vdev_float_to_float16)

typedef void (*add_fn)(uint8_t *dst, const uint8_t *a, const uint8_t *b, uint64_t count);

static const add_fn adders[] = {
	[VDEV_SUM_NONE] = NULL,
	[VDEV_SUM_WORD8] = add_8,
	[VDEV_SUM_WORD16] = add_16,
	[VDEV_SUM_WORD32] = add_32,
	[VDEV_SUM_WORD64] = add_64,
	[VDEV_SUM_FLOAT32] = add_float32,
	[VDEV_SUM_BFLOAT16] = add_bfloat16,
	[VDEV_SUM_FLOAT16] = add_float16,
};

static const struct {
	uint8_t bytes;
	uint8_t sum; /* enum vdev_sum */
} dtypes[] = {
#define DTYPE(id, number, name, bytes, sum) [NRT_DTYPE_##id] = {bytes, VDEV_SUM_##sum},
#include "runtime/vdev/dtypes.def"
#undef DTYPE
};
#define DTYPE_COUNT (sizeof(dtypes) / sizeof(dtypes[0]))

size_t vdev_dtype_bytes(uint32_t dtype)
{
	return dtype < DTYPE_COUNT ? dtypes[dtype].bytes : 0;
}

bool vdev_can_add(uint32_t dtype)
{
	return dtype < DTYPE_COUNT && dtypes[dtype].sum != VDEV_SUM_NONE;
}

void vdev_add(uint32_t dtype, void *dst, const void *a, const void *b, uint64_t count)
{
	adders[dtypes[dtype].sum](dst, a, b, count);
}
