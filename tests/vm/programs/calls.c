/* SPDX-License-Identifier: Apache-2.0 */
/*
 * calls.c - makes so many ioctls on a file, and says how they ended.
 *
 *	calls FILE COUNT REQUEST...	requests in hexadecimal, taken in turns; their argument is 256 zero bytes
 *
 * Prints `calls N`, and a line `errno E N` for each answer.  Knows nothing of tracing and of drivers; static, for
 * guests.  Exit status: 0, or 1 when the file cannot be opened.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>

#define MAX_ERRNO 200

int main(int argc, char **argv)
{
	static unsigned long answers[MAX_ERRNO];
	static char arg[256];
	unsigned long count = argc > 3 ? strtoul(argv[2], NULL, 10) : 0;
	int fd = argc > 3 ? open(argv[1], O_RDWR) : -1;

	if (fd < 0) {
		perror(argc > 3 ? argv[1] : "usage: calls FILE COUNT REQUEST...");
		return 1;
	}
	for (unsigned long i = 0; i < count; i++) {
		unsigned long request = strtoul(argv[3 + i % (unsigned)(argc - 3)], NULL, 16);
		int error = ioctl(fd, request, arg) < 0 ? errno : 0;

		answers[error < MAX_ERRNO ? error : 0]++;
	}
	printf("calls %lu\n", count);
	for (int e = 0; e < MAX_ERRNO; e++)
		if (answers[e])
			printf("errno %d %lu\n", e, answers[e]);
	return 0;
}
