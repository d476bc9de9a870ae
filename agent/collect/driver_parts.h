/* SPDX-License-Identifier: Apache-2.0 */
/*
 * driver_parts.h - what the policy of the driver-level hooks (driver_hooks.c) and its hands
 * (driver_objects.c) share: the rows of hooks.def, what is loaded, what is attached.
 */
#ifndef NTRACE_COLLECT_DRIVER_PARTS_H
#define NTRACE_COLLECT_DRIVER_PARTS_H

#include <bpf/libbpf.h>

#include "agent/collect/bpf_support.h"
#include "agent/collect/driver_hooks.h"

#define DRIVER_MAX_FAMILIES 16u
#define DRIVER_MAX_LINKS 96u
#define DRIVER_MAX_INSTANCES 32u
#define DRIVER_MAX_MAPS 16u
#define DRIVER_HOOK_NAME 64u

enum hook_object {
	HOOK_OBJECT_driver,
	HOOK_OBJECT_dma,
	HOOK_OBJECTS,
};

struct hook_row {
	const char *family;
	const char *program;
	const char *target;
	uint8_t level;	/* enum hook_level */
	uint8_t object; /* enum hook_object */
	uint8_t nargs;
	bool layout;  /* reads structures of the driver */
	bool or_less; /* there are drivers with one argument less */
};

extern const struct hook_row hook_rows[];
extern const unsigned hook_row_count;

/* One loading of an object, with the programs of some families on one level. */
struct driver_instance {
	enum hook_object object;
	enum hook_level level;
	uint32_t families; /* bits by number */
	bool is_standin;
	void *skel;
	struct bpf_object *obj; /* NULL: not loaded at the moment */
};

/* What holds the module at the moment; see driver_idle.c. */
enum driver_idle { DRIVER_HELD, DRIVER_FREEING, DRIVER_FREE, DRIVER_TAKING };

struct driver_link {
	struct bpf_link *link;
	uint8_t family, level;
	bool is_entry, is_standin;
	char name[DRIVER_HOOK_NAME];
};

/* The last look at whose references of the module there are; see driver_refs.c. */
struct driver_refs {
	int references, users;
	unsigned age; /* drains */
	bool is_sure;
};

struct driver_hooks {
	struct driver_hooks_options o;
	enum hook_level force; /* HOOK_LEVELS: none */
	struct driver_module module;
	uint32_t generation;

	struct btf *kernel_btf, *module_btf; /* while hooks are put on */
	uint32_t module_btf_id;		     /* the kernel's number of it; 0: none */
	char *symbols;			     /* the module's, NUL-terminated one behind the other */
	size_t symbols_size;

	const char *families[DRIVER_MAX_FAMILIES];
	uint8_t levels[DRIVER_MAX_FAMILIES]; /* that were reached; HOOK_LEVELS: none */
	unsigned family_count;
	struct rec_ladder_step ladder[DRIVER_MAX_FAMILIES * (HOOK_LEVELS + 1) + 2];
	unsigned step_count;

	struct driver_instance instances[DRIVER_MAX_INSTANCES];
	unsigned instance_count;
	struct driver_link links[DRIVER_MAX_LINKS];
	unsigned link_count;
	const char *names[DRIVER_MAX_LINKS + 1];
	/* Maps that belong to the driver's objects alone, which all their instances share. */
	struct {
		char name[32];
		int fd;
	} maps[DRIVER_MAX_MAPS];
	unsigned map_count;
	enum driver_idle idle;
	unsigned idle_ticks; /* drains since the state began */
	bool was_used, by_program, no_entries, switch_failed;
	struct driver_refs refs;
	uint64_t switches_failed;
	bool kprobes_off;
	uint64_t kprobes_looked_ns, kprobes_off_ns;
	struct driver_instance standins[HOOK_OBJECTS];
	uint32_t standin_families;
	uint64_t missed;      /* by programs that are unloaded and kprobes that are gone */
	uint64_t uncounted;   /* kprobes put on so far whose skips the kernel does not count */
	struct bpf_cost cost; /* of programs that are unloaded */
	char error[128];      /* libbpf's words for the last failure */
};

/* ---- driver_objects.c --------------------------------------------------------------------- */

/* Why a row cannot be used with the module that is there, or NULL when it can. */
const char *driver_row_refused(struct driver_hooks *h, const struct hook_row *row);
/* Loads an object with the programs that the families of a mask (bits by number) have on a level.  The
 * instance, or NULL and the -errno. */
struct driver_instance *driver_instance_open(struct driver_hooks *h, enum hook_object object,
	enum hook_level level, uint32_t families, int *ret_error);
/* Attaches the programs of a family; on an error none of them is left.  0 or -errno. */
int driver_family_attach(
	struct driver_hooks *h, struct driver_instance *in, enum hook_level level, unsigned family);
/* Unloads the programs of a family that could not be attached. */
void driver_family_unload(struct driver_hooks *h, struct driver_instance *in, unsigned family);
/* Detaches those of the links from number `from` on of which `which` is true; NULL: all. */
void driver_links_drop(
	struct driver_hooks *h, unsigned from, bool (*which)(const struct driver_link *l));
/* Closes the objects whose programs hold the module, and loads them again. */
void driver_instances_unload(struct driver_hooks *h);
void driver_instances_reopen(struct driver_hooks *h);
/* Which families have kprobes that can stand in for their fentry programs. */
void driver_standins_choose(struct driver_hooks *h);
/* Loads these, if they are not loaded yet.  0 or -errno. */
int driver_standins_open(struct driver_hooks *h);
void driver_standins_close(struct driver_hooks *h);
/* Closes the newest instance. */
void driver_instance_close_last(struct driver_hooks *h);
void driver_instances_close(struct driver_hooks *h);
void driver_maps_close(struct driver_hooks *h);

/* ---- driver_idle.c ------------------------------------------------------------------------ */

void driver_idle_prepare(struct driver_hooks *h);
/* Looks whether kprobes are switched off, and adds up what was not seen because of that. */
void driver_idle_look_at_kprobes(struct driver_hooks *h);
/* Is a family that was hooked seen by nobody from the first open after the module was let go until it is taken
 * back? */
bool driver_idle_is_unseen(struct driver_hooks *h, unsigned family);

/* ---- driver_refs.c ------------------------------------------------------------------------ */

/* Does each loaded program hold the module, not each function that has programs?  By the kernel's BTF. */
bool driver_refs_by_program(const struct btf *kernel);
/* Number of the BTF of the module that is loaded; 0: there is none, or it is not to be seen. */
uint32_t driver_refs_module_btf(void);
/* References that are held by others than BPF programs, to be asked once per drain; 0 also when they cannot be read;
 * -EAGAIN: not known at the moment. */
int driver_refs_users(struct driver_hooks *h);

/* ---- driver_hooks.c ----------------------------------------------------------------------- */

/* Writes the names anew. */
void driver_hooks_list(struct driver_hooks *h);
/* Number of the family of a row. */
unsigned driver_family_of(const struct driver_hooks *h, const char *name);

#endif
