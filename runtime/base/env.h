/* SPDX-License-Identifier: Apache-2.0 */
/*
 * env.h - names of the environment variables that more than one program knows.
 *
 * env.def lists all that the runtime knows.
 */
#ifndef NTRACE_BASE_ENV_H
#define NTRACE_BASE_ENV_H

#define ENV_DEVICE_ROOT "NTRACE_DEVICE_ROOT"		 /* directory of a virtual device */
#define ENV_ALLOW_DEVICE "NTRACE_ALLOW_DEVICE"		 /* 1: real devices may be used */
#define ENV_ALLOW_RESET "NTRACE_ALLOW_RESET"		 /* 1: and reset and programmed */
#define ENV_FAKE_INSTANCE "NEURON_RT_FAKE_INSTANCE_TYPE" /* simulation, simulate.h */
#define ENV_SOCKET "NTRACE_SOCKET"			 /* where an agent listens, announce.h */

#endif
