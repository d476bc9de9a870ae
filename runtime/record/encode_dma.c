/* SPDX-License-Identifier: Apache-2.0 */
/*
 * encode_dma.c - what the driver's DMA path did, as records of ntrace.pb.
 *
 * As for driver calls the event type is 0 and the name stands in the hint.  Both ends say where it was
 * (engine, queue, sequence), each what its own record knew.
 */
#include "runtime/record/encode_dma.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/errno_name.h"
#include "vmlinux/dma_kinds.h"

#define KEYS(X)                       \
	X(NC, "nc")                   \
	X(DEVICE, "dma.device")       \
	X(ENGINE, "dma.engine")       \
	X(QUEUE, "dma.queue")         \
	X(SEQUENCE, "dma.seq")        \
	X(BYTES, "dma.bytes")         \
	X(DIRECTION, "dma.direction") \
	X(TX, "dma.tx")               \
	X(RX, "dma.rx")               \
	X(THREAD, "dma.thread")       \
	X(RESULT, "result")           \
	X(ERRNO, "errno")             \
	X(LINK_ID, "link.id")         \
	X(LINK_KIND, "link.kind")     \
	X(LINK, "link")               \
	X(START, "start")             \
	X(LATE, "late_ns")

enum key {
#define X(id, text) KEY_##id,
	KEYS(X)
#undef X
		KEY_COUNT,
};

int encode_dma_init(struct encoder *e)
{
	static const char *const texts[] = {
#define X(id, text) [KEY_##id] = text,
		KEYS(X)
#undef X
	};

	e->dma_keys = calloc(KEY_COUNT, sizeof(*e->dma_keys));
	if (!e->dma_keys)
		return -ENOMEM;
	for (unsigned k = 0; k < KEY_COUNT; k++)
		e->dma_keys[k] = attr_key(texts[k], strlen(texts[k]));
	return 0;
}

static uint8_t *put_text(const struct encoder *e, uint8_t *p, enum key k, const char *v)
{
	return attr_text(p, &e->dma_keys[k], v, strlen(v));
}

/* A number that is not `unknown`. */
static uint8_t *put_known(
	const struct encoder *e, uint8_t *p, enum key k, uint64_t v, uint64_t unknown)
{
	return v == unknown ? p : attr_decimal(p, &e->dma_keys[k], v);
}

/* From where to where, NULL: it is not known. */
static const char *direction_of(unsigned flags)
{
	static const unsigned to = NEV_DMA_F_TO_DEVICE, from = NEV_DMA_F_FROM_DEVICE,
			      hosts = NEV_DMA_F_SRC_HOST | NEV_DMA_F_DST_HOST;

	if ((flags & (to | from)) == (to | from))
		return "device_to_device";
	if (flags & to)
		return "host_to_device";
	if (flags & from)
		return "device_to_host";
	return (flags & hosts) == hosts ? "host_to_host" : NULL;
}

static uint8_t *put_where(const struct encoder *e, uint8_t *p, const struct item *i)
{
	const char *direction = direction_of(i->dma.dma_flags);

	if (i->dma.nd == NEV_DMA_UNKNOWN)
		p = put_text(e, p, KEY_DEVICE, "unknown");
	p = put_known(e, p, KEY_ENGINE, i->dma.engine, NEV_DMA_UNKNOWN);
	p = put_known(e, p, KEY_QUEUE, i->dma.queue, NEV_DMA_UNKNOWN);
	p = put_known(e, p, KEY_SEQUENCE, i->dma.sequence, 0);
	p = put_known(e, p, KEY_BYTES, i->dma.bytes, 0);
	if (direction)
		p = put_text(e, p, KEY_DIRECTION, direction);
	p = put_known(e, p, KEY_TX, i->dma.tx, 0);
	p = put_known(e, p, KEY_RX, i->dma.rx, 0);
	return i->dma.dma_flags & NEV_DMA_F_KTHREAD ? put_text(e, p, KEY_THREAD, "driver") : p;
}

/* A driver before 2.30 says -1, which is no errno, when it
 * has waited for a doorbell in vain; whole transfers hand that on among failures of their own. */
int64_t encode_dma_error(const struct encoder *e, const struct item *i)
{
	const char *driver =
		modules_driver_at(&e->session->modules, e->session->header.info.driver, i->time);

	if (i->dma.outcome != -1)
		return -(int64_t)i->dma.outcome;
	return i->dma.dma_kind == NEV_DMA_DOORBELL && (!driver || driver_is_before(driver, "2.30"))
		       ? ETIMEDOUT
		       : 0;
}

static uint8_t *put_result(const struct encoder *e, uint8_t *p, const struct item *i)
{
	int64_t error = encode_dma_error(e, i);
	const char *name = error > 0 ? errno_name(error) : NULL;

	p = attr_signed(p, &e->dma_keys[KEY_RESULT], i->dma.outcome);
	return name ? put_text(e, p, KEY_ERRNO, name) : p;
}

static uint8_t *put_link(const struct encoder *e, uint8_t *p, const struct item *i, uint64_t call)
{
	bool ends = i->kind == ITEM_STOP || i->kind == ITEM_LOST;

	p = attr_decimal(p, &e->dma_keys[KEY_LINK_ID], call);
	p = put_text(
		e, p, KEY_LINK_KIND, ends ? "completion" : dma_kind_row(i->dma.dma_kind)->link);
	return put_text(e, p, KEY_LINK, "exact");
}

uint8_t *encode_dma(const struct encoder *e, uint8_t *p, const struct item *i,
	const struct event_out *out, struct head *h)
{
	h->hint = dma_kind_row(i->dma.dma_kind)->hint;
	h->hint_len = (uint32_t)strlen(h->hint);
	h->device = i->dma.nd == NEV_DMA_UNKNOWN ? 0 : i->dma.nd;
	if (e->kernel_events == MERGE_KERNEL_EXTENDED)
		h->type = ENCODE_DMA_BASE + i->dma.dma_kind;
	p = put_head(p, h);
	p = put_text(e, p, KEY_NC, "unknown");
	p = put_where(e, p, i);
	if (i->kind != ITEM_START)
		p = put_result(e, p, i);
	if (out->call)
		p = put_link(e, p, i, out->call);
	if (i->kind == ITEM_LOST)
		p = put_text(e, p, KEY_START, "lost");
	if (i->late_ns)
		p = attr_decimal(p, &e->dma_keys[KEY_LATE], i->late_ns);
	return put_tail(p, out->phase, h->id);
}
