/* SPDX-License-Identifier: Apache-2.0 */
/*
 * event_store.h - what a fetch has taken out of the rings and not given away yet, and names by their ids.
 *
 * A queue per core, and one for events of no core, each cut to what the capture keeps: the oldest go.
 * One thread at a time.
 */
#ifndef NTRACE_TRACE_EVENT_STORE_H
#define NTRACE_TRACE_EVENT_STORE_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/trace/event_json.h"
#include "runtime/trace/record.h"

struct event_store;

/* max_per_core: at least 1.  NULL: no memory. */
struct event_store *event_store_new(uint64_t max_per_core);
void event_store_free(struct event_store *s);

/* As a ring_batch_fn and a ring_name_fn; ctx is the store.  0; or -ENOMEM, and nothing is added. */
int event_store_add(void *ctx, uint32_t nc_idx, uint32_t lane, const struct trace_record *records,
	size_t count);
int event_store_add_name(void *ctx, uint64_t id, const char *text, uint32_t len);

/* Gives all that a store has to another one, as if it had been added there, but for what it dropped.  0; or -ENOMEM,
 * and what was not given is still there. */
int event_store_move(struct event_store *to, struct event_store *from);

/* The text of an id, as event_json_source wants it; id 0 has EVENT_JSON_NO_NAME.  Valid until the next
 * name is added. */
const char *event_store_name(void *ctx, uint64_t id, size_t *ret_len);

/* Records that went because their queue was too long; exact after a write. */
uint64_t event_store_dropped(const struct event_store *s);

/* Records that wait, of all cores. */
uint64_t event_store_waiting(const struct event_store *s);

/*
 * Writes the events of a core, or of all with TRACE_ALL_NC, in the order of their times, and takes them
 * out.  limit: that many per core, the oldest; 0 = all.  until_ns: what is younger stays, for something older may
 * still be added.  0; or -ENOMEM, and all are still there.
 */
int event_store_write(
	struct event_store *s, int32_t nc, uint64_t limit, uint64_t until_ns, struct event_json *j);

#endif
