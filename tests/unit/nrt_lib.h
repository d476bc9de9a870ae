/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nrt_lib.h - libnrt.so.1 as a program that loads it sees it, for tests.
 *
 * Header only.  Each test runs in a child, for the library's state is one per process.  The child
 * returns 0 or a number made from the line that was not satisfied, which it also prints.  What the
 * library says goes to a file of the test's scratch directory.  Tests that need a device use a virtual
 * one.
 */
#ifndef NTRACE_TESTS_NRT_LIB_H
#define NTRACE_TESTS_NRT_LIB_H

#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <nrt/ndebug_stream.h>
#include <nrt/nec.h>
#include <nrt/nrt_async.h>
#include <nrt/nrt_async_sendrecv.h>
#include <nrt/nrt_experimental.h>
#include <nrt/nrt_profile.h>
#include <nrt/nrt_sys_trace.h>

#include "tests/shim/shim.h"
#include "tests/unit/programs.h"
#include "tests/unit/scratch.h"

/* Which build of it. */
static const char *library_file __attribute__((unused)) = "lib/libnrt.so.1";
static int complaint_fd __attribute__((unused)) =
	2; /* where a child reports; stderr is the library's */

#define WANT(x)                                                                       \
	do {                                                                          \
		if (!(x)) {                                                           \
			dprintf(complaint_fd, "%s:%d: %s\n", __FILE__, __LINE__, #x); \
			return __LINE__ % 251 + 1;                                    \
		}                                                                     \
	} while (0)
#define WANT_STATUS(call, status)                                                               \
	do {                                                                                    \
		int got_ = (int)(call);                                                         \
		if (got_ != (int)(status)) {                                                    \
			dprintf(complaint_fd, "%s:%d: %s gave %d\n", __FILE__, __LINE__, #call, \
				got_);                                                          \
			return __LINE__ % 251 + 1;                                              \
		}                                                                               \
	} while (0)

/* ---- the library -------------------------------------------------------------------------- */

static struct {
#define NRT_CALL(name, node, returns, state) __typeof__(&(name)) name;
#include "tests/unit/nrt_calls.def"
#undef NRT_CALL
} lib __attribute__((unused));

/* A scratch directory, perhaps with a virtual device in it. */
struct place {
	struct scratch scratch;
	struct virtual_device device;
	struct scratch_path log;
};

/* In the child: loads the library, sends its messages to the log. */
static inline int enter(const struct place *p)
{
	int log = open(p->log.s, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	void *so = dlopen(program_path(library_file).s, RTLD_NOW | RTLD_LOCAL);

	complaint_fd = fcntl(2, F_DUPFD_CLOEXEC, 100);
	WANT(complaint_fd >= 0 && log >= 0);
	if (!so)
		dprintf(complaint_fd, "%s\n", dlerror());
	WANT(so != NULL);
	WANT(dup2(log, 2) == 2);
#define NRT_CALL(name, node, returns, state)               \
	lib.name = (__typeof__(lib.name))dlsym(so, #name); \
	WANT(lib.name != NULL);
#include "tests/unit/nrt_calls.def"
#undef NRT_CALL
	setenv("NTRACE_DEVICE_ROOT", p->device.pid ? p->device.root : p->scratch.dir, 1);
	return 0;
}

/* Did the library say this since the last question? */
static inline bool said(const struct place *p, const char *text)
{
	char *all = program_text(p->log.s);
	bool found = all && strstr(all, text);

	if (!found)
		dprintf(complaint_fd, "not said: %s\nbut: %s\n", text, all ? all : "");
	free(all);
	(void)ftruncate(2, 0);
	(void)lseek(2, 0, SEEK_SET);
	return found;
}

static inline bool place_open(struct place *p)
{
	memset(p, 0, sizeof(*p));
	if (!scratch_make(&p->scratch))
		return false;
	p->log = scratch_path(&p->scratch, "log");
	return true;
}

static inline void place_close(struct place *p)
{
	if (p->device.pid)
		CHECK_EQ(virtual_device_stop(&p->device), 0);
	scratch_remove(&p->scratch);
}

static inline const char *device_lacks(void)
{
	if (access("/dev/fuse", R_OK | W_OK) < 0)
		return "/dev/fuse";
	if (geteuid() != 0)
		return "root, for the virtual device";
	return program_exists("bin/ntrace-vdev") && program_exists("lib/libnrt.so.1")
		       ? NULL
		       : "bin/ntrace-vdev and lib/libnrt.so.1";
}

#define REQUIRE_LIBRARY()                               \
	do {                                            \
		if (!program_exists("lib/libnrt.so.1")) \
			SKIP("lib/libnrt.so.1");        \
	} while (0)

static inline NRT_STATUS init(void)
{
	return lib.nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", NULL);
}

/* ---- models and devices ------------------------------------------------------------------- */

#define ADD_MODEL                                                                        \
	"ntrace-model 1\nname adder\n"                                                   \
	"input a float32 2x4\ninput b float32 8\ntemp t float32 8\noutput c float32 8\n" \
	"step PE 20us add a b t\nstep ACT 5us add t b c\n"
#define COPY_MODEL                                                             \
	"ntrace-model 1\nname copier\ninput a float32 8\noutput c float32 8\n" \
	"step DVE 1us copy a c\n"
#define FAULTY_MODEL                                                           \
	"ntrace-model 2\nname faulty\ninput a float32 8\noutput c float32 8\n" \
	"step PE 1us fault numerical\nstep PE 5us copy a c\n"
#define HOUR_MODEL "ntrace-model 1\nname hour\nstep SP 3600s nop\n"
#define SLOW_MODEL "ntrace-model 1\nname slow\nstep SP 5s nop\n"

/* A model with its tensors and sets. */
struct job {
	nrt_model_t *model;
	nrt_tensor_t *a, *b, *c;
	nrt_tensor_set_t *in, *out;
};

static inline int job_open(struct job *j, const char *text, int vnc)
{
	memset(j, 0, sizeof(*j));
	WANT_STATUS(lib.nrt_load(text, strlen(text), vnc, -1, &j->model), 0);
	WANT_STATUS(lib.nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, vnc, 32, "a", &j->a), 0);
	WANT_STATUS(lib.nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, vnc, 32, NULL, &j->b), 0);
	WANT_STATUS(lib.nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, vnc, 32, "c", &j->c), 0);
	WANT_STATUS(lib.nrt_allocate_tensor_set(&j->in), 0);
	WANT_STATUS(lib.nrt_allocate_tensor_set(&j->out), 0);
	WANT_STATUS(lib.nrt_add_tensor_to_tensor_set(j->in, "a", j->a), 0);
	WANT_STATUS(lib.nrt_add_tensor_to_tensor_set(j->in, "b", j->b), 0);
	WANT_STATUS(lib.nrt_add_tensor_to_tensor_set(j->out, "c", j->c), 0);
	return 0;
}

static inline int job_run(const struct job *j, float offset, float times_b)
{
	float a[8], b[8], c[8];

	for (int i = 0; i < 8; i++) {
		a[i] = (float)i + offset;
		b[i] = 100.0f * (float)i;
	}
	WANT_STATUS(lib.nrt_tensor_write(j->a, a, 0, sizeof(a)), 0);
	WANT_STATUS(lib.nrt_tensor_write(j->b, b, 0, sizeof(b)), 0);
	WANT_STATUS(lib.nrt_execute(j->model, j->in, j->out), 0);
	WANT_STATUS(lib.nrt_tensor_read(j->c, c, 0, sizeof(c)), 0);
	for (int i = 0; i < 8; i++)
		WANT(c[i] == a[i] + times_b * b[i]);
	return 0;
}

/* Starts a device with these options and runs fn in a child. */
static inline void with_device(int (*fn)(void *), const char *const options[])
{
	struct place p;

	REQUIRE(place_open(&p));
	if (virtual_device_start(&p.device, p.scratch.dir, options))
		CHECK_EQ(scratch_child(fn, &p), 0);
	else
		CHECK(!"the virtual device starts");
	place_close(&p);
}

/* Logical ones, of two physical cores each. */
static const char *const two_cores[] __attribute__((unused)) = {"--cores=4", NULL};
static const char *const small_memory[]
	__attribute__((unused)) = {"--cores=4", "--memory=8M", NULL};

#endif
