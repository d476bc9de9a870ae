/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model.c - loading and unloading, and questions about a model.
 *
 * A load puts a program image into device memory, makes room for the binding table and for temporary
 * tensors, and binds both to the core's queue.
 */
#include "runtime/exec/model.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "runtime/device/simulate.h"
#include "runtime/exec/model_text.h"
#include "runtime/exec/ring_memory.h"
#include "runtime/lifecycle/core_dump.h"
#include "runtime/lifecycle/runtime.h"
#include "runtime/log/log.h"
#include "runtime/profile/collector.h"
#include "runtime/profile/exec_trace.h"
#include "runtime/profile/inspect_device.h"
#include "runtime/profile/profile.h"
#include "runtime/profile/recorded.h"
#include "runtime/trace/payload.h"
#include "runtime/trace/sys_trace.h"
#include "runtime/trace/trace.h"

#define TAG "NMGR"

static _Atomic uint64_t last_number;

/* What a caller wants. */
struct load {
	const char *call;
	const void *bytes;
	size_t size;
	int32_t vnc, vnc_count;
	uint32_t rank, ranks;
	nrt_model_t **model;
	/* Of one that could not be loaded, as far as it was read: */
	char failed_name[NRT_TENSOR_NAME_MAX], failed_uuid[PROFILE_UUID_BYTES];
};

/* ---- load --------------------------------------------------------------------------------- */

static void model_destroy(struct object *o)
{
	struct nrt_model *m = (struct nrt_model *)o;

	for (uint32_t i = 0; m->temps && i < m->desc.tensor_count; i++)
		memory_free(&m->temps[i]);
	memory_free(&m->bindings);
	for (uint32_t p = 0; p < CORES_MAX_SIZE; p++)
		memory_free(&m->programs[p]);
	if (m->number)
		atomic_fetch_sub(&m->core->models, 1);
	profile_node_put(m->node);
	model_text_put(m->text);
	free(m->temps);
	model_desc_free(&m->desc);
	free(m);
}

static NRT_STATUS place_program(struct nrt_model *m, uint32_t part)
{
	struct model_place place = m->place;
	struct vdev_program *image;
	size_t bytes;
	NRT_STATUS status;

	place.part = part;
	image = model_program(&m->desc, &place, &bytes);
	if (!image)
		return NRT_RESOURCE;
	status = memory_alloc(m->core + part, m->nc, MEMORY_INSTR_PE, bytes, &m->programs[part]);
	if (!status)
		status = memory_copy_in(&m->programs[part], 0, image, bytes);
	free(image);
	return status;
}

static NRT_STATUS place_tensors(struct nrt_model *m)
{
	/* A model without tensors has a table of one row, for there is no empty memory. */
	uint32_t n = m->desc.tensor_count ? m->desc.tensor_count : 1;
	size_t bytes = model_bindings_bytes(m);
	NRT_STATUS status = memory_alloc(m->core, m->nc, MEMORY_DMA_RING_IO,
		bytes ? bytes : sizeof(struct vdev_binding), &m->bindings);

	m->temps = calloc(n, sizeof(*m->temps));
	if (!m->temps)
		return NRT_RESOURCE;
	for (uint32_t i = 0; i < m->desc.tensor_count && !status; i++)
		if (m->desc.tensors[i].role == MODEL_TEMP)
			status = memory_alloc(m->core, m->nc, MEMORY_SCRATCHPAD,
				m->desc.tensors[i].bytes, &m->temps[i]);
	return status;
}

static NRT_STATUS bind_part(struct nrt_model *m, uint32_t part)
{
	struct device_core *core = m->core + part;
	int rc;

	if (core->bound == m->number)
		return NRT_SUCCESS;
	core->bound = 0;
	rc = device_queue_init(core, m->programs[part].handle, m->bindings.handle);
	if (rc < 0) {
		log_error(TAG, "Queue of nc %u: %s", m->nc, device_strerror(rc));
		return status_from_errno(rc);
	}
	core->bound = m->number;
	return NRT_SUCCESS;
}

NRT_STATUS model_bind(struct nrt_model *m)
{
	NRT_STATUS status = NRT_SUCCESS;

	for (uint32_t p = 0; p < m->place.parts && !status; p++)
		status = bind_part(m, p);
	return status;
}

NRT_STATUS model_cancel(struct nrt_model *m, uint32_t part)
{
	int rc = device_queue_release(m->core + part);

	if (rc < 0)
		log_warn(TAG, "Queue of nc %u: %s", m->nc, device_strerror(rc));
	m->core[part].bound = 0;
	return bind_part(m, part);
}

static int try_rings(struct nrt_model *m)
{
	int rc = 0;

	pthread_mutex_lock(&m->core->lock);
	for (uint32_t p = 0; p < m->place.parts && rc == 0; p++)
		rc = device_rings_open(runtime_get()->devices, m->core + p);
	if (rc == 0)
		ring_memory_add(m->nc, m->core, m->place.parts);
	pthread_mutex_unlock(&m->core->lock);
	return rc;
}

static NRT_STATUS open_rings(struct nrt_model *m)
{
	int rc = try_rings(m);

	while (rc == -ENOMEM && collector_give_room(m->core))
		rc = try_rings(m);
	if (rc < 0)
		log_error(TAG, "Notification rings of nc %u: %s", m->nc, device_strerror(rc));
	return status_from_errno(rc);
}

static NRT_STATUS place(struct nrt_model *m)
{
	NRT_STATUS status = NRT_SUCCESS;

	for (uint32_t p = 0; p < m->place.parts && !status; p++)
		status = place_program(m, p);
	if (!status)
		status = place_tensors(m);
	if (!status)
		status = open_rings(m);
	if (status)
		return status;
	pthread_mutex_lock(&m->core->lock);
	status = model_bind(m);
	pthread_mutex_unlock(&m->core->lock);
	return status;
}

static NRT_STATUS parse(const void *bytes, size_t size, struct model_desc *ret)
{
	struct model_error error;
	int rc = model_parse(bytes, size, ret, &error);

	if (rc == 0)
		return NRT_SUCCESS;
	if (error.line)
		log_error(TAG, "Model, line %u: %s", error.line, error.text);
	else
		log_error(TAG, "Model: %s", rc == -ENOMEM ? "out of memory" : error.text);
	if (rc == -EPROTONOSUPPORT) /* a NEFF, probably */
		log_set_error_cause(LOG_CAUSE_NEFF_ARCH_INCOMPAT);
	return rc == -EPROTONOSUPPORT ? NRT_UNSUPPORTED_NEFF_VERSION
	       : rc == -ENOMEM	      ? NRT_RESOURCE
				      : NRT_INVALID;
}

/* The core to load on: the one asked for, or the one with the fewest models. */
static NRT_STATUS choose_core(int32_t vnc, uint32_t *ret_nc)
{
	const struct device_system *d = runtime_get()->devices;
	uint32_t best = 0;

	if (vnc != -1) {
		if (!runtime_core(vnc)) {
			log_error(TAG, "There is no core %d; this process has %u", vnc,
				device_logical_count(d));
			return NRT_INVALID;
		}
		*ret_nc = (uint32_t)vnc;
		return NRT_SUCCESS;
	}
	for (uint32_t i = 1; i < device_logical_count(d); i++)
		if (atomic_load(&runtime_core((int32_t)i)->models) <
			atomic_load(&runtime_core((int32_t)best)->models))
			best = i;
	*ret_nc = best;
	return NRT_SUCCESS;
}

/* Ranks of one model, and of one root, meet; the only one meets nobody. */
static uint64_t group_of(const struct load *l)
{
	const char *root = runtime_get()->root_comm_id;

	return XXH3_64bits_withSeed(
		l->bytes, l->size, l->ranks > 1 ? XXH3_64bits(root, strlen(root)) : 0);
}

static bool take_text(struct nrt_model *m, const struct load *l)
{
	XXH128_hash_t digest = XXH3_128bits(l->bytes, l->size);

	m->digest[0] = digest.high64;
	m->digest[1] = digest.low64;
	m->text = model_text_get(l->bytes, l->size, m->digest);
	return m->text != NULL;
}

static NRT_STATUS check_ranks(const struct nrt_model *m)
{
	struct model_error error;

	if (!m->desc.collectives || model_check_ranks(&m->desc, m->place.ranks, &error) == 0)
		return NRT_SUCCESS;
	log_error(TAG, "Model, line %u: %s", error.line, error.text);
	return NRT_INVALID;
}

static void remember(struct load *l, const struct nrt_model *m)
{
	memcpy(l->failed_name, m->desc.name, sizeof(l->failed_name));
	if (m->text)
		profile_uuid(m, l->failed_uuid);
}

static NRT_STATUS load_on(uint32_t nc, struct load *l, struct nrt_model **ret)
{
	struct nrt_model *m = calloc(1, sizeof(*m));
	NRT_STATUS status;

	if (!m)
		return NRT_RESOURCE;
	m->nc = nc;
	m->core = runtime_core((int32_t)nc);
	m->place = (struct model_place){.parts = runtime_get()->devices->lnc_size,
		.rank = l->rank,
		.ranks = l->ranks,
		.group = group_of(l)};
	status = parse(l->bytes, l->size, &m->desc);
	if (!status)
		status = check_ranks(m);
	if (!status && !take_text(m, l))
		status = NRT_RESOURCE;
	if (!status) {
		m->id = trace_intern(m->desc.name);
		m->number = atomic_fetch_add(&last_number, 1) + 1;
		for (uint32_t i = 0; i < m->desc.step_count; i++)
			m->duration_ns += m->desc.steps[i].duration_ps / 1000;
		atomic_fetch_add(&m->core->models, 1);
		status = place(m);
	}
	if (status) {
		remember(l, m);
		model_destroy(&m->object);
		return status;
	}
	*ret = m;
	return NRT_SUCCESS;
}

/* A model of this library is a program for virtual devices, whatever has been allowed. */
static NRT_STATUS check_device(const struct device_core *core)
{
	if (!core->device->file.is_real)
		return NRT_SUCCESS;
	log_error(TAG,
		"Models of this library run on virtual devices only, and nd%u is a real one. "
		"`ntrace-vdev -- CMD` runs CMD on a virtual device",
		core->device->index);
	return NRT_INVALID;
}

static NRT_STATUS check_load(const struct load *l)
{
	if (!l->bytes || !l->model)
		log_error(TAG, "Model: no %s given (NULL)",
			l->bytes ? "place for its handle" : "bytes");
	else if (l->size == 0)
		log_error(TAG, "Model: empty (0 bytes)");
	else if (l->vnc_count != -1 && l->vnc_count != 1)
		log_error(TAG, "Model: for one core, not for %d", l->vnc_count);
	else if (l->rank >= l->ranks)
		log_error(TAG, "Model: there is no rank %u of %u: they count from 0", l->rank,
			l->ranks);
	else if (l->ranks > VDEV_MAX_RANKS)
		log_error(TAG, "Model: %u ranks; at most %u work together here", l->ranks,
			VDEV_MAX_RANKS);
	else if (l->ranks > 1 && !runtime_get()->root_comm_id[0])
		log_error(TAG,
			"Model: for %u ranks NEURON_RT_ROOT_COMM_ID must say whose they are: set "
			"it to the same "
			"ADDRESS:PORT in all processes of one job, and to another one in each job",
			l->ranks);
	else
		return NRT_SUCCESS;
	return NRT_INVALID;
}

/* What can be said before the events begin; *ret_nc: their core. */
static NRT_STATUS begin_load(const struct load *l, uint32_t *ret_nc)
{
	NRT_STATUS status = check_load(l);

	if (!status)
		status = choose_core(l->vnc, ret_nc);
	if (!status && simulate_lacks(runtime_get()->devices, SIMULATE_MODEL)) {
		status = NRT_INVALID;
		*ret_nc = TRACE_NC_UNKNOWN; /* no core gets a ring for it */
	}
	if (!status)
		status = check_device(runtime_core((int32_t)*ret_nc));
	if (!status)
		trace_core_touch(*ret_nc);
	if (!status)
		recorded_load(*ret_nc);
	if (!status)
		inspect_device_load(*ret_nc);
	return status;
}

static void put_record(
	uint32_t nc, enum exec_trace_type type, const struct nrt_model *m, NRT_STATUS status)
{
	const struct device_core *core = nc == TRACE_NC_UNKNOWN ? NULL : runtime_core((int32_t)nc);
	const struct exec_trace_event e = {.type = type,
		.data = m ? m->id : 0,
		.nd = core ? core->device->index : 0,
		.nc = core ? core->index : 0,
		.status = status,
		.hint = m ? m->desc.name : NULL};

	exec_trace_put(&e);
}

/* The load itself, with its event; status: that of begin_load. */
static NRT_STATUS load(struct load *l, uint32_t nc, NRT_STATUS status, struct nrt_model **ret)
{
	struct trace_span span = trace_start(nc, TRACE_MODEL_LOAD, NULL, 0);
	struct trace_model stop = {0};

	put_record(nc, EXEC_TRACE_MODEL_LOAD_START, NULL, NRT_SUCCESS);
	if (!status)
		status = load_on(nc, l, ret);
	if (*ret)
		stop.model_id = (*ret)->id;
	put_record(nc, EXEC_TRACE_MODEL_LOAD_END, *ret, status);
	trace_stop(&span, status, &stop, sizeof(stop));
	return status;
}

static void dump_failure(const struct load *l, uint32_t nc, NRT_STATUS status)
{
	if (status)
		core_dump(&(struct core_dump_of){.location = l->call,
			.code = status,
			.neff_name = l->failed_name,
			.neff_uuid = l->failed_uuid,
			.logical_core = nc,
			.has_core = nc != TRACE_NC_UNKNOWN});
}

static void publish(const struct load *l, struct nrt_model *m)
{
	if (!m)
		return;
	*l->model = object_publish(&m->object, OBJECT_MODEL, model_destroy);
}

NRT_STATUS nrt_load(
	const void *neff_bytes, size_t size, int32_t vnc, int32_t vnc_count, nrt_model_t **model)
{
	struct load l = {__func__, neff_bytes, size, vnc, vnc_count, 0, 1, model, "", ""};
	NRT_STATUS status = api_enter(__func__);
	uint32_t nc = TRACE_NC_UNKNOWN;
	struct nrt_model *m = NULL;

	if (status)
		return status;
	status = begin_load(&l, &nc);
	status = load(&l, nc, status, &m);
	publish(&l, m);
	dump_failure(&l, nc, status);
	api_leave();
	return status;
}

NRT_STATUS nrt_load_collectives(const void *neff_bytes, size_t size, int32_t vnc, int32_t vnc_count,
	uint32_t ctx_device_id, uint32_t ctx_device_count, nrt_model_t **model)
{
	struct load l = {__func__, neff_bytes, size, vnc, vnc_count, ctx_device_id,
		ctx_device_count, model, "", ""};
	struct trace_load_collectives start = {ctx_device_id, ctx_device_count};
	NRT_STATUS status = api_enter(__func__);
	uint32_t nc = TRACE_NC_UNKNOWN;
	struct nrt_model *m = NULL;
	struct trace_model stop = {0};
	struct trace_span span;

	if (status)
		return status;
	status = begin_load(&l, &nc);
	span = trace_start(nc, TRACE_CC_LOAD, &start, sizeof(start));
	status = load(&l, nc, status, &m);
	if (m) {
		stop.model_id = m->id;
		sys_trace_set_worker(nc, (int32_t)ctx_device_id);
	}
	trace_stop(&span, status, &stop, sizeof(stop));
	publish(&l, m);
	dump_failure(&l, nc, status);
	api_leave();
	return status;
}

NRT_STATUS nrt_unload(nrt_model_t *model)
{
	NRT_STATUS status = api_enter(__func__);
	struct object *o;

	if (status)
		return status;
	status = object_retire(model, OBJECT_MODEL, &o);
	if (!status) {
		struct nrt_model *m = (struct nrt_model *)o;

		/* Behind an execution in progress. */
		pthread_mutex_lock(&m->core->lock);
		pthread_mutex_unlock(&m->core->lock);
		object_put(o);
	}
	api_leave();
	return status;
}

/* ---- questions ---------------------------------------------------------------------------- */

/* A number that is 1 for every model. */
static NRT_STATUS answer_one(const char *call, const nrt_model_t *model, uint32_t *ret)
{
	NRT_STATUS status = api_enter(call);
	struct object *o;

	if (status)
		return status;
	status = ret ? object_get_for(call, model, OBJECT_MODEL, &o) : runtime_no_place(call);
	if (!status) {
		*ret = 1;
		object_put(o);
	}
	api_leave();
	return status;
}

NRT_STATUS nrt_get_model_vnc_count(const nrt_model_t *model, uint32_t *vnc_count)
{
	return answer_one(__func__, model, vnc_count);
}

NRT_STATUS nrt_get_model_nc_count(const nrt_model_t *model, uint32_t *nc_count)
{
	return answer_one(__func__, model, nc_count);
}

/* As many at once as a core runs: one. */
NRT_STATUS nrt_get_model_instance_count(nrt_model_t *model, uint32_t *instance_count)
{
	return answer_one(__func__, model, instance_count);
}

NRT_STATUS nrt_get_model_info(const nrt_model_t *model, nrt_model_info_t *info, size_t info_size_in,
	size_t *info_size_out)
{
	NRT_STATUS status = api_enter(__func__);
	struct object *o;

	if (status)
		return status;
	status = info && info_size_out ? object_get(model, OBJECT_MODEL, &o)
				       : runtime_no_place(__func__);
	if (!status && info_size_in < sizeof(*info)) {
		log_error(TAG, "Size is < %zu", sizeof(*info));
		status = NRT_INVALID;
		object_put(o);
	} else if (!status) {
		*info = (nrt_model_info_t){.vnc = ((const struct nrt_model *)o)->nc};
		*info_size_out = sizeof(*info);
		object_put(o);
	}
	api_leave();
	return status;
}

/* One block: the array, then the shapes that it points to. */
static nrt_tensor_info_array_t *describe(const struct model_desc *d)
{
	uint32_t visible = 0;
	nrt_tensor_info_array_t *a;
	uint32_t *shapes;

	for (uint32_t i = 0; i < d->tensor_count; i++)
		visible += d->tensors[i].role != MODEL_TEMP;
	a = calloc(1, sizeof(*a) + visible * (sizeof(nrt_tensor_info_t) +
						     MODEL_MAX_DIMS * sizeof(uint32_t)));
	if (!a)
		return NULL;
	shapes = (uint32_t *)(void *)&a->tensor_array[visible];
	for (uint32_t i = 0; i < d->tensor_count; i++) {
		const struct model_tensor *t = &d->tensors[i];
		nrt_tensor_info_t *info = &a->tensor_array[a->tensor_count];

		if (t->role == MODEL_TEMP)
			continue;
		memcpy(info->name, t->name, sizeof(info->name));
		info->usage =
			t->role == MODEL_INPUT ? NRT_TENSOR_USAGE_INPUT : NRT_TENSOR_USAGE_OUTPUT;
		info->size = t->bytes;
		info->dtype = t->dtype;
		info->shape = shapes + a->tensor_count * MODEL_MAX_DIMS;
		info->ndim = t->ndim;
		memcpy(info->shape, t->shape, sizeof(t->shape));
		a->tensor_count++;
	}
	return a;
}

NRT_STATUS nrt_get_model_tensor_info(nrt_model_t *model, nrt_tensor_info_array_t **tensor_info)
{
	NRT_STATUS status = api_enter(__func__);
	struct object *o;

	if (status)
		return status;
	status = tensor_info ? object_get(model, OBJECT_MODEL, &o) : runtime_no_place(__func__);
	if (!status) {
		nrt_tensor_info_array_t *a = describe(&((struct nrt_model *)o)->desc);

		status = a ? NRT_SUCCESS : NRT_RESOURCE;
		if (a)
			*tensor_info = a;
		object_put(o);
	}
	api_leave();
	return status;
}

NRT_STATUS nrt_free_model_tensor_info(nrt_tensor_info_array_t *tensor_info)
{
	free(tensor_info);
	return NRT_SUCCESS;
}
