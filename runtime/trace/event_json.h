/* SPDX-License-Identifier: Apache-2.0 */
/*
 * event_json.h - records as the JSON text that nrt_sys_trace_fetch_events gives.
 *
 * One object, no white space: {"events":[...],"data_version":2}.  Keys and their order are those of libnrt 2.31 as
 * documents describe them, texts are escaped as its JSON library does.  Written record by record
 * into one buffer that doubles; nothing is kept beside it.  One thread per object.
 */
#ifndef NTRACE_TRACE_EVENT_JSON_H
#define NTRACE_TRACE_EVENT_JSON_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/trace/record.h"

#define EVENT_JSON_NO_NAME "Invalid interned string" /* the name of id 0 */

/* What a writer takes from outside. */
struct event_json_source {
	int64_t offset_ns; /* REALTIME - BOOTTIME; added to all host times */
	/* The text of an interned id and its length, NULL when it is not known. */
	const char *(*name)(void *ctx, uint64_t id, size_t *ret_len);
	void *ctx;
	const int32_t *gids; /* of worker, by core; -1: not known */
	uint32_t gid_count;
};

struct event_json {
	const struct event_json_source *source;
	char *text; /* from malloc */
	size_t len, room;
	uint64_t count;
};

/* Starts a text.  0 or -ENOMEM; the object holds memory from here to event_json_end or _drop. */
int event_json_begin(struct event_json *j, const struct event_json_source *source);

/* 0 or -ENOMEM, after which the object is good for _drop alone. */
int event_json_add(struct event_json *j, const struct trace_record *r);

/* Ends the text; it is the caller's, to be freed.  *ret_len leaves out the NUL behind it. */
void event_json_end(struct event_json *j, char **ret_text, size_t *ret_len);
void event_json_drop(struct event_json *j);

#endif
