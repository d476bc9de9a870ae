/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bpf_insns_test.c - what the verifier does for our programs does not creep up.
 *
 * The numbers that were looked at and accepted stand in tests/bpf_insns.txt.  A program that takes over a tenth
 * more fails here until its line is changed; so does one without a line, on a kernel that has others.  Programs at
 * fentry and fexit are not among them: they load where their function is, and share their bodies with those at
 * kprobes, which are.
 */
#include <unistd.h>

#include "agent/collect/bpf_support.h"
#include "tests/btf/check.h"
#include "tests/shim/bpf_programs.h"
#include "tests/shim/shim.h"

/* The driver's structures, so that no program is shorter than it is where there is a driver. */
#define DRIVER_BTF "tests/btf/neuron-2.30.btf"

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

static void check_program(struct tally *t, const char *object, const struct bpf_program *prog)
{
	uint32_t now = program_verified(prog), was;
	char name[64];

	if (!now)
		return; /* not loaded */
	snprintf(name, sizeof(name), "%s/%s", object, bpf_program__name(prog));
	was = acknowledged_insns(t->file, t->kernel, name);
	printf("bpf: %s %s %u\n", t->kernel, name, now);
	t->programs++;
	if (!t->known)
		return;
	test_info("%s: the verifier walks %u instructions, " BPF_INSNS_FILE " says %u", name, now,
		was);
	CHECK(was != 0);
	CHECK(now <= was + was / 10);
}

/* Loads what can be loaded without the driver: all but what hangs on its functions by BTF. */
static void check_object(struct tally *t, const char *name, const void *bytes, size_t size)
{
	LIBBPF_OPTS(bpf_object_open_opts, opts);
	struct bpf_program *prog;
	struct bpf_object *object;

	if (strcmp(name, "ioctl") != 0)
		opts.btf_custom_path = DRIVER_BTF;
	object = bpf_object__open_mem(bytes, size, &opts);
	REQUIRE(object != NULL);
	bpf_object__for_each_program(prog, object)
	{
		if (opts.btf_custom_path && bpf_program__type(prog) == BPF_PROG_TYPE_TRACING)
			bpf_program__set_autoload(prog, false);
	}
	test_info("%s: %s", name, bpf_log_last());
	CHECK_EQ(bpf_object__load(object), 0);
	bpf_object__for_each_program(prog, object)
	{
		check_program(t, name, prog);
	}
	bpf_object__close(object);
}

TEST("bpf: the verifier walks at most a tenth more instructions than were accepted", "[bpf][insns]")
{
	struct tally t = {.programs = 0};
	const void *bytes;
	const char *name;
	size_t size;

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
	for (unsigned i = 0; (name = btf_check_object(i, &bytes, &size)); i++)
		check_object(&t, name, bytes, size);
	CHECK(t.programs >= 30);
	fclose(t.file);
	if (!t.known)
		SKIP("lines of this kernel in " BPF_INSNS_FILE " (the numbers are printed)");
}
