/* SPDX-License-Identifier: Apache-2.0 */
/*
 * put_number.h - numbers as text on hot paths: no format strings, no terminator.
 *
 * Each writes at p, for which the caller has room (20 bytes for a decimal, 21 with a sign, 18 for a
 * hexadecimal one), and returns the end.
 */
#ifndef NTRACE_BASE_PUT_NUMBER_H
#define NTRACE_BASE_PUT_NUMBER_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline uint8_t *put_decimal(uint8_t *p, uint64_t v)
{
	static const char pairs[] = "0001020304050607080910111213141516171819"
				    "2021222324252627282930313233343536373839"
				    "4041424344454647484950515253545556575859"
				    "6061626364656667686970717273747576777879"
				    "8081828384858687888990919293949596979899";
	static const uint64_t powers[] = {0, 10, 100, 1000, 10000, 100000, 1000000, 10000000,
		100000000, 1000000000, 10000000000, 100000000000, 1000000000000, 10000000000000,
		100000000000000, 1000000000000000, 10000000000000000, 100000000000000000,
		1000000000000000000, 10000000000000000000ull};
	unsigned guess = (64 - (unsigned)__builtin_clzll(v | 1)) * 1233 >> 12;
	unsigned digits = guess + (v >= powers[guess]);
	uint8_t *end, *at;

	digits += digits == 0;
	end = at = p + digits;
	for (; v >= 100; v /= 100)
		memcpy(at -= 2, &pairs[v % 100 * 2], 2);
	if (v >= 10)
		memcpy(at - 2, &pairs[v * 2], 2);
	else
		at[-1] = (uint8_t)('0' + v);
	return end;
}

static inline uint8_t *put_signed(uint8_t *p, int64_t v)
{
	if (v < 0)
		*p++ = '-';
	return put_decimal(p, v < 0 ? 0 - (uint64_t)v : (uint64_t)v);
}

/* 0x and at least `least` digits. */
static inline uint8_t *put_hex(uint8_t *p, uint64_t v, unsigned least)
{
	unsigned digits = (67 - (unsigned)__builtin_clzll(v | 1)) / 4;

	digits = digits < least ? least : digits;
	*p++ = '0';
	*p++ = 'x';
	for (unsigned i = digits; i-- > 0; v >>= 4)
		p[i] = (uint8_t) "0123456789abcdef"[v & 15];
	return p + digits;
}

#endif
