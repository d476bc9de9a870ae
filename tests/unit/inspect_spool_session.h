/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inspect_spool_session.h - a session of an inspect spool in a child, and the files that it left, for the tests of
 * inspect_spool_*_test.c.
 *
 * Events are one state per process, so each session is in a child, which returns 0 or the number of the line that was not
 * satisfied (modulo 251, plus 1); the files are looked at afterwards.
 */
#ifndef NTRACE_TESTS_INSPECT_SPOOL_SESSION_H
#define NTRACE_TESTS_INSPECT_SPOOL_SESSION_H

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/neuron_trace.pb-c.h"
#include "runtime/profile/inspect_config.h"
#include "runtime/profile/inspect_spool.h"
#include "runtime/trace/trace.h"
#include "tests/shim/shim.h"
#include "tests/unit/inspect_spool_dir.h"
#include "tests/unit/programs.h"
#include "tests/unit/scratch.h"
#include "tests/unit/trace_file.h"

#define WANT(x)                                                                 \
	do {                                                                    \
		if (!(x)) {                                                     \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #x); \
			return __LINE__ % 251 + 1;                              \
		}                                                               \
	} while (0)

/* ---- a session ---------------------------------------------------------------------------- */

struct told {
	_Atomic uint64_t spans;	      /* whole, so far */
	_Atomic uint64_t before_kill; /* of them, at the last moment that counts */
	_Atomic int ready;
};

struct place {
	struct scratch scratch;
	struct told *told; /* shared with children */
	struct inspect_dir dir;
	struct nrt_sys_trace_config events;
	struct inspect_info info;
	struct inspect_spool_wish wish;
	struct inspect_spool *spool;
	Ntff__NtraceInfo *trace_info;
	struct trace_file trace;
};

static inline bool place_open(struct place *p)
{
	memset(p, 0, sizeof(*p));
	if (!scratch_make(&p->scratch))
		return false;
	p->told = mmap(
		NULL, sizeof(*p->told), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	sys_trace_config_defaults(&p->events);
	p->info = (struct inspect_info){.session_id = 7,
		.enabled = true,
		.device_profile = "off",
		.device_profile_wanted = "off",
		.activities = INSPECT_SYSTEM_PROFILE | INSPECT_HOST_MEMORY | INSPECT_CPU_UTIL,
		.layout = "flat",
		.arch = 2,
		.logical_cores = 4,
		.logical_nc_size = 1,
		.instance_id = "i-0123456789",
		.runtime = "2.31.24.0",
		.is_virtual = 1};
	p->wish = (struct inspect_spool_wish){.dir = &p->dir,
		.events = &p->events,
		.cpu_util = true,
		.host_memory = true,
		.period_ms = 20,
		.info = &p->info};
	return p->told != MAP_FAILED && spool_dir_open(&p->dir, p->scratch.dir);
}

static inline void place_close(struct place *p)
{
	if (p->trace_info)
		ntff__ntrace_info__free_unpacked(p->trace_info, NULL);
	trace_file_free(&p->trace);
	munmap(p->told, sizeof(*p->told));
	spool_dir_close(&p->dir);
	scratch_remove(&p->scratch);
}

static inline void nap(unsigned ms)
{
	const struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};

	nanosleep(&t, NULL);
}

static inline void emit(struct place *p, unsigned spans)
{
	for (unsigned i = 0; i < spans; i++) {
		struct trace_span s = trace_start(i % 4, TRACE_EXECUTE_API, NULL, 0);

		trace_stop(&s, 0, NULL, 0);
		p->told->spans++;
	}
}

static inline void touch_cores(void)
{
	for (uint32_t nc = 0; nc < 4; nc++)
		trace_core_touch(nc);
}

static inline int begin(struct place *p)
{
	touch_cores();
	return inspect_spool_open(&p->wish, &p->spool);
}

static inline int finish(struct place *p, struct inspect_outcome *ret)
{
	int rc = inspect_spool_finish(p->spool, REC_END_ASKED, ret);

	p->spool = NULL;
	return rc;
}

/* ---- the files ---------------------------------------------------------------------------- */

static inline bool has(const struct place *p, const char *name)
{
	return access(scratch_path(&p->scratch, name).s, F_OK) == 0;
}

static inline long long size_of(const struct place *p, const char *name)
{
	struct stat st;

	return stat(scratch_path(&p->scratch, name).s, &st) < 0 ? -1 : st.st_size;
}

static inline bool read_files(struct place *p)
{
	_cleanup_free_ char *data = NULL;
	size_t size;

	if (file_read(scratch_path(&p->scratch, "trace_info.pb").s, 1u << 24, &data, &size) < 0)
		return false;
	p->trace_info = ntff__ntrace_info__unpack(NULL, size, (const uint8_t *)data);
	return p->trace_info &&
	       trace_file_load(&p->trace, scratch_path(&p->scratch, "ntrace.pb").s) &&
	       !*trace_file_fault(&p->trace, &(size_t){0});
}

static inline uint64_t ledger_row(const struct place *p, const char *stage, const char *counter)
{
	for (size_t i = 0; i < p->trace_info->n_ledger; i++)
		if (!strcmp(p->trace_info->ledger[i]->stage, stage) &&
			!strcmp(p->trace_info->ledger[i]->counter, counter))
			return p->trace_info->ledger[i]->value;
	return UINT64_MAX;
}

static inline const char *why_off(const struct place *p, const char *what)
{
	const Ntff__NtraceSession *s = p->trace_info->session;

	for (size_t i = 0; s && i < s->n_off; i++)
		if (!strcmp(s->off[i]->what, what))
			return s->off[i]->why;
	return "";
}

static inline bool is_blind_to(const struct place *p, const char *text)
{
	for (size_t i = 0; i < p->trace_info->n_blind; i++)
		if (strstr(p->trace_info->blind[i], text))
			return true;
	return false;
}

/* Names in the directory that are no file of a session. */
static inline int strange_names(const struct place *p)
{
	static const char *const known[] = {
		"ntrace.pb", "trace_info.pb", "cpu_util.pb", "host_mem.pb"};
	int n = scratch_entries(p->scratch.dir);

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		n -= has(p, known[i]);
	return n;
}

/* Runs `ntrace salvage` on the directory; its exit status. */
static inline int salvage(const struct place *p)
{
	struct program_path ntrace = program_path("bin/ntrace");
	struct scratch_path log = scratch_path(&p->scratch, "log");
	char *argv[] = {ntrace.s, "salvage", (char *)p->scratch.dir, NULL};
	int status = program_run(argv, log.s, NULL);
	_cleanup_free_ char *said = program_text(log.s);

	test_info("%s", said);
	unlink(log.s);
	return status;
}

#endif
