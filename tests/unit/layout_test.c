/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layout_test.c - BPF and user space lay the shared structures out alike.
 *
 * bpf/layout.bpf.c has one variable of every structure in bpf/neuron_event.h; the type information
 * of that object is compared with what this compiler makes of the same header.  The object that is
 * really loaded is compared too, for the structures that stand in its maps.
 */
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <stddef.h>
#include <string.h>

#include "bpf/neuron_event.h"
#include "bpf/ioctl.skel.h"
#include "bpf/layout.skel.h"
#include "tests/shim/shim.h"

struct member {
	const char *type;
	size_t type_size;
	const char *name;
	size_t offset;
	size_t size; /* 0: an array without length */
};

#define MEMBER(t, m)                                                                        \
	{                                                                                   \
#t, sizeof(struct t), #m, offsetof(struct t, m), sizeof(((struct t *)0)->m) \
	}
#define TAIL(t, m)                                                 \
	{                                                          \
#t, sizeof(struct t), #m, offsetof(struct t, m), 0 \
	}

static const struct member members[] = {
	MEMBER(nev_hdr, time_ns),
	MEMBER(nev_hdr, seq),
	MEMBER(nev_hdr, cpu),
	MEMBER(nev_hdr, type),
	MEMBER(nev_hdr, nargs),
	MEMBER(nev_ioctl, hdr),
	MEMBER(nev_ioctl, start_ns),
	MEMBER(nev_ioctl, duration_ns),
	MEMBER(nev_ioctl, tgid),
	MEMBER(nev_ioctl, tid),
	MEMBER(nev_ioctl, request),
	MEMBER(nev_ioctl, result),
	MEMBER(nev_ioctl, device),
	MEMBER(nev_ioctl, flags),
	MEMBER(nev_ioctl, fd),
	TAIL(nev_ioctl, args),
	MEMBER(nev_dma, hdr),
	MEMBER(nev_dma, call_ns),
	MEMBER(nev_dma, tgid),
	MEMBER(nev_dma, tid),
	MEMBER(nev_dma, bytes),
	MEMBER(nev_dma, sequence),
	MEMBER(nev_dma, result),
	MEMBER(nev_dma, device),
	MEMBER(nev_dma, engine),
	MEMBER(nev_dma, queue),
	MEMBER(nev_dma, kind),
	MEMBER(nev_dma, flags),
	MEMBER(nev_dma, tx),
	MEMBER(nev_dma, rx),
	MEMBER(nev_inflight, start_ns),
	MEMBER(nev_inflight, tgid),
	MEMBER(nev_inflight, tid),
	MEMBER(nev_inflight, request),
	MEMBER(nev_inflight, fd),
	MEMBER(nev_inflight, device),
	MEMBER(nev_inflight, flags),
	MEMBER(nev_inflight, nargs),
	MEMBER(nev_inflight, announced_ns),
	MEMBER(nev_inflight, via),
	MEMBER(nev_inflight, out_index),
	MEMBER(nev_inflight, limited),
	MEMBER(nev_inflight, out),
	MEMBER(nev_inflight, args),
	MEMBER(nev_file_key, ino),
	MEMBER(nev_file_key, dev),
	MEMBER(nev_file_key, is_chr),
	MEMBER(nev_arg_field, offset),
	MEMBER(nev_arg_field, width),
	MEMBER(nev_request, nargs),
	MEMBER(nev_request, span),
	MEMBER(nev_request, out),
	MEMBER(nev_request, out_index),
	MEMBER(nev_request, args),
	MEMBER(nev_rate, state),
	MEMBER(nev_cpu, counters),
	MEMBER(nev_cpu, entering_ns),
	MEMBER(nev_cpu, seq),
	MEMBER(nev_cpu, arg),
	MEMBER(nev_cpu, overlap),
	MEMBER(nev_cpu, pad),
	MEMBER(nev_walk, before_ns),
	MEMBER(nev_walk, oldest_ns),
	MEMBER(nev_walk, open),
	MEMBER(nev_walk, found_count),
	MEMBER(nev_walk, open_via),
	MEMBER(nev_walk, pad),
	MEMBER(nev_walk, found),
};

#define MEMBER_COUNT (sizeof(members) / sizeof(members[0]))

static const struct btf_member *find(
	const struct btf *btf, const struct btf_type *t, const char *name)
{
	for (unsigned i = 0; i < btf_vlen(t); i++)
		if (strcmp(btf__name_by_offset(btf, btf_members(t)[i].name_off), name) == 0)
			return &btf_members(t)[i];
	return NULL;
}

/* Compares the members of the structures that `btf` has; returns how many were compared. */
static unsigned compare(const struct btf *btf)
{
	unsigned compared = 0;

	for (size_t i = 0; i < MEMBER_COUNT; i++) {
		const struct member *m = &members[i];
		int id = btf__find_by_name_kind(btf, m->type, BTF_KIND_STRUCT);
		const struct btf_type *t;
		const struct btf_member *b;

		if (id < 0)
			continue;
		test_info("struct %s, member %s", m->type, m->name);
		t = btf__type_by_id(btf, (uint32_t)id);
		CHECK_EQ(t->size, m->type_size);
		b = find(btf, t, m->name);
		CHECK(b != NULL);
		if (!b)
			continue;
		CHECK_EQ(b->offset, 8 * m->offset);
		CHECK_EQ(btf__resolve_size(btf, b->type), (long long)m->size);
		compared++;
	}
	return compared;
}

/* Members of `type` that the table above lists. */
static unsigned listed(const char *type)
{
	unsigned n = 0;

	for (size_t i = 0; i < MEMBER_COUNT; i++)
		n += strcmp(members[i].type, type) == 0;
	return n;
}

TEST("layout: BPF and C agree on every shared structure", "[bpf]")
{
	size_t size;
	const void *elf = layout_bpf__elf_bytes(&size);
	struct bpf_object *obj = bpf_object__open_mem(elf, size, NULL);
	unsigned structs = 0;
	const struct btf *btf;

	REQUIRE(obj != NULL);
	btf = bpf_object__btf(obj);
	CHECK_EQ(compare(btf), MEMBER_COUNT);
	/* And the table above misses no member of a structure of ours. */
	for (uint32_t id = 1; id < btf__type_cnt(btf); id++) {
		const struct btf_type *t = btf__type_by_id(btf, id);
		const char *name = btf__name_by_offset(btf, t->name_off);

		if (!btf_is_struct(t) || strncmp(name, "nev_", 4) != 0)
			continue;
		test_info("struct %s has a member that the test does not know", name);
		CHECK_EQ(listed(name), btf_vlen(t));
		structs++;
	}
	CHECK_EQ(structs, 10);
	bpf_object__close(obj);
}

TEST("layout: the loaded programs use the same structures in their maps", "[bpf]")
{
	size_t size;
	const void *elf = ioctl_bpf__elf_bytes(&size);
	struct bpf_object *obj = bpf_object__open_mem(elf, size, NULL);

	REQUIRE(obj != NULL);
	/* inflight, file_key, request, arg_field, cpu and walk at the least. */
	CHECK(compare(bpf_object__btf(obj)) >= 25);
	bpf_object__close(obj);
}
