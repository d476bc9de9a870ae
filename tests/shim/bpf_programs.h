/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bpf_programs.h - what the kernel says of the programs of a loaded BPF object: how many instructions the verifier
 * walked for each, and what was measured of them in earlier builds (tests/bpf_insns.txt).  Header only.
 *
 * The numbers are of one kernel version: another verifier walks otherwise.  A line of the file is
 *
 *	<kernel major.minor> <program> <instructions>
 */
#ifndef NTRACE_TESTS_BPF_PROGRAMS_H
#define NTRACE_TESTS_BPF_PROGRAMS_H

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#define BPF_INSNS_FILE "tests/bpf_insns.txt"

/* Instructions that the verifier walked; 0 if the program is not loaded or the kernel is older than 5.16. */
static inline uint32_t program_verified(const struct bpf_program *prog)
{
	struct bpf_prog_info info = {0};
	uint32_t size = sizeof(info);
	int fd = bpf_program__fd(prog);

	if (fd < 0 || bpf_obj_get_info_by_fd(fd, &info, &size) < 0)
		return 0;
	return info.verified_insns;
}

/* Major and minor number of the running kernel, as the file has them. */
static inline void kernel_name(char *ret, size_t size)
{
	int major = 0, minor = 0;
	struct utsname u;

	uname(&u);
	if (sscanf(u.release, "%d.%d", &major, &minor) != 2)
		major = minor = 0;
	snprintf(ret, size, "%d.%d", major, minor);
}

/* What the file says of a program on a kernel: 0 if nothing. */
static inline uint32_t acknowledged_insns(FILE *file, const char *kernel, const char *program)
{
	char line[256], k[16], p[64];
	uint32_t n;

	rewind(file);
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, "%15s %63s %u", k, p, &n) == 3 && strcmp(k, kernel) == 0 &&
			strcmp(p, program) == 0)
			return n;
	return 0;
}

#endif
