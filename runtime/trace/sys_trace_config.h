/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sys_trace_config.h - what a program wants captured, and fetched: the objects behind the opaque types of
 * nrt_sys_trace.h.
 *
 * Layouts are those of libnrt 2.31.  An object belongs to its caller; one thread at a time.
 */
#ifndef NTRACE_TRACE_SYS_TRACE_CONFIG_H
#define NTRACE_TRACE_SYS_TRACE_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include <nrt/nrt_sys_trace.h>

#include "runtime/trace/event_registry.h"
#include "runtime/trace/ring.h"

#define SYS_TRACE_DEFAULT_EVENTS 0x100000u /* the binary's; documents say 1,000,000 */

struct nrt_sys_trace_config {
	uint64_t max_events_per_nc; /* as it was set; whoever starts limits it */
	bool nc[TRACE_MAX_NC];
	bool type[TRACE_TYPE_COUNT];
};

struct nrt_sys_trace_fetch_options {
	uint64_t max_events_per_nc; /* 0 = no limit */
	int32_t nc_idx;		    /* TRACE_ALL_NC = all */
};

void sys_trace_config_defaults(struct nrt_sys_trace_config *config);
void sys_trace_fetch_defaults(struct nrt_sys_trace_fetch_options *options);

/* What a subscriber with this configuration wants. */
struct trace_filter sys_trace_filter(const struct nrt_sys_trace_config *config);

/* Setters for the ABI calls here and of inspections: NRT_INVALID for what is out of range, said in the log as
 * by `call`. */
NRT_STATUS sys_trace_config_set_nc(
	const char *call, struct nrt_sys_trace_config *config, uint32_t nc, bool enabled);
/* name: of a type, "hardware" or "software". */
NRT_STATUS sys_trace_config_set_type(
	const char *call, struct nrt_sys_trace_config *config, const char *name, bool enabled);
/* The same; false, and nothing said, when nothing has this name. */
bool sys_trace_config_try_type(
	const char *call, struct nrt_sys_trace_config *config, const char *name, bool enabled);
NRT_STATUS sys_trace_config_set_type_number(
	const char *call, struct nrt_sys_trace_config *config, uint32_t type, bool enabled);

/* Answers a call that gives a list of names. */
NRT_STATUS sys_trace_answer_names(const char *call, const char *const *names, size_t count,
	const char ***ret, size_t *ret_count);

/* NRT_INVALID, said in the log, when the object is NULL. */
NRT_STATUS sys_trace_check_object(const char *call, const void *object);

/* For a call that allocates: size zeroed bytes, from malloc; or NULL when place, where the caller wants the
 * object, is NULL, or there is no memory.  *ret_status says which. */
void *sys_trace_new_object(
	const char *call, const void *place, size_t size, NRT_STATUS *ret_status);

#endif
