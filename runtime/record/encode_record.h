/* SPDX-License-Identifier: Apache-2.0 */
/*
 * encode_record.h - the parts of a record of ntrace.pb, for those who write some: room in a process's
 * buffer, what stands before the attributes, what stands behind them, the length in front.
 */
#ifndef NTRACE_RECORD_ENCODE_RECORD_H
#define NTRACE_RECORD_ENCODE_RECORD_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "runtime/record/encode.h"
#include "runtime/record/encode_attr.h"

#define ENCODE_MAX_RECORD 8192u /* a name of SESSION_MAX_NAME and everything else */
#define ENCODE_FIRST_BUFFER (16u << 10)
#define ENCODE_MAX_BUFFER (256u << 10)

enum {
	TAG_TIMESTAMP = 0x08,
	TAG_DEVICE = 0x18,
	TAG_CORE = 0x20,
	TAG_TYPE = 0x28,
	TAG_HINT = 0x32,
	TAG_DURATION = 0x38,
	TAG_THREAD = 0x40,
	TAG_ID = 0x48,
	TAG_PARENT = 0x50,
	TAG_STATUS = 0x58,
	TAG_PHASE = 0x68,
	TAG_TRACKING = 0x70
};

static inline uint8_t *put_scalar(uint8_t *p, uint8_t tag, uint64_t v)
{
	if (v == 0)
		return p;
	*p = tag;
	return pb_varint_put_fast(p + 1, v);
}

/* Room for a record at the end of the buffer, NULL when memory is short. */
static inline uint8_t *encode_begin(struct encoder *e, struct process *p)
{
	if (p->buf.cap - p->buf.len < ENCODE_MAX_RECORD) {
		if (p->buf.cap < ENCODE_MAX_BUFFER) {
			size_t more = p->buf.cap ? 4 * p->buf.cap : ENCODE_FIRST_BUFFER;
			if (pb_buf_reserve(&p->buf, more - p->buf.len) < 0)
				return NULL;
		} else {
			e->flush(e->ctx, p);
		}
	}
	return p->buf.data + p->buf.len + 2;
}

/* The record ends here. */
static inline void encode_finish(struct process *p, uint8_t *end)
{
	uint8_t *start = p->buf.data + p->buf.len;
	size_t size = (size_t)(end - start) - 2;

	if (size < 128) {
		memmove(start + 1, start + 2, size);
		start[0] = (uint8_t)size;
		end--;
	} else {
		start[0] = (uint8_t)(size | 0x80);
		start[1] = (uint8_t)(size >> 7);
	}
	p->buf.len = (size_t)(end - p->buf.data);
	p->events++;
}

/* Everything before the attributes.  A hint has less than 128 bytes. */
struct head {
	uint64_t time, id, parent, duration;
	const char *hint;
	uint32_t hint_len, device, core, type, thread, status;
};

static inline uint8_t *put_head(uint8_t *p, const struct head *h)
{
	p = put_scalar(p, TAG_TIMESTAMP, h->time);
	p = put_scalar(p, TAG_DEVICE, h->device);
	p = put_scalar(p, TAG_CORE, h->core);
	p = put_scalar(p, TAG_TYPE, h->type);
	if (h->hint_len) {
		*p++ = TAG_HINT;
		*p++ = (uint8_t)h->hint_len;
		memcpy(p, h->hint, h->hint_len);
		p += h->hint_len;
	}
	p = put_scalar(p, TAG_DURATION, h->duration);
	p = put_scalar(p, TAG_THREAD, h->thread);
	p = put_scalar(p, TAG_ID, h->id);
	p = put_scalar(p, TAG_PARENT, h->parent);
	return put_scalar(p, TAG_STATUS, h->status);
}

static inline uint8_t *put_tail(uint8_t *p, enum ntrace_event_phase phase, uint64_t id)
{
	*p++ = TAG_PHASE;
	*p++ = (uint8_t)phase;
	return put_scalar(p, TAG_TRACKING, id);
}

#endif
