/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nrt_tensor_stress_test.c - tensors that eight threads share, on eight cores: allocated, sliced, copied, read,
 * attached and freed by all of them at once.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "tests/shim/shim.h"
#include "tests/unit/nrt_init_fixture.h"

#define DEVICE NRT_TENSOR_PLACEMENT_DEVICE
#define HOST NRT_TENSOR_PLACEMENT_HOST

enum { THREADS = 8, SLOTS = 16, ROUNDS = 200, BYTES = 5000 };

struct stress {
	_Atomic(nrt_tensor_t *) slots[SLOTS]; /* handles, some of them stale */
	_Atomic(long) worked, refused;
	_Atomic(int) wrong; /* a status that no call may have here */
};

struct worker {
	struct stress *shared;
	unsigned seed;
	uint32_t nc;
	bool moves; /* bytes too, not only handles */
	pthread_t thread;
	char buffer[BYTES], attached[BYTES];
};

static unsigned roll(struct worker *w, unsigned sides)
{
	w->seed = w->seed * 1103515245u + 12345u;
	return (w->seed >> 16) % sides;
}

static void count(struct worker *w, NRT_STATUS status)
{
	if (status == NRT_SUCCESS)
		atomic_fetch_add(&w->shared->worked, 1);
	else if (status == NRT_INVALID || status == NRT_INVALID_HANDLE)
		atomic_fetch_add(&w->shared->refused, 1);
	else
		atomic_store(&w->shared->wrong, (int)status);
}

/* What two threads do to host memory at once is the program's affair, as it is with memcpy; ThreadSanitizer
 * would tell us of it.  So there is none where bytes are moved. */
#ifdef __SANITIZE_THREAD__
#define KINDS(moves) ((moves) ? 3u : 5u)
#else
#define KINDS(moves) 5u
#endif

/* Puts a new handle in a slot and frees what was there, which others may be using. */
static void replace(struct worker *w, unsigned slot)
{
	nrt_tensor_t *source = atomic_load(&w->shared->slots[roll(w, SLOTS)]), *new = NULL;

	switch (roll(w, KINDS(w->moves))) {
	case 0:
		count(w, lib.nrt_tensor_allocate(DEVICE, (int)w->nc, BYTES, "device", &new));
		break;
	case 1:
		count(w, lib.nrt_tensor_allocate_slice(source, roll(w, 9), BYTES / 2, "s", &new));
		break;
	case 2:
		count(w, lib.nrt_tensor_allocate_empty("empty", &new));
		break;
	case 3:
		count(w, lib.nrt_tensor_allocate(HOST, (int)w->nc, BYTES, "host", &new));
		break;
	default:
		count(w, lib.nrt_tensor_attach_buffer(source, w->attached, BYTES));
		return;
	}
	source = atomic_exchange(&w->shared->slots[slot], new);
	lib.nrt_tensor_free(&source);
}

static void use(struct worker *w, unsigned slot)
{
	nrt_tensor_t *t = atomic_load(&w->shared->slots[slot]);
	nrt_tensor_t *other = atomic_load(&w->shared->slots[roll(w, SLOTS)]);
	nrt_tensor_device_allocation_info_t info;
	const nrt_tensor_batch_op_t op = {0, 8, w->buffer};
	const nrt_tensor_batch_t batches[] = {{t, &op, 1}, {other, &op, 1}};

	count(w, lib.nrt_tensor_check_output_completion(t, 0, 0));
	count(w, lib.nrt_tensor_reset_output_completion(t));
	count(w, lib.nrt_tensor_get_device_allocation_info(t, &info));
	(void)lib.nrt_tensor_get_size(t);
	(void)lib.nrt_tensor_get_va(other);
	if (!w->moves)
		return;
	count(w, lib.nrt_tensor_read(t, w->buffer, roll(w, 2 * BYTES), roll(w, BYTES)));
	count(w, lib.nrt_tensor_write(t, w->buffer, roll(w, 9), roll(w, BYTES)));
	count(w, lib.nrt_tensor_memset(t, 0, 1, roll(w, BYTES)));
	count(w, lib.nrt_tensor_copy(t, 0, other, 0, roll(w, BYTES)));
	count(w, lib.nrt_tensor_write_batch(batches, 2, roll(w, 2)));
}

static void *work(void *arg)
{
	struct worker *w = arg;
	nrt_tensor_set_t *set = NULL;
	nrt_vnc_memory_stats_t stats;
	size_t size;

	count(w, lib.nrt_allocate_tensor_set(&set));
	for (int i = 0; i < ROUNDS; i++) {
		unsigned slot = roll(w, SLOTS);

		if (roll(w, 2))
			replace(w, slot);
		else
			use(w, slot);
		(void)lib.nrt_add_tensor_to_tensor_set(
			set, roll(w, 2) ? "a" : "b", atomic_load(&w->shared->slots[slot]));
		if (i % 16 == 0)
			count(w, lib.nrt_get_vnc_memory_stats(w->nc, &stats, sizeof(stats), &size));
	}
	lib.nrt_destroy_tensor_set(&set);
	return NULL;
}

static int race(struct place *p, bool moves)
{
	static struct worker workers[THREADS];
	static struct stress shared;

	memset(&shared, 0, sizeof(shared));
	for (unsigned i = 0; i < THREADS; i++) {
		workers[i] = (struct worker){
			.shared = &shared, .seed = i * 7919 + 1, .nc = i, .moves = moves};
		WANT(pthread_create(&workers[i].thread, NULL, work, &workers[i]) == 0);
	}
	for (int i = 0; i < THREADS; i++)
		WANT(pthread_join(workers[i].thread, NULL) == 0);
	for (int i = 0; i < SLOTS; i++) {
		nrt_tensor_t *t = atomic_load(&shared.slots[i]);

		lib.nrt_tensor_free(&t);
	}
	WANT(atomic_load(&shared.wrong) == 0);
	WANT(atomic_load(&shared.worked) > ROUNDS && atomic_load(&shared.refused) > 0);
	WANT(virtual_device_stat(&p->device, "allocations") == 0);
	for (uint32_t nc = 0; nc < THREADS; nc++) {
		nrt_vnc_memory_stats_t stats = {1, 0};
		size_t size;

		WANT_STATUS(lib.nrt_get_vnc_memory_stats(nc, &stats, sizeof(stats), &size), 0);
		WANT(stats.bytes_used == 0);
	}
	return 0;
}

static int races(void *arg)
{
	WANT(enter_linked(arg, "DISABLED") == 0);
	WANT_STATUS(init(), 0);
	WANT(race(arg, true) == 0);
	WANT(race(arg, false) == 0);
	lib.nrt_close();
	WANT(leaks() == 0);
	return 0;
}

static const char *const eight_cores[] = {"--arch=v2", "--devices=4", "--cores=2", NULL};

TEST("tensor: eight threads on eight cores share handles, and nothing is lost",
	"[nrt][tensor][vdev]")
{
	if (device_lacks())
		SKIP(device_lacks());
	with_device(races, eight_cores);
}
