/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tensor.h - tensors and sets of them, as executions and queues see them.
 *
 * A tensor is a handle; its bytes are a part of a storage, which slices of it share.
 * nrt_tensor_attach_buffer gives a tensor another storage at any time, so whoever works on the
 * bytes takes a view first.
 */
#ifndef NTRACE_EXEC_TENSOR_H
#define NTRACE_EXEC_TENSOR_H

#include <pthread.h>
#include <stdbool.h>

#include <nrt/nrt_experimental.h>

#include "runtime/exec/memory.h"
#include "runtime/exec/object.h"
#include "runtime/profile/exec_trace.h"

/* ---- storage, views, uses: tensor_storage.c ----------------------------------------------- */

/* What the bytes of tensors lie in.  Lives as long as somebody has a reference. */
struct tensor_storage {
	_Atomic uint32_t refs;
	nrt_tensor_placement_t placement;
	uint64_t size;
	struct device_memory memory; /* placement DEVICE */
	uint8_t *host;		     /* placement HOST */
	bool attached;		     /* host is the program's */
	/* Under a lock of all storages: */
	pthread_cond_t less_used;
	struct tensor_use *uses;
};

/* The bytes of a tensor at one moment: [offset, offset + size) of the storage. */
struct tensor_view {
	struct tensor_storage *storage; /* with a reference; NULL = none */
	uint64_t offset, size;
};

struct nrt_tensor {
	struct object object;
	uint64_t id; /* from 1, in the process */
	uint32_t nc; /* TRACE_NC_UNKNOWN: of no core */
	char name[NRT_TENSOR_NAME_MAX];
	pthread_mutex_t lock;
	pthread_cond_t counted;
	/* under lock: */
	struct tensor_view view; /* storage NULL: nothing attached yet, size 0 */
	uint64_t completed;	 /* executions that had it as an output, since the reset */
};

/* A storage with one reference, of memory of its own on the core; or of `host`, which is the
 * program's. */
NRT_STATUS tensor_storage_device(const struct device_core *core, uint32_t nc, const char *name,
	uint64_t size, struct tensor_storage **ret);
NRT_STATUS tensor_storage_host(uint64_t size, struct tensor_storage **ret);
NRT_STATUS tensor_storage_attach(void *host, uint64_t size, struct tensor_storage **ret);
/* Gives a reference back; NULL is harmless. */
void tensor_storage_put(struct tensor_storage *s);

/* The tensor's bytes as they are now, with a reference to be given back. */
struct tensor_view tensor_view_get(struct nrt_tensor *t);
void tensor_view_put(struct tensor_view *v);
/* Host address of the first byte; NULL in device memory and for an empty tensor. */
uint8_t *tensor_view_host(const struct tensor_view *v);

static inline bool tensor_view_on_device(const struct tensor_view *v)
{
	return v->storage && v->storage->placement == NRT_TENSOR_PLACEMENT_DEVICE;
}

/*
 * The hold that an execution or a transfer has on a tensor's bytes.  Those two wait for each
 * other, in the order in which they came, where one of them writes what the other has: so neither
 * begins in the midst of the other, and executions one after another do not keep a transfer
 * waiting for ever.  An execution comes when it is asked for. Who is called back by a queue waits
 * only for executions that run, for what is queued may be queued behind the callback.
 */
struct tensor_use {
	struct tensor_view view; /* with a reference; storage NULL: not begun, or nothing to use */
	bool writes;
	bool moves;	  /* a transfer's */
	bool called_back; /* a transfer's, of a callback */
	/* Under the lock: */
	bool runs; /* nobody is waited for any more */
	uint64_t arrival;
	struct tensor_use *other; /* of the same copy */
	struct tensor_use *next;  /* of the storage */
};
/* An execution's: it has its place in the order, and waits for nobody yet. */
void tensor_use_begin(struct nrt_tensor *t, bool writes, struct tensor_use *use);
/* Waits for the transfers that came before.  Before the core's lock is taken.  meets: the execution
 * waits for others while it runs; it then passes transfers that still wait.  Zeroed uses are
 * harmless. */
void tensor_uses_run(struct tensor_use *uses, uint32_t count, bool meets);
/* A transfer's, of bytes of t: waits for the executions that it would disturb; with an event when
 * there are any. */
void tensor_transfer_begin(const struct nrt_tensor *t, const struct tensor_view *v, bool writes,
	struct tensor_use *use);
void tensor_copy_begin(const struct nrt_tensor *src, const struct tensor_view *from,
	const struct nrt_tensor *dst, const struct tensor_view *to, struct tensor_use uses[2]);
/* Everybody's end; harmless on a zeroed one, and twice. */
void tensor_use_end(struct tensor_use *use);

/* ---- transfers: tensor_transfer.c --------------------------------------------------------- */

/* The bytes [offset, offset + size) of the tensor's view, without a reference of their own.
 * NRT_INVALID when some are outside. */
NRT_STATUS tensor_part(const struct nrt_tensor *t, const struct tensor_view *v, uint64_t offset,
	uint64_t size, struct tensor_view *ret);

/* The record of nrt_trace_start for a copy between host and device: its start or end.  v: what is copied. */
void tensor_put_copy(const struct nrt_tensor *t, const struct tensor_view *v,
	enum exec_trace_type type, NRT_STATUS status);

/* What the public calls do, of tensors that have been looked up: with the checks, the events and
 * the waiting. */
NRT_STATUS tensor_do_read(struct nrt_tensor *t, void *buf, uint64_t offset, uint64_t size);
NRT_STATUS tensor_do_write(struct nrt_tensor *t, const void *buf, uint64_t offset, uint64_t size);
NRT_STATUS tensor_do_copy(struct nrt_tensor *src, uint64_t src_offset, struct nrt_tensor *dst,
	uint64_t dst_offset, uint64_t size);

/* A call on a tensor whose status this is: a core dump when it failed.  t may be NULL. */
void tensor_failed(const char *call, const struct nrt_tensor *t, NRT_STATUS status);

/* ---- completions: tensor_completion.c ----------------------------------------------------- */

/* An execution that had the tensor as an output is complete. */
void tensor_completed(struct nrt_tensor *t);
/* What nrt_tensor_check_output_completion does; warn_ns: when a wait without a limit says that it
 * still waits. */
NRT_STATUS tensor_wait_completed(
	struct nrt_tensor *t, int64_t timeout_us, uint64_t expected, uint64_t warn_ns);

/* ---- tensors, sets ------------------------------------------------------------------------ */

struct tensor_set;

/* The tensor with this name, with a reference for the caller; NULL when there is none. */
struct nrt_tensor *tensor_set_find(struct tensor_set *set, const char *name);

/* Gives a reference back; NULL is harmless. */
void tensor_put(struct nrt_tensor *t);

#endif
