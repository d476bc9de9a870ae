/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nrt_init_order_test.c - the order of the steps of nrt_init and nrt_close: of their names, and of what they
 * do.
 *
 * After each step the watch of init.h looks for what each of them leaves behind: it must be there once the step
 * was passed, and not before.
 */
#include <errno.h>

#include "runtime/base/kept_fd.h"
#include "runtime/exec/object.h"
#include "runtime/trace/announce.h"
#include "tests/shim/shim.h"
#include "tests/unit/nrt_init_fixture.h"

static struct place *here;
static char order[1024];
static int faults;
static nrt_model_t *model;

/* ---- what can be seen --------------------------------------------------------------------- */

static bool in_log(const char *text)
{
	char *all = program_text(here->log.s);
	bool found = all && strstr(all, text);

	free(all);
	return found;
}

static bool sees_devices(const struct runtime *r)
{
	return r->devices && r->devices->topology.device_count;
}

static bool sees_environment(const struct runtime *r)
{
	(void)r;
	return in_log("NEURON_RT_ULTRASERVER_NODE_ID has no effect");
}

static bool sees_settings(const struct runtime *r)
{
	return r->core_count == 1;
}

static bool sees_banner(const struct runtime *r)
{
	(void)r;
	return in_log("Neuron Runtime 2.31.24.0");
}

static bool sees_driver(const struct runtime *r)
{
	return r->devices && r->devices->driver.major && kept_fd_valid(&r->devices->query.kept);
}

static bool sees_marks(const struct runtime *r)
{
	(void)r;
	return !cores_are_free(here);
}

/* Known are they when the library can tell without a device. */
static bool sees_counts(const struct runtime *r)
{
	uint32_t n;
	bool known;

	(void)r;
	setenv("NTRACE_DEVICE_ROOT", "/nowhere", 1);
	known = lib.nrt_get_total_nc_count(&n) == NRT_SUCCESS;
	setenv("NTRACE_DEVICE_ROOT", here->device.root, 1);
	return known;
}

static bool sees_framework(const struct runtime *r)
{
	return !strcmp(r->fw_version, "9.9");
}

static bool sees_reset_cores(const struct runtime *r)
{
	return r->devices && r->devices->cores && in_log("Reset triggered for nd 0");
}

static int child_is_marked(void *arg)
{
	(void)arg;
	return state_now() == STATE_CHILD ? 0 : 1;
}

static bool sees_fork_handler(const struct runtime *r)
{
	(void)r;
	return scratch_child(child_is_marked, NULL) == 0;
}

static bool sees_tracing(const struct runtime *r)
{
	(void)r;
	return in_log("Not traced: ");
}

static bool lost_models(const struct runtime *r)
{
	struct object *o;

	(void)r;
	if (object_get_for("test", model, OBJECT_MODEL, &o) != NRT_SUCCESS)
		return true;
	object_put(o);
	return false;
}

static bool lost_devices(const struct runtime *r)
{
	return !r->devices && !sees_marks(r);
}

static bool lost_counts(const struct runtime *r)
{
	return !sees_counts(r);
}

/* ---- the watch ---------------------------------------------------------------------------- */

struct effect {
	const char *step;
	bool (*seen)(const struct runtime *r);
};

static const struct effect of_init[] = {
	{"device discovery", sees_devices},
	{"environment", sees_environment},
	{"settings", sees_settings},
	{"banner", sees_banner},
	{"driver negotiation", sees_driver},
	{"core allocation", sees_marks},
	{"core usage", sees_counts},
	{"framework", sees_framework},
	{"devices", sees_reset_cores},
	{"fork handlers", sees_fork_handler},
	{"tracing", sees_tracing},
	{NULL, NULL},
};

static const struct effect of_close[] = {
	{"execution and models", lost_models},
	{"devices and marks", lost_devices},
	{"framework, microcode, settings", lost_counts},
	{NULL, NULL},
};

static bool passed(const char *step)
{
	char entry[64];

	snprintf(entry, sizeof(entry), "; %s; ", step);
	return strstr(order, entry) != NULL;
}

static void look(const struct effect *effects, const char *step, const struct runtime *r)
{
	size_t used = strlen(order);

	snprintf(order + used, sizeof(order) - used, "%s; ", step);
	for (const struct effect *e = effects; e->step; e++) {
		if (e->seen(r) == passed(e->step))
			continue;
		dprintf(complaint_fd, "after '%s': what '%s' does is %s\n", step, e->step,
			passed(e->step) ? "not done" : "done already");
		faults++;
	}
}

static void watch_init(const char *step, const struct runtime *r)
{
	look(of_init, step, r);
}

static void watch_close(const char *step, const struct runtime *r)
{
	bool producer = !passed("profile session");

	look(of_close, step, r);
	if (state_now() == (producer ? STATE_INIT : STATE_CLOSED))
		return;
	dprintf(complaint_fd, "after '%s': %s\n", step, state_name(state_now()));
	faults++;
}

/* ---- tests -------------------------------------------------------------------------------- */

static int order_is(const char *documented)
{
	if (strcmp(order, documented) != 0)
		dprintf(complaint_fd, "%s\n", order);
	WANT(strcmp(order, documented) == 0);
	WANT(faults == 0);
	return 0;
}

static int init_in_order(void *arg)
{
	here = arg;
	WANT(enter_linked(here, "DEBUG") == 0);
	setenv("NEURON_RT_ULTRASERVER_NODE_ID", "0", 1);
	setenv("NEURON_RT_NUM_CORES", "1", 1);
	setenv(ANNOUNCE_ENV, "/nowhere", 1);
	strcpy(order, "; ");
	init_set_watch(watch_init);
	WANT_STATUS(lib.nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "9.9", NULL), 0);
	init_set_watch(NULL);
	lib.nrt_close();
	return order_is("; clocks; driver callback; device discovery; environment; "
			"hardware revision; settings; banner; driver negotiation; core allocation; "
			"core usage; log; microcode; collectives firmware; decode tables; "
			"collectives; framework; devices; fork handlers; profile session; inspect; "
			"tracing; ready program; ");
}

TEST("nrt init: the steps do their work in the documented order", "[nrt][vdev]")
{
	NEED_VDEV();
	with_device(init_in_order, fixture_device);
}

static int close_in_order(void *arg)
{
	here = arg;
	WANT(enter_linked(here, NULL) == 0);
	WANT_STATUS(init(), 0);
	WANT_STATUS(lib.nrt_load(COPY_MODEL, strlen(COPY_MODEL), 0, -1, &model), 0);
	strcpy(order, "; ");
	init_set_watch(watch_close);
	lib.nrt_close();
	init_set_watch(NULL);
	return order_is("; asynchronous send and receive; inspect; system trace capture; "
			"profile session; execution and models; profiles, ours; "
			"tracing, ours; communicators; devices and marks; framework, microcode, "
			"settings; log; ");
}

TEST("nrt close: the steps do their work in the documented order", "[nrt][vdev]")
{
	NEED_VDEV();
	with_device(close_in_order, fixture_device);
}
