/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rules.h - which requests a device does not know, lets fail, or answers late.
 *
 * One rule per row of ioctl_table.def, and one for each way to open a device; made from the
 * driver's version and from --without, --fail and --delay before the device starts, constant from
 * then on.  A rule comes before everything else that a request meets, the checks of the handle
 * too.
 */
#ifndef NTRACE_VDEV_RULES_H
#define NTRACE_VDEV_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VDEV_MAX_DELAY_MS 3600000u
#define VDEV_MAX_FAULTS 16u /* for one request */

enum {
#define IOCTL(name, ...) VDEV_ROW_##name,
#include "vmlinux/ioctl_table.def"
#undef IOCTL
	VDEV_ROWS,
	/* open(2); named OPEN and OPEN_QUERY */
	VDEV_ROW_OPEN = VDEV_ROWS,
	VDEV_ROW_OPEN_QUERY,
	VDEV_RULES,
};

struct vdev_rule {
	bool absent;	   /* -EINVAL, like a number that nobody knows */
	uint32_t delay_ms; /* before it is answered or fails */
	uint32_t faults;
	struct vdev_fault {
		int error;    /* positive errno */
		uint32_t nth; /* only this one fails; 0: every one */
	} fault[VDEV_MAX_FAULTS];
};

struct vdev_rules {
	struct vdev_rule row[VDEV_RULES];
};

/* Makes absent what a driver does not have; driver as in the column of ioctl_table.def. */
void vdev_rules_for_driver(struct vdev_rules *rules, const char *driver);
/* NAME[,NAME...].  False, and nothing changed, when a name is not in the table; so the next two. */
bool vdev_rules_without(struct vdev_rules *rules, const char *list);
/* NAME[:ERRNO[:NTH]], ERRNO a name or a number (without it EIO), NTH from 1.  All of them hold; where two
 * fit, the later one.  False also for more than VDEV_MAX_FAULTS of one request. */
bool vdev_rules_fail(struct vdev_rules *rules, const char *text);
/* NAME:MS.  The last one for a request holds. */
bool vdev_rules_delay(struct vdev_rules *rules, const char *text);

/* Is text[0..length) the name of a request, OPEN or OPEN_QUERY?  All of these, "A, B, C", into size bytes. */
bool vdev_rules_know(const char *text, size_t length);
void vdev_rules_names(char *ret, size_t size);

/* What the rule says of the nth request, after its delay: 0 go on, or -errno.  `ended` is asked
 * every few milliseconds; when it says true that is -EINTR. */
int vdev_rule_obey(
	const struct vdev_rule *rule, uint64_t nth, bool (*ended)(void *context), void *context);

#endif
