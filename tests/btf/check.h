/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check.h - would the loader find, on another machine, what our BPF programs read of its kernel and driver?
 *
 * A BPF object lists every member, type and offset that it wants looked up when it is loaded (CO-RE relocations).
 * Here they are looked up in a BTF file instead, without a kernel: by the rules of the loader, and beyond them also
 * that a member has there the size that the program reads.
 */
#ifndef NTRACE_TESTS_BTF_CHECK_H
#define NTRACE_TESTS_BTF_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct btf_verdict {
	unsigned wanted;  /* relocations of the object */
	unsigned found;	  /* looked up with success */
	unsigned guarded; /* not there, but the object asks whether they are */
	unsigned missing; /* not there, and the program relies on them */
	unsigned other;	  /* there with another size */
};

/* Looks up what `object` (the bytes of a BPF object) wants on the machine that `paths` describe: a BTF file of its kernel
 * and then those of modules, raw or the section .BTF of an ELF file, as far as NULL.  A module's may be based on the
 * kernel's, as the kernel itself shows it, or stand alone.  Each name that is missing or of another size is a line in `report` (may be NULL); with `all`, each
 * that is found too.  0 and the verdict, or -errno when one of the two cannot be read. */
int btf_check(const void *object, size_t size, const char *const *paths, FILE *report, bool all,
	struct btf_verdict *ret);

#define BTF_CHECK_FILES 4

/* The objects that a recording loads: NULL behind the last one. */
const char *btf_check_object(unsigned i, const void **ret_bytes, size_t *ret_size);

#endif
