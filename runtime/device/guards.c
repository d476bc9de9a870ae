/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guards.c - the table of guards.def, and what of the driver's own mistakes is kept from happening.
 *
 * Hazards of drivers 2.24 to 2.30, and how each is avoided:
 *
 *	what the driver does					here
 *	DMA_QUEUE_COPY_START on a queue without a receive	such a queue is not made: DMA_QUEUE_INIT without
 *	ring follows a NULL pointer				both rings is refused; _BATCH is never sent
 *	MEM_ALLOC_V2... of a forked child on an inherited	nothing is sent on a handle that another process
 *	handle runs into a BUG_ON (no check of the process)	opened
 *	zero copy without memory unlocks a lock that it does	zero copy is never sent
 *	not hold (up to 2.27; rewritten since)
 *	buffer copies count in 32 bits: 4 GiB and more are	device_copy_in and _out send pieces
 *	cut without an error
 *	closing any query handle drops all marks of the process	there is one, s->query, closed after unmarking
 *	number 106 has two meanings by size			only the 16-byte one is sent
 *	some failures are positive results			device_ioctl makes them -EFAULT
 *	whether it bounds the number of an engine is not	the number that virtual devices invent is never
 *	known							sent
 */
#include "runtime/device/guards.h"

#include <stddef.h>

#include "runtime/vdev/vdev_abi.h"
#include "vmlinux/ioctl_table.h"
#include "vmlinux/neuron_args.h"

enum { ONCE = false, AGAIN = true };

/* Who may send a class, and its text. */
enum {
#define GUARD_CLASS(class, who, text) CLASS_##class = GUARD_##who,
#define GUARD(request, class, again)
#include "runtime/device/guards.def"
#undef GUARD_CLASS
#undef GUARD
};

enum text {
#define GUARD_CLASS(class, who, text) TEXT_##class,
#define GUARD(request, class, again)
#include "runtime/device/guards.def"
#undef GUARD_CLASS
#undef GUARD
};

static const char *const texts[] = {
#define GUARD_CLASS(class, who, text) text,
#define GUARD(request, class, again)
#include "runtime/device/guards.def"
#undef GUARD_CLASS
#undef GUARD
};

/* The rows as cases: the compiler refuses two of one number and finds them quickly. */
bool guard_rule(uint32_t cmd, struct guard_rule *ret)
{
	switch (cmd) {
#define GUARD_CLASS(class, who, text)
#define GUARD(request, class, again)                                                          \
	case NEURON_IOCTL_##request:                                                          \
		*ret = (struct guard_rule){                                                   \
			#request, (enum guard_who)CLASS_##class, texts[TEXT_##class], again}; \
		return true;
#include "runtime/device/guards.def"
#undef GUARD_CLASS
#undef GUARD
	default:
		return false;
	}
}

static bool is_queue_without_ring(uint32_t cmd, const void *arg)
{
	const struct neuron_dma_queue_init *queue = arg;

	return cmd == NEURON_IOCTL_DMA_QUEUE_INIT && (!queue->tx_handle || !queue->rx_handle);
}

/* The engine that runs the programs of virtual devices.  Silicon would take such a program for a ring of DMA
 * descriptors. */
static bool is_virtual_engine(uint32_t cmd, const void *arg)
{
	switch (cmd) {
	case NEURON_IOCTL_DMA_QUEUE_INIT:
		return ((const struct neuron_dma_queue_init *)arg)->eng_id == VDEV_EXEC_ENGINE;
	case NEURON_IOCTL_DMA_QUEUE_COPY_START:
		return ((const struct neuron_dma_queue_copy_start *)arg)->eng_id ==
		       VDEV_EXEC_ENGINE;
	case NEURON_IOCTL_DMA_ACK_COMPLETED:
		return ((const struct neuron_dma_ack_completed *)arg)->eng_id == VDEV_EXEC_ENGINE;
	default:
		return false;
	}
}

const char *guard_hazard(uint32_t cmd, const void *arg)
{
	struct guard_rule rule;

	if (!guard_rule(cmd, &rule))
		return "is not in guards.def";
	if (rule.who == GUARD_NEVER)
		return rule.does;
	if (is_virtual_engine(cmd, arg))
		return "is for the engine of virtual devices";
	return is_queue_without_ring(cmd, arg) ? "lacks a ring, which ends in a NULL pointer"
					       : NULL;
}

enum guard_answer guard_check(
	const struct device_file *file, pid_t caller, uint32_t cmd, const void *arg)
{
	struct guard_rule rule;

	if (file->owner != caller)
		return GUARD_CHILD;
	if (!file->is_real)
		return GUARD_PASS;
	if (guard_hazard(cmd, arg) || !guard_rule(cmd, &rule))
		return GUARD_HAZARD;
	return rule.who == GUARD_ALLOWED && !file->allow_reset ? GUARD_NEEDS_RESET : GUARD_PASS;
}
