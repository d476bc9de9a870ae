/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * trace.h - the tracepoints of the driver, same names, arguments in the same order, records alike.
 *
 * As in the driver, three are never called (dma_desc_copy, dma_memcpy, ioctl_mem_free) and freeing memory
 * reports ioctl_mem_alloc; the records of copyin and copyout leave `offset` as it was.  The texts print
 * pointers and never follow them.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM neuron

#if !defined(STANDIN_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define STANDIN_TRACE_H

#include <linux/tracepoint.h>

#include "tests/vm/standin/driver.h"

/* clang-format off */
TRACE_EVENT(dma_engine_init,
	TP_PROTO(struct neuron_device *nd, u32 eng_id),
	TP_ARGS(nd, eng_id),
	TP_STRUCT__entry(
		__field(u32, device_index)
		__field(u32, eng_id)
	),
	TP_fast_assign(
		__entry->device_index = nd->device_index;
		__entry->eng_id = eng_id;
	),
	TP_printk("nd%u eng%u", __entry->device_index, __entry->eng_id)
);

/* The last argument went away with 2.28. */
#ifdef STANDIN_230
#define PORT_TRACE_PARAMETER
#define PORT_TRACE_ARGUMENT
#define PORT_FIELD
#define PORT_ASSIGN
#else
#define PORT_TRACE_PARAMETER , u32 port
#define PORT_TRACE_ARGUMENT , port
#define PORT_FIELD __field(u32, port)
#define PORT_ASSIGN __entry->port = port;
#endif
TRACE_EVENT(dma_queue_init,
	TP_PROTO(struct neuron_device *nd, u32 eng_id, u32 qid, u32 tx_count, u32 rx_count,
		struct mem_chunk *tx_mc, struct mem_chunk *rx_mc, struct mem_chunk *rxc_mc PORT_TRACE_PARAMETER),
	TP_ARGS(nd, eng_id, qid, tx_count, rx_count, tx_mc, rx_mc, rxc_mc PORT_TRACE_ARGUMENT),
	TP_STRUCT__entry(
		__field(u32, device_index)
		__field(u32, eng_id)
		__field(u32, qid)
		__field(u32, tx_desc_count)
		__field(u32, rx_desc_count)
		__field(struct mem_chunk *, tx_mc)
		__field(struct mem_chunk *, rx_mc)
		__field(struct mem_chunk *, rxc_mc)
		PORT_FIELD
	),
	TP_fast_assign(
		__entry->device_index = nd->device_index;
		__entry->eng_id = eng_id;
		__entry->qid = qid;
		__entry->tx_desc_count = tx_count;
		__entry->rx_desc_count = rx_count;
		__entry->tx_mc = tx_mc;
		__entry->rx_mc = rx_mc;
		__entry->rxc_mc = rxc_mc;
		PORT_ASSIGN
	),
	TP_printk("nd%u eng%u q%u tx %u rx %u", __entry->device_index, __entry->eng_id,
		__entry->qid, __entry->tx_desc_count, __entry->rx_desc_count)
);

TRACE_EVENT(dma_queue_release,
	TP_PROTO(struct neuron_device *nd, u32 eng_id, u32 qid),
	TP_ARGS(nd, eng_id, qid),
	TP_STRUCT__entry(
		__field(u32, device_index)
		__field(u32, eng_id)
		__field(u32, qid)
	),
	TP_fast_assign(
		__entry->device_index = nd->device_index;
		__entry->eng_id = eng_id;
		__entry->qid = qid;
	),
	TP_printk("nd%u eng%u q%u", __entry->device_index, __entry->eng_id, __entry->qid)
);

TRACE_EVENT(dma_desc_copy, /* never called */
	TP_PROTO(struct neuron_device *nd, u32 eng_id, u32 qid, u32 desc_type, void *buffer,
		u32 src_offset, u32 dst_offset, u64 size),
	TP_ARGS(nd, eng_id, qid, desc_type, buffer, src_offset, dst_offset, size),
	TP_STRUCT__entry(
		__field(u32, device_index)
		__field(u32, eng_id)
		__field(u32, qid)
		__field(u32, desc_type)
		__field(void *, buffer)
		__field(u32, src_offset)
		__field(u32, dst_offset)
		__field(u64, size)
	),
	TP_fast_assign(
		__entry->device_index = nd->device_index;
		__entry->eng_id = eng_id;
		__entry->qid = qid;
		__entry->desc_type = desc_type;
		__entry->buffer = buffer;
		__entry->src_offset = src_offset;
		__entry->dst_offset = dst_offset;
		__entry->size = size;
	),
	TP_printk("nd%u eng%u q%u type %u size %llu", __entry->device_index, __entry->eng_id,
		__entry->qid, __entry->desc_type, __entry->size)
);

TRACE_EVENT(dma_queue_copy_start,
	TP_PROTO(struct neuron_device *nd, u32 eng_id, u32 qid, u32 tx_count, u32 rx_count),
	TP_ARGS(nd, eng_id, qid, tx_count, rx_count),
	TP_STRUCT__entry(
		__field(u32, device_index)
		__field(u32, eng_id)
		__field(u32, qid)
		__field(u32, tx_desc_count)
		__field(u32, rx_desc_count)
	),
	TP_fast_assign(
		__entry->device_index = nd->device_index;
		__entry->eng_id = eng_id;
		__entry->qid = qid;
		__entry->tx_desc_count = tx_count;
		__entry->rx_desc_count = rx_count;
	),
	TP_printk("nd%u eng%u q%u tx %u rx %u", __entry->device_index, __entry->eng_id,
		__entry->qid, __entry->tx_desc_count, __entry->rx_desc_count)
);

TRACE_EVENT(dma_ack_completed,
	TP_PROTO(struct neuron_device *nd, u32 eng_id, u32 qid, u32 count),
	TP_ARGS(nd, eng_id, qid, count),
	TP_STRUCT__entry(
		__field(u32, device_index)
		__field(u32, eng_id)
		__field(u32, qid)
		__field(u32, count)
	),
	TP_fast_assign(
		__entry->device_index = nd->device_index;
		__entry->eng_id = eng_id;
		__entry->qid = qid;
		__entry->count = count;
	),
	TP_printk("nd%u eng%u q%u count %u", __entry->device_index, __entry->eng_id, __entry->qid,
		__entry->count)
);

DECLARE_EVENT_CLASS(neuron_mc,
	TP_PROTO(struct neuron_device *nd, struct mem_chunk *mc),
	TP_ARGS(nd, mc),
	TP_STRUCT__entry(
		__field(u32, device_index)
		__field(struct mem_chunk *, mc)
	),
	TP_fast_assign(
		__entry->device_index = nd->device_index;
		__entry->mc = mc;
	),
	TP_printk("nd%u mc %p", __entry->device_index, __entry->mc)
);
DEFINE_EVENT(neuron_mc, ioctl_mem_alloc, /* also when memory is freed */
	TP_PROTO(struct neuron_device *nd, struct mem_chunk *mc), TP_ARGS(nd, mc));
DEFINE_EVENT(neuron_mc, ioctl_mem_free, /* never called */
	TP_PROTO(struct neuron_device *nd, struct mem_chunk *mc), TP_ARGS(nd, mc));

TRACE_EVENT(ioctl_mem_copy,
	TP_PROTO(struct neuron_device *nd, struct mem_chunk *src, struct mem_chunk *dst),
	TP_ARGS(nd, src, dst),
	TP_STRUCT__entry(
		__field(u32, device_index)
		__field(struct mem_chunk *, src)
		__field(struct mem_chunk *, dst)
	),
	TP_fast_assign(
		__entry->device_index = nd->device_index;
		__entry->src = src;
		__entry->dst = dst;
	),
	TP_printk("nd%u src %p dst %p", __entry->device_index, __entry->src, __entry->dst)
);

DECLARE_EVENT_CLASS(neuron_buffer,
	TP_PROTO(struct neuron_device *nd, struct mem_chunk *mc, void *buffer, u32 offset, u32 size),
	TP_ARGS(nd, mc, buffer, offset, size),
	TP_STRUCT__entry(
		__field(u32, device_index)
		__field(struct mem_chunk *, mc)
		__field(void *, buffer)
		__field(u32, offset)
		__field(u32, size)
	),
	TP_fast_assign(
		__entry->device_index = nd->device_index;
		__entry->mc = mc;
		__entry->buffer = buffer;
		__entry->size = size;
	),
	TP_printk("nd%u mc %p size %u", __entry->device_index, __entry->mc, __entry->size)
);
DEFINE_EVENT(neuron_buffer, ioctl_mem_copyin,
	TP_PROTO(struct neuron_device *nd, struct mem_chunk *mc, void *buffer, u32 offset, u32 size),
	TP_ARGS(nd, mc, buffer, offset, size));
DEFINE_EVENT(neuron_buffer, ioctl_mem_copyout,
	TP_PROTO(struct neuron_device *nd, struct mem_chunk *mc, void *buffer, u32 offset, u32 size),
	TP_ARGS(nd, mc, buffer, offset, size));

TRACE_EVENT(dma_memcpy, /* never called */
	TP_PROTO(struct neuron_device *nd, u32 nc_id, dma_addr_t src, dma_addr_t dst, u64 size,
		int pending_transfers),
	TP_ARGS(nd, nc_id, src, dst, size, pending_transfers),
	TP_STRUCT__entry(
		__field(u32, device_index)
		__field(u32, nc_id)
		__field(u64, src)
		__field(u64, dst)
		__field(u32, size)
		__field(u32, pending_transfers)
	),
	TP_fast_assign(
		__entry->device_index = nd->device_index;
		__entry->nc_id = nc_id;
		__entry->src = src;
		__entry->dst = dst;
		__entry->size = size;
		__entry->pending_transfers = pending_transfers;
	),
	TP_printk("nd%u nc%u size %u", __entry->device_index, __entry->nc_id, __entry->size)
);

DECLARE_EVENT_CLASS(neuron_bar,
	TP_PROTO(struct neuron_device *nd, u32 bar, u64 offset, u32 data),
	TP_ARGS(nd, bar, offset, data),
	TP_STRUCT__entry(
		__field(u32, device_index)
		__field(u32, bar)
		__field(u64, offset)
		__field(u32, data)
	),
	TP_fast_assign(
		__entry->device_index = nd->device_index;
		__entry->bar = bar;
		__entry->offset = offset;
		__entry->data = data;
	),
	TP_printk("nd%u bar%u offset 0x%llx data 0x%x", __entry->device_index, __entry->bar,
		__entry->offset, __entry->data)
);
DEFINE_EVENT(neuron_bar, bar_write,
	TP_PROTO(struct neuron_device *nd, u32 bar, u64 offset, u32 data),
	TP_ARGS(nd, bar, offset, data));
DEFINE_EVENT(neuron_bar, bar_read,
	TP_PROTO(struct neuron_device *nd, u32 bar, u64 offset, u32 data),
	TP_ARGS(nd, bar, offset, data));

TRACE_EVENT(metrics_post, /* with bit 1 of nmetric_log_posts */
	TP_PROTO(u32 id, u32 length, const u8 *value),
	TP_ARGS(id, length, value),
	TP_STRUCT__entry(
		__field(u32, id)
		__field(u32, length)
		__array(u8, value, 128)
	),
	TP_fast_assign(
		__entry->id = id;
		__entry->length = min_t(u32, length, 128);
		memcpy(__entry->value, value, min_t(u32, length, 128));
	),
	TP_printk("id %u length %u", __entry->id, __entry->length)
);

#endif

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH tests/vm/standin
#define TRACE_INCLUDE_FILE trace
/* clang-format on */
#include <trace/define_trace.h>
