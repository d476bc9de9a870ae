/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bpf_insns_test.c - what the verifier does for our programs does not creep up.
 *
 * The numbers that were looked at and accepted stand in tests/bpf_insns.txt.  A program that takes over a tenth
 * more fails here until its line is changed; so does one without a line, on a kernel that has others.
 */
#include <unistd.h>

#include "agent/collect/bpf_support.h"
#include "bpf/ioctl.skel.h"
#include "tests/shim/bpf_programs.h"
#include "tests/shim/shim.h"

struct tally {
	char kernel[16];
	FILE *file;
	bool known; /* the file has lines of this kernel */
	unsigned programs;
};

static bool any_line_of(FILE *file, const char *kernel)
{
	char line[256], k[16];

	while (fgets(line, sizeof(line), file))
		if (sscanf(line, "%15s", k) == 1 && strcmp(k, kernel) == 0)
			return true;
	return false;
}

static void check_programs(struct tally *t, const struct bpf_object *object)
{
	struct bpf_program *prog;

	bpf_object__for_each_program(prog, object)
	{
		uint32_t now = program_verified(prog), was;

		if (!now)
			continue; /* not loaded */
		was = acknowledged_insns(t->file, t->kernel, bpf_program__name(prog));
		printf("bpf: %s %s %u\n", t->kernel, bpf_program__name(prog), now);
		t->programs++;
		if (!t->known)
			continue;
		test_info("%s: the verifier walks %u instructions, " BPF_INSNS_FILE " says %u",
			bpf_program__name(prog), now, was);
		CHECK(was != 0);
		CHECK(now <= was + was / 10);
	}
}

TEST("bpf: the verifier walks at most a tenth more instructions than were accepted", "[bpf][insns]")
{
	struct tally t = {.programs = 0};
	struct ioctl_bpf *ioctl;

	if (geteuid() != 0)
		SKIP("root (BPF programs)");
	if (access(BPF_KERNEL_BTF, R_OK) < 0)
		SKIP("kernel BTF (" BPF_KERNEL_BTF ")");
	t.file = fopen(BPF_INSNS_FILE, "re");
	if (!t.file)
		SKIP("the source tree (run from its top)");
	kernel_name(t.kernel, sizeof(t.kernel));
	t.known = any_line_of(t.file, t.kernel);
	bpf_log_capture();
	ioctl = ioctl_bpf__open_and_load();
	CHECK(ioctl != NULL);
	if (ioctl)
		check_programs(&t, ioctl->obj);
	ioctl_bpf__destroy(ioctl);
	CHECK(t.programs >= 5);
	fclose(t.file);
}
