// SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0)
/*
 * layout.bpf.c - every structure of neuron_event.h as the BPF compiler lays it out.
 *
 * Never loaded.  tests/unit/layout_test.c reads the BTF of this object and compares sizes and offsets
 * with those of the C compiler.
 */
#include "vmlinux/vmlinux.h"
#include <bpf/bpf_helpers.h>

#include "bpf/neuron_event.h"

struct nev_hdr layout_hdr;
struct nev_ioctl layout_ioctl;
struct nev_dma layout_dma;
struct nev_inflight layout_inflight;
struct nev_file_key layout_file_key;
struct nev_arg_field layout_arg_field;
struct nev_request layout_request;
struct nev_cpu layout_cpu;
struct nev_rate layout_rate;
struct nev_walk layout_walk;
