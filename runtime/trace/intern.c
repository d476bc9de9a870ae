/* SPDX-License-Identifier: Apache-2.0 */
/*
 * intern.c - SipHash-1-3 for name ids.
 *
 * xxHash or any other hash would do for us; this one is fixed by the vendor's 2.31 engine, whose
 * ids are those of the default string hasher of its implementation language.
 */
#include "runtime/trace/intern.h"

#include <string.h>

struct sip {
	uint64_t v0, v1, v2, v3;
};

static uint64_t rotl(uint64_t x, unsigned n)
{
	return x << n | x >> (64 - n);
}

static void sip_round(struct sip *s)
{
	s->v0 += s->v1;
	s->v2 += s->v3;
	s->v1 = rotl(s->v1, 13) ^ s->v0;
	s->v3 = rotl(s->v3, 16) ^ s->v2;
	s->v0 = rotl(s->v0, 32);
	s->v2 += s->v1;
	s->v0 += s->v3;
	s->v1 = rotl(s->v1, 17) ^ s->v2;
	s->v3 = rotl(s->v3, 21) ^ s->v0;
	s->v2 = rotl(s->v2, 32);
}

static void sip_word(struct sip *s, uint64_t word)
{
	s->v3 ^= word;
	sip_round(s);
	s->v0 ^= word;
}

uint64_t intern_hash(const char *text, size_t len)
{
	/* "somepseudorandomlygeneratedbytes" with a zero key */
	struct sip s = {
		0x736f6d6570736575u, 0x646f72616e646f6du, 0x6c7967656e657261u, 0x7465646279746573u};
	size_t total = len + 1; /* with the 0xFF */
	size_t rest = len % 8;
	uint64_t word = 0;

	for (size_t i = 0; i + 8 <= len; i += 8) {
		memcpy(&word, text + i, 8); /* little-endian */
		sip_word(&s, word);
	}
	word = 0;
	if (rest)
		memcpy(&word, text + len - rest, rest);
	word |= 0xffull << (8 * rest);
	if (rest == 7) {
		sip_word(&s, word);
		word = 0;
	}
	sip_word(&s, word | (uint64_t)(total & 0xff) << 56);
	s.v2 ^= 0xff;
	for (int i = 0; i < 3; i++)
		sip_round(&s);
	return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}

uint64_t intern_id(const char *text, size_t len)
{
	return (intern_hash(text, len) & ((1ull << INTERN_ID_BITS) - 1)) + 1;
}
