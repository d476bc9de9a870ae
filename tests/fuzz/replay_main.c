/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay_main.c - runs a fuzz target over files: the corpus as an ordinary test, without libFuzzer.
 *
 * Usage: <target> FILE...     A finding ends the program; the last line then names the file.
 */
#include "runtime/base/file.h"
#include "tests/fuzz/fuzz.h"

#define MAX_FILE ((size_t)64 << 20)

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		_cleanup_free_ char *data = NULL;
		_cleanup_free_ uint8_t *exact = NULL; /* so that a sanitizer sees a byte too far */
		size_t size;

		if (file_read(argv[i], MAX_FILE, &data, &size) < 0 ||
			!(exact = malloc(size ? size : 1))) {
			fprintf(stderr, "%s: cannot be read\n", argv[i]);
			return 2;
		}
		memcpy(exact, data, size);
		printf("%s\n", argv[i]);
		fflush(stdout);
		LLVMFuzzerTestOneInput(exact, size);
	}
	return 0;
}
