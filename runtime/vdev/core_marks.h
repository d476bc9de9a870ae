/* SPDX-License-Identifier: Apache-2.0 */
/*
 * core_marks.h - who has marked which NeuronCore of the machine (the driver's "crwl range").
 *
 * One table for all devices, as in the driver; a range is given relative to the opened device and
 * may reach into the following ones.  Marks are advice: nothing else looks at them.  They are
 * released by UNMARK, and at any close of a query handle of the process, wherever they were made;
 * the end of a process that only had a working handle does not release them (seen on the real
 * driver).
 */
#ifndef NTRACE_VDEV_CORE_MARKS_H
#define NTRACE_VDEV_CORE_MARKS_H

#include <pthread.h>
#include <stdint.h>
#include <sys/types.h>

#define VDEV_MARKS_MAX 512u
#define VDEV_MARKS_WORDS (VDEV_MARKS_MAX / 64)

struct vdev_marks {
	pthread_mutex_t lock;
	unsigned cores;		     /* of the whole machine */
	pid_t owner[VDEV_MARKS_MAX]; /* 0: free */
};

/* First core of `count` consecutive free ones in [first, last], or -EBUSY.  Like the driver, the
 * search goes on two past a blocked core, so it can step over a free one.  *ret_free gets the
 * longest free run. */
int vdev_marks_find(
	const pid_t *owner, unsigned first, unsigned last, unsigned count, unsigned *ret_free);

/* Marks `count` cores in [base + first, base + last] for tgid.  The bit map is relative to base
 * and has `bits` bits.  0, -EBUSY (then *ret_free says how many would have fitted), -EINVAL for a
 * bad range. */
int vdev_marks_take(struct vdev_marks *marks, pid_t tgid, unsigned base, unsigned first,
	unsigned last, unsigned count, uint64_t *map, unsigned bits, unsigned *ret_free);

/* Clears those cores of the map that belong to tgid. */
void vdev_marks_give(
	struct vdev_marks *marks, pid_t tgid, unsigned base, const uint64_t *map, unsigned bits);

/* Owner of a core of the machine, below VDEV_MARKS_MAX; 0: nobody. */
pid_t vdev_marks_owner(struct vdev_marks *marks, unsigned core);

/* Clears all of tgid's. */
void vdev_marks_give_all(struct vdev_marks *marks, pid_t tgid);

#endif
