/* SPDX-License-Identifier: Apache-2.0 */
/*
 * driver_module.c - what /sys/module/neuron tells of the driver, and what its BTF tells of its functions: how many
 * arguments each has, which is all that decides whether a program may read them.
 */
#include "agent/collect/driver_module.h"

#include <bpf/btf.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/file.h"

/* The drivers whose sources were read. */
static const char *const known[] = {"2.24.7.0", "2.30.2.0"};

static void path_of(const char *sys, const char *name, char ret[PATH_MAX])
{
	snprintf(ret, PATH_MAX, "%s/%s", sys ? sys : "/sys", name);
}

/* The first line of a file of the module, "" if there is none. */
static void read_text(const char *sys, const char *name, char *ret, size_t size)
{
	char path[PATH_MAX], file[64];

	snprintf(file, sizeof(file), "module/" DRIVER_MODULE "/%s", name);
	path_of(sys, file, path);
	if (file_read_line(path, ret, size) < 0)
		*ret = '\0';
}

/* Differs when the module was loaded anew: its directory is another one then, and sysfs counts its inode numbers up.
 * Its times are no help: they begin anew when the kernel has dropped the inode from its cache. */
static uint64_t identity_of(const char *sys)
{
	char path[PATH_MAX];
	struct stat st;

	path_of(sys, "module/" DRIVER_MODULE, path);
	return stat(path, &st) < 0 ? 0 : st.st_ino;
}

/* A module that is being set up or taken down is as good as none. */
static bool is_live(const char *sys)
{
	char state[16];

	read_text(sys, "initstate", state, sizeof(state));
	return !*state || strcmp(state, "live") == 0;
}

static bool is_known(const char *version)
{
	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		if (strcmp(version, known[i]) == 0)
			return true;
	return false;
}

void driver_module_read(const char *sys, struct driver_module *ret)
{
	struct driver_module m = {.identity = identity_of(sys)};
	char path[PATH_MAX];

	*ret = (struct driver_module){0};
	if (!m.identity || !is_live(sys))
		return;
	m.present = true;
	read_text(sys, "version", m.version, sizeof(m.version));
	read_text(sys, "srcversion", m.srcversion, sizeof(m.srcversion));
	path_of(sys, "kernel/btf/" DRIVER_MODULE, path);
	m.has_btf = access(path, R_OK) == 0;
	m.is_known = is_known(m.version);
	*ret = m;
}

bool driver_module_unchanged(const char *sys, const struct driver_module *m)
{
	uint64_t identity = identity_of(sys);

	if (!identity)
		return !m->present;
	return is_live(sys) ? m->present && m->identity == identity : !m->present;
}

int driver_module_refcount(const char *sys)
{
	char text[32], *end;
	long n;

	read_text(sys, "refcnt", text, sizeof(text));
	if (!*text)
		return -ENOENT;
	n = strtol(text, &end, 10);
	return *end || n < 0 || n > INT_MAX ? -EIO : (int)n;
}

/* ---- type information ---------------------------------------------------------------------- */

int driver_module_btf(struct btf **ret_kernel, struct btf **ret_module)
{
	struct btf *kernel = btf__load_vmlinux_btf(), *module;
	int r;

	if (!kernel)
		return -errno;
	module = btf__load_module_btf(DRIVER_MODULE, kernel);
	if (!module) {
		r = -errno;
		btf__free(kernel);
		return r;
	}
	*ret_kernel = kernel;
	*ret_module = module;
	return 0;
}

void driver_module_btf_free(struct btf *kernel, struct btf *module)
{
	btf__free(module);
	btf__free(kernel);
}

static int params_of(const struct btf *b, uint32_t proto)
{
	const struct btf_type *t = btf__type_by_id(b, proto);

	return t && btf_is_func_proto(t) ? btf_vlen(t) : -ENOENT;
}

/* The type of a kind with this name among the module's own; NULL: none. */
static const struct btf_type *find(const struct btf *module, const char *name, uint32_t kind)
{
	const struct btf *kernel = btf__base_btf(module);
	uint32_t first = kernel ? btf__type_cnt(kernel) : 1;

	for (uint32_t id = first; id < btf__type_cnt(module); id++) {
		const struct btf_type *t = btf__type_by_id(module, id);

		if (btf_kind(t) == kind &&
			strcmp(btf__name_by_offset(module, t->name_off), name) == 0)
			return t;
	}
	return NULL;
}

int driver_module_nargs(const struct btf *module, const char *function)
{
	const struct btf_type *t = find(module, function, BTF_KIND_FUNC);

	return t ? params_of(module, t->type) : -ENOENT;
}

/* The kernel describes a tracepoint by a pointer to the function that it calls: its first parameter is
 * not one of the tracepoint's. */
int driver_module_tracepoint_nargs(const struct btf *module, const char *tracepoint)
{
	const struct btf_type *t;
	char name[128];
	int n;

	snprintf(name, sizeof(name), "btf_trace_%s", tracepoint);
	t = find(module, name, BTF_KIND_TYPEDEF);
	t = t ? btf__type_by_id(module, t->type) : NULL;
	if (!t || !btf_is_ptr(t))
		return -ENOENT;
	n = params_of(module, t->type);
	return n > 0 ? n - 1 : -ENOENT;
}
