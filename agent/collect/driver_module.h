/* SPDX-License-Identifier: Apache-2.0 */
/*
 * driver_module.h - the neuron kernel module of this machine: is it loaded, which one, who uses it.
 *
 * Read from /sys/module/neuron, cheap enough for every drain.  One thread; never prints.
 */
#ifndef NTRACE_COLLECT_DRIVER_MODULE_H
#define NTRACE_COLLECT_DRIVER_MODULE_H

#include <stdbool.h>
#include <stdint.h>

#define DRIVER_MODULE "neuron"

struct btf;

struct driver_module {
	bool present;
	bool has_btf;	   /* the kernel has its type information */
	uint64_t identity; /* differs from one load of a module to the next */
	char version[32];  /* MODULE_VERSION, "" if it has none */
	char srcversion[32];
	bool is_known; /* of a version whose prototypes our programs were written for; others need BTF */
};

/* What is loaded now below sys ("/sys"; NULL means that).  No module: all zero. */
void driver_module_read(const char *sys, struct driver_module *ret);
/* Is it loaded as it was at the last reading?  One stat(2). */
bool driver_module_unchanged(const char *sys, const struct driver_module *m);
/* References that are held to it, ours among them; -ENOENT, -EIO. */
int driver_module_refcount(const char *sys);

/* Type information of the module, on top of the kernel's, which is loaded with it; the caller frees both
 * with driver_module_btf_free.  0, -ENOENT (the module has none), -errno. */
int driver_module_btf(struct btf **ret_kernel, struct btf **ret_module);
void driver_module_btf_free(struct btf *kernel, struct btf *module);

/* Number of arguments of a function of the module by its BTF; -ENOENT. */
int driver_module_nargs(const struct btf *module, const char *function);
/* The same of a tracepoint of the module. */
int driver_module_tracepoint_nargs(const struct btf *module, const char *tracepoint);

#endif
