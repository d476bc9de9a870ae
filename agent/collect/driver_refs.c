/* SPDX-License-Identifier: Apache-2.0 */
/*
 * driver_refs.c - who uses the module: its references less those that BPF programs hold, whoever loaded them.
 *
 * Other recorders let go of the module as we do, when nobody but recorders uses it.  So theirs must not count, or
 * each waits for the other.  The kernel does not say whose a reference is.  But it says which programs there are for
 * functions of the module, by the number of the module's BTF, and which raw tracepoints are on:
 *
 *	up to 6.3	one for each function that has programs attached
 *	from 6.4	one for each program that is loaded
 *	both		one for each raw tracepoint
 *
 * Which of the first two it is the kernel's BTF tells.  Functions are counted by what is loaded, not by what is
 * attached: programs are loaded before and unloaded after they hold the module (driver_idle.c), so that what comes and
 * goes just now is no user.  A link is still holding for a while when its number is gone.
 *
 * It takes privileges to look (CAP_SYS_ADMIN), and the kernel names a program's BTF since 5.18.  Where it cannot be
 * seen, only our own are known.
 */
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <string.h>
#include <unistd.h>

#include "agent/collect/driver_parts.h"
#include "runtime/base/file.h"

#define MAX_FUNCTIONS 256u /* ours are 14; those beyond are taken for users */

/* Drains from one look at all programs to the next: at least, and while nothing changes. */
#define LOOK_PAUSE 3u
#define LOOK_AGAIN 100u

static uint64_t address_of(void *p)
{
	return (uint64_t)(uintptr_t)p;
}

/* ---- what there is in the kernel ------------------------------------------------------------ */

bool driver_refs_by_program(const struct btf *kernel)
{
	int id = kernel ? btf__find_by_name_kind(kernel, "bpf_prog_aux", BTF_KIND_STRUCT) : -ENOENT;
	const struct btf_type *t = id > 0 ? btf__type_by_id(kernel, (uint32_t)id) : NULL;
	const struct btf_member *m = t ? btf_members(t) : NULL;

	for (unsigned i = 0; t && i < btf_vlen(t); i++)
		if (strcmp(btf__name_by_offset(kernel, m[i].name_off), "mod") == 0)
			return true;
	return false;
}

uint32_t driver_refs_module_btf(void)
{
	uint32_t id = 0, newest = 0;

	while (bpf_btf_get_next_id(id, &id) == 0) {
		_cleanup_close_ int fd = bpf_btf_get_fd_by_id(id);
		char name[64] = "";
		struct bpf_btf_info info = {.name = address_of(name), .name_len = sizeof(name)};
		uint32_t size = sizeof(info);

		if (fd >= 0 && bpf_obj_get_info_by_fd(fd, &info, &size) == 0 && info.kernel_btf &&
			strcmp(name, DRIVER_MODULE) == 0)
			newest = id; /* programs keep that of a module that has gone */
	}
	return newest;
}

struct counted {
	uint32_t functions[MAX_FUNCTIONS];
	unsigned function_count, program_count, tracepoint_count;
};

static void add_function(struct counted *c, uint32_t function)
{
	unsigned i = 0;

	while (i < c->function_count && c->functions[i] != function)
		i++;
	if (i == c->function_count && i < MAX_FUNCTIONS)
		c->functions[c->function_count++] = function;
}

/* 0 or -errno: these are not to be seen. */
static int count_programs(uint32_t module_btf, struct counted *c)
{
	uint32_t id = 0;
	int r;

	while ((r = bpf_prog_get_next_id(id, &id)) == 0) {
		_cleanup_close_ int fd = bpf_prog_get_fd_by_id(id);
		struct bpf_prog_info info = {0};
		uint32_t size = sizeof(info);

		if (fd < 0 && fd != -ENOENT) /* else it has gone meanwhile */
			return fd;
		if (fd < 0 || bpf_obj_get_info_by_fd(fd, &info, &size) < 0 ||
			info.type != BPF_PROG_TYPE_TRACING || info.attach_btf_obj_id != module_btf)
			continue;
		c->program_count++;
		add_function(c, info.attach_btf_id);
	}
	return r == -ENOENT ? 0 : r;
}

static bool is_tracepoint(const char *name)
{
	for (unsigned i = 0; i < hook_row_count; i++)
		if (hook_rows[i].level == HOOK_LEVEL_TRACEPOINT &&
			strcmp(hook_rows[i].target, name) == 0)
			return true;
	return false;
}

/* Is it a raw tracepoint of the module?  The name is asked for when the type is known: those of other types take the
 * place for it as something else. */
static bool holds_tracepoint(int link)
{
	char name[DRIVER_HOOK_NAME] = "";
	struct bpf_link_info info = {0};
	uint32_t size = sizeof(info);

	if (bpf_obj_get_info_by_fd(link, &info, &size) < 0 ||
		info.type != BPF_LINK_TYPE_RAW_TRACEPOINT)
		return false;
	info = (struct bpf_link_info){
		.raw_tracepoint = {.tp_name = address_of(name), .tp_name_len = sizeof(name)}};
	size = sizeof(info);
	return bpf_obj_get_info_by_fd(link, &info, &size) == 0 && is_tracepoint(name);
}

static void count_tracepoints(struct counted *c)
{
	uint32_t id = 0;

	while (bpf_link_get_next_id(id, &id) == 0) {
		_cleanup_close_ int fd = bpf_link_get_fd_by_id(id);

		c->tracepoint_count += fd >= 0 && holds_tracepoint(fd);
	}
}

/* ---- what of it is not a user --------------------------------------------------------------- */

/* References that our links hold. */
static unsigned count_own(const struct driver_hooks *h)
{
	unsigned n = 0;

	for (unsigned i = 0; i < h->link_count; i++) {
		const struct driver_link *l = &h->links[i];
		bool is_fentry = l->level == HOOK_LEVEL_FENTRY, seen = false;

		for (unsigned k = 0; k < i && is_fentry && !h->by_program && !seen; k++)
			seen = h->links[k].level == HOOK_LEVEL_FENTRY &&
			       strcmp(strchr(h->links[k].name, ':'), strchr(l->name, ':')) == 0;
		n += (is_fentry && !seen) || l->level == HOOK_LEVEL_TRACEPOINT;
	}
	return n;
}

/* References that all programs hold; `own` when they are not to be seen. */
static unsigned count_all(const struct driver_hooks *h, unsigned references, unsigned own)
{
	struct counted c = {.function_count = 0};
	unsigned n;

	if (h->module_btf_id && count_programs(h->module_btf_id, &c) < 0)
		return own;
	n = h->by_program ? c.program_count : c.function_count;
	if (n < references) {
		count_tracepoints(&c);
		n += c.tracepoint_count;
	}
	return n > own ? n : own;
}

int driver_refs_users(struct driver_hooks *h)
{
	int references = driver_module_refcount(h->o.sys);
	unsigned own = count_own(h);
	struct driver_refs *r = &h->refs;
	bool is_new = references != r->references;

	r->age++;
	if (references < 0 || (unsigned)references <= own)
		return 0;
	if (is_new && r->age < LOOK_PAUSE)
		return -EAGAIN;
	if (is_new || r->age >= (r->is_sure ? LOOK_AGAIN : LOOK_PAUSE)) {
		unsigned held = count_all(h, (unsigned)references, own);
		int users = references - (int)held;

		if (driver_module_refcount(h->o.sys) != references)
			return -EAGAIN; /* it changes while we count */
		users = users > 0 ? users : 0;
		/* A second look says the same: nothing was just on its way. */
		r->is_sure = !is_new && users == r->users;
		r->references = references;
		r->users = users;
		r->age = 0;
	}
	return r->is_sure || !r->users ? r->users : -EAGAIN;
}
