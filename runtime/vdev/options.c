/* SPDX-License-Identifier: Apache-2.0 */
/* options.c - the options of ntrace-vdev; see options.h. */
#include "runtime/vdev/options.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/instance.h"

#define MAX_MEMORY (64ull << 30) /* the address space of one HBM here */

enum option_key {
	KEY_ROOT = 'r',
	KEY_QUIET = 'q',
	KEY_DEVICES = 256,
	KEY_CORES,
	KEY_ARCH,
	KEY_INSTANCE,
	KEY_INSTANCE_ID,
	KEY_MEMORY,
	KEY_LATENCY,
	KEY_DRIVER,
	KEY_DRIVER_VERSION,
	KEY_COMPAT,
	KEY_WITHOUT,
	KEY_FAIL,
	KEY_DELAY,
	KEY_RESET_FAILS,
	KEY_SWITCH,
	KEY_RING_FULL,
	KEY_RING_HEAD,
	KEY_CLOCK_OFFSET,
	KEY_CLOCK_DRIFT,
	KEY_SEED,
	KEY_JITTER,
	KEY_DEVICE_TIME,
	KEY_FAULT,
};

const struct argp_option vdev_option_table[] = {
	{"root", KEY_ROOT, "DIR", 0, "Directory of the device; without it a private one", 0},
	{"quiet", KEY_QUIET, NULL, 0, "No banner", 0},
	{NULL, 0, NULL, 0, "The machine:", 1},
	{"instance", KEY_INSTANCE, "TYPE", 0,
		"Instance type, such as trn1.32xlarge, inf2.48xlarge, trn2.48xlarge "
		"(ntrace-vdev(1) "
		"has all): sets generation and devices",
		0},
	{"arch", KEY_ARCH, "v2|v3|v4", 0, "Generation (default v3)", 0},
	{"devices", KEY_DEVICES, "N", 0, "Devices, 1 to 64 (default 1)", 0},
	{"cores", KEY_CORES, "N", 0, "NeuronCores per device, 1 to 8 (default: v2 2, v3 and v4 8)",
		0},
	{"instance-id", KEY_INSTANCE_ID, "ID", 0,
		"Instance id (default i-virtual, which stands for none)", 0},
	{"memory", KEY_MEMORY, "BYTES[K|M|G]", 0, "Memory per device (default 1G, at most 64G)", 0},
	{"latency", KEY_LATENCY, "US", 0, "Microseconds before each launch (default 0)", 0},
	{NULL, 0, NULL, 0, "The driver:", 2},
	{"driver", KEY_DRIVER, "2.24|2.30", 0, "Whose requests it knows (default 2.30)", 0},
	{"driver-version", KEY_DRIVER_VERSION, "TEXT", 0,
		"Version that sysfs shows (default 2.24.7.0 or 2.30.2.0)", 0},
	{"compat", KEY_COMPAT, "MIN-MAX", 0,
		"Compatibility ids of runtimes (default that of the generation)", 0},
	{"without", KEY_WITHOUT, "NAME[,NAME...]", 0, "Requests that it does not know", 0},
	{NULL, 0, NULL, 0, "The cores:", 3},
	{"clock-offset", KEY_CLOCK_OFFSET, "NS", 0,
		"Nanoseconds that the clocks of cores show more (default 0)", 0},
	{"clock-drift", KEY_CLOCK_DRIFT, "PPM", 0,
		"How much faster these clocks run, -100000 to 100000 parts in a million (default "
		"0)",
		0},
	{"device-time", KEY_DEVICE_TIME, "real|steps", 0,
		"Whether the clocks of cores run always, or in runs alone (default real)", 0},
	{"jitter", KEY_JITTER, "PPM", 0,
		"By how much durations of instructions vary, up to 500000 (default 0)", 0},
	{"seed", KEY_SEED, "N", 0, "What jitter and drift of each core come from (default 0)", 0},
	{"switch", KEY_SWITCH, "US", 0,
		"Microseconds that a core takes for another model (default 0)", 0},
	{"ring-full", KEY_RING_FULL, "overwrite|drop|fail", 0,
		"What happens to a record that finds its ring full (default overwrite)", 0},
	{"ring-head", KEY_RING_HEAD, "count|none", 0,
		"Whether registers say how many records a ring got (default count)", 0},
	{NULL, 0, NULL, 0, "Faults (may be repeated):", 4},
	{"fail", KEY_FAIL, "NAME[:ERRNO[:NTH]]", 0,
		"Let every request NAME fail, or only the NTH (default EIO)", 0},
	{"delay", KEY_DELAY, "NAME:MS", 0, "Answer request NAME only after MS milliseconds", 0},
	{"fault", KEY_FAULT, "NAME[:CORE[:NTH]]", 0,
		"Let launches of a core (of the machine, * for all) go wrong, or only the NTH", 0},
	{"reset-fails", KEY_RESET_FAILS, NULL, 0,
		"Resets are taken, and NC_RESET_READY says of each that it failed", 0},
	{0},
};

/* ---- numbers ----------------------------------------------------------------------------- */

/* Reads digits; *ret_end is what follows. */
static bool read_number(
	const char *text, uint64_t min, uint64_t max, uint64_t *ret, const char **ret_end)
{
	char *end;

	errno = 0;
	*ret = strtoull(text, &end, 10);
	*ret_end = end;
	return text[0] >= '0' && text[0] <= '9' && !errno && *ret >= min && *ret <= max;
}

static bool parse_number(const char *text, uint64_t min, uint64_t max, uint64_t *ret)
{
	const char *end;

	return read_number(text, min, max, ret, &end) && !*end;
}

static bool parse_bytes(const char *text, uint64_t *ret)
{
	static const char units[] = "KMG";
	const char *end, *unit;
	unsigned shift = 0;

	if (!read_number(text, 1, MAX_MEMORY, ret, &end))
		return false;
	unit = *end ? strchr(units, *end) : NULL;
	if (unit) {
		shift = 10u * (unsigned)(unit - units + 1);
		end++;
	}
	if (*end || *ret > MAX_MEMORY >> shift)
		return false;
	*ret <<= shift;
	return true;
}

static const char *set_number(
	const char *value, uint64_t min, uint64_t max, uint64_t *ret, unsigned *ret_small)
{
	static char want[64];
	uint64_t n;

	snprintf(want, sizeof(want), "a number from %" PRIu64 " to %" PRIu64, min, max);
	if (!parse_number(value, min, max, &n))
		return want;
	if (ret)
		*ret = n;
	if (ret_small)
		*ret_small = (unsigned)n;
	return NULL;
}

/* ---- setters ----------------------------------------------------------------------------- */

static const char *set_root(struct vdev_choice *c, const char *value)
{
	c->options.root = value;
	return value[0] ? NULL : "the name of a directory";
}

static const char *set_quiet(struct vdev_choice *c, const char *value)
{
	(void)value;
	c->options.quiet = true;
	return NULL;
}

static const char *set_devices(struct vdev_choice *c, const char *value)
{
	return set_number(value, 1, VDEV_MAX_DEVICES, NULL, &c->options.config.devices);
}

static const char *set_cores(struct vdev_choice *c, const char *value)
{
	return set_number(value, 1, VDEV_MAX_CORES, NULL, &c->options.config.cores);
}

static const char *set_latency(struct vdev_choice *c, const char *value)
{
	return set_number(value, 0, 60000000, &c->options.config.latency_us, NULL);
}

static const char *set_switch(struct vdev_choice *c, const char *value)
{
	return set_number(value, 0, 60000000, &c->options.config.switch_us, NULL);
}

static const char *set_clock_offset(struct vdev_choice *c, const char *value)
{
	return set_number(value, 0, 1000000000000000ull, &c->options.config.timing.offset_ns, NULL);
}

static const char *set_clock_drift(struct vdev_choice *c, const char *value)
{
	bool slower = value[0] == '-';
	uint64_t ppm;

	if (!parse_number(value + slower, 0, VDEV_MAX_DRIFT_PPM, &ppm))
		return "a number from -100000 to 100000";
	c->options.config.timing.drift_ppm = slower ? -(int64_t)ppm : (int64_t)ppm;
	return NULL;
}

static const char *set_seed(struct vdev_choice *c, const char *value)
{
	return set_number(value, 0, UINT64_MAX, &c->options.config.timing.seed, NULL);
}

static const char *set_jitter(struct vdev_choice *c, const char *value)
{
	return set_number(value, 0, 500000, &c->options.config.timing.jitter_ppm, NULL);
}

static const char *set_device_time(struct vdev_choice *c, const char *value)
{
	c->options.config.timing.steps = strcmp(value, "steps") == 0;
	return strcmp(value, "real") == 0 || c->options.config.timing.steps ? NULL
									    : "one of real, steps";
}

static const char *set_ring_full(struct vdev_choice *c, const char *value)
{
	static const char *const names[] = {
		[VDEV_RING_OVERWRITE] = "overwrite",
		[VDEV_RING_DROP] = "drop",
		[VDEV_RING_FAIL] = "fail",
	};

	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(value, names[i]) == 0) {
			c->options.config.ring_full = (enum vdev_ring_full)i;
			return NULL;
		}
	}
	return "one of overwrite, drop, fail";
}

static const char *set_ring_head(struct vdev_choice *c, const char *value)
{
	c->options.config.no_ring_head = strcmp(value, "none") == 0;
	return strcmp(value, "count") == 0 || c->options.config.no_ring_head ? NULL
									     : "one of count, none";
}

static const char *set_arch(struct vdev_choice *c, const char *value)
{
	c->arch = vdev_arch_find(value);
	return c->arch ? NULL : "one of v2, v3, v4";
}

static const char *set_instance(struct vdev_choice *c, const char *value)
{
	static char want[256];

	c->options.config.instance = vdev_instance_find(value);
	if (c->options.config.instance)
		return NULL;
	vdev_instance_names(want, sizeof(want));
	return want;
}

/* Another one would not be taken by those who read it. */
static const char *set_instance_id(struct vdev_choice *c, const char *value)
{
	c->options.config.instance_id = value;
	return instance_is_id(value) && strlen(value) < INSTANCE_ID_BYTES
		       ? NULL
		       : "an id of EC2: " INSTANCE_ID_FORM ", 64 bytes at most";
}

static const char *set_memory(struct vdev_choice *c, const char *value)
{
	return parse_bytes(value, &c->options.config.memory_bytes)
		       ? NULL
		       : "a number of bytes, or of K, M or G, from 1 to 64G";
}

static const char *set_driver(struct vdev_choice *c, const char *value)
{
	c->options.config.driver = vdev_driver_find(value);
	return c->options.config.driver ? NULL : "one of 2.24, 2.30";
}

static const char *set_driver_version(struct vdev_choice *c, const char *value)
{
	c->options.config.driver_version = value;
	for (size_t i = 0; value[i]; i++)
		if (!isprint((unsigned char)value[i]))
			return "a version: a text of one line";
	return value[0] ? NULL : "a version";
}

static const char *set_compat(struct vdev_choice *c, const char *value)
{
	uint64_t min, max;
	const char *end;

	if (!read_number(value, 1, UINT32_MAX, &min, &end) || *end != '-' ||
		!parse_number(end + 1, min, UINT32_MAX, &max))
		return "a range such as 10-11, of numbers from 1 to 4294967295";
	c->options.config.compat_min = (uint32_t)min;
	c->options.config.compat_max = (uint32_t)max;
	return NULL;
}

/* Says which requests there are when the first name of a text, or of a list, is none; NULL when all are. */
static const char *unknown_name(const char *text, const char *stops, bool is_list)
{
	static char want[4096];
	size_t length = strcspn(text, stops);
	int used;

	while (vdev_rules_know(text, length)) {
		if (!is_list || !text[length])
			return NULL;
		text += length + 1;
		length = strcspn(text, stops);
	}
	used = snprintf(want, sizeof(want),
		"right: '%.*s' is no request; these are: ", (int)(length < 64 ? length : 64), text);
	vdev_rules_names(want + used, sizeof(want) - (size_t)used);
	return want;
}

static const char *set_without(struct vdev_choice *c, const char *value)
{
	const char *unknown = unknown_name(value, ",", true);

	if (unknown)
		return unknown;
	return vdev_rules_without(&c->options.config.rules, value)
		       ? NULL
		       : "a list of requests by name, such as DEVICE_BASIC_INFO,DRIVER_INFO_GET";
}

static const char *set_fail(struct vdev_choice *c, const char *value)
{
	const char *unknown = unknown_name(value, ":", false);

	if (unknown)
		return unknown;
	return vdev_rules_fail(&c->options.config.rules, value)
		       ? NULL
		       : "a request by name, an error and which one, such as NC_RESET:EBUSY:2";
}

static const char *set_delay(struct vdev_choice *c, const char *value)
{
	const char *unknown = unknown_name(value, ":", false);

	if (unknown)
		return unknown;
	return vdev_rules_delay(&c->options.config.rules, value)
		       ? NULL
		       : "a request by name and up to 3600000 milliseconds, such as NC_RESET:500";
}

static const char *set_fault(struct vdev_choice *c, const char *value)
{
	static char want[512];
	int used;

	if (vdev_core_faults_add(&c->options.config.core_faults, value))
		return NULL;
	used = snprintf(want, sizeof(want),
		"a fault, a core of the machine or *, and which launch, such as hardware:0:2, at "
		"most %u times; faults are: ",
		VDEV_CORE_FAULT_RULES);
	vdev_core_fault_names(want + used, sizeof(want) - (size_t)used);
	return want;
}

static const char *set_reset_fails(struct vdev_choice *c, const char *value)
{
	(void)value;
	c->options.config.reset_fails = true;
	return NULL;
}

static const struct setter {
	int key;
	const char *(*set)(struct vdev_choice *choice, const char *value);
} setters[] = {
	{KEY_ROOT, set_root},
	{KEY_QUIET, set_quiet},
	{KEY_DEVICES, set_devices},
	{KEY_CORES, set_cores},
	{KEY_ARCH, set_arch},
	{KEY_INSTANCE, set_instance},
	{KEY_INSTANCE_ID, set_instance_id},
	{KEY_MEMORY, set_memory},
	{KEY_LATENCY, set_latency},
	{KEY_DRIVER, set_driver},
	{KEY_DRIVER_VERSION, set_driver_version},
	{KEY_COMPAT, set_compat},
	{KEY_WITHOUT, set_without},
	{KEY_FAIL, set_fail},
	{KEY_DELAY, set_delay},
	{KEY_RESET_FAILS, set_reset_fails},
	{KEY_SWITCH, set_switch},
	{KEY_RING_FULL, set_ring_full},
	{KEY_RING_HEAD, set_ring_head},
	{KEY_CLOCK_OFFSET, set_clock_offset},
	{KEY_CLOCK_DRIFT, set_clock_drift},
	{KEY_SEED, set_seed},
	{KEY_JITTER, set_jitter},
	{KEY_DEVICE_TIME, set_device_time},
	{KEY_FAULT, set_fault},
};

const char *vdev_option_name(int key)
{
	for (size_t i = 0; i < sizeof(vdev_option_table) / sizeof(vdev_option_table[0]); i++)
		if (vdev_option_table[i].name && vdev_option_table[i].key == key)
			return vdev_option_table[i].name;
	return NULL;
}

const char *vdev_options_set(struct vdev_choice *choice, int key, const char *value)
{
	for (size_t i = 0; i < sizeof(setters) / sizeof(setters[0]); i++)
		if (setters[i].key == key)
			return setters[i].set(choice, value);
	return "an option";
}

/* ---- together ---------------------------------------------------------------------------- */

/* Says which core of --fault is not on the machine; false when all are. */
static bool wrong_fault_core(const struct vdev_config *c, char *ret_why, size_t size)
{
	for (uint32_t i = 0; i < c->core_faults.count; i++) {
		const struct vdev_core_fault_rule *rule = &c->core_faults.rule[i];

		if (!rule->each_core && rule->core >= c->devices * c->cores) {
			snprintf(ret_why, size,
				"--fault: there is no core %u, the machine has %u cores",
				rule->core, c->devices * c->cores);
			return true;
		}
	}
	return false;
}

const char *vdev_options_resolve(struct vdev_choice *choice)
{
	struct vdev_config *c = &choice->options.config;
	const struct vdev_arch *arch = choice->arch;
	static char why[128];

	if (c->instance && arch && c->instance->family->arch != arch) {
		snprintf(why, sizeof(why), "--arch: %s is a %s", c->instance->type,
			c->instance->family->arch->option);
		return why;
	}
	arch = c->instance ? c->instance->family->arch : arch ? arch : vdev_arch_find("v3");
	if (!c->devices)
		c->devices = c->instance ? c->instance->devices : 1;
	if (!c->instance)
		c->instance = vdev_instance_for(arch, c->devices);
	if (!c->driver)
		c->driver = vdev_driver_find("2.30");
	if (c->driver->newest_arch < arch->number) {
		snprintf(why, sizeof(why), "--driver: %s does not know %s", c->driver->name,
			arch->option);
		return why;
	}
	c->cores = c->cores ? c->cores : arch->default_cores;
	if (wrong_fault_core(c, why, sizeof(why)))
		return why;
	c->memory_bytes = c->memory_bytes ? c->memory_bytes : 1ull << 30;
	c->driver_version = c->driver_version ? c->driver_version : c->driver->version;
	c->instance_id = c->instance_id ? c->instance_id : "i-virtual";
	if (!c->compat_max) {
		c->compat_min = arch->compat_min;
		c->compat_max = arch->compat_max;
	}
	vdev_rules_for_driver(&c->rules, c->driver->name);
	return NULL;
}
