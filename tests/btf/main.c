/* SPDX-License-Identifier: Apache-2.0 */
/*
 * main.c - `make vmlinux-check BTF='KERNEL MODULE...'`: looks what our BPF objects want up on the machine that these BTF
 * files describe, and tells what is not there.  Exit status: 0 all is there, 1 something is missing, 2 usage, 3 a file
 * cannot be read.
 */
#include <string.h>

#include "tests/btf/check.h"

int main(int argc, char **argv)
{
	bool all = argc > 1 && strcmp(argv[1], "--all") == 0;
	const char *const *paths = (const char *const *)argv + 1 + all;
	const void *bytes;
	const char *name;
	int status = 0;
	size_t size;

	if (argc < 2 + all) {
		fprintf(stderr, "usage: vmlinux-check [--all] KERNEL-BTF [MODULE-BTF...]\n");
		return 2;
	}
	for (unsigned i = 0; (name = btf_check_object(i, &bytes, &size)); i++) {
		struct btf_verdict v;
		int r = btf_check(bytes, size, paths, stdout, all, &v);

		if (r) {
			fprintf(stderr, "vmlinux-check: no type information in %s: %s\n",
				argv[1 + all], strerror(-r));
			return 3;
		}
		printf("%s: %u wanted, %u found, %u absent as foreseen, %u missing, %u of another "
		       "size\n",
			name, v.wanted, v.found, v.guarded, v.missing, v.other);
		if (v.missing || v.other)
			status = 1;
	}
	return status;
}
