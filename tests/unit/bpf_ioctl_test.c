/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bpf_ioctl_test.c - the system-call level programs, driven call by call: what they decode, what they
 * pass over, and what they count when something is full, broken or gone.
 *
 * They run as user code (tests/shim/bpf/), so each branch can be reached and the sanitizers see every
 * byte.  That the kernel takes them and calls them is for ioctl_hooks_test.c.
 */
#include "tests/unit/bpf_fixture.h"

#define DEVICE BPF_TEST_DEVICE
#define FD BPF_TEST_FD
#define TGID BPF_TEST_TGID
#define ADDRESS 0x7ffc00001000ull

/* ---- recorded calls ----------------------------------------------------------------------- */

struct call {
	uint32_t tid;
	unsigned fd;
	const char *name;
	uint32_t request;
	uint64_t address;
	long result;
	const char *bytes;
	unsigned nargs;
	uint64_t args[NEV_MAX_ARGS];
};

static const struct call calls[] = {
#define CALL(tid_, fd_, request_, address_, result_, bytes_, ...)             \
	{.tid = (tid_),                                                       \
		.fd = (fd_),                                                  \
		.name = #request_,                                            \
		.request = NEURON_IOCTL_##request_,                           \
		.address = (address_),                                        \
		.result = (result_),                                          \
		.bytes = (bytes_),                                            \
		.nargs = sizeof((int[]){0, ##__VA_ARGS__}) / sizeof(int) - 1, \
		.args = {__VA_ARGS__}},
#include "tests/unit/bpf_calls.def"
#undef CALL
};

#define CALLS (sizeof(calls) / sizeof(calls[0]))

/* The argument structure of a call, in memory that a reader beyond its end would be seen in. */
static void map_argument(const struct call *c)
{
	size_t size = strlen(c->bytes) / 2;
	uint8_t *bytes = bpf_host_alloc(size);

	for (size_t i = 0; i < size; i++) {
		const char digits[] = {c->bytes[2 * i], c->bytes[2 * i + 1], '\0'};

		bytes[i] = (uint8_t)strtoul(digits, NULL, 16);
	}
	bpf_host_user_map(c->address, bytes, size);
}

static void check_record(const struct nev_ioctl *e, const struct call *c, uint64_t start)
{
	test_info("%s of %u", c->name, c->tid);
	CHECK(e != NULL);
	if (!e)
		return;
	CHECK_EQ(e->hdr.type, NEV_IOCTL_DONE);
	CHECK_EQ(e->hdr.cpu, bpf_host.cpu);
	CHECK_EQ(e->hdr.nargs, c->nargs);
	CHECK_EQ(e->start_ns, start);
	CHECK_EQ(e->start_ns + e->duration_ns, e->hdr.time_ns);
	CHECK_EQ(e->tgid, TGID);
	CHECK_EQ(e->tid, c->tid);
	CHECK_EQ(e->request, c->request);
	CHECK_EQ(e->result, c->result);
	CHECK_EQ(e->device, DEVICE);
	CHECK_EQ(e->flags, 0);
	CHECK_EQ(e->fd, c->fd);
	for (unsigned i = 0; i < e->hdr.nargs && i < NEV_MAX_ARGS; i++)
		CHECK_EQ(e->args[i], c->args[i]);
}

TEST("bpf: a program's calls, played again, give one record each with their fields",
	"[bpf][bpf-host]")
{
	REQUIRE(bpf_test_open(65536, 16));
	bpf_host_task_file(bpf_host.task, 3, &bpf_test_node);
	for (size_t i = 0; i < CALLS; i++) {
		uint64_t start = bpf_host.boot_ns;

		bpf_test_become(calls[i].tid);
		map_argument(&calls[i]);
		bpf_test_enter(calls[i].fd, calls[i].request, calls[i].address);
		CHECK_EQ(bpf_test_open_calls(), 1);
		bpf_test_exit(calls[i].result);
		CHECK_EQ(bpf_test_open_calls(), 0);
		check_record(bpf_test_take(), &calls[i], start);
		bpf_host_user_unmap(calls[i].address);
	}
	CHECK(bpf_test_take() == NULL);
	CHECK_EQ(bpf_test_counter(NEV_C_DONE), CALLS);
	CHECK(bpf_test_balanced());
	bpf_test_close();
}

TEST("bpf: calls of several threads at once keep their own fields and come in the order of their "
     "ends",
	"[bpf][bpf-host]")
{
	size_t a = 0, b;

	REQUIRE(bpf_test_open(65536, 16));
	bpf_host_task_file(bpf_host.task, 3, &bpf_test_node);
	for (; a + 1 < CALLS; a++) {
		uint64_t start = bpf_host.boot_ns;

		b = a + 1;
		if (calls[a].tid == calls[b].tid || calls[a].address == calls[b].address)
			continue;
		map_argument(&calls[a]);
		map_argument(&calls[b]);
		bpf_test_become(calls[a].tid);
		bpf_test_enter(calls[a].fd, calls[a].request, calls[a].address);
		bpf_test_become(calls[b].tid);
		bpf_test_enter(calls[b].fd, calls[b].request, calls[b].address);
		bpf_test_exit(calls[b].result);
		bpf_test_become(calls[a].tid);
		bpf_test_exit(calls[a].result);
		check_record(bpf_test_take(), &calls[b], start + bpf_host.tick_ns);
		check_record(bpf_test_take(), &calls[a], start);
		bpf_host_user_unmap(calls[a].address);
		bpf_host_user_unmap(calls[b].address);
	}
	CHECK_EQ(bpf_test_counter(NEV_C_DONE) % 2, 0);
	CHECK(bpf_test_counter(NEV_C_DONE) >= 10);
	CHECK(bpf_test_balanced());
	bpf_test_close();
}

TEST("bpf: every request of the table is decoded by its own row and reads no byte more",
	"[bpf][bpf-host]")
{
	unsigned leading_nowhere = 0;

	REQUIRE(bpf_test_open(65536, 16));
	for (size_t i = 0; i < ioctl_row_count; i++) {
		const struct ioctl_row *row = &ioctl_rows[i];
		unsigned n = ioctl_row_fields(row), span = ioctl_request(row).span;
		uint8_t *bytes = bpf_host_alloc(span);
		const struct nev_ioctl *e;

		for (unsigned k = 0; k < span; k++)
			bytes[k] = (uint8_t)(0xf0 - k);
		bpf_host_user_map(ADDRESS, bytes, span);
		bpf_test_enter(FD, row->cmd, ADDRESS);
		bpf_test_exit(0);
		e = bpf_test_take();
		test_info("row %s", row->name);
		REQUIRE(e != NULL);
		CHECK_EQ(e->flags, 0);
		CHECK_EQ(e->hdr.nargs, ioctl_class(n));
		for (unsigned f = 0; f < e->hdr.nargs; f++) {
			uint64_t want = 0;

			if (f < n && !row->fields[f].is_out)
				memcpy(&want, bytes + row->fields[f].offset, row->fields[f].width);
			CHECK_EQ(e->args[f], want);
			leading_nowhere += f < n && row->fields[f].is_out;
		}
	}
	CHECK_EQ(bpf_test_counter(NEV_C_ARG_FAULT), leading_nowhere);
	bpf_test_close();
}

/* ---- what cannot be read ------------------------------------------------------------------ */

/* One call that returns `result`; its record. */
static const struct nev_ioctl *one_call(unsigned fd, uint32_t request, long result)
{
	bpf_test_enter(fd, request, ADDRESS);
	bpf_test_exit(result);
	return bpf_test_take();
}

TEST("bpf: a structure that faults, at its start or in its middle, leaves fields of 0 and is "
     "counted",
	"[bpf][bpf-host]")
{
	const struct ioctl_row *row = ioctl_row_find(NEURON_IOCTL_MEM_COPY64);
	unsigned span = ioctl_request(row).span;
	uint8_t bytes[NEV_ARG_BYTES];

	memset(bytes, 0xff, sizeof(bytes));
	for (unsigned have = 0; have <= span; have += span / 4) {
		const struct nev_ioctl *e;

		REQUIRE(bpf_test_open(65536, 16));
		if (have)
			bpf_host_user_map(ADDRESS, bytes, have);
		e = one_call(FD, row->cmd, -14);
		test_info("%u of %u bytes", have, span);
		REQUIRE(e != NULL);
		CHECK_EQ(e->hdr.nargs, 6);
		CHECK_EQ(e->flags, have == span ? 0 : NEV_F_ARG_FAULT);
		CHECK_EQ(e->args[0], have == span ? UINT64_MAX : 0);
		CHECK_EQ(e->result, -14);
		CHECK_EQ(bpf_test_counter(NEV_C_ARG_FAULT), have != span);
		CHECK(bpf_test_balanced());
		bpf_test_close();
	}
}

TEST("bpf: fields of one call do not shine through in the next that faults", "[bpf][bpf-host]")
{
	uint8_t bytes[NEV_ARG_BYTES];
	const struct nev_ioctl *e;

	REQUIRE(bpf_test_open(65536, 16));
	memset(bytes, 0x77, sizeof(bytes));
	bpf_host_user_map(ADDRESS, bytes, sizeof(bytes));
	e = one_call(FD, NEURON_IOCTL_MEM_COPY64, 0);
	REQUIRE(e != NULL);
	CHECK_EQ(e->args[0], 0x7777777777777777);
	bpf_host_user_unmap(ADDRESS);
	e = one_call(FD, NEURON_IOCTL_MEM_COPY64, 0);
	REQUIRE(e != NULL);
	for (unsigned i = 0; i < NEV_MAX_ARGS; i++)
		CHECK_EQ(e->args[i], 0);
	bpf_test_close();
}

TEST("bpf: a request without a row is recorded as unknown, one with an impossible row as "
     "unreadable",
	"[bpf][bpf-host]")
{
	const struct nev_request beyond = {
		.nargs = 2, .span = NEV_ARG_BYTES + 1, .args = {{.offset = 60, .width = 8}}};
	uint32_t cmd = NEURON_IOCTL_MEM_FREE;
	uint8_t bytes[2 * NEV_ARG_BYTES] = {1};
	const struct nev_ioctl *e;

	REQUIRE(bpf_test_open(65536, 16));
	bpf_host_user_map(ADDRESS, bytes, sizeof(bytes));
	e = one_call(FD, 0x4eff, -25);
	REQUIRE(e != NULL);
	CHECK_EQ(e->flags, NEV_F_UNKNOWN);
	CHECK_EQ(e->hdr.nargs, 0);
	CHECK_EQ(e->request, 0x4eff);
	CHECK_EQ(bpf_test_counter(NEV_C_ARG_FAULT), 0);
	CHECK_EQ(bpf_host_update("requests", &cmd, &beyond, 0), 0);
	e = one_call(FD, cmd, 0);
	REQUIRE(e != NULL);
	CHECK_EQ(e->flags, NEV_F_ARG_FAULT);
	CHECK_EQ(e->args[0], 0);
	bpf_test_close();
}

/* ---- which file, which process ------------------------------------------------------------ */

TEST("bpf: a device is known by its number, a file by file system and inode, all else passes by",
	"[bpf][bpf-host]")
{
	const struct bpf_host_file open_files[] = {
		{.mode = S_IFCHR | 0600, .rdev = 246u << 20 | 7},		    /* 0: neuron7 */
		{.mode = S_IFCHR | 0600, .rdev = 246u << 20 | 8},		    /* 1: other */
		{.mode = S_IFREG | 0600, .sdev = 0x2d, .ino = 43},		    /* 2: inode */
		{.mode = S_IFREG | 0600, .sdev = 0x2e, .ino = 42},		    /* 3: mount */
		{.mode = S_IFREG, .rdev = 246u << 20 | 7, .sdev = 0x2d, .ino = 99}, /* 4 */
		{.mode = S_IFCHR, .rdev = 1u << 20, .sdev = 0x2d, .ino = 42}, /* 5: file's inode */
	};
	const struct nev_file_key chr = {.dev = 246u << 20 | 7, .is_chr = 1};
	const struct nev_ioctl *e;

	REQUIRE(bpf_test_open(65536, 16));
	REQUIRE(bpf_test_device(&chr, 7));
	for (unsigned fd = 0; fd < 6; fd++) {
		unsigned at = fd < 5 ? fd : 6; /* 5 is the device's */

		bpf_host_task_file(bpf_host.task, at, &open_files[fd]);
		e = one_call(at, NEURON_IOCTL_DEVICE_INFO, 0);
		test_info("file %u", fd);
		CHECK((e != NULL) == (fd == 0));
		if (e)
			CHECK_EQ(e->device, 7);
	}
	e = one_call(FD, NEURON_IOCTL_DEVICE_INFO, 0);
	REQUIRE(e != NULL);
	CHECK_EQ(e->device, DEVICE);
	CHECK_EQ(bpf_test_counter(NEV_C_ENTERED), 2);
	bpf_test_close();
}

TEST("bpf: descriptors that are closed, beyond the table or unreadable are no device",
	"[bpf][bpf-host]")
{
	const void *table;

	REQUIRE(bpf_test_open(65536, 16));
	CHECK(one_call(4, NEURON_IOCTL_DEVICE_INFO, -9) == NULL);
	CHECK(one_call(16, NEURON_IOCTL_DEVICE_INFO, -9) == NULL);
	CHECK(one_call(0xffffffffu, NEURON_IOCTL_DEVICE_INFO, -9) == NULL);
	table = bpf_host_task_table(bpf_host.task);
	bpf_host_kernel_fault(table, 16 * sizeof(void *));
	CHECK(one_call(FD, NEURON_IOCTL_DEVICE_INFO, 0) == NULL);
	bpf_host_task_no_files(bpf_host.task);
	CHECK(one_call(FD, NEURON_IOCTL_DEVICE_INFO, -9) == NULL);
	CHECK_EQ(bpf_test_counter(NEV_C_ENTERED), 0);
	bpf_test_close();
}

TEST("bpf: a file whose inode cannot be read is no device", "[bpf][bpf-host]")
{
	const struct nev_file_key nothing = {0};

	REQUIRE(bpf_test_open(65536, 16));
	REQUIRE(bpf_test_device(&nothing, 9)); /* what a key of faults would find */
	bpf_host_kernel_fault(bpf_host_task_file(bpf_host.task, 4, &bpf_test_node), 1);
	CHECK(one_call(4, NEURON_IOCTL_DEVICE_INFO, 0) == NULL);
	bpf_test_close();
}

TEST("bpf: a process that is not followed costs one look-up and leaves nothing", "[bpf][bpf-host]")
{
	REQUIRE(bpf_test_open(65536, 16));
	bpf_host.tgid = bpf_host.tid = 4000;
	CHECK(one_call(FD, NEURON_IOCTL_DEVICE_INFO, 0) == NULL);
	CHECK_EQ(bpf_test_counter(NEV_C_ENTERED), 0);
	bpf_host_all_processes = true;
	CHECK(one_call(FD, NEURON_IOCTL_DEVICE_INFO, 0) != NULL);
	CHECK_EQ(bpf_test_counter(NEV_C_ENTERED), 1);
	bpf_test_close();
}

/* ---- what is full, broken or gone --------------------------------------------------------- */

TEST("bpf: a full ring takes as many records as fit, counts the rest and leaves a gap of that size",
	"[bpf][bpf-host]")
{
	static const struct {
		uint32_t request;
		unsigned nargs;
	} classes[] = {{NEURON_IOCTL_DEVICE_INFO, 0}, {NEURON_IOCTL_MEM_FREE, 2},
		{NEURON_IOCTL_MEM_BUF_COPY64, 4}, {NEURON_IOCTL_MEM_COPY64, 6}};
	uint8_t bytes[NEV_ARG_BYTES] = {0};

	for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++) {
		unsigned size = 56 + 8 * classes[i].nargs, fit = (4096 - 1) / (size + 8), n = 0;
		const struct nev_ioctl *e;

		REQUIRE(bpf_test_open(4096, 16));
		bpf_host_user_map(ADDRESS, bytes, sizeof(bytes));
		for (unsigned k = 0; k < 100; k++) {
			bpf_test_enter(FD, classes[i].request, ADDRESS);
			bpf_test_exit(0);
		}
		test_info("%u arguments", classes[i].nargs);
		CHECK_EQ(bpf_test_counter(NEV_C_DONE), fit);
		CHECK_EQ(bpf_test_counter(NEV_C_LOST_RING_FULL), 100 - fit);
		CHECK(bpf_test_balanced());
		for (; (e = bpf_test_take()); n++)
			CHECK_EQ(e->hdr.seq, n);
		CHECK_EQ(n, fit);
		e = one_call(FD, classes[i].request, 0);
		REQUIRE(e != NULL);
		CHECK_EQ(e->hdr.seq, 100);
		bpf_test_close();
	}
}

TEST("bpf: each CPU numbers its records and keeps its counters", "[bpf][bpf-host]")
{
	const struct nev_ioctl *e;
	uint32_t last = BPF_TEST_CPUS - 1;
	const struct nev_cpu *cpu;

	REQUIRE(bpf_test_open(65536, 16));
	CHECK(one_call(FD, NEURON_IOCTL_DEVICE_INFO, 0) != NULL);
	bpf_host.cpu = last;
	e = one_call(FD, NEURON_IOCTL_DEVICE_INFO, 0);
	REQUIRE(e != NULL);
	CHECK_EQ(e->hdr.cpu, last);
	CHECK_EQ(e->hdr.seq, 0);
	/* Entered here, returned there: the record is of where it returned. */
	bpf_test_enter(FD, NEURON_IOCTL_DEVICE_INFO, ADDRESS);
	bpf_host.cpu = 0;
	bpf_test_exit(0);
	e = bpf_test_take();
	REQUIRE(e != NULL);
	CHECK_EQ(e->hdr.cpu, 0);
	CHECK_EQ(e->hdr.seq, 1);
	cpu = bpf_host_lookup("cpus", &last);
	CHECK_EQ(cpu->counters[NEV_C_ENTERED], 2);
	CHECK_EQ(cpu->counters[NEV_C_DONE], 1);
	CHECK(bpf_test_balanced());
	bpf_test_close();
}

TEST("bpf: calls that find no room among the open ones are counted", "[bpf][bpf-host]")
{
	REQUIRE(bpf_test_open(65536, 2));
	for (uint32_t tid = 100; tid < 105; tid++) {
		bpf_test_become(tid);
		bpf_test_enter(FD, NEURON_IOCTL_DEVICE_INFO, ADDRESS);
	}
	CHECK_EQ(bpf_test_counter(NEV_C_LOST_INFLIGHT_FULL), 3);
	CHECK_EQ(bpf_test_open_calls(), 2);
	CHECK(bpf_test_balanced());
	bpf_test_exit(0); /* of one that has no entry */
	CHECK(bpf_test_take() == NULL);
	bpf_test_become(100);
	bpf_test_exit(0);
	CHECK(bpf_test_take() != NULL);
	CHECK(bpf_test_balanced());
	bpf_test_close();
}

TEST("bpf: a return that was not seen is counted once, when the thread is met again",
	"[bpf][bpf-host]")
{
	unsigned long long exiting[1];
	const struct nev_ioctl *e;
	uint64_t start;

	REQUIRE(bpf_test_open(65536, 16));
	/* By its next call on a device: that one is recorded. */
	bpf_test_enter(FD, NEURON_IOCTL_DEVICE_INFO, ADDRESS);
	start = bpf_host.boot_ns;
	e = one_call(FD, NEURON_IOCTL_DEVICE_BDF, 0);
	REQUIRE(e != NULL);
	CHECK_EQ(e->start_ns, start);
	CHECK_EQ(e->request, NEURON_IOCTL_DEVICE_BDF);
	CHECK_EQ(bpf_test_counter(NEV_C_LOST_EXIT), 1);
	/* By a call on another file: that one is none of ours. */
	bpf_test_enter(FD, NEURON_IOCTL_DEVICE_INFO, ADDRESS);
	CHECK(one_call(4, NEURON_IOCTL_DEVICE_INFO, 0) == NULL);
	CHECK_EQ(bpf_test_counter(NEV_C_LOST_EXIT), 2);
	/* By its end. */
	bpf_test_enter(FD, NEURON_IOCTL_DEVICE_INFO, ADDRESS);
	exiting[0] = (uintptr_t)bpf_host.task;
	CHECK_EQ(follow_exit(exiting), 0);
	CHECK_EQ(bpf_test_counter(NEV_C_LOST_EXIT), 3);
	CHECK_EQ(bpf_test_open_calls(), 0);
	CHECK_EQ(follow_exit(exiting), 0);
	CHECK_EQ(bpf_test_counter(NEV_C_LOST_EXIT), 3);
	CHECK(bpf_test_balanced());
	bpf_test_close();
}

TEST("bpf: map operations that the kernel refuses lose a call and never the balance",
	"[bpf][bpf-host]")
{
	REQUIRE(bpf_test_open(65536, 16));
	/* The entry does not get in although there is room. */
	bpf_host_fail("inflight", BPF_HOST_UPDATE, -EBUSY, 1, 1);
	CHECK(one_call(FD, NEURON_IOCTL_DEVICE_INFO, 0) == NULL);
	CHECK_EQ(bpf_test_counter(NEV_C_LOST_EXIT), 1);
	CHECK(bpf_test_balanced());
	CHECK(one_call(FD, NEURON_IOCTL_DEVICE_INFO, 0) != NULL);
	bpf_test_close();
}

TEST("bpf: a thread keeps its entry from call to call, and gives it back when it ends",
	"[bpf][bpf-host]")
{
	unsigned long long exiting[1];

	REQUIRE(bpf_test_open(65536, 2));
	for (int i = 0; i < 3; i++) {
		CHECK(one_call(FD, NEURON_IOCTL_DEVICE_INFO, 0) != NULL);
		CHECK_EQ(bpf_host_count("inflight"), 1);
		CHECK_EQ(bpf_test_open_calls(), 0);
	}
	/* A return without a call, as of one that entered before the hooks were there. */
	bpf_test_exit(0);
	CHECK(bpf_test_take() == NULL);
	exiting[0] = (uintptr_t)bpf_host.task;
	CHECK_EQ(follow_exit(exiting), 0);
	CHECK_EQ(bpf_host_count("inflight"), 0);
	CHECK_EQ(bpf_test_counter(NEV_C_LOST_EXIT), 0);
	bpf_test_close();
}

TEST("bpf: without a place for the CPU nothing is recorded and nothing breaks", "[bpf][bpf-host]")
{
	unsigned long long exiting[1], forking[2];
	uint32_t tgid = TGID;

	REQUIRE(bpf_test_open(65536, 16));
	bpf_test_enter(FD, NEURON_IOCTL_DEVICE_INFO, ADDRESS);
	bpf_host.cpu = BPF_TEST_CPUS; /* more than there are */
	bpf_test_exit(0);
	bpf_test_enter(FD, NEURON_IOCTL_DEVICE_INFO, ADDRESS);
	bpf_test_enter(4, NEURON_IOCTL_DEVICE_INFO, ADDRESS);
	CHECK(bpf_test_take() == NULL);
	CHECK_EQ(bpf_test_open_calls(), 1);
	forking[0] = (uintptr_t)bpf_host.task;
	forking[1] = (uintptr_t)bpf_host_task_new(9, 9, 1);
	bpf_host_fail("tracked", BPF_HOST_UPDATE, -E2BIG, 1, 1);
	CHECK_EQ(follow_fork(forking), 0);
	bpf_host_task_live(bpf_host.task, 0);
	exiting[0] = forking[0];
	CHECK_EQ(follow_exit(exiting), 0);
	CHECK_EQ(follow_free(exiting), 0);
	CHECK(bpf_host_lookup("tracked", &tgid) == NULL);
	bpf_test_close();
}
