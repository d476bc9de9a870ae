/* SPDX-License-Identifier: Apache-2.0 */
/*
 * modules.h - the driver's comings and goings while it was recorded (REC_MODULE), and which hooks were put on
 * it each time (REC_HOOKS).
 */
#ifndef NTRACE_RECORD_MODULES_H
#define NTRACE_RECORD_MODULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/record/header.h"

#define MODULES_STEPS 64u

/* A frame REC_MODULE: this, then rec_module_step rows. */
struct rec_module {
	uint32_t generation; /* how often hooks have been put on a driver, this time included */
	uint32_t loaded;     /* 1: the driver is there; 0: it has gone */
	char version[32];    /* padded with zeros, as the texts below */
	char srcversion[32];
	/* How long it may have been there, at most, before its calls were seen, and before what it does inside was. */
	uint64_t calls_unseen_ns, inside_unseen_ns;
};

struct rec_module_step {
	char family[16], step[16], result[32];
};

/* A frame REC_HOOKS, behind the REC_MODULE of a driver that came: this, then the names of all hooks that were on then,
 * each with a NUL. */
struct rec_hooks {
	uint32_t generation; /* of the REC_MODULE */
	uint32_t zero;
};

/* One of them. */
struct module_change {
	uint64_t boot_ns; /* when it was seen */
	uint32_t generation;
	bool loaded;
	char version[33]; /* UTF-8 */
	uint64_t calls_unseen_ns, inside_unseen_ns;
	/* What was tried on the driver that came, a family NULL behind it; NULL: it has gone. */
	struct rec_ladder_step *ladder;
	const char **hooks; /* NULL behind the last; NULL: nobody told */
};

struct modules {
	struct module_change *changes;
	size_t count, cap;
};

/* Version of the driver that was there at a time, NULL: unknown, or none was.  first: of the one when the recording
 * began. */
const char *modules_driver_at(const struct modules *m, const char *first, uint64_t boot_ns);
/* Is a version ("2.30.2.0") older than a release ("2.30")?  false when it is not known. */
bool driver_is_before(const char *version, const char *release);
/* Takes a payload.  0, -ENOMEM, -EBADMSG (too short). */
int modules_take(struct modules *m, uint64_t time_ns, const uint8_t *payload, size_t size);
/* The same of a REC_HOOKS; one of no driver that came is as good as none. */
int modules_take_hooks(struct modules *m, const uint8_t *payload, size_t size);
void modules_free(struct modules *m);

#endif
