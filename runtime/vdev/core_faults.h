/* SPDX-License-Identifier: Apache-2.0 */
/*
 * core_faults.h - what goes wrong on cores on demand: the rows of faults.def, and which launches
 * --fault hits.
 *
 * Made from the options before the device starts, constant from then on.
 */
#ifndef NTRACE_VDEV_CORE_FAULTS_H
#define NTRACE_VDEV_CORE_FAULTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VDEV_CORE_FAULT_RULES 32u
#define VDEV_CORE_FAULT_NUMBERS 16u /* above all numbers of faults.def */

enum vdev_fault_course { VDEV_FAULT_GOES_ON, VDEV_FAULT_ENDS, VDEV_FAULT_HANGS };

struct vdev_core_fault_row {
	const char *name; /* NULL: no such fault */
	uint16_t status;
	uint8_t course; /* enum vdev_fault_course */
	uint8_t record; /* type in the ERROR ring */
};

struct vdev_core_faults {
	uint32_t count;
	struct vdev_core_fault_rule {
		uint8_t fault; /* enum vdev_core_fault */
		bool each_core;
		uint32_t core; /* of the machine */
		uint64_t nth;  /* launch of the core from 1 on; 0: each */
	} rule[VDEV_CORE_FAULT_RULES];
};

/* NULL for a number that is no fault. */
const struct vdev_core_fault_row *vdev_core_fault_find(uint32_t fault);
/* "A, B, C" of all names. */
void vdev_core_fault_names(char *ret, size_t size);

/* NAME[:CORE[:NTH]], CORE a number or *.  False, and nothing changed, for anything else. */
bool vdev_core_faults_add(struct vdev_core_faults *faults, const char *text);
/* Of the nth launch of a core of the machine: enum vdev_core_fault; of several the last one. */
uint8_t vdev_core_faults_of(const struct vdev_core_faults *faults, uint32_t core, uint64_t nth);

#endif
