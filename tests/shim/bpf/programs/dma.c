/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/*
 * dma.c - bpf/dma.bpf.c compiled for the host.
 */
#define all_processes bpf_host_dma_all_processes /* what the loader sets in it */
#define rate_ceiling bpf_host_dma_rate_ceiling
#define known_numbers bpf_host_dma_known_numbers
#define is_standin bpf_host_is_standin
#include "bpf/dma.bpf.c"
