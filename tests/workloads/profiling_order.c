/* SPDX-License-Identifier: Apache-2.0 */
/*
 * profiling_order.c - the calls of a framework's own profiling module to the inspect session, in
 * its order, from C.
 *
 * A config with its defaults, the directory "./output", cores by a text like "0" or "4-7", event
 * types by name, and the free of the config straight after the begin, or with `--free late` after
 * the stop.
 */
#include <nrt/nrt_profile.h>

#include "tests/workloads/workload.h"

#define MODEL                                                                    \
	"ntrace-model 1\nname profiled\ninput a float32 8\noutput c float32 8\n" \
	"step PE 30us copy a c\nstep ACT 20us copy a c\n" /* a run of it takes 50 us */

static unsigned executions = 3, core;
static const char *cores = "0", *types = "", *freed = "early";

/* "4-7", or one number. */
static bool choose_cores(nrt_inspect_config_t *config, const char *text)
{
	unsigned low, high;
	int n = sscanf(text, "%u-%u", &low, &high);

	if (n < 1)
		return false;
	if (n == 1)
		high = low;
	for (unsigned nc = 0; nc < 256; nc++)
		if (failed("nrt_inspect_config_set_capture_enabled_for_nc",
			    nrt_inspect_config_set_capture_enabled_for_nc(
				    config, nc, nc >= low && nc <= high)))
			return false;
	return true;
}

/* Those that are named, separated by commas; none: all. */
static bool choose_types(nrt_inspect_config_t *config, const char *list)
{
	char *text = strdup(list), *place, *name;
	bool ok = text != NULL;

	if (ok && *list)
		ok = !failed("..._event_type_string(hardware)",
			     nrt_inspect_config_set_capture_enabled_for_event_type_string(
				     config, "hardware", false)) &&
		     !failed("..._event_type_string(software)",
			     nrt_inspect_config_set_capture_enabled_for_event_type_string(
				     config, "software", false));
	for (name = ok ? strtok_r(text, ",", &place) : NULL; name && ok;
		name = strtok_r(NULL, ",", &place))
		ok = !failed(name, nrt_inspect_config_set_capture_enabled_for_event_type_string(
					   config, name, true));
	free(text);
	return ok;
}

static bool make_config(nrt_inspect_config_t **ret)
{
	return !failed("nrt_inspect_config_allocate", nrt_inspect_config_allocate(ret)) &&
	       !failed("nrt_inspect_config_set_defaults", nrt_inspect_config_set_defaults(*ret)) &&
	       !failed("nrt_inspect_config_set_output_dir",
		       nrt_inspect_config_set_output_dir(*ret, "./output")) &&
	       !failed("nrt_inspect_config_set_enable_inspect",
		       nrt_inspect_config_set_enable_inspect(*ret, true)) &&
	       !failed("nrt_inspect_config_set_inspect_device_profile_mode",
		       nrt_inspect_config_set_inspect_device_profile_mode(
			       *ret, NRT_INSPECT_DEVICE_PROFILE_MODE_SESSION)) &&
	       choose_cores(*ret, cores) && choose_types(*ret, types);
}

static bool work(void)
{
	nrt_tensor_t *a = NULL, *c = NULL;
	nrt_tensor_set_t *in = NULL, *out = NULL;
	nrt_model_t *model = NULL;
	bool ok = !failed("nrt_load", nrt_load(MODEL, sizeof(MODEL) - 1, (int)core, 1, &model)) &&
		  !failed("nrt_allocate_tensor_set", nrt_allocate_tensor_set(&in)) &&
		  !failed("nrt_allocate_tensor_set", nrt_allocate_tensor_set(&out)) &&
		  tensor_for(in, core, "a", 32, &a) && tensor_for(out, core, "c", 32, &c);

	for (unsigned i = 0; i < executions && ok; i++)
		ok = !failed("nrt_execute", nrt_execute(model, in, out));
	nrt_destroy_tensor_set(&in);
	nrt_destroy_tensor_set(&out);
	nrt_tensor_free(&a);
	nrt_tensor_free(&c);
	return model && !failed("nrt_unload", nrt_unload(model)) && ok;
}

static bool free_config(nrt_inspect_config_t **config)
{
	NRT_STATUS status = nrt_inspect_config_free(*config);

	*config = NULL;
	return !failed("nrt_inspect_config_free", status);
}

static bool profile(void)
{
	nrt_inspect_config_t *config = NULL;
	bool early = !strcmp(freed, "early"), ok;

	ok = make_config(&config) &&
	     !failed("nrt_inspect_begin_with_options", nrt_inspect_begin_with_options(config));
	if (early)
		ok &= free_config(&config);
	ok = ok && work();
	ok &= !failed("nrt_inspect_stop", nrt_inspect_stop());
	if (!early)
		ok &= free_config(&config);
	return ok;
}

int main(int argc, char **argv)
{
	const struct workload_option options[] = {
		NUMBER_OPTION("--executions", executions, 100000),
		NUMBER_OPTION("--core", core, 255),
		TEXT_OPTION("--cores", cores),
		TEXT_OPTION("--types", types),
		TEXT_OPTION("--free", freed),
		{0},
	};

	if (!workload_options(argc, argv, options)) {
		fprintf(stderr,
			"usage: %s [--executions N] [--core N] [--cores LIST] [--types LIST] "
			"[--free early|late]\n",
			argv[0]);
		return 2;
	}
	if (!init_cores(core + 1) || !profile())
		return 1;
	nrt_close();
	puts("all answers are right");
	return 0;
}
