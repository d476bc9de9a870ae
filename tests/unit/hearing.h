/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hearing.h - what the library says in a test's own process.
 */
#ifndef NTRACE_TESTS_UNIT_HEARING_H
#define NTRACE_TESTS_UNIT_HEARING_H

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/log/log.h"
#include "tests/unit/programs.h"
#include "tests/unit/scratch.h"

/* Output of both kinds goes to a file from hear_on to hear; checks stand outside, they have output
 * too. */
struct hearing {
	struct scratch dir;
	struct scratch_path file;
	int fd, out, err;
};

static inline bool hear_begin(struct hearing *h, const char *level)
{
	memset(h, 0, sizeof(*h));
	if (!scratch_make(&h->dir))
		return false;
	h->file = scratch_path(&h->dir, "said");
	h->fd = open(h->file.s, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	h->out = fcntl(1, F_DUPFD_CLOEXEC, 3);
	h->err = fcntl(2, F_DUPFD_CLOEXEC, 3);
	setenv("NEURON_RT_LOG_LEVEL", level, 1);
	log_configure();
	return h->fd >= 0 && h->out >= 0 && h->err >= 0;
}

static inline void hear_on(struct hearing *h)
{
	fflush(NULL);
	dup2(h->fd, 1);
	dup2(h->fd, 2);
}

/* What was said since hear_on; to be freed. */
static inline char *hear(struct hearing *h)
{
	char *text;

	dup2(h->out, 1);
	dup2(h->err, 2);
	text = program_text(h->file.s);
	(void)ftruncate(h->fd, 0);
	return text;
}

static inline void hear_end(struct hearing *h)
{
	close(h->out);
	close(h->err);
	close(h->fd);
	unsetenv("NEURON_RT_LOG_LEVEL");
	log_configure();
	scratch_remove(&h->dir);
}

#endif
