/* SPDX-License-Identifier: Apache-2.0 */
/*
 * last_thread.h - a program whose main thread has ended by pthread_exit ends with the last of its
 * threads, though threads of the library are left.
 *
 * The C library calls exit(0) in the last thread that ends.  Those of ours never do by themselves,
 * and they block all signals, so such a program would stay for ever, and a SIGTERM would reach
 * nobody.  So when the main thread ends like that a thread begins that looks, ten times a second,
 * whether all that is left are threads of the library that have nothing to do for the program; it
 * then calls exit(0) in its stead, with the signal mask of the main thread.  A program that ends
 * otherwise has no such thread.
 *
 * Linux only: the number of threads is that of /proc/self/stat.  Without /proc nothing is done.  A
 * main thread that neither loads the library nor calls nrt_init is not seen to end; nor is one that ends by the system call
 * exit(2) itself, which runs no destructors: such a process stays until SIGKILL.
 */
#ifndef NTRACE_BASE_LAST_THREAD_H
#define NTRACE_BASE_LAST_THREAD_H

/* In the main thread: its end will be noticed.  In others nothing.  May be called again. */
void last_thread_watch(void);

/* One more thread of the library has nothing to do for the program: where it begins, or is done. */
void last_thread_rests(void);
/* One less: before it gets something to do for the program, or where it ends. */
void last_thread_works(void);

#endif
