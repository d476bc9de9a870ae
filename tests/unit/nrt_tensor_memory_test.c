/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nrt_tensor_memory_test.c - device memory in sums: per core, in the report when there is none left, and against
 * what the device itself counts, after any sequence of calls.
 */
#include "runtime/exec/memory_table.h"
#include "tests/shim/shim.h"
#include "tests/unit/nrt_init_fixture.h"

#define DEVICE NRT_TENSOR_PLACEMENT_DEVICE
#define HOST NRT_TENSOR_PLACEMENT_HOST

#define DEVICE_TEST(name, fn, options)        \
	TEST(name, "[nrt][tensor][vdev]")     \
	{                                     \
		if (device_lacks())           \
			SKIP(device_lacks()); \
		with_device(fn, options);     \
	}

static long long stat_of(const struct place *p, const char *name)
{
	return virtual_device_stat(&p->device, name);
}

static size_t used_on(uint32_t vnc)
{
	nrt_vnc_memory_stats_t stats = {0, 0};
	size_t size = 0;

	if (lib.nrt_get_vnc_memory_stats(vnc, &stats, sizeof(stats), &size) || size != 16)
		return SIZE_MAX;
	return stats.bytes_used;
}

/* ---- per core ----------------------------------------------------------------------------- */

static int stats(void *arg)
{
	struct {
		nrt_vnc_memory_stats_t stats;
		char later[16];
	} newer = {.later = "not touched"};
	struct place *p = arg;
	nrt_tensor_t *a, *b, *slice, *host;
	size_t size = 77;

	WANT(enter(p) == 0);
	WANT_STATUS(init(), 0);
	WANT_STATUS(lib.nrt_tensor_allocate(DEVICE, 0, 1000, "a", &a), 0);
	WANT_STATUS(lib.nrt_tensor_allocate(DEVICE, 1, 300, "b", &b), 0);
	WANT_STATUS(lib.nrt_tensor_allocate(HOST, 1, 50, "host", &host), 0);
	WANT_STATUS(lib.nrt_tensor_allocate_slice(a, 10, 20, "slice", &slice), 0);
	WANT(used_on(0) == 1000 && used_on(1) == 300);
	WANT_STATUS(lib.nrt_get_vnc_memory_stats(1, &newer.stats, sizeof(newer), &size), 0);
	WANT(size == 16 && newer.stats.bytes_limit == 8 << 20 && newer.stats.bytes_used == 300);
	WANT(!strcmp(newer.later, "not touched"));
	lib.nrt_tensor_free(&a);
	WANT(used_on(0) == 1000);
	lib.nrt_tensor_free(&slice);
	WANT(used_on(0) == 0 && used_on(1) == 300);

	size = 77;
	WANT_STATUS(lib.nrt_get_vnc_memory_stats(0, &newer.stats, 15, &size), NRT_INVALID);
	WANT(said(p, "Size is < 16"));
	WANT_STATUS(lib.nrt_get_vnc_memory_stats(2, &newer.stats, 16, &size), NRT_INVALID);
	WANT(said(p, "There is no core 2; this process has 2, from 0"));
	WANT_STATUS(lib.nrt_get_vnc_memory_stats(UINT32_MAX, &newer.stats, 16, &size), NRT_INVALID);
	WANT_STATUS(lib.nrt_get_vnc_memory_stats(0, NULL, 16, &size), NRT_INVALID);
	WANT_STATUS(lib.nrt_get_vnc_memory_stats(0, &newer.stats, 16, NULL), NRT_INVALID);
	WANT(size == 77 && newer.stats.bytes_used == 300);
	return 0;
}

DEVICE_TEST("memory: each core's bytes and limit", stats, small_memory)

static int peaks(void *arg)
{
	struct memory_core_sums sums;
	nrt_tensor_t *a, *b;
	struct job j;

	WANT(enter_linked(arg, NULL) == 0);
	WANT_STATUS(init(), 0);
	WANT_STATUS(lib.nrt_tensor_allocate(DEVICE, 1, 1000, "a", &a), 0);
	WANT_STATUS(lib.nrt_tensor_allocate(DEVICE, 1, 500, "b", &b), 0);
	lib.nrt_tensor_free(&a);
	memory_table_core(1, &sums);
	WANT(sums.total.now == 500 && sums.total.peak == 1500);
	WANT(sums.usage[MEMORY_TENSOR].now == 500 && sums.usage[MEMORY_TENSOR].peak == 1500);
	WANT(job_open(&j, ADD_MODEL, 1) == 0);
	memory_table_core(1, &sums);
	WANT(sums.usage[MEMORY_INSTR_PE].now > 0);
	WANT(sums.usage[MEMORY_SCRATCHPAD].now > 0);
	WANT(sums.usage[MEMORY_TENSOR].now == 500 + 3 * 32);
	memory_table_core(0, &sums);
	WANT(sums.total.now == 0 && sums.total.peak == 0);
	lib.nrt_close();
	memory_table_core(1, &sums);
	WANT(sums.total.now == 0 && sums.total.peak == 0);
	memory_table_core(100000, &sums);
	WANT(sums.total.now == 0);
	return 0;
}

DEVICE_TEST("memory: sums and peaks by usage, which nrt_close ends", peaks, two_cores)

/* ---- none left ---------------------------------------------------------------------------- */

/* Another process that holds memory until it is told to end. */
struct neighbour {
	pid_t pid;
	int ready[2], end[2];
};

static int hold(struct place *p, const struct neighbour *n)
{
	nrt_tensor_t *t;
	char byte;

	WANT(enter(p) == 0);
	setenv("NEURON_RT_VISIBLE_CORES", "1", 1);
	WANT_STATUS(init(), 0);
	WANT_STATUS(lib.nrt_tensor_allocate(DEVICE, 0, 1 << 20, "theirs", &t), 0);
	WANT(write(n->ready[1], "r", 1) == 1);
	WANT(read(n->end[0], &byte, 1) == 0);
	return 0;
}

static int neighbour_start(struct place *p, struct neighbour *n)
{
	char byte;

	WANT(pipe(n->ready) == 0 && pipe(n->end) == 0);
	n->pid = fork();
	if (n->pid == 0) {
		close(n->end[1]);
		_exit(hold(p, n));
	}
	close(n->ready[1]);
	WANT(n->pid > 0 && read(n->ready[0], &byte, 1) == 1);
	return 0;
}

/* Are the texts in this order in the file? */
static int in_order(const char *path, const char *const texts[])
{
	char *all = program_text(path), *at = all;

	for (int i = 0; texts[i] && at; i++) {
		at = strstr(at, texts[i]);
		if (!at)
			dprintf(complaint_fd, "not there: %s\nin: %s\n", texts[i], all);
	}
	free(all);
	WANT(at != NULL);
	return 0;
}

static int full(void *arg)
{
	struct place *p = arg;
	struct scratch_path dir = scratch_path(&p->scratch, "made/here");
	struct scratch_path first =
		scratch_path(&p->scratch, "made/here/neuron_mem_table_device_0_hbm_0.log");
	struct scratch_path second =
		scratch_path(&p->scratch, "made/here/neuron_mem_table_device_0_hbm_0_2.log");
	char others[64], mine[64];
	const char *const table[] = {"No memory for 5242880 bytes of TENSOR for nc 0 on nd0 hbm0\n",
		"holds 3145738 bytes there in 4 allocations\n",
		"  3145738 TENSOR                 in 4\n", "  2097152 TENSOR",
		"nc 0   the largest\n", "  1048576 TENSOR", "nc 0   second\n", " 9 TENSOR",
		"nine\n", " 1 TENSOR", "(no name)\n", "  3145738 3145838                nc 0\n",
		"For all cores, nd0 has 8388608 bytes\n", NULL};
	nrt_tensor_t *t[5], *more = NULL;
	struct neighbour n;
	char *log;

	WANT(neighbour_start(p, &n) == 0);
	WANT(enter(p) == 0);
	setenv("NEURON_RT_VISIBLE_CORES", "0", 1);
	setenv("NEURON_RT_OOM_DUMP_DIRECTORY", dir.s, 1);
	WANT_STATUS(init(), 0);
	WANT_STATUS(lib.nrt_tensor_allocate(DEVICE, 0, 9, "nine", &t[0]), 0);
	WANT_STATUS(lib.nrt_tensor_allocate(DEVICE, 0, 2 << 20, "the largest", &t[1]), 0);
	WANT_STATUS(lib.nrt_tensor_allocate(DEVICE, 0, 1, NULL, &t[2]), 0);
	WANT_STATUS(lib.nrt_tensor_allocate(DEVICE, 0, 1 << 20, "second", &t[3]), 0);
	WANT_STATUS(lib.nrt_tensor_allocate(DEVICE, 0, 100, "gone", &t[4]), 0);
	lib.nrt_tensor_free(&t[4]);
	WANT_STATUS(lib.nrt_tensor_allocate(DEVICE, 0, 5 << 20, "m", &more), NRT_RESOURCE);
	WANT(more == NULL && used_on(0) == 3145738);
	snprintf(others, sizeof(others), "Process %d has 1048576 bytes of nd0", (int)n.pid);
	snprintf(mine, sizeof(mine), "Process %d (this one) has 3145738 bytes of nd0",
		(int)getpid());
	WANT(in_order(first.s, table) == 0);
	log = program_text(first.s);
	WANT(strstr(log, others) && strstr(log, mine));
	free(log);
	log = program_text(p->log.s);
	WANT(strstr(log, others) && strstr(log, mine) && strstr(log, table[0]));
	WANT(strstr(log, "The whole memory table is in"));
	free(log);

	/* The first file stays as it is; there is no third where nothing is written. */
	WANT_STATUS(lib.nrt_tensor_allocate(DEVICE, 0, 6 << 20, "m", &more), NRT_RESOURCE);
	WANT(in_order(first.s, table) == 0 && access(second.s, R_OK) == 0);
	WANT(scratch_entries(dir.s) == 2);
	WANT_STATUS(lib.nrt_tensor_allocate(DEVICE, 0, 2 << 20, "m", &more), 0);
	WANT(scratch_entries(dir.s) == 2);
	close(n.end[1]);
	WANT(program_wait(n.pid) == 0);
	return 0;
}

DEVICE_TEST("memory: when there is none left, who holds it is in the log and in a new file", full,
	small_memory)

static int full_quietly(void *arg)
{
	struct place *p = arg;
	struct scratch_path file = scratch_path(&p->scratch, "file");
	nrt_tensor_t *t[30], *more;
	int entries, fd;

	WANT(enter(p) == 0);
	fd = open(file.s, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	WANT(fd >= 0 && close(fd) == 0);
	entries = scratch_entries(p->scratch.dir);
	WANT_STATUS(init(), 0);
	for (int i = 0; i < 30; i++)
		WANT_STATUS(lib.nrt_tensor_allocate(DEVICE, 1, 4096, "many", &t[i]), 0);
	WANT_STATUS(lib.nrt_tensor_allocate(DEVICE, 1, SIZE_MAX, "m", &more), NRT_RESOURCE);
	WANT(said(p, "and 20 smaller ones"));
	WANT(scratch_entries(p->scratch.dir) == entries); /* no directory, no file */
	lib.nrt_close();
	setenv("NEURON_RT_OOM_DUMP_DIRECTORY", file.s, 1);
	WANT_STATUS(init(), 0);
	WANT_STATUS(lib.nrt_tensor_allocate(DEVICE, 1, SIZE_MAX, "m", &more), NRT_RESOURCE);
	WANT(said(p, "The memory table was not written to"));
	WANT(scratch_entries(p->scratch.dir) == entries);
	WANT_STATUS(lib.nrt_tensor_allocate(DEVICE, 1, 10, "fits", &more), 0);
	return 0;
}

DEVICE_TEST("memory: the report is in the log alone without a directory, and where that is none",
	full_quietly, small_memory)

/* ---- any sequence ------------------------------------------------------------------------- */

enum { TENSORS = 24, BYTES = 3000, OPS = 2000 };

/* What the test believes of a tensor. */
struct belief {
	nrt_tensor_t *tensor;
	bool device, slice;
	uint32_t nc;
	size_t size;
};

struct play {
	unsigned seed;
	struct belief tensors[TENSORS];
	nrt_tensor_set_t *set;
	char buffer[BYTES], attached[BYTES];
};

static unsigned roll(struct play *g, unsigned sides)
{
	g->seed = g->seed * 1103515245u + 12345u;
	return (g->seed >> 16) % sides;
}

static int make(struct play *g, struct belief *b)
{
	struct belief *source = &g->tensors[roll(g, TENSORS)];
	size_t size = 1 + roll(g, BYTES);
	unsigned kind = roll(g, 4);

	if (kind == 3 && source->size) {
		size_t offset = roll(g, (unsigned)source->size);

		size = 1 + roll(g, (unsigned)(source->size - offset));
		WANT_STATUS(lib.nrt_tensor_allocate_slice(
				    source->tensor, offset, size, "slice", &b->tensor),
			0);
		b->device = source->device;
		b->nc = source->nc;
		b->size = size;
	} else if (kind == 2) {
		WANT_STATUS(lib.nrt_tensor_allocate_empty(NULL, &b->tensor), 0);
	} else {
		b->device = kind == 0;
		b->nc = roll(g, 2);
		b->size = size;
		WANT_STATUS(lib.nrt_tensor_allocate(
				    b->device ? DEVICE : HOST, (int)b->nc, size, NULL, &b->tensor),
			0);
	}
	return 0;
}

static int move(struct play *g, struct belief *b)
{
	const struct belief *to = &g->tensors[roll(g, TENSORS)];
	size_t offset = roll(g, BYTES), size = roll(g, BYTES);
	NRT_STATUS status = offset + size <= b->size ? NRT_SUCCESS : NRT_INVALID;
	const nrt_tensor_batch_op_t op = {offset, size, g->buffer};
	const nrt_tensor_batch_t batch = {b->tensor, &op, 1};

	switch (roll(g, 6)) {
	case 0:
		WANT_STATUS(lib.nrt_tensor_read(b->tensor, g->buffer, offset, size), status);
		break;
	case 1:
		WANT_STATUS(lib.nrt_tensor_write(b->tensor, g->buffer, offset, size), status);
		break;
	case 2:
		WANT_STATUS(lib.nrt_tensor_memset(b->tensor, offset, 1, size), status);
		break;
	case 3:
		WANT_STATUS(lib.nrt_tensor_read_batch(&batch, 1, false), status);
		break;
	case 4:
		WANT_STATUS(lib.nrt_tensor_write_batch(&batch, 1, true), status);
		break;
	default:
		if (!to->tensor || size > to->size || (b->device && to->device && b->nc != to->nc))
			status = to->tensor ? NRT_INVALID : status ? status : NRT_INVALID;
		WANT_STATUS(lib.nrt_tensor_copy(b->tensor, offset, to->tensor, 0, size), status);
		break;
	}
	return 0;
}

static int change(struct play *g, struct belief *b, unsigned slot)
{
	char name[8];
	nrt_tensor_t *found;

	snprintf(name, sizeof(name), "%u", slot % 5);
	switch (roll(g, 5)) {
	case 0:
	case 1:
		lib.nrt_tensor_free(&b->tensor);
		*b = (struct belief){0};
		break;
	case 2:
		WANT_STATUS(lib.nrt_tensor_attach_buffer(b->tensor, g->attached, BYTES), 0);
		b->device = false;
		b->size = BYTES;
		break;
	case 3:
		WANT_STATUS(lib.nrt_add_tensor_to_tensor_set(g->set, name, b->tensor), 0);
		break;
	default:
		(void)lib.nrt_get_tensor_from_tensor_set(g->set, name, &found);
		WANT(lib.nrt_tensor_get_size(b->tensor) == b->size);
		break;
	}
	return 0;
}

/* What the runtime says of its cores is what the device counts. */
static int agrees(const struct place *p)
{
	WANT((long long)(used_on(0) + used_on(1)) == stat_of(p, "allocated_bytes"));
	return 0;
}

static int sequence(void *arg)
{
	static struct play g;
	struct place *p = arg;
	const char *seed = getenv("NTRACE_TEST_SEED");

	WANT(enter(p) == 0);
	WANT_STATUS(init(), 0);
	g.seed = seed ? (unsigned)strtoul(seed, NULL, 0) : 20260707u;
	dprintf(2, "NTRACE_TEST_SEED=%u\n", g.seed);
	WANT_STATUS(lib.nrt_allocate_tensor_set(&g.set), 0);
	for (int i = 0; i < OPS; i++) {
		unsigned slot = roll(&g, TENSORS);
		struct belief *b = &g.tensors[slot];

		if (!b->tensor)
			WANT(make(&g, b) == 0);
		else if (roll(&g, 3))
			WANT(move(&g, b) == 0);
		else
			WANT(change(&g, b, slot) == 0);
		if (i % 100 == 0)
			WANT(agrees(p) == 0);
	}
	WANT(agrees(p) == 0);
	lib.nrt_destroy_tensor_set(&g.set);
	for (int i = 0; i < TENSORS; i++)
		lib.nrt_tensor_free(&g.tensors[i].tensor);
	WANT(used_on(0) == 0 && used_on(1) == 0);
	WANT(stat_of(p, "allocations") == 0 && stat_of(p, "allocated_bytes") == 0);
	return 0;
}

DEVICE_TEST("memory: after 2000 random calls all sums are zero again, the device's too", sequence,
	two_cores)
