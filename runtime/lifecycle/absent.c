/* SPDX-License-Identifier: Apache-2.0 */
/*
 * absent.c - bodies of the exported calls that do nothing, made from unsupported.def.
 *
 * Prototypes come from the public headers, so the compiler compares the tables with them.
 */
#include "runtime/lifecycle/absent.h"

#include <stdio.h>

#include <nrt/ndebug_stream.h>
#include <nrt/nec.h>
#include <nrt/nrt_async.h>
#include <nrt/nrt_async_sendrecv.h>
#include <nrt/nrt_experimental.h>
#include <nrt/nrt_profile.h>
#include <nrt/nrt_sys_trace.h>

#include "runtime/lifecycle/runtime.h"
#include "runtime/log/log.h"

#define TAG "NRT"

NRT_STATUS absent_inside(const char *call, atomic_bool *said, const char *text)
{
	if (!atomic_exchange(said, true))
		log_write(LOG_LEVEL_WARN, TAG, call, "%s", text);
	return NRT_INVALID;
}

NRT_STATUS absent(const char *call, atomic_bool *said, const char *text)
{
	NRT_STATUS status = api_enter(call);

	if (status)
		return status;
	status = absent_inside(call, said, text);
	api_leave();
	return status;
}

/* ---- the table ---------------------------------------------------------------------------- */

#pragma GCC diagnostic ignored "-Wunused-parameter" /* by their nature */

#define CALL(returned, name, parameters, result, why)                                \
	returned name parameters                                                     \
	{                                                                            \
		static atomic_bool said;                                             \
		NRT_STATUS status = absent(__func__, &said, ABSENT_UNSUPPORTED why); \
                                                                                     \
		(void)status;                                                        \
		return result;                                                       \
	}
#define CALL_VOID(name, parameters, why)                               \
	void name parameters                                           \
	{                                                              \
		static atomic_bool said;                               \
                                                                       \
		(void)absent(__func__, &said, ABSENT_UNSUPPORTED why); \
	}
#define CALL_BY_HAND(name, why) static const char why_##name[] = ABSENT_UNSUPPORTED why;

#include "runtime/lifecycle/unsupported.def"

/* ---- by hand ------------------------------------------------------------------------------ */

void *nrt_get_libnccl_net(int *err, char *err_msg, size_t err_msg_size)
{
	static atomic_bool said;

	if (absent(__func__, &said, why_nrt_get_libnccl_net) != NRT_INVALID)
		return NULL;
	if (err)
		*err = NRT_INVALID;
	if (err_msg && err_msg_size)
		(void)snprintf(err_msg, err_msg_size, "%s", why_nrt_get_libnccl_net);
	return NULL;
}
