/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blind_hooks.h - what the hooks did not see because of the steps of the ladder that were not reached, for
 * each driver that was there while it was recorded.
 */
#ifndef NTRACE_RECORD_BLIND_HOOKS_H
#define NTRACE_RECORD_BLIND_HOOKS_H

#include <stddef.h>

#include "runtime/record/session.h"

/* Hands each sentence to `add`. */
void blind_hooks(const struct session *l, void (*add)(void *ctx, const char *line), void *ctx);
/* The same for how long nobody looked at a driver that came meanwhile; nothing if none did. */
void blind_meanwhile(const struct session *l, void (*add)(void *ctx, const char *line), void *ctx);

/* "not seen: doorbells of the driver", of a family that is not hooked; NULL: there is no such family. */
const char *blind_family_without(const char *family);
/* The release from which on drivers do what a family watches, when this version is one before; NULL: it is not, or nobody
 * knows. */
const char *blind_family_since(const char *family, const char *version);

#endif
