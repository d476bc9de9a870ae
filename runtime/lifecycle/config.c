/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config.c - parsing of settings.  A malformed value fails nrt_init instead of being taken for
 * something else.
 */
#include "runtime/lifecycle/config.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/log/log.h"

#define TAG "NRT"

static NRT_STATUS worse(NRT_STATUS a, NRT_STATUS b)
{
	return a > b ? a : b;
}

/* Unsigned decimal of at most `max`; the whole text. */
static int parse_uint(const char *text, uint32_t max, uint32_t *ret)
{
	char *end;
	unsigned long value;

	if (!isdigit((unsigned char)text[0]))
		return -EINVAL;
	errno = 0;
	value = strtoul(text, &end, 10);
	if (errno || *end || value > max)
		return -EINVAL;
	*ret = (uint32_t)value;
	return 0;
}

static NRT_STATUS read_uint(const char *name, uint32_t min, uint32_t max, uint32_t *value)
{
	const char *text = getenv(name);
	uint32_t got;

	if (!text || !*text)
		return NRT_SUCCESS;
	if (parse_uint(text, max, &got) < 0 || got < min) {
		log_error(TAG, "%s='%s' is not a number from %u to %u", name, text, min, max);
		return NRT_INVALID;
	}
	*value = got;
	return NRT_SUCCESS;
}

static NRT_STATUS read_bool(const char *name, bool *value)
{
	uint32_t number = *value;
	NRT_STATUS status = read_uint(name, 0, 1, &number);

	*value = number != 0;
	return status;
}

/* ---- core lists --------------------------------------------------------------------------- */

/* "N" or "A-B" at *text; moves *text behind it. */
static int parse_item(const char **text, bool *cores)
{
	unsigned long low, high;
	char *end;

	if (!isdigit((unsigned char)**text))
		return -EINVAL;
	errno = 0;
	low = high = strtoul(*text, &end, 10);
	if (*end == '-') {
		if (!isdigit((unsigned char)end[1]))
			return -EINVAL;
		high = strtoul(end + 1, &end, 10);
	}
	if (errno || high < low || high >= CONFIG_MAX_CORES)
		return -EINVAL;
	for (unsigned long i = low; i <= high; i++)
		cores[i] = true;
	*text = end;
	return 0;
}

int config_parse_cores(const char *text, uint32_t *ret_first, uint32_t *ret_count)
{
	bool cores[CONFIG_MAX_CORES] = {false};
	uint32_t first = 0, end;
	int rc;

	for (;;) {
		rc = parse_item(&text, cores);
		if (rc < 0)
			return rc;
		if (*text == '\0')
			break;
		if (*text++ != ',')
			return -EINVAL;
	}
	while (!cores[first])
		first++;
	for (end = first; end < CONFIG_MAX_CORES && cores[end]; end++)
		;
	for (uint32_t i = end; i < CONFIG_MAX_CORES; i++)
		if (cores[i])
			return -ERANGE;
	*ret_first = first;
	*ret_count = end - first;
	return 0;
}

static NRT_STATUS read_cores(struct config *c)
{
	const char *visible = getenv("NEURON_RT_VISIBLE_CORES");
	int rc;

	if (!visible || !*visible)
		return read_uint("NEURON_RT_NUM_CORES", 0, CONFIG_MAX_CORES, &c->core_count);
	if (getenv("NEURON_RT_NUM_CORES"))
		log_warn(TAG, "Using NEURON_RT_VISIBLE_CORES to allocate Logical Neuron Cores "
			      "and not NEURON_RT_NUM_CORES");
	rc = config_parse_cores(visible, &c->first_core, &c->core_count);
	if (rc == -ERANGE)
		log_error(TAG, "Logical Neuron cores are not contiguous");
	else if (rc < 0)
		log_error(TAG,
			"NEURON_RT_VISIBLE_CORES='%s' is not a list like 0-3,4 of cores below %u",
			visible, CONFIG_MAX_CORES);
	c->explicit_cores = rc == 0;
	return rc < 0 ? NRT_INVALID : NRT_SUCCESS;
}

/* One physical core per logical core is all that this library has. */
static NRT_STATUS check_lnc(void)
{
	uint32_t size = 1;
	const char *name = getenv("NEURON_LOGICAL_NC_CONFIG") ? "NEURON_LOGICAL_NC_CONFIG"
							      : "NEURON_RT_VIRTUAL_CORE_SIZE";
	NRT_STATUS status = read_uint(name, 1, 2, &size);

	if (status == NRT_SUCCESS && size != 1) {
		log_error(TAG, "%s=%u: only LNC Size of 1 is supported", name, size);
		return NRT_INVALID;
	}
	return status;
}

NRT_STATUS config_read(struct config *ret)
{
	const char *root = getenv("NTRACE_DEVICE_ROOT");
	struct config c = {
		.device_root = root ? root : "", .reset_cores = true, .exec_timeout_s = 30};
	NRT_STATUS status = read_cores(&c);

	status = worse(status, check_lnc());
	status = worse(status, read_bool("NTRACE_ALLOW_DEVICE", &c.allow_device));
	status = worse(status, read_bool("NEURON_RT_RESET_CORES", &c.reset_cores));
	status = worse(status, read_uint("NEURON_RT_EXEC_TIMEOUT", 1, 86400, &c.exec_timeout_s));
	if (status == NRT_SUCCESS)
		*ret = c;
	return status;
}
