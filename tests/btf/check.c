/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check.c - looks CO-RE relocations up in a BTF file.  See the header.
 *
 * A relocation names a type of the object by number and a way into it by indexes ("0:1:2").  The way is told in
 * the members' names, a flavour (___v230) is cut off the type's name, and the same way is looked for in each type
 * of that name that the file has; members of unnamed structures are found as if they stood outside.
 */
#include "tests/btf/check.h"

#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bpf/dma.skel.h"
#include "bpf/driver.skel.h"
#include "bpf/ioctl.skel.h"
#include "runtime/base/file.h"

#define WAY_MAX 8
#define ELEMENT "[]" /* of an array; which one does not matter here */

/* libbpf 1.0 to 1.4 declare it under another name than they have it under. */
const void *btf_ext__get_raw_data(const struct btf_ext *btf_ext, uint32_t *size);

struct want {
	enum bpf_core_relo_kind kind;
	char type[64]; /* without its flavour */
	const char *way[WAY_MAX];
	unsigned length;
	uint32_t leaf; /* type of what is read, in the object */
	char text[256];
};

/* ---- what an object wants ------------------------------------------------------------------ */

static const struct btf_type *plain_type(const struct btf *btf, uint32_t id)
{
	const struct btf_type *t = btf__type_by_id(btf, id);

	while (t && (btf_is_mod(t) || btf_is_typedef(t)))
		t = btf__type_by_id(btf, t->type);
	return t;
}

static bool is_composite(const struct btf_type *t)
{
	return t && (btf_is_struct(t) || btf_is_union(t));
}

static void essential(char *ret, size_t size, const char *name)
{
	const char *flavour = strstr(name, "___");

	snprintf(ret, size, "%.*s", (int)(flavour ? flavour - name : (long)strlen(name)), name);
}

/* The way of indexes in names.  The first one is of an array that there is not. */
static int read_way(const struct btf *btf, uint32_t id, const char *indexes, struct want *w)
{
	const struct btf_type *t = plain_type(btf, id);
	const char *at = strchr(indexes, ':');

	for (; at; at = strchr(at, ':')) {
		unsigned index = (unsigned)strtoul(++at, NULL, 10);
		const struct btf_member *m;

		if (t && btf_is_array(t) && w->length < WAY_MAX) {
			w->way[w->length++] = ELEMENT;
			id = btf_array(t)->type;
			t = plain_type(btf, id);
			continue;
		}
		if (!is_composite(t) || index >= btf_vlen(t) || w->length == WAY_MAX)
			return -EPROTO;
		m = &btf_members(t)[index];
		id = m->type;
		w->way[w->length] = btf__name_by_offset(btf, m->name_off);
		if (*w->way[w->length])
			w->length++;
		t = plain_type(btf, id);
	}
	w->leaf = id;
	return 0;
}

static int read_want(const struct btf *btf, const struct bpf_core_relo *r, struct want *ret)
{
	const struct btf_type *t = btf__type_by_id(btf, r->type_id);
	size_t used;
	int error = 0;

	*ret = (struct want){.kind = r->kind};
	essential(ret->type, sizeof(ret->type), t ? btf__name_by_offset(btf, t->name_off) : "");
	if (r->kind <= BPF_CORE_FIELD_RSHIFT_U64)
		error = read_way(btf, r->type_id, btf__name_by_offset(btf, r->access_str_off), ret);
	used = (size_t)snprintf(ret->text, sizeof(ret->text), "%s", ret->type);
	for (unsigned i = 0; i < ret->length && used < sizeof(ret->text); i++)
		used += (size_t)snprintf(
			ret->text + used, sizeof(ret->text) - used, ".%s", ret->way[i]);
	return error;
}

/* ---- where it is in the file --------------------------------------------------------------- */

struct place {
	const struct btf *file;
	unsigned bits;
	uint32_t type;
};

static bool find_member(const struct btf *btf, const struct btf_type *t, const char *name,
	unsigned from_bits, struct place *ret)
{
	for (unsigned i = 0; is_composite(t) && i < btf_vlen(t); i++) {
		const struct btf_member *m = &btf_members(t)[i];
		const char *own = btf__name_by_offset(btf, m->name_off);
		unsigned bits = from_bits + btf_member_bit_offset(t, i);

		if (strcmp(own, name) == 0) {
			*ret = (struct place){btf, bits, m->type};
			return true;
		}
		if (!*own && find_member(btf, plain_type(btf, m->type), name, bits, ret))
			return true;
	}
	return false;
}

/* May the one stand for the other?  The loader wants the same kind of type, and takes no number for an enumeration. */
static bool alike(const struct btf *a, const struct btf_type *x, const struct btf *b,
	const struct btf_type *y)
{
	char names[2][64];

	if (is_composite(x) && is_composite(y))
		return true;
	if (!x || !y || (btf_kind(x) != btf_kind(y) && !(btf_is_any_enum(x) && btf_is_any_enum(y))))
		return false;
	if (btf_is_array(x))
		return alike(
			a, plain_type(a, btf_array(x)->type), b, plain_type(b, btf_array(y)->type));
	if (!btf_is_any_enum(x))
		return true;
	essential(names[0], sizeof(names[0]), btf__name_by_offset(a, x->name_off));
	essential(names[1], sizeof(names[1]), btf__name_by_offset(b, y->name_off));
	return strcmp(names[0], names[1]) == 0;
}

static bool follow(
	const struct btf *btf, const struct btf_type *t, const struct want *w, struct place *ret)
{
	struct place at = {0};

	for (unsigned i = 0; i < w->length; i++) {
		if (strcmp(w->way[i], ELEMENT) == 0 && t && btf_is_array(t))
			at.type = btf_array(t)->type;
		else if (!find_member(btf, t, w->way[i], at.bits, &at))
			return false;
		t = plain_type(btf, at.type);
	}
	*ret = at;
	return true;
}

struct machine {
	struct btf *files[BTF_CHECK_FILES];
	unsigned count;
};

static bool find_in(
	const struct btf *object, const struct btf *btf, const struct want *w, struct place *ret)
{
	for (uint32_t id = 1; id < btf__type_cnt(btf); id++) {
		const struct btf_type *t = btf__type_by_id(btf, id);
		char name[64];

		essential(name, sizeof(name), btf__name_by_offset(btf, t->name_off));
		if (strcmp(name, w->type) != 0 || btf_is_fwd(t))
			continue;
		*ret = (struct place){btf, 0, id};
		if (!w->length)
			return true;
		if (follow(btf, plain_type(btf, id), w, ret) &&
			alike(object, plain_type(object, w->leaf), btf, plain_type(btf, ret->type)))
			return true;
	}
	return false;
}

static bool find(
	const struct btf *object, const struct machine *m, const struct want *w, struct place *ret)
{
	for (unsigned i = 0; i < m->count; i++)
		if (find_in(object, m->files[i], w, ret))
			return true;
	return false;
}

/* Names of a file that is based on another lie beyond its own end. */
static bool is_based(const struct btf *btf)
{
	for (uint32_t id = 1; id < btf__type_cnt(btf); id++)
		if (!btf__name_by_offset(btf, btf__type_by_id(btf, id)->name_off))
			return true;
	return false;
}

static void machine_close(struct machine *m)
{
	while (m->count)
		btf__free(m->files[--m->count]);
}

static int machine_open(const char *const *paths, struct machine *ret)
{
	for (; *paths; paths++) {
		struct btf *btf = btf__parse(*paths, NULL);

		if (ret->count && (!btf || is_based(btf))) {
			btf__free(btf);
			btf = btf__parse_split(*paths, ret->files[0]);
		}
		if (!btf)
			return -errno;
		if (ret->count == BTF_CHECK_FILES) {
			btf__free(btf);
			return -E2BIG;
		}
		ret->files[ret->count++] = btf;
	}
	return ret->count ? 0 : -EINVAL;
}

/* ---- the verdict ---------------------------------------------------------------------------- */

struct relos {
	struct btf *btf;
	struct btf_ext *ext;
	const uint8_t *at, *end; /* of the section */
};

/* The head of .BTF.ext, as far as it is used here. */
struct ext_head {
	uint16_t magic;
	uint8_t version, flags;
	uint32_t hdr_len, func_off, func_len, line_off, line_len, core_off, core_len;
};

static int open_object(const void *bytes, size_t size, struct relos *ret)
{
	_cleanup_close_ int fd = memfd_create("object", MFD_CLOEXEC);
	const struct ext_head *head;
	const uint8_t *raw;
	char path[64];
	uint32_t n;

	if (fd < 0 || write(fd, bytes, size) != (ssize_t)size)
		return -errno;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	ret->btf = btf__parse_elf(path, &ret->ext);
	if (!ret->btf)
		return -errno;
	raw = ret->ext ? btf_ext__get_raw_data(ret->ext, &n) : NULL;
	head = (const void *)raw;
	if (!raw || head->hdr_len < sizeof(*head) || !head->core_len)
		return 0;
	ret->at = raw + head->hdr_len + head->core_off + 4; /* the size of a record */
	ret->end = raw + head->hdr_len + head->core_off + head->core_len;
	return 0;
}

/* Calls fn for each relocation; sections follow each other, each with its number of them. */
static int each(const struct relos *o, int (*fn)(void *ctx, const struct want *w), void *ctx)
{
	const uint8_t *at = o->at;
	int r = 0;

	while (!r && at && at < o->end) {
		uint32_t count = ((const uint32_t *)at)[1];
		const struct bpf_core_relo *relo = (const void *)(at + 8);

		for (uint32_t i = 0; i < count && !r; i++) {
			struct want w;

			r = read_want(o->btf, &relo[i], &w);
			r = r ? r : fn(ctx, &w);
		}
		at = (const uint8_t *)(relo + count);
	}
	return r;
}

struct pass {
	const struct relos *object;
	struct machine machine;
	FILE *report;
	bool all;
	struct btf_verdict verdict;
	const struct want *asked; /* for is_asked */
	bool is_guarded;
};

static bool is_question(const struct want *w)
{
	return w->kind == BPF_CORE_FIELD_EXISTS || w->kind == BPF_CORE_TYPE_EXISTS;
}

/* Does the object ask whether the type, or this member, is there? */
static int is_asked(void *ctx, const struct want *w)
{
	struct pass *p = ctx;

	if (is_question(w) && strcmp(w->type, p->asked->type) == 0 &&
		(w->kind == BPF_CORE_TYPE_EXISTS || strcmp(w->text, p->asked->text) == 0))
		p->is_guarded = true;
	return 0;
}

static void say(const struct pass *p, bool important, const char *what, const struct want *w)
{
	if (p->report && (important || p->all))
		fprintf(p->report, "%-8s %s\n", what, w->text);
}

/* What is read at an offset must be as long there as here; of a structure only its place is wanted. */
static bool has_other_size(const struct pass *p, const struct want *w, const struct place *at)
{
	return w->length && w->kind == BPF_CORE_FIELD_BYTE_OFFSET &&
	       !is_composite(plain_type(p->object->btf, w->leaf)) &&
	       btf__resolve_size(at->file, at->type) != btf__resolve_size(p->object->btf, w->leaf);
}

static int judge(void *ctx, const struct want *w)
{
	struct pass *p = ctx;
	struct place at;

	if (w->kind == BPF_CORE_TYPE_ID_LOCAL)
		return 0;
	p->verdict.wanted++;
	if (!find(p->object->btf, &p->machine, w, &at)) {
		p->asked = w;
		p->is_guarded = is_question(w);
		each(p->object, is_asked, p);
		p->verdict.guarded += p->is_guarded;
		p->verdict.missing += !p->is_guarded;
		say(p, !p->is_guarded, p->is_guarded ? "absent" : "MISSING", w);
	} else if (has_other_size(p, w, &at)) {
		p->verdict.other++;
		say(p, true, "SIZE", w);
	} else {
		p->verdict.found++;
		say(p, false, "found", w);
	}
	return 0;
}

int btf_check(const void *object, size_t size, const char *const *paths, FILE *report, bool all,
	struct btf_verdict *ret)
{
	struct relos o = {0};
	struct pass p = {.object = &o, .report = report, .all = all};
	int r = open_object(object, size, &o);

	r = r ? r : machine_open(paths, &p.machine);
	r = r ? r : each(&o, judge, &p);
	machine_close(&p.machine);
	btf__free(o.btf);
	btf_ext__free(o.ext);
	if (!r)
		*ret = p.verdict;
	return r;
}

const char *btf_check_object(unsigned i, const void **ret_bytes, size_t *ret_size)
{
	static const struct {
		const char *name;
		const void *(*bytes)(size_t *size);
	} objects[] = {
		{"ioctl", ioctl_bpf__elf_bytes},
		{"driver", driver_bpf__elf_bytes},
		{"dma", dma_bpf__elf_bytes},
	};

	if (i >= sizeof(objects) / sizeof(objects[0]))
		return NULL;
	*ret_bytes = objects[i].bytes(ret_size);
	return objects[i].name;
}
