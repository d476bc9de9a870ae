/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bpf_driver_test.c - the programs on the driver's file operations, driven call by call on the host: the same
 * operation by fentry and by kprobe, beside the system-call level, and where the driver's layout is not known.
 */
#include "bpf/driver.skel.h"
#include "tests/unit/bpf_fixture.h"

typedef unsigned long long trace_ctx[6];

int ioctl_fentry(trace_ctx ctx);
int ioctl_fexit(trace_ctx ctx);
int open_fentry(trace_ctx ctx);
int open_fexit(trace_ctx ctx);
int flush_fentry(trace_ctx ctx);
int flush_fexit(trace_ctx ctx);
int release_fentry(trace_ctx ctx);
int release_fexit(trace_ctx ctx);
int mmap_fentry(trace_ctx ctx);
int mmap_fexit(trace_ctx ctx);
int ioctl_kprobe(struct bpf_regs *ctx);
int open_kprobe(struct bpf_regs *ctx);
int flush_kprobe(struct bpf_regs *ctx);
int release_kprobe(struct bpf_regs *ctx);
int mmap_kprobe(struct bpf_regs *ctx);
int file_kret(struct bpf_regs *ctx);
extern volatile uint64_t bpf_host_driver_known_numbers[4];

#define TGID BPF_TEST_TGID
#define ADDRESS 0x7ffc00001000ull
#define MINOR 7u  /* of the node */
#define INDEX 12u /* what the driver's structure says: not the minor, so that a test can tell */

enum level { BY_FENTRY, BY_KPROBE, LEVELS };
enum op { OP_IOCTL, OP_OPEN, OP_FLUSH, OP_RELEASE, OP_MMAP, OPS };

static const struct {
	const char *name;
	uint32_t request; /* 0: that of the call */
	int (*fentry)(trace_ctx ctx);
	int (*fexit)(trace_ctx ctx);
	int (*kprobe)(struct bpf_regs *ctx);
	unsigned nargs; /* of the function */
	bool inode_first;
} ops[OPS] = {
	[OP_IOCTL] = {"ioctl", 0, ioctl_fentry, ioctl_fexit, ioctl_kprobe, 3, false},
	[OP_OPEN] = {"open", NEV_OP_REQUEST(NEV_OP_OPEN), open_fentry, open_fexit, open_kprobe, 2,
		true},
	[OP_FLUSH] = {"flush", NEV_OP_REQUEST(NEV_OP_FLUSH), flush_fentry, flush_fexit,
		flush_kprobe, 2, false},
	[OP_RELEASE] = {"release", NEV_OP_REQUEST(NEV_OP_RELEASE), release_fentry, release_fexit,
		release_kprobe, 2, true},
	[OP_MMAP] = {"mmap", NEV_OP_REQUEST(NEV_OP_MMAP), mmap_fentry, mmap_fexit, mmap_kprobe, 2,
		false},
};

static struct bpf_host_file node = {.mode = S_IFCHR | 0600, .rdev = 246u << 20 | MINOR, .flags = 2};
extern volatile uint32_t bpf_host_driver_rate_ceiling;

static void *device, *file;

/* A driver that has opened the file; flags are those of open(2). */
static bool open_driver(unsigned flags)
{
	size_t size;
	const void *elf = driver_bpf__elf_bytes(&size);

	if (!bpf_test_open(65536, 16) || bpf_host_add(elf, size))
		return false;
	bpf_host_driver_rate_ceiling = 0;
	ioctl_numbers((uint64_t *)bpf_host_driver_known_numbers);
	device = bpf_host_neuron_device(INDEX);
	node.flags = flags;
	node.private_data = bpf_host_ncdev(device);
	file = bpf_host_task_file(bpf_host.task, BPF_TEST_FD, &node);
	return true;
}

static void enter_op(enum level level, enum op op, uint64_t second, uint64_t third)
{
	uint64_t inode = (uintptr_t)bpf_host_file_inode(file), f = (uintptr_t)file;
	uint64_t first = ops[op].inode_first ? inode : f;

	if (ops[op].inode_first)
		second = f;
	if (level == BY_FENTRY)
		CHECK_EQ(ops[op].fentry((trace_ctx){first, second, third}), 0);
	else
		CHECK_EQ(ops[op].kprobe(&(struct bpf_regs){.di = first, .si = second, .dx = third}),
			0);
}

static void exit_op(enum level level, enum op op, long result)
{
	trace_ctx ctx = {0};

	ctx[ops[op].nargs] = (unsigned long long)result;
	if (level == BY_FENTRY)
		CHECK_EQ(ops[op].fexit(ctx), 0);
	else
		CHECK_EQ(file_kret(&(struct bpf_regs){.ax = (unsigned long)result}), 0);
}

static const struct nev_ioctl *ioctl_by(enum level level, uint32_t request, long result)
{
	enter_op(level, OP_IOCTL, request, ADDRESS);
	exit_op(level, OP_IOCTL, result);
	return bpf_test_take();
}

TEST("bpf driver: each file operation gives one record, by fentry and by kprobe alike",
	"[bpf][bpf-host]")
{
	for (int level = 0; level < LEVELS; level++)
		for (int op = 0; op < OPS; op++) {
			uint64_t vma, start;
			const struct nev_ioctl *e;

			REQUIRE(open_driver(2));
			vma = (uintptr_t)bpf_host_vma(0x7f0000000000, 0x7f0000003000, 0x123456);
			start = bpf_host.boot_ns;
			test_info("%s, level %d", ops[op].name, level);
			enter_op((enum level)level, (enum op)op,
				op == OP_MMAP ? vma : NEURON_IOCTL_DEVICE_INFO, 0);
			CHECK_EQ(bpf_test_open_calls(), 1);
			exit_op((enum level)level, (enum op)op, -5);
			e = bpf_test_take();
			REQUIRE(e != NULL);
			CHECK_EQ(e->request,
				op == OP_IOCTL ? NEURON_IOCTL_DEVICE_INFO : ops[op].request);
			CHECK_EQ(e->start_ns, start);
			CHECK_EQ(e->result, -5);
			CHECK_EQ(e->tgid, TGID);
			CHECK_EQ(e->tid, TGID);
			CHECK_EQ(e->device, INDEX);
			CHECK_EQ(e->flags, NEV_F_WORK);
			CHECK_EQ(e->fd, NEV_FD_UNKNOWN);
			CHECK_EQ(e->hdr.nargs, op == OP_MMAP ? 2 : 0);
			if (op == OP_MMAP) {
				CHECK_EQ(e->args[0], 0x123456000);
				CHECK_EQ(e->args[1], 0x3000);
			}
			CHECK(bpf_test_balanced());
			bpf_test_close();
		}
}

TEST("bpf driver: calls of a program decode as on the system-call level", "[bpf][bpf-host]")
{
	for (int level = 0; level < LEVELS; level++)
		for (size_t i = 0; i < ioctl_row_count; i++) {
			const struct ioctl_row *row = &ioctl_rows[i];
			struct nev_request q = ioctl_request(row);
			uint8_t *bytes, nothing[8] = {0};
			const struct nev_ioctl *e;

			REQUIRE(open_driver(2));
			bytes = bpf_host_alloc(q.span);
			for (unsigned k = 0; k < q.span; k++)
				bytes[k] = (uint8_t)(0xf0 - k);
			bpf_host_user_map(ADDRESS, bytes, q.span);
			bpf_host_user_map(ADDRESS + 4096, nothing, sizeof(nothing));
			e = ioctl_by((enum level)level, row->cmd, 1);
			test_info("row %s", row->name);
			REQUIRE(e != NULL);
			CHECK_EQ(e->hdr.nargs, q.nargs);
			CHECK_EQ(e->flags, NEV_F_WORK);
			CHECK_EQ(e->result, 1);
			for (unsigned f = 0; f < e->hdr.nargs; f++) {
				uint64_t want = 0;

				memcpy(&want, bytes + q.args[f].offset, q.args[f].width);
				CHECK_EQ(e->args[f], want);
			}
			bpf_test_close();
		}
}

TEST("bpf driver: a handle that the driver gave back is read where the pointer leads, if the call "
     "went well",
	"[bpf][bpf-host]")
{
	static const struct {
		long result;
		bool mapped;
		bool told;
	} cases[] = {{0, true, true}, {-12, true, false}, {0, false, false}, {14, true, false}};
	const uint64_t handle = 0xfeedbeef12345678;
	uint8_t arg[NEV_ARG_BYTES] = {0};
	struct nev_request q = ioctl_request(ioctl_row_find(NEURON_IOCTL_MEM_ALLOC));
	const uint64_t pointer = ADDRESS + 8192;

	REQUIRE(q.out != 0);
	memcpy(arg + q.out, &pointer, sizeof(pointer));
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct nev_ioctl *e;

		REQUIRE(open_driver(2));
		bpf_host_user_map(ADDRESS, arg, sizeof(arg));
		enter_op(BY_FENTRY, OP_IOCTL, NEURON_IOCTL_MEM_ALLOC, ADDRESS);
		if (cases[i].mapped)
			bpf_host_user_map(pointer, &handle, sizeof(handle));
		exit_op(BY_FENTRY, OP_IOCTL, cases[i].result);
		e = bpf_test_take();
		test_info("case %zu", i);
		REQUIRE(e != NULL);
		CHECK_EQ(e->flags, NEV_F_WORK | (cases[i].told ? NEV_F_HANDLE_OUT : 0));
		CHECK_EQ(e->args[q.out_index], cases[i].told ? handle : 0);
		CHECK_EQ(bpf_test_counter(NEV_C_ARG_FAULT), !cases[i].mapped);
		bpf_test_close();
	}
}

TEST("bpf driver: a row that puts the handle beyond the record puts it nowhere", "[bpf][bpf-host]")
{
	uint32_t cmd = NEURON_IOCTL_MEM_ALLOC;
	struct nev_request q = ioctl_request(ioctl_row_find(cmd));
	uint64_t arg[8] = {0}, handle = 5;
	const struct nev_ioctl *e;

	REQUIRE(open_driver(2));
	arg[q.out / 8] = ADDRESS + 8192;
	q.out_index = NEV_MAX_ARGS;
	bpf_host_user_map(ADDRESS, arg, sizeof(arg));
	bpf_host_user_map(ADDRESS + 8192, &handle, sizeof(handle));
	CHECK_EQ(bpf_host_update("requests", &cmd, &q, 0), 0);
	e = ioctl_by(BY_KPROBE, cmd, 0);
	REQUIRE(e != NULL);
	CHECK_EQ(e->flags, NEV_F_WORK);
	bpf_test_close();
}

TEST("bpf driver: a known number with another size is told from one that nobody knows",
	"[bpf][bpf-host]")
{
	static const struct {
		uint32_t request;
		uint16_t flags;
	} cases[] = {
		{NEURON_IOCTL_MEM_COPY64 + (8u << 16), NEV_F_UNKNOWN | NEV_F_OTHER_SIZE},
		{NEURON_IOCTL_DMA_QUEUE_INIT_BATCH ^ (64u << 16), NEV_F_UNKNOWN | NEV_F_OTHER_SIZE},
		{0x80084eff, NEV_F_UNKNOWN}, /* no such number */
		{(NEURON_IOCTL_MEM_COPY64 & ~0xff00u) | 'M' << 8,
			NEV_F_UNKNOWN}, /* no such letter */
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct nev_ioctl *e;

		REQUIRE(open_driver(2));
		e = ioctl_by(BY_FENTRY, cases[i].request, -22);
		test_info("request 0x%x", cases[i].request);
		REQUIRE(e != NULL);
		CHECK_EQ(e->flags, NEV_F_WORK | cases[i].flags);
		CHECK_EQ(e->hdr.nargs, 0);
		bpf_test_close();
	}
}

TEST("bpf driver: a handle opened for writing alone is a query handle", "[bpf][bpf-host]")
{
	for (unsigned flags = 0; flags < 3; flags++) {
		const struct nev_ioctl *e;

		REQUIRE(open_driver(flags | 0x8000));
		e = ioctl_by(BY_FENTRY, NEURON_IOCTL_DEVICE_INFO, 0);
		REQUIRE(e != NULL);
		CHECK_EQ(e->flags, flags == 1 ? NEV_F_QUERY : NEV_F_WORK);
		bpf_test_close();
	}
}

TEST("bpf driver: the device is the driver's own number, or the node's where that cannot be had",
	"[bpf][bpf-host]")
{
	static const struct {
		const char *what;
		const char *absent;
		bool opened, present;
		uint32_t device;
	} cases[] = {
		{"known layout", NULL, true, true, INDEX},
		{"no BTF of the driver", "ncdev", true, true, MINOR},
		{"not yet opened", NULL, false, true, MINOR},
		{"the device is gone", NULL, true, false, MINOR},
		{"half of a BTF", "neuron_device", true, true, MINOR},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct nev_ioctl *e;

		REQUIRE(open_driver(2));
		bpf_host.absent = cases[i].absent;
		node.private_data =
			cases[i].opened ? bpf_host_ncdev(cases[i].present ? device : NULL) : NULL;
		file = bpf_host_task_file(bpf_host.task, BPF_TEST_FD, &node);
		for (int op = 0; op < OPS; op++) {
			uint64_t vma = (uintptr_t)bpf_host_vma(4096, 8192, 0);

			test_info("%s, %s", cases[i].what, ops[op].name);
			enter_op(BY_KPROBE, (enum op)op,
				op == OP_MMAP ? vma : NEURON_IOCTL_DEVICE_INFO, 0);
			exit_op(BY_KPROBE, (enum op)op, 0);
			e = bpf_test_take();
			REQUIRE(e != NULL);
			CHECK_EQ(e->device, cases[i].device);
		}
		bpf_test_close();
	}
}

TEST("bpf driver: a request that the driver does not have ends as the caller sees it",
	"[bpf][bpf-host]")
{
	REQUIRE(open_driver(2));
	for (int level = 0; level < LEVELS; level++) {
		const struct nev_ioctl *e = ioctl_by((enum level)level, 0x80084e28, -515);

		REQUIRE(e != NULL);
		CHECK_EQ(e->result, -ENOTTY);
	}
	bpf_test_close();
}

TEST("bpf driver: operations of a process that is not followed leave nothing", "[bpf][bpf-host]")
{
	REQUIRE(open_driver(2));
	bpf_host.tgid = 4000;
	for (int level = 0; level < LEVELS; level++)
		for (int op = 0; op < OPS; op++) {
			uint64_t vma = (uintptr_t)bpf_host_vma(4096, 8192, 0);

			enter_op((enum level)level, (enum op)op,
				op == OP_MMAP ? vma : NEURON_IOCTL_DEVICE_INFO, 0);
			exit_op((enum level)level, (enum op)op, 0);
		}
	CHECK(bpf_test_take() == NULL);
	CHECK_EQ(bpf_test_counter(NEV_C_ENTERED), 0);
	bpf_test_close();
}

/* ---- two levels at once -------------------------------------------------------------------- */

static void set_overlap(uint64_t on)
{
	for (uint32_t cpu = 0; cpu < BPF_TEST_CPUS; cpu++)
		((struct nev_cpu *)bpf_host_lookup("cpus", &cpu))->overlap = on;
}

TEST("bpf driver: while two levels watch, a call is taken by the first and by no second",
	"[bpf][bpf-host]")
{
	const struct nev_file_key chr = {.dev = 246u << 20 | MINOR, .is_chr = 1};
	const struct nev_ioctl *e;

	REQUIRE(open_driver(2));
	REQUIRE(bpf_test_device(&chr, INDEX));
	set_overlap(1);
	bpf_test_enter(BPF_TEST_FD, NEURON_IOCTL_DEVICE_INFO, ADDRESS);
	enter_op(BY_FENTRY, OP_IOCTL, NEURON_IOCTL_DEVICE_INFO, ADDRESS);
	enter_op(BY_KPROBE, OP_IOCTL, NEURON_IOCTL_DEVICE_INFO, ADDRESS);
	exit_op(BY_KPROBE, OP_IOCTL, 0);
	exit_op(BY_FENTRY, OP_IOCTL, 0);
	CHECK(bpf_test_take() == NULL);
	bpf_test_exit(0);
	e = bpf_test_take();
	REQUIRE(e != NULL);
	CHECK_EQ(e->fd, BPF_TEST_FD);
	CHECK(bpf_test_take() == NULL);
	/* One alone is taken as ever, also after a return that nobody saw. */
	enter_op(BY_FENTRY, OP_IOCTL, NEURON_IOCTL_DEVICE_INFO, ADDRESS);
	CHECK(ioctl_by(BY_FENTRY, NEURON_IOCTL_DEVICE_INFO, 0) != NULL);
	CHECK_EQ(bpf_test_counter(NEV_C_ENTERED), 3);
	CHECK_EQ(bpf_test_counter(NEV_C_LOST_EXIT), 1);
	CHECK(bpf_test_balanced());
	bpf_test_close();
}

TEST("bpf driver: while two levels watch, a call beyond the ceiling is counted once",
	"[bpf][bpf-host]")
{
	REQUIRE(open_driver(2));
	bpf_host_driver_rate_ceiling = 1;
	set_overlap(1);
	for (int n = 0; n < 4; n++) {
		enter_op(BY_FENTRY, OP_IOCTL, NEURON_IOCTL_DEVICE_INFO, ADDRESS);
		enter_op(BY_KPROBE, OP_IOCTL, NEURON_IOCTL_DEVICE_INFO, ADDRESS);
		exit_op(BY_KPROBE, OP_IOCTL, 0);
		exit_op(BY_FENTRY, OP_IOCTL, 0);
	}
	/* Another thread, which has made no call yet. */
	bpf_host.tid++;
	enter_op(BY_KPROBE, OP_IOCTL, NEURON_IOCTL_DEVICE_INFO, ADDRESS);
	enter_op(BY_FENTRY, OP_IOCTL, NEURON_IOCTL_DEVICE_INFO, ADDRESS);
	exit_op(BY_FENTRY, OP_IOCTL, 0);
	exit_op(BY_KPROBE, OP_IOCTL, 0);
	/* The next one is seen by the other level alone. */
	set_overlap(0);
	enter_op(BY_FENTRY, OP_IOCTL, NEURON_IOCTL_DEVICE_INFO, ADDRESS);
	exit_op(BY_FENTRY, OP_IOCTL, 0);
	CHECK_EQ(bpf_test_counter(NEV_C_ENTERED), 6);
	CHECK_EQ(bpf_test_counter(NEV_C_DONE), 1);
	CHECK_EQ(bpf_test_counter(NEV_C_LOST_RATE), 5);
	CHECK_EQ(bpf_test_open_calls(), 0);
	CHECK(bpf_test_balanced());
	bpf_host_driver_rate_ceiling = 0;
	bpf_test_close();
}

TEST("bpf driver: an ioctl that has the number of a file operation is an ioctl", "[bpf][bpf-host]")
{
	for (uint32_t small = 0; small < 8; small++) {
		const struct nev_ioctl *e;

		REQUIRE(open_driver(2));
		e = ioctl_by(BY_FENTRY, small, -25);
		REQUIRE(e != NULL);
		CHECK_EQ(e->request, small);
		CHECK_EQ(e->flags & NEV_F_UNKNOWN, NEV_F_UNKNOWN);
		bpf_test_close();
	}
}

TEST("bpf driver: another call of the thread on another level is not taken for the same",
	"[bpf][bpf-host]")
{
	static const struct {
		uint32_t request, device;
		bool overlap;
	} cases[] = {
		{NEURON_IOCTL_DEVICE_BDF, INDEX, true},	 /* another request */
		{NEURON_IOCTL_DEVICE_INFO, MINOR, true}, /* another device */
		{NEURON_IOCTL_DEVICE_INFO, INDEX, false},
	};
	const struct nev_file_key chr = {.dev = 246u << 20 | MINOR, .is_chr = 1};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		REQUIRE(open_driver(2));
		REQUIRE(bpf_test_device(&chr, cases[i].device));
		set_overlap(cases[i].overlap);
		bpf_test_enter(BPF_TEST_FD, cases[i].request, ADDRESS);
		enter_op(BY_KPROBE, OP_IOCTL, NEURON_IOCTL_DEVICE_INFO, ADDRESS);
		test_info("case %zu", i);
		CHECK_EQ(bpf_test_counter(NEV_C_LOST_EXIT), 1);
		bpf_test_exit(0); /* not of the level that entered */
		CHECK(bpf_test_take() == NULL);
		exit_op(BY_KPROBE, OP_IOCTL, 0);
		CHECK(bpf_test_take() != NULL);
		CHECK(bpf_test_balanced());
		bpf_test_close();
	}
}

TEST("bpf driver: without a place for the CPU nothing is recorded and nothing breaks",
	"[bpf][bpf-host]")
{
	REQUIRE(open_driver(2));
	bpf_host.cpu = BPF_TEST_CPUS;
	for (int level = 0; level < LEVELS; level++)
		for (int op = 0; op < OPS; op++) {
			uint64_t vma = (uintptr_t)bpf_host_vma(4096, 8192, 0);

			enter_op((enum level)level, (enum op)op,
				op == OP_MMAP ? vma : NEURON_IOCTL_DEVICE_INFO, 0);
			exit_op((enum level)level, (enum op)op, 0);
		}
	bpf_host.cpu = 0;
	enter_op(BY_FENTRY, OP_OPEN, 0, 0);
	bpf_host.cpu = BPF_TEST_CPUS;
	exit_op(BY_FENTRY, OP_OPEN, 0);
	CHECK(bpf_test_take() == NULL);
	CHECK_EQ(bpf_test_open_calls(), 1);
	bpf_test_close();
}

/* ---- preempted ------------------------------------------------------------------------------ */

#define OTHER 4711u /* a thread of the process */
#define OTHER_ADDRESS (ADDRESS + 4096)

static uint64_t entering(void)
{
	uint32_t zero = 0;

	return ((const struct nev_cpu *)bpf_host_lookup("cpus", &zero))
		->entering_ns[NEV_ENTERING_IOCTL];
}

/* Another thread runs on the CPU; when it is done, a reader must still see the first on its way. */
static void open_meanwhile(void)
{
	bpf_host.tid = OTHER;
	enter_op(BY_FENTRY, OP_OPEN, 0, 0);
	exit_op(BY_FENTRY, OP_OPEN, 0);
	bpf_host.tid = TGID;
	CHECK_EQ(entering(), 1);
}

static void call_meanwhile(void)
{
	bpf_host.tid = OTHER;
	bpf_test_enter(BPF_TEST_FD, NEURON_IOCTL_MEM_COPY64, OTHER_ADDRESS);
	bpf_test_exit(0);
	bpf_host.tid = TGID;
	CHECK(entering() > 1);
}

TEST("bpf driver: a call that is preempted on its way in is still seen there, and keeps its "
     "arguments",
	"[bpf][bpf-host]")
{
	const struct nev_file_key chr = {.dev = 246u << 20 | MINOR, .is_chr = 1};
	uint8_t bytes[2][NEV_ARG_BYTES];
	const struct nev_ioctl *e;

	REQUIRE(open_driver(2));
	REQUIRE(bpf_test_device(&chr, INDEX));
	for (unsigned i = 0; i < 2; i++) {
		memset(bytes[i], 0x11 * (int)(i + 1), sizeof(bytes[i]));
		bpf_host_user_map(i ? OTHER_ADDRESS : ADDRESS, bytes[i], sizeof(bytes[i]));
	}
	bpf_host.at_clock = open_meanwhile;
	bpf_host.at_read = call_meanwhile;
	enter_op(BY_FENTRY, OP_IOCTL, NEURON_IOCTL_MEM_COPY64, ADDRESS);
	CHECK_EQ(entering(), 0);
	exit_op(BY_FENTRY, OP_IOCTL, 0);
	CHECK_EQ(bpf_test_take()->request, NEV_OP_REQUEST(NEV_OP_OPEN));
	for (unsigned i = 0; i < 2; i++) {
		e = bpf_test_take();
		REQUIRE(e != NULL);
		CHECK_EQ(e->tid, i ? TGID : OTHER);
		CHECK_EQ(e->args[0] & 0xff, i ? 0x11 : 0x22);
	}
	CHECK(bpf_test_balanced());
	bpf_test_close();
}
