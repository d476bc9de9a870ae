/* SPDX-License-Identifier: Apache-2.0 */
/*
 * time_shift.c - reads /proc for the offsets of time namespaces.
 *
 * /proc/PID/timens_offsets has the offsets to the machine's clocks of the namespace that the process's children
 * will be in; they are its own as long as its two namespaces are the same one.
 */
#include "agent/collect/time_shift.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/file.h"
#include "runtime/trace/event_registry.h"

#define NS_PER_S 1000000000ll
#define MAX_SECONDS (1ll << 33) /* more than the kernel allows, and no overflow in ns */

/* The name of a namespace of a process, as in "time:[4026531834]".  A kernel without them gives "". */
static int name_of(const char *process, const char *which, char ret[64])
{
	char path[64];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%s/ns/%s", process, which);
	n = readlink(path, ret, 63);
	if (n < 0 && errno != ENOENT)
		return -errno;
	ret[n < 0 ? 0 : n] = '\0';
	return 0;
}

/* Offset of BOOTTIME from the machine's. */
static int read_offset(const char *process, int64_t *ret_ns)
{
	_cleanup_free_ char *text = NULL;
	long long s = 0, ns = 0;
	char path[64], *at;
	size_t size;
	int rc;

	snprintf(path, sizeof(path), "/proc/%s/timens_offsets", process);
	rc = file_read(path, 4096, &text, &size);
	if (rc < 0)
		return rc;
	at = strstr(text, "boottime");
	if (!at || sscanf(at, "boottime %lld %lld", &s, &ns) != 2 || llabs(s) > MAX_SECONDS)
		return -EOPNOTSUPP;
	*ret_ns = s * NS_PER_S + ns;
	return 0;
}

int time_shift_of(pid_t pid, int64_t *ret_ns)
{
	char process[16], own[64] = "", its[64] = "", of_children[64] = "";
	int64_t own_ns = 0, its_ns = 0;
	int rc;

	*ret_ns = 0;
	snprintf(process, sizeof(process), "%d", (int)pid);
	rc = name_of("self", "time", own);
	if (rc == 0)
		rc = name_of(process, "time", its);
	if (rc < 0 || strcmp(own, its) == 0)
		return rc;
	rc = name_of(process, "time_for_children", of_children);
	if (rc == 0 && strcmp(its, of_children) != 0)
		rc = -EOPNOTSUPP;
	if (rc == 0)
		rc = read_offset(process, &its_ns);
	if (rc == 0)
		rc = read_offset("self", &own_ns);
	if (rc == 0)
		*ret_ns = own_ns - its_ns;
	return rc;
}

static void shift_payload(struct trace_record *r, int64_t shift_ns)
{
	const struct trace_event_info *info = trace_event_info(r->trace_type);
	uint32_t phase = r->phase == TRACE_STOP ? TRACE_STOP : TRACE_START;

	for (uint32_t i = 0; info && i < info->field_count; i++) {
		const struct trace_field *f = &info->fields[i];
		uint64_t time;

		if (f->form != FORM_HOST_NS || f->phase != phase || f->width != FIELD_U64)
			continue;
		memcpy(&time, r->data + f->offset, sizeof(time));
		time += (uint64_t)shift_ns;
		memcpy(r->data + f->offset, &time, sizeof(time));
	}
}

void time_shift_records(struct trace_record *records, size_t count, int64_t shift_ns)
{
	for (size_t i = 0; i < count; i++) {
		records[i].timestamp_ns += (uint64_t)shift_ns;
		shift_payload(&records[i], shift_ns);
	}
}

int time_shift_own(int64_t *ret_ns)
{
	char own[64] = "", of_children[64] = "";
	int rc = name_of("self", "time", own);

	*ret_ns = 0;
	if (rc == 0)
		rc = name_of("self", "time_for_children", of_children);
	if (rc < 0 || !*own)
		return rc; /* no such namespaces in this kernel */
	return strcmp(own, of_children) ? -EOPNOTSUPP : read_offset("self", ret_ns);
}
