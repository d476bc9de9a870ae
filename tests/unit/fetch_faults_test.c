/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch_faults_test.c - each allocation within nrt_sys_trace_fetch_events fails once, and all from each one on.
 *
 * A fetch that fails says NRT_RESOURCE, gives nothing, and takes nothing away: the next one has every event,
 * once.
 */
#include "tests/shim/shim.h"
#include "tests/unit/nrt_faults.h"
#include "tests/unit/sys_trace_reader.h"

#define WRITES 700 /* four events each: more than one batch of a reader, and some rooms that grow */
#define LOADS 8	   /* with long names: the memory for them grows in the first rounds */
#define MOST_ALLOCATIONS 200

/* New to the process in each round, so that the fetch has to take up its text. */
struct name {
	char s[201];
};

static struct name name_of(unsigned long n, bool and_all_behind, int load)
{
	struct name name;

	memset(name.s, 'n', sizeof(name.s));
	name.s[snprintf(name.s, sizeof(name.s), "m%lu_%d_%d", n, and_all_behind, load)] = '_';
	name.s[sizeof(name.s) - 1] = '\0';
	return name;
}

struct round {
	unsigned long n;
	bool and_all_behind;
	size_t events; /* that there must be; 0 = not known yet */
};

/* All events of a round, in order, with their names. */
static int whole(const json_t *events, const struct round *round)
{
	json_int_t last = 0;
	size_t i;
	json_t *e;

	WANT(events != NULL);
	WANT(!round->events || json_array_size(events) == round->events);
	WANT(count_of(events, "nrt_tensor_write", "start") == WRITES);
	WANT(count_of(events, "nrt_tensor_write", "stop") == WRITES);
	json_array_foreach(events, i, e)
	{
		if (strcmp(text(e, "event_type"), "nrt_tensor_write") != 0)
			continue;
		WANT(number(e, "id") > last);
		last = number(e, "id");
	}
	for (int load = 0; load < LOADS; load++) {
		const json_t *stop = stop_of(events, start_of(events, "nrt_load", (size_t)load));

		WANT(!strcmp(text(json_object_get(stop, "data"), "model_name"),
			name_of(round->n, round->and_all_behind, load).s));
	}
	return 0;
}

static int work(const struct job *j, const struct round *round)
{
	nrt_model_t *model = NULL;
	char text[512];
	float value = 1;

	for (int i = 0; i < WRITES; i++)
		WANT_STATUS(lib.nrt_tensor_write(j->a, &value, 0, sizeof(value)), 0);
	for (int load = 0; load < LOADS; load++) {
		snprintf(text, sizeof(text), "ntrace-model 1\nname %s\nstep SP 1us nop\n",
			name_of(round->n, round->and_all_behind, load).s);
		WANT_STATUS(lib.nrt_load(text, strlen(text), 1, -1, &model), 0);
		WANT_STATUS(lib.nrt_unload(model), 0);
	}
	return 0;
}

/* A capture whose fetch meets the fault, if *ret_happened. */
static int fetch_with_fault(
	const struct faults *f, const struct job *j, struct round *round, bool *ret_happened)
{
	nrt_sys_trace_config_t *config = NULL;
	char *buffer = NULL;
	size_t size = 0;
	json_t *events, *root;
	NRT_STATUS status;

	WANT_STATUS(lib.nrt_sys_trace_config_allocate(&config), 0);
	WANT_STATUS(lib.nrt_sys_trace_start(config), 0);
	lib.nrt_sys_trace_config_free(config);
	WANT(work(j, round) == 0);
	f->arm(round->n, round->and_all_behind);
	status = lib.nrt_sys_trace_fetch_events(&buffer, &size, NULL);
	*ret_happened = f->happened();
	f->arm(0, false);
	if (status) {
		WANT(*ret_happened);
		WANT_STATUS(status, NRT_RESOURCE);
		WANT(!buffer);
		events = fetch();
	} else {
		root = json_loads(buffer, 0, NULL);
		events = json_incref(json_object_get(root, "events"));
		json_decref(root);
		lib.nrt_sys_trace_buffer_free(buffer);
	}
	WANT(whole(events, round) == 0);
	round->events = json_array_size(events);
	json_decref(events);
	WANT_STATUS(lib.nrt_sys_trace_stop(), 0);
	return 0;
}

/* Until there is no further allocation to fail. */
static int each_fault(
	const struct faults *f, const struct job *j, struct round *round, bool and_all_behind)
{
	bool happened = true;

	round->and_all_behind = and_all_behind;
	for (round->n = 0; happened && ++round->n < MOST_ALLOCATIONS;)
		WANT(fetch_with_fault(f, j, round, &happened) == 0);
	WANT(round->n > 5 && !happened);
	return 0;
}

static int all_faults(const struct place *p, const struct faults *f)
{
	struct round round = {0};
	bool happened;
	struct job j;

	WANT(enter(p) == 0);
	WANT_STATUS(init(), 0);
	WANT(job_open(&j, ADD_MODEL, 0) == 0);
	WANT(fetch_with_fault(f, &j, &round, &happened) == 0);
	WANT(!happened && round.events > 4 * WRITES);
	WANT(each_fault(f, &j, &round, false) == 0);
	WANT(each_fault(f, &j, &round, true) == 0);
	lib.nrt_close();
	return 0;
}

TEST("fetch faults: the work, under tests/faults.so", "[.fetch_faults]")
{
	faults_work(all_faults);
}

TEST("fetch faults: a fetch whose memory runs out takes no event away", "[nrt][sys_trace][vdev]")
{
	faults_run("[.fetch_faults]");
}
