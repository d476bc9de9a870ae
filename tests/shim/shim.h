/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shim.h - the C side of the test runner.
 *
 * A test is a C function in a C file:
 *
 *	TEST("ring: a full ring drops the oldest", "[trace]")
 *	{
 *		REQUIRE(ring_open(&r) == 0);   // leaves the test by return when it fails
 *		CHECK(r.lost == 1);            // notes the failure and goes on
 *	}
 *
 * REQUIRE returns from the function it stands in, so it may be used in a test function
 * (void) only; helpers return a value and the test requires it.  No exception passes a C frame.
 * Checks may be made on the test's own thread only.
 * SKIP("what is missing") ends the test and is counted apart.
 */
#ifndef NTRACE_TESTS_SHIM_H
#define NTRACE_TESTS_SHIM_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef void (*test_fn)(void);

void test_register(test_fn fn, const char *name, const char *tags, const char *file, int line);
bool test_check(bool ok, const char *text, const char *file, int line);
bool test_check_int(
	bool ok, long long a, long long b, const char *text, const char *file, int line);
bool test_check_str(const char *a, const char *b, const char *text, const char *file, int line);
void test_skip(const char *missing, const char *file, int line);
/* Adds a line that is shown when a later check of this test fails. */
void test_info(const char *format, ...) __attribute__((format(printf, 1, 2)));

#ifdef __cplusplus
}
#endif

#define TEST_CAT_(a, b) a##b
#define TEST_CAT(a, b) TEST_CAT_(a, b)
#define TEST_BODY_(fn, reg, name, tags)                            \
	static void fn(void);                                      \
	__attribute__((constructor)) static void reg(void)         \
	{                                                          \
		test_register(fn, name, tags, __FILE__, __LINE__); \
	}                                                          \
	static void fn(void)
#define TEST(name, tags) \
	TEST_BODY_(TEST_CAT(test_at_, __LINE__), TEST_CAT(register_at_, __LINE__), name, tags)

#define CHECK(x) ((void)test_check((x), #x, __FILE__, __LINE__))
/* Each argument is evaluated once; both are compared as long long. */
#define TEST_EQ_(a, b, text)                                                                    \
	({                                                                                      \
		long long shim_a_ = (long long)(a), shim_b_ = (long long)(b);                   \
		test_check_int(shim_a_ == shim_b_, shim_a_, shim_b_, text, __FILE__, __LINE__); \
	})
#define CHECK_EQ(a, b) ((void)TEST_EQ_(a, b, #a " == " #b))
#define CHECK_STR(a, b) ((void)test_check_str((a), (b), #a " equals " #b, __FILE__, __LINE__))
#define REQUIRE(x)                                            \
	do {                                                  \
		if (!test_check((x), #x, __FILE__, __LINE__)) \
			return;                               \
	} while (0)
#define REQUIRE_EQ(a, b)                           \
	do {                                       \
		if (!TEST_EQ_(a, b, #a " == " #b)) \
			return;                    \
	} while (0)
#define SKIP(missing)                                     \
	do {                                              \
		test_skip((missing), __FILE__, __LINE__); \
		return;                                   \
	} while (0)

#endif
