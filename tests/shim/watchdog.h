/* SPDX-License-Identifier: Apache-2.0 */
/* watchdog.h - see watchdog.c */
#ifndef NTRACE_TESTS_WATCHDOG_H
#define NTRACE_TESTS_WATCHDOG_H

#ifdef __cplusplus
extern "C" {
#endif

void watchdog_start(void);
/* This test begins; what was before it has ended. */
void watchdog_test(const char *name);

#ifdef __cplusplus
}
#endif

#endif
