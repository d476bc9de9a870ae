/* SPDX-License-Identifier: Apache-2.0 */
/*
 * main.c - `make vmlinux-check BTF='FILE...'`: looks what our BPF objects want up in each file and tells what is not
 * there.  Exit status: 0 all is there, 1 something is missing, 2 usage, 3 a file cannot be read.
 */
#include <string.h>

#include "tests/btf/check.h"

static int check_file(const char *path, bool all)
{
	const void *bytes;
	const char *name;
	int status = 0;
	size_t size;

	for (unsigned i = 0; (name = btf_check_object(i, &bytes, &size)); i++) {
		struct btf_verdict v;
		int r = btf_check(bytes, size, path, stdout, all, &v);

		if (r) {
			fprintf(stderr, "%s: no type information can be read: %s\n", path,
				strerror(-r));
			return 3;
		}
		printf("%s: %s: %u wanted, %u found, %u absent as foreseen, %u missing, %u of "
		       "another size\n",
			path, name, v.wanted, v.found, v.guarded, v.missing, v.other);
		if (v.missing || v.other)
			status = 1;
	}
	return status;
}

int main(int argc, char **argv)
{
	bool all = argc > 1 && strcmp(argv[1], "--all") == 0;
	int status = 0;

	if (argc < 2 + all) {
		fprintf(stderr, "usage: vmlinux-check [--all] BTF...\n");
		return 2;
	}
	for (int i = 1 + all; i < argc; i++) {
		int s = check_file(argv[i], all);

		status = s > status ? s : status;
	}
	return status;
}
