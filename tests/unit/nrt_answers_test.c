/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nrt_answers_test.c - calls that answer a question about a model or a tensor, and collectives of one
 * worker.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/shim/shim.h"
#include "tests/unit/nrt_lib.h"

/* ---- models ------------------------------------------------------------------------------- */

static int ask_model(void *arg)
{
	nrt_model_info_t info[2] = {{77}, {78}};
	size_t written = 99;
	uint32_t n = 0;
	struct job j;

	WANT(enter(arg) == 0);
	WANT_STATUS(init(), 0);
	WANT(job_open(&j, ADD_MODEL, 1) == 0);
	WANT_STATUS(lib.nrt_get_model_info(j.model, info, 3, &written), NRT_INVALID);
	WANT(said(arg, "Size is < 4"));
	WANT(info[0].vnc == 77 && written == 99);
	WANT_STATUS(lib.nrt_get_model_info(j.model, info, sizeof(info), &written), 0);
	WANT(info[0].vnc == 1 && info[1].vnc == 78 && written == 4);
	WANT_STATUS(lib.nrt_get_model_info(NULL, info, 4, &written), NRT_INVALID);
	WANT_STATUS(
		lib.nrt_get_model_info((nrt_model_t *)&n, info, 4, &written), NRT_INVALID_HANDLE);
	WANT_STATUS(lib.nrt_get_model_info(j.model, NULL, 4, &written), NRT_INVALID);
	WANT_STATUS(lib.nrt_get_model_info(j.model, info, 4, NULL), NRT_INVALID);
	WANT_STATUS(lib.nrt_get_model_instance_count(j.model, &n), 0);
	WANT(n == 1);
	WANT_STATUS(lib.nrt_get_model_instance_count(j.model, NULL), NRT_INVALID);
	WANT_STATUS(lib.nrt_get_model_instance_count(NULL, &n), NRT_INVALID);
	lib.nrt_close();
	return 0;
}

TEST("nrt: a model's core is told within the caller's size", "[nrt]")
{
	if (device_lacks())
		SKIP(device_lacks());
	with_device(ask_model, two_cores);
}

/* ---- tensors ------------------------------------------------------------------------------ */

static int ask_tensors(void *arg)
{
	nrt_tensor_device_allocation_info_t a, b = {1, 2, 3};
	nrt_tensor_t *host, *first, *second;
	char text[] = "seven b";

	WANT(enter(arg) == 0);
	WANT_STATUS(init(), 0);
	WANT_STATUS(lib.nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_HOST, 0, 8, "h", &host), 0);
	WANT_STATUS(lib.nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, 0, 64, "x", &first), 0);
	WANT_STATUS(lib.nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, 0, 64, "y", &second), 0);
	WANT_STATUS(lib.nrt_tensor_write(host, text, 0, sizeof(text)), 0);
	WANT(lib.nrt_tensor_get_va(host) && !strcmp(lib.nrt_tensor_get_va(host), text));
	WANT(lib.nrt_tensor_get_va(first) == NULL);
	WANT(lib.nrt_tensor_get_va(NULL) == NULL);
	WANT(lib.nrt_tensor_get_va((nrt_tensor_t *)text) == NULL);
	WANT_STATUS(lib.nrt_tensor_get_device_allocation_info(host, &b), NRT_INVALID);
	WANT(said(arg, "Tensor 'h' is not in device memory"));
	WANT_STATUS(lib.nrt_tensor_get_device_allocation_info(first, NULL), NRT_INVALID);
	WANT_STATUS(lib.nrt_tensor_get_device_allocation_info(NULL, &b), NRT_INVALID);
	WANT(b.physical_address == 1 && b.size == 2 && b.hbm_index == 3);
	WANT_STATUS(lib.nrt_tensor_get_device_allocation_info(first, &a), 0);
	WANT_STATUS(lib.nrt_tensor_get_device_allocation_info(second, &b), 0);
	WANT(a.size >= 64 && b.size >= 64 && a.physical_address && b.physical_address);
	WANT(a.physical_address + a.size <= b.physical_address ||
		b.physical_address + b.size <= a.physical_address);
	WANT(a.hbm_index == 0);
	lib.nrt_close();
	return 0;
}

TEST("nrt: device tensors lie apart and have addresses, host tensors have memory", "[nrt]")
{
	if (device_lacks())
		SKIP(device_lacks());
	with_device(ask_tensors, two_cores);
}

/* ---- one worker --------------------------------------------------------------------------- */

/* The three calls that only ask who joins. */
static int join_all(int32_t vnc, uint32_t id, uint32_t count, int status)
{
	WANT_STATUS(lib.nrt_build_global_comm(vnc, id, count), status);
	WANT_STATUS(lib.nrt_cc_global_comm_init((uint32_t)vnc, id, count), status);
	WANT_STATUS(lib.nrt_barrier(vnc, id, count), status);
	return 0;
}

static int work_alone(void *arg)
{
	char in[4] = "abc", out[4] = "---";

	setenv("NEURON_RT_LOG_LEVEL", "WARN", 1);
	WANT(enter(arg) == 0);
	WANT(dup2(2, 1) == 1);
	WANT_STATUS(init(), 0);
	WANT(join_all(1, 0, 1, 0) == 0);
	WANT(join_all(2, 0, 1, NRT_INVALID) == 0); /* no such core */
	WANT(join_all(-1, 0, 1, NRT_INVALID) == 0);
	WANT(said(arg, "There is no core -1; this process has "));
	WANT(join_all(0, 1, 1, NRT_INVALID) == 0); /* no such worker */
	WANT(join_all(0, 0, 0, NRT_INVALID) == 0);
	WANT(said(arg, "There is no worker 0 of 0: they count from 0\n"));
	WANT_STATUS(lib.nrt_all_gather(0, 0, 1, 4, in, out), 0);
	WANT(!memcmp(in, out, 4));
	WANT_STATUS(lib.nrt_all_gather(0, 0, 1, 0, NULL, NULL), 0);
	WANT_STATUS(lib.nrt_all_gather(0, 0, 1, 4, NULL, out), NRT_INVALID);
	WANT_STATUS(lib.nrt_all_gather(0, 0, 1, 4, in, NULL), NRT_INVALID);
	strcpy(out, "---");
	WANT_STATUS(lib.nrt_all_gather(0, 0, 2, 4, in, out), NRT_INVALID);
	WANT(said(arg, "WARN   NRT:nrt_all_gather                           unsupported here: "
		       "several workers meet in the collectives of a model alone\n"));
	WANT(!strcmp(out, "---"));
	/* Two join, and meet in models; outside of one they do not. */
	WANT_STATUS(lib.nrt_build_global_comm(0, 1, 2), 0);
	WANT_STATUS(lib.nrt_cc_global_comm_init(0, 63, 64), 0);
	WANT_STATUS(lib.nrt_barrier(0, 1, 2), NRT_INVALID);
	WANT(said(arg, "NRT:nrt_barrier                              unsupported here: "));
	WANT(join_all(0, 0, 65, NRT_INVALID) == 0);
	WANT(said(arg, "65 workers; at most 64 work together here\n"));
	WANT_STATUS(lib.nrt_async_drain_queued_execs(1), 0);
	WANT_STATUS(lib.nrt_async_drain_queued_execs(2), NRT_INVALID);
	lib.nrt_close();
	return 0;
}

TEST("nrt: workers join up to 64, and outside of models one alone gets collectives", "[nrt]")
{
	if (device_lacks())
		SKIP(device_lacks());
	with_device(work_alone, two_cores);
}
