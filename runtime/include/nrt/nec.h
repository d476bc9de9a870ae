/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nec.h - what a collectives library asks the runtime: devices and their neighbours.
 *
 * Most calls return no status: they give the value that is named as their failure, also before nrt_init
 * and after nrt_close.  There are no collectives over several devices here; calls that serve those have no
 * effect and say so in the log, once.
 *
 * A routing id (rid) is a device's place in the machine's interconnect; mla_idx counts the devices that take
 * part, local_nec_dev_id is one of them.
 */
#ifndef NRT_NEC_H
#define NRT_NEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <nrt/nrt_status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How the machines of a group hang together. */
typedef enum nec_pod_type {
	NEC_POD_TYPE_NONE = 0,
	NEC_POD_TYPE_P2P = 1,
	NEC_POD_TYPE_SWITCH = 2,
	NEC_POD_TYPE_INVALID = 3,
} nec_pod_type_t;

typedef uint64_t dma_addr_t;

/* Host memory that the device reaches too. */
typedef struct enc_host_mem {
	void *mem_handle;
	void *va;
	dma_addr_t pa;
	size_t size; /* bytes */
} enc_host_mem_t;

/* ---- devices ------------------------------------------------------------------------------ */

/* Fills at most array_size numbers of devices; returns how many devices there are, -1 on failure. */
NRT_API int nec_get_device_count(int *available_devices_array, uint32_t array_size);

/* A device's PCI address.  0, -1 on failure. */
NRT_API int nec_get_device_pci_bdf(
	int neuron_dev, uint32_t *domain, uint32_t *bus_num, uint8_t *pci_slot, uint8_t *dev_func);

/* Physical cores of a logical one. */
NRT_API NRT_STATUS nec_get_virtual_core_size(uint32_t *virtual_core_size);

/* Is this device among those that the process may use? */
NRT_API bool nec_is_mla_available(int local_nec_dev_id, int mla_idx);

/* From one numbering to the other; -1 on failure. */
NRT_API int nec_mla_idx_to_rid(int local_nec_dev_id, int mla_idx);
NRT_API int nec_rid_to_mla_idx(int local_nec_dev_id, int rid);

/* ---- neighbours: there are none ----------------------------------------------------------- */

NRT_API NRT_STATUS nec_build_port_and_rid_map(
	int local_nec_dev_id, int *mla_indexes, int *host_device_ids, int count);
/* The device behind a port; -1. */
NRT_API int nec_get_peer_mla_idx(int local_nec_dev_id, int mla_idx, int port);
/* The machine that many ports away; -1, and *peer_node is not written. */
NRT_API int nec_get_p2p_pod_peer_node(
	uint32_t nec_dev_id, int node, uint32_t port_distance, int *peer_node);
NRT_API NRT_STATUS nec_pod_node_can_access_peer_node(nec_pod_type_t pod_type, uint32_t local_rid,
	uint32_t local_node_id, uint32_t remote_rid, uint32_t remote_node_id, int *can_access_peer);

/* ---- transfers in progress: there are none ------------------------------------------------ */

/* Adds val to a semaphore of a device; nothing happens. */
NRT_API void nec_inc_semaphore(volatile uint32_t *sem_inc_addr, uint32_t val);

/* Bytes to send and their place, and the place of what is received, when only the execution knows: 0. */
NRT_API size_t nec_get_dynamic_send_size_bytes(
	enc_host_mem_t *dyn_input, size_t data_type_sz, int dst_rank, int rank_n);
NRT_API size_t nec_get_dynamic_send_offset_bytes(
	enc_host_mem_t *dyn_input, size_t data_type_sz, int dst_rank, int rank_n);
NRT_API size_t nec_get_dynamic_recv_offset_bytes(
	enc_host_mem_t *dyn_input, size_t data_type_sz, int src_rank, int rank_n);

/* Notes how many bytes came; nothing happens. */
NRT_API void nec_set_recv_size_bytes(enc_host_mem_t *dyn_input, size_t recv_size_bytes,
	size_t data_type_sz, int src_rank, int rank_n);

/* Writes to the kernel's log; nothing happens. */
NRT_API void nec_ndl_printk(char *str, uint32_t size, uint32_t action);

#ifdef __cplusplus
}
#endif

#endif
