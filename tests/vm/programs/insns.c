/* SPDX-License-Identifier: Apache-2.0 */
/*
 * insns.c - which BPF programs are loaded, and how many instructions the verifier walked for each.
 *
 * A line per program: name (the kernel keeps 15 characters), instructions.  Static, for guests.  Exit status: 0, or 1
 * when the kernel refuses.
 */
#include <errno.h>
#include <linux/bpf.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int bpf(int cmd, union bpf_attr *attr)
{
	return (int)syscall(SYS_bpf, cmd, attr, sizeof(*attr));
}

int main(void)
{
	union bpf_attr at = {0};

	while (bpf(BPF_PROG_GET_NEXT_ID, &at) == 0) {
		union bpf_attr open = {.prog_id = at.next_id};
		struct bpf_prog_info info = {0};
		union bpf_attr ask = {.info = {.info_len = sizeof(info), .info = (uintptr_t)&info}};
		int fd = bpf(BPF_PROG_GET_FD_BY_ID, &open);

		at.start_id = at.next_id;
		if (fd < 0)
			continue; /* gone meanwhile */
		ask.info.bpf_fd = (uint32_t)fd;
		if (bpf(BPF_OBJ_GET_INFO_BY_FD, &ask) == 0)
			printf("%s %u\n", info.name, info.verified_insns);
		close(fd);
	}
	if (errno == ENOENT)
		return 0;
	perror("bpf");
	return 1;
}
