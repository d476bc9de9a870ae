/* SPDX-License-Identifier: Apache-2.0 */
/*
 * simulate.h - cores without any device: NEURON_RT_FAKE_INSTANCE_TYPE.
 *
 * The runtime then comes up with the devices and cores of an instance type, without a driver: nothing is
 * negotiated, opened or reset, and each process has its own marks.  Host tensors work; device
 * tensors and models do not.  ntrace-vdev is what runs models.  NTRACE_DEVICE_ROOT wins over it.
 */
#ifndef NTRACE_DEVICE_SIMULATE_H
#define NTRACE_DEVICE_SIMULATE_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/device/device.h"

/* Does the place ask for a simulation?  Not when a device root is given too; then the other warns. */
bool simulate_wanted(const struct device_place *place);
void simulate_warn_ignored(const struct device_place *place);

/* The topology of a type; the spelling of types is inferred.  NRT_INVALID: an unknown type; those that are known
 * are said. */
NRT_STATUS simulate_topology(const char *type, struct device_topology *ret);

/* Takes the place of device_negotiate. */
void simulate_negotiate(struct device_system *s);

/* What a driver would answer to the requests of bring-up; -ENODEV to all others. */
int simulate_request(uint32_t cmd, void *arg);

/* Is this a system without devices, so that the call cannot do its work?  Says so, once per system and kind of
 * work.  The status to return is NRT_INVALID. */
enum simulate_work { SIMULATE_TENSOR = 1, SIMULATE_MODEL = 2 };
bool simulate_lacks(struct device_system *s, enum simulate_work work);

#endif
