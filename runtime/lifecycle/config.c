/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config.c - settings: the environment through the table of runtime/base/env.def.
 *
 * A malformed value fails nrt_init instead of being taken for something else, also where the value would
 * have no effect here: the vendor's library may refuse it [inferred], and is the worse place to learn that.
 */
#include "runtime/lifecycle/config.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/env_checks.h"
#include "runtime/base/env_table.h"
#include "runtime/log/log.h"
#include "runtime/profile/notification_types.h"

#define TAG "NRT"

/* Where a variable's value goes; the kind of its row says what the field is. */
static const struct field {
	enum env_id id;
	size_t offset;
} fields[] = {
	{ENV_ID_NTRACE_ALLOW_RESET, offsetof(struct config, allow_reset)},
	{ENV_ID_NEURON_RT_VISIBLE_CORES, offsetof(struct config, visible_cores)},
	{ENV_ID_NEURON_RT_NUM_CORES, offsetof(struct config, core_count)},
	{ENV_ID_NEURON_RT_VIRTUAL_CORE_SIZE, offsetof(struct config, lnc_size)},
	{ENV_ID_NEURON_LOGICAL_NC_CONFIG, offsetof(struct config, lnc_size)}, /* goes before */
	{ENV_ID_NEURON_RT_RESET_CORES, offsetof(struct config, reset_cores)},
	{ENV_ID_NEURON_RT_EXEC_TIMEOUT, offsetof(struct config, exec_timeout_s)},
	{ENV_ID_NEURON_RT_ASYNC_EXEC_MAX_INFLIGHT_REQUESTS,
		offsetof(struct config, async_max_inflight)},
	{ENV_ID_NEURON_RT_XU_COMPUTE_MAX_QUEUED_REQUESTS,
		offsetof(struct config, compute_queue_limit)},
	{ENV_ID_NEURON_RT_TRACE_NUM_ENTRIES, offsetof(struct config, trace_entries)},
	{ENV_ID_NEURON_RT_OOM_DUMP_DIRECTORY, offsetof(struct config, oom_directory)},
	{ENV_ID_NEURON_RT_LOCAL_CORE_DUMP_DIRECTORY, offsetof(struct config, local_dump_dir)},
	{ENV_ID_NEURON_RT_S3_CORE_DUMP_PREFIX, offsetof(struct config, s3_dump_prefix)},
	{ENV_ID_NTRACE_DUMP_SECONDS, offsetof(struct config, dump_seconds)},
	{ENV_ID_NTRACE_DEVICE_PROFILE, offsetof(struct config, profile_dir)},
	{ENV_ID_NTRACE_OUTPUT_LAYOUT, offsetof(struct config, output_layout)},
	{ENV_ID_NEURON_RT_ROOT_COMM_ID, offsetof(struct config, root_comm_id)},
	{ENV_ID_NTRACE_PROFILE_MAX_MB, offsetof(struct config, profile.max_mb)},
#define RING(size)                                                                         \
	{                                                                                  \
		ENV_ID_NEURON_RT_PROFILE_BUF_##size##_MB,                                  \
			offsetof(struct config, profile.ring_mb[NOTIFICATION_SIZE_##size]) \
	}
	RING(INSTRUCTION),
	RING(EVENT),
	RING(DMA),
	RING(THROTTLE),
	RING(CC_CORE_INSTRUCTION),
	RING(CC_CORE_EVENT),
#undef RING
};
static_assert(
	sizeof(((struct config *)0)->profile.ring_mb) == NOTIFICATION_SIZE_COUNT * sizeof(uint32_t),
	"one per size");

static const struct field inspect_fields[] = {
	{ENV_ID_NEURON_RT_INSPECT_ENABLE, offsetof(struct config_inspect, enable)},
	{ENV_ID_NEURON_RT_INSPECT_ON_FAIL, offsetof(struct config_inspect, on_fail)},
	{ENV_ID_NEURON_RT_INSPECT_SYSTEM_PROFILE, offsetof(struct config_inspect, system_profile)},
	{ENV_ID_NEURON_RT_INSPECT_HOST_MEMORY, offsetof(struct config_inspect, host_memory)},
	{ENV_ID_NEURON_RT_INSPECT_CPU_UTIL, offsetof(struct config_inspect, cpu_util)},
	{ENV_ID_NEURON_RT_INSPECT_DEVICE_PROFILE, offsetof(struct config_inspect, device_profile)},
	{ENV_ID_NEURON_RT_INSPECT_SYS_TRACE_MAX_EVENTS_PER_NC,
		offsetof(struct config_inspect, max_events_per_nc)},
	{ENV_ID_NEURON_RT_INSPECT_OUTPUT_DIR, offsetof(struct config_inspect, output_dir)},
	{ENV_ID_NEURON_RT_INSPECT_EVENT_FILTER_TYPE, offsetof(struct config_inspect, types)},
	{ENV_ID_NEURON_RT_INSPECT_EVENT_FILTER_NC, offsetof(struct config_inspect, cores)},
};
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

struct setting {
	bool given;
	struct env_value value;
};

static NRT_STATUS worse(NRT_STATUS a, NRT_STATUS b)
{
	return a > b ? a : b;
}

/* The text of a variable; NULL when it has none. */
static const char *text_of(enum env_id id)
{
	const char *text = getenv(env_row(id)->name);

	return env_has_value(env_row(id), text) ? text : NULL;
}

static const char *lookup(void *context, enum env_id id)
{
	(void)context;
	return text_of(id);
}

/* ---- one variable ------------------------------------------------------------------------- */

static NRT_STATUS refuse(enum env_id id, const char *text, int rc)
{
	char allowed[ENV_ALLOWED_BYTES];
	const struct env_row *row = env_row(id);

	if (rc == -ERANGE)
		log_error(TAG, "Logical Neuron cores are not contiguous");
	log_error(TAG, "%s='%.200s' is not %s", row->name, text,
		env_allowed(row, allowed, sizeof(allowed)));
	if (id == ENV_ID_NEURON_LOGICAL_NC_CONFIG || id == ENV_ID_NEURON_RT_VIRTUAL_CORE_SIZE)
		log_error(TAG, "Failed to parse vnc config");
	return NRT_INVALID;
}

/* Is it one that is not even looked at? */
static bool left_alone(enum env_id id)
{
	const struct env_row *row = env_row(id);

	return env_left_unread(id, lookup, NULL) || row->use == ENV_REMOVED ||
	       row->kind == ENV_SEARCHED; /* the log has its own rule */
}

static NRT_STATUS read_setting(enum env_id id, struct setting *ret)
{
	const char *text = text_of(id);
	int rc;

	ret->given = false;
	if (!text || left_alone(id))
		return NRT_SUCCESS;
	rc = env_parse(env_row(id), text, &ret->value);
	if (rc < 0)
		return refuse(id, text, rc);
	ret->given = true;
	return NRT_SUCCESS;
}

static void put_text(const char *text, const struct env_value *v, void *field)
{
	(void)v;
	*(const char **)field = text;
}

static void put_flag(const char *text, const struct env_value *v, void *field)
{
	(void)text;
	*(bool *)field = v->number != 0;
}

/* Limits beyond 32 bits are none. */
static void put_number(const char *text, const struct env_value *v, void *field)
{
	(void)text;
	*(uint32_t *)field = v->number < UINT32_MAX ? (uint32_t)v->number : UINT32_MAX;
}

static void put_cores(const char *text, const struct env_value *v, void *field)
{
	(void)text;
	*(struct config_cores *)field = (struct config_cores){.first = v->first, .count = v->count};
}

/* Cores beyond the last that an event may name are not allowed (env.def). */
static void put_core_set(const char *text, const struct env_value *v, void *field)
{
	(void)text;
	memcpy(field, v->cores, CONFIG_INSPECT_CORES / 8);
}

static void (*const putters[])(const char *, const struct env_value *, void *) = {
	[ENV_TEXT] = put_text,
	[ENV_FLAG] = put_flag,
	[ENV_NUMBER] = put_number,
	[ENV_CLAMPED] = put_number,
	[ENV_CORE_SIZE] = put_number,
	[ENV_WORD] = put_number,
	[ENV_CORES] = put_cores,
	[ENV_CORE_SET] = put_core_set,
};

/* What was given, else what the table has for it, else 0. */
static void fill(const struct field *f, const struct setting *s, void *c)
{
	const struct env_row *row = env_row(f->id);
	const char *text = s->given ? text_of(f->id) : row->initial;
	struct env_value value = s->value;

	if (s->given || env_parse(row, text, &value) == 0)
		putters[row->kind](text, &value, (char *)c + f->offset);
}

/* ---- all of them -------------------------------------------------------------------------- */

/* What one variable asks of another. */
static NRT_STATUS check_barrier(void)
{
	enum env_id id = ENV_ID_NEURON_RT_RANKS_PER_NETWORK_PROXY;
	char wrong[ENV_CHECK_BYTES];

	if (!env_check(id, lookup, NULL, wrong, sizeof(wrong)))
		return NRT_SUCCESS;
	log_error(TAG, "%s=%s %s", env_row(id)->name, text_of(id), wrong);
	return NRT_INVALID;
}

static const char *size_variable(const struct setting *s)
{
	static const enum env_id ids[] = {
		ENV_ID_NEURON_LOGICAL_NC_CONFIG, ENV_ID_NEURON_RT_VIRTUAL_CORE_SIZE};

	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++)
		if (s[ids[i]].given)
			return env_row(ids[i])->name;
	return NULL;
}

static NRT_STATUS read_all(struct setting s[ENV_COUNT], struct config *ret)
{
	NRT_STATUS status = NRT_SUCCESS;
	struct config c = {0};

	for (int i = 0; i < ENV_COUNT; i++)
		status = worse(status, read_setting((enum env_id)i, &s[i]));
	status = worse(status, check_barrier());
	if (status)
		return status;
	for (size_t i = 0; i < COUNT(fields); i++)
		fill(&fields[i], &s[fields[i].id], &c);
	c.lnc_variable = size_variable(s);
	*ret = c;
	return NRT_SUCCESS;
}

static bool is_of_discovery(enum env_id id)
{
	return id == ENV_ID_NTRACE_DEVICE_ROOT || id == ENV_ID_NTRACE_ALLOW_DEVICE ||
	       id == ENV_ID_NEURON_RT_FAKE_INSTANCE_TYPE;
}

static void say_names(enum log_level level, bool discovery_alone)
{
	for (char **e = environ; e && *e; e++) {
		size_t len = strcspn(*e, "=");
		const struct env_row *meant = env_meant(*e, len);

		if (meant &&
			(!discovery_alone || is_of_discovery((enum env_id)(meant - env_row(0)))))
			log_write(level, TAG, __func__,
				"%.*s is not a variable of this library; did you mean %s?",
				(int)len, *e, meant->name);
	}
}

void config_say_discovery_names(void)
{
	say_names(LOG_LEVEL_ERROR, true);
}

/* Who sets one of these waits for output that does not come. */
static const struct {
	enum env_id id;
	const char *instead;
} outputs[] = {
	{ENV_ID_NEURON_RT_DBG_DUMP_INPUTS_ON_ERR, "no inputs are kept"},
};

static const char *missing_output(enum env_id id, const struct setting *s)
{
	for (size_t i = 0; i < sizeof(outputs) / sizeof(outputs[0]); i++)
		if (outputs[i].id == id && text_of(id) && s->value.number)
			return outputs[i].instead;
	return NULL;
}

static void warn_of_values(const struct setting *s)
{
	for (int i = 0; i < ENV_COUNT; i++) {
		const struct env_row *row = env_row((enum env_id)i);

		if (row->use == ENV_REMOVED && text_of((enum env_id)i))
			log_warn(TAG, "%s has no effect any more: %s", row->name, row->text);
		else if (s[i].given && row->kind == ENV_SIZES && s[i].value.ignored)
			log_warn(TAG, "%s has more items than %" PRId64 "; the rest is ignored",
				row->name, row->max);
		else if (missing_output((enum env_id)i, &s[i]))
			log_warn(TAG, "%s='%.200s' has no effect in this library: %s", row->name,
				text_of((enum env_id)i), missing_output((enum env_id)i, &s[i]));
		else if (s[i].given && row->use == ENV_ACCEPTED)
			log_info(TAG, "%s has no effect in this library", row->name);
		else if (env_waits_for_session((enum env_id)i, lookup, NULL))
			log_info(TAG,
				"%s is set, NEURON_RT_INSPECT_ENABLE is not: a session begins by "
				"nrt_inspect_begin alone",
				row->name);
	}
	if (s[ENV_ID_NEURON_RT_VISIBLE_CORES].given && s[ENV_ID_NEURON_RT_NUM_CORES].given &&
		s[ENV_ID_NEURON_RT_NUM_CORES].value.number)
		log_warn(TAG, "Using NEURON_RT_VISIBLE_CORES to allocate Logical Neuron Cores "
			      "and not NEURON_RT_NUM_CORES");
}

static NRT_STATUS read_config(bool warn, struct config *ret)
{
	struct setting *s = calloc(ENV_COUNT, sizeof(*s));
	NRT_STATUS status;

	if (!s) {
		log_error(TAG, "no memory for the settings");
		return NRT_RESOURCE;
	}
	status = read_all(s, ret);
	if (warn) {
		say_names(LOG_LEVEL_WARN, false);
		warn_of_values(s);
	}
	free(s);
	return status;
}

NRT_STATUS config_read(struct config *ret)
{
	return read_config(true, ret);
}

NRT_STATUS config_peek(struct config *ret)
{
	return read_config(false, ret);
}

NRT_STATUS config_read_inspect(struct config_inspect *ret)
{
	struct config_inspect c = {0};
	NRT_STATUS status = NRT_SUCCESS;
	struct setting s = {0};

	for (size_t i = 0; i < COUNT(inspect_fields); i++) {
		const struct field *f = &inspect_fields[i];

		status = worse(status, read_setting(f->id, &s));
		fill(f, &s, &c);
		if (f->id == ENV_ID_NEURON_RT_INSPECT_EVENT_FILTER_NC)
			c.chosen = s.given;
	}
	if (!status)
		*ret = c;
	return status;
}

NRT_STATUS config_read_discovery(struct config_discovery *ret)
{
	struct setting root, fake, allow;
	NRT_STATUS status = read_setting(ENV_ID_NTRACE_DEVICE_ROOT, &root);

	status = worse(status, read_setting(ENV_ID_NEURON_RT_FAKE_INSTANCE_TYPE, &fake));
	status = worse(status, read_setting(ENV_ID_NTRACE_ALLOW_DEVICE, &allow));
	if (status)
		return status;
	*ret = (struct config_discovery){
		.root = root.given ? text_of(ENV_ID_NTRACE_DEVICE_ROOT) : "",
		.fake_instance = fake.given ? text_of(ENV_ID_NEURON_RT_FAKE_INSTANCE_TYPE) : "",
		.allow_device = allow.given && allow.value.number,
	};
	return NRT_SUCCESS;
}
