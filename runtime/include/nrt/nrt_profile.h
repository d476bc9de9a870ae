/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nrt_profile.h - profiles: of one model, of a core, of all executions, and whole inspections of a process.
 *
 * An inspection (nrt_inspect_...) writes system events, device profiles and samples of the host below one
 * directory.  Config and options objects, and lists of names, may be made, changed and freed at any time,
 * also before nrt_init; one object belongs to one thread at a time.  Setters give NRT_INVALID for a NULL
 * object or a value that is out of range, and change nothing then.  The rules of nrt.h hold here too.
 */
#ifndef NRT_PROFILE_H
#define NRT_PROFILE_H

#include <nrt/nrt.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- one model ---------------------------------------------------------------------------- */

/*
 * Profiles executions of the model until nrt_profile_stop with the same filename, which writes it as an .ntff file.
 * Other models of the core are not in it; a model may have several files, and may be unloaded meanwhile.
 * NRT_INVALID: NULL or empty, a name that is being profiled or was not started, a file that exists, a
 * directory that does not, or NEURON_RT_ASYNC_EXEC_MAX_INFLIGHT_REQUESTS is not 0.  A profile that cannot be
 * written is kept, and stop may be called again.
 */
NRT_API NRT_STATUS nrt_profile_start(nrt_model_t *model, const char *filename);
NRT_API NRT_STATUS nrt_profile_stop(const char *filename);

/* ---- one core ----------------------------------------------------------------------------- */

/* Profiles everything on core vnc until stop, which keeps the profile under *session_id: each core counts its own from
 * 0.  NRT_INVALID: active already, or not. */
NRT_API NRT_STATUS nrt_profile_session_start(int32_t vnc);
NRT_API NRT_STATUS nrt_profile_session_stop(int32_t vnc, uint64_t *session_id);
/* Writes a kept profile, and forgets it once it is written.  Of cores that have the same number the lowest is meant; it
 * is forgotten then, so the next call means the next core.  NRT_INVALID: there is none, or the file exists. */
NRT_API NRT_STATUS nrt_profile_session_serialize(uint64_t session_id, const char *filename);
/* Forgets one, found in the same way, or all of a core. */
NRT_API NRT_STATUS nrt_profile_session_drop(uint64_t session_id);
NRT_API NRT_STATUS nrt_profile_session_drop_all(int32_t vnc);

/* ---- all executions ----------------------------------------------------------------------- */

typedef struct nrt_profile_continuous_options nrt_profile_continuous_options_t;

/* A new object with the default, directory "./output".  The caller frees it.  NRT_RESOURCE: no
 * memory. */
NRT_API NRT_STATUS nrt_profile_continuous_options_allocate(
	nrt_profile_continuous_options_t **options);
/* NULL gives NRT_INVALID. */
NRT_API NRT_STATUS nrt_profile_continuous_options_free(nrt_profile_continuous_options_t *options);
/* The text is copied; NULL and "" give NRT_INVALID. */
NRT_API NRT_STATUS nrt_profile_continuous_options_set_output_dir(
	nrt_profile_continuous_options_t *options, const char *output_dir);

/*
 * Profiles every execution; the last one of a core that has ended is written when save is called, to a new file
 * model_<id>_pid_<pid>_vnc_<vnc>_inst_0_<YYYYMMDD_HHMMSS>.ntff of the options' directory, which is made.
 * Profiling goes on; stop writes nothing.  NRT_INVALID: no options, not started, nothing to write, or
 * NEURON_RT_INSPECT_DEVICE_PROFILE is set and not 0.
 */
NRT_API NRT_STATUS nrt_profile_continuous_start(nrt_profile_continuous_options_t *options);
NRT_API NRT_STATUS nrt_profile_continuous_save(
	uint32_t vnc, nrt_profile_continuous_options_t *options);
NRT_API NRT_STATUS nrt_profile_continuous_stop(void);

/* ---- inspections -------------------------------------------------------------------------- */

typedef struct nrt_inspect_config nrt_inspect_config_t;

typedef enum {
	NRT_INSPECT_DEVICE_PROFILE_MODE_DISABLED = 0,
	NRT_INSPECT_DEVICE_PROFILE_MODE_MODEL = 1,   /* of each model's first execution on each core */
	NRT_INSPECT_DEVICE_PROFILE_MODE_SESSION = 2, /* of all that each core does, one per core */
} nrt_inspect_device_profile_mode_t;

/* Begins an inspection as the NEURON_RT_INSPECT_ variables say. */
NRT_API NRT_STATUS nrt_inspect_begin(void);
/* Begins one as the object says; the variables do not count.  The object is not used after the call. */
NRT_API NRT_STATUS nrt_inspect_begin_with_options(nrt_inspect_config_t *options);
/* Ends it and writes the files. */
NRT_API NRT_STATUS nrt_inspect_stop(void);

/* The directory below output_dir in which this process's files lie.  NRT_INVALID: the text and its
 * terminator do not fit buf_size bytes. */
NRT_API NRT_STATUS nrt_inspect_get_instance_output_dir(
	const char *output_dir, char *instance_dir_buf, size_t buf_size);

/*
 * A new object with the defaults: session 1; directory "./output"; all activities; all cores and event
 * types, 1048576 events per core; inspection off, on failure too; device profiles off.  The caller frees it.
 * NRT_RESOURCE: no memory.
 */
NRT_API NRT_STATUS nrt_inspect_config_allocate(nrt_inspect_config_t **options);
/* NULL gives NRT_INVALID. */
NRT_API NRT_STATUS nrt_inspect_config_free(nrt_inspect_config_t *options);
/* Back to the defaults. */
NRT_API NRT_STATUS nrt_inspect_config_set_defaults(nrt_inspect_config_t *options);

NRT_API NRT_STATUS nrt_inspect_config_set_session_id(nrt_inspect_config_t *options, int session_id);
/* The text is copied.  NULL and "" give NRT_INVALID and bring the default back. */
NRT_API NRT_STATUS nrt_inspect_config_set_output_dir(
	nrt_inspect_config_t *options, const char *output_dir);

/* "system_profile" (events), "device_profile", "host_memory", "cpu_util"; "all" for the four. */
NRT_API NRT_STATUS nrt_inspect_config_set_activity(
	nrt_inspect_config_t *options, const char *activity_type, bool enabled);
/* nc_idx: below 256.  For events and device profiles. */
NRT_API NRT_STATUS nrt_inspect_config_set_capture_enabled_for_nc(
	nrt_inspect_config_t *options, uint32_t nc_idx, bool enabled);
/* As nrt_sys_trace_config_set_capture_enabled_for_event_type. */
NRT_API NRT_STATUS nrt_inspect_config_set_capture_enabled_for_event_type_string(
	nrt_inspect_config_t *options, const char *event_type, bool enabled);
/* The same by number, 0 to 45.  Not in libnrt 2.31; other versions had it. */
NRT_API NRT_STATUS nrt_inspect_config_set_capture_enabled_for_event_type(
	nrt_inspect_config_t *options, uint32_t event_type, bool enabled);
/* Inspect executions; or keep device profiles of those that fail. */
NRT_API NRT_STATUS nrt_inspect_config_set_enable_inspect(
	nrt_inspect_config_t *options, bool enable_inspect);
NRT_API NRT_STATUS nrt_inspect_config_set_enable_inspect_on_fail(
	nrt_inspect_config_t *options, bool enable_inspect_on_fail);
NRT_API NRT_STATUS nrt_inspect_config_set_inspect_device_profile_mode(
	nrt_inspect_config_t *options, nrt_inspect_device_profile_mode_t mode);
/* As nrt_sys_trace_config_set_max_events_per_nc. */
NRT_API NRT_STATUS nrt_inspect_config_set_sys_trace_max_events_per_nc(
	nrt_inspect_config_t *options, uint64_t sys_trace_max_events_per_nc);

/* Names of the four activities; those of the object that are enabled.  The caller frees the list with
 * nrt_inspect_config_free_activity_types, or each text and the array with free. */
NRT_API NRT_STATUS nrt_inspect_config_get_all_activity_types(
	const char ***activity_types, size_t *count);
NRT_API NRT_STATUS nrt_inspect_config_get_enabled_activity_types(
	nrt_inspect_config_t *options, const char ***activity_types, size_t *count);
NRT_API void nrt_inspect_config_free_activity_types(const char **activity_types, size_t count);

#ifdef __cplusplus
}
#endif

#endif
