/* SPDX-License-Identifier: Apache-2.0 */
/* core_marks.c - marks of NeuronCores; see core_marks.h. */
#include "runtime/vdev/core_marks.h"

#include <errno.h>
#include <string.h>

static unsigned longest_free_run(const pid_t *owner, unsigned first, unsigned last)
{
	unsigned run = 0, best = 0;

	for (unsigned i = first; i <= last; i++) {
		run = owner[i] ? 0 : run + 1;
		best = run > best ? run : best;
	}
	return best;
}

int vdev_marks_find(
	const pid_t *owner, unsigned first, unsigned last, unsigned count, unsigned *ret_free)
{
	*ret_free = longest_free_run(owner, first, last);
	for (unsigned i = first; i + count <= last + 1;) {
		unsigned n = 0;

		while (n < count && !owner[i + n])
			n++;
		if (n == count)
			return (int)i;
		i += n + 2;
	}
	return -EBUSY;
}

int vdev_marks_take(struct vdev_marks *marks, pid_t tgid, unsigned base, unsigned first,
	unsigned last, unsigned count, uint64_t *map, unsigned bits, unsigned *ret_free)
{
	int at;

	if (count == 0 || first > last || last >= bits || last >= marks->cores - base)
		return -EINVAL;
	memset(map, 0, bits / 8);
	pthread_mutex_lock(&marks->lock);
	at = vdev_marks_find(marks->owner, base + first, base + last, count, ret_free);
	for (unsigned i = 0; at >= 0 && i < count; i++) {
		unsigned bit = (unsigned)at + i - base;

		marks->owner[(unsigned)at + i] = tgid;
		map[bit / 64] |= 1ull << (bit % 64);
	}
	pthread_mutex_unlock(&marks->lock);
	return at < 0 ? at : 0;
}

void vdev_marks_give(
	struct vdev_marks *marks, pid_t tgid, unsigned base, const uint64_t *map, unsigned bits)
{
	pthread_mutex_lock(&marks->lock);
	for (unsigned bit = 0; bit < bits && base + bit < marks->cores; bit++)
		if (map[bit / 64] >> (bit % 64) & 1 && marks->owner[base + bit] == tgid)
			marks->owner[base + bit] = 0;
	pthread_mutex_unlock(&marks->lock);
}

pid_t vdev_marks_owner(struct vdev_marks *marks, unsigned core)
{
	pid_t owner;

	pthread_mutex_lock(&marks->lock);
	owner = marks->owner[core];
	pthread_mutex_unlock(&marks->lock);
	return owner;
}

void vdev_marks_give_all(struct vdev_marks *marks, pid_t tgid)
{
	pthread_mutex_lock(&marks->lock);
	for (unsigned i = 0; i < marks->cores; i++)
		if (marks->owner[i] == tgid)
			marks->owner[i] = 0;
	pthread_mutex_unlock(&marks->lock);
}
