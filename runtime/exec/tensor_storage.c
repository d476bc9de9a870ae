/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tensor_storage.c - what the bytes of tensors lie in: device memory, host memory of ours, memory
 * of the program; views of it; and who uses them: executions and transfers.
 */
#include "runtime/exec/tensor.h"

#include <stdlib.h>

#include "runtime/exec/work_queue.h"
#include "runtime/trace/payload.h"
#include "runtime/trace/trace.h"

/* ---- storage ------------------------------------------------------------------------------ */

static void storage_destroy(struct tensor_storage *s)
{
	memory_free(&s->memory);
	if (!s->attached)
		free(s->host);
	pthread_cond_destroy(&s->less_used);
	free(s);
}

void tensor_storage_put(struct tensor_storage *s)
{
	if (s && atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) == 1)
		storage_destroy(s);
}

static struct tensor_storage *storage_new(nrt_tensor_placement_t placement, uint64_t size)
{
	struct tensor_storage *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	atomic_init(&s->refs, 1);
	s->placement = placement;
	s->size = size;
	pthread_cond_init(&s->less_used, NULL);
	return s;
}

/* Hands the storage out, or takes it back when it did not get its memory. */
static NRT_STATUS hand_out(struct tensor_storage *s, NRT_STATUS status, struct tensor_storage **ret)
{
	if (status)
		tensor_storage_put(s);
	else
		*ret = s;
	return status;
}

NRT_STATUS tensor_storage_device(const struct device_core *core, uint32_t nc, const char *name,
	uint64_t size, struct tensor_storage **ret)
{
	struct tensor_storage *s = storage_new(NRT_TENSOR_PLACEMENT_DEVICE, size);
	NRT_STATUS status;

	if (!s)
		return NRT_RESOURCE;
	status = memory_alloc(core, nc, MEMORY_TENSOR, size, &s->memory);
	if (!status)
		memory_name(&s->memory, name);
	return hand_out(s, status, ret);
}

NRT_STATUS tensor_storage_host(uint64_t size, struct tensor_storage **ret)
{
	struct tensor_storage *s = storage_new(NRT_TENSOR_PLACEMENT_HOST, size);

	if (!s)
		return NRT_RESOURCE;
	s->host = malloc(size);
	return hand_out(s, s->host ? NRT_SUCCESS : NRT_RESOURCE, ret);
}

NRT_STATUS tensor_storage_attach(void *host, uint64_t size, struct tensor_storage **ret)
{
	struct tensor_storage *s = storage_new(NRT_TENSOR_PLACEMENT_HOST, size);

	if (!s)
		return NRT_RESOURCE;
	s->host = host;
	s->attached = true;
	return hand_out(s, NRT_SUCCESS, ret);
}

/* ---- views -------------------------------------------------------------------------------- */

struct tensor_view tensor_view_get(struct nrt_tensor *t)
{
	struct tensor_view v;

	pthread_mutex_lock(&t->lock);
	v = t->view;
	if (v.storage)
		atomic_fetch_add_explicit(&v.storage->refs, 1, memory_order_relaxed);
	pthread_mutex_unlock(&t->lock);
	return v;
}

void tensor_view_put(struct tensor_view *v)
{
	tensor_storage_put(v->storage);
	v->storage = NULL;
}

uint8_t *tensor_view_host(const struct tensor_view *v)
{
	return v->storage && v->storage->host ? v->storage->host + v->offset : NULL;
}

/* ---- uses --------------------------------------------------------------------------------- */

/* One lock for the uses of all storages: whom a copy waits for is a question about two of them. */
static pthread_mutex_t uses_lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t last_arrival;

/* The use has its view, with a reference.  Under the lock, as all that follows. */
static void enter(struct tensor_use *u)
{
	struct tensor_storage *s = u->view.storage;

	u->arrival = ++last_arrival;
	u->next = s->uses;
	s->uses = u;
}

/* An execution and a transfer that must not go on at the same time.  Who meets his like has other
 * locks, or none. */
static bool disturb(const struct tensor_use *a, const struct tensor_use *b)
{
	return a->moves != b->moves && (a->writes || b->writes) &&
	       a->view.offset < b->view.offset + b->view.size &&
	       b->view.offset < a->view.offset + a->view.size;
}

/* Must the transfer wait for the execution's use? */
static bool holds_off(const struct tensor_use *execution, const struct tensor_use *transfer)
{
	return disturb(execution, transfer) &&
	       (execution->runs ||
		       (!transfer->called_back && execution->arrival < transfer->arrival));
}

/* Does the transfer wait for an execution that does not run yet? */
static bool waits_for_idle(const struct tensor_use *transfer)
{
	for (const struct tensor_use *u = transfer->view.storage->uses; u; u = u->next)
		if (!u->runs && holds_off(u, transfer))
			return true;
	return false;
}

/*
 * Must the execution wait for the transfer?  For one that is on its way always.  One that waits
 * goes first when it came first, or executions that follow each other would keep it waiting for
 * ever.  But when it waits for an execution that does not run yet, that one may have to wait for
 * this one: for its place in a queue, or for a rank.
 */
static bool goes_first(
	const struct tensor_use *transfer, const struct tensor_use *execution, bool meets)
{
	if (!disturb(transfer, execution))
		return false;
	if (transfer->runs)
		return true;
	return !meets && transfer->arrival < execution->arrival && !waits_for_idle(transfer) &&
	       !(transfer->other && waits_for_idle(transfer->other));
}

/* The first of the uses that must wait; NULL: none. */
static struct tensor_use *find_waiting(struct tensor_use *uses, uint32_t count, bool meets)
{
	for (uint32_t i = 0; i < count; i++)
		if (uses[i].view.storage)
			for (const struct tensor_use *u = uses[i].view.storage->uses; u;
				u = u->next)
				if (goes_first(u, &uses[i], meets))
					return &uses[i];
	return NULL;
}

void tensor_use_begin(struct nrt_tensor *t, bool writes, struct tensor_use *use)
{
	*use = (struct tensor_use){.view = tensor_view_get(t), .writes = writes};
	if (!use->view.storage)
		return;
	pthread_mutex_lock(&uses_lock);
	enter(use);
	pthread_mutex_unlock(&uses_lock);
}

void tensor_uses_run(struct tensor_use *uses, uint32_t count, bool meets)
{
	const struct tensor_use *waiting;

	pthread_mutex_lock(&uses_lock);
	while ((waiting = find_waiting(uses, count, meets)) != NULL)
		pthread_cond_wait(&waiting->view.storage->less_used, &uses_lock);
	for (uint32_t i = 0; i < count; i++)
		uses[i].runs = true;
	pthread_mutex_unlock(&uses_lock);
}

void tensor_use_end(struct tensor_use *use)
{
	struct tensor_storage *s = use->view.storage;
	struct tensor_use **link;

	if (!s)
		return;
	pthread_mutex_lock(&uses_lock);
	for (link = &s->uses; *link != use;)
		link = &(*link)->next;
	*link = use->next;
	if (use->other)
		use->other->other = NULL;
	pthread_cond_broadcast(&s->less_used);
	pthread_mutex_unlock(&uses_lock);
	tensor_view_put(&use->view);
}

/* ---- transfers ---------------------------------------------------------------------------- */

/* Counts the executions that hold the transfer off. */
static bool is_held_off(const struct tensor_use *transfer, struct trace_tensor_block *count)
{
	count->pending_reader_count = count->pending_writer_count = 0;
	for (const struct tensor_use *u = transfer->view.storage->uses; u; u = u->next)
		if (holds_off(u, transfer)) {
			if (u->writes)
				count->pending_writer_count++;
			else
				count->pending_reader_count++;
		}
	return count->pending_reader_count || count->pending_writer_count;
}

/* True when it did not have to wait. */
static bool await_turn(const struct nrt_tensor *t, const struct tensor_use *use)
{
	struct trace_tensor_block payload = {.tensor_id = t->id};
	struct tensor_storage *s = use->view.storage;
	struct trace_span span;

	if (!is_held_off(use, &payload))
		return true;
	span = trace_start(t->nc, TRACE_TENSOR_BLOCK_WHILE_EXEC, &payload, sizeof(payload));
	while (is_held_off(use, &payload))
		pthread_cond_wait(&s->less_used, &uses_lock);
	trace_stop(&span, NRT_SUCCESS, NULL, 0);
	return false;
}

static struct tensor_use transfer_of(const struct tensor_view *v, bool writes)
{
	atomic_fetch_add_explicit(&v->storage->refs, 1, memory_order_relaxed);
	return (struct tensor_use){
		.view = *v, .writes = writes, .moves = true, .called_back = work_queue_tells()};
}

void tensor_transfer_begin(const struct nrt_tensor *t, const struct tensor_view *v, bool writes,
	struct tensor_use *use)
{
	*use = transfer_of(v, writes);
	pthread_mutex_lock(&uses_lock);
	enter(use);
	(void)await_turn(t, use);
	use->runs = true;
	pthread_mutex_unlock(&uses_lock);
}

void tensor_copy_begin(const struct nrt_tensor *src, const struct tensor_view *from,
	const struct nrt_tensor *dst, const struct tensor_view *to, struct tensor_use uses[2])
{
	uses[0] = transfer_of(from, false);
	uses[1] = transfer_of(to, true);
	uses[0].other = &uses[1];
	uses[1].other = &uses[0];
	pthread_mutex_lock(&uses_lock);
	enter(&uses[0]);
	enter(&uses[1]);
	do
		(void)await_turn(src, &uses[0]);
	while (!await_turn(dst, &uses[1])); /* meanwhile there may be one at the source */
	uses[0].runs = uses[1].runs = true;
	pthread_mutex_unlock(&uses_lock);
}
