/* SPDX-License-Identifier: Apache-2.0 */
/*
 * object.h - handles that cannot crash us: every object a program holds is in one table.
 *
 * A handle is a number in the shape of a pointer, and is looked up; what is not in the table, or
 * of another kind, is refused.  Numbers never come again, as addresses would: a handle that was
 * freed is refused for ever.  They are no addresses that there can be, so a program's own pointer
 * is never taken for one.  A look-up takes a reference, so an object that another thread frees
 * meanwhile stays until the call is over.  Any thread.
 */
#ifndef NTRACE_EXEC_OBJECT_H
#define NTRACE_EXEC_OBJECT_H

#include <stdatomic.h>
#include <stdint.h>

#include <nrt/nrt_status.h>

enum object_kind { OBJECT_TENSOR = 1, OBJECT_SET = 2, OBJECT_MODEL = 3 };

/* First member of every such object. */
struct object {
	enum object_kind kind;
	_Atomic uint32_t refs;
	void (*destroy)(struct object *o); /* frees it; called without locks */
	uintptr_t handle;		   /* for the program; 0: none */
	struct object *next;		   /* of its bucket */
};

/* Enters a new object with one reference, which the table holds.  Returns its handle. */
void *object_publish(struct object *o, enum object_kind kind, void (*destroy)(struct object *o));

static inline void *object_handle(const struct object *o)
{
	return (void *)o->handle; /* NOLINT(performance-no-int-to-ptr) */
}

/* Looks a handle up: NRT_INVALID when it is NULL, NRT_INVALID_HANDLE when it is none of that kind;
 * both are in the log, with the calling function's name. */
#define object_get(handle, kind, ret) object_get_for(__func__, handle, kind, ret)
NRT_STATUS object_get_for(
	const char *call, const void *handle, enum object_kind kind, struct object **ret);

/* Another reference for one who has one; giving one back. */
void object_ref(struct object *o);
void object_put(struct object *o);

/* Takes the object out of the table; the table's reference goes to the caller.  As object_get
 * otherwise. */
#define object_retire(handle, kind, ret) object_retire_for(__func__, handle, kind, ret)
NRT_STATUS object_retire_for(
	const char *call, const void *handle, enum object_kind kind, struct object **ret);

/* Retires and gives back all of a kind. */
void object_retire_all(enum object_kind kind);

#endif
