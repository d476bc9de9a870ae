/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/*
 * neuron_args.h - the argument structures of the neuron driver's requests, as both sides of an
 * ioctl see them: the runtime fills them, the virtual device reads them from the caller's memory.
 *
 * Only requests that one of ours sends or answers are here.  Layouts are those of x86-64 and were
 * restated from the driver's public interface (2.24.7, 2.30.2 where it says so); sizes are
 * checked against ioctl_table.def.  User pointers are plain numbers: who follows them decides
 * how.
 */
#ifndef NTRACE_VMLINUX_NEURON_ARGS_H
#define NTRACE_VMLINUX_NEURON_ARGS_H

#ifdef __KERNEL__ /* the driver of the tests */
#include <linux/build_bug.h>
#include <linux/types.h>
#else
#include <assert.h>
#include <stdint.h>
#endif

/* MEM_ALLOC */
struct neuron_mem_alloc {
	uint64_t size;
	uint32_t host_memory;
	uint32_t dram_channel;
	uint32_t dram_region;
	uint32_t nc_id;
	uint64_t mem_handle; /* u64 *, out */
};

/* MEM_ALLOC_V2 */
struct neuron_mem_alloc_v2 {
	uint64_t size;
	uint64_t align;
	uint32_t host_memory;
	uint32_t dram_channel;
	uint32_t dram_region;
	uint32_t nc_id;
	uint64_t mem_handle; /* u64 *, out */
};

/* MEM_ALLOC_V2MT (48 bytes), _V2MT64 (56), _V2MT64_PA (64, driver 2.30): each a prefix of the
 * next. */
struct neuron_mem_alloc_v2mt {
	uint64_t size;
	uint64_t align;
	uint32_t host_memory;
	uint32_t dram_channel;
	uint32_t dram_region;
	uint32_t nc_id;
	uint32_t mem_type; /* memory category of the driver; only accounting uses it */
	uint32_t pad0;
	uint64_t mem_handle; /* u64 *, out */
	uint32_t pad1;
	uint32_t pad2;
	uint64_t pa; /* out; _PA only */
};
#define NEURON_MEM_ALLOC_V2MT_BYTES 48u
#define NEURON_MEM_ALLOC_V2MT64_BYTES 56u

struct neuron_mem_free {
	uint64_t mem_handle;
};

struct neuron_mem_copy {
	uint64_t src_mem_handle;
	uint64_t dst_mem_handle;
	uint32_t size;
	uint32_t src_offset;
	uint32_t dst_offset;
	uint32_t pad;
};

/* MEM_COPY64_DEPRECATED is the first 40 bytes, MEM_COPY64 (2.30) all. */
struct neuron_mem_copy64 {
	uint64_t src_mem_handle;
	uint64_t dst_mem_handle;
	uint64_t size;
	uint64_t src_offset;
	uint64_t dst_offset;
	uint64_t sequence_num;
	uint64_t context;
};
#define NEURON_MEM_COPY64_DEPRECATED_BYTES 40u

/* MEM_COPY_ASYNC, MEM_COPY_ASYNC64: a handle is one of enum neuron_wait_handle. */
struct neuron_mem_copy_async {
	uint64_t src_mem_handle;
	uint64_t dst_mem_handle;
	uint32_t size;
	uint32_t src_offset;
	uint32_t dst_offset;
	uint32_t pad;
	uint64_t host_prefetch_addr;
	uint32_t pwait_handle; /* an earlier copy that this one waits for */
	uint32_t wait_handle;  /* out */
};
struct neuron_mem_copy_async64 {
	uint64_t src_mem_handle;
	uint64_t dst_mem_handle;
	uint64_t size;
	uint64_t src_offset;
	uint64_t dst_offset;
	uint64_t host_prefetch_addr;
	uint32_t pwait_handle;
	uint32_t wait_handle;
};
struct neuron_mem_copy_async_wait {
	uint64_t src_mem_handle;
	uint64_t dst_mem_handle;
	uint32_t pwait_handle;
	uint32_t pad;
};
enum neuron_wait_handle {
	NEURON_WAIT_NONE = -1,
	NEURON_WAIT_SYNC = 0,
	NEURON_WAIT_ASYNC1 = 1,
	NEURON_WAIT_ASYNC2 = 2
};

struct neuron_mem_buf_copy {
	uint64_t mem_handle;
	uint64_t buffer; /* void * */
	uint32_t size;
	uint32_t offset;
	uint32_t copy_to_mem_handle; /* 1: to the device */
	uint32_t pad;
};

struct neuron_mem_buf_copy64 {
	uint64_t mem_handle;
	uint64_t buffer; /* void * */
	uint64_t size;
	uint64_t offset;
	uint32_t copy_to_mem_handle;
	uint32_t pad;
};

/* MEM_BUF_ZEROCOPY64 of 2.30 */
struct neuron_mem_buf_zerocopy64 {
	uint64_t mem_handle;
	uint64_t buffer; /* void * */
	uint64_t size;
	uint64_t offset;
	uint32_t is_copy_to_device;
	uint32_t bar4_wr_threshold;
	int32_t h2t_qid; /* -1: the default one */
	uint32_t pad;
	uint64_t sequence_num; /* 0: synchronous */
	uint64_t context;
};

/* GET_ASYNC_H2T_DMA_COMPL_QUEUES */
struct neuron_h2t_compl_queues {
	uint32_t nc_id;
	uint32_t qid_bitmap;
	struct {
		uint64_t mmap_offset; /* out, by queue */
		uint32_t mmap_size;
		uint32_t pad;
	} queues[16];
};

struct neuron_memset {
	uint64_t mem_handle;
	uint64_t offset;
	uint32_t value;
	uint32_t size;
};

struct neuron_memset64 {
	uint64_t mem_handle;
	uint64_t offset;
	uint32_t value;
	uint32_t pad;
	uint64_t size;
};

struct neuron_program_engine {
	uint64_t dst;	 /* device address */
	uint64_t buffer; /* void * */
	uint32_t size;
	uint32_t offset;
};
struct neuron_program_engine_nc {
	uint32_t nc_id;
	uint32_t pad;
	uint64_t dst;
	uint64_t buffer;
	uint32_t size;
	uint32_t offset;
};
struct neuron_program_engine_nc64 {
	uint32_t nc_id;
	uint32_t pad;
	uint64_t dst;
	uint64_t buffer;
	uint64_t size;
	uint64_t offset;
};

struct neuron_mem_get_pa {
	uint64_t mem_handle;
	uint64_t pa; /* u64 *, out */
};

struct neuron_mem_get_info {
	uint64_t mem_handle;
	uint64_t mmap_offset; /* u64 *, out */
	uint64_t pa;	      /* u64 *, out */
};

struct neuron_mem_get_extended_info {
	uint64_t mem_handle;
	uint32_t version;
	uint32_t host_memory;
	uint64_t mmap_offset;
	uint64_t pa;
	uint64_t pid;
	uint64_t size;
};

struct neuron_bar_rw {
	uint32_t bar;
	uint32_t pad0;
	uint64_t address; /* u64 *: BAR 0 takes one address per word */
	uint64_t data;	  /* u32 * */
	uint32_t count;
	uint32_t pad1;
};

struct neuron_post_metric {
	uint64_t data; /* u32 * */
	uint32_t data_size;
	uint32_t pad;
};

struct neuron_printk {
	uint64_t buffer; /* void * */
	uint32_t size;
	uint32_t action;
};

struct neuron_dma_eng_init {
	uint32_t eng_id;
};

struct neuron_dma_eng_set_state {
	uint32_t eng_id;
	uint32_t state;
};

struct neuron_dma_queue_init {
	uint32_t eng_id;
	uint32_t qid;
	uint32_t tx_desc_count;
	uint32_t rx_desc_count;
	uint64_t tx_handle;
	uint64_t rx_handle;
	uint64_t rxc_handle;
	uint32_t axi_port;
	uint32_t pad;
};

struct neuron_dma_queue_init_batch {
	uint32_t count;
	uint32_t pad;
	struct neuron_dma_queue_init entries[256];
};

struct neuron_dma_copy_descriptors {
	uint64_t mem_handle; /* the ring's memory */
	uint64_t buffer;     /* void * */
	uint32_t num_descs;
	uint32_t offset;
	uint32_t queue_type; /* 0 tx, 1 rx, 2 completion */
	uint32_t pad;
};
struct neuron_dma_copy_descriptors64 {
	uint64_t mem_handle;
	uint64_t buffer;
	uint32_t num_descs;
	uint32_t pad0;
	uint64_t offset;
	uint32_t queue_type;
	uint32_t pad1;
};

struct neuron_dma_queue_release {
	uint32_t eng_id;
	uint32_t qid;
};

struct neuron_dma_queue_copy_start {
	uint32_t eng_id;
	uint32_t qid;
	uint32_t tx_desc_count;
	uint32_t rx_desc_count;
};

struct neuron_dma_ack_completed {
	uint32_t eng_id;
	uint32_t qid;
	uint32_t count;
};

struct neuron_dma_queue_get_state {
	uint32_t eng_id;
	uint32_t qid;
	uint64_t tx; /* struct neuron_dma_queue_state *, out */
	uint64_t rx;
};

struct neuron_dma_queue_state {
	uint32_t hw_status;
	uint32_t sw_status;
	uint64_t base_addr;
	uint32_t length;
	uint32_t head_pointer;
	uint32_t tail_pointer;
	uint32_t pad0;
	uint64_t completion_base_addr;
	uint32_t completion_head;
	uint32_t pad1;
};

/* SEMAPHORE_..., EVENT_... */
struct neuron_semaphore {
	uint32_t nc_id;
	uint32_t index;
	uint32_t value;
};

struct neuron_notifications_init_v1 {
	uint32_t nc_id;
	uint32_t nq_type;
	uint32_t engine_index;
	uint32_t size;
	uint64_t mmap_offset; /* out */
};

struct neuron_notifications_init_v2 {
	uint32_t nq_dev_id;
	uint32_t nq_dev_type;
	uint32_t nq_type;
	uint32_t engine_index;
	uint32_t size;
	uint32_t on_host_memory;
	uint32_t dram_channel;
	uint32_t dram_region;
	uint64_t mmap_offset; /* out; all ones in device memory */
	uint64_t mem_handle;  /* out */
};

struct neuron_notifications_init_with_realloc_v2 {
	uint32_t nq_dev_id;
	uint32_t nq_dev_type;
	uint32_t nq_type;
	uint32_t engine_index;
	uint32_t size;
	uint32_t on_host_memory;
	uint32_t dram_channel;
	uint32_t dram_region;
	uint32_t force_alloc_mem;
	uint32_t pad;
	uint64_t mmap_offset; /* out */
	uint64_t mem_handle;  /* out */
};

struct neuron_crwl_nc_map {
	uint32_t nc_count;
	uint32_t start_nc_index;
	uint32_t end_nc_index;
	uint32_t max_nc_available; /* out */
	uint64_t bitmap;	   /* bit 0 = first core of the opened device */
};

struct neuron_crwl_nc_map_ext {
	uint32_t nc_count;
	uint32_t start_nc_index;
	uint32_t end_nc_index;
	uint32_t max_nc_available;
	uint64_t bitmap[8];
};

struct neuron_cinit_set {
	uint32_t nc_id;
	uint32_t state;
	uint32_t new_state; /* out */
};

struct neuron_device_reset {
	uint32_t nc_map;
	uint32_t request_id; /* out */
};

struct neuron_device_ready {
	uint32_t request_id;
	int32_t result; /* out; 0 = done */
};

struct neuron_compatible_version {
	uint32_t max;
	uint32_t min;
};

struct neuron_device_basic_info {
	uint32_t architecture;
	uint32_t revision;
};

struct neuron_device_bdf {
	uint32_t bus_number;
	uint8_t slot;
	uint8_t func;
	uint16_t pad;
};

struct neuron_device_bdf_ext {
	uint32_t nd_index; /* in */
	uint32_t domain;
	uint32_t bus_number;
	uint8_t slot;
	uint8_t func;
	uint16_t pad;
};

struct neuron_device_info {
	uint32_t architecture;
	uint32_t revision;
	uint32_t connected_device_count;
	uint32_t connected_devices[8];
	uint32_t pad;
	uint64_t bar_address[2];
	uint64_t bar_size[2];
};

struct neuron_device_driver_info {
	uint32_t architecture;
	uint32_t revision;
	uint32_t version;
	uint32_t size;
	uint64_t feature_flags1;
};

struct neuron_host_device_id_to_rid_map {
	uint32_t count;
	uint32_t host_did_to_rid_map[64];
};

/* DEVICE_GET_ALL_APPS_INFO: this, and behind it `size` (out, at most `capacity`) of the next. */
struct neuron_apps_info {
	uint16_t flags; /* NEURON_APPS_... */
	uint16_t pad0;
	uint32_t capacity;
	uint32_t size;
	uint32_t pad1;
};
struct neuron_app_info {
	int32_t pid;
	uint8_t nc_lock_map; /* bit c: holds the lock of core c, of the first four */
	uint8_t uuid[4][32];
	uint8_t pad[3];
	uint64_t host_mem_size;
	uint64_t device_mem_size;
};
#define NEURON_APPS_NC_LOCKS 1u
#define NEURON_APPS_MEMORY 2u
#define NEURON_MAX_PROCESSES 16u /* attached to a device */

/* ACQUIRE_NEURON_DS, RELEASE_NEURON_DS */
struct neuron_ds_info {
	int32_t pid; /* 0: the caller's own, made if it is not there */
	uint32_t pad0;
	uint64_t mmap_offset; /* out */
	uint32_t size;	      /* out */
	uint32_t pad1;
};
#define NEURON_DS_BYTES 262144u

struct neuron_nc_pid_state_dump {
	uint32_t size;
	uint32_t nc_id; /* core of the machine, whatever device was opened */
	uint32_t filter_log_owner;
	uint32_t log_dump_limit;
};

struct neuron_hbm_scrub_start {
	uint32_t nc_id;
	uint32_t hbm_index;
	uint32_t axi_port;
	uint32_t init_val;
};

struct neuron_hbm_scrub_wait {
	uint32_t nc_id;
	uint32_t hbm_index;
};

/* GET_LOGICAL_TO_PHYSICAL_NC_MAP: at map, a u32 count and max_map_entries entries. */
struct neuron_get_nc_map {
	uint64_t map; /* out */
	uint32_t max_map_entries;
	uint32_t mapping_version;
};
struct neuron_nc_map_entry {
	uint32_t device_id;
	uint32_t device_nc_idx;
};

struct neuron_pod_info {
	uint16_t sz; /* in: of this structure */
	uint8_t pod_type;
	uint8_t pod_id[256];
	uint8_t pod_sz;
};

/* POD_STATUS is the first 268 bytes, POD_STATUS_V2 all. */
struct neuron_pod_status {
	uint16_t sz; /* in: of the form */
	uint8_t pod_id[256];
	uint16_t pad0;
	uint32_t state; /* enum neuron_pod_state */
	uint8_t pod_type;
	uint8_t pod_sz;
	int8_t node_id; /* -1: none */
	uint8_t pad1;
	uint32_t mode;
	uint32_t modes_supported;
};
#define NEURON_POD_STATUS_BYTES 268u

/* POD_CTRL is the first 16 bytes, POD_CTRL_V2 all. */
struct neuron_pod_ctrl {
	uint16_t sz; /* in: of the form */
	uint16_t pad;
	uint32_t ctrl;
	uint32_t timeout;
	uint32_t state; /* out */
	uint32_t mode;
};
#define NEURON_POD_CTRL_BYTES 16u

enum neuron_pod_state {
	NEURON_POD_NOT_STARTED = 0,
	NEURON_POD_IN_PROGRESS = 1,
	NEURON_POD_ULTRASERVER = 2,
	NEURON_POD_FAILED = 3,
	NEURON_POD_SINGLE_NODE = 4,
};

enum neuron_cinit_state {
	NEURON_CINIT_STARTED = 1,
	NEURON_CINIT_COMPLETED = 2,
	NEURON_CINIT_INVALID = 3
};
enum neuron_nq_dev_type { NEURON_NQ_DEV_CORE = 0, NEURON_NQ_DEV_TOP_SP = 1 };

#define NEURON_NC_MAP_DEVICE 0xffffffffu /* NC_RESET: the whole device */

/* feature_flags1 of DRIVER_INFO_GET */
#define NEURON_FEATURE_BIG_CORE_MAPS (1ull << 3)
#define NEURON_FEATURE_ALLOC_TYPE (1ull << 4)
#define NEURON_FEATURE_HBM_SCRUB (1ull << 5)
#define NEURON_FEATURE_ALLOC64 (1ull << 6)
#define NEURON_FEATURE_ALLOC_WITH_PA (1ull << 10)

#define NEURON_ARG_SIZE(type, size) \
	static_assert(sizeof(struct neuron_##type) == (size), "neuron_" #type)
NEURON_ARG_SIZE(mem_alloc, 32);
NEURON_ARG_SIZE(mem_alloc_v2, 40);
NEURON_ARG_SIZE(mem_alloc_v2mt, 64);
NEURON_ARG_SIZE(mem_copy, 32);
NEURON_ARG_SIZE(mem_copy64, 56);
NEURON_ARG_SIZE(mem_copy_async, 48);
NEURON_ARG_SIZE(mem_copy_async64, 56);
NEURON_ARG_SIZE(mem_copy_async_wait, 24);
NEURON_ARG_SIZE(program_engine, 24);
NEURON_ARG_SIZE(program_engine_nc, 32);
NEURON_ARG_SIZE(program_engine_nc64, 40);
NEURON_ARG_SIZE(mem_buf_copy, 32);
NEURON_ARG_SIZE(mem_buf_copy64, 40);
NEURON_ARG_SIZE(mem_buf_zerocopy64, 64);
NEURON_ARG_SIZE(h2t_compl_queues, 264);
NEURON_ARG_SIZE(memset, 24);
NEURON_ARG_SIZE(memset64, 32);
NEURON_ARG_SIZE(mem_get_info, 24);
NEURON_ARG_SIZE(mem_get_extended_info, 48);
NEURON_ARG_SIZE(bar_rw, 32);
NEURON_ARG_SIZE(dma_queue_init, 48);
NEURON_ARG_SIZE(dma_queue_init_batch, 12296);
NEURON_ARG_SIZE(dma_copy_descriptors, 32);
NEURON_ARG_SIZE(dma_copy_descriptors64, 40);
NEURON_ARG_SIZE(dma_queue_get_state, 24);
NEURON_ARG_SIZE(dma_queue_state, 48);
NEURON_ARG_SIZE(notifications_init_v1, 24);
NEURON_ARG_SIZE(notifications_init_v2, 48);
NEURON_ARG_SIZE(notifications_init_with_realloc_v2, 56);
NEURON_ARG_SIZE(crwl_nc_map, 24);
NEURON_ARG_SIZE(crwl_nc_map_ext, 80);
NEURON_ARG_SIZE(device_bdf, 8);
NEURON_ARG_SIZE(device_bdf_ext, 16);
NEURON_ARG_SIZE(device_info, 80);
NEURON_ARG_SIZE(device_driver_info, 24);
NEURON_ARG_SIZE(host_device_id_to_rid_map, 260);
NEURON_ARG_SIZE(apps_info, 16);
NEURON_ARG_SIZE(app_info, 152);
NEURON_ARG_SIZE(ds_info, 24);
NEURON_ARG_SIZE(nc_pid_state_dump, 16);
NEURON_ARG_SIZE(hbm_scrub_start, 16);
NEURON_ARG_SIZE(get_nc_map, 16);
NEURON_ARG_SIZE(pod_info, 260);
NEURON_ARG_SIZE(pod_status, 276);
NEURON_ARG_SIZE(pod_ctrl, 20);

#endif
