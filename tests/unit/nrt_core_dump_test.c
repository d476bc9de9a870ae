/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nrt_core_dump_test.c - core dumps: when the helper is run, and what it is told.
 */
#include <ctype.h>
#include <errno.h>

#include "tests/unit/nrt_core_dump.h"

/* ---- the arguments ------------------------------------------------------------------------ */

static const char *local_now, *s3_now; /* values; NULL: the pair is not there */
static char pid_now[16], log_now[PATH_MAX];

static void append(const char *all[], const char *flag, const char *value)
{
	int n = 0;

	while (all[n])
		n++;
	all[n] = flag;
	all[n + 1] = value;
	all[n + 2] = NULL;
}

static void append_places(const char *all[])
{
	if (local_now)
		append(all, "--local-output-dir", local_now);
	if (s3_now)
		append(all, "--s3-output-prefix", s3_now);
}

static bool core_run_is(const struct place *p, int k, const char *core)
{
	const char *want[40] = {"./neuron-dump"};

	append(want, "--neff-name", "faulty");
	append(want, "--neff-uuid", "*");
	append(want, "--date-time", "*");
	append(want, "--pid", pid_now);
	append(want, "--tid", pid_now);
	append(want, "--log-id", "*");
	append(want, "--instance-id", "*");
	append(want, "--cluster-id", "none");
	append(want, "--error-location", "nrt_execute");
	append(want, "--error-code", "1003");
	append_places(want);
	append(want, "--device-id", "0");
	append(want, "--core-id", core);
	return dump_argv_is(p, k, want);
}

static bool file_run_is(const struct place *p, int k)
{
	const char *want[40] = {"./neuron-dump"};

	append(want, "--pid", pid_now);
	append(want, "--tid", pid_now);
	append(want, "--log-id", "*");
	append(want, "--instance-id", "*");
	append_places(want);
	append(want, "--cluster-id", "none");
	append(want, "--date-time", "*");
	append(want, "--runtime-generated", "*");
	return dump_argv_is(p, k, want);
}

/* yyyymmdd-HHMMSS */
static bool is_time(const char *text)
{
	bool is = strlen(text) == 15 && text[8] == '-';

	for (int i = 0; is && i < 15; i++)
		is = i == 8 || isdigit((unsigned char)text[i]);
	return is;
}

/* What the two places do not change. */
static int values_are_right(const struct place *p)
{
	char *uuid = dump_value(p, 0, "--neff-uuid"), *time = dump_value(p, 0, "--date-time");
	char *id = dump_value(p, 0, "--instance-id"),
	     *file = dump_value(p, 2, "--runtime-generated");
	char want[PATH_MAX], resolved[PATH_MAX], *errors;

	WANT(strlen(uuid) == 36 && is_time(time) && *id);
	for (int k = 0; k < 3; k++) {
		char *number = dump_value(p, k, "--log-id"),
		     *then = dump_value(p, k, "--date-time");

		WANT(atoi(number) == k + 1);
		WANT(!strcmp(then, time)); /* one failure, one time */
		free(number);
		free(then);
	}
	snprintf(want, sizeof(want), "%s/%s-nrt-pid-%s.log", log_now, id, pid_now);
	WANT(realpath(want, resolved));
	WANT(!strcmp(file, resolved));
	/* The errors that the log has kept, that of the failing call among them. */
	errors = program_text(resolved);
	WANT(strstr(errors, " ERROR ") && strstr(errors, "'faulty'"));
	free(errors);
	free(uuid);
	free(time);
	free(id);
	free(file);
	return 0;
}

/* An execution fails in the program, whose variables are these. */
static int failing(const struct place *p, const char *local, const char *s3)
{
	struct job job;

	snprintf(pid_now, sizeof(pid_now), "%d", (int)getpid());
	if (s3)
		setenv(S3, s3, 1);
	WANT(dump_begin(p, local, "INFO") == 0);
	WANT(job_open(&job, FAULTY_MODEL, 0) == 0);
	WANT_STATUS(lib.nrt_execute(job.model, job.in, job.out), 1003);
	return 0;
}

static int three_runs(const struct place *p)
{
	WANT(core_run_is(p, 0, "0"));
	WANT(core_run_is(p, 1, "1"));
	WANT(file_run_is(p, 2));
	WANT(dump_runs(p, "") == 3);
	return values_are_right(p);
}

static int to_local(void *arg)
{
	struct scratch_path dir = dump_place(arg, "dumps");

	local_now = dir.s;
	snprintf(log_now, sizeof(log_now), "%s", dir.s);
	WANT(failing(arg, dir.s, NULL) == 0);
	WANT(said(arg, "Core dump by ./neuron-dump: nrt_execute, status 1003"));
	return three_runs(arg);
}

DUMP_TEST("core dump: to a directory: a run per physical core and one for the file of errors",
	to_local)

static int to_both(void *arg)
{
	struct scratch_path dir = dump_place(arg, "dumps/%p-%c%x"), real;
	char s3[64];

	snprintf(s3, sizeof(s3), "s3://bucket/%d-none", (int)getpid());
	real = dump_place(arg, "dumps/");
	snprintf(log_now, sizeof(log_now), "%s%d-none%%x", real.s, (int)getpid());
	local_now = log_now;
	s3_now = s3;
	WANT(failing(arg, dir.s, "s3://bucket/%p-%c") == 0);
	return three_runs(arg);
}

DUMP_TEST("core dump: to a directory and S3: the pair of S3 stands behind that of the directory, "
	  "both expanded",
	to_both)

/* The default directory is the machine's: the files are taken away again. */
static int to_s3(void *arg)
{
	char *dir;
	int rc;

	s3_now = "s3://bucket/x";
	local_now = "*";
	WANT(failing(arg, "", "s3://bucket/x") == 0);
	dir = dump_value(arg, 2, "--local-output-dir");
	WANT(!strncmp(dir, "/tmp/neuron-core-dump/dt-2", 26) && strstr(dir, "-cid-none"));
	snprintf(log_now, sizeof(log_now), "%s", dir);
	rc = three_runs(arg);
	scratch_remove_tree(dir);
	(void)rmdir("/tmp/neuron-core-dump");
	free(dir);
	return rc;
}

DUMP_TEST("core dump: to S3 alone: the directory is the default one", to_s3)

static int to_neither(void *arg)
{
	WANT(failing(arg, "", "") == 0);
	WANT(dump_runs(arg, "") == 0);
	return 0;
}

DUMP_TEST("core dump: with both variables empty the helper is not run", to_neither)

static int by_default(void *arg)
{
	unsetenv(LOCAL);
	unsetenv(S3);
	WANT(failing(arg, NULL, NULL) == 0);
	WANT(dump_runs(arg, "") == 0);
	return 0;
}

DUMP_TEST(
	"core dump: with a virtual device the helper is run only when a place is named", by_default)

/* The environment is the program's, which may change it while calls of other threads fail. */
static int from_init_on(void *arg)
{
	struct scratch_path dir = dump_place(arg, "dumps");

	WANT(dump_begin(arg, dir.s, "ERROR") == 0);
	unsetenv(LOCAL);
	unsetenv(S3);
	WANT(fail_to_load() == 0);
	WANT(dump_runs(arg, "") == 3);
	lib.nrt_close();
	WANT_STATUS(init(), 0);
	setenv(LOCAL, dir.s, 1);
	WANT(fail_to_load() == 0);
	WANT(dump_runs(arg, "") == 3);
	return 0;
}

DUMP_TEST("core dump: whether a place is named is decided by nrt_init", from_init_on)

static int by_number(void *arg)
{
	struct scratch_path dir = dump_place(arg, "dumps/%l");

	WANT(failing(arg, dir.s, NULL) == 0);
	WANT(fail_to_load() == 0);
	for (int k = 0; k < 6; k++) {
		char *got = dump_value(arg, k, "--local-output-dir");
		char *number = dump_value(arg, k, "--log-id");

		WANT(!strcmp(got, dump_place(arg, k < 3 ? "dumps/1" : "dumps/4").s));
		WANT(atoi(number) == k + 1);
		free(got);
		free(number);
	}
	return 0;
}

DUMP_TEST("core dump: each run of the helper has a number; paths have that of the first one of a "
	  "failure",
	by_number)

/* ---- the gate ----------------------------------------------------------------------------- */

/* Fails to load after a change to ./neuron-dump. */
static int with_helper(const struct place *p, int (*change)(void))
{
	struct scratch_path dir = dump_place(p, "dumps");

	WANT(dump_begin(p, dir.s, "ERROR") == 0);
	WANT(change() == 0);
	WANT(fail_to_load() == 0);
	WANT(dump_runs(p, "") == 0);
	return 0;
}

static int take_away(void)
{
	return unlink("neuron-dump");
}

static int put_text(int mode)
{
	int fd = unlink("neuron-dump") ? -1
				       : open("neuron-dump", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	WANT(fd >= 0 && write(fd, "words\n", 6) == 6 && fchmod(fd, (mode_t)mode) == 0);
	return close(fd);
}

static int not_executable(void)
{
	return put_text(0644);
}

static int not_a_program(void)
{
	return put_text(0755);
}

static bool helper_is_mentioned(void)
{
	char *log = program_text("log");
	bool is = strstr(log, "neuron-dump") != NULL;

	free(log);
	return is;
}

static int gate_is_shut(void *arg)
{
	WANT(with_helper(arg, take_away) == 0);
	WANT(access("dumps", F_OK) < 0);
	WANT(!helper_is_mentioned());
	WANT(symlink("/bin/true", "neuron-dump") == 0); /* to be taken away once more */
	lib.nrt_close();
	WANT_STATUS(init(), 0);
	WANT(not_executable() == 0);
	WANT(fail_to_load() == 0);
	WANT(access("dumps", F_OK) < 0);
	WANT(!helper_is_mentioned());
	return 0;
}

DUMP_TEST("core dump: without a helper that can be executed nothing is done or said", gate_is_shut)

static int missing_is_said(void *arg)
{
	static const char line[] = "No core dumps: ./neuron-dump: No such file or directory";
	char *log, *first;

	WANT(dump_begin(arg, "dumps", "WARN") == 0);
	WANT(unlink("neuron-dump") == 0);
	WANT(fail_to_load() == 0 && fail_to_load() == 0);
	log = program_text("log");
	first = strstr(log, line);
	WANT(first && !strstr(first + 1, line));
	free(log);
	return 0;
}

DUMP_TEST("core dump: who has named a place is warned, once, where there is no helper",
	missing_is_said)

static int no_program(void *arg)
{
	WANT(with_helper(arg, not_a_program) == 0);
	WANT(said(arg, "Cannot run ./neuron-dump: Exec format error"));
	WANT(access("dumps", F_OK) == 0); /* the file of errors needs none */
	return 0;
}

DUMP_TEST("core dump: a helper that is no program is said to be none, and the call fails as ever",
	no_program)

/* ---- which calls -------------------------------------------------------------------------- */

/* The last dump was of this call. */
static bool dumped(const struct place *p, const char *call, int code, int times)
{
	char want[128];
	int got;

	snprintf(want, sizeof(want), "arg --error-location\narg %s\narg --error-code\narg %d\n",
		call, code);
	got = dump_runs(p, want);
	if (got != times)
		dprintf(complaint_fd, "%s: %d runs\n", call, got);
	return got == times;
}

static int loads(void *arg)
{
	struct scratch_path dir = dump_place(arg, "dumps");
	nrt_model_t *m = NULL;

	WANT(dump_begin(arg, dir.s, "ERROR") == 0);
	WANT(fail_to_load() == 0);
	WANT(dumped(arg, "nrt_load", GARBAGE_STATUS, 2));
	WANT_STATUS(lib.nrt_load_collectives("\177NEFF", 6, 0, -1, 0, 1, &m), GARBAGE_STATUS);
	WANT(dumped(arg, "nrt_load_collectives", GARBAGE_STATUS, 2));
	/* Without a core of the process there is but the file. */
	WANT_STATUS(lib.nrt_load(COPY_MODEL, strlen(COPY_MODEL), 77, -1, &m), NRT_INVALID);
	WANT(dumped(arg, "nrt_load", NRT_INVALID, 0));
	WANT(dump_runs(arg, "--runtime-generated") == 3);
	return 0;
}

DUMP_TEST("core dump: a load that fails", loads)

static int too_large(void *arg)
{
	static const char model[] = "ntrace-model 1\nname large\ntemp t float32 16777216\n"
				    "step SP 1us nop\n";
	struct scratch_path dir = dump_place(arg, "dumps");
	nrt_model_t *m = NULL;
	char *name, *uuid;

	WANT(dump_begin(arg, dir.s, "ERROR") == 0);
	WANT_STATUS(lib.nrt_load(model, strlen(model), 0, -1, &m), NRT_RESOURCE);
	name = dump_value(arg, 0, "--neff-name");
	uuid = dump_value(arg, 0, "--neff-uuid");
	WANT(!strcmp(name, "large") && strlen(uuid) == 36);
	free(name);
	free(uuid);
	return 0;
}

DUMP_TEST_ON("core dump: of a load that fails late the model's name and digest are known",
	too_large, small_memory)

static int transfers(void *arg)
{
	struct scratch_path dir = dump_place(arg, "dumps");
	char byte = 0;
	const nrt_tensor_batch_op_t far = {100, 1, &byte};
	nrt_tensor_t *a, *b;
	nrt_tensor_batch_t batch = {.ops = &far, .num_ops = 1};

	WANT(dump_begin(arg, dir.s, "ERROR") == 0);
	WANT_STATUS(lib.nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, 1, 32, "a", &a), 0);
	batch.tensor = a;
	WANT_STATUS(lib.nrt_tensor_write(a, &byte, 100, 1), NRT_INVALID);
	WANT(dumped(arg, "nrt_tensor_write", NRT_INVALID, 2));
	WANT_STATUS(lib.nrt_tensor_read(a, &byte, 100, 1), NRT_INVALID);
	WANT(dumped(arg, "nrt_tensor_read", NRT_INVALID, 2));
	WANT_STATUS(lib.nrt_tensor_copy(a, 0, a, 100, 1), NRT_INVALID);
	WANT(dumped(arg, "nrt_tensor_copy", NRT_INVALID, 2));
	WANT_STATUS(lib.nrt_tensor_memset(a, 100, 1, 1), NRT_INVALID);
	WANT(dumped(arg, "nrt_tensor_memset", NRT_INVALID, 2));
	WANT_STATUS(lib.nrt_tensor_write_batch(&batch, 1, false), NRT_INVALID);
	WANT(dumped(arg, "nrt_tensor_write_batch", NRT_INVALID, 2));
	WANT_STATUS(lib.nrt_tensor_read_batch(&batch, 1, false), NRT_INVALID);
	WANT(dumped(arg, "nrt_tensor_read_batch", NRT_INVALID, 2));
	WANT(lib.nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, 1, (size_t)1 << 50, "b", &b) ==
		NRT_RESOURCE);
	WANT(dumped(arg, "nrt_tensor_allocate", NRT_RESOURCE, 2));
	/* Core 1 of the process. */
	WANT(dump_runs(arg, "arg --core-id\narg 2\n") == 7);
	WANT(dump_runs(arg, "arg --core-id\narg 3\n") == 7);
	return 0;
}

DUMP_TEST("core dump: a call on a tensor that fails", transfers)

static bool is_done(void *seq)
{
	bool done = false;

	return lib.nrta_is_completed(*(nrta_seq_t *)seq, &done) == 0 && done;
}

static int scheduled(void *arg)
{
	struct scratch_path dir = dump_place(arg, "dumps");
	NRT_STATUS status = 0;
	struct job job;
	nrta_seq_t seq;
	char byte;

	WANT(dump_begin(arg, dir.s, "ERROR") == 0);
	WANT(job_open(&job, FAULTY_MODEL, 0) == 0);
	WANT_STATUS(lib.nrta_execute_schedule(job.model, job.in, job.out, 0, &status, &seq), 0);
	WANT(program_until(is_done, &seq, 60));
	WANT(status == 1003 && dumped(arg, "nrta_execute_schedule", 1003, 2));
	WANT_STATUS(lib.nrta_tensor_read(&byte, job.a, 100, 1, 0, 0, &status, &seq), 0);
	WANT(program_until(is_done, &seq, 60));
	WANT(status == NRT_INVALID && dumped(arg, "nrta_tensor_read", NRT_INVALID, 2));
	return 0;
}

DUMP_TEST("core dump: scheduled work that fails", scheduled)

static int posted(void *arg)
{
	struct scratch_path dir = dump_place(arg, "dumps");
	struct job job;

	setenv("NEURON_RT_ASYNC_EXEC_MAX_INFLIGHT_REQUESTS", "2", 1);
	WANT(dump_begin(arg, dir.s, "ERROR") == 0);
	WANT(job_open(&job, FAULTY_MODEL, 0) == 0);
	WANT_STATUS(lib.nrt_execute(job.model, job.in, job.out), 0);
	WANT_STATUS(lib.nrt_async_drain_queued_execs(0), 0);
	WANT(dumped(arg, "nrt_execute", 1003, 2));
	return 0;
}

DUMP_TEST("core dump: an execution in the background that fails", posted)

/* ---- how many ----------------------------------------------------------------------------- */

static int too_many(void *arg)
{
	struct scratch_path dir = dump_place(arg, "dumps");
	char byte = 0;
	const nrt_tensor_batch_op_t far = {100, 1, &byte};
	nrt_tensor_batch_t batch = {.ops = &far, .num_ops = 1};
	nrt_tensor_t *a, *b;

	WANT(dump_begin(arg, dir.s, "ERROR") == 0);
	WANT_STATUS(lib.nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, 1, 32, "a", &a), 0);
	batch.tensor = a;
	for (int i = 0; i < 3; i++) {
		WANT(fail_to_load() == 0);
		WANT(dump_runs(arg, "--runtime-generated") == (i < 2 ? i + 1 : 2));
	}
	for (int i = 0; i < 3; i++) {
		WANT_STATUS(lib.nrt_tensor_write(a, &byte, 100, 1), NRT_INVALID);
		WANT_STATUS(lib.nrt_tensor_read(a, &byte, 100, 1), NRT_INVALID);
		WANT_STATUS(lib.nrt_tensor_copy(a, 0, a, 100, 1), NRT_INVALID);
		WANT_STATUS(lib.nrt_tensor_memset(a, 100, 1, 1), NRT_INVALID);
		WANT_STATUS(lib.nrt_tensor_write_batch(&batch, 1, false), NRT_INVALID);
		WANT_STATUS(lib.nrt_tensor_read_batch(&batch, 1, false), NRT_INVALID);
		WANT_STATUS(lib.nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, 99, 1, "", &b),
			NRT_INVALID);
		WANT_STATUS(lib.nrt_load(NULL, 1, 0, -1, NULL), NRT_INVALID);
	}
	WANT(dump_runs(arg, "--runtime-generated") == 16);
	WANT(said(arg, "There have been 16 core dumps; that was the last"));
	lib.nrt_close();
	WANT_STATUS(init(), 0);
	WANT(fail_to_load() == 0);
	WANT(dump_runs(arg, "--runtime-generated") == 17);
	return 0;
}

DUMP_TEST(
	"core dump: two of one call with one status, 16 in all, until the next nrt_init", too_many)

static int unnoticed(void *arg)
{
	struct scratch_path dir = dump_place(arg, "dumps");
	nrt_tensor_t *a;
	char byte;

	WANT(dump_begin(arg, dir.s, "QUIET") == 0);
	WANT_STATUS(lib.nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, 0, 32, "a", &a), 0);
	errno = EXDEV;
	WANT_STATUS(lib.nrt_tensor_read(a, &byte, 100, 1), NRT_INVALID);
	WANT(errno == EXDEV);
	WANT(dump_runs(arg, "") == 3);
	return 0;
}

DUMP_TEST("core dump: errno stays as it was", unnoticed)
