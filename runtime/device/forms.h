/* SPDX-License-Identifier: Apache-2.0 */
/*
 * forms.h - requests of which a driver knows some forms and not others.
 *
 * Drivers 2.24 to 2.30, and older ones, differ in the size of some arguments.  forms.def lists the forms;
 * feature_flags1 rules out those that it denies; the first one that succeeds is remembered, per system, and from
 * then on an -EINVAL is the caller's.  Any thread; two that begin together may both search.
 */
#ifndef NTRACE_DEVICE_FORMS_H
#define NTRACE_DEVICE_FORMS_H

#include <stdbool.h>
#include <stdint.h>

enum device_request {
	REQUEST_MEM_ALLOC,
	REQUEST_BUF_COPY,
	REQUEST_MEM_COPY,
	REQUEST_MEM_FILL,
	REQUEST_BOARD_INFO,
	REQUEST_PCI_PLACE,
	REQUEST_COUNT,
};

struct device_forms {
	uint64_t denied; /* bit n: row n of forms.def is not there */
	_Atomic uint32_t
		settled[REQUEST_COUNT]; /* number of the command that succeeded, 0 = none */
};

/* has_features: the driver knows DRIVER_INFO_GET; what it then does not list it does not have.  A driver
 * that does not know it has no feature that a bit stands for. */
void forms_deny(struct device_forms *f, bool has_features, uint64_t features);

/* Does that result mean that the driver does not know the request?  (Of an argument that it does not like it is
 * the same.) */
bool forms_is_unknown(int rc);

/* Sends the request in its forms, as send(cmd, arg), until one is understood.  What that one returned; of
 * none, -EINVAL or -ENOTTY. */
typedef int (*forms_send_fn)(uint32_t cmd, void *arg);
int forms_send(struct device_forms *f, enum device_request what, forms_send_fn send, void *arg);

/* Has an older form than the newest been taken for any request? */
bool forms_old(const struct device_forms *f);

#endif
