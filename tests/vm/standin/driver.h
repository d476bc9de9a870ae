/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * driver.h - structures and functions of the stand-in for the Neuron kernel driver.
 *
 * The stand-in is a small module of our own that looks to a tracer like driver 2.24.7: same node
 * behaviour, requests, function names, signatures, structures by member name, and tracepoints.  Its
 * device is a model in memory (hardware.c): descriptors really move bytes, `delay_us` after the doorbell,
 * or never.  Names and signatures follow what is publicly known of the driver; bodies are ours, and members
 * stand at other offsets than in the driver, so that who does not look them up finds nothing.
 *
 * Rooms: ncdev.c file operations; requests_*.c what a request means; memory.c chunks and handles;
 * udma.c descriptors and doorbells; dma.c copies; zero_copy.c; queues.c rings; cores.c marks, resets and
 * notification queues; hardware.c the device; counts.c what ran how often.
 *
 * With STANDIN_230 it has the shape of driver 2.30.2 where the two differ: arguments and members below, and
 * zero_copy_230.c and requests_230.c in the place of zero_copy.c.
 *
 * Locks, outer first: ncdev_lock, h2t_ring_lock, engine lock, mpset.lock, hw.lock.  mpset.lock and
 * hw.lock are never held while a copy is waited for.
 */
#ifndef STANDIN_DRIVER_H
#define STANDIN_DRIVER_H

#include <linux/cdev.h>
#include <linux/fs.h>
#include <linux/idr.h>
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/types.h>
#include <linux/wait.h>

#define MAX_NEURON_DEVICE_COUNT 16
#define MAX_NC_PER_DEVICE 8
#define NUM_DMA_ENG_PER_DEVICE 132
#define DMA_MAX_Q_MAX 16
#define NEURON_MAX_PROCESS_PER_DEVICE 16
#define NQ_PER_NC 96 /* six types of sixteen engines */

#define H2T_ENGINE 128 /* the first of four; core n has 128 + n/2, queue n%2 */
#define H2T_DESCRIPTORS 4096
#define DMA_SLICE 65536u   /* most bytes of one pair of descriptors */
#define DMA_MAX_PAIRS 2032 /* of one doorbell, besides the marker */
#define DMA_MARKER 0xabcdef01u
#define HOST_BIT (1ull << 46) /* in a device address: host memory */

/* What changed between the shapes. */
#ifdef STANDIN_230
#define mempool_set neuron_mempool_set
#define HBM_PARAMETERS u32 hbm_index
#define HBM_GIVEN hbm_index
#define HBM_ARGUMENTS(channel, region) (channel)
#define PORT_PARAMETER
#define PORT_ARGUMENT(port)
#define PORT_TRACED(port)
#define BARRIER_PARAMETER , int barrier_type
#define BARRIER_ARGUMENT , UDMA_M2M_BARRIER_NONE
#define WAIT_TIMED_OUT (-ETIMEDOUT)
#else
#define HBM_PARAMETERS u32 channel, u32 region
#define HBM_GIVEN channel, region
#define HBM_ARGUMENTS(channel, region) (channel), (region)
#define PORT_PARAMETER u32 port,
#define PORT_ARGUMENT(port) (port),
#define PORT_TRACED(port) , (port)
#define BARRIER_PARAMETER
#define BARRIER_ARGUMENT
#define WAIT_TIMED_OUT (-1)
#endif

/* A function that tracers hook stays one function under its own name. */
#define KEPT noinline __attribute__((noipa))
/* In the variant `clones`, what a compiler may do to the name of a static function. */
#ifdef STANDIN_CLONES
#define CLONE(name, suffix) __asm__(#name "." suffix)
#else
#define CLONE(name, suffix)
#endif

enum neuron_device_state {
	NEURON_DEVICE_STATE_RESET = 0,
	NEURON_DEVICE_STATE_READY = 1,
	NEURON_DEVICE_STATE_INVALID = 2,
};

/* ---- memory ------------------------------------------------------------------------------- */

enum mem_location { MEM_LOC_INVALID = 0, MEM_LOC_HOST = 1, MEM_LOC_DEVICE = 2 };
enum mc_lifespan {
	MC_LIFESPAN_LOCAL = 1,
	MC_LIFESPAN_CUR_PROCESS,
	MC_LIFESPAN_ALL_PROCESS,
	MC_LIFESPAN_DEVICE,
};
/* What memory is for; more of them come from user space. */
enum {
	NEURON_MEMALLOC_TYPE_NCDEV_HOST = 5,
	NEURON_MEMALLOC_TYPE_NOTIFICATION_HOST = 6,
	NEURON_MEMALLOC_TYPE_NOTIFICATION_DEVICE = 16,
	NEURON_MEMALLOC_TYPE_DMA_RINGS_HOST = 17,
};
typedef u32 mem_alloc_category_t;
typedef u64 neuron_mc_handle_t;

struct neuron_device;

struct mempool_set {
	struct neuron_device *nd;
	struct mutex lock;	 /* the list and the sums */
	struct list_head chunks; /* of lifespan_list */
	u64 host_mem_size;	 /* bytes in use */
	u64 device_mem_size;
	u64 next_pa[4]; /* of each HBM; an address is never given twice */
};

struct mem_chunk {
	u32 magic;
	phys_addr_t pa; /* host: physical; device: in its HBM */
	void *va;
	u64 size;
	struct mempool_set *mpset;
#ifdef STANDIN_230
	u32 hbm_index;
#else
	u32 dram_channel;
	u32 dram_region;
#endif
	u32 nc_id;
	mem_alloc_category_t alloc_type;
	enum mem_location mem_location;
	pid_t pid; /* tgid of the owner */
	int ref_count;
	enum mc_lifespan lifespan;
	neuron_mc_handle_t mc_handle; /* 0: none */
	struct list_head lifespan_list;
};

struct neuron_mc_handle_map {
	struct mutex lock;
	struct idr handles; /* 1, 2, 3, ... */
};

/* ---- DMA ---------------------------------------------------------------------------------- */

struct udma;

/* word0: length (16 bits, 0 is 64 KiB), flags; word1: meta; then the address. */
union udma_desc {
	struct {
		u32 word0;
		u32 word1;
		u64 address;
	};
	u8 bytes[16];
};
#define UDMA_DESC_FIRST BIT(26)
#define UDMA_DESC_LAST BIT(27)
#define UDMA_DESC_INT BIT(28)
#define UDMA_DESC_DMB BIT(30)

enum udma_type { UDMA_TX = 0, UDMA_RX = 1 };
enum udma_state { UDMA_DISABLE = 0, UDMA_IDLE, UDMA_NORMAL, UDMA_ABORT, UDMA_RESET };
enum udma_queue_status { UDMA_QUEUE_DISABLED = 0, UDMA_QUEUE_ENABLED };
enum udma_m2m_barrier { UDMA_M2M_BARRIER_NONE = 0, UDMA_M2M_BARRIER_DMB = 1 };

struct udma_q {
	union udma_desc *desc_base_ptr;
	struct udma *udma;
	dma_addr_t desc_phy_base;
	u32 size;
	u32 size_mask;
	u32 next_desc_idx;  /* free running */
	u32 next_cdesc_idx; /* acknowledged so far, free running */
	u32 qid;
	u32 eng_id; /* of tx queues only */
	enum udma_type type;
	enum udma_queue_status status;
};

struct udma {
	char name[25];
	u8 num_of_queues;
	u8 num_of_queues_max;
	enum udma_state state_m2s;
	enum udma_state state_s2m;
	unsigned int rev_id;
	struct udma_q udma_q_s2m[DMA_MAX_Q_MAX];
	struct udma_q udma_q_m2s[DMA_MAX_Q_MAX];
};

struct ndma_eng;
struct ndma_ring;

struct udma_ring_ptr {
	void *ptr;
	dma_addr_t addr;
};

/* A copy on an h2t ring: 0 is the synchronous one, 1 and 2 the asynchronous ones. */
struct ndma_h2t_dma_context {
	bool inuse;
	struct ndma_eng *eng;
	struct ndma_ring *ring;
	dma_addr_t src;
	dma_addr_t dst;
	u64 size;
	bool smove;
	bool dmove;
	u64 start_time;
	u64 offset;
	u64 remaining;
	u64 outstanding;
	int pending_transfers; /* descriptors of the doorbell that is open, marker included */
	void *completion_ptr;
};

#ifdef STANDIN_230
struct ndma_h2t_zcdma_context;

/* Contexts of zero copies of a ring, oldest first. */
struct ndma_ctx_queue {
	struct ndma_h2t_zcdma_context *entries;
	u32 capacity_mask;
	u32 head; /* free running, as the others */
	u32 tail;
	u32 first_pinned_unsubmitted;
	u32 first_unpinned;
	u64 nr_pinned_pages;
};

/* Where user space reads what has become of asynchronous requests. */
struct ndma_h2d_compl_queue {
	u32 capacity_mask;
	u32 tail;
	struct mem_chunk *mc;
	void *compl_queue_shared;
};
#endif

struct ndma_ring {
#ifdef STANDIN_230
	struct mutex h2t_ring_lock;
	struct ndma_ctx_queue dma_ctx_queue;
	struct ndma_h2d_compl_queue dma_compl_queue;
	u32 h2t_nc_id;
	bool h2t_allocated;
#endif
	struct mem_chunk *tx_mc;
	struct mem_chunk *rx_mc;
	struct mem_chunk *rxc_mc;
	struct mem_chunk *h2t_completion_mc; /* markers: source and destination word of each */
	struct udma_ring_ptr tx;
	struct udma_ring_ptr rx;
	struct udma_ring_ptr rxc;
	struct udma_ring_ptr h2t_completion;
	struct ndma_h2t_dma_context h2t_dma_ctx[3];
	u32 qid;
	u32 size;
	bool has_compl;
	u32 dram_channel;
};
#define ZC_MARKER 3 /* first of those of zero copies */
#define ZC_SLOTS 16
#define H2T_MARKERS (ZC_MARKER + ZC_SLOTS)

struct ndma_queue {
	u32 eng_id;
	u32 qid;
	pid_t owner; /* tgid; 0: the driver, or nobody */
	struct ndma_ring ring_info;
};

struct ndma_eng {
	struct neuron_device *nd;
	u32 eng_id;
	bool used_for_h2t;
	struct mutex lock;
#ifndef STANDIN_230
	struct mutex h2t_ring_lock;
#endif
	struct ndma_queue queues[DMA_MAX_Q_MAX];
	struct udma udma;
};

/* The lock of copies on the driver's ring. */
static inline struct mutex *h2t_lock(struct ndma_eng *eng, struct ndma_ring *ring)
{
#ifdef STANDIN_230
	return &ring->h2t_ring_lock;
#else
	return &eng->h2t_ring_lock;
#endif
}

/* ---- the device --------------------------------------------------------------------------- */

struct hw_queue {
	u32 head[2], tail[2]; /* by udma_type: executed and announced, free running */
};

struct standin_hw {
	struct task_struct *thread;
	wait_queue_head_t wake;
	struct mutex lock; /* the queues; held while descriptors are executed */
	spinlock_t doorbell_lock;
	struct list_head doorbells;
	struct hw_queue queue[NUM_DMA_ENG_PER_DEVICE][DMA_MAX_Q_MAX];
};

struct neuron_attached_process {
	pid_t pid;
	int open_count;
	size_t memory_used[2]; /* host, device */
	void *task;
};

struct neuron_pci_device {
	phys_addr_t bar0_pa;
	void *bar0;
	u64 bar0_size;
};
#define BAR0_BYTES 65536u
#define BAR0_BASE 0x40000000ull /* what DEVICE_INFO says; not a kernel address */

struct neuron_reset_request {
	struct list_head list;
	u32 request_id;
	u32 nc_map;
	int ret;
	bool done;
};

struct neuron_reset {
	struct task_struct *thread;
	wait_queue_head_t wait_queue;
	struct mutex nr_lock;
	struct list_head requests;
	u32 next_id;
};

#ifdef STANDIN_230
struct ndma_h2d_dma_cmpltn_thread {
	struct task_struct *thread; /* made for the first asynchronous request */
	wait_queue_head_t wait_queue;
	atomic64_t nonempty_ctxq_bitmap; /* (engine - 128) * 16 + queue */
	bool stop;
};
#endif

struct neuron_counts;

struct ncdev {
	struct cdev cdev;
	struct device *device;
	struct neuron_device *ndev;
	struct mutex ncdev_lock;
	int minor;
	int open_count;
};

struct neuron_device {
	struct ncdev ncdev_store;
	void *ncdev;
	enum neuron_device_state device_state;
	struct neuron_attached_process attached_processes[NEURON_MAX_PROCESS_PER_DEVICE];
	struct neuron_pci_device npdev;
	struct neuron_mc_handle_map nmch;
	struct mempool_set mpset;
	int device_index;
	struct mem_chunk *ndma_q_dummy_mc;
	struct mem_chunk *memset_mc;
	struct mutex memset_lock;
	struct mem_chunk *nq_mc[MAX_NC_PER_DEVICE][NQ_PER_NC];
	struct mem_chunk *ts_nq_mc[16][NQ_PER_NC];
	struct mutex nq_lock;
	struct neuron_reset nr;
	u32 cinit_state[MAX_NC_PER_DEVICE];
	u64 nc_model_started_count[MAX_NC_PER_DEVICE];
	u32 semaphores[MAX_NC_PER_DEVICE][256];
	u32 events[MAX_NC_PER_DEVICE][256];
	struct neuron_counts *counts;
	struct standin_hw *hw;
#ifdef STANDIN_230
	struct ndma_h2d_dma_cmpltn_thread dma_cmpltn_thread;
#endif
	struct ndma_eng ndma_engine[NUM_DMA_ENG_PER_DEVICE];
};

extern struct neuron_device *neuron_devices[MAX_NEURON_DEVICE_COUNT];
extern int total_neuron_devices;

/* Module parameters; those of the hardware may change at any time. */
extern uint delay_us, timeout_ms, reset_ms, hbm_mb, nmetric_log_posts;
extern bool never;

/* ---- counts.c: what ran, how often, with how many bytes and errors ------------------------- */

enum standin_function {
#define COUNTED(name) FN_##name,
#include "tests/vm/standin/counts.def"
#undef COUNTED
	FN_MAX,
};

/* Notes a call of a function on a device, and the error it returns; `failed` gives r back. */
void count_call(struct neuron_device *nd, enum standin_function fn, u64 bytes);
long count_result(struct neuron_device *nd, enum standin_function fn, long r);
int counts_attach(struct neuron_device *nd);
void counts_detach(struct neuron_device *nd);
int counts_open(void); /* the debugfs file */
void counts_close(void);

/* ---- ncdev.c ------------------------------------------------------------------------------ */

int ncdev_create(struct neuron_device *nd);
void ncdev_delete(struct neuron_device *nd);
int ncdev_module_init(void);
void ncdev_module_exit(void);
/* The slot of the caller's process, or NULL. */
struct neuron_attached_process *npid_of_caller(struct neuron_device *nd);

/* ---- memory.c ----------------------------------------------------------------------------- */

void mpset_init(struct neuron_device *nd);
void mpset_destroy(struct neuron_device *nd);
int mc_alloc_align(struct neuron_device *nd, enum mc_lifespan lifespan, u64 size, u64 align,
	enum mem_location location, HBM_PARAMETERS, u32 nc_id, mem_alloc_category_t mem_type,
	struct mem_chunk **result);
/* Drops one reference; the last one frees.  *mcp becomes NULL. */
void mc_free(struct mem_chunk **mcp);
/* Frees what the process has not freed itself. */
void mpset_free_expired_mc(struct mempool_set *mpset, pid_t pid);
/* Device address of a chunk. */
dma_addr_t ndma_mc_to_pa(const struct mem_chunk *mc);
/* Handles: make one; take a reference on its chunk (give it back with mc_free), or NULL; end it. */
int nmch_handle_alloc(struct neuron_device *nd, struct mem_chunk *mc, neuron_mc_handle_t *handle);
struct mem_chunk *nmch_get(struct neuron_device *nd, neuron_mc_handle_t handle);
struct mem_chunk *nmch_take(struct neuron_device *nd, neuron_mc_handle_t handle);
/* The chunk that an address lies in, with mpset.lock held. */
struct mem_chunk *mpset_search_mc(struct mempool_set *mpset, dma_addr_t address);
int nmmap_mem(struct neuron_device *nd, struct vm_area_struct *vma);

/* ---- hardware.c --------------------------------------------------------------------------- */

int hw_start(struct neuron_device *nd);
void hw_stop(struct neuron_device *nd);
/* The tail register of a queue was written. */
void hw_doorbell(struct neuron_device *nd, u32 eng_id, u32 qid, enum udma_type type, u32 count);
/* Nothing that was announced on the queue happens any more. */
void hw_cancel(struct neuron_device *nd, u32 eng_id, u32 qid);
/* A queue begins anew. */
void hw_queue_reset(struct neuron_device *nd, u32 eng_id, u32 qid);
u32 hw_head(struct neuron_device *nd, u32 eng_id, u32 qid, enum udma_type type);

/* ---- udma.c ------------------------------------------------------------------------------- */

void udma_init(struct udma *udma, u32 eng_id);
int udma_m2m_init_queue(struct udma *udma, u32 qid, u32 eng_id, u32 m2s_size, u32 s2m_size,
	const struct udma_ring_ptr *m2s, const struct udma_ring_ptr *s2m);
int udma_m2m_copy_prepare_one(struct udma *udma, u32 qid, dma_addr_t src, dma_addr_t dst, u32 size,
	int barrier, bool en_int);
int udma_m2m_copy_start(struct udma *udma, u32 qid, u32 m2s_count, u32 s2m_count);
int udma_desc_action_add(struct udma_q *q, u32 num);
void udma_cdesc_ack(struct udma *udma, u32 qid, u32 count);
u32 udma_available(const struct udma *udma, u32 qid);
void reg_write32(u32 *address, u32 value);
u32 reg_read32(const u32 *address);

/* ---- dma.c, zero_copy.c ------------------------------------------------------------------- */

/* The h2t engine and queue of a core. */
struct ndma_eng *ndma_h2t_engine(struct neuron_device *nd, u32 nc_id);
struct ndma_ring *ndma_h2t_ring(struct neuron_device *nd, u32 nc_id);
u32 ndma_mc_pair_to_nc(const struct mem_chunk *src_mc, const struct mem_chunk *dst_mc);
int ndma_memcpy_add_completion_desc(
	struct ndma_eng *eng, struct ndma_ring *ring, void *buffer BARRIER_PARAMETER);
int ndma_memcpy_wait_for_completion(struct ndma_eng *eng, struct ndma_ring *ring, u32 count,
	void *ptr, bool async, bool is_intra_device_dma);
int ndma_memcpy(struct neuron_device *nd, u32 nc_id, dma_addr_t src, dma_addr_t dst, u64 size);
int ndma_memcpy_mc(struct neuron_device *nd, struct mem_chunk *src_mc, struct mem_chunk *dst_mc,
	u64 src_offset, u64 dst_offset, u64 size);
int ndma_memcpy_mc_async(struct neuron_device *nd, struct mem_chunk *src_mc,
	struct mem_chunk *dst_mc, u64 src_offset, u64 dst_offset, u64 size, u64 prefetch_addr,
	int pwait_handle, int *wait_handle);
int ndma_memcpy_mc_wait(
	struct neuron_device *nd, struct mem_chunk *src_mc, struct mem_chunk *dst_mc, int handle);
int ndma_memcpy_buf_to_mc(struct neuron_device *nd, void *buffer, u64 buffer_offset,
	struct mem_chunk *dst_mc, u64 dst_offset, u64 size);
int ndma_memcpy_buf_from_mc(struct neuron_device *nd, void *buffer, u64 buffer_offset,
	struct mem_chunk *src_mc, u64 src_offset, u64 size);
int ndma_memset(struct neuron_device *nd, struct mem_chunk *mc, u64 offset, u32 value, u64 size);
int ndma_memcpy_dma_copy_descriptors(struct neuron_device *nd, void *buffer, u64 buffer_offset,
	struct mem_chunk *dst_mc, u64 dst_offset, u64 size, u32 queue_type);
#ifdef STANDIN_230
struct nrt_tensor_batch_op {
	u64 offset;
	u64 size;
	void *buffer;
};
typedef struct nrt_tensor_batch_op nrt_tensor_batch_op_t;

/* sequence_num 0: returns when all is done.  Otherwise when it is queued; the completion queue tells. */
int ndma_zerocopy_submit(struct neuron_device *nd, u32 nc_id, const nrt_tensor_batch_op_t *ops,
	u32 num_ops, dma_addr_t dev_base, int qid, bool direction, u64 sequence_num, void *context);
/* Something that is done already gets its entry in the completion queue, in its turn. */
int ndma_zerocopy_submit_completed(struct neuron_device *nd, u32 nc_id, int qid, u64 sequence_num,
	s64 compl_ret, void *context);
int ndma_zerocopy_ring_init(struct ndma_eng *eng, struct ndma_ring *ring);
void ndma_zerocopy_ring_free(struct ndma_ring *ring);
void ndma_h2d_init_cmpltn_thread(struct neuron_device *nd);
int ndma_h2d_create_cmpltn_thread(struct neuron_device *nd);
void ndma_h2d_stop_cmpltn_thread(struct neuron_device *nd);
#endif
int ndma_memcpy_zero_copy_mc(struct neuron_device *nd, void *host_addr, struct mem_chunk *mc,
	u64 dev_offset, u64 size, bool direction);

/* ---- queues.c ----------------------------------------------------------------------------- */

void ndmar_preinit(struct neuron_device *nd);
int ndmar_eng_init(struct neuron_device *nd, u32 eng_id);
int ndmar_eng_set_state(struct neuron_device *nd, u32 eng_id, u32 state);
int ndmar_init_ncs(struct neuron_device *nd, u32 nc_map);
int ndmar_h2t_ring_init(struct ndma_eng *eng, u32 qid);
int ndmar_queue_init(struct neuron_device *nd, u32 eng_id, u32 qid, u32 tx_desc_count,
	u32 rx_desc_count, struct mem_chunk *tx_mc, struct mem_chunk *rx_mc,
	struct mem_chunk *rxc_mc, PORT_PARAMETER bool allocatable);
int ndmar_queue_copy_start(
	struct neuron_device *nd, u32 eng_id, u32 qid, u32 tx_desc_count, u32 rx_desc_count);
int ndmar_ack_completed(struct neuron_device *nd, u32 eng_id, u32 qid, u32 count);
int ndmar_queue_release(struct neuron_device *nd, u32 eng_id, u32 qid);
void ndmar_handle_process_exit(struct neuron_device *nd, pid_t pid);
void ndmar_close(struct neuron_device *nd);

/* ---- cores.c ------------------------------------------------------------------------------ */

int nr_create(struct neuron_device *nd); /* the reset thread; it brings the device up */
void nr_destroy(struct neuron_device *nd);
int nr_start_ncs(struct neuron_device *nd, u32 nc_map, u32 request_id);
int nr_wait(struct neuron_device *nd, u32 request_id, bool check);
int ncrwl_nc_range_mark(struct neuron_device *nd, u32 nc_count, u32 start, u32 end,
	u32 *max_available, u64 *bitmap);
void ncrwl_nc_range_unmark(struct neuron_device *nd, const u64 *bitmap);
void ncrwl_release_all(pid_t pid);
int nnq_init(struct neuron_device *nd, u8 nc_id, u8 eng_index, u32 nq_type, u32 size, u32 on_host,
	HBM_PARAMETERS, bool force_alloc_mem, struct mem_chunk **nq_mc, u64 *mmap_offset);
int ts_nq_init(struct neuron_device *nd, u8 ts_id, u8 eng_index, u32 nq_type, u32 size, u32 on_host,
	HBM_PARAMETERS, bool force_alloc_mem, struct mem_chunk **nq_mc, u64 *mmap_offset);
void nnq_destroy_all(struct neuron_device *nd);
int fw_io_post_metric(struct neuron_device *nd, const u32 *data, u32 size);

#endif
