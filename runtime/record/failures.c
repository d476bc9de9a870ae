/* SPDX-License-Identifier: Apache-2.0 */
/*
 * failures.c - see the header.
 */
#include "runtime/record/failures.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "runtime/base/printable.h"
#include "runtime/base/status_name.h"
#include "runtime/record/call_error.h"
#include "vmlinux/ioctl_table.h"

/* The kernel's own codes, from ERESTARTSYS on, with which a signal has a call made again. */
#define KERNEL_RESTARTS 512

/* A call that a signal interrupted is no error of the driver. */
static bool is_error(int32_t result)
{
	return result < 0 && result != -EINTR && result > -KERNEL_RESTARTS;
}

void failures_note(struct process_failures *f, const struct nev_ioctl *e)
{
	struct failures_errors *to = &f->errors;

	if (!is_error(e->result))
		return;
	to->last[to->count++ % FAILURES_ERRORS] = (struct failures_error){.start_ns = e->start_ns,
		.end_ns = e->start_ns + e->duration_ns,
		.tid = e->tid,
		.request = e->request,
		.result = e->result,
		.device = e->device};
}

static void explain(
	struct failures_errors *errors, uint32_t tid, uint64_t start_ns, int32_t dma_error)
{
	for (uint64_t i = 0; i < errors->count && i < FAILURES_ERRORS; i++) {
		struct failures_error *e = &errors->last[i];

		if (e->tid == tid && e->start_ns == start_ns)
			e->dma_error = dma_error;
	}
}

/* Calls are noted as they stand in the recording, and what they mean is known when all is in order of time. */
void failures_explain(
	struct process_failures *f, uint32_t tid, uint64_t start_ns, int32_t dma_error)
{
	explain(&f->errors, tid, start_ns, dma_error);
	explain(&f->then, tid, start_ns, dma_error);
}

void failures_init(struct process_failures *f, const struct rec_failure *failure, uint64_t time_ns)
{
	f->inits++;
	f->time_ns = time_ns;
	f->status = failure->status;
	memcpy(f->comm, failure->comm, sizeof(f->comm));
	f->then = f->errors;
	f->recovered = false;
}

void failures_announced(struct process_failures *f)
{
	f->recovered = f->inits > 0;
}

/* ---- texts -------------------------------------------------------------------------------- */

static void tell_error(
	const struct failures_error *e, uint64_t now_ns, const char *what, char *ret, size_t size)
{
	const struct ioctl_row *row = ioctl_row_find(e->request);
	uint64_t us = now_ns > e->end_ns ? (now_ns - e->end_ns) / 1000 : 0;
	int64_t number = call_error(e->request, e->result, e->dma_error);
	const char *name = call_error_name(number);
	char request[48], error[40];

	if (row)
		snprintf(request, sizeof(request), "%s", row->name);
	else
		snprintf(request, sizeof(request), "request 0x%08" PRIx32, e->request);
	if (name)
		snprintf(error, sizeof(error), "%s", name);
	else
		snprintf(error, sizeof(error), "error %" PRId64, number);
	snprintf(ret, size, "%s on neuron%u: %s, %" PRIu64 ".%03" PRIu64 " ms before%s", request,
		e->device, error, us / 1000, us % 1000, what);
}

/* The last ones, but not the first `told`. */
static void tell_errors(const struct failures_errors *e, uint64_t told, uint64_t now_ns,
	const char *what, struct failures_text *ret)
{
	uint64_t kept = e->count > FAILURES_ERRORS ? e->count - FAILURES_ERRORS : 0;

	ret->error_count = 0;
	for (uint64_t i = kept > told ? kept : told; i < e->count; i++)
		tell_error(&e->last[i % FAILURES_ERRORS], now_ns, what,
			ret->errors[ret->error_count++], sizeof(ret->errors[0]));
}

static void tell_init(const struct process_failures *f, uint32_t pid, struct failures_text *ret)
{
	char comm[80], times[48] = "";

	printable_into(f->comm, strnlen(f->comm, sizeof(f->comm)), comm, sizeof(comm));
	if (f->inits > 1)
		snprintf(times, sizeof(times), ", %" PRIu64 " times, the last", f->inits);
	snprintf(ret->what, sizeof(ret->what),
		"nrt_init of process %" PRIu32 " (%s)%s: %s (%" PRIu32 ")%s", pid, comm, times,
		status_name(f->status), f->status, f->recovered ? "; a later one succeeded" : "");
	tell_errors(&f->then, 0, f->time_ns, " the recorder heard of it", ret);
}

static bool command_failed(const struct rec_end *end)
{
	int status = end->wait_status;

	return status >= 0 && ((WIFEXITED(status) && WEXITSTATUS(status)) || WIFSIGNALED(status));
}

/* What a failing command has to do with it is not known: beside another runtime than ours nobody says which call
 * it was. */
static void tell_command(const struct process_failures *f, uint32_t pid, const struct rec_end *end,
	uint64_t end_ns, struct failures_text *ret)
{
	bool killed = WIFSIGNALED(end->wait_status);

	snprintf(ret->what, sizeof(ret->what),
		"the command (%s %d); process %" PRIu32 " had these errors of the driver last",
		killed ? "signal" : "exit status",
		killed ? WTERMSIG(end->wait_status) : WEXITSTATUS(end->wait_status), pid);
	tell_errors(&f->errors, f->then.count, end_ns, " the end of the recording", ret);
}

unsigned failures_tell(const struct process_failures *f, uint32_t pid, const struct rec_end *end,
	uint64_t end_ns, struct failures_text ret[FAILURES_TEXTS])
{
	unsigned n = 0;

	if (f->inits)
		tell_init(f, pid, &ret[n++]);
	/* Those that an nrt_init told are not told again. */
	if (end && command_failed(end) && f->errors.count > f->then.count)
		tell_command(f, pid, end, end_ns, &ret[n++]);
	return n;
}
