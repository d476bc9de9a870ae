/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nrt_profile_session_test.c - profiles of cores: numbers, the search for them, what is refused, what is kept.
 */
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <xxhash.h>

#include "runtime/base/clock.h"
#include "tests/shim/shim.h"
#include "tests/unit/nrt_profile.h"

/* The logical core that a session's file is of, -1 when that is not clear. */
static int core_of(const char *path)
{
	struct ntff n;
	int core = -1;

	if (ntff_load(&n, path) == 0 && n.profile.core_count == 2 &&
		n.profile.cores[1].nc_idx == n.profile.cores[0].nc_idx + 1)
		core = (int)n.profile.cores[0].nc_idx / 2;
	ntff_done(&n);
	return core;
}

/* A session of a core with one run in it; its number. */
static uint64_t session_of(const struct job *j, int vnc)
{
	uint64_t id = UINT64_MAX;

	if (lib.nrt_profile_session_start(vnc) || job_run(j, 1.0f, 2.0f) ||
		lib.nrt_profile_session_stop(vnc, &id))
		return UINT64_MAX;
	return id;
}

/* ---- numbers ------------------------------------------------------------------------------ */

static int numbers(void *arg)
{
	struct place *p = arg;
	struct job jobs[2];

	WANT(profile_enter_test(p) == 0);
	for (int i = 0; i < 2; i++)
		WANT(job_open(&jobs[i], ADD_MODEL, i) == 0);
	WANT(session_of(&jobs[1], 1) == 0);
	WANT(session_of(&jobs[0], 0) == 0);
	WANT(session_of(&jobs[1], 1) == 1);
	WANT(session_of(&jobs[1], 1) == 2);
	WANT_STATUS(lib.nrt_profile_session_serialize(0, "a.ntff"), 0);
	WANT_STATUS(lib.nrt_profile_session_serialize(0, "b.ntff"), 0);
	WANT_STATUS(lib.nrt_profile_session_serialize(0, "c.ntff"), NRT_INVALID);
	WANT(said(p, "Unable to find profile session id 0"));
	WANT_STATUS(lib.nrt_profile_session_serialize(2, "c.ntff"), 0);
	WANT(core_of("a.ntff") == 0 && core_of("b.ntff") == 1 && core_of("c.ntff") == 1);
	/* A number does not come again. */
	WANT(session_of(&jobs[0], 0) == 1);
	WANT_STATUS(lib.nrt_profile_session_serialize(1, "d.ntff"), 0);
	WANT_STATUS(lib.nrt_profile_session_serialize(1, "e.ntff"), 0);
	WANT(core_of("d.ntff") == 0 && core_of("e.ntff") == 1);
	lib.nrt_close();
	return 0;
}

PROFILE_TEST(
	"profile session: each core counts from 0, and the lowest core with a number comes first",
	numbers, two_cores)

static int drops(void *arg)
{
	struct place *p = arg;
	struct job jobs[2];

	WANT(profile_enter_test(p) == 0);
	for (int i = 0; i < 2; i++)
		WANT(job_open(&jobs[i], ADD_MODEL, i) == 0);
	WANT(session_of(&jobs[0], 0) == 0 && session_of(&jobs[1], 1) == 0);
	WANT(session_of(&jobs[1], 1) == 1 && session_of(&jobs[1], 1) == 2);
	WANT_STATUS(lib.nrt_profile_session_drop(0), 0); /* that of core 0 */
	WANT_STATUS(lib.nrt_profile_session_serialize(0, "a.ntff"), 0);
	WANT(core_of("a.ntff") == 1);
	WANT_STATUS(lib.nrt_profile_session_drop(0), NRT_INVALID);
	WANT(said(p, "Unable to find profile session id 0"));
	WANT_STATUS(lib.nrt_profile_session_drop_all(0), 0);
	WANT_STATUS(lib.nrt_profile_session_drop(2), 0);
	WANT_STATUS(lib.nrt_profile_session_start(1), 0);
	WANT_STATUS(lib.nrt_profile_session_drop_all(1), 0); /* the active one is none of them */
	WANT_STATUS(lib.nrt_profile_session_drop(1), NRT_INVALID);
	uint64_t id;
	WANT_STATUS(lib.nrt_profile_session_stop(1, &id), 0);
	WANT(id == 3);
	lib.nrt_close();
	return 0;
}

PROFILE_TEST("profile session: drop finds one as serialize does, drop_all forgets those of a core",
	drops, two_cores)

/* ---- what is refused ---------------------------------------------------------------------- */

static int refusals(void *arg)
{
	struct place *p = arg;
	uint64_t id = 77;

	WANT(profile_enter_test(p) == 0);
	WANT_STATUS(lib.nrt_profile_session_stop(1, &id), NRT_INVALID);
	WANT(said(p, "No active profile session for NC 1"));
	WANT_STATUS(lib.nrt_profile_session_stop(-1, &id), NRT_INVALID);
	WANT(said(p, "No active profile session for NC -1"));
	WANT_STATUS(lib.nrt_profile_session_stop(INT32_MAX, &id), NRT_INVALID);
	WANT(said(p, "No active profile session for NC 2147483647") && id == 77);
	WANT_STATUS(lib.nrt_profile_session_start(2), NRT_INVALID);
	WANT(said(p, "There is no core 2; this process has 2"));
	WANT_STATUS(lib.nrt_profile_session_start(-1), NRT_INVALID);
	WANT_STATUS(lib.nrt_profile_session_drop_all(2), NRT_INVALID);
	WANT_STATUS(lib.nrt_profile_session_drop(UINT64_MAX), NRT_INVALID);
	WANT(said(p, "Unable to find profile session id 18446744073709551615"));
	WANT_STATUS(lib.nrt_profile_session_start(1), 0);
	WANT_STATUS(lib.nrt_profile_session_start(1), NRT_INVALID);
	WANT(said(p, "A profile session is active for NC 1 already"));
	WANT_STATUS(lib.nrt_profile_session_stop(1, NULL), NRT_INVALID);
	WANT(said(p, "No place for the answer (NULL)"));
	WANT_STATUS(lib.nrt_profile_session_stop(1, &id), 0); /* none of that has ended it */
	WANT(id == 0);
	WANT_STATUS(lib.nrt_profile_session_stop(1, &id), NRT_INVALID);
	WANT_STATUS(lib.nrt_profile_session_serialize(0, NULL), NRT_INVALID);
	WANT_STATUS(lib.nrt_profile_session_serialize(0, ""), NRT_INVALID);
	WANT(said(p, "No file name given (empty)"));
	WANT_STATUS(lib.nrt_profile_session_drop(0), 0); /* nor has that lost it */
	lib.nrt_close();
	return 0;
}

PROFILE_TEST("profile session: what cannot be is refused with its message and changes nothing",
	refusals, two_cores)

/* ---- files -------------------------------------------------------------------------------- */

static int unwritable(void *arg)
{
	struct place *p = arg;
	struct job j;
	char *text;
	int entries;

	WANT(profile_enter_test(p) == 0);
	WANT(job_open(&j, ADD_MODEL, 0) == 0);
	WANT(session_of(&j, 0) == 0);
	WANT(close(open("there", O_CREAT | O_WRONLY, 0600)) == 0);
	WANT(symlink("nowhere", "link") == 0 && mkdir("directory", 0700) == 0);
	entries = scratch_entries(".");
	WANT_STATUS(lib.nrt_profile_session_serialize(0, "there"), NRT_INVALID);
	WANT(said(p, "Cannot write the profile 'there': File exists; "
		     "a file that exists is never replaced"));
	WANT_STATUS(lib.nrt_profile_session_serialize(0, "link"), NRT_INVALID);
	WANT_STATUS(lib.nrt_profile_session_serialize(0, "directory"), NRT_INVALID);
	WANT_STATUS(lib.nrt_profile_session_serialize(0, "directory/"), NRT_INVALID);
	WANT_STATUS(lib.nrt_profile_session_serialize(0, "missing/file"), NRT_INVALID);
	WANT(said(p, "Cannot write the profile 'missing/file': No such file or directory; "
		     "its directory must exist"));
	WANT_STATUS(lib.nrt_profile_session_serialize(0, "there/file"), NRT_INVALID);
	WANT_STATUS(lib.nrt_profile_session_serialize(0, "/dev/full"), NRT_INVALID);
	WANT(scratch_entries(".") == entries);
	text = program_text("there");
	WANT(!strcmp(text, ""));
	free(text);
	WANT_STATUS(lib.nrt_profile_session_serialize(0, "directory/file"), 0);
	WANT(core_of("directory/file") == 0);
	WANT(scratch_entries(".") == entries && scratch_entries("directory") == 1);
	lib.nrt_close();
	return 0;
}

PROFILE_TEST("profile session: one that cannot be written is kept, and nothing is replaced or left",
	unwritable, two_cores)

/* As when a disk is full: some of it can be written. */
static int cut_short(void *arg)
{
	struct place *p = arg;
	struct job j;
	struct rlimit old, small;
	int entries;

	WANT(profile_enter_test(p) == 0);
	WANT(job_open(&j, ADD_MODEL, 0) == 0);
	WANT(session_of(&j, 0) == 0);
	entries = scratch_entries(".");
	WANT(signal(SIGXFSZ, SIG_IGN) != SIG_ERR && getrlimit(RLIMIT_FSIZE, &old) == 0);
	small = (struct rlimit){.rlim_cur = 1000, .rlim_max = old.rlim_max};
	WANT(setrlimit(RLIMIT_FSIZE, &small) == 0);
	WANT_STATUS(lib.nrt_profile_session_serialize(0, "file"), NRT_FAILURE);
	WANT(setrlimit(RLIMIT_FSIZE, &old) == 0);
	WANT(scratch_entries(".") == entries);
	WANT_STATUS(lib.nrt_profile_session_serialize(0, "file"), 0);
	WANT(core_of("file") == 0);
	lib.nrt_close();
	return 0;
}

PROFILE_TEST("profile session: a file that cannot be written to its end is not there, and can be "
	     "written later",
	cut_short, two_cores)

static int umasks(void *arg)
{
	struct place *p = arg;
	struct job j;
	struct stat st;

	WANT(profile_enter_test(p) == 0);
	WANT(job_open(&j, ADD_MODEL, 0) == 0);
	WANT(session_of(&j, 0) == 0);
	umask(027);
	WANT_STATUS(lib.nrt_profile_session_serialize(0, "file"), 0);
	WANT(stat("file", &st) == 0 && (st.st_mode & 07777) == 0640);
	lib.nrt_close();
	return 0;
}

PROFILE_TEST(
	"profile session: a file has the rights that the caller's umask leaves", umasks, two_cores)

static int mute(void *arg)
{
	struct place *p = arg;
	struct job j;
	struct ntff n;
	uint64_t id;

	WANT(profile_enter_test(p) == 0);
	WANT(job_open(&j, ADD_MODEL, 0) == 0);
	WANT_STATUS(lib.nrt_profile_session_start(0), 0);
	WANT(job_run(&j, 1.0f, 2.0f) == 0);
	WANT_STATUS(lib.nrt_profile_session_stop(0, &id), 0);
	WANT(said(p, "Failed to read notifications from device for NC 0: Input/output error; "
		     "the profile has those that were there"));
	WANT_STATUS(lib.nrt_profile_session_serialize(id, "file"), 0);
	WANT(ntff_load(&n, "file") == 0);
	WANT(n.info->partial && n.info->n_losses > 0 && ntff_count(&n, NTFF_INSTRUCTION) == 2);
	for (size_t i = 0; i < n.info->n_losses; i++)
		WANT(!strcmp(n.info->losses[i]->why, "the device did not answer"));
	ntff_done(&n);
	lib.nrt_close();
	return 0;
}

PROFILE_TEST(
	"profile session: a device that does not answer is a warning, and what there is is kept",
	mute, ((const char *const[]){"--arch=v2", "--cores=1", "--fail=BAR_READ:EIO", NULL}))

/* ---- nrt_close ---------------------------------------------------------------------------- */

static int closes(void *arg)
{
	struct place *p = arg;
	struct job j;
	uint64_t id;

	WANT(profile_enter_test(p) == 0);
	for (int i = 0; i < 3; i++) {
		WANT(job_open(&j, ADD_MODEL, 1) == 0);
		WANT(session_of(&j, 1) == 0 && session_of(&j, 1) == 1);
		WANT_STATUS(lib.nrt_profile_session_start(0), 0);
		lib.nrt_close();
		WANT_STATUS(init(), 0);
		WANT_STATUS(lib.nrt_profile_session_stop(0, &id), NRT_INVALID);
		WANT_STATUS(lib.nrt_profile_session_drop(0), NRT_INVALID);
	}
	lib.nrt_close();
	return 0;
}

PROFILE_TEST("profile session: nrt_close forgets all, and the next nrt_init counts from 0", closes,
	two_cores)

static int refused_child(void *arg)
{
	uint64_t id;

	(void)arg;
	WANT_STATUS(lib.nrt_profile_session_stop(0, &id), NRT_FAILURE);
	WANT_STATUS(lib.nrt_profile_session_start(1), NRT_FAILURE);
	return 0;
}

static int forks(void *arg)
{
	struct place *p = arg;
	struct job j;
	uint64_t id;

	WANT(profile_enter_test(p) == 0);
	WANT(job_open(&j, ADD_MODEL, 0) == 0);
	WANT_STATUS(lib.nrt_profile_session_start(0), 0);
	WANT(job_run(&j, 1.0f, 2.0f) == 0);
	WANT(scratch_child(refused_child, NULL) == 0);
	WANT(job_run(&j, 1.0f, 2.0f) == 0);
	WANT_STATUS(lib.nrt_profile_session_stop(0, &id), 0);
	WANT_STATUS(lib.nrt_profile_session_serialize(id, "file"), 0);
	/* Two runs of two steps on two physical cores. */
	WANT(ntff_count_in("file", NTFF_INSTRUCTION) == 8);
	lib.nrt_close();
	return 0;
}

PROFILE_TEST("profile session: the child of a fork is refused, its parent's session goes on", forks,
	two_cores)

/* ---- what is in it ------------------------------------------------------------------------ */

static uint64_t realtime_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t apart(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

/* From when the profile is, on both clocks; begun: the realtime before its start. */
static int check_clocks(const struct ntff *n, uint64_t begun)
{
	const uint64_t second = 1000000000;
	const int64_t offset = (int64_t)(realtime_ns() - clock_boot().ns);

	WANT(n->info->profile_start_time >= begun && n->info->profile_start_time < realtime_ns());
	WANT(n->info->boot_ns_begin < n->info->boot_ns_end);
	for (size_t i = 0; i < n->info->n_sync_points; i++)
		WANT(llabs(n->info->sync_points[i]->real_offset_ns - offset) < (int64_t)second);
	for (uint32_t part = 0; part < 2; part++) {
		const Ntff__NcTimestampInfo *t = ntff_graph(n, "adder", part)->timestamp_info;

		/* From the first point to the last one, on clocks that do not drift: to 10 ms. */
		WANT(t && t->tpb_pe && t->tpb_pe->init_timestamp > 0);
		WANT(t->tpb_pe->expected_timestamp_inc > 1000000);
		WANT(apart(t->tpb_pe->expected_timestamp_inc, t->tpb_pe->actual_timestamp_inc) <
			10000000000u);
	}
	return 0;
}

static int check_rings(const struct ntff *n)
{
	size_t of_mib[2] = {0};

	for (size_t i = 0; i < n->info->n_notification_buffers; i++) {
		const Ntff__NotificationBufferSize *b = n->info->notification_buffers[i];

		of_mib[0] += b->buffer_size == 1u << 20;
		of_mib[1] += b->buffer_size == 8u << 20 && b->trace_type == 0 && b->block_type == 0;
	}
	WANT(of_mib[1] == 1 && of_mib[0] + 1 == n->info->n_notification_buffers);
	for (size_t i = 0; i < n->info->n_session_notifications; i++) {
		const Ntff__TraceInfo *t = n->info->session_notifications[i];

		WANT(t->xxh3 && t->xxh3 == XXH3_64bits(n->data + t->offset, t->size));
	}
	return 0;
}

/* Each model once, though one was loaded twice. */
static int check_content(const struct ntff *n)
{
	const Ntff__SubgraphInfo *adder = ntff_graph(n, "adder", 1);

	WANT(n->info->n_neff_nodes == 2 && adder && ntff_graph(n, "copier", 0));
	WANT(strlen(n->info->neff_nodes[0]->uuid) == 36);
	WANT(strcmp(n->info->neff_nodes[0]->uuid, n->info->neff_nodes[1]->uuid) != 0);
	WANT(adder->n_instructions == 2 && adder->nc_idx == 1);
	WANT(!strcmp(adder->instructions[0]->op, "add") &&
		adder->instructions[1]->engine_index == VDEV_ACT);
	WANT(adder->instructions[0]->duration_ps == 20000000 &&
		adder->instructions[0]->source_line == 7);
	WANT(ntff_graph(n, "adder", 0)->n_memory_usage_breakdown == 22);
	WANT(ntff_graph(n, "adder", 0)->memory_usage_breakdown[12]->bytes >= 96);
	WANT(adder->n_traces == 0 && n->info->n_session_notifications > 0);
	WANT(ntff_runs(n, "adder") == 6 && ntff_runs(n, "copier") == 2);
	WANT(ntff_count(n, NTFF_INSTRUCTION) == 2 * (3 * 2 + 1));
	WANT(ntff_count(n, NTFF_RUN) == 8);
	WANT(n->info->neuron_runtime_version->major == 2 &&
		n->info->neuron_runtime_version->minor == 31);
	WANT(n->info->neuron_driver_version->major == 2 &&
		n->info->neuron_driver_version->minor == 30);
	WANT(n->info->neuron_collectives_version && n->info->arch == 3);
	WANT(n->info->pid == (uint32_t)getpid() && n->info->virtual_device && !n->info->partial);
	WANT(n->info->n_losses == 0 && n->info->n_sync_points >= 2);
	return check_rings(n);
}

static int seen_part(void *arg)
{
	struct job j;
	struct ntff n;

	setenv("NEURON_RT_VISIBLE_CORES", "1", 1);
	WANT(profile_enter_test(arg) == 0);
	WANT(job_open(&j, ADD_MODEL, 0) == 0 && session_of(&j, 0) == 0);
	WANT_STATUS(lib.nrt_profile_session_serialize(0, "file"), 0);
	WANT(ntff_load(&n, "file") == 0);
	WANT(n.info->start_nc == 1 && n.info->logical_nc == 1);
	WANT(n.profile.cores[0].nc_idx == 2 && n.profile.core_count == 2);
	ntff_done(&n);
	lib.nrt_close();
	return 0;
}

PROFILE_TEST("profile session: of a process that sees some cores it says from which on", seen_part,
	two_cores)

static int content(void *arg)
{
	struct place *p = arg;
	struct job a, b, again;
	struct ntff n;
	uint64_t id, begun;

	WANT(profile_enter_test(p) == 0);
	WANT(job_open(&a, ADD_MODEL, 0) == 0 && job_open(&b, COPY_MODEL, 0) == 0);
	WANT(job_run(&a, 9.0f, 2.0f) == 0); /* before it: not in it */
	begun = realtime_ns();
	WANT_STATUS(lib.nrt_profile_session_start(0), 0);
	WANT(job_run(&a, 1.0f, 2.0f) == 0 && job_run(&b, 1.0f, 0.0f) == 0);
	WANT(job_run(&a, 1.0f, 2.0f) == 0);
	WANT_STATUS(lib.nrt_unload(a.model), 0);
	WANT(job_open(&again, ADD_MODEL, 0) == 0 && job_run(&again, 1.0f, 2.0f) == 0);
	WANT_STATUS(lib.nrt_unload(again.model), 0);
	WANT_STATUS(lib.nrt_profile_session_stop(0, &id), 0);
	WANT_STATUS(lib.nrt_profile_session_serialize(id, "file"), 0);
	WANT(ntff_load(&n, "file") == 0);
	WANT(check_content(&n) == 0 && check_clocks(&n, begun) == 0);
	ntff_done(&n);
	lib.nrt_close();
	return 0;
}

PROFILE_TEST("profile session: all runs of the core, each model once, versions, memory, clocks",
	content, two_cores)
