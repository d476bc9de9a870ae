/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nrt_sys_trace.h - what the runtime does, as events in memory, fetched as JSON.
 *
 * Order of use: a config object says what is captured; nrt_sys_trace_start copies it; events are
 * fetched, each once; nrt_sys_trace_stop.  Config and options objects, and lists of names, may be made,
 * changed and freed at any time, also before nrt_init; one object belongs to one thread at a time.  The rules of
 * nrt.h hold here too.
 */
#ifndef NRT_SYS_TRACE_H
#define NRT_SYS_TRACE_H

#include <nrt/nrt.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- what is captured --------------------------------------------------------------------- */

typedef struct nrt_sys_trace_config nrt_sys_trace_config_t;

/* A new object with the defaults: all cores, all event types, 1048576 events per core.  The caller frees
 * it.  NRT_INVALID: NULL.  NRT_RESOURCE: no memory. */
NRT_API NRT_STATUS nrt_sys_trace_config_allocate(nrt_sys_trace_config_t **options);
/* NULL is harmless. */
NRT_API void nrt_sys_trace_config_free(nrt_sys_trace_config_t *options);
/* Back to the defaults.  This and the next two say in the log what is wrong with their arguments, and change
 * nothing then. */
NRT_API void nrt_sys_trace_config_set_defaults(nrt_sys_trace_config_t *options);

/* Events that are kept per core; the oldest go first.  The start takes 1024 at least. */
NRT_API void nrt_sys_trace_config_set_max_events_per_nc(
	nrt_sys_trace_config_t *options, uint64_t max_events_per_nc);

/* nc_idx: below 256. */
NRT_API void nrt_sys_trace_config_set_capture_enabled_for_nc(
	nrt_sys_trace_config_t *options, uint32_t nc_idx, bool enabled);

/*
 * event_type: a name of nrt_sys_trace_get_event_types; or "hardware" or "software" for all of that kind
 * (ours).  A retired name stands for the nearest of today, one of a newer runtime for nothing; both are said in
 * the log.  NRT_INVALID: none of these.
 */
NRT_API NRT_STATUS nrt_sys_trace_config_set_capture_enabled_for_event_type(
	nrt_sys_trace_config_t *options, const char *event_type, bool enabled);

/* Names of all event types, in the order of their numbers; those of the object that are enabled.  The
 * caller frees the list with nrt_sys_trace_free_event_types, or each text and the array with free. */
NRT_API NRT_STATUS nrt_sys_trace_get_event_types(const char ***event_types, size_t *count);
NRT_API NRT_STATUS nrt_sys_trace_config_get_enabled_event_types(
	nrt_sys_trace_config_t *options, const char ***event_types, size_t *count);
NRT_API void nrt_sys_trace_free_event_types(const char **event_types, size_t count);

/* ---- capture ------------------------------------------------------------------------------ */

/* The object is not used after the call.  NRT_INVALID: NULL.  NRT_FAILURE: the capture is on already.
 * NRT_RESOURCE: no memory. */
NRT_API NRT_STATUS nrt_sys_trace_start(nrt_sys_trace_config_t *options);
/* What was not fetched is lost.  NRT_SUCCESS also when the capture is off. */
NRT_API NRT_STATUS nrt_sys_trace_stop(void);

/* ---- fetch -------------------------------------------------------------------------------- */

typedef struct nrt_sys_trace_fetch_options nrt_sys_trace_fetch_options_t;

/* A new object with the defaults: all events of all cores.  The caller frees it. */
NRT_API NRT_STATUS nrt_sys_trace_fetch_options_allocate(nrt_sys_trace_fetch_options_t **options);
/* NULL is harmless. */
NRT_API void nrt_sys_trace_fetch_options_free(nrt_sys_trace_fetch_options_t *options);
/* Back to the defaults.  This and the next two say in the log what is wrong with their arguments, and change
 * nothing then. */
NRT_API void nrt_sys_trace_fetch_options_set_defaults(nrt_sys_trace_fetch_options_t *options);
/* 0: no limit. */
NRT_API void nrt_sys_trace_fetch_options_set_max_events_per_nc(
	nrt_sys_trace_fetch_options_t *options, uint64_t max_events_per_nc);
/* nc_idx: below 256, or (uint64_t)-1 for all cores. */
NRT_API void nrt_sys_trace_fetch_options_set_nc_idx(
	nrt_sys_trace_fetch_options_t *options, uint64_t nc_idx);

/* Takes events out, as one JSON text.  *buffer must be NULL; it is set to the text, *written_size to its
 * length without the terminator.  The caller frees it with the next call.  options: NULL for the defaults.
 * While the capture is off there are no events.  NRT_INVALID: a place is NULL, or *buffer is not. */
NRT_API NRT_STATUS nrt_sys_trace_fetch_events(
	char **buffer, size_t *written_size, const nrt_sys_trace_fetch_options_t *options);
/* NULL is harmless.  Legal at any time. */
NRT_API void nrt_sys_trace_buffer_free(char *buffer);

#ifdef __cplusplus
}
#endif

#endif
