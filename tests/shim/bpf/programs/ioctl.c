/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/*
 * ioctl.c - bpf/ioctl.bpf.c compiled for the host.
 */
#define all_processes bpf_host_all_processes /* what the loader sets in it */
#define rate_ceiling bpf_host_rate_ceiling
#define known_numbers bpf_host_known_numbers
#include "bpf/ioctl.bpf.c"
